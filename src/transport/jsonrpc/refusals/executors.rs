//! Texts for methods that no executor has.

use super::Wording;
use crate::application::api::{COMMAND_EXECUTOR, KnownExecutors};
use crate::transport::jsonrpc::error::{ErrorKind, RpcError};
use serde_json::Value;
use taskledger_domain::Violation;
use taskledger_domain::flow::{CallTask, UnknownExecutor};
use taskledger_domain::task::call::UnknownMethod;

/// What helps where a task is to start a program and the server starts none.
pub(super) const COMMANDS_OFF: &str = "command_executor is off; --allow-command PROGRAM turns it on, given to `taskledger serve` or to a `taskledger run` without a server";
/// What helps where nobody does the tasks of a method.
const REMOTE: &str = "on a server, a task with `schemas.type: \"remote\"` waits for a worker of its method, such as \
                      `taskledger worker --method NAME -- PROGRAM` starts";

/// What would be accepted in place of unknown methods. The executors are listed once in an answer.
struct Expected<'e> {
    known: &'e KnownExecutors,
    is_listed: bool,
}

impl<'e> Expected<'e> {
    const fn of(known: &'e KnownExecutors) -> Self {
        Self {
            known,
            is_listed: false,
        }
    }

    fn in_place_of(&mut self, method: &str) -> String {
        if let Some(near) = self.known.meant_by(method) {
            return format!("the name of an executor; did you mean `{near}`?");
        }
        let KnownExecutors { names, more, .. } = self.known;
        if names.is_empty() {
            return "the name of an executor (`system.executors` lists them)".to_owned();
        }
        if std::mem::replace(&mut self.is_listed, true) {
            return "the name of an executor".to_owned();
        }
        let named: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let named = named.join(", ");
        match more {
            0 => format!("the name of an executor: {named}"),
            more => format!(
                "the name of an executor: {named}, and {more} more (`system.executors` lists them)"
            ),
        }
    }
}

impl Wording<'_> {
    /// Nothing is wrong but the executors.
    pub(super) fn unknown_executors(
        &self,
        unknown: &[UnknownExecutor],
        known: &KnownExecutors,
    ) -> RpcError {
        let mut expected = Expected::of(known);
        let faults = unknown.iter().map(|fault| {
            let path = self.path(
                CallTask::Id(fault.task),
                ["schemas".into(), "method".into()],
            );
            let task = self.names.word(fault.task);
            let reason = format!("Executor of task `{task}` not found");
            let expected = expected.in_place_of(&fault.method);
            Violation::new(&path, reason, expected, &Value::from(&*fault.method))
        });
        let error = RpcError::new(ErrorKind::ExecutorNotFound, faults.collect());
        let is_off = |fault: &UnknownExecutor| fault.method == COMMAND_EXECUTOR;
        let is_strange =
            |fault: &UnknownExecutor| !is_off(fault) && known.meant_by(&fault.method).is_none();
        let mut hints = Vec::new();
        if unknown.iter().any(is_off) {
            hints.push(COMMANDS_OFF);
        }
        if unknown.iter().any(is_strange) {
            hints.push(REMOTE);
        }
        if hints.is_empty() {
            error
        } else {
            error.with("hint", hints.join("; "))
        }
    }
}

/// Unknown methods of a call that is refused for another reason.
pub(super) fn beside(unknown: &[UnknownMethod], known: &KnownExecutors) -> Vec<Violation> {
    let mut expected = Expected::of(known);
    let fault = |UnknownMethod { path, method }: &UnknownMethod| {
        let expected = expected.in_place_of(method);
        Violation::new(
            path,
            "Executor not found",
            expected,
            &Value::from(method.as_str()),
        )
    };
    unknown.iter().map(fault).collect()
}
