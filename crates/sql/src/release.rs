//! The checks of a connection to PostgreSQL before it goes back to its pool.

use sqlx::Executor;
use sqlx::postgres::PgConnection;
use std::time::Duration;
use tokio::time::timeout;

/// Ends what a transaction left behind whose `BEGIN` was sent by a future that was then dropped: sqlx 0.9 does
/// not count it as open. The next user of the connection would work inside it, read-only perhaps. One round
/// trip, as a ping takes.
const END_ANY: &str = "BEGIN; ROLLBACK";

/// For `after_release`: the connection answers within `wait` and is in no transaction.
///
/// # Errors
/// It does not answer; the pool closes it.
pub async fn is_at_rest(db: &mut PgConnection, wait: Duration) -> Result<bool, sqlx::Error> {
    let late = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    timeout(wait, db.execute(END_ANY)).await.map_err(late)??;
    Ok(true)
}
