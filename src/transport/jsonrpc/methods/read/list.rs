//! `tasks.list`. spec: interface / tasks.list

use super::super::calling::{answer, boxed};
use crate::application::Service;
use crate::application::api::Consistency;
use crate::application::api::views::{ListCursor as Cursor, ListFilter, ListStart as Start, Order};
use crate::transport::jsonrpc::error::RpcError;
use crate::transport::jsonrpc::params::consistency;
use crate::transport::jsonrpc::reader::{
    BOOLEAN, Choice, Fault, Kind, Labels, PRIORITY, Parameters, Reader, Refusal, STATUS, TASK_ID,
    TIMESTAMP, choice, integer, text,
};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::task_json::PageJson;
use crate::transport::jsonrpc::text::raw;
use crate::transport::openrpc::about::{About, Example, GROUP, count, fetch, group};
use crate::transport::openrpc::schema_parts::{at, object, with_optional};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::limits::{
    KEY_CHARS_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, NAME_CHARS_MAX,
};
use taskledger_domain::task::{Priority, Selector, Status};
use taskledger_domain::{TaskId, Timestamp, Violation};

/// Characters of a cursor: an opaque text that the server itself wrote.
pub const CURSOR_CHARS_MAX: usize = 512;

/// Which tasks to list, and which page of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Tasks in the page, 1 to [`LIST_LIMIT_MAX`].
    pub limit: u32,
    /// Tasks to leave out before the page. Not together with a cursor.
    pub offset: u64,
    /// Where an earlier page ended, in the server's words.
    pub cursor: Option<String>,
    /// Only tasks in this status.
    pub status: Option<Status>,
    /// Only tasks of this user.
    pub user_id: Option<String>,
    /// Only tasks without a parent.
    pub root_only: bool,
    /// Only children of this task.
    pub parent_id: Option<TaskId>,
    /// Only tasks with exactly this name.
    pub name: Option<String>,
    /// Only tasks with this priority.
    pub priority: Option<Priority>,
    /// Only tasks created at this time or after it.
    pub created_after: Option<Timestamp>,
    /// Only tasks created before this time.
    pub created_before: Option<Timestamp>,
    /// Newest or oldest first.
    pub order: Order,
    /// Only tasks that wait for a person.
    pub suspended: bool,
    /// Only tasks with an id from the first to the last of these.
    pub ids: Option<(TaskId, TaskId)>,
    /// Only tasks with these labels.
    pub labels: Selector,
    /// Whether to wait for earlier writes.
    pub consistency: Consistency,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let limit = reader.with_default(
            "limit",
            integer(1..=u64::from(LIST_LIMIT_MAX)),
            u64::from(LIST_LIMIT_DEFAULT),
            "Tasks in the page.",
        );
        let offset = reader.with_default(
            "offset",
            integer(0..=i64::MAX as u64),
            0,
            "Tasks to leave out before the page; not together with `cursor`.",
        );
        let status = reader.optional("status", STATUS, "Only tasks in this status.");
        let user_id = reader.optional("user_id", text(KEY_CHARS_MAX), "Only tasks of this user.");
        let cursor = reader.optional(
            "cursor",
            text(CURSOR_CHARS_MAX),
            "The `next_cursor` of an earlier page of the same list.",
        );
        let root_only = reader.with_default(
            "root_only",
            BOOLEAN,
            false,
            "Only tasks without a parent; not together with `parent_id`.",
        );
        let parent_id = reader.optional("parent_id", TASK_ID, "Only children of this task.");
        let name = reader.optional(
            "name",
            text(NAME_CHARS_MAX),
            "Only tasks with exactly this name.",
        );
        let priority = reader.optional("priority", PRIORITY, "Only tasks with this priority.");
        let created_after = reader.optional(
            "created_after",
            TIMESTAMP,
            "Only tasks created at this time or after it.",
        );
        let created_before = reader.optional(
            "created_before",
            TIMESTAMP,
            "Only tasks created before this time.",
        );
        let order = reader.with_default(
            "order",
            ORDER,
            Order::default(),
            "By creation, as the log has it: `desc` newest first, `asc` oldest first.",
        );
        let consistency = consistency(&mut reader);
        let suspended = reader.with_default(
            "suspended",
            BOOLEAN,
            false,
            "Only tasks that wait for a person.",
        );
        let ids = reader.optional(
            "id_prefix",
            IdPrefix,
            "Only tasks whose id starts with these digits: at least 4 hexadecimal digits, with or without hyphens.",
        );
        let labels = reader.optional(
            "labels",
            Labels,
            "Only tasks with these labels: each key with the value that it must have, or null for any.",
        );
        if cursor.is_some() && offset > 0 {
            let fault = Fault::new("not together with `cursor`", "either `offset` or `cursor`");
            reader.report("offset", fault, &offset.into());
        }
        if root_only && parent_id.is_some() {
            let fault = Fault::new("not together with `parent_id`", "either one");
            reader.report("root_only", fault, &true.into());
        }
        reader.finish(|| {
            Some(Self {
                limit: u32::try_from(limit).expect("the range of a limit fits 32 bits"),
                offset,
                cursor,
                status,
                user_id,
                root_only,
                parent_id,
                name,
                priority,
                created_after,
                created_before,
                order,
                consistency,
                suspended,
                ids,
                labels: labels.unwrap_or_default(),
            })
        })
    }
}

