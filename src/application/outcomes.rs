//! Turns what the engine reports into commands: the only way by which outcomes reach a flow.

use super::error::Error;
use super::flows::Flows;
use super::mailbox::Order;
use super::ports::Started;
use super::slots::Held;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Metadata;
use taskledger_domain::flow::{Command, Kind, Outdated};
use tokio_util::sync::CancellationToken;

/// Pause before an outcome that could not be recorded is reported again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

impl Flows {
    /// Records something about an attempt, trying again until it is recorded, refused because it
    /// is of no interest any more, the flow belongs to another node, or `stop` says that this server
    /// ends.
    pub async fn report(
        self: &Arc<Self>,
        started: &Started,
        command: Command,
        stop: &CancellationToken,
    ) {
        self.insist(started, command, None, stop).await;
    }

    /// The same for the end of an attempt, whose slot becomes free in the turn that decides it.
    pub async fn report_end(
        self: &Arc<Self>,
        started: &Started,
        command: Command,
        slot: Held,
        stop: &CancellationToken,
    ) {
        self.insist(started, command, Some(slot), stop).await;
    }

    /// What is reported of an attempt, as an order of the engine.
    pub(super) fn order_about(&self, started: &Started, command: Command) -> Order {
        let metadata = Metadata {
            actor: Arc::from("engine"),
            correlation: started.metadata.correlation.clone(),
            causation: Some(started.event),
            trace: started.metadata.trace.clone(),
        };
        self.order(Some(command), None, metadata, true)
    }

    async fn insist(
        self: &Arc<Self>,
        started: &Started,
        command: Command,
        mut slot: Option<Held>,
        stop: &CancellationToken,
    ) {
        loop {
            let mut order = self.order_about(started, command.clone());
            order.slot = slot.take();
            match self.ask(started.flow, order).await {
                Ok(_) => return,
                Err(Error::Outdated(Outdated::Attempt)) => return,
                Err(Error::Refused(refused)) => {
                    if refused.refusal.kind() != Kind::NotFound {
                        tracing::error!(task.id = %started.launch.task, reason = refused.refusal.kind().as_str(), detail = ?refused, "an outcome was refused");
                    }
                    return;
                }
                // The owner of the flow ends the attempt as interrupted.
                Err(Error::Elsewhere(_)) => return,
                Err(error) => {
                    tracing::warn!(task.id = %started.launch.task, error = %error, "an outcome is not recorded yet");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(AGAIN_AFTER) => {}
            }
        }
    }
}
