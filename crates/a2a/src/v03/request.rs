//! Converts requests of 0.3 to the members of the same request in 1.0.
//!
//! What cannot be said anew is passed on as it is, so that the reader of requests notes its fault; what only 0.3 has is
//! checked here.

use super::answer::Answering;
use super::{Form, operation};
use crate::operation::{Call, Given, Operation};
use crate::read::{Fault, Faults, snake_of};
use serde_json::{Map, Value};

/// Configurations of a task that 0.3 lists at once: as many as a task can have.
const CONFIGS: i32 = 100;
/// Marks data that is no object, which 0.3 cannot say: it stands in a member `value`.
pub(super) const WRAPPED: &str = "data_part_compat";
/// The member of data that is no object.
pub(super) const VALUE: &str = "value";

/// A request of 0.3 in terms of 1.0.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedCall {
    /// The operation of version 1.0 that the request stands for.
    pub operation: Operation,
    /// The members that 1.0 has for it.
    pub given: Given,
    /// How it is answered.
    pub answering: Answering,
}

impl ConvertedCall {
    /// A call of JSON-RPC; `None`: there is no such method.
    #[must_use]
    pub fn of_method(method: &str, params: Map<String, Value>) -> Option<Self> {
        Some(Self::new(operation(method)?, params, Form::Kinds))
    }

    /// A request in one of the forms.
    #[must_use]
    pub fn new(operation: Operation, mut old: Map<String, Value>, form: Form) -> Self {
        let mut faults = Faults::default();
        let mut answering = Answering::new(operation, form);
        let mut operation = operation;
        let members = match operation {
            Operation::SendMessage | Operation::SendStreamingMessage => {
                sent(old, form, &mut faults)
            }
            Operation::CreateTaskPushNotificationConfig => configured(old, &mut faults),
            Operation::GetTaskPushNotificationConfig => {
                let config = taken(&mut old, "pushNotificationConfigId");
                let mut members = of_task(&mut old);
                match config {
                    Some(config) => {
                        members.insert("id".to_owned(), config);
                    }
                    // Then the first of them is meant.
                    None => {
                        operation = Operation::ListTaskPushNotificationConfigs;
                        answering = Answering {
                            is_first: true,
                            ..answering
                        };
                        members.insert("pageSize".to_owned(), 1.into());
                    }
                }
                members
            }
            Operation::DeleteTaskPushNotificationConfig => {
                let config = taken(&mut old, "pushNotificationConfigId");
                let mut members = of_task(&mut old);
                members.extend(config.map(|it| ("id".to_owned(), it)));
                members
            }
            Operation::ListTaskPushNotificationConfigs => {
                let mut members = of_task(&mut old);
                members.insert("pageSize".to_owned(), CONFIGS.into());
                members
            }
            Operation::GetTask
            | Operation::ListTasks
            | Operation::CancelTask
            | Operation::SubscribeToTask
            | Operation::GetExtendedAgentCard => {
                // Tenants came later.
                old.remove("tenant");
                old
            }
        };
        Self {
            operation,
            given: Given { members, faults },
            answering,
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// All faults, with the paths that 0.3 has.
    pub fn read(self) -> Result<Call, Faults> {
        let (operation, is_first) = (self.operation, self.answering.is_first);
        operation.read(self.given).map_err(|mut faults| {
            for fault in &mut faults.listed {
                fault.field = field(operation, is_first, &fault.field);
            }
            faults
        })
    }
}

/// The path of a member as 0.3 has it.
fn field(operation: Operation, is_first: bool, path: &str) -> String {
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            path.replacen("taskPushNotificationConfig", "pushNotificationConfig", 1)
        }
        Operation::CreateTaskPushNotificationConfig if path != "taskId" => {
            format!("pushNotificationConfig.{path}")
        }
        Operation::GetTaskPushNotificationConfig
        | Operation::DeleteTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs => match path {
            "taskId" => "id".to_owned(),
            "id" if !is_first => "pushNotificationConfigId".to_owned(),
            other => other.to_owned(),
        },
        Operation::CreateTaskPushNotificationConfig
        | Operation::GetTask
        | Operation::ListTasks
        | Operation::CancelTask
        | Operation::SubscribeToTask
        | Operation::GetExtendedAgentCard => path.to_owned(),
    }
}