/// Hexadecimal digits of the beginning of an id at least: so few tasks of a large log begin alike that they are
/// looked at one by one.
pub const ID_PREFIX_DIGITS_MIN: usize = 4;
/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 32;

/// The beginning of an id, as the first and the last id that begin so.
#[derive(Debug, Clone, Copy)]
struct IdPrefix;

impl Kind for IdPrefix {
    type Out = (TaskId, TaskId);

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": "^([0-9A-Fa-f]-?){4,32}$"})
    }

    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal> {
        const EXPECTED: &str = "4 to 32 hexadecimal digits of an id, with or without hyphens";
        let refused = |reason: &'static str| Refusal::Here(Fault::new(reason, EXPECTED));
        let text = value.as_str().ok_or_else(|| refused("not a string"))?;
        let mut digits = text.replace('-', "");
        let count = digits.len();
        if count < ID_PREFIX_DIGITS_MIN {
            return Err(refused("too short"));
        }
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if count > ID_DIGITS || !is_hex {
            return Err(refused("not the first digits of an id"));
        }
        let mut ends = digits.clone();
        digits.push_str(&"0".repeat(ID_DIGITS - count));
        ends.push_str(&"f".repeat(ID_DIGITS - count));
        let id = |text: String| {
            let read = serde_json::from_value::<TaskId>(Value::String(text));
            read.map_err(|_| refused("not the first digits of an id"))
        };
        Ok((id(digits)?, id(ends)?))
    }
}

pub(super) const ORDER: Choice<Order> = choice(
    "not an order",
    &[("desc", Order::Descending), ("asc", Order::Ascending)],
);

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.list",
        title: "List Tasks",
        summary: "List tasks with filters",
        tags: &["task", "read"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { list_tasks(&service, &call).await }),
    }
}

fn about() -> About {
    let page = object(json!({
        "tasks": {"type": "array", "maxItems": LIST_LIMIT_MAX, "items": at("Task")},
        "total": {"type": "integer", "minimum": 0, "description": "Tasks in the list, all pages."},
        "limit": {"type": "integer", "minimum": 1, "maximum": LIST_LIMIT_MAX},
        "offset": {"type": "integer", "minimum": 0},
    }));
    let more = json!({
        "next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there is one."},
    });
    About {
        description: "Lists tasks by filters, a page at a time, newest first unless asked otherwise. Pages follow by `offset`, or by `cursor`, which stays fast at any depth.",
        result: "page",
        schema: with_optional(page, more),
        errors: &[],
        examples: vec![
            Example {
                name: "pending roots of a user",
                description: "The first ten.",
                params: json!({"limit": 10, "offset": 0, "status": "pending", "user_id": "user-123", "root_only": true}),
                result: json!({"tasks": [group()], "total": 1, "limit": 10, "offset": 0}),
            },
            Example {
                name: "children by priority, oldest first",
                description: "Filters are all to be met.",
                params: json!({"parent_id": GROUP, "priority": 2, "order": "asc", "created_after": "2026-01-01T00:00:00Z"}),
                result: json!({"tasks": [fetch(), count()], "total": 2, "limit": 100, "offset": 0}),
            },
            Example {
                name: "by labels",
                description: "A key with null matches any value; no task has these labels.",
                params: json!({"labels": {"team": "data", "stage": null}}),
                result: json!({"tasks": [], "total": 0, "limit": 100, "offset": 0}),
            },
        ],
    }
}

