//! Stored forms that are released: each keeps its meaning for ever. Files are added, never changed.

#[path = "golden/least.rs"]
mod least;
#[path = "golden/names.rs"]
mod names;
#[path = "golden/snapshots.rs"]
mod snapshots;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use taskledger_domain::codec::{self, DecodeError};
use taskledger_domain::contract::{Breach, Broken, Incomplete, Mismatch, OutputFault, TooLarge};
use taskledger_domain::flow::*;
use taskledger_domain::question::{Asks, Escalation};
use taskledger_domain::task::{Labels, Priority, Progress, RetryPolicy, Status};
use taskledger_domain::testing::{id, run};
use taskledger_domain::{CallbackId, LeaseId, Payload, SuspensionId, Timestamp};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn payload(text: &str) -> Payload {
    Payload::parse(text).expect("a JSON object")
}

/// What a worker says of how it did it.
const EXECUTION: &str = r#"{"seconds":1.50}"#;

fn remarks(data: &str, execution: Option<&str>) -> Option<Remarks> {
    Remarks::of(Some(payload(data)), execution.map(payload))
}

const A: &str = "a";
const HASH: &str = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb";
const TIME: Timestamp = Timestamp(1_736_937_000_123_456);

fn escalation() -> Escalation {
    Escalation {
        attempt: 1,
        channel_hint: Some("mail".to_owned()),
        notify_to: Some("boss".to_owned()),
    }
}

