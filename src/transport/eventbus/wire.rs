//! Limits of the wire format: how deep values may nest and how large a message may be, and the answer to bytes that are
//! no message.

use prost_types::value::Kind;
use prost_types::{Struct, Value};
use taskledger_eventbus::{
    Message, PublishTaskProgressRequest, PublishTaskRequest, PublishTaskResultRequest,
    SubscribeToTaskResultsRequest, SubscribeToTasksRequest, TaskMessage, TaskResult,
};
use tonic::Status;

/// Messages within each other, below the outermost one, that decoders of Protocol Buffers read.
const NESTED_MAX: usize = 100;
/// Bytes of a message that clients accept unless they are told otherwise.
pub(super) const CLIENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What is said of values beyond [`NESTED_MAX`].
const TOO_DEEP: &str =
    "values are nested too deeply; at most 32 objects or 48 lists within each other are accepted";

/// Why an agent that accepts so many bytes could not read a task.
pub(super) fn unreadable(task: &TaskMessage, bytes_max: usize) -> Option<String> {
    let structs = [
        ("parameters", &task.parameters),
        ("metadata", &task.metadata),
    ];
    too_much(task, structs, bytes_max)
}

/// A result that a requester who accepts so many bytes can read: of one that it cannot, the requester gets the status,
/// and why.
pub(super) fn readable(mut result: TaskResult, bytes_max: usize) -> TaskResult {
    let structs = [
        ("result", &result.result),
        ("execution_metadata", &result.execution_metadata),
    ];
    let Some(reason) = too_much(&result, structs, bytes_max) else {
        return result;
    };
    result.result = None;
    result.execution_metadata = None;
    if result.error_message.is_empty() {
        result.error_message = format!("{reason}; tasks.get of JSON-RPC shows it");
    }
    result
}

fn too_much(
    message: &impl Message,
    structs: [(&str, &Option<Struct>); 2],
    bytes_max: usize,
) -> Option<String> {
    for (field, given) in structs {
        if given.as_ref().is_some_and(|it| levels(it) > NESTED_MAX) {
            return Some(format!("{field}: {TOO_DEEP}"));
        }
    }
    let bytes = message.encoded_len();
    (bytes > bytes_max).then(|| {
        let (field, _) = structs[0];
        format!("{field}: the message has {bytes} bytes; at most {bytes_max} are accepted")
    })
}

/// How many messages lie within each other in a struct, itself included. Cost: O(size).
fn levels(given: &Struct) -> usize {
    let fields = given.fields.values().map(|it| 1 + levels_of(it));
    1 + fields.max().unwrap_or(0)
}

fn levels_of(value: &Value) -> usize {
    1 + match &value.kind {
        Some(Kind::StructValue(it)) => levels(it),
        Some(Kind::ListValue(it)) => 1 + it.values.iter().map(levels_of).max().unwrap_or(0),
        Some(
            Kind::NullValue(_) | Kind::NumberValue(_) | Kind::StringValue(_) | Kind::BoolValue(_),
        )
        | None => 0,
    }
}

/// The calls of the EventBus, as its `.proto` names them.
pub(crate) const CALLS: [&str; 6] = [
    "PublishTask",
    "PublishTaskResult",
    "PublishTaskProgress",
    "SubscribeToTasks",
    "SubscribeToTaskResults",
    "SubscribeToTaskProgress",
];

