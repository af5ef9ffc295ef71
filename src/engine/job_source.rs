//! Provides what an attempt needs: its specification, its name, and how its dependencies ended. From confirmed rows in
//! memory, else from the log, some hundred at a time.

use super::executor::DependencyOutcome;
use crate::application::ports::{DEPENDENCY_BYTES_MAX, Started, Undurable};
use crate::application::{RowCache, facts};
use crate::store::{self, EventStore};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::contract::{Breach, Broken};
use taskledger_domain::flow::{Event, Specification};
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::schedule::Launch;
use taskledger_domain::task::Status;
use taskledger_domain::task::spec::timeout_ms;
use taskledger_domain::task::wiring::{AttemptIds, InputFault, Wiring, split_source};
use taskledger_domain::{Payload, Recorded, TaskId, Version};
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
    /// How its inputs were put together, if not all of them are literal.
    pub wired: Option<Wired>,
}

/// The wiring and literal values that inputs were put together from.
#[derive(Debug)]
pub struct Wired {
    wiring: Wiring,
    literal: Payload,
}

impl Wired {
    /// What of the inputs comes from results: data, whatever stands there. Cost: O(size).
    #[must_use]
    pub fn results(&self, inputs: &Map<String, Value>) -> Map<String, Value> {
        self.wiring.from_results(&self.literal, inputs)
    }
}

/// What an attempt weighs besides its payloads, and a dependency of it: a microsecond of work for each
/// hundred, as payloads have it.
const ATTEMPT_BYTES: usize = 512;
const DEPENDENCY_BYTES: usize = 128;
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
    /// The inputs cannot be put together.
    #[error(transparent)]
    Inputs(InputFault),
    /// Results have not what the inputs need.
    #[error("{}", .0.failure())]
    Unresolvable(Box<Breach>),
}

impl Material {
    /// With the inputs that are wired to results.
    fn wired(mut self, launch: &Launch) -> Result<Self, MaterialError> {
        let wiring = Wiring::of(&self.specification);
        if wiring.is_empty() {
            return Ok(self);
        }
        let results: HashMap<TaskId, &Map<String, Value>> = self
            .dependencies
            .iter()
            .filter_map(|dependency| Some((dependency.id, dependency.result.as_ref()?)))
            .collect();
        let result = |id: TaskId| results.get(&id).copied();
        let attempt = AttemptIds {
            task: launch.task,
            run: launch.run_id,
            attempt: launch.attempt,
        };
        let inputs = wiring.inputs(&self.specification.inputs, attempt, result);
        let inputs = inputs.map_err(|fault| self.unfit(fault))?;
        let literal = self.specification.inputs.clone();
        self.wired = Some(Wired { wiring, literal });
        self.specification = self.specification.with_inputs(inputs);
        Ok(self)
    }
}

impl Material {
    /// Why there are no inputs, with names of tasks.
    fn unfit(&self, fault: InputFault) -> MaterialError {
        let refs = match fault {
            InputFault::Unresolvable(refs) => refs,
            other @ (InputFault::Unlike(_) | InputFault::Unfit(_)) => {
                return MaterialError::Inputs(other);
            }
        };
        let named = refs.into_iter().map(|stored| {
            let named = split_source(&stored).and_then(|(task, rest)| {
                let source = self.dependencies.iter().find(|it| it.id == task)?;
                Some(format!("{}{rest}", source.name))
            });
            named.unwrap_or(stored)
        });
        MaterialError::Unresolvable(Box::new(Breach {
            phase_name: Some(self.name.clone()),
            broken: Broken::Inputs {
                unresolvable_refs: named.take(VIOLATIONS_MAX).collect(),
                incomplete: Vec::new(),
            },
        }))
    }
}

