//! Somebody else holds the row that every append needs, for longer than an append waits for it.

use crate::faults::{COMMANDS, clients};
use taskledger_testkit::cluster::{Cluster, Load};
use taskledger_testkit::postgres::admin::Admin;

const NODES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_waits_too_long_is_reported_and_the_next_one_goes_on() {
    let cluster = Cluster::of(NODES).await;
    let load = Load::start(clients(), &cluster.apis());
    let api = cluster.nodes[0].api.clone();
    load.more(&api, COMMANDS).await;
    let mut foreign = Admin::at(cluster.folder.url().unwrap()).await;
    foreign
        .run("BEGIN; SELECT FROM taskledger.head FOR UPDATE")
        .await;
    for node in &cluster.nodes {
        let told = "the database is too slow";
        let reported = async || node.logged().contains(told).then_some(());
        api.eventually(told, reported).await;
    }
    // What failed may have been outcomes of attempts only; some caller is in a later append.
    load.denied(&api).await;
    foreign.run("ROLLBACK").await;
    load.more(&api, COMMANDS).await;
    for node in &cluster.nodes {
        let again = "the event log can be written again";
        let reported = async || node.logged().contains(again).then_some(());
        api.eventually(again, reported).await;
    }
    let clients = load.stop().await;
    let busy = clients.iter().map(|client| client.told.busy);
    assert!(busy.sum::<usize>() > 0, "callers were told");
    cluster.check(&clients).await;
}
