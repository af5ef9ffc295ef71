//! Starts that do not succeed now, pauses in the middle of them, and servers that were away for long.

use super::{
    MINUTE_MS, begun, counts, create, definition, get, minute, minutes, named, pass, served,
};
use crate::application::broker::Broker;
use crate::application::world::{caller, soon};
use std::time::Duration;
use taskledger::application::api::schedules::{Definition, Overlap, State, Timing};
use taskledger::store;

/// The log takes nothing, once.
fn refuse_next_append(b: &Broker) {
    let full = store::Error::NotWritable("no space left on device".to_owned());
    b.w.faults.refuse_next_append(full);
}

fn overlapping(overlap: Overlap) -> Definition {
    Definition {
        overlap,
        ..definition()
    }
}

#[tokio::test]
async fn a_start_that_does_not_succeed_now_holds_up_no_other() {
    let b = served().await;
    create(&b, overlapping(Overlap::Allow)).await;
    refuse_next_append(&b);
    pass(&b, MINUTE_MS).await;
    assert_eq!(minutes(&get(&b).await, State::Starting), [1]);
    refuse_next_append(&b);
    pass(&b, MINUTE_MS).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Starting), [1]);
    assert_eq!(minutes(&shown, State::Started), [2]);
    pass(&b, 1_000).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1, 2]);
    assert_eq!(counts(&shown.schedule), [2, 0, 0, 0]);
}

#[tokio::test]
async fn starts_that_are_tried_again_count_towards_the_runs_of_a_schedule() {
    let b = served().await;
    let one = Definition {
        max_runs: Some(1),
        ..overlapping(Overlap::Allow)
    };
    create(&b, one).await;
    refuse_next_append(&b);
    pass(&b, MINUTE_MS).await;
    refuse_next_append(&b);
    pass(&b, MINUTE_MS).await;
    pass(&b, 1_000).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1]);
    assert_eq!((shown.schedule.next_at, begun(&b).await.len()), (None, 1));
}

#[tokio::test]
async fn a_run_gives_way_once_the_next_one_is_decided() {
    let b = served().await;
    create(&b, overlapping(Overlap::CancelPrevious)).await;
    pass(&b, MINUTE_MS).await;
    // The cancellation does not succeed.
    refuse_next_append(&b);
    pass(&b, MINUTE_MS).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1]);
    assert_eq!(minutes(&shown, State::Starting), [2]);
    assert_eq!(shown.runs[1].stage.as_deref(), Some("submitted"));
    pass(&b, 1_000).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1, 2]);
    assert_eq!(shown.runs[1].stage.as_deref(), Some("cancelled"));
    assert_eq!(shown.runs[0].stage.as_deref(), Some("submitted"));
}

#[tokio::test]
async fn what_was_being_started_is_skipped_when_its_schedule_is_paused() {
    let b = served().await;
    create(&b, definition()).await;
    refuse_next_append(&b);
    pass(&b, MINUTE_MS).await;
    b.w.clock.advance_ms(1);
    let paused = b
        .service
        .pause_schedule(&caller(), named(), (true, None))
        .await;
    paused.unwrap().unwrap();
    pass(&b, 1_000).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Skipped), [1]);
    assert_eq!(counts(&shown.schedule), [0, 1, 0, 0]);
    assert!(begun(&b).await.is_empty());
}

#[tokio::test]
async fn a_start_is_given_up_after_ten_minutes() {
    let b = served().await;
    let once = Definition {
        max_runs: Some(1),
        ..definition()
    };
    create(&b, once).await;
    refuse_next_append(&b);
    pass(&b, MINUTE_MS).await;
    refuse_next_append(&b);
    pass(&b, 10 * MINUTE_MS - 1).await;
    assert_eq!(minutes(&get(&b).await, State::Starting), [1]);
    refuse_next_append(&b);
    pass(&b, 1_001).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Failed), [1]);
    let reason = shown.schedule.last_error.unwrap();
    assert!(reason.starts_with("gave up"), "{reason}");
}

