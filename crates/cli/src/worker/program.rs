//! One process for one attempt: its input, its output, and the meaning of its exit.

use super::claim::Claim;
use super::progress::{Progress, progress};
use crate::CliError;
use crate::target::TOKEN_VARIABLE;
use futures_util::stream;
use serde_json::{Map, Value};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use taskledger_domain::json;
use taskledger_process::{Captured, Order, TERMINATE_GRACE, feed, supervise};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::{mpsc, watch};

/// Exit code of a program that says that its input is wrong: `EX_DATAERR` of `sysexits.h`.
const EXIT_NOT_RETRYABLE: i32 = 65;
/// Exit code of a program that does not do the task, by a policy: `EX_NOPERM` of `sysexits.h`.
const EXIT_REJECTED: i32 = 77;
/// Bytes of stdout that a program may write: the largest result that a server keeps.
const OUTPUT_BYTES_MAX: usize = taskledger_domain::limits::PAYLOAD_BYTES_MAX;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// Bytes of a line on stderr that are kept together.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Bytes of stderr that are passed on of one attempt; a program that writes without end would fill the log of its
/// worker.
const PASSED_BYTES_MAX: usize = 1024 * 1024;

/// The input of a program.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) task_id: String,
    pub(crate) attempt: u64,
    pub(crate) method: String,
    pub(crate) run_id: Option<String>,
    pub(crate) traceparent: Option<String>,
    pub(crate) input: Map<String, Value>,
}

impl From<&Claim> for Assignment {
    fn from(claim: &Claim) -> Self {
        Self {
            task_id: claim.task_id().to_owned(),
            attempt: claim.lease.attempt,
            method: claim.method().to_owned(),
            run_id: claim.context.run_id.clone(),
            traceparent: claim.context.traceparent.clone(),
            input: claim.input.clone(),
        }
    }
}

/// The meaning of a program's end for its task.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Completed(Map<String, Value>),
    Failed {
        error: String,
        retryable: bool,
    },
    /// The program does not do the task.
    Rejected {
        error: String,
    },
}

/// Checks that `program` can be started, as far as that can be seen before there is a task.
pub(crate) fn check(program: &OsStr, search_path: Option<OsString>) -> Result<(), CliError> {
    let is_program = |path: &Path| {
        let mode = std::fs::metadata(path).map(|it| (it.is_file(), it.permissions().mode()));
        mode.is_ok_and(|(is_file, mode)| is_file && mode & 0o111 != 0)
    };
    let path = Path::new(program);
    let found = if path.components().count() > 1 {
        is_program(path)
    } else {
        let folders = search_path.unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| is_program(&folder.join(path)))
    };
    if found {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "cannot run `{}`: expected an executable file, by its path or by its name in PATH",
        path.display()
    )))
}

