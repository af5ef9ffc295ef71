//! Schedules under a clock that stands still until it is moved: what becomes of their times.

mod changes;
mod many;
mod trouble;

use crate::application::broker::Broker;
use crate::application::world::{World, caller, quiet, soon};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::application::api::schedules::{
    CreateSchedule, Definition, Named, Overlap, Schedule, ShownSchedule, State, Timing, Work,
};
use taskledger::application::context::Idempotency;
use taskledger_domain::flow::Event;
use taskledger_domain::testing::START;
use taskledger_domain::{TaskId, Timestamp};
use tokio_util::sync::CancellationToken;

const MINUTE_MS: u64 = 60_000;

/// A service whose read models follow the log.
async fn served() -> Broker {
    let mut w = World::new().await;
    w.run_read_models();
    w.run_flows();
    Broker::over(w).await
}

/// Each minute a task that a worker would carry out, so that its run goes on until it is cancelled.
fn definition() -> Definition {
    Definition {
        timing: Timing::Every { seconds: 60 },
        work: Work::Tasks {
            tasks: json!([{
                "name": "picture", "schemas": {"method": "resize"},
                "inputs": {"at": "$schedule.scheduled_at", "of": ["$schedule.name", "as it is"]},
            }]),
        },
        start_at: None,
        end_at: None,
        max_runs: None,
        overlap: Overlap::Skip,
        catch_up_seconds: 60,
        jitter_seconds: 0,
    }
}

fn named() -> Named {
    Named {
        owner: None,
        name: "each minute".into(),
    }
}

async fn create(b: &Broker, definition: Definition) -> ShownSchedule {
    let create = CreateSchedule {
        named: named(),
        definition,
        is_paused: false,
        note: None,
    };
    let made = soon(b.service.create_schedule(&caller(), create)).await;
    made.unwrap().unwrap()
}

async fn get(b: &Broker) -> ShownSchedule {
    let found = soon(b.service.get_schedule(&caller(), named())).await;
    found.unwrap().unwrap()
}

/// Moves the clock on and looks.
async fn pass(b: &Broker, ms: u64) {
    b.w.clock.advance_ms(ms);
    soon(b.service.look_at_schedules()).await.unwrap();
}

fn minute(n: i64) -> Timestamp {
    Timestamp(START.0 + n * 60_000_000)
}

/// `[started, skipped, missed, failed]`
fn counts(schedule: &Schedule) -> [u64; 4] {
    let of = &schedule.counters;
    [of.started, of.skipped, of.missed, of.failed]
}

/// Minutes of runs, oldest first, by what became of them.
fn minutes(shown: &ShownSchedule, state: State) -> Vec<i64> {
    let runs = shown.runs.iter().rev().filter(|run| run.state == state);
    runs.map(|run| (run.scheduled_at.0 - START.0) / 60_000_000)
        .collect()
}

async fn cancel(b: &Broker, shown: &ShownSchedule, minute: i64) {
    let at = Timestamp(START.0 + minute * 60_000_000);
    let run = shown
        .runs
        .iter()
        .find(|run| run.scheduled_at == at)
        .unwrap();
    let root = TaskId(run.flow);
    let context = caller();
    let done = b.w.app.cancel(&context, root, true, None);
    soon(done).await.unwrap();
}

/// Roots of all flows in the log, with the time that their input was told.
async fn begun(b: &Broker) -> Vec<String> {
    let mut begun = Vec::new();
    for recorded in b.w.whole_log().await {
        if let Event::TaskCreated(created) = &*recorded.event {
            let inputs = created.specification.inputs.to_map();
            begun.push(inputs["at"].as_str().unwrap().to_owned());
        }
    }
    begun
}

#[tokio::test]
async fn a_time_is_skipped_while_a_run_goes_on() {
    let b = served().await;
    let made = create(&b, definition()).await;
    assert_eq!(made.next, (1..=5).map(minute).collect::<Vec<_>>());
    pass(&b, MINUTE_MS - 1).await;
    assert_eq!(counts(&get(&b).await.schedule), [0, 0, 0, 0]);
    pass(&b, 1).await;
    pass(&b, MINUTE_MS).await;
    let shown = get(&b).await;
    assert_eq!(counts(&shown.schedule), [1, 1, 0, 0]);
    assert_eq!(shown.runs[1].stage.as_deref(), Some("submitted"));
    cancel(&b, &shown, 1).await;
    pass(&b, MINUTE_MS).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1, 3]);
    assert_eq!(minutes(&shown, State::Skipped), [2]);
    assert_eq!(shown.runs[2].stage.as_deref(), Some("cancelled"));
    assert_eq!(
        begun(&b).await,
        [minute(1).to_string(), minute(3).to_string()]
    );
}

