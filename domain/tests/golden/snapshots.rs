//! The stored form of the state.

use super::folder;
use taskledger_domain::codec::snapshot;
use taskledger_domain::contract::{Breach, OutputFault};
use taskledger_domain::flow::{
    Append, Claim, Claimable, Command, OnAnswer, OutputPart, Receive, Respond, Suspend, Then,
};
use taskledger_domain::question::{answer_of, prepare};
use taskledger_domain::task::Progress;
use taskledger_domain::testing::{START, Scenario, execute, given, group, id, run, task};
use taskledger_domain::{LeaseId, Payload, SuspensionId, TaskId};

/// The command by which a task asks whether to go on, with a value for the time after that.
fn asks(s: &Scenario, name: &str, on_answer: OnAnswer) -> (Command, SuspensionId) {
    let text = r#"{"question":"Go on?","response_type":"confirm","timeout_seconds":60,
        "fallback_policy":"use_default_and_continue","fallback_value":false,
        "retry_policy":{"max_attempts":2,"escalation_ladder":[{"attempt":1,"notify_to":"boss"}]}}"#;
    let asked = Payload::parse(text).expect("an object");
    let prepared = prepare(&asked.to_map(), on_answer, None);
    let (asked, question, on_expiry) = prepared.expect("a question");
    let suspension = SuspensionId(id(&format!("question of {name}")).0);
    let suspend = Command::Suspend(Suspend {
        task: id(name),
        attempt: s.attempt(name),
        lease: None,
        suspension,
        asked,
        question,
        on_answer,
        on_expiry,
    });
    (suspend, suspension)
}

