//! A reader that comes back gets the exact union, wherever and whyever it was cut off.

use crate::streams::sse::{Block, everything, open, run, tasks};
use futures_util::future::join_all;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::task::JoinHandle;

/// Between two runs of the load: some of them are always under way.
const PACE: Duration = Duration::from_millis(10);

/// Starts runs until it is told to stop, wherever there is a server.
fn load(apis: Vec<Api>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut n = 0;
        while !stop.load(Ordering::Relaxed) {
            n += 1;
            let params = json!({"tasks": tasks(2)});
            // A server that is down takes none.
            let _ = apis[n % apis.len()]
                .try_call("tasks.execute", params, None)
                .await;
            tokio::time::sleep(PACE).await;
        }
    })
}

/// Reads from `place` on until it has got this many more events, or the stream breaks.
async fn read(api: &Api, got: &mut Vec<Block>, more: usize) {
    let last = got.last().and_then(|event| event.id.clone());
    let mut sse = open(api, "?from=beginning", last.as_deref()).await;
    assert!(sse.response.headers().get("x-taskledger-reset").is_none());
    for _ in 0..more {
        match sse.event().await {
            Some(event) => got.push(event),
            None => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_cut_at_every_event_gets_everything_once() {
    // given
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let stop = Arc::new(AtomicBool::new(false));
    let loading = load(vec![server.api.clone()], stop.clone());
    // when
    let mut got = Vec::new();
    for _ in 0..150 {
        read(&server.api, &mut got, 1).await;
    }
    stop.store(true, Ordering::Relaxed);
    loading.await.unwrap();
    // then
    let all = everything(&server.api).await;
    assert!(all.len() >= got.len() && got.len() == 150);
    assert_eq!(got, all[..150]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_goes_on_at_the_next_server_after_a_kill_and_after_a_stop() {
    // given
    let folder = Folder::new();
    let mut got: Vec<Block> = Vec::new();
    for round in 0..4 {
        let server = Server::start(&folder).await;
        let stop = Arc::new(AtomicBool::new(false));
        let loading = load(vec![server.api.clone()], stop.clone());
        read(&server.api, &mut got, 40).await;
        // when: the server ends while the reader reads
        let last = got.last().and_then(|event| event.id.clone());
        let mut sse = open(&server.api, "", last.as_deref()).await;
        let reading = tokio::spawn(async move { sse.rest().await });
        read(&server.api, &mut Vec::new(), 1).await;
        if round % 2 == 0 {
            server.kill().await;
        } else {
            // Streams end at once: the server does not wait out its grace of 10 s.
            let begun = std::time::Instant::now();
            server.stop().await;
            assert!(begun.elapsed().as_secs() < 8, "{:?}", begun.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        loading.await.unwrap();
        got.extend(reading.await.unwrap());
    }
    // then
    let server = Server::start(&folder).await;
    let all = everything(&server.api).await;
    assert!(got.len() >= 160);
    assert_eq!(got, all[..got.len()]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_cut_from_one_node_goes_on_at_the_other() {
    // given
    let folder = Folder::with_database().await;
    let nodes = [Server::start(&folder).await, Server::start(&folder).await];
    let apis: Vec<_> = nodes.iter().map(|node| node.api.clone()).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let loading = load(apis.clone(), stop.clone());
    // when
    let mut got = Vec::new();
    for n in 0..60 {
        read(&apis[n % 2], &mut got, 1 + n % 3).await;
    }
    stop.store(true, Ordering::Relaxed);
    loading.await.unwrap();
    // then: both tell the same, frame for frame
    let all = everything(&apis[0]).await;
    assert_eq!(got, all[..got.len()]);
    assert_eq!(everything(&apis[1]).await[..all.len()], all);
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_that_come_back_at_once_all_get_what_they_missed() {
    const CLIENTS: usize = 300;
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    run(&server.api, 40).await;
    let all = everything(&server.api).await;
    let coming = (0..CLIENTS).map(|n| {
        let (api, all) = (server.api.clone(), all.clone());
        tokio::spawn(async move {
            let at = n % (all.len() - 1);
            let mut sse = open(&api, "", all[at].id.as_deref()).await;
            let missed = sse.events(all.len() - at - 1).await;
            assert!(missed == all[at + 1..], "client {n} behind {at}");
        })
    });
    for client in join_all(coming.collect::<Vec<_>>()).await {
        client.unwrap();
    }
    server.stop().await;
}
