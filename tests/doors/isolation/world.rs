//! A whole server that knows some callers, and their requests.

pub(crate) use super::callers::Callers;
use clap::Parser;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger::application::authentication::{Authenticate, Denied};
use taskledger::application::limits::{self, QuotaOptions};
use taskledger::clock::{SharedClock, SystemClock};
use taskledger::config::StorageConfig;
use taskledger::engine::executor::{BuiltInOptions, Registry, command, with_built_ins};
use taskledger::retention::{Pace, Policy, Schedule};
use taskledger::server::{self, Server, Storage};
use taskledger::transport::http::{Inside, Options, Service};
use taskledger::webhooks;
use taskledger_auth::{Caller, Name, Scope, Scopes, Token};
use taskledger_domain::flow::{Rest, WaitBounds};
use taskledger_testkit::postgres::Database;
use taskledger_testkit::server::{Folder, Server as Process};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Between looks at whether something has happened.
const PAUSE: Duration = Duration::from_millis(20);
/// What tasks may start.
const PROGRAMS: [&str; 1] = ["true"];
/// Looks between two passes of retention.
const PAUSES_BEFORE_A_PASS: u32 = 100;
/// A pass of retention at once, and none for as long as the test takes.
const ONE_PASS: Schedule = Schedule {
    first_after: Duration::ZERO,
    every: Duration::from_secs(3600),
};

/// Who knows the callers of a test: by their tokens, which are their names.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<String, Result<Arc<Caller>, Denied>>>);

impl Known {
    /// From now on this token is that caller's.
    pub(crate) fn put(&self, token: &str, caller: Caller) {
        let caller = Ok(Arc::new(caller));
        self.0.lock().unwrap().insert(token.to_owned(), caller);
    }

    /// From now on whoever shows this token is refused so.
    pub(crate) fn deny(&self, token: &str, denied: Denied) {
        self.0.lock().unwrap().insert(token.to_owned(), Err(denied));
    }

    /// From now on nobody has this token.
    pub(crate) fn revoke(&self, token: &str) {
        self.0.lock().unwrap().remove(token);
    }
}

impl Authenticate for Known {
    fn remembered(&self, bearer: &str, _from: Option<IpAddr>) -> Option<Arc<Caller>> {
        let known = self.0.lock().unwrap();
        known.get(bearer).and_then(|it| it.as_ref().ok()).cloned()
    }

    fn caller<'a>(
        &'a self,
        bearer: Option<&'a str>,
        _from: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, Denied>> {
        let found = bearer.ok_or(Denied::Missing).and_then(|bearer| {
            let known = self.0.lock().unwrap();
            match known.get(bearer) {
                None => Err(Denied::Unknown),
                Some(Ok(caller)) => Ok(caller.clone()),
                Some(Err(denied)) => Err(*denied),
            }
        });
        ready(found).boxed()
    }
}

/// The user of this name with these scopes.
pub(crate) fn user(name: &str, scopes: Scopes) -> Caller {
    Caller::user(&Name::new(name).unwrap(), scopes)
}

/// What users usually have: everything about their own tasks and webhooks, and work on them.
pub(crate) fn usual() -> Scopes {
    Scopes::of([
        Scope::TasksRead,
        Scope::TasksWrite,
        Scope::TasksRun,
        Scope::Webhooks,
        Scope::Worker,
    ])
}

/// A running server on which authentication is on. It knows `ann` and `bob` with the usual scopes, `reader`,
/// who is Ann with nothing but `tasks:read`, `chief`, who may do everything, and tokens that are `revoked` and
/// `expired`.
pub(crate) struct World {
    callers: Callers,
    pub(crate) known: Arc<Known>,
    pub(super) server: Server,
    stop: CancellationToken,
    running: JoinHandle<()>,
    pub(super) folder: TempDir,
    /// Lives as long as the server that keeps its data there.
    database: Option<Database>,
}

/// Settings as they are read from the command line, so that all others are the usual ones.
#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    storage: StorageConfig,
}

