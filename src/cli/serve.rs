//! `taskledger serve`

mod fresh;

use super::certificates::Renewal;
use super::storage::storage;
use super::{CliError, file_limit, open_files};
use crate::application::{self, Context};
use crate::clock::{SharedClock, SystemClock};
use crate::config::ServerConfig;
use crate::egress::Egress;
use crate::engine::executor::{ConformanceExecutor, Registry, RegistryBuilder};
use crate::private;
use crate::retention::{Policy, Schedule};
use crate::server::{self, Drain, OlderLog, Server, StartError, StartRow, Storage};
use crate::tls::Certificates;
use crate::transport::a2a::CardTexts;
use crate::transport::http::{self, Inside, Shows};
use fresh::Fresh;
use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use taskledger_a2a::signing::CardKey;
use taskledger_auth::AdminTokens;
use taskledger_auth::jwt::Issuer;
use taskledger_cli::signals::Signals;
use taskledger_domain::limits::EXECUTOR_WAIT_MS_DEFAULT;
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
    /// Start once on a log that has lost events which other stores have read, for example on an older backup. The read
    /// models are renamed and made again, and copies are kept of the other stores. Stop all other servers first
    #[arg(long)]
    accept_older_log: bool,
    #[command(flatten)]
    config: ServerConfig,
}

/// Runs the server until it is told to stop.
pub(super) async fn serve(args: Args, executors: RegistryBuilder) -> Result<ExitCode, CliError> {
    crate::telemetry::init(&args.config.log)
        .map_err(|error| CliError::Usage(format!("--log-level: {error}")))?;
    file_limit::make_it_an_error()?;
    let config = args.config;
    let fresh = config.engine.storage.folder();
    let fresh = fresh.and_then(|folder| Fresh::of(folder));
    if fresh.is_some() {
        // Where there is a folder, that somebody uses it says more.
        let listens = listens(&config).map(|(listen, option)| Some((listen?, option)));
        let free = http::can_listen(listens.into_iter().flatten());
        free.await.map_err(|e| CliError::failed(&e))?;
    }
    let older_log = match args.accept_older_log {
        true => OlderLog::Accept,
        false => OlderLog::Refuse,
    };
    let ended = start_server(config, executors, older_log).await;
    // It has never listened.
    if ended.is_err()
        && let Some(fresh) = fresh
    {
        fresh.remove();
    }
    ended
}

