//! Objects survive JSON and gRPC, in every spelling of their members; faults are reported with their path.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use taskledger_a2a::event::{TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use taskledger_a2a::grpc::json::Json;
use taskledger_a2a::grpc::to;
use taskledger_a2a::read::snake_of;
use taskledger_a2a::request::{
    AuthenticationInfo, ListTasksRequest, SendMessageConfiguration, SendMessageRequest,
    TaskPushNotificationConfig,
};
use taskledger_a2a::{
    Artifact, Content, Message, Operation, Part, Role, StreamResponse, Task, TaskState, TaskStatus,
    Wire,
};

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß€\\\\\"]{1,12}"
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..3)
}

/// JSON that a `double` keeps.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(|it| Value::from(it.floor() + 0.5)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3)
                .prop_map(|list| Value::Object(list.into_iter().collect())),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Option<Map<String, Value>>> {
    prop::option::of(
        prop::collection::vec((text(), value()), 0..3).prop_map(|list| list.into_iter().collect()),
    )
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        "[a-z]{0,4}".prop_map(Content::Text),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(Content::Raw),
        "[a-z]{0,4}".prop_map(Content::Url),
        value().prop_map(Content::Data),
    ];
    (
        content,
        metadata(),
        prop::option::of(text()),
        prop::option::of(text()),
    )
        .prop_map(|(content, metadata, filename, media_type)| Part {
            content,
            metadata,
            filename,
            media_type,
        })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let parts = prop::collection::vec(part(), 1..3);
    let ids = (text(), prop::option::of(text()), prop::option::of(text()));
    (ids, role, parts, metadata(), texts(), texts()).prop_map(
        |((message_id, context_id, task_id), role, parts, metadata, extensions, references)| {
            Message {
                message_id,
                context_id,
                task_id,
                role,
                parts,
                metadata,
                extensions,
                reference_task_ids: references,
            }
        },
    )
}

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(
        <TaskState as taskledger_a2a::read::Named>::ALL
            .iter()
            .map(|(state, _, _)| *state)
            .collect::<Vec<_>>(),
    )
}

fn status() -> impl Strategy<Value = TaskStatus> {
    let at = prop::option::of(0..4_000_000_000_000_i64);
    (state(), prop::option::of(message()), at).prop_map(|(state, message, at)| TaskStatus {
        state,
        message,
        timestamp: at.and_then(chrono::DateTime::from_timestamp_millis),
    })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    let names = (text(), prop::option::of(text()), prop::option::of(text()));
    let parts = prop::collection::vec(part(), 1..3);
    (names, parts, metadata(), texts()).prop_map(
        |((artifact_id, name, description), parts, metadata, extensions)| Artifact {
            artifact_id,
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

fn task() -> impl Strategy<Value = Task> {
    let artifacts = prop::collection::vec(artifact(), 0..3);
    let history = prop::collection::vec(message(), 0..3);
    (
        text(),
        prop::option::of(text()),
        status(),
        artifacts,
        history,
        metadata(),
    )
        .prop_map(
            |(id, context_id, status, artifacts, history, metadata)| Task {
                id,
                context_id,
                status,
                artifacts,
                history,
                metadata,
            },
        )
}

fn item() -> impl Strategy<Value = StreamResponse> {
    let status = (text(), text(), status(), metadata());
    let artifact = (
        text(),
        text(),
        artifact(),
        any::<(bool, bool)>(),
        metadata(),
    );
    prop_oneof![
        task().prop_map(StreamResponse::Task),
        message().prop_map(StreamResponse::Message),
        status.prop_map(|(task_id, context_id, status, metadata)| {
            StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                task_id,
                context_id,
                status,
                metadata,
            })
        }),
        artifact.prop_map(
            |(task_id, context_id, artifact, (append, last), metadata)| {
                StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                    task_id,
                    context_id,
                    artifact,
                    append,
                    last_chunk: last,
                    metadata,
                })
            }
        ),
    ]
}

