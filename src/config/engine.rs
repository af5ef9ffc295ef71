//! Where the data is and what may run.

use super::{EgressConfig, StorageConfig, WebhookConfig};
use clap::Args;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use taskledger_domain::flow::WaitBounds;

/// Attempts of one executor at once that an operator may ask for.
const EXECUTOR_LIMIT_MAX: usize = 65_536;
/// The greatest weight of a user.
const FAIR_SHARE_WEIGHT_MAX: u32 = 1_000;

/// Seconds that an operator may let something wait, if not for ever: a year.
const WAIT_SECONDS_MAX: u64 = 365 * 24 * 3600;

/// The folder with the programs of servers, in the state folder of the machine.
const PROGRAMS: &str = "programs";

/// Settings of everything behind the doors; for `serve`, and for `run` without a server.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct EngineConfig {
    /// Where the data is.
    #[command(flatten)]
    pub storage: StorageConfig,

    /// Attempts of one executor at once, for example `sleep_executor=1000`; may be repeated
    #[arg(
        long = "executor-limit",
        value_name = "NAME=N",
        env = "TASKLEDGER_EXECUTOR_LIMIT",
        value_delimiter = ','
    )]
    pub executor_limits: Vec<ExecutorLimit>,

    /// Share a busy executor fairly between users: within a priority, the user with the least use is next, instead
    /// of the oldest task
    #[arg(long = "fair-share", env = "TASKLEDGER_FAIR_SHARE")]
    pub fair_share: bool,

    /// Share of a busy executor that a user gets, compared with other users, who have 1; for example `ann=3`; may
    /// be repeated
    #[arg(
        long = "fair-share-weight",
        value_name = "USER=N",
        env = "TASKLEDGER_FAIR_SHARE_WEIGHT",
        value_delimiter = ',',
        requires = "fair_share"
    )]
    pub fair_share_weights: Vec<FairShareWeight>,

    /// A program that `command_executor` may start; may be repeated. Without any, it is off
    #[arg(
        long = "allow-command",
        value_name = "PROGRAM",
        env = "TASKLEDGER_ALLOW_COMMAND",
        value_delimiter = ','
    )]
    pub allowed_commands: Vec<String>,

    /// With --database-url: folder of this machine in which the programs of `command_executor` are noted, so that a
    /// later server here stops those that a killed one has left. Default: $STATE_DIRECTORY, $XDG_STATE_HOME/taskledger
    /// or ~/.local/state/taskledger
    #[arg(long = "state-dir", value_name = "DIR", env = "TASKLEDGER_STATE_DIR")]
    pub state_dir: Option<PathBuf>,

    /// Folder with compiled time zones for schedules, as `zic -d` writes them. Default: the zones of the system if they
    /// are newer than those of the program
    #[arg(long = "zoneinfo", value_name = "DIR", env = "TASKLEDGER_ZONEINFO")]
    pub zone_folder: Option<PathBuf>,

    /// Seconds within which a task must start once it is ready, unless it has `schedule_to_start_seconds`; else it
    /// fails. 0 or `none`: it waits for a worker or a slot for ever
    #[arg(
        long = "max-start-wait-seconds",
        value_name = "SECONDS",
        env = "TASKLEDGER_MAX_START_WAIT_SECONDS",
        default_value = "604800"
    )]
    pub max_start_wait: WaitBound,

    /// Seconds within which a question to a person must be answered that has no time-out of its own; then its
    /// fallback applies, and without one the task fails. 0 or `none`: it waits for ever
    #[arg(
        long = "max-answer-wait-seconds",
        value_name = "SECONDS",
        env = "TASKLEDGER_MAX_ANSWER_WAIT_SECONDS",
        default_value = "2592000"
    )]
    pub max_answer_wait: WaitBound,

    /// Which receivers may be called.
    #[command(flatten)]
    pub egress: EgressConfig,

    /// Where notices are sent.
    #[command(flatten)]
    pub webhooks: WebhookConfig,
}

impl EngineConfig {
    /// How long tasks of a run wait that do not say so themselves.
    #[must_use]
    pub fn wait_bounds(&self) -> WaitBounds {
        WaitBounds {
            start_ms: self.max_start_wait.as_ms(),
            answer_ms: self.max_answer_wait.as_ms(),
        }
    }

    /// The folder of this machine for servers without a data folder to note programs in. `None`: no option and no
    /// variable names one.
    #[must_use]
    pub fn programs_folder(&self) -> Option<PathBuf> {
        let given = self.state_dir.clone();
        let state = given.or_else(|| state_folder(|name| std::env::var_os(name)));
        state.map(|folder| folder.join(PROGRAMS))
    }
}

