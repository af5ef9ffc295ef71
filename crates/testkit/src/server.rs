//! A server as a process, and calls to it.

use crate::patience::rows_in;
use crate::postgres::Database;
use crate::{certificates, program};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger_projections as projections;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// From the start of the process to its first answer.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// From a signal to the end of the process.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// For one call: longer than the server lets any call take.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// For something that is awaited, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(25);

/// Lines of its log that a server shows when a test has failed.
const LINES_SHOWN: usize = 60;

/// The error that passes: read models are behind, or a queue is full.
pub const TOO_BUSY: i64 = -32013;
/// The error of a fault on the server's side.
pub const FAILED: i64 = -32603;

/// A data folder that is deleted with the value, and a database if one is asked for.
pub struct Folder {
    place: TempDir,
    database: Option<Where>,
}

/// A database for the data.
enum Where {
    /// One of its own, on the server that all tests use.
    Own(Database),
    /// Another one, by its URL.
    At(String),
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// A place whose data is in the folder.
    pub fn new() -> Self {
        Self {
            place: tempfile::tempdir().unwrap(),
            database: None,
        }
    }

    /// A place whose data is in a Postgres database.
    pub async fn with_database() -> Self {
        Self {
            database: Some(Where::Own(Database::create().await)),
            ..Self::new()
        }
    }

    /// A place whose data is in the database at `url`.
    pub fn at(url: String) -> Self {
        Self {
            database: Some(Where::At(url)),
            ..Self::new()
        }
    }

    /// The database, if the data is in one.
    pub fn url(&self) -> Option<&str> {
        self.database.as_ref().map(|database| match database {
            Where::Own(database) => database.url(),
            Where::At(url) => url,
        })
    }

    /// What names the storage on the command line.
    pub fn storage(&self) -> Vec<String> {
        let (name, value) = match self.url() {
            Some(url) => ("--database-url", url.to_owned()),
            None => ("--data-dir", self.data().to_str().unwrap().to_owned()),
        };
        vec![name.to_owned(), value]
    }

    /// What messages about the log call its place.
    pub fn name(&self) -> String {
        let name = |options: PgConnectOptions| options.get_database().map(str::to_owned);
        let database = self.options().and_then(name);
        database.unwrap_or_else(|| "ledger.db".to_owned())
    }

    /// Where the read models are.
    pub fn rows(&self) -> projections::Options {
        match self.options() {
            Some(options) => rows_in(options),
            None => projections::Options::new(self.read_models()),
        }
    }

    /// Removes the read models, which no server uses.
    pub async fn lose_rows(&self) {
        if self.database.is_some() {
            let sql = format!("DROP SCHEMA {} CASCADE", projections::SCHEMA_DEFAULT);
            return self.execute(&sql).await;
        }
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(self.data().join(format!("read_models.db{suffix}")));
        }
        assert!(!self.read_models().exists());
    }

    /// How often a server is killed here, of `most`: one that follows a killed one on a database
    /// waits for seconds until the leases of that one are over.
    pub fn kills(&self, most: u64) -> u64 {
        if self.database.is_some() {
            most / 2
        } else {
            most
        }
    }

    /// How to reach the database, if there is one.
    pub fn options(&self) -> Option<PgConnectOptions> {
        Some(self.url()?.parse().unwrap())
    }

    /// Does this in the database, behind the back of all servers.
    pub async fn execute(&self, sql: &str) {
        let options = self.options().expect("there is a database");
        let mut connection = options.connect().await.unwrap();
        let sql = AssertSqlSafe(sql.to_owned());
        connection.execute(sql).await.unwrap();
        connection.close().await.unwrap();
    }

    /// The token that the first start with authentication has made.
    pub fn first_token(&self) -> String {
        let text = std::fs::read_to_string(self.data().join("admin.token")).unwrap();
        text.trim().to_owned()
    }

    /// The data folder; a file beside it is not part of it.
    pub fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Where the data folder is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// The file of the log.
    pub fn ledger(&self) -> PathBuf {
        self.data().join("ledger.db")
    }

    /// The file of the read models.
    pub fn read_models(&self) -> PathBuf {
        self.data().join("read_models.db")
    }
}

