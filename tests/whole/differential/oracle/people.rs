//! docs/guides/people.md: tasks that wait for the answer of a person.
//!
//! A wait is a symbol like an id: `@q2-4a` is the question of the second attempt of `@4a`.

use super::work::State;
use super::{Answer, InProgress, Oracle, Symbol, contract, refuse, symbol, time};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The task does not wait for this answer.
const NOT_SUSPENDED: i64 = -31011;
/// Who answers while nobody is authenticated.
const NOBODY: &str = "anonymous";

/// What a suspended task waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(crate) symbol: Symbol,
    pub(crate) request: Value,
    since: i64,
    expires: Option<i64>,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turn {
    pub(crate) symbol: Symbol,
    request: Value,
    pub(crate) value: Value,
    is_default: bool,
    at: i64,
}

impl Question {
    /// As a task shows it.
    pub(super) fn shown(&self) -> Value {
        let mut shown = json!({
            "suspension_id": format!("@{}", self.symbol), "question": self.request,
            "since": time(self.since),
        });
        if let Some(at) = self.expires {
            shown["expires_at"] = time(at);
        }
        shown
    }
}

impl Turn {
    /// As the next attempt gets it.
    fn shown(&self) -> Value {
        let (resolution, by) = match self.is_default {
            true => ("expired", Value::Null),
            false => ("responded", json!(NOBODY)),
        };
        json!({
            "suspension_id": format!("@{}", self.symbol), "question": self.request,
            "value": self.value, "resolution": resolution, "responded_by": by,
            "answered_at": time(self.at),
        })
    }
}

/// Whether a value answers a question.
pub(crate) fn answers(request: &Value, value: &Value) -> bool {
    match request["response_type"].as_str() {
        Some("confirm") => value.is_boolean(),
        Some("choice") => choice(request, value).is_some(),
        _ => value.as_str().is_some_and(|text| !text.is_empty()),
    }
}

fn choice<'a>(request: &'a Value, value: &Value) -> Option<&'a Value> {
    let mut choices = request["choices"].as_array()?.iter();
    choices.find(|choice| choice["value"] == *value)
}

/// Whether a question is one, as far as scripts get it wrong.
fn is_question(request: &Value) -> bool {
    let has_text = request["question"].as_str().is_some_and(|t| !t.is_empty());
    let has_choices = request["response_type"] != "choice" || request["choices"].is_array();
    let fallback = &request["fallback_value"];
    has_text
        && has_choices
        && match request["fallback_policy"].as_str() {
            Some("complete_with_fallback") => fallback.is_object(),
            Some("use_default_and_continue") => answers(request, fallback),
            _ => true,
        }
}

impl Oracle {
    /// What a worker wants a person to be asked.
    pub(super) fn suspend(&mut self, map: &Map<String, Value>) -> Answer {
        let request = &map["request"];
        let token = match self.heard("tasks.suspend", map, request)? {
            Ok(token) => token,
            Err(answer) => return Ok(answer),
        };
        let lease = &self.leases[&token];
        let (task, attempt) = (lease.task.clone(), lease.attempt);
        let schemas = &self.task(&task).schemas;
        let fallback = &request["fallback_value"];
        let completes = request["fallback_policy"] == "complete_with_fallback";
        let keeps = !completes || contract::check(schemas, fallback).is_ok();
        if !is_question(request) || !keeps {
            return refuse(-32602);
        }
        let seconds = request["timeout_seconds"].as_i64();
        let question = Question {
            symbol: format!("q{attempt}-{task}"),
            request: request.clone(),
            since: self.now,
            expires: seconds.map(|s| self.now + s * 1_000_000),
        };
        let answer = json!({
            "task_id": format!("@{task}"), "suspension_id": format!("@{}", question.symbol),
            "expires_at": question.expires.map_or(Value::Null, time),
        });
        self.change(&task, |t| t.question = Some(question));
        let said = ("tasks.suspend".to_owned(), request.clone(), answer.clone());
        self.end_lease(&token, State::Ended(Some(said)));
        Ok(answer)
    }

    /// What a person answers.
    pub(super) fn respond(&mut self, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["task_id"])?;
        let wait = symbol(&map["suspension_id"]).unwrap_or_default();
        let value = &map["value"];
        let task = self.task(&id);
        let (request, status) = match &task.question {
            Some(open) if open.symbol == wait => (open.request.clone(), "pending"),
            Some(_) | None => {
                let first = task.turns.iter().find(|turn| turn.symbol == wait);
                match first.filter(|turn| !turn.is_default && turn.value == *value) {
                    Some(first) => (first.request.clone(), "pending"),
                    None => return refuse(NOT_SUSPENDED),
                }
            }
        };
        if !answers(&request, value) {
            return super::invalid(BTreeSet::from(["value".to_owned()]));
        }
        if task
            .question
            .as_ref()
            .is_some_and(|open| open.symbol == wait)
        {
            self.go_on(&id, value, false);
        }
        let mut answer = json!({
            "task_id": format!("@{id}"), "suspension_id": format!("@{wait}"),
            "resolution": "responded", "value": value, "responded_by": NOBODY, "status": status,
        });
        let label = choice(&request, value).map(|choice| &choice["label"]);
        if let Some(label) = label.filter(|label| !label.is_null()) {
            answer["choice_label"] = label.clone();
        }
        Ok(answer)
    }

    /// The task is ready again, for an attempt that knows the answer.
    fn go_on(&mut self, id: &str, value: &Value, is_default: bool) {
        let at = self.now;
        self.change(id, |t| {
            let open = t.question.take().expect("it waits for an answer");
            t.turns.push(Turn {
                symbol: open.symbol,
                request: open.request,
                value: value.clone(),
                is_default,
                at,
            });
        });
        self.requeue(id, None);
    }

    /// The questions of a task that were answered in this run; `None` when there are none.
    pub(super) fn answers_to(&self, id: &str) -> Option<Value> {
        let turns = &self.task(id).turns;
        (!turns.is_empty()).then(|| turns.iter().map(Turn::shown).collect())
    }

    /// When waits end, and in which flow.
    pub(super) fn wait_ends(&self, run: usize) -> Vec<(i64, Symbol)> {
        let tasks = self.runs[run].covered.iter().map(|s| self.task(s));
        let ends = tasks.filter_map(|t| Some((t.question.as_ref()?.expires?, t.flow.clone())));
        ends.collect()
    }

    /// Questions that nobody has answered in time.
    pub(super) fn end_waits(&mut self, run: usize) {
        for id in self.covered(run) {
            let task = self.task(&id);
            let Some(open) = task.question.clone() else {
                continue;
            };
            let is_over = open.expires.is_some_and(|at| at <= self.now);
            if task.status != InProgress || !is_over {
                continue;
            }
            let fallback = &open.request["fallback_value"];
            match open.request["fallback_policy"].as_str() {
                Some("complete_with_fallback") => self.complete(&id, fallback),
                Some("use_default_and_continue") => self.go_on(&id, fallback, true),
                _ => self.fail_for_good(&id, super::ANY_TEXT),
            }
        }
    }
}
