//! Sessions of the nodes are ended in the database again and again.

use crate::faults::{COMMANDS, clients};
use std::time::Duration;
use taskledger_testkit::cluster::{Cluster, Load};
use taskledger_testkit::postgres::admin::Admin;

/// Between two times that all sessions are ended.
const EVERY: Duration = Duration::from_millis(100);
const TIMES: usize = 40;

const END: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'taskledger%'";

async fn ended(nodes: usize) {
    let cluster = Cluster::of(nodes).await;
    let load = Load::start(clients(), &cluster.apis());
    let api = &cluster.nodes[0].api;
    load.more(api, COMMANDS).await;
    let mut admin = Admin::at(cluster.folder.url().unwrap()).await;
    let mut pace = tokio::time::interval(EVERY);
    let mut ended = 0;
    let ends = async {
        for _ in 0..TIMES {
            pace.tick().await;
            ended += admin.number(END).await;
        }
    };
    load.hurry(ends).await;
    load.more(api, COMMANDS).await;
    cluster.settled(nodes).await;
    let clients = load.stop().await;
    let events = cluster.check(&clients).await;
    println!("{ended} sessions were ended, {} events", events.len());
    assert!(ended > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_one_node_are_ended_ten_times_a_second() {
    ended(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_three_nodes_are_ended_ten_times_a_second() {
    ended(3).await;
}