/// The folder for what a program keeps on its machine: that of the service, or that of the user.
fn state_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    // systemd gives several separated by colons.
    let of_service = variable("STATE_DIRECTORY").and_then(|all| {
        let all = all.to_string_lossy().into_owned();
        absolute(all.split(':').next()?.into())
    });
    let of_user = || {
        let state = variable("XDG_STATE_HOME").and_then(absolute);
        state.map(|state| state.join("taskledger"))
    };
    let of_home = || {
        let home = variable("HOME").and_then(absolute);
        home.map(|home| home.join(".local/state/taskledger"))
    };
    of_service.or_else(of_user).or_else(of_home)
}

/// How long something may wait; `None` for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitBound(pub Option<Duration>);

impl FromStr for WaitBound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let seconds = text
            .parse()
            .ok()
            .filter(|seconds| *seconds <= WAIT_SECONDS_MAX);
        let seconds: u64 = seconds
            .ok_or_else(|| format!("expected `none` or an integer from 0 to {WAIT_SECONDS_MAX}"))?;
        let bound = (seconds > 0).then(|| Duration::from_secs(seconds));
        Ok(Self(bound))
    }
}

impl WaitBound {
    fn as_ms(self) -> Option<u64> {
        let ms = self.0?.as_millis();
        u64::try_from(ms).ok()
    }
}

/// How much of a busy executor one user gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FairShareWeight {
    /// The `user_id` of the roots of its flows.
    pub user: String,
    /// 1 to 1,000.
    pub weight: NonZeroU32,
}

impl FromStr for FairShareWeight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected USER=N with N from 1 to {FAIR_SHARE_WEIGHT_MAX}");
        let (user, weight) = text.rsplit_once('=').ok_or_else(expected)?;
        let weight: NonZeroU32 = weight.parse().map_err(|_| expected())?;
        if user.is_empty() || weight.get() > FAIR_SHARE_WEIGHT_MAX {
            return Err(expected());
        }
        Ok(Self {
            user: user.to_owned(),
            weight,
        })
    }
}

/// How many attempts of an executor may run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorLimit {
    /// The executor.
    pub name: String,
    /// 1 to 65,536.
    pub limit: usize,
}

impl FromStr for ExecutorLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected NAME=N with N from 1 to {EXECUTOR_LIMIT_MAX}");
        let (name, limit) = text.split_once('=').ok_or_else(expected)?;
        let limit = limit.parse().map_err(|_| expected())?;
        if name.is_empty() || !(1..=EXECUTOR_LIMIT_MAX).contains(&limit) {
            return Err(expected());
        }
        Ok(Self {
            name: name.to_owned(),
            limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ExecutorLimit, FairShareWeight, WaitBound, state_folder};
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn the_state_folder_is_that_of_the_service_or_of_the_user() {
        let all = [
            ("STATE_DIRECTORY", "/var/lib/taskledger:/var/lib/other"),
            ("XDG_STATE_HOME", "/state"),
            ("HOME", "/home/ann"),
        ];
        let of = |given: &[(&str, &str)]| {
            state_folder(|name| {
                let found = given.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.into())
            })
        };
        let folder = |path: &str| Some(Path::new(path).to_owned());
        assert_eq!(of(&all), folder("/var/lib/taskledger"));
        assert_eq!(of(&all[1..]), folder("/state/taskledger"));
        assert_eq!(of(&all[2..]), folder("/home/ann/.local/state/taskledger"));
        assert_eq!(of(&[("HOME", "relative")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_wait_is_bounded_by_seconds_or_not_at_all() {
        let bound = |text: &str| text.parse::<WaitBound>().map(|bound| bound.0);
        assert_eq!(bound("90"), Ok(Some(Duration::from_secs(90))));
        for none in ["0", "none"] {
            assert_eq!(bound(none), Ok(None));
        }
        for bad in ["", "-1", "1.5", "7d", "31536001"] {
            assert!(bound(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_weight_names_a_user_and_a_number() {
        let weight: FairShareWeight = "service:ci=10".parse().expect("a weight");
        assert_eq!((&*weight.user, weight.weight.get()), ("service:ci", 10));
        for bad in ["", "ann", "ann=", "ann=0", "=3", "ann=-1", "ann=1001"] {
            assert!(bad.parse::<FairShareWeight>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_names_an_executor_and_a_number() {
        assert_eq!(
            "sleep_executor=1000".parse(),
            Ok(ExecutorLimit {
                name: "sleep_executor".to_owned(),
                limit: 1000
            })
        );
        for bad in ["", "x", "x=", "x=0", "=3", "x=-1", "x=65537", "x=1=2"] {
            assert!(bad.parse::<ExecutorLimit>().is_err(), "{bad}");
        }
    }
}
