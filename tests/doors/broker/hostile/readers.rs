//! Readers that subscribe and take nothing.

use super::{Bus, memory, serves};
use crate::broker::{Peer, next, one, task};
use prost_types::value::Kind;
use std::collections::BTreeSet;
use taskledger_eventbus::TaskStatus;

/// Streams that are not read.
const STALLED: usize = 20;
const TASKS: usize = 40;
/// Of parameters, and of results.
const BYTES: usize = 400_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_take_nothing_cost_little_and_get_everything_later() {
    let bus = Bus::start().await;
    let large = || Some(one("k", Kind::StringValue("x".repeat(BYTES))));
    let ids: BTreeSet<String> = (0..TASKS).map(|n| format!("t{n}")).collect();
    for id in &ids {
        let mut message = task(id, "x");
        message.parameters = large();
        bus.publish(message).await.unwrap();
    }
    let mut agent = bus.subscribe("agent", &["x"]).await;
    for id in &ids {
        next(&mut agent).await;
        bus.end("agent", id, TaskStatus::Completed, large(), "")
            .await
            .unwrap();
    }
    // Read once, so that what the server keeps of it in any case is there.
    let mut read = bus.results("requester", &[]).await;
    for _ in 0..TASKS {
        next(&mut read).await;
    }
    let before = memory(&bus.server);
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let peer = Peer::of(&bus.server).await;
        stalled.push(peer.results("requester", &[]).await);
    }
    // Agents whose window is larger than what they take.
    for n in 0..TASKS {
        let mut message = task(&format!("held{n}"), "held");
        message.parameters = large();
        bus.publish(message).await.unwrap();
    }
    let mut holding = Vec::new();
    for n in 0..STALLED {
        let peer = Peer::of(&bus.server).await;
        holding.push(peer.subscribe(&format!("stalled{n}"), &["held"]).await);
    }
    serves(&bus).await;
    let grown = memory(&bus.server).saturating_sub(before) / 1024;
    let all = STALLED * TASKS * BYTES / 1024 / 1024;
    assert!(grown < 120, "{grown} MB for readers of {all} MB");
    // Whoever reads later gets everything.
    let last = stalled.last_mut().unwrap();
    let mut left = ids;
    while !left.is_empty() {
        let told = next(last).await;
        assert!(left.remove(&told.task_id), "{}", told.task_id);
    }
}
