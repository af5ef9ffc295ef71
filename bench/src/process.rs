//! What the system says of a process.

/// Resident memory, in KiB.
pub(crate) fn memory_kib(pid: u32) -> Result<f64, String> {
    field(pid, "status", "VmRSS:")
}

/// What of it belongs to no file, in KiB: not the program's own pages, which the system may drop and read
/// again.
pub(crate) fn own_memory_kib(pid: u32) -> Result<f64, String> {
    field(pid, "status", "RssAnon:")
}

/// Its share of resident memory, in KiB: what several processes use together is divided by their
/// number.
pub(crate) fn shared_memory_kib(pid: u32) -> Result<f64, String> {
    field(pid, "smaps_rollup", "Pss:")
}

fn field(pid: u32, file: &str, name: &str) -> Result<f64, String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).map_err(|e| e.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.map(|line| line.trim().trim_end_matches(" kB").trim().parse());
    match number {
        Some(Ok(kib)) => Ok(kib),
        Some(Err(_)) | None => Err(format!("/proc/{pid}/{file} does not tell {name}")),
    }
}

/// Resident memory at its highest, in KiB.
pub(crate) fn peak_memory_kib(pid: u32) -> Result<f64, String> {
    field(pid, "status", "VmHWM:")
}

/// Seconds of processor time so far.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, String> {
    let stat = Stat::read(pid)?;
    Ok(stat.seconds(11) + stat.seconds(12))
}

/// Seconds of processor time of a process and of its children, those that have ended included.
pub(crate) fn family_cpu_seconds(pid: u32) -> Result<f64, String> {
    let stat = Stat::read(pid)?;
    let own: f64 = (11..=14).map(|at| stat.seconds(at)).sum();
    // A child that has ended meanwhile is among those of its parent at the next look.
    let running = children(pid)?
        .into_iter()
        .filter_map(|child| cpu_seconds(child).ok());
    Ok(own + running.sum::<f64>())
}

/// Seconds of processor time of the children of a process that have ended.
pub(crate) fn reaped_cpu_seconds(pid: u32) -> Result<f64, String> {
    let stat = Stat::read(pid)?;
    Ok(stat.seconds(13) + stat.seconds(14))
}

/// The process that started this one.
pub(crate) fn parent(pid: u32) -> Result<u32, String> {
    let stat = Stat::read(pid)?;
    let parent = stat.0.get(1).and_then(|field| field.parse().ok());
    parent.ok_or_else(|| format!("/proc/{pid}/stat names no parent"))
}

/// The fields of `/proc/PID/stat` behind the name.
struct Stat(Vec<String>);

impl Stat {
    fn read(pid: u32) -> Result<Self, String> {
        let path = format!("/proc/{pid}/stat");
        let stat = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        Ok(Self(fields.split(' ').map(str::to_owned).collect()))
    }

    /// A time, which is told in ticks.
    fn seconds(&self, at: usize) -> f64 {
        /// Clock ticks a second: fixed at 100 in what Linux shows to programs.
        const TICKS: f64 = 100.0;
        let field = self.0.get(at).and_then(|field| field.parse::<f64>().ok());
        field.unwrap_or(0.0) / TICKS
    }
}

/// Processes that this one has started, and that still run.
pub(crate) fn children(pid: u32) -> Result<Vec<u32>, String> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    Ok(text
        .split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect())
}

/// Average number of processes that wanted to run in the last minute.
pub(crate) fn load() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/loadavg").map_err(|e| e.to_string())?;
    let first = text.split(' ').next().and_then(|field| field.parse().ok());
    first.ok_or_else(|| format!("/proc/loadavg: {text}"))
}

/// Lets this process, and those that it starts, open as many files as the system allows; an error when
/// that is less than `wanted`.
pub(crate) fn open_files(wanted: u64) -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|e| format!("open files: {e}"))?;
    match limit.maximum {
        Some(most) if most < wanted => Err(format!(
            "{wanted} open files are needed, the system allows {most} (`ulimit -Hn`)"
        )),
        Some(_) | None => Ok(()),
    }
}
