//! Reading files that hold a secret: a private key, an access token.
//!
//! Such a file is read only if no other user of the machine can read it too: a secret that others had
//! is no secret, and whoever runs the program learns it before the secret is used. What is read is what
//! was checked, because both are done on the open file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The bits of a mode that concern others than the owner.
const OTHERS: u32 = 0o077;
/// The same without reading by the group.
const OTHERS_BUT_GROUP_READS: u32 = 0o037;
/// Owner of what the system or an orchestrator hands to a program: it cannot hand over ownership, only
/// let a group read.
const ROOT: u32 = 0;

/// A file with a secret that is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    Unreadable {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can read or change it.
    #[error(
        "other users can read or change `{path}` (mode {mode:04o}), so the secret in it is not used; run \
         `chmod 600 '{path}'`"
    )]
    Shared {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The permission bits of the file, such as `0o644`.
        mode: u32,
    },
    /// It is larger than any such secret.
    #[error("`{path}` has more than {bytes_max} bytes")]
    TooLarge {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What would be read at most.
        bytes_max: u64,
    },
}

/// The bytes of a file that only its owner can read; one that belongs to root may be read by its group
/// too, as mounted secrets are.
///
/// # Errors
/// [`Error`]: whoever runs the program mends it; no text holds a part of the file.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let forbidden = if metadata.uid() == ROOT {
        OTHERS_BUT_GROUP_READS
    } else {
        OTHERS
    };
    if metadata.mode() & forbidden != 0 {
        return Err(Error::Shared {
            path: path.to_owned(),
            mode: metadata.mode() & 0o777,
        });
    }
    let mut bytes = Vec::new();
    let mut limited = file.take(bytes_max + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            bytes_max,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(folder: &Path, mode: u32) -> PathBuf {
        let path = folder.join(format!("{mode:o}"));
        std::fs::write(&path, "hunter2").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_file_that_others_can_use_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o400] {
            assert_eq!(read(&file(folder.path(), mode), 7).unwrap(), b"hunter2");
        }
        for mode in [0o604, 0o602, 0o620, 0o666, 0o644] {
            let error = read(&file(folder.path(), mode), 7).unwrap_err();
            assert!(matches!(error, Error::Shared { .. }), "{mode:o}: {error}");
            let said = error.to_string();
            assert!(
                said.contains("chmod 600") && !said.contains("hunter2"),
                "{said}"
            );
        }
    }

    #[test]
    fn the_group_may_read_what_belongs_to_root() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), 0o640);
        let by_root = std::fs::metadata(&path).unwrap().uid() == ROOT;
        assert_eq!(read(&path, 7).is_ok(), by_root);
    }

    #[test]
    fn what_is_too_large_or_missing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), 0o600);
        assert!(matches!(read(&path, 6), Err(Error::TooLarge { .. })));
        let missing = read(&folder.path().join("none"), 6);
        assert!(matches!(missing, Err(Error::Unreadable { .. })));
    }
}