fn whole() -> Specification {
    Specification {
        inputs: payload(r#"{"url":"https://example.com","n":1.50}"#),
        schemas: Some(payload(
            r#"{"method":"echo","input_schema":{"type":"object"}}"#,
        )),
        params: Some(payload(
            r#"{"retry":{"max_attempts":3},"timeout_seconds":1.5}"#,
        )),
        method: Some("echo".to_owned()),
        retry: Some(RetryPolicy {
            max_attempts: 3,
            initial_delay_ms: 1000,
            multiplier: 2.5,
            max_delay_ms: 60_000,
            jitter: 0.25,
            max_elapsed_ms: Some(600_000),
        }),
        timeout_ms: Some(1500),
        deadline: Some(TIME),
        remote: true,
        start_within_ms: Some(30_000),
        cancel_grace_ms: Some(5000),
        start_at: Some(TIME),
        delay_ms: Some(90_000),
    }
}

fn least() -> Specification {
    Specification {
        inputs: Payload::empty(),
        schemas: None,
        params: None,
        method: None,
        retry: None,
        timeout_ms: None,
        deadline: None,
        remote: false,
        start_within_ms: None,
        cancel_grace_ms: None,
        start_at: None,
        delay_ms: None,
    }
}

fn dependencies() -> Vec<Dependency> {
    let edge = |name, when| Dependency { id: id(name), when };
    vec![
        edge("b", When::Completed),
        edge("c", When::Ended),
        edge("d", When::Always),
    ]
}

fn labels() -> Labels {
    let labels = [("team", "data"), ("example.org/stage", "täglich \"neu\"")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Labels::from(BTreeMap::from(labels))
}

/// One event of each kind with every optional member.
fn full() -> Vec<Event> {
    let task_id = id(A);
    vec![
        Event::TaskCreated(TaskCreated {
            task_id,
            ordinal: 7,
            parent_id: Some(id("r")),
            name: "Crawl \"Website\" é".to_owned(),
            user_id: Some("user-123".to_owned()),
            priority: Priority::new(1).expect("0 to 3"),
            dependencies: dependencies(),
            specification: whole(),
            copied_from: Some(id("original")),
            labels: labels(),
            run_id: Some(run("run")),
        }),
        Event::TaskRenamed(TaskRenamed {
            task_id,
            name: "new".to_owned(),
        }),
        Event::PriorityChanged(PriorityChanged {
            task_id,
            priority: Priority::new(0).expect("0 to 3"),
        }),
        Event::LabelsChanged(LabelsChanged {
            task_id,
            labels: labels(),
        }),
        Event::UserChanged(UserChanged {
            task_id,
            user_id: Some("user-456".to_owned()),
        }),
        Event::TaskMoved(TaskMoved {
            task_id,
            parent_id: id("g"),
        }),
        Event::DependenciesChanged(DependenciesChanged {
            task_id,
            dependencies: dependencies(),
        }),
        Event::TaskRespecified(TaskRespecified {
            task_id,
            specification: whole(),
            absent: vec![format!("{}.key", id("b"))],
        }),
        Event::TaskDeleted(TaskDeleted { task_id }),
        Event::RunStarted(RunStarted {
            run_id: run("run"),
            task_id,
            kind: RunKind::Retry,
            covers: vec![(0, 3), (7, 7)],
            allow_unknown_executors: true,
            executor_wait_ms: 300_000,
            wait_bounds: WaitBounds {
                start_ms: Some(604_800_000),
                answer_ms: Some(2_592_000_000),
            },
            callback: Some(CallbackId(id("callback").0)),
            origin: Some(Box::new(RunOrigin {
                context: Some("trip to Rome".to_owned()),
                message: Some(payload(r#"{"messageId":"m-1","parts":[{"text":"Go"}]}"#)),
                references: vec![run("before")],
            })),
        }),
        Event::TaskStarted(TaskStarted {
            task_id,
            attempt: 2,
            run_id: run("run"),
            lease: Some(Lease {
                id: LeaseId(id("lease").0),
                worker: "worker-1".to_owned(),
                holder: Some("user:ann".to_owned()),
                expires_at: TIME,
                timeout_ms: Some(90_000),
                cancel_grace_ms: Some(5000),
            }),
        }),
        Event::TaskProgressed(TaskProgressed {
            task_id,
            attempt: 2,
            progress: Progress::from_millionths(650_000),
            message: Some("page 65 of 100".to_owned()),
            remarks: remarks(r#"{"page":65}"#, None),
        }),
        Event::TaskClaimRejected(TaskClaimRejected {
            task_id,
            worker: "worker-1".to_owned(),
            unresolvable_refs: vec![format!("{task_id}.findings")],
            breach: Breach {
                phase_name: Some("analysis".to_owned()),
                broken: Broken::Inputs {
                    unresolvable_refs: vec!["research.findings".to_owned()],
                    incomplete: vec![Incomplete {
                        task_id: id("b"),
                        phase_name: Some("research".to_owned()),
                        status: Status::InProgress,
                    }],
                },
            },
        }),
        Event::TaskCompletionRejected(TaskCompletionRejected {
            task_id,
            attempt: 2,
            fault: OutputFault {
                missing: vec!["expenses".to_owned()],
                mismatches: vec![Mismatch {
                    key: "revenue".to_owned(),
                    pointer: "/revenue/0".to_owned(),
                    expected: "number".to_owned(),
                    actual: "string".to_owned(),
                }],
                too_large: Some(TooLarge {
                    key: Some("findings".to_owned()),
                    key_bytes: 1_048_571,
                    bytes: 1_048_577,
                    limit: 1_048_576,
                }),
            },
            phase_name: Some("fetch".to_owned()),
            progress: Progress::from_millionths(750_000),
        }),
        Event::TaskSuspended(TaskSuspended {
            task_id,
            attempt: 2,
            suspension_id: SuspensionId(id("question").0),
            question: payload(r#"{"question":"Go on?","response_type":"confirm"}"#),
            asks: Asks::Auth,
            on_answer: OnAnswer::CompleteOrDecline,
            expires_at: Some(TIME),
            remind_every_ms: Some(60_000),
            reminders: 2,
            ladder: vec![escalation()],
            on_expiry: OnExpiry::Continue {
                answer: payload(r#"{"value":false}"#),
            },
        }),
        Event::TaskReminded(TaskReminded {
            task_id,
            attempt: 2,
            suspension_id: SuspensionId(id("question").0),
            number: 1,
            of: 2,
            escalation: Some(escalation()),
        }),
        Event::TaskAnswered(TaskAnswered {
            task_id,
            attempt: 2,
            suspension_id: SuspensionId(id("question").0),
            answer: payload(r#"{"value":true}"#),
            responded_by: "user:ann".to_owned(),
            on_behalf_of: Some("the team".to_owned()),
        }),
        Event::TaskSuspensionExpired(TaskSuspensionExpired {
            task_id,
            attempt: 2,
            suspension_id: SuspensionId(id("question").0),
            policy: OnExpiry::Continue {
                answer: payload(r#"{"value":"later"}"#),
            },
        }),
        Event::TaskOutputAppended(TaskOutputAppended {
            task_id,
            attempt: 2,
            number: 3,
            part: OutputPart::Text("Dear \"reader\" é".to_owned()),
            progress: Progress::from_millionths(500_000),
        }),
        Event::TaskCompleted(TaskCompleted {
            task_id,
            attempt: 2,
            result: payload(r#"{"output":[1,2.50,null]}"#),
            remarks: Remarks::of(None, Some(payload(EXECUTION))),
            parts: 3,
        }),
        Event::TaskFailed(TaskFailed {
            task_id,
            attempt: 2,
            error: "nobody answered within 5 s".to_owned(),
            reason: FailureReason::Rejected,
            progress: Progress::from_millionths(1),
            will_retry: true,
            remarks: remarks(r#"{"output":[1]}"#, Some(EXECUTION)),
            breach: Some(Box::new(Breach {
                phase_name: Some("report".to_owned()),
                broken: Broken::Upstream {
                    task_id: id("b"),
                    phase_name: Some("approve".to_owned()),
                    suspension_id: SuspensionId(id("question").0),
                    expires_at: Some(TIME),
                },
            })),
        }),
        Event::TaskRequeued(TaskRequeued {
            task_id,
            run_id: run("run"),
            reason: RequeueReason::Answered,
            next_attempt_at: Some(TIME),
        }),
        Event::TaskDeferred(TaskDeferred {
            task_id,
            run_id: run("run"),
            next_attempt_at: TIME,
            timer: Some(TimerKind::DelaySeconds),
        }),
        Event::TaskCancelled(TaskCancelled {
            task_id,
            attempt: Some(2),
            error: "cancelled on request".to_owned(),
            reason: CancelReason::Requested,
            progress: Progress::from_millionths(250_000),
            remarks: remarks(r#"{"output":[1]}"#, Some(EXECUTION)),
        }),
        Event::RunEnded(RunEnded {
            run_id: run("run"),
            task_id,
            state: RunState::Failed,
            counts: StatusCounts {
                pending: 1,
                in_progress: 0,
                completed: 3,
                failed: 4,
                cancelled: 5,
            },
            root: RootAtEnd {
                status: Status::Failed,
                progress: Progress::from_millionths(500_000),
            },
            others: 1,
            rejected: true,
        }),
        Event::FlowArchived(FlowArchived {
            file: "flows-20260101T000000Z-0f8fad5b.jsonl".to_owned(),
            sha256: "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb".to_owned(),
            events: 12,
            runs: vec![run("run")],
            owner: Some("user-123".to_owned()),
        }),
        Event::MessageReceived(MessageReceived {
            run_id: run("run"),
            message_id: "m-2".to_owned(),
            body_hash: HASH.to_owned(),
            message: payload(r#"{"messageId":"m-2","parts":[{"text":"Yes"}]}"#),
            suspension_id: Some(SuspensionId(id("question").0)),
        }),
    ]
}

/// Name and event of every golden file of the present versions.
fn files() -> Vec<(String, Event)> {
    let named = |event: Event, end: &str| {
        let stored = codec::encode(&event);
        let name = format!("{}.v{}{end}", stored.kind, stored.schema_version);
        (name, event)
    };
    let full = full().into_iter().map(|e| named(e, ".json"));
    full.chain(least::min().into_iter().map(|e| named(e, ".min.json")))
        .collect()
}

fn text(name: &str, present: &str) -> String {
    let path = folder().join("events").join(name);
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|_| panic!("add {} with the text\n{present}", path.display()));
    text.trim_end().to_owned()
}

#[test]
fn each_golden_event_is_read_and_written_byte_for_byte() {
    for (name, event) in files() {
        let stored = codec::encode(&event);
        let golden = text(&name, &stored.data);
        let read = codec::decode(stored.kind, stored.schema_version, &golden);
        assert_eq!(read.expect("a released form can be read"), event, "{name}");
        assert_eq!(
            stored.data, golden,
            "{name}: raise the version, keep the file"
        );
    }
}

#[test]
fn every_kind_and_every_version_has_a_golden_file_that_can_be_read() {
    let entries = std::fs::read_dir(folder().join("events")).expect("the folder exists");
    let names = entries.map(|e| e.expect("readable").file_name());
    let names: BTreeSet<String> = names.map(|n| n.into_string().expect("text")).collect();
    for (kind, version) in codec::KINDS {
        for v in 1..=*version {
            let name = format!("{kind}.v{v}.json");
            assert!(names.contains(&name), "{name} is missing");
        }
    }
    for name in &names {
        let mut parts = name.split('.');
        let kind = parts.next().expect("a kind");
        let version = parts.next().and_then(|v| v.strip_prefix('v'));
        let version = version.and_then(|v| v.parse().ok()).expect("a version");
        let event = codec::decode(kind, version, &text(name, ""));
        assert_eq!(codec::kind(&event.expect("readable for ever")), kind);
    }
}

#[test]
fn an_unknown_kind_is_an_error_and_never_skipped() {
    for kind in ["TaskExploded", "taskcreated", ""] {
        let error = codec::decode(kind, 1, "{}").expect_err("unknown");
        assert!(
            matches!(&error, DecodeError::UnknownKind(k) if k == kind),
            "{error}"
        );
    }
}

#[test]
fn a_newer_version_is_an_error() {
    for (kind, version) in codec::KINDS {
        for found in [0, version + 1] {
            let error = codec::decode(kind, found, "{}").expect_err("unknown");
            assert!(
                matches!(error, DecodeError::UnknownVersion { .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn damaged_json_is_an_error() {
    for (name, event) in files() {
        let stored = codec::encode(&event);
        for damaged in [
            "",
            "{",
            "[]",
            "null",
            "{}",
            &stored.data[..stored.data.len() / 2],
        ] {
            let error = codec::decode(stored.kind, 1, damaged).expect_err("damaged");
            assert!(
                matches!(error, DecodeError::Malformed { .. }),
                "{name}: {error}"
            );
        }
    }
    let list = r#"{"task_id":"550e8400-e29b-41d4-a716-446655440000","attempt":1,"result":[]}"#;
    assert!(
        codec::decode("TaskCompleted", 1, list).is_err(),
        "a result is an object"
    );
}

#[test]
fn payloads_keep_their_text() {
    let text = r#"{"b": 1.50,"a":[12345678901234567890123, 1e400]}"#;
    let stored = format!(r#"{{"task_id":"{}","attempt":1,"result":{text}}}"#, id(A));
    let event = codec::decode("TaskCompleted", 1, &stored).expect("readable");
    assert_eq!(codec::encode(&event).data, stored);
}
