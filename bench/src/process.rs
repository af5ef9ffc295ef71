//! What the system says of a process.

/// Resident memory, in KiB.
pub(crate) fn memory_kib(pid: u32) -> Result<f64, String> {
    field(pid, "status", "VmRSS:")
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

/// Seconds of processor time so far.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, String> {
    /// Clock ticks a second: fixed at 100 in what Linux shows to programs.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|e| e.to_string())?;
    let fields: Vec<&str> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks = |at: usize| {
        let field = fields.get(at).and_then(|field| field.parse::<f64>().ok());
        field.unwrap_or(0.0)
    };
    Ok((ticks(11) + ticks(12)) / TICKS)
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
