//! The name of a task and what its `schemas` declare, for whoever runs it.

use super::App;
use super::error::Error;
use super::facts;
use super::sending::engine_metadata;
use super::stream_reader::StreamReader;
use std::sync::Arc;
use taskledger_domain::flow::{Argument, Flow, Refusal};
use taskledger_domain::{FlowId, Payload, Recorded, TaskId, Version};
use taskledger_projections::TaskRow;

impl App {
    /// Name and `schemas` of a task of this node, from memory if its row is `current`, else from the log: read
    /// models may be behind. Cost: O(1), or a turn of the flow and two events.
    ///
    /// # Errors
    /// [`Error`]; `Refused` when there is no such task.
    pub(super) async fn declared(
        &self,
        (flow, task): (FlowId, TaskId),
        current: impl Fn(&TaskRow) -> bool,
    ) -> Result<(Arc<str>, Option<Payload>), Error> {
        let rows = self.rows.rows(flow, [task]);
        let row = rows.and_then(|mut rows| rows.pop());
        if let Some(row) = row.filter(|row| current(row)) {
            return Ok((row.name.clone(), row.schemas.clone()));
        }
        let look = move |state: &Flow| state.task(task).map(|it| (it.name_at, it.spec_at));
        let said_at = self.flows.look(flow, engine_metadata(), look).await?;
        let (name_at, spec_at) = said_at.ok_or_else(|| Refusal::not_found(Argument::Task, task))?;
        let (mut name, mut schemas) = (Arc::from(""), None);
        let take = |recorded: &Recorded| {
            if let Some(said) = facts::name(&recorded.event)
                && recorded.version == name_at
            {
                name = Arc::from(said);
            }
            if let Some(said) = facts::specification(&recorded.event)
                && recorded.version == spec_at
            {
                schemas.clone_from(&said.schemas);
            }
        };
        let both = [name_at.min(spec_at), name_at.max(spec_at)];
        let versions: &[Version] = if name_at == spec_at {
            &both[..1]
        } else {
            &both
        };
        StreamReader::of(&*self.flows.store, flow)
            .versions(versions, take)
            .await?;
        Ok((name, schemas))
    }
}
