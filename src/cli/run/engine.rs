//! The settings of the engine inside the program, and where its data is: in the folder that somebody names, or else in
//! one that is removed at the end.

use super::CliError;
use crate::config::EngineConfig;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Of the option, as clap knows it.
const DATA_DIR: &str = "data_dir";

/// The settings of an engine, and whether a data folder is among those that were given.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) config: EngineConfig,
    is_folder_given: bool,
}

impl Engine {
    /// Whether an option or a variable names the folder.
    pub(super) const fn names_folder(&self) -> bool {
        self.is_folder_given
    }
}

impl FromArgMatches for Engine {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let source = matches.value_source(DATA_DIR);
        Ok(Self {
            config: EngineConfig::from_arg_matches(matches)?,
            is_folder_given: matches!(
                source,
                Some(ValueSource::CommandLine | ValueSource::EnvVariable)
            ),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Engine {
    fn augment_args(command: Command) -> Command {
        EngineConfig::augment_args(command).mut_arg(DATA_DIR, |arg| {
            arg.help("Without a server: folder in which the flow is stored, created if it is missing; by default nothing is stored")
                .hide_default_value(true)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Where the data of an engine is.
#[derive(Debug)]
pub(super) enum Place {
    /// In a folder that somebody has named.
    Kept(PathBuf),
    /// In one that nobody else can read, and which is removed when this is dropped.
    Passing(TempDir),
}

impl Place {
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Kept(folder) => folder,
            Self::Passing(folder) => folder.path(),
        }
    }
}

impl Engine {
    /// The folder that was given, or a new one among the temporary files of the system.
    pub(super) fn place(&self) -> Result<Place, CliError> {
        if self.is_folder_given {
            return Ok(Place::Kept(self.config.storage.data_dir.clone()));
        }
        let folder = tempfile::Builder::new()
            .prefix("taskledger-run-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let unusable = |error| {
            CliError::Failed(format!(
                "cannot make a folder for the run in `{}`: {error}; set TMPDIR, or name one with --data-dir",
                std::env::temp_dir().display()
            ))
        };
        Ok(Place::Passing(folder.map_err(unusable)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        engine: Engine,
    }

    #[test]
    fn only_a_folder_that_was_given_is_kept() {
        let place = |words: &[&str]| {
            let engine = Words::try_parse_from(words).unwrap().engine;
            engine.place().unwrap()
        };
        // The folder of the default, in as many words.
        let kept = place(&["run", "--data-dir", "./taskledger-data"]);
        assert!(matches!(&kept, Place::Kept(folder) if folder == Path::new("./taskledger-data")));

        let passing = place(&["run"]);
        let folder = passing.folder().to_owned();
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(folder.join("ledger.db"), "").unwrap();
        drop(passing);
        assert!(!folder.exists());
    }
}
