//! Stored forms that are released: each keeps its meaning for ever. Files are added, never changed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use taskledger_domain::codec::{self, DecodeError, snapshot};
use taskledger_domain::flow::*;
use taskledger_domain::task::{Priority, Progress, RetryPolicy, Status};
use taskledger_domain::testing::{Scenario, execute, given, group, id, run, task};
use taskledger_domain::{CallbackId, Payload, TaskId, Timestamp};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn payload(text: &str) -> Payload {
    Payload::parse(text).expect("a JSON object")
}

const A: &str = "a";
const TIME: Timestamp = Timestamp(1_736_937_000_123_456);

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
        }),
        timeout_ms: Some(1500),
        deadline: Some(TIME),
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
    }
}

fn dependencies() -> Vec<Dependency> {
    let edge = |name, required| Dependency {
        id: id(name),
        required,
    };
    vec![edge("b", true), edge("c", false)]
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
        }),
        Event::TaskDeleted(TaskDeleted { task_id }),
        Event::RunStarted(RunStarted {
            run_id: run("run"),
            task_id,
            kind: RunKind::Retry,
            covers: vec![(0, 3), (7, 7)],
            allow_unknown_executors: true,
            executor_wait_ms: 300_000,
            callback: Some(CallbackId(id("callback").0)),
        }),
        Event::TaskStarted(TaskStarted {
            task_id,
            attempt: 2,
            run_id: run("run"),
        }),
        Event::TaskProgressed(TaskProgressed {
            task_id,
            attempt: 2,
            progress: Progress::from_millionths(650_000),
        }),
        Event::TaskCompleted(TaskCompleted {
            task_id,
            attempt: 2,
            result: payload(r#"{"output":[1,2.50,null]}"#),
        }),
        Event::TaskFailed(TaskFailed {
            task_id,
            attempt: 2,
            error: "boom".to_owned(),
            reason: FailureReason::Executor,
            progress: Progress::from_millionths(1),
            will_retry: true,
        }),
        Event::TaskRequeued(TaskRequeued {
            task_id,
            run_id: run("run"),
            reason: RequeueReason::Retry,
            next_attempt_at: Some(TIME),
        }),
        Event::TaskCancelled(TaskCancelled {
            task_id,
            attempt: Some(2),
            error: "cancelled on request".to_owned(),
            reason: CancelReason::Requested,
            progress: Progress::from_millionths(250_000),
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
            root: Some(RootAtEnd {
                status: Status::Failed,
                progress: Progress::from_millionths(500_000),
            }),
            others: 1,
        }),
        Event::FlowArchived(FlowArchived {
            file: "flows-20260101T000000Z-0f8fad5b.jsonl".to_owned(),
            sha256: "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb".to_owned(),
            events: 12,
            runs: vec![run("run")],
        }),
    ]
}

