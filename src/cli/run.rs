//! `taskledger run`: starts a workflow and follows it to its end.

mod engine;

use super::{Access, Api, CliError, LocalApi, file_limit};
use crate::clock::{SharedClock, SystemClock};
use crate::config::{LogConfig, LogFormat};
use crate::engine::executor::RegistryBuilder;
use crate::server::{self, Server, StartError};
use crate::store::lock::LockError;
use engine::{Engine, Place};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;
use taskledger_cli::following::say;
use taskledger_cli::http_api::server_url;
use taskledger_cli::input::{Params, read_workflow};
use taskledger_cli::output::Output;
use taskledger_cli::run::{all, detached};
use taskledger_cli::timing::Timing;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Run a workflow and show it as it completes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
FILE holds a `tasks.execute` request, its parameters, or just the array of tasks, as JSON or YAML; `-` is
standard input. Several files run one after the other, until one does not complete. If --url, --context,
TASKLEDGER_URL, TASKLEDGER_SERVER or the context in use names a server, it runs them. Otherwise an engine inside
this program runs them, and stores nothing unless --data-dir or TASKLEDGER_DATA_DIR names a folder, which also
wins over the context in use.

Examples:
  taskledger run workflow.json
  taskledger run first.yaml second.yaml --url http://127.0.0.1:8000
  taskledger run workflow.json --url http://127.0.0.1:8000 --detach
  taskledger run report.json --start-at 'tomorrow 02:00' --url http://127.0.0.1:8000 --detach
  generate-tasks | taskledger run - --json

Ctrl-C cancels the run and waits for its end; a second Ctrl-C stops waiting.
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
    #[arg(long, visible_alias = "server", help_heading = "Server", value_name = "URL", value_parser = server_url)]
    url: Option<String>,
    #[command(flatten)]
    access: Access,

    #[command(flatten)]
    engine: Engine,
}

/// An engine inside this program.
struct Embedded {
    api: Box<dyn Api>,
    /// Ends the engine; in a folder that is kept, what is running is recovered by whoever opens it next.
    close: BoxFuture<'static, ()>,
    /// Where its data is; behind the engine, so that a folder of its own is removed once nothing is written any more.
    place: Place,
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
    // A folder that is named for this call wins over the context in use.
    let url = match args.engine.names_folder() {
        true => args.access.url_of_this_call(args.url.as_deref())?,
        false => args.access.url(args.url.as_deref())?,
    };
    match url {
        Some(url) if args.detach => detached(&args.access.api(&url)?, workflows, out).await,
        Some(url) => {
            let api = args.access.api(&url)?;
            out.calls_with(api.options().to_owned());
            all(&api, workflows, out).await
        }
        None if args.detach => Err(CliError::Usage(
            "--detach: no server would run it after this program ends; expected --url or --context as well"
                .to_owned(),
        )),
        None => {
            let log = LogConfig {
                level: "warn".to_owned(),
                format: LogFormat::Auto,
            };
            crate::telemetry::init(&log).map_err(|error| CliError::failed(&error))?;
            file_limit::make_it_an_error()?;
            // Before there is a folder: one that is not kept would stay otherwise.
            let mut stops = Stops::listen()?;
            let Embedded { api, close, place } = open_embedded(args.engine, executors).await?;
            let outcome = match stops.interrupt.recv().now_or_never() {
                // From here on Ctrl-C asks for a cancellation.
                None => tokio::select! {
                    outcome = all(&*api, workflows, out) => outcome,
                    by = stops.for_good() => Err(stopped_by(by)),
                },
                Some(_) => Err(stopped_by("SIGINT")),
            };
            drop(api);
            close.await;
            if matches!(place, Place::Passing(_)) {
                say(
                    "nothing was kept: no server ran it; name a folder with --data-dir, or a server with --url, to keep \
                     tasks and results",
                );
            }
            drop(place);
            outcome
        }
    }
}

/// The signals that end a run inside this program.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
    /// None if the caller ignores it.
    hangup: Option<Signal>,
}

impl Stops {
    fn listen() -> Result<Self, CliError> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match is_hangup_ignored() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        })
    }

    /// Waits for one that leaves no time for a cancellation, and names it.
    async fn for_good(&mut self) -> &'static str {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = hangup => "SIGHUP",
        }
    }
}

/// Whether this program was started to ignore SIGHUP, as `nohup` does. Only Linux tells.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 1 is the lowest bit.
    ignored.is_some_and(|mask| mask & 1 == 1)
}

fn stopped_by(signal: &str) -> CliError {
    CliError::Failed(format!("stopped by {signal}"))
}

/// Opens the engine on its data folder; calls go through the same dispatcher as in a server.
async fn open_embedded(engine: Engine, executors: RegistryBuilder) -> Result<Embedded, CliError> {
    let config = &engine.config;
    let clock: SharedClock = Arc::new(SystemClock::default());
    let failed = |error: StartError| CliError::failed(&error);
    let egress = server::egress(config);
    // The options of egress cannot be met.
    let egress = egress.map_err(|error| CliError::Usage(CliError::failed(&error).to_string()))?;
    let zones = server::zones(config);
    let webhooks = server::webhooks(config, &egress);
    let registry = server::executors(executors, config, egress).map_err(failed)?;
    if config.storage.database.url.is_some() {
        return Err(CliError::Usage(
            "--database-url: without --url, `run` works on a folder; start a server on the \
             database, and give its --url"
                .to_owned(),
        ));
    }
    let place = engine.place()?;
    let folder = place.folder();
    let options = server::Options {
        webhooks,
        sharing: server::sharing(config),
        zones: zones.map_err(|error| CliError::Usage(CliError::failed(&error).to_string()))?,
        wait_bounds: config.wait_bounds(),
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
        place,
    })
}
