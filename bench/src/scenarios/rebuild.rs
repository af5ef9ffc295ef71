//! The read models, made anew from a long log: by the command beside no server, and while one serves.

use super::long_log::{self, LongLog};
use crate::args::Args;
use crate::client::Client;
use crate::history::events_of;
use crate::place::Place;
use crate::process;
use crate::report::{Figures, Report};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at a rebuild.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// For a rebuild.
const PATIENCE: Duration = Duration::from_secs(600);

/// The scenario.
pub(crate) async fn rebuild(
    args: &Args,
    long_log: &mut LongLog,
    report: &mut Report,
) -> Result<(), String> {
    let events = events_of(long_log::tasks(args)) as f64;
    let name = long_log::name(long_log::tasks(args));
    let place = long_log.take(args, report).await?;
    let mut figures = Figures::default();
    for _ in 0..args.long_rounds() {
        let (seconds, cpu) = run(&args.program, &["projections", "rebuild"], &place)?;
        figures.add("rate", "events/s", events / seconds);
        figures.add("CPU of the command per event", "us", cpu * 1e6 / events);
    }
    report.figures(&format!("rebuild of read models, {name}"), figures);
    long_log.give_back(place);

    let nodes = long_log.serve(args, report).await?;
    let mut client = Client::connect(&nodes.first().address).await?;
    let mut figures = Figures::default();
    for _ in 0..args.long_rounds() {
        let began = Instant::now();
        client.call("system.rebuild", &json!({})).await?;
        loop {
            let health = client.call("system.health", &json!({})).await?;
            match health["projections"]["rebuild"]["state"].as_str() {
                Some("done") => break,
                Some("running") if began.elapsed() < PATIENCE => {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                _ => return Err(format!("rebuild: {}", health["projections"])),
            }
        }
        let rate = events / began.elapsed().as_secs_f64();
        figures.add("rate", "events/s", rate);
    }
    figures.add("memory of the server, most", "MB", nodes.peak_memory_mb()?);
    report.figures(
        &format!("rebuild of read models while serving, {name}"),
        figures,
    );
    long_log.give_back(nodes.end().await?);
    Ok(())
}

/// Runs a command of the program on a place that no server uses; seconds, and seconds of processor time.
pub(super) fn run(program: &Path, command: &[&str], place: &Place) -> Result<(f64, f64), String> {
    let own = std::process::id();
    let before = process::reaped_cpu_seconds(own)?;
    let began = Instant::now();
    let output = Command::new(program)
        .args(command)
        .args(place.arguments())
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let took = began.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {said}", command.join(" ")));
    }
    Ok((took, process::reaped_cpu_seconds(own)? - before))
}
