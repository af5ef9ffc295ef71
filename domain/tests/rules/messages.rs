//! What whoever began a run says to it, and cancelling a run as a whole.

use crate::support::{error_of, verdict};
use taskledger_domain::flow::{
    CancelRun, Claim, Claimable, Command, Done, Event, Fault, Kind, OnAnswer, Receive, Refusal,
    Rejection, Respond, RunKind, RunState, Suspend, Then,
};
use taskledger_domain::question::{Asks, answer_of, prepare};
use taskledger_domain::task::Status::{Cancelled, Completed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, run, start, task};
use taskledger_domain::{LeaseId, Payload, SuspensionId, limits};

/// Two tasks of a run, which workers have claimed; both ask.
fn asked() -> Scenario {
    let mut s = given(vec![
        group("r"),
        task("a").under("r").method("resize"),
        task("b").under("r").method("resize"),
    ]);
    s.server.remote.insert("resize".to_owned());
    let s = s.when(execute("r")).accepted();
    asks(asks(s, "a"), "b")
}

fn asks(s: Scenario, name: &str) -> Scenario {
    let lease = LeaseId(id(&format!("{name} {}", s.history.len())).0);
    let claim = Claim {
        of: Claimable::Task(id(name)),
        leases: vec![lease],
        worker: "worker".to_owned(),
        holder: None,
        expires_at: s.now.plus_ms(60_000),
    };
    let s = s.when(Command::Claim(claim)).accepted();
    let members = Payload::parse(r#"{"question":"Which one?","asks":"auth"}"#);
    let prepared = prepare(
        &members.expect("an object").to_map(),
        OnAnswer::Continue,
        None,
    );
    let (asked, question, on_expiry) = prepared.expect("a question");
    let attempt = s.attempt(name);
    let suspend = Command::Suspend(Suspend {
        task: id(name),
        attempt,
        lease: Some(lease),
        suspension: SuspensionId(id(name).0),
        asked,
        question,
        on_answer: OnAnswer::Continue,
        on_expiry,
    });
    s.when(suspend).accepted()
}

fn message(run_name: &str, name: &str, to: &str, then: Then) -> Command {
    Command::Receive(Receive {
        run: run(run_name),
        message_id: name.to_owned(),
        body_hash: format!("hash of {name}"),
        message: Payload::empty(),
        answers: Respond {
            task: id(to),
            suspension: SuspensionId(id(to).0),
            answer: answer_of("this".into()),
            responded_by: "user:ann".to_owned(),
            on_behalf_of: None,
            then,
        },
    })
}

fn last(s: &Scenario) -> &[Event] {
    &s.last.as_ref().expect("it was accepted").0
}

fn refusal(s: &Scenario) -> &Refusal {
    match &s.last {
        Err(Rejection::Refused(refusals)) => &refusals.first,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_and_the_answer_that_it_is_stand_in_one_append() {
    let s = asked()
        .when(message("run", "m", "a", Then::Continue))
        .accepted();
    let [
        Event::MessageReceived(received),
        Event::TaskAnswered(answered),
        Event::TaskRequeued(again),
    ] = last(&s)
    else {
        panic!("{:?}", s.last);
    };
    assert_eq!(received.run_id, run("run"));
    assert_eq!(received.suspension_id, Some(answered.suspension_id));
    assert_eq!(again.task_id, id("a"));
    let _ = s.then(&[("a", Pending), ("b", InProgress)]);
}

#[test]
fn the_same_message_twice_is_one_message() {
    let say = || message("run", "m", "a", Then::Continue);
    let s = asked().when(say()).accepted();
    let s = asks(s, "a").when(say()).accepted();
    assert_eq!(
        (
            last(&s).len(),
            s.last.as_ref().map(|(_, done)| done.clone())
        ),
        (0, Ok(Done::Ok))
    );
    let replayed = s.replayed();
    assert_eq!(replayed, s.flow);
    let other = message("run", "n", "a", Then::Continue);
    let s = s.when(other).accepted();
    assert_eq!(last(&s).len(), 3, "another message is another answer");
}

#[test]
fn a_message_that_nobody_waits_for_is_refused() {
    let say = |name: &str, to: &str| message("run", name, to, Then::Continue);
    let s = asked().when(say("m", "a")).accepted();
    let s = s.when(say("n", "a"));
    let expected = Refusal::RunNotWaiting {
        run: run("run"),
        task: Some(id("a")),
    };
    assert_eq!(*refusal(&s), expected);
    let s = s.when(say("n", "r"));
    assert!(matches!(refusal(&s), Refusal::RunNotWaiting { .. }));
    let s = s.when(say("n", "nobody"));
    assert!(matches!(refusal(&s), Refusal::RunNotWaiting { .. }));
}

#[test]
fn a_message_to_another_run_than_the_task_s_is_refused() {
    let s = asked().when(message("other", "m", "a", Then::Continue));
    let expected = Refusal::RunOver { run: run("other") };
    assert_eq!(*refusal(&s), expected);
    let done = Then::Complete(Payload::empty());
    let s = s.when(message("run", "m", "a", done.clone())).accepted();
    let s = s
        .when(message("run", "n", "b", done))
        .accepted()
        .runs(false);
    let s = s.when(message("run", "o", "b", Then::Continue));
    assert_eq!(*refusal(&s), Refusal::RunOver { run: run("run") });
}

#[test]
fn a_run_hears_so_many_messages_and_no_more() {
    let mut s = asked();
    for turn in 0..limits::MESSAGES_PER_RUN_MAX {
        // Others answer the question each time, as its task may ask only so often.
        s.flow.apply(
            &Event::MessageReceived(taskledger_domain::flow::MessageReceived {
                run_id: run("run"),
                message_id: turn.to_string(),
                body_hash: turn.to_string(),
                message: Payload::empty(),
                suspension_id: None,
            }),
            s.now,
        );
    }
    let s = s.when(message("run", "m", "a", Then::Continue));
    let s = s.rejects(Kind::Invalid);
    let fault = Fault::TooManyMessages {
        run: run("run"),
        messages: limits::MESSAGES_PER_RUN_MAX,
        messages_max: limits::MESSAGES_PER_RUN_MAX,
    };
    assert_eq!(*refusal(&s), Refusal::invalid([fault]));
}

#[test]
fn a_question_says_whether_it_asks_for_credentials() {
    let s = asked();
    let asked = s.history.iter().filter_map(|(_, event)| match event {
        Event::TaskSuspended(e) => Some(e.asks),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [Asks::Auth, Asks::Auth]);
    let wrong = Payload::parse(r#"{"question":"?","asks":"secrets"}"#).expect("an object");
    let faults = prepare(&wrong.to_map(), OnAnswer::Continue, None).expect_err("not known");
    assert_eq!(faults.len(), 1);
}

fn cancel_run(name: &str) -> Command {
    Command::CancelRun(CancelRun {
        run: run(name),
        reason: Some("no more".to_owned()),
    })
}

#[test]
fn a_cancelled_run_ends_at_once_with_everything_that_it_covers() {
    let s = given(vec![
        group("r"),
        task("needed").under("r"),
        group("g").under("r"),
        task("a").under("g").after(&["needed"]),
    ]);
    let s = s.when(start("g", RunKind::Execute, "run")).accepted();
    let s = s.then(&[("needed", InProgress)]);
    let s = s.when(cancel_run("run")).accepted();
    let s = s.then(&[
        ("needed", Cancelled),
        ("g", Cancelled),
        ("a", Cancelled),
        ("r", Pending),
    ]);
    let s = s.runs(false);
    assert_eq!(verdict(&s), RunState::Cancelled);
    assert_eq!(error_of(&s, "a"), "no more");
    assert_eq!(s.replayed(), s.flow);
}

#[test]
fn a_run_whose_root_has_ended_can_be_cancelled_too() {
    let s = given(vec![task("r"), task("below").under("r")]);
    let s = s.when(execute("r")).accepted().completes("r").runs(true);
    let s = s.when(cancel_run("run")).accepted().runs(false);
    let s = s.then(&[("r", Completed), ("below", Cancelled)]);
    assert_eq!(verdict(&s), RunState::Cancelled);
}

#[test]
fn a_waiting_run_is_cancelled_at_once() {
    let s = asked().when(cancel_run("run")).accepted().runs(false);
    assert_eq!(s.flow.waits(id("a")), None);
    assert_eq!(verdict(&s), RunState::Cancelled);
}

#[test]
fn a_run_that_has_ended_cannot_be_cancelled() {
    let s = given(vec![task("a")]);
    let s = s.when(execute("a")).accepted().completes("a");
    let s = s.when(cancel_run("run"));
    assert_eq!(*refusal(&s), Refusal::RunOver { run: run("run") });
}
