//! How runs stand for whoever began them: the same from the log as step by step, and found by indexes.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod common;
#[path = "runs/outputs.rs"]
mod outputs;

use common::{Engine, Ground, START, World, task};
use std::sync::Arc;
use taskledger_domain::flow::{
    Event, MessageReceived, OnAnswer, OnExpiry, RequeueReason, RunEnded, RunKind, RunOrigin,
    RunStage, RunStarted, RunState, StatusCounts, TaskAnswered, TaskCompleted, TaskCreated,
    TaskRequeued, TaskStarted, TaskSuspended, UserChanged,
};
use taskledger_domain::question::Asks;
use taskledger_domain::task::Priority;
use taskledger_domain::testing::run;
use taskledger_domain::{Payload, RunId, SuspensionId, TaskId, Timestamp};
use taskledger_projections::{Parts, ReadModels, RunCursor, RunFilter, RunSnapshot};

taskledger_testkit::on_both_engines!(
    a_run_stands_as_its_events_say,
    a_later_run_takes_no_result_from_an_earlier_one,
    runs_have_the_owner_of_their_flow,
    pages_show_no_run_twice,
    pages_of_one_list_show_what_it_was_whatever_changes_meanwhile,
);

const ALL: Parts = Parts {
    artifacts_max: 10,
    artifact_bytes_max: usize::MAX,
    said_max: 10,
};

fn created(world: &mut World, n: u64, user: Option<&str>) -> TaskId {
    let (id, specification) = (task(n), world.specification(false));
    let created = TaskCreated {
        task_id: id,
        ordinal: 0,
        parent_id: None,
        name: format!("task {n}"),
        user_id: user.map(str::to_owned),
        priority: Priority::NORMAL,
        dependencies: Vec::new(),
        specification,
        copied_from: None,
        labels: taskledger_domain::task::Labels::default(),
        run_id: None,
    };
    push(world, id, Event::TaskCreated(created));
    id
}

/// The next event of a flow of one task, a second later.
fn push(world: &mut World, task: TaskId, event: Event) {
    world.now += 1_000_000;
    world.push_quick(task.as_flow(), event);
}

fn begins(world: &mut World, task: TaskId, run_id: RunId, context: Option<&str>) {
    let origin = context.map(|context| RunOrigin {
        context: Some(context.to_owned()),
        message: Some(Payload::empty()),
        references: Vec::new(),
    });
    let started = RunStarted {
        run_id,
        task_id: task,
        kind: RunKind::Execute,
        covers: vec![(0, 0)],
        allow_unknown_executors: false,
        executor_wait_ms: 0,
        wait_bounds: Default::default(),
        callback: None,
        origin: origin.map(Box::new),
    };
    push(world, task, Event::RunStarted(started));
}

fn starts(world: &mut World, task_id: TaskId, attempt: u32, run_id: RunId) {
    let started = TaskStarted {
        task_id,
        attempt,
        run_id,
        lease: None,
    };
    push(world, task_id, Event::TaskStarted(started));
}

fn ends(world: &mut World, task_id: TaskId, attempt: u32, run_id: RunId) {
    let completed = TaskCompleted {
        task_id,
        attempt,
        result: Payload::empty(),
        remarks: None,
        parts: 0,
    };
    push(world, task_id, Event::TaskCompleted(completed));
    let ended = RunEnded {
        run_id,
        task_id,
        state: RunState::Completed,
        counts: StatusCounts::default(),
        root: taskledger_domain::testing::root_at_end(),
        others: 0,
        rejected: false,
    };
    push(world, task_id, Event::RunEnded(ended));
}