fn push() -> impl Strategy<Value = TaskPushNotificationConfig> {
    let ids = (prop::option::of(text()), prop::option::of(text()));
    let authentication = prop::option::of((text(), prop::option::of(text())));
    (ids, text(), prop::option::of(text()), authentication).prop_map(
        |((id, task_id), url, token, authentication)| TaskPushNotificationConfig {
            tenant: None,
            id,
            task_id,
            url,
            token,
            authentication: authentication.map(|(scheme, credentials)| AuthenticationInfo {
                scheme,
                credentials,
            }),
        },
    )
}

fn request() -> impl Strategy<Value = SendMessageRequest> {
    let configuration = (
        texts(),
        prop::option::of(push()),
        prop::option::of(0..99),
        any::<bool>(),
    );
    (
        prop::option::of(text()),
        message(),
        configuration,
        metadata(),
    )
        .prop_map(|(tenant, message, (modes, push, length, now), metadata)| {
            SendMessageRequest {
                tenant,
                message,
                configuration: SendMessageConfiguration {
                    accepted_output_modes: modes,
                    task_push_notification_config: push,
                    history_length: length,
                    return_immediately: now,
                },
                metadata,
            }
        })
}

/// Members of the protocol in the spelling of the .proto; free members stay as they are.
fn snake(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(name, value)| {
                let is_free = name == "metadata" || name == "data";
                (snake_of(&name), if is_free { value } else { snake(value) })
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(list) => list.into_iter().map(snake).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn items_survive_json_in_both_spellings(item in item()) {
        let written = item.to_json();
        prop_assert_eq!(StreamResponse::from_json(written.clone()), Ok(item.clone()));
        prop_assert_eq!(StreamResponse::from_json(snake(written)), Ok(item));
    }

    #[test]
    fn items_survive_grpc(item in item()) {
        let sent = to::item(item.clone());
        let read = StreamResponse::from_json(Value::Object(sent.members()));
        prop_assert_eq!(read, Ok(item));
    }

    #[test]
    fn requests_survive_json_in_both_spellings(request in request()) {
        let written = request.to_json();
        prop_assert_eq!(SendMessageRequest::from_json(written.clone()), Ok(request.clone()));
        prop_assert_eq!(SendMessageRequest::from_json(snake(written)), Ok(request));
    }

    #[test]
    fn the_two_forms_of_lines_hold_the_item(item in item()) {
        let rpc: Value = serde_json::from_str(&item.to_rpc_line("\"7\"")).expect("JSON");
        prop_assert_eq!(&rpc["id"], "7");
        prop_assert_eq!(&rpc["result"], &item.to_json());
        prop_assert!(!item.to_rpc_line("1").contains('\n'));
        let rest: Value = serde_json::from_str(&item.to_rest_line()).expect("JSON");
        prop_assert_eq!(rest, item.to_json());
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => panic!("{other}"),
    }
}

/// The fields at fault of a request.
fn fields(operation: Operation, request: Value) -> Vec<String> {
    let faults = operation.read(members(request)).expect_err("faults");
    faults.listed.into_iter().map(|it| it.field).collect()
}

#[test]
fn every_fault_is_told_with_its_path() {
    use Operation::*;
    let message =
        |parts: Value| json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}});
    for (operation, request, expected) in [
        (SendMessage, json!({}), vec!["message"]),
        (SendMessage, json!({"message": 1}), vec!["message"]),
        (
            SendMessage,
            json!({"message": {}}),
            vec!["message.messageId", "message.role", "message.parts"],
        ),
        (SendMessage, message(json!([])), vec!["message.parts"]),
        (SendMessage, message(json!([{}])), vec!["message.parts[0]"]),
        (
            SendMessage,
            message(json!([{"text": "a"}, {"text": "a", "data": 1}])),
            vec!["message.parts[1]"],
        ),
        (
            SendMessage,
            message(json!([{"text": 1}])),
            vec!["message.parts[0].text", "message.parts[0]"],
        ),
        (
            SendMessage,
            message(json!([{"raw": "?"}])),
            vec!["message.parts[0].raw", "message.parts[0]"],
        ),
        (
            SendMessage,
            message(json!([{"text": "a", "metadata": []}])),
            vec!["message.parts[0].metadata"],
        ),
        (
            SendMessage,
            json!({"message": {"messageId": "m", "role": "boss", "parts": [{"text": "a"}]}}),
            vec!["message.role"],
        ),
        (
            SendMessage,
            json!({"message": {"messageId": "m", "message_id": "n", "role": 1, "parts": [{"text": "a"}]}}),
            vec!["message.messageId"],
        ),
        (GetTask, json!({}), vec!["id"]),
        (GetTask, json!({"id": ""}), vec!["id"]),
        (GetTask, json!({"id": 7}), vec!["id"]),
        (
            GetTask,
            json!({"id": "a", "historyLength": -1}),
            vec!["historyLength"],
        ),
        (
            GetTask,
            json!({"id": "a", "historyLength": "many"}),
            vec!["historyLength"],
        ),
        (ListTasks, json!({"pageSize": 0}), vec!["pageSize"]),
        (ListTasks, json!({"pageSize": 101}), vec!["pageSize"]),
        (ListTasks, json!({"status": "DONE"}), vec!["status"]),
        (ListTasks, json!({"status": 9}), vec!["status"]),
        (ListTasks, json!({"status": "9"}), vec!["status"]),
        (
            ListTasks,
            json!({"statusTimestampAfter": "yesterday"}),
            vec!["statusTimestampAfter"],
        ),
        (
            ListTasks,
            json!({"statusTimestampAfter": "2026-01-31T12:00:60Z"}),
            vec!["statusTimestampAfter"],
        ),
        (
            ListTasks,
            json!({"statusTimestampAfter": "2026-01-31T12:00:00\u{2212}05:00"}),
            vec!["statusTimestampAfter"],
        ),
        (
            ListTasks,
            json!({"includeArtifacts": "yes"}),
            vec!["includeArtifacts"],
        ),
        (
            CreateTaskPushNotificationConfig,
            json!({"url": "https://a"}),
            vec!["taskId"],
        ),
        (
            CreateTaskPushNotificationConfig,
            json!({"taskId": "t", "authentication": {}}),
            vec!["url", "authentication.scheme"],
        ),
        (
            DeleteTaskPushNotificationConfig,
            json!({"taskId": "t"}),
            vec!["id"],
        ),
    ] {
        let found = {
            let mut found = fields(operation, request.clone());
            found.sort();
            found
        };
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(found, expected, "{operation:?} {request}");
    }
}

