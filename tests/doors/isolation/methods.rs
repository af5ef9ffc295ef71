//! What one user declares and asks for is for that user's tasks: those of others are offered, checked, limited and
//! explained as if it were not there.

use super::world::{Callers, Nodes, World, user};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_auth::{Scope, Scopes};
use tokio::time::sleep;

/// Longer than nodes take to hear of what another one has noted.
const HEARD: Duration = Duration::from_millis(2_500);

fn remote(method: &str, inputs: Value) -> Value {
    json!({"tasks": [{"id": "a", "name": "a", "inputs": inputs,
        "schemas": {"type": "remote", "method": method}, "params": {"retry_count": 2}}]})
}

async fn executed(world: &Callers, who: &str, method: &str) -> Value {
    let run = remote(method, json!({"a": 1}));
    let mut run = world.call(who, "tasks.execute", run).await;
    run["root_task_id"].take()
}

async fn claimed(world: &Callers, who: &str, method: &str, seconds: u64) -> Vec<Value> {
    let claim = json!({"methods": [method], "wait_seconds": seconds, "max": 10});
    let mut claims = world.call(who, "tasks.claim", claim).await;
    let claims = claims["claims"].as_array_mut().unwrap();
    claims.iter_mut().map(Value::take).collect()
}

async fn completed(world: &Callers, who: &str, claim: &Value) {
    let done =
        json!({"task_id": claim["task"]["id"], "lease": claim["lease"]["token"], "output": {}});
    world.call(who, "tasks.complete", done).await;
}

async fn explained(world: &Callers, who: &str, task: &Value) -> String {
    let explained = world.call(who, "tasks.explain", json!({"task_id": task}));
    explained.await.to_string()
}

/// The methods that a caller is shown.
async fn shown(world: &Callers, who: &str) -> Vec<Value> {
    let mut shown = world.call(who, "workers.methods", json!({})).await;
    let shown = shown["methods"].as_array_mut().unwrap();
    shown.iter_mut().map(Value::take).collect()
}

async fn assert_a_declaration_is_for_ones_own_tasks(world: &Callers) {
    let before = executed(world, "ann", "pay").await;
    let hers = json!({"type": "object", "required": ["zzz"]});
    let declared = json!({"method": "pay", "input_schema": hers, "output_schema": hers,
        "defaults": {"timeout_seconds": 7}, "limit": 1});
    let declared = world.call("bob", "workers.declare", declared).await;
    assert_eq!(declared["owner"], "bob", "{declared}");
    sleep(HEARD).await;

    // Ann's task is neither checked by it, nor gets anything of it, whenever it was made.
    let after = executed(world, "ann", "pay").await;
    let got = world
        .call("ann", "tasks.get", json!({"task_id": after}))
        .await;
    assert!(!got.to_string().contains("timeout_seconds"), "{got}");
    let mut claims = Vec::new();
    while claims.len() < 2 {
        let more = claimed(world, "ann", "pay", 20).await;
        assert!(
            !more.is_empty(),
            "{}",
            explained(world, "ann", &after).await
        );
        claims.extend(more);
    }
    let ids: Vec<&Value> = claims.iter().map(|claim| &claim["task"]["id"]).collect();
    assert!(ids.contains(&&before) && ids.contains(&&after));
    for claim in &claims {
        completed(world, "ann", claim).await;
    }
    // Nor is she told of it.
    sleep(HEARD).await;
    let of_ann = shown(world, "ann").await;
    let pay = of_ann.iter().find(|it| it["method"] == "pay").unwrap();
    assert_eq!(pay["declared"], false);
    assert_ne!(pay["workers"], 0, "her own");
    let removed = json!({"method": "pay"});
    let removed = world.call("ann", "workers.undeclare", removed).await;
    let absent = json!({"method": "nix"});
    let absent = world.call("ann", "workers.undeclare", absent).await;
    assert_eq!(
        removed.to_string().replace("pay", "nix"),
        absent.to_string()
    );

    // Bob's are what he has declared.
    let refused = remote("pay", json!({"a": 1}));
    let refused = world.refusal("bob", "tasks.execute", refused).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    for _ in 0..2 {
        let fits = remote("pay", json!({"zzz": 1}));
        world.call("bob", "tasks.execute", fits).await;
    }
    let bobs = claimed(world, "bob", "pay", 20).await;
    assert_eq!(bobs.len(), 1, "his limit");
    assert_eq!(
        bobs[0]["task"]["params"]["timeout_seconds"], 7,
        "{}",
        bobs[0]
    );
    assert_eq!(claimed(world, "bob", "pay", 0).await, [] as [Value; 0]);
    // While he holds it, his limit keeps nothing from Ann.
    executed(world, "ann", "pay").await;
    assert_eq!(claimed(world, "ann", "pay", 20).await.len(), 1);
    let unfit =
        json!({"task_id": bobs[0]["task"]["id"], "lease": bobs[0]["lease"]["token"], "output": {}});
    let unfit = world.refusal("bob", "tasks.complete", unfit).await;
    assert_eq!(unfit["code"], -32602, "{unfit}");
}

