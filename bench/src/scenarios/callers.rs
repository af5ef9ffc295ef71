//! Callers with tokens beside each other: what a user feels while another one floods the server with all that its
//! limits let through, what strangers at full speed take away, and what a scrape of the metrics each second costs.
//!
//! The loads beside the measured one come from a thread of their own, which takes processor time from the server: on
//! two cores a part of what is lost is theirs. Strangers come from another address, because wrong credentials lock out
//! their address.

use crate::args::Args;
use crate::client::{Answer, Client, Request};
use crate::load::{Call, Until, load};
use crate::place::Place;
use crate::report::{Figures, Report, percentile};
use crate::server::Server;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// What users may do.
const SCOPES: &str = "tasks:read,tasks:write,tasks:run";
/// Between two calls of the user who is measured: far below what its limits allow.
const PACE: Duration = Duration::from_millis(5);
/// Connections of whoever floods.
const FLOODING: usize = 64;
/// Tasks in one call of whoever floods.
const FLOOD_TASKS: usize = 100;
/// Connections of users who are measured at full speed.
const CONNECTIONS: usize = 16;
/// Before whoever was refused floods again.
const REFUSED_PAUSE: Duration = Duration::from_millis(5);
/// A server that takes all that a caller sends.
const UNLIMITED: [&str; 6] = [
    "--rate-per-second",
    "0",
    "--quota-open-flows",
    "0",
    "--quota-waiting-tasks",
    "0",
];
/// Where strangers come from: this machine under another of its addresses.
const STRANGERS_FROM: &str = "127.0.0.2:0";
/// A token of nobody, well formed.
const NOBODYS: &str =
    "tl_aaaaaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Between two scrapes.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);

/// All of it.
pub(crate) async fn callers(args: &Args, report: &mut Report) -> Result<(), String> {
    flooded(args, report).await?;
    among_strangers(args, report).await?;
    scraped(args, report).await
}

/// What one user feels of another one's flood.
async fn flooded(args: &Args, report: &mut Report) -> Result<(), String> {
    let (server, place, tokens) = guarded(args, &["ann", "bob"], &[]).await?;
    let (ann, bob) = (tokens[0].clone(), tokens[1].clone());
    let requests = [
        (
            "tasks.create",
            Request::call("tasks.create", &own_task()).by(&ann),
        ),
        (
            "tasks.list",
            Request::call("tasks.list", &json!({"limit": 20})).by(&ann),
        ),
    ];
    let tasks: Vec<Value> = (0..FLOOD_TASKS).map(|_| own_task()).collect();
    let flood = json!({"name": "flood", "children": tasks});
    let flood = Request::call("tasks.create", &flood).by(&bob);
    paced(&server.address, &requests, args.warm_up()).await?;
    let (mut alone, mut beside) = (Figures::default(), Figures::default());
    for _ in 0..args.rounds() {
        let times = paced(&server.address, &requests, args.seconds()).await?;
        let quiet = felt(&mut alone, &requests, times);
        let others = Others::begin(FLOODING, {
            let (address, flood) = (server.address.clone(), flood.clone());
            move |count| flooding(address.clone(), flood.clone(), count)
        });
        let times = paced(&server.address, &requests, args.seconds()).await;
        let flooded = others.end()?;
        let loud = felt(&mut beside, &requests, times?);
        beside.add("p99, of that alone", "x", loud / quiet);
        beside.add("calls of the flood that were taken", "/s", flooded);
    }
    report.figures("callers, one user at a pace", alone);
    report.figures(
        "callers, one user at a pace beside a flood of another",
        beside,
    );
    server.stop();
    place.remove().await
}

/// What a user feels at each of its calls, and at all of them; the p99 of all.
fn felt(figures: &mut Figures, requests: &[(&str, Request)], times: Vec<Vec<f64>>) -> f64 {
    for ((name, _), times) in requests.iter().zip(&times) {
        let p99 = percentile(&mut times.clone(), 99.0);
        figures.add(&format!("{name}, p99"), "ms", p99);
    }
    let mut all: Vec<f64> = times.into_iter().flatten().collect();
    figures.add("p50", "ms", percentile(&mut all, 50.0));
    let p99 = percentile(&mut all, 99.0);
    figures.add("p99", "ms", p99);
    p99
}

