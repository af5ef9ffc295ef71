//! The executors that every server has.

use super::command::{self, CommandExecutor};
use super::{
    A2aExecutor, AggregateResultsExecutor, ApprovalExecutor, EchoExecutor, Executor, HttpExecutor,
    RegistryBuilder, RegistryError, SleepExecutor, SystemInfoExecutor,
};
use crate::application::api::COMMAND_EXECUTOR;
use crate::egress::Egress;
use std::path::PathBuf;
use std::sync::Arc;

/// Built-in executors that start programs of the server's machine, whether or not this server has them: its tasks may
/// run on another one, or after a start with other settings.
pub const START_PROGRAMS: [&str; 1] = [COMMAND_EXECUTOR];

/// The configuration of the built-in executors.
#[derive(Debug, Clone, Default)]
pub struct BuiltInOptions {
    /// `system_info_executor` tells of the file system that holds this path; the working
    /// directory without it.
    pub disk_path: Option<PathBuf>,
    /// `command_executor` exists only with this.
    pub command: Option<command::Options>,
    /// `http_executor` and `a2a_executor` exist only with the client of outgoing requests.
    pub egress: Option<Arc<Egress>>,
}

/// Why the built-in executors cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum BuiltInError {
    /// The configuration of `command_executor` cannot work.
    #[error("`command_executor` (--allow-command) cannot be set up")]
    Command(#[from] command::OptionsError),
    /// A name is taken.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// Registers the built-in executors next to what `builder` has.
///
/// # Errors
/// `command_executor` is configured with a program or a directory that does not exist, or one of
/// the names is taken.
pub fn with_built_ins(
    builder: RegistryBuilder,
    options: BuiltInOptions,
) -> Result<RegistryBuilder, BuiltInError> {
    let system_info = options
        .disk_path
        .map_or_else(SystemInfoExecutor::default, SystemInfoExecutor::new);
    let mut executors: Vec<Arc<dyn Executor>> = vec![
        Arc::new(AggregateResultsExecutor),
        Arc::new(ApprovalExecutor),
        Arc::new(EchoExecutor),
        Arc::new(SleepExecutor),
        Arc::new(system_info),
    ];
    if let Some(command) = options.command {
        executors.push(Arc::new(CommandExecutor::new(command)?));
    }
    if let Some(egress) = options.egress {
        executors.push(Arc::new(A2aExecutor::new(egress.clone())));
        executors.push(Arc::new(HttpExecutor::new(egress)));
    }
    let registered = executors
        .into_iter()
        .try_fold(builder, RegistryBuilder::register)?;
    Ok(registered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::executor::{Registered, Registry};

    fn registry(command: Option<command::Options>) -> Result<Registry, BuiltInError> {
        let options = BuiltInOptions {
            disk_path: None,
            command,
            egress: None,
        };
        Ok(with_built_ins(Registry::builder(), options)?.build()?)
    }

    #[test]
    fn command_executor_is_off_unless_the_configuration_allows_it() {
        let off = registry(None).unwrap();
        let names: Vec<_> = off.iter().map(Registered::name).collect();
        assert_eq!(
            names,
            [
                "aggregate_results_executor",
                "approval_executor",
                "echo_executor",
                "sleep_executor",
                "system_info_executor"
            ]
        );
        let on = registry(Some(command::Options::allowing(["sh"]))).unwrap();
        let command = on.get("command_executor").unwrap();
        assert!(!command.description().idempotent);
        assert_eq!(
            command.limit(),
            std::thread::available_parallelism().unwrap().get()
        );
        assert_eq!(on.effective_limit("echo_executor"), Some(256));
    }

    #[test]
    fn all_that_start_programs_are_known_by_name_where_they_are_off() {
        let on = registry(Some(command::Options::allowing(["sh"]))).unwrap();
        let starting = on.iter().filter(|it| it.executor().starts_programs());
        let starting: Vec<_> = starting.map(Registered::name).collect();
        assert_eq!(starting, START_PROGRAMS);
    }

    #[test]
    fn a_program_that_does_not_exist_is_told_before_the_server_starts() {
        let error = registry(Some(command::Options::allowing(["no-such-program"]))).unwrap_err();
        assert!(matches!(error, BuiltInError::Command(_)), "{error}");
    }
}
