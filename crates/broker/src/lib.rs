//! The agent broker's store beside the log: the tasks that were published through it, and an inbox of their outcomes.
//!
//! Owns the tables, on SQLite (`broker.db` in the data folder) or PostgreSQL, under one code. [`BrokerStore::intake`]
//! notes what follows from events of the log, and its place in the log in the same transaction, so that each end is
//! noted once however often and on however many servers that is done. May not: read the log, hold inputs or results
//! (an [`Outcome`] says which event has them), speak a protocol, or decide who may do what: callers name the owner.

mod connect;
mod inbox;
mod intake;
mod keys;
mod mark;
mod passed;
mod published;
mod recent;
mod sweep;

pub use connect::{BROKER_FILE, CHECKPOINT, STEPS};
pub use inbox::{NAMES_MAX, Outcome, TooManyNames};
pub use intake::{Blocked, publishes};
pub use keys::Owner;
pub use mark::{ID_BYTES_MAX, MEMBER};
pub use published::{NAMESAKES_MAX, Published};

use passed::Passed;
use recent::Recent;
use std::sync::Arc;
use taskledger_beside::{Connections, store_error, store_shell};
use taskledger_sql::{Columns, Engine, Tx};
use tokio::sync::{Notify, watch};

/// Rows of one answer, whatever was asked for.
pub const ROWS_MAX: u32 = 1_000;

store_error!("the broker");

/// The tables in one place. Lasts as long as the server; `close` lets go of the connections.
pub struct BrokerStore {
    connections: Connections,
    engine: Engine,
    /// The tenant that the log belongs to; events do not name it.
    tenant: Arc<str>,
    /// The highest number of an outcome that this process knows of.
    newest: watch::Sender<u64>,
    /// Somebody waits for what is not noted yet.
    hurry: Notify,
    passed: Passed,
    recent: Recent,
}

store_shell!(BrokerStore, "the broker");

/// The row that orders everything that is noted or removed.
#[derive(Debug, Clone, Copy)]
struct State {
    position: u64,
    newest: u64,
}

impl BrokerStore {
    fn new(engine: Engine, connections: Connections, tenant: Arc<str>) -> Self {
        Self {
            connections,
            engine,
            tenant,
            newest: watch::Sender::new(0),
            hurry: Notify::new(),
            passed: Passed::default(),
            recent: Recent::default(),
        }
    }

    /// Wakes whoever waits for outcomes: the highest number that this process knows of, 0 until it has looked. It
    /// rises in [`Self::intake`], also where another server has noted the events, and in [`Self::newest`]. Cost: O(1),
    /// no query.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Asks whoever notes events for this process not to gather more of them first.
    pub fn hurry(&self) {
        self.hurry.notify_one();
    }

    /// Waits until somebody hurries, or has done so since this was asked last.
    pub async fn hurried(&self) {
        self.hurry.notified().await;
    }

    /// Whether no other server can note anything: a folder has one.
    const fn is_alone(&self) -> bool {
        match self.engine {
            Engine::Sqlite => true,
            Engine::Postgres => false,
        }
    }

    /// Tells those who wait that outcomes up to a number are there.
    fn wake(&self, newest: u64) {
        self.newest.send_if_modified(|known| {
            let rises = newest > *known;
            *known = newest.max(*known);
            rises
        });
    }

    /// A transaction that a power cut may undo.
    async fn change(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.write_unsynced().await?)
    }

    /// The same, after all others of its kind that began before it.
    async fn hold(&self) -> Result<(Tx<'static>, State), Error> {
        let mut tx = self.change().await?;
        // On SQLite the transaction itself is the lock.
        let hold = match tx.engine() {
            Engine::Sqlite => STATE,
            Engine::Postgres => HOLD,
        };
        let args = tx.args();
        let row = tx.fetch_one(hold, args).await?;
        let state = state(&mut Columns::of(&row))?;
        Ok((tx, state))
    }

    /// The same without the lock.
    async fn state(&self) -> Result<State, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let row = tx.fetch_one(STATE, args).await?;
            let state = state(&mut Columns::of(&row))?;
            tx.commit().await?;
            Ok(state)
        };
        self.order(work).await
    }
}

fn state(c: &mut Columns<'_>) -> Result<State, Error> {
    Ok(State {
        position: c.number()?,
        newest: c.number()?,
    })
}

/// A number as a column value.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

const STATE: &str = "SELECT position, newest FROM state WHERE one = 1";
const HOLD: &str = "SELECT position, newest FROM state WHERE one = 1 FOR UPDATE";
