//! The keys that seal secrets in the store.
//!
//! Owns: reading and making key files, sealing and opening (XChaCha20-Poly1305). The first key of a
//! file seals, all of them open, so a new one is put before the old ones. May not: know SQL.
//! A sealed value is bound to the row it was made for: in another row it does not open.

use super::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hmac::Mac as _;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taskledger_clock::SharedClock;
use taskledger_private as private;

/// The file of the data folder that is made when no other is named.
pub const KEYS_FILE: &str = "secrets.key";
/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Bytes of a nonce, which stands before what it sealed.
const NONCE_BYTES: usize = 24;
/// Bytes of the digest that names a key: enough that two of a file never share a name.
const KEY_ID_BYTES: usize = 8;
/// Keys in a file: each may have to be tried by name only, so this is a bound for mistakes.
const KEYS_MAX: usize = 16;

/// Why secrets cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// There is no key; the operator can give one.
    #[error(
        "the server has no key to keep secrets with, expected one through --secrets-key-file (a file \
         with 32 random bytes in base64 on a line)"
    )]
    None,
    /// The file cannot be read or made.
    #[error(
        "cannot use the key file `{path}` (--secrets-key-file; {KEYS_FILE} in the data folder unless \
         given): {source}"
    )]
    File {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Others than its owner can read the file.
    #[error("the key file `{path}` can be read by others (mode {mode:03o}), expected 600")]
    Readable {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The permission bits of the file, such as `0o644`.
        mode: u32,
    },
    /// The text is not that of keys. Never shows it.
    #[error(
        "line {line} of the key file of --secrets-key-file ({KEYS_FILE} in the data folder unless given) is not a key, expected 32 bytes in base64"
    )]
    Malformed {
        /// From 1.
        line: usize,
    },
    /// No key at all, or too many.
    #[error(
        "the key file of --secrets-key-file ({KEYS_FILE} in the data folder unless given) has {found} \
         keys, expected 1 to {KEYS_MAX}"
    )]
    Count {
        /// How many it has.
        found: usize,
    },
    /// Something was sealed with a key that is not there any more.
    #[error(
        "secrets were sealed with the key `{id}`, which is not in the key file of --secrets-key-file \
         ({KEYS_FILE} in the data folder unless given); add it there, below the others"
    )]
    Unknown {
        /// The id of the missing key.
        id: String,
    },
    /// A sealed value does not open: it was changed, or moved to another row.
    #[error("a sealed value of `{row}` does not open")]
    Broken {
        /// The row that the value is bound to.
        row: String,
    },
}

/// The keys, the one that seals first. Its `Debug` shows none of them.
#[derive(Clone, Default)]
pub struct Keyring {
    keys: Vec<(Arc<str>, XChaCha20Poly1305)>,
    /// Of each key, what digests are made with.
    digesters: Vec<Digester>,
}

type Digester = hmac::Hmac<Sha256>;

/// A value that can only be read with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The name of the key.
    pub key_id: Arc<str>,
    /// Nonce and ciphertext.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.keys.iter().map(|(id, _)| id);
        f.debug_list().entries(names).finish()
    }
}

impl Keyring {
    /// No keys: nothing can be sealed.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads keys, one in each line that is not empty and no comment.
    ///
    /// # Errors
    /// [`KeysError::Malformed`], [`KeysError::Count`].
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let (mut keys, mut digesters) = (Vec::new(), Vec::new());
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let bytes = BASE64
                .decode(text)
                .ok()
                .and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok())
                .ok_or(KeysError::Malformed { line })?;
            digesters.push(digester(&bytes));
            keys.push((name(&bytes), XChaCha20Poly1305::new(&bytes.into())));
        }
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(KeysError::Count { found: keys.len() });
        }
        Ok(Self { keys, digesters })
    }

    /// Reads a key file, which nobody but its owner may be able to read.
    ///
    /// # Errors
    /// [`KeysError`]; the operator can mend it.
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        let failed = |source| KeysError::File {
            path: path.to_owned(),
            source,
        };
        refuse_readable(path)?;
        Self::parse(&std::fs::read_to_string(path).map_err(failed)?)
    }

    /// The key file of a data folder; made with a fresh key when it is missing.
    ///
    /// # Errors
    /// [`KeysError`]; the operator can mend it.
    pub fn of_folder(folder: &Path, clock: &SharedClock) -> Result<Self, KeysError> {
        let path = folder.join(KEYS_FILE);
        if !path.exists() {
            let text = format!("{}\n", BASE64.encode(clock.bytes32()));
            write_new(&path, &text).map_err(|source| KeysError::File {
                path: path.clone(),
                source,
            })?;
        }
        Self::read(&path)
    }

    /// Whether anything can be sealed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The name of the key that seals.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.keys.first().map(|(id, _)| &**id)
    }

    /// Whether a key of this name is there.
    #[must_use]
    pub fn knows(&self, key_id: &str) -> bool {
        self.keys.iter().any(|(id, _)| **id == *key_id)
    }

    /// A digest of a value, made with the key that seals: who has the database alone cannot try
    /// values out.
    #[must_use]
    pub fn digest(&self, value: &str) -> Option<Vec<u8>> {
        self.digests(value).next()
    }

    /// The digests that a value may be known by, one for each key.
    pub fn digests(&self, value: &str) -> impl Iterator<Item = Vec<u8>> {
        self.digesters.iter().map(move |digester| {
            let digest = digester.clone().chain_update(value);
            digest.finalize().into_bytes().to_vec()
        })
    }

    /// Seals a value for `row`.
    ///
    /// # Errors
    /// [`KeysError::None`].
    pub fn seal(&self, clock: &SharedClock, row: &str, value: &str) -> Result<Sealed, KeysError> {
        let (id, cipher) = self.keys.first().ok_or(KeysError::None)?;
        let random = clock.bytes32();
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&random[..NONCE_BYTES]);
        let payload = Payload {
            msg: value.as_bytes(),
            aad: row.as_bytes(),
        };
        let sealed = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .expect("a value is far shorter than the cipher can take");
        let bytes = [nonce.as_slice(), &sealed].concat();
        Ok(Sealed {
            key_id: id.clone(),
            bytes,
        })
    }

    /// Opens what was sealed for `row`.
    ///
    /// # Errors
    /// [`KeysError::Unknown`], [`KeysError::Broken`].
    pub fn open(&self, row: &str, sealed: &Sealed) -> Result<Secret, KeysError> {
        let known = self.keys.iter().find(|(id, _)| *id == sealed.key_id);
        let (_, cipher) = known.ok_or_else(|| KeysError::Unknown {
            id: sealed.key_id.to_string(),
        })?;
        let broken = || KeysError::Broken {
            row: row.to_owned(),
        };
        let (nonce, bytes) = sealed
            .bytes
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or_else(broken)?;
        let payload = Payload {
            msg: bytes,
            aad: row.as_bytes(),
        };
        let opened = cipher.decrypt(&XNonce::from(*nonce), payload);
        let text = opened.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| Secret(Arc::from(text))).ok_or_else(broken)
    }
}

