//! The server under measurement: a process of its own.

use crate::client::{Client, Request, server_arguments};
use crate::place::Place;
use crate::process;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// From the start of the process to its first answer, at most: the log may be long.
const START_PATIENCE: Duration = Duration::from_secs(120);
/// What a server may take to end by itself.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// From the start of the process to the first answer.
    pub(crate) started_in: Duration,
}

impl Server {
    /// Starts the program and waits for its first answer.
    pub(crate) async fn start(program: &Path, place: &Place) -> Result<Self, String> {
        Self::start_with(program, place, &[]).await
    }

    /// The same with more arguments.
    pub(crate) async fn start_with(
        program: &Path,
        place: &Place,
        arguments: &[&str],
    ) -> Result<Self, String> {
        Self::start_for(program, place, arguments, None).await
    }

    /// The same for a server that lets nobody in without a token: this one waits for its first answer.
    pub(crate) async fn start_for(
        program: &Path,
        place: &Place,
        arguments: &[&str],
        token: Option<&String>,
    ) -> Result<Self, String> {
        let health = Request::call("system.health", &serde_json::json!({}));
        let health = match token {
            Some(token) => health.by(token),
            None => health,
        };
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let began = Instant::now();
        let child = Command::new(program)
            .args(["serve", "--listen", &address, "--log-level", "error"])
            .args(place.arguments())
            .args(arguments)
            .args(server_arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| {
                format!(
                    "{}: {e}; build it with `cargo build --release`",
                    program.display()
                )
            })?;
        let mut server = Self {
            child,
            address,
            started_in: Duration::ZERO,
        };
        while began.elapsed() < START_PATIENCE {
            if let Ok(mut client) = Client::connect(&server.address).await {
                client.send(&health).await?;
                server.started_in = began.elapsed();
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("the server has ended: {status}"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Err(format!(
            "the server did not answer within {START_PATIENCE:?}"
        ))
    }

    /// Resident memory.
    pub(crate) fn memory_mb(&self) -> Result<f64, String> {
        Ok(process::memory_kib(self.child.id())? / 1024.0)
    }

    /// What of it belongs to no file.
    pub(crate) fn own_memory_mb(&self) -> Result<f64, String> {
        Ok(process::own_memory_kib(self.child.id())? / 1024.0)
    }

    /// Seconds of processor time so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, String> {
        process::cpu_seconds(self.child.id())
    }

    /// Resident memory at its highest.
    pub(crate) fn peak_memory_mb(&self) -> Result<f64, String> {
        Ok(process::peak_memory_kib(self.child.id())? / 1024.0)
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn end(mut self) -> Result<(), String> {
        let asked = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(asked, rustix::process::Signal::TERM)
            .map_err(|e| e.to_string())?;
        let began = Instant::now();
        while began.elapsed() < END_PATIENCE {
            if self.child.try_wait().map_err(|e| e.to_string())?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err(format!("the server did not end within {END_PATIENCE:?}"))
    }

    pub(crate) fn stop(mut self) {
        self.kill();
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody uses now.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    Ok(listener.local_addr().map_err(|e| e.to_string())?.port())
}
