//! Turns the configuration into settings of the server and its parts.

use super::StartError;
use crate::application::api::COMMAND_EXECUTOR;
use crate::application::limits::{self as limiting, QuotaOptions, RateOptions};
use crate::application::slots::Sharing;
use crate::config::{EngineConfig, LimitsConfig};
use crate::egress::Egress;
use crate::engine::executor::command::{self, MachineFolder};
use crate::engine::executor::{BuiltInOptions, Registry, RegistryBuilder, with_built_ins};
use crate::webhooks;
use std::num::NonZeroU32;
use std::sync::Arc;
use taskledger_auth::jwt::{DenyList, Documents, GuardedDocuments, Issuer, Issuers};
use taskledger_zones::Zones;

/// The client of every outgoing request of a server: one, made at the start.
///
/// # Errors
/// [`StartError`]: certificates, proxy or name servers cannot be used.
pub fn egress(config: &EngineConfig) -> Result<Arc<Egress>, StartError> {
    Ok(Arc::new(Egress::new(config.egress.options()?)?))
}

/// The time zones of schedules.
///
/// # Errors
/// [`StartError`]: the folder of `--zoneinfo` cannot be used.
pub fn zones(config: &EngineConfig) -> Result<Arc<Zones>, StartError> {
    Ok(Arc::new(Zones::open(config.zone_folder.as_deref())?))
}

/// The OIDC issuers whose tokens are accepted. Their keys are fetched from now on, by the client of all
/// outgoing requests.
///
/// # Panics
/// Outside of a Tokio runtime.
#[must_use]
pub fn oidc_issuers(
    issuers: Vec<Issuer>,
    egress: &Arc<Egress>,
    deny_list: Arc<dyn DenyList>,
) -> Issuers {
    let documents: Arc<dyn Documents> = Arc::new(GuardedDocuments(egress.clone()));
    Issuers::start(issuers, &documents, deny_list)
}

/// The settings of webhooks.
#[must_use]
pub fn webhooks(config: &EngineConfig, egress: &Arc<Egress>) -> webhooks::Options {
    webhooks::Options {
        secrets_key_file: config.webhooks.secrets_key_file.clone(),
        egress: Some(egress.clone()),
        worker: config.webhooks.worker(),
    }
}

/// The order of tasks that wait for a busy executor.
#[must_use]
pub fn sharing(config: &EngineConfig) -> Sharing {
    if !config.fair_share {
        return Sharing::ByAge;
    }
    let weights = config.fair_share_weights.iter();
    let weights = weights.map(|given| (given.user.clone(), given.weight));
    Sharing::Fair(Arc::new(weights.collect()))
}

/// How much callers may ask.
#[must_use]
pub const fn limits(config: &LimitsConfig) -> limiting::Options {
    limiting::Options {
        rates: RateOptions {
            per_second: config.rate_per_second,
            burst: config.rate_burst,
        },
        quotas: QuotaOptions {
            open_flows: NonZeroU32::new(config.quota_open_flows),
            waiting_tasks: NonZeroU32::new(config.quota_waiting_tasks),
            webhooks: NonZeroU32::new(config.quota_webhooks),
            streams: NonZeroU32::new(config.quota_streams),
            callbacks: NonZeroU32::new(config.quota_callbacks),
            waiting_claims: NonZeroU32::new(config.quota_waiting_claims),
        },
    }
}

/// The executors that the configuration asks for, next to those that `builder` has.
///
/// # Errors
/// [`StartError`]: a program is missing, a name is taken, a limit names no executor.
pub fn executors(
    builder: RegistryBuilder,
    config: &EngineConfig,
    egress: Arc<Egress>,
) -> Result<Registry, StartError> {
    let records = match &*config.allowed_commands {
        [] => command::Records::None,
        _ => records(config)?,
    };
    registered(builder, config, (egress, records))
}

/// What keeps [`executors`] from doing it: each fault of a program and of a limit, where a start ends with the first.
/// Changes nothing; the folder where programs are noted is not looked at.
#[must_use]
pub fn executor_faults(
    builder: RegistryBuilder,
    config: &EngineConfig,
    egress: &Arc<Egress>,
) -> Vec<StartError> {
    let none = || (egress.clone(), command::Records::None);
    let allowing = |programs: Vec<String>| EngineConfig {
        allowed_commands: programs,
        executor_limits: Vec::new(),
        ..config.clone()
    };
    let (mut faults, mut usable) = (Vec::new(), Vec::new());
    for program in &config.allowed_commands {
        match registered(
            Registry::builder(),
            &allowing(vec![program.clone()]),
            none(),
        ) {
            Ok(_) => usable.push(program.clone()),
            Err(error) => faults.push(error),
        }
    }
    // Its limit is right as soon as one of the programs is.
    let lacks_command = usable.is_empty() && !config.allowed_commands.is_empty();
    match registered(builder, &allowing(usable), none()) {
        Err(error) => faults.push(error),
        Ok(mut registry) => {
            let limits = config.executor_limits.iter();
            let limits = limits.filter(|it| !(lacks_command && it.name == COMMAND_EXECUTOR));
            let refused = limits.filter_map(|it| registry.set_limit(&it.name, it.limit).err());
            faults.extend(refused.map(StartError::from));
        }
    }
    faults
}

fn registered(
    builder: RegistryBuilder,
    config: &EngineConfig,
    (egress, records): (Arc<Egress>, command::Records),
) -> Result<Registry, StartError> {
    let folder = config.storage.folder().cloned();
    let command = match &*config.allowed_commands {
        [] => None,
        allowed => Some(command::Options {
            records,
            ..command::Options::allowing(allowed)
        }),
    };
    let options = BuiltInOptions {
        disk_path: folder,
        command,
        egress: Some(egress),
    };
    let builder = with_built_ins(builder, options)?;
    let limited = config
        .executor_limits
        .iter()
        .fold(builder, |builder, l| builder.concurrency(&l.name, l.limit));
    Ok(limited.build()?)
}

/// Where programs that run are noted: in the data folder, or beside a database in a folder of the machine.
fn records(config: &EngineConfig) -> Result<command::Records, StartError> {
    if let Some(folder) = config.storage.folder() {
        return Ok(command::Records::DataFolder(folder.join(command::FOLDER)));
    }
    let made = match config.programs_folder() {
        Some(folder) => MachineFolder::make(&folder).map_err(|source| StartError::StateDir {
            path: folder,
            source,
        }),
        None => {
            warn_of_unnoted("neither $STATE_DIRECTORY, $XDG_STATE_HOME nor $HOME is set");
            return Ok(command::Records::None);
        }
    };
    match made {
        Ok(own) => Ok(command::Records::Machine(Arc::new(own))),
        Err(error) if config.state_dir.is_some() => Err(error),
        // Nobody has asked for this folder.
        Err(error) => {
            warn_of_unnoted(&error.to_string());
            Ok(command::Records::None)
        }
    }
}

fn warn_of_unnoted(reason: &str) {
    tracing::warn!(
        reason,
        "programs are not noted, so nobody stops those that this server leaves when it is killed; give --state-dir \
         a folder of this machine"
    );
}

/// Stops programs that killed servers without a data folder have left on this machine. To be called before anything
/// begins; a server with a data folder does the same when it opens it.
pub async fn stop_left_programs(config: &EngineConfig) {
    if config.storage.folder().is_none()
        && let Some(folder) = config.programs_folder()
    {
        command::stop_left(&folder).await;
    }
}
