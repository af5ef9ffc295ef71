//! Exact totals of lists, from sums that the projector keeps. See `tasks::counts`.

use super::select::{ListFilter, Select, keys_of_times};
use crate::Error;
use crate::tasks::counts::{ALL_TIMES, BUCKET_MICROS, EVERYBODY, Role, bucket_of};
use sqlx::AssertSqlSafe;
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Tx};

/// How many tasks match. Cost: a sum over at most 80 rows; with a name or a parent O(their tasks), with labels O(tasks
/// with the first of them), of those that wait for people and those whose ids begin alike O(those), with an owner and
/// another user O(the owner's tasks); with creation times O(buckets) and the tasks of the two buckets at the ends.
pub(super) async fn total(
    tx: &mut Tx<'_>,
    filter: &ListFilter,
    select: &Select,
) -> Result<u64, Error> {
    let counted = Counted::of(filter);
    let Some(counted) = counted
        .filter(|_| filter.name.is_none() && filter.parent_id.is_none() && !filter.suspended)
        .filter(|_| filter.labels.is_empty())
        .filter(|_| filter.ids.is_none())
    else {
        let n = select.count_all(tx).await?;
        return Ok(u64::try_from(n).unwrap_or(0));
    };
    let n = if let Some((from, to)) = select.times {
        let parts = Parts::of(from, to);
        let mut n = sum(tx, filter, &counted, parts.whole).await?;
        for edge in parts.edges.into_iter().flatten() {
            if let Some(keys) = keys_of_times(tx, edge.0, edge.1).await? {
                n += select.count(tx, keys, Some(edge)).await?;
            }
        }
        n
    } else {
        sum(tx, filter, &counted, OF_ALL_TIMES).await?
    };
    Ok(u64::try_from(n).unwrap_or(0))
}

/// The buckets of a sum over all times.
pub(super) const OF_ALL_TIMES: (i64, i64) = (ALL_TIMES, ALL_TIMES + 1);

/// The name and roles under which the tasks of a list are counted.
pub(super) struct Counted {
    name: Arc<str>,
    roles: &'static [Role],
}

impl Counted {
    /// `None`: no sums are kept for it.
    fn of(filter: &ListFilter) -> Option<Self> {
        let (name, roles): (_, &[Role]) = match (&filter.owner, &filter.user_id) {
            (None, None) => return Some(Self::everybody()),
            (None, Some(user)) => (user, &[Role::User, Role::Both]),
            (Some(owner), None) => return Some(Self::owned_by(owner)),
            (Some(owner), Some(user)) if owner == user => (owner, &[Role::Both]),
            (Some(_), Some(_)) => return None,
        };
        let name = Arc::clone(name);
        Some(Self { name, roles })
    }

    fn everybody() -> Self {
        Self {
            name: Arc::from(EVERYBODY),
            roles: &[Role::Everybody],
        }
    }

    /// All tasks of somebody's flows.
    pub(super) fn owned_by(owner: &Arc<str>) -> Self {
        Self {
            name: Arc::clone(owner),
            roles: &[Role::Both, Role::Owner],
        }
    }
}

/// A span of creation times as whole buckets and what is left at its ends.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    /// From the first to before the last.
    whole: (i64, i64),
    /// Microseconds, the end not included.
    edges: [Option<(i64, i64)>; 2],
}

impl Parts {
    fn of(from: i64, to: i64) -> Self {
        let first = bucket_of(Timestamp(from));
        let end = bucket_of(Timestamp(to));
        // Times before 1970 lie in bucket 0, so it is whole for all that begin there.
        let starts_whole = from <= 0 || from % BUCKET_MICROS == 0;
        let endless = to == i64::MAX;
        if first == end && !starts_whole && !endless {
            return Self {
                whole: (0, 0),
                edges: [Some((from, to)), None],
            };
        }
        let head = (!starts_whole).then(|| (from, (first + 1) * BUCKET_MICROS));
        let tail = end * BUCKET_MICROS;
        Self {
            whole: (
                if starts_whole { first } else { first + 1 },
                if endless { i64::MAX } else { end },
            ),
            edges: [head, (!endless && to > tail).then_some((tail, to))],
        }
    }
}

/// The tasks `counted` in buckets `from` to before `to`, status, priority and root as filtered.
pub(super) async fn sum(
    tx: &mut Tx<'_>,
    filter: &ListFilter,
    counted: &Counted,
    (from, to): (i64, i64),
) -> Result<i64, Error> {
    let mut args = tx.args();
    args.text(Arc::clone(&counted.name));
    args.int(from);
    args.int(to);
    let mut sql = SUM.to_owned();
    let roles = counted.roles.iter().map(|role| role.number().to_string());
    let roles: Vec<String> = roles.collect();
    sql.push_str(&format!(" AND role IN ({})", roles.join(", ")));
    if let Some(status) = filter.status {
        args.name(status.as_str());
        sql.push_str(&format!(" AND status = ${}", args.len()));
    }
    if let Some(priority) = filter.priority {
        args.int(i64::from(priority.get()));
        sql.push_str(&format!(" AND priority = ${}", args.len()));
    }
    if filter.root_only {
        sql.push_str(" AND is_root = 1");
    }
    let row = tx.fetch_one(AssertSqlSafe(sql), args).await?;
    Ok(Columns::of(&row).int()?)
}

/// By primary key.
const SUM: &str = "SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT)
    FROM task_counts
    WHERE user_key = $1 AND bucket >= $2 AND bucket < $3";

#[cfg(test)]
mod tests {
    use super::{BUCKET_MICROS as B, Parts};

    #[test]
    fn the_parts_of_a_span_make_the_span() {
        let parts = |whole, a, b| Parts {
            whole,
            edges: [a, b],
        };
        let cases = [
            ((B, 3 * B), parts((1, 3), None, None)),
            ((B + 1, 3 * B), parts((2, 3), Some((B + 1, 2 * B)), None)),
            (
                (B, 3 * B + 5),
                parts((1, 3), None, Some((3 * B, 3 * B + 5))),
            ),
            ((B + 1, B + 9), parts((0, 0), Some((B + 1, B + 9)), None)),
            ((B, B + 9), parts((1, 1), None, Some((B, B + 9)))),
            (
                (B - 1, B + 1),
                parts((1, 1), Some((B - 1, B)), Some((B, B + 1))),
            ),
            ((i64::MIN, B), parts((0, 1), None, None)),
            (
                (B + 1, i64::MAX),
                parts((2, i64::MAX), Some((B + 1, 2 * B)), None),
            ),
        ];
        for ((from, to), expected) in cases {
            assert_eq!(Parts::of(from, to), expected, "{from}..{to}");
        }
    }
}
