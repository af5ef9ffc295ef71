//! `taskledger events query` and `taskledger events tail`: what a server tells of its log.

pub mod query;
pub mod tail;

/// The types of events that are recorded, as `--types` of `events query` and `tasks history` takes them.
pub const TYPES: [&str; 27] = [
    "task_created",
    "task_renamed",
    "task_priority_changed",
    "task_user_changed",
    "task_moved",
    "task_dependencies_changed",
    "task_specification_changed",
    "task_deleted",
    "run_started",
    "task_started",
    "task_progressed",
    "task_claim_rejected",
    "task_completion_rejected",
    "task_suspended",
    "task_reminded",
    "task_answered",
    "task_suspension_expired",
    "task_completed",
    "task_failed",
    "task_requeued",
    "task_cancelled",
    "run_ended",
    "flow_archived",
    "message_received",
    "task_deferred",
    "task_labels_changed",
    "task_output_appended",
];
