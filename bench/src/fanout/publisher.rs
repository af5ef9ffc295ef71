//! Publishing at an even pace, whatever the server does, on a thread of its own.

use crate::client::Client;
use crate::moment::now_us;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Connections, so that a call that waits for the disk does not delay the next one.
const LANES: u32 = 8;
/// What a message to nginx holds at least.
const MESSAGE_BYTES: usize = 200;

/// What makes events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// `tasks.create` of so many tasks in one call, each of which is an event.
    Create,
    /// So many posts of a message.
    Post,
}

/// How fast, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Events at a time.
    pub(crate) burst: u32,
    /// Events in a second.
    pub(crate) events_per_second: f64,
    pub(crate) seconds: f64,
}

/// What was published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published {
    pub(crate) events: u64,
    /// When it began.
    pub(crate) first_us: i64,
}

/// Publishes; returns when all of it was answered.
pub(crate) async fn publish(
    address: &str,
    source: Source,
    pace: Pace,
) -> Result<Published, String> {
    let (sender, done) = tokio::sync::oneshot::channel();
    let address = address.to_owned();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| e.to_string());
        let published =
            runtime.and_then(|runtime| runtime.block_on(all_lanes(&address, source, pace)));
        // Whoever asked may have gone.
        let _ = sender.send(published);
    });
    done.await.map_err(|_| "the publisher died".to_owned())?
}

async fn all_lanes(address: &str, source: Source, pace: Pace) -> Result<Published, String> {
    let mut clients = Vec::new();
    for _ in 0..LANES {
        clients.push(Client::connect(address).await?);
    }
    let (first_us, began) = (now_us(), Instant::now());
    let mut lanes = Vec::new();
    for (lane, client) in (0..LANES).zip(clients) {
        lanes.push(tokio::spawn(run(client, lane, source, pace, began)));
    }
    let mut events = 0;
    for lane in lanes {
        events += lane.await.map_err(|e| e.to_string())??;
    }
    Ok(Published { events, first_us })
}

/// Every so many ticks one lane publishes a burst.
async fn run(
    mut client: Client,
    lane: u32,
    source: Source,
    pace: Pace,
    began: Instant,
) -> Result<u64, String> {
    let every = f64::from(pace.burst) / pace.events_per_second;
    let (mut events, mut tick) = (0, lane);
    loop {
        let due = f64::from(tick) * every;
        if due >= pace.seconds {
            return Ok(events);
        }
        tokio::time::sleep_until(began + Duration::from_secs_f64(due)).await;
        send(&mut client, source, pace.burst).await?;
        events += u64::from(pace.burst);
        tick += LANES;
    }
}

async fn send(client: &mut Client, source: Source, burst: u32) -> Result<(), String> {
    match source {
        Source::Create => {
            let answer = client.post(&create(burst)).await?;
            if !answer.windows(9).any(|w| w == b"\"result\":") {
                return Err(String::from_utf8_lossy(answer).into_owned());
            }
        }
        Source::Post => {
            for _ in 0..burst {
                let head = format!("{{\"timestamp_us\":{},\"pad\":\"", now_us());
                client
                    .post(&format!("{head:x<width$}\"}}", width = MESSAGE_BYTES - 2))
                    .await?;
            }
        }
    }
    Ok(())
}

/// A call that creates so many tasks: alone, or below the first.
fn create(tasks: u32) -> String {
    let task = |id: u32| json!({"id": id.to_string(), "name": "told to many"});
    let params = if tasks == 1 {
        json!({"name": "told to many"})
    } else {
        let mut tasks: Vec<Value> = (0..tasks).map(task).collect();
        for child in &mut tasks[1..] {
            child["parent_id"] = json!("0");
        }
        json!({ "tasks": tasks })
    };
    json!({"jsonrpc": "2.0", "method": "tasks.create", "id": 1, "params": params}).to_string()
}
