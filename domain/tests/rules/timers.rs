//! Tasks that start later than they could.

use crate::support::*;
use taskledger_domain::flow::explain::Reason;
use taskledger_domain::flow::{Command, Event, RunKind, TimerKind};
use taskledger_domain::task::Status::{Cancelled, Completed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::testing::{START, Scenario, execute, given, group, id, start, task};
use taskledger_domain::{Timestamp, schedule};

fn ms(ms: u64) -> Timestamp {
    START.plus_ms(ms)
}

fn running(tasks: Vec<NewTask>) -> Scenario {
    let first = tasks[0].name.clone();
    given(tasks).when(execute(&first)).accepted()
}

fn due(s: &Scenario) -> Option<Timestamp> {
    schedule::next_due(&s.flow, s.now, &s.server)
}

fn at(mut s: Scenario, time: Timestamp) -> Scenario {
    s.now = time;
    s.when(Command::Wake).accepted()
}

/// Times that were recorded for the task, with what decided.
fn told(s: &Scenario, name: &str) -> Vec<(Timestamp, Option<TimerKind>)> {
    let all = s.history.iter().filter_map(|(_, event)| match event {
        Event::TaskDeferred(e) if e.task_id == id(name) => Some((e.next_attempt_at, e.timer)),
        _ => None,
    });
    all.collect()
}

#[test]
fn a_ready_task_waits_for_start_at_and_starts_then() {
    let s = running(vec![task("a").start_at_ms(5000)]);
    assert_eq!((s.status("a"), due(&s)), (Some(Pending), Some(ms(5000))));
    assert_eq!(told(&s, "a"), [(ms(5000), Some(TimerKind::StartAt))]);
    let s = at(s, ms(4999));
    assert_eq!(s.status("a"), Some(Pending));
    let s = at(s, ms(5000));
    assert_eq!(s.status("a"), Some(InProgress));
}

#[test]
fn a_passed_start_at_acts_at_once_and_is_not_recorded() {
    let mut s = given(vec![task("a").start_at_ms(5)]);
    s.now = ms(1000);
    let s = s.when(execute("a")).accepted();
    assert_eq!((s.status("a"), told(&s, "a")), (Some(InProgress), vec![]));
}

#[test]
fn a_delay_is_counted_from_the_moment_at_which_the_task_is_ready() {
    let s = running(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]).delay_ms(3000),
    ]);
    assert_eq!(told(&s, "b"), []);
    let mut s = s;
    s.now = ms(700);
    let s = s.completes("a");
    assert_eq!(told(&s, "b"), [(ms(3700), Some(TimerKind::DelaySeconds))]);
    assert_eq!((s.status("b"), due(&s)), (Some(Pending), Some(ms(3700))));
    let s = at(s, ms(3700));
    assert_eq!(s.status("b"), Some(InProgress));
}

#[test]
fn of_both_the_later_counts() {
    for (start_at, delay, until, timer) in [
        (2000, 3000, 3000, TimerKind::DelaySeconds),
        (4000, 3000, 4000, TimerKind::StartAt),
    ] {
        let s = running(vec![task("a").start_at_ms(start_at).delay_ms(delay)]);
        assert_eq!(told(&s, "a"), [(ms(until), Some(timer))]);
        assert_eq!(due(&s), Some(ms(until)));
    }
}

#[test]
fn a_group_holds_back_what_is_below_it() {
    let s = running(vec![
        group("r"),
        group("g").under("r").delay_ms(3000),
        task("a").under("g"),
        group("h").under("g"),
        task("b").under("h").start_at_ms(4000),
        task("c").under("r"),
    ]);
    let s = s.then(&[("g", Pending), ("a", Pending), ("h", Pending)]);
    let s = s.then(&[("b", Pending), ("c", InProgress)]);
    let s = at(s, ms(3000)).then(&[("g", InProgress), ("a", InProgress), ("b", Pending)]);
    assert_eq!(due(&s), Some(ms(4000)));
    let s = at(s, ms(4000));
    assert_eq!(s.status("b"), Some(InProgress));
}

#[test]
fn start_at_of_a_group_holds_in_a_run_that_does_not_cover_it() {
    let s = given(vec![group("r").start_at_ms(1000), task("a").under("r")]);
    let s = s.when(execute("a")).accepted();
    assert_eq!((s.status("a"), due(&s)), (Some(Pending), Some(ms(1000))));
    assert_eq!(at(s, ms(1000)).status("a"), Some(InProgress));
}

#[test]
fn retries_do_not_wait_for_the_delay_again_and_new_runs_do() {
    let s = running(vec![task("a").delay_ms(3000).attempts(2, 10)]);
    let s = at(s, ms(3000));
    let s = s.fails("a");
    assert_eq!(due(&s), Some(ms(3010)));
    let s = at(s, ms(3010)).fails("a");
    assert!(!s.flow.has_active_run());
    let s = s.when(start("a", RunKind::Execute, "again")).accepted();
    assert_eq!((s.status("a"), due(&s)), (Some(Pending), Some(ms(6010))));
    assert_eq!(told(&s, "a").len(), 2);
}

