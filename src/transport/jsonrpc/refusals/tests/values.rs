//! Refusals because of missing or unacceptable values, trees, parents and dependencies.

use super::{A, B, STORED, id, lists, reads, two_tasks};
use crate::application::api::CallNames;
use crate::transport::jsonrpc::ErrorKind;
use serde_json::json;
use taskledger_domain::flow::{
    Argument, CallTask, ClosedBy, Fault, OutputExtent, ParentFault, ReferenceAt, Refusal,
    SelfDependency, TreeFault, UnknownDependency,
};
use taskledger_domain::task::wiring::{Unwired, WireFault};
use taskledger_domain::{RunId, Timestamp, Violation};

/// A time.
const THEN: Timestamp = Timestamp(1_700_000_000_000_000);
const THEN_TEXT: &str = "2023-11-14T22:13:20.000000Z";

fn unwired(task: CallTask, fault: WireFault) -> Fault {
    let unwired = Unwired {
        key: "k".to_owned(),
        text: "x.y".to_owned(),
        fault,
    };
    Fault::Wiring { task, unwired }
}

#[test]
fn what_is_not_there() {
    let none = CallNames::default();
    let expected = "the id of a stored task";
    let task = id(STORED);
    for (argument, member) in [
        (Argument::Task, "task_id"),
        (Argument::Parent, "parent_id"),
        (Argument::Root, "root_task_id"),
        (Argument::Followed, "task"),
    ] {
        let refusal = Refusal::TaskNotFound { task, argument };
        let told = [(member, "Task not found", expected, json!(STORED))];
        lists(&none, refusal, ErrorKind::TaskNotFound, &told);
        let refusal = Refusal::TaskArchived {
            task,
            argument,
            at: THEN,
            file: "f.jsonl".to_owned(),
        };
        let reason = format!("Task was archived at {THEN_TEXT} in file `f.jsonl`");
        let told = [(member, &*reason, expected, json!(STORED))];
        lists(&none, refusal, ErrorKind::TaskNotFound, &told);
    }
    let refusal = Refusal::NotCreatedYet {
        task,
        created_at: THEN,
        position: 7,
    };
    let reason = format!("Task did not exist then; created at {THEN_TEXT}, position 7");
    let later = format!("an `as_of` from {THEN_TEXT} or position 7 on");
    let told = [("task_id", &*reason, &*later, json!(STORED))];
    lists(&none, refusal, ErrorKind::TaskNotFound, &told);
    let flow = task.as_flow();
    let told = [("flow", "Task not found", expected, json!(STORED))];
    let refusal = Refusal::FlowNotFound { flow };
    lists(&none, refusal, ErrorKind::TaskNotFound, &told);
}

fn too_large(extent: OutputExtent) -> Fault {
    Fault::OutputTooLarge {
        task: id(A),
        extent,
        bytes: 11,
        bytes_max: 10,
    }
}