/// A member that is not unset, in either spelling.
fn taken(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    let camel = members.remove(name).filter(|it| !it.is_null());
    let snake = members.remove(&snake_of(name)).filter(|it| !it.is_null());
    camel.or(snake)
}

fn object(value: Value) -> Option<Map<String, Value>> {
    let Value::Object(members) = value else {
        return None;
    };
    Some(members)
}

/// The task, which is called `id` where 1.0 calls it `taskId`.
fn of_task(old: &mut Map<String, Value>) -> Map<String, Value> {
    let id = taken(old, "id");
    id.map(|it| ("taskId".to_owned(), it)).into_iter().collect()
}

fn sent(mut old: Map<String, Value>, form: Form, faults: &mut Faults) -> Map<String, Value> {
    let mut members = Map::new();
    let said = taken(&mut old, "message");
    let said = said.or_else(|| match form {
        Form::Kinds => None,
        // As the .proto names it.
        Form::Proto => taken(&mut old, "request"),
    });
    if let Some(said) = said {
        members.insert("message".to_owned(), message(said, form, faults));
    }
    let configuration = taken(&mut old, "configuration").unwrap_or(Value::Object(Map::new()));
    members.insert(
        "configuration".to_owned(),
        configuration_of(configuration, form, faults),
    );
    members.extend(taken(&mut old, "metadata").map(|it| ("metadata".to_owned(), it)));
    members
}

fn configuration_of(given: Value, form: Form, faults: &mut Faults) -> Value {
    let Value::Object(mut members) = given else {
        return given;
    };
    let is_now = match taken(&mut members, "blocking") {
        // Servers of 0.3 wait unless `blocking` is false. The .proto cannot tell false from unset.
        None => form == Form::Proto,
        Some(Value::Bool(waits)) => !waits,
        Some(
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
        ) => {
            let path = "configuration.blocking";
            faults.note(Fault::new(path, "true or false is required"));
            false
        }
    };
    members.insert("returnImmediately".to_owned(), is_now.into());
    let config = taken(&mut members, "pushNotificationConfig");
    let config = config.or_else(|| taken(&mut members, "pushNotification"));
    if let Some(config) = config {
        let path = "configuration.pushNotificationConfig";
        members.insert(
            "taskPushNotificationConfig".to_owned(),
            push(config, path, faults),
        );
    }
    Value::Object(members)
}

/// A configuration together with its task: `{taskId, pushNotificationConfig}`.
fn configured(mut old: Map<String, Value>, faults: &mut Faults) -> Map<String, Value> {
    let task = taken(&mut old, "taskId");
    let path = "pushNotificationConfig";
    let config = taken(&mut old, path).map(|it| push(it, path, faults));
    let mut members = match config.and_then(object) {
        Some(members) => members,
        None => {
            faults.note(Fault::new(path, "missing; an object is required"));
            // Its members are not missed as well.
            Map::from_iter([("url".to_owned(), Value::from("-"))])
        }
    };
    members.remove("taskId");
    members.extend(task.map(|it| ("taskId".to_owned(), it)));
    members
}

/// A configuration without its task. Of several schemes the first is taken.
fn push(given: Value, path: &str, faults: &mut Faults) -> Value {
    let Value::Object(mut config) = given else {
        return given;
    };
    let given = taken(&mut config, "authentication");
    if let Some(Value::Object(mut authentication)) = given {
        let schemes = taken(&mut authentication, "schemes");
        let first = schemes.as_ref().and_then(|it| it.get(0)).cloned();
        match first {
            Some(first) => {
                authentication.insert("scheme".to_owned(), first);
            }
            None => {
                let path = format!("{path}.authentication.schemes");
                let reason = "an array of one scheme at least is required, such as `Bearer`";
                faults.note(Fault::new(path, reason));
                authentication.insert("scheme".to_owned(), "-".into());
            }
        }
        config.insert("authentication".to_owned(), authentication.into());
    } else if let Some(other) = given {
        config.insert("authentication".to_owned(), other);
    }
    Value::Object(config)
}

