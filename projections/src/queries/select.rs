//! Turns the filters of a list into a condition in SQL.
//!
//! Every filter has an index that ends in the order of creation.

use super::cursor::{Cursor, Order};
use super::parts::Part;
use super::rows;
use crate::Error;
use crate::tasks::counts::bucket_of;
use sqlx::AssertSqlSafe;
use std::sync::Arc;
use taskledger_domain::task::{Priority, Selector, Status};
use taskledger_domain::{TaskId, Timestamp};
use taskledger_sql::{Args, Columns, Engine, Tx, int};

/// A filter for tasks; every member narrows the list.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// In this status.
    pub status: Option<Status>,
    /// Of this owner: its flows are all that the list knows, as if there were no others.
    pub owner: Option<Arc<str>>,
    /// Only tasks of this user.
    pub user_id: Option<Arc<str>>,
    /// Without a parent.
    pub root_only: bool,
    /// Waiting for a person.
    pub suspended: bool,
    /// Children of this task; none when it does not exist.
    pub parent_id: Option<TaskId>,
    /// With exactly this name.
    pub name: Option<Arc<str>>,
    /// Only tasks of this priority.
    pub priority: Option<Priority>,
    /// Created at this time or later.
    pub created_after: Option<Timestamp>,
    /// Created before this time.
    pub created_before: Option<Timestamp>,
    /// With an id from the first to the last of these, both included: those that begin alike.
    pub ids: Option<(TaskId, TaskId)>,
    /// With these labels.
    pub labels: Selector,
}

/// The beginning of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// After so many tasks of the list. Cost: O(offset).
    Offset(u64),
    /// After the page that gave this cursor. Cost: O(1).
    After(Cursor),
}

/// A parameter of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Int(i64),
    Text(Arc<str>),
}

/// The columns that a page is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Position,
    Negated,
}

/// A filter as SQL. Holds only texts of this file and parameters.
pub(super) struct Select {
    engine: Engine,
    /// Left sides of equations, with their values.
    equal: Vec<(&'static str, Value)>,
    /// The owner is among them.
    owned: bool,
    root_only: bool,
    suspended: bool,
    /// Ids wanted, both ends included.
    ids: Option<(TaskId, TaskId)>,
    /// Terms of labels wanted; see `tasks::labels`.
    labels: Vec<Arc<str>>,
    /// The tasks are found by the first of these.
    by_label: bool,
    /// Creation times wanted, in microseconds, the end not included.
    pub(super) times: Option<(i64, i64)>,
    /// Keys wanted, both ends not included: never narrower than `times`.
    keys: (i64, i64),
}

impl Select {
    /// `None` when nothing can match.
    pub(super) async fn new(tx: &mut Tx<'_>, f: &ListFilter) -> Result<Option<Self>, Error> {
        // The user of a root is its owner.
        let is_of_others = f.owner.is_some() && f.user_id.is_some() && f.owner != f.user_id;
        if f.root_only && is_of_others {
            return Ok(None);
        }
        let mut equal = Vec::new();
        let parent = match (f.parent_id, &f.owner) {
            (Some(parent), Some(owner)) => Some(rows::number_of(tx, parent, owner).await?),
            (Some(parent), None) => Some(rows::number(tx, parent).await?),
            (None, _) => None,
        };
        match parent {
            Some(Some(no)) => equal.push(("parent_no", Value::Int(no))),
            Some(None) => return Ok(None),
            None => equal.extend(f.owner.clone().map(|o| ("owner", Value::Text(o)))),
        }
        let owned = equal.iter().any(|(column, _)| *column == "owner");
        equal.extend(f.user_id.clone().map(|u| ("user_id", Value::Text(u))));
        equal.extend(f.status.map(|s| ("status", Value::Text(s.as_str().into()))));
        equal.extend(f.name.clone().map(|n| ("name", Value::Text(n))));
        equal.extend(f.priority.map(|p| ("priority", Value::Int(p.get().into()))));
        let mut select = Self {
            engine: tx.engine(),
            equal,
            owned,
            root_only: f.root_only,
            suspended: f.suspended,
            ids: f.ids,
            labels: f.labels.terms().into_iter().map(Arc::from).collect(),
            // What has an index of few tasks goes by that.
            by_label: !f.labels.is_empty()
                && f.parent_id.is_none()
                && f.ids.is_none()
                && !f.suspended,
            times: None,
            keys: (0, i64::MAX),
        };
        if f.created_after.is_some() || f.created_before.is_some() {
            let from = f.created_after.map_or(i64::MIN, |t| t.0);
            let to = f.created_before.map_or(i64::MAX, |t| t.0);
            let keys = keys_of_times(tx, from, to).await?;
            let Some(keys) = keys.filter(|_| from < to) else {
                return Ok(None);
            };
            select.times = Some((from, to));
            select.keys = keys;
        }
        Ok(Some(select))
    }

