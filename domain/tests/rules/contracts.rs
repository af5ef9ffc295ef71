//! What tasks declare of their inputs and outputs, kept where workers claim and complete. spec: RFC-0024 / 3

use taskledger_domain::contract::{Breach, Broken, OutputFault};
use taskledger_domain::flow::{
    Claim, Claimable, Command, Dependency, Done, Event, Handover, Looked, Outdated, Rejection,
    Update, When,
};
use taskledger_domain::task::Status::{Completed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::task::spec::{Schemas, Updates};
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};
use taskledger_domain::{LeaseId, Payload, limits};

fn remote(name: &str) -> NewTask {
    task(name).method("resize")
}

/// A task that takes `x` from here.
fn wired(name: &str, on: &str, key: &str) -> NewTask {
    let mut task = remote(name).under("r").after(&[on]);
    let text = format!(
        r#"{{"method":"resize","wiring":{{"x":"{}.{key}"}}}}"#,
        id(on)
    );
    task.specification.schemas = Payload::parse(&text).ok();
    task
}

/// Workers claim tasks of the method `resize`.
fn running(tasks: Vec<NewTask>) -> Scenario {
    let name = tasks[0].name.clone();
    let mut s = given(tasks);
    s.server.remote.insert("resize".to_owned());
    s.when(execute(&name)).accepted()
}

fn lease(name: &str) -> LeaseId {
    LeaseId(id(name).0)
}

fn claims_of(s: Scenario, of: Claimable, lease_name: &str) -> Scenario {
    let claim = Claim {
        of,
        leases: vec![lease(lease_name)],
        worker: "worker".to_owned(),
        holder: None,
        expires_at: s.now.plus_ms(60_000),
    };
    s.when(Command::Claim(claim))
}

fn claims(s: Scenario, name: &str) -> Scenario {
    claims_of(s, Claimable::Task(id(name)), "l").accepted()
}

fn claims_next(s: Scenario) -> Scenario {
    let next = Claimable::Next {
        method: "resize".to_owned(),
        until: None,
    };
    claims_of(s, next, "l").accepted()
}

fn claimed(s: Scenario, name: &str) -> Scenario {
    claims(s, name).then(&[(name, InProgress)])
}

fn completes(s: Scenario, name: &str, result: &str) -> Scenario {
    let result = Payload::parse(result).expect("an object");
    let s = s.when(Command::Complete {
        task: id(name),
        attempt: 1,
        result,
        lease: Some(lease("l")),
    });
    s.accepted().then(&[(name, Completed)])
}

/// A claim of a task is refused, and how much of that was recorded.
fn refuses(s: Scenario, name: &str) -> (Scenario, usize) {
    let s = claims_of(s, Claimable::Task(id(name)), "refused").accepted();
    let (events, done) = s.last.as_ref().expect("it was accepted");
    assert_eq!((events.len(), done.clone()), (0, Done::ClaimRefused));
    let found = s.flow.claim_fault(id(name)).expect("it was refused");
    let s = tells(s, name, &found);
    let told = told_of(&s);
    (s.then(&[(name, Pending)]), told)
}

/// The worker was told of a refused claim.
fn tells(s: Scenario, name: &str, found: &Broken) -> Scenario {
    let breach = Breach {
        phase_name: Some(name.to_owned()),
        broken: found.clone(),
    };
    let reject = Command::RejectClaim {
        task: id(name),
        worker: "worker".to_owned(),
        found: Box::new(found.clone()),
        breach: Box::new(breach),
    };
    s.when(reject).accepted()
}

/// How many refused claims the last command has recorded.
fn told_of(s: &Scenario) -> usize {
    let (events, _) = s.last.as_ref().expect("it was accepted");
    let rejected = |event: &&Event| matches!(event, Event::TaskClaimRejected(_));
    events.iter().filter(rejected).count()
}

#[test]
fn a_claim_without_its_inputs_is_refused_and_the_task_stays_ready() {
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        wired("b", "a", "key"),
    ]);
    let s = completes(claimed(s, "a"), "a", r#"{"other":1}"#);
    let reference = format!("{}.key", id("a"));
    assert_eq!(
        s.flow.unresolvable(id("b")),
        std::slice::from_ref(&reference)
    );

    let (s, told) = refuses(s, "b");
    assert_eq!(told, 1);
    let (s, told) = refuses(s, "b");
    assert_eq!(told, 0, "it is in the log");
    // A worker that asks for the method gets others.
    let s = claims_next(s).then(&[("b", Pending)]);
    let (events, done) = s.last.as_ref().expect("it was accepted");
    assert_eq!((events.len(), done.clone()), (0, Done::Status(Pending)));
}

