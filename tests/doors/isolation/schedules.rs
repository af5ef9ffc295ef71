//! Whose schedules are whose, and what somebody with `users:any` may do about those of others.

use super::named;
use super::world::{World, user, usual};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::time::Duration;
use taskledger::application::limits::QuotaOptions;
use taskledger::transport::jsonrpc::methods;
use taskledger_auth::{Scope, Scopes};
use tokio::time::sleep;

fn new(owner: Option<&str>) -> Value {
    let mut params = json!({
        "name": "nightly", "cron": "@yearly",
        "tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}],
    });
    if let Some(owner) = owner {
        params["owner"] = json!(owner);
    }
    params
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_of_one_name_belong_to_each_of_their_owners() {
    let world = World::start().await;
    let made = world.call("ann", "schedules.create", new(None)).await;
    assert_eq!(made["runs_as"], "user:ann");
    // To somebody else it is as absent as one that does not exist.
    let by_name = |name: &str| named::with("schedules.", "name", &json!(name)).into_iter();
    let makes_or_tells = ["schedules.create", "schedules.delete"];
    let pairs = by_name("nightly").zip(by_name("none"));
    for ((method, hers), (_, none)) in
        pairs.filter(|((method, _), _)| !makes_or_tells.contains(method))
    {
        let refusal = world.refusal("bob", method, hers).await;
        let none = world.refusal("bob", method, none).await;
        assert_eq!(refusal["code"], -31014, "{method}");
        assert_eq!(refusal["message"], none["message"], "{method}");
    }
    let listed = world.call("bob", "schedules.list", json!({})).await;
    assert_eq!(listed["schedules"], json!([]));
    let deleted = world.call("bob", "schedules.delete", json!({"name": "nightly"}));
    assert_eq!(deleted.await["deleted"], false);
    world.call("bob", "schedules.create", new(None)).await;
    // By the name of the other one, `users:any` is needed.
    let all = named::with("schedules.", "owner", &json!("ann"));
    let table = methods::table().into_iter();
    let group = table.filter(|method| method.name.starts_with("schedules."));
    assert_eq!(all.len(), group.count(), "each of them names an owner");
    for (method, params) in all {
        let refusal = world.refusal("bob", method, params).await;
        let told = (&refusal["code"], &refusal["data"]["scope"]);
        assert_eq!(told, (&json!(-32004), &json!("users:any")), "{method}");
    }
    // The run is its owner's, whoever asks for it.
    let named = json!({"name": "nightly", "owner": "bob"});
    let run = world.call("chief", "schedules.run_now", named).await;
    let root = json!({"task_id": run["root_task_id"]});
    let seen = world.call("bob", "tasks.get", root.clone()).await;
    assert_eq!(seen["user_id"], "bob");
    assert_eq!(
        world.refusal("ann", "tasks.get", root).await["code"],
        -32001
    );
    // Tasks of somebody else are none of a schedule of one's own.
    let mut foreign = new(None);
    foreign["name"] = json!("foreign");
    foreign["tasks"][0]["user_id"] = json!("ann");
    let refusal = world.refusal("bob", "schedules.create", foreign).await;
    assert_eq!(refusal["data"]["errors"][0]["field"], "user_id");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_is_made_for_somebody_else_is_theirs_and_acts_for_who_made_it() {
    let world = World::start().await;
    let named = json!({"name": "nightly"});
    let mut each_second = new(Some("ann"));
    each_second.as_object_mut().unwrap().remove("cron");
    each_second["every_seconds"] = json!(1);
    each_second["max_runs"] = json!(1);
    let made = world.call("chief", "schedules.create", each_second).await;
    assert_eq!(made["runs_as"], "user:chief");
    // It is hers, and none of the one who made it.
    let own = world.refusal("chief", "schedules.get", named.clone()).await;
    assert_eq!(own["code"], -31014);
    let listed = world.call("ann", "schedules.list", json!({})).await;
    assert_eq!(listed["schedules"][0]["id"], made["id"]);
    // What it starts at its time is hers too.
    let root = loop {
        let shown = world.call("ann", "schedules.get", named.clone()).await;
        let root = &shown["runs"][0]["root_task_id"];
        if root.is_string() {
            break json!({"task_id": root});
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let seen = world.call("ann", "tasks.get", root.clone()).await;
    assert_eq!(seen["user_id"], "ann");
    let strange = world.refusal("bob", "tasks.get", root).await;
    assert_eq!(strange["code"], -32001);
    // Her own change has it act for her.
    let changed = json!({"name": "nightly", "overlap": "allow", "without": ["max_runs"]});
    let changed = world.call("ann", "schedules.update", changed).await;
    assert_eq!(changed["runs_as"], "user:ann");
    // The list of one who may see all is that of one owner all the same.
    for (owner, count) in [("ann", 1), ("chief", 0)] {
        let listed = world.call("chief", "schedules.list", json!({"owner": owner}));
        let count_of = |list: &Value| list["schedules"].as_array().unwrap().len();
        assert_eq!(count_of(&listed.await), count, "{owner}");
    }
    let deleted = json!({"name": "nightly", "owner": "ann"});
    let deleted = world.call("chief", "schedules.delete", deleted).await;
    assert_eq!(deleted["deleted"], true);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_need_the_scopes_of_what_they_do() {
    let world = World::start().await;
    world.call("ann", "schedules.create", new(None)).await;
    // `reader` is Ann with nothing but `tasks:read`.
    let named = json!({"name": "nightly"});
    for method in ["schedules.get", "schedules.list"] {
        let params = if method == "schedules.get" {
            named.clone()
        } else {
            json!({})
        };
        world.call("reader", method, params).await;
    }
    for method in ["update", "pause", "run_now", "delete", "create"] {
        let params = if method == "create" {
            new(None)
        } else {
            named.clone()
        };
        let method = format!("schedules.{method}");
        let refusal = world.refusal("reader", &method, params).await;
        assert_eq!(refusal["code"], -32004, "{method}");
        assert_eq!(refusal["data"]["scope"], "tasks:run", "{method}");
    }
    // `users:any` alone does not start anything.
    let scopes = Scopes::of([Scope::TasksRead, Scope::UsersAny]);
    world.known.put("auditor", user("auditor", scopes));
    let hers = json!({"name": "nightly", "owner": "ann"});
    let shown = world.call("auditor", "schedules.get", hers.clone()).await;
    assert_eq!(shown["name"], "nightly");
    let refusal = world.refusal("auditor", "schedules.run_now", hers).await;
    assert_eq!(refusal["data"]["scope"], "tasks:run");
    // Without it, the other one's is not even named by its scope first.
    world.known.put("carl", user("carl", usual()));
    let theirs = json!({"name": "nightly", "owner": "ann"});
    let refusal = world.refusal("carl", "schedules.get", theirs).await;
    assert_eq!(refusal["data"]["scope"], "users:any");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_starts_programs_is_run_and_resumed_by_those_who_may_start_them() {
    let world = World::start().await;
    let scopes = usual().with(Scope::ExecLocal);
    world.known.put("operator", user("ann", scopes));
    let mut starts = new(None);
    starts["tasks"][0] = json!({"name": "a", "schemas": {"method": "command_executor"},
        "inputs": {"program": "true"}});
    world.call("operator", "schedules.create", starts).await;
    let text = json!({"openintent": "1.0", "info": {"name": "Report"}, "workflow": {
        "a": {"assign": "command_executor", "inputs": {"program": "$trigger.program"}}}});
    let save = json!({"document": text});
    world.call("operator", "workflows.save", save).await;
    let document = json!({"name": "by document", "cron": "@yearly", "workflow": {"name": "Report", "inputs": {"program": "true"}}});
    world.call("operator", "schedules.create", document).await;
    for name in ["nightly", "by document"] {
        let named = json!({"name": name});
        let refused = world
            .refusal("ann", "schedules.run_now", named.clone())
            .await;
        assert_eq!(refused["data"]["scope"], "exec:local", "{refused}");
        let shown = world.call("ann", "schedules.get", named.clone()).await;
        assert_eq!(shown["runs"], json!([]), "nothing was begun");
        let pause = |paused: bool| json!({"name": name, "paused": paused});
        world.call("ann", "schedules.pause", pause(true)).await;
        let refused = world.refusal("ann", "schedules.pause", pause(false)).await;
        assert_eq!(refused["data"]["scope"], "exec:local", "{refused}");
        let shown = world
            .call("operator", "schedules.pause", pause(false))
            .await;
        assert_eq!(shown["paused"], false);
        // What is not paused is left as it is.
        world.call("ann", "schedules.pause", pause(false)).await;
        let run = world.call("operator", "schedules.run_now", named).await;
        assert_eq!(run["outcome"], "started", "{run}");
    }
    // Without programs nothing more is needed.
    let mut plain = new(None);
    plain["name"] = json!("plain");
    world.call("operator", "schedules.create", plain).await;
    let run = world.call("ann", "schedules.run_now", json!({"name": "plain"}));
    assert_eq!(run.await["outcome"], "started");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_by_hand_over_a_quota_has_failed_and_says_why() {
    let quotas = QuotaOptions {
        open_flows: NonZeroU32::new(1),
        ..QuotaOptions::default()
    };
    let world = World::with(quotas).await;
    world.call("ann", "schedules.create", new(None)).await;
    let open = world
        .call("ann", "tasks.create", json!({"name": "a"}))
        .await;
    // Flows are counted in the read models, so these have to show it.
    world.call("ann", "tasks.list", json!({})).await;
    let named = json!({"name": "nightly"});
    let run = world.call("ann", "schedules.run_now", named.clone()).await;
    let shown = world.call("ann", "schedules.get", named.clone()).await;
    for run in [&run, &shown["runs"][0]] {
        assert_eq!(run["outcome"], "failed", "{run}");
        assert!(run["error"].as_str().unwrap().contains("quota"), "{run}");
    }
    let filter = json!({"action": "schedule.run_now"});
    let rows = world.call("chief", "audit.list", filter).await;
    let outcomes = rows["entries"].as_array().unwrap().iter();
    let outcomes: Vec<_> = outcomes.map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["refused", "done"], "the newest first");
    let gone = json!({"task_id": open["id"]});
    world.call("ann", "tasks.delete", gone).await;
    // Flows that are open are counted behind the event that closes one.
    let mut run = Value::Null;
    for _ in 0..100 {
        run = world.call("ann", "schedules.run_now", named.clone()).await;
        if run["outcome"] == "started" {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(run["outcome"], "started", "{run}");
    world.close().await;
}
