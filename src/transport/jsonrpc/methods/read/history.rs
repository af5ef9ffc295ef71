//! `tasks.history`.

use super::super::calling::{boxed, called};
use super::list::ORDER;
use crate::application::Service;
use crate::application::api::views::Order;
use crate::application::api::{EventType, History, HistoryCursor, Request, Scope};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::params::consistency;
use crate::transport::jsonrpc::reader::{
    Choice, Fault, Kind, Parameters, Reader, Refusal, TASK_ID, choice, integer, text,
};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::past::{created, entry};
use crate::transport::openrpc::about::{About, Example, FETCH, GROUP};
use crate::transport::openrpc::schema_parts::{at, object, with_optional};
use serde_json::{Value, json};
use taskledger_domain::Violation;
use taskledger_domain::limits::{LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX};

/// Characters of a cursor: two numbers of 19 digits and what stands around them, with room.
const CURSOR_CHARS_MAX: usize = 64;

/// Which events to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// What was asked for, its cursor apart.
    query: History,
    /// Where an earlier page ended, in the server's words.
    cursor: Option<String>,
}

impl Params {
    /// The query, with its cursor.
    ///
    /// # Errors
    /// The cursor is none of such a history.
    pub fn query(self) -> Result<History, Vec<Violation>> {
        let Some(text) = self.cursor else {
            return Ok(self.query);
        };
        let order = self.query.order;
        let cursor = HistoryCursor::parse(&text, order).ok_or_else(|| {
            let expected = "a `next_cursor` of the same history, with the same `order`";
            let reason = "not a cursor of this history";
            vec![Violation::of("cursor", reason, expected, &text.into())]
        })?;
        Ok(History {
            cursor: Some(cursor),
            ..self.query
        })
    }
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task; it may have been deleted.");
        let scope = reader.with_default(
            "scope",
            SCOPE,
            Scope::default(),
            "`task`: its own events and the runs that covered it; `flow`: all events of its tree.",
        );
        let page = EventPage::ask(
            &mut reader,
            "The `next_cursor` of an earlier page of the same history.",
        );
        let types = reader.optional("types", EventTypes, "Only events of these types.");
        // The log itself is read, which is as strong as it gets.
        consistency(&mut reader);
        reader.finish(|| {
            let query = History {
                task: task_id?,
                scope,
                limit: page.limit,
                order: page.order,
                cursor: None,
                types,
            };
            let cursor = page.cursor;
            Some(Self { query, cursor })
        })
    }
}

const SCOPE: Choice<Scope> = choice(
    "not a scope",
    &[("task", Scope::Task), ("flow", Scope::Flow)],
);

/// Which page of a list of events.
pub(super) struct EventPage {
    pub(super) limit: usize,
    pub(super) cursor: Option<String>,
    pub(super) order: Order,
}

impl EventPage {
    /// Asks for its parameters; `cursor` says of which list one is.
    pub(super) fn ask(reader: &mut Reader<'_>, cursor: &'static str) -> Self {
        let limit = reader.with_default(
            "limit",
            integer(1..=u64::from(LIST_LIMIT_MAX)),
            u64::from(LIST_LIMIT_DEFAULT),
            "Events in the page, at most; a page may have fewer although more follow.",
        );
        Self {
            limit: usize::try_from(limit).expect("the range of a limit fits"),
            cursor: reader.optional("cursor", text(CURSOR_CHARS_MAX), cursor),
            order: reader.with_default(
                "order",
                ORDER,
                Order::Ascending,
                "`asc` oldest first, `desc` newest first.",
            ),
        }
    }
}

/// A list of types of events, not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventTypes;

fn names() -> Vec<&'static str> {
    EventType::ALL.iter().map(|t| t.as_str()).collect()
}

impl Kind for EventTypes {
    type Out = Vec<EventType>;

    fn schema(&self) -> Value {
        let names = names();
        json!({"type": "array", "minItems": 1, "maxItems": names.len(),
            "items": {"type": "string", "enum": names}})
    }

