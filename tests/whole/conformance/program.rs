//! The program as a process: as a server, and as the suite.

use crate::postgres::Database;
use serde_json::Value;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use tempfile::TempDir;

/// The program without the settings of whoever runs the tests.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskledger"));
    command
        .env_clear()
        .envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME"))
        .stdin(Stdio::null());
    command
}

/// Runs the suite; gives the exit code and its report or error.
pub(crate) fn conformance(arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = command();
    command.args(["conformance", "--json"]).args(arguments);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_str(&text);
    let json = json.unwrap_or_else(|error| panic!("{error}: {text} {err}"));
    (output.status.code(), json)
}

/// 32 bytes in base64.
const SEALING_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A running server with a storage of its own; killed when it is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    child: Child,
    log: Option<BufReader<ChildStderr>>,
    _folder: TempDir,
    _database: Option<Database>,
}

impl Server {
    /// Starts it with its data in a folder.
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts it with its data in a Postgres database.
    pub(crate) fn start_on_postgres() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self::start_with(Some(runtime.block_on(Database::create())))
    }

    /// Starts it on a free port and waits until it listens. Callbacks have secrets, which a server on
    /// Postgres keeps only with a key.
    fn start_with(database: Option<Database>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "info"])
            // The receiver of callbacks is on this machine, and refuses some of them once.
            .args([
                "--egress-allow-net",
                "127.0.0.1/32",
                "--webhook-schedule",
                "0,1,1",
            ])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        match &database {
            Some(database) => {
                let key = folder.path().join("keys");
                std::fs::write(&key, SEALING_KEY).unwrap();
                let readable_by_its_owner = Permissions::from_mode(0o600);
                std::fs::set_permissions(&key, readable_by_its_owner).unwrap();
                command
                    .args(["--database-url", database.url(), "--secrets-key-file"])
                    .arg(key)
            }
            None => command.arg("--data-dir").arg(folder.path().join("data")),
        };
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        let address = loop {
            let begin = text.len();
            let read = log.read_line(&mut text).unwrap();
            assert!(read > 0, "the server did not start: {text}");
            let entry: Value = serde_json::from_str(&text[begin..]).unwrap_or(Value::Null);
            if entry["message"] == "listening" {
                break entry["address"].as_str().unwrap().to_owned();
            }
        };
        Self {
            url: format!("http://{address}"),
            child,
            log: Some(log),
            _folder: folder,
            _database: database,
        }
    }

    /// Kills it and checks that nothing in it panicked.
    pub(crate) fn end(mut self) {
        self.child.kill().unwrap();
        let log = self.log.take().expect("only the end takes the log");
        let text = std::io::read_to_string(log).unwrap();
        assert!(!text.contains("panicked"), "{text}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which whoever called it has seen.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
