//! Postgres stops and starts under load.

use crate::faults::{COMMANDS, clients};
use serde_json::json;
use std::time::Duration;
use taskledger_testkit::cluster::{Cluster, Load};
use taskledger_testkit::postgres::server::Server as Postgres;
use taskledger_testkit::server::Folder;
use tokio::task::block_in_place;

const RESTARTS: usize = 3;
/// How long Postgres is away: longer than nodes keep their leases and appends wait for it.
const OUTAGE: Duration = Duration::from_secs(7);

fn crash(postgres: &Postgres) {
    postgres.stop_immediately();
    postgres.start();
}

async fn restarted(nodes: usize, restart: impl Fn(&Postgres)) {
    let postgres = Postgres::begin();
    let cluster = Cluster::start(Folder::at(postgres.url()), nodes, &[]).await;
    let load = Load::start(clients(), &cluster.apis());
    let api = cluster.nodes[0].api.clone();
    load.more(&api, COMMANDS).await;
    for _ in 0..RESTARTS {
        block_in_place(|| restart(&postgres));
        load.more(&api, COMMANDS).await;
    }
    let clients = load.stop().await;
    let events = cluster.check(&clients).await;
    println!("{} events", events.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_crashes_under_one_node() {
    restarted(1, crash).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_crashes_under_three_nodes() {
    restarted(3, crash).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_restarted_under_one_node() {
    restarted(1, Postgres::restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_restarted_under_three_nodes() {
    restarted(3, Postgres::restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_away_for_longer_than_leases_last() {
    let postgres = Postgres::begin();
    let cluster = Cluster::start(Folder::at(postgres.url()), 3, &[]).await;
    let load = Load::start(clients(), &cluster.apis());
    let api = cluster.nodes[0].api.clone();
    load.more(&api, COMMANDS).await;
    block_in_place(|| postgres.stop_immediately());
    // The outage itself, nothing is awaited.
    tokio::time::sleep(OUTAGE).await;
    block_in_place(|| postgres.start());
    cluster.settled(3).await;
    load.more(&api, COMMANDS).await;
    let clients = load.stop().await;
    let told = clients
        .iter()
        .map(|client| client.told.failed + client.told.busy);
    assert!(told.sum::<usize>() > 0, "callers were told of the outage");
    cluster.check(&clients).await;
}

/// The fold commits without waiting for the disk, so a crash may take back rows that were shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_a_crash_took_back_are_not_believed() {
    // What nobody waits for is written late, so that a crash takes it.
    let lazy = ["wal_writer_delay=10s", "autovacuum=off"];
    let postgres = Postgres::begin_in(&std::env::temp_dir(), &lazy);
    let cluster = Cluster::start(Folder::at(postgres.url()), 2, &[]).await;
    for n in 1..=RESTARTS {
        let here = &cluster.nodes[n % 2].api;
        let task = json!({"name": format!("task {n}")});
        here.call("tasks.create", task).await;
        let shown = here.call("tasks.list", json!({"limit": 10})).await;
        assert_eq!(shown["total"], json!(n));
        block_in_place(|| crash(&postgres));
        for node in &cluster.nodes {
            let api = &node.api;
            let look = async || api.try_call("tasks.list", json!({"limit": 10}), None).await;
            // Until the connections are made anew a read may fail; whatever it shows is true.
            let list = api
                .eventually("an answer", async || look().await.ok())
                .await;
            assert_eq!(list["total"], json!(n), "{list}");
        }
    }
    cluster.check(&[]).await;
}
