//! Records the parts of output that attempts make before they end.

use super::Dispatcher;
use crate::application::Flows;
use crate::application::ports::Started;
use crate::engine::executor::Output;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::flow::{Append, Command, OutputPart};

/// The shortest time between two parts of the output of an attempt; the more there are, the longer.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(200);
/// Parts after which it is longer by as much again.
const SLOWER_AFTER: u32 = 100;

impl Dispatcher {
    /// Records parts of an output as they come.
    pub(super) async fn follow_output(
        &self,
        flows: &Arc<Flows>,
        started: &Started,
        output: &Output,
    ) {
        loop {
            let (number, part) = output.next().await;
            self.append(flows, started, number, part).await;
            let recorded = output.recorded();
            tokio::time::sleep(OUTPUT_INTERVAL * (1 + recorded / SLOWER_AFTER)).await;
        }
    }

    /// Records what is left when an attempt has ended.
    pub(super) async fn rest_of_output(
        &self,
        flows: &Arc<Flows>,
        started: &Started,
        output: &Output,
    ) {
        output.end();
        while let Some((number, part)) = output.ready() {
            self.append(flows, started, number, part).await;
            output.recorded();
        }
    }

    async fn append(&self, flows: &Arc<Flows>, started: &Started, number: u32, part: OutputPart) {
        let append = Command::Append(Append {
            task: started.launch.task,
            attempt: started.launch.attempt,
            lease: None,
            number,
            part,
        });
        flows.report(started, append, &self.stop).await;
    }
}
