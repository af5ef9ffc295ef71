//! The projector of tasks, and of everything that follows from them: flow summaries, runs,
//! attempts, totals, and which flows have work that is due.

mod archive;
mod attempts;
mod contradiction;
pub(crate) mod counts;
mod facets;
mod flows;
mod flush;
mod held;
mod in_sql;
mod labels;
mod load;
mod outputs;
mod owners;
pub(crate) mod rows;
mod stages;
mod standing;
mod upsert;
pub(crate) mod working_set;

pub(crate) use flows::{Run, read_counts, total};

use crate::{Error, Projector};
use in_sql::InSql;
use std::sync::Arc;
use taskledger_domain::Recorded;
use taskledger_domain::flow::Event;
use taskledger_sql::Tx;
use working_set::{CACHED_TASKS_MAX, WorkingSet};

/// Tasks kept in memory between large batches, those of several of them: 32 MB.
const CACHED_TASKS_IN_LARGE_BATCHES_MAX: usize = 65_536;

/// Folds events into the tables, batch by batch; keeps a bounded cache of the rows it wrote.
pub struct TaskProjector {
    set: WorkingSet,
    limits: load::Limits,
    cached_tasks_max: usize,
}

impl Default for TaskProjector {
    fn default() -> Self {
        Self {
            set: WorkingSet::default(),
            limits: load::Limits::default(),
            cached_tasks_max: CACHED_TASKS_MAX,
        }
    }
}

impl TaskProjector {
    /// A projector of large batches, which keeps more between them.
    #[must_use]
    pub fn in_large_batches() -> Self {
        Self {
            cached_tasks_max: CACHED_TASKS_IN_LARGE_BATCHES_MAX,
            ..Self::default()
        }
    }

    /// A projector that keeps nothing between batches and gives every run to its tasks in SQL:
    /// slower, with the same rows. For comparison in tests.
    #[must_use]
    pub fn without_memory() -> Self {
        Self {
            set: WorkingSet::default(),
            limits: load::Limits {
                whole_flow_tasks_max: 0,
                whole_flows_tasks_max: 0,
            },
            cached_tasks_max: 0,
        }
    }
}

impl Projector for TaskProjector {
    const NAME: &'static str = "tasks";
    const VERSION: i64 = 1;

    async fn apply(&mut self, tx: &mut Tx<'_>, events: &[Arc<Recorded>]) -> Result<(), Error> {
        let set = &mut self.set;
        set.batch += 1;
        load::load(set, tx, events, self.limits).await?;
        let mut gone = archive::Gone::default();
        for recorded in events {
            if gone.takes(recorded) {
                continue;
            }
            if matches!(*recorded.event, Event::TaskCreated(_)) && gone.leaves_rows(set) {
                flush::flush(set, tx).await?;
                gone.drop_rows(set, tx).await?;
            }
            let in_sql = set.fold(recorded).map_err(|found| Error::Poison {
                position: recorded.position,
                reason: found.to_string(),
            })?;
            if let Some(in_sql) = in_sql {
                flush::flush(set, tx).await?;
                match in_sql {
                    InSql::Cover(cover) => flush::cover(set, tx, &cover).await?,
                    InSql::Owner(change) => owners::change(set, tx, change).await?,
                }
            }
        }
        flush::flush(set, tx).await?;
        // Nothing follows the end of a flow, so the others can wait for the end of the batch.
        gone.drop_rows(set, tx).await?;
        set.trim(self.cached_tasks_max);
        Ok(())
    }

    fn forget(&mut self) {
        self.set = WorkingSet::default();
    }
}