/// Runs the program for a task to its end.
///
/// # Errors
/// It cannot be started or waited for.
pub(crate) async fn run(
    line: &[OsString],
    given: &Assignment,
    mut orders: mpsc::UnboundedReceiver<Order>,
    reported: Option<watch::Sender<Option<Progress>>>,
) -> io::Result<Verdict> {
    let mut command = Command::new(&line[0]);
    command
        .args(&line[1..])
        .env_remove(TOKEN_VARIABLE)
        .env_remove("TASKLEDGER_RUN_ID")
        .env_remove("TRACEPARENT")
        .env("TASKLEDGER_TASK_ID", &given.task_id)
        .env("TASKLEDGER_ATTEMPT", given.attempt.to_string())
        .env("TASKLEDGER_METHOD", &given.method)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(run) = &given.run_id {
        command.env("TASKLEDGER_RUN_ID", run);
    }
    if let Some(trace) = &given.traceparent {
        command.env("TRACEPARENT", trace);
    }
    let input = Value::Object(given.input.clone()).to_string();
    let mut child = command.spawn()?;
    let (to, from, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut stdout = Captured::new(OUTPUT_BYTES_MAX);
    let mut stderr = Stderr::new(&given.task_id, reported);
    let (stop, mut stops) = mpsc::unbounded_channel();
    let written = async {
        stdout.fill_until_full(from).await;
        // What it writes from now on is in vain, and may have no end.
        if stdout.is_truncated() {
            let _ = stop.send(Order::Terminate(TERMINATE_GRACE));
        }
    };
    let traffic = async {
        tokio::join!(feed(to, Some(input)), written, stderr.fill(errors));
    };
    let orders = stream::select(
        stream::poll_fn(move |context| orders.poll_recv(context)),
        stream::poll_fn(move |context| stops.poll_recv(context)),
    );
    let finished = supervise(child, traffic, orders).await?;
    stderr.end();
    let program = Path::new(&line[0]).display().to_string();
    // With other codes it may only say that it could not write on.
    let has_said_why = matches!(
        finished.status.code(),
        Some(EXIT_REJECTED | EXIT_NOT_RETRYABLE)
    );
    if stdout.is_truncated() && !has_said_why {
        return Ok(output(&program, &stdout));
    }
    let how = match (finished.status.code(), finished.status.signal()) {
        (Some(0), _) => return Ok(output(&program, &stdout)),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    };
    let said = stderr.kept.end_text();
    let error = if said.is_empty() {
        format!("program `{program}` {how}")
    } else {
        format!("program `{program}` {how}: {said}")
    };
    Ok(match finished.status.code() {
        Some(EXIT_REJECTED) => Verdict::Rejected { error },
        code => Verdict::Failed {
            error,
            retryable: code != Some(EXIT_NOT_RETRYABLE),
        },
    })
}

/// The output of a program that ended well, or what is wrong with it.
fn output(program: &str, stdout: &Captured) -> Verdict {
    let failed = |what: String| Verdict::Failed {
        error: format!("stdout of program `{program}` {what}"),
        retryable: false,
    };
    if stdout.is_truncated() {
        return failed(format!(
            "has more than the {OUTPUT_BYTES_MAX} bytes that an output may have; the program was stopped"
        ));
    }
    match json::read(stdout.kept()) {
        Ok(output) => Verdict::Completed(output),
        Err(error) => failed(format!("is not a JSON object: {error}")),
    }
}

/// What a program says on stderr, line by line: progress, or something for people, which goes to the stderr of
/// the worker and into the error.
struct Stderr {
    task_id: String,
    reported: Option<watch::Sender<Option<Progress>>>,
    line: Vec<u8>,
    kept: Captured,
    /// Bytes that were passed on.
    passed: usize,
}

impl Stderr {
    fn new(task_id: &str, reported: Option<watch::Sender<Option<Progress>>>) -> Self {
        Self {
            task_id: task_id.to_owned(),
            reported,
            line: Vec::new(),
            kept: Captured::new(0),
            passed: 0,
        }
    }

    /// Reads `source` to its end. What was read stays here when the future is dropped.
    async fn fill(&mut self, source: Option<impl AsyncRead + Unpin>) {
        let Some(mut source) = source else { return };
        let mut chunk = vec![0; CHUNK_BYTES];
        // A pipe that cannot be read has ended as far as we are concerned.
        while let Ok(length @ 1..) = source.read(&mut chunk).await {
            for part in chunk[..length].split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(part);
                if part.ends_with(b"\n") || self.line.len() > LINE_BYTES_MAX {
                    self.end();
                }
            }
        }
    }

    /// The line is whole.
    fn end(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        let told = self.reported.as_ref().zip(progress(text));
        if let Some((reported, progress)) = told {
            reported.send_replace(Some(progress));
        } else {
            self.pass_on(text);
            self.kept.take(&line);
        }
    }

    fn pass_on(&mut self, text: &str) {
        if self.passed >= PASSED_BYTES_MAX {
            return;
        }
        self.passed += text.len() + 1;
        // When nobody reads standard error, there is nobody to tell.
        let _ = writeln!(io::stderr(), "[{}] {text}", self.task_id);
        if self.passed >= PASSED_BYTES_MAX {
            let _ = writeln!(
                io::stderr(),
                "[{}] the program has written {PASSED_BYTES_MAX} bytes on stderr; what follows is not shown",
                self.task_id
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn stderr_is_passed_on_up_to_a_limit_and_its_end_is_kept() {
        let text = "x".repeat(1023) + "\n";
        let written = text.repeat(2 * PASSED_BYTES_MAX / 1024) + "the end\n";
        let mut stderr = Stderr::new("t1", None);
        stderr.fill(Some(written.as_bytes())).await;
        assert_eq!(stderr.passed, PASSED_BYTES_MAX);
        assert!(
            stderr.kept.end_text().ends_with("the end"),
            "{}",
            stderr.kept.end_text()
        );
    }

    fn claim() -> Claim {
        serde_json::from_value(json!({
            "task": {"id": "t1", "schemas": {"method": "m"}},
            "input": {"text": "é"}, "context": {"run_id": "r1", "traceparent": "00-ab"},
            "lease": {"token": "x", "attempt": 2, "lease_seconds": 60},
        }))
        .unwrap()
    }

    const TOO_LARGE: &str = "stdout of program `sh` has more than the 1048576 bytes that an output may have; the program was stopped";

    async fn ran(script: &str) -> Verdict {
        let (_orders, received) = mpsc::unbounded_channel();
        let line = ["sh", "-c", script].map(OsString::from);
        run(&line, &Assignment::from(&claim()), received, None)
            .await
            .unwrap()
    }

    fn error(verdict: Verdict) -> (String, bool) {
        match verdict {
            Verdict::Failed { error, retryable } => (error, retryable),
            other @ (Verdict::Completed(_) | Verdict::Rejected { .. }) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_its_environment_and_writes_its_output() {
        let script = r#"printf '{"input": %s, "about": "%s %s %s %s %s"}' "$(cat)" $TASKLEDGER_TASK_ID \
            $TASKLEDGER_ATTEMPT $TASKLEDGER_METHOD $TASKLEDGER_RUN_ID $TRACEPARENT"#;
        let expected = json!({"input": {"text": "é"}, "about": "t1 2 m r1 00-ab"});
        let Verdict::Completed(output) = ran(script).await else {
            panic!("not completed")
        };
        assert_eq!(Value::Object(output), expected);
    }

    #[tokio::test]
    async fn exit_codes_tell_what_may_be_tried_again() {
        let (said, retryable) = error(ran("echo oh dear >&2; exit 3").await);
        assert_eq!(said, "program `sh` ended with exit code 3: oh dear");
        assert!(retryable);
        let (said, retryable) = error(ran("echo bad input >&2; exit 65").await);
        assert_eq!(said, "program `sh` ended with exit code 65: bad input");
        assert!(!retryable);
        let (said, retryable) = error(ran("kill -9 $$").await);
        assert_eq!(said, "program `sh` was killed by signal 9");
        assert!(retryable);
        let error = "program `sh` ended with exit code 77: not for me".to_owned();
        let rejected = ran("echo not for me >&2; exit 77").await;
        assert_eq!(rejected, Verdict::Rejected { error });
    }

    #[tokio::test]
    async fn stdout_that_is_no_object_fails_the_task_for_good() {
        for script in ["", "echo '[1]'", "echo '{\"a\":1} x'", "echo hello"] {
            let (said, retryable) = error(ran(script).await);
            assert!(
                said.starts_with("stdout of program `sh` is not a JSON object: "),
                "{said}"
            );
            assert!(!retryable, "{script}");
        }
        let large = "printf '{\"a\":\"'; head -c 1048576 /dev/zero | tr '\\0' x; printf '\"}'";
        let (said, retryable) = error(ran(large).await);
        assert_eq!(said, TOO_LARGE);
        assert!(!retryable);
    }

    #[tokio::test]
    async fn a_program_that_writes_without_end_is_stopped_at_the_limit() {
        for script in ["yes", "trap '' PIPE; while :; do yes 2> /dev/null; done"] {
            assert_eq!(error(ran(script).await), (TOO_LARGE.to_owned(), false));
        }
    }

    #[test]
    fn progress_is_no_part_of_the_error() {
        let (reported, latest) = watch::channel(None);
        let mut stderr = Stderr::new("t", Some(reported));
        for line in ["one\n", "progress 0.25 so far\n", "progress nonsense\n"] {
            stderr.line.extend_from_slice(line.as_bytes());
            stderr.end();
        }
        assert_eq!(stderr.kept.end_text(), "one\nprogress nonsense");
        let told = latest.borrow().clone().map(|it| (it.value, it.message));
        assert_eq!(told, Some((0.25, Some("so far".to_owned()))));
    }

    #[test]
    fn a_program_that_is_not_there_is_told_before_a_task_is_claimed() {
        let path = || std::env::var_os("PATH");
        assert!(check(OsStr::new("sh"), path()).is_ok());
        assert!(check(OsStr::new("/bin/sh"), None).is_ok());
        for absent in ["sh", "./no/such/program"] {
            let told = check(OsStr::new(absent), None).unwrap_err().to_string();
            assert!(
                told.starts_with(&format!("cannot run `{absent}`: ")),
                "{told}"
            );
        }
    }
}
