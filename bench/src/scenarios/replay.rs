//! The log, read again: by a subscriber from its beginning, by the command that verifies it, and by the
//! first command for a flow that is not in memory.

use super::create::caught_up;
use super::long_log::{self, LongLog};
use super::rebuild::run;
use crate::args::Args;
use crate::client::Client;
use crate::fanout::frames::Frames;
use crate::fanout::target::request;
use crate::history::{events_of, task_id};
use crate::nodes::Nodes;
use crate::place::Place;
use crate::report::{Figures, Report, number};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Read at once from a stream of events.
const READ_BYTES: usize = 128 * 1024;
/// A stream that says nothing for so long has told all that there was.
const QUIET: Duration = Duration::from_secs(1);
/// Sizes of flows that are loaded.
const FLOWS: [u64; 3] = [1_000, 10_000, 100_000];

/// The scenario.
pub(crate) async fn replay(
    args: &Args,
    long_log: &mut LongLog,
    report: &mut Report,
) -> Result<(), String> {
    let (tasks, name) = (long_log::tasks(args), long_log::name(long_log::tasks(args)));
    let place = long_log.take(args, report).await?;
    let mut figures = Figures::default();
    for _ in 0..args.long_rounds() {
        let (seconds, cpu) = run(&args.program, &["events", "verify"], &place)?;
        let events = events_of(tasks) as f64;
        figures.add("rate", "events/s", events / seconds);
        figures.add("CPU of the command per event", "us", cpu * 1e6 / events);
    }
    report.figures(&format!("replay, {name}, events verify"), figures);
    long_log.give_back(place);

    let nodes = long_log.serve(args, report).await?;
    let mut figures = Figures::default();
    for _ in 0..args.long_rounds() {
        let before = nodes.cpu_seconds()?;
        let (notices, seconds) = from_beginning(&nodes.first().address).await?;
        figures.add("rate", "notices/s", notices / seconds);
        let cpu = nodes.cpu_seconds()? - before;
        figures.add("server CPU per notice", "us", cpu * 1e6 / notices);
    }
    figures.add("memory of the server", "MB", nodes.memory_mb()?);
    report.figures(
        &format!("replay, {name}, /events from the beginning"),
        figures,
    );
    long_log.give_back(nodes.end().await?);
    flows(args, report).await
}

/// All that a stream tells of the past: how many notices, and the seconds to the last of them.
async fn from_beginning(address: &str) -> Result<(f64, f64), String> {
    let mut stream = TcpStream::connect(address)
        .await
        .map_err(|e| e.to_string())?;
    let began = Instant::now();
    stream
        .write_all(request("?from=beginning").as_bytes())
        .await
        .map_err(|e| e.to_string())?;
    let (mut frames, mut notices, mut last) = (Frames::default(), 0_u64, began);
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(read) = tokio::time::timeout(QUIET, stream.read(&mut buffer)).await {
        let len = read.map_err(|e| e.to_string())?;
        if len == 0 {
            return Err("the server ended the stream".to_owned());
        }
        let told = notices;
        frames.read(&buffer[..len], |_, _| notices += 1)?;
        if notices > told {
            last = Instant::now();
        }
    }
    match notices {
        0 => Err("the stream tells nothing of the past".to_owned()),
        some => Ok((some as f64, (last - began).as_secs_f64())),
    }
}

/// The first command for a flow reads all of its events; the next ones do not.
async fn flows(args: &Args, report: &mut Report) -> Result<(), String> {
    let copies = args.rounds() as u64;
    let place = Place::fresh(args, "replay").await?;
    place.import(&args.program, |log| {
        for tasks in FLOWS {
            for _ in 0..copies {
                log.tree(tasks)?;
            }
        }
        Ok(())
    })?;
    let nodes = Nodes::start_on(args, place, &[]).await?;
    caught_up(&nodes).await?;
    let mut client = Client::connect(&nodes.first().address).await?;
    let mut flow = 0;
    for tasks in FLOWS {
        let mut figures = Figures::default();
        for _ in 0..copies {
            let mut times = [0.0; 2];
            for (time, name) in times.iter_mut().zip(["first", "second"]) {
                let began = Instant::now();
                let params = json!({"task_id": task_id(flow, 1), "updates": {"name": name}});
                client.call("tasks.update", &params).await?;
                *time = began.elapsed().as_secs_f64();
            }
            let [first, second] = times;
            figures.add("first command", "ms", first * 1e3);
            figures.add("second command", "ms", second * 1e3);
            let rate = tasks as f64 / (first - second).max(f64::EPSILON);
            figures.add("rate", "events/s", rate);
            flow += 1;
        }
        figures.add("memory of the server, most", "MB", nodes.peak_memory_mb()?);
        let name = number(tasks as f64);
        report.figures(&format!("replay, a flow of {name} tasks"), figures);
    }
    nodes.stop().await
}
