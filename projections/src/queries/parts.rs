//! The parts of a list, on SQLite, of tasks that a user owns or is the user of.
//!
//! A task whose user is its owner has one entry in an index for both. Every other task has one for its user and one for
//! its owner, each in an index of its own. So a list of what somebody owns has two parts, and so has one of what
//! somebody is the user of; each is in the order of creation, and their keys are merged.

/// The tasks of a list that are in one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Their user is their owner.
    Both,
    /// The same, of roots alone: all that somebody owns or is the user of.
    Root,
    /// Their user is not their owner.
    User,
    /// Their owner is not their user.
    Owner,
}

impl Part {
    /// The table by the index, which SQLite, that has no statistics, might not choose. So the cost of a list of what
    /// somebody owns does not depend on others' tasks.
    pub(super) const fn table(self, has_status: bool) -> &'static str {
        match (self, has_status) {
            (Self::Both, false) => "tasks INDEXED BY tasks_both",
            (Self::Both, true) => "tasks INDEXED BY tasks_both_status",
            (Self::Root, _) => "tasks INDEXED BY tasks_owner_root",
            (Self::User, false) => "tasks INDEXED BY tasks_user",
            (Self::User, true) => "tasks INDEXED BY tasks_user_status",
            (Self::Owner, false) => "tasks INDEXED BY tasks_owner",
            (Self::Owner, true) => "tasks INDEXED BY tasks_owner_status",
        }
    }

    /// The condition that a column has the value of parameter `n`, as the index has it.
    pub(super) fn condition(self, column: &str, n: usize) -> String {
        match (self, column) {
            (Self::Both, "owner" | "user_id") => {
                format!(" AND owner = ${n} AND owner = user_id")
            }
            (Self::Root, "owner" | "user_id") => format!(" AND owner = ${n}"),
            (Self::User, "user_id") => format!(" AND user_id = ${n} AND user_id IS NOT owner"),
            (Self::Owner, "owner") => format!(" AND owner = ${n} AND owner IS NOT user_id"),
            (Self::Both | Self::User | Self::Owner, "status") => format!(" AND status = ${n}"),
            // Not by an index of its own.
            (Self::Both | Self::Root | Self::User | Self::Owner, column) => {
                format!(" AND +{column} = ${n}")
            }
        }
    }
}
