//! The connection that writes, and the right to write through it.
//!
//! Owns: the connection, when to try again after it broke, and this process's epoch. After an
//! outcome that is not known the epoch is raised before anything else is written, so that whatever
//! was still on its way is refused when it arrives.

use super::options::Options;
use super::{failure, open};
use crate::Error;
use sqlx::PgConnection;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Between two attempts to connect: short enough to be back soon after a restart, long enough not
/// to be a burden to a server that is starting.
const PAUSE: Duration = Duration::from_millis(100);

/// Each returned row of this is one epoch.
pub(super) const RAISE_EPOCH: &str = "SELECT taskledger.raise_epoch($1)";

/// The connection that writes.
pub(super) struct Link {
    options: Options,
    node: Uuid,
    connection: Option<PgConnection>,
    /// `None`: to be raised before the next write.
    epoch: Option<i64>,
    down: Option<Down>,
}

/// The database has not been reachable.
struct Down {
    since: Instant,
    tried: Instant,
    reason: String,
}

impl Link {
    pub(super) fn new(options: Options) -> Self {
        let node = options.clock.uuid();
        Self {
            options,
            node,
            connection: None,
            epoch: None,
            down: None,
        }
    }

    pub(super) const fn node(&self) -> Uuid {
        self.node
    }

    /// The connection and the epoch to write with.
    ///
    /// # Errors
    /// [`Error`]: nothing can be written now. The first callers of an outage wait for its end as
    /// long as a call may; later ones are told at once.
    pub(super) async fn ready(&mut self) -> Result<(&mut PgConnection, i64), Error> {
        let epoch = self.epoch_of_a_connection().await?;
        match &mut self.connection {
            Some(connection) => Ok((connection, epoch)),
            None => Err(unreachable(&self.options, "the connection broke")),
        }
    }

    /// A current epoch, with a connection to use it on.
    async fn epoch_of_a_connection(&mut self) -> Result<i64, Error> {
        loop {
            if self.connection.is_none() {
                self.connect().await?;
            }
            if let Some(epoch) = self.epoch {
                return Ok(epoch);
            }
            // Without a result the connection was dead; `connect` has a limit on how often that is.
            if let Some(epoch) = self.raise_epoch().await? {
                return Ok(epoch);
            }
        }
    }

    /// What was sent last has no known outcome.
    pub(super) fn doubt(&mut self) {
        self.connection = None;
        self.epoch = None;
    }

    /// The epoch has been raised by somebody, or forgotten.
    pub(super) const fn forget_epoch(&mut self) {
        self.epoch = None;
    }

    /// The longest that a statement may take, as seen from here.
    pub(super) fn patience(&self) -> Duration {
        self.options.statement_timeout + open::CLIENT_GRACE
    }

    async fn raise_epoch(&mut self) -> Result<Option<i64>, Error> {
        let patience = self.patience();
        let Some(connection) = &mut self.connection else {
            return Ok(None);
        };
        let raising = sqlx::query_scalar::<_, i64>(RAISE_EPOCH)
            .bind(self.node)
            .fetch_all(connection);
        match tokio::time::timeout(patience, raising).await {
            Ok(Ok(raised)) => {
                self.down = None;
                self.epoch = raised.first().copied();
                Ok(self.epoch)
            }
            Ok(Err(error)) if failure::is_broken(&error) => {
                self.lost(&error.to_string());
                Ok(None)
            }
            Ok(Err(error)) => Err(failure::of_read(&error, 0)),
            Err(_) => {
                let reason = format!("no answer within {patience:?}");
                self.lost(&reason);
                Err(Error::Unavailable(reason))
            }
        }
    }

    fn lost(&mut self, reason: &str) {
        self.connection = None;
        let now = Instant::now();
        let down = self.down.get_or_insert_with(|| Down {
            since: now,
            tried: now,
            reason: String::new(),
        });
        down.tried = now;
        reason.clone_into(&mut down.reason);
    }

    /// Connects, or fails once the outage has lasted for as long as a call may wait.
    async fn connect(&mut self) -> Result<(), Error> {
        loop {
            if let Some(down) = &self.down {
                let next = down.tried + PAUSE;
                let patient = down.since.elapsed() < self.options.acquire_timeout;
                if !patient && Instant::now() < next {
                    return Err(unreachable(&self.options, &down.reason));
                }
                tokio::time::sleep_until(next).await;
            }
            match open::connect(&self.options).await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    if self.epoch.is_some() {
                        self.down = None;
                    }
                    return Ok(());
                }
                Err(error) => {
                    let first = self.down.is_none();
                    self.lost(&error.to_string());
                    if first {
                        let place = open::place(&self.options.connect);
                        tracing::warn!(%error, database = place, "the event log's database is not reachable");
                    }
                    let since = self.down.as_ref().map_or_else(Instant::now, |d| d.since);
                    if since.elapsed() >= self.options.acquire_timeout {
                        return Err(unreachable(&self.options, &error.to_string()));
                    }
                }
            }
        }
    }

    /// Says good-bye, so that the server need not find out.
    pub(super) async fn close(self) {
        if let Some(connection) = self.connection {
            let closing = sqlx::Connection::close(connection);
            // A server that does not listen to a farewell will notice later.
            let _ = tokio::time::timeout(open::CLIENT_GRACE, closing).await;
        }
    }
}

fn unreachable(options: &Options, reason: &str) -> Error {
    Error::Unavailable(format!(
        "the database {} cannot be reached: {reason}",
        open::place(&options.connect)
    ))
}
