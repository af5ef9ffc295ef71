//! Field numbers and enum numbers, byte by byte.
//!
//! The bytes are written by hand from the protocol's reference and not taken from our encoder, so they hold
//! whatever the .proto says. A tag is `number << 3 | wire type`: 0 for whole numbers, 1 for eight bytes, 2 for
//! what begins with its length.

use prost::Message;
use prost_types::{Struct, Timestamp, Value};
use std::fmt::Debug;
use taskledger_eventbus::{
    Priority, PublishResponse, PublishTaskProgressRequest, PublishTaskRequest,
    PublishTaskResultRequest, SubscribeToTaskResultsRequest, SubscribeToTasksRequest, TaskMessage,
    TaskProgress, TaskResult, TaskStatus,
};

/// `{"n": 2}`: a Struct has entries in field 1; an entry has its key in field 1 and its value in field 2; a
/// value has a number in field 2, as the eight bytes of a double, the lowest first.
const N_IS_2: [u8; 16] = [
    0x0a, 14, 0x0a, 1, b'n', 0x12, 9, 0x11, 0, 0, 0, 0, 0, 0, 0, 0x40,
];

/// 7 s and 5 ns after the beginning of 1970: seconds in field 1, nanoseconds in field 2.
const AT_7: [u8; 4] = [0x08, 7, 0x10, 5];

fn n_is_2() -> Option<Struct> {
    let fields = [("n".to_owned(), Value::from(2.0))].into();
    Some(Struct { fields })
}

fn at_7() -> Option<Timestamp> {
    Some(Timestamp {
        seconds: 7,
        nanos: 5,
    })
}

/// A field that begins with its length, and of which both length and number are below 16.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    assert!(number < 16 && length < 128, "one byte each");
    [&[number << 3 | 2, length], content].concat()
}

/// The message is these bytes, and these bytes are the message.
#[track_caller]
fn assert_wire<M: Message + Default + PartialEq + Debug>(message: &M, bytes: &[u8]) {
    assert_eq!(message.encode_to_vec(), bytes);
    assert_eq!(&M::decode(bytes).expect("a valid message"), message);
}

fn task() -> (TaskMessage, Vec<u8>) {
    let message = TaskMessage {
        task_id: "i".into(),
        task_type: "t".into(),
        parameters: n_is_2(),
        requester_agent_id: "q".into(),
        responder_agent_id: "r".into(),
        deadline: at_7(),
        priority: Priority::Critical.into(),
        metadata: n_is_2(),
        created_at: at_7(),
    };
    let bytes = [
        field(1, b"i"),
        field(2, b"t"),
        field(3, &N_IS_2),
        field(4, b"q"),
        field(5, b"r"),
        field(6, &AT_7),
        vec![7 << 3, 4],
        field(8, &N_IS_2),
        field(9, &AT_7),
    ];
    (message, bytes.concat())
}

fn result() -> (TaskResult, Vec<u8>) {
    let message = TaskResult {
        task_id: "i".into(),
        status: TaskStatus::Cancelled.into(),
        result: n_is_2(),
        error_message: "e".into(),
        executor_agent_id: "x".into(),
        completed_at: at_7(),
        execution_metadata: n_is_2(),
    };
    let bytes = [
        field(1, b"i"),
        vec![2 << 3, 5],
        field(3, &N_IS_2),
        field(4, b"e"),
        field(5, b"x"),
        field(6, &AT_7),
        field(7, &N_IS_2),
    ];
    (message, bytes.concat())
}

fn progress() -> (TaskProgress, Vec<u8>) {
    let message = TaskProgress {
        task_id: "i".into(),
        status: TaskStatus::InProgress.into(),
        progress_message: "m".into(),
        progress_percentage: 45,
        progress_data: n_is_2(),
        executor_agent_id: "x".into(),
        updated_at: at_7(),
    };
    let bytes = [
        field(1, b"i"),
        vec![2 << 3, 2],
        field(3, b"m"),
        vec![4 << 3, 45],
        field(5, &N_IS_2),
        field(6, b"x"),
        field(7, &AT_7),
    ];
    (message, bytes.concat())
}

#[test]
fn a_task_travels_by_these_numbers() {
    let (message, bytes) = task();
    assert_wire(&message, &bytes);
    let request = PublishTaskRequest {
        task: Some(message),
    };
    assert_wire(&request, &field(1, &bytes));
}