    fn parse(&self, value: &Value) -> Result<Vec<EventType>, Refusal> {
        let names = names();
        let list = value
            .as_array()
            .filter(|list| (1..=names.len()).contains(&list.len()))
            .ok_or_else(|| {
                let reason = if value.is_array() {
                    "empty or too long"
                } else {
                    "not a list"
                };
                let expected = format!("1 to {} of {}", names.len(), names.join(", "));
                Fault::new(reason, expected)
            })?;
        let (mut types, mut violations) = (Vec::new(), Vec::new());
        for (index, item) in list.iter().enumerate() {
            match item.as_str().and_then(EventType::parse) {
                Some(kind) => types.push(kind),
                None => violations.push(Violation::new(
                    &["types".into(), index.into()],
                    "not a type of event",
                    format!("one of {}", names.join(", ")),
                    item,
                )),
            }
        }
        if violations.is_empty() {
            Ok(types)
        } else {
            Err(Refusal::Inside(violations))
        }
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.history",
        title: "Get History",
        summary: "Show what happened to a task or to its flow",
        tags: &["task", "read", "history"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let history = Params::read(&call.params)?.query()?;
                called(&service, &call.context, Request::History(history)).await
            })
        },
    }
}

fn about() -> About {
    let page = object(json!({
        "task_id": at("TaskId"),
        "root_task_id": at("TaskId"),
        "events": {"type": "array", "maxItems": LIST_LIMIT_MAX, "items": entry()},
    }));
    let more = json!({
        "next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there may be more; a page may have few events, or none, although more follow."},
    });
    About {
        description: "Shows what happened to a task, and to the runs that covered it, or to its whole flow; to tasks that were deleted, too. Further pages follow by `cursor`; later events do not change them.",
        result: "history",
        schema: with_optional(page, more),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![
            Example {
                name: "of a task",
                description: "It was created, and has no other events.",
                params: json!({"task_id": FETCH}),
                result: json!({"task_id": FETCH, "root_task_id": GROUP, "events": [created()]}),
            },
            Example {
                name: "failures of a flow, newest first",
                description: "There were none.",
                params: json!({"task_id": GROUP, "scope": "flow", "types": ["task_failed", "task_requeued"], "order": "desc", "limit": 20}),
                result: json!({"task_id": GROUP, "root_task_id": GROUP, "events": []}),
            },
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};

    #[test]
    fn the_first_hundred_oldest_events_of_the_task_are_the_default() {
        let read = Params::read(&map(json!({"task_id": ID}))).unwrap();
        let query = read.query().unwrap();
        assert_eq!((query.scope, query.limit), (Scope::Task, 100));
        assert_eq!(query.order, Order::Ascending);
        assert_eq!((query.cursor, query.types), (None, None));
    }

    #[test]
    fn everything_is_read() {
        let read = Params::read(&map(json!({"task_id": ID, "scope": "flow", "limit": 1000,
            "order": "desc", "cursor": "d7", "types": ["task_failed", "run_ended"],
            "consistency": "eventual"})))
        .unwrap();
        let query = read.query().unwrap();
        assert_eq!((query.scope, query.limit), (Scope::Flow, 1000));
        assert_eq!(query.cursor, HistoryCursor::parse("d7", Order::Descending));
        let types = vec![EventType::TaskFailed, EventType::RunEnded];
        assert_eq!(query.types, Some(types));
    }

    #[test]
    fn each_faulty_parameter_is_named_with_its_place() {
        let wrong = json!({"task_id": "x", "scope": "tree", "limit": 0, "cursor": "a1",
            "order": "desc", "types": ["task_failed", "TaskFailed", 7], "consistency": "weak"});
        let violations = Params::read(&map(wrong)).unwrap_err();
        let found: Vec<_> = violations
            .iter()
            .map(|v| (v.field.as_str(), v.reason.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("task_id", "Invalid UUID format"),
                ("scope", "not a scope"),
                ("limit", "out of range"),
                ("types", "not a type of event"),
                ("types", "not a type of event"),
                ("consistency", "not a consistency"),
            ]
        );
        let wrong = json!({"task_id": ID, "cursor": "a1", "order": "desc"});
        let wrong = Params::read(&map(wrong)).unwrap().query().unwrap_err();
        assert_eq!(wrong[0].reason, "not a cursor of this history");
        for (types, reason) in [
            (json!([]), "empty or too long"),
            (json!("run_ended"), "not a list"),
        ] {
            assert_eq!(
                faults(Params::read(&map(json!({"task_id": ID, "types": types})))),
                [("types".into(), reason.into())]
            );
        }
    }
}