/// Gathers what attempts need. Cost of a look: O(dependencies), mostly without a database.
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

    /// The log that jobs are read from.
    #[must_use]
    pub fn store(&self) -> &dyn EventStore {
        &*self.store
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
            let bytes = rows[1..].iter().map(|row| row.outcome_bytes());
            if bytes.sum::<usize>() > DEPENDENCY_BYTES_MAX {
                return Err(MaterialError::TooLarge);
            }
            return from_rows(&rows, launch).wired(launch);
        }
        self.read_log(started).await?.wired(launch)
    }

    /// The same where nobody can wait: of events that are not durable yet and of rows in memory, with
    /// what it weighs. `None`: they do not suffice, or it weighs more than `bytes_max`. Cost:
    /// O(dependencies).
    #[must_use]
    pub fn at_hand(
        &self,
        started: &Started,
        undurable: Undurable<'_>,
        bytes_max: usize,
    ) -> Option<(Material, usize)> {
        let launch = &started.launch;
        let row = |task: TaskId| self.rows.rows(started.flow, [task])?.pop();
        let specification = match undurable(launch.spec_at) {
            Some(event) => facts::specification(&event)?.clone(),
            None => specification_of(&*row(launch.task)?, launch),
        };
        let name = |task: TaskId, name_at: Version| match undurable(name_at) {
            Some(event) => facts::name(&event).map(str::to_owned),
            None => row(task).map(|row| row.name.to_string()),
        };
        let mut left = bytes_max.checked_sub(ATTEMPT_BYTES + specification.bytes())?;
        let mut dependencies = Vec::with_capacity(launch.dependencies.len());
        for &(id, name_at, outcome_at) in &launch.dependencies {
            let name = name(id, name_at)?;
            dependencies.push(match undurable(outcome_at) {
                Some(outcome) => {
                    left = left.checked_sub(DEPENDENCY_BYTES + outcome_bytes(&outcome))?;
                    dependency(id, name, &outcome)?
                }
                None => {
                    let row = row(id).filter(|row| row.status.is_terminal())?;
                    left = left.checked_sub(DEPENDENCY_BYTES + row.outcome_bytes())?;
                    dependency_of(&row, name)
                }
            });
        }
        let material = Material {
            name: name(launch.task, launch.name_at)?,
            specification,
            dependencies,
            wired: None,
        };
        // What cannot be put together is said by the attempt when it is launched.
        let literal = material.specification.bytes();
        let material = material.wired(launch).ok()?;
        let grown = material.specification.bytes().saturating_sub(literal);
        left = left.checked_sub(grown)?;
        Some((material, bytes_max - left))
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
            wired: None,
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
                bytes += outcome_bytes(&outcome.event);
                if bytes > DEPENDENCY_BYTES_MAX {
                    return Err(MaterialError::TooLarge);
                }
                let name = name_of(at(&events, 2 * k)?)?;
                let dependency = dependency(id, name, &outcome.event)
                    .ok_or_else(|| corrupt(outcome, "an outcome"))?;
                material.dependencies.push(dependency);
            }
        }
        Ok(material)
    }
}

fn from_rows(rows: &[Arc<TaskRow>], launch: &Launch) -> Material {
    Material {
        name: rows[0].name.to_string(),
        dependencies: rows[1..]
            .iter()
            .map(|row| dependency_of(row, row.name.to_string()))
            .collect(),
        specification: specification_of(&rows[0], launch),
        wired: None,
    }
}

fn specification_of(row: &TaskRow, launch: &Launch) -> Specification {
    Specification {
        inputs: row.inputs.clone(),
        schemas: row.schemas.clone(),
        params: row.params.clone(),
        method: Some(launch.method.clone()),
        retry: None,
        timeout_ms: row.params.as_ref().and_then(|p| timeout_ms(&p.to_map())),
        deadline: row.deadline,
        remote: false,
        start_within_ms: None,
        cancel_grace_ms: None,
        start_at: None,
        delay_ms: None,
    }
}

fn dependency_of(row: &TaskRow, name: String) -> DependencyOutcome {
    DependencyOutcome {
        id: row.id,
        name,
        status: row.status,
        result: row.result.as_ref().map(|p| p.to_map()),
        error: row.error.as_deref().map(str::to_owned),
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
        flow: Some(event.flow),
        reason: format!("the event does not hold {expected}"),
    }
}

fn name_of(event: &Recorded) -> Result<String, store::Error> {
    let name = facts::name(&event.event).ok_or_else(|| corrupt(event, "a name"));
    name.map(str::to_owned)
}

fn outcome_bytes(outcome: &Event) -> usize {
    if let Event::TaskCompleted(e) = outcome {
        e.result.as_str().len()
    } else if let Event::TaskFailed(e) = outcome {
        e.error.len()
    } else {
        0
    }
}

/// `None`: the event is no outcome.
fn dependency(id: TaskId, name: String, outcome: &Event) -> Option<DependencyOutcome> {
    let (status, result, error) = if let Event::TaskCompleted(e) = outcome {
        (Status::Completed, Some(e.result.to_map()), None)
    } else if let Event::TaskFailed(e) = outcome {
        (Status::Failed, None, Some(e.error.clone()))
    } else if let Event::TaskCancelled(e) = outcome {
        (Status::Cancelled, None, Some(e.error.clone()))
    } else {
        return None;
    };
    Some(DependencyOutcome {
        id,
        name,
        status,
        result,
        error,
    })
}