/// A file with the key that secrets of webhooks are kept with.
fn sealing_key(folder: &Path) -> PathBuf {
    let file = folder.join("sealing.key");
    std::fs::write(&file, format!("{}=\n", "A".repeat(43))).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// Webhooks are not limited.
fn many_webhooks() -> QuotaOptions {
    QuotaOptions {
        webhooks: None,
        ..QuotaOptions::default()
    }
}

/// Where a server keeps its data that listens to nobody else.
fn storage(folder: &TempDir, database: Option<&str>) -> Storage {
    let folder = folder.path().to_str().unwrap();
    let words = match database {
        Some(url) => ["server", "--database-url", url],
        None => ["server", "--data-dir", folder],
    };
    let settings = Settings::try_parse_from(words).unwrap();
    Storage::try_from(&settings.storage).unwrap()
}

impl World {
    /// Webhooks are not limited: the matrix makes many.
    pub(crate) async fn start() -> Self {
        Self::with(many_webhooks()).await
    }

    /// With these quotas for each user.
    pub(crate) async fn with(quotas: QuotaOptions) -> Self {
        Self::with_options(quotas, Options::default(), None, &PROGRAMS).await
    }

    /// A server that allows no programs, so it does not have the executor that starts them.
    pub(crate) async fn without_programs() -> Self {
        Self::with_options(many_webhooks(), Options::default(), None, &[]).await
    }

    /// The same, with its data in a database.
    pub(crate) async fn on_postgres() -> Self {
        let database = Database::create().await;
        let world = Self::on(database.url()).await;
        Self {
            database: Some(database),
            ..world
        }
    }

    /// The same, with its data in this database, which no other server uses.
    pub(crate) async fn on(database: &str) -> Self {
        let options = Options::default();
        let world = Self::with_options(many_webhooks(), options, Some(database), &PROGRAMS).await;
        while !world.share_the_flows().await {
            tokio::time::sleep(PAUSE).await;
        }
        world
    }

    /// With these options of the listener.
    pub(crate) async fn listening(options: Options) -> Self {
        Self::with_options(many_webhooks(), options, None, &PROGRAMS).await
    }

    async fn with_options(
        quotas: QuotaOptions,
        mut listener: Options,
        database: Option<&str>,
        programs: &[&str],
    ) -> Self {
        // Whoever speaks 0.3 of Agent2Agent is held to the same.
        listener.a2a.v03 = true;
        let folder = TempDir::new().unwrap();
        let clock: SharedClock = Arc::new(SystemClock::default());
        let options = BuiltInOptions {
            disk_path: None,
            command: (!programs.is_empty()).then(|| command::Options::allowing(programs.to_vec())),
            egress: None,
        };
        let registry = with_built_ins(Registry::builder(), options).unwrap();
        let registry = registry.build().unwrap();
        let options = server::Options {
            limits: limits::Options {
                quotas,
                ..limits::Options::default()
            },
            webhooks: webhooks::Options {
                secrets_key_file: database.map(|_| sealing_key(folder.path())),
                ..webhooks::Options::default()
            },
            // As the program has them: what it answers is compared with this server.
            wait_bounds: WaitBounds {
                start_ms: Some(7 * 24 * 3_600 * 1_000),
                answer_ms: Some(30 * 24 * 3_600 * 1_000),
            },
            ..server::Options::default()
        };
        let storage = storage(&folder, database);
        let server = Server::open_with(storage, registry, clock.clone(), options);
        let server = server.await.unwrap();
        let known = Arc::new(Known::default());
        known.put("ann", user("ann", usual()));
        known.put("bob", user("bob", usual()));
        known.put("reader", user("ann", Scopes::of([Scope::TasksRead])));
        known.put("chief", user("chief", Scopes::all()));
        known.deny("revoked", Denied::Revoked);
        known.deny("expired", Denied::Expired);
        let inside = Inside {
            authenticate: Some(known.clone()),
            ..Inside::from(server.service().clone())
        };
        let options = Options {
            listen: "127.0.0.1:0".to_owned(),
            ..listener
        };
        let dispatcher = server.dispatcher().clone();
        let bound = Service::bind(options, dispatcher, inside, clock).await;
        let (service, handle) = bound.unwrap();
        let stop = CancellationToken::new();
        let url = format!("http://{}", handle.local_addr);
        server.join(&url);
        Self {
            callers: Callers::of(vec![url]),
            known,
            server,
            running: tokio::spawn(service.run(stop.clone())),
            stop,
            folder,
            database: None,
        }
    }

    /// Waits until the flows of these roots, which have ended, have left the log for the archive.
    pub(crate) async fn archive(&self, roots: &[&String]) {
        for root in roots {
            let get = json!({"task_id": root});
            let mut pauses = 0_u32;
            // A pass ends early while something that follows the log is behind.
            while !self
                .ask(Some("chief"), "tasks.get", &get)
                .await
                .1
                .contains("archive")
            {
                if pauses.is_multiple_of(PAUSES_BEFORE_A_PASS) {
                    self.server.retain(self.everything_that_ended(), ONE_PASS);
                }
                pauses += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn everything_that_ended(&self) -> Policy {
        Policy {
            age: Duration::ZERO,
            rest: Rest::Finished,
            archive: self.folder.path().join("archive"),
            pace: Pace::Full,
        }
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.running.await.unwrap();
        self.server.close().await;
        drop(self.database);
    }
}

impl Deref for World {
    type Target = Callers;

    fn deref(&self) -> &Callers {
        &self.callers
    }
}

/// The same callers at two nodes of one database, which are asked in turn: about half of the flows belong to
/// the other one.
pub(crate) struct Nodes {
    callers: Callers,
    servers: Vec<Process>,
    /// The database lives as long as it.
    _folder: Folder,
}

impl Nodes {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with more arguments.
    pub(crate) async fn start_with(more: &[&str]) -> Self {
        Self::start_in(Folder::with_database().await, more).await
    }

    /// The same with what is in a database.
    pub(crate) async fn start_in(folder: Folder, more: &[&str]) -> Self {
        let operator = folder.path().join("operator.token");
        let token = Token::fresh(&SystemClock::default()).reveal().to_string();
        std::fs::write(&operator, &token).unwrap();
        std::fs::set_permissions(&operator, std::fs::Permissions::from_mode(0o600)).unwrap();
        let operator = operator.to_str().unwrap();
        let sealing = sealing_key(folder.path());
        let keys = ["--secrets-key-file", sealing.to_str().unwrap()];
        let on = ["--auth", "on", "--admin-token-file", operator];
        let arguments = [
            &on[..],
            &["--quota-webhooks", "0", "--a2a-0.3"],
            &keys,
            more,
        ]
        .concat();
        let servers = vec![
            Process::start_with(&folder, &arguments).await,
            Process::start_with(&folder, &arguments).await,
        ];
        let url = |server: &Process| server.api.url.trim_end_matches('/').to_owned();
        let mut callers = Callers::of(servers.iter().map(url).collect());
        callers.know("chief", &token);
        while !callers.share_the_flows().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let usual: Vec<_> = usual().iter().map(Scope::as_str).collect();
        for (name, user, scopes) in [
            ("ann", "ann", &usual[..]),
            ("bob", "bob", &usual[..]),
            ("reader", "ann", &["tasks:read"][..]),
        ] {
            let new = json!({"kind": "user", "name": user, "scopes": scopes});
            let made = callers.call("chief", "tokens.create", new).await;
            callers.know(name, made["token"].as_str().unwrap());
        }
        Self {
            callers,
            servers,
            _folder: folder,
        }
    }

    /// From now on a caller of this name shows this token.
    pub(crate) fn know(&mut self, name: &str, token: &str) {
        self.callers.know(name, token);
    }

    pub(crate) async fn close(self) {
        for server in self.servers {
            server.stop().await;
        }
    }
}

impl Deref for Nodes {
    type Target = Callers;

    fn deref(&self) -> &Callers {
        &self.callers
    }
}
