//! What people ask, against naive answers.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod common;

use common::{Dice, Engine, World, empty, fed};
use std::collections::BTreeMap;
use taskledger_domain::flow::*;
use taskledger_domain::task::{Priority, Progress, Selector, Status};
use taskledger_domain::{Payload, TaskId, Timestamp};
use taskledger_projections::{
    Blocker, Cursor, Error, ListFilter, Node, Order, ReadModels, Reading, Start, TaskRow,
};

taskledger_testkit::on_both_engines!(
    lists_and_totals_equal_naive_filtering,
    cursors_visit_each_task_once_while_new_ones_arrive,
    payloads_come_back_as_they_came,
    of_a_task_that_does_not_exist_nothing_is_read,
    a_failed_dependency_blocks_and_the_run_and_the_attempts_say_so,
    a_flow_that_only_waits_for_a_retry_is_not_due_before_it,
    a_tree_has_every_task_below_its_parent_in_order,
    a_tree_of_a_hundred_thousand_is_built_run_and_written,
);

fn busy_world(seed: u64, steps: usize) -> World {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world
}

fn random_filter(world: &World, dice: &mut Dice) -> ListFilter {
    let rows: Vec<&TaskRow> = world.live.values().collect();
    let mut chosen = || rows[dice.below(rows.len())].clone();
    let (a, b, c) = (chosen(), chosen(), chosen());
    let edge = |row: &TaskRow| Timestamp(row.created_at.0 / 600_000_000 * 600_000_000);
    let mut flip = |odds: usize| dice.below(odds) == 0;
    // One digit in common: a sixteenth of all.
    let first = c.id.0.as_u128() >> 124 << 124;
    let alike = [first, first | (u128::MAX >> 4)].map(|id| TaskId(uuid::Uuid::from_u128(id)));
    ListFilter {
        status: flip(3).then_some(a.status),
        owner: if flip(2) { a.owner.clone() } else { None },
        user_id: if flip(3) { b.user_id.clone() } else { None },
        root_only: flip(4),
        suspended: flip(4),
        parent_id: if flip(6) { c.parent_id } else { None },
        name: flip(5).then(|| c.name.clone()),
        priority: flip(4).then_some(b.priority),
        created_after: if flip(3) {
            Some(if flip(2) { edge(&a) } else { a.created_at })
        } else {
            None
        },
        created_before: if flip(3) {
            Some(if flip(2) { edge(&c) } else { c.created_at })
        } else {
            None
        },
        ids: flip(6).then_some((alike[0], alike[1])),
        labels: {
            let mut labels = Selector::default();
            for term in ["team", "team=data", "a/stage=", "a/stage"] {
                if flip(8) {
                    // The same key with another value is refused.
                    _ = labels.add(term);
                }
            }
            labels
        },
    }
}

fn matches(row: &TaskRow, f: &ListFilter) -> bool {
    f.status.is_none_or(|s| s == row.status)
        && f.labels.matches(&row.labels)
        && f.owner
            .as_ref()
            .is_none_or(|o| row.owner.as_ref() == Some(o))
        && f.user_id
            .as_ref()
            .is_none_or(|u| row.user_id.as_ref() == Some(u))
        && (!f.root_only || row.parent_id.is_none())
        && (!f.suspended || row.suspension.is_some())
        && f.parent_id.is_none_or(|p| row.parent_id == Some(p))
        && f.name.as_ref().is_none_or(|n| *n == row.name)
        && f.priority.is_none_or(|p| p == row.priority)
        && f.created_after.is_none_or(|t| row.created_at >= t)
        && f.created_before.is_none_or(|t| row.created_at < t)
        && f.ids
            .is_none_or(|(first, last)| first <= row.id && row.id <= last)
}

async fn lists_and_totals_equal_naive_filtering(engine: Engine) {
    for seed in 1..6 {
        let world = busy_world(seed, 250);
        let (models, _folder) = fed(engine, &world.log, 40).await;
        let mut dice = Dice::new(seed + 100);
        for _ in 0..150 {
            let filter = random_filter(&world, &mut dice);
            let order = if dice.below(2) == 0 {
                Order::Ascending
            } else {
                Order::Descending
            };
            let mut expected: Vec<TaskId> = world
                .live
                .values()
                .filter(|row| matches(row, &filter))
                .map(|row| row.id)
                .collect();
            if order == Order::Descending {
                expected.reverse();
            }
            let offset = dice.below(expected.len() + 2);
            let limit = 1 + dice.below(30);
            let list = models
                .list(&filter, order, limit as u32, Start::Offset(offset as u64))
                .await
                .unwrap();
            let ids: Vec<TaskId> = list.tasks.iter().map(|t| t.row.id).collect();
            let page: Vec<TaskId> = expected.iter().copied().skip(offset).take(limit).collect();
            assert_eq!(ids, page, "{filter:?}");
            assert_eq!(list.total, expected.len() as u64, "{filter:?}");
            assert_eq!(
                list.next_cursor.is_some(),
                offset + limit < expected.len(),
                "{filter:?}"
            );
        }
    }
}

