//! Reads saved documents.

use crate::saving::key;
use crate::version::{Document, Event, EventKind, Form, Version};
use crate::{DocumentStore, Error};
use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_sql::{Columns, Row, Tx};

impl DocumentStore {
    /// A version of a name with its text, the newest unless one is asked for; `None` if it is not kept.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn document(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        version: Option<u32>,
    ) -> Result<Option<Document>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = key(&tx, owner, name);
            let row = match version {
                None => tx.fetch_optional(NEWEST, args).await?,
                Some(version) => {
                    args.int(i64::from(version));
                    tx.fetch_optional(ONE, args).await?
                }
            };
            let found = row.as_ref().map(document).transpose()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// The newest versions of names that are not deleted, by name, at most `limit` of those behind `after`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn names(
        &self,
        owner: &Owner,
        after: Option<Arc<str>>,
        limit: u32,
    ) -> Result<Vec<Version>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            // Names are not empty.
            let mut args = key(&tx, owner, &after.unwrap_or_else(|| Arc::from("")));
            args.int(i64::from(limit));
            let rows = tx.fetch_all(LIST, args).await?;
            let read = |row: &Row| version(&mut Columns::of(row));
            let found = rows.iter().map(read).collect::<Result<_, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// What happened to a name, newest first, at most `limit` of the events before version `before`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn events(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<Event>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = key(&tx, owner, name);
            args.int(before.map_or(i64::MAX, i64::from));
            args.int(i64::from(limit));
            let rows = tx.fetch_all(EVENTS, args).await?;
            let found = rows.iter().map(event).collect::<Result<_, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }
}

/// The newest version of a name that is not deleted.
pub(crate) async fn newest(
    tx: &mut Tx<'_>,
    owner: &Owner,
    name: &Arc<str>,
) -> Result<Option<Version>, Error> {
    let args = key(tx, owner, name);
    let row = tx.fetch_optional(NEWEST_WITHOUT_TEXT, args).await?;
    row.as_ref()
        .map(|row| version(&mut Columns::of(row)))
        .transpose()
}

fn version(c: &mut Columns<'_>) -> Result<Version, Error> {
    Ok(Version {
        name: c.text()?,
        version: c.number()?,
        info_version: c.text()?,
        hash: c.text()?,
        bytes: c.number()?,
        saved_at: c.time()?,
        saved_by: c.text()?,
    })
}

fn document(row: &Row) -> Result<Document, Error> {
    let mut c = Columns::of(row);
    Ok(Document {
        version: version(&mut c)?,
        form: match c.word()? {
            "text" => Form::Text,
            "json" => Form::Json,
            other => {
                return Err(Error::Damaged(format!(
                    "`{other}` is no form of a document"
                )));
            }
        },
        text: c.text()?,
    })
}

fn event(row: &Row) -> Result<Event, Error> {
    let mut c = Columns::of(row);
    Ok(Event {
        version: version(&mut c)?,
        kind: match c.word()? {
            "saved" => EventKind::Saved,
            "deleted" => EventKind::Deleted,
            other => {
                return Err(Error::Damaged(format!(
                    "`{other}` is no event of a document"
                )));
            }
        },
        is_kept: c.opt_word()?.is_some(),
    })
}

const NEWEST_WITHOUT_TEXT: &str = "SELECT e.name, e.version, e.info_version, e.hash, e.bytes, e.at, e.principal
    FROM names n
    JOIN events e ON e.tenant = n.tenant AND e.owner = n.owner AND e.name = n.name AND e.version = n.version
    WHERE n.tenant = $1 AND n.owner = $2 AND n.name = $3";
const NEWEST: &str = "SELECT e.name, e.version, e.info_version, e.hash, e.bytes, e.at, e.principal, t.form, t.text
    FROM names n
    JOIN events e ON e.tenant = n.tenant AND e.owner = n.owner AND e.name = n.name AND e.version = n.version
    JOIN texts t ON t.tenant = n.tenant AND t.owner = n.owner AND t.name = n.name AND t.version = n.version
    WHERE n.tenant = $1 AND n.owner = $2 AND n.name = $3";
const ONE: &str = "SELECT e.name, e.version, e.info_version, e.hash, e.bytes, e.at, e.principal, t.form, t.text
    FROM texts t
    JOIN events e ON e.tenant = t.tenant AND e.owner = t.owner AND e.name = t.name AND e.version = t.version
    WHERE t.tenant = $1 AND t.owner = $2 AND t.name = $3 AND t.version = $4";
const LIST: &str = "SELECT e.name, e.version, e.info_version, e.hash, e.bytes, e.at, e.principal
    FROM names n
    JOIN events e ON e.tenant = n.tenant AND e.owner = n.owner AND e.name = n.name AND e.version = n.version
    WHERE n.tenant = $1 AND n.owner = $2 AND n.name > $3
    ORDER BY n.name
    LIMIT $4";
const EVENTS: &str = "SELECT e.name, e.version, e.info_version, e.hash, e.bytes, e.at, e.principal, e.kind, t.form
    FROM events e
    LEFT JOIN texts t ON t.tenant = e.tenant AND t.owner = e.owner AND t.name = e.name AND t.version = e.version
    WHERE e.tenant = $1 AND e.owner = $2 AND e.name = $3 AND e.version < $4
    ORDER BY e.version DESC
    LIMIT $5";
