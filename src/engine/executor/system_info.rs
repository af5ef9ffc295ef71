//! `system_info_executor`: what this machine has and how busy it is. Reads `/proc` and asks the
//! file system; changes nothing.

use super::{Concurrency, Description, Executor, ExecutorError, Job};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Returns `{cpu?, memory?, disk?}`, by `inputs.resource`: `cpu`, `memory`, `disk` or `all`.
///
/// - `cpu`: `cores` (that this process may use), `model` (null when unknown), `load_average`
///   `{1m, 5m, 15m}`.
/// - `memory`: bytes `total_bytes`, `available_bytes`, `used_bytes`, `swap_total_bytes`,
///   `swap_free_bytes`, and `used_fraction`.
/// - `disk`: `path`, bytes `total_bytes`, `available_bytes` (to this process), `used_bytes`, and
///   `used_fraction`.
#[derive(Debug, Clone)]
pub struct SystemInfoExecutor {
    disk_path: PathBuf,
}

impl SystemInfoExecutor {
    /// `disk` tells of the file system that holds `disk_path`.
    #[must_use]
    pub fn new(disk_path: impl Into<PathBuf>) -> Self {
        Self {
            disk_path: disk_path.into(),
        }
    }
}

impl Default for SystemInfoExecutor {
    /// The file system of the working directory.
    fn default() -> Self {
        Self::new(".")
    }
}

#[async_trait]
impl Executor for SystemInfoExecutor {
    fn describe(&self) -> Description {
        Description {
            name: "system_info_executor".to_owned(),
            aliases: Vec::new(),
            summary: "Reports processor, memory and disk of the server.".to_owned(),
            idempotent: true,
            pure: false,
            input_schema: Some(json!({
                "type": "object",
                "properties": {"resource": {"enum": ["cpu", "memory", "disk", "all"]}}
            })),
            concurrency: Concurrency::Waiting,
        }
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let asked = job.inputs.get("resource").cloned().unwrap_or(json!("all"));
        let (cpu, memory, disk) = match asked.as_str() {
            Some("all") => (true, true, true),
            Some("cpu") => (true, false, false),
            Some("memory") => (false, true, false),
            Some("disk") => (false, false, true),
            Some(_) | None => {
                return Err(ExecutorError::new(format!(
                    "`resource` is {asked}, expected `cpu`, `memory`, `disk` or `all`"
                )));
            }
        };
        let path = self.disk_path.clone();
        // A file system may take its time, so not on the thread of the runtime.
        let gathered = tokio::task::spawn_blocking(move || {
            let mut result = Map::new();
            if cpu {
                result.insert("cpu".to_owned(), cpu_info()?);
            }
            if memory {
                result.insert("memory".to_owned(), memory_info(&read("/proc/meminfo")?)?);
            }
            if disk {
                result.insert("disk".to_owned(), disk_info(&path)?);
            }
            Ok(Value::Object(result))
        });
        gathered
            .await
            .unwrap_or_else(|_| Err(ExecutorError::new("the server is shutting down")))
    }
}

fn read(path: &str) -> Result<String, ExecutorError> {
    std::fs::read_to_string(path)
        .map_err(|error| ExecutorError::new(format!("cannot read `{path}`: {error}")))
}

fn cpu_info() -> Result<Value, ExecutorError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = read("/proc/cpuinfo").ok().and_then(|text| model(&text));
    let load = load_average(&read("/proc/loadavg")?)?;
    Ok(json!({"cores": cores, "model": model, "load_average": load}))
}

fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().to_owned())
}

fn load_average(text: &str) -> Result<Value, ExecutorError> {
    let numbers: Vec<f64> = text
        .split_whitespace()
        .take(3)
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [one, five, fifteen] => Ok(json!({"1m": one, "5m": five, "15m": fifteen})),
        _ => Err(ExecutorError::new("cannot understand `/proc/loadavg`")),
    }
}

