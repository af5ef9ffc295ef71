//! A reader who types the commands of a page, from top to bottom, in a folder of their own.
//!
//! Blocks of `sh` that follow each other are one script; what they export, and the functions that they define, are
//! there in the blocks behind. The words behind `sh` say what else a reader does:
//!
//! | word | meaning |
//! |---|---|
//! | `server` | the last command is a server: the one before is stopped, this one goes on, and the commands behind talk to it |
//! | `stopped` | the server is stopped before |
//! | `until=TEXT` | it never ends: until its output has the text |
//! | `postgres` | it needs a database, so it is typed by readers who have one, and only by them |
//! | `no-run` | it is not typed; `tests/core/pages/unrun.rs` says why |

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use taskledger_testkit::pages::{Block, pages};
use taskledger_testkit::postgres::Database;
use taskledger_testkit::program;
use taskledger_testkit::server::Server;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// The addresses that the pages show.
const SHOWN: [&str; 2] = ["127.0.0.1:8000", "127.0.0.1:8001"];
/// For commands that follow each other.
const PATIENCE: Duration = Duration::from_secs(90);
/// The folder of the server that the README and the quickstart start.
const DATA: &str = "taskledger-data";
/// What a shell leaves to the next one.
const LEFT: &str = "left.sh";
/// Settings of all servers: names are not looked up, because receivers in examples are not called.
const SETTINGS: [(&str, &str); 2] = [
    ("TASKLEDGER_LISTEN", "127.0.0.1:0"),
    ("TASKLEDGER_EGRESS_DNS", "127.0.0.1:1"),
];

/// What a page takes for granted.
#[derive(Default)]
pub(super) struct Ground<'g> {
    /// Options of the server that is there when the reader begins.
    pub(super) options: &'g [&'g str],
    /// Commands before those of the page.
    pub(super) before: &'g str,
    /// Words of the page that stand for something, and what the reader would type.
    pub(super) words: &'g [(&'g str, &'g str)],
    /// Variables of the reader's shell.
    pub(super) variables: &'g [(&'g str, &'g str)],
}

/// What is typed at once.
enum Step {
    Run(String),
    Until(String, String),
    Serve(String),
    Stop,
}

/// Somebody who reads one page.
pub(super) struct Reader<'g> {
    name: String,
    place: TempDir,
    ground: Ground<'g>,
    server: Option<Server>,
    /// Servers so far.
    servers: usize,
    /// One for servers, and one that is empty.
    databases: Option<(Database, Database)>,
    /// What the commands have printed.
    out: String,
}

