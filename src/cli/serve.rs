//! `taskledger serve`

use super::certificates::Renewal;
use super::storage::storage;
use super::{CliError, file_limit, open_files};
use crate::application::Context;
use crate::clock::{SharedClock, SystemClock};
use crate::config::ServerConfig;
use crate::engine::executor::{ConformanceExecutor, RegistryBuilder};
use crate::private;
use crate::retention::Schedule;
use crate::server::{self, Drain, Server, Storage};
use crate::transport::http::{self, Inside, Shows};
use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use taskledger_a2a::signing::CardKey;
use taskledger_auth::AdminTokens;
use taskledger_cli::signals::Signals;
use tokio_util::sync::CancellationToken;

/// What calls that are under way get to end here, before their flows are handed over: commands take
/// milliseconds.
const HANDOVER_AFTER: Duration = Duration::from_secs(1);
/// Exit code after a second signal, as after an interrupted program.
const EXIT_SECOND_SIGNAL: i32 = 130;

/// Start the server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger serve
  taskledger serve --listen 0.0.0.0:8000 --data-dir /var/lib/taskledger
  taskledger serve --database-url postgres://taskledger@db.example/taskledger
  taskledger serve --tls-cert cert.pem --tls-key key.pem
  taskledger serve --allow-command make --allow-command git --executor-limit command_executor=4

Every option can also be set by the variable shown with it. Ctrl-C and SIGTERM stop the server: no new attempts
start, attempts in progress may finish within --drain-timeout, and a second signal stops at once. With
--tls-cert, SIGHUP reloads the certificate and the key.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ServerConfig,
}

/// Runs the server until it is told to stop.
pub(super) async fn serve(args: Args, executors: RegistryBuilder) -> Result<ExitCode, CliError> {
    crate::telemetry::init(&args.config.log)
        .map_err(|error| CliError::Usage(format!("--log-level: {error}")))?;
    file_limit::make_it_an_error()?;
    start_server(args.config, executors).await
}

/// Whether there is an executor of this name, or a method that workers have declared; else those that there are.
fn carried_out(server: &Server, method: &str) -> Result<(), String> {
    let context = Context::anonymous(Arc::from("start"));
    let known = server.service().executors(&context);
    let known: Vec<_> = known.unwrap_or_default();
    let is_it = |name: &String| name == method;
    if known
        .iter()
        .any(|it| is_it(&it.name) || it.aliases.iter().any(is_it))
    {
        return Ok(());
    }
    let names: Vec<_> = known.iter().map(|it| format!("`{}`", it.name)).collect();
    Err(names.join(", "))
}

