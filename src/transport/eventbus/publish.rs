//! `PublishTask`: turns a message into a task that runs at once.

use super::published::{MEMBER, Published, kept_time};
use super::values::{invalid, json_of, name_of, priority_of, time_of};
use super::{Bus, patterns, status};
use crate::application::Context;
use crate::application::api::broker::{ID_BYTES_MAX, KEY_BYTES, PublishedIds};
use crate::application::api::views::TaskRow;
use crate::application::api::{Cancel, Error, Execute, IdCheck, Refused, Request, Target, UseCase};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::flow::Include;
use taskledger_domain::limits::{EXECUTOR_WAIT_MS_DEFAULT, KEY_CHARS_MAX, NAME_CHARS_MAX};
use taskledger_domain::task::{Status as TaskStatus, call};
use taskledger_domain::{Payload, TaskId, Timestamp, Violation};
use taskledger_eventbus::TaskMessage;
use tokio::time::sleep;
use tonic::Status;

/// Characters of an id of a task.
pub(super) const ID_CHARS_MAX: usize = 1024;
/// Milliseconds between looks for a task whose id another call has taken: in all longer than a write takes.
const LOOK_AFTER_MS: [u64; 7] = [10, 20, 40, 80, 160, 320, 640];
/// The text of a task whose deadline has passed, as clients look for it.
pub(super) const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";
/// What a publisher is told who names an executor of the server.
const OF_THE_SERVER: &str = "task_type: an executor of the server has this name, and agents are not given its tasks; publish a type that agents subscribe to";
/// The member of `params` with the deadline.
const DEADLINE: &str = "deadline";
/// Members of `metadata` that open the tree of tasks to publishers.
const USER: &str = "user_id";
const PARENT: &str = "parent_id";
const DEPENDENCIES: &str = "dependencies";

/// A message that can be a task.
struct Accepted {
    id: TaskId,
    /// A list of one, as `tasks.create` takes it.
    tasks: Value,
    /// When it must have ended, in microseconds.
    deadline: Option<i64>,
    /// Whether its deadline has passed already.
    is_late: bool,
    /// It belongs to a flow that is there.
    is_below: bool,
}

impl Accepted {
    fn task(&self) -> &Value {
        &self.tasks[0]
    }

    /// Notes that its deadline has passed by now; whether it had not before.
    fn becomes_late(&mut self, now: Timestamp) -> bool {
        let is_late = !self.is_late && self.deadline.is_some_and(|at| at <= now.0);
        if is_late {
            self.is_late = true;
            if let Some(params) = self.tasks[0]["params"].as_object_mut() {
                params.remove(DEADLINE);
            }
        }
        is_late
    }
}

impl Bus {
    /// Records a task and has it run. Once this returns, it is on the disk.
    pub(super) async fn publish(
        &self,
        context: &Context,
        message: Option<TaskMessage>,
    ) -> Result<(), Status> {
        let message = message.ok_or_else(|| Status::invalid_argument("task cannot be nil"))?;
        let mut accepted = self.accepted(context, message).await?;
        let mut begun = self.begin(context, &accepted).await;
        // It may pass on the way: accepted all the same.
        if begun.is_err() && accepted.becomes_late(self.clock.now()) {
            begun = self.begin(context, &accepted).await;
        }
        match begun {
            Ok(()) => Ok(()),
            Err(Error::Refused(refused)) => self.published_before(context, accepted, refused).await,
            Err(error @ Error::QuotaExceeded { .. }) => {
                // Who has as much as it may publishes again what was accepted.
                let row = self.stored(context, accepted.id, false).await;
                match row.is_some_and(|row| is_same(&row, accepted.task())) {
                    true => Ok(()),
                    false => Err(status::of(&*self.clock, error)),
                }
            }
            Err(error) => Err(status::of(&*self.clock, error)),
        }
    }

