//! Keys that the server has made for itself, as rows.

use super::{AuthStore, Error};
use std::fmt;
use std::sync::Arc;
use taskledger_sql::{Columns, Row, Tx};

/// A key of the server's own: the same on all nodes of a database, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnKey {
    /// The bytes of the key.
    pub value: Arc<[u8]>,
}

impl fmt::Debug for OwnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnKey").finish_non_exhaustive()
    }
}

impl AuthStore {
    /// The key for a purpose, if it was made. Cost: one query.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn own_key(&self, name: &Arc<str>) -> Result<Option<OwnKey>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let found = found(&mut tx, name).await?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// Keeps a key for a purpose unless there is one already; the one that counts, for this node and all others.
    ///
    /// # Errors
    /// [`Error`]: then another attempt may find a key.
    pub async fn keep_own_key(&self, name: &Arc<str>, made: &OwnKey) -> Result<OwnKey, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.text(name.clone());
            args.bytes(made.value.to_vec());
            tx.execute(KEEP, args).await?;
            let kept = found(&mut tx, name).await?;
            tx.commit().await?;
            Ok(kept.unwrap_or_else(|| made.clone()))
        };
        self.order(work).await
    }
}

async fn found(tx: &mut Tx<'_>, name: &Arc<str>) -> Result<Option<OwnKey>, Error> {
    let mut args = tx.args();
    args.text(name.clone());
    let row = tx.fetch_optional(ONE, args).await?;
    let read = |row: &Row| {
        let mut c = Columns::of(row);
        Ok(OwnKey {
            value: Arc::from(c.bytes()?),
        })
    };
    row.as_ref().map(read).transpose()
}

const ONE: &str = "SELECT value FROM own_keys WHERE name = $1";
const KEEP: &str = "INSERT INTO own_keys (name, value) VALUES ($1, $2)
    ON CONFLICT (name) DO NOTHING";
