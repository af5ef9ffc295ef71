//! Figures of the operating system about this process.

use rustix::process::{Resource, getrlimit};
use std::fs::{read_dir, read_to_string};

/// Ticks of a second in `/proc`: the same on every Linux.
const TICKS: f64 = 100.0;

/// Figures of the process; what the system does not tell is absent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Process {
    pub(super) cpu_seconds: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) virtual_bytes: Option<u64>,
    pub(super) threads: Option<u64>,
    pub(super) open_fds: Option<u64>,
    pub(super) max_fds: Option<u64>,
}

impl Process {
    /// Asks the system. Cost: O(open files).
    pub(super) fn read() -> Self {
        let stat = read_to_string("/proc/self/stat").unwrap_or_default();
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        let member = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let bytes = |name| member(name).map(|kib| kib * 1024);
        Self {
            cpu_seconds: cpu_seconds(&stat),
            resident_bytes: bytes("VmRSS:"),
            virtual_bytes: bytes("VmSize:"),
            threads: member("Threads:"),
            open_fds: read_dir("/proc/self/fd")
                .ok()
                // One of them reads the folder.
                .map(|files| files.count().saturating_sub(1) as u64),
            max_fds: getrlimit(Resource::Nofile).current,
        }
    }
}

/// In user mode and in the kernel: the 14th and the 15th member. The second one, the name of the program,
/// is in parentheses and may contain anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut members = behind.split_whitespace().skip(11);
    let mut ticks = || members.next()?.parse::<u32>().ok().map(f64::from);
    Some((ticks()? + ticks()?) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::{Process, cpu_seconds};

    #[test]
    fn processor_time_is_found_behind_a_name_with_spaces() {
        let stat = "1 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds(""), None);
    }

    #[test]
    fn this_process_has_figures() {
        let process = Process::read();
        assert!(process.cpu_seconds.is_some());
        assert!(process.resident_bytes > Some(1024));
        assert!(process.virtual_bytes >= process.resident_bytes);
        assert!(process.threads >= Some(1));
        assert!(process.open_fds >= Some(3) && process.open_fds < process.max_fds);
    }
}
