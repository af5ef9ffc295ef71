//! What an attempt needs to know: its specification, its name, how its dependencies ended. From
//! confirmed rows in memory, else from the log, some hundred at a time.

use super::executor::DependencyOutcome;
use crate::application::ports::Started;
use crate::application::{RowCache, facts};
use crate::store::{self, EventStore};
use std::sync::Arc;
use taskledger_domain::flow::{Event, Specification};
use taskledger_domain::schedule::Launch;
use taskledger_domain::task::Status;
use taskledger_domain::task::spec::timeout_ms;
use taskledger_domain::{Recorded, TaskId, Version};
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

/// Bytes of results and errors of its dependencies that an attempt may be given.
pub const DEPENDENCY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Dependencies whose outcomes are read at once.
const CHUNK_DEPENDENCIES: usize = 500;

/// Why there is no material.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// The log cannot be read, or does not hold what the flow's state says.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A fan-in of more than an attempt can hold.
    #[error("the results of the dependencies are larger than {DEPENDENCY_BYTES_MAX} bytes")]
    TooLarge,
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

    /// The material of a started attempt. Cost: O(dependencies), within [`DEPENDENCY_BYTES_MAX`].
    ///
    /// # Errors
    /// [`MaterialError`].
    pub async fn material(&self, started: &Started) -> Result<Material, MaterialError> {
        let launch = &started.launch;
        let tasks = std::iter::once(launch.task).chain(launch.dependencies.iter().map(|d| d.0));
        if let Some(rows) = self.rows.rows(started.flow, tasks)
            && rows[0].attempt == launch.attempt
            && rows[0].status == Status::InProgress
            && rows[1..]
                .iter()
                .all(|dependency| dependency.status.is_terminal())
        {
            let bytes = rows[1..].iter().map(|d| {
                d.result.as_ref().map_or(0, |p| p.as_str().len())
                    + d.error.as_ref().map_or(0, |e| e.len())
            });
            if bytes.sum::<usize>() > DEPENDENCY_BYTES_MAX {
                return Err(MaterialError::TooLarge);
            }
            return Ok(from_rows(&rows, launch));
        }
        self.read_log(started).await
    }

    async fn read_log(&self, started: &Started) -> Result<Material, MaterialError> {
        let launch = &started.launch;
        let own = [launch.spec_at, launch.name_at];
        let own = self.store.read_versions(started.flow, &own).await?;
        let specification = facts::specification(&at(&own, 0)?.event)
            .ok_or_else(|| corrupt(&own[0], "a specification"))?;
        let mut material = Material {
            name: name_of(at(&own, 1)?)?,
            specification: specification.clone(),
            dependencies: Vec::with_capacity(launch.dependencies.len()),
        };
        let mut bytes = 0;
        for chunk in launch.dependencies.chunks(CHUNK_DEPENDENCIES) {
            let versions: Vec<Version> = chunk
                .iter()
                .flat_map(|&(_, name_at, outcome_at)| [name_at, outcome_at])
                .collect();
            let events = self.store.read_versions(started.flow, &versions).await?;
            for (k, &(id, ..)) in chunk.iter().enumerate() {
                let outcome = at(&events, 2 * k + 1)?;
                bytes += outcome_bytes(outcome);
                if bytes > DEPENDENCY_BYTES_MAX {
                    return Err(MaterialError::TooLarge);
                }
                let name = name_of(at(&events, 2 * k)?)?;
                material.dependencies.push(dependency(id, name, outcome)?);
            }
        }
        Ok(material)
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

fn at(events: &[Arc<Recorded>], k: usize) -> Result<&Arc<Recorded>, store::Error> {
    events.get(k).ok_or_else(|| {
        store::Error::Unavailable("the log gave fewer events than asked for".to_owned())
    })
}

fn corrupt(event: &Recorded, expected: &str) -> store::Error {
    store::Error::Corrupt {
        position: event.position,
        reason: format!("the event does not hold {expected}"),
    }
}

fn name_of(event: &Recorded) -> Result<String, store::Error> {
    let name = facts::name(&event.event).ok_or_else(|| corrupt(event, "a name"));
    name.map(str::to_owned)
}

fn outcome_bytes(outcome: &Recorded) -> usize {
    if let Event::TaskCompleted(e) = outcome.event.as_ref() {
        e.result.as_str().len()
    } else if let Event::TaskFailed(e) = outcome.event.as_ref() {
        e.error.len()
    } else {
        0
    }
}

fn dependency(
    id: TaskId,
    name: String,
    outcome: &Recorded,
) -> Result<DependencyOutcome, store::Error> {
    let (status, result, error) = if let Event::TaskCompleted(e) = outcome.event.as_ref() {
        (Status::Completed, Some(e.result.to_map()), None)
    } else if let Event::TaskFailed(e) = outcome.event.as_ref() {
        (Status::Failed, None, Some(e.error.clone()))
    } else if let Event::TaskCancelled(e) = outcome.event.as_ref() {
        (Status::Cancelled, None, Some(e.error.clone()))
    } else {
        return Err(corrupt(outcome, "an outcome"));
    };
    Ok(DependencyOutcome {
        id,
        name,
        status,
        result,
        error,
    })
}
