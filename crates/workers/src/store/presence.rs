//! The rows of connected workers: each server writes those that are connected to it and reads the others'.

use super::{Error, WorkerStore, owner_of, owner_text};
use crate::presence::{Connection, Worker};
use std::sync::{Arc, LazyLock};
use taskledger_domain::Timestamp;
use taskledger_sql::{Args, Columns, MultiRow, Row, json};
use uuid::Uuid;

/// How long a worker that asks no more is kept, in milliseconds.
pub const PRESENCE_KEPT_MS: u64 = 3_600 * 1_000;

/// Whether other servers hear of it by [`WorkerStore::changes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Somebody asks for a method that nobody asked for.
    Announced,
    /// Other servers may find it when they look again.
    Quiet,
}

impl WorkerStore {
    /// Keeps that these workers are there, in the place of what was known of them on the same server.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn see(&self, workers: &[Worker], news: News) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            if news == News::Announced {
                let args = tx.args();
                tx.execute(ANNOUNCE, args).await?;
            }
            SEE.execute(&mut tx, workers, bind).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// These workers are connected to the server no more; each is `(principal, worker)`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn gone(
        &self,
        workers: &[(Arc<str>, Arc<str>)],
        node: Option<Uuid>,
    ) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            let bind = |(principal, worker): &(Arc<str>, Arc<str>), args: &mut Args| {
                args.text(principal.clone());
                args.text(worker.clone());
                args.id(node.unwrap_or_default());
            };
            GONE.execute(&mut tx, workers, bind).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// The server is gone, and with it the connections of its workers.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn leave(&self, node: Option<Uuid>) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(node.unwrap_or_default());
            tx.execute(LEAVE, args).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// Workers that were seen at `since` or later, by principal, name and server. Cost: O(workers).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn workers(&self, since: Timestamp) -> Result<Vec<Worker>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.time(since);
            let rows = tx.fetch_all(LIST, args).await?;
            let found = rows.iter().map(row).collect::<Result<Vec<_>, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }
}

fn bind(worker: &Worker, args: &mut Args) {
    args.text(worker.principal.clone());
    args.text(worker.worker.clone());
    args.id(worker.node.unwrap_or_default());
    args.text(owner_text(worker.owner.as_ref()));
    let methods: Vec<&str> = worker.methods.iter().map(|method| &**method).collect();
    // JSON text has no U+0000 of its own: a method's is escaped.
    args.owned(serde_json::json!(methods).to_string());
    args.name(worker.connection.as_str());
    args.time(worker.since);
    args.time(worker.last_seen_at);
}

fn row(row: &Row) -> Result<Worker, Error> {
    let mut c = Columns::of(row);
    let (principal, worker, node) = (c.text()?, c.text()?, c.id()?);
    let owner = owner_of(c.text()?);
    let methods: Vec<String> = json(c.word()?)?;
    let connection = c.word()?;
    let unknown = || Error::Damaged(format!("`{connection}` is no connection"));
    Ok(Worker {
        worker,
        principal,
        owner,
        node: Some(node).filter(|node| !node.is_nil()),
        methods: methods.into_iter().map(Arc::from).collect(),
        connection: Connection::parse(connection).ok_or_else(unknown)?,
        since: c.time()?,
        last_seen_at: c.time()?,
    })
}

static SEE: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO workers (principal, worker, node, owner, methods, connection, since, last_seen_at)",
        8,
        "ON CONFLICT (principal, worker, node) DO UPDATE SET
            owner = excluded.owner,
            methods = excluded.methods,
            connection = excluded.connection,
            since = excluded.since,
            last_seen_at = excluded.last_seen_at",
    )
});
const ANNOUNCE: &str = "UPDATE state SET presence = presence + 1 WHERE one = 1";
static GONE: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "DELETE FROM workers WHERE (principal, worker, node) IN (",
        3,
        ")",
    )
});
const LEAVE: &str = "DELETE FROM workers WHERE node = $1";
/// By the index `workers_last_seen_at`.
const LIST: &str = "SELECT principal, worker, node, owner, methods, connection, since, last_seen_at
    FROM workers
    WHERE last_seen_at >= $1
    ORDER BY principal, worker, node";
/// By the index `workers_last_seen_at`.
pub(super) const SWEEP: &str = "DELETE FROM workers WHERE (principal, worker, node) IN
    (SELECT principal, worker, node FROM workers WHERE last_seen_at < $1 ORDER BY last_seen_at LIMIT $2)";