#[test]
fn values_that_are_not_acceptable() {
    let (first, second) = (CallTask::Index(0), CallTask::Id(id(B)));
    let dependency = ReferenceAt::Dependency {
        of: second,
        index: 3,
    };
    let parent = ReferenceAt::Parent { of: first };
    let text = || "x".to_owned();
    let free = "an id that no task has or ever had";
    let uuid = "Invalid UUID format";
    let future = "a time in the future";
    let read = Violation::of("name", "is empty", "a text", &json!(""));
    let faults = vec![
        Fault::from(read),
        Fault::FlowTooLarge {
            tasks: 11,
            tasks_max: 10,
        },
        Fault::DuplicateId {
            task: first,
            text: text(),
        },
        Fault::IdTaken {
            task: second,
            id: id(B),
        },
        Fault::IdTakenMeanwhile { id: id(A) },
        Fault::TaskStored {
            task: first,
            id: id(STORED),
        },
        Fault::MalformedId {
            at: parent,
            text: text(),
        },
        Fault::UnknownReference {
            at: dependency,
            text: text(),
        },
        Fault::AmbiguousName {
            at: dependency,
            text: text(),
        },
        Fault::DuplicateDependency {
            at: dependency,
            text: text(),
        },
        unwired(second, WireFault::NoDependency),
        unwired(second, WireFault::InInputs),
        unwired(second, WireFault::MayBeAbsent),
        Fault::Template {
            task: second,
            violation: Box::new(Violation::new(
                &["inputs".into(), "k".into()],
                "Invalid reference",
                "a reference",
                &json!("x"),
            )),
        },
        Fault::NewDeadlinePassed {
            task: second,
            deadline: THEN,
        },
        Fault::DeadlinePassed {
            task: id(A),
            deadline: THEN,
        },
        Fault::OutputPartOutOfOrder {
            task: id(A),
            number: 4,
            next: 2,
        },
        Fault::TooManyOutputParts {
            task: id(A),
            parts: 1001,
            parts_max: 1000,
        },
        too_large(OutputExtent::Part),
        too_large(OutputExtent::Attempt),
        Fault::TooManyMessages {
            run: RunId(id(A).0),
            messages: 1000,
            messages_max: 1000,
        },
        Fault::TooManyQuestions {
            task: id(A),
            questions: 100,
            questions_max: 100,
        },
    ];
    let told = [
        ("name", "is empty", "a text", json!("")),
        (
            "tasks",
            "Flow is too large",
            "at most 10 tasks in a flow, deleted ones included",
            json!(11),
        ),
        (
            "tasks/0/id",
            "Duplicate id",
            "an id that no other task of the call has",
            json!("x"),
        ),
        ("tasks/1/id", "Id is taken", free, json!("b")),
        ("id", "Id is taken", free, json!("a")),
        (
            "tasks/0/id",
            "Task is stored already",
            "a new id; use task_id to run a stored task",
            json!(STORED),
        ),
        ("tasks/0/parent_id", uuid, "a UUID v4", json!("x")),
        (
            "tasks/1/dependencies/3/id",
            uuid,
            "a UUID v4, or the id or name of a task in this call",
            json!("x"),
        ),
        (
            "tasks/1/dependencies/3/id",
            "Ambiguous name",
            "an id, because several tasks of the call have this name",
            json!("x"),
        ),
        (
            "tasks/1/dependencies/3/id",
            "Duplicate dependency",
            "each task once",
            json!("x"),
        ),
        (
            "tasks/1/schemas/wiring/k",
            "Not a dependency of the task",
            "a reference to a task of `dependencies`, as it is named there",
            json!("x.y"),
        ),
        (
            "tasks/1/schemas/wiring/k",
            "Key is in `inputs` too",
            "each key in one of `inputs` and `schemas.wiring`",
            json!("x.y"),
        ),
        (
            "tasks/1/schemas/wiring/k",
            "The dependency is optional and may have no result",
            "an object {from, default}, or `required: false`",
            json!("x.y"),
        ),
        (
            "tasks/1/inputs/k",
            "Invalid reference",
            "a reference",
            json!("x"),
        ),
        (
            "tasks/1/params/deadline",
            "Deadline has passed",
            future,
            json!(THEN_TEXT),
        ),
        (
            "deadline",
            "Deadline of task `a` has passed",
            future,
            json!(THEN_TEXT),
        ),
        (
            "output_number",
            "not the next part",
            "2, or the number of a part that is there already",
            json!(4),
        ),
        (
            "output_part",
            "too many parts",
            "at most 1000 parts of an attempt",
            json!(1001),
        ),
        (
            "output_part",
            "Too large: 11 bytes in a part",
            "at most 10 bytes in a part",
            json!(11),
        ),
        (
            "output_part",
            "Too large: 11 bytes in all parts of an attempt",
            "at most 10 bytes in all parts of an attempt",
            json!(11),
        ),
        (
            "message",
            "too many messages",
            "at most 1000 in a run",
            json!(1000),
        ),
        (
            "request",
            "Too many questions",
            "at most 100 in a run",
            json!(100),
        ),
    ];
    let refusal = Refusal::Invalid(faults);
    lists(&two_tasks(), refusal, ErrorKind::InvalidParams, &told);
}

#[test]
fn tasks_that_are_no_tree() {
    let first = CallTask::Index(0);
    let faults = vec![
        TreeFault::AgainstNesting {
            task: CallTask::Index(1),
            parent: "x".to_owned(),
        },
        TreeFault::WithoutParent { task: first },
        TreeFault::SeveralRoots { task: first },
        TreeFault::ParentCycle {
            task: first,
            cycle: vec![first, CallTask::Index(1), first],
        },
        TreeFault::SecondRoot { task: id(B) },
        TreeFault::TooDeep {
            task: id(B),
            levels: 61,
            levels_max: 60,
        },
    ];
    let told = [
        (
            "tasks/1/parent_id",
            "Does not match the tree",
            "the id of the task that it is written under, or absent",
            json!("x"),
        ),
        (
            "tasks/0/parent_id",
            "Task has no parent",
            "a parent for each task, because the call joins an existing flow",
            json!(null),
        ),
        (
            "tasks/0/parent_id",
            "Multiple root tasks found",
            "exactly one task without a parent",
            json!(null),
        ),
        (
            "tasks/0/parent_id",
            "Circular parent-child relationship",
            "parents that lead to one root",
            json!("b"),
        ),
        (
            "tasks/1/parent_id",
            "Flow has a root already",
            "a parent in the flow",
            json!("b"),
        ),
        (
            "tasks/1/parent_id",
            "Tree is too deep",
            "a tree of at most 60 levels",
            json!(61),
        ),
    ];
    let refusal = Refusal::InvalidTree(faults);
    let more = json!({"cycle": ["a", "b", "a"]});
    reads(&two_tasks(), refusal, ErrorKind::InvalidTree, &told, more);

    let (task, parent) = (id(STORED), id(A));
    let faults = vec![
        TreeFault::MovedToRoot { task },
        TreeFault::MovedBelowItself { task, parent },
    ];
    let told = [
        (
            "updates/parent_id",
            "Flow has a root already",
            "a parent in the same flow",
            json!(null),
        ),
        (
            "updates/parent_id",
            "Circular parent-child relationship",
            "a task that is not below this one",
            json!(A),
        ),
    ];
    let names = CallNames::of_update(task);
    let refusal = Refusal::InvalidTree(faults);
    lists(&names, refusal, ErrorKind::InvalidTree, &told);
}