/// Opens the storage, then the door, and runs until Ctrl-C, SIGTERM, or another server takes over.
async fn start_server(
    mut config: ServerConfig,
    executors: RegistryBuilder,
) -> Result<ExitCode, CliError> {
    // Before anything else, so that a signal that arrives while the server starts is not a death.
    let signals = Signals::listen().map_err(|e| CliError::failed(&e))?;
    let clock: SharedClock = Arc::new(SystemClock::default());
    let renewal = Renewal::begin(&config.tls, &clock)?;
    // Told before anything is opened.
    let issuers = config.oidc.issuers();
    let issuers = issuers.map_err(|error| CliError::Usage(error.to_string()))?;
    // A name that means nothing is told when the door opens.
    let own = [
        Some(&config.listen),
        config.admin_listen.as_ref(),
        config.broker.listen.as_ref(),
        config.broker.metrics_listen.as_ref(),
    ];
    let own = own
        .into_iter()
        .flatten()
        .filter_map(|listen| listen.to_socket_addrs().ok());
    config.engine.egress.own = own.flatten().collect();
    let egress = server::egress(&config.engine)
        .map_err(|error| CliError::Usage(CliError::failed(&error).to_string()))?;
    let mut webhooks = server::webhooks(&config.engine, &egress);
    webhooks.worker.grace = config.shutdown_grace;
    let executors = match config.a2a.conformance {
        true => executors
            .register(Arc::new(ConformanceExecutor))
            .map_err(|e| CliError::failed(&e))?,
        false => executors,
    };
    server::stop_left_programs(&config.engine).await;
    let registry = server::executors(executors, &config.engine, egress.clone())
        .map_err(|e| CliError::failed(&e))?;
    let mut storage = storage(&config.engine.storage)?;
    if let Storage::Database(database) = &mut storage {
        let shown = renewal.as_ref().map(Renewal::certificates);
        database.among_nodes(config.node_ca.clone(), shown);
    }
    let place = storage.to_string();
    if matches!(storage, Storage::Database(_)) && config.hides_from_nodes() {
        return Err(CliError::Usage(format!(
            "--node-url: other nodes cannot reach this one at `{}`; expected the URL where they can, \
             for example http://10.0.0.1:8000",
            config.listen
        )));
    }
    let policy = config.retention.policy();
    if let Some(policy) = &policy {
        // Told now, and not by the first pass.
        private::make_folder(&policy.archive).map_err(|error| {
            CliError::Usage(format!(
                "--retention-archive: `{}` cannot be used: {error}; expected a folder, or a path where \
                 one can be made",
                policy.archive.display()
            ))
        })?;
        private::warn_of_readable(&policy.archive);
    }
    let card_keys = card_keys(&config.a2a.signing_keys)?;
    let admins = config.auth.admin_token_file.as_deref();
    let admins = admins.map(AdminTokens::of_file).transpose();
    let admins = admins.map_err(|e| CliError::Usage(format!("--admin-token-file: {e}")))?;
    let admins = admins.unwrap_or_default();
    let options = server::Options {
        webhooks,
        sharing: server::sharing(&config.engine),
        limits: server::limits(&config.limits),
        admins,
        issuers: issuers
            .iter()
            .map(|issuer| Arc::from(issuer.url()))
            .collect(),
        certificates: renewal.as_ref().map(Renewal::certificates),
    };
    let server = Server::open_with(storage, registry, clock.clone(), options)
        .await
        .map_err(|e| CliError::failed(&e))?;
    if let Some(method) = config.a2a.text_method.as_deref()
        && let Err(known) = carried_out(&server, method)
    {
        server.close().await;
        return Err(CliError::Usage(format!(
            "--a2a-text-method: `{method}` is not an executor of this server; expected one of {known}, or a \
             method that workers have declared"
        )));
    }
    let deny_list = server.tokens().denied().clone();
    let discovery_urls = issuers.iter().map(|it| Arc::from(it.discovery_url()));
    let discovery_urls = discovery_urls.collect();
    let issuers = (!issuers.is_empty()).then(|| server::oidc_issuers(issuers, &egress, deny_list));
    let is_reachable = config.is_reachable();
    let authenticate = server.authentication(config.auth.mode, is_reachable, issuers);
    let authenticate = match authenticate.await {
        Ok(authenticate) => authenticate,
        Err(error) => {
            server.close().await;
            return Err(CliError::failed(&error));
        }
    };
    let is_authenticated = authenticate.is_some();
    let service = server.service().clone();
    let inside = Inside {
        authenticate,
        ..Inside::from(service.clone())
    };
    let dispatcher = server.dispatcher().clone();
    let mut options = open_files::fitted(config.http(renewal.as_ref().map(Renewal::certificates)));
    options.a2a = config.a2a.options(card_keys, discovery_urls);
    let shutdown = server.stopped().child_token();
    let bound = async {
        let bound = http::Service::bind(options, dispatcher, inside, clock.clone()).await?;
        let listens = [
            (config.admin(), Shows::Server),
            (config.broker_metrics(), Shows::Broker),
        ];
        let mut monitored = Vec::new();
        for (options, shows) in listens {
            if let Some(options) = options {
                let served = bound.1.broker_addr.unwrap_or(bound.1.local_addr);
                let of = (served, clock.clone());
                let listener =
                    http::Admin::bind((options, shows), service.clone(), of, shutdown.clone());
                monitored.push((shows, listener.await?));
            }
        }
        Ok::<_, http::BindError>((bound, monitored))
    };
    let ((service, handle), monitored) = match bound.await {
        Ok(bound) => bound,
        Err(error) => {
            server.close().await;
            return Err(CliError::failed(&error));
        }
    };
    server.join(&config.node_url(&handle.url));
    if let Some(policy) = policy {
        server.retain(policy, Schedule::default());
    }
    let drain = (server.drain(), config.drain_timeout);
    let signals = tokio::spawn(stop_on_signal(signals, drain, shutdown.clone()));
    let leaving = tokio::spawn(leave_after(shutdown.clone(), server.leaving().clone()));
    let renewing = renewal.map(|renewal| tokio::spawn(renewal.keep_fresh()));
    let admin_stop = CancellationToken::new();
    let monitored = monitored.into_iter().map(|(shows, listener)| {
        let address = listener.local_addr();
        match shows {
            Shows::Server => tracing::info!(%address, "metrics and probes are served"),
            Shows::Broker => {
                tracing::info!(%address, "metrics and probes of the broker are served")
            }
        }
        tokio::spawn(listener.run(admin_stop.clone()))
    });
    let monitored: Vec<_> = monitored.collect();
    if let Some(address) = handle.broker_addr {
        tracing::info!(%address, "agents of the broker are served");
    }
    tracing::info!(
        address = %handle.local_addr,
        url = handle.url,
        data = place,
        authentication = is_authenticated,
        "listening"
    );
    service.run(shutdown).await;
    admin_stop.cancel();
    for listener in monitored {
        // It fails only by a panic, which is in the log.
        let _ = listener.await;
    }
    let taken_over = server.stopped().is_cancelled();
    server.close().await;
    signals.abort();
    leaving.abort();
    if let Some(renewing) = renewing {
        renewing.abort();
    }
    tracing::info!("stopped");
    Ok(if taken_over {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Hands the flows over soon after the door was shut: others cannot pass calls on to a node that does
/// not listen, so they must not wait for the slowest answer here.
async fn leave_after(shutdown: CancellationToken, leaving: CancellationToken) {
    shutdown.cancelled().await;
    tokio::time::sleep(HANDOVER_AFTER).await;
    leaving.cancel();
}

/// The first signal: begin nothing any more, give attempts that are under way the time to end, then stop. A
/// second one ends the process at once, which loses nothing that was answered.
async fn stop_on_signal(
    mut signals: Signals,
    (drain, patience): (Drain, Duration),
    shutdown: CancellationToken,
) {
    signals.next().await;
    drain.begin();
    let running = drain.running();
    tracing::info!(running, "draining: no new attempts start");
    tokio::select! {
        biased;
        () = signals.next() => std::process::exit(EXIT_SECOND_SIGNAL),
        ended = tokio::time::timeout(patience, drain.ended()) => {
            if ended.is_err() && !patience.is_zero() {
                let running = drain.running();
                tracing::warn!(running, "attempts did not end within --drain-timeout and are interrupted");
            }
        }
    }
    tracing::info!("stopping");
    shutdown.cancel();
    signals.next().await;
    std::process::exit(EXIT_SECOND_SIGNAL);
}

/// Bytes of a file with a key that signs cards.
const CARD_KEY_BYTES_MAX: u64 = 4096;

/// The keys that sign the card.
fn card_keys(files: &[PathBuf]) -> Result<Vec<CardKey>, CliError> {
    let read = |path: &PathBuf| {
        let fail = |reason: String| {
            CliError::Usage(format!("--a2a-signing-key: `{}`: {reason}", path.display()))
        };
        let bytes = crate::secret_file::read(path, CARD_KEY_BYTES_MAX)
            .map_err(|error| CliError::Usage(format!("--a2a-signing-key: {error}")))?;
        let pem = String::from_utf8_lossy(&bytes);
        CardKey::from_pem(&pem).map_err(|error| fail(error.to_string()))
    };
    files.iter().map(read).collect()
}