#[test]
fn a_value_that_a_template_needs_keeps_workers_off_as_a_wired_one_does() {
    let mut templated = remote("b").under("r").after(&["a"]);
    let schemas = r#"{"method":"resize","templates":true}"#;
    templated.specification.schemas = Payload::parse(schemas).ok();
    let text = format!(r#"{{"url":"x/{{{{{}.key}}}}"}}"#, id("a"));
    templated.specification.inputs = Payload::parse(&text).expect("an object");
    let s = running(vec![group("r"), remote("a").under("r"), templated]);
    let s = completes(claimed(s, "a"), "a", r#"{"other":1}"#);
    let reference = format!("{}.key", id("a"));
    assert_eq!(s.flow.unresolvable(id("b")), [reference]);
    let (_, told) = refuses(s, "b");
    assert_eq!(told, 1);
}

#[test]
fn a_claim_before_all_dependencies_have_completed_is_refused() {
    // What `c` needs of `a` is there, and `b` gives it nothing.
    let mut c = wired("c", "a", "key");
    c.dependencies.push(Dependency {
        id: id("b"),
        when: When::Completed,
    });
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        remote("b").under("r"),
        c,
    ]);
    let why = |s: &Scenario| {
        let Some(Broken::Inputs {
            unresolvable_refs,
            incomplete,
        }) = s.flow.claim_fault(id("c"))
        else {
            panic!("{:?}", s.flow.claim_fault(id("c")));
        };
        let others = incomplete.iter().map(|it| (it.task_id, it.status));
        (unresolvable_refs.len(), others.collect::<Vec<_>>())
    };
    assert_eq!(why(&s), (1, vec![(id("a"), Pending), (id("b"), Pending)]));
    let (s, told) = refuses(s, "c");
    assert_eq!(told, 1);
    let (s, told) = refuses(s, "c");
    assert_eq!(told, 0, "it is in the log");

    let s = completes(claimed(s, "a"), "a", r#"{"key":1}"#);
    assert_eq!(why(&s), (0, vec![(id("b"), Pending)]));
    let (s, told) = refuses(s, "c");
    assert_eq!(told, 1, "another fact");
    let outdated = s.flow.claim_fault(id("c")).expect("it waits");
    let s = claimed(s, "b");
    assert_eq!(why(&s), (0, vec![(id("b"), InProgress)]));
    let s = tells(s, "c", &outdated);
    assert_eq!(told_of(&s), 0, "it is not so any more");

    let s = completes(s, "b", "{}");
    assert_eq!(s.flow.claim_fault(id("c")), None);
    let _ = claimed(s, "c");
}

#[test]
fn refused_claims_of_a_task_do_not_fill_the_log() {
    let names: Vec<String> = (0..limits::REJECTIONS_PER_ATTEMPT_MAX + 2)
        .map(|k| format!("a{k}"))
        .collect();
    let on: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut tasks = vec![group("r"), remote("b").under("r").after(&on)];
    tasks.extend(names.iter().map(|name| remote(name).under("r")));
    let mut s = running(tasks);
    let mut recorded = 0;
    for name in &names {
        let (after, told) = refuses(s, "b");
        recorded += told;
        s = completes(claimed(after, name), name, "{}");
    }
    assert_eq!(recorded, limits::REJECTIONS_PER_ATTEMPT_MAX as usize);
}

#[test]
fn a_completion_records_the_whole_result_and_frees_its_dependents_in_one_append() {
    let mut local = wired("local", "a", "key");
    local.specification.method = Some("echo".to_owned());
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        wired("ready", "a", "key"),
        wired("lacking", "a", "none"),
        local,
    ]);
    let s = claimed(s, "a");
    let before = s.history.len();
    let result = r#"{"key":[null],"not declared":{"x":1}}"#;
    let s = completes(s, "a", result);
    let new: Vec<&Event> = s.history[before..].iter().map(|(_, event)| event).collect();
    let (events, _) = s.last.as_ref().expect("it was accepted");
    assert_eq!(new, events.iter().collect::<Vec<_>>());
    let Event::TaskCompleted(completed) = new[0] else {
        panic!("{new:?}");
    };
    assert_eq!(completed.task_id, id("a"));
    let given = Payload::parse(result).expect("an object");
    assert_eq!(completed.result.to_map(), given.to_map());
    // What runs in the server starts in the same append, the others wait for their claims.
    let started =
        |event: &&Event| matches!(event, Event::TaskStarted(e) if e.task_id == id("local"));
    assert_eq!(new.iter().copied().filter(started).count(), 1);
    let lacking = [format!("{}.none", id("a"))];
    assert_eq!(s.flow.unresolvable(id("lacking")), lacking);
    assert!(s.flow.unresolvable(id("ready")).is_empty());
    let s = s.then(&[("ready", Pending), ("lacking", Pending)]);
    let s = claimed(s, "ready");
    let (_, told) = refuses(s, "lacking");
    assert_eq!(told, 1);
}

