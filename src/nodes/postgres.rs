//! Leases in PostgreSQL, beside the log. The rules are in `migrations/postgres/nodes`.

use super::leases::{Error, Held, Leases, Sight, Standing};
use super::{BEAT_WAIT, LEASES, TTL};
use crate::application::ownership::Node;
use crate::store::postgres::{self as store, Migrated, OpenError, Options, Steps};
use async_trait::async_trait;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, Executor, Row};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use taskledger_sql::is_at_rest;
use tokio::time::timeout;
use uuid::Uuid;

/// Connections of their own: leases are renewed even when all others are busy. One for the beat, and
/// one while that of a beat which got no answer is being given up ([`ALIVE_WAIT`]).
const CONNECTIONS: u32 = 2;
/// How long a connection that comes back may take to show that it lives. The pool itself would wait
/// for that without a limit, with the place taken.
const ALIVE_WAIT: Duration = Duration::from_secs(1);
/// How long the server may take to close connections: nothing depends on it.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// The longest time from a server's registration to its first beat: longer than the door takes to open.
const START_WAIT: Duration = Duration::from_secs(10);

/// The connections are known by this name in the database.
const APPLICATION_NAME: &str = "taskledger nodes";
/// The tables.
pub const STEPS: Steps = Steps {
    purpose: "nodes",
    steps: &[(
        "0001_nodes",
        include_str!("../../migrations/postgres/nodes/0001_nodes.sql"),
    )],
};

/// One call, one transaction: a node that stops in the middle of it holds no lock.
const BEAT: &str = "SELECT node_id, node_url, its_leases, its_tokens
    FROM taskledger.beat($1, $2, $3, $4, $5)";
const LEAVE: &str = "SELECT taskledger.leave($1)";
const LIVING: &str = "SELECT count(*) FROM taskledger.nodes WHERE expires_at > clock_timestamp()";
const SECRET: &str = "SELECT secret FROM taskledger.cluster";

/// One server at a time says whether it asks for credentials. The number is that of this purpose, no other lock has it.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7310579628475202)";
/// What was said by servers that have neither begun to take part in time nor live.
const FORGET: &str = "DELETE FROM taskledger.node_authentication a
    WHERE a.said_at < clock_timestamp() - $1 * INTERVAL '1 millisecond'
      AND NOT EXISTS (SELECT FROM taskledger.nodes n WHERE n.id = a.id AND n.expires_at > clock_timestamp())";
/// What the others have said.
const SAID: &str = "SELECT a.is_on, n.url
    FROM taskledger.node_authentication a
    LEFT JOIN taskledger.nodes n ON n.id = a.id
    WHERE a.id <> $1
    ORDER BY n.url NULLS LAST, a.id";
const ADD: &str = "INSERT INTO taskledger.node_authentication (id, is_on, said_at)
    VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET is_on = excluded.is_on, said_at = excluded.said_at";
/// Whether what a server has said counts still.
const STANDS: &str = "SELECT EXISTS (SELECT FROM taskledger.node_authentication WHERE id = $1)";
const TAKE_BACK: &str = "DELETE FROM taskledger.node_authentication WHERE id = $1";

/// Leases as rows of one database, which all nodes share. Cheap to clone its pool.
#[derive(Debug)]
pub struct PostgresLeases {
    pool: PgPool,
    /// What the server has said with [`PostgresLeases::agree`].
    said: OnceLock<bool>,
}

/// The properties that a server registers before it takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Whether it asks callers for credentials.
    pub is_on: bool,
    /// Where it is; absent while it starts.
    pub url: Option<String>,
}

/// Takes the steps of the tables that are missing, one process at a time. The log's tables are there
/// already.
///
/// # Errors
/// [`OpenError`]: nothing was changed.
pub async fn migrate(options: &Options) -> Result<Migrated, OpenError> {
    store::take(options, STEPS).await
}

