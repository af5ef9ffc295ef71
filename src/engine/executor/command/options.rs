//! Configures which programs may run, and in which folder. Looked up once at start, so that a later change of the
//! search path changes nothing.

use super::machine::MachineFolder;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Configuration of `command_executor`. Without it the executor is not registered at all.
#[derive(Debug, Clone)]
pub struct Options {
    /// What `inputs.program` may say, literally: names, looked up in `search_path`, or absolute
    /// paths. At least one.
    pub programs: Vec<String>,
    /// Programs start in here and `inputs.cwd` may not lead out of it. Without it they start in
    /// the server's working directory and `inputs.cwd` may be any directory.
    pub root: Option<PathBuf>,
    /// Directories to look names up in, separated by colons; also the programs' own `PATH`.
    pub search_path: String,
    /// Bytes of stdout and of stderr, each, that are kept of one attempt. The rest is read,
    /// counted and dropped.
    pub output_bytes_max: usize,
    /// Where programs that run are noted.
    pub records: Records,
}

/// Where programs that run are noted, so that a later server stops those that a killed one has left.
#[derive(Debug, Clone, Default)]
pub enum Records {
    /// Nowhere: they run on.
    #[default]
    None,
    /// In a folder below the data folder, which one server at a time has.
    DataFolder(PathBuf),
    /// In a folder that this server has on its machine.
    Machine(Arc<MachineFolder>),
}

impl Records {
    /// The folder for the records of this server.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::DataFolder(folder) => Some(folder),
            Self::Machine(folder) => Some(folder.own()),
        }
    }

    /// Stops what a killed server of this machine has left, before an attempt that may follow one of its. In a data
    /// folder this is done when the server starts: nobody else works on it.
    pub(super) async fn before(&self, attempt: u32) {
        match self {
            Self::Machine(folder) if attempt > 1 => folder.stop_left().await,
            Self::Machine(_) | Self::None | Self::DataFolder(_) => {}
        }
    }
}

impl Options {
    /// Where Linux distributions keep programs.
    pub const SEARCH_PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    /// Bytes of stdout and of stderr, each: two of them and some escaping fit into a result.
    pub const OUTPUT_BYTES_MAX_DEFAULT: usize = 256 * 1024;

    /// Allows `programs` and leaves everything else at its default.
    pub fn allowing<P: Into<String>>(programs: impl IntoIterator<Item = P>) -> Self {
        Self {
            programs: programs.into_iter().map(Into::into).collect(),
            root: None,
            search_path: Self::SEARCH_PATH_DEFAULT.to_owned(),
            output_bytes_max: Self::OUTPUT_BYTES_MAX_DEFAULT,
            records: Records::None,
        }
    }

    pub(super) fn resolve(self) -> Result<Resolved, OptionsError> {
        if self.programs.is_empty() {
            return Err(OptionsError::NoPrograms);
        }
        let mut programs = BTreeMap::new();
        for program in self.programs {
            let path = find(&program, &self.search_path)?;
            programs.insert(program, path);
        }
        let root = match self.root {
            None => None,
            Some(root) => match root.canonicalize() {
                Ok(real) if real.is_dir() => Some(real),
                Ok(_) => return Err(OptionsError::NotADirectory { root }),
                Err(source) => return Err(OptionsError::Root { root, source }),
            },
        };
        Ok(Resolved {
            programs,
            root,
            search_path: self.search_path,
            output_bytes_max: self.output_bytes_max,
            records: self.records,
        })
    }
}

/// A fault in the configuration of `command_executor`.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The allow-list is empty.
    #[error("no program is allowed; allow at least one or leave the executor off")]
    NoPrograms,
    /// Neither a name nor an absolute path.
    #[error("program `{program}` must be a name without `/` or an absolute path")]
    InvalidProgram {
        /// As configured.
        program: String,
    },
    /// Nothing to run.
    #[error("program `{program}` is not an executable file (looked in `{place}`)")]
    ProgramNotFound {
        /// As configured.
        program: String,
        /// Directories or path.
        place: String,
    },
    /// The working directory is something else.
    #[error("working directory `{root}` is not a directory")]
    NotADirectory {
        /// As configured.
        root: PathBuf,
    },
    /// The working directory cannot be used.
    #[error("cannot use working directory `{root}`")]
    Root {
        /// As configured.
        root: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// Configuration with everything looked up.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The file of each program, by the name that callers use.
    pub(super) programs: BTreeMap<String, PathBuf>,
    /// Canonical.
    pub(super) root: Option<PathBuf>,
    pub(super) search_path: String,
    pub(super) output_bytes_max: usize,
    pub(super) records: Records,
}

impl Resolved {
    /// The programs that may run, for whoever asks for another one, and what allows more.
    pub(super) fn allowed(&self) -> String {
        /// Programs that are named.
        const TOLD_MAX: usize = 20;
        let told = self.programs.keys().take(TOLD_MAX);
        let mut told: Vec<_> = told.map(|program| format!("`{program}`")).collect();
        if let Some(more @ 1..) = self.programs.len().checked_sub(TOLD_MAX) {
            told.push(format!("and {more} more"));
        }
        format!(
            "one of {}; `--allow-command PROGRAM` allows more",
            told.join(", ")
        )
    }
}

fn find(program: &str, search_path: &str) -> Result<PathBuf, OptionsError> {
    let not_found = |place: &str| OptionsError::ProgramNotFound {
        program: program.to_owned(),
        place: place.to_owned(),
    };
    if Path::new(program).is_absolute() {
        let path = PathBuf::from(program);
        return if is_executable(&path) {
            Ok(path)
        } else {
            Err(not_found(program))
        };
    }
    if program.is_empty() || program.contains(['/', '\0']) {
        return Err(OptionsError::InvalidProgram {
            program: program.to_owned(),
        });
    }
    std::env::split_paths(search_path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
        .ok_or_else(|| not_found(search_path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