/// A running server; killed when it is dropped.
pub struct Server {
    child: Child,
    /// Calls to it.
    pub api: Api,
    err: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Server {
    /// Starts the server on a free port.
    pub async fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[]).await
    }

    /// The same with more arguments.
    pub async fn start_with(folder: &Folder, arguments: &[&str]) -> Self {
        let mut command = program::command();
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(folder.storage())
            .args(arguments)
            // Not that of whoever runs the tests.
            .env("TASKLEDGER_STATE_DIR", folder.path().join("state"));
        Self::spawn(command, folder.path()).await
    }

    /// Starts a prepared command, which becomes a server, and waits until it listens.
    pub async fn spawn(mut command: Command, folder: &Path) -> Self {
        command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let err = Arc::new(Mutex::new(String::new()));
        let (sender, url) = oneshot::channel();
        let reader = tokio::spawn(read(stderr, err.clone(), sender));
        let url = match tokio::time::timeout(START_TIMEOUT, url).await {
            Ok(Ok(url)) => url,
            Ok(Err(_)) | Err(_) => panic!("the server did not start: {}", err.lock().unwrap()),
        };
        Self {
            child,
            api: Api::new(&format!("{url}/")),
            err,
            reader,
        }
    }

    /// Ends the process at once, whatever it does.
    pub async fn kill(mut self) {
        self.child.start_kill().unwrap();
        self.ended().await;
    }

    /// The process stands still (SIGSTOP) until it is resumed.
    pub fn pause(&self) {
        self.send(Signal::STOP);
    }

    /// Lets a paused process go on.
    pub fn resume(&self) {
        self.send(Signal::CONT);
    }

    fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Sends SIGHUP.
    pub fn hang_up(&self) {
        self.send(Signal::HUP);
    }

    /// Sends SIGTERM.
    pub fn ask_to_stop(&self) {
        self.send(Signal::TERM);
    }

    /// Sends SIGTERM and waits for a good end.
    pub async fn stop(self) -> String {
        self.ask_to_stop();
        let (status, err) = self.end().await;
        assert_eq!(status.code(), Some(0), "{err}");
        err
    }

    /// Waits for the end; gives the log.
    pub async fn end(mut self) -> (ExitStatus, String) {
        let status = self.ended().await;
        let err = self.err.lock().unwrap().clone();
        (status, err)
    }

    async fn ended(&mut self) -> ExitStatus {
        let ended = async {
            let status = self.child.wait().await.unwrap();
            (&mut self.reader).await.unwrap();
            status
        };
        let status = tokio::time::timeout(STOP_TIMEOUT, ended)
            .await
            .expect("the server ends in time");
        let err = self.err.lock().unwrap();
        assert!(!err.contains("panicked"), "{err}");
        status
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// What the server has logged.
    pub fn logged(&self) -> String {
        self.err.lock().unwrap().clone()
    }

    /// Whether the process runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let err = self.err.lock().unwrap();
        if std::thread::panicking() {
            let lines: Vec<&str> = err.lines().collect();
            let last = lines.len().saturating_sub(LINES_SHOWN);
            println!("{}: ..\n{}", self.api.url, lines[last..].join("\n"));
        } else {
            assert!(!err.contains("panicked"), "{err}");
        }
    }
}

async fn read(
    stderr: tokio::process::ChildStderr,
    err: Arc<Mutex<String>>,
    url: oneshot::Sender<String>,
) {
    let mut lines = BufReader::new(stderr).lines();
    let mut url = Some(url);
    while let Ok(Some(line)) = lines.next_line().await {
        let entry: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        if entry["message"] == "listening"
            && let Some(sender) = url.take()
        {
            let _ = sender.send(entry["url"].as_str().unwrap().to_owned());
        }
        let mut err = err.lock().unwrap();
        err.push_str(&line);
        err.push('\n');
    }
}

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The code of JSON-RPC.
    pub code: i64,
    /// What it says besides.
    pub data: Value,
}

