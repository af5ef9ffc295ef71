//! Whether a caller may do something. Stands before every use case: commands, reads, streams, webhooks
//! and what the server says of itself.
//!
//! Allows everything until callers are authenticated. The list of use cases is closed, so that a matrix of
//! who may do what can be made from it and checked for gaps.

use super::context::Context;
use super::error::Error;

macro_rules! use_cases {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Something that a caller can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum UseCase {
            $($(#[$doc])* $variant),+
        }

        impl UseCase {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name, which never changes: it is part of stored idempotency keys.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

use_cases! {
    /// Create tasks.
    CreateTasks = "tasks.create",
    /// Run new or stored tasks.
    ExecuteTasks = "tasks.execute",
    /// Run a failed task again.
    RetryTask = "tasks.retry",
    /// Change a task.
    UpdateTask = "tasks.update",
    /// Delete tasks.
    DeleteTasks = "tasks.delete",
    /// Cancel tasks.
    CancelTasks = "tasks.cancel",
    /// Copy tasks.
    CopyTasks = "tasks.copy",
    /// Read a task.
    GetTask = "tasks.get",
    /// Read tasks that match a filter.
    ListTasks = "tasks.list",
    /// Read a task with everything below it.
    GetTree = "tasks.tree",
    /// Read the children of a task.
    GetChildren = "tasks.children",
    /// Read the events of a task or a flow.
    ReadHistory = "tasks.history",
    /// Read why a task stands as it does.
    ExplainTask = "tasks.explain",
    /// Follow a task until nothing runs.
    SubscribeTask = "tasks.subscribe",
    /// Follow events by filter.
    WatchEvents = "events.watch",
    /// Follow a run to its end.
    WatchRun = "runs.watch",
    /// Create a webhook.
    CreateWebhook = "webhooks.create",
    /// Read a webhook.
    GetWebhook = "webhooks.get",
    /// Read webhooks.
    ListWebhooks = "webhooks.list",
    /// Change a webhook.
    UpdateWebhook = "webhooks.update",
    /// Delete a webhook.
    DeleteWebhook = "webhooks.delete",
    /// Enable a webhook.
    EnableWebhook = "webhooks.enable",
    /// Disable a webhook.
    DisableWebhook = "webhooks.disable",
    /// Give a webhook a new secret.
    RotateWebhookSecret = "webhooks.rotate_secret",
    /// Read the secrets of a webhook.
    ReadWebhookSecret = "webhooks.secret",
    /// Send a test to a webhook.
    TestWebhook = "webhooks.test",
    /// Read what was sent to webhooks.
    ListDeliveries = "webhooks.deliveries",
    /// Send something again.
    Redeliver = "webhooks.redeliver",
    /// Take up deliveries that were given up.
    RecoverDeliveries = "webhooks.recover",
    /// Read how the server is.
    ReadHealth = "system.health",
    /// Read whether the server can take calls.
    CheckReadiness = "system.readiness",
    /// Read the figures for monitoring.
    ReadMetrics = "system.metrics",
    /// Read which executors there are.
    ListExecutors = "system.executors",
    /// Make the read models anew.
    RebuildReadModels = "system.rebuild",
}

/// Refuses what the caller may not do. Cost: O(1).
///
/// # Errors
/// None yet: nobody is authenticated, and everything is allowed.
pub const fn authorize(_context: &Context, _use_case: UseCase) -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::UseCase;
    use std::collections::HashSet;

    #[test]
    fn every_use_case_has_a_name_of_its_own() {
        let names: HashSet<_> = UseCase::ALL.iter().map(|case| case.as_str()).collect();
        assert_eq!(names.len(), UseCase::ALL.len());
    }
}