#[test]
fn what_may_be_left_out_or_written_otherwise_is_taken() {
    let lenient = json!({
        "message": {
            "message_id": "m", "role": 1, "contextId": null, "taskId": "", "unknown": 1,
            "parts": [{"text": "a", "raw": null, "data": null}, {"data": null}, {"raw": "_-8"}],
        },
        "configuration": {"historyLength": 2.0, "returnImmediately": null},
        "more": {},
    });
    let read = SendMessageRequest::from_json(lenient).expect("taken");
    assert_eq!(read.message.role, Role::User);
    assert_eq!(
        (&read.message.context_id, &read.message.task_id),
        (&None, &None)
    );
    let contents: Vec<_> = read
        .message
        .parts
        .into_iter()
        .map(|it| it.content)
        .collect();
    let expected = [
        Content::Text("a".to_owned()),
        Content::Data(Value::Null),
        Content::Raw(vec![0xff, 0xef]),
    ];
    assert_eq!(contents, expected);
    assert_eq!(read.configuration.history_length, Some(2));
    let list = json!({"status": "TASK_STATE_UNSPECIFIED", "page_size": "7"});
    let list = ListTasksRequest::from_json(list).expect("taken");
    assert_eq!((list.status, list.page_size), (None, Some(7)));
    // By number, also in a text, as queries have it.
    for (status, expected) in [
        (json!(3), Some(TaskState::Completed)),
        (json!("3"), Some(TaskState::Completed)),
        (json!("0"), None),
    ] {
        let list = ListTasksRequest::from_json(json!({ "status": status }));
        assert_eq!(list.map(|it| it.status), Ok(expected));
    }
}

#[test]
fn faults_are_counted_beyond_those_that_are_listed() {
    let parts = vec![json!({}); 100];
    let request = json!({"message": {"messageId": "m", "role": 1, "parts": parts}});
    let faults = SendMessageRequest::from_json(request).expect_err("faults");
    assert_eq!((faults.listed.len(), faults.more), (64, 36));
}
