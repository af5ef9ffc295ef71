//! Many readers of one stream of events: what a connection costs, how many deliveries a second there
//! are and how late they are, what one costs, and whether readers that have stopped reading concern
//! the others. In the same run nginx with nchan, by the same client.

pub(crate) mod frames;
mod nginx;
mod publisher;
mod subscribers;
mod tally;
pub(crate) mod target;

use crate::args::Args;
use crate::process;
use crate::report::Report;
use nginx::Nginx;
use publisher::{Pace, publish};
use std::time::Duration;
use subscribers::{Kind, Subscribers};
use target::{Target, request};

/// Deliveries a second that are offered, one after the other, until no more arrive.
const OFFERED: [f64; 14] = [
    10e3, 20e3, 40e3, 60e3, 80e3, 100e3, 125e3, 150e3, 200e3, 250e3, 300e3, 400e3, 500e3, 600e3,
];
/// Less than this part of what was offered: the server is at its limit.
const KEPT_UP: f64 = 0.9;
/// The bar for a load that a server is said to carry.
const P99_MAX_MS: f64 = 200.0;
/// Events at a time, where they come in bursts.
const BURST: u32 = 10;
/// From the end of publishing to the last delivery.
const DRAIN_PATIENCE: Duration = Duration::from_secs(90);
/// Readers that do not read.
const STALLED: usize = 100;
/// Events of the past that stalled readers are sent at once, which fills all buffers.
const PAST_EVENTS: u32 = 20_000;
/// Tasks of a call that makes the past.
const PAST_BURST: u32 = 2_000;
/// What memory may settle for.
const SETTLE: Duration = Duration::from_secs(2);
/// Open files beside the connections.
const FILES_BESIDE: u64 = 500;

/// What a stretch of load gave.
#[derive(Debug, Clone, Copy)]
struct Step {
    offered: f64,
    per_second: f64,
    cpu_us: f64,
    p50_ms: f64,
    p99_ms: f64,
    lost: f64,
    doubled: f64,
    bytes: f64,
}

impl Step {
    fn kept_up(&self) -> bool {
        self.per_second >= KEPT_UP * self.offered && self.p99_ms <= P99_MAX_MS
    }
}

/// Its name, its unit, and where it is found.
type Figure = (&'static str, &'static str, fn(&Step) -> f64);

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Server,
    Stalled,
    Nginx,
}

/// A part of the scenario.
pub(crate) async fn fanout(args: &Args, part: Part, report: &mut Report) -> Result<(), String> {
    let most = args.subscribers.iter().copied().max().unwrap_or(0);
    process::open_files(most as u64 + FILES_BESIDE)?;
    report.row(
        "fan-out: load of the machine before",
        "",
        &[process::load()?],
    );
    match part {
        Part::Server => {
            for readers in args.subscribers.iter().copied() {
                let target = Target::ours(args, readers).await?;
                measure(args, &target, readers, report).await?;
                target.stop().await?;
            }
        }
        Part::Nginx if Nginx::is_installed() => {
            for readers in args.subscribers.iter().copied() {
                let target = Target::nginx(args).await?;
                measure(args, &target, readers, report).await?;
                target.stop().await?;
            }
        }
        Part::Nginx => {
            eprintln!("nginx with nchan is left out; Debian: nginx libnginx-mod-nchan");
        }
        Part::Stalled => {
            if let Some(readers) = args.subscribers.first() {
                stalled(args, *readers, report).await?;
            }
        }
    }
    report.row(
        "fan-out: load of the machine after",
        "",
        &[process::load()?],
    );
    Ok(())
}

/// So many readers: idle, then under a load that grows, then under what it carries.
async fn measure(
    args: &Args,
    target: &Target,
    readers: usize,
    report: &mut Report,
) -> Result<(), String> {
    let name = |what: &str| format!("{}, {readers} readers: {what}", target.name());
    let before = target.memory_kib()?;
    let subscribers = Subscribers::start()?;
    subscribers
        .connect(target.address(), &request(""), readers, Kind::Reading)
        .await?;
    tokio::time::sleep(SETTLE).await;
    let each = (target.memory_kib()? - before) / readers as f64;
    report.row(name("memory of an idle connection"), "KiB", &[each]);
    let cpu = target.cpu_seconds()?;
    tokio::time::sleep(Duration::from_secs(args.idle_seconds)).await;
    let cpu = (target.cpu_seconds()? - cpu) / args.idle_seconds as f64;
    report.row(
        name("CPU while idle, with heartbeats"),
        "% of a core",
        &[cpu * 100.0],
    );

    for (burst, how) in [(1, "one by one"), (BURST, "in bursts of 10")] {
        let name = |what: &str| name(&format!("events {how}, {what}"));
        let (best, most) = climb(args, target, &subscribers, readers, burst).await?;
        report.row(name("most deliveries"), "1/s", &[most.per_second]);
        let mut steps = vec![best];
        for _ in 1..args.rounds() {
            steps.push(step(args, target, &subscribers, readers, burst, best.offered).await?);
        }
        let mut row = |what: String, unit, figure: fn(&Step) -> f64| {
            let figures: Vec<f64> = steps.iter().map(figure).collect();
            report.row(name(&what), unit, &figures);
        };
        let offered = format!("{:.0}/s offered", best.offered);
        row(format!("{offered}: deliveries"), "1/s", |s| s.per_second);
        row(format!("{offered}: server CPU a delivery"), "us", |s| {
            s.cpu_us
        });
        row(format!("{offered}: p50"), "ms", |s| s.p50_ms);
        row(format!("{offered}: p99"), "ms", |s| s.p99_ms);
        row(format!("{offered}: bytes a delivery"), "B", |s| s.bytes);
        row("lost".to_owned(), "", |s| s.lost);
        row("doubled".to_owned(), "", |s| s.doubled);
    }
    let each = (target.memory_kib()? - before) / readers as f64;
    report.row(
        name("memory of a connection after the load"),
        "KiB",
        &[each],
    );
    let ended = subscribers.figures().await?.ended;
    report.row(
        name("streams that ended by themselves"),
        "",
        &[ended as f64],
    );
    Ok(())
}