/// The answer to the body of a call that holds no message of this call; `None`: it does, or is no body of one message.
/// Cost: O(body).
pub(crate) fn undecodable(call: &str, body: &[u8]) -> Option<Status> {
    // Whether it is compressed, and four bytes of length.
    let [0, _, _, _, _, message @ ..] = body else {
        return None;
    };
    let error = match call {
        "PublishTask" => PublishTaskRequest::decode(message).err(),
        "PublishTaskResult" => PublishTaskResultRequest::decode(message).err(),
        "PublishTaskProgress" => PublishTaskProgressRequest::decode(message).err(),
        "SubscribeToTasks" => SubscribeToTasksRequest::decode(message).err(),
        "SubscribeToTaskResults" | "SubscribeToTaskProgress" => {
            SubscribeToTaskResultsRequest::decode(message).err()
        }
        _ => None,
    };
    // `Message.field: ` for each level, the innermost first, behind a title and before the reason.
    let text = error?.to_string();
    let parts: Vec<&str> = text.split(": ").skip(1).collect();
    let members = parts
        .iter()
        .map_while(|part| part.split_once('.').map(|(_, member)| member));
    let mut members: Vec<&str> = members.collect();
    members.reverse();
    // Below `task`, `result` or `progress`, unless that itself is broken.
    let place = members.get(1).or(members.first());
    let place = place.copied().unwrap_or("message");
    let reason = match text.ends_with("recursion limit reached") {
        true => TOO_DEEP,
        false => parts.last().copied().unwrap_or(&*text),
    };
    Some(super::values::invalid(place, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_types::ListValue;

    fn value(kind: Kind) -> Value {
        Value { kind: Some(kind) }
    }

    fn one(kind: Kind) -> Struct {
        Struct {
            fields: [("k".to_owned(), value(kind))].into(),
        }
    }

    fn objects(depth: usize) -> Struct {
        (1..depth).fold(one(Kind::BoolValue(true)), |inner, _| {
            one(Kind::StructValue(inner))
        })
    }

    fn lists(depth: usize) -> Struct {
        let list = |inner| {
            let values = vec![value(inner)];
            Kind::ListValue(ListValue { values })
        };
        one((0..depth).fold(Kind::BoolValue(true), |inner, _| list(inner)))
    }

    #[test]
    fn what_is_readable_can_be_decoded_and_the_rest_can_not() {
        for given in (30..36).map(objects).chain((46..52).map(lists)) {
            let task = TaskMessage {
                parameters: Some(given),
                ..TaskMessage::default()
            };
            let decoded = TaskMessage::decode(&*task.encode_to_vec());
            let unreadable = unreadable(&task, CLIENT_BYTES_MAX);
            assert_eq!(decoded.is_err(), unreadable.is_some(), "{unreadable:?}");
        }
        let result = TaskResult {
            result: Some(objects(40)),
            ..TaskResult::default()
        };
        let told = readable(result, CLIENT_BYTES_MAX);
        assert!(told.error_message.starts_with("result: "), "{told:?}");
        assert_eq!(told.result, None);
    }

    #[test]
    fn large_messages_are_unreadable() {
        let task = TaskMessage {
            parameters: Some(one(Kind::StringValue("x".repeat(CLIENT_BYTES_MAX)))),
            ..TaskMessage::default()
        };
        let reason = unreadable(&task, CLIENT_BYTES_MAX).expect("it is too large");
        assert!(reason.starts_with("parameters: "), "{reason}");
        assert_eq!(unreadable(&task, 2 * CLIENT_BYTES_MAX), None);
    }

    #[test]
    fn bytes_that_are_no_message_are_refused_with_their_place() {
        let of = |call, message: &[u8]| {
            let body = [&[0, 0, 0, 0, 0][..], message].concat();
            undecodable(call, &body).map(|it| it.message().to_owned())
        };
        let task = TaskMessage {
            parameters: Some(objects(90)),
            ..TaskMessage::default()
        };
        let deep = PublishTaskRequest { task: Some(task) }.encode_to_vec();
        let said = of("PublishTask", &deep).expect("too deep");
        assert!(said.starts_with("parameters: values are nested"), "{said}");
        // `task_id` of `task` is not UTF-8.
        let said = of("PublishTask", b"\x0a\x03\x0a\x01\xff").expect("no UTF-8");
        assert!(said.starts_with("task_id: ") && said.len() < 200, "{said}");
        let said = of("SubscribeToTasks", b"\x0a\x01\xff").expect("no UTF-8");
        assert!(said.starts_with("agent_id: "), "{said}");
        let said = of("PublishTask", b"\xff\xff\xff").expect("no message");
        assert!(said.starts_with("message: "), "{said}");
        assert_eq!(of("PublishTask", b""), None);
    }
}