    async fn begin(&self, context: &Context, accepted: &Accepted) -> Result<(), Error> {
        let mut plain = accepted.tasks.clone();
        // With the mark, which the reader of tasks refuses.
        if let Some(Err(unfit)) = plain[0]["params"].as_object().map(Payload::checked) {
            let (reason, expected) = (unfit.reason(), unfit.expected());
            let path = ["tasks".into(), 0.into(), "params".into()];
            let fault = Violation::new(&path, reason, expected, &unfit.found().into());
            return Err(Error::invalid([fault]));
        }
        let params = plain[0]["params"].as_object_mut();
        let mark = params.and_then(|params| params.remove(MEMBER));
        let tasks = call::read_tasks(&plain);
        let tasks = tasks.map_err(Error::invalid)?;
        let tasks = tasks.published(mark.unwrap_or_default());
        if accepted.is_late || accepted.is_below {
            self.service.call(context, Request::Create(tasks)).await?;
            return self.go_on(context, accepted).await;
        }
        let execute = Request::Execute(execute(Target::New(tasks)));
        self.service.call(context, execute).await.map(|_| ())
    }

    /// What follows the creation of a task that is late, or below another one.
    async fn go_on(&self, context: &Context, accepted: &Accepted) -> Result<(), Error> {
        let request = match accepted.is_late {
            true => Request::Cancel(Cancel {
                task: accepted.id,
                cascade: true,
                reason: Some(DEADLINE_EXCEEDED.to_owned()),
                remarks: None,
            }),
            false => Request::Execute(execute(Target::Stored(accepted.id))),
        };
        self.service.call(context, request).await.map(|_| ())
    }

    /// A publication that was refused may be one that was accepted before: then it is answered as it was.
    async fn published_before(
        &self,
        context: &Context,
        accepted: Accepted,
        refused: Box<Refused>,
    ) -> Result<(), Status> {
        let is_taken = refused.refusal.is_of_taken_id();
        let Some(row) = self.stored(context, accepted.id, is_taken).await else {
            return Err(match is_taken {
                true => Status::already_exists(
                    "task_id: another task has this id, or had it; ids are unique for ever",
                ),
                false => status::of_members(&*self.clock, Error::Refused(refused), member),
            });
        };
        if !is_same(&row, accepted.task()) {
            return Err(Status::already_exists(
                "task_id: this requester has published another task with this id; ids are unique for ever",
            ));
        }
        // It was created, and the server stopped before the next step.
        if !is_waiting(&row) || !(accepted.is_late || accepted.is_below) {
            return Ok(());
        }
        match self.go_on(context, &accepted).await {
            Ok(()) => Ok(()),
            Err(Error::Refused(_)) => match self.stored(context, accepted.id, false).await {
                Some(row) if is_waiting(&row) => Err(Status::unavailable(
                    "metadata.dependencies: the task is stored and not started, because a dependency is in another active run; publish the task again when that run has ended",
                )),
                // Somebody else was faster.
                Some(_) => Ok(()),
                None => Err(Status::unavailable(
                    "the task is stored, but it is not known whether it was started; publish it again",
                )),
            },
            Err(error) => Err(status::of(&*self.clock, error)),
        }
    }

    /// The task with an id. One that `is_taken` may still be on its way to the disk, or nobody's whom the caller sees.
    async fn stored(&self, context: &Context, id: TaskId, is_taken: bool) -> Option<Arc<TaskRow>> {
        for pause_ms in LOOK_AFTER_MS {
            match self.service.published_task(context, id).await {
                Ok(Some(view)) => return Some(view.row),
                Ok(None) | Err(_) if is_taken => sleep(Duration::from_millis(pause_ms)).await,
                Ok(None) | Err(_) => return None,
            }
        }
        None
    }

    async fn accepted(&self, context: &Context, message: TaskMessage) -> Result<Accepted, Status> {
        let method = named(&message)?;
        let publishing = ("requester_agent_id", UseCase::ExecuteTasks);
        self.speaks_for(context, &message.requester_agent_id, publishing)?;
        let has_deadline = message.deadline.is_some();
        let ids = self.service.published_ids(context).await;
        let ids = ids.map_err(|error| status::of(&*self.clock, error))?;
        let id_of = |requester: &str, text: &str| ids.id(requester, text);
        let mut accepted = mapped(id_of, self.clock.now(), method, message)?;
        // `published_before` does not compare it, so that another setting changes no answer.
        if !has_deadline && let Some(ttl) = self.ttl {
            accepted.tasks[0]["params"]["schedule_to_start_seconds"] = Value::from(ttl.as_secs());
        }
        Ok(accepted)
    }
}