/// The kinds that have optional members, without them.
fn min() -> Vec<Event> {
    let task_id = id(A);
    vec![
        Event::TaskCreated(TaskCreated {
            task_id,
            ordinal: 0,
            parent_id: None,
            name: "a".to_owned(),
            user_id: None,
            priority: Priority::NORMAL,
            dependencies: Vec::new(),
            specification: least(),
            copied_from: None,
            run_id: None,
        }),
        Event::UserChanged(UserChanged {
            task_id,
            user_id: None,
        }),
        Event::DependenciesChanged(DependenciesChanged {
            task_id,
            dependencies: Vec::new(),
        }),
        Event::TaskRespecified(TaskRespecified {
            task_id,
            specification: least(),
        }),
        Event::TaskFailed(TaskFailed {
            task_id,
            attempt: 1,
            error: "boom".to_owned(),
            reason: FailureReason::Group,
            progress: Progress::ZERO,
            will_retry: false,
        }),
        Event::TaskRequeued(TaskRequeued {
            task_id,
            run_id: run("run"),
            reason: RequeueReason::Rerun,
            next_attempt_at: None,
        }),
        Event::RunStarted(RunStarted {
            run_id: run("run"),
            task_id,
            kind: RunKind::Execute,
            covers: vec![(0, 0)],
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            callback: None,
        }),
        Event::RunEnded(RunEnded {
            run_id: run("run"),
            task_id,
            state: RunState::Completed,
            counts: StatusCounts::default(),
            root: None,
            others: 0,
        }),
        Event::TaskCancelled(TaskCancelled {
            task_id,
            attempt: None,
            error: "cancelled on request".to_owned(),
            reason: CancelReason::Deadline,
            progress: Progress::ZERO,
        }),
        Event::FlowArchived(FlowArchived {
            file: "f".to_owned(),
            sha256: "s".to_owned(),
            events: 1,
            runs: Vec::new(),
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
    full.chain(min().into_iter().map(|e| named(e, ".min.json")))
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
    let names: BTreeSet<String> = entries
        .map(|e| {
            e.expect("readable")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
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
fn every_name_in_an_event_keeps_its_text() {
    let texts =
        |values: &[&dyn erased::Text]| -> Vec<String> { values.iter().map(|v| v.text()).collect() };
    use CancelReason as C;
    use FailureReason as F;
    use RequeueReason as R;
    assert_eq!(
        texts(&[
            &F::Executor,
            &F::Timeout,
            &F::Deadline,
            &F::ExecutorNotFound,
            &F::Interrupted,
            &F::InvalidInputs,
            &F::InvalidResult,
            &F::Group,
        ]),
        [
            "executor",
            "timeout",
            "deadline",
            "executor_not_found",
            "interrupted",
            "invalid_inputs",
            "invalid_result",
            "group",
        ]
        .map(quoted)
    );
    let requeued = texts(&[&R::Retry, &R::Rerun, &R::Interrupted]);
    assert_eq!(requeued, ["retry", "rerun", "interrupted"].map(quoted));
    assert_eq!(
        texts(&[&C::Requested, &C::Deadline]),
        ["requested", "deadline"].map(quoted)
    );
    let states = [
        RunState::Running,
        RunState::Completed,
        RunState::Failed,
        RunState::Cancelled,
    ];
    let states = states.map(|s| erased::Text::text(&s));
    assert_eq!(
        states,
        ["running", "completed", "failed", "cancelled"].map(quoted)
    );
    let kinds = [RunKind::Execute, RunKind::Retry].map(|k| erased::Text::text(&k));
    assert_eq!(kinds, ["execute", "retry"].map(quoted));
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

mod erased {
    /// The JSON of a value.
    pub(crate) trait Text {
        fn text(&self) -> String;
    }
    impl<T: serde::Serialize> Text for T {
        fn text(&self) -> String {
            serde_json::to_string(self).expect("JSON")
        }
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

/// A flow with everything that a snapshot can hold.
fn rich() -> Scenario {
    let s = given(vec![
        group("r").user("ann").deadline_ms(3_600_000),
        group("g").under("r"),
        task("a").under("g").attempts(3, 500).priority(0),
        task("b").under("g").after(&["a"]).user("bob"),
        task("c")
            .under("r")
            .after_any(&["g"])
            .method("once")
            .priority(3),
        task("x").under("g").after(&["g"]),
        task("gone").under("r"),
        task("done").under("r"),
        task("bad").under("r"),
    ]);
    let s = s
        .when(Command::Delete {
            task: id("gone"),
            cascade: false,
        })
        .accepted();
    let s = s.when(execute("done")).accepted().completes("done");
    let s = s.when(execute("bad")).accepted().fails("bad");
    let s = s.when(execute("g")).accepted().after_ms(10).fails("a");
    let report = |task: TaskId| Command::Report {
        task,
        attempt: 2,
        progress: Progress::from_millionths(250_000),
    };
    s.after_ms(500).when(report(id("a"))).accepted()
}

#[test]
fn the_golden_snapshot_means_what_it_meant() {
    let name = format!("snapshot.v{}.bin", snapshot::FORMAT);
    let path = folder().join(&name);
    let flow = rich().flow;
    let present = snapshot::encode(&flow);
    let golden = std::fs::read(&path).unwrap_or_else(|_| {
        let hex: String = present.iter().map(|b| format!("{b:02x}")).collect();
        panic!("add {} with the bytes\n{hex}", path.display())
    });
    assert_eq!(
        present, golden,
        "the state is written otherwise: raise snapshot::FORMAT"
    );
    let read = snapshot::decode(&golden).expect("raise snapshot::FORMAT");
    assert_eq!(
        read, flow,
        "the bytes mean another state: raise snapshot::FORMAT"
    );
}

#[test]
fn a_flow_goes_on_from_its_snapshot_as_if_nothing_had_happened() {
    let s = rich();
    let bytes = snapshot::encode(&s.flow);
    let mut loaded = s.clone();
    loaded.flow = snapshot::decode(&bytes).expect("a snapshot can be read again");
    let go_on = |s: Scenario| s.completes("a").completes("b").after_ms(1).restarts();
    let (live, loaded) = (go_on(s), go_on(loaded));
    assert_eq!(live.history, loaded.history);
    assert_eq!(live.flow, loaded.flow);
}