fn memory_info(meminfo: &str) -> Result<Value, ExecutorError> {
    let bytes = |name: &str| {
        meminfo
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|rest| rest.trim().strip_suffix("kB"))
            .and_then(|number| number.trim().parse::<u64>().ok())
            .and_then(|kib| kib.checked_mul(1024))
            .ok_or_else(|| ExecutorError::new(format!("cannot find `{name}` in `/proc/meminfo`")))
    };
    let total = bytes("MemTotal")?;
    let available = bytes("MemAvailable")?;
    let used = total.saturating_sub(available);
    Ok(json!({
        "total_bytes": total,
        "available_bytes": available,
        "used_bytes": used,
        "used_fraction": fraction(used, total),
        "swap_total_bytes": bytes("SwapTotal")?,
        "swap_free_bytes": bytes("SwapFree")?,
    }))
}

fn disk_info(path: &Path) -> Result<Value, ExecutorError> {
    let told = rustix::fs::statvfs(path).map_err(|error| {
        ExecutorError::new(format!(
            "cannot ask for the disk of `{}`: {error}",
            path.display()
        ))
    })?;
    let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
    let (total, free, available) = (
        bytes(told.f_blocks),
        bytes(told.f_bfree),
        bytes(told.f_bavail),
    );
    let used = total.saturating_sub(free);
    Ok(json!({
        "path": path.display().to_string(),
        "total_bytes": total,
        "available_bytes": available,
        "used_bytes": used,
        "used_fraction": fraction(used, total),
    }))
}

fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::executor::test_support::{job, takes};

    async fn info(inputs: Value) -> Value {
        SystemInfoExecutor::default()
            .execute(job(inputs))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn everything_is_told_by_default_and_the_figures_make_sense() {
        let told = info(json!({})).await;
        assert!(told["cpu"]["cores"].as_u64().unwrap() >= 1);
        assert!(told["cpu"]["load_average"]["15m"].as_f64().unwrap() >= 0.0);
        for resource in ["memory", "disk"] {
            let total = told[resource]["total_bytes"].as_u64().unwrap();
            let used = told[resource]["used_bytes"].as_u64().unwrap();
            let share = told[resource]["used_fraction"].as_f64().unwrap();
            assert!(total > 0 && used <= total, "{told}");
            assert!((0.0..=1.0).contains(&share), "{told}");
        }
    }

    #[tokio::test]
    async fn one_resource_is_told_when_one_is_asked_for() {
        for resource in ["cpu", "memory", "disk"] {
            let told = info(json!({"resource": resource})).await;
            let members: Vec<_> = told.as_object().unwrap().keys().collect();
            assert_eq!(members, [resource]);
        }
    }

    #[tokio::test]
    async fn an_unknown_resource_is_refused() {
        for asked in [json!("gpu"), json!(1), json!(null)] {
            let inputs = json!({"resource": asked});
            assert!(!takes(SystemInfoExecutor::default(), &inputs));
            let executor = SystemInfoExecutor::default();
            assert!(executor.execute(job(inputs)).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_disk_path_that_is_not_there_is_named() {
        let executor = SystemInfoExecutor::new("/no/such/path");
        let error = executor
            .execute(job(json!({"resource": "disk"})))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("/no/such/path"), "{error}");
    }

    #[test]
    fn memory_is_read_from_the_kernels_text() {
        let text = "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n";
        assert_eq!(
            memory_info(text),
            Ok(json!({
                "total_bytes": 1_024_000, "available_bytes": 256_000, "used_bytes": 768_000,
                "used_fraction": 0.75, "swap_total_bytes": 0, "swap_free_bytes": 0,
            }))
        );
        let error = memory_info("MemTotal: many kB\n").unwrap_err();
        assert!(error.to_string().contains("MemTotal"), "{error}");
    }

    #[test]
    fn a_strange_load_average_is_an_error() {
        assert!(load_average("0.1 x").is_err());
        assert!(load_average("0.10 0.20 0.30 1/2 3").is_ok());
    }
}
