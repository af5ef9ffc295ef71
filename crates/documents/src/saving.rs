//! Saves and deletes documents.

use crate::reading::newest;
use crate::version::{EventKind, NewVersion, Version};
use crate::{DocumentStore, Error};
use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_domain::Timestamp;
use taskledger_sql::{Args, Columns, Row, Tx};

/// Names of one owner that are not deleted.
pub const NAMES_MAX: usize = 1_000;
/// Versions of one name, deletions among them.
pub const VERSIONS_MAX: u32 = 10_000;
/// Bytes of all texts of one owner.
pub const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Why a document is not saved; nothing is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The owner has too many names.
    #[error("at most {NAMES_MAX} workflows are kept for one owner; delete others first")]
    Names,
    /// The name has too many versions.
    #[error("the {VERSIONS_MAX} version numbers of one name are used up; save it by another name")]
    Versions,
    /// The texts of the owner would take too many bytes.
    #[error("at most {BYTES_MAX} bytes are kept for one owner; delete others first")]
    Bytes,
    /// The newest version is another than the caller expects: this one, or none.
    #[error("{}", newest_is(*.0))]
    Changed(Option<u32>),
}

fn newest_is(version: Option<u32>) -> String {
    match version {
        Some(version) => format!("the newest version is {version}"),
        None => "no version is kept".to_owned(),
    }
}

/// A version that is kept now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// It, new or as it was.
    pub version: Version,
    /// Whether it is new: a document whose hash is that of the newest version is kept already.
    pub is_new: bool,
    /// The version before it, if it is new and that one is kept.
    pub previous: Option<u32>,
}

impl DocumentStore {
    /// Keeps a document as the newest version of its name, unless the newest is the same. `expected`: the number of
    /// the newest version before, 0 for none.
    ///
    /// # Errors
    /// [`Error`]; within, [`Refusal`].
    pub async fn save(
        &self,
        owner: &Owner,
        new: &NewVersion,
        expected: Option<u32>,
    ) -> Result<Result<Saved, Refusal>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let saved = save(&mut tx, owner, new, expected).await?;
            match saved {
                Ok(Saved { is_new: true, .. }) => tx.commit().await?,
                Ok(Saved { is_new: false, .. }) | Err(_) => tx.rollback().await?,
            }
            Ok(saved)
        };
        self.order(work).await
    }

    /// Deletes all versions of a name. Returns whether there were any. What happened to the name stays known.
    /// `expected`: the number of the newest version.
    ///
    /// # Errors
    /// [`Error`]; within, [`Refusal::Changed`].
    pub async fn delete(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        expected: Option<u32>,
        (by, at): (Arc<str>, Timestamp),
    ) -> Result<Result<bool, Refusal>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let Some(newest) = newest(&mut tx, owner, name).await? else {
                tx.rollback().await?;
                return Ok(Ok(false));
            };
            if expected.is_some_and(|expected| expected != newest.version) {
                tx.rollback().await?;
                return Ok(Err(Refusal::Changed(Some(newest.version))));
            }
            let args = key(&tx, owner, name);
            tx.execute(REMOVE_NAME, args).await?;
            let args = key(&tx, owner, name);
            tx.execute(REMOVE_TEXTS, args).await?;
            let args = key(&tx, owner, name);
            tx.execute(REMOVE_PINS, args).await?;
            let deletion = Version {
                name: name.clone(),
                version: last_number(&mut tx, owner, name).await? + 1,
                info_version: Arc::from(""),
                hash: Arc::from(""),
                bytes: 0,
                saved_at: at,
                saved_by: by,
            };
            add_event(&mut tx, owner, EventKind::Deleted, &deletion).await?;
            tx.commit().await?;
            Ok(Ok(true))
        };
        self.order(work).await
    }
}

