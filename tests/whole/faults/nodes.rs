//! Nodes die, stand still, stop and come.

use crate::faults::{COMMANDS, clients};
use std::time::Duration;
use taskledger_testkit::cluster::{Cluster, Load, settled};
use taskledger_testkit::server::Server;

const NODES: usize = 3;
/// What a node misses after others have taken over its partitions.
const BEYOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flows_of_a_node_that_is_killed_go_on_elsewhere() {
    let mut cluster = Cluster::of(NODES).await;
    let load = Load::start(clients(), &cluster.apis());
    load.more(&cluster.nodes[0].api, COMMANDS).await;
    cluster.nodes.pop().unwrap().kill().await;
    cluster.settled(NODES - 1).await;
    load.more(&cluster.nodes[0].api, COMMANDS).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stood_still_past_its_leases_writes_nothing_stale() {
    let cluster = Cluster::of(NODES).await;
    let apis = cluster.apis();
    let load = Load::start(clients(), &apis);
    load.more(&apis[0], COMMANDS).await;
    // The one that folds the read models is among those that stand still.
    for node in [2, 0] {
        let (paused, other) = (&cluster.nodes[node], &apis[1]);
        paused.pause();
        settled(other, NODES - 1).await;
        tokio::time::sleep(BEYOND).await;
        paused.resume();
        load.more(other, COMMANDS).await;
        cluster.settled(NODES).await;
    }
    let clients = load.stop().await;
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_hands_its_flows_over_and_one_that_comes_gets_its_share() {
    let mut cluster = Cluster::of(NODES).await;
    let apis = cluster.apis();
    let load = Load::start(clients(), &apis);
    load.more(&apis[0], COMMANDS).await;
    let leaving = cluster.nodes.pop().unwrap();
    leaving.stop().await;
    cluster.settled(NODES - 1).await;
    load.more(&apis[0], COMMANDS).await;
    cluster.nodes.push(Server::start(&cluster.folder).await);
    cluster.settled(NODES).await;
    load.more(&apis[0], COMMANDS).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}
