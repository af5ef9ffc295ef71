//! What the measurement ran on.

use crate::process;
use serde::Serialize;
use std::os::linux::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// The machine, the program, and how busy it was before.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory_mb: u64,
    pub(crate) kernel: String,
    /// Of the folder of the data.
    pub(crate) file_system: String,
    /// Processes that wanted to run in the minute before.
    pub(crate) load_before: f64,
    pub(crate) program: String,
    /// Of the repository in the current folder, if it is one.
    pub(crate) revision: Option<String>,
    pub(crate) store: String,
}

impl Machine {
    /// This machine.
    pub(crate) fn describe(program: &Path, data_dir: &Path, store: String) -> Result<Self, String> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let find = |path: &str, name: &str| {
            let text = read(path);
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|rest| rest.trim_start_matches([' ', '\t', ':']).trim().to_owned())
                .unwrap_or_default()
        };
        let memory_kib = find("/proc/meminfo", "MemTotal");
        let memory_kib = memory_kib.trim_end_matches(" kB").parse().unwrap_or(0_u64);
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: find("/proc/cpuinfo", "model name"),
            memory_mb: memory_kib / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            file_system: file_system(data_dir, &read("/proc/self/mounts")),
            load_before: process::load()?,
            program: said_by(Command::new(program).arg("--version")).unwrap_or_default(),
            revision: said_by(Command::new("git").args(["describe", "--always", "--dirty"])),
            store,
        })
    }

    /// In one sentence.
    pub(crate) fn text(&self) -> String {
        format!(
            "{} cores ({}), {} MB memory, Linux {}, {}; load before {:.2}; {}{}; {}",
            self.cores,
            self.processor,
            self.memory_mb,
            self.kernel,
            self.file_system,
            self.load_before,
            self.program,
            self.revision
                .as_ref()
                .map_or(String::new(), |revision| format!(" ({revision})")),
            self.store,
        )
    }
}

/// The first line that a program prints, if it runs.
fn said_by(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}

/// Kind of the file system that holds a folder.
fn file_system(folder: &Path, mounts: &str) -> String {
    let folder = folder.canonicalize().unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (_, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder.starts_with(at).then_some((at.len(), kind))
    });
    // Of several at one place the last one is seen.
    let found = mounted.max_by_key(|(len, _)| *len);
    found.map_or_else(String::new, |(_, kind)| kind.to_owned())
}

/// Flushes that the disk of a folder has carried out since the system started, if it tells.
pub(crate) fn flushes(folder: &Path) -> Option<f64> {
    /// Place of the flushes among the figures of a disk.
    const FLUSHES: usize = 15;
    let device = std::fs::metadata(folder).ok()?.st_dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let at = format!("/sys/dev/block/{major}:{minor}");
    // Only the whole disk tells, not its parts.
    let stat = match Path::new(&at).join("partition").exists() {
        true => format!("{at}/../stat"),
        false => format!("{at}/stat"),
    };
    let text = std::fs::read_to_string(stat).ok()?;
    text.split_whitespace().nth(FLUSHES)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::file_system;

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\nproc /proc proc rw 0 0\n/dev/b /proc/self xfs rw 0 0\n";
        assert_eq!(file_system("/".as_ref(), mounts), "ext4");
        assert_eq!(file_system("/proc".as_ref(), mounts), "proc");
    }
}