/// What strangers at full speed leave of the throughput.
async fn among_strangers(args: &Args, report: &mut Report) -> Result<(), String> {
    let (server, place, tokens) = guarded(args, &["ann"], &UNLIMITED).await?;
    let create = Request::call("tasks.create", &own_task()).by(&tokens[0]);
    let call = Call::again(create);
    let round = async |seconds| {
        let targets = [server.address.clone()];
        let calls = |_| call.clone();
        load(&targets, CONNECTIONS, Until::Seconds(seconds), calls).await
    };
    round(args.warm_up()).await?;
    for (kind, bearer) in [
        ("without credentials", None),
        ("with wrong ones", Some(NOBODYS)),
    ] {
        let mut figures = Figures::default();
        for _ in 0..args.rounds() {
            let alone = round(args.seconds()).await?.per_second();
            let others = Others::begin(CONNECTIONS, {
                let address = server.address.clone();
                move |count| stranger(address.clone(), bearer, count)
            });
            let beside = round(args.seconds()).await;
            let answered = others.end()?;
            let beside = beside?.per_second();
            figures.add("tasks.create alone", "calls/s", alone);
            figures.add("tasks.create beside them", "calls/s", beside);
            figures.add("left of the throughput", "x", beside / alone);
            figures.add("strangers answered", "/s", answered);
        }
        report.figures(&format!("callers, strangers {kind}"), figures);
    }
    server.stop();
    place.remove().await
}

/// What it costs that the metrics are read, in turns with the same server left alone.
async fn scraped(args: &Args, report: &mut Report) -> Result<(), String> {
    let arguments = [&["--metrics"][..], &UNLIMITED].concat();
    let (server, place, tokens) = guarded(args, &["ann"], &arguments).await?;
    let create = Request::call("tasks.create", &own_task()).by(&tokens[0]);
    let call = Call::again(create);
    let scrape = Request::get("/metrics").by(&tokens[0]);
    let targets = [server.address.clone()];
    let round = async |seconds| {
        let before = server.cpu_seconds()?;
        let round = load(&targets, CONNECTIONS, Until::Seconds(seconds), |_| {
            call.clone()
        })
        .await?;
        let cpu_us = (server.cpu_seconds()? - before) * 1e6;
        Ok::<_, String>(cpu_us / round.calls().max(1) as f64)
    };
    round(args.warm_up()).await?;
    let mut figures = Figures::default();
    for _ in 0..args.rounds() {
        let alone = round(args.seconds()).await?;
        let others = Others::begin(1, {
            let (address, scrape) = (server.address.clone(), scrape.clone());
            move |count| scraping(address.clone(), scrape.clone(), count)
        });
        let beside = round(args.seconds()).await;
        others.end()?;
        let beside = beside?;
        figures.add("server CPU per task", "us", alone);
        figures.add("server CPU per task, scraped each second", "us", beside);
        figures.add("scraped, of not scraped", "x", beside / alone);
    }
    report.figures("callers, metrics", figures);
    server.stop();
    place.remove().await
}

/// A task of the usual size, of whoever creates it.
fn own_task() -> Value {
    json!({"name": "Measured task", "priority": 2,
        "inputs": {"url": "https://example.com", "timeout": 60},
        "schemas": {"method": "echo_executor"}, "dependencies": []})
}

/// A server that lets nobody in without a token, and one token for each of these users.
async fn guarded(
    args: &Args,
    users: &[&str],
    arguments: &[&str],
) -> Result<(Server, Place, Vec<String>), String> {
    let place = Place::fresh(args, "callers").await?;
    let mut tokens = Vec::new();
    for user in users {
        let scopes = if arguments.contains(&"--metrics") {
            format!("{SCOPES},metrics")
        } else {
            SCOPES.to_owned()
        };
        let made = Command::new(&args.program)
            .args(["--json", "tokens", "create", user, "--scopes", &scopes])
            .args(place.arguments())
            .output()
            .map_err(|e| format!("{}: {e}", args.program.display()))?;
        let said: Value = serde_json::from_slice(&made.stdout).map_err(|e| {
            let error = String::from_utf8_lossy(&made.stderr);
            format!("no token was made: {e}: {error}")
        })?;
        let token = said["token"].as_str().ok_or("no token was shown")?;
        tokens.push(token.to_owned());
    }
    let arguments = [&["--auth", "on"], arguments].concat();
    let server = Server::start_for(&args.program, &place, &arguments, tokens.first()).await?;
    Ok((server, place, tokens))
}

