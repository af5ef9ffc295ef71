//! The end of a flow in the log. Ours: the protocol does not know archives.

use crate::support::{cancel, create, delete, refusal};
use taskledger_domain::flow::{
    Archive, ArchiveFault, Argument, CallTask, Command, Event, Fault, FlowArchived, Handover, Kind,
    Refusal, Rest, Update,
};
use taskledger_domain::task::spec::Updates;
use taskledger_domain::testing::{Scenario, execute, given, group, id, run, task};
use taskledger_domain::{EventId, FlowId, Metadata, Recorded, Timestamp};

fn archive(s: &Scenario, rest: Rest) -> Command {
    Command::Archive(Archive {
        version: s.flow.version(),
        rest,
        copy: FlowArchived {
            file: "file.jsonl".to_owned(),
            sha256: "digest".to_owned(),
            events: s.flow.version(),
            runs: vec![run("run")],
            owner: None,
        },
    })
}

fn finished() -> Scenario {
    let s = given(vec![group("r"), task("a").under("r"), task("b").under("r")]);
    s.when(execute("r")).accepted().completes("a").fails("b")
}

#[test]
fn a_finished_flow_is_archived_with_one_event_and_has_no_tasks_then() {
    let s = finished();
    let (version, order) = (s.flow.version(), archive(&s, Rest::Finished));

    let s = s.when(order).accepted();

    let (events, _) = s.last.as_ref().unwrap();
    assert!(matches!(events.as_slice(), [Event::FlowArchived(_)]));
    assert_eq!((s.flow.version(), s.flow.size()), (version + 1, 0));
    assert_eq!(s.flow.archived().unwrap().copy.file, "file.jsonl");
    assert_eq!(s.flow, s.replayed());
    assert_eq!(s.flow.archived().unwrap().copy.owner, None);
}

#[test]
fn an_archived_flow_says_whose_it_was_in_the_end() {
    let s = given(vec![task("a").user("ann")]);
    let updates = Updates {
        user_id: Some(Some("bob".to_owned())),
        ..Updates::default()
    };
    let s = s.when(Command::Update(Update {
        task: id("a"),
        updates,
        dependencies: None,
        parent: None,
        current: None,
        looked: None,
        handover: Handover::default(),
    }));
    let s = s.accepted();
    let order = archive(&s, Rest::Idle);
    let s = s.when(order).accepted();
    let owner = s.flow.archived().unwrap().copy.owner.clone();
    assert_eq!(owner.as_deref(), Some("bob"));
}

#[test]
fn a_flow_that_runs_is_not_archived() {
    let s = given(vec![task("a")]).when(execute("a")).accepted();
    for rest in [Rest::Finished, Rest::Idle] {
        let order = archive(&s, rest);
        let _ = s.clone().when(order).rejects(Kind::InvalidTransition);
    }
}

#[test]
fn a_flow_with_pending_tasks_is_archived_only_when_that_is_asked_for() {
    let s = given(vec![group("r"), task("a").under("r")]);
    let order = archive(&s, Rest::Finished);
    let s = s.when(order).rejects(Kind::InvalidTransition);
    let order = archive(&s, Rest::Idle);
    let s = s.when(order).accepted();
    assert!(s.flow.archived().is_some());
}

#[test]
fn the_root_of_an_archived_flow_is_not_created_again() {
    let s = given(vec![task("a")]);
    let order = archive(&s, Rest::Idle);
    let s = s.when(order).accepted();
    let (task, id) = (CallTask::Id(id("a")), id("a"));
    let s = s.when(create(vec![self::task("a")]));
    let taken = Fault::IdTaken { task, id };
    assert_eq!(*refusal(&s), Refusal::invalid([taken]));
}

#[test]
fn a_deleted_task_does_not_keep_its_flow() {
    let s = given(vec![task("a"), group("b").under("a")]);
    let s = s.when(delete("b")).accepted();
    let s = s.when(execute("a")).accepted().completes("a");
    let order = archive(&s, Rest::Finished);
    let _ = s.when(order).accepted();
}

#[test]
fn a_flow_that_changed_since_it_was_copied_is_not_archived() {
    let s = given(vec![task("a")]);
    let order = archive(&s, Rest::Finished);
    let copied = s.flow.version();
    let s = s.when(cancel("a")).accepted();
    let version = s.flow.version();
    let s = s.when(order);
    let fault = ArchiveFault::Changed { version, copied };
    assert_eq!(*refusal(&s), Refusal::NotArchivable(fault));
}

#[test]
fn a_flow_is_archived_once_and_its_tasks_are_unknown_with_where_they_went() {
    let s = finished();
    let order = archive(&s, Rest::Finished);
    let s = s.when(order).accepted();
    let order = archive(&s, Rest::Finished);
    let s = s.when(order).rejects(Kind::InvalidTransition);
    let s = s.when(execute("a")).rejects(Kind::NotFound);
    let archived = s.flow.archived().unwrap();
    let expected = Refusal::archived(Argument::Task, id("a"), archived);
    assert_eq!(*refusal(&s), expected);
    assert!(matches!(expected, Refusal::TaskArchived { file, .. } if file == "file.jsonl"));
    assert!(s.flow.task(id("a")).is_none());
}

#[test]
fn an_archived_flow_is_loaded_from_its_last_event_alone() {
    let s = finished();
    let order = archive(&s, Rest::Finished);
    let s = s.when(order).accepted();
    let (events, _) = s.last.as_ref().unwrap();
    let last = Recorded {
        position: 100,
        flow: FlowId(id("r").0),
        version: s.flow.version(),
        id: EventId(id("event").0),
        time: s.flow.archived().unwrap().at,
        recorded_at: Timestamp(0),
        metadata: Metadata {
            actor: "a".into(),
            correlation: "c".into(),
            causation: None,
            trace: None,
        },
        event: events[0].clone().into(),
    };
    let mut loaded = taskledger_domain::flow::Flow::default();
    loaded.replay([&last]);
    assert_eq!(loaded, s.flow);
}
