//! `taskledger run`: starts a workflow and follows it to its end.

pub(super) mod follow;
pub(super) mod screen;

use super::input::{Params, read_workflow};
use super::output::{Output, member};
use super::timing::Timing;
use super::{Access, Api, CliError, LocalApi, file_limit, storage};
use crate::clock::{SharedClock, SystemClock};
use crate::config::{EngineConfig, LogConfig, LogFormat};
use crate::engine::executor::RegistryBuilder;
use crate::server::{self, Server, StartError};
use crate::store::lock::LockError;
use follow::{End, Follow, Pace};
use futures_util::future::BoxFuture;
use screen::Screen;
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Run a workflow and show it as it completes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
FILE holds a `tasks.execute` request, its parameters, or just the array of tasks, as JSON or YAML; `-` is
standard input. Several files run one after the other, until one does not complete. With --url or --context
the server there runs them; without, an engine inside this program does.

Examples:
  taskledger run workflow.json
  taskledger run first.yaml second.yaml --url http://127.0.0.1:8000
  taskledger run workflow.json --url http://127.0.0.1:8000 --detach
  taskledger run report.json --start-at 2026-01-31T02:00:00Z --url http://127.0.0.1:8000 --detach
  generate-tasks | taskledger run - --json

Ctrl-C asks for a cancellation once and follows on; a second one leaves.
Exit codes: 0 completed, 1 failed, 2 usage or refused, 3 cancelled, 4 no connection")]
pub(super) struct Args {
    /// The workflows, or `-`
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,

    #[command(flatten)]
    timing: Timing,

    /// Start it on a server, print its id, and do not wait
    #[arg(long)]
    detach: bool,

    /// Wait until it has ended, which is the default
    #[arg(long, conflicts_with = "detach")]
    wait: bool,

    /// The server that runs it
    #[arg(long, visible_alias = "server", value_name = "URL", env = "TASKLEDGER_URL", value_parser = super::http_api::server_url)]
    url: Option<String>,
    #[command(flatten)]
    access: Access,

    #[command(flatten)]
    engine: EngineConfig,
}

/// An engine inside this program.
struct Embedded {
    api: Box<dyn Api>,
    /// Ends the engine; what is running is recovered by whoever opens the data folder next.
    close: BoxFuture<'static, ()>,
}

/// Runs the workflow.
pub(super) async fn run(
    args: Args,
    executors: RegistryBuilder,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    // All are read before one is begun.
    let read = args.files.iter().map(|file| read_workflow(file));
    let mut workflows: Vec<Params> = read.collect::<Result<_, _>>()?;
    for workflow in &mut workflows {
        args.timing.add_to_roots(workflow)?;
    }
    let url = match &args.url {
        Some(url) => Some(url.clone()),
        None => args.access.url_of_named_context()?,
    };
    match url {
        Some(url) if args.detach => detached(&args.access.api(&url)?, workflows, out).await,
        Some(url) => all(&args.access.api(&url)?, workflows, out).await,
        None if args.detach => Err(CliError::Usage(
            "--detach: nobody would run it when this program ends; expected --url or --context as well"
                .to_owned(),
        )),
        None => {
            let log = LogConfig {
                level: "warn".to_owned(),
                format: LogFormat::Auto,
            };
            crate::telemetry::init(&log).map_err(|error| CliError::failed(&error))?;
            file_limit::make_it_an_error()?;
            let Embedded { api, close } = open_embedded(args.engine, executors).await?;
            let outcome = all(&*api, workflows, out).await;
            close.await;
            outcome
        }
    }
}

/// Runs workflows one after the other, until one does not complete.
async fn all(
    api: &dyn Api,
    workflows: Vec<Params>,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    for params in workflows {
        let end = followed(api, "tasks.execute", params, out).await?;
        if end != End::Completed {
            return Ok(ExitCode::from(end.exit_code()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts workflows and prints their ids.
async fn detached(
    api: &dyn Api,
    workflows: Vec<Params>,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    for params in workflows {
        let started = api.call("tasks.execute", Value::Object(params)).await?;
        if out.is_json() {
            out.value(&started)?;
        } else {
            out.line(member(&started, "root_task_id"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the engine on the data folder; calls go through the same dispatcher as in a server.
async fn open_embedded(
    config: EngineConfig,
    executors: RegistryBuilder,
) -> Result<Embedded, CliError> {
    let clock: SharedClock = Arc::new(SystemClock::default());
    let failed = |error: StartError| CliError::failed(&error);
    let egress = server::egress(&config).map_err(failed)?;
    let webhooks = server::webhooks(&config, &egress);
    let registry = server::executors(executors, &config, egress).map_err(failed)?;
    if config.storage.database.url.is_some() {
        return Err(CliError::Usage(
            "--database-url: without --url, `run` works on a folder; start a server on the \
             database, and give its --url"
                .to_owned(),
        ));
    }
    let folder = config.storage.data_dir.as_path();
    let options = server::Options {
        webhooks,
        sharing: server::sharing(&config),
        ..server::Options::default()
    };
    let server = Server::open_with(folder, registry, clock.clone(), options)
        .await
        .map_err(|error| {
            if let StartError::Locked(held @ LockError::Held { .. }) = &error {
                let instead = "or let the server there run it: --url http://HOST:PORT";
                return CliError::Failed(format!("{held}, {instead}"));
            }
            failed(error)
        })?;
    let api = Box::new(LocalApi::new(server.dispatcher().clone(), clock));
    Ok(Embedded {
        api,
        close: Box::pin(server.close()),
    })
}

/// Makes a call that begins a run and follows it to its end; Ctrl-C cancels it.
pub(super) async fn followed(
    api: &dyn Api,
    method: &str,
    params: Params,
    out: &mut Output,
) -> Result<End, CliError> {
    /// Interrupts that have not been looked at: the first cancels, the second leaves.
    const INTERRUPTS_WAITING_MAX: usize = 2;
    let (sender, interrupts) = mpsc::channel(INTERRUPTS_WAITING_MAX);
    let listener = tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).await.is_ok() {}
    });
    let follow = Follow {
        api,
        pace: Pace::default(),
        interrupts,
        screen: Screen::for_output(out),
        clock: storage::clock(),
    };
    let ended = follow.begin(method, params, out).await;
    listener.abort();
    ended
}
