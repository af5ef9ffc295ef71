//! Translates methods of the protocol into commands of the command line.
//!
//! Refusals of a server name methods, because they are for clients of every kind. Whoever reads them here types
//! commands.

/// Each method that a command calls, and that command.
pub const COMMANDS: &[(&str, &str)] = &[
    ("audit.list", "audit"),
    ("events.query", "events query"),
    ("schedules.create", "schedules create"),
    ("schedules.delete", "schedules delete"),
    ("schedules.get", "schedules get"),
    ("schedules.list", "schedules list"),
    ("schedules.pause", "schedules pause"),
    ("schedules.run_now", "schedules run-now"),
    ("schedules.update", "schedules update"),
    ("secrets.delete", "secrets delete"),
    ("secrets.list", "secrets list"),
    ("secrets.set", "secrets set"),
    ("system.drain", "drain"),
    ("system.executors", "executors"),
    ("system.health", "health"),
    ("system.rebuild", "projections rebuild"),
    ("system.whoami", "whoami"),
    ("tasks.cancel", "tasks cancel"),
    ("tasks.children", "tasks children"),
    ("tasks.copy", "tasks copy"),
    ("tasks.create", "tasks create"),
    ("tasks.delete", "tasks delete"),
    ("tasks.execute", "tasks execute"),
    ("tasks.explain", "tasks explain"),
    ("tasks.get", "tasks get"),
    ("tasks.history", "tasks history"),
    ("tasks.list", "tasks list"),
    ("tasks.respond", "respond"),
    ("tasks.resubscribe", "watch"),
    ("tasks.retry", "tasks retry"),
    ("tasks.subscribe", "watch"),
    ("tasks.tree", "tasks tree"),
    ("tasks.update", "tasks update"),
    ("tokens.create", "tokens create"),
    ("tokens.deny", "tokens deny"),
    ("tokens.list", "tokens list"),
    ("tokens.revoke", "tokens revoke"),
    ("tokens.rotate", "tokens rotate"),
    ("webhooks.create", "webhooks create"),
    ("webhooks.delete", "webhooks delete"),
    ("webhooks.deliveries", "webhooks deliveries"),
    ("webhooks.disable", "webhooks disable"),
    ("webhooks.enable", "webhooks enable"),
    ("webhooks.get", "webhooks get"),
    ("webhooks.list", "webhooks list"),
    ("webhooks.recover", "webhooks recover"),
    ("webhooks.redeliver", "webhooks redeliver"),
    ("webhooks.rotate_secret", "webhooks rotate-secret"),
    ("webhooks.secret", "webhooks secret"),
    ("webhooks.test", "webhooks test"),
    ("webhooks.update", "webhooks update"),
    ("workers.declare", "workers declare"),
    ("workers.drain", "workers drain"),
    ("workers.list", "workers list"),
    ("workers.methods", "workers methods"),
    ("workers.undeclare", "workers undeclare"),
    ("workflows.create", "workflows run"),
    ("workflows.delete", "workflows delete"),
    ("workflows.diff", "workflows diff"),
    ("workflows.dry_run", "workflows dry-run"),
    ("workflows.get", "workflows show"),
    ("workflows.list", "workflows list"),
    ("workflows.progress", "workflows progress"),
    ("workflows.run", "workflows run"),
    ("workflows.save", "workflows save"),
    ("workflows.schemas", "workflows schemas"),
    ("workflows.validate", "workflows validate"),
    ("workflows.versions", "workflows versions"),
];

/// Those of them that only read, and may therefore be made again.
pub const READS: &[&str] = &[
    "audit.list",
    "events.query",
    "schedules.get",
    "schedules.list",
    "secrets.list",
    "system.executors",
    "system.health",
    "system.whoami",
    "tasks.children",
    "tasks.explain",
    "tasks.get",
    "tasks.history",
    "tasks.list",
    "tasks.resubscribe",
    "tasks.subscribe",
    "tasks.tree",
    "tokens.list",
    "webhooks.deliveries",
    "webhooks.get",
    "webhooks.list",
    "webhooks.secret",
    "workers.list",
    "workers.methods",
    "workflows.diff",
    "workflows.dry_run",
    "workflows.get",
    "workflows.list",
    "workflows.progress",
    "workflows.schemas",
    "workflows.validate",
    "workflows.versions",
];

/// Whether a method changes nothing.
pub(super) fn is_read(method: &str) -> bool {
    READS.binary_search(&method).is_ok()
}

/// The same text with commands in place of the methods that stand in backticks. Cost: O(text).
pub(super) fn as_commands(text: &str) -> String {
    let mut parts = text.split('`');
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        told.push('`');
        match COMMANDS.binary_search_by_key(&part, |(method, _)| method) {
            Ok(at) => {
                told.push_str("taskledger ");
                told.push_str(COMMANDS[at].1);
            }
            Err(_) => told.push_str(part),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, READS, as_commands};

    #[test]
    fn methods_in_backticks_become_commands() {
        for (text, told) in [
            (
                "a name of `schedules.list`",
                "a name of `taskledger schedules list`",
            ),
            (
                "`workers.list` and `system.executors`, not `a.b`",
                "`taskledger workers list` and `taskledger executors`, not `a.b`",
            ),
            ("tasks.list has `tasks", "tasks.list has `tasks"),
            ("", ""),
        ] {
            assert_eq!(as_commands(text), told);
        }
    }

    #[test]
    fn the_tables_are_in_order() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(READS.is_sorted());
    }
}
