//! A projector: a name, a version, and a way to fold events into tables.

use crate::Error;
use std::future::Future;
use std::sync::Arc;
use taskledger_domain::Recorded;
use taskledger_sql::Tx;

/// Folds events into tables. Exactly once in effect: [`crate::ReadModels::apply`] commits its rows
/// and its checkpoint together.
pub trait Projector: Send {
    /// Names its checkpoint.
    const NAME: &'static str;
    /// Raise it when the same events would give other rows: they are then rebuilt from the log.
    const VERSION: i64;

    /// Folds `events`, which follow directly on those folded before, inside a transaction.
    ///
    /// # Errors
    /// [`Error::Poison`] names the event that cannot be folded; everything else concerns the
    /// database. After an error the transaction is rolled back and [`Projector::forget`] called.
    fn apply(
        &mut self,
        tx: &mut Tx<'_>,
        events: &[Arc<Recorded>],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Drops what it remembers of earlier batches: it may not have been committed.
    fn forget(&mut self);
}
