//! The inputs of an attempt that a worker has claimed, with the results that are wired to them and the trigger of its
//! run.

use crate::application::App;
use crate::application::api::workflows::RunOf;
use crate::application::api::{Consistency, Error};
use crate::application::context::Context;
use crate::application::ports::DEPENDENCY_BYTES_MAX;
use crate::application::task_names::TaskNames;
use futures_util::{StreamExt, stream};
use std::collections::{HashMap, HashSet};
use taskledger_domain::contract::{Breach, Broken};
use taskledger_domain::flow::Specification;
use taskledger_domain::task::wiring::{AttemptIds, InputFault, Wiring};
use taskledger_domain::{Payload, TaskId};
use taskledger_projections::TaskRow;

/// Results that one claim reads at the same time.
const RESULTS_AT_ONCE: usize = 16;

/// Stands in the `schemas` of phases, and may stand in others.
const PHASE_OF: &str = "\"workflow\"";

impl App {
    /// The inputs of an attempt with the results that are wired to them, or what is wrong with them by now. Cost:
    /// O(inputs) when there is a schema, and a look at each task whose result is wired.
    ///
    /// # Errors
    /// A task cannot be read.
    pub(super) async fn inputs_of(
        &self,
        context: &Context,
        row: &TaskRow,
    ) -> Result<Result<Payload, Unfit>, Error> {
        let specification = specification_of(row);
        let specification = match self.wired(context, specification, row).await? {
            Ok(specification) => specification,
            Err(InputFault::Unresolvable(unresolvable_refs)) => {
                let found = Broken::Inputs {
                    unresolvable_refs,
                    incomplete: Vec::new(),
                };
                let mut names = TaskNames::new(self, row.flow_id);
                let breach = names.breach(row.id, &found).await?;
                return Ok(Err(Unfit::Breach(Box::new(breach))));
            }
            Err(fault @ (InputFault::Unlike(_) | InputFault::Unfit(_))) => {
                return Ok(Err(Unfit::Said(fault.to_string())));
            }
        };
        let inputs = specification.inputs.clone();
        let owner = self.declaring_owner(context, row.flow_id).await?;
        let faults = self
            .validation
            .check(owner.as_deref(), vec![(Vec::new(), specification)])
            .await;
        if faults.is_empty() {
            return Ok(Ok(inputs));
        }
        let list = faults.iter().map(|v| {
            let (field, reason, expected) = (&v.field, &v.reason, &v.expected);
            format!("`{field}`: {reason}, expected {expected}")
        });
        let list: Vec<String> = list.collect();
        let said = format!("inputs do not conform: {}", list.join("; "));
        Ok(Err(Unfit::Said(said)))
    }

    /// What the run was started with of which a task is a phase: the inputs of the group above it. Cost: O(1), or a
    /// read.
    pub(super) async fn trigger_of(
        &self,
        context: &Context,
        row: &TaskRow,
    ) -> Result<Option<Payload>, Error> {
        let is_phase = |schemas: &Payload| schemas.as_str().contains(PHASE_OF);
        let Some(parent) = row
            .parent_id
            .filter(|_| row.schemas.as_ref().is_some_and(is_phase))
        else {
            return Ok(None);
        };
        let held = self.rows.rows(row.flow_id, [parent]);
        let run = match held.and_then(|mut rows| rows.pop()) {
            Some(run) => run,
            None => self.get(context, parent, Consistency::Strong).await?.row,
        };
        let params = run.params.as_ref().map(Payload::to_map);
        let is_run = params.is_some_and(|params| RunOf::read(&params).is_some());
        Ok(is_run.then(|| run.inputs.clone()))
    }

    /// A specification with the inputs that are wired to results.
    async fn wired(
        &self,
        context: &Context,
        specification: Specification,
        row: &TaskRow,
    ) -> Result<Result<Specification, InputFault>, Error> {
        let wiring = Wiring::of(&specification);
        if wiring.is_empty() {
            return Ok(Ok(specification));
        }
        // Nothing but dependencies, whatever a reference says: they are of the same flow.
        let of_flow: HashSet<TaskId> = row.dependencies.iter().map(|d| d.id).collect();
        let (mut results, mut bytes) = (HashMap::new(), 0);
        let sources = wiring.sources().filter(|task| of_flow.contains(task));
        let sources: HashSet<TaskId> = sources.collect();
        let reading = sources.into_iter().map(|task| async move {
            let view = self.get(context, task, Consistency::Strong).await;
            (task, view)
        });
        let mut reading = stream::iter(reading).buffer_unordered(RESULTS_AT_ONCE);
        while let Some((task, view)) = reading.next().await {
            let row = match view {
                Ok(view) => view.row,
                // As if it had no result.
                Err(Error::Refused(_)) => continue,
                Err(error) => return Err(error),
            };
            let Some(result) = &row.result else { continue };
            bytes += result.as_str().len();
            if bytes > DEPENDENCY_BYTES_MAX {
                let reason = format!("the results are larger than {DEPENDENCY_BYTES_MAX} bytes");
                return Ok(Err(InputFault::Unfit(reason)));
            }
            results.insert(task, result.to_map());
        }
        let Some(run) = row.run_id else {
            return Ok(Err(InputFault::Unfit("no run has the task".to_owned())));
        };
        let attempt = AttemptIds {
            task: row.id,
            run,
            attempt: row.attempt,
        };
        let result = |task| results.get(&task);
        let inputs = wiring.inputs(&specification.inputs, attempt, result);
        Ok(inputs.map(|inputs| specification.with_inputs(inputs)))
    }
}

/// Why no worker can be given what a task needs.
pub(super) enum Unfit {
    Said(String),
    /// Results lack it.
    Breach(Box<Breach>),
}

pub(super) fn specification_of(row: &TaskRow) -> Specification {
    Specification {
        inputs: row.inputs.clone(),
        schemas: row.schemas.clone(),
        params: row.params.clone(),
        method: row.method.as_deref().map(str::to_owned),
        retry: None,
        timeout_ms: None,
        deadline: row.deadline,
        remote: true,
        start_within_ms: None,
        cancel_grace_ms: None,
        start_at: None,
        delay_ms: None,
    }
}