/// The task that a message becomes, as `tasks.create` takes it, published by nobody in particular at `now`.
///
/// # Errors
/// `INVALID_ARGUMENT`, with what is wrong.
pub(super) fn task_of(now: Timestamp, message: TaskMessage) -> Result<Value, Status> {
    let method = named(&message)?;
    let ids = PublishedIds::of(Arc::from([0; KEY_BYTES]), Arc::from("anonymous"));
    let id_of = |requester: &str, text: &str| ids.id(requester, text);
    mapped(id_of, now, method, message).map(|mut accepted| accepted.tasks[0].take())
}

/// Checks what names a task and the agents; its method.
fn named(message: &TaskMessage) -> Result<String, Status> {
    for (text, empty) in [
        (&message.task_id, "task_id cannot be empty"),
        (&message.task_type, "task_type cannot be empty"),
        (
            &message.requester_agent_id,
            "requester_agent_id cannot be empty",
        ),
    ] {
        if text.is_empty() {
            return Err(Status::invalid_argument(empty));
        }
    }
    name_of(&message.task_id, "task_id", ID_CHARS_MAX)?;
    let bytes = message.task_id.len();
    if bytes > ID_BYTES_MAX {
        let reason = format!("{bytes} bytes of UTF-8; at most {ID_BYTES_MAX} are accepted");
        return Err(invalid("task_id", reason));
    }
    name_of(&message.task_type, "task_type", NAME_CHARS_MAX)?;
    name_of(
        &message.requester_agent_id,
        "requester_agent_id",
        KEY_CHARS_MAX,
    )?;
    name_of(
        &message.responder_agent_id,
        "responder_agent_id",
        KEY_CHARS_MAX,
    )?;
    if !patterns::is_type(&message.task_type) {
        return Err(invalid(
            "task_type",
            "`@` and `*` are not accepted: `@` separates a type from the agent that a task is addressed to, and `*` \
             belongs to subscriptions",
        ));
    }
    let method = patterns::method(&message.task_type, &message.responder_agent_id);
    name_of(&method, "responder_agent_id", NAME_CHARS_MAX)?;
    Ok(method)
}

/// `id_of` gives the id of the task that a requester calls so.
fn mapped(
    id_of: impl Fn(&str, &str) -> TaskId,
    now: Timestamp,
    method: String,
    message: TaskMessage,
) -> Result<Accepted, Status> {
    let created_at = message.created_at;
    let created_at =
        created_at.ok_or_else(|| Status::invalid_argument("created_at cannot be empty"))?;
    let priority = priority_of(message.priority)?;
    let has_parameters = message.parameters.is_some();
    let inputs = json_of(message.parameters.unwrap_or_default(), "parameters")?;
    let metadata = message
        .metadata
        .map(|it| json_of(it, "metadata"))
        .transpose()?;
    let id = id_of(&message.requester_agent_id, &message.task_id);
    let published = Published {
        task_id: message.task_id,
        requester: message.requester_agent_id,
        created_at: kept_time(created_at, "created_at")?,
        deadline: message
            .deadline
            .map(|it| kept_time(it, "deadline"))
            .transpose()?,
        priority: message.priority,
        metadata,
        has_parameters,
    };
    let mut task = json!({
        "id": id,
        "name": message.task_type,
        "priority": priority,
        "inputs": inputs,
        "schemas": {"type": "remote", "method": method},
        "params": {(MEMBER): published},
    });
    let deadline = message.deadline.map(|it| time_of(it, "deadline"));
    let deadline = deadline.transpose()?;
    if let Some(at) = deadline {
        let at = at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        task["params"][DEADLINE] = Value::from(at);
    }
    let called = |text: &str| id_of(&published.requester, text).to_string();
    let is_below = placed(&mut task, published.metadata.as_ref(), called)?;
    let mut accepted = Accepted {
        id,
        tasks: Value::Array(vec![task]),
        deadline: deadline.map(|at| at.timestamp_micros()),
        is_late: false,
        is_below,
    };
    let _ = accepted.becomes_late(now);
    Ok(accepted)
}

