//! Access tokens of OIDC issuers that are refused before they expire, as rows.

use super::{AuthStore, Error};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Row, Tx};

/// Rows there can be: each server holds all of them in memory, about 2 MB.
pub const DENIED_MAX: i64 = 10_000;
/// Rows that one transaction removes.
const SLICE: i64 = 1_000;

/// The JWTs that a row refuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeniedJwt {
    /// The token with this `jti`.
    Id(Arc<str>),
    /// The tokens of this `sub` that were issued until the row was written.
    Subject(Arc<str>),
}

impl DeniedJwt {
    /// The claim by which it is refused.
    #[must_use]
    pub const fn claim(&self) -> &'static str {
        match self {
            Self::Id(_) => "jti",
            Self::Subject(_) => "sub",
        }
    }

    /// The `jti` or the `sub`.
    #[must_use]
    pub const fn value(&self) -> &Arc<str> {
        match self {
            Self::Id(value) | Self::Subject(value) => value,
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedRow {
    /// `iss` of the tokens.
    pub issuer: Arc<str>,
    /// Which of its tokens.
    pub what: DeniedJwt,
    /// When it was written.
    pub denied_at: Timestamp,
}

impl AuthStore {
    /// All rows, and the generation in which that is all. Cost: O(rows).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn denied(&self) -> Result<(i64, Vec<DeniedRow>), Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let generation = Columns::of(&tx.fetch_one(super::GENERATION, args).await?).int()?;
            let args = tx.args();
            let rows = tx.fetch_all(LIST, args).await?;
            let rows = rows.iter().map(denied).collect::<Result<Vec<_>, _>>()?;
            tx.commit().await?;
            Ok((generation, rows))
        };
        self.order(work).await
    }

    /// Removes rows from before `old`.
    ///
    /// # Errors
    /// [`Error`]: what was removed is removed; ask again later.
    pub async fn sweep_denied(&self, old: Timestamp) -> Result<u64, Error> {
        self.sweep((SWEEP, SLICE), old).await
    }
}

/// How many rows there are.
pub(crate) async fn count_denied(tx: &mut Tx<'_>) -> Result<i64, Error> {
    let args = tx.args();
    Ok(Columns::of(&tx.fetch_one(COUNT, args).await?).int()?)
}

/// Adds a row, or makes one that is there as new as this one.
pub(crate) async fn deny(tx: &mut Tx<'_>, row: &DeniedRow) -> Result<(), Error> {
    let mut args = tx.args();
    args.text(row.issuer.clone());
    args.name(row.what.claim());
    args.text(row.what.value().clone());
    args.time(row.denied_at);
    tx.execute(PUT, args).await?;
    Ok(())
}

fn denied(row: &Row) -> Result<DeniedRow, Error> {
    let mut c = Columns::of(row);
    let issuer = c.text()?;
    let what: fn(Arc<str>) -> DeniedJwt = match c.word()? {
        "jti" => DeniedJwt::Id,
        "sub" => DeniedJwt::Subject,
        other => return Err(Error::Damaged(format!("`{other}` denies no JWT"))),
    };
    Ok(DeniedRow {
        issuer,
        what: what(c.text()?),
        denied_at: c.time()?,
    })
}

const LIST: &str = "SELECT issuer, claim, value, denied_at FROM denied_jwts";
const COUNT: &str = "SELECT count(*) FROM denied_jwts";
const PUT: &str = "INSERT INTO denied_jwts (issuer, claim, value, denied_at)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (issuer, claim, value) DO UPDATE SET denied_at = excluded.denied_at";
// By `denied_jwts_at`.
const SWEEP: &str = "DELETE FROM denied_jwts WHERE (issuer, claim, value) IN
    (SELECT issuer, claim, value FROM denied_jwts
    WHERE denied_at < $1
    ORDER BY denied_at LIMIT $2)";
