//! Agent2Agent: a message that runs one task and is answered when it has completed, over each binding, beside the same
//! task by `tasks.execute`. All four take turns in each round, so that what the machine does besides meets all.

use super::workflow::IN_FLIGHT;
use crate::args::Args;
use crate::client::{Client, Request};
use crate::nodes::Nodes;
use crate::report::{Figures, Report, percentile};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use taskledger_a2a::grpc::{A2aServiceClient, pb, to};
use taskledger_a2a::{Content, Message, Part, Role};
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

/// Calls of a round, one at a time and many.
const ONE_AT_A_TIME: usize = 500;
const MANY_AT_A_TIME: usize = 2_000;
/// Connections of gRPC, each with several calls at a time.
const CHANNELS: usize = 4;
/// In an answer whose task has completed.
const COMPLETED: &str = "\"TASK_STATE_COMPLETED\"";
/// What HTTP requests say beside their body.
const VERSION: &str = "a2a-version: 1.0\r\n";

/// Over what a call goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Over {
    Native,
    JsonRpc,
    Rest,
    Grpc,
}

impl Over {
    const ALL: [Self; 4] = [Self::Native, Self::JsonRpc, Self::Rest, Self::Grpc];

    const fn name(self) -> &'static str {
        match self {
            Self::Native => "tasks.execute",
            Self::JsonRpc => "SendMessage, JSON-RPC",
            Self::Rest => "SendMessage, HTTP+JSON",
            Self::Grpc => "SendMessage, gRPC",
        }
    }
}

/// The whole scenario.
pub(crate) async fn a2a(args: &Args, report: &mut Report) -> Result<(), String> {
    for (in_flight, calls) in [(1, ONE_AT_A_TIME), (IN_FLIGHT, MANY_AT_A_TIME)] {
        let nodes = Nodes::start(args, "a2a").await?;
        let address = nodes.first().address.clone();
        for over in Over::ALL {
            called(&address, over, in_flight, calls / 4).await?;
        }
        let mut all = Over::ALL.map(|over| (over, Figures::default()));
        for _ in 0..2 * args.rounds() {
            let mut native = 0.0;
            for (over, figures) in &mut all {
                let began = Instant::now();
                let mut took = called(&address, *over, in_flight, calls).await?;
                let rate = calls as f64 / began.elapsed().as_secs_f64();
                let p50 = percentile(&mut took, 50.0);
                figures.add("rate", "tasks/s", rate);
                figures.add("p50", "ms", p50);
                figures.add("p99", "ms", percentile(&mut took, 99.0));
                match over {
                    Over::Native => native = p50,
                    Over::JsonRpc | Over::Rest | Over::Grpc => {
                        figures.add("p50, of tasks.execute", "x", p50 / native);
                    }
                }
            }
        }
        for (over, figures) in all {
            let name = format!("a2a, {in_flight} in flight, {}", over.name());
            report.figures(&name, figures);
        }
        nodes.stop().await?;
    }
    Ok(())
}

fn task() -> Value {
    json!({"name": "no-op", "schemas": {"method": "echo_executor"}})
}

fn message() -> Message {
    Message {
        message_id: "m".to_owned(),
        context_id: None,
        task_id: None,
        role: Role::User,
        parts: vec![Part::of(Content::Data(json!({"tasks": [task()]})))],
        metadata: None,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}

/// So many calls, so many at a time. Milliseconds of each.
async fn called(
    address: &str,
    over: Over,
    in_flight: usize,
    calls: usize,
) -> Result<Vec<f64>, String> {
    let left = Arc::new(AtomicUsize::new(calls));
    let mut callers = JoinSet::new();
    let mut channels = Vec::new();
    if over == Over::Grpc {
        for _ in 0..CHANNELS.min(in_flight) {
            channels.push(connected(address).await?);
        }
    }
    for n in 0..in_flight {
        let left = left.clone();
        if over == Over::Grpc {
            let channel = channels[n % channels.len()].clone();
            callers.spawn(by_grpc(channel, left));
        } else {
            let client = Client::connect(address).await?;
            callers.spawn(by_http(client, over, left));
        }
    }
    let mut took = Vec::with_capacity(calls);
    while let Some(one) = callers.join_next().await {
        took.extend(one.map_err(told)??);
    }
    Ok(took)
}

/// Whether there is a call left to make.
fn takes(left: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        .is_ok()
}

async fn by_http(
    mut client: Client,
    over: Over,
    left: Arc<AtomicUsize>,
) -> Result<Vec<f64>, String> {
    let params = json!({"message": {"messageId": "m", "role": "ROLE_USER",
        "parts": [{"data": {"tasks": [task()]}}]}});
    let request = match over {
        Over::JsonRpc => {
            let call =
                json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
            Request::post_to("/a2a", VERSION, &call.to_string())
        }
        Over::Rest => Request::post_to("/a2a/rest/message:send", VERSION, &params.to_string()),
        Over::Native | Over::Grpc => Request::call(
            "tasks.execute",
            &json!({"use_streaming": true, "tasks": [task()]}),
        ),
    };
    let mut took = Vec::new();
    while takes(&left) {
        let began = Instant::now();
        match over {
            Over::JsonRpc | Over::Rest => client.send_for(&request, COMPLETED).await?,
            Over::Native | Over::Grpc => {
                client.follow(&request).await?;
            }
        }
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

async fn connected(address: &str) -> Result<Channel, String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(told)?;
    endpoint.tcp_nodelay(true).connect().await.map_err(told)
}

async fn by_grpc(channel: Channel, left: Arc<AtomicUsize>) -> Result<Vec<f64>, String> {
    let mut client = A2aServiceClient::new(channel);
    let sent = pb::SendMessageRequest {
        message: Some(to::message(message())),
        ..pb::SendMessageRequest::default()
    };
    let mut took = Vec::new();
    while takes(&left) {
        let mut request = tonic::Request::new(sent.clone());
        let version = "1.0".parse().map_err(told)?;
        request.metadata_mut().insert("a2a-version", version);
        let began = Instant::now();
        let answer = client.send_message(request).await.map_err(told)?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
        let Some(pb::send_message_response::Payload::Task(task)) = answer.into_inner().payload
        else {
            return Err("no task came back".to_owned());
        };
        let state = task.status.unwrap_or_default().state();
        if state != pb::TaskState::Completed {
            return Err(format!("a task is {}", state.as_str_name()));
        }
    }
    Ok(took)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
