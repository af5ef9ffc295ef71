//! What callers order, through the dispatcher of a whole server.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::Context;
use taskledger::clock::{SharedClock, SystemClock};
use taskledger::engine::executor::{BuiltInOptions, Registry, with_built_ins};
use taskledger::server::Server;
use tempfile::TempDir;

/// Between two questions whether something has happened.
const PACE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(30);
const URL: &str = "https://receiver.example.com/hook";

struct World {
    server: Server,
    folder: TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let clock: SharedClock = Arc::new(SystemClock::default());
        let options = BuiltInOptions {
            disk_path: None,
            command: None,
            egress: None,
        };
        let registry = with_built_ins(Registry::builder(), options).unwrap();
        let registry = registry.build().unwrap();
        let server = Server::open(folder.path(), registry, clock).await.unwrap();
        Self { server, folder }
    }

    async fn send(&self, mut body: Value) -> Value {
        body["jsonrpc"] = "2.0".into();
        body["id"] = 1.into();
        let context = Context::anonymous(Arc::from("test"));
        let body = body.to_string();
        let answer = self
            .server
            .dispatcher()
            .answer_bytes(body.as_bytes(), context);
        serde_json::from_slice(&answer.await.unwrap()).unwrap()
    }

    async fn answer(&self, method: &str, params: Value) -> Value {
        self.send(json!({"method": method, "params": params})).await
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        let mut answer = self.answer(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    async fn refused(&self, method: &str, params: Value) -> Value {
        let mut answer = self.answer(method, params).await;
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        answer["error"].take()
    }

    /// The deliveries of a filter, once there are so many.
    async fn deliveries(&self, filter: Value, count: usize) -> Vec<Value> {
        let all = async {
            loop {
                let page = self.call("webhooks.deliveries", filter.clone()).await;
                let found = page["deliveries"].as_array().unwrap().clone();
                if found.len() >= count {
                    return found;
                }
                tokio::time::sleep(PACE).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.unwrap()
    }
}

#[tokio::test]
async fn a_webhook_is_made_shown_changed_and_deleted_without_its_secrets() {
    let world = World::start().await;
    let made = world
        .call(
            "webhooks.create",
            json!({"url": format!("{URL}#part"), "headers": {"Authorization": "Bearer hunter2"},
                "events": ["task_completed"], "description": "d"}),
        )
        .await;
    let id = made["id"].clone();
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(made["url"], URL, "the fragment is dropped");

    let change = json!({"id": id, "description": "e", "clear": ["events"]});
    let changed = world.call("webhooks.update", change).await;
    assert_eq!(
        (&changed["description"], &changed["events"]),
        (&"e".into(), &Value::Null)
    );
    let shown = world.call("webhooks.get", json!({"id": id})).await;
    assert_eq!(shown, changed);
    assert_eq!(shown["headers"], json!({"authorization": "***"}));
    let listed = world.call("webhooks.list", json!({})).await;
    assert_eq!(listed["webhooks"], json!([shown]));
    for answer in [&shown, &listed] {
        let text = answer.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains(&secret),
            "{text}"
        );
    }
    let asked = world.call("webhooks.secret", json!({"id": id})).await;
    assert_eq!(asked["secret"], json!(secret));

    world.call("webhooks.delete", json!({"id": id})).await;
    let gone = world.refused("webhooks.get", json!({"id": id})).await;
    assert_eq!(
        (&gone["code"], &gone["message"]),
        (&json!(-32014), &"Webhook not found".into())
    );
    world.server.close().await;
}

#[tokio::test]
async fn a_pair_shows_its_public_half_and_a_rotation_keeps_the_kind() {
    let world = World::start().await;
    let params = json!({"url": URL, "signature": "v1a"});
    let made = world.call("webhooks.create", params).await;
    assert!(made["secret"].as_str().unwrap().starts_with("whsk_"));
    assert!(made["public_key"].as_str().unwrap().starts_with("whpk_"));
    let id = made["id"].clone();
    let params = json!({"id": id, "grace_seconds": 60});
    let rotated = world.call("webhooks.rotate_secret", params).await;
    assert_ne!(rotated["public_key"], made["public_key"]);
    let secrets = world.call("webhooks.secret", json!({"id": id})).await;
    assert_eq!(secrets["secret"], rotated["secret"]);
    assert_eq!(secrets["old"][0]["secret"], made["secret"]);
    world.server.close().await;
}

#[tokio::test]
async fn a_receiver_that_is_not_allowed_is_refused_and_no_password_repeated() {
    let world = World::start().await;
    for url in [
        "http://127.0.0.1:9/",
        "https://10.0.0.1/",
        "https://user:hunter2@receiver.example.com/",
        "https://receiver.example.com:22/",
        "ftp://receiver.example.com/",
        "no url",
    ] {
        let refused = world.refused("webhooks.create", json!({"url": url})).await;
        assert_eq!(refused["code"], -32602, "{url}");
        assert_eq!(refused["data"]["field"], "url", "{url}");
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
        let execute = json!({"method": "tasks.execute", "params": {"tasks": [{"name": "a"}]},
            "configuration": {"push_notification_config": {"url": url}}});
        let refused = world.send(execute).await;
        let path = &refused["error"]["data"]["path"];
        assert_eq!(path[1], "push_notification_config", "{refused}");
    }
    world.server.close().await;
}

#[tokio::test]
async fn a_test_is_sent_again_once_and_not_while_disabled() {
    let world = World::start().await;
    let made = world.call("webhooks.create", json!({"url": URL})).await;
    let id = made["id"].clone();
    let tested = world.call("webhooks.test", json!({"id": id})).await;
    assert_eq!(tested["attempt"]["trigger"], "test", "{tested}");
    assert_eq!(tested["state"], "dead", "nobody is there: {tested}");
    let delivery = json!({"delivery_id": tested["delivery_id"]});
    let found = world.deliveries(json!({"id": id}), 1).await;
    assert_eq!(
        (&found[0]["id"], &found[0]["type"]),
        (&delivery["delivery_id"], &"webhook.test".into())
    );

    let again = json!({"delivery_id": delivery["delivery_id"], "request_key": "k"});
    assert_eq!(
        world.call("webhooks.redeliver", again.clone()).await,
        delivery
    );
    assert_eq!(
        world.call("webhooks.redeliver", again.clone()).await,
        delivery
    );
    let disabled = world.call("webhooks.disable", json!({"id": id})).await;
    assert_eq!(disabled["disabled"]["reason"], "requested");
    for (method, params) in [
        ("webhooks.redeliver", again),
        ("webhooks.test", json!({"id": id})),
    ] {
        let refused = world.refused(method, params).await;
        assert_eq!(refused["code"], -32602);
        assert_eq!(refused["data"]["reason"], "the webhook is disabled");
    }
    let enabled = world.call("webhooks.enable", json!({"id": id})).await;
    assert_eq!(enabled["enabled"], true);
    world.server.close().await;
}

#[tokio::test]
async fn an_execution_calls_back_and_its_secrets_stay_out_of_everything() {
    let world = World::start().await;
    let execute = |url: &str| {
        json!({"method": "tasks.execute",
            "params": {"tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}]},
            "configuration": {"push_notification_config":
                {"url": url, "headers": {"Authorization": "Bearer hunter2"}, "method": "POST"}},
            "metadata": {"idempotency_key": "k"}})
    };
    let started = world.send(execute(URL)).await;
    let task = &started["result"]["root_task_id"];
    // Started, completed, and the end of the run.
    let found = world.deliveries(json!({"task_id": task}), 3).await;
    let callback = found[0]["endpoint_id"].clone();
    assert!(
        found
            .iter()
            .all(|delivery| delivery["endpoint_id"] == callback)
    );
    let shown = world.call("webhooks.get", json!({"id": callback})).await;
    assert_eq!(
        (&shown["kind"], &shown["headers"]["authorization"]),
        (&"run".into(), &"***".into())
    );

    assert_eq!(world.send(execute(URL)).await, started);
    let other = world.send(execute("https://other.example.com/")).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");

    world.server.close().await;
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|end| end == "db-wal" || end == "db-shm")
        {
            continue; // emptied and removed when the last connection has gone
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(
            !bytes.windows(7).any(|w| w == b"hunter2"),
            "{}",
            path.display()
        );
    }
}

#[tokio::test]
async fn an_execution_that_is_refused_leaves_no_callback() {
    let world = World::start().await;
    let refused = world
        .send(json!({"method": "tasks.execute",
            "params": {"task_id": "0f8fad5b-d9cb-469f-a165-70867728950e"},
            "configuration": {"push_notification_config": {"url": URL}}}))
        .await;
    assert_eq!(refused["error"]["code"], -32001);
    let store = world.server.webhooks().store();
    assert_eq!(
        store.first_since().await.unwrap(),
        None,
        "no endpoint is there"
    );

    let wrong = world
        .send(json!({"method": "tasks.execute", "params": {"tasks": []},
            "configuration": {"push_notification_config": {"method": "GET"}}}))
        .await;
    let faults = wrong["error"]["data"]["errors"].as_array().unwrap();
    let fields: Vec<_> = faults.iter().map(|fault| &fault["field"]).collect();
    assert_eq!(fields, ["tasks", "url", "method"]);
    world.server.close().await;
}

#[tokio::test]
async fn a_webhook_of_a_flow_that_does_not_exist_is_refused() {
    let world = World::start().await;
    const LEAF: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let nobody = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let made = world
        .call(
            "tasks.create",
            json!({"name": "root", "children": [{"id": LEAF, "name": "leaf"}]}),
        )
        .await;
    let url = |flow: &Value| json!({"url": URL, "flow_id": flow});
    for flow in [json!(nobody), json!(LEAF)] {
        let refused = world.refused("webhooks.create", url(&flow)).await;
        assert_eq!(refused["data"]["field"], "flow_id", "{refused}");
        assert_eq!(refused["data"]["actual"], flow);
        assert_eq!(refused["data"]["reason"], "there is no such flow");
    }
    let kept = world.call("webhooks.create", url(&made["id"])).await;
    assert_eq!(kept["flow_id"], made["id"]);
    let change = json!({"id": kept["id"], "flow_id": nobody});
    let refused = world.refused("webhooks.update", change).await;
    assert_eq!(refused["data"]["field"], "flow_id");
    world.server.close().await;
}

#[tokio::test]
async fn two_webhooks_share_no_secret() {
    let world = World::start().await;
    let secret = format!("whsec_{}", "A".repeat(32));
    let own = json!({"url": URL, "secret": secret});
    let first = world.call("webhooks.create", own.clone()).await;
    let refused = world.refused("webhooks.create", own.clone()).await;
    assert_eq!(refused["data"]["field"], "secret");
    assert!(!refused.to_string().contains("AAAA"), "{refused}");
    let other = world.call("webhooks.create", json!({"url": URL})).await;
    let rotate = |id: &Value| json!({"id": id, "secret": secret});
    for id in [&first["id"], &other["id"]] {
        let refused = world.refused("webhooks.rotate_secret", rotate(id)).await;
        assert_eq!(refused["data"]["field"], "secret");
    }
    // Executions are many, and their caller's secret is one.
    for _ in 0..2 {
        let execute = json!({"method": "tasks.execute", "params": {"tasks": [{"name": "a"}]},
            "configuration": {"push_notification_config": {"url": URL, "secret": secret}}});
        let started = world.send(execute).await;
        assert!(started.get("error").is_none(), "{started}");
    }
    world
        .call("webhooks.delete", json!({"id": first["id"]}))
        .await;
    world.call("webhooks.create", own).await;
    world.server.close().await;
}

#[tokio::test]
async fn a_rotation_tells_how_many_secrets_sign_and_refuses_one_too_many() {
    let world = World::start().await;
    let made = world.call("webhooks.create", json!({"url": URL})).await;
    assert_eq!(made["secrets"].as_array().unwrap().len(), 1);
    let rotate = json!({"id": made["id"]});
    for n in 2..=6 {
        let rotated = world.call("webhooks.rotate_secret", rotate.clone()).await;
        assert_eq!(rotated["secrets"].as_array().unwrap().len(), n);
        assert_eq!(rotated["secrets"][0]["expires_at"], Value::Null);
    }
    let shown = world.call("webhooks.get", rotate.clone()).await;
    let first_end = shown["secrets"][5]["expires_at"].as_str().unwrap();
    let refused = world
        .refused("webhooks.rotate_secret", rotate.clone())
        .await;
    let expected = refused["data"]["expected"].as_str().unwrap();
    assert!(expected.contains(first_end), "{expected}");
    assert_eq!(world.call("webhooks.get", rotate.clone()).await, shown);
    let at_once = json!({"id": made["id"], "grace_seconds": 0});
    let rotated = world.call("webhooks.rotate_secret", at_once).await;
    assert_eq!(rotated["secrets"].as_array().unwrap().len(), 1);
    world.server.close().await;
}

#[tokio::test]
async fn what_is_refused_is_shown_unless_it_is_secret() {
    let world = World::start().await;
    for (url, shown) in [
        ("https://10.0.0.1/hook", "https://10.0.0.1/hook"),
        ("http://127.0.0.1:9/?key=hunter2", "http://127.0.0.1:9/?***"),
        (
            "https://me:hunter2@a.example/x",
            "https://[redacted]@a.example/x",
        ),
        ("ftp://a.example/#hunter2", "ftp://a.example/"),
        ("no url", "no url"),
    ] {
        let refused = world.refused("webhooks.create", json!({"url": url})).await;
        assert_eq!(refused["data"]["actual"], shown, "{refused}");
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
        let execute = json!({"method": "tasks.execute", "params": {"tasks": [{"name": "a"}]},
            "configuration": {"push_notification_config": {"url": url}}});
        let refused = world.send(execute).await;
        assert_eq!(refused["error"]["data"]["actual"], shown, "{refused}");
    }
    world.server.close().await;
}
