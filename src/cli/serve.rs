//! `taskledger serve`

use super::CliError;
use crate::clock::{SharedClock, SystemClock};
use crate::config::ServerConfig;
use crate::engine::executor::Registry;
use crate::server::{self, Server};
use crate::transport::{http, system::Ready};
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Start the server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger serve
  taskledger serve --listen 0.0.0.0:8000 --data-dir /var/lib/taskledger
  taskledger serve --allow-command make --allow-command git --executor-limit command_executor=4

Every option can also be set by the variable shown with it. Stops on Ctrl-C and SIGTERM.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ServerConfig,
}

/// Runs the server until it is told to stop.
pub(super) async fn serve(args: Args) -> Result<ExitCode, CliError> {
    crate::telemetry::init(&args.config.log)
        .map_err(|error| CliError::Usage(format!("--log-level: {error}")))?;
    start_server(args.config).await
}

/// Opens the data folder, then the door, and runs until Ctrl-C, SIGTERM, or another server takes over.
async fn start_server(config: ServerConfig) -> Result<ExitCode, CliError> {
    let clock: SharedClock = Arc::new(SystemClock::default());
    let failed = |error: &dyn std::error::Error| CliError::Failed(error.to_string());
    let registry =
        server::executors(Registry::builder(), &config.engine).map_err(|e| failed(&e))?;
    let server = Server::open(&config.engine.data_dir, registry, clock.clone())
        .await
        .map_err(|e| failed(&e))?;
    let ready = Arc::new(Ready(server.context().clone()));
    let dispatcher = server.dispatcher().clone();
    let bound = http::Service::bind(config.http(), dispatcher, ready, clock).await;
    let (service, handle) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            server.close().await;
            return Err(failed(&error));
        }
    };
    let shutdown = server.stopped().child_token();
    let signals = tokio::spawn(stop_on_signal(shutdown.clone()));
    tracing::info!(address = %handle.local_addr, data = %config.engine.data_dir.display(), "listening");
    service.run(shutdown).await;
    signals.abort();
    let taken_over = server.stopped().is_cancelled();
    server.close().await;
    tracing::info!("stopped");
    Ok(if taken_over {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Ctrl-C or SIGTERM: stop, finishing what is under way. A second one ends the process at once,
/// which loses nothing that was answered.
async fn stop_on_signal(shutdown: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        tracing::warn!(
            "signals cannot be listened to; stop the process with SIGKILL, which is safe"
        );
        return;
    };
    for signal in 0..2 {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if signal == 0 {
            tracing::info!("stopping");
            shutdown.cancel();
        }
    }
    std::process::exit(130);
}
