//! The first token: in a file of the data folder, or given by the operator.

use super::Tokens;
use crate::audit::By;
use crate::caller::{Caller, Kind, MAIN_TENANT};
use crate::name::Name;
use crate::scopes::Scopes;
use crate::store::{Error, NewToken, Owner};
use crate::token::{Malformed, Token};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taskledger_private as private;

/// File of the first token in the data folder.
pub const ADMIN_TOKEN_FILE: &str = "admin.token";
/// The service whose tokens these are.
const ADMIN: &str = "admin";
/// Tokens in a file of the operator: the present one, and the one before.
const TOKENS_MAX: usize = 2;
/// Bytes of such a file.
const FILE_BYTES_MAX: u64 = 4_096;
/// The bits of a mode that let others than the owner write, or others than owner and group read.
const OTHERS: u32 = 0o027;

/// Why the first token cannot be made or read; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum FirstError {
    /// The file cannot be read or written.
    #[error("the token file `{path}` cannot be used: {source}")]
    File {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Others on the machine can use the file.
    #[error(
        "the token file `{path}` has mode {mode:04o}: others can read or change it; run `chmod 600` on it"
    )]
    Open {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The permission bits of the file, such as `0o644`.
        mode: u32,
    },
    /// It holds none or too many.
    #[error(
        "the token file `{path}` has {found} tokens; it needs 1, or 2 while they are exchanged, each on a line of its own"
    )]
    Number {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// Lines that are not empty.
        found: usize,
    },
    /// A line is no token.
    #[error("line {line} of the token file `{path}`: {reason}")]
    Malformed {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: Malformed,
    },
    /// The token cannot be stored.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Tokens of the operator, which are accepted without being stored, and allow everything.
#[derive(Debug, Clone, Default)]
pub struct AdminTokens(Vec<(Token, Arc<Caller>)>);

impl AdminTokens {
    /// Reads a file with up to two tokens, one on each line: the present one and the one before, in any order.
    ///
    /// # Errors
    /// [`FirstError`].
    pub fn of_file(path: &Path) -> Result<Self, FirstError> {
        let failed = |source| FirstError::File {
            path: path.to_owned(),
            source,
        };
        let metadata = fs::metadata(path).map_err(failed)?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            let path = path.to_owned();
            return Err(FirstError::Open { path, mode });
        }
        if metadata.len() > FILE_BYTES_MAX {
            return Err(failed(io::Error::other("it is too large")));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        Self::of_text(path, &text)
    }

    fn of_text(path: &Path, text: &str) -> Result<Self, FirstError> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines: Vec<_> = lines.filter(|(_, line)| !line.is_empty()).collect();
        if lines.is_empty() || lines.len() > TOKENS_MAX {
            return Err(FirstError::Number {
                path: path.to_owned(),
                found: lines.len(),
            });
        }
        let read = |(n, line): (usize, &str)| match Token::parse(line) {
            Ok(token) => {
                let id = token.id().as_str().clone();
                let caller = Caller::service(&admin(), Scopes::all()).by(id, None);
                Ok((token, Arc::new(caller)))
            }
            Err(reason) => Err(FirstError::Malformed {
                path: path.to_owned(),
                line: n + 1,
                reason,
            }),
        };
        Ok(Self(lines.into_iter().map(read).collect::<Result<_, _>>()?))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their ids.
    fn ids(&self) -> Vec<Arc<str>> {
        let ids = self.0.iter().map(|(token, _)| token.id().as_str().clone());
        ids.collect()
    }

    /// Finds the caller that a presented token belongs to.
    pub(super) fn find(&self, shown: &Token) -> Option<Arc<Caller>> {
        let found = self
            .0
            .iter()
            .find(|(token, _)| token.id() == shown.id() && token.digest().matches(&shown.digest()));
        found.map(|(_, caller)| caller.clone())
    }
}

impl Tokens {
    /// The ids of the tokens of the operator, which no list shows.
    #[must_use]
    pub fn admin_ids(&self) -> Vec<Arc<str>> {
        self.admins.ids()
    }

    /// Whether anybody could be let in: there is a token, or there was one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn any(&self) -> Result<bool, Error> {
        Ok(!self.admins.is_empty() || self.store.has_tokens().await?)
    }

    /// Makes the first token, of service `admin` with all scopes and without end, when there was never one.
    /// It is written to [`ADMIN_TOKEN_FILE`] in the folder, whose path is returned, before it is stored: a
    /// crash between the two leaves a file with a token that is not accepted, and the next start replaces it.
    ///
    /// # Errors
    /// [`FirstError`].
    pub async fn make_first(&self, folder: &Path) -> Result<Option<PathBuf>, FirstError> {
        if self.any().await? {
            return Ok(None);
        }
        let token = Token::fresh(&*self.clock);
        let path = folder.join(ADMIN_TOKEN_FILE);
        write(folder, &path, &token).map_err(|source| FirstError::File {
            path: path.clone(),
            source,
        })?;
        let new = NewToken {
            id: token.id().clone(),
            owner: Owner {
                kind: Kind::Service,
                name: admin(),
                tenant: Arc::from(MAIN_TENANT),
            },
            scopes: Scopes::all(),
            methods: None,
            agents: None,
            note: Arc::from("made at the first start"),
            digest: token.digest(),
            expires_at: None,
        };
        let stored = self.insert(&new, By::server(), self.clock.now());
        let stored = self.store.order(stored).await;
        self.forget();
        stored?.map_err(|refusal| Error::Damaged(refusal.to_string()))?;
        Ok(Some(path))
    }
}

fn admin() -> Name {
    Name::new(ADMIN).expect("`admin` is a name")
}

/// Writes the file as a whole, for its owner alone, and lets it reach the disk.
fn write(folder: &Path, path: &Path, token: &Token) -> io::Result<()> {
    let fresh = path.with_extension("token.new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = private::create_new(&fresh)?;
    writeln!(file, "{}", token.reveal())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    File::open(folder)?.sync_all()
}
