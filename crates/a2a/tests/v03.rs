//! The forms of 0.3: requests become those of 1.0, answers are written from the same objects.

use prost_types::value::Kind;
use serde_json::{Map, Value, json};
use taskledger_a2a::event::TaskStatusUpdateEvent;
use taskledger_a2a::operation::{Answer, Call};
use taskledger_a2a::v03::grpc::{self, Old, pb};
use taskledger_a2a::v03::{self, Answering, ConvertedCall, Form};
use taskledger_a2a::{
    Artifact, Content, ErrorKind, Message, Operation, Part, Role, SendMessageResponse,
    StreamResponse, Task, TaskState, TaskStatus,
};

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else {
        panic!("{value} is no object");
    };
    map
}

fn parts(call: Call) -> Vec<Part> {
    let Call::SendMessage(request) = call else {
        panic!("{call:?} sends nothing");
    };
    request.message.parts
}

#[test]
fn parts_of_each_kind_are_those_of_1_0_and_back() {
    for (old, content) in [
        (
            json!({"kind": "text", "text": ""}),
            Content::Text(String::new()),
        ),
        (
            json!({"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "a"}}),
            Content::Raw(b"hi".to_vec()),
        ),
        (
            json!({"kind": "file", "file": {"uri": "https://a", "mimeType": "text/plain"}}),
            Content::Url("https://a".to_owned()),
        ),
        (
            json!({"kind": "data", "data": {"n": 1}}),
            Content::Data(json!({"n": 1})),
        ),
        (
            json!({"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": true}}),
            Content::Data(json!([1])),
        ),
    ] {
        let message = json!({"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [old]}});
        let asked = ConvertedCall::of_method("message/send", map(message)).expect("a method");
        let read = parts(asked.read().expect("a request"));
        assert_eq!(read[0].content, content, "{old}");
        let message = Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts: read,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        };
        let written = v03::answer::message(&message, Form::Kinds);
        let mut expected = old.clone();
        if expected.get("metadata").is_none() && written["parts"][0].get("metadata").is_some() {
            expected["metadata"] = json!({});
        }
        assert_eq!(written["parts"][0], expected);
        assert_eq!(
            (&written["kind"], &written["role"]),
            (&json!("message"), &json!("user"))
        );

        // The older .proto carries the same.
        let proto = Value::Object(v03::answer::message(&message, Form::Proto));
        assert!(proto.get("kind").is_none(), "{proto}");
        let asked = ConvertedCall::new(
            Operation::SendMessage,
            map(json!({"message": proto})),
            Form::Proto,
        );
        assert_eq!(
            parts(asked.read().expect("a request"))[0].content,
            content,
            "{proto}"
        );
    }
}

#[test]
fn a_request_waits_unless_it_says_that_it_does_not() {
    // In the form of the .proto, false and unset are the same.
    for (configuration, waits, of_proto) in [
        (json!(null), true, false),
        (json!({}), true, false),
        (json!({"blocking": false}), false, false),
        (json!({"blocking": true}), true, true),
    ] {
        let request = json!({"configuration": configuration, "message": {"messageId": "m", "role": "user",
            "parts": [{"kind": "text", "text": "x"}]}});
        let asked = ConvertedCall::of_method("message/send", map(request)).expect("a method");
        let call = asked.read().expect("a request");
        assert_eq!(call.waits(), waits, "{configuration}");
        let request = json!({"configuration": configuration, "message": {"messageId": "m", "role": "ROLE_USER",
            "content": [{"text": "x"}]}});
        let asked = ConvertedCall::new(Operation::SendMessage, map(request), Form::Proto);
        let call = asked.read().expect("a request");
        assert_eq!(call.waits(), of_proto, "{configuration}");
    }
}

#[test]
fn an_authentication_that_is_no_object_is_refused() {
    for given in [json!("Bearer"), json!(["Bearer"]), json!(true), json!(7)] {
        let config = json!({"url": "https://h", "authentication": given});
        let set = json!({"taskId": "t", "pushNotificationConfig": config});
        let sent = json!({"configuration": {"pushNotificationConfig": config}, "message": {"messageId": "m",
            "role": "user", "parts": [{"kind": "text", "text": "x"}]}});
        for (method, params, field) in [
            (
                "tasks/pushNotificationConfig/set",
                set,
                "pushNotificationConfig.authentication",
            ),
            (
                "message/send",
                sent,
                "configuration.pushNotificationConfig.authentication",
            ),
        ] {
            let asked = ConvertedCall::of_method(method, map(params)).expect("a method");
            let faults = asked.read().expect_err("no object");
            let fields: Vec<&str> = faults.listed.iter().map(|it| &*it.field).collect();
            assert_eq!(fields, [field], "{given}");
            let reason = &faults.listed[0].description;
            assert!(reason.contains("an object"), "{reason}");
        }
    }
}

fn task(state: TaskState) -> Task {
    Task {
        id: "t".to_owned(),
        context_id: Some("c".to_owned()),
        status: TaskStatus {
            state,
            message: None,
            timestamp: None,
        },
        artifacts: vec![Artifact {
            artifact_id: "a".to_owned(),
            name: None,
            description: None,
            parts: vec![Part::data(json!([1]))],
            metadata: None,
            extensions: Vec::new(),
        }],
        history: Vec::new(),
        metadata: None,
    }
}

#[test]
fn every_state_has_its_name_in_either_form_and_its_number_in_grpc() {
    for (state, name, number) in [
        (TaskState::Submitted, "submitted", pb::TaskState::Submitted),
        (TaskState::Working, "working", pb::TaskState::Working),
        (TaskState::Completed, "completed", pb::TaskState::Completed),
        (TaskState::Failed, "failed", pb::TaskState::Failed),
        (TaskState::Canceled, "canceled", pb::TaskState::Cancelled),
        (
            TaskState::InputRequired,
            "input-required",
            pb::TaskState::InputRequired,
        ),
        (TaskState::Rejected, "rejected", pb::TaskState::Rejected),
        (
            TaskState::AuthRequired,
            "auth-required",
            pb::TaskState::AuthRequired,
        ),
    ] {
        let task = task(state);
        let kinds = v03::answer::task(&task, Form::Kinds);
        assert_eq!(kinds["status"]["state"], name);
        let proto = v03::answer::task(&task, Form::Proto);
        assert_eq!(proto["status"]["state"], number.as_str_name());
        let message = grpc::task(task);
        assert_eq!(message.status.expect("a status").state, i32::from(number));
        let part = message.artifacts[0].parts[0].clone();
        let metadata = part.metadata.expect("it is marked");
        assert_eq!(
            metadata.fields["data_part_compat"].kind,
            Some(Kind::BoolValue(true))
        );
    }
}

#[test]
fn the_last_status_of_a_stream_says_that_it_is() {
    for (operation, state, is_final) in [
        (Operation::SendStreamingMessage, TaskState::Working, false),
        (
            Operation::SendStreamingMessage,
            TaskState::InputRequired,
            true,
        ),
        (
            Operation::SendStreamingMessage,
            TaskState::AuthRequired,
            false,
        ),
        (Operation::SendStreamingMessage, TaskState::Rejected, true),
        (Operation::SubscribeToTask, TaskState::InputRequired, false),
        (Operation::SubscribeToTask, TaskState::Completed, true),
    ] {
        let item = StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: "t".to_owned(),
            context_id: "c".to_owned(),
            status: task(state).status,
            metadata: None,
        });
        let answering = Answering::new(operation, Form::Kinds);
        let written = answering.item(&item);
        assert_eq!(written["kind"], "status-update");
        assert_eq!(written["final"], is_final, "{operation:?} {state:?}");
    }
}