async fn assert_who_asks_is_there_for_ones_own_tasks(world: &Callers) {
    let one = &world.at(0);
    let waiting = executed(world, "ann", "ghost").await;
    let name = json!({"method": "ghost2"});
    let unknown = json!({"tasks": [{"name": "a", "schemas": name}]});
    let seen = async || {
        let refused = one.refusal("ann", "tasks.execute", unknown.clone()).await;
        let lists = [
            one.call("ann", "workers.list", json!({})).await,
            one.call("ann", "workers.methods", json!({})).await,
            one.call("ann", "system.executors", json!({})).await,
            one.call("ann", "system.health", json!({})).await["executors"].take(),
        ];
        let explained = one
            .call("ann", "tasks.explain", json!({"task_id": waiting}))
            .await;
        let reasons = explained["reasons"].to_string();
        (refused, lists, reasons)
    };
    let before = seen().await;
    assert_eq!(before.0["code"], -32003);
    let poll = json!({"methods": ["ghost", "ghost2"], "wait_seconds": 10, "worker": "of bob"});
    let poll = world.call("bob", "tasks.claim", poll);
    let look = async {
        sleep(HEARD).await;
        let own = json!({"tasks": [{"name": "a", "schemas": name}]});
        assert_eq!(seen().await, before, "while another user's worker waits");
        // It is there for his own.
        world.call("bob", "tasks.execute", own).await;
    };
    let (claims, ()) = tokio::join!(poll, look);
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1);
    sleep(HEARD).await;
    assert_eq!(seen().await, before, "while it holds a task");
}

async fn assert_what_is_shared_is_for_all(world: &Callers) {
    let schema = json!({"type": "object", "required": ["page"]});
    let shared = json!({"method": "common", "input_schema": schema, "limit": 3});
    let shared = world.call("chief", "workers.declare", shared).await;
    assert_eq!(shared.get("owner"), None, "{shared}");
    sleep(HEARD).await;
    for who in ["ann", "bob"] {
        let refused = remote("common", json!({"a": 1}));
        let refused = world.refusal(who, "tasks.execute", refused).await;
        assert_eq!(refused["code"], -32602, "{who}");
        let of_other = json!({"method": "common"});
        let refused = world.refusal(who, "workers.undeclare", of_other).await;
        assert_eq!(refused["code"], -32602, "{who}");
    }
    // One's own takes its place, and goes without it.
    world
        .call("bob", "workers.declare", json!({"method": "common"}))
        .await;
    sleep(HEARD).await;
    executed(world, "bob", "common").await;
    let limits = async |who| {
        let shown = shown(world, who).await;
        let common = shown.iter().filter(|it| it["method"] == "common");
        common
            .map(|it| it.get("limit").cloned())
            .collect::<Vec<_>>()
    };
    assert_eq!(limits("bob").await, [None]);
    assert_eq!(limits("ann").await, [Some(json!(3))]);
    assert_eq!(limits("chief").await, [Some(json!(3)), None]);
    // Whoever may claim of all users gets both, by whatever it is declared.
    assert_eq!(claimed(world, "chief", "common", 20).await.len(), 1);
    let undeclared = json!({"method": "common"});
    world.call("bob", "workers.undeclare", undeclared).await;
    sleep(HEARD).await;
    assert_eq!(limits("bob").await, [Some(json!(3))]);
}

/// Workers that wait already when a method is declared get its tasks.
async fn assert_workers_that_wait_follow_a_declaration(world: &Callers) {
    for who in ["bob", "chief"] {
        let method = format!("later for {who}");
        let poll = claimed(world, who, &method, 30);
        let declared = async {
            sleep(Duration::from_millis(300)).await;
            let declare = json!({"method": method});
            world.call("bob", "workers.declare", declare).await;
            executed(world, "bob", &method).await;
        };
        let (claims, ()) = tokio::join!(poll, declared);
        assert_eq!(claims.len(), 1, "{who}");
    }
    // And tasks that were there before.
    let task = executed(world, "bob", "later still").await;
    let declare = json!({"method": "later still"});
    world.call("bob", "workers.declare", declare).await;
    sleep(HEARD).await;
    let claims = claimed(world, "bob", "later still", 20).await;
    assert_eq!(claims[0]["task"]["id"], task);
}

