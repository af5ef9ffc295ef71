//! The list of the files of a backup, and where the log ends in it.

use crate::store::chain::Mark;
use crate::{private, store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use store::sqlite::LEDGER_FILE;
use taskledger_domain::{Position, Timestamp};

/// Its name in the backup. It is written last.
pub(super) const MANIFEST_FILE: &str = "manifest.json";
/// What it says of itself.
const FORMAT: &str = "taskledger-backup";
/// Its form: another number is of another program.
const FORMAT_VERSION: u32 = 1;
/// Bytes of a manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 64 * 1024;
/// Bytes that are hashed at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copied {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// In hexadecimal.
    pub(super) sha256: String,
}

impl Copied {
    /// Reads a file.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let (mut file, mut digest, mut bytes) = (File::open(path)?, Sha256::new(), 0);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                count => {
                    digest.update(&chunk[..count]);
                    bytes += count as u64;
                }
            }
        }
        Ok(Self {
            name: name.unwrap_or_default().into_owned(),
            bytes,
            sha256: hex(&digest.finalize()),
        })
    }
}

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    format: String,
    format_version: u32,
    /// Version of the program that made it.
    program: String,
    /// When it was made.
    pub(super) created_at: Timestamp,
    /// Position of the last event of the log.
    pub(super) position: Position,
    /// Its hash with its position, as `events verify --head` takes it; absent while the log is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    pub(super) files: Vec<Copied>,
    /// SHA-256 of the manifest without this member.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    sha256: String,
}

impl Manifest {
    pub(super) fn new(
        created_at: Timestamp,
        position: Position,
        head: Option<String>,
        files: Vec<Copied>,
    ) -> Self {
        let mut manifest = Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            created_at,
            position,
            head,
            files,
            sha256: String::new(),
        };
        manifest.sha256 = manifest.digest();
        manifest
    }

    fn digest(&self) -> String {
        let unsigned = Self {
            sha256: String::new(),
            ..self.clone()
        };
        let text = serde_json::to_vec(&unsigned).expect("texts and numbers are JSON");
        hex(&Sha256::digest(text))
    }

    /// Writes it into the folder, synced.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut file = private::create_new(&folder.join(MANIFEST_FILE))?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    /// Reads that of a backup; the reason in words if there is none that can be used.
    pub(super) fn read(backup: &Path) -> Result<Self, String> {
        let path = backup.join(MANIFEST_FILE);
        let no_backup = |reason: &dyn std::fmt::Display| {
            format!(
                "`{}` is no complete backup: {MANIFEST_FILE}: {reason}",
                backup.display()
            )
        };
        let mut text = String::new();
        let file = File::open(&path).map_err(|e| no_backup(&e))?;
        let read = file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|e| no_backup(&e))?;
        let manifest: Self = serde_json::from_str(&text).map_err(|e| no_backup(&e))?;
        if manifest.format != FORMAT || manifest.format_version != FORMAT_VERSION {
            return Err(no_backup(&format!(
                "it has the format `{}` {}, expected `{FORMAT}` {FORMAT_VERSION}",
                manifest.format, manifest.format_version
            )));
        }
        if manifest.digest() != manifest.sha256 {
            return Err(no_backup(&"its `sha256` is not that of its content"));
        }
        if !manifest.has(LEDGER_FILE) {
            return Err(no_backup(&format!("it does not list {LEDGER_FILE}")));
        }
        // A name with a slash would lead out of the folder.
        let is_plain = |it: &&Copied| !it.name.contains('/') && it.name != "..";
        match manifest.files.iter().find(|it| !is_plain(it)) {
            Some(file) => Err(no_backup(&format!("`{}` is no name of a file", file.name))),
            None => Ok(manifest),
        }
    }

    /// Whether it lists a file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.files.iter().any(|it| it.name == name)
    }

    /// The hash of the last event.
    pub(super) fn mark(&self) -> Result<Option<Mark>, String> {
        self.head.as_deref().map(str::parse).transpose()
    }

    /// What is wrong with the files of `folder`, in words. Cost: O(bytes).
    pub(super) fn faults(&self, folder: &Path) -> Vec<String> {
        let fault = |file: &Copied| match Copied::of(&folder.join(&file.name)) {
            Ok(found) if found == *file => None,
            Ok(found) if found.bytes != file.bytes => Some(format!(
                "{}: it has {} bytes, expected {}",
                file.name, found.bytes, file.bytes
            )),
            Ok(found) => Some(format!(
                "{}: its SHA-256 is {}, expected {}",
                file.name, found.sha256, file.sha256
            )),
            Err(error) => Some(format!("{}: {error}", file.name)),
        };
        self.files.iter().filter_map(fault).collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