/// Milliseconds of each call of somebody who makes one each [`PACE`], on one connection.
async fn paced(
    address: &str,
    requests: &[(&str, Request)],
    seconds: f64,
) -> Result<Vec<Vec<f64>>, String> {
    let mut client = Client::connect(address).await?;
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut ticks = tokio::time::interval(PACE);
    let mut times = vec![Vec::new(); requests.len()];
    for (at, (_, request)) in requests.iter().enumerate().cycle() {
        let due = ticks.tick().await;
        if Instant::now() >= until {
            break;
        }
        match client.send(request).await? {
            // From when it was due: whoever is kept waiting makes the next call late.
            Answer::Result(_) => times[at].push(due.elapsed().as_secs_f64() * 1e3),
            Answer::Busy => return Err("the user at a pace was refused".to_owned()),
        }
    }
    Ok(times)
}

/// Load beside the measured one, from a thread of its own.
struct Others {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    began: Instant,
    thread: JoinHandle<()>,
}

/// Counts what was answered, and says whether to go on.
#[derive(Clone)]
struct Count {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

impl Count {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn one(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Others {
    fn begin<F>(connections: usize, one: impl Fn(Count) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let (stop, count) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let counting = Count {
            stop: stop.clone(),
            count: count.clone(),
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let Ok(runtime) = runtime else { return };
            let local = tokio::task::LocalSet::new();
            for _ in 0..connections {
                local.spawn_local(one(counting.clone()));
            }
            runtime.block_on(local);
        });
        Self {
            stop,
            count,
            began: Instant::now(),
            thread,
        }
    }

    /// Ends them; gives how much was answered a second.
    fn end(self) -> Result<f64, String> {
        self.stop.store(true, Ordering::Relaxed);
        let seconds = self.began.elapsed().as_secs_f64();
        let answered = self.count.load(Ordering::Relaxed);
        self.thread.join().map_err(|_| "a load beside failed")?;
        if answered == 0 {
            return Err("the load beside got no answer".to_owned());
        }
        Ok(answered as f64 / seconds)
    }
}

/// Sends the same call again and again; what is refused is sent again soon.
async fn flooding(address: String, request: Request, count: Count) {
    let Ok(mut client) = Client::connect(&address).await else {
        return;
    };
    while count.goes_on() {
        match client.send(&request).await {
            Ok(Answer::Result(_)) => count.one(),
            Ok(Answer::Busy) | Err(_) => tokio::time::sleep(REFUSED_PAUSE).await,
        }
    }
}

/// Reads the metrics each second.
async fn scraping(address: String, request: Request, count: Count) {
    let Ok(mut client) = Client::connect(&address).await else {
        return;
    };
    let mut ticks = tokio::time::interval(SCRAPE_EVERY);
    while count.goes_on() {
        if client.fetch(&request).await.is_ok() {
            count.one();
        }
        tokio::select! {
            _ = ticks.tick() => {}
            () = tokio::time::sleep(SCRAPE_EVERY / 10) => {}
        }
    }
}

/// Calls without being let in, as fast as the server answers, on connections that it may close.
async fn stranger(address: String, bearer: Option<&'static str>, count: Count) {
    let request = Request::call("tasks.create", &own_task());
    let request = match bearer {
        Some(bearer) => request.by(bearer),
        None => request,
    };
    let mut read = vec![0; 4096];
    while count.goes_on() {
        let Ok(mut stream) = from_elsewhere(&address).await else {
            tokio::time::sleep(REFUSED_PAUSE).await;
            continue;
        };
        while count.goes_on() {
            if stream.write_all(request.bytes()).await.is_err() {
                break;
            }
            match stream.read(&mut read).await {
                Ok(0) | Err(_) => break,
                Ok(_) => count.one(),
            }
        }
    }
}

async fn from_elsewhere(address: &str) -> std::io::Result<TcpStream> {
    let invalid = |e| std::io::Error::other(format!("no address: {e}"));
    let to: SocketAddr = address.parse().map_err(invalid)?;
    let socket = TcpSocket::new_v4()?;
    socket.bind(STRANGERS_FROM.parse().map_err(invalid)?)?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
