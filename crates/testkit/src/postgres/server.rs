//! A PostgreSQL server of a test's own, to be stopped, crashed and started again. Made from
//! the programs in `TASKLEDGER_TEST_POSTGRES_BIN`, which
//! `.ci/with-postgres` sets.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the folder with the server's programs.
const PROGRAMS: &str = "TASKLEDGER_TEST_POSTGRES_BIN";
/// Ports are free when they are chosen and may be taken a moment later.
const PORTS_TRIED_MAX: usize = 5;

/// A running server with an empty data folder; goes away with the value.
#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
}

impl Server {
    /// A server in a temporary folder.
    pub fn begin() -> Self {
        Self::begin_in(&std::env::temp_dir(), &[])
    }

    /// A server whose data lies in a new folder below `parent` (a small file system, perhaps), with
    /// further `settings`, each `name=value`.
    #[expect(clippy::disallowed_methods, reason = "a name that nobody else has")]
    pub fn begin_in(parent: &Path, settings: &[&str]) -> Self {
        let name = format!("taskledger-server-{}", uuid::Uuid::new_v4().simple());
        let folder = parent.join(name);
        std::fs::create_dir(&folder).expect("a folder for the server can be made");
        give(&folder);
        let data = folder.join("data");
        run(
            "initdb",
            &[
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
            ],
            &data,
        );
        let mut server = Self {
            folder,
            port: 0,
            settings: settings.iter().map(|s| (*s).to_owned()).collect(),
        };
        for _ in 0..PORTS_TRIED_MAX {
            server.port = free_port();
            if server.try_start() {
                return server;
            }
        }
        let log = std::fs::read_to_string(server.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not start:\n{log}");
    }

    /// The URL of its database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The folder that holds its data.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Ends all sessions, stops in order, starts again on the same port.
    pub fn restart(&self) {
        self.pg_ctl(&["stop", "-m", "fast", "-s", "-w"]);
        self.start();
    }

    /// Ends all processes where they stand, as a crash would.
    pub fn stop_immediately(&self) {
        self.pg_ctl(&["stop", "-m", "immediate", "-s", "-w"]);
    }

    /// Starts it again; returns when it answers.
    pub fn start(&self) {
        assert!(self.try_start(), "PostgreSQL starts again");
    }

    /// Its first process, from which its sessions come.
    pub fn pid(&self) -> i64 {
        let path = self.data().join("postmaster.pid");
        let text = std::fs::read_to_string(path).expect("a running server has written its number");
        let first = text.lines().next().and_then(|line| line.parse().ok());
        first.expect("a number")
    }

    /// Gives it a folder.
    pub fn own(&self, folder: &Path) {
        give(folder);
    }

    /// Files that these of its processes write may not grow beyond `bytes`; `None`: they may.
    pub fn limit_files(&self, pids: &[i64], bytes: Option<u64>) {
        let bytes = bytes.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string());
        for pid in pids {
            // Some have ended meanwhile.
            let _ = as_user(Path::new("prlimit"))
                .args(["--pid", &pid.to_string()])
                .arg(format!("--fsize={bytes}:"))
                .status()
                .expect("`prlimit` runs");
        }
    }

    fn try_start(&self) -> bool {
        let mut options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
             -c max_connections=100 -c fsync=off -c full_page_writes=off -c shared_buffers=32MB",
            self.port
        );
        for setting in &self.settings {
            options.push_str(" -c ");
            options.push_str(setting);
        }
        let log = self.folder.join("log");
        let log = log.to_str().expect("a path of ASCII");
        program("pg_ctl")
            .args(["start", "-s", "-w", "-l", log, "-o", &options, "-D"])
            .arg(self.data())
            .status()
            .expect("pg_ctl runs")
            .success()
    }

    fn pg_ctl(&self, arguments: &[&str]) {
        let done = program("pg_ctl")
            .args(arguments)
            .arg("-D")
            .arg(self.data())
            .status()
            .expect("pg_ctl runs");
        assert!(done.success(), "pg_ctl {arguments:?}: {done}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = program("pg_ctl")
            .args(["stop", "-m", "immediate", "-s", "-D"])
            .arg(self.data())
            .stderr(Stdio::null())
            .status();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(name: &str, arguments: &[&str], folder: &Path) {
    let done = program(name)
        .args(arguments)
        .arg(folder)
        .status()
        .expect("it runs");
    assert!(done.success(), "{name}: {done}");
}

/// One of the server's programs, as a user that it accepts. Its output goes nowhere: a server keeps
/// what it was started with, and a test runner waits for the end of output.
fn program(name: &str) -> Command {
    let folder = std::env::var(PROGRAMS).unwrap_or_else(|_| {
        panic!("{PROGRAMS} is not set: run the tests with `.ci/with-postgres`")
    });
    as_user(&Path::new(&folder).join(name))
}

/// A program as the user that the server runs as.
fn as_user(path: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        let group = id_of("-g").to_string();
        command.args(["--reuid", "postgres", "--regid", &group, "--clear-groups"]);
        command.arg(path);
        command
    } else {
        Command::new(path)
    };
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// PostgreSQL refuses to run as root, so it runs as a user of its own there.
fn give(folder: &Path) {
    if is_root() {
        let (user, group) = (id_of("-u"), id_of("-g"));
        std::os::unix::fs::chown(folder, Some(user), Some(group)).expect("root may give away");
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// User or group number of the user `postgres`.
fn id_of(which: &str) -> u32 {
    let told = Command::new("id")
        .args([which, "postgres"])
        .output()
        .expect("`id` runs");
    let text = String::from_utf8_lossy(&told.stdout);
    text.trim().parse().expect("there is a user `postgres`")
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("there are free ports")
        .port()
}
