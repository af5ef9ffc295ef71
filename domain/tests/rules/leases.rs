//! Attempts outside the server: claimed, held under a lease, given back, lost. spec: semantics / Remote work

use crate::support::{cancel, error_of, starts};
use taskledger_domain::flow::{
    Claim, Claimable, Command, Done, Event, FailureReason, Kind, Outdated, RequeueReason,
    TaskFailed, TaskRequeued,
};
use taskledger_domain::limits::ENDED_LEASES_PER_TASK_MAX;
use taskledger_domain::schedule::{self, Effect};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::task::{Priority, Progress};
use taskledger_domain::testing::{START, Scenario, execute, given, group, id, task};
use taskledger_domain::{LeaseId, Payload, Timestamp};

/// Milliseconds that the leases of these tests hold unless they are renewed.
const LEASE_MS: u64 = 60_000;

fn remote(name: &str) -> NewTask {
    task(name).method("resize")
}

/// These tasks, of which the first is executed; workers claim those of the method `resize`.
fn running(tasks: Vec<NewTask>) -> Scenario {
    let name = tasks[0].name.clone();
    let mut s = given(tasks);
    s.server.remote.insert("resize".to_owned());
    s.when(execute(&name)).accepted()
}

fn lease(name: &str) -> LeaseId {
    LeaseId(id(name).0)
}

fn the_claim(s: &Scenario, name: &str, lease_name: &str) -> Claim {
    Claim {
        of: Claimable::Task(id(name)),
        leases: vec![lease(lease_name)],
        worker: format!("worker of {lease_name}"),
        holder: None,
        expires_at: s.now.plus_ms(LEASE_MS),
    }
}

fn claims(s: Scenario, name: &str, lease_name: &str) -> Scenario {
    let claim = the_claim(&s, name, lease_name);
    s.when(Command::Claim(claim))
}

fn claimed(s: Scenario, name: &str, lease_name: &str) -> Scenario {
    let s = claims(s, name, lease_name).then(&[(name, InProgress)]);
    assert_eq!(
        s.last.as_ref().expect("it was accepted").1,
        Done::Status(InProgress)
    );
    s
}

fn gives_back(s: Scenario, name: &str, attempt: u32, lease: LeaseId) -> Scenario {
    let s = s.when(Command::Release {
        task: id(name),
        attempt,
        lease,
    });
    s.accepted().then(&[(name, Pending)])
}

fn completes(s: Scenario, name: &str, attempt: u32, under: Option<LeaseId>) -> Scenario {
    s.when(Command::Complete {
        task: id(name),
        attempt,
        result: Payload::empty(),
        lease: under,
    })
}

fn ends(s: Scenario, name: &str, attempt: u32, lease_name: &str) -> Scenario {
    let expired_at = s.now;
    s.when(Command::EndLease {
        task: id(name),
        attempt,
        lease: lease(lease_name),
        expired_at,
    })
}

/// The lease passes its time and is ended.
fn expires(mut s: Scenario, name: &str, lease_name: &str) -> Scenario {
    s.now = s.now.plus_ms(LEASE_MS);
    let attempt = s.attempt(name);
    ends(s, name, attempt, lease_name).accepted()
}