async fn save(
    tx: &mut Tx<'_>,
    owner: &Owner,
    new: &NewVersion,
    expected: Option<u32>,
) -> Result<Result<Saved, Refusal>, Error> {
    let newest = newest(tx, owner, &new.name).await?;
    if let Some(same) = newest.as_ref().filter(|newest| newest.hash == new.hash) {
        return Ok(Ok(Saved {
            version: same.clone(),
            is_new: false,
            previous: None,
        }));
    }
    let found = newest.as_ref().map(|newest| newest.version);
    if expected.is_some_and(|expected| expected != found.unwrap_or(0)) {
        return Ok(Err(Refusal::Changed(found)));
    }
    let bytes = new.text.len() as u64;
    let mut args = tx.args();
    args.text(owner.tenant.clone());
    args.text(owner.column());
    let sums = tx.fetch_one(SUMS, args).await?;
    let mut sums = Columns::of(&sums);
    let (names, used): (usize, u64) = (sums.number()?, sums.number()?);
    let number = last_number(tx, owner, &new.name).await? + 1;
    if newest.is_none() && names >= NAMES_MAX {
        return Ok(Err(Refusal::Names));
    }
    // The last number is left for a deletion.
    if number >= VERSIONS_MAX {
        return Ok(Err(Refusal::Versions));
    }
    if used.saturating_add(bytes) > BYTES_MAX {
        return Ok(Err(Refusal::Bytes));
    }
    let version = Version {
        name: new.name.clone(),
        version: number,
        info_version: new.info_version.clone(),
        hash: new.hash.clone(),
        bytes,
        saved_at: new.at,
        saved_by: new.by.clone(),
    };
    add_event(tx, owner, EventKind::Saved, &version).await?;
    let mut args = key(tx, owner, &new.name);
    args.int(i64::from(number));
    args.name(new.form.as_str());
    args.text(new.text.clone());
    tx.execute(ADD_TEXT, args).await?;
    let mut args = key(tx, owner, &new.name);
    args.int(i64::from(number));
    args.int(stored(bytes));
    tx.execute(PUT_NAME, args).await?;
    Ok(Ok(Saved {
        version,
        is_new: true,
        previous: newest.map(|newest| newest.version),
    }))
}

async fn add_event(
    tx: &mut Tx<'_>,
    owner: &Owner,
    kind: EventKind,
    version: &Version,
) -> Result<(), Error> {
    let mut args = key(tx, owner, &version.name);
    args.int(i64::from(version.version));
    args.name(kind.as_str());
    args.text(version.info_version.clone());
    args.text(version.hash.clone());
    args.int(stored(version.bytes));
    args.time(version.saved_at);
    args.text(version.saved_by.clone());
    tx.execute(ADD_EVENT, args).await?;
    Ok(())
}

/// The number of the last event of a name; 0 without one.
async fn last_number(tx: &mut Tx<'_>, owner: &Owner, name: &Arc<str>) -> Result<u32, Error> {
    let args = key(tx, owner, name);
    let row: Row = tx.fetch_one(LAST, args).await?;
    Ok(Columns::of(&row).number()?)
}

/// The parameters of a statement that concerns one name.
pub(crate) fn key(tx: &Tx<'_>, owner: &Owner, name: &Arc<str>) -> Args {
    let mut args = tx.args();
    args.text(owner.tenant.clone());
    args.text(owner.column());
    args.text(name.clone());
    args
}

fn stored(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// Of at most NAMES_MAX rows.
const SUMS: &str = "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM names
    WHERE tenant = $1 AND owner = $2";
const LAST: &str = "SELECT CAST(coalesce(max(version), 0) AS BIGINT) FROM events
    WHERE tenant = $1 AND owner = $2 AND name = $3";
const ADD_EVENT: &str = "INSERT INTO events
    (tenant, owner, name, version, kind, info_version, hash, bytes, at, principal)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const ADD_TEXT: &str = "INSERT INTO texts (tenant, owner, name, version, form, text)
    VALUES ($1, $2, $3, $4, $5, $6)";
const PUT_NAME: &str = "INSERT INTO names (tenant, owner, name, version, bytes)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, owner, name) DO UPDATE SET
        version = excluded.version,
        bytes = names.bytes + excluded.bytes";
const REMOVE_NAME: &str = "DELETE FROM names WHERE tenant = $1 AND owner = $2 AND name = $3";
const REMOVE_PINS: &str = "DELETE FROM pins WHERE tenant = $1 AND owner = $2 AND name = $3";
const REMOVE_TEXTS: &str = "DELETE FROM texts WHERE tenant = $1 AND owner = $2 AND name = $3";
