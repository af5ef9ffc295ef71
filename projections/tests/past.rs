//! A large flow as it was: no recursion, and what is large is not kept.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::sync::Arc;
use taskledger_domain::flow::{
    Event, RunKind, RunStarted, Specification, TaskCompleted, TaskCreated, TaskStarted,
};
use taskledger_domain::task::Priority;
use taskledger_domain::{
    EventId, FlowId, Metadata, Payload, Recorded, RunId, TaskId, Timestamp, Version,
};
use taskledger_projections::{Past, WithRun};
use uuid::{Builder, Uuid};

/// The most that a flow may have.
const TASKS: u32 = 100_000;

const START: Timestamp = Timestamp(1_700_000_000_000_000);

/// Ids by number; kinds of things have ranges of their own.
fn id(n: u64) -> Uuid {
    Builder::from_random_bytes(u128::from(n).to_be_bytes()).into_uuid()
}

const RUN: u64 = 1 << 40;
const EVENTS: u64 = 1 << 41;

fn recorded(version: Version, event: Event) -> Recorded {
    Recorded {
        position: version,
        flow: FlowId(id(0)),
        version,
        id: EventId(id(EVENTS + version)),
        time: START,
        recorded_at: START,
        metadata: Metadata {
            actor: Arc::from("test"),
            correlation: Arc::from("test"),
            causation: None,
            trace: None,
        },
        event: Arc::new(event),
    }
}

fn task(n: u32) -> TaskId {
    TaskId(id(u64::from(n)))
}

/// Each task has ten children; leaves run `echo`.
fn created(n: u32, inputs: &str) -> Event {
    let leaf = n * 10 + 1 >= TASKS;
    Event::TaskCreated(TaskCreated {
        task_id: task(n),
        ordinal: n,
        parent_id: (n > 0).then(|| task((n - 1) / 10)),
        name: format!("task {n}"),
        user_id: None,
        priority: Priority::NORMAL,
        dependencies: Vec::new(),
        specification: Specification {
            inputs: Payload::parse(inputs).unwrap(),
            schemas: None,
            params: None,
            method: leaf.then(|| "echo".to_owned()),
            retry: None,
            timeout_ms: None,
            deadline: None,
            remote: false,
            start_within_ms: None,
            cancel_grace_ms: None,
            start_at: None,
            delay_ms: None,
        },
        copied_from: None,
        labels: taskledger_domain::task::Labels::default(),
        run_id: None,
    })
}

#[test]
fn a_flow_of_the_largest_size_is_rebuilt_and_walked_without_recursion() {
    let mut past = Past::default();
    let mut version = 0;
    let mut apply = |past: &mut Past, event| {
        version += 1;
        past.apply(&recorded(version, event)).unwrap();
    };
    for n in 0..TASKS {
        apply(&mut past, created(n, "{}"));
    }
    let started = Event::RunStarted(RunStarted {
        run_id: RunId(id(RUN)),
        task_id: task(0),
        kind: RunKind::Execute,
        covers: vec![(0, TASKS - 1)],
        allow_unknown_executors: false,
        executor_wait_ms: 0,
        wait_bounds: Default::default(),
        callback: None,
        origin: None,
    });
    apply(&mut past, started);
    let last = TASKS - 1;
    for n in [last, 0] {
        let (task_id, run_id) = (task(n), RunId(id(RUN)));
        let started = TaskStarted {
            task_id,
            attempt: 1,
            run_id,
            lease: None,
        };
        apply(&mut past, Event::TaskStarted(started));
    }
    let completed = TaskCompleted {
        task_id: task(last),
        attempt: 1,
        result: Payload::empty(),
        remarks: None,
        parts: 0,
    };
    apply(&mut past, Event::TaskCompleted(completed));

    let order = past.depth_first(task(0));
    assert_eq!(order.len(), TASKS as usize);
    assert_eq!(order[..3], [(task(0), 0), (task(1), 1), (task(11), 2)]);
    let (root, _) = past.view(task(0), WithRun::Yes).unwrap();
    let counts = root.run.unwrap().counts;
    assert_eq!(
        (counts.completed, counts.in_progress, counts.pending),
        (1, 0, TASKS - TASKS / 10 - 1),
        "a tenth are groups, which are not counted"
    );
    assert_eq!(root.row.child_count, 10);
    assert!(past.depth_first(task(TASKS)).is_empty());
}

#[test]
fn large_payloads_are_remembered_by_the_events_that_hold_them() {
    let mut past = Past::default();
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(1000));
    let event = recorded(1, created(0, &large));
    past.apply(&event).unwrap();
    past.apply(&recorded(2, created(1, r#"{"n":1}"#))).unwrap();
    let (mut view, sources) = past.view(task(0), WithRun::No).unwrap();
    assert_eq!(sources.versions().collect::<Vec<_>>(), [1]);
    assert_eq!(view.row.inputs.as_str(), "{}");
    Past::complete(&mut view, &event.event);
    assert_eq!(view.row.inputs.as_str(), large);
    let (small, sources) = past.view(task(1), WithRun::No).unwrap();
    assert_eq!(sources.versions().count(), 0);
    assert_eq!(small.row.inputs.as_str(), r#"{"n":1}"#);
}

#[test]
fn an_event_that_contradicts_those_before_is_named() {
    let mut past = Past::default();
    past.apply(&recorded(1, created(0, "{}"))).unwrap();
    let twice = past.apply(&recorded(2, created(0, "{}")));
    assert!(twice.unwrap_err().to_string().contains("position 2"));
}
