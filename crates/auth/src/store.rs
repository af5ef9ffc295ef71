//! The tables of tokens, secrets and audit, on SQLite (`auth.db` in the data folder) or PostgreSQL, under one code.
//!
//! Owns: connections, schema, and the rows of tokens, of JWTs that are refused, of sealed secrets, of the server's own
//! keys and of the audit log.
//! May not: decide who may do what, or see a secret (it gets digests and sealed values). Whoever changes something
//! calls [`AuthStore::change`], writes, adds its row to the audit log in the same transaction
//! ([`AuthStore::append`]) and commits: then nothing changes without a row. It cannot be made again from the log, so
//! it is never thrown away.

mod audit;
mod audit_chain;
mod audit_row;
mod connect;
mod denied;
mod own_keys;
pub(crate) mod secrets;
mod tokens;

pub use audit::AuditFilter;
pub use audit_chain::AuditProof;
pub use audit_row::AuditRow;
pub use connect::{AUTH_FILE, STEPS};
pub use denied::{DENIED_MAX, DeniedJwt, DeniedRow};
pub(crate) use denied::{count_denied, deny};
pub use own_keys::OwnKey;
pub use secrets::{SecretOwner, SecretRow};
pub use tokens::{NewToken, Owner, TOKENS_MAX, TokenRow, TokenState};
pub(crate) use tokens::{count, hold, insert, revoke, rotate};

use crate::audit::Outcome;
use taskledger_beside::{Connections, store_error, store_shell, store_write};
use taskledger_domain::Timestamp;
use taskledger_meters::Counter;
use taskledger_sql::{Columns, Tx, in_slices};

store_error!("tokens");

/// The tables in one place. Lasts as long as the server; `close` lets go of the connections.
pub struct AuthStore {
    connections: Connections,
    /// Rows that were added to the audit log, by their outcome.
    audited: [Counter; Outcome::ALL.len()],
}

store_shell!(pub AuthStore, "tokens");
store_write!(pub AuthStore);

impl AuthStore {
    fn new(connections: Connections) -> Self {
        Self {
            connections,
            audited: std::array::from_fn(|_| Counter::default()),
        }
    }

    /// The same, and all servers forget what they know within a second of its commit.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn change(&self) -> Result<Tx<'static>, Error> {
        let mut tx = self.connections.write().await?;
        let args = tx.args();
        tx.execute(RAISE, args).await?;
        Ok(tx)
    }

    /// A number that rises with each change.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn generation(&self) -> Result<i64, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let generation = Columns::of(&tx.fetch_one(GENERATION, args).await?).int()?;
            tx.commit().await?;
            Ok(generation)
        };
        self.order(work).await
    }

    /// Removes what `statement` finds from before `old`, so many rows at a time. Returns how many.
    async fn sweep(
        &self,
        (statement, slice): (&'static str, i64),
        old: Timestamp,
    ) -> Result<u64, Error> {
        in_slices(slice, || {
            let work = async move {
                let mut tx = self.write().await?;
                let mut args = tx.args();
                args.time(old);
                args.int(slice);
                let removed = tx.execute(statement, args).await?;
                tx.commit().await?;
                Ok(removed)
            };
            self.order(work)
        })
        .await
    }
}

const GENERATION: &str = "SELECT generation FROM state WHERE one = 1";
const RAISE: &str = "UPDATE state SET generation = generation + 1 WHERE one = 1";