async fn all_by_cursor(models: &ReadModels, filter: &ListFilter, order: Order) -> Vec<TaskId> {
    let mut ids = Vec::new();
    let mut start = Start::Offset(0);
    loop {
        let list = models.list(filter, order, 7, start).await.unwrap();
        ids.extend(list.tasks.iter().map(|t| t.row.id));
        match list.next_cursor {
            Some(cursor) => {
                let cursor = Cursor::parse(&cursor.to_string(), order).unwrap();
                start = Start::After(cursor);
            }
            None => return ids,
        }
    }
}

async fn cursors_visit_each_task_once_while_new_ones_arrive(engine: Engine) {
    let mut world = busy_world(11, 200);
    let (models, _folder) = fed(engine, &world.log, 50).await;
    let filter = ListFilter::default();
    let before: Vec<TaskId> = world.live.values().map(|row| row.id).collect();
    assert_eq!(
        all_by_cursor(&models, &filter, Order::Ascending).await,
        before
    );

    let first = models
        .list(&filter, Order::Descending, 10, Start::Offset(0))
        .await
        .unwrap();
    let seen = world.log.len();
    for _ in 0..5 {
        let (flow, event) = world.created(None, true, Vec::new());
        world.push(flow, event);
    }
    models.apply(&world.log[seen..]).await.unwrap();
    let mut ids: Vec<TaskId> = first.tasks.iter().map(|t| t.row.id).collect();
    let mut next = first.next_cursor;
    while let Some(cursor) = next {
        let list = models
            .list(&filter, Order::Descending, 10, Start::After(cursor))
            .await
            .unwrap();
        ids.extend(list.tasks.iter().map(|t| t.row.id));
        next = list.next_cursor;
    }
    ids.reverse();
    assert_eq!(ids, before);
    let wrong = models
        .list(
            &filter,
            Order::Ascending,
            10,
            Start::After(first.next_cursor.unwrap()),
        )
        .await;
    assert!(matches!(wrong, Err(Error::BadCursor)));
}

async fn payloads_come_back_as_they_came(engine: Engine) {
    let mut world = World::new(1);
    let (flow, event) = world.created(None, true, Vec::new());
    let Event::TaskCreated(mut created) = event else {
        panic!("a creation")
    };
    let inputs = r#"{"z": 1.0, "a":[ ]}"#;
    created.name = "root \"quoted\"".to_owned();
    created.specification.inputs = Payload::parse(inputs).unwrap();
    world.push(flow, Event::TaskCreated(created));
    let (models, _folder) = fed(engine, &world.log, 1).await;
    let view = models.get(flow.root()).await.unwrap().unwrap();
    assert_eq!(view.row.inputs.as_str(), inputs);
    assert_eq!(&*view.row.name, "root \"quoted\"");
    assert_eq!((view.blocked_by, view.run), (Vec::new(), None));
}

async fn of_a_task_that_does_not_exist_nothing_is_read(engine: Engine) {
    let (models, _folder) = empty(engine).await;
    assert!(models.get(common::task(77)).await.unwrap().is_none());
    assert!(models.children(common::task(77)).await.unwrap().is_none());
    assert!(models.tree(common::task(77)).await.unwrap().is_none());
}

/// All pieces of a long answer, and how many tasks the largest had.
async fn whole(reading: Result<Option<Reading>, Error>) -> (Vec<Node>, usize) {
    let mut reading = reading.unwrap().unwrap();
    let (mut nodes, mut largest) = (Vec::new(), 0);
    while !reading.is_ended() {
        let piece = reading.next().await.unwrap();
        assert!(!piece.is_empty());
        largest = piece.len().max(largest);
        nodes.extend(piece);
    }
    assert!(reading.next().await.unwrap().is_empty());
    (nodes, largest)
}