#[tokio::test]
async fn a_look_ends_while_the_log_does_not_answer_and_the_start_happens_once() {
    let b = served().await;
    create(&b, definition()).await;
    let mut hold = b.w.faults.hold_next_append();
    b.w.clock.advance_ms(MINUTE_MS);
    // In real time; less than a lease.
    let look = tokio::time::timeout(Duration::from_secs(9), b.service.look_at_schedules());
    look.await.expect("it ends before its lease").unwrap();
    hold.arrived().await;
    hold.release();
    assert_eq!(minutes(&get(&b).await, State::Starting), [1]);
    pass(&b, 1_000).await;
    assert_eq!(minutes(&get(&b).await, State::Started), [1]);
    assert_eq!(begun(&b).await, [minute(1).to_string()]);
}

#[tokio::test]
async fn a_rule_of_minutes_goes_on_after_a_month_without_a_server() {
    let b = served().await;
    let rule = Definition {
        timing: Timing::Rrule {
            rrule: "FREQ=MINUTELY".into(),
            time_zone: "Europe/Berlin".into(),
        },
        ..overlapping(Overlap::Allow)
    };
    create(&b, rule).await;
    let month = 30 * 24 * 60;
    soon(async {
        b.w.clock.advance_ms(month * MINUTE_MS);
        while counts(&get(&b).await.schedule)[0] == 0 {
            b.service.look_at_schedules().await.unwrap();
        }
    })
    .await;
    let [started, skipped, missed, failed] = counts(&get(&b).await.schedule);
    assert_eq!((started + missed, skipped, failed), (month, 0, 0));
    assert!(started <= 2, "{started} were within the window");
}

#[tokio::test]
async fn a_clock_that_comes_back_from_another_day_stops_no_schedule() {
    const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
    let b = served().await;
    create(&b, overlapping(Overlap::Allow)).await;
    soon(b.service.correct_times()).await.unwrap();
    pass(&b, MINUTE_MS).await;
    b.w.clock.advance_ms(DAY_MS);
    soon(b.service.correct_times()).await.unwrap();
    pass(&b, 0).await;
    let ahead = get(&b).await;
    assert_eq!(
        ahead.schedule.counters.started, 3,
        "the last two are made up"
    );
    assert_eq!(ahead.schedule.counters.missed, 24 * 60 - 2);
    assert!(ahead.next[0] > minute(24 * 60));
    // The machine has its own day again.
    b.w.clock.set_back_ms(DAY_MS);
    soon(b.service.correct_times()).await.unwrap();
    pass(&b, 0).await;
    let back = get(&b).await;
    assert_eq!(back.next[0], minute(2));
    pass(&b, MINUTE_MS).await;
    pass(&b, MINUTE_MS).await;
    let shown = get(&b).await;
    assert_eq!(shown.schedule.counters.started, 5);
    assert_eq!(shown.schedule.counters.missed, 24 * 60 - 2);
    assert_eq!(shown.next[0], minute(4));
    let begun = begun(&b).await;
    let times: Vec<String> = [1, 24 * 60, 24 * 60 + 1, 2, 3]
        .map(|n| minute(n).to_string())
        .to_vec();
    assert_eq!(begun, times);
}

#[tokio::test]
async fn a_time_that_had_its_run_while_the_clock_was_ahead_has_no_other_one() {
    const HOUR_MS: u64 = 60 * MINUTE_MS;
    let b = served().await;
    let hourly = Definition {
        timing: Timing::Every { seconds: 3_600 },
        catch_up_seconds: 7_200,
        ..overlapping(Overlap::Allow)
    };
    create(&b, hourly).await;
    soon(b.service.correct_times()).await.unwrap();
    b.w.clock.advance_ms(HOUR_MS);
    soon(b.service.correct_times()).await.unwrap();
    pass(&b, 0).await;
    assert_eq!(begun(&b).await, [minute(60).to_string()]);
    b.w.clock.set_back_ms(HOUR_MS);
    soon(b.service.correct_times()).await.unwrap();
    pass(&b, 0).await;
    assert_eq!(get(&b).await.next[0], minute(60));
    pass(&b, HOUR_MS).await;
    assert_eq!(get(&b).await.schedule.counters.started, 1);
    pass(&b, HOUR_MS).await;
    assert_eq!(
        begun(&b).await,
        [minute(60).to_string(), minute(120).to_string()]
    );
    assert_eq!(get(&b).await.schedule.counters.started, 2);
}