fn message(given: Value, form: Form, faults: &mut Faults) -> Value {
    let Value::Object(mut members) = given else {
        return given;
    };
    if let Some(kind) = taken(&mut members, "kind").filter(|it| it != "message") {
        let reason = format!("{kind} is given, `message` is required");
        faults.note(Fault::new("message.kind", reason));
    }
    let role = taken(&mut members, "role").map(|role| match role.as_str() {
        Some("user") => "ROLE_USER".into(),
        Some("agent") => "ROLE_AGENT".into(),
        Some(_) | None => role,
    });
    members.extend(role.map(|it| ("role".to_owned(), it)));
    let content = match form {
        Form::Kinds => None,
        Form::Proto => taken(&mut members, "content"),
    };
    if let Some(parts) = content.or_else(|| taken(&mut members, "parts")) {
        let parts = match parts {
            Value::Array(list) => {
                let parts = list.into_iter().enumerate();
                let parts =
                    parts.map(|(i, it)| part(it, form, &format!("message.parts[{i}]"), faults));
                parts.collect()
            }
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => other,
        };
        members.insert("parts".to_owned(), parts);
    }
    Value::Object(members)
}

fn part(given: Value, form: Form, path: &str, faults: &mut Faults) -> Value {
    let Value::Object(mut old) = given else {
        return given;
    };
    let kind = taken(&mut old, "kind");
    let mut metadata = taken(&mut old, "metadata");
    let mut new = Map::new();
    let mut missing = |member: &str, what: &str, new: &mut Map<String, Value>| {
        let reason = format!("missing; {what} is required");
        faults.note(Fault::new(format!("{path}.{member}"), reason));
        // The part is at fault for this alone.
        new.insert("text".to_owned(), "".into());
    };
    match (kind.as_ref().map(Value::as_str), form) {
        (Some(Some("text")), _) => match taken(&mut old, "text") {
            Some(text) => {
                new.insert("text".to_owned(), text);
            }
            None => missing("text", "a string", &mut new),
        },
        (Some(Some("file")), _) => match taken(&mut old, "file").and_then(object) {
            Some(file) => new = file_of(file),
            None => missing("file", "an object with `uri` or `bytes`", &mut new),
        },
        (Some(Some("data")), _) => match taken(&mut old, "data").and_then(object) {
            Some(data) => {
                new.insert("data".to_owned(), unwrapped(data, &mut metadata));
            }
            None => missing("data", "an object", &mut new),
        },
        (None, Form::Proto) => {
            match taken(&mut old, "file") {
                Some(Value::Object(file)) => new = file_of(file),
                Some(other) => {
                    new.insert("url".to_owned(), other);
                }
                None => {}
            }
            new.extend(taken(&mut old, "text").map(|it| ("text".to_owned(), it)));
            match taken(&mut old, "data") {
                Some(Value::Object(mut wrapper)) => match wrapper.remove("data") {
                    Some(Value::Object(data)) => {
                        new.insert("data".to_owned(), unwrapped(data, &mut metadata));
                    }
                    Some(_) | None => missing("data.data", "an object", &mut new),
                },
                Some(_) => missing("data.data", "an object", &mut new),
                None => {}
            }
        }
        (Some(_), _) | (None, Form::Kinds) => {
            missing("kind", "one of `text`, `file` and `data`", &mut new);
        }
    }
    new.extend(metadata.map(|it| ("metadata".to_owned(), it)));
    Value::Object(new)
}

fn file_of(mut file: Map<String, Value>) -> Map<String, Value> {
    let mut new = Map::new();
    for (old, name) in [
        ("uri", "url"),
        ("fileWithUri", "url"),
        ("bytes", "raw"),
        ("fileWithBytes", "raw"),
        ("mimeType", "mediaType"),
        ("name", "filename"),
    ] {
        new.extend(taken(&mut file, old).map(|it| (name.to_owned(), it)));
    }
    new
}

/// Data as it was before it was wrapped.
fn unwrapped(mut data: Map<String, Value>, metadata: &mut Option<Value>) -> Value {
    let free = metadata.as_mut().and_then(Value::as_object_mut);
    let is_wrapped = free.is_some_and(|it| it.remove(WRAPPED) == Some(Value::Bool(true)));
    match is_wrapped.then(|| data.remove(VALUE)).flatten() {
        Some(value) => value,
        None => Value::Object(data),
    }
}
