//! The registry of executors that run in this process. Built once at start; what changes later is in the directory.
//!
//! Data comes in as executors and configured bounds ([`RegistryBuilder`]); the dispatcher looks
//! executors up by the name in `schemas.method`, `system.executors` lists them.
//! spec: data-model / Executor Registration

#[cfg(test)]
mod tests;

use super::{Concurrency, Description, Executor};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use taskledger_auth::SecretName;
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::task::inputs::{self, CompiledSchema};
use taskledger_domain::{PathSegment, Violation};

/// Why a registry cannot be built. Whoever configures the server or writes the executor mends it.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum RegistryError {
    /// A name or alias is empty or too long.
    #[error("executor name `{name}` must have 1 to {KEY_CHARS_MAX} characters")]
    InvalidName {
        /// The name, cut.
        name: String,
    },
    /// Two executors claim one name.
    #[error("executor name `{name}` is taken by `{holder}`; names and aliases must be unique")]
    NameTaken {
        /// The name or alias.
        name: String,
        /// Who has it.
        holder: String,
    },
    /// An executor's own input schema cannot be used.
    #[error("input schema of executor `{name}` cannot be used: {faults}")]
    InvalidInputSchema {
        /// Name of the executor.
        name: String,
        /// All violations as text.
        faults: String,
    },
    /// A bound of zero would never run anything.
    #[error("concurrency of executor `{name}` is 0; at least 1 is needed")]
    NoConcurrency {
        /// Name of the executor.
        name: String,
    },
    /// What is pure may always run again.
    #[error(
        "executor `{name}` says that it is pure and not idempotent; what is pure is idempotent"
    )]
    PureNotIdempotent {
        /// Name of the executor.
        name: String,
    },
    /// The configuration bounds an executor that does not exist.
    #[error(
        "--executor-limit: a limit is set for `{name}`, which is not registered; there are {known}"
    )]
    UnknownOverride {
        /// The name in the configuration.
        name: String,
        /// The names that exist.
        known: String,
    },
}

/// One executor with everything that was derived from its description.
#[derive(Clone)]
pub struct Registered {
    executor: Arc<dyn Executor>,
    description: Arc<Description>,
    input_schema: Option<Arc<CompiledSchema>>,
    params: Option<Arc<[String]>>,
    limit: usize,
    is_pure: Arc<AtomicBool>,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("name", &self.description.name)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Registered {
    /// The code that carries out attempts.
    #[must_use]
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.executor
    }

    /// A secret that results name where this executor would use it; `results` is what of the inputs comes from
    /// results of others. Whoever produced such a result would choose where the secret goes.
    #[must_use]
    pub fn secret_in(&self, results: &Map<String, Value>) -> Option<SecretName> {
        self.executor.secrets(results).into_iter().next()
    }

    /// Its name; an alias leads here too.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Whether its attempts may end where they are started: it says that it is pure, and has never
    /// waited for anything.
    #[must_use]
    pub fn is_pure(&self) -> bool {
        self.is_pure.load(Ordering::Relaxed)
    }

    /// It has waited for something although it says that it is pure.
    pub(super) fn takes_time(&self) {
        if self.is_pure.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                executor.name = self.name(),
                "an executor says that it is pure and waits; from now on its attempts are launched"
            );
        }
    }

    /// What it says of itself.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its own schema for inputs, compiled.
    #[must_use]
    pub fn input_schema(&self) -> Option<&Arc<CompiledSchema>> {
        self.input_schema.as_ref()
    }

    /// The members of `params` that it reads beside the engine's own, if it declares them.
    #[must_use]
    pub fn params(&self) -> Option<&Arc<[String]>> {
        self.params.as_ref()
    }

    /// How many of its attempts may run at once on this server; at least 1.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Checks `inputs` (an object) against the executor's own schema, when it has one.
    ///
    /// # Errors
    /// All violations, with paths from the root of the inputs.
    pub fn check_inputs(&self, inputs: &Value) -> Result<(), Vec<Violation>> {
        self.input_schema
            .as_ref()
            .map_or(Ok(()), |schema| schema.check(inputs))
    }
}

/// The executors that run in this process.
#[derive(Debug, Default, Clone)]
pub struct Registry {
    /// Sorted by name.
    executors: Vec<Registered>,
    /// Names and aliases.
    by_name: HashMap<String, usize>,
}

impl Registry {
    /// Nothing yet.
    #[must_use]
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::new()
    }

    /// The executor with this name or alias. Cost: O(1).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.executors.get(*self.by_name.get(name)?)
    }

    /// All executors, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Registered> {
        self.executors.iter()
    }

    /// Bounds the executor with this name or alias to `limit` attempts at once.
    ///
    /// # Errors
    /// The limit is 0, or no executor has this name.
    pub fn set_limit(&mut self, name: &str, limit: usize) -> Result<(), RegistryError> {
        let name = name.to_owned();
        if limit == 0 {
            return Err(RegistryError::NoConcurrency { name });
        }
        match self.by_name.get(&name) {
            Some(&at) => self.executors[at].limit = limit,
            None => {
                let known: Vec<_> = self.iter().map(|r| format!("`{}`", r.name())).collect();
                let known = known.join(", ");
                return Err(RegistryError::UnknownOverride { name, known });
            }
        }
        Ok(())
    }

    /// How many attempts of the executor with this name or alias may run at once. Cost: O(1).
    #[must_use]
    pub fn effective_limit(&self, name: &str) -> Option<usize> {
        self.get(name).map(Registered::limit)
    }
}

