//! The tables of webhooks, on SQLite or PostgreSQL, under one code.
//!
//! Owns: endpoints with their sealed secrets, messages, deliveries, the log of attempts, and the place
//! of the outbox. May not: read the log, send anything.
//! Whoever makes messages or changes what endpoints want locks the row of `state` first; whoever
//! changes a delivery holds the row of its endpoint. In this order nobody waits for each other.
//! It cannot be made again from the log, so it is never thrown away.

mod connect;
mod deliveries;
mod endpoints;
mod inspect;
mod intake;
mod lanes;
mod reports;
mod room;
mod rotation;
mod row;
mod shown;
mod sweep;
mod switch;
mod vault;
mod wants;

pub use connect::{CHECKPOINT, OpenError, STEPS, WEBHOOKS_FILE};
pub use endpoints::{CALLBACKS_MAX, Change, Created, ENDPOINTS_MAX, New};
pub use inspect::{Recover, Redelivered};
pub use intake::{Intake, Message, Recipient, Started, State, Taken};
pub use reports::Put;
pub use rotation::{OLD_KEYS_MAX, Rotated};
pub use shown::{AttemptView, DeliveryFilter, DeliveryView, WaitsFor};
pub use sweep::{KEPT_DAYS, KEPT_PER_ENDPOINT, REPORTS_KEPT_DAYS, Swept};
pub use wants::{Wanted, WantedNow};

use connect::Listener;
use room::Room;
use std::time::Duration;
use taskledger_beside::Connections;
use taskledger_clock::SharedClock;
use taskledger_sealing::{Keyring, KeysError};
use taskledger_sql::{Tx, with_sources};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long one order to the store may take: beyond it the connection is taken for dead. The largest
/// one notes an event for 20,000 endpoints.
const ORDER_WAIT: Duration = Duration::from_secs(30);

/// The store cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database does not answer; retry.
    #[error("the store of webhooks is not available: {0}")]
    Database(#[from] sqlx::Error),
    /// No answer in time; retry.
    #[error("the store of webhooks gave no answer within {ORDER_WAIT:?}")]
    Late,
    /// A stored value cannot be read.
    #[error("the store of webhooks is damaged: {0}")]
    Damaged(String),
    /// A secret cannot be sealed or opened; the operator can mend it.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

impl From<taskledger_sql::Error> for Error {
    fn from(error: taskledger_sql::Error) -> Self {
        match error {
            taskledger_sql::Error::Unavailable(source) => Self::Database(source),
            taskledger_sql::Error::Damaged(reason) => Self::Damaged(reason),
            // None of its statements runs on a connection of this kind.
            other @ taskledger_sql::Error::Sqlite(_) => Self::Damaged(with_sources(&other)),
        }
    }
}

/// The tables of webhooks in one place, with the keys that open what is sealed in them. Lasts as long as
/// the server; `close` lets go of the connections.
pub struct Store {
    connections: Connections,
    keys: Keyring,
    clock: SharedClock,
    /// Something may be due that was not before.
    due: Notify,
    /// Endpoints want something else now.
    wanted: Notify,
    listener: tokio::sync::Mutex<Option<Listener>>,
    room_of_lasting: Room,
    room_of_callbacks: Room,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    fn new(connections: Connections, keys: Keyring, clock: SharedClock) -> Self {
        Self {
            connections,
            keys,
            clock,
            due: Notify::new(),
            wanted: Notify::new(),
            listener: tokio::sync::Mutex::new(None),
            room_of_lasting: Room::default(),
            room_of_callbacks: Room::default(),
        }
    }

    /// Whether secrets can be kept.
    ///
    /// # Errors
    /// [`KeysError::None`].
    pub const fn can_seal(&self) -> Result<(), KeysError> {
        if self.keys.is_empty() {
            Err(KeysError::None)
        } else {
            Ok(())
        }
    }

    /// The clock that its times come from.
    #[must_use]
    pub const fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Runs one order to its end or not at all, within [`ORDER_WAIT`].
    async fn order<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        timeout(ORDER_WAIT, work).await.map_err(|_| Error::Late)?
    }

    async fn write(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.write().await?)
    }

    async fn read(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.read().await?)
    }

    /// Returns when endpoints may want something else than before. A hint.
    pub async fn wants_changed(&self) {
        self.wanted.notified().await;
    }

    fn now_due(&self) {
        self.due.notify_waiters();
        self.due.notify_one();
    }

    fn now_wanted(&self) {
        self.wanted.notify_one();
    }

    /// Closes all connections. Nobody may wait for changes any more. Returns whether they were closed in time.
    pub async fn close(&self) -> bool {
        // The connection that listens belongs to them, and does not come back by itself.
        if let Ok(mut listener) = self.listener.try_lock() {
            listener.take();
        }
        let is_closed = self.connections.close().await;
        if !is_closed {
            tracing::warn!("the connections of the webhooks were not closed in time");
        }
        is_closed
    }
}

/// The two words in which a text differs between the engines: a lock on rows that are read.
fn for_update(tx: &Tx<'_>) -> &'static str {
    match tx.engine() {
        taskledger_sql::Engine::Sqlite => "",
        taskledger_sql::Engine::Postgres => " FOR UPDATE",
    }
}
