//! The program, run to its end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The program that is tested.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_taskledger");

/// How long a command may take before the test counts it as hanging.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// The program without the settings of whoever runs the tests.
pub(crate) fn command() -> Command {
    command_of(PROGRAM)
}

/// Another program, with as little around it.
pub(crate) fn command_of(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME"));
    command.kill_on_drop(true);
    command
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Standard output of a command that must succeed.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Standard error of a command that must end with `code`.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}

/// Runs the program with these arguments.
pub(crate) async fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    run_with(arguments, Path::new("."), "").await
}

/// Runs the program in `folder` with `input` on its standard input.
pub(crate) async fn run_with<A: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = A>,
    folder: &Path,
    input: &str,
) -> Ended {
    let mut command = command();
    command.args(arguments).current_dir(folder);
    end(command, input).await
}

/// Runs a prepared command to its end.
pub(crate) async fn end(mut command: Command, input: &str) -> Ended {
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
