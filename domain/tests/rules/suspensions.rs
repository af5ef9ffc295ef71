//! Tasks that wait for people. spec: semantics / Remote work, RFC-0025

use crate::support::{cancel, error_of, refusal};
use taskledger_domain::contract::{Breach, Broken};
use taskledger_domain::flow::{
    Claim, Claimable, Command, Done, Event, FailureReason, Fault, Kind, OnAnswer, Outdated,
    Refusal, RequeueReason, Respond, Suspend, Then,
};
use taskledger_domain::question::{answer_of, prepare};
use taskledger_domain::schedule;
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};
use taskledger_domain::{LeaseId, Payload, SuspensionId, limits};

/// Workers claim tasks of the method `resize`.
fn running(tasks: Vec<NewTask>) -> Scenario {
    let name = tasks[0].name.clone();
    let mut s = given(tasks);
    s.server.remote.insert("resize".to_owned());
    s.when(execute(&name)).accepted()
}

fn claims(s: Scenario, name: &str, lease: &str) -> Scenario {
    let claim = Claim {
        of: Claimable::Task(id(name)),
        leases: vec![LeaseId(id(lease).0)],
        worker: "worker".to_owned(),
        holder: None,
        expires_at: s.now.plus_ms(60_000),
    };
    s.when(Command::Claim(claim))
}

fn suspension(name: &str) -> SuspensionId {
    SuspensionId(id(name).0)
}

/// The attempt of a task asks; `lease` is empty for one of this process.
fn asks(s: Scenario, name: &str, named: (&str, &str), question: &str) -> Scenario {
    asks_as(s, name, named, (OnAnswer::Continue, question))
}

fn asks_as(
    s: Scenario,
    name: &str,
    (lease, asked): (&str, &str),
    (on_answer, question): (OnAnswer, &str),
) -> Scenario {
    let members = Payload::parse(question).expect("an object").to_map();
    let prepared = prepare(&members, on_answer, None);
    let (stored, read, on_expiry) = prepared.expect("a question");
    let attempt = s.attempt(name);
    s.when(Command::Suspend(Suspend {
        task: id(name),
        attempt,
        lease: (!lease.is_empty()).then(|| LeaseId(id(lease).0)),
        suspension: suspension(asked),
        asked: stored,
        question: read,
        on_answer,
        on_expiry,
    }))
}

fn answers(s: Scenario, name: &str, asked: &str, then: Then) -> Scenario {
    s.when(Command::Respond(Respond {
        task: id(name),
        suspension: suspension(asked),
        answer: answer_of(7.into()),
        responded_by: "user:ann".to_owned(),
        on_behalf_of: None,
        then,
    }))
}

const CONFIRM: &str = r#"{"question":"Go on?","response_type":"confirm"}"#;

fn suspended() -> Scenario {
    let s = claims(running(vec![task("a").method("resize")]), "a", "l").accepted();
    asks(s, "a", ("l", "q"), CONFIRM).accepted()
}

fn last(s: &Scenario) -> &[Event] {
    &s.last.as_ref().expect("it was accepted").0
}

#[test]
fn a_suspended_task_is_in_progress_without_lease_or_slot() {
    let s = suspended().then(&[("a", InProgress)]).runs(true);
    assert_eq!(schedule::leased(&s.flow).count(), 0);
    assert!(schedule::resume(&s.flow).is_empty(), "nobody runs it");
    let waits = s.flow.waits(id("a")).expect("it waits");
    assert_eq!(
        (waits.suspension, waits.expires_at),
        (suspension("q"), None)
    );
    let s = s.after_ms(1_000_000_000).then(&[("a", InProgress)]);
    assert_eq!(schedule::next_due(&s.flow, s.now, &s.server), None);
}

#[test]
fn nothing_that_its_worker_says_counts_any_more() {
    let complete = |lease: Option<LeaseId>| Command::Complete {
        task: id("a"),
        attempt: 1,
        result: Payload::empty(),
        lease,
    };
    let held = Some(LeaseId(id("l").0));
    let s = suspended()
        .when(complete(held))
        .is_outdated(Outdated::Attempt);
    let s = s.when(complete(None)).is_outdated(Outdated::Attempt);
    let _ = asks(s, "a", ("l", "other"), CONFIRM).is_outdated(Outdated::Attempt);
}