/// A root group with two children, the second waiting for the first; both in a run.
fn pair() -> (World, TaskId, TaskId, TaskId, taskledger_domain::RunId) {
    let mut world = World::new(4);
    let (flow, event) = world.created(None, true, Vec::new());
    world.push(flow, event);
    let root = world.live.values().next().unwrap().clone();
    let (_, event) = world.created(Some(&root), false, Vec::new());
    let first = event.task_id().unwrap();
    world.push(flow, event);
    let needs = vec![Dependency {
        id: first,
        when: When::Completed,
    }];
    let (_, event) = world.created(Some(&root), false, needs);
    let second = event.task_id().unwrap();
    world.push(flow, event);
    let run_id = taskledger_domain::RunId(world.fresh());
    world.push(
        flow,
        Event::RunStarted(RunStarted {
            run_id,
            task_id: root.id,
            kind: RunKind::Execute,
            covers: vec![(0, 2)],
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        }),
    );
    for task_id in [root.id, first] {
        world.push(
            flow,
            Event::TaskStarted(TaskStarted {
                task_id,
                attempt: 1,
                run_id,
                lease: None,
            }),
        );
    }
    (world, root.id, first, second, run_id)
}

fn failed(task_id: TaskId, attempt: u32, will_retry: bool) -> Event {
    Event::TaskFailed(TaskFailed {
        task_id,
        attempt,
        error: "no route".to_owned(),
        reason: FailureReason::Timeout,
        progress: Progress::from_millionths(500_000),
        will_retry,
        remarks: None,
        breach: None,
    })
}

async fn a_failed_dependency_blocks_and_the_run_and_the_attempts_say_so(engine: Engine) {
    let (mut world, root, first, second, run_id) = pair();
    let flow = root.as_flow();
    world.push(flow, failed(first, 1, true));
    let at = Timestamp(world.now + 1_000_000);
    world.push(
        flow,
        Event::TaskRequeued(TaskRequeued {
            task_id: first,
            run_id,
            reason: RequeueReason::Retry,
            next_attempt_at: Some(at),
        }),
    );
    let (models, _folder) = fed(engine, &world.log, 3).await;
    let waiting = models.get(first).await.unwrap().unwrap();
    assert_eq!(waiting.row.next_attempt_at, Some(at));
    assert!(
        models
            .get(second)
            .await
            .unwrap()
            .unwrap()
            .blocked_by
            .is_empty()
    );
    assert_eq!(
        models.open_runs(0, 10).await.unwrap()[0].next_due_at,
        Timestamp(0)
    );

    let seen = world.log.len();
    let attempt = 2;
    world.push(
        flow,
        Event::TaskStarted(TaskStarted {
            task_id: first,
            attempt,
            run_id,
            lease: None,
        }),
    );
    world.push(flow, failed(first, 2, false));
    models.apply(&world.log[seen..]).await.unwrap();
    let blocked = models.get(second).await.unwrap().unwrap();
    let status = Status::Failed;
    assert_eq!(blocked.blocked_by, [Blocker { id: first, status }]);
    let shown = models.get(root).await.unwrap().unwrap();
    let run = shown.run.unwrap();
    let counts = StatusCounts {
        pending: 1,
        failed: 1,
        ..StatusCounts::default()
    };
    assert_eq!((run.id, run.state), (run_id, RunState::Running));
    assert_eq!(run.counts, counts);
    assert_eq!(shown.row.progress, Progress::from_millionths(250_000));
    let (children, _) = whole(models.children(root).await).await;
    let [one, other] = children.as_slice() else {
        panic!("{children:?}")
    };
    assert_eq!((one.depth, one.task.row.id), (0, first));
    assert_eq!((other.depth, &other.task), (0, &blocked));
    let attempts = models.attempts(first, 10).await.unwrap();
    let outcomes: Vec<_> = attempts
        .iter()
        .map(|a| {
            (
                a.attempt,
                a.outcome.as_deref(),
                a.reason.as_deref(),
                a.run_id,
            )
        })
        .collect();
    let expected = |n| (n, Some("failed"), Some("timeout"), Some(run_id));
    assert_eq!(outcomes, [expected(1), expected(2)]);

    let seen = world.log.len();
    let counts = StatusCounts {
        pending: 1,
        failed: 2,
        ..StatusCounts::default()
    };
    let state = RunState::Failed;
    world.push(
        flow,
        Event::RunEnded(RunEnded {
            run_id,
            task_id: root,
            state,
            counts,
            root: taskledger_domain::testing::root_at_end(),
            others: 0,
            rejected: false,
        }),
    );
    models.apply(&world.log[seen..]).await.unwrap();
    let run = models.get(root).await.unwrap().unwrap().run.unwrap();
    assert_eq!((run.state, run.counts), (state, counts));
    assert!(models.open_runs(0, 10).await.unwrap().is_empty());
}