    /// PostgreSQL chooses by cost, and would walk over the whole table in order of creation where it
    /// believes that matching tasks are many. The order of the negated key is one that the primary
    /// key does not have and every index of a filter has.
    fn key(&self) -> Key {
        match self.engine {
            Engine::Postgres
                if self.root_only
                    || self.suspended
                    || self.ids.is_some()
                    || self.by_label
                    || !self.equal.is_empty() =>
            {
                Key::Negated
            }
            Engine::Postgres | Engine::Sqlite => Key::Position,
        }
    }

    /// The keys of a page.
    pub(super) fn page(
        &self,
        order: Order,
        rows: usize,
        start: Start,
    ) -> Result<(String, Args), Error> {
        let (mut keys, mut offset) = (self.keys, 0);
        match start {
            Start::Offset(n) => offset = n,
            Start::After(cursor) if cursor.order != order => return Err(Error::BadCursor),
            Start::After(cursor) => match order {
                Order::Ascending => keys.0 = keys.0.max(int(cursor.position)),
                Order::Descending => keys.1 = keys.1.min(int(cursor.position)),
            },
        }
        let (selects, mut args) = self.selects("created_position", keys, self.times);
        let by = match (self.key(), order) {
            (Key::Position, Order::Ascending) => ("", "ASC"),
            (Key::Position, Order::Descending) => ("", "DESC"),
            (Key::Negated, Order::Ascending) => ("-", "DESC"),
            (Key::Negated, Order::Descending) => ("-", "ASC"),
        };
        let by = format!("{}{} {}", by.0, self.number(), by.1);
        args.int(i64::try_from(rows).unwrap_or(i64::MAX));
        args.int(int(offset));
        let n = args.len();
        // SQLite merges both where there are two.
        let sql = format!(
            "{}
            ORDER BY {by}
            LIMIT ${} OFFSET ${n}",
            selects.join(" UNION ALL "),
            n - 1
        );
        Ok((sql, args))
    }

    /// Counts the matching tasks among `keys`, of these creation `times`, row by row.
    pub(super) async fn count(
        &self,
        tx: &mut Tx<'_>,
        keys: (i64, i64),
        times: Option<(i64, i64)>,
    ) -> Result<i64, Error> {
        let (counts, args) = self.selects("COUNT(*)", keys, times);
        let sql = match &counts[..] {
            [all] => all.clone(),
            parts => format!("SELECT ({})", parts.join(") + (")),
        };
        let row = tx.fetch_one(AssertSqlSafe(sql), args).await?;
        Ok(Columns::of(&row).int()?)
    }

    /// As [`Self::count`], over everything that the filter allows.
    pub(super) async fn count_all(&self, tx: &mut Tx<'_>) -> Result<i64, Error> {
        self.count(tx, self.keys, self.times).await
    }

    /// The queries, one for each part of the list, for this column of it. They have the same parameters.
    fn selects(
        &self,
        column: &str,
        keys: (i64, i64),
        times: Option<(i64, i64)>,
    ) -> (Vec<String>, Args) {
        let select = |part: Option<Part>| {
            let table = match part {
                Some(part) => part.table(self.has("status")),
                None => self.table(),
            };
            let (conditions, args) = self.conditions(keys, times, part);
            let select = format!("SELECT {column} FROM {table} WHERE {conditions}");
            (select, args)
        };
        let Some((first, others)) = self.parts().split_first() else {
            let (select, args) = select(None);
            return (vec![select], args);
        };
        let (first, args) = select(Some(*first));
        let others = others.iter().map(|part| select(Some(*part)).0);
        (std::iter::once(first).chain(others).collect(), args)
    }

    fn has(&self, column: &str) -> bool {
        self.equal.iter().any(|(of, _)| *of == column)
    }

    /// On SQLite, the parts of a list of what somebody owns or is the user of, by index. None: it goes by another one.
    fn parts(&self) -> &'static [Part] {
        let has_others = self.by_label || self.suspended || self.ids.is_some();
        if self.engine == Engine::Postgres || has_others || self.has("parent_no") {
            return &[];
        }
        let value_of = |column| {
            let mut equal = self.equal.iter();
            equal.find_map(|(of, value)| (*of == column).then_some(value))
        };
        match (value_of("owner"), value_of("user_id")) {
            // By the name of the tasks.
            (None, Some(_)) if self.has("name") => &[],
            (None, None) => &[],
            (Some(_), _) | (None, Some(_)) if self.root_only => &[Part::Root],
            (Some(_), None) => &[Part::Both, Part::Owner],
            (Some(owner), Some(user)) if owner == user => &[Part::Both],
            (Some(_), Some(_)) => &[Part::Owner],
            (None, Some(_)) => &[Part::Both, Part::User],
        }
    }

