//! Files and folders that only the user who runs the program may read.
//!
//! Owns: the modes of what is made in a data folder, in an archive or as an export, all of which hold
//! the inputs and results of callers, tokens included. Existing modes are never changed: an operator
//! may have a reason for them, so [`warn_of_readable`] names them and says how to mend them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of a file: read and written by its owner.
const FILE_MODE: u32 = 0o600;
/// Mode of a folder: listed, entered and written by its owner.
const FOLDER_MODE: u32 = 0o700;
/// The bits of a mode that concern others than the owner.
const OTHERS: u32 = 0o077;
/// Paths that a warning names one by one. An archive may hold thousands of files.
const NAMED_MAX: usize = 20;

/// Makes a folder and those above it that are missing, all with mode 0700. Returns what it made,
/// the innermost first; nothing when the folder exists.
///
/// # Errors
/// The system's reason: something else has this name, or the place is read-only.
pub fn make_folder(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = missing_folders(path);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(path)?;
    Ok(missing)
}

/// The folders that [`make_folder`] would make, the innermost first.
#[must_use]
pub fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing = path.ancestors().take_while(|above| !above.exists());
    let missing = missing.filter(|above| *above != Path::new(""));
    missing.map(Path::to_owned).collect()
}

/// Makes a new file with mode 0600, open for writing.
///
/// # Errors
/// `AlreadyExists`, or the system's reason.
pub fn create_new(path: &Path) -> io::Result<File> {
    options().write(true).create_new(true).open(path)
}

/// Makes an empty file with mode 0600 unless there is a file of this name. SQLite takes it for a new
/// database, and gives what it keeps beside a database the same mode.
///
/// # Errors
/// The system's reason.
pub fn make_if_missing(path: &Path) -> io::Result<()> {
    match create_new(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Options that give a file mode 0600 if they make it.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// The mode of a path if it lets others than its owner in.
///
/// # Errors
/// The system's reason: there is no such path.
pub fn mode_for_others(path: &Path) -> io::Result<Option<u32>> {
    Ok(for_others(&std::fs::metadata(path)?.permissions()))
}

fn for_others(permissions: &Permissions) -> Option<u32> {
    let mode = permissions.mode() & 0o777;
    (mode & OTHERS != 0).then_some(mode)
}

/// A path that others than its owner can use.
#[derive(Debug, PartialEq, Eq)]
struct Readable {
    path: PathBuf,
    mode: u32,
    expected: u32,
}

impl Readable {
    /// The command that mends it, for a shell.
    fn command(&self) -> String {
        format!("chmod {:o} {}", self.expected, quoted(&self.path))
    }
}

/// Writes a warning for a folder that others can read, and for each such file in it, with the
/// command that mends it. Subfolders are named and not entered. Cost: one look at each entry.
pub fn warn_of_readable(folder: &Path) {
    let found = match readable(folder) {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(path = %folder.display(), %error, "the modes of the folder cannot be read");
            return;
        }
    };
    for readable in found.iter().take(NAMED_MAX) {
        tracing::warn!(
            path = %readable.path.display(),
            mode = format!("{:04o}", readable.mode),
            expected = format!("{:04o}", readable.expected),
            command = readable.command(),
            "other users of this machine can read what callers sent; run the command to prevent it"
        );
    }
    if let Some(more @ 1..) = found.len().checked_sub(NAMED_MAX) {
        let command = format!("chmod -R go-rwx {}", quoted(folder));
        tracing::warn!(more, command, "there are more files that others can read");
    }
}

/// The folder first, then what is in it, in order of names.
fn readable(folder: &Path) -> io::Result<Vec<Readable>> {
    let mut found = Vec::new();
    let mut look = |path: PathBuf, metadata: &std::fs::Metadata| {
        let expected = if metadata.is_dir() {
            FOLDER_MODE
        } else {
            FILE_MODE
        };
        let mode = for_others(&metadata.permissions());
        found.extend(mode.map(|mode| Readable {
            path,
            mode,
            expected,
        }));
    };
    look(folder.to_owned(), &std::fs::metadata(folder)?);
    let mut paths = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        // What SQLite keeps beside a database comes and goes.
        if let Ok(metadata) = std::fs::metadata(&path) {
            look(path, &metadata);
        }
    }
    Ok(found)
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text;
    }
    let text = text.replace('\'', r"'\''");
    let dash = if text.starts_with('-') { "./" } else { "" };
    format!("'{dash}{text}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let made = make_folder(&inner).unwrap();
        assert_eq!(made, [inner.clone(), folder.path().join("a")]);
        assert_eq!(make_folder(&inner).unwrap(), [] as [PathBuf; 0]);
        let file = inner.join("file");
        make_if_missing(&file).unwrap();
        make_if_missing(&file).unwrap();
        assert!(create_new(&file).is_err());
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        assert_eq!(readable(&inner).unwrap(), []);
    }

    #[test]
    fn what_others_can_read_is_found_with_the_command_that_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("it's here");
        make_if_missing(&file).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let found = readable(folder.path()).unwrap();
        let modes: Vec<_> = found.iter().map(|r| (r.mode, r.expected)).collect();
        assert_eq!(modes, [(0o755, 0o700), (0o640, 0o600)]);
        let shown = folder.path().display();
        assert_eq!(found[0].command(), format!("chmod 700 {shown}"));
        let word = format!(r"'{shown}/it'\''s here'");
        assert_eq!(found[1].command(), format!("chmod 600 {word}"));
        assert_eq!(quoted(Path::new("-x")), "'./-x'");
    }
}