#[tokio::test]
async fn one_time_waits_for_the_end_of_a_run_and_those_behind_it_are_skipped() {
    let b = served().await;
    create(
        &b,
        Definition {
            overlap: Overlap::Queue,
            ..definition()
        },
    )
    .await;
    for _ in 0..3 {
        pass(&b, MINUTE_MS).await;
    }
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1]);
    assert_eq!(minutes(&shown, State::Waiting), [2]);
    assert_eq!(minutes(&shown, State::Skipped), [3]);
    cancel(&b, &shown, 1).await;
    // Nobody told of the end: it is looked all the same.
    pass(&b, 29_000).await;
    assert_eq!(minutes(&get(&b).await, State::Started), [1]);
    pass(&b, 1_000).await;
    assert_eq!(minutes(&get(&b).await, State::Started), [1, 2]);
    assert_eq!(
        begun(&b).await,
        [minute(1).to_string(), minute(2).to_string()]
    );
}

#[tokio::test]
async fn a_time_that_waits_begins_as_soon_as_the_run_before_it_ends() {
    let b = served().await;
    let queued = Definition {
        overlap: Overlap::Queue,
        ..definition()
    };
    create(&b, queued).await;
    let stop = CancellationToken::new();
    let (service, stopped) = (b.service.clone(), stop.clone());
    let keeping = tokio::spawn(async move { service.keep_schedules(stopped).await });
    let states = async || {
        let runs = get(&b).await.runs;
        runs.iter().map(|run| run.state).collect::<Vec<_>>()
    };
    let context = caller();
    for _ in 0..2 {
        let run = b.service.run_schedule(&context, named(), None);
        soon(run).await.unwrap().unwrap();
    }
    let waits = [State::Waiting, State::Started];
    let before = states().await;
    assert!(
        waits.iter().all(|state| before.contains(state)),
        "{before:?}"
    );
    let runs = get(&b).await.runs;
    let first = runs.iter().find(|run| run.state == State::Started).unwrap();
    let cancel = b.w.app.cancel(&context, TaskId(first.flow), true, None);
    soon(cancel).await.unwrap();
    // The clock stands still, so no look is due.
    let begun = async {
        while states().await != [State::Started; 2] {
            quiet().await;
        }
    };
    soon(begun).await;
    stop.cancel();
    soon(keeping).await.unwrap();
}

#[tokio::test]
async fn runs_go_on_beside_each_other_or_give_way_to_the_next_one() {
    for overlap in [Overlap::Allow, Overlap::CancelPrevious] {
        let b = served().await;
        create(
            &b,
            Definition {
                overlap,
                ..definition()
            },
        )
        .await;
        for _ in 0..3 {
            pass(&b, MINUTE_MS).await;
        }
        let shown = get(&b).await;
        assert_eq!(minutes(&shown, State::Started), [1, 2, 3]);
        let stages: Vec<_> = shown
            .runs
            .iter()
            .map(|run| run.stage.as_deref().unwrap())
            .collect();
        match overlap {
            Overlap::Allow => assert_eq!(stages, ["submitted"; 3]),
            Overlap::CancelPrevious | Overlap::Skip | Overlap::Queue => {
                assert_eq!(stages, ["submitted", "cancelled", "cancelled"]);
            }
        }
    }
}

#[tokio::test]
async fn times_that_passed_are_made_up_within_the_window_and_counted_beyond_it() {
    let b = served().await;
    let wide = Definition {
        overlap: Overlap::Allow,
        catch_up_seconds: 150,
        ..definition()
    };
    create(&b, wide).await;
    // No server looked for an hour.
    pass(&b, 60 * MINUTE_MS).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [58, 59, 60]);
    assert_eq!(counts(&shown.schedule), [3, 0, 57, 0]);
    assert_eq!(shown.next[0], minute(61));
}