#[test]
fn answers_of_json_rpc_are_bare_and_those_of_the_proto_are_not() {
    let sent = Answer::Sent(SendMessageResponse::Task(task(TaskState::Working)));
    let of = |form| {
        Answering::new(Operation::SendMessage, form)
            .answer(&sent)
            .expect("an answer")
    };
    assert_eq!(of(Form::Kinds)["id"], "t");
    assert_eq!(of(Form::Proto)["task"]["id"], "t");
    let deleted = |form| {
        let answering = Answering::new(Operation::DeleteTaskPushNotificationConfig, form);
        answering.answer(&Answer::Deleted).expect("an answer")
    };
    assert_eq!(
        (deleted(Form::Kinds), deleted(Form::Proto)),
        (json!(null), json!({}))
    );
}

#[test]
fn names_of_grpc_have_their_form() {
    let get = |name: &str| {
        let request = pb::GetTaskRequest {
            name: name.to_owned(),
            history_length: 0,
        };
        request.asked(Operation::GetTask).read()
    };
    let read = get("tasks/t").expect("a name");
    let Call::GetTask(request) = read else {
        panic!("{read:?}");
    };
    assert_eq!((&*request.id, request.history_length), ("t", None));
    for bad in ["", "t", "tasks/", "tasks/t/more", "jobs/t"] {
        let faults = get(bad).expect_err("no name");
        assert_eq!(faults.listed[0].field, "name", "{bad}");
        assert_eq!(faults.listed.len(), 1, "{bad}");
    }
}

#[test]
fn a_version_is_absent_or_0_3() {
    for good in [None, Some(""), Some("0.3"), Some(" 0.3.0 "), Some("0.3.17")] {
        assert_eq!(v03::served(good), Ok(()), "{good:?}");
    }
    for bad in ["0.2", "0.30", "0.3.", "0.3.x", "1.0", "1"] {
        let refused = v03::served(Some(bad)).expect_err("not served");
        assert_eq!(refused.kind, ErrorKind::VersionNotSupported, "{bad}");
    }
}