fn asks(world: &mut World, task_id: TaskId, attempt: u32) {
    let suspended = TaskSuspended {
        task_id,
        attempt,
        suspension_id: SuspensionId(task_id.0),
        question: Payload::parse(r#"{"question":"?"}"#).unwrap(),
        asks: Asks::Auth,
        on_answer: OnAnswer::Continue,
        expires_at: None,
        remind_every_ms: None,
        reminders: 0,
        ladder: Vec::new(),
        on_expiry: OnExpiry::Fail,
    };
    push(world, task_id, Event::TaskSuspended(suspended));
}

fn answers(world: &mut World, task_id: TaskId, attempt: u32, run_id: RunId) {
    let received = MessageReceived {
        run_id,
        message_id: "m".to_owned(),
        body_hash: "hash".to_owned(),
        message: Payload::empty(),
        suspension_id: Some(SuspensionId(task_id.0)),
    };
    push(world, task_id, Event::MessageReceived(received));
    let answered = TaskAnswered {
        task_id,
        attempt,
        suspension_id: SuspensionId(task_id.0),
        answer: Payload::empty(),
        responded_by: "ann".to_owned(),
        on_behalf_of: None,
    };
    push(world, task_id, Event::TaskAnswered(answered));
    let again = TaskRequeued {
        task_id,
        run_id,
        reason: RequeueReason::Answered,
        next_attempt_at: None,
    };
    push(world, task_id, Event::TaskRequeued(again));
}

async fn seen(models: &ReadModels, run: RunId) -> RunSnapshot {
    models.run_snapshot(run, ALL).await.unwrap().unwrap()
}

async fn a_run_stands_as_its_events_say(engine: Engine) {
    let (mut world, run) = (World::new(1), run("run"));
    let a = created(&mut world, 1, None);
    begins(&mut world, a, run, Some("trip"));
    starts(&mut world, a, 1, run);
    asks(&mut world, a, 1);
    answers(&mut world, a, 1, run);
    starts(&mut world, a, 2, run);
    ends(&mut world, a, 2, run);
    // After each event: stage, version of the event since which it stands so, questions that wait, things said.
    let expected = [
        (2, RunStage::Submitted, 2, 0, vec![2]),
        (3, RunStage::Working, 3, 0, vec![2]),
        (4, RunStage::AuthRequired, 4, 1, vec![2]),
        (5, RunStage::AuthRequired, 4, 1, vec![2, 5]),
        (6, RunStage::Working, 6, 0, vec![2, 4, 5]),
        (8, RunStage::Working, 6, 0, vec![2, 4, 5]),
        (10, RunStage::Completed, 10, 0, vec![2, 4, 5]),
    ];
    for batch in [1, 100] {
        for (events, stage, since, waits, said) in &expected {
            let ground = Ground::new(engine).await;
            let models = ground.fed(&world.log[..*events], batch).await;
            let found = seen(&models, run).await;
            assert_eq!(found.run.stage, *stage, "after {events}");
            assert_eq!(
                found.run.status_at,
                world.log[since - 1].time,
                "after {events}"
            );
            assert_eq!(found.run.status_position, world.log[since - 1].position);
            assert_eq!(
                (found.waits.len(), &found.said),
                (*waits, said),
                "after {events}"
            );
            assert_eq!((&*found.run.context, found.run.has_origin), ("trip", true));
            let artifacts = usize::from(*events > 8);
            assert_eq!(found.artifacts.len(), artifacts, "after {events}");
        }
    }
}

async fn a_later_run_takes_no_result_from_an_earlier_one(engine: Engine) {
    let (mut world, first, second) = (World::new(1), run("first"), run("second"));
    let a = created(&mut world, 1, None);
    begins(&mut world, a, first, None);
    starts(&mut world, a, 1, first);
    ends(&mut world, a, 1, first);
    begins(&mut world, a, second, None);
    let ground = Ground::new(engine).await;
    let models = ground.fed(&world.log, 100).await;
    let (first, second) = (seen(&models, first).await, seen(&models, second).await);
    assert_eq!((first.artifacts.len(), second.artifacts.len()), (1, 0));
    assert_eq!(*first.run.context, a.to_string());
    let none = Parts {
        artifacts_max: 0,
        ..ALL
    };
    let without = models
        .run_snapshot(first.run.run, none)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (without.artifacts.len(), without.artifacts_left_out),
        (0, 0)
    );
}

