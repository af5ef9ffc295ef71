//! Plays cases through a door, and writes down what came of them.

use super::cases::{Case, Expected, Step};
use super::door::Door;
use super::normal::Normal;
use super::request::{Id, Request};
use serde_json::Value;
use std::collections::HashMap;

/// An id that no server gives.
const UNKNOWN: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// What a case has come to know through one door.
pub(crate) struct Book {
    /// Owns what the case makes, alone.
    pub(crate) user: String,
    ids: HashMap<&'static str, String>,
    /// The lease of the last claim.
    lease: String,
}

impl Book {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a name that nobody else has")]
        let user = format!("user-{}", uuid::Uuid::new_v4().simple());
        Self {
            user,
            ids: HashMap::new(),
            lease: UNKNOWN.to_owned(),
        }
    }

    /// The lease of the last claim; before one, a lease that nobody has.
    pub(crate) fn lease(&self) -> &str {
        &self.lease
    }

    /// The id of a task.
    pub(crate) fn id(&self, id: Id) -> String {
        match id {
            Id::Of(alias) => self.ids[alias].clone(),
            Id::Unknown => UNKNOWN.to_owned(),
            Id::Malformed => "not-an-id".to_owned(),
        }
    }

    /// An idempotency key that no other case uses.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}-{key}", self.user)
    }

    /// Learns the ids of the tasks that a call has made.
    fn learn(&mut self, request: &Request, result: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        if let Request::Create(tasks) | Request::Run(tasks) = request {
            for task in tasks {
                let id = match result.get("task_ids") {
                    Some(ids) => &ids[task.alias],
                    None => result.get("id").unwrap_or(&result["root_task_id"]),
                };
                self.ids.insert(task.alias, text(id));
            }
        } else if matches!(request, Request::Claim(_) | Request::ClaimNext) {
            self.lease = text(&result["claims"][0]["lease"]["token"]);
        } else if matches!(request, Request::Copy(_)) {
            self.ids.insert("copy", text(&result["copied_task_id"]));
        }
    }
}

/// What a door answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Done(Value),
    /// `{code, message, data}`, as JSON-RPC has them.
    Refused(Value),
}

/// Plays every case; for each, one line for each step.
pub(crate) async fn all(door: &mut impl Door, cases: &[Case]) -> Vec<String> {
    let mut played = Vec::new();
    for case in cases {
        played.push(play(door, case).await);
    }
    played
}

/// The answer without methods that workers of other cases have asked for.
fn without_workers(mut told: Value) -> Value {
    if let Some(executors) = told.get_mut("executors").and_then(Value::as_array_mut) {
        executors.retain(|executor| executor["remote"] != true);
    }
    told
}

async fn play(door: &mut impl Door, case: &Case) -> String {
    let mut book = Book::new();
    let mut normal = Normal::new(&book.user);
    let mut lines = String::new();
    for (number, step) in case.steps.iter().enumerate() {
        let told = match step {
            Step::Stream(alias) => {
                let flow = book.id(Id::Of(alias));
                Value::Array(door.stream(&flow).await)
            }
            Step::Ask {
                request,
                key,
                expected,
            } => {
                let key = key.map(|key| book.key(key));
                let answer = door.ask(request, &book, key.as_deref()).await;
                let place = format!("{}: `{}`, step {number}", door.name(), case.name);
                match (expected, answer) {
                    (Expected::Done, Answer::Done(result)) => {
                        book.learn(request, &result);
                        result
                    }
                    (Expected::Refused(code), Answer::Refused(error)) if error["code"] == *code => {
                        error
                    }
                    (_, answer) => panic!("{place}: {request:?}: {answer:?}, not {expected:?}"),
                }
            }
        };
        let told = normal.value(without_workers(told));
        lines.push_str(&format!("{step:?}\n{told:#}\n"));
    }
    lines
}