/// Collects executors and configured bounds.
pub struct RegistryBuilder {
    executors: BTreeMap<String, Registered>,
    /// From name or alias to the executor's name.
    names: HashMap<String, String>,
    overrides: Vec<(String, usize)>,
    cores: usize,
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.executors.values()).finish()
    }
}

impl Default for RegistryBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl RegistryBuilder {
    /// Nothing yet. [`Concurrency::Cores`] means the cores that this process may use.
    #[must_use]
    pub fn new() -> Self {
        Self {
            executors: BTreeMap::new(),
            names: HashMap::new(),
            overrides: Vec::new(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Takes `executor` in and compiles its input schema.
    ///
    /// # Errors
    /// The name or an alias is taken or invalid; the schema cannot be used; its concurrency is 0.
    /// The builder stays as it was.
    pub fn register(mut self, executor: Arc<dyn Executor>) -> Result<Self, RegistryError> {
        let description = executor.describe();
        let name = description.name.clone();
        let mut claimed = vec![name.clone()];
        for alias in &description.aliases {
            if !claimed.contains(alias) {
                claimed.push(alias.clone());
            }
        }
        for text in &claimed {
            self.name_is_free(text)?;
        }
        let input_schema = match &description.input_schema {
            None => None,
            Some(schema) => Some(Arc::new(inputs::compile(schema).map_err(|violations| {
                RegistryError::InvalidInputSchema {
                    name: name.clone(),
                    faults: faults(&violations),
                }
            })?)),
        };
        let limit = match description.concurrency {
            Concurrency::Waiting => Concurrency::WAITING_DEFAULT,
            Concurrency::Cores => self.cores,
            Concurrency::Fixed(limit) => limit,
        };
        if limit == 0 {
            return Err(RegistryError::NoConcurrency { name });
        }
        if description.pure && !description.idempotent {
            return Err(RegistryError::PureNotIdempotent { name });
        }
        for text in claimed {
            self.names.insert(text, name.clone());
        }
        self.executors.insert(
            name,
            Registered {
                params: executor.params().map(Arc::from),
                executor,
                is_pure: Arc::new(AtomicBool::new(description.pure)),
                description: Arc::new(description),
                input_schema,
                limit,
            },
        );
        Ok(self)
    }

    fn name_is_free(&self, name: &str) -> Result<(), RegistryError> {
        if name.trim().is_empty() || name.chars().count() > KEY_CHARS_MAX {
            return Err(RegistryError::InvalidName {
                name: name.chars().take(KEY_CHARS_MAX).collect(),
            });
        }
        match self.names.get(name) {
            None => Ok(()),
            Some(holder) => Err(RegistryError::NameTaken {
                name: name.to_owned(),
                holder: holder.clone(),
            }),
        }
    }

    /// Bounds the executor with this name or alias to `limit` attempts at once, whatever it says
    /// of itself. Looked at by [`Self::build`], so the order of calls does not matter.
    #[must_use]
    pub fn concurrency(mut self, name: impl Into<String>, limit: usize) -> Self {
        self.overrides.push((name.into(), limit));
        self
    }

    /// The registry.
    ///
    /// # Errors
    /// A configured bound is 0 or names an executor that does not exist.
    pub fn build(mut self) -> Result<Registry, RegistryError> {
        for (name, limit) in std::mem::take(&mut self.overrides) {
            let target = self
                .names
                .get(&name)
                .and_then(|n| self.executors.get_mut(n));
            match target {
                Some(_) if limit == 0 => return Err(RegistryError::NoConcurrency { name }),
                Some(registered) => registered.limit = limit,
                None => {
                    let known: Vec<_> = self.executors.keys().map(|n| format!("`{n}`")).collect();
                    return Err(RegistryError::UnknownOverride {
                        name,
                        known: known.join(", "),
                    });
                }
            }
        }
        let executors: Vec<_> = self.executors.into_values().collect();
        let places: HashMap<_, _> = executors
            .iter()
            .enumerate()
            .map(|(place, registered)| (registered.name().to_owned(), place))
            .collect();
        let by_name = self
            .names
            .into_iter()
            .map(|(name, target)| (name, places[&target]))
            .collect();
        Ok(Registry { executors, by_name })
    }
}

fn faults(violations: &[Violation]) -> String {
    let lines: Vec<_> = violations
        .iter()
        .map(|v| {
            let path: Vec<_> = v
                .path
                .iter()
                .map(|step| match step {
                    PathSegment::Key(key) => key.clone(),
                    PathSegment::Index(index) => index.to_string(),
                })
                .collect();
            format!("`{}` {}, expected {}", path.join("."), v.reason, v.expected)
        })
        .collect();
    lines.join("; ")
}
