//! Whose flows are whose: who owns what is created, what lists, streams and webhooks show, and what changes
//! with the owner.

use super::named;
use super::world::{Callers, Nodes, World, user, usual};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_auth::{Caller, Name, Scope};

async fn given_task(world: &World, token: &str, name: &str) -> Value {
    let created = world.call(token, "tasks.create", json!({"name": name}));
    created.await["id"].take()
}

async fn names(world: &World, token: &str, params: Value) -> (Vec<String>, u64) {
    let list = world.call(token, "tasks.list", params).await;
    let tasks = list["tasks"].as_array().unwrap().iter();
    let names = tasks.map(|task| task["name"].as_str().unwrap().to_owned());
    (names.collect(), list["total"].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_belongs_to_whoever_creates_it_and_its_actor_is_the_caller() {
    let world = World::start().await;
    let task = given_task(&world, "ann", "a").await;
    let seen = world
        .call("ann", "tasks.get", json!({"task_id": task}))
        .await;
    assert_eq!(seen["user_id"], "ann");
    let history = world
        .call("ann", "tasks.history", json!({"task_id": task}))
        .await;
    assert_eq!(history["events"][0]["actor"], "user:ann");
    let for_bob = json!({"name": "b", "user_id": "bob"});
    let refusal = world.refusal("ann", "tasks.create", for_bob.clone()).await;
    assert_eq!(
        (&refusal["code"], &refusal["data"]["scope"]),
        (&json!(-32004), &json!("users:any"))
    );
    let by_chief = world.call("chief", "tasks.create", for_bob).await["id"].take();
    let history = world
        .call("bob", "tasks.history", json!({"task_id": by_chief}))
        .await;
    assert_eq!(history["events"][0]["actor"], "user:chief");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_and_a_user_of_one_name_do_not_see_each_others_flows() {
    let world = World::start().await;
    let name = Name::new("ann").unwrap();
    world.known.put("service", Caller::service(&name, usual()));
    let task = given_task(&world, "service", "of the service").await;
    let seen = world
        .refusal("ann", "tasks.get", json!({"task_id": task}))
        .await;
    assert_eq!(seen["code"], -32001);
    let own = world
        .call("service", "tasks.get", json!({"task_id": task}))
        .await;
    assert_eq!(own["user_id"], "service:ann");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_totals_and_labels_show_the_flows_of_the_caller_only() {
    let world = World::start().await;
    for n in 0..3 {
        given_task(&world, "ann", &format!("ann {n}")).await;
    }
    let root = given_task(&world, "bob", "bob 0").await;
    // A label grants nothing.
    let child = json!({"name": "bob 1", "parent_id": root, "user_id": "ann"});
    world.call("bob", "tasks.create", child).await;
    assert_eq!(names(&world, "ann", json!({"order": "asc"})).await.1, 3);
    let labelled = json!({"user_id": "ann"});
    assert_eq!(names(&world, "ann", labelled.clone()).await.1, 3);
    assert_eq!(
        names(&world, "bob", labelled).await,
        (vec!["bob 1".to_owned()], 1)
    );
    assert_eq!(
        names(&world, "bob", json!({"user_id": "nobody"})).await.1,
        0
    );
    assert_eq!(names(&world, "chief", json!({})).await.1, 5);
    let page = world.call("ann", "tasks.list", json!({"limit": 1})).await;
    let cursor = page["next_cursor"].clone();
    let behind = names(&world, "bob", json!({"cursor": cursor, "limit": 10})).await;
    assert!(
        behind.0.iter().all(|name| name.starts_with("bob")),
        "{behind:?}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_those_who_act_for_all_give_a_flow_to_somebody_else_and_then_it_is_theirs() {
    let world = World::start().await;
    let task = given_task(&world, "ann", "a").await;
    let to_bob = json!({"task_id": task, "updates": {"user_id": "bob"}});
    let refusal = world.refusal("ann", "tasks.update", to_bob.clone()).await;
    assert_eq!(refusal["code"], -32004);
    world.call("chief", "tasks.update", to_bob).await;
    for method in ["tasks.get", "tasks.tree", "tasks.history", "tasks.explain"] {
        let refused = world.refusal("ann", method, json!({"task_id": task})).await;
        assert_eq!(refused["code"], -32001, "{method}");
        world.call("bob", method, json!({"task_id": task})).await;
    }
    let before = world
        .refusal("ann", "tasks.get", json!({"task_id": task, "as_of": 1}))
        .await;
    assert_eq!(
        before["code"], -32001,
        "what was before counts as the new owner's"
    );
    assert_eq!(names(&world, "ann", json!({})).await.1, 0);
    assert_eq!(names(&world, "bob", json!({})).await.1, 1);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_belongs_to_whoever_copies() {
    let world = World::start().await;
    let root = given_task(&world, "ann", "a").await;
    let child = json!({"name": "b", "parent_id": root, "user_id": "bob"});
    let child = world.call("ann", "tasks.create", child).await["id"].take();
    let copied = world
        .call("ann", "tasks.copy", json!({"task_id": child}))
        .await;
    let copy = world.call(
        "ann",
        "tasks.get",
        json!({"task_id": copied["copied_task_id"]}),
    );
    assert_eq!(copy.await["user_id"], "ann");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_are_started_only_for_those_who_may() {
    let world = World::start().await;
    let task = json!({"id": "a", "name": "a", "schemas": {"method": "command_executor"},
        "inputs": {"program": "true"}});
    let tasks = json!({"tasks": [task]});
    for method in ["tasks.create", "tasks.execute"] {
        let refused = world.refusal("ann", method, tasks.clone()).await;
        assert_eq!(
            refused["data"]["scope"], "exec:local",
            "{method}: {refused}"
        );
    }
    world
        .known
        .put("operator", user("ann", usual().with(Scope::ExecLocal)));
    let created = world.call("operator", "tasks.create", tasks.clone()).await;
    let stored = json!({"task_id": created["id"]});
    for method in ["tasks.execute", "tasks.copy"] {
        let refused = world.refusal("ann", method, stored.clone()).await;
        assert_eq!(
            refused["data"]["scope"], "exec:local",
            "{method}: {refused}"
        );
    }
    world.call("operator", "tasks.execute", stored).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_tell_of_the_flows_of_the_caller_only() {
    let world = World::start().await;
    let request = world.client.get(format!("{}/events", world.url()));
    let mut response = request.bearer_auth("ann").send().await.unwrap();
    let of_bob = given_task(&world, "bob", "b").await;
    world
        .call("bob", "tasks.cancel", json!({"task_id": of_bob}))
        .await;
    let of_ann = given_task(&world, "ann", "a").await;
    world
        .call("ann", "tasks.cancel", json!({"task_id": of_ann}))
        .await;
    let (of_bob, of_ann) = (of_bob.as_str().unwrap(), of_ann.as_str().unwrap());
    let mut told = String::new();
    let until = async {
        while !told.contains(of_ann) {
            let piece = response.chunk().await.unwrap().unwrap();
            told.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(30), until)
        .await
        .unwrap();
    assert!(!told.contains(of_bob), "{told}");
    let other = world
        .client
        .get(format!("{}/events?user_id=bob", world.url()));
    let (status, text) = world.send(other.bearer_auth("ann")).await;
    assert!(status == 200 && !text.contains(of_bob), "{text}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_their_owners_and_are_about_the_owners_flows() {
    let world = World::start().await;
    let url = "https://receiver.example.com/hook";
    let for_all = json!({"url": url, "user_id": "bob"});
    let refused = world.refusal("ann", "webhooks.create", for_all).await;
    assert_eq!(refused["data"]["scope"], "users:any");
    let own = world
        .call("ann", "webhooks.create", json!({"url": url}))
        .await;
    let of_all = world
        .call("chief", "webhooks.create", json!({"url": url}))
        .await;
    let list = world.call("ann", "webhooks.list", json!({})).await;
    let ids: Vec<_> = list["webhooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [&own["id"]]);
    let list = world.call("chief", "webhooks.list", json!({})).await;
    assert_eq!(list["webhooks"].as_array().unwrap().len(), 2);
    let of_bob = given_task(&world, "bob", "b").await;
    world
        .call("bob", "tasks.cancel", json!({"task_id": of_bob}))
        .await;
    let of_ann = given_task(&world, "ann", "a").await;
    world
        .call("ann", "tasks.cancel", json!({"task_id": of_ann}))
        .await;
    let told = async |token: &str, webhook: &Value| loop {
        let deliveries = world
            .call(token, "webhooks.deliveries", json!({"id": webhook}))
            .await;
        let about: Vec<_> = deliveries["deliveries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|delivery| delivery["task_id"].clone())
            .collect();
        if about.contains(&of_ann) {
            break about;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(told("chief", &of_all["id"]).await.contains(&of_bob));
    assert!(!told("ann", &own["id"]).await.contains(&of_bob));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_starts_no_program_for_those_who_may_not() {
    let world = World::start().await;
    let operator = user("ann", usual().with(Scope::ExecLocal));
    world.known.put("operator", operator);
    let tasks = json!({"tasks": [{"id": "root", "name": "root"},
        {"id": "first", "name": "first", "parent_id": "root",
            "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 100_000},
            "params": {"timeout_seconds": 0.05}},
        {"id": "then", "name": "then", "parent_id": "root", "dependencies": [{"id": "first"}],
            "schemas": {"method": "command_executor"}, "inputs": {"program": "true"}}]});
    let created = world.call("operator", "tasks.create", tasks).await;
    let first = json!({"task_id": created["task_ids"]["first"]});
    world.call("ann", "tasks.execute", first.clone()).await;
    loop {
        let task = world.call("ann", "tasks.get", first.clone()).await;
        if task["status"] == "failed" && task["run"]["state"] != "running" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = world.refusal("ann", "tasks.retry", first.clone()).await;
    assert_eq!(refused["data"]["scope"], "exec:local", "{refused}");
    world.call("operator", "tasks.retry", first).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_programs_accepts_none_for_others_that_have_them() {
    let world = World::without_programs().await;
    let program = json!({"method": "command_executor"});
    let tasks =
        json!([{"id": "a", "name": "a", "schemas": program, "inputs": {"program": "true"}}]);
    let operator = user("ann", usual().with(Scope::ExecLocal));
    world.known.put("operator", operator);
    let accepting = json!({"allow_unknown_executors": true, "executor_wait_seconds": 3000});
    let execute = |what: Value| {
        let mut params = accepting.clone();
        let members = what.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(members);
        params
    };
    let schedule = json!({"name": "s", "cron": "@yearly", "tasks": tasks});
    let create = json!({"tasks": tasks});
    for (method, params) in [
        ("tasks.create", create.clone()),
        ("tasks.execute", execute(create.clone())),
        ("schedules.create", schedule),
    ] {
        let refused = world.refusal("ann", method, params.clone()).await;
        let scope = &refused["data"]["scope"];
        assert_eq!(scope, "exec:local", "{method}: {refused}");
    }
    let stored = world.call("operator", "tasks.create", create).await;
    let stored = json!({"task_id": stored["id"]});
    let plain = world
        .call("ann", "tasks.create", json!({"name": "b"}))
        .await;
    let changed = json!({"task_id": plain["id"], "updates": {"schemas": program}});
    for (method, params) in [
        ("tasks.execute", execute(stored.clone())),
        ("tasks.copy", stored.clone()),
        ("tasks.update", changed),
    ] {
        let refused = world.refusal("ann", method, params).await;
        let scope = &refused["data"]["scope"];
        assert_eq!(scope, "exec:local", "{method}: {refused}");
    }
    world
        .call("operator", "tasks.execute", execute(stored))
        .await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_by_whoever_acts_for_all_stays_with_the_owner_of_the_original() {
    let world = World::start().await;
    let root = given_task(&world, "bob", "b").await;
    let child = json!({"name": "c", "parent_id": root, "user_id": "ann"});
    let child = world.call("bob", "tasks.create", child).await["id"].take();
    let copied = world
        .call("chief", "tasks.copy", json!({"task_id": child}))
        .await;
    let copy = json!({"task_id": copied["copied_task_id"]});
    let seen = world.call("chief", "tasks.get", copy.clone()).await;
    assert_eq!(seen["user_id"], "bob");
    assert_eq!(
        world.refusal("ann", "tasks.get", copy).await["code"],
        -32001
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_webhook_is_given_up_when_its_flow_is_somebody_elses() {
    let world = World::start().await;
    let webhook = json!({"url": "https://receiver.invalid/hook"});
    let webhook = world.call("ann", "webhooks.create", webhook).await["id"].take();
    let root = given_task(&world, "ann", "a").await;
    let below = json!({"name": "b", "parent_id": root});
    let task = world.call("ann", "tasks.create", below).await["id"].take();
    world
        .call("ann", "tasks.cancel", json!({"task_id": task}))
        .await;
    let delivery = async |wanted: fn(&Value) -> bool| loop {
        let of = json!({"id": webhook});
        let mut page = world.call("ann", "webhooks.deliveries", of).await;
        let first = page["deliveries"].get_mut(0).map(Value::take);
        let first = first.unwrap_or_default();
        if wanted(&first) {
            break first;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let noted = delivery(|delivery| delivery["state"] == "waiting").await;

    let to_bob = json!({"task_id": root, "updates": {"user_id": "bob"}});
    world.call("chief", "tasks.update", to_bob).await;
    let again = json!({"delivery_id": noted["id"]});
    world.call("ann", "webhooks.redeliver", again).await;

    let given_up = delivery(|delivery| delivery["state"] == "dead").await;
    let attempts = given_up["log"].as_array().unwrap();
    assert_eq!(attempts.last().unwrap()["error"], "owner", "{given_up}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_of_one_name_belong_to_each_of_their_owners() {
    let world = World::start().await;
    let document = |assign: &str| json!({"openintent": "1.0", "info": {"name": "Report"}, "workflow": {"a": {"assign": assign}}});
    let saved = |token, assign: &'static str, owner: Option<&'static str>| {
        let mut params = json!({"document": document(assign)});
        if let Some(owner) = owner {
            params["owner"] = json!(owner);
        }
        world.call(token, "workflows.save", params)
    };
    assert_eq!(saved("ann", "of-ann", None).await["saved_by"], "user:ann");
    let tells = [
        "workflows.versions",
        "workflows.delete",
        "workflows.schemas",
    ];
    for (method, params) in named::with("workflows.", "name", &json!("Report")) {
        if !tells.contains(&method) {
            let refusal = world.refusal("bob", method, params).await;
            assert_eq!(refusal["code"], -31012, "{method}");
        }
    }
    let schemas = json!({"name": "Report"});
    let refusal = world.refusal("bob", "workflows.schemas", schemas).await;
    assert_eq!(refusal["code"], -31012);
    let listed = world.call("bob", "workflows.list", json!({})).await;
    assert_eq!(listed["workflows"], json!([]));
    let events = json!({"name": "Report"});
    let events = world.call("bob", "workflows.versions", events).await;
    assert_eq!(events["versions"], json!([]));
    let deleted = world.call("bob", "workflows.delete", json!({"name": "Report"}));
    assert_eq!(deleted.await["deleted"], false);
    saved("bob", "of-bob", None).await;
    // By the name of the other one, `users:any` is needed.
    let schemas = json!({"name": "Report", "owner": "ann"});
    let by_owner = named::with("workflows.", "owner", &json!("ann")).into_iter();
    let by_owner = by_owner.filter(|(method, _)| *method != "workflows.schemas");
    for (method, params) in by_owner.chain([("workflows.schemas", schemas)]) {
        let refusal = world.refusal("bob", method, params).await;
        let told = (&refusal["code"], &refusal["data"]["scope"]);
        assert_eq!(told, (&json!(-32004), &json!("users:any")), "{method}");
    }
    for (token, owner, assign) in [("ann", None, "of-ann"), ("chief", Some("bob"), "of-bob")] {
        let mut params = json!({"name": "Report"});
        if let Some(owner) = owner {
            params["owner"] = json!(owner);
        }
        let found = world.call(token, "workflows.get", params).await;
        assert_eq!(found["document"], document(assign));
    }
    // The run is of whoever runs it.
    let run = world
        .call("ann", "workflows.run", json!({"name": "Report"}))
        .await;
    let root = json!({"task_id": run["root_task_id"]});
    assert_eq!(
        world.call("ann", "tasks.get", root.clone()).await["user_id"],
        "ann"
    );
    assert_eq!(
        world.refusal("bob", "tasks.get", root).await["code"],
        -32001
    );
    world.close().await;
}

/// The result of a call that carries this idempotency key.
async fn keyed(world: &Callers, who: &str, method: &str, params: &Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params,
        "metadata": {"idempotency_key": "the same for both"}});
    let request = world.client.post(world.url()).json(&call);
    let (status, text) = world.send(world.as_caller(request, Some(who))).await;
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    assert!(status == 200 && answer["error"].is_null(), "{who}: {text}");
    answer["result"].take()
}

async fn assert_stored_answers_are_ones_own(world: &Callers) {
    let create = json!({"name": "once"});
    let hers = keyed(world, "ann", "tasks.create", &create).await;
    // The same key and call of somebody else is another call.
    let his = keyed(world, "bob", "tasks.create", &create).await;
    assert_ne!(his["id"], hers["id"]);
    // Asked again, at each node in turn, both get their first answers.
    for _ in 0..2 * world.nodes() {
        assert_eq!(keyed(world, "ann", "tasks.create", &create).await, hers);
        assert_eq!(keyed(world, "bob", "tasks.create", &create).await, his);
    }
    for (who, theirs, other) in [("ann", &hers, &his), ("bob", &his, &hers)] {
        world
            .call(who, "tasks.get", json!({"task_id": theirs["id"]}))
            .await;
        let refused = world.refusal(who, "tasks.get", json!({"task_id": other["id"]}));
        assert_eq!(refused.await["code"], -32001, "{who}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_stored_under_a_key_are_ones_own() {
    let world = World::start().await;
    assert_stored_answers_are_ones_own(&world).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_stored_under_a_key_are_ones_own_at_any_node_on_postgres() {
    let nodes = Nodes::start().await;
    assert_stored_answers_are_ones_own(&nodes).await;
    nodes.close().await;
}
