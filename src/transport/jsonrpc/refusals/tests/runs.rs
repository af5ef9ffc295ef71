//! Refusals because of executors, runs and statuses.

use super::{A, B, STORED, id, lists, reads, refused, refused_call, two_tasks};
use crate::application::api::{CallNames, KnownExecutors};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::refusals::executors::COMMANDS_OFF;
use serde_json::json;
use taskledger_domain::flow::{
    ArchiveFault, Changeable, ParentFault, Refusal, RunConflict, TransitionFault, UnknownExecutor,
};
use taskledger_domain::task::Status::{Completed, Failed, InProgress, Pending};
use taskledger_domain::task::call::UnknownMethod;

#[test]
fn methods_without_an_executor() {
    let unknown = |task, method: &str| UnknownExecutor {
        task: id(task),
        method: method.to_owned(),
    };
    let expected = "the name of an executor (`system.executors` lists them)";
    let new = (
        "tasks/0/schemas/method",
        "Executor of task `a` not found",
        expected,
        json!("nope"),
    );
    let refusal = Refusal::ExecutorsNotFound(vec![unknown(A, "nope")]);
    let kind = ErrorKind::ExecutorNotFound;
    let hint = "on a server, a task with `schemas.type: \"remote\"` waits for a worker of its method, such as \
                `taskledger worker --method NAME -- PROGRAM` starts";
    reads(
        &two_tasks(),
        refusal,
        kind,
        std::slice::from_ref(&new),
        json!({"hint": hint}),
    );

    let refusal = Refusal::ExecutorsNotFound(vec![unknown(STORED, "command_executor")]);
    let reason = format!("Executor of task `{STORED}` not found");
    let told = [(
        "schemas/method",
        &*reason,
        expected,
        json!("command_executor"),
    )];
    let more = json!({"hint": COMMANDS_OFF});
    reads(&CallNames::default(), refusal, kind, &told, more);

    // Both help where both are missing.
    let both = vec![unknown(A, "nope"), unknown(STORED, "command_executor")];
    let more = json!({"hint": format!(
        "{COMMANDS_OFF}; {hint}"
    )});
    reads(
        &two_tasks(),
        Refusal::ExecutorsNotFound(both),
        kind,
        &[new, told[0].clone()],
        more,
    );
}

#[test]
fn an_unknown_method_is_told_with_the_executors_that_there_are() {
    let unknown = |task, method: &str| UnknownExecutor {
        task: id(task),
        method: method.to_owned(),
    };
    let told = |unknown: Vec<UnknownExecutor>, executors: &KnownExecutors| {
        let mut refused = refused(Refusal::ExecutorsNotFound(unknown), two_tasks());
        refused.executors = executors.clone();
        refused_call(&refused).data
    };
    let mut executors = KnownExecutors {
        names: vec!["echo_executor".to_owned(), "sleep_executor".to_owned()],
        more: 0,
        meant: [("ehco_executor".to_owned(), "echo_executor".to_owned())].into(),
    };
    let near = told(vec![unknown(A, "ehco_executor")], &executors);
    assert_eq!(
        near["expected"],
        "the name of an executor; did you mean `echo_executor`?"
    );
    assert_eq!(near["actual"], "ehco_executor");
    assert_eq!(near.get("hint"), None, "nothing else is likely to help");

    let far = told(vec![unknown(A, "build"), unknown(B, "test")], &executors);
    let listed = "the name of an executor: `echo_executor`, `sleep_executor`";
    assert_eq!(far["errors"][0]["expected"], listed);
    assert_eq!(far["errors"][1]["expected"], "the name of an executor");
    assert!(far["hint"].as_str().unwrap().contains("remote"), "{far}");

    executors.more = 3;
    let many = told(vec![unknown(A, "build")], &executors);
    let listed = format!("{listed}, and 3 more (`system.executors` lists them)");
    assert_eq!(many["expected"], listed);
}

#[test]
fn unknown_methods_beside_another_fault_are_told_in_the_same_words() {
    let mut refused = refused(
        Refusal::InvalidParent(vec![ParentFault::NotStored { parent: id(STORED) }]),
        two_tasks(),
    );
    let path = ["tasks".into(), 1.into(), "schemas".into(), "method".into()];
    refused.unknown_executors = vec![UnknownMethod {
        path: path.to_vec(),
        method: "ehco_executor".to_owned(),
    }];
    refused.executors.meant = [("ehco_executor".to_owned(), "echo_executor".to_owned())].into();
    let data = refused_call(&refused).data;
    assert_eq!(
        data["errors"][1],
        json!({"field": "method", "reason": "Executor not found", "actual": "ehco_executor",
            "expected": "the name of an executor; did you mean `echo_executor`?", "path": ["tasks", 1, "schemas", "method"]})
    );
}

