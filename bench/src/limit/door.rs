//! A server that parses a call and answers it without storing or looking up anything: what HTTP and
//! JSON cost by themselves. This program, started once more, so that it has a process of its own.

use crate::args::Args;
use crate::client::{Request, call};
use crate::load::{Call, Until, load};
use crate::process;
use crate::report::{Figures, Report};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Connections of the load.
const CONNECTIONS: [usize; 2] = [1, 64];
/// The result: a task, as `tasks.create` and `tasks.get` show it.
const TASK: &str = r#"{"id":"a7a4ec64-9e2d-4ff7-b3b6-2c5c6d1f4a0e","flow_id":"a7a4ec64-9e2d-4ff7-b3b6-2c5c6d1f4a0e","root_id":"a7a4ec64-9e2d-4ff7-b3b6-2c5c6d1f4a0e","parent_id":null,"user_id":"bench","name":"Measured task","status":"pending","priority":2,"dependencies":[],"inputs":{"url":"https://example.com","timeout":60},"params":null,"result":null,"error":null,"schemas":{"method":"echo_executor"},"progress":0.0,"attempt":0,"children":0,"has_children":false,"created_at":"2026-01-01T00:00:00.000000Z","started_at":null,"updated_at":"2026-01-01T00:00:00.000000Z","completed_at":null}"#;

#[derive(Deserialize)]
struct Envelope {
    id: Value,
    #[serde(rename = "method")]
    _method: String,
    #[serde(rename = "params")]
    _params: Value,
}

async fn answer(body: Bytes) -> impl IntoResponse {
    let text = match serde_json::from_slice::<Envelope>(&body) {
        Ok(call) => format!(r#"{{"jsonrpc":"2.0","result":{TASK},"id":{}}}"#, call.id),
        Err(error) => json!({"error": error.to_string()}).to_string(),
    };
    ([(CONTENT_TYPE, "application/json")], text)
}

/// Serves until the process is ended; says on standard output where it listens.
pub(crate) fn serve() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(|e| e.to_string())?;
        println!("{}", listener.local_addr().map_err(|e| e.to_string())?);
        let listener = listener.tap_io(|stream| {
            // Slower without, but not wrong.
            let _ = stream.set_nodelay(true);
        });
        let routes = Router::new().route("/", post(answer));
        axum::serve(listener, routes)
            .await
            .map_err(|e| e.to_string())
    })
}

/// The process; ends when it is dropped.
struct Door {
    child: Child,
    address: String,
}

impl Door {
    fn start() -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .arg("--serve-limit")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut address = String::new();
        let said = child.stdout.take().ok_or("it says nothing")?;
        let mut door = Self {
            child,
            address: String::new(),
        };
        BufReader::new(said)
            .read_line(&mut address)
            .map_err(|e| e.to_string())?;
        door.address = address.trim().to_owned();
        Ok(door)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a call is for that is answered without being carried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Like {
    Create,
    Get,
}

impl Like {
    fn text(self) -> &'static str {
        match self {
            Self::Create => "tasks.create",
            Self::Get => "tasks.get",
        }
    }
}

/// The rows that say how fast that is.
pub(crate) fn name(like: Like, connections: usize) -> String {
    format!(
        "limit: POST like {} that stores nothing, {connections} connections",
        like.text()
    )
}

/// Measures it.
pub(crate) async fn door(args: &Args, report: &mut Report) -> Result<(), String> {
    let door = Door::start()?;
    let addresses = [door.address.clone()];
    let get = json!({"task_id": "a7a4ec64-9e2d-4ff7-b3b6-2c5c6d1f4a0e"});
    let bodies = [
        (Like::Create, crate::scenarios::create::measured_task()),
        (Like::Get, get),
    ];
    for (like, params) in bodies {
        let calls = Call::again(Request::post(&call(like.text(), &params)));
        for connections in CONNECTIONS {
            let round = |seconds| {
                load(&addresses, connections, Until::Seconds(seconds), |_| {
                    calls.clone()
                })
            };
            round(args.warm_up()).await?;
            let mut figures = Figures::default();
            for _ in 0..args.rounds() {
                let (own, client) = (door.child.id(), std::process::id());
                let before = (process::cpu_seconds(own)?, process::cpu_seconds(client)?);
                let round = round(args.seconds()).await?;
                let each = 1e6 / round.calls() as f64;
                figures.add("rate", "1/s", round.per_second());
                figures.add("p50", "ms", round.p50_ms());
                figures.add("p99", "ms", round.p99_ms());
                let cpu = process::cpu_seconds(own)? - before.0;
                figures.add("server CPU per call", "us", cpu * each);
                let cpu = process::cpu_seconds(client)? - before.1;
                figures.add("load generator CPU per call", "us", cpu * each);
            }
            report.figures(&name(like, connections), figures);
        }
    }
    Ok(())
}
