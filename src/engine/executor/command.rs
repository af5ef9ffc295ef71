//! `command_executor`: runs a program of this machine. Off unless the configuration names the
//! programs that may be run.
//!
//! What it promises: no shell, ever (program and arguments go to the kernel as they are); only
//! programs on the allow-list; an environment that holds nothing of the server's; one process
//! group for each attempt, which is killed as a whole when the attempt ends, however it ends. Where the attempt is
//! stopped, what has left that group is ended too, as far as it can be found (`marked`).
//! What it does not promise: the allow-list is about programs, not about what they do. `tar`,
//! `find`, `env` or `awk` can start other programs and read any file that the server may read, so
//! allow what you would let the callers run by hand, or run the server as a user of its own.
//!
//! If the server itself is killed (SIGKILL), a running program is not: it is left with closed
//! pipes and usually ends at its next write. A later server stops it before anything else begins: the next one on its
//! data folder (`orphans`) or, with a database, the next one of the same machine (`machine`). A server of that machine
//! that runs already stops it only before it starts a second or later attempt of a command. Its attempt counts as
//! interrupted and is not repeated unless the task has retries left, since this executor is not idempotent.
//!
//! `options` holds the configuration, `request` reads inputs, `process` runs. `crates/process` waits and kills, and
//! keeps output within bounds.

mod machine;
mod marked;
mod options;
mod orphans;
mod process;
mod request;
#[cfg(test)]
mod tests;

pub use machine::{MachineFolder, stop_left};
pub use options::{Options, OptionsError, Records};
pub use orphans::{FOLDER, stop_orphans};
pub use taskledger_process::{DRAIN_GRACE, TERMINATE_GRACE};

use super::{Concurrency, Description, Executor, ExecutorError, Job, references, retry_codes};
use crate::application::api::COMMAND_EXECUTOR;
use crate::engine::secrets::{Places, Scrubber};
use async_trait::async_trait;
use options::Resolved;
use orphans::Note;
use process::Ended;
use request::Request;
use serde_json::{Map, Value, json};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use taskledger_auth::SecretName;
use taskledger_domain::{Violation, json};
use taskledger_process::Captured;
use tokio::process::Command;
use tokio::time::Instant;

/// Where inputs may name secrets.
const PLACES: Places = Places {
    members: &[("env", None)],
    told: "as the value of a variable in `env`",
};
/// Bytes of JSON text that stdout, stderr and the parsed JSON may each take in a result, so that
/// together they fit into one.
const TEXT_BYTES_MAX: usize = 320 * 1024;

/// Runs a program from the allow-list.
///
/// Inputs: `program`, `args` (texts), `env` (texts or references to secrets, by name), `cwd`, `stdin` (text),
/// `parse_json`.
/// Result: `{exit_code: 0, stdout, stderr, stdout_bytes, stderr_bytes, stdout_truncated,
/// stderr_truncated, duration_ms}`, and `json` when `parse_json` is true; then stdout that is no
/// JSON object fails the attempt. Any exit code but 0, and any signal, fails the attempt; the
/// error has the code and the end of stderr. No attempt follows after a code that
/// `params.retry.non_retryable_exit_codes` lists.
#[derive(Debug)]
pub struct CommandExecutor {
    options: Resolved,
}

impl CommandExecutor {
    /// Looks all programs up, once.
    ///
    /// # Errors
    /// A program or the working directory that the configuration names does not exist.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Ok(Self {
            options: options.resolve()?,
        })
    }
}

#[async_trait]
impl Executor for CommandExecutor {
    fn describe(&self) -> Description {
        let programs: Vec<_> = self.options.programs.keys().collect();
        Description {
            name: COMMAND_EXECUTOR.to_owned(),
            aliases: Vec::new(),
            summary: "Runs a program of the server's machine, without a shell.".to_owned(),
            idempotent: false,
            pure: false,
            input_schema: Some(request::schema(&programs)),
            concurrency: Concurrency::Cores,
        }
    }