/// A flow with everything that a snapshot can hold.
fn rich() -> Scenario {
    let mut wired = task("wired").under("r").after(&["done"]);
    let wiring = format!(
        r#"{{"method":"echo","wiring":{{"x":"{}.a#/0"}}}}"#,
        id("done")
    );
    wired.specification.schemas = Some(Payload::parse(&wiring).expect("an object"));
    let mut bounded = task("a").under("g").attempts(3, 500).priority(0);
    let retry = bounded
        .specification
        .retry
        .as_mut()
        .expect("it has attempts");
    (retry.jitter, retry.max_elapsed_ms) = (0.25, Some(600_000));
    let mut s = given(vec![
        group("r").user("ann").deadline_ms(3_600_000),
        group("g").under("r"),
        bounded,
        task("b").under("g").after(&["a"]).user("bob"),
        task("c")
            .under("r")
            .after_any(&["g"])
            .method("once")
            .priority(3),
        task("x").under("g").after(&["b"]),
        task("cleans").under("g").after_always(&["b"]),
        task("gone").under("r"),
        task("done").under("r"),
        task("bad").under("r"),
        task("far").under("g").method("resize"),
        task("waits").under("g").method("resize").after(&["far"]),
        task("p").under("g"),
        task("q").under("g"),
        task("declines").under("g"),
        task("completes").under("g"),
        task("unheard").under("g"),
        task("later")
            .under("g")
            .start_at_ms(900_000)
            .delay_ms(60_000),
        wired,
    ]);
    s.server.remote.insert("resize".to_owned());
    let s = s
        .when(Command::Delete {
            task: id("gone"),
            cascade: false,
        })
        .accepted();
    let s = s.when(execute("done")).accepted().completes("done");
    let s = s.when(execute("bad")).accepted().fails("bad");
    let s = s.when(execute("g")).accepted().after_ms(10).fails("a");
    let report = |task: TaskId| Command::Report {
        task,
        attempt: 2,
        progress: Progress::from_millionths(250_000),
        message: None,
        lease: None,
    };
    let far = s.flow.task(id("far")).expect("it was created");
    let far = far.id;
    let claim = |name: &str| Claim {
        of: Claimable::Task(far),
        leases: vec![LeaseId(id(name).0)],
        worker: "worker-1".to_owned(),
        holder: Some("user:ann".to_owned()),
        expires_at: START.plus_ms(60_000),
    };
    let s = s.when(Command::Claim(claim("lease before"))).accepted();
    let s = s.when(Command::Release {
        task: far,
        attempt: 1,
        lease: LeaseId(id("lease before").0),
    });
    let s = s.accepted().when(Command::Claim(claim("lease"))).accepted();
    let found = s.flow.claim_fault(id("waits")).expect("it waits");
    let s = s.when(Command::RejectClaim {
        task: id("waits"),
        worker: "worker-2".to_owned(),
        breach: Box::new(Breach {
            phase_name: Some("waits".to_owned()),
            broken: found.clone(),
        }),
        found: Box::new(found),
    });
    let s = s.accepted();
    let s = s.when(Command::RejectCompletion {
        task: id("far"),
        attempt: 2,
        lease: LeaseId(id("lease").0),
        fault: OutputFault {
            missing: vec!["width".to_owned()],
            mismatches: Vec::new(),
            too_large: None,
        },
        phase_name: None,
    });
    let s = s.accepted();
    let mut s = s
        .when(Command::Append(Append {
            task: id("far"),
            attempt: 2,
            lease: Some(LeaseId(id("lease").0)),
            number: 1,
            part: OutputPart::Text("so far".to_owned()),
        }))
        .accepted();
    for (name, on_answer, then) in [
        ("p", OnAnswer::Continue, Some(Then::Continue)),
        ("q", OnAnswer::Continue, None),
        ("declines", OnAnswer::CompleteOrDecline, None),
        ("completes", OnAnswer::Complete, None),
        ("unheard", OnAnswer::Continue, None),
    ] {
        let (suspend, suspension) = asks(&s, name, on_answer);
        s = s.when(suspend).accepted();
        if let Some(then) = then {
            let receive = Command::Receive(Receive {
                run: run("run"),
                message_id: "m".to_owned(),
                body_hash: "0f".repeat(32),
                message: Payload::empty(),
                answers: Respond {
                    task: id(name),
                    suspension,
                    answer: answer_of(true.into()),
                    responded_by: "user:ann".to_owned(),
                    on_behalf_of: None,
                    then,
                },
            });
            s = s.when(receive).accepted();
        }
    }
    let cancel = Command::Cancel {
        task: id("unheard"),
        cascade: false,
        reason: None,
    };
    let s = s.when(cancel).accepted();
    s.after_ms(500).when(report(id("a"))).accepted()
}

#[test]
fn the_golden_snapshot_means_what_it_meant() {
    let name = format!("snapshot.v{}.bin", snapshot::FORMAT);
    let path = folder().join(&name);
    let flow = rich().flow;
    let present = snapshot::encode(&flow);
    let golden = std::fs::read(&path).unwrap_or_else(|_| {
        let hex: String = present.iter().map(|b| format!("{b:02x}")).collect();
        panic!("add {} with the bytes\n{hex}", path.display())
    });
    assert_eq!(
        present, golden,
        "the state is written otherwise: raise snapshot::FORMAT"
    );
    let read = snapshot::decode(&golden).expect("raise snapshot::FORMAT");
    assert_eq!(
        read, flow,
        "the bytes mean another state: raise snapshot::FORMAT"
    );
}

#[test]
fn a_flow_goes_on_from_its_snapshot_as_if_nothing_had_happened() {
    let s = rich();
    let bytes = snapshot::encode(&s.flow);
    let mut loaded = s.clone();
    loaded.flow = snapshot::decode(&bytes).expect("a snapshot can be read again");
    let go_on = |s: Scenario| s.completes("a").completes("b").after_ms(1).restarts();
    let (live, loaded) = (go_on(s), go_on(loaded));
    assert_eq!(live.history, loaded.history);
    assert_eq!(live.flow, loaded.flow);
}
