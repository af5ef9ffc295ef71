//! What tasks of runs have made of their outputs.

use super::*;
use taskledger_domain::flow::{FailureReason, OutputPart, TaskFailed, TaskOutputAppended};
use taskledger_domain::task::Progress;

taskledger_testkit::on_both_engines!(
    parts_of_outputs_are_named_until_another_attempt_makes_some,
    outputs_without_room_are_left_out_whole,
);

fn makes(world: &mut World, task_id: TaskId, attempt: u32, number: u32) {
    let part = TaskOutputAppended {
        task_id,
        attempt,
        number,
        part: OutputPart::Text("more".to_owned()),
        progress: Progress::ZERO,
    };
    push(world, task_id, Event::TaskOutputAppended(part));
}

fn fails(world: &mut World, task_id: TaskId, attempt: u32, run_id: RunId) {
    let failed = TaskFailed {
        task_id,
        attempt,
        error: "no ink".to_owned(),
        reason: FailureReason::Executor,
        progress: Progress::ZERO,
        will_retry: true,
        remarks: None,
        breach: None,
    };
    push(world, task_id, Event::TaskFailed(failed));
    let again = TaskRequeued {
        task_id,
        run_id,
        reason: RequeueReason::Retry,
        next_attempt_at: None,
    };
    push(world, task_id, Event::TaskRequeued(again));
}

async fn parts_of_outputs_are_named_until_another_attempt_makes_some(engine: Engine) {
    let (mut world, run) = (World::new(1), run("run"));
    let a = created(&mut world, 1, None);
    begins(&mut world, a, run, None);
    starts(&mut world, a, 1, run);
    makes(&mut world, a, 1, 1);
    makes(&mut world, a, 1, 2);
    fails(&mut world, a, 1, run);
    starts(&mut world, a, 2, run);
    makes(&mut world, a, 2, 1);
    ends(&mut world, a, 2, run);
    // After so many events: the attempt that has made something, the events with it, whether there is a result.
    let expected = [
        (3, None, false),
        (5, Some((1, vec![4, 5])), false),
        (8, Some((1, vec![4, 5])), false),
        (9, Some((2, vec![9])), false),
        (11, Some((2, vec![9])), true),
    ];
    for batch in [1, 100] {
        for (events, output, has_result) in &expected {
            let ground = Ground::new(engine).await;
            let models = ground.fed(&world.log[..*events], batch).await;
            let made = seen(&models, run).await.artifacts.pop();
            let found = made.as_ref().map(|it| (it.attempt, it.output.clone()));
            assert_eq!(found, *output, "after {events}");
            let result = made.and_then(|it| it.task.result);
            assert_eq!(result.is_some(), *has_result, "after {events}");
        }
    }
}

async fn outputs_without_room_are_left_out_whole(engine: Engine) {
    let (mut world, run) = (World::new(1), run("run"));
    let (a, flow) = (created(&mut world, 1, None), task(1).as_flow());
    let below = TaskCreated {
        task_id: task(2),
        ordinal: 1,
        parent_id: Some(a),
        name: "below".to_owned(),
        user_id: None,
        priority: Priority::NORMAL,
        dependencies: Vec::new(),
        specification: world.specification(false),
        copied_from: None,
        labels: taskledger_domain::task::Labels::default(),
        run_id: None,
    };
    world.push_quick(flow, Event::TaskCreated(below));
    let started = RunStarted {
        run_id: run,
        task_id: a,
        kind: RunKind::Execute,
        covers: vec![(0, 1)],
        allow_unknown_executors: false,
        executor_wait_ms: 0,
        wait_bounds: Default::default(),
        callback: None,
        origin: None,
    };
    world.push_quick(flow, Event::RunStarted(started));
    for id in [a, task(2)] {
        let started = TaskStarted {
            task_id: id,
            attempt: 1,
            run_id: run,
            lease: None,
        };
        world.push_quick(flow, Event::TaskStarted(started));
        for number in 1..=3 {
            let part = TaskOutputAppended {
                task_id: id,
                attempt: 1,
                number,
                part: OutputPart::Text("more".to_owned()),
                progress: Progress::ZERO,
            };
            world.push_quick(flow, Event::TaskOutputAppended(part));
        }
    }
    let ground = Ground::new(engine).await;
    let models = ground.fed(&world.log, 100).await;
    // Each has three texts of six bytes as JSON.
    for (bytes_max, shown) in [(17, 0), (18, 1), (35, 1), (36, 2)] {
        let parts = Parts {
            artifact_bytes_max: bytes_max,
            ..ALL
        };
        let found = models.run_snapshot(run, parts).await.unwrap().unwrap();
        let made = &found.artifacts;
        assert_eq!(made.len(), shown, "{bytes_max}");
        assert!(made.iter().all(|it| it.output.len() == 3), "{bytes_max}");
        assert_eq!(found.artifacts_left_out, 2 - shown as u64, "{bytes_max}");
    }

    // One that has returned is left out as a whole, and once.
    for id in [task(2), a] {
        let text = serde_json::json!({"text": "x".repeat(1000)});
        let completed = TaskCompleted {
            task_id: id,
            attempt: 1,
            result: Payload::from_map(text.as_object().unwrap()),
            remarks: None,
            parts: 3,
        };
        world.push_quick(flow, Event::TaskCompleted(completed));
    }
    let ground = Ground::new(engine).await;
    let models = ground.fed(&world.log, 100).await;
    let parts = Parts {
        artifact_bytes_max: 2500,
        ..ALL
    };
    let found = models.run_snapshot(run, parts).await.unwrap().unwrap();
    let made: Vec<_> = found.artifacts.iter().collect();
    assert_eq!((made.len(), found.artifacts_left_out), (1, 1));
    assert!(made[0].task.result.is_some() && made[0].output.len() == 3);
}
