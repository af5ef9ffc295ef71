//! A worker in Node: a process of its own, whose handler does nothing.

use crate::args::Args;
use crate::client::Client;
use crate::process;
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Until the server knows the worker.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at who is there.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How it is told of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Connection {
    Socket,
    Poll,
}

impl Connection {
    const fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Poll => "poll",
        }
    }
}

/// A running worker; it is killed when it is dropped.
pub(super) struct Worker {
    child: Child,
    began: Instant,
    /// Processor time of its start.
    before_s: f64,
}

impl Worker {
    /// Starts it and waits until the server shows it.
    pub(super) async fn start(
        args: &Args,
        address: &str,
        connection: Connection,
        method: &str,
        window: usize,
    ) -> Result<Self, String> {
        let name = format!("bench-{}", connection.name());
        let child = Command::new(&args.node)
            .arg(&args.worker)
            .args(["--url", &format!("http://{address}"), "--method", method])
            .args(["--window", &window.to_string(), "--name", &name])
            .args(["--connection", connection.name()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", args.node.display()))?;
        let mut worker = Self {
            child,
            began: Instant::now(),
            before_s: 0.0,
        };
        let mut client = Client::connect(address).await?;
        while worker.began.elapsed() < START_PATIENCE {
            let shown = client.call("workers.list", &json!({})).await?;
            let workers = shown["workers"].as_array();
            if workers.is_some_and(|all| all.iter().any(|one| one["worker"] == name.as_str())) {
                worker.began = Instant::now();
                worker.before_s = process::cpu_seconds(worker.child.id())?;
                return Ok(worker);
            }
            if let Ok(Some(status)) = worker.child.try_wait() {
                return Err(format!(
                    "{} has ended ({status}); build the client with `npm ci && npm run build` in `clients/typescript`",
                    args.worker.display()
                ));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(format!(
            "the worker did not ask for work within {START_PATIENCE:?}"
        ))
    }

    /// Processor time since the worker was known, as percents of one core.
    pub(super) fn cpu_percent(&self) -> Result<f64, String> {
        let used = process::cpu_seconds(self.child.id())? - self.before_s;
        Ok(100.0 * used / self.began.elapsed().as_secs_f64())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
