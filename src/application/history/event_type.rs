//! The public names of events. Names, once released, keep their meaning.

use serde::{Deserialize, Serialize};
use taskledger_domain::flow::Event;

macro_rules! types {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// The public types of events.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum EventType {
            $(#[doc = concat!("`", $name, "`")] $variant),+
        }

        impl EventType {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The public name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The type of an event.
            #[must_use]
            pub const fn of(event: &Event) -> Self {
                match event { $(Event::$variant(_) => Self::$variant),+ }
            }
        }
    };
}

types! {
    TaskCreated = "task_created",
    TaskRenamed = "task_renamed",
    PriorityChanged = "task_priority_changed",
    UserChanged = "task_user_changed",
    TaskMoved = "task_moved",
    DependenciesChanged = "task_dependencies_changed",
    TaskRespecified = "task_specification_changed",
    TaskDeleted = "task_deleted",
    RunStarted = "run_started",
    TaskStarted = "task_started",
    TaskProgressed = "task_progressed",
    TaskClaimRejected = "task_claim_rejected",
    TaskCompletionRejected = "task_completion_rejected",
    TaskSuspended = "task_suspended",
    TaskReminded = "task_reminded",
    TaskAnswered = "task_answered",
    TaskSuspensionExpired = "task_suspension_expired",
    TaskCompleted = "task_completed",
    TaskFailed = "task_failed",
    TaskRequeued = "task_requeued",
    TaskCancelled = "task_cancelled",
    RunEnded = "run_ended",
    FlowArchived = "flow_archived",
    MessageReceived = "message_received",
    TaskDeferred = "task_deferred",
    LabelsChanged = "task_labels_changed",
    TaskOutputAppended = "task_output_appended",
}

impl EventType {
    /// The type with this public name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|t| t.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::EventType;

    #[test]
    fn every_type_is_found_by_its_public_name() {
        for kind in EventType::ALL {
            assert_eq!(EventType::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(EventType::parse("TaskCreated"), None);
    }
}
