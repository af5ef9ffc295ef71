//! A worker that does not do a task, by a policy: the state says so on each binding, in streams, lists and the history.

use super::binding::all;
use super::runs;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{GetTask, ListTasks, SendMessage};
use taskledger_testkit::server::{Folder, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_its_worker_rejects_is_rejected_on_every_binding() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    for mut binding in all(&api.url).await {
        let binding = &mut *binding;
        let paint = json!({"name": "paint", "schemas": {"type": "remote", "method": "paint"},
            "params": {"retry_count": 3}});
        let mut send = runs(json!([paint]));
        send["configuration"] = json!({"returnImmediately": true});
        let sent = binding.ask(SendMessage, send).await.unwrap();
        let id = sent["task"]["id"].clone();
        let claim = json!({"worker": "w", "methods": ["paint"], "wait_seconds": 30});
        let claimed = api.call("tasks.claim", claim).await["claims"][0].take();
        let node = claimed["task"]["id"].clone();
        let fail = json!({"task_id": node, "lease": claimed["lease"]["token"], "error": "no walls",
            "rejected": true});
        let ended = api.call("tasks.fail", fail.clone()).await;
        assert_eq!(ended["status"], "failed", "{ended}");
        // Said again, it is the same.
        assert_eq!(api.call("tasks.fail", fail).await, ended);

        let read = binding.ask(GetTask, json!({"id": id})).await.unwrap();
        let status = &read["status"];
        assert_eq!(
            status["state"],
            "TASK_STATE_REJECTED",
            "{} {read}",
            binding.name()
        );
        assert_eq!(status["message"]["parts"][0]["text"], "no walls");
        let listed = json!({"status": "TASK_STATE_REJECTED", "pageSize": 1});
        let listed = binding.ask(ListTasks, listed).await.unwrap();
        assert_eq!(listed["tasks"][0]["id"], id, "{}", binding.name());
        let failed = json!({"status": "TASK_STATE_FAILED"});
        let failed = binding.ask(ListTasks, failed).await.unwrap();
        assert_eq!(failed["totalSize"], 0, "{}", binding.name());

        let past = json!({"task_id": node, "scope": "flow", "types": ["task_failed", "run_ended"]});
        let past = api.call("tasks.history", past).await;
        let events = past["events"].as_array().unwrap();
        let data: Vec<&Value> = events.iter().map(|it| &it["data"]).collect();
        assert_eq!(data[0]["reason"], "rejected", "{past}");
        assert_eq!(data[0]["will_retry"], false);
        assert_eq!(
            (&data[1]["state"], &data[1]["rejected"]),
            (&json!("failed"), &json!(true))
        );
    }
    server.stop().await;
}
