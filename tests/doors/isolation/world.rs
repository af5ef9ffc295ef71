//! A whole server that knows some callers, and their requests.

use clap::Parser;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
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
use taskledger_domain::flow::Rest;
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
fn storage(folder: &TempDir, database: Option<&Database>) -> Storage {
    let folder = folder.path().to_str().unwrap();
    let words = match database {
        Some(database) => ["server", "--database-url", database.url()],
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
        let database = Some(Database::create().await);
        let world =
            Self::with_options(many_webhooks(), Options::default(), database, &PROGRAMS).await;
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
        database: Option<Database>,
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
                secrets_key_file: database.as_ref().map(|_| sealing_key(folder.path())),
                ..webhooks::Options::default()
            },
            ..server::Options::default()
        };
        let storage = storage(&folder, database.as_ref());
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
            database,
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
        let folder = Folder::with_database().await;
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
        callers.tokens.insert("chief".to_owned(), token);
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
            let token = made["token"].as_str().unwrap().to_owned();
            callers.tokens.insert(name.to_owned(), token);
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

/// Requests of some callers to one or several nodes.
pub(crate) struct Callers {
    urls: Vec<String>,
    /// The node that is asked next.
    next: AtomicUsize,
    pub(crate) client: reqwest::Client,
    /// The tokens of callers whose tokens are not their names.
    tokens: HashMap<String, String>,
}

impl Callers {
    fn of(urls: Vec<String>) -> Self {
        Self {
            urls,
            next: AtomicUsize::new(0),
            client: taskledger::tls::client().build().unwrap(),
            tokens: HashMap::new(),
        }
    }

    /// Whether each node has about half of the flows, as the next one sees it.
    async fn share_the_flows(&self) -> bool {
        let health = self.call("chief", "system.health", json!({})).await;
        let alive = health["node"]["alive"].as_array().unwrap();
        let held = |node: &Value| node["partitions"].as_u64().unwrap();
        alive.len() == self.urls.len() && alive.iter().all(|node| held(node) > 100)
    }

    /// How many nodes are asked in turn.
    pub(super) fn nodes(&self) -> usize {
        self.urls.len()
    }

    /// Where the node is that is asked now.
    pub(crate) fn url(&self) -> &str {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.urls[turn % self.urls.len()]
    }

    /// The same callers at one node, whichever was asked before. The first has number 0.
    pub(crate) fn at(&self, node: usize) -> Self {
        Self {
            urls: vec![self.urls[node].clone()],
            next: AtomicUsize::new(0),
            client: self.client.clone(),
            tokens: self.tokens.clone(),
        }
    }

    /// From now on a caller of this name shows this token.
    pub(crate) fn know(&mut self, name: &str, token: &str) {
        self.tokens.insert(name.to_owned(), token.to_owned());
    }

    /// The token of this caller.
    pub(crate) fn token<'c>(&'c self, name: &'c str) -> &'c str {
        self.tokens.get(name).map_or(name, String::as_str)
    }

    /// Status and body of an answer; of a stream its first message.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> (u16, String) {
        let mut response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let streams = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !streams {
            return (status, response.text().await.unwrap());
        }
        let mut begun = Vec::new();
        while !begun.windows(2).any(|pair| pair == b"\n\n") {
            let piece = tokio::time::timeout(Duration::from_secs(10), response.chunk());
            begun.extend_from_slice(&piece.await.unwrap().unwrap().unwrap());
        }
        (status, String::from_utf8(begun).unwrap())
    }

    /// A request with the credentials of this caller.
    pub(crate) fn as_caller(
        &self,
        request: reqwest::RequestBuilder,
        token: Option<&str>,
    ) -> reqwest::RequestBuilder {
        match token {
            None => request,
            Some(name) => request.bearer_auth(self.token(name)),
        }
    }

    /// Status and body of a call's answer.
    pub(crate) async fn ask(
        &self,
        token: Option<&str>,
        method: &str,
        params: &Value,
    ) -> (u16, String) {
        let body = json!({"jsonrpc": "2.0", "id": "call", "method": method, "params": params});
        let request = self.client.post(self.url()).json(&body);
        self.send(self.as_caller(request, token)).await
    }

    /// The result of a call that must succeed.
    pub(crate) async fn call(&self, token: &str, method: &str, params: Value) -> Value {
        let (status, text) = self.ask(Some(token), method, &params).await;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(
            status == 200 && answer["error"].is_null(),
            "{method}: {text}"
        );
        answer["result"].take()
    }

    /// The error of a call that must be refused.
    pub(crate) async fn refusal(&self, token: &str, method: &str, params: Value) -> Value {
        let (_, text) = self.ask(Some(token), method, &params).await;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer["error"].is_object(), "{method}: {text}");
        answer["error"].take()
    }

    /// The position of the last event.
    pub(crate) async fn head(&self) -> u64 {
        let health = self.call("chief", "system.health", json!({})).await;
        health["log"]["head"].as_u64().unwrap()
    }
}