#[test]
fn a_result_travels_by_these_numbers() {
    let (message, bytes) = result();
    assert_wire(&message, &bytes);
    let request = PublishTaskResultRequest {
        result: Some(message),
    };
    assert_wire(&request, &field(1, &bytes));
}

#[test]
fn progress_travels_by_these_numbers() {
    let (message, bytes) = progress();
    assert_wire(&message, &bytes);
    let request = PublishTaskProgressRequest {
        progress: Some(message),
    };
    assert_wire(&request, &field(1, &bytes));
}

#[test]
fn subscriptions_travel_by_these_numbers() {
    let bytes = [field(1, b"a"), field(2, b"t"), field(2, b"u")].concat();
    let tasks = SubscribeToTasksRequest {
        agent_id: "a".into(),
        task_types: vec!["t".into(), "u".into()],
    };
    assert_wire(&tasks, &bytes);
    let results = SubscribeToTaskResultsRequest {
        requester_agent_id: "a".into(),
        task_ids: vec!["t".into(), "u".into()],
    };
    assert_wire(&results, &bytes);
}

#[test]
fn a_response_travels_by_these_numbers() {
    let accepted = PublishResponse {
        success: true,
        error: String::new(),
    };
    assert_wire(&accepted, &[1 << 3, 1]);
    let refused = PublishResponse {
        success: false,
        error: "e".into(),
    };
    assert_wire(&refused, &field(2, b"e"));
}

#[test]
fn what_is_not_set_does_not_travel() {
    assert_wire(&TaskMessage::default(), &[]);
    assert_wire(&TaskResult::default(), &[]);
    assert_wire(&TaskProgress::default(), &[]);
}

#[test]
fn enum_numbers_and_their_names() {
    let priorities = [
        (0, Priority::Unspecified, "PRIORITY_UNSPECIFIED"),
        (1, Priority::Low, "PRIORITY_LOW"),
        (2, Priority::Medium, "PRIORITY_MEDIUM"),
        (3, Priority::High, "PRIORITY_HIGH"),
        (4, Priority::Critical, "PRIORITY_CRITICAL"),
    ];
    for (number, priority, name) in priorities {
        assert_eq!(Priority::try_from(number), Ok(priority));
        assert_eq!(priority.as_str_name(), name);
    }
    let statuses = [
        (0, TaskStatus::Unspecified, "TASK_STATUS_UNSPECIFIED"),
        (1, TaskStatus::Pending, "TASK_STATUS_PENDING"),
        (2, TaskStatus::InProgress, "TASK_STATUS_IN_PROGRESS"),
        (3, TaskStatus::Completed, "TASK_STATUS_COMPLETED"),
        (4, TaskStatus::Failed, "TASK_STATUS_FAILED"),
        (5, TaskStatus::Cancelled, "TASK_STATUS_CANCELLED"),
    ];
    for (number, status, name) in statuses {
        assert_eq!(TaskStatus::try_from(number), Ok(status));
        assert_eq!(status.as_str_name(), name);
    }
    assert!(Priority::try_from(5).is_err() && TaskStatus::try_from(6).is_err());
}

#[test]
fn an_unknown_enum_number_survives_decoding() {
    let bytes = [7 << 3, 99];
    let task = TaskMessage::decode(&bytes[..]).expect("a valid message");
    assert_eq!(task.priority, 99);
    assert_eq!(task.priority(), Priority::Unspecified);
    assert_eq!(task.encode_to_vec(), bytes);

    // -1 is ten bytes, as every negative number that is not zigzag.
    let mut bytes = vec![2 << 3];
    bytes.extend([0xff; 9]);
    bytes.push(1);
    let result = TaskResult::decode(&bytes[..]).expect("a valid message");
    assert_eq!(result.status, -1);
    assert_eq!(result.status(), TaskStatus::Unspecified);
    assert_eq!(result.encode_to_vec(), bytes);
}

#[test]
fn unknown_fields_are_skipped() {
    let (message, mut bytes) = task();
    bytes.extend(field(15, b"from a newer agent"));
    assert_eq!(TaskMessage::decode(&bytes[..]), Ok(message));
}

#[test]
fn a_percentage_may_be_negative_on_the_wire() {
    let progress = TaskProgress {
        progress_percentage: -5,
        ..TaskProgress::default()
    };
    let mut bytes = vec![4 << 3, 0xfb];
    bytes.extend([0xff; 8]);
    bytes.push(1);
    assert_wire(&progress, &bytes);
}