#[test]
fn an_answer_makes_it_ready_and_the_next_attempt_knows_it() {
    let s = answers(suspended(), "a", "q", Then::Continue).accepted();
    let [Event::TaskAnswered(answered), Event::TaskRequeued(again)] = last(&s) else {
        panic!("{:?}", s.last);
    };
    assert_eq!(answered.responded_by, "user:ann");
    assert_eq!(
        (again.reason, again.next_attempt_at),
        (RequeueReason::Answered, None)
    );
    let s = claims(s.then(&[("a", Pending)]), "a", "m").then(&[("a", InProgress)]);
    let leased: Vec<_> = schedule::leased(&s.flow).collect();
    assert_eq!(leased[0].attempt, 2);
    let asked: Vec<_> = leased[0].turns.iter().map(|turn| turn.suspension).collect();
    assert_eq!(asked, [suspension("q")]);
}

#[test]
fn a_wait_uses_up_no_retry() {
    let s = running(vec![task("a").method("resize").attempts(2, 0)]);
    let mut s = claims(s, "a", "l0").accepted();
    for turn in 0..5 {
        let (lease, asked) = (format!("l{turn}"), format!("q{turn}"));
        s = asks(s, "a", (&lease, &asked), CONFIRM).accepted();
        s = answers(s, "a", &asked, Then::Continue).accepted();
        s = claims(s, "a", &format!("l{}", turn + 1)).accepted();
    }
    let fail = Command::Fail {
        task: id("a"),
        attempt: 6,
        error: "boom".to_owned(),
        reason: FailureReason::Executor,
        progress: Default::default(),
        lease: Some(LeaseId(id("l5").0)),
        retry_after_ms: 0,
    };
    let _ = s.when(fail).accepted().then(&[("a", Pending)]);
}

#[test]
fn the_first_answer_counts() {
    let s = answers(suspended(), "a", "q", Then::Complete(Payload::empty())).accepted();
    let s = s.then(&[("a", Completed)]).runs(false);
    let s = answers(s, "a", "q", Then::Complete(Payload::empty()));
    let Refusal::NotSuspended {
        suspension: None, ..
    } = refusal(&s)
    else {
        panic!("{:?}", &s.last);
    };
}

#[test]
fn an_answer_to_another_question_is_refused_with_the_one_that_is_open() {
    let s = answers(suspended(), "a", "other", Then::Continue);
    let Refusal::NotSuspended {
        suspension: open, ..
    } = refusal(&s)
    else {
        panic!("{:?}", &s.last);
    };
    assert_eq!(*open, Some(suspension("q")));
}

#[test]
fn an_answer_may_decline() {
    let then = Then::Decline("declined by `ann`".to_owned());
    let s = answers(suspended(), "a", "q", then)
        .accepted()
        .then(&[("a", Failed)]);
    assert_eq!(error_of(&s, "a"), "declined by `ann`");
}

#[test]
fn cancels_and_deadlines_end_a_wait() {
    let s = suspended()
        .when(cancel("a"))
        .accepted()
        .then(&[("a", Cancelled)]);
    assert_eq!(s.flow.waits(id("a")), None);
    let s = running(vec![task("a").method("resize").deadline_ms(5000)]);
    let s = claims(s, "a", "l").accepted();
    let s = asks(s, "a", ("l", "q"), CONFIRM).accepted();
    let s = s.after_ms(6000).then(&[("a", Failed)]);
    assert_eq!(s.flow.waits(id("a")), None);
}

#[test]
fn a_restart_interrupts_no_wait() {
    let s = running(vec![task("a")]);
    let s = asks(s, "a", ("", "q"), CONFIRM).accepted();
    let s = s.restarts().then(&[("a", InProgress)]);
    assert_eq!(
        s.flow.waits(id("a")).map(|w| w.suspension),
        Some(suspension("q"))
    );
}

#[test]
fn the_clock_of_the_attempt_stands_still() {
    let s = running(vec![task("a").method("resize").timeout_ms(1000)]);
    let s = claims(s, "a", "l").accepted();
    let s = asks(s, "a", ("l", "q"), CONFIRM).accepted();
    let _ = s.after_ms(10_000).then(&[("a", InProgress)]);
}

/// Waits for 15 seconds.
fn waiting_as(on_answer: OnAnswer, policy: &str) -> Scenario {
    let s = claims(running(vec![task("a").method("resize")]), "a", "l").accepted();
    let question = format!(
        r#"{{"question":"Go on?","response_type":"confirm","timeout_seconds":15,{policy}}}"#
    );
    asks_as(s, "a", ("l", "q"), (on_answer, &question)).accepted()
}

fn waiting(policy: &str) -> Scenario {
    waiting_as(OnAnswer::Continue, policy)
}

