//! Schedules: when they are due, and their store beside the log.
//!
//! Owns the tables, on SQLite (`schedules.db` in the data folder) or PostgreSQL, under one code, and the times of cron
//! expressions and recurrence rules (`timing`, `cron` and `recurrence`, pure). A server that looks at a schedule holds
//! its lease; what it decides is recorded before it is done, and only under the newest lease. May not: start anything,
//! or decide who may do what. It cannot be made again from the log, so it is never thrown away.

mod changing;
mod connect;
mod corrections;
mod cron;
mod days;
mod definition;
mod key;
mod reading;
mod recurrence;
mod rows;
mod timing;
mod turns;

pub use changing::{Deleted, Refusal, SCHEDULES_MAX};
pub use connect::{SCHEDULES_FILE, STEPS};
pub use corrections::{AHEAD_MS, EDITION_NOTED_MS, Editions};
pub use definition::{
    CATCH_UP_SECONDS_DEFAULT, CATCH_UP_SECONDS_MAX, CATCH_UP_SECONDS_MIN, Definition,
    JITTER_SECONDS_MAX, MAX_RUNS_MAX, Overlap, Work,
};
pub use key::{flow_of, jitter_ms, key_by_hand, key_of_time};
pub use recurrence::COUNT_MAX;
pub use rows::{Counters, NewSchedule, Run, Schedule, State};
pub use timing::{Calendar, EVERY_SECONDS_MAX, EXPRESSION_CHARS_MAX, Invalid, Timing};
pub use turns::{LOOK_AGAIN_MS, OPEN_MAX, Outcome, RUNS_KEPT, Step, Turn};

use taskledger_beside::{Connections, store_error, store_shell, store_write};

store_error!("schedules");

/// The tables in one place. Lasts as long as the server; `close` lets go of the connections.
pub struct ScheduleStore {
    connections: Connections,
}

store_shell!(ScheduleStore, "schedules");
store_write!(ScheduleStore);

impl ScheduleStore {
    fn new(connections: Connections) -> Self {
        Self { connections }
    }
}
