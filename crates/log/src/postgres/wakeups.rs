//! Notices what other servers write.
//!
//! Owns: one connection that listens and asks for the head every [`POLL`]. A notification only makes
//! the news come sooner: it may be lost while the connection breaks, and the poll makes up for it.

use super::head::Head;
use super::options::Options;
use super::{open, queries};
use sqlx::postgres::PgListener;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Position;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What `taskledger.append` notifies, with the head as payload, so that a process knows its own.
const CHANNEL: &str = "taskledger";
/// How late news may come when notifications are lost.
const POLL: Duration = Duration::from_secs(1);
/// Between two attempts to listen.
const PAUSE: Duration = Duration::from_millis(250);

/// Follows the head of the log.
pub(super) struct Wakeups {
    options: Options,
    patience: Duration,
    head: Arc<Head>,
    stop: CancellationToken,
}

impl Wakeups {
    pub(super) fn new(options: &Options, head: Arc<Head>, stop: CancellationToken) -> Self {
        Self {
            options: options.clone(),
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
    }

    /// Listens and polls until that fails.
    async fn follow(&self, told: &mut bool) -> sqlx::Error {
        match self.listen(told).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn listen(&self, told: &mut bool) -> Result<std::convert::Infallible, sqlx::Error> {
        // A connection that busy readers do not take, from a pool that is left behind with it when its
        // peer does not answer any more.
        let pool = open::pool(&self.options, 1);
        let mut listener = self.bounded(PgListener::connect_with(&pool)).await?;
        self.bounded(listener.listen(CHANNEL)).await?;
        loop {
            // After listening has begun, so that nothing falls between.
            let polling = sqlx::query_scalar::<_, i64>(queries::HEAD).fetch_one(&mut listener);
            let position = self.bounded(polling).await?;
            self.head.note(position.cast_unsigned());
            if std::mem::take(told) {
                tracing::info!("what other servers write is heard of again");
            }
            let until = Instant::now() + POLL;
            while let Ok(heard) = tokio::time::timeout_at(until, listener.try_recv()).await {
                // What it says is not believed, since anybody may say it: the head is asked for, unless
                // it is what this process has written itself. A connection that was made anew has
                // missed what was said meanwhile.
                let news = heard?.is_none_or(|said| !self.is_known(said.payload()));
                if news {
                    break;
                }
            }
            // One question for all that has been said.
            while listener.next_buffered().is_some() {}
        }
    }

    fn is_known(&self, payload: &str) -> bool {
        payload
            .parse()
            .is_ok_and(|position: Position| position <= self.head.known())
    }

    async fn bounded<T>(
        &self,
        asked: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        open::within(self.patience, asked).await?
    }
}
