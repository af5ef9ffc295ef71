//! Makes flows with open runs be looked at: those of newly gained partitions, all flows after a single server starts,
//! and, from time to time, those that nobody attends to. Needs no input, does no harm when there is nothing to do.

use crate::application::App;
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use taskledger_projections::{self as projections, OpenRun};
use tokio_util::sync::CancellationToken;

/// Flows with open runs that are read at a time.
const PAGE: u32 = 256;
/// Flows that are loaded at once.
const AT_ONCE: usize = 16;
/// How often flows with open runs are looked for that nobody attends to.
const EVERY: Duration = Duration::from_secs(30);
/// Pause before a log that does not answer is asked again for its end.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(super) async fn reconcile(app: Arc<App>, stop: CancellationToken) {
    let flows = &app.flows;
    let mut unattended = tokio::time::interval(EVERY);
    // The first tick comes at once, when nothing has come yet.
    unattended.reset();
    let rounds = async {
        loop {
            let woken = tokio::select! {
                arrived = flows.arrived() => {
                    let all_known = await_read_models(&app).await;
                    let woken = wake_open_runs(&app, |run| arrived.has(run.partition)).await;
                    if woken.is_err() {
                        tokio::time::sleep(ASK_AGAIN_AFTER).await;
                    }
                    if woken.is_err() || !all_known {
                        // Those of them that have left meanwhile say so when they are looked at.
                        flows.gained(&arrived);
                    }
                    woken
                }
                _ = unattended.tick() => {
                    wake_open_runs(&app, |run| !flows.attends(run.flow_id)).await
                }
            };
            if let Err(error) = woken {
                tracing::error!(error = %error, "open runs cannot be read");
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = rounds => {}
    }
}

/// Waits until the read models show everything that was in the log when partitions came, whoever
/// wrote it, but no longer than [`EVERY`]: the server that folds may have stopped, of which nobody is
/// told here, and what is known need not wait for that. Whether there is nothing more to wait for.
async fn await_read_models(app: &App) -> bool {
    let head = loop {
        match app.head().await {
            Ok(head) => break head,
            Err(error) => {
                tracing::warn!(error = %error, "flows that were running wait for the log");
                tokio::time::sleep(ASK_AGAIN_AFTER).await;
            }
        }
    };
    match app.projections.wait_for(head, EVERY).await {
        Ok(()) => true,
        Err(lagging) if lagging.stopped => {
            tracing::error!(error = %lagging, "only the open runs that the read models know go on");
            true
        }
        Err(lagging) => {
            tracing::warn!(error = %lagging, "some flows that were running may wait for the read models");
            false
        }
    }
}

async fn wake_open_runs(
    app: &App,
    wanted: impl Fn(&OpenRun) -> bool,
) -> Result<(), projections::Error> {
    let flows = &app.flows;
    let mut after = 0;
    loop {
        let page = app.queries.open_runs(after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.created_position;
        let wanted = page.iter().filter(|run| wanted(run)).map(|run| run.flow_id);
        futures_util::stream::iter(wanted)
            .for_each_concurrent(AT_ONCE, |flow| flows.wake_and_wait(flow))
            .await;
    }
}
