//! Values that gRPC cannot carry or JSON cannot express: nesting too deep, parts too large, and numbers that are not
//! finite.

use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct};
use serde_json::{Map, Value, json};
use taskledger_a2a::event::TaskStatusUpdateEvent;
use taskledger_a2a::grpc::json::Json;
use taskledger_a2a::grpc::{pb, to};
use taskledger_a2a::request::ListTasksResponse;
use taskledger_a2a::{
    Artifact, Content, Faults, Message, Operation, Part, Role, StreamResponse, Task, TaskState,
    TaskStatus,
};

fn objects(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| json!({ "k": inner }))
}

fn lists(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| json!([inner]))
}

fn free(value: Value) -> Option<Map<String, Value>> {
    Some(Map::from_iter([("k".to_owned(), value)]))
}

fn part(value: &Value) -> Part {
    Part {
        metadata: free(value.clone()),
        media_type: Some("application/json".to_owned()),
        ..Part::data(value.clone())
    }
}

fn status(value: &Value) -> TaskStatus {
    TaskStatus {
        state: TaskState::InputRequired,
        message: Some(Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::Agent,
            parts: vec![part(value)],
            metadata: free(value.clone()),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }),
        timestamp: None,
    }
}

fn task(value: &Value) -> Task {
    let status = status(value);
    Task {
        id: "t".to_owned(),
        context_id: None,
        artifacts: vec![Artifact {
            artifact_id: "a".to_owned(),
            name: None,
            description: None,
            parts: vec![part(value)],
            metadata: free(value.clone()),
            extensions: Vec::new(),
        }],
        history: status.message.iter().cloned().collect(),
        status,
        metadata: free(value.clone()),
    }
}

#[test]
fn answers_with_values_of_any_depth_can_be_decoded() {
    for value in [10, 30, 31, 32, 33, 100]
        .map(objects)
        .into_iter()
        .chain([10, 46, 47, 48, 49, 100].map(lists))
    {
        let page = to::tasks(ListTasksResponse {
            tasks: vec![task(&value)],
            next_page_token: String::new(),
            page_size: 1,
            total_size: 1,
        });
        let decoded = pb::ListTasksResponse::decode(&*page.encode_to_vec());
        assert_eq!(decoded.as_ref(), Ok(&page), "{value}");
        let update = to::item(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: "t".to_owned(),
            context_id: "c".to_owned(),
            status: status(&value),
            metadata: free(value.clone()),
        }));
        let decoded = pb::StreamResponse::decode(&*update.encode_to_vec());
        assert_eq!(decoded, Ok(update), "{value}");
    }
}

#[test]
fn what_is_shown_of_values_depends_on_their_depth_and_not_on_their_kind() {
    for (value, levels) in [
        (objects(31), None),
        (objects(32), Some(97)),
        (lists(47), None),
        (lists(48), Some(97)),
        (objects(100), Some(301)),
    ] {
        let sent = to::part(Part::data(value.clone()));
        match levels {
            None => assert_eq!(Value::Object(sent.members()), json!({ "data": value })),
            Some(levels) => {
                let said = format!(
                    "(data of {levels} levels is left out: clients of gRPC read at most 96; JSON-RPC shows it)"
                );
                assert_eq!(Value::Object(sent.members()), json!({ "text": said }));
            }
        }
    }
    // Of metadata only what is too deep is left out, and the media type is that of the text.
    let mut deep = part(&objects(50));
    let members = Map::from_iter([("a".to_owned(), objects(50)), ("b".to_owned(), json!(1))]);
    deep.metadata = Some(members);
    let sent = to::part(deep).members();
    assert_eq!(sent["metadata"]["b"], 1);
    let said = sent["metadata"]["a"].as_str().expect("a text");
    assert!(said.starts_with("(data of 151 levels"), "{said}");
    assert_eq!(sent.get("mediaType"), None);
}