impl PostgresLeases {
    /// Connects, and makes the tables if need be, one process at a time. The log's tables are there
    /// already.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(options: &Options) -> Result<Self, OpenError> {
        migrate(options).await?;
        let connect = options.connect.clone().application_name(APPLICATION_NAME);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(BEAT_WAIT)
            .after_connect(|db, _| Box::pin(set_up(db)))
            .after_release(|db, _| Box::pin(is_at_rest(db, ALIVE_WAIT)))
            .connect_lazy_with(connect);
        Ok(Self {
            pool,
            said: OnceLock::new(),
        })
    }

    /// What nodes prove to each other that they use the same database.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn secret(&self) -> Result<Vec<u8>, Error> {
        let row = sqlx::query(SECRET).fetch_one(&self.pool).await;
        row.and_then(|row| row.try_get(0)).map_err(unavailable)
    }

    /// Servers that live, as the database says it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn living(&self) -> Result<i64, Error> {
        let row = sqlx::query(LIVING).fetch_one(&self.pool).await;
        row.and_then(|row| row.try_get(0)).map_err(unavailable)
    }

    /// Says for a server whether it asks callers for credentials, as `decide` finds by what the others have said that
    /// live or are starting. One server at a time, so that two which start together know of each other. Nothing is said
    /// if `decide` refuses.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; within, what `decide` refuses with.
    pub async fn agree<E: Send>(
        &self,
        node: Uuid,
        decide: impl FnOnce(&[Said]) -> Result<bool, E> + Send,
    ) -> Result<Result<bool, E>, Error> {
        let me = node.as_bytes().to_vec();
        let mut tx = self.pool.begin().await.map_err(unavailable)?;
        sqlx::query(LOCK)
            .execute(&mut *tx)
            .await
            .map_err(unavailable)?;
        let start_ms = i64::try_from(START_WAIT.as_millis()).expect("the time is short");
        let forget = sqlx::query(FORGET).bind(start_ms);
        forget.execute(&mut *tx).await.map_err(unavailable)?;
        let rows = sqlx::query(SAID).bind(&me).fetch_all(&mut *tx).await;
        let said = |row: &PgRow| {
            Ok(Said {
                is_on: row.try_get(0)?,
                url: row.try_get(1)?,
            })
        };
        let others: Result<Vec<_>, sqlx::Error> =
            rows.map_err(unavailable)?.iter().map(said).collect();
        let decided = decide(&others.map_err(unavailable)?);
        if let Ok(is_on) = decided {
            let add = sqlx::query(ADD).bind(&me).bind(is_on);
            add.execute(&mut *tx).await.map_err(unavailable)?;
        }
        tx.commit().await.map_err(unavailable)?;
        if let Ok(is_on) = decided {
            let _ = self.said.set(is_on);
        }
        Ok(decided)
    }

    /// Says again what the server has said, if others have taken it for gone and may do otherwise. Asked once the
    /// server is one of the nodes again: from then on nobody forgets what it says.
    ///
    /// # Errors
    /// [`Error`].
    async fn stand_by(&self, node: Uuid, is_on: bool) -> Result<(), Error> {
        let me = node.as_bytes().to_vec();
        let stands = sqlx::query(STANDS).bind(me).fetch_one(&self.pool).await;
        let stands: bool = stands.and_then(|row| row.try_get(0)).map_err(unavailable)?;
        if stands {
            return Ok(());
        }
        let same = |others: &[Said]| match others.iter().find(|other| other.is_on != is_on) {
            None => Ok(is_on),
            Some(other) => Err(other.url.clone()),
        };
        match self.agree(node, same).await? {
            Ok(_) => Ok(()),
            Err(other) => Err(Error::Differs { is_on, other }),
        }
    }

    /// Takes back what was said for a server, which stops.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: it is forgotten later.
    pub async fn take_back(&self, node: Uuid) -> Result<(), Error> {
        let take_back = sqlx::query(TAKE_BACK).bind(node.as_bytes().to_vec());
        take_back.execute(&self.pool).await.map_err(unavailable)?;
        Ok(())
    }

    /// Closes its connections.
    pub async fn close(&self) {
        if timeout(CLOSE_WAIT, self.pool.close()).await.is_err() {
            tracing::warn!("the connections of the leases were not closed in time");
        }
    }
}

/// By statements and not by startup parameters, as for the log. A statement does not outlive the beat
/// that waits for it.
async fn set_up(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    let wait_ms = BEAT_WAIT.as_millis();
    db.execute(AssertSqlSafe(format!(
        "SET statement_timeout = {wait_ms}; SET lock_timeout = {wait_ms}; \
         SET default_transaction_isolation = 'read committed'"
    )))
    .await?;
    Ok(())
}

#[async_trait]
impl Leases for PostgresLeases {
    async fn beat(&self, node: &Node, held: &[Held]) -> Result<Sight, Error> {
        let ttl_ms = i64::try_from(TTL.as_millis()).expect("the time is short");
        let leases: Vec<i32> = held.iter().map(|h| i32::from(h.lease)).collect();
        let tokens: Vec<i64> = held.iter().map(|h| h.token.cast_signed()).collect();
        let rows = sqlx::query(BEAT)
            .bind(node.id.as_bytes().to_vec())
            .bind(&*node.url)
            .bind(ttl_ms)
            .bind(leases)
            .bind(tokens)
            .fetch_all(&self.pool)
            .await
            .map_err(unavailable)?;
        if let Some(is_on) = self.said.get() {
            self.stand_by(node.id, *is_on).await?;
        }
        let nodes: Result<_, Error> = rows.iter().map(standing).collect();
        Ok(Sight { nodes: nodes? })
    }

    async fn leave(&self, node: &Node) -> Result<(), Error> {
        let leave = sqlx::query(LEAVE).bind(node.id.as_bytes().to_vec());
        leave.execute(&self.pool).await.map_err(unavailable)?;
        Ok(())
    }
}

fn standing(row: &PgRow) -> Result<Standing, Error> {
    let id: Vec<u8> = row.try_get(0).map_err(unavailable)?;
    let url: String = row.try_get(1).map_err(unavailable)?;
    let leases: Vec<i32> = row.try_get(2).map_err(unavailable)?;
    let tokens: Vec<i64> = row.try_get(3).map_err(unavailable)?;
    let odd = || Error::Unavailable("a row of `taskledger.leases` cannot be believed".to_owned());
    let held = |(lease, token): (i32, i64)| {
        let lease = u16::try_from(lease)
            .ok()
            .filter(|l| usize::from(*l) < LEASES);
        Some(Held {
            lease: lease?,
            token: u64::try_from(token).ok()?,
        })
    };
    let holds: Option<Vec<Held>> = leases.into_iter().zip(tokens).map(held).collect();
    Ok(Standing {
        node: Arc::new(Node {
            id: Uuid::from_slice(&id).map_err(|_| odd())?,
            url: Arc::from(url),
        }),
        holds: holds.ok_or_else(odd)?,
    })
}

fn unavailable(error: sqlx::Error) -> Error {
    Error::Unavailable(error.to_string())
}
