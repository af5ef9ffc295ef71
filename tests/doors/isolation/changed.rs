//! Whom a change is of according to the audit log: the owner of the flow, in whatever order tasks are listed, and
//! whoever the owner becomes until the flow decides.

use super::asked::{Asked, answer};
use super::audited::{audited, told};
use super::recorded::takes_rows;
use super::world::{World, user};
use serde_json::{Value, json};
use std::collections::HashMap;
use taskledger_a2a::Operation;
use taskledger_auth::{Scope, Scopes};

const CHOSEN: &str = "660e8400-e29b-41d4-a716-446655440001";
/// Changes of the flow whose owner changes meanwhile, by each of some callers.
const CHANGES: usize = 25;

/// A call of JSON-RPC with more members than its parameters.
async fn call_with(
    world: &World,
    who: &str,
    (method, params): (&str, &Value),
    more: Value,
) -> String {
    let mut call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let members = call.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    let request = world.client.post(world.url()).json(&call);
    world.send(world.as_caller(request, Some(who))).await.1
}

/// Three tasks of a flow of Ann, as many as there are orders of them. No label names the caller or Ann.
fn orders(caller: &str) -> Vec<Value> {
    let runs = json!({"method": "echo_executor"});
    let root = json!({"id": "r", "name": "r", "user_id": "ann"});
    let child =
        json!({"id": "c", "name": "c", "parent_id": "r", "user_id": caller, "schemas": runs});
    let below = json!({"name": "b", "parent_id": "c", "user_id": "bob", "schemas": runs});
    let tasks = [root, child, below];
    let orders = [
        [0, 1, 2],
        [1, 0, 2],
        [1, 2, 0],
        [2, 1, 0],
        [2, 0, 1],
        [0, 2, 1],
    ];
    orders
        .map(|order| json!(order.map(|i| tasks[i].clone())))
        .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_tasks_have_a_row_for_the_user_of_their_root_wherever_it_stands() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let url = "https://receiver.example.com/hook";
    let callback = json!({"configuration": {"push_notification_config": {"url": url}}});
    let (done, ann) = (&json!("done"), &json!("ann"));
    for tasks in orders("auditor") {
        let list = json!({"tasks": tasks});
        let message = |id: &str| {
            let parts = json!([{"data": list}]);
            let message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
            json!({"message": message, "configuration": {"returnImmediately": true}})
        };
        for way in ["create", "execute", "callback", "agent"] {
            let asked = async || match way {
                "callback" => {
                    let call = ("tasks.execute", &list);
                    (
                        200,
                        call_with(&world, "auditor", call, callback.clone()).await,
                    )
                }
                "agent" => {
                    let id = list.to_string();
                    let id = format!("{:?}", id.find(r#""ann""#));
                    let asked = Asked::A2a(Operation::SendMessage, message(&id));
                    answer(&world, Some("auditor"), &asked).await
                }
                method => {
                    let method = format!("tasks.{method}");
                    world.ask(Some("auditor"), &method, &list).await
                }
            };
            let action = match way {
                "create" => "task.create",
                _ => "task.execute",
            };
            let rows = audited(&world, "auditor", action).await.len();
            let before = world.head().await;
            takes_rows(&world, false).await;
            let (_, text) = asked().await;
            assert_eq!(world.head().await, before, "{way} of {list}: {text}");
            takes_rows(&world, true).await;
            let (_, text) = asked().await;
            assert!(world.head().await > before, "{way} of {list}: {text}");
            let all = audited(&world, "auditor", action).await;
            assert!(all.len() > rows, "{way} of {list}: {all:?}");
            let [_, outcome, owner] = told(&all)[0];
            assert_eq!([outcome, owner], [done, ann], "{way} of {list}");
        }
    }
    // A list for the caller, with labels of others before its root.
    let rows = audited(&world, "auditor", "task.create").await.len();
    let child = json!({"name": "c", "parent_id": "r", "user_id": "ann"});
    let own = json!({"tasks": [child, {"id": "r", "name": "r"}]});
    world.call("auditor", "tasks.create", own).await;
    assert_eq!(audited(&world, "auditor", "task.create").await.len(), rows);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_name_new_tasks_whose_id_was_chosen_and_both_owners_of_a_copy() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let (done, ann) = (&json!("done"), &json!("ann"));
    let child = json!({"name": "c", "parent_id": CHOSEN});
    let root = json!({"id": CHOSEN, "name": "r", "user_id": "ann"});
    let tasks = json!({"tasks": [child, root]});
    world.call("auditor", "tasks.create", tasks).await;
    let rows = audited(&world, "auditor", "task.create").await;
    assert_eq!(told(&rows), [[&json!(CHOSEN), done, ann]]);
    // Below it, the parent is what the call names.
    let more = json!({"name": "d", "parent_id": CHOSEN});
    world.call("auditor", "tasks.create", more).await;
    let rows = audited(&world, "auditor", "task.create").await;
    assert_eq!(told(&rows)[0], [&json!(CHOSEN), done, ann]);
    let task = async |who: &str| {
        let made = world.call(who, "tasks.create", json!({"name": "t"})).await;
        made["id"].clone()
    };
    let (his, own) = (task("bob").await, task("auditor").await);
    for (original, owner) in [(&his, "bob"), (&own, "auditor")] {
        let copy = json!({"task_id": original, "parent_id": CHOSEN});
        world.call("auditor", "tasks.copy", copy).await;
        let rows = audited(&world, "auditor", "task.copy").await;
        assert_eq!(rows[0]["object"], *original);
        let detail = json!({"owner": owner, "parent": CHOSEN, "parent_owner": "ann"});
        assert_eq!(rows[0]["detail"], detail);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_of_a_child_is_an_update_and_the_user_of_a_root_the_owner() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let tree = json!({"id": CHOSEN, "name": "r", "children": [{"id": "c", "name": "c"}]});
    let made = world.call("ann", "tasks.create", tree).await;
    let child = &made["task_ids"]["c"];
    let update = |task: &Value| json!({"task_id": task, "updates": {"user_id": "bob"}});
    world.call("auditor", "tasks.update", update(child)).await;
    assert!(audited(&world, "auditor", "flow.owner").await.is_empty());
    let rows = audited(&world, "auditor", "task.update").await;
    assert_eq!(rows[0]["object"], *child);
    let detail = json!({"owner": "ann", "changed": ["user_id"]});
    assert_eq!(rows[0]["detail"], detail);
    // Ann labels it as she likes, and may not give the flow away.
    world.call("ann", "tasks.update", update(child)).await;
    world
        .refusal("ann", "tasks.update", update(&json!(CHOSEN)))
        .await;
    assert_eq!(audited(&world, "ann", "flow.owner").await.len(), 1);
    assert!(audited(&world, "ann", "task.update").await.is_empty());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_call_has_one_row_and_one_that_lacks_a_scope_one_more() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let task = json!({"name": "a", "user_id": "ann", "schemas": {"method": "echo_executor"}});
    let tasks = json!({"tasks": [task]});
    let key = json!({"metadata": {"idempotency_key": "k"}});
    for (method, action) in [
        ("tasks.create", "task.create"),
        ("tasks.execute", "task.execute"),
    ] {
        let first = call_with(&world, "auditor", (method, &tasks), key.clone()).await;
        let again = call_with(&world, "auditor", (method, &tasks), key.clone()).await;
        assert_eq!(first, again);
        let rows = audited(&world, "auditor", action).await;
        assert_eq!(rows.len(), 1, "{rows:?}");
    }
    let no_programs = Scopes::all().without(Scope::ExecLocal);
    world.known.put("careful", user("careful", no_programs));
    let program = json!({"name": "a", "user_id": "ann", "inputs": {"program": "true"},
        "schemas": {"method": "command_executor"}});
    let tasks = json!({"tasks": [program]});
    world.refusal("careful", "tasks.execute", tasks).await;
    let rows = audited(&world, "careful", "task.execute").await;
    let outcomes: Vec<_> = rows.iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["refused", "done"]);
    let detail = json!({"owner": "ann", "scope": "exec:local"});
    assert_eq!(rows[0]["detail"], detail);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_calls_under_one_key_at_the_same_moment_one_counts_as_done() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let task = json!({"name": "a", "user_id": "ann"});
    for key in 0..10 {
        let key = json!({"metadata": {"idempotency_key": key.to_string()}});
        let call = || call_with(&world, "auditor", ("tasks.create", &task), key.clone());
        let replies = tokio::join!(call(), call(), call(), call());
        assert!(replies.0.contains("result"), "{}", replies.0);
        for other in [&replies.1, &replies.2, &replies.3] {
            assert_eq!(*other, replies.0);
        }
    }
    let rows = audited(&world, "auditor", "task.create").await;
    let count = |outcome: &str| rows.iter().filter(|row| row["outcome"] == outcome).count();
    assert_eq!(count("done") - count("refused"), 10, "{rows:?}");
    assert!(count("refused") > 0, "some came at the same moment");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_given_away_meanwhile_has_a_row_for_whom_it_is_changed() {
    let world = World::start().await;
    for name in ["auditor", "giver"] {
        world.known.put(name, user(name, Scopes::all()));
    }
    let made = world
        .call("ann", "tasks.create", json!({"name": "a"}))
        .await;
    let task = &made["id"];
    let update = |updates: Value| json!({"task_id": task, "updates": updates});
    let changes = |caller: usize| {
        let (world, update) = (&world, &update);
        async move {
            for n in 0..CHANGES {
                let change = update(json!({"name": format!("{caller} {n}")}));
                world.ask(Some("auditor"), "tasks.update", &change).await;
            }
        }
    };
    let gives = async {
        for n in 0..CHANGES {
            let user = ["bob", "ann"][n % 2];
            let give = update(json!({"user_id": user}));
            world.call("giver", "tasks.update", give).await;
        }
    };
    tokio::join!(gives, changes(0), changes(1), changes(2));
    let mut changed: HashMap<String, i64> = HashMap::new();
    let mut owner = "ann".to_owned();
    let mut history = json!({"task_id": task, "limit": 1000});
    loop {
        let page = world.call("chief", "tasks.history", history.clone()).await;
        for event in page["events"].as_array().unwrap() {
            if event["actor"] == "user:auditor" {
                *changed.entry(owner.clone()).or_default() += 1;
            }
            if event["actor"] == "user:giver" {
                owner = ["bob", "ann"][usize::from(owner == "bob")].to_owned();
            }
        }
        if page["next_cursor"].is_null() {
            break;
        }
        history["cursor"] = page["next_cursor"].clone();
    }
    let mut noted: HashMap<String, i64> = HashMap::new();
    let mut filter = json!({"action": "task.update", "principal": "user:auditor", "limit": 100});
    loop {
        let page = world.call("chief", "audit.list", filter.clone()).await;
        for row in page["entries"].as_array().unwrap() {
            let sign = if row["outcome"] == "done" { 1 } else { -1 };
            let owner = row["detail"]["owner"].as_str().unwrap().to_owned();
            *noted.entry(owner).or_default() += sign;
        }
        if page["next_cursor"].is_null() {
            break;
        }
        filter["cursor"] = page["next_cursor"].clone();
    }
    assert_eq!(noted, changed);
    assert!(changed.len() == 2, "{changed:?}");
    world.close().await;
}