async fn runs_have_the_owner_of_their_flow(engine: Engine) {
    for batch in [1, 100] {
        let mut world = World::new(1);
        let (a, b) = (
            created(&mut world, 1, Some("ann")),
            created(&mut world, 2, Some("bob")),
        );
        begins(&mut world, a, run("a"), None);
        begins(&mut world, b, run("b"), None);
        let changed = UserChanged {
            task_id: a,
            user_id: Some("eve".to_owned()),
        };
        push(&mut world, a, Event::UserChanged(changed));
        let place = format!("{:x}", world.log.len());
        starts(&mut world, a, 1, run("a"));
        let ground = Ground::new(engine).await;
        let models = ground.fed(&world.log, batch).await;
        for (owner, expected) in [
            ("ann", vec![]),
            ("bob", vec![(run("b"), RunStage::Submitted)]),
            ("eve", vec![(run("a"), RunStage::Submitted)]),
        ] {
            let filter = RunFilter {
                owner: Some(Arc::from(owner)),
                ..RunFilter::default()
            };
            // A page of a list that began before its status changed.
            let late = i64::MAX;
            let cursor = format!("{place}-{late:x}-{late:x}-0-1");
            let cursor = RunCursor::parse(&cursor).unwrap();
            let list = models.run_list(&filter, Some(cursor), 10, ALL);
            let list = list.await.unwrap();
            let found = list.runs.iter().map(|it| (it.run.run, it.run.stage));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{owner}");
        }
        for (owner, expected) in [
            ("ann", vec![]),
            ("bob", vec![run("b")]),
            ("eve", vec![run("a")]),
        ] {
            let filter = RunFilter {
                owner: Some(Arc::from(owner)),
                ..RunFilter::default()
            };
            let list = models.run_list(&filter, None, 10, ALL).await.unwrap();
            let found: Vec<_> = list.runs.iter().map(|it| it.run.run).collect();
            assert_eq!(
                (found, list.total),
                (expected.clone(), expected.len() as u64),
                "{owner}"
            );
        }
    }
}

async fn pages_show_no_run_twice(engine: Engine) {
    let mut world = World::new(1);
    let runs: Vec<RunId> = (0..5).map(|n| run(&format!("run {n}"))).collect();
    for (n, run) in (1..).zip(&runs) {
        let task = created(&mut world, n, None);
        begins(&mut world, task, *run, None);
    }
    let first = world.log.len();
    starts(&mut world, task(1), 1, runs[0]);
    starts(&mut world, task(5), 1, runs[4]);
    let grounds = [Ground::new(engine).await, Ground::new(engine).await];
    let mut models = grounds[0].fed(&world.log[..first], 100).await;
    let (filter, mut seen, mut next) = (RunFilter::default(), Vec::new(), None);
    loop {
        let page = models.run_list(&filter, next, 2, ALL).await.unwrap();
        seen.extend(page.runs.iter().map(|it| it.run.run));
        next = page.next;
        let Some(cursor) = next else { break };
        assert_eq!(RunCursor::parse(&cursor.to_string()).ok(), Some(cursor));
        if seen.len() == 2 {
            // The newest one, which was shown, and the oldest one, which was not, change.
            models.close().await.unwrap();
            models = grounds[1].fed(&world.log, 100).await;
        }
    }
    assert_eq!(seen, [runs[4], runs[3], runs[2], runs[1], runs[0]]);
}

/// What happens next in one of several flows of one task.
fn happens(world: &mut World, flows: &mut [u8], n: usize) {
    let (task_id, run_id) = (task(n as u64 + 1), run(&format!("run {n}")));
    let context = Some(["trip", "talk"][n % 2]);
    match flows[n] {
        0 => {
            created(world, n as u64 + 1, Some(["ann", "bob"][n % 2]));
        }
        1 => begins(world, task_id, run_id, context),
        2 => starts(world, task_id, 1, run_id),
        3 => asks(world, task_id, 1),
        4 => answers(world, task_id, 1, run_id),
        5 => starts(world, task_id, 2, run_id),
        6 => ends(world, task_id, 2, run_id),
        _ => return,
    }
    flows[n] += 1;
}

