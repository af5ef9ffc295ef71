//! Events without their optional members.

use super::*;

/// The kinds that have optional members, without them.
pub(super) fn min() -> Vec<Event> {
    let task_id = id(A);
    vec![
        Event::TaskCreated(TaskCreated {
            task_id,
            ordinal: 0,
            parent_id: None,
            name: "a".to_owned(),
            user_id: None,
            priority: Priority::NORMAL,
            dependencies: Vec::new(),
            specification: least(),
            copied_from: None,
            run_id: None,
        }),
        Event::UserChanged(UserChanged {
            task_id,
            user_id: None,
        }),
        Event::DependenciesChanged(DependenciesChanged {
            task_id,
            dependencies: Vec::new(),
        }),
        Event::TaskRespecified(TaskRespecified {
            task_id,
            specification: least(),
            absent: Vec::new(),
        }),
        Event::TaskStarted(TaskStarted {
            task_id,
            attempt: 1,
            run_id: run("run"),
            lease: None,
        }),
        Event::TaskClaimRejected(TaskClaimRejected {
            task_id,
            worker: "worker-1".to_owned(),
            unresolvable_refs: Vec::new(),
            breach: None,
        }),
        Event::TaskCompletionRejected(TaskCompletionRejected {
            task_id,
            attempt: 1,
            fault: OutputFault {
                missing: vec!["expenses".to_owned()],
                mismatches: Vec::new(),
                too_large: None,
            },
            phase_name: None,
        }),
        Event::TaskSuspended(TaskSuspended {
            task_id,
            attempt: 1,
            suspension_id: SuspensionId(id("question").0),
            question: payload(r#"{"question":"Which one?"}"#),
            on_answer: OnAnswer::Continue,
            expires_at: None,
            remind_every_ms: None,
            reminders: 0,
            ladder: Vec::new(),
            on_expiry: OnExpiry::Fail,
        }),
        Event::TaskReminded(TaskReminded {
            task_id,
            attempt: 1,
            suspension_id: SuspensionId(id("question").0),
            number: 1,
            of: 1,
            escalation: None,
        }),
        Event::TaskAnswered(TaskAnswered {
            task_id,
            attempt: 1,
            suspension_id: SuspensionId(id("question").0),
            answer: payload(r#"{"value":1}"#),
            responded_by: "anonymous".to_owned(),
            on_behalf_of: None,
        }),
        Event::TaskSuspensionExpired(TaskSuspensionExpired {
            task_id,
            attempt: 1,
            suspension_id: SuspensionId(id("question").0),
            policy: OnExpiry::Fail,
        }),
        Event::TaskProgressed(TaskProgressed {
            task_id,
            attempt: 1,
            progress: Progress::ZERO,
            message: None,
            remarks: None,
        }),
        Event::TaskCompleted(TaskCompleted {
            task_id,
            attempt: 1,
            result: Payload::empty(),
            remarks: None,
        }),
        Event::TaskFailed(TaskFailed {
            task_id,
            attempt: 1,
            error: "boom".to_owned(),
            reason: FailureReason::Group,
            progress: Progress::ZERO,
            will_retry: false,
            remarks: None,
            breach: None,
            remarks: None,
        }),
        Event::TaskRequeued(TaskRequeued {
            task_id,
            run_id: run("run"),
            reason: RequeueReason::Rerun,
            next_attempt_at: None,
        }),
        Event::RunStarted(RunStarted {
            run_id: run("run"),
            task_id,
            kind: RunKind::Execute,
            covers: vec![(0, 0)],
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            callback: None,
        }),
        Event::RunEnded(RunEnded {
            run_id: run("run"),
            task_id,
            state: RunState::Completed,
            counts: StatusCounts::default(),
            root: None,
            others: 0,
        }),
        Event::TaskCancelled(TaskCancelled {
            task_id,
            attempt: None,
            error: "cancelled on request".to_owned(),
            reason: CancelReason::Deadline,
            progress: Progress::ZERO,
            remarks: None,
        }),
        Event::FlowArchived(FlowArchived {
            file: "f".to_owned(),
            sha256: "s".to_owned(),
            events: 1,
            runs: Vec::new(),
            owner: None,
        }),
    ]
}