impl Refusal {
    /// Whether the server cannot tell if the call took effect.
    pub fn is_unknown(&self) -> bool {
        let reason = self.data["reason"].as_str().unwrap_or_default();
        self.code == FAILED && reason.contains("unknown; retry with the same idempotency key")
    }
}

/// Why a call has no result.
#[derive(Debug)]
pub enum NoResult {
    /// The server said no.
    Refused(Refusal),
    /// There was no answer.
    Broken,
}

/// Calls to one server.
#[derive(Debug, Clone)]
pub struct Api {
    /// The client, for requests that are no calls.
    pub http: reqwest::Client,
    /// The address of calls, with a `/` at its end.
    pub url: String,
}

impl Api {
    fn new(url: &str) -> Self {
        Self::showing(url, HeaderMap::new())
    }

    /// The same with this token in each request.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        let mut bearer: HeaderValue = format!("Bearer {token}").parse().unwrap();
        bearer.set_sensitive(true);
        Self::showing(&self.url, HeaderMap::from_iter([(AUTHORIZATION, bearer)]))
    }

    fn showing(url: &str, headers: HeaderMap) -> Self {
        let client = if url.starts_with("https:") {
            taskledger_net::tls::client_trusting([certificates::authority_der()]).unwrap()
        } else {
            taskledger_net::tls::client()
        };
        let client = client.no_proxy().timeout(CALL_TIMEOUT);
        let http = client.default_headers(headers).build().unwrap();
        Self {
            http,
            url: url.to_owned(),
        }
    }

    /// Sends a body; gives the HTTP status and the answer.
    pub async fn post(&self, body: impl Into<reqwest::Body>) -> reqwest::Result<(u16, Value)> {
        let request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .body(body);
        let response = request.send().await?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await?;
        Ok((
            status,
            serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        ))
    }

    /// Calls a method, under an idempotency key if one is given.
    pub async fn try_call(
        &self,
        method: &str,
        params: Value,
        key: Option<&str>,
    ) -> Result<Value, NoResult> {
        let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        if let Some(key) = key {
            request["metadata"] = json!({"idempotency_key": key});
        }
        let (_, mut answer) = self
            .post(request.to_string())
            .await
            .map_err(|_| NoResult::Broken)?;
        match (answer.get("result"), answer.get("error")) {
            (Some(_), None) => Ok(answer["result"].take()),
            (None, Some(error)) => Err(NoResult::Refused(Refusal {
                code: error["code"].as_i64().unwrap(),
                data: error["data"].clone(),
            })),
            _ => Err(NoResult::Broken),
        }
    }

    /// The result of a call that must succeed, at once or when the server is less busy.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        self.eventually(method, async || {
            match self.try_call(method, params.clone(), None).await {
                Ok(result) => Some(result),
                Err(NoResult::Refused(refusal)) if refusal.code == TOO_BUSY => None,
                Err(error) => panic!("{method} {}: {error:?}", shortened(&params)),
            }
        })
        .await
    }

    /// The refusal of a call that must be refused.
    pub async fn refusal(&self, method: &str, params: Value) -> Refusal {
        match self.try_call(method, params.clone(), None).await {
            Err(NoResult::Refused(refusal)) => refusal,
            other => panic!("{method} {}: {other:?}", shortened(&params)),
        }
    }

    /// The task's run, once it has ended.
    pub async fn run_of(&self, task: &Value) -> Value {
        self.eventually("the run ends", async || {
            let run = self.call("tasks.get", json!({"task_id": task})).await["run"].take();
            (run["state"] != "running").then_some(run)
        })
        .await
    }

    /// Waits until the read models show all of the log, as a list of all tasks must.
    pub async fn caught_up(&self) {
        self.call("tasks.list", json!({"limit": 1})).await;
    }

    /// Asks again and again until `look` finds something.
    pub async fn eventually<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut pace = tokio::time::interval(PAUSE);
        while Instant::now() < until {
            pace.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
        panic!("in vain awaited: {what}");
    }
}

/// Parameters for the text of a failure.
fn shortened(params: &Value) -> String {
    let text = params.to_string();
    text.chars().take(500).collect()
}
