//! `events.query`.

use super::super::calling::{answer, boxed};
use super::history::{EventPage, EventTypes};
use crate::application::Service;
use crate::application::api::{EventsCursor, EventsQuery};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::reader::{Parameters, Reader, TASK_ID, TIMESTAMP, text};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::past::{created, entry};
use crate::transport::openrpc::about::{About, Example, FETCH, GROUP};
use crate::transport::openrpc::schema_parts::{at, object, with_optional};
use serde_json::json;
use taskledger_domain::Violation;
use taskledger_domain::limits::LIST_LIMIT_MAX;

/// Characters of a principal: more than any has.
const ACTOR_CHARS_MAX: usize = 512;

/// Which events to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// What was asked for, its cursor apart.
    query: EventsQuery,
    /// Where an earlier page ended, in the server's words.
    cursor: Option<String>,
}

impl Params {
    /// The query, with its cursor.
    ///
    /// # Errors
    /// The cursor is none of such a query.
    pub fn query(self) -> Result<EventsQuery, Vec<Violation>> {
        let Some(text) = self.cursor else {
            return Ok(self.query);
        };
        let (order, is_of_flow) = (self.query.order, self.query.is_of_flow());
        let cursor = EventsCursor::parse(&text, order, is_of_flow).ok_or_else(|| {
            let expected =
                "a `next_cursor` of the same query, with the same `order`, `flow` and `task_id`";
            let reason = "not a cursor of this query";
            vec![Violation::of("cursor", reason, expected, &text.into())]
        })?;
        Ok(EventsQuery {
            cursor: Some(cursor),
            ..self.query
        })
    }
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let since = reader.optional(
            "since",
            TIMESTAMP,
            "Only events recorded at this time or later.",
        );
        let until = reader.optional("until", TIMESTAMP, "Only events recorded before this time.");
        let actor = reader.optional(
            "actor",
            text(ACTOR_CHARS_MAX),
            "Only what this principal caused, for example `user:ann`, `service:ci`, `anonymous` or `engine`.",
        );
        let types = reader.optional("types", EventTypes, "Only events of these types.");
        let flow = reader.optional("flow", TASK_ID, "Only this flow, named by its root task.");
        let task = reader.optional(
            "task_id",
            TASK_ID,
            "Only events about this task; it may have been deleted.",
        );
        let page = EventPage::ask(
            &mut reader,
            "The `next_cursor` of an earlier page of the same query.",
        );
        reader.finish(|| {
            let query = EventsQuery {
                since,
                until,
                actor,
                types,
                flow: flow.map(|root| root.as_flow()),
                task,
                limit: page.limit,
                order: page.order,
                cursor: None,
            };
            let cursor = page.cursor;
            Some(Self { query, cursor })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "events.query",
        title: "Query Events",
        summary: "Search the events of all flows by time, actor, type, flow and task",
        tags: &["read", "history", "audit"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let query = Params::read(&call.params)?.query()?;
                let found = service.events(&call.context, query).await;
                answer(&service, found).map(|page| replies::events_page(&page))
            })
        },
    }
}

fn about() -> About {
    let root = json!({"root_task_id": at("TaskId")});
    let page = object(json!({
        "events": {"type": "array", "maxItems": LIST_LIMIT_MAX, "items": with_optional(entry(), root)},
    }));
    let more = json!({
        "next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there may be more; a page may have few events, or none, although more follow."},
    });
    let mut found = created();
    found["root_task_id"] = json!(GROUP);
    About {
        description: "Shows what happened in all flows that the caller sees: who caused what, and when. Filters hold together. Times are those at which the log took events, which rise with positions. Events are as in `tasks.history`, without `input` and `lineage`. A page reads at most 20,000 events.",
        result: "events",
        schema: with_optional(page, more),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![
            Example {
                name: "of an hour",
                description: "A task was created.",
                params: json!({"since": "2026-01-15T10:00:00Z", "until": "2026-01-15T11:00:00Z", "actor": "anonymous", "task_id": FETCH}),
                result: json!({"events": [found]}),
            },
            Example {
                name: "cancellations, newest first",
                description: "There were none.",
                params: json!({"types": ["task_cancelled"], "order": "desc", "limit": 20}),
                result: json!({"events": []}),
            },
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::api::EventType;
    use crate::application::api::views::Order;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
    use serde_json::json;

    #[test]
    fn the_first_hundred_oldest_events_are_the_default() {
        let query = Params::read(&map(json!({}))).unwrap().query().unwrap();
        assert_eq!((query.limit, query.order), (100, Order::Ascending));
        assert!(!query.is_of_flow());
        assert_eq!((query.since, query.actor, query.types), (None, None, None));
    }

    #[test]
    fn everything_is_read() {
        let read = Params::read(&map(json!({"since": "2026-01-31T00:00:00Z",
            "until": "2026-02-01T00:00:00Z", "actor": "user:ann", "types": ["task_failed"],
            "flow": ID, "task_id": ID, "limit": 5, "order": "desc", "cursor": "vd7"})))
        .unwrap();
        let query = read.query().unwrap();
        assert!(query.since < query.until && query.is_of_flow());
        assert_eq!(query.actor.as_deref(), Some("user:ann"));
        assert_eq!(query.types, Some(vec![EventType::TaskFailed]));
        assert_eq!(
            query.cursor,
            EventsCursor::parse("vd7", Order::Descending, true)
        );
    }

    #[test]
    fn each_faulty_parameter_is_named() {
        let wrong = json!({"since": "yesterday", "actor": 7, "flow": "x", "limit": 0});
        let found = faults(Params::read(&map(wrong)));
        let fields: Vec<_> = found.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["since", "actor", "flow", "limit"]);
        // A cursor of one flow is none of the whole log.
        let wrong = Params::read(&map(json!({"cursor": "va7"}))).unwrap();
        assert_eq!(
            wrong.query().unwrap_err()[0].reason,
            "not a cursor of this query"
        );
    }
}