#[test]
fn what_an_active_run_forbids() {
    let task = id(STORED);
    let method = "An active run covers the task, which may not change between group and method";
    let faults = vec![
        RunConflict::Covered { task },
        RunConflict::InProgress {
            task,
            changeable: Changeable::Pending,
        },
        RunConflict::InProgress {
            task,
            changeable: Changeable::PendingOrFailed,
        },
        RunConflict::InProgress {
            task,
            changeable: Changeable::Idle,
        },
        RunConflict::Moved {
            task,
            parent: id(A),
        },
        RunConflict::MethodChanged {
            task,
            method: Some("echo".to_owned()),
        },
        RunConflict::MethodChanged { task, method: None },
        RunConflict::DependencyNotCovered {
            task,
            index: 1,
            dependency: id(B),
        },
    ];
    let told = [
        (
            "task_id",
            "An active run covers the task",
            "tasks that no active run covers",
            json!(STORED),
        ),
        (
            "status",
            "Task is in_progress",
            "a task that is pending",
            json!("in_progress"),
        ),
        (
            "status",
            "Task is in_progress",
            "a task that is pending or failed",
            json!("in_progress"),
        ),
        (
            "updates/user_id",
            "An attempt of the flow is under way",
            "a flow without attempts under way: wait until they have ended, or cancel them",
            json!(STORED),
        ),
        (
            "updates/parent_id",
            "An active run covers the task, which may not get another parent",
            "the present parent",
            json!(A),
        ),
        ("schemas", method, "no `schemas`", json!("echo")),
        ("schemas", method, "`schemas` with a method", json!(null)),
        (
            "updates/dependencies/1/id",
            "An active run covers the task, but not this dependency",
            "a task that the run covers, or a completed one",
            json!(B),
        ),
    ];
    let names = CallNames::of_update(task);
    let refusal = Refusal::AlreadyExecuting(faults);
    lists(&names, refusal, ErrorKind::AlreadyExecuting, &told);
}

#[test]
fn what_the_status_forbids() {
    let none = CallNames::default();
    let task = id(STORED);
    let faults = vec![
        TransitionFault::StatusGiven {
            task,
            status: Pending,
        },
        TransitionFault::NotChangeable {
            task,
            status: Failed,
            changeable: Changeable::Pending,
        },
        TransitionFault::NotFailed {
            task,
            status: Completed,
        },
        TransitionFault::Ended {
            task,
            status: Failed,
        },
        TransitionFault::NothingToExecute { task },
    ];
    let told = [
        (
            "status",
            "Task is pending",
            "no `status`: updates do not change it",
            json!("pending"),
        ),
        (
            "status",
            "Task is failed",
            "a task that is pending",
            json!("failed"),
        ),
        (
            "status",
            "Task is completed",
            "a failed task; a task that completed or was cancelled does not run again: copy it with `tasks.copy`",
            json!("completed"),
        ),
        (
            "status",
            "Task is failed",
            "a task that is pending or in_progress",
            json!("failed"),
        ),
        (
            "task_id",
            "Nothing to execute",
            "a task with something pending in it, or failed and not tolerated; `include: \"failed\"` runs tolerated failures again, and `tasks.copy` makes a new task of one that has ended",
            json!(STORED),
        ),
    ];
    let refusal = Refusal::InvalidTransition(faults);
    lists(&none, refusal, ErrorKind::InvalidTransition, &told);
}

#[test]
fn tasks_that_cannot_be_deleted() {
    let none = CallNames::default();
    let task = id(STORED);
    let refusal = Refusal::DeleteNotPending {
        task,
        status: InProgress,
    };
    let told = [(
        "status",
        "Task is in_progress",
        "a task that is pending",
        json!("in_progress"),
    )];
    lists(&none, refusal, ErrorKind::NotDeletable, &told);

    let refusal = Refusal::DeleteHindered {
        task,
        children: vec![id(A), id(B)],
        dependents: vec![id(A)],
        not_pending: vec![id(B)],
    };
    let told = [
        (
            "task_id",
            "Task has children",
            "a task without children, or `cascade: true`",
            json!(STORED),
        ),
        (
            "task_id",
            "Other tasks depend on the task",
            "a task that nothing depends on",
            json!(STORED),
        ),
        (
            "task_id",
            "Not all tasks below it are pending",
            "a subtree of pending tasks",
            json!(STORED),
        ),
    ];
    let more = json!({"children": [A, B], "dependents": [A], "not_pending": [B]});
    reads(&none, refusal, ErrorKind::NotDeletable, &told, more);
}

#[test]
fn flows_that_cannot_be_archived() {
    for (fault, reason, expected, actual) in [
        (
            ArchiveFault::Already { version: 7 },
            "Flow was archived already",
            "a flow in the log",
            json!(7),
        ),
        (
            ArchiveFault::Changed {
                version: 7,
                copied: 5,
            },
            "Flow has changed since it was copied",
            "version 5, which was copied",
            json!(7),
        ),
        (
            ArchiveFault::Running,
            "Flow is running",
            "a flow at rest",
            json!(null),
        ),
        (
            ArchiveFault::NotEnded { status: Pending },
            "Not all tasks have ended",
            "a flow whose tasks have all ended",
            json!("pending"),
        ),
    ] {
        let refusal = Refusal::NotArchivable(fault);
        let told = [("flow", reason, expected, actual)];
        let kind = ErrorKind::InvalidTransition;
        lists(&CallNames::default(), refusal, kind, &told);
    }
}