async fn list_tasks(service: &Service, call: &Call) -> Result<Box<RawValue>, RpcError> {
    let p = Params::read(&call.params)?;
    let start = match &p.cursor {
        None => Start::Offset(p.offset),
        Some(text) => Start::After(Cursor::parse(text, p.order).map_err(|_| {
            let expected = "a `next_cursor` of the same list, with the same `order`";
            vec![Violation::of(
                "cursor",
                "not a cursor of this list",
                expected,
                &Value::String(text.clone()),
            )]
        })?),
    };
    let filter = ListFilter {
        status: p.status,
        owner: None,
        user_id: p.user_id.map(Arc::from),
        root_only: p.root_only,
        suspended: p.suspended,
        parent_id: p.parent_id,
        name: p.name.map(Arc::from),
        priority: p.priority,
        created_after: p.created_after,
        created_before: p.created_before,
        ids: p.ids,
        labels: p.labels,
    };
    let found = service.list(
        &call.context,
        filter,
        p.order,
        start,
        p.limit,
        p.consistency,
    );
    answer(service, found.await).map(|page| raw(&PageJson(&page)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
    use serde_json::{Map, json};

    #[test]
    fn the_first_hundred_newest_tasks_are_the_default() {
        let read = Params::read(&Map::new()).unwrap();
        assert_eq!((read.limit, read.offset), (100, 0));
        assert_eq!(read.order, Order::Descending);
        assert_eq!(read.status, None);
    }

    #[test]
    fn every_filter_is_read() {
        let read = Params::read(&map(json!({
            "limit": 1000, "offset": 5, "status": "in_progress", "user_id": "u", "parent_id": ID,
            "name": "n", "priority": 0, "created_after": "2026-01-01T00:00:00Z",
            "created_before": "2026-01-02T00:00:00+01:00", "order": "asc", "consistency": "eventual",
            "labels": {"team": "data"},
        })))
        .unwrap();
        assert_eq!(read.limit, 1000);
        assert_eq!(read.status, Some(Status::InProgress));
        assert_eq!(read.priority, Priority::new(0));
        assert_eq!(read.order, Order::Ascending);
        assert_eq!(read.labels.terms(), ["team=data"]);
        assert_eq!(
            read.created_before
                .unwrap()
                .ms_since(read.created_after.unwrap()),
            23 * 3600 * 1000
        );
    }

    #[test]
    fn pages_and_filters_have_bounds() {
        assert_eq!(
            faults(Params::read(&map(json!({
                "limit": 1001, "offset": -1, "status": "done", "priority": 4, "order": "up",
                "created_after": "yesterday", "root_only": "x",
            })))),
            [
                ("limit", "out of range"),
                ("offset", "out of range"),
                ("status", "not a status"),
                ("root_only", "not a boolean"),
                ("priority", "out of range"),
                ("created_after", "not a point in time"),
                ("order", "not an order"),
            ]
            .map(|(field, reason)| (field.into(), reason.into()))
        );
        assert_eq!(
            faults(Params::read(&map(json!({"limit": 0})))),
            [("limit".into(), "out of range".into())]
        );
    }

    #[test]
    fn the_beginning_of_an_id_stands_for_all_that_begin_so() {
        let ids = |text: &str| {
            let read = Params::read(&map(json!({"id_prefix": text})));
            read.map(|params| {
                params
                    .ids
                    .map(|(first, last)| (first.to_string(), last.to_string()))
            })
        };
        let (first, last) = ids("0F8FAD5B-d9").unwrap().unwrap();
        assert_eq!(first, "0f8fad5b-d900-0000-0000-000000000000");
        assert_eq!(last, "0f8fad5b-d9ff-ffff-ffff-ffffffffffff");
        let (first, last) = ids(ID).unwrap().unwrap();
        assert_eq!((&*first, &*last), (ID, ID));
        for (bad, reason) in [
            ("0f8", "too short"),
            ("----", "too short"),
            ("0f8x", "not the first digits of an id"),
            (
                "0f8fad5bd9cb469fa165708677289500e1",
                "not the first digits of an id",
            ),
        ] {
            assert_eq!(faults(ids(bad)), [("id_prefix".into(), reason.into())]);
        }
    }

    #[test]
    fn contradictions_are_refused() {
        assert_eq!(
            faults(Params::read(&map(
                json!({"cursor": "c", "offset": 1, "root_only": true, "parent_id": ID})
            ))),
            [
                ("offset".into(), "not together with `cursor`".into()),
                ("root_only".into(), "not together with `parent_id`".into())
            ]
        );
    }
}