/// Takes over what `metadata` says of the place of a task; `called` gives the id of what the requester calls so.
/// Returns whether it belongs to a flow that is there.
fn placed(
    task: &mut Value,
    metadata: Option<&Map<String, Value>>,
    called: impl Fn(&str) -> String,
) -> Result<bool, Status> {
    let Some(metadata) = metadata else {
        return Ok(false);
    };
    let text = |name: &str| match metadata.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(invalid(&format!("metadata.{name}"), "not a string")),
    };
    if let Some(user) = text(USER)? {
        task["user_id"] = Value::from(user);
    }
    let parent = text(PARENT)?;
    let is_below = parent.is_some();
    if let Some(parent) = parent {
        task["parent_id"] = Value::from(called(&parent));
    }
    match metadata.get(DEPENDENCIES) {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) => {
            let one = |id: &Value| match id {
                Value::String(id) => Ok(json!({"id": called(id)})),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => Err(invalid(
                    "metadata.dependencies",
                    "not a list of ids of tasks",
                )),
            };
            let list: Vec<Value> = list.iter().map(one).collect::<Result<_, _>>()?;
            if !list.is_empty() && !is_below {
                return Err(invalid(
                    "metadata.parent_id",
                    "missing; a task with `metadata.dependencies` names the task that it is below, \
                     as those do on which it depends",
                ));
            }
            task["dependencies"] = Value::from(list);
        }
        Some(_) => {
            return Err(invalid(
                "metadata.dependencies",
                "not a list of ids of tasks",
            ));
        }
    }
    Ok(is_below)
}

/// The member of a message from which a member of the task was made.
fn member<'a>(field: &'a str, within: &str) -> status::Called<'a> {
    if field == MEMBER {
        // Only methods of the server have a list of what may stand in `params`.
        return status::Called::Fault(OF_THE_SERVER);
    }
    status::Called::Name(match within {
        "id" => "task_id",
        "name" | "schemas" => "task_type",
        "inputs" => "parameters",
        "params" if field == "deadline" => "deadline",
        "params" => "metadata",
        "user_id" => "metadata.user_id",
        "parent_id" => "metadata.parent_id",
        "dependencies" => "metadata.dependencies",
        _ => field,
    })
}

/// Whether a task has not begun and no run will begin it.
fn is_waiting(row: &TaskRow) -> bool {
    row.status == TaskStatus::Pending && row.run_id.is_none()
}

fn execute(target: Target) -> Execute {
    Execute {
        target,
        allow_unknown_executors: true,
        executor_wait_ms: EXECUTOR_WAIT_MS_DEFAULT,
        include: Include::Needed,
        // The claim of the id tells; a publication is refused for one reason at a time.
        id_check: IdCheck::Stored,
        callback: None,
    }
}

/// Whether a stored task was published by an equal message: type, parameters, requester, responder, deadline and
/// priority, but not `created_at` and `metadata`, which publishers make anew when they repeat themselves.
fn is_same(row: &TaskRow, task: &Value) -> bool {
    let of = Published::of(row);
    let new = &task["params"][MEMBER];
    let Some(of) = of else { return false };
    let text = |name: &str| new[name].as_str();
    Some(of.task_id.as_str()) == text("task_id")
        && Some(of.requester.as_str()) == text("requester")
        && of.deadline.as_deref() == text("deadline")
        && priority_of(of.priority).ok()
            == task["priority"]
                .as_u64()
                .and_then(|it| u8::try_from(it).ok())
        && row.method.as_deref() == task["schemas"]["method"].as_str()
        && Value::Object(row.inputs.to_map()) == task["inputs"]
}