/// What another user has declared is taken back by an administrator alone, and the audit log has it.
async fn assert_an_administrator_takes_back_what_others_declared(world: &Callers) {
    let declare = json!({"method": "left", "limit": 1});
    world.call("bob", "workers.declare", declare).await;
    sleep(HEARD).await;
    // Whether somebody else has declared something is not told.
    let of = |owner: &str| json!({"method": "left", "owner": owner});
    let named = world.refusal("ann", "workers.undeclare", of("bob")).await;
    assert_eq!(
        (
            &named["code"],
            &named["data"]["scope"],
            &named["data"]["field"]
        ),
        (&json!(-32004), &json!("users:any"), &json!("owner"))
    );
    for nobodys in ["nobody", ""] {
        let absent = world.refusal("ann", "workers.undeclare", of(nobodys));
        assert_eq!(absent.await, named, "{nobodys:?}");
    }
    let own = world.call("ann", "workers.undeclare", of("ann")).await;
    assert_eq!(own["removed"], false);
    let limits = async || {
        let shown = shown(world, "bob").await;
        let left = shown.iter().filter(|it| it["method"] == "left");
        left.filter_map(|it| it.get("limit").cloned())
            .collect::<Vec<_>>()
    };
    assert_eq!(limits().await, [json!(1)]);

    let removed = async |owner| {
        let removed = world.call("chief", "workers.undeclare", of(owner)).await;
        removed["removed"].clone()
    };
    assert_eq!(removed("ann").await, false, "she has declared nothing");
    assert_eq!(removed("bob").await, true);
    sleep(HEARD).await;
    assert_eq!(limits().await, [] as [Value; 0]);
    assert_eq!(removed("bob").await, false);
    let rows = json!({"action": "method.undeclare"});
    let rows = world.call("chief", "audit.list", rows).await;
    let rows = rows["entries"].as_array().unwrap();
    // Refusals for a missing scope are counted, and do not say whose it is.
    let is_about = |row: &&Value| row["object"] == "left" && row["detail"]["owner"].is_string();
    let left = rows.iter().filter(is_about);
    let left = left.map(|row| {
        assert_ne!(row["principal"], "user:bob");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&row["outcome"]), text(&row["detail"]["owner"]))
    });
    let left: Vec<_> = left.collect();
    let row = |outcome: &str, owner: &str| (outcome.to_owned(), owner.to_owned());
    let nothing_of_ann = [row("refused", "ann"), row("done", "ann")];
    let then_nothing = [row("refused", "bob"), row("done", "bob")];
    let expected = [&then_nothing[..], &[row("done", "bob")], &nothing_of_ann];
    assert_eq!(left, expected.concat(), "newest first");
}

