//! Totals that lists show without counting rows.
//!
//! Owns: which totals exist ([`bucket_of`], [`EVERYBODY`], [`ALL_TIMES`]) and their pending
//! changes. A task counts under its user, under its owner and under everybody, in its ten minutes of
//! creation and over all times, so that every combination of status, user, priority and root is a sum
//! over at most 80 rows, and a span of creation times adds whole buckets and counts rows only at its
//! ends. The same for an owner. Where user and owner are the same, which is usual, a task counts once
//! for both ([`Role`]).

use crate::Error;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};
use taskledger_domain::task::{Priority, Status};
use taskledger_domain::{Position, Timestamp};
use taskledger_sql::{Args, Engine, MultiRow, Tx};

/// Microseconds of creation time in one bucket: ten minutes. A year has 52,560 of them, and the
/// rows counted singly at the ends of a span are those of twenty minutes.
pub(crate) const BUCKET_MICROS: i64 = 600 * 1_000_000;
/// The bucket of all times.
pub(crate) const ALL_TIMES: i64 = -1;
/// The user key of everybody.
pub(crate) const EVERYBODY: &str = "";

/// What somebody is to the tasks that count under this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Their user, and not their owner.
    User,
    /// Their user and their owner.
    Both,
    /// Their owner, and not their user.
    Owner,
    /// Everybody, under [`EVERYBODY`]: a role of its own, so that no name gets these totals.
    Everybody,
}

impl Role {
    const ALL: [Self; 4] = [Self::User, Self::Both, Self::Owner, Self::Everybody];

    /// As `task_counts.role` holds it; also the place in [`ByRole`].
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::User => 0,
            Self::Both => 1,
            Self::Owner => 2,
            Self::Everybody => 3,
        }
    }
}

/// The bucket of a creation time, from 0.
pub(crate) fn bucket_of(time: Timestamp) -> i64 {
    time.0.max(0) / BUCKET_MICROS
}

/// What of a task its totals depend on, its user and its owner apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) status: Status,
    pub(super) priority: Priority,
    pub(super) root: bool,
}

/// The users of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) user: Option<&'a Arc<str>>,
    pub(super) owner: Option<&'a Arc<str>>,
}

/// (status, priority, root) in the order of the protocol: 5 x 4 x 2.
const CELLS: usize = 40;

impl Cell {
    fn index(self) -> usize {
        let status = match self.status {
            Status::Pending => 0,
            Status::InProgress => 1,
            Status::Completed => 2,
            Status::Failed => 3,
            Status::Cancelled => 4,
        };
        (status * 4 + usize::from(self.priority.get())) * 2 + usize::from(self.root)
    }
}

/// Changes by bucket, for each role that one name has.
type ByRole = [BTreeMap<i64, [i64; CELLS]>; Role::ALL.len()];

/// Changes of totals that are not written yet.
#[derive(Default)]
pub(super) struct Deltas {
    cells: HashMap<Arc<str>, ByRole>,
    created: BTreeMap<i64, (Position, Position)>,
}

impl Deltas {
    /// `by` more (or fewer) tasks of `of`, created at `created_at`, in `cell`.
    pub(super) fn add(&mut self, of: Names<'_>, created_at: Timestamp, cell: Cell, by: i64) {
        let bucket = bucket_of(created_at);
        let everybody = Some((LazyLock::force(&EVERYBODY_KEY), Role::Everybody));
        let (first, second) = match (of.user, of.owner) {
            (Some(user), Some(owner)) if user == owner => (Some((user, Role::Both)), None),
            (user, owner) => (
                user.map(|name| (name, Role::User)),
                owner.map(|name| (name, Role::Owner)),
            ),
        };
        for (key, role) in [everybody, first, second].into_iter().flatten() {
            let roles = match self.cells.get_mut(key) {
                Some(roles) => roles,
                None => self.cells.entry(Arc::clone(key)).or_default(),
            };
            let buckets = &mut roles[usize::from(role.number())];
            for bucket in [ALL_TIMES, bucket] {
                buckets.entry(bucket).or_insert([0; CELLS])[cell.index()] += by;
            }
        }
    }

