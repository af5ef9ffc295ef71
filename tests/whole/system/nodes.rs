//! Three servers on one database: calls through any of them. What may break is in `tests/whole/faults`.

use futures_util::future::join_all;
use serde_json::json;
use taskledger_testkit::cluster::{Cluster, Load, health, shows};
use taskledger_testkit::model::Client;

const NODES: usize = 3;
const CLIENTS: usize = 8;
/// Tasks that each of the writers makes, renames and looks for.
const WRITES: usize = 10;

fn clients(seed: u64) -> Vec<Client> {
    (0..CLIENTS).map(|n| Client::new(n, seed)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_takes_any_call() {
    let cluster = Cluster::of(NODES).await;
    let apis = cluster.apis();
    let node = |n: usize| &apis[n % NODES];
    for n in 0..12 {
        let tree = json!({"tasks": [
            {"id": "root", "name": "root"},
            {"id": "a", "name": "a", "parent_id": "root", "schemas": {"method": "echo_executor"}},
        ]});
        let made = node(n).call("tasks.create", tree).await;
        let (root, task) = (&made["id"], &made["task_ids"]["a"]);
        let updates = json!({"task_id": task, "updates": {"name": format!("task {n}")}});
        node(n + 1).call("tasks.update", updates).await;
        for reader in &apis {
            let shown = reader.call("tasks.get", json!({"task_id": task})).await;
            assert_eq!(shown["name"], json!(format!("task {n}")));
            let tree = reader.call("tasks.tree", json!({"task_id": root})).await;
            assert_eq!(tree["children"][0]["task"]["id"], *task, "{tree}");
            let history = reader.call("tasks.history", json!({"task_id": task})).await;
            assert_eq!(history["events"].as_array().unwrap().len(), 2, "{history}");
            let why = reader.call("tasks.explain", json!({"task_id": task})).await;
            assert_eq!(why["status"], "pending", "{why}");
        }
        let refusal = node(n + 2).refusal(
            "tasks.cancel",
            json!({"task_id": "550e8400-e29b-41d4-a716-446655440000"}),
        );
        assert_eq!(refusal.await.code, -32001);
        let copied = node(n).call(
            "tasks.copy",
            json!({"task_id": root, "copy_children": true}),
        );
        let copied = copied.await["copied_task_id"].take();
        node(n + 1)
            .call("tasks.execute", json!({"task_id": root}))
            .await;
        let refusal = node(n + 2)
            .refusal("tasks.delete", json!({"task_id": root}))
            .await;
        assert_eq!(refusal.code, -32009, "{refusal:?}");
        let run = node(n).run_of(root).await;
        assert_eq!(run["state"], "completed");
        node(n + 2)
            .call("tasks.delete", json!({"task_id": copied, "cascade": true}))
            .await;
        let gone = node(n)
            .refusal("tasks.get", json!({"task_id": copied}))
            .await;
        assert_eq!(gone.code, -32001);
    }
    cluster.check(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_on_any_node_sees_what_any_other_has_answered() {
    let cluster = Cluster::of(NODES).await;
    let load = Load::start(clients(1), &cluster.apis());
    let writers = (0..4).map(|writer| {
        let apis = cluster.apis();
        async move {
            for n in 0..WRITES {
                let (here, there) = (&apis[(writer + n) % NODES], &apis[(writer + n + 1) % NODES]);
                let name = format!("w{writer}-{n}.single");
                let made = here
                    .call(
                        "tasks.create",
                        json!({"name": name, "user_id": format!("w{writer}")}),
                    )
                    .await;
                shows(there, made["id"].as_str().unwrap(), Some(&name)).await;
                let list = there.call(
                    "tasks.list",
                    json!({"user_id": format!("w{writer}"), "limit": 1}),
                );
                assert_eq!(list.await["total"], json!(n + 1));
                let name = format!("w{writer}-{n}.renamed");
                let updates = json!({"task_id": made["id"], "updates": {"name": name}});
                there.call("tasks.update", updates).await;
                shows(here, made["id"].as_str().unwrap(), Some(&name)).await;
            }
        }
    });
    join_all(writers).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_shows_the_nodes() {
    let cluster = Cluster::of(NODES).await;
    let mut folding = 0;
    for node in &cluster.nodes {
        let seen = health(&node.api).await;
        let alive = seen["alive"].as_array().unwrap();
        let me = alive.iter().find(|n| n["id"] == seen["id"]).unwrap();
        assert_eq!(me["url"], json!(node.api.url.trim_end_matches('/')));
        assert_eq!(me["partitions"], seen["partitions"]);
        folding += usize::from(seen["folds_read_models"] == true);
    }
    assert_eq!(folding, 1);
    cluster.check(&[]).await;
}