async fn assert_methods_are_ones_own(world: &Callers) {
    // First, while no worker of Ann's is there, whose times would be shown.
    assert_who_asks_is_there_for_ones_own_tasks(world).await;
    assert_a_declaration_is_for_ones_own_tasks(world).await;
    assert_what_is_shared_is_for_all(world).await;
    assert_workers_that_wait_follow_a_declaration(world).await;
    assert_an_administrator_takes_back_what_others_declared(world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_user_declares_and_asks_for_changes_nothing_for_another() {
    let world = World::start().await;
    assert_methods_are_ones_own(&world).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_user_declares_and_asks_for_changes_nothing_for_another_on_any_node_on_postgres() {
    let nodes = Nodes::start().await;
    assert_methods_are_ones_own(&nodes).await;
    nodes.close().await;
}

/// The reason for which a task waits.
async fn waits(world: &Callers, who: &str, task: &Value) -> Value {
    let explained = world.call(who, "tasks.explain", json!({"task_id": task}));
    let mut explained = explained.await;
    explained["reasons"][0].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_tasks_that_compete_for_the_same_workers_are_said_to_come_first() {
    let world = World::start().await;
    executed(&world, "ann", "shared").await;
    let task = executed(&world, "bob", "shared").await;
    // Only workers of his can take it, and they take nothing of hers.
    let alone = waits(&world, "bob", &task).await;
    assert_eq!(alone["code"], "waits_for_worker", "{alone}");
    assert_eq!(alone["others_ahead"], Value::Null, "{alone}");
    assert_eq!(alone["tasks_ahead"], 0, "{alone}");
    // Of his own he learns how many.
    let later = executed(&world, "bob", "shared").await;
    let behind = waits(&world, "bob", &later).await;
    assert_eq!(behind["tasks_ahead"], 1, "{behind}");
    // A worker of all users takes what has waited longest.
    let other = json!({"methods": ["shared", "another"], "max": 1});
    world.call("chief", "tasks.claim", other).await;
    executed(&world, "ann", "shared").await;
    let last = executed(&world, "bob", "shared").await;
    let beside = waits(&world, "bob", &last).await;
    assert_eq!(beside["others_ahead"], "few", "{beside}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_is_given_away_is_offered_as_its_new_owner_has_declared() {
    let world = World::start().await;
    let task = executed(&world, "ann", "moved").await;
    let declare = json!({"method": "moved", "limit": 1});
    world.call("bob", "workers.declare", declare).await;
    let to_bob = json!({"task_id": task, "updates": {"user_id": "bob"}});
    world.call("chief", "tasks.update", to_bob).await;
    assert_eq!(claimed(&world, "ann", "moved", 0).await, [] as [Value; 0]);
    let claims = claimed(&world, "bob", "moved", 20).await;
    assert_eq!(claims.len(), 1);
    // It counts under his limit.
    executed(&world, "bob", "moved").await;
    assert_eq!(claimed(&world, "bob", "moved", 0).await, [] as [Value; 0]);
    completed(&world, "bob", &claims[0]).await;
    assert_eq!(claimed(&world, "bob", "moved", 20).await.len(), 1);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_one_name_are_drained_and_listed_by_their_principals() {
    let world = World::start().await;
    for who in ["ann", "bob"] {
        let poll = json!({"methods": ["drained"], "worker": "w"});
        world.call(who, "tasks.claim", poll).await;
    }
    let drained = json!({"worker": "w", "drain": true});
    world.call("ann", "workers.drain", drained).await;
    for (who, is_drained) in [("ann", true), ("bob", false)] {
        let listed = world.call(who, "workers.list", json!({})).await;
        let listed = listed["workers"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "{who}");
        assert_eq!(listed[0]["draining"], is_drained, "{who}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_principal_declared_is_taken_back_with_the_scope_for_that_alone() {
    let world = World::start().await;
    for (who, scope) in [("watcher", Scope::UsersAny), ("operator", Scope::Admin)] {
        let caller = user(who, Scopes::of([Scope::Worker, scope]));
        world.known.put(who, caller);
    }
    let declare = json!({"method": "kept"});
    world.call("bob", "workers.declare", declare).await;
    let of_bob = json!({"method": "kept", "owner": "bob"});
    let refused = world.refusal("watcher", "workers.undeclare", of_bob.clone());
    let refused = refused.await;
    assert_eq!(
        (&refused["code"], &refused["data"]["field"]),
        (&json!(-32602), &json!("method")),
        "{refused}"
    );
    let refused = world.refusal("operator", "workers.undeclare", of_bob).await;
    assert_eq!(refused["data"]["scope"], "users:any", "{refused}");
    let kept = shown(&world, "bob").await;
    assert_eq!((kept.len(), &kept[0]["declared"]), (1, &json!(true)));
    // That it was refused is in the audit log, behind what was about to be done.
    let rows = json!({"action": "method.undeclare", "principal": "user:watcher"});
    let rows = world.call("chief", "audit.list", rows).await;
    let rows = rows["entries"].as_array().unwrap().iter();
    let outcomes: Vec<_> = rows.map(|row| row["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("refused"), json!("done")]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_could_look_like_others_are_refused() {
    let world = World::start().await;
    for name in [
        "a\u{1b}[2J",
        "a\nb",
        "a\0b",
        "a\u{202e}b",
        "\u{2066}a",
        "a\u{200b}",
        "a\u{ad}b",
        " a",
        "a ",
    ] {
        let calls = [
            ("workers.declare", json!({"method": name})),
            ("tasks.claim", json!({"methods": [name]})),
            ("tasks.claim", json!({"methods": ["m"], "worker": name})),
        ];
        for (method, params) in calls {
            let refused = world.refusal("ann", method, params).await;
            assert_eq!(refused["code"], -32602, "{method} {name:?}");
        }
        // A task may say so, as the protocol allows.
        let task = json!({"name": "a", "schemas": {"type": "remote", "method": name}});
        world.call("ann", "tasks.create", task).await;
    }
    world.close().await;
}