/// Where a server with these settings listens, and the option that says so.
fn listens(config: &ServerConfig) -> [(Option<&str>, &'static str); 4] {
    let broker = &config.broker;
    [
        (Some(&config.listen), "--listen"),
        (config.admin_listen.as_deref(), "--admin-listen"),
        (broker.listen.as_deref(), "--broker-listen"),
        (broker.metrics_listen.as_deref(), "--broker-metrics-listen"),
    ]
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

/// Opens the storage, then the doors, and runs until Ctrl-C, SIGTERM, or another server takes over.
async fn start_server(
    mut config: ServerConfig,
    executors: RegistryBuilder,
    older_log: OlderLog,
) -> Result<ExitCode, CliError> {
    // Before anything else, so that a signal that arrives while the server starts is not a death.
    let signals = Signals::listen().map_err(|e| CliError::failed(&e))?;
    let clock: SharedClock = Arc::new(SystemClock::default());
    let renewal = Renewal::begin(&config.tls, &clock)?;
    // Told before anything is opened.
    let issuers = config.oidc.issuers();
    let issuers = issuers.map_err(|error| CliError::Usage(error.to_string()))?;
    config.engine.egress.own = own_addresses(&config);
    let egress = server::egress(&config.engine)
        .map_err(|error| CliError::Usage(CliError::failed(&error).to_string()))?;
    server::stop_left_programs(&config.engine).await;
    let registry = registry(executors, &config, egress.clone())?;
    let storage = storage_of(&config, renewal.as_ref())?;
    let place = storage.to_string();
    let policy = config.retention.policy();
    if let Some(policy) = &policy {
        make_archive(policy)?;
    }
    let card_keys = card_keys(&config.a2a.signing_keys)?;
    let card_texts = card_texts(config.a2a.card.as_deref())?;
    let options = server::Options {
        older_log,
        ..options(&config, &egress, &issuers, renewal.as_ref())?
    };
    let of_database = matches!(storage, Storage::Database(_));
    let server = Server::open_with(storage, registry, clock.clone(), options)
        .await
        .map_err(|e| not_opened(&e, of_database))?;
    let keys = (
        (card_texts, card_keys),
        renewal.as_ref().map(Renewal::certificates),
    );
    let issuers = (issuers, &egress);
    let doors = match open_doors(&server, &config, issuers, keys, &clock).await {
        Ok(doors) => doors,
        Err(error) => {
            server.close().await;
            return Err(error);
        }
    };
    server.join(&config.node_url(&doors.handle.url));
    if let Some(policy) = policy {
        server.retain(policy, Schedule::default());
    }
    let drain = (server.drain(), config.drain_timeout);
    let shutdown = doors.shutdown.clone();
    let signals = tokio::spawn(stop_on_signal(signals, drain, shutdown.clone()));
    let leaving = tokio::spawn(leave_after(shutdown, server.leaving().clone()));
    let renewing = renewal.map(|renewal| tokio::spawn(renewal.keep_fresh()));
    doors.run(&place).await;
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

/// Why the storage cannot be used; of a database, with the command that says what is missing there.
fn not_opened(error: &StartError, of_database: bool) -> CliError {
    let failed = CliError::failed(error);
    if !of_database {
        return failed;
    }
    CliError::Failed(format!(
        "{failed}; `taskledger doctor` with the same options checks the database and the rights of its user"
    ))
}

/// Where the server itself listens, which executors must not call. A name that means nothing is told when the door
/// opens.
fn own_addresses(config: &ServerConfig) -> Vec<SocketAddr> {
    let own = listens(config).into_iter();
    let addresses = own.filter_map(|(listen, _)| listen?.to_socket_addrs().ok());
    addresses.flatten().collect()
}

fn registry(
    executors: RegistryBuilder,
    config: &ServerConfig,
    egress: Arc<Egress>,
) -> Result<Registry, CliError> {
    let executors = match config.a2a.conformance {
        true => executors
            .register(Arc::new(ConformanceExecutor))
            .map_err(|e| CliError::failed(&e))?,
        false => executors,
    };
    server::executors(executors, &config.engine, egress).map_err(|e| CliError::failed(&e))
}

/// The storage, which knows how nodes are to reach each other.
fn storage_of(config: &ServerConfig, renewal: Option<&Renewal>) -> Result<Storage, CliError> {
    let mut storage = storage(&config.engine.storage)?;
    if let Storage::Database(database) = &mut storage {
        let shown = renewal.map(Renewal::certificates);
        database.among_nodes(config.node_ca.clone(), shown);
    }
    if matches!(storage, Storage::Database(_)) && config.hides_from_nodes() {
        return Err(CliError::Usage(format!(
            "--node-url: other nodes cannot reach this one at `{}`; expected the URL where they can, \
             for example http://10.0.0.1:8000",
            config.listen
        )));
    }
    Ok(storage)
}

/// Makes the folder of archives now, so that what is wrong with it is told now and not by the first pass.
fn make_archive(policy: &Policy) -> Result<(), CliError> {
    private::make_folder(&policy.archive).map_err(|error| {
        CliError::Usage(format!(
            "--retention-archive: `{}` cannot be used: {error}; expected a folder, or a path where \
             one can be made",
            policy.archive.display()
        ))
    })?;
    private::warn_of_readable(&policy.archive);
    Ok(())
}

fn options(
    config: &ServerConfig,
    egress: &Arc<Egress>,
    issuers: &[Issuer],
    renewal: Option<&Renewal>,
) -> Result<server::Options, CliError> {
    let mut webhooks = server::webhooks(&config.engine, egress);
    webhooks.worker.grace = config.shutdown_grace;
    let admins = config.auth.admin_token_file.as_deref();
    let admins = admins.map(AdminTokens::of_file).transpose();
    let admins = admins.map_err(|e| CliError::Usage(format!("--admin-token-file: {e}")))?;
    let issuers = issuers.iter().map(|issuer| Arc::from(issuer.url()));
    let zones = server::zones(&config.engine);
    Ok(server::Options {
        webhooks,
        sharing: server::sharing(&config.engine),
        wait_bounds: config.engine.wait_bounds(),
        limits: server::limits(&config.limits),
        admins: admins.unwrap_or_default(),
        issuers: issuers.collect(),
        certificates: renewal.map(Renewal::certificates),
        start_row: StartRow::WithSettings,
        zones: zones.map_err(|error| CliError::Usage(CliError::failed(&error).to_string()))?,
        older_log: OlderLog::Refuse,
    })
}

/// What the server listens on.
struct Doors {
    service: http::Service<application::Service>,
    handle: http::Handle,
    monitored: Vec<(Shows, http::Admin)>,
    is_authenticated: bool,
    /// No new calls are accepted.
    shutdown: CancellationToken,
}

/// Binds all addresses, once it is known who may call.
async fn open_doors(
    server: &Server,
    config: &ServerConfig,
    (issuers, egress): (Vec<Issuer>, &Arc<Egress>),
    (card, certificates): ((CardTexts, Vec<CardKey>), Option<Arc<Certificates>>),
    clock: &SharedClock,
) -> Result<Doors, CliError> {
    if let Some(method) = config.a2a.text_method.as_deref()
        && let Err(known) = carried_out(server, method)
    {
        let wait_s = EXECUTOR_WAIT_MS_DEFAULT / 1000;
        tracing::warn!(
            "no executor and no worker has the method `{method}` of --a2a-text-method yet: A2A messages wait for one, \
             {wait_s} s each; known are {known}"
        );
    }
    let deny_list = server.tokens().denied().clone();
    let discovery_urls = issuers.iter().map(|it| Arc::from(it.discovery_url()));
    let discovery_urls = discovery_urls.collect();
    let issuers = (!issuers.is_empty()).then(|| server::oidc_issuers(issuers, egress, deny_list));
    let is_reachable = config.is_reachable();
    let authenticate = server.authentication(config.auth.mode, is_reachable, issuers);
    let authenticate = authenticate.await.map_err(|e| CliError::failed(&e))?;
    let is_authenticated = authenticate.is_some();
    let settings = config.audited(is_authenticated, &server.tokens().admin_ids());
    server.note_start(settings).await;
    let inside = Inside {
        authenticate,
        ..Inside::from(server.service().clone())
    };
    let mut options = open_files::fitted(config.http(certificates));
    options.a2a = config.a2a.options(card, discovery_urls);
    let dispatcher = server.dispatcher().clone();
    let bound = http::Service::bind(options, dispatcher, inside, clock.clone());
    let (service, handle) = bound.await.map_err(|e| CliError::failed(&e))?;
    let shutdown = server.stopped().child_token();
    let mut monitored = Vec::new();
    for (options, shows) in [
        (config.admin(), Shows::Server),
        (config.broker_metrics(), Shows::Broker),
    ] {
        if let Some(options) = options {
            let served = handle.broker_addr.unwrap_or(handle.local_addr);
            let of = (served, clock.clone());
            let inside = server.service().clone();
            let listener = http::Admin::bind((options, shows), inside, of, shutdown.clone());
            let listener = listener.await.map_err(|e| CliError::failed(&e))?;
            monitored.push((shows, listener));
        }
    }
    Ok(Doors {
        service,
        handle,
        monitored,
        is_authenticated,
        shutdown,
    })
}

impl Doors {
    /// Serves until `shutdown`; metrics and probes until all else has ended.
    async fn run(self, place: &str) {
        let stop = CancellationToken::new();
        let monitored = self.monitored.into_iter().map(|(shows, listener)| {
            let address = listener.local_addr();
            match shows {
                Shows::Server => tracing::info!(%address, "metrics and probes are served"),
                Shows::Broker => {
                    tracing::info!(%address, "metrics and probes of the broker are served");
                }
            }
            tokio::spawn(listener.run(stop.clone()))
        });
        let monitored: Vec<_> = monitored.collect();
        if let Some(address) = self.handle.broker_addr {
            tracing::info!(%address, "agents of the broker are served");
        }
        tracing::info!(
            address = %self.handle.local_addr,
            url = self.handle.url,
            data = place,
            authentication = self.is_authenticated,
            "listening"
        );
        self.service.run(self.shutdown).await;
        stop.cancel();
        for listener in monitored {
            // It fails only by a panic, which is in the log.
            let _ = listener.await;
        }
    }
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
/// Bytes of a file with what the card says.
const CARD_BYTES_MAX: u64 = 64 * 1024;

/// What the card of Agent2Agent says by the file of `--a2a-card`.
pub(super) fn card_texts(file: Option<&Path>) -> Result<CardTexts, CliError> {
    let Some(file) = file else {
        return Ok(CardTexts::default());
    };
    let fail =
        |reason: String| CliError::Usage(format!("--a2a-card: `{}`: {reason}", file.display()));
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(CARD_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > CARD_BYTES_MAX {
        return Err(fail(format!("more than {CARD_BYTES_MAX} bytes")));
    }
    CardTexts::parse(&bytes).map_err(fail)
}

/// The keys that sign the card.
pub(super) fn card_keys(files: &[PathBuf]) -> Result<Vec<CardKey>, CliError> {
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
