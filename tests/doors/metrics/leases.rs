//! Leases that workers lose are counted, and those alone.

use super::scrape::{scrape, server};
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder};

const LOST: &str = "taskledger_leases_lost_total";
/// The shortest that a lease can be.
const SHORTEST_S: u64 = 5;

async fn claim(api: &Api, worker: &str, wait_seconds: u64) -> Value {
    let wanted = json!({
        "methods": ["resize"], "worker": worker, "lease_seconds": SHORTEST_S,
        "wait_seconds": wait_seconds
    });
    api.call("tasks.claim", wanted).await["claims"][0].take()
}

#[tokio::test]
async fn a_lease_that_nobody_renews_is_lost_and_one_that_is_given_back_is_not() {
    // given
    let folder = Folder::new();
    let server = server(&folder).await;
    let api = &server.api;
    let remote = json!({"name": "a", "schemas": {"method": "resize", "type": "remote"}});
    api.call("tasks.execute", json!({"tasks": [remote]})).await;
    let first = claim(api, "gives it back", 5).await;
    let lease = json!({"task_id": first["task"]["id"], "lease": first["lease"]["token"]});
    api.call("tasks.release", lease).await;
    let second = claim(api, "dies", 30).await;
    assert_eq!(second["lease"]["attempt"], 2);
    assert_eq!(scrape(api).await.sum(LOST, &[]), 0.0);
    // when the lease has ended
    let third = claim(api, "goes on", 30).await;
    // then
    assert_eq!(third["lease"]["attempt"], 3);
    assert_eq!(scrape(api).await.sum(LOST, &[]), 1.0);
    server.stop().await;
}
