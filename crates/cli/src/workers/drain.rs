//! `taskledger workers drain`

use super::{Output, Params, Request};
use crate::output::{counted, member};
use crate::remote::quoted;
use serde_json::Value;
use std::io;

/// Drain a worker: it gets no new tasks, finishes those that it has, and stops
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The worker
    #[arg(value_name = "NAME")]
    worker: String,
    /// Stop draining it
    #[arg(long)]
    off: bool,
}

impl Args {
    pub(super) fn request(self) -> Request {
        Request {
            method: "workers.drain",
            params: Params::default()
                .with("worker", self.worker)
                .maybe("drain", self.off.then_some(false))
                .build(),
            show,
        }
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let worker = member(result, "worker");
    let held = result.get("held").and_then(Value::as_u64).unwrap_or(0);
    let is_draining = result.get("draining").and_then(Value::as_bool) == Some(true);
    // Older servers do not send `present`.
    let is_present = result.get("present").and_then(Value::as_bool) != Some(false);
    out.line(match (is_draining, held) {
        (true, 0) if !is_present => {
            let command = format!("taskledger workers drain {} --off", quoted(&worker));
            format!(
                "no worker `{worker}` is there; one that starts under this name gets no tasks until `{}`",
                out.command(&command)
            )
        }
        (true, 0) => format!("{worker} gets no more tasks and holds none"),
        (true, held) => {
            let tasks = counted(held, "task", "tasks");
            format!("{worker} gets no more tasks; it holds {tasks}")
        }
        (false, _) => format!("{worker} gets tasks"),
    })
}