    fn starts_programs(&self) -> bool {
        true
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn check(&self, inputs: &Map<String, Value>) -> Vec<Violation> {
        let mut faults = PLACES.check(inputs);
        if let Some(value @ Value::String(program)) = inputs.get("program")
            && !self.options.programs.contains_key(program)
        {
            let reason = "is not a program that this server allows";
            let expected = self.options.allowed();
            faults.push(Violation::of("program", reason, expected, value));
        }
        faults
    }

    fn secrets(&self, inputs: &Map<String, Value>) -> Vec<SecretName> {
        PLACES.names(inputs)
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let inputs = references::filled(&PLACES, &job)?;
        let mut request = Request::read(&inputs)?;
        let stdin = request.stdin.take();
        let scrubber = job.secrets.scrubber();
        let path = self.options.programs.get(&request.program).ok_or_else(|| {
            ExecutorError::new(format!(
                "program `{}` is not allowed, expected {}",
                request.program,
                self.options.allowed()
            ))
        })?;
        let cwd = self.working_directory(request.cwd.as_deref()).await?;
        let mut command = Command::new(path);
        command
            .args(&request.args)
            .current_dir(&cwd)
            .env_clear()
            .envs(&request.env)
            .env("PATH", &self.options.search_path)
            .env("TASKLEDGER_TASK_ID", job.task_id.to_string())
            .env("TASKLEDGER_RUN_ID", job.run_id.to_string())
            .env("TASKLEDGER_ATTEMPT", job.attempt.to_string())
            .env("TASKLEDGER_IDEMPOTENCY_KEY", job.idempotency_key())
            .env(marked::VARIABLE, marked::id(job.task_id, job.attempt));
        for (name, value) in [("HOME", cwd.as_os_str()), ("LANG", "C.UTF-8".as_ref())] {
            if !request.env.contains_key(name) {
                command.env(name, value);
            }
        }
        if let Some(traceparent) = &job.traceparent {
            command.env("TRACEPARENT", &**traceparent);
        }
        // This may take half a minute, if another server is stopping programs. Who stops the attempt does not wait.
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => return Err(stopped(&request.program)),
            () = self.options.records.before(job.attempt) => {}
        }
        let folder = self.options.records.folder();
        let note = folder.and_then(|folder| Note::begin(folder, job.task_id, job.attempt));
        let started = Instant::now();
        let ended = process::run(
            command,
            stdin,
            || Captured::scrubbed(self.options.output_bytes_max, scrubber.clone()),
            &job.cancel,
            note,
        )
        .await
        .map_err(|error| {
            ExecutorError::new(format!("cannot run program `{}`: {error}", request.program))
        })?;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if ended.stopped {
            // Its group is gone; what has left the group is not.
            marked::end(job.task_id, job.attempt).await;
        }
        let answer = result(&request, &ended, duration_ms, scrubber);
        let code = ended
            .status
            .code()
            .and_then(|code| u64::try_from(code).ok());
        let ends = retry_codes(&job.params, "non_retryable_exit_codes").unwrap_or_default();
        answer.map_err(|error| match code {
            Some(code) if !ended.stopped && ends.contains(&code) => error.not_retryable(),
            Some(_) | None => error,
        })
    }
}

impl CommandExecutor {
    /// `cwd` below the configured root, or below the server's working directory without one.
    async fn working_directory(&self, cwd: Option<&Path>) -> Result<PathBuf, ExecutorError> {
        let base = self.options.root.clone();
        let wanted = match (base, cwd) {
            (Some(base), Some(cwd)) => base.join(cwd),
            (Some(base), None) => return Ok(base),
            (None, cwd) => cwd.unwrap_or_else(|| Path::new(".")).to_owned(),
        };
        let shown = wanted.display();
        let real = tokio::fs::canonicalize(&wanted).await.map_err(|error| {
            ExecutorError::new(format!("cannot enter `cwd` `{shown}`: {error}"))
        })?;
        match &self.options.root {
            Some(root) if !real.starts_with(root) => Err(ExecutorError::new(format!(
                "`cwd` `{shown}` is outside of the directory that is set aside for commands"
            ))),
            Some(_) | None => Ok(real),
        }
    }
}

/// Why an attempt fails that was told to stop.
fn stopped(program: &str) -> ExecutorError {
    ExecutorError::new(format!("program `{program}` was stopped"))
}

fn result(
    request: &Request,
    ended: &Ended,
    duration_ms: u64,
    scrubber: &Scrubber,
) -> Result<Value, ExecutorError> {
    let program = &request.program;
    if ended.stopped {
        return Err(stopped(program));
    }
    let how = match (ended.status.code(), ended.status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("ended with exit code {code}")),
        (None, Some(signal)) => Some(format!("was killed by signal {signal}")),
        (None, None) => Some("ended in an unknown way".to_owned()),
    };
    if let Some(how) = how {
        let end = ended.stderr.end_text();
        return Err(ExecutorError::new(if end.is_empty() {
            format!("program `{program}` {how}")
        } else {
            format!("program `{program}` {how}: {end}")
        }));
    }
    let (stdout, stdout_cut) = ended.stdout.text(TEXT_BYTES_MAX);
    let (stderr, stderr_cut) = ended.stderr.text(TEXT_BYTES_MAX);
    let mut result = json!({
        "exit_code": 0,
        "stdout": stdout,
        "stderr": stderr,
        "stdout_bytes": ended.stdout.total(),
        "stderr_bytes": ended.stderr.total(),
        "stdout_truncated": stdout_cut,
        "stderr_truncated": stderr_cut,
        "duration_ms": duration_ms,
    });
    if request.parse_json {
        result["json"] = json_of(program, &ended.stdout, scrubber)?;
    }
    Ok(result)
}

fn json_of(program: &str, stdout: &Captured, scrubber: &Scrubber) -> Result<Value, ExecutorError> {
    let fail = |what: &str| {
        ExecutorError::new(format!(
            "stdout of program `{program}` {what}, but `parse_json` asks for a JSON object"
        ))
    };
    if stdout.is_truncated() {
        return Err(fail("is too long to keep"));
    }
    let parsed: Map<String, Value> = json::read(stdout.kept())
        .map_err(|error| fail(&format!("is not a JSON object ({error})")))?;
    let parsed = scrubber.value(Value::Object(parsed));
    if serde_json::to_string(&parsed).map_or(usize::MAX, |text| text.len()) > TEXT_BYTES_MAX {
        return Err(fail("is too large as JSON"));
    }
    Ok(parsed)
}
