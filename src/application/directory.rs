//! Finds the flow that a task belongs to. A task never changes its flow, so what was found stays true until the flow is
//! archived.

use super::error::Error;
use super::rows::RowCache;
use crate::clock::SharedClock;
use crate::store::{ClaimKey, EventStore};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use taskledger_domain::{FlowId, TaskId};

/// Tasks whose flow is remembered; oldest out first. About 5 MB when full.
const ENTRIES_MAX: usize = 50_000;

/// Finds flows through memory first, then through the log's claims.
#[derive(Debug)]
pub struct Directory {
    store: Arc<dyn EventStore>,
    clock: SharedClock,
    rows: Arc<RowCache>,
    found: Mutex<(HashMap<TaskId, FlowId>, VecDeque<TaskId>)>,
}

impl Directory {
    /// A directory that remembers nothing yet.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>, clock: SharedClock, rows: Arc<RowCache>) -> Self {
        Self {
            store,
            clock,
            rows,
            found: Mutex::default(),
        }
    }

    /// Forgets what belongs to these flows, which were archived: the ids of their tasks may come again.
    pub fn forget(&self, gone: &HashSet<FlowId>) {
        let mut found = self
            .found
            .lock()
            .expect("no code panics while it holds the directory");
        let (flows, order) = &mut *found;
        flows.retain(|_, flow| !gone.contains(flow));
        order.retain(|task| flows.contains_key(task));
    }

    /// The flow that has or had this task; `None` when no task ever had the id. Absence is never
    /// remembered. Cost: O(1), at worst two look-ups in the log.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub async fn flow_of(&self, task: TaskId) -> Result<Option<FlowId>, Error> {
        if let Some(flow) = self.rows.flow_of(task) {
            return Ok(Some(flow));
        }
        if let Some(flow) = self
            .found
            .lock()
            .expect("no code panics while it holds the directory")
            .0
            .get(&task)
        {
            return Ok(Some(*flow));
        }
        let flow = if self.store.stream_head(task.as_flow()).await?.is_some() {
            task.as_flow()
        } else {
            let held = self
                .store
                .claims(&[ClaimKey::Task(task)], self.clock.now())
                .await?;
            let Some(flow) = held
                .into_iter()
                .next()
                .flatten()
                .and_then(|value| FlowId::parse(&value).ok())
            else {
                return Ok(None);
            };
            flow
        };
        let mut found = self
            .found
            .lock()
            .expect("no code panics while it holds the directory");
        let (flows, order) = &mut *found;
        if flows.insert(task, flow).is_none() {
            order.push_back(task);
            if order.len() > ENTRIES_MAX
                && let Some(oldest) = order.pop_front()
            {
                flows.remove(&oldest);
            }
        }
        Ok(Some(flow))
    }
}
