//! `taskledger tasks retry`

use super::bulk::{self, Change, Options};
use super::{Api, CliError, Output, Params, Request, When};
use crate::output::member;
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Retry a failed task and the tasks that wait for it; or several
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks retry 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks retry @last --wait
  taskledger tasks retry @last --include failed
  taskledger tasks retry --all-failed-children 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks retry --label batch=nightly --since yesterday --yes

The options that select tasks are those of `tasks list`: each failed task that the list would show is retried. A
task below another one of them is retried with that one.")]
pub(super) struct Args {
    /// The failed task
    #[arg(value_name = "ID")]
    task_id: Option<String>,
    /// Follow it to its end; the exit code is that of `run`
    #[arg(long, visible_alias = "watch")]
    wait: bool,
    /// `failed`: failed tasks that were tolerated, and those behind completed tasks, run again too
    #[arg(long, value_name = "WHICH", value_parser = ["failed"])]
    include: Option<String>,
    /// The failed tasks directly below this one
    #[arg(long, value_name = "ID", conflicts_with_all = ["task_id", "parent", "status", "all", "root_only"])]
    all_failed_children: Option<String>,
    #[command(flatten)]
    several: Options,
}

impl Args {
    pub(super) const fn waits(&self) -> bool {
        self.wait
    }

    pub(super) fn is_bulk(&self) -> bool {
        // No task is named beside them.
        self.all_failed_children.is_some() || self.several.are_meant(self.task_id.as_ref())
    }

    pub(super) async fn bulk(
        self,
        api: &dyn Api,
        when: &When,
        out: &mut Output,
    ) -> Result<ExitCode, CliError> {
        if self.wait {
            let why = "--wait follows one run; leave it out for several tasks";
            return Err(CliError::Usage(why.to_owned()));
        }
        let mut several = self.several;
        if let Some(parent) = self.all_failed_children {
            several.which = several.which.with_failed_children(parent);
        }
        let change = Change {
            verb: ("retry", "retried"),
            method: "tasks.retry",
            params: Params::default().maybe("include", self.include).build(),
            from: &["failed"],
            takes_below: true,
        };
        bulk::change(&several, &change, api, when, out).await
    }

    pub(super) fn request(self) -> Result<Request, CliError> {
        bulk::is_one(self.task_id.as_ref(), &self.several.which)?;
        Ok(Request {
            method: "tasks.retry",
            params: Params::default()
                .maybe("task_id", self.task_id)
                .maybe("include", self.include)
                .build(),
            show,
        })
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let id = member(result, "task_id");
    out.line(format!("{id}  {}", member(result, "status")))?;
    show_will_run(result, out)
}

/// The tasks that the run starts: one line each, and how many are not listed.
pub(super) fn show_will_run(result: &Value, out: &mut Output) -> io::Result<()> {
    let Some(will_run) = result.get("will_run") else {
        return Ok(());
    };
    let listed = will_run["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    let count = will_run["count"].as_u64().unwrap_or_default();
    let noun = if count == 1 { "task" } else { "tasks" };
    out.line(format!("runs {count} {noun}:"))?;
    for id in listed.iter().filter_map(Value::as_str) {
        out.line(format!("  {id}"))?;
    }
    match count.saturating_sub(listed.len() as u64) {
        0 => Ok(()),
        more => out.line(format!("  and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taskledger_terminal::testing::Buffer;

    #[test]
    fn the_task_is_shown_and_not_the_root_of_its_flow() {
        let buffer = Buffer::default();
        let mut out = Output::to(Box::new(buffer.clone()), false, false);
        let result =
            json!({"root_task_id": "r", "task_id": "t", "status": "started", "run_id": "n"});
        show(&result, &mut out).unwrap();
        assert_eq!(buffer.text(), "t  started\n");
    }

    #[test]
    fn the_tasks_that_will_run_are_listed() {
        let buffer = Buffer::default();
        let mut out = Output::to(Box::new(buffer.clone()), false, false);
        let will_run = json!({"tasks": ["t", "u"], "count": 5});
        let result = json!({"task_id": "t", "status": "started", "will_run": will_run});
        show(&result, &mut out).unwrap();
        assert_eq!(
            buffer.text(),
            "t  started\nruns 5 tasks:\n  t\n  u\n  and 3 more\n"
        );
    }
}