#[test]
fn a_claim_with_its_inputs_is_granted_whatever_else_the_result_has() {
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        wired("b", "a", "key#/0"),
    ]);
    let s = completes(claimed(s, "a"), "a", r#"{"key":[null],"other":1}"#);
    assert!(s.flow.unresolvable(id("b")).is_empty());
    let _ = claimed(s, "b");
}

#[test]
fn what_has_a_default_or_is_not_required_keeps_no_worker_off() {
    let lenient = |wire: &str| {
        let mut b = wired("b", "a", "key");
        let text = format!(r#"{{"method":"resize","wiring":{{"x":{wire}}}}}"#);
        b.specification.schemas = Payload::parse(&text.replace("ID", &id("a").to_string())).ok();
        b
    };
    for wire in [
        r#"{"from":"ID.key","default":1}"#,
        r#"{"from":"ID.key","required":false}"#,
    ] {
        let s = running(vec![group("r"), remote("a").under("r"), lenient(wire)]);
        let s = completes(claimed(s, "a"), "a", "{}");
        let _ = claimed(s, "b");
    }
}

/// An update of `b`, which is wired to `a`.
fn update_of_b(spec_at: u64, updates: Updates, looked: Option<Looked>) -> Command {
    Command::Update(Update {
        task: id("b"),
        updates,
        dependencies: None,
        parent: None,
        current: Some((spec_at, wired("b", "a", "key").specification)),
        looked,
        handover: Handover::default(),
    })
}

#[test]
fn other_schemas_make_a_task_claimable_again() {
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        wired("b", "a", "key"),
    ]);
    let s = completes(claimed(s, "a"), "a", "{}");
    let current = s.flow.task(id("b")).expect("it is there");
    let plain = Schemas {
        raw: Payload::parse(r#"{"method":"resize"}"#).expect("an object"),
        method: "resize".to_owned(),
        remote: false,
    };
    let updates = Updates {
        schemas: Some(Some(plain)),
        ..Updates::default()
    };
    let s = s.when(update_of_b(current.spec_at, updates, None));
    let s = s.accepted();
    assert!(s.flow.unresolvable(id("b")).is_empty());
    let _ = claimed(s, "b");
}

#[test]
fn other_literal_inputs_do_not_make_a_task_claimable_that_lacks_a_value() {
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        wired("b", "a", "key"),
    ]);
    let (s, told) = refuses(completes(claimed(s, "a"), "a", "{}"), "b");
    assert_eq!(told, 1);
    let current = s.flow.task(id("b")).expect("it is there");
    let updates = Updates {
        inputs: Some(Payload::parse(r#"{"y":1}"#).expect("an object")),
        ..Updates::default()
    };
    let s = s.when(update_of_b(current.spec_at, updates, None));
    let s = s.accepted();
    assert_eq!(s.flow.unresolvable(id("b")), [format!("{}.key", id("a"))]);
    let (_, told) = refuses(s, "b");
    assert_eq!(told, 0, "it is in the log");
}

#[test]
fn a_task_that_no_worker_may_claim_is_told_apart_and_fails_in_its_time() {
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        wired("b", "a", "key").starts_within_ms(1000),
    ]);
    let s = completes(claimed(s, "a"), "a", "{}");
    let explained = s.flow.explain(id("b"), s.now, &s.server).expect("a task");
    let reasons = format!("{:?}", explained.reasons);
    assert!(reasons.contains("LacksInputs"), "{reasons}");

    let s = s.after_ms(1000).when(Command::Wake).accepted();
    let s = s.then(&[("b", taskledger_domain::task::Status::Failed)]);
    let error = crate::support::error_of(&s, "b");
    assert!(error.contains("UnresolvableInputError"), "{error}");
}

#[test]
fn what_runs_in_the_server_begins_and_says_itself_what_is_missing() {
    let mut b = wired("b", "a", "key");
    b.specification.method = Some("echo".to_owned());
    let s = running(vec![group("r"), remote("a").under("r"), b]);
    let _ = completes(claimed(s, "a"), "a", "{}").then(&[("b", InProgress)]);
}