#[test]
fn without_an_answer_in_time_the_policy_decides() {
    let s = waiting(r#""fallback_policy":"fail""#)
        .after_ms(14_999)
        .then(&[("a", InProgress)]);
    let s = s.after_ms(1).then(&[("a", Failed)]);
    assert_eq!(error_of(&s, "a"), "nobody answered within 15 s");
    // The time that was given is told, not when its end was noticed.
    let s = waiting(r#""fallback_policy":"fail""#).after_ms(15_937);
    let s = s.then(&[("a", Failed)]);
    assert_eq!(error_of(&s, "a"), "nobody answered within 15 s");

    let policy = r#""fallback_policy":"complete_with_fallback","fallback_value":{"sent":false}"#;
    let s = waiting(policy).after_ms(15_000).then(&[("a", Completed)]);
    let [
        Event::TaskSuspensionExpired(_),
        Event::TaskCompleted(done),
        ..,
    ] = last(&s)
    else {
        panic!("{:?}", s.last);
    };
    assert_eq!(done.result.as_str(), r#"{"sent":false}"#);

    let policy = r#""fallback_policy":"use_default_and_continue","fallback_value":true"#;
    let s = waiting(policy).after_ms(15_000).then(&[("a", Pending)]);
    assert_eq!(
        s.flow.turns(id("a")).len(),
        1,
        "what stands for an answer is known"
    );
}

#[test]
fn a_default_answer_declines_as_the_answer_of_a_person_does() {
    let policy = |value: bool| {
        format!(r#""fallback_policy":"use_default_and_continue","fallback_value":{value}"#)
    };
    for (on_answer, value, status) in [
        (OnAnswer::Continue, true, Pending),
        (OnAnswer::Continue, false, Pending),
        (OnAnswer::Complete, true, Completed),
        (OnAnswer::Complete, false, Completed),
        (OnAnswer::CompleteOrDecline, true, Completed),
        (OnAnswer::CompleteOrDecline, false, Failed),
    ] {
        let s = waiting_as(on_answer, &policy(value));
        let s = s.after_ms(15_000).then(&[("a", status)]);
        let [Event::TaskSuspensionExpired(_), then, ..] = last(&s) else {
            panic!("{:?}", s.last);
        };
        match then {
            Event::TaskCompleted(done) => {
                assert_eq!(done.result.to_map()["approved"], value, "{on_answer:?}");
            }
            Event::TaskFailed(failed) => {
                assert_eq!(failed.reason, FailureReason::Declined);
                let error = "declined by the default answer: nobody answered within 15 s";
                assert_eq!((failed.error.as_str(), failed.will_retry), (error, false));
            }
            other => assert!(matches!(other, Event::TaskRequeued(_)), "{other:?}"),
        }
    }
}

fn reminded(s: &Scenario) -> Vec<(u32, Option<String>)> {
    let of = |event: &Event| match event {
        Event::TaskReminded(e) => Some((e.number, e.escalation.clone().and_then(|e| e.notify_to))),
        _ => None,
    };
    let history = s.history.iter();
    history.filter_map(|(_, event)| of(event)).collect()
}

#[test]
fn a_person_is_reminded_before_the_wait_ends() {
    let policy = r#""retry_policy":{"max_attempts":3,"escalation_ladder":[{"attempt":2,"notify_to":"boss"}]}"#;
    let s = waiting(policy)
        .after_ms(5000)
        .after_ms(5000)
        .then(&[("a", InProgress)]);
    assert_eq!(reminded(&s), [(1, None), (2, Some("boss".to_owned()))]);
    let _ = s.after_ms(5000).then(&[("a", Failed)]);
    // A server that was away reminds once, with the number that is due.
    let s = waiting(policy).after_ms(12_000).then(&[("a", InProgress)]);
    assert_eq!(reminded(&s), [(2, Some("boss".to_owned()))]);
}

#[test]
fn a_step_of_the_ladder_is_told_even_if_its_reminder_was_missed() {
    let policy = r#""retry_policy":{"max_attempts":5,"escalation_ladder":[{"attempt":1,"notify_to":"team"},{"attempt":3,"notify_to":"boss"}]}"#;
    let (team, boss) = (Some("team".to_owned()), Some("boss".to_owned()));
    let s = waiting(policy);
    let each = (0..4).fold(s.clone(), |s, _| s.after_ms(3000));
    let told = [(1, team.clone()), (2, None), (3, boss.clone()), (4, None)];
    assert_eq!(reminded(&each), told);
    let s = s.after_ms(3000).after_ms(9000);
    assert_eq!(reminded(&s), [(1, team), (4, boss.clone())]);
    let s = waiting(policy).after_ms(12_000).then(&[("a", InProgress)]);
    assert_eq!(
        reminded(&s),
        [(4, boss)],
        "the highest of those that were missed"
    );
    let _ = s.after_ms(3000).then(&[("a", Failed)]);
}

#[test]
fn a_task_asks_only_so_often_in_a_run() {
    let mut s = running(vec![task("a")]);
    for turn in 0..limits::SUSPENSIONS_PER_RUN_MAX {
        let asked = format!("q{turn}");
        s = asks(s, "a", ("", &asked), CONFIRM).accepted();
        s = answers(s, "a", &asked, Then::Continue).accepted();
    }
    let s = asks(s, "a", ("", "one more"), CONFIRM).rejects(Kind::Invalid);
    let fault = Fault::TooManyQuestions {
        task: id("a"),
        questions: limits::SUSPENSIONS_PER_RUN_MAX,
        questions_max: limits::SUSPENSIONS_PER_RUN_MAX,
    };
    assert_eq!(*refusal(&s), Refusal::invalid([fault]));
}

#[test]
fn questions_of_one_run_are_forgotten_in_the_next() {
    let s = answers(suspended(), "a", "q", Then::Decline("no".to_owned())).accepted();
    assert_eq!(s.flow.turns(id("a")).len(), 1);
    let s = s.when(execute("a")).accepted();
    assert!(s.flow.turns(id("a")).is_empty());
}

/// A claim of `b` is refused, because `a` waits for a person.
fn waits_for_a(s: Scenario) -> Scenario {
    let s = claims(s, "b", "m").accepted();
    let (events, done) = s.last.as_ref().expect("it was accepted");
    assert_eq!((events.len(), done.clone()), (0, Done::ClaimRefused));
    let found = s.flow.claim_fault(id("b"));
    let Some(Broken::Upstream { task_id, .. }) = found else {
        panic!("{found:?}");
    };
    assert_eq!(task_id, id("a"));
    s
}

#[test]
fn who_needs_the_result_of_a_suspended_task_cannot_claim_and_is_told_why() {
    let mut wired = task("b").under("r").method("resize").after(&["a"]);
    let text = format!(r#"{{"method":"resize","wiring":{{"x":"{}.k"}}}}"#, id("a"));
    wired.specification.schemas = Payload::parse(&text).ok();
    let s = running(vec![
        group("r"),
        task("a").under("r").method("resize"),
        wired,
    ]);
    let s = claims(s, "a", "l").accepted();
    let found = s.flow.claim_fault(id("b"));
    assert!(matches!(found, Some(Broken::Inputs { .. })), "{found:?}");
    let s = asks(s, "a", ("l", "q"), CONFIRM).accepted();
    let s = waits_for_a(s);
    let found = s.flow.claim_fault(id("b")).expect("it waits");
    let tells = |s: Scenario| {
        let breach = Breach {
            phase_name: Some("b".to_owned()),
            broken: found.clone(),
        };
        let s = s.when(Command::RejectClaim {
            task: id("b"),
            worker: "w".to_owned(),
            found: Box::new(found.clone()),
            breach: Box::new(breach),
        });
        let events = s.last.as_ref().expect("it was accepted").0.len();
        (s, events)
    };
    let (s, recorded) = tells(s);
    assert_eq!(recorded, 1);
    let (s, recorded) = tells(s);
    assert_eq!(recorded, 0, "it is in the log");
    let s = answers(s, "a", "q", Then::Continue).accepted();
    let (_, recorded) = tells(s);
    assert_eq!(recorded, 0, "it is not so any more");
}

#[test]
fn an_input_that_could_be_left_out_waits_for_the_person_all_the_same() {
    for wire in [
        r#"{"from":"ID.k","default":1}"#,
        r#"{"from":"ID.k","required":false}"#,
    ] {
        let mut wired = task("b").under("r").method("resize").after(&["a"]);
        let wire = wire.replace("ID", &id("a").to_string());
        let text = format!(r#"{{"method":"resize","wiring":{{"x":{wire}}}}}"#);
        wired.specification.schemas = Payload::parse(&text).ok();
        let s = running(vec![
            group("r"),
            task("a").under("r").method("resize"),
            wired,
        ]);
        let s = claims(s, "a", "l").accepted();
        let s = asks(s, "a", ("l", "q"), CONFIRM).accepted();
        let _ = waits_for_a(s);
    }
}

#[test]
fn a_claim_says_how_it_stands() {
    let s = suspended();
    let (_, done) = s.last.as_ref().expect("it was accepted");
    assert_eq!(*done, Done::Status(InProgress));
}
