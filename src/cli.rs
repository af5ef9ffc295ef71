//! The command line: reads arguments, talks to a server or to an embedded engine, shows answers.
//!
//! One file per command that works on a log or an engine of its own; the commands that only talk to a server are
//! `crates/cli`. Answers go to standard output, everything else to standard error.
//! Exit codes: 0 done, 1 failed, 2 usage or refused, 3 cancelled, 4 no connection.

mod backup;
mod certificates;
mod definition;
mod doctor;
mod events;
mod file_limit;
mod local_api;
mod man;
mod migrate;
mod open_files;
mod progress;
mod projections;
mod reseal;
mod retention;
mod run;
mod serve;
mod storage;
mod tokens;
mod version;

pub use definition::answer_shell;
pub use local_api::LocalApi;
pub use taskledger_cli::{Api, ApiError, CliError, HttpApi, URL_DEFAULT};

use crate::engine::executor::{Registry, RegistryBuilder};
use clap::{Args, Parser, Subcommand};
use std::pin::Pin;
use std::process::ExitCode;
use taskledger_cli::output::Shown;
use taskledger_cli::{
    Access, Remote, a2a, broker, completions, context, drain, health, respond, schedules, secrets,
    tasks, watch, webhooks, worker, workers, workflows,
};

/// Runs trees of tasks, durably
#[derive(Debug, Parser)]
#[command(
    name = "taskledger",
    version = version::short(),
    long_version = version::long(),
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(after_help = "\
Examples:
  taskledger serve --data-dir ./data
  taskledger run workflow.json
  taskledger tasks list --status failed
  taskledger tasks tree 0f8fad5b-d9cb-469f-a165-70867728950e

Exit codes: 0 done, 1 failed, 2 usage or refused, 3 cancelled, 4 no connection")]
pub struct Cli {
    #[command(flatten)]
    shown: Shown,
    #[command(subcommand)]
    command: Command,
}

/// What the command that was part of this program says now.
const CONFORMANCE_MOVED: &str = "the conformance suite is the program `taskledger-conformance` now; \
                                 from the source: cargo run -p taskledger-conformance -- --url URL";

/// Arguments for another program.
#[derive(Debug, Args)]
struct Elsewhere {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Args>),
    Run(Box<run::Args>),
    Tasks(tasks::Args),
    Health(health::Args),
    Executors(health::Executors),
    Doctor(Box<doctor::Args>),
    Context(context::Args),
    Events(events::Args),
    Backup(backup::Args),
    Restore(backup::RestoreArgs),
    Projections(projections::Args),
    Retention(retention::Args),
    Drain(drain::Args),
    Migrate(migrate::Args),
    #[command(hide = true)]
    Conformance(Elsewhere),
    Watch(watch::Args),
    Worker(worker::Args),
    Workers(workers::Args),
    Broker(broker::Args),
    A2a(a2a::Args),
    Workflows(workflows::Args),
    Schedules(schedules::Args),
    Respond(respond::Args),
    Webhooks(webhooks::Args<reseal::Command>),
    Secrets(secrets::Args<reseal::Command>),
    Tokens(tokens::Args),
    #[command(name = "whoami")]
    WhoAmI(tokens::WhoAmI),
    Audit(tokens::Audit),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    /// Whether answers, and errors too, are wanted as JSON.
    #[must_use]
    pub const fn wants_json(&self) -> bool {
        self.shown.json
    }

    /// Does what was asked.
    ///
    /// # Errors
    /// [`CliError`], which knows its exit code.
    pub async fn run(self) -> Result<ExitCode, CliError> {
        self.run_with(Registry::builder()).await
    }

    /// As [`Self::run`], with executors of one's own next to the built-in ones: the whole program
    /// of somebody who adds executors (`examples/custom_executor.rs`).
    ///
    /// The future is behind a pointer, because what an `async fn` does is compiled in the crate that awaits it:
    /// a second server for each program, beside that of this library.
    ///
    /// # Errors
    /// [`CliError`].
    pub fn run_with(
        self,
        executors: RegistryBuilder,
    ) -> Pin<Box<dyn Future<Output = Result<ExitCode, CliError>>>> {
        Box::pin(self.dispatch(executors))
    }

    async fn dispatch(self, executors: RegistryBuilder) -> Result<ExitCode, CliError> {
        let mut out = self.shown.output();
        match self.command {
            Command::Serve(args) => serve::serve(*args, executors).await,
            Command::Run(args) => run::run(*args, executors, &mut out).await,
            Command::Tasks(args) => tasks::tasks(args, &self.shown.when(), &mut out).await,
            Command::Health(args) => health::health(args, &mut out).await,
            Command::Executors(args) => health::executors(args, &mut out).await,
            Command::Doctor(args) => doctor::doctor(*args, executors, &mut out).await,
            Command::Context(args) => context::context(args, &mut out),
            Command::Events(args) => events::events(args, &self.shown.when(), &mut out).await,
            Command::Backup(args) => backup::backup(args, &mut out).await,
            Command::Restore(args) => backup::restore(args, &mut out).await,
            Command::Projections(args) => projections::projections(args, &mut out).await,
            Command::Retention(args) => retention::retention(args, &mut out).await,
            Command::Drain(args) => drain::drain(args, &mut out).await,
            Command::Migrate(args) => migrate::migrate(args, &mut out).await,
            Command::Conformance(_) => Err(CliError::Usage(CONFORMANCE_MOVED.to_owned())),
            Command::Watch(args) => watch::watch(args, &mut out).await,
            Command::Worker(args) => worker::worker(args, &mut out).await,
            Command::Workers(args) => workers::workers(args, &mut out).await,
            Command::Broker(args) => broker::broker(args, &mut out).await,
            Command::A2a(args) => a2a::a2a(args, &mut out).await,
            Command::Workflows(args) => workflows::workflows(args, &mut out).await,
            Command::Schedules(args) => {
                schedules::schedules(args, &self.shown.when(), &mut out).await
            }
            Command::Respond(args) => respond::respond(args, &mut out).await,
            Command::Webhooks(args) => {
                webhooks::webhooks(args, &self.shown.when(), &mut out, reseal::Command::run).await
            }
            Command::Secrets(args) => secrets::secrets(args, &mut out, reseal::Command::run).await,
            Command::Tokens(args) => tokens::tokens(args, &mut out).await,
            Command::WhoAmI(args) => tokens::whoami(args, &mut out).await,
            Command::Audit(args) => tokens::audit(args, &self.shown.when(), &mut out).await,
            Command::Completions(args) => completions::completions(&args, &mut out),
            Command::Man(args) => man::man(&args, &mut out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use crate::transport::jsonrpc::Changes;
    use clap::{CommandFactory, Parser};
    use taskledger_cli::methods::{COMMANDS, READS};

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn refusals_name_commands_for_the_methods_that_have_one() {
        let methods = crate::transport::jsonrpc::methods::table();
        let known: Vec<&str> = methods.iter().map(|method| method.name).collect();
        let is_command = |words: &str| {
            let mut command = Cli::command();
            words.split(' ').all(|word| {
                let found = command.find_subcommand(word).cloned();
                found.map(|found| command = found).is_some()
            })
        };
        for (method, command) in COMMANDS {
            assert!(known.contains(method), "there is no method {method}");
            assert!(is_command(command), "there is no command {command}");
        }
        let reads = methods.iter().filter(|it| it.changes == Changes::Nothing);
        let reads = reads.map(|method| method.name);
        let of_commands = |name: &&str| COMMANDS.iter().any(|(named, _)| named == name);
        let mut reads: Vec<&str> = reads.filter(of_commands).collect();
        reads.sort_unstable();
        assert_eq!(reads, READS);
        for method in known {
            let same = method.replace('.', " ").replace('_', "-");
            let told = COMMANDS.iter().any(|(named, _)| *named == method);
            assert!(told || !is_command(&same), "{method} is a command");
        }
    }

    #[test]
    fn every_command_of_the_examples_is_accepted() {
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let lines = [
            "serve".to_owned(),
            "serve --listen 127.0.0.1:0 --data-dir d".to_owned(),
            "run f.json".to_owned(),
            "run - --url http://h:1 --json".to_owned(),
            "run a.yaml b.json --server http://h:1 --detach".to_owned(),
            "run a.yaml --context prod --color never".to_owned(),
            "tasks list --all --since 1h --until today --name fetch* --error time-out".to_owned(),
            "tasks retry 0f8fad --wait --time local".to_owned(),
            "tasks execute @last --watch --proxy http://p:3128".to_owned(),
            "health --json".to_owned(),
            "executors --server http://h:1".to_owned(),
            "doctor --data-dir d".to_owned(),
            "context add prod --server https://h --token-file f --ca-file c".to_owned(),
            "context use prod".to_owned(),
            "context list --json".to_owned(),
            "context remove prod".to_owned(),
            "--json tasks list --status failed --limit 5 --root-only".to_owned(),
            format!("tasks get {id}"),
            format!("tasks tree {id} --json"),
            format!("tasks get {id} --as-of 1042"),
            format!("tasks tree {id} --as-of 2026-01-31T12:00:00Z"),
            format!("tasks history {id}"),
            format!("tasks history {id} --flow --order desc --limit 20"),
            format!("tasks history {id} --types task_failed,task_requeued"),
            format!("tasks explain {id} --json"),
            format!("tasks children {id}"),
            format!("tasks create --name n --depends-on {id}:optional --depends-on {id}"),
            "tasks create --file -".to_owned(),
            format!("tasks update {id} --priority 1"),
            format!("tasks cancel {id} --cascade --reason r"),
            format!("tasks delete {id} --cascade"),
            format!("tasks copy {id} --children"),
            format!("tasks retry {id}"),
            format!("tasks execute {id}"),
            "tasks execute --file f".to_owned(),
            "events export --data-dir d".to_owned(),
            "events verify --data-dir d".to_owned(),
            "events export --with-keys --output f --database-url postgres://h/d".to_owned(),
            "events import f --database-url postgres://h/d".to_owned(),
            "events import - --data-dir d".to_owned(),
            "backup b --data-dir d".to_owned(),
            "backup verify b --json".to_owned(),
            "restore b --data-dir d".to_owned(),
            "events tail --task t --types task_failed,task_cancelled --from 7".to_owned(),
            "events tail --flow f --user u --last-event-id AQ-_ --url http://h:1".to_owned(),
            "workflows validate f.yaml --strict".to_owned(),
            "workflows run f.yaml --trigger {} --user u --no-start --url http://h:1".to_owned(),
            "workflows run f.yaml --trigger-file t.json".to_owned(),
            "respond".to_owned(),
            format!("respond {id} --json --url http://h:1"),
            format!("respond {id} true --text --suspension s --responded-by ann"),
            "watch".to_owned(),
            format!("watch {id} --follow --output json --types task_progress_update"),
            "watch --user u --from beginning --json".to_owned(),
            "worker --method m --concurrency 4 --progress --url http://h:1 -- sh -c x".to_owned(),
            "worker --method a --method b --worker w --lease-seconds 5 --json -- p --json"
                .to_owned(),
            "broker publish --type t --parameters {} --wait --url http://h:1".to_owned(),
            "broker publish --type t --agent a --to b --id i --priority critical --within 60"
                .to_owned(),
            "broker subscribe --agent a --type t --type u.* --result {} --count 1".to_owned(),
            "broker subscribe --window 5 --json -- jq -c .".to_owned(),
            "broker results --agent a --id i --progress --count 2 --json".to_owned(),
            "a2a card https://h --json --binding JSONRPC".to_owned(),
            "a2a send https://h hello --context c --skill s --token-file f".to_owned(),
            "a2a send h.json --data @f --task t --no-wait --header a:b".to_owned(),
            "a2a get https://h t --history 5".to_owned(),
            "a2a list https://h --status input-required --limit 5 --page-token p".to_owned(),
            "a2a watch https://h t --json".to_owned(),
            "a2a cancel https://h t".to_owned(),
            "workers list --json".to_owned(),
            "workers methods --url http://h:1".to_owned(),
            "workers drain w --off".to_owned(),
            "workers declare m --input-schema f --limit 5 --defaults {\"retry_count\":2}"
                .to_owned(),
            "workers undeclare m".to_owned(),
            "workers undeclare m --owner ann".to_owned(),
            "webhooks create https://h/hook --url http://h:1 --json".to_owned(),
            "webhooks verify --secret-file f --id i --timestamp 1 --signature v1,x".to_owned(),
            "secrets set github-token --url http://h:1".to_owned(),
            "secrets list --owner ann --json".to_owned(),
            "secrets delete github-token".to_owned(),
            "secrets reseal --data-dir d".to_owned(),
            "tokens create ci --service --scopes tasks:read,tasks:run".to_owned(),
            "tokens create ann --scopes tasks:read --expires-in 30d --json".to_owned(),
            "tokens create admin --service --scopes all --data-dir d".to_owned(),
            "tokens list ci --service --limit 5 --url http://h:1".to_owned(),
            "tokens rotate ab23cd45ef67gh2j --grace 1h".to_owned(),
            "tokens revoke ab23cd45ef67gh2j --database-url postgres://h/d".to_owned(),
            "tokens generate".to_owned(),
            "whoami --json".to_owned(),
            "audit --action login.failed --since 2026-01-31T00:00:00Z --data-dir d".to_owned(),
            "migrate --database-url postgres://h/d".to_owned(),
            "projections rebuild --data-dir d".to_owned(),
            "retention --older-than 30d --archive a --dry-run --json --data-dir d".to_owned(),
            "retention --older-than 36h --archive a --pending --database-url postgres://h/d"
                .to_owned(),
            "drain --cancel --url http://h:1".to_owned(),
            "serve --drain-timeout 0".to_owned(),
            "serve --retention-age 30d --retention-archive a --retention-pending".to_owned(),
            "completions bash".to_owned(),
            "man dir".to_owned(),
            "tasks list --client-cert c --client-key k".to_owned(),
            "context add prod --server https://h --client-cert c --client-key k".to_owned(),
            "events query --flow @last --since yesterday".to_owned(),
            "events tail --since 1h --flow @last".to_owned(),
            "events tail --label team=data --label stage".to_owned(),
            "serve --tls-cert c --tls-key k --tls-client-ca a".to_owned(),
            "tasks --url http://h:1 list".to_owned(),
            "tasks list --url http://h:1".to_owned(),
            "watch --url https://h --ca-file f --token-file f".to_owned(),
            "watch --events task_failed".to_owned(),
            "events tail --events task_failed".to_owned(),
            "events query --events task_failed".to_owned(),
            format!("tasks history {id} --events task_failed"),
            "webhooks create https://h/hook --types task_failed".to_owned(),
            "tasks --token-file f list --insecure-token --header a:b --header c:d".to_owned(),
            "run f.json --url https://h --token-file f --ca-file f --header a:b".to_owned(),
            "events tail --url https://h --token-file f --header a:b".to_owned(),
            "projections rebuild --url https://h --token-file f --ca-file f".to_owned(),
            "webhooks --request-header a:b create https://h --header c:d --token-file f".to_owned(),
            "serve --tls-cert c --tls-key k --node-ca a --node-url https://h:1".to_owned(),
        ];
        for line in lines {
            let words = std::iter::once("taskledger").chain(line.split(' '));
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn senseless_commands_are_refused() {
        for line in [
            "",
            "run",
            "tasks",
            "tasks get",
            "tasks create",
            "tasks create --name n --file f",
            "tokens create ann",
            "tokens create ann --scopes tasks:read --expires-in soon",
            "tokens list --data-dir d --database-url postgres://h/d",
            "tasks create --name n --priority 4",
            "tasks update 0f8fad5b-d9cb-469f-a165-70867728950e",
            "tasks execute",
            "tasks list --limit 0",
            "context add prod",
            "context add a/b --server http://h",
            "tasks list --proxy socks5://p",
            "tasks list --time never",
            "completions klingon",
            "man",
            "tasks list --client-cert c",
            "events tail --since 1h --from now",
            "serve --tls-client-ca a",
            "watch --follow",
            "watch --from yesterday",
            "watch --types no_such_event",
            "watch x --user u",
            "events tail --from now --last-event-id c",
            "retention",
            "retention --older-than 30d",
            "retention --older-than 59m --archive a",
            "serve --retention-age 30d",
            "serve --retention-archive a",
            "worker --method m",
            "worker --method m p",
            "worker -- p",
            "worker --method m --concurrency 0 -- p",
            "worker --method m --lease-seconds 4 -- p",
            "workers",
            "workers drain",
            "a2a send https://h",
            "a2a list https://h --status nonsense",
            "a2a card https://h --binding GRPC",
            "a2a card https://h --token t",
            "workers declare m --limit 0",
            "workers declare m --defaults 7",
            "secrets set",
            "secrets set name value",
            "tasks list --url nonsense",
            "watch --url ftp://h",
            "tasks list --token t",
            "webhooks list --token t",
            "run f.json --url 127.0.0.1:8000",
            "projections rebuild --url nonsense",
        ] {
            let words = std::iter::once("taskledger").chain(line.split_whitespace());
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
    }
}