/// Offers more and more; gives the largest load that was carried, and the most deliveries.
async fn climb(
    args: &Args,
    target: &Target,
    subscribers: &Subscribers,
    readers: usize,
    burst: u32,
) -> Result<(Step, Step), String> {
    let (mut best, mut most): (Option<Step>, Option<Step>) = (None, None);
    let mut behind = 0;
    for offered in OFFERED {
        let step = step(args, target, subscribers, readers, burst, offered).await?;
        eprintln!(
            "{}, {readers} readers, bursts of {burst}: {step:.1?}",
            target.name()
        );
        if most.is_none_or(|most| step.per_second > most.per_second) {
            most = Some(step);
        }
        if step.kept_up() || best.is_none() {
            best = Some(step);
        }
        behind = if step.kept_up() { 0 } else { behind + 1 };
        if behind == 2 {
            break;
        }
    }
    best.zip(most)
        .ok_or_else(|| "nothing was offered".to_owned())
}

/// A load of so many deliveries a second.
async fn step(
    args: &Args,
    target: &Target,
    subscribers: &Subscribers,
    readers: usize,
    burst: u32,
    offered: f64,
) -> Result<Step, String> {
    let pace = Pace {
        burst,
        events_per_second: offered / readers as f64,
        // At least a few bursts.
        seconds: args
            .seconds()
            .max(3.0 * f64::from(burst) * readers as f64 / offered),
    };
    let (before, cpu) = (subscribers.figures().await?, target.cpu_seconds()?);
    let published = publish(target.address(), target.source(), pace).await?;
    let wanted = published.events * readers as u64;
    subscribers
        .wait_for(before.deliveries + wanted, DRAIN_PATIENCE)
        .await?;
    let cpu = target.cpu_seconds()? - cpu;
    let after = subscribers.figures().await?;
    if (after.events - before.events) as u64 > published.events {
        return Err("there are events that nobody has published".to_owned());
    }
    let deliveries = after.deliveries - before.deliveries;
    let doubled = after.doubled - before.doubled;
    let took = (after.last_us - published.first_us).max(1) as f64 / 1e6;
    Ok(Step {
        offered,
        per_second: deliveries as f64 / took,
        cpu_us: cpu * 1e6 / deliveries.max(1) as f64,
        p50_ms: after.p50_ms,
        p99_ms: after.p99_ms,
        lost: wanted as f64 - (deliveries - doubled) as f64,
        doubled: doubled as f64,
        bytes: (after.bytes - before.bytes) as f64 / deliveries.max(1) as f64,
    })
}

/// Readers with and without others that have stopped reading.
async fn stalled(args: &Args, readers: usize, report: &mut Report) -> Result<(), String> {
    /// Well below the limit, so that only the stalled readers can make a difference.
    const SHARE: f64 = 30e3;
    let target = Target::ours(args, readers + STALLED).await?;
    let past = Pace {
        burst: PAST_BURST,
        events_per_second: f64::from(PAST_EVENTS),
        seconds: 1.0,
    };
    publish(target.address(), target.source(), past).await?;
    let subscribers = Subscribers::start()?;
    subscribers
        .connect(target.address(), &request(""), readers, Kind::Reading)
        .await?;
    let mut rows: Vec<(String, &'static str, Vec<f64>)> = Vec::new();
    let mut memory = vec![target.memory_kib()? / 1024.0];
    for (others, who) in [(0, "alone"), (STALLED, "beside 100 that do not read")] {
        let all = request("?from=beginning");
        subscribers
            .connect(target.address(), &all, others, Kind::Stalled)
            .await?;
        tokio::time::sleep(SETTLE).await;
        memory.push(target.memory_kib()? / 1024.0);
        let mut steps = Vec::new();
        for _ in 0..args.rounds() {
            steps.push(step(args, &target, &subscribers, readers, 1, SHARE).await?);
        }
        memory.push(target.memory_kib()? / 1024.0);
        let figures: [Figure; 5] = [
            ("deliveries", "1/s", |s| s.per_second),
            ("p50", "ms", |s| s.p50_ms),
            ("p99", "ms", |s| s.p99_ms),
            ("lost", "", |s| s.lost),
            ("doubled", "", |s| s.doubled),
        ];
        for (what, unit, figure) in figures {
            let name = format!("fan-out, {readers} readers {who}: {what}");
            rows.push((name, unit, steps.iter().map(figure).collect()));
        }
    }
    for (name, unit, figures) in rows {
        report.row(name, unit, &figures);
    }
    let names = [
        "before the load",
        "before the load, none stalled",
        "after the load, none stalled",
        "before the load, 100 stalled",
        "after the load, 100 stalled",
    ];
    for (name, figure) in names.iter().zip(memory).skip(1) {
        report.row(
            format!("fan-out: memory of the server {name}"),
            "MB",
            &[figure],
        );
    }
    target.stop().await
}