#[test]
fn parts_that_are_too_large_become_texts() {
    let large = "x".repeat(3 * 1024 * 1024);
    let small = "x".repeat(3 * 1024 * 1024 - 64);
    for content in [
        Content::Text(large.clone()),
        Content::Raw(large.clone().into_bytes()),
        Content::Data(Value::from(&*large)),
    ] {
        let sent = to::part(Part {
            filename: Some("f".to_owned()),
            ..Part::of(content)
        });
        let sent = Value::Object(sent.members());
        let said = sent["text"].as_str().unwrap_or_default();
        assert!(said.starts_with("(a part of 31457"), "{} bytes", said.len());
        assert_eq!(sent.get("filename"), None);
    }
    let kept = to::part(Part::text(&*small)).members();
    assert_eq!(kept["text"], small);
    let metadata = to::task(Task {
        metadata: free(Value::from(large)),
        ..task(&Value::Null)
    });
    assert!(metadata.encoded_len() < 1024);
}

fn number(it: f64) -> prost_types::Value {
    prost_types::Value {
        kind: Some(Kind::NumberValue(it)),
    }
}

fn one(name: &str, value: prost_types::Value) -> Option<Struct> {
    Some(Struct {
        fields: [(name.to_owned(), value)].into(),
    })
}

fn told(faults: Faults) -> Vec<(String, String)> {
    let listed = faults.listed.into_iter();
    listed.map(|it| (it.field, it.description)).collect()
}

#[test]
fn numbers_that_json_cannot_say_are_refused_with_their_path() {
    let list = Kind::ListValue(ListValue {
        values: vec![number(1.5), number(f64::NAN)],
    });
    let list = prost_types::Value { kind: Some(list) };
    let data = Kind::StructValue(one("a", list).expect("a struct"));
    let data = prost_types::Value { kind: Some(data) };
    let request = |is_whole: bool| pb::SendMessageRequest {
        message: Some(pb::Message {
            message_id: if is_whole { "m" } else { "" }.to_owned(),
            role: 1,
            parts: vec![
                pb::Part::default(),
                pb::Part {
                    content: Some(pb::part::Content::Data(data.clone())),
                    metadata: one("p", number(f64::INFINITY)),
                    ..pb::Part::default()
                },
            ][usize::from(is_whole)..]
                .to_vec(),
            metadata: one("m", number(f64::NEG_INFINITY)),
            ..pb::Message::default()
        }),
        metadata: one("r", number(f64::NAN)),
        ..pb::SendMessageRequest::default()
    };
    let words = |it: &str| format!("{it} is given, a number that JSON can say is required");
    let faults = Operation::SendMessage.read(request(true).members());
    let expected = [
        ("message.parts[0].data.a[1]", words("NaN")),
        ("message.parts[0].metadata.p", words("inf")),
        ("message.metadata.m", words("-inf")),
        ("metadata.r", words("NaN")),
    ]
    .map(|(field, description)| (field.to_owned(), description));
    assert_eq!(told(faults.expect_err("no JSON")), expected);
    // Beside all other faults.
    let faults = Operation::SendMessage.read(request(false).members());
    let faults = told(faults.expect_err("no JSON"));
    let fields: Vec<_> = faults.iter().map(|(field, _)| &**field).collect();
    let expected = [
        "message.parts[1].data.a[1]",
        "message.parts[1].metadata.p",
        "message.metadata.m",
        "metadata.r",
        "message.messageId",
        "message.parts[0]",
    ];
    assert_eq!(fields, expected);

    let cancel = |it| pb::CancelTaskRequest {
        id: "t".to_owned(),
        metadata: one("why", number(it)),
        ..pb::CancelTaskRequest::default()
    };
    let faults = Operation::CancelTask.read(cancel(f64::NAN).members());
    let expected = [("metadata.why".to_owned(), words("NaN"))];
    assert_eq!(told(faults.expect_err("no JSON")), expected);
    assert!(Operation::CancelTask.read(cancel(1.0).members()).is_ok());
}
