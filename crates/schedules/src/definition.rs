//! The definition of a schedule, as it is stored: JSON, whose members are never renamed.

use crate::timing::{Calendar, Invalid, Timing};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_zones::Zones;

/// Seconds within which a missed time is made up unless the schedule says otherwise.
pub const CATCH_UP_SECONDS_DEFAULT: u64 = 60;
/// Seconds of `catch_up_seconds` at least: fewer would count times as missed that are late because a server is busy.
pub const CATCH_UP_SECONDS_MIN: u64 = 10;
/// Seconds of `catch_up_seconds` at most: a leap year.
pub const CATCH_UP_SECONDS_MAX: u64 = 366 * 24 * 3600;
/// Seconds by which a start may be put off (`jitter_seconds`): a day.
pub const JITTER_SECONDS_MAX: u64 = 24 * 3600;
/// Runs that `max_runs` may ask for.
pub const MAX_RUNS_MAX: u64 = 1_000_000_000;

/// The behaviour at a time at which a run of the schedule is still going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The time is skipped.
    #[default]
    Skip,
    /// It waits for the end of that run, if none waits yet; else it is skipped.
    Queue,
    /// Another run is started.
    Allow,
    /// The running one is cancelled, then another one is started.
    CancelPrevious,
}

impl Overlap {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Allow => "allow",
            Self::CancelPrevious => "cancel_previous",
        }
    }
}

/// The work that a schedule starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// A workflow document that is kept.
    Workflow {
        /// The name under which the document is kept.
        name: Arc<str>,
        /// Its version; absent: the newest at the time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
        /// What its run is started with.
        #[serde(default)]
        inputs: Map<String, Value>,
    },
    /// Tasks, as `tasks.execute` takes them.
    Tasks {
        /// The array.
        tasks: Value,
    },
}

/// The definition of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The times at which runs start.
    pub timing: Timing,
    /// The workflow or tasks that a run consists of.
    pub work: Work,
    /// No time before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// No time after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    /// No more times once so many runs were started at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
    /// What happens while a run goes on.
    #[serde(default)]
    pub overlap: Overlap,
    /// A missed time is made up for within this many seconds.
    pub catch_up_seconds: u64,
    /// Each start is delayed by up to this many seconds.
    #[serde(default)]
    pub jitter_seconds: u64,
}

impl Definition {
    /// Its times. `created_at`: what they count from where it says nothing else.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn calendar(&self, created_at: Timestamp, zones: &Zones) -> Result<Calendar, Invalid> {
        Calendar::of(&self.timing, self.start_at.unwrap_or(created_at), zones)
    }

    /// After which moment the times after `after` come: none is before `start_at`.
    fn begins_after(&self, after: Timestamp) -> Timestamp {
        let start = self
            .start_at
            .map(|start| Timestamp(start.0.saturating_sub(1)));
        start.map_or(after, |start| start.max(after))
    }

    /// The first of its times after `after` of which `started` have had their run.
    #[must_use]
    pub fn next(&self, calendar: &Calendar, after: Timestamp, started: u64) -> Option<Timestamp> {
        if self.max_runs.is_some_and(|max| started >= max) {
            return None;
        }
        let next = calendar.next_after(self.begins_after(after))?;
        self.end_at.is_none_or(|end| next <= end).then_some(next)
    }

    /// Its first times after `after` for which `counts` holds, at most `max` of them: how many, and the last. Cost:
    /// O(that many), in one pass.
    pub fn passed(
        &self,
        calendar: &Calendar,
        after: Timestamp,
        max: u64,
        mut counts: impl FnMut(Timestamp) -> bool,
    ) -> (u64, Option<Timestamp>) {
        let (mut count, mut last) = (0, None);
        let times = calendar.after(self.begins_after(after));
        for at in times.take_while(|at| self.end_at.is_none_or(|end| *at <= end)) {
            if count >= max || !counts(at) {
                break;
            }
            count += 1;
            last = Some(at);
        }
        (count, last)
    }
}
