//! One file of the archive: lines in the form of an export, durable before it has its name.

use crate::clock::SharedClock;
use crate::private;
use crate::store::transfer::{Archive, ArchiveHead, End, Line, Tally, exported};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use taskledger_domain::{Recorded, Timestamp};

/// Ending of a file that is not whole. What a crash leaves may be deleted.
const PART: &str = "part";

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Writing {
    out: BufWriter<File>,
    sha256: Sha256,
    tally: Tally,
    folder: PathBuf,
    name: String,
}

/// A file that is there to stay.
#[derive(Debug, Clone)]
pub(super) struct Written {
    /// Its name within the folder.
    pub(super) name: String,
    /// Digest of the whole file, in hexadecimal.
    pub(super) sha256: String,
}

impl Writing {
    /// Begins a file for so many flows.
    pub(super) fn begin(folder: &Path, clock: &SharedClock, flows: u64) -> io::Result<Self> {
        make(folder)?;
        let at = clock.now();
        let id = clock.uuid().simple().to_string();
        let name = format!("flows-{}-{}.jsonl", compact(at), &id[..8]);
        let out = private::create_new(&part(folder, &name))?;
        let mut writing = Self {
            out: BufWriter::new(out),
            sha256: Sha256::new(),
            tally: Tally::default(),
            folder: folder.to_owned(),
            name,
        };
        let archive = ArchiveHead { flows, at };
        writing.put(&Line::Archive(Archive { archive }))?;
        Ok(writing)
    }

    /// The next event, in order of position.
    pub(super) fn event(&mut self, recorded: &Recorded) -> io::Result<()> {
        self.put(&Line::Event(exported(recorded)))
    }

    fn put(&mut self, line: &Line) -> io::Result<()> {
        let mut text = line.text();
        self.tally.add(line, &text);
        text.push('\n');
        self.sha256.update(text.as_bytes());
        self.out.write_all(text.as_bytes())
    }

    /// Makes the file durable, then its name.
    pub(super) fn finish(mut self) -> io::Result<Written> {
        let end = self.tally.clone().receipt();
        self.put(&Line::End(End { end, head: None }))?;
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        let digest = self.sha256.finalize_reset();
        fs::rename(part(&self.folder, &self.name), self.folder.join(&self.name))?;
        File::open(&self.folder)?.sync_all()?;
        Ok(Written {
            name: std::mem::take(&mut self.name),
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }
}

/// Makes a folder with those above it, durably: what is deleted from the log may be nowhere else.
fn make(folder: &Path) -> io::Result<()> {
    for made in private::make_folder(folder)? {
        let above = made.parent().filter(|above| *above != Path::new(""));
        File::open(above.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

impl Drop for Writing {
    fn drop(&mut self) {
        // A finished file has another name.
        if !self.name.is_empty() {
            let _ = fs::remove_file(part(&self.folder, &self.name));
        }
    }
}

fn part(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{PART}"))
}

/// A time without what a name of a file should not have: `20260131T120000Z`.
fn compact(at: Timestamp) -> String {
    let text = at.to_string();
    let digits = text.split('.').next().unwrap_or_default();
    let kept: String = digits
        .chars()
        .filter(|c| c.is_ascii_digit() || *c == 'T')
        .collect();
    kept + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;

    #[test]
    fn a_file_of_the_archive_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("archive");
        let clock: SharedClock = Arc::new(SystemClock::default());
        let written = Writing::begin(&archive, &clock, 0).unwrap().finish();
        let file = archive.join(written.unwrap().name);
        let modes = [&archive, &file].map(|path| {
            let metadata = fs::metadata(path).unwrap();
            metadata.permissions().mode() & 0o777
        });
        assert_eq!(modes, [0o700, 0o600]);
    }
}