/// A name that tells nothing of the key.
fn digester(key: &[u8; KEY_BYTES]) -> Digester {
    let own = Sha256::new()
        .chain_update(b"taskledger secret digest")
        .chain_update(key)
        .finalize();
    Digester::new_from_slice(&own).expect("a digest takes keys of any length")
}

fn name(key: &[u8; KEY_BYTES]) -> Arc<str> {
    let digest = Sha256::new()
        .chain_update(b"taskledger key name")
        .chain_update(key)
        .finalize();
    let hex = digest[..KEY_ID_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"));
    Arc::from(hex.collect::<String>())
}

fn refuse_readable(path: &Path) -> Result<(), KeysError> {
    match private::mode_for_others(path) {
        Ok(None) => Ok(()),
        Ok(Some(mode)) => Err(KeysError::Readable {
            path: path.to_owned(),
            mode,
        }),
        Err(source) => Err(KeysError::File {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The whole file or none: it is written beside and put in its place, durably, because secrets that
/// were sealed with a lost key are lost too.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("key.new");
    let mut options = private::options();
    options.write(true).create(true).truncate(true);
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_clock::SystemClock;

    fn clock() -> SharedClock {
        Arc::new(SystemClock::default())
    }

    fn line(byte: u8) -> String {
        BASE64.encode([byte; KEY_BYTES])
    }

    #[test]
    fn what_is_sealed_opens_in_its_row_only_and_shows_nothing() {
        let keys = Keyring::parse(&line(1)).unwrap();
        let sealed = keys.seal(&clock(), "a/1", "hunter2").unwrap();
        assert_eq!(&*keys.open("a/1", &sealed).unwrap().0, "hunter2");
        assert!(matches!(
            keys.open("a/2", &sealed),
            Err(KeysError::Broken { .. })
        ));
        assert!(!sealed.bytes.windows(7).any(|w| w == b"hunter2"));
        let again = keys.seal(&clock(), "a/1", "hunter2").unwrap();
        assert_ne!(sealed, again, "each value has a nonce of its own");
    }

    #[test]
    fn the_first_key_seals_and_every_key_opens() {
        let old = Keyring::parse(&line(1)).unwrap();
        let sealed = old.seal(&clock(), "r", "s").unwrap();
        let both = Keyring::parse(&format!("# new\n{}\n\n{}\n", line(2), line(1))).unwrap();
        assert!(both.open("r", &sealed).is_ok());
        let new = both.seal(&clock(), "r", "s").unwrap();
        assert_eq!(both.first(), Some(&*new.key_id));
        assert!(matches!(
            old.open("r", &new),
            Err(KeysError::Unknown { .. })
        ));
    }

    #[test]
    fn a_file_without_good_keys_is_refused_and_not_repeated() {
        for (text, expected) in [
            ("", "0 keys"),
            ("hunter2", "line 1"),
            ("# only a comment\nAAAA", "line 2"),
        ] {
            let error = Keyring::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(matches!(
            Keyring::none().seal(&clock(), "r", "s"),
            Err(KeysError::None)
        ));
    }

    #[test]
    fn a_folder_gets_a_key_that_others_cannot_read_and_keeps_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let first = Keyring::of_folder(folder.path(), &clock()).unwrap();
        let path = folder.path().join(KEYS_FILE);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Keyring::of_folder(folder.path(), &clock()).unwrap();
        assert_eq!(first.first(), again.first());
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640))
            .unwrap();
        assert!(matches!(
            Keyring::of_folder(folder.path(), &clock()),
            Err(KeysError::Readable { mode: 0o640, .. })
        ));
    }
}