    /// A task was created at `time`, at `position` of the log.
    pub(super) fn created(&mut self, time: Timestamp, position: Position) {
        let span = self
            .created
            .entry(bucket_of(time))
            .or_insert((position, position));
        *span = (span.0.min(position), span.1.max(position));
    }

    /// Writes all changes and forgets them. Cost: O(changed totals).
    pub(super) async fn flush(&mut self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let mut rows = Vec::new();
        for (name, roles) in self.cells.drain() {
            for (role, buckets) in Role::ALL.into_iter().zip(roles) {
                for (bucket, cells) in buckets {
                    for (cell, by) in all_cells().zip(cells) {
                        if by != 0 {
                            let name = Arc::clone(&name);
                            let key = (name, role, bucket, cell);
                            rows.push((key, by));
                        }
                    }
                }
            }
        }
        UPSERT
            .execute(tx, &rows, |(key, by), args| {
                bind_key(args, key);
                args.int(*by);
            })
            .await?;
        let fell: Vec<_> = rows.iter().filter(|(_, by)| *by < 0).collect();
        match tx.engine() {
            Engine::Sqlite if fell.is_empty() => {}
            Engine::Sqlite => _ = tx.execute(DELETE_ZERO, tx.args()).await?,
            Engine::Postgres => {
                DELETE_FALLEN
                    .execute(tx, &fell, |(key, _), args| bind_key(args, key))
                    .await?;
            }
        }
        let spans: Vec<_> = std::mem::take(&mut self.created).into_iter().collect();
        CREATED
            .execute(tx, &spans, |(bucket, (first, last)), args| {
                args.int(*bucket);
                args.position(*first);
                args.position(*last);
            })
            .await?;
        Ok(())
    }
}

/// Gives the primary key.
fn bind_key(args: &mut Args, (name, role, bucket, cell): &(Arc<str>, Role, i64, Cell)) {
    args.text(Arc::clone(name));
    args.int(i64::from(role.number()));
    args.int(*bucket);
    args.name(cell.status.as_str());
    args.int(i64::from(cell.priority.get()));
    args.int(i64::from(cell.root));
}

fn all_cells() -> impl Iterator<Item = Cell> {
    Status::ALL.into_iter().flat_map(|status| {
        Priority::ALL.into_iter().flat_map(move |priority| {
            [false, true].map(|root| Cell {
                status,
                priority,
                root,
            })
        })
    })
}

static EVERYBODY_KEY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(EVERYBODY));

static UPSERT: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO task_counts (user_key, role, bucket, status, priority, is_root, n)",
        7,
        "ON CONFLICT (user_key, role, bucket, status, priority, is_root)
            DO UPDATE SET n = task_counts.n + excluded.n",
    )
});

/// Relies on the index task_counts_zero, which PostgreSQL does not have: there an index on what
/// changes all the time would keep updates from staying within their page.
const DELETE_ZERO: &str = "DELETE FROM task_counts
    WHERE n = 0";
/// By primary key.
pub(super) static DELETE_FALLEN: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "DELETE FROM task_counts c USING (",
        6,
        ") AS v WHERE c.user_key = v.column1 AND c.role = v.column2 AND c.bucket = v.column3
            AND c.status = v.column4 AND c.priority = v.column5 AND c.is_root = v.column6
            AND c.n = 0",
    )
});

static CREATED: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::with_tails(
        "INSERT INTO created_buckets (bucket, first_position, last_position)",
        3,
        "ON CONFLICT (bucket) DO UPDATE SET
            first_position = MIN(first_position, excluded.first_position),
            last_position = MAX(last_position, excluded.last_position)",
        "ON CONFLICT (bucket) DO UPDATE SET
            first_position = LEAST(created_buckets.first_position, excluded.first_position),
            last_position = GREATEST(created_buckets.last_position, excluded.last_position)",
    )
});

#[cfg(test)]
mod tests {
    use super::{CELLS, Role, all_cells};

    #[test]
    fn every_role_has_its_own_place() {
        let places: Vec<_> = Role::ALL.map(Role::number).into();
        assert_eq!(places, [0, 1, 2, 3]);
    }

    #[test]
    fn every_cell_has_its_own_place() {
        let places: Vec<_> = all_cells().map(super::Cell::index).collect();
        assert_eq!(places, (0..CELLS).collect::<Vec<_>>());
    }
}