#[test]
fn a_task_that_waits_is_cancelled_at_once_and_its_deadline_goes_on() {
    let s = running(vec![task("a").delay_ms(3000)]);
    let s = s.when(cancel("a")).accepted();
    assert_eq!((s.status("a"), due(&s)), (Some(Cancelled), None));
    let s = running(vec![task("a").delay_ms(3000).deadline_ms(1000)]);
    assert_eq!(due(&s), Some(ms(1000)));
    assert_eq!(at(s, ms(1000)).status("a"), Some(Cancelled));
}

#[test]
fn the_limit_of_the_wait_for_a_start_counts_from_the_time_at_which_it_may_start() {
    let mut s = given(vec![task("a").delay_ms(3000).starts_within_ms(500)]);
    s.server.slots = 0;
    let s = s.when(execute("a")).accepted();
    let s = at(s, ms(3000));
    assert_eq!((s.status("a"), due(&s)), (Some(Pending), Some(ms(3500))));
}

#[test]
fn other_timers_of_a_pending_task_count_at_once() {
    let s = running(vec![task("a").start_at_ms(60_000)]);
    let mut s = s;
    s.now = ms(100);
    let sooner = change("a").timers(Some(ms(200)), None);
    let s = updating(s, sooner).accepted();
    assert_eq!(due(&s), Some(ms(200)));
    let later = change("a").timers(None, Some(9000));
    let s = updating(s, later).accepted();
    // From the moment at which it was ready.
    assert_eq!((s.status("a"), due(&s)), (Some(Pending), Some(ms(9000))));
    let none = change("a").timers(None, None);
    let s = updating(s, none).accepted();
    assert_eq!(s.status("a"), Some(InProgress));
    let ends: Vec<_> = told(&s, "a").into_iter().map(|(at, _)| at).collect();
    assert_eq!(ends, [60_000, 200, 9000, 100].map(ms));
}

#[test]
fn a_new_start_at_of_a_failed_task_is_recorded_if_it_is_later_than_the_next_attempt() {
    for (start_at, due_at, recorded) in [(300, 500, vec![]), (700, 700, vec![ms(700)])] {
        let s = running(vec![task("a").attempts(2, 500)]).fails("a");
        assert_eq!(due(&s), Some(ms(500)));
        let s = updating(s, change("a").timers(Some(ms(start_at)), None)).accepted();
        let ends: Vec<_> = told(&s, "a").into_iter().map(|(at, _)| at).collect();
        assert_eq!((due(&s), ends), (Some(ms(due_at)), recorded));
        assert_eq!(at(s, ms(due_at)).status("a"), Some(InProgress));
    }
}

#[test]
fn a_run_does_not_end_while_a_group_waits() {
    let s = running(vec![group("r").delay_ms(1000)]);
    assert!(s.flow.has_active_run());
    let s = at(s, ms(1000));
    assert_eq!(s.status("r"), Some(Completed));
    assert!(!s.flow.has_active_run());
}

#[test]
fn an_explanation_names_the_time_and_who_says_it() {
    let s = running(vec![group("r").delay_ms(3000), task("a").under("r")]);
    let why = |s: &Scenario, name| {
        s.flow
            .explain(id(name), s.now, &s.server)
            .expect("live")
            .reasons
    };
    for name in ["r", "a"] {
        let [Reason::WaitsForTime(held)] = &why(&s, name)[..] else {
            panic!("{name} waits for its time: {:?}", why(&s, name));
        };
        assert_eq!((held.at, held.in_ms, held.of.id), (ms(3000), 3000, id("r")));
        assert_eq!(held.timer, TimerKind::DelaySeconds);
    }
}

#[test]
fn a_copy_of_the_state_waits_for_the_same() {
    let s = running(vec![
        group("r").delay_ms(3000),
        task("a").under("r").start_at_ms(9000),
    ]);
    let bytes = taskledger_domain::codec::snapshot::encode(&s.flow);
    let read = taskledger_domain::codec::snapshot::decode(&bytes).expect("readable");
    assert_eq!(read, s.flow);
}

#[test]
fn a_flow_is_woken_once_for_each_time_at_which_something_starts() {
    const TASKS: u64 = 500;
    let later = |n: u64| task(&format!("t{n}")).under("r").delay_ms(1000 + 10 * n);
    let tasks = std::iter::once(group("r")).chain((0..TASKS).map(later));
    let mut s = running(tasks.collect());
    s.server.slots = usize::MAX;
    for n in 0..TASKS {
        assert_eq!(due(&s), Some(ms(1000 + 10 * n)));
        s = at(s, ms(1000 + 10 * n));
        let (events, _) = s.last.as_ref().expect("accepted");
        assert!(matches!(events[..], [Event::TaskStarted(_)]), "{events:?}");
    }
    assert_eq!(due(&s), None);
}

#[test]
fn what_a_group_held_back_starts_when_the_group_says_nothing_any_more() {
    let s = given(vec![group("r").start_at_ms(1000), task("a").under("r")]);
    let s = s.when(execute("a")).accepted();
    let s = updating(s, change("r").timers(None, None)).accepted();
    assert_eq!(s.status("a"), Some(InProgress));
}
