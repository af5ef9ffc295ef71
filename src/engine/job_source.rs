//! What an attempt needs to know: its specification, its name, how its dependencies ended. From
//! confirmed rows in memory, else from the log, in one read.

use super::executor::DependencyOutcome;
use crate::application::ports::Started;
use crate::application::{RowCache, facts};
use crate::store::{self, EventStore};
use std::sync::Arc;
use taskledger_domain::flow::{Event, Specification};
use taskledger_domain::schedule::Launch;
use taskledger_domain::task::Status;
use taskledger_domain::task::spec::timeout_ms;
use taskledger_domain::{Recorded, Version};
use taskledger_projections::TaskRow;

/// Everything about an attempt that its start does not say.
#[derive(Debug)]
pub struct Material {
    /// The task's name.
    pub name: String,
    /// What it executes.
    pub specification: Specification,
    /// In the order in which the task lists them.
    pub dependencies: Vec<DependencyOutcome>,
}

/// See the module.
#[derive(Debug)]
pub struct JobSource {
    store: Arc<dyn EventStore>,
    rows: Arc<RowCache>,
}

impl JobSource {
    /// A source over the log and the rows.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>, rows: Arc<RowCache>) -> Self {
        Self { store, rows }
    }

    /// The material of a started attempt. Cost: O(dependencies).
    ///
    /// # Errors
    /// The log cannot be read, or does not hold what the flow's state says.
    pub async fn material(&self, started: &Started) -> Result<Material, store::Error> {
        let launch = &started.launch;
        let tasks = std::iter::once(launch.task).chain(launch.dependencies.iter().map(|d| d.0));
        if let Some(rows) = self.rows.rows(started.flow, tasks)
            && rows[0].attempt == launch.attempt
            && rows[0].status == Status::InProgress
            && rows[1..]
                .iter()
                .all(|dependency| dependency.status.is_terminal())
        {
            return Ok(from_rows(&rows, launch));
        }
        let dependencies = launch
            .dependencies
            .iter()
            .flat_map(|&(_, name_at, outcome_at)| [name_at, outcome_at]);
        let versions: Vec<Version> = [launch.spec_at, launch.name_at]
            .into_iter()
            .chain(dependencies)
            .collect();
        let events = self.store.read_versions(started.flow, &versions).await?;
        from_events(&events, launch)
    }
}

fn from_rows(rows: &[Arc<TaskRow>], launch: &Launch) -> Material {
    let row = &rows[0];
    let dependencies = rows[1..].iter().map(|d| DependencyOutcome {
        id: d.id,
        name: d.name.to_string(),
        status: d.status,
        result: d.result.as_ref().map(|p| p.to_map()),
        error: d.error.as_deref().map(str::to_owned),
    });
    Material {
        name: row.name.to_string(),
        dependencies: dependencies.collect(),
        specification: Specification {
            inputs: row.inputs.clone(),
            schemas: row.schemas.clone(),
            params: row.params.clone(),
            method: Some(launch.method.clone()),
            retry: None,
            timeout_ms: row.params.as_ref().and_then(|p| timeout_ms(&p.to_map())),
            deadline: row.deadline,
        },
    }
}

fn from_events(events: &[Arc<Recorded>], launch: &Launch) -> Result<Material, store::Error> {
    let at = |k: usize| {
        events.get(k).ok_or_else(|| {
            store::Error::Unavailable("the log gave fewer events than asked for".to_owned())
        })
    };
    let corrupt = |event: &Recorded, expected: &str| store::Error::Corrupt {
        position: event.position,
        reason: format!("the event does not hold {expected}"),
    };
    let name_of = |event: &Recorded| {
        let name = facts::name(&event.event).ok_or_else(|| corrupt(event, "a name"));
        name.map(str::to_owned)
    };
    let specification = facts::specification(&at(0)?.event)
        .ok_or(corrupt(at(0)?, "a specification"))?
        .clone();
    let name = name_of(at(1)?)?;
    let mut dependencies = Vec::with_capacity(launch.dependencies.len());
    for (k, &(id, ..)) in launch.dependencies.iter().enumerate() {
        let (name, outcome) = (name_of(at(2 + 2 * k)?)?, at(3 + 2 * k)?);
        let (status, result, error) = if let Event::TaskCompleted(e) = outcome.event.as_ref() {
            (Status::Completed, Some(e.result.to_map()), None)
        } else if let Event::TaskFailed(e) = outcome.event.as_ref() {
            (Status::Failed, None, Some(e.error.clone()))
        } else if let Event::TaskCancelled(e) = outcome.event.as_ref() {
            (Status::Cancelled, None, Some(e.error.clone()))
        } else {
            return Err(corrupt(outcome, "an outcome"));
        };
        dependencies.push(DependencyOutcome {
            id,
            name,
            status,
            result,
            error,
        });
    }
    Ok(Material {
        name,
        specification,
        dependencies,
    })
}