async fn pages_of_one_list_show_what_it_was_whatever_changes_meanwhile(engine: Engine) {
    const FLOWS: usize = 10;
    let shown = |it: &RunSnapshot| {
        let asked: Vec<_> = it.waits.iter().map(|wait| wait.version).collect();
        (it.run.run, it.run.stage, it.run.status_at, asked)
    };
    for seed in 1..4 {
        let mut world = World::new(seed);
        let mut flows = [0_u8; FLOWS];
        for _ in 0..FLOWS * 4 {
            let n = world.dice.below(FLOWS);
            happens(&mut world, &mut flows, n);
        }
        let filters = [
            RunFilter::default(),
            RunFilter {
                owner: Some(Arc::from("ann")),
                ..RunFilter::default()
            },
            RunFilter {
                context: Some(Arc::from("talk")),
                ..RunFilter::default()
            },
            RunFilter {
                stage: Some(RunStage::AuthRequired),
                ..RunFilter::default()
            },
            RunFilter {
                stage: Some(RunStage::Working),
                since: Some(Timestamp(START + 20_000_000)),
                ..RunFilter::default()
            },
        ];
        let mut chains: Vec<_> = filters.iter().map(|_| (Vec::new(), None, false)).collect();
        let mut expected = Vec::new();
        while chains.iter().any(|(_, _, is_over)| !is_over) {
            let ground = Ground::new(engine).await;
            let batch = [1, 3, 100][world.dice.below(3)];
            let models = ground.fed(&world.log, batch).await;
            if expected.is_empty() {
                for filter in &filters {
                    let whole = models.run_list(filter, None, 100, ALL).await.unwrap();
                    expected.push((
                        whole.runs.iter().map(shown).collect::<Vec<_>>(),
                        whole.total,
                    ));
                }
            }
            for (i, (seen, next, is_over)) in chains.iter_mut().enumerate() {
                if *is_over {
                    continue;
                }
                let page = models.run_list(&filters[i], *next, 2, ALL).await.unwrap();
                seen.extend(page.runs.iter().map(shown));
                assert_eq!(page.total, expected[i].1, "seed {seed}, {:?}", filters[i]);
                *next = page.next;
                *is_over = next.is_none();
            }
            for _ in 0..6 {
                let n = world.dice.below(FLOWS);
                happens(&mut world, &mut flows, n);
            }
        }
        for (i, (seen, _, _)) in chains.iter().enumerate() {
            assert_eq!(*seen, expected[i].0, "seed {seed}, {:?}", filters[i]);
        }
    }
}

#[tokio::test]
async fn pages_come_from_indexes() {
    let ground = Ground::new(Engine::Sqlite).await;
    let models = ground.fed(&[], 1).await;
    for mask in 0..16_u32 {
        let on = |bit: u32| mask & (1 << bit) != 0;
        let filter = RunFilter {
            owner: on(0).then(|| Arc::from("ann")),
            context: on(1).then(|| Arc::from("trip")),
            stage: on(2).then_some(RunStage::Working),
            since: on(3).then_some(Timestamp(START)),
        };
        let cursor = RunCursor::parse("1-1-1-1-1").unwrap();
        let plan = models.explain_run_past(&filter, cursor).await.unwrap();
        let by_index = ["INDEX run_past_", "INDEX run_status_context"];
        let by_index = by_index.iter().any(|it| plan[0].contains(it));
        let walks = plan.iter().any(|step| step.contains("SCAN"));
        assert!(by_index && !walks, "{filter:?}: {plan:#?}");
        for after in [None, Some(cursor)] {
            let plan = models.explain_run_list(&filter, after).await.unwrap();
            let by_index = plan[0].contains("INDEX run_status_");
            let sorts = plan.iter().any(|step| step.contains("TEMP B-TREE"));
            assert!(by_index && !sorts, "{filter:?}: {plan:#?}");
        }
    }
}
