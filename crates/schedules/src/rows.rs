//! The rows of schedules and of their runs.

use crate::definition::Definition;
use crate::{Error, ScheduleStore};
use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Row, Tx};
use uuid::Uuid;

/// Counts of the times of a schedule, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Runs started at its times.
    pub started: u64,
    /// Runs started by hand.
    pub started_by_hand: u64,
    /// Times skipped because a run was in progress.
    pub skipped: u64,
    /// Times that no server looked at within `catch_up_seconds`.
    pub missed: u64,
    /// Runs that could not be started.
    pub failed: u64,
}

/// A schedule that is to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    /// Identifies the schedule in its runs and in the store.
    pub id: Uuid,
    /// The user that owns the schedule.
    pub owner: Owner,
    /// Unique for its owner.
    pub name: Arc<str>,
    /// The principal as which it starts runs.
    pub actor: Arc<str>,
    /// What it may do then.
    pub scopes: Arc<str>,
    /// What it does.
    pub definition: Definition,
    /// Why it is paused from the beginning; `None`: it is not.
    pub paused: Option<Option<Arc<str>>>,
    /// When it is made.
    pub at: Timestamp,
    /// Times up to here are none of its.
    pub cursor: Timestamp,
    /// Its first time.
    pub next_at: Option<Timestamp>,
    /// When it is to be looked at.
    pub due_at: Option<Timestamp>,
    /// The version that its workflow has now; `None`: it starts tasks.
    pub work_version: Option<u32>,
}

/// A schedule that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Identifies the schedule in its runs and in the store.
    pub id: Uuid,
    /// The user that owns the schedule.
    pub owner: Owner,
    /// Unique for its owner.
    pub name: Arc<str>,
    /// The principal as which it starts runs.
    pub actor: Arc<str>,
    /// What it may do then.
    pub scopes: Arc<str>,
    /// From 1, one more with each change.
    pub version: u32,
    /// What it does.
    pub definition: Definition,
    /// Whether its times pass without a run.
    pub is_paused: bool,
    /// Why it is paused, or any other remark for people.
    pub note: Option<Arc<str>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// All its times up to here are dealt with.
    pub cursor: Timestamp,
    /// Its next time.
    pub next_at: Option<Timestamp>,
    /// When a server has to look at it.
    pub due_at: Option<Timestamp>,
    /// The number of its newest lease.
    pub lease: i64,
    /// What happened to its times.
    pub counters: Counters,
    /// Why a run could not be started, the last time.
    pub last_error: Option<Arc<str>>,
    /// The version that its workflow had when it was changed last; `None`: it starts tasks.
    pub work_version: Option<u32>,
    /// Since when no look came to its end; `None`: the last one did.
    pub waits_since: Option<Timestamp>,
}

/// The outcome of one time, or of one start by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for the end of the run before it.
    Waiting,
    /// It is being started.
    Starting,
    /// A run was started.
    Started,
    /// It was skipped, because a run was going on.
    Skipped,
    /// It could not be started.
    Failed,
}

impl State {
    /// As it is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Started => "started",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    fn of(word: &str) -> Result<Self, Error> {
        let all = [
            Self::Waiting,
            Self::Starting,
            Self::Started,
            Self::Skipped,
            Self::Failed,
        ];
        let found = all.into_iter().find(|state| state.as_str() == word);
        found.ok_or_else(|| Error::Damaged(format!("`{word}` is no state of a run")))
    }
}

/// One time of a schedule, or one start by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What makes it one: its time, or the key of its caller.
    pub key: Arc<str>,
    /// Its time.
    pub scheduled_at: Timestamp,
    /// What became of it.
    pub state: State,
    /// The root of its flow, also of one that was not started.
    pub flow: Uuid,
    /// Its run, if one was started.
    pub run: Option<Uuid>,
    /// How that ended; `None`: it has not, as far as is known.
    pub stage: Option<Arc<str>>,
    /// Why it was not started.
    pub error: Option<Arc<str>>,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// Whether the runs before it are cancelled before it starts.
    pub cancels: bool,
}

impl Run {
    /// Whether it was started by hand.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        self.key.starts_with("now:")
    }
}

impl ScheduleStore {
    pub(crate) async fn found(
        tx: &mut Tx<'_>,
        owner: &Owner,
        name: &Arc<str>,
    ) -> Result<Option<Schedule>, Error> {
        let mut args = tx.args();
        args.text(owner.tenant.clone());
        args.text(owner.column());
        args.text(name.clone());
        let row = tx.fetch_optional(BY_NAME, args).await?;
        row.as_ref().map(schedule).transpose()
    }
}

pub(crate) fn schedule(row: &Row) -> Result<Schedule, Error> {
    let mut c = Columns::of(row);
    Ok(Schedule {
        id: c.id()?,
        owner: Owner {
            tenant: c.text()?,
            user: Some(c.text()?).filter(|user| !user.is_empty()),
        },
        name: c.text()?,
        actor: c.text()?,
        scopes: c.text()?,
        version: c.number()?,
        definition: read(&c.text()?)?,
        is_paused: c.int()? != 0,
        note: c.opt_text()?,
        created_at: c.time()?,
        updated_at: c.time()?,
        cursor: c.time()?,
        next_at: c.opt_time()?,
        due_at: c.opt_time()?,
        lease: c.int()?,
        counters: Counters {
            started: c.number()?,
            started_by_hand: c.number()?,
            skipped: c.number()?,
            missed: c.number()?,
            failed: c.number()?,
        },
        last_error: c.opt_text()?,
        work_version: c
            .opt_int()?
            .map(u32::try_from)
            .transpose()
            .map_err(|_| Error::Damaged("a version out of range".to_owned()))?,
        waits_since: c.opt_time()?,
    })
}

fn read(text: &str) -> Result<Definition, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::Damaged(format!("a definition cannot be read: {error}")))
}

pub(crate) fn written(definition: &Definition) -> Arc<str> {
    let text = serde_json::to_string(definition);
    Arc::from(text.expect("a definition can always be written as JSON"))
}

pub(crate) fn run(row: &Row) -> Result<Run, Error> {
    let mut c = Columns::of(row);
    Ok(Run {
        key: c.text()?,
        scheduled_at: c.time()?,
        state: State::of(c.word()?)?,
        flow: c.id()?,
        run: c.opt_id()?,
        stage: c.opt_text()?,
        error: c.opt_text()?,
        decided_at: c.time()?,
        cancels: c.int()? != 0,
    })
}

/// The columns of a schedule, in the order in which they are read.
macro_rules! columns {
    () => {
        "id, tenant, owner, name, actor, scopes, version, definition, paused, note, created_at, updated_at, cursor, next_at, due_at, lease, started, started_by_hand, skipped, missed, failed, last_error, work_version, waits_since"
    };
}
pub(crate) use columns;

/// The columns of a run.
macro_rules! run_columns {
    () => {
        "key, scheduled_at, state, flow, run, stage, error, decided_at, cancels"
    };
}
pub(crate) use run_columns;

const BY_NAME: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM schedules WHERE tenant = $1 AND owner = $2 AND name = $3"
);
