//! Many readers of one run: those who subscribe to it as a task of Agent2Agent, in turns with those who read the events
//! of its flow. The run waits for an answer until all of them are there.

use crate::args::Args;
use crate::client::{Client, Request};
use crate::fanout::frames::Frames;
use crate::nodes::Nodes;
use crate::process;
use crate::report::{Figures, Report};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Readers of one run.
const READERS: [usize; 2] = [20, 200];
/// Tasks that return something behind the question.
const TASKS: usize = 200;
/// Open files beside the connections.
const FILES_BESIDE: u64 = 500;
const READ_BYTES: usize = 64 * 1024;
/// The run may take so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// What stops asking for the question of a run.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What is read.
#[derive(Debug, Clone, Copy)]
enum Read {
    Events,
    Subscription,
}

impl Read {
    const ALL: [Self; 2] = [Self::Events, Self::Subscription];

    const fn name(self) -> &'static str {
        match self {
            Self::Events => "GET /events of the flow",
            Self::Subscription => "SubscribeToTask, HTTP+JSON",
        }
    }

    /// What the last event has.
    const fn last(self) -> &'static [u8] {
        match self {
            Self::Events => b"\"final\":true",
            Self::Subscription => b"TASK_STATE_COMPLETED",
        }
    }

    fn request(self, flow: &str, run: &str) -> Request {
        match self {
            Self::Events => Request::get(&format!("/events?flow={flow}")),
            Self::Subscription => {
                Request::get(&format!("/a2a/rest/tasks/{run}:subscribe?A2A-Version=1.0"))
            }
        }
    }
}

/// The whole scenario.
pub(crate) async fn follow(args: &Args, report: &mut Report) -> Result<(), String> {
    let most = READERS.iter().copied().max().unwrap_or(0);
    process::open_files(most as u64 + FILES_BESIDE)?;
    for readers in READERS {
        let nodes = Nodes::start(args, "a2a-follow").await?;
        let mut all = Read::ALL.map(|read| (read, Figures::default()));
        for round in 0..=args.rounds() {
            for (read, figures) in &mut all {
                let cpu = nodes.cpu_seconds()?;
                let (took, told) = run(&nodes.first().address, *read, readers).await?;
                let cpu = nodes.cpu_seconds()? - cpu;
                // The first round warms up.
                if round > 0 {
                    figures.add("answer to the last end", "ms", took * 1e3);
                    figures.add("events", "1/s", told as f64 / took);
                    figures.add("server CPU an event", "us", cpu * 1e6 / told.max(1) as f64);
                }
            }
        }
        for (read, figures) in all {
            let name = format!(
                "a2a, {readers} readers of a run of {TASKS} tasks, {}",
                read.name()
            );
            report.figures(&name, figures);
        }
        nodes.stop().await?;
    }
    Ok(())
}

fn tree() -> Value {
    let mut tasks = vec![
        json!({"id": "all", "name": "all"}),
        json!({"id": "go", "name": "go", "parent_id": "all", "schemas": {"method": "approval_executor"},
            "inputs": {"question": "Go?"}}),
    ];
    tasks.extend((0..TASKS).map(|n| {
        json!({"id": format!("t{n}"), "name": "step", "parent_id": "all", "schemas": {"method": "echo_executor"},
            "inputs": {"n": n}, "dependencies": [{"id": "go"}]})
    }));
    json!({"tasks": tasks})
}

/// One run: seconds from the answer to the end of the last reader, and the events that all of them were told.
async fn run(address: &str, read: Read, readers: usize) -> Result<(f64, usize), String> {
    let mut client = Client::connect(address).await?;
    let begun = client.call("tasks.execute", &tree()).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (flow, run) = (text(&begun["root_task_id"]), text(&begun["run_id"]));
    let task = begun["task_ids"]["go"].clone();
    let suspension = loop {
        let found = client.call("tasks.get", &json!({"task_id": task})).await?;
        match found["suspension"]["suspension_id"].as_str() {
            Some(id) => break id.to_owned(),
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    };
    let request = read.request(&flow, &run);
    let (opened, mut open) = mpsc::channel(readers);
    let mut following = JoinSet::new();
    for _ in 0..readers {
        let (address, request) = (address.to_owned(), request.bytes().to_vec());
        let opened = opened.clone();
        following.spawn(async move { one(&address, &request, read, opened).await });
    }
    drop(opened);
    for _ in 0..readers {
        open.recv().await.ok_or("a reader was not let in")?;
    }
    let began = Instant::now();
    let answer = json!({"task_id": task, "suspension_id": suspension, "value": true});
    client.call("tasks.respond", &answer).await?;
    let mut told = 0;
    while let Some(one) = following.join_next().await {
        told += one.map_err(|e| e.to_string())??;
    }
    Ok((began.elapsed().as_secs_f64(), told))
}

/// Reads a stream to its last event; how many there were.
async fn one(
    address: &str,
    request: &[u8],
    read: Read,
    opened: mpsc::Sender<()>,
) -> Result<usize, String> {
    let failed = |e: std::io::Error| e.to_string();
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.write_all(request).await.map_err(failed)?;
    let (mut frames, mut buffer) = (Frames::default(), vec![0; READ_BYTES]);
    let (mut told, mut has_ended, mut is_open) = (0, false, false);
    while !has_ended {
        let bytes = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await;
        let bytes = bytes
            .map_err(|_| "nothing comes any more")?
            .map_err(failed)?;
        if bytes == 0 {
            return Err("a stream has ended before its run".to_owned());
        }
        let ended = frames.read(&buffer[..bytes], |_, data| {
            told += 1;
            has_ended |= data.windows(read.last().len()).any(|it| it == read.last());
        });
        // A subscription ends with its run.
        if !has_ended {
            ended?;
        }
        if frames.is_open() && !is_open {
            is_open = true;
            opened.send(()).await.map_err(|e| e.to_string())?;
        }
    }
    Ok(told)
}