impl<'g> Reader<'g> {
    pub(super) fn of(name: &str, ground: Ground<'g>) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        for folder in ["bin", "tmp", "home"] {
            std::fs::create_dir(at.join(folder)).unwrap();
        }
        for shown in ["docs", "examples", "clients"] {
            symlink(root.join(shown), at.join(shown)).unwrap();
        }
        symlink(program::path(), at.join("bin/taskledger")).unwrap();
        Self {
            name: name.to_owned(),
            place,
            ground,
            server: None,
            servers: 0,
            databases: None,
            out: String::new(),
        }
    }

    /// The same with two databases, which `$DB` and `$DB_EMPTY` name.
    pub(super) async fn with_database(mut self) -> Self {
        self.databases = Some((Database::create().await, Database::create().await));
        self
    }

    /// Types all that is to be typed.
    pub(super) async fn reads(mut self) {
        let steps = self.steps();
        let typed = steps.iter().filter(|step| !matches!(step, Step::Stop));
        assert!(typed.count() > 0, "{} has commands", self.name);
        if !matches!(steps.first(), Some(Step::Serve(_))) && self.databases.is_none() {
            let options = self.ground.options.join(" ");
            self.serve(&format!(
                "taskledger serve --listen 127.0.0.1:0 --data-dir {DATA} {options}"
            ))
            .await;
        }
        if !self.ground.before.is_empty() {
            self.run(self.ground.before).await;
        }
        for step in steps {
            match step {
                Step::Run(script) => self.run(&script).await,
                Step::Until(script, text) => self.shows(&script, &text).await,
                Step::Serve(script) => self.serve(&script).await,
                Step::Stop => self.stop().await,
            }
        }
        assert!(
            !self.out.contains(r#""error":{"#),
            "{}: a call is refused\n{}",
            self.name,
            self.out
        );
        self.stop().await;
        let left: Vec<_> = std::fs::read_dir(self.place.path().join("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(left.is_empty(), "{} leaves {left:?}", self.name);
    }

    /// What the page has for this reader.
    fn steps(&self) -> Vec<Step> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = pages(root, &[&*self.name]).remove(0);
        let mut steps = Vec::new();
        for block in page.blocks() {
            let has = |word: &str| block.notes.iter().any(|note| note == word);
            let is_for_it = has("postgres") == self.databases.is_some();
            if block.language != "sh" || has("no-run") || !is_for_it {
                continue;
            }
            let text = self.typed(&block);
            let until = |note: &String| note.strip_prefix("until=").map(str::to_owned);
            if has("stopped") {
                steps.push(Step::Stop);
            }
            if has("server") {
                steps.push(Step::Serve(text));
            } else if let Some(shown) = block.notes.iter().find_map(until) {
                steps.push(Step::Until(text, shown));
            } else if let Some(Step::Run(script)) = steps.last_mut() {
                script.push_str(&text);
            } else {
                steps.push(Step::Run(text));
            }
        }
        steps
    }

    /// A block as this reader types it.
    fn typed(&self, block: &Block) -> String {
        let mut text = block.text.clone();
        for (word, typed) in self.ground.words {
            text = text.replace(word, typed);
        }
        text
    }

    /// A shell in the reader's folder.
    fn shell(&self, script: &str) -> Command {
        let place = self.place.path();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = program::command_of("bash");
        command
            .args(["-c", script])
            .current_dir(place)
            .env("PATH", format!("{}:{path}", place.join("bin").display()))
            .env("HOME", place.join("home"))
            .env("TASKLEDGER_CONTEXTS", place.join("contexts.json"))
            .env("TMPDIR", place.join("tmp"))
            .envs(SETTINGS)
            .envs(self.ground.variables.iter().copied())
            .stdin(Stdio::null());
        if let Some((database, empty)) = &self.databases {
            command.env("DB", database.url());
            command.env("DB_EMPTY", empty.url());
        }
        command
    }

    /// `script` with the address of the server in place of the one that is shown.
    fn addressed(&self, script: &str) -> String {
        match &self.server {
            None => script.to_owned(),
            Some(server) => {
                let (_, address) = server.api.url.split_once("://").unwrap();
                script.replace(SHOWN[0], address.trim_end_matches('/'))
            }
        }
    }

    /// Has a server in place of the one before. The context in use names it.
    async fn serve(&mut self, script: &str) {
        self.stop().await;
        let mut script = script.replace("taskledger serve", "exec taskledger serve");
        for shown in SHOWN {
            script = script.replace(shown, "127.0.0.1:0");
        }
        let begin = format!("[ ! -e {LEFT} ] || . ./{LEFT}\n");
        let command = self.shell(&format!("{begin}{script}"));
        let server = Server::spawn(command, self.place.path()).await;
        self.servers += 1;
        let url = server.api.url.clone();
        self.server = Some(server);
        self.run(&format!(
            "taskledger context add here --server {url}; taskledger context use here\n"
        ))
        .await;
    }

    async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
    }

    /// Types commands and waits for their end. What they start in the background ends with them.
    async fn run(&mut self, script: &str) {
        let script = self.addressed(script);
        let script = format!(
            "[ ! -e {LEFT} ] || . ./{LEFT}\nset -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n\
             {script}\n{{ export -p; declare -f; }} > {LEFT}\n"
        );
        let ended = timeout(PATIENCE, self.shell(&script).output())
            .await
            .unwrap_or_else(|_| panic!("{}: the commands end\n{script}", self.name))
            .unwrap();
        let out = String::from_utf8_lossy(&ended.stdout);
        let err = String::from_utf8_lossy(&ended.stderr);
        assert!(
            ended.status.success(),
            "{}: {}\n{script}\n{out}\n{err}",
            self.name,
            ended.status
        );
        self.out.push_str(&out);
    }

    /// Types commands until their output has `text`. A server among them has a folder of its own.
    async fn shows(&self, script: &str, text: &str) {
        let script = self.addressed(script);
        let script = format!("exec 2>&1\n[ ! -e {LEFT} ] || . ./{LEFT}\n{script}");
        let mut command = self.shell(&script);
        let mut child = command
            .env("TASKLEDGER_DATA_DIR", format!("beside-{}", self.servers))
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = String::new();
        let found = timeout(PATIENCE, async {
            while let Some(line) = lines.next_line().await.unwrap() {
                seen.push_str(&line);
                seen.push('\n');
                if line.contains(text) {
                    return true;
                }
            }
            false
        });
        let found = found.await;
        let group = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
        // One that has ended is no group any more.
        let _ = kill_process_group(group, Signal::KILL);
        child.wait().await.unwrap();
        assert_eq!(
            found,
            Ok(true),
            "{}: no `{text}`\n{script}\n{seen}",
            self.name
        );
    }
}
