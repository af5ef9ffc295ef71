//! What other servers write, heard of.
//!
//! Owns: one connection that listens and asks for the head every [`POLL`]. A notification only makes
//! the news come sooner: it may be lost while the connection breaks, and the poll makes up for it.

use super::head::Head;
use super::{Options, open, queries};
use sqlx::PgPool;
use sqlx::postgres::PgListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What `taskledger.append` notifies, with the head as payload.
const CHANNEL: &str = "taskledger";
/// How late news may come when notifications are lost.
const POLL: Duration = Duration::from_secs(1);
/// Between two attempts to listen.
const PAUSE: Duration = Duration::from_millis(250);

/// Follows the head of the log.
pub(super) struct Wakeups {
    /// One connection, so that busy readers are not in the way.
    pool: PgPool,
    patience: Duration,
    head: Arc<Head>,
    stop: CancellationToken,
}

impl Wakeups {
    pub(super) fn new(options: &Options, head: Arc<Head>, stop: CancellationToken) -> Self {
        Self {
            pool: open::pool(options, 1),
            patience: options.statement_timeout + open::CLIENT_GRACE,
            head,
            stop,
        }
    }

    /// Follows until it is stopped; an outage is waited out.
    pub(super) async fn run(self) {
        let mut told = false;
        loop {
            let followed = self.stop.run_until_cancelled(self.follow(&mut told)).await;
            let Some(error) = followed else {
                break;
            };
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(%error, "what other servers write is not heard of");
            }
            let pause = tokio::time::sleep(PAUSE);
            if self.stop.run_until_cancelled(pause).await.is_none() {
                break;
            }
        }
        self.pool.close().await;
    }

    /// Listens and polls until that fails.
    async fn follow(&self, told: &mut bool) -> sqlx::Error {
        match self.listen(told).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn listen(&self, told: &mut bool) -> Result<std::convert::Infallible, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(CHANNEL).await?;
        loop {
            // After listening has begun, so that nothing falls between.
            let polling = sqlx::query_scalar::<_, i64>(queries::HEAD).fetch_one(&mut listener);
            let polled = tokio::time::timeout(self.patience, polling).await;
            let position = polled.map_err(|_| sqlx::Error::PoolTimedOut)??;
            self.head.note(position.cast_unsigned());
            if std::mem::take(told) {
                tracing::info!("what other servers write is heard of again");
            }
            let until = Instant::now() + POLL;
            while let Ok(heard) = tokio::time::timeout_at(until, listener.try_recv()).await {
                match heard? {
                    Some(notification) => {
                        if let Ok(position) = notification.payload().parse() {
                            self.head.note(position);
                        }
                    }
                    // The connection was made anew; what was said meanwhile is asked for.
                    None => break,
                }
            }
        }
    }
}