#[test]
fn a_dependency_that_is_given_up_leaves_its_input_without_value() {
    let mut b = wired("b", "a", "key");
    b.dependencies = vec![Dependency {
        id: id("c"),
        when: When::Completed,
    }];
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        remote("c").under("r"),
        b,
    ]);
    assert_eq!(
        s.flow.unresolvable(id("b")).len(),
        1,
        "as in a copy without it"
    );
    let s = completes(claimed(s, "c"), "c", "{}");
    let (_, told) = refuses(s, "b");
    assert_eq!(told, 1);
}

#[test]
fn what_is_wired_to_a_result_that_is_there_already_is_known_when_the_update_has_looked() {
    let s = running(vec![
        group("r"),
        remote("a").under("r"),
        remote("b").under("r").after(&["a"]),
    ]);
    let s = completes(claimed(s, "a"), "a", r#"{"there":1}"#);
    let current = s.flow.task(id("b")).expect("it is there");
    let plain = remote("b").specification;
    let update = |key: &str, looked: Option<Looked>| {
        let wired = wired("b", "a", key).specification;
        let schemas = Schemas {
            raw: wired.schemas.expect("it is wired"),
            method: "resize".to_owned(),
            remote: false,
        };
        Command::Update(Update {
            task: id("b"),
            updates: Updates {
                schemas: Some(Some(schemas)),
                ..Updates::default()
            },
            dependencies: None,
            parent: None,
            current: Some((current.spec_at, plain.clone())),
            looked,
            handover: Handover::default(),
        })
    };
    let absent = vec![format!("{}.key", id("a"))];
    let looked = |at: &[&str], absent: &[String]| {
        Some(Looked {
            at: at.iter().map(|name| id(name)).collect(),
            absent: absent.to_vec(),
        })
    };
    let outdated = s.when(update("key", looked(&[], &[])));
    assert!(matches!(
        outdated.last,
        Err(Rejection::Outdated(Outdated::Specification))
    ));
    let s = outdated.when(update("key", looked(&["a"], &absent)));
    let s = s.accepted();
    assert_eq!(s.flow.unresolvable(id("b")), absent);
    let (s, told) = refuses(s, "b");
    assert_eq!(told, 1);
    // Nothing changes with the same update again.
    let current = s.flow.task(id("b")).expect("it is there");
    let same = update_of_b(
        current.spec_at,
        Updates {
            inputs: Some(Payload::empty()),
            ..Updates::default()
        },
        looked(&["a"], &absent),
    );
    let s = s.when(same).accepted();
    assert!(s.last.as_ref().expect("it was accepted").0.is_empty());
}

fn rejects(s: Scenario, name: &str, attempt: u32, missing: &str) -> Scenario {
    s.when(Command::RejectCompletion {
        task: id(name),
        attempt,
        lease: lease("l"),
        fault: OutputFault {
            missing: vec![missing.to_owned()],
            mismatches: Vec::new(),
            too_large: None,
        },
        phase_name: Some(name.to_owned()),
    })
}

fn rejections(s: &Scenario) -> usize {
    let events = &s.last.as_ref().expect("it was accepted").0;
    let rejected = |event: &&Event| matches!(event, Event::TaskCompletionRejected(_));
    events.iter().filter(rejected).count()
}

#[test]
fn a_refused_result_is_recorded_once_and_the_attempt_goes_on() {
    let s = claimed(running(vec![remote("a")]), "a");
    let s = rejects(s, "a", 1, "width").accepted();
    assert_eq!(rejections(&s), 1);
    let s = rejects(s, "a", 1, "width").accepted();
    assert_eq!(rejections(&s), 0, "an equal repetition says nothing new");
    let s = rejects(s, "a", 1, "height").accepted();
    assert_eq!(rejections(&s), 1);
    let s = s.then(&[("a", InProgress)]);
    let _ = completes(s, "a", "{}");
}

#[test]
fn refused_results_of_an_attempt_do_not_fill_the_log() {
    let mut s = claimed(running(vec![remote("a")]), "a");
    let mut recorded = 0;
    for n in 0..2 * limits::REJECTIONS_PER_ATTEMPT_MAX {
        s = rejects(s, "a", 1, &format!("key {n}")).accepted();
        recorded += rejections(&s);
    }
    assert_eq!(recorded, limits::REJECTIONS_PER_ATTEMPT_MAX as usize);
}

#[test]
fn a_result_that_is_refused_after_its_attempt_is_outdated() {
    let s = claimed(running(vec![remote("a")]), "a");
    let _ = rejects(s, "a", 2, "width").is_outdated(Outdated::Attempt);
}