#[tokio::test]
async fn a_pause_loses_its_times_and_skips_what_waited() {
    let b = served().await;
    create(
        &b,
        Definition {
            overlap: Overlap::Queue,
            ..definition()
        },
    )
    .await;
    pass(&b, MINUTE_MS).await;
    pass(&b, MINUTE_MS).await;
    let note: Option<Arc<str>> = Some("moving".into());
    let paused = b
        .service
        .pause_schedule(&caller(), named(), (true, note))
        .await;
    let paused = paused.unwrap().unwrap();
    assert_eq!(
        (paused.next.len(), paused.schedule.note.as_deref()),
        (0, Some("moving"))
    );
    pass(&b, 10 * MINUTE_MS).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Skipped), [2]);
    assert_eq!(counts(&shown.schedule), [1, 1, 0, 0]);
    let resumed = b
        .service
        .pause_schedule(&caller(), named(), (false, None))
        .await;
    assert_eq!(resumed.unwrap().unwrap().next[0], minute(13));
    pass(&b, MINUTE_MS / 2).await;
    assert_eq!(counts(&get(&b).await.schedule), [1, 1, 0, 0]);
}

#[tokio::test]
async fn a_schedule_ends_with_its_runs() {
    let b = served().await;
    create(
        &b,
        Definition {
            max_runs: Some(2),
            overlap: Overlap::Allow,
            ..definition()
        },
    )
    .await;
    for _ in 0..5 {
        pass(&b, MINUTE_MS).await;
    }
    let shown = get(&b).await;
    assert_eq!(counts(&shown.schedule), [2, 0, 0, 0]);
    assert_eq!((shown.schedule.next_at, shown.next.len()), (None, 0));
}

#[tokio::test]
async fn a_start_by_hand_obeys_the_policy_and_happens_once_for_each_key() {
    let b = served().await;
    create(&b, definition()).await;
    let keyed = |key: &str| {
        let mut context = caller();
        context.idempotency = Some(Idempotency::new(Arc::from(key)));
        context
    };
    let run = async |key: &str, overlap| {
        let done = soon(b.service.run_schedule(&keyed(key), named(), overlap)).await;
        done.unwrap().unwrap().run
    };
    let first = run("a", None).await;
    assert_eq!(first.state, State::Started);
    assert_eq!(run("a", None).await, first);
    assert_eq!(run("b", None).await.state, State::Skipped);
    assert_eq!(run("c", Some(Overlap::Allow)).await.state, State::Started);
    let counters = get(&b).await.schedule.counters;
    assert_eq!(
        (counters.started, counters.started_by_hand, counters.skipped),
        (0, 2, 1)
    );
    assert_eq!(begun(&b).await.len(), 2);
}

#[tokio::test]
async fn jitter_puts_a_start_off_by_the_same_time_each_time() {
    let b = served().await;
    let made = create(
        &b,
        Definition {
            jitter_seconds: 50,
            ..definition()
        },
    )
    .await;
    let due = made.schedule.due_at.unwrap();
    assert!(due >= minute(1) && due <= minute(1).plus_ms(50_000));
    let wait = due.ms_since(START);
    pass(&b, wait - 1).await;
    assert_eq!(counts(&get(&b).await.schedule), [0, 0, 0, 0]);
    pass(&b, 2).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1]);
}

#[tokio::test]
async fn a_draining_server_starts_nothing() {
    let b = served().await;
    create(&b, definition()).await;
    b.w.app.flows.hold_back(true);
    pass(&b, MINUTE_MS).await;
    assert_eq!(counts(&get(&b).await.schedule), [0, 0, 0, 0]);
    b.w.app.flows.hold_back(false);
    pass(&b, 0).await;
    assert_eq!(counts(&get(&b).await.schedule), [1, 0, 0, 0]);
}

#[tokio::test]
async fn the_events_of_a_run_name_the_schedule_and_the_time() {
    let b = served().await;
    create(&b, definition()).await;
    pass(&b, MINUTE_MS).await;
    let log = b.w.whole_log().await;
    let created = log
        .iter()
        .find(|it| matches!(&*it.event, Event::TaskCreated(_)))
        .unwrap();
    let expected = format!("schedule/each minute/{}", minute(1));
    assert_eq!(&*created.metadata.correlation, expected.as_str());
    let Event::TaskCreated(created) = &*created.event else {
        unreachable!("it was looked for")
    };
    let inputs = Value::Object(created.specification.inputs.to_map());
    assert_eq!(
        inputs,
        json!({"at": minute(1), "of": ["each minute", "as it is"]})
    );
}
