//! What the disk can do at best, measured in the same run.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The row that holds it.
pub(crate) const SYNC: &str = "disk: append 4 KiB + fdatasync, p50";
/// Appends in one round.
const APPENDS: usize = 300;

/// Median microseconds of appending 4 KiB and syncing, one figure a round.
pub(crate) fn sync_us(folder: &Path, rounds: usize) -> Result<Vec<f64>, String> {
    let path = folder.join("sync-probe");
    let mut figures = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|e| e.to_string())?;
        let mut times = Vec::with_capacity(APPENDS);
        for _ in 0..APPENDS {
            let began = Instant::now();
            file.write_all(&[7; 4096])
                .and_then(|()| file.sync_data())
                .map_err(|e| e.to_string())?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        figures.push(crate::report::percentile(&mut times, 50.0));
        std::fs::remove_file(&path).map_err(|e| e.to_string())?;
    }
    Ok(figures)
}