#[test]
fn parents_that_cannot_be() {
    let (task, parent) = (id(B), id(STORED));
    let reason = "Parent task not found";
    let faults = vec![
        ParentFault::NotStored { parent },
        ParentFault::NotInCall { task, parent },
        ParentFault::NotInFlow { task, parent },
    ];
    let told = [
        (
            "parent_id",
            reason,
            "the id of a stored task",
            json!(STORED),
        ),
        (
            "tasks/1/parent_id",
            "Parent is not in this call",
            "a parent in this call; create tasks in a stored flow with tasks.create, then use task_id",
            json!(STORED),
        ),
        (
            "tasks/1/parent_id",
            reason,
            "a task of this flow",
            json!(STORED),
        ),
    ];
    let refusal = Refusal::InvalidParent(faults);
    lists(&two_tasks(), refusal, ErrorKind::InvalidParent, &told);

    let fault = ParentFault::MovedOutOfFlow { task, parent };
    let told = [(
        "updates/parent_id",
        reason,
        "a task of the same flow",
        json!(STORED),
    )];
    let names = CallNames::of_update(task);
    let refusal = Refusal::InvalidParent(vec![fault]);
    lists(&names, refusal, ErrorKind::InvalidParent, &told);
}

#[test]
fn dependencies_that_cannot_be() {
    let names = two_tasks();
    let unknown = UnknownDependency {
        task: id(A),
        index: 2,
        dependency: id(STORED),
    };
    let refusal = Refusal::DependenciesNotFound(vec![unknown]);
    let told = [(
        "tasks/0/dependencies/2/id",
        "Dependency task not found",
        "a task of the same flow",
        json!(STORED),
    )];
    lists(&names, refusal, ErrorKind::InvalidDependency, &told);

    let own = |task, index| SelfDependency { task, index };
    let refusal = Refusal::SelfDependency(vec![own(id(B), 1), own(id(A), 0)]);
    let reason = "Task cannot depend on itself";
    let told = [
        (
            "tasks/1/dependencies/1/id",
            reason,
            "another task",
            json!("b"),
        ),
        (
            "tasks/0/dependencies/0/id",
            reason,
            "another task",
            json!("a"),
        ),
    ];
    let more = json!({"cycle": ["b", "b"]});
    reads(&names, refusal, ErrorKind::CircularDependency, &told, more);

    let cycle = |closed_by| Refusal::CircularDependency {
        cycle: vec![id(A), id(B), id(A)],
        len: 2,
        closed_by,
        has_group: false,
    };
    let reason = "Circular dependency of 2 tasks";
    let told = [(
        "tasks/0/dependencies",
        reason,
        "dependencies without a cycle",
        json!("a"),
    )];
    let more = json!({"cycle": ["a", "b", "a"]});
    let kind = ErrorKind::CircularDependency;
    reads(&names, cycle(ClosedBy::Dependencies), kind, &told, more);
    let told = [(
        "updates/dependencies/4/id",
        reason,
        "a task that does not wait for this one",
        json!(B),
    )];
    let more = json!({"cycle": [A, B, A]});
    let names = CallNames::of_update(id(A));
    reads(
        &names,
        cycle(ClosedBy::Dependency(4)),
        kind,
        &told,
        more.clone(),
    );

    let cycle = |closed_by| Refusal::CircularDependency {
        cycle: vec![id(A), id(B), id(A)],
        len: 2,
        closed_by,
        has_group: true,
    };
    let reason = "Circular dependency of 2 tasks: a group waits for the tasks below it";
    let told = [(
        "updates/dependencies/4/id",
        "Task cannot depend on a group above it, which waits for it",
        "a task that is not above this one",
        json!(B),
    )];
    reads(
        &names,
        cycle(ClosedBy::GroupAbove(4)),
        kind,
        &told,
        more.clone(),
    );
    let told = [(
        "updates/parent_id",
        reason,
        "a parent in no group that the task waits for",
        json!(A),
    )];
    let closed_by = ClosedBy::Parent { task: id(A) };
    reads(&names, cycle(closed_by), kind, &told, more.clone());
    let told = [(
        "updates/schemas",
        reason,
        "schemas with a method, because tasks below it wait for this one",
        json!(A),
    )];
    let closed_by = ClosedBy::Method { task: id(A) };
    reads(&names, cycle(closed_by), kind, &told, more);
}