    /// SQLite, which has no statistics, would find the few tasks that wait for people among all tasks.
    fn table(&self) -> &'static str {
        match self.engine {
            // SQLite keeps the order of a cross join.
            Engine::Sqlite if self.by_label && self.owned => {
                "task_labels INDEXED BY task_labels_owner
                    CROSS JOIN tasks ON created_position = task_no"
            }
            Engine::Sqlite if self.by_label => {
                "task_labels CROSS JOIN tasks ON created_position = task_no"
            }
            // The offset keeps PostgreSQL, which cannot know how many tasks have a label, from reading all tasks.
            Engine::Postgres if self.by_label => {
                "task_labels CROSS JOIN LATERAL (
                    SELECT * FROM tasks WHERE created_position = task_no OFFSET 0) AS labelled"
            }
            // The few that begin alike, whatever else is asked of them.
            Engine::Sqlite if self.ids.is_some() => "tasks INDEXED BY tasks_id",
            Engine::Sqlite if self.suspended => "tasks INDEXED BY tasks_suspended",
            Engine::Sqlite | Engine::Postgres => "tasks",
        }
    }

    /// The column with the order of creation in the index that the list goes by.
    const fn number(&self) -> &'static str {
        if self.by_label {
            "task_no"
        } else {
            "created_position"
        }
    }

    fn conditions(
        &self,
        keys: (i64, i64),
        times: Option<(i64, i64)>,
        part: Option<Part>,
    ) -> (String, Args) {
        let mut args = Args::of(self.engine);
        args.int(keys.0);
        args.int(keys.1);
        let no = self.number();
        let mut text = match self.key() {
            Key::Position => format!("{no} > $1 AND {no} < $2"),
            Key::Negated => format!("-{no} < -$1 AND -{no} > -$2"),
        };
        for (i, term) in self.labels.iter().enumerate() {
            args.text(Arc::clone(term));
            let n = args.len();
            text.push_str(&match self.by_label && i == 0 {
                true => format!(" AND term = ${n}"),
                // By the primary key.
                false => format!(
                    " AND EXISTS (
                        SELECT 1 FROM task_labels l
                        WHERE l.term = ${n} AND l.task_no = created_position)"
                ),
            });
        }
        if self.root_only {
            text.push_str(" AND parent_no IS NULL");
        }
        if self.suspended {
            text.push_str(" AND suspension IS NOT NULL");
        }
        for (column, value) in &self.equal {
            match value {
                Value::Int(n) => args.int(*n),
                Value::Text(t) => args.text(Arc::clone(t)),
            }
            if self.by_label && *column == "owner" {
                text.push_str(&format!(" AND label_owner = ${}", args.len()));
            }
            let n = args.len();
            text.push_str(&match part {
                Some(part) => part.condition(column, n),
                None => format!(" AND {column} = ${n}"),
            });
        }
        if let Some((first, last)) = self.ids {
            args.id(first.0);
            args.id(last.0);
            let n = args.len();
            text.push_str(&format!(" AND id >= ${} AND id <= ${n}", n - 1));
        }
        if let Some((from, to)) = times {
            args.int(from);
            args.int(to);
            let n = args.len();
            text.push_str(&format!(
                " AND created_at >= ${} AND created_at < ${n}",
                n - 1
            ));
        }
        (text, args)
    }
}

/// Keys between which, both ends not included, all tasks lie that were created from `from` to
/// before `to`; `None` when there are none. Cost: O(buckets).
pub(super) async fn keys_of_times(
    tx: &mut Tx<'_>,
    from: i64,
    to: i64,
) -> Result<Option<(i64, i64)>, Error> {
    let last = bucket_of(Timestamp(to.saturating_sub(1)));
    let mut args = tx.args();
    args.int(bucket_of(Timestamp(from)));
    args.int(last);
    let row = tx.fetch_one(KEYS, args).await?;
    let mut c = Columns::of(&row);
    let (first, last) = (c.opt_int()?, c.opt_int()?);
    Ok(first.zip(last).map(|(first, last)| (first - 1, last + 1)))
}

/// By primary key.
const KEYS: &str = "SELECT MIN(first_position), MAX(last_position)
    FROM created_buckets
    WHERE bucket >= $1 AND bucket <= $2";
