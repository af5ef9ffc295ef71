//! The program, run to its end.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The program that is tested: beside the folder with the test programs, where cargo puts it before
/// it runs the tests of package `taskledger`. (Its path is known at build time only to the tests of
/// that package, not to a crate that they use.) `TASKLEDGER_TEST_PROGRAM` names another build of it, such as an
/// optimised one.
#[must_use]
pub fn path() -> PathBuf {
    if let Some(given) = std::env::var_os("TASKLEDGER_TEST_PROGRAM") {
        let program = std::path::absolute(given).expect("TASKLEDGER_TEST_PROGRAM is a path");
        assert!(program.is_file(), "{}: not there", program.display());
        return program;
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let program = folder.join("taskledger");
    assert!(program.is_file(), "{}: not built", program.display());
    program
}

/// How long a command may take before the test counts it as hanging.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// The program without the settings of whoever runs the tests.
pub fn command() -> Command {
    command_of(path())
}

/// Another program, with as little around it.
pub fn command_of(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME"))
        // Tests that stop a server do not wait for tasks that they left running.
        .env("TASKLEDGER_DRAIN_TIMEOUT", "0");
    command.kill_on_drop(true);
    command
}

/// The result of a finished command.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// Standard output of a command that must succeed.
    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Standard error of a command that must end with `code`.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}

/// The lines of an export but the last one, which says that it is whole.
pub fn events_of(export: &str) -> impl Iterator<Item = &str> {
    let (events, end) = export
        .trim_end()
        .rsplit_once('\n')
        .unwrap_or(("", export.trim_end()));
    assert!(end.starts_with(r#"{"end":"#), "{end}");
    events.lines()
}

/// Runs the program with these arguments.
pub async fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    run_with(arguments, Path::new("."), "").await
}

/// Runs the program in `folder` with `input` on its standard input.
pub async fn run_with<A: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = A>,
    folder: &Path,
    input: &str,
) -> Ended {
    let mut command = command();
    command.args(arguments).current_dir(folder);
    end(command, input).await
}

/// Runs a prepared command to its end.
pub async fn end(mut command: Command, input: &str) -> Ended {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let waited = tokio::time::timeout(COMMAND_TIMEOUT, async {
        // A program that does not read its input closes it, which is no fault.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        child.wait_with_output().await.unwrap()
    });
    let Output {
        status,
        stdout,
        stderr,
    } = waited.await.expect("the command ends in time");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ended = Ended {
        code: status.code(),
        out: text(stdout),
        err: text(stderr),
    };
    assert!(!ended.err.contains("panicked"), "{ended:?}");
    ended
}