fn lost(s: &Scenario) -> (&TaskFailed, Option<&TaskRequeued>) {
    match &s.last.as_ref().expect("it was accepted").0[..] {
        [Event::TaskFailed(failed), Event::TaskRequeued(again), ..] => (failed, Some(again)),
        [Event::TaskFailed(failed), ..] => (failed, None),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_that_workers_claim_waits_for_its_claim() {
    let s = running(vec![remote("a")]).after_ms(1_000_000);
    let s = s.then(&[("a", Pending)]).runs(true);
    let mut s = claimed(s, "a", "l");
    let [Event::TaskStarted(started)] = &s.last.as_ref().unwrap().0[..] else {
        panic!("{:?}", s.last);
    };
    let named = started.lease.as_ref().expect("it runs outside the server");
    let held = named.id;
    assert_eq!((started.attempt, named.worker.as_str()), (1, "worker of l"));
    assert_eq!(s.server.granted, [id("a")], "a claim takes a slot");
    s.server.slots = 0;
    let s = completes(s, "a", 1, Some(held)).accepted();
    let _ = s.then(&[("a", Completed)]).runs(false);
}

#[test]
fn the_same_claim_twice_is_one_claim_and_another_one_is_refused() {
    let s = claimed(running(vec![remote("a")]), "a", "l");
    let claim = the_claim(&s, "a", "l");
    let s = s.when(Command::Claim(claim)).accepted();
    let (events, done) = s.last.as_ref().unwrap();
    assert_eq!((events.len(), done.clone()), (0, Done::Status(InProgress)));
    let _ = claims(s, "a", "other").rejects(Kind::InvalidTransition);
}

#[test]
fn only_what_is_ready_can_be_claimed() {
    let s = running(vec![
        group("g"),
        remote("a").under("g").attempts(2, 500),
        remote("b").under("g").after(&["a"]),
        task("here").under("g"),
    ]);
    let s = claims(s, "g", "l").rejects(Kind::InvalidTransition);
    let s = claims(s, "b", "l").accepted();
    let (events, done) = s.last.as_ref().unwrap();
    assert_eq!((events.len(), done.clone()), (0, Done::ClaimRefused));
    let s = claims(s, "here", "l").rejects(Kind::InvalidTransition);
    let unknown = Claim {
        of: Claimable::Task(id("nobody")),
        ..the_claim(&s, "a", "l")
    };
    let s = s.when(Command::Claim(unknown)).rejects(Kind::NotFound);
    let s = claimed(s, "a", "l").when(Command::Fail {
        task: id("a"),
        attempt: 1,
        error: "boom".to_owned(),
        reason: FailureReason::Executor,
        progress: Progress::ZERO,
        lease: Some(lease("l")),
        retry_after_ms: 0,
    });
    let s = s.accepted().then(&[("a", Pending)]);
    let s = claims(s, "a", "m").rejects(Kind::InvalidTransition);
    let s = claimed(s.after_ms(500), "a", "m");
    let s = completes(s, "a", 2, Some(lease("m"))).accepted();
    let _ = claimed(s, "b", "n");

    let mut alone = given(vec![remote("a")]);
    alone.server.remote.insert("resize".to_owned());
    let _ = claims(alone, "a", "l").rejects(Kind::InvalidTransition);
}

#[test]
fn a_claim_without_a_free_slot_changes_nothing() {
    let mut s = running(vec![remote("a")]);
    s.server.slots = 0;
    let mut s = claims(s, "a", "l").accepted().then(&[("a", Pending)]);
    let (events, done) = s.last.as_ref().unwrap();
    assert_eq!((events.len(), done.clone()), (0, Done::Status(Pending)));
    s.server.slots = 1;
    let _ = claimed(s, "a", "l");
}

#[test]
fn an_outcome_must_present_the_lease_of_its_attempt() {
    let s = claimed(
        running(vec![
            group("g"),
            remote("a").under("g"),
            task("b").under("g"),
        ]),
        "a",
        "l",
    );
    let before = s.flow.clone();
    for (attempt, under) in [(1, None), (1, Some(lease("other"))), (2, Some(lease("l")))] {
        let s = completes(s.clone(), "a", attempt, under).is_outdated(Outdated::Attempt);
        let s = s.when(Command::Report {
            task: id("a"),
            attempt,
            progress: Progress::DONE,
            message: None,
            lease: under,
        });
        let s = s.is_outdated(Outdated::Attempt);
        assert_eq!(s.flow, before, "a refusal changes nothing");
    }
    let s = completes(s, "b", 1, Some(lease("l"))).is_outdated(Outdated::Attempt);
    let s = ends(s, "b", 1, "l").is_outdated(Outdated::Attempt);
    let _ = ends(s, "a", 1, "other").is_outdated(Outdated::Attempt);
}

#[test]
fn a_restart_of_the_server_interrupts_no_leased_attempt() {
    let s = running(vec![
        group("g"),
        remote("a").under("g"),
        task("b").under("g"),
    ]);
    let s = claimed(s, "a", "l").restarts();
    assert_eq!((s.attempt("a"), s.attempt("b")), (1, 2));
    let resumed: Vec<_> = schedule::resume(&s.flow).into_iter().collect();
    assert!(
        matches!(&resumed[..], [Effect::Launch(l)] if l.task == id("b")),
        "{resumed:?}"
    );
    let leased: Vec<_> = schedule::leased(&s.flow).collect();
    assert_eq!(
        (leased.len(), leased[0].task, leased[0].attempt),
        (1, id("a"), 1)
    );
    assert_eq!(leased[0].expires_at, START.plus_ms(LEASE_MS));
    let s = completes(s, "a", 1, Some(lease("l"))).accepted();
    assert_eq!(schedule::leased(&s.flow).count(), 0);
}

#[test]
fn a_start_under_a_lease_asks_for_its_keeping_and_not_for_a_launch() {
    let s = claimed(running(vec![remote("a")]), "a", "l");
    let started = &s.last.as_ref().unwrap().0[0];
    let effect = schedule::react(&s.flow, started);
    assert!(
        matches!(&effect, Some(Effect::Hold(held)) if held.lease == lease("l") && held.method == "resize"),
        "{effect:?}"
    );
}

#[test]
fn a_lease_that_ends_uses_up_an_interruption_and_no_retry() {
    let mut s = running(vec![remote("a").attempts(2, 100)]);
    for (n, rest_ms) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        s = expires(claimed(s, "a", "l"), "a", "l").then(&[("a", Pending)]);
        let rested_at = s.now.plus_ms(rest_ms);
        let (failed, again) = lost(&s);
        assert_eq!((failed.attempt, failed.will_retry), (n, true));
        assert_eq!(failed.reason, FailureReason::Interrupted);
        let again = again.expect("it is on offer again");
        assert_eq!(
            (again.reason, again.next_attempt_at),
            (RequeueReason::Interrupted, Some(rested_at))
        );
        s = s.after_ms(rest_ms);
    }
    // The retry is still there.
    let s = claimed(s, "a", "l").when(Command::Fail {
        task: id("a"),
        attempt: 4,
        error: "boom".to_owned(),
        reason: FailureReason::Executor,
        progress: Progress::ZERO,
        lease: Some(lease("l")),
        retry_after_ms: 0,
    });
    let s = s.accepted().then(&[("a", Pending)]).after_ms(100);
    let s = expires(claimed(s, "a", "l"), "a", "l")
        .then(&[("a", Failed)])
        .runs(false);
    let at = s.now;
    assert_eq!(
        error_of(&s, "a"),
        format!("lost by worker `worker of l`, whose lease ended at {at}")
    );
}

#[test]
fn a_lease_ends_at_the_time_that_was_said_last_and_not_before() {
    let s = claimed(running(vec![remote("a")]), "a", "l");
    // Sooner than it was claimed for.
    let expired_at = s.now.plus_ms(LEASE_MS / 2);
    let end = Command::EndLease {
        task: id("a"),
        attempt: 1,
        lease: lease("l"),
        expired_at,
    };
    let s = s.after_ms(LEASE_MS / 2 - 1).when(end.clone());
    let mut s = s.accepted().then(&[("a", InProgress)]);
    assert!(s.last.as_ref().unwrap().0.is_empty());
    s.now = expired_at;
    let s = s.when(end).accepted().then(&[("a", Pending)]);
    let _ = s.after_ms(1_000_000).then(&[("a", Pending)]);
}

#[test]
fn what_is_given_back_uses_up_nothing() {
    let mut s = running(vec![remote("a").attempts(1, 0)]);
    for attempt in 1..=5 {
        s = gives_back(claimed(s, "a", "l"), "a", attempt, lease("l"));
        let (failed, again) = lost(&s);
        assert_eq!(
            (failed.reason, failed.will_retry),
            (FailureReason::Released, true)
        );
        assert_eq!(again.unwrap().reason, RequeueReason::Released);
        assert_eq!(error_of(&s, "a"), "worker `worker of l` gave it back");
    }
    let s = completes(s, "a", 5, Some(lease("l"))).is_outdated(Outdated::Attempt);
    let s = claimed(s, "a", "m");
    let _ = completes(s, "a", 6, Some(lease("m")))
        .accepted()
        .then(&[("a", Completed)]);
}

#[test]
fn cancel_and_deadline_take_a_leased_attempt_back() {
    let s = claimed(running(vec![remote("a")]), "a", "l").when(cancel("a"));
    let s = s.accepted().then(&[("a", Cancelled)]);
    let s = completes(s, "a", 1, Some(lease("l"))).is_outdated(Outdated::Attempt);
    assert_eq!(schedule::leased(&s.flow).count(), 0);

    let s = claimed(running(vec![remote("a").deadline_ms(10_000)]), "a", "l");
    let s = s.after_ms(10_000).then(&[("a", Failed)]).runs(false);
    assert_eq!(schedule::leased(&s.flow).count(), 0);
}

#[test]
fn a_claim_after_the_deadline_lets_the_deadline_pass() {
    let mut s = running(vec![remote("a").deadline_ms(10_000)]);
    s.now = s.now.plus_ms(10_000);
    let s = claims(s, "a", "l").accepted();
    let _ = s.then(&[("a", Cancelled)]).runs(false);
}

#[test]
fn a_leased_attempt_times_out_in_the_turn_of_its_flow() {
    let s = running(vec![remote("a").attempts(2, 100).timeout_ms(1500)]);
    let claim = |s: Scenario, name| claims(s, "a", name).accepted();
    let s = claim(s, "l").then(&[("a", InProgress)]);
    let due = |s: &Scenario| schedule::next_due(&s.flow, s.now, &s.server);
    assert_eq!(due(&s), Some(START.plus_ms(1500)));
    let s = s.after_ms(1500).then(&[("a", Pending)]);
    assert_eq!(error_of(&s, "a"), "timed out after 1.5 s");
    let (failed, again) = lost(&s);
    assert_eq!(
        (failed.reason, failed.will_retry),
        (FailureReason::Timeout, true)
    );
    assert_eq!(again.unwrap().next_attempt_at, Some(START.plus_ms(1600)));
    let s = claim(s.after_ms(100), "m").then(&[("a", InProgress)]);
    let s = s.after_ms(1500).then(&[("a", Failed)]).runs(false);
    assert_eq!(due(&s), None::<Timestamp>);
}

#[test]
fn an_outcome_starts_what_waits_for_it_here() {
    let s = running(vec![
        group("g"),
        remote("a").under("g"),
        task("b").under("g").after(&["a"]),
    ]);
    let s = claimed(s, "a", "l");
    let s = completes(s, "a", 1, Some(lease("l"))).accepted();
    assert_eq!(starts(&s, &["a", "b", "g"]), ["b"]);
    assert_eq!(s.replayed(), s.flow);
}

/// Claims the next tasks of `resize`, as many as there are names of leases.
fn claims_next(s: Scenario, leases: &[&str], until: Option<(Priority, Timestamp)>) -> Scenario {
    let claim = Claim {
        of: Claimable::Next {
            method: "resize".to_owned(),
            until,
        },
        leases: leases.iter().map(|name| lease(name)).collect(),
        ..the_claim(&s, "a", "any")
    };
    s.when(Command::Claim(claim)).accepted()
}

#[test]
fn the_next_tasks_of_a_method_are_claimed_in_the_order_of_their_ranks() {
    let urgent = Priority::new(0).expect("0 to 3");
    let s = running(vec![
        group("g"),
        remote("a").under("g"),
        remote("b").under("g").priority(0),
        remote("c").under("g"),
        task("other").under("g").method("crop").by_workers(),
    ]);
    let s = claims_next(s, &["l", "m"], None);
    assert_eq!(starts(&s, &["a", "b", "c"]), ["b", "a"]);
    let s = s.then(&[("a", InProgress), ("b", InProgress), ("c", Pending)]);
    let s = claims_next(s, &["n", "o"], Some((urgent, START)));
    assert_eq!(
        starts(&s, &["a", "b", "c"]),
        ["c"],
        "the first one in any case"
    );
    let s = claims_next(s, &["p"], None);
    assert_eq!(s.last.as_ref().unwrap().1, Done::Status(Pending));

    let s = running(vec![
        group("g"),
        remote("a").under("g"),
        remote("b").under("g").priority(0),
    ]);
    let s = claims_next(s, &["l", "m"], Some((urgent, START)));
    assert_eq!(
        starts(&s, &["a", "b"]),
        ["b"],
        "others have a better right than `a`"
    );
}

#[test]
fn a_task_that_says_that_it_is_remote_waits_for_a_worker_without_end() {
    let s = given(vec![task("a").method("nobody has it").by_workers()]);
    let s = s.when(execute("a")).accepted().after_ms(1_000_000_000);
    let s = s.then(&[("a", Pending)]).runs(true);
    let s = claimed(s, "a", "l");
    let _ = completes(s, "a", 1, Some(lease("l"))).accepted();

    // No worker can claim what the server does.
    let s = given(vec![task("here").method("echo").by_workers()]);
    let s = s.when(execute("here")).accepted();
    let _ = s.then(&[("here", InProgress)]);
}

#[test]
fn a_ready_task_that_nobody_starts_in_time_fails() {
    let s = running(vec![remote("a").starts_within_ms(1500).attempts(3, 10)]);
    let due = schedule::next_due(&s.flow, s.now, &s.server);
    assert_eq!(due, Some(START.plus_ms(1500)));
    let s = s.after_ms(1499).then(&[("a", Pending)]);
    let s = s.after_ms(1).then(&[("a", Failed)]).runs(false);
    let why = "no worker claimed it within 1.5 s: nobody was free for `resize`";
    assert_eq!(error_of(&s, "a"), why);

    // Of a method that no worker asks for.
    let absent = task("a").method("nobody has it").by_workers();
    let s = given(vec![absent.starts_within_ms(1500)]);
    let s = s.when(execute("a")).accepted().after_ms(1500);
    let why = "no worker claimed it within 1.5 s: no worker asks for `nobody has it`";
    assert_eq!(error_of(&s, "a"), why);

    // A claim that comes too late finds it failed.
    let mut s = running(vec![remote("a").starts_within_ms(1500)]);
    s.now = s.now.plus_ms(1500);
    let s = claims(s, "a", "l").accepted().then(&[("a", Failed)]);
    let _ = s.runs(false);

    let mut s = given(vec![task("a").starts_within_ms(100)]);
    s.server.slots = 0;
    let s = s.when(execute("a")).accepted().after_ms(100);
    let s = s.then(&[("a", Failed)]);
    assert_eq!(error_of(&s, "a"), "no slot of `echo` was free within 0.1 s");
}

#[test]
fn how_a_lease_ended_is_known_after_later_ones_have_ended() {
    let tasks = vec![group("g"), remote("a").under("g"), remote("b").under("g")];
    let mut s = claimed(running(tasks), "b", "b");
    let mut ended = Vec::new();
    for attempt in 1..=u32::try_from(ENDED_LEASES_PER_TASK_MAX).unwrap() {
        let held = lease(&format!("lease {attempt}"));
        s = claimed(s, "a", &format!("lease {attempt}"));
        assert_eq!(s.flow.lease_ended_at(id("a"), held), None);
        s = gives_back(s, "a", attempt, held);
        // It was failed and requeued by the last two events.
        ended.push((held, Some(s.flow.version() - 1)));
        let known = |(held, at): &(_, _)| s.flow.lease_ended_at(id("a"), *held) == *at;
        assert!(ended.iter().all(known), "{attempt}");
    }
    // Ends of other tasks count not; one more of this task does.
    s = completes(claimed(s, "a", "last"), "b", 1, Some(lease("b"))).accepted();
    assert!(s.flow.lease_ended_at(id("a"), ended[0].0).is_some());
    let attempt = s.attempt("a");
    s = completes(s, "a", attempt, Some(lease("last"))).accepted();
    ended[0].1 = None;
    let known = |(held, at): &(_, _)| s.flow.lease_ended_at(id("a"), *held) == *at;
    assert!(ended.iter().all(known) && s.flow.lease_ended_at(id("a"), lease("last")).is_some());
    assert!(s.flow.lease_ended_at(id("b"), lease("b")).is_some());
    assert_eq!(s.flow.lease_ended_at(id("b"), lease("last")), None);
}

#[test]
fn a_failure_that_is_not_to_be_repeated_uses_no_retry() {
    let s = claimed(running(vec![remote("a").attempts(3, 0)]), "a", "l");
    let s = s.when(Command::Fail {
        task: id("a"),
        attempt: 1,
        error: "the image is broken".to_owned(),
        reason: FailureReason::NotRetryable,
        progress: Progress::ZERO,
        lease: Some(lease("l")),
        retry_after_ms: 0,
    });
    let _ = s.accepted().then(&[("a", Failed)]).runs(false);
}