async fn a_flow_that_only_waits_for_a_retry_is_not_due_before_it(engine: Engine) {
    let mut world = World::new(3);
    let (flow, event) = world.created(None, false, Vec::new());
    let Event::TaskCreated(mut created) = event else {
        panic!("a creation")
    };
    created.specification.deadline = None;
    let task_id = created.task_id;
    world.push(flow, Event::TaskCreated(created));
    let run_id = taskledger_domain::RunId(world.fresh());
    world.push(
        flow,
        Event::RunStarted(RunStarted {
            run_id,
            task_id,
            kind: RunKind::Execute,
            covers: vec![(0, 0)],
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        }),
    );
    world.push(
        flow,
        Event::TaskStarted(TaskStarted {
            task_id,
            attempt: 1,
            run_id,
            lease: None,
        }),
    );
    let (models, _folder) = fed(engine, &world.log, 2).await;
    assert_eq!(
        models.open_runs(0, 10).await.unwrap()[0].next_due_at,
        Timestamp(0)
    );
    world.push(flow, failed(task_id, 1, true));
    let at = Timestamp(world.now + 60_000_000);
    world.push(
        flow,
        Event::TaskRequeued(TaskRequeued {
            task_id,
            run_id,
            reason: RequeueReason::Retry,
            next_attempt_at: Some(at),
        }),
    );
    models.apply(&world.log).await.unwrap();
    let open = models.open_runs(0, 10).await.unwrap();
    assert_eq!(open[0].next_due_at, at);
    assert_eq!(open[0].partition, taskledger_domain::partition(flow));
    assert!(
        models
            .open_runs(open[0].created_position, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_tree_has_every_task_below_its_parent_in_order(engine: Engine) {
    let world = busy_world(21, 250);
    let (models, _folder) = fed(engine, &world.log, 30).await;
    for row in world.live.values() {
        let (nodes, _) = whole(models.tree(row.id).await).await;
        assert_eq!((nodes[0].depth, nodes[0].task.row.id), (0, row.id));
        // Children that were given so far, by parent, and the tasks above the next one.
        let mut given: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        let mut above: Vec<TaskId> = Vec::new();
        for node in &nodes {
            let task = &node.task.row;
            above.truncate(node.depth);
            if node.depth > 0 {
                assert_eq!(task.parent_id, above.last().copied());
                let parent = task.parent_id.unwrap();
                given.entry(parent).or_default().push(task.id);
            }
            above.push(task.id);
        }
        for node in &nodes {
            let id = node.task.row.id;
            let children = world.live.values().filter(|r| r.parent_id == Some(id));
            let expected: Vec<TaskId> = children.map(|r| r.id).collect();
            assert_eq!(given.remove(&id).unwrap_or_default(), expected);
        }
        assert!(given.is_empty());
    }
}

async fn a_tree_of_a_hundred_thousand_is_built_run_and_written(engine: Engine) {
    const TASKS: u32 = 100_000;
    let (models, _folder) = empty(engine).await;
    let mut world = World::new(1);
    let root = common::task(1);
    let flow = root.as_flow();
    let ids: Vec<TaskId> = (1..=u64::from(TASKS)).map(common::task).collect();
    for (i, id) in ids.iter().enumerate() {
        // Chains of 50 below the root.
        let parent_id = match i {
            0 => None,
            _ if i % 50 == 1 => Some(root),
            _ => Some(ids[i - 1]),
        };
        world.push_quick(
            flow,
            Event::TaskCreated(TaskCreated {
                task_id: *id,
                ordinal: i as u32,
                parent_id,
                name: format!("task {i}"),
                user_id: None,
                priority: Priority::NORMAL,
                dependencies: Vec::new(),
                specification: Specification {
                    inputs: Payload::empty(),
                    schemas: None,
                    params: None,
                    method: (i > 0).then(|| "echo".to_owned()),
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
            }),
        );
    }
    let run_id = taskledger_domain::RunId(world.fresh());
    world.push_quick(
        flow,
        Event::RunStarted(RunStarted {
            run_id,
            task_id: root,
            kind: RunKind::Execute,
            covers: vec![(0, TASKS - 1)],
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        }),
    );
    for events in world.log.chunks(2048) {
        models.apply(events).await.unwrap();
    }
    let view = models.get(root).await.unwrap().unwrap();
    assert_eq!(view.run.unwrap().counts.pending, TASKS - 1);
    assert_eq!(
        models.get(ids[70_000]).await.unwrap().unwrap().row.run_id,
        Some(run_id)
    );
    let (nodes, largest) = whole(models.tree(root).await).await;
    assert_eq!(nodes.len(), TASKS as usize);
    assert!(largest * 100 < nodes.len(), "a piece is a small part");
    let chains = nodes.iter().filter(|node| node.depth == 1).count();
    assert_eq!(chains, 2000);
    let expected = (0..TASKS).map(|n| if n == 0 { 0 } else { (n as usize - 1) % 50 + 1 });
    assert!(nodes.iter().map(|node| node.depth).eq(expected));
}
