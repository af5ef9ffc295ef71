//! Every read of a flow of somebody else by a caller with `users:any` is in the audit log, whichever method, door or
//! binding shows it.

use super::asked::{Asked, answer, shown};
use super::matrix::{given_object, rows};
use super::scopes::methods;
use super::world::{World, user};
use serde_json::{Value, json};
use taskledger::application::api::UseCase;
use taskledger_auth::{Scope, Scopes};

/// The flows that a caller has read, according to the audit log.
async fn read_by(world: &World, name: &str) -> Vec<Value> {
    let entries = audited(world, name, "flow.read").await;
    entries.iter().map(|it| it["object"].clone()).collect()
}

/// The rows of a caller about an action, newest first.
pub(super) async fn audited(world: &World, name: &str, action: &str) -> Vec<Value> {
    world.server.tokens().audit().flush().await.unwrap();
    let filter = json!({"action": action, "principal": format!("user:{name}")});
    let mut audit = world.call("chief", "audit.list", filter).await;
    let entries = audit["entries"].as_array_mut().unwrap();
    entries.iter_mut().map(Value::take).collect()
}

/// Object, outcome and owner of each.
pub(super) fn told(rows: &[Value]) -> Vec<[&Value; 3]> {
    rows.iter()
        .map(|row| [&row["object"], &row["outcome"], &row["detail"]["owner"]])
        .collect()
}

/// Whether an answer shows something of a flow.
pub(super) fn shows(status: u16, text: &str, asked: &Asked) -> bool {
    let refusals = [r#""error":{"code""#, "Err(", "Unavailable: "];
    let is_shown = status == 200 && !refusals.iter().any(|it| text.contains(it));
    // Below a task without children is nothing that a list would show.
    let is_empty = shown(asked).contains("tasks.list") && text.contains(r#""tasks":[]"#);
    is_shown && !is_empty
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_of_somebody_elses_flow_is_noted_whatever_shows_it() {
    let world = World::start().await;
    let hers = given_object(&world, "ann").await;
    let own = given_object(&world, "bob").await;
    // A copy of a task of Bob into her flow is a read of his.
    let flows = [&hers.root, hers.run_flow(), &own.root].map(|flow| json!(flow));
    let mut noted = 0;
    for case in UseCase::ALL {
        // An inbox is the principal's own, and a copy is a read of the original.
        let reads = case.scope() == Some(Scope::TasksRead) && *case != UseCase::ReadInbox;
        if !reads && *case != UseCase::CopyTasks {
            continue;
        }
        for (n, asked) in rows(*case, &hers, &own).iter().enumerate() {
            // Rows of one caller are counted together for a minute.
            let name = format!("auditor-{case:?}-{n}").to_lowercase();
            world.known.put(&name, user(&name, Scopes::all()));
            let (status, text) = answer(&world, Some(&name), asked).await;
            if !shows(status, &text, asked) {
                continue;
            }
            let read = read_by(&world, &name).await;
            assert!(
                read.iter().any(|flow| flows.contains(flow)),
                "{case:?}: {}: {read:?}",
                shown(asked)
            );
            noted += 1;
        }
    }
    assert!(noted > 40, "{noted} reads");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_all_flows_is_noted_once_and_ones_own_are_not() {
    let world = World::start().await;
    let hers = given_object(&world, "ann").await;
    for name in ["of-all", "of-ann", "of-own"] {
        world.known.put(name, user(name, Scopes::all()));
    }
    for (name, path) in [
        ("of-all", "/events".to_owned()),
        ("of-ann", "/events?user=ann".to_owned()),
        ("of-own", "/events?user=of-own".to_owned()),
    ] {
        let (status, text) = answer(&world, Some(name), &Asked::Get(path)).await;
        assert_eq!(status, 200, "{text}");
    }
    assert_eq!(read_by(&world, "of-all").await, [json!("*")]);
    assert_eq!(read_by(&world, "of-ann").await, [json!("*")]);
    assert_eq!(read_by(&world, "of-own").await, [] as [Value; 0]);
    // A list shows flows one by one.
    let list = world.call("of-all", "tasks.list", json!({})).await;
    assert!(list["total"].as_u64().unwrap() > 1, "{list}");
    let read = read_by(&world, "of-all").await;
    assert!(read.contains(&json!(hers.root)), "{read:?}");
    // Who sees his own flows only is no reader of others.
    let path = "/events".to_owned();
    assert_eq!(answer(&world, Some("ann"), &Asked::Get(path)).await.0, 200);
    assert_eq!(read_by(&world, "ann").await, [] as [Value; 0]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_is_refused_for_lack_of_a_scope_is_noted_and_many_are_one_row() {
    let world = World::start().await;
    let methods = methods(&world).await;
    world
        .known
        .put("mallory", user("mallory", Scopes::of([Scope::TasksRead])));
    for (method, action, scope) in [
        ("tokens.create", "token.create", "admin"),
        ("tokens.deny", "jwt.deny", "admin"),
        ("secrets.set", "secret.set", "tasks:write"),
        ("secrets.delete", "secret.delete", "tasks:write"),
        ("webhooks.create", "webhook.create", "webhooks"),
        ("webhooks.update", "webhook.update", "webhooks"),
        ("webhooks.secret", "secret.shown", "webhooks"),
        ("schedules.create", "schedule.create", "tasks:run"),
        ("schedules.update", "schedule.update", "tasks:run"),
        ("schedules.delete", "schedule.delete", "tasks:run"),
        ("schedules.run_now", "schedule.run_now", "tasks:run"),
        ("system.rebuild", "rebuild", "admin"),
        ("system.drain", "server.drain", "admin"),
    ] {
        for _ in 0..3 {
            let refused = world.refusal("mallory", method, methods[method].clone());
            assert_eq!(refused.await["code"], -32004, "{method}");
        }
        let rows = audited(&world, "mallory", action).await;
        assert_eq!(rows.len(), 1, "{method}: {rows:?}");
        assert_eq!(rows[0]["outcome"], "refused", "{method}");
        let detail = json!({"count": 3, "scope": scope});
        assert_eq!(rows[0]["detail"], detail, "{method}");
    }
    for (pauses, action) in [(true, "schedule.pause"), (false, "schedule.resume")] {
        let pause = json!({"name": "nightly", "paused": pauses});
        world.refusal("mallory", "schedules.pause", pause).await;
        assert_eq!(
            audited(&world, "mallory", action).await.len(),
            1,
            "{action}"
        );
    }
    // What belongs to somebody else is refused behind the first look.
    let (nobody, refused, ann) = (&Value::Null, &json!("refused"), json!("ann"));
    let set = json!({"name": "key", "value": "hidden from others", "owner": ann});
    world.refusal("bob", "secrets.set", set).await;
    let rows = audited(&world, "bob", "secret.set").await;
    assert_eq!(told(&rows), [[&json!("key"), refused, nobody]]);
    let delete = json!({"name": "nightly", "owner": ann});
    world.refusal("bob", "schedules.delete", delete).await;
    let rows = audited(&world, "bob", "schedule.delete").await;
    assert_eq!(told(&rows), [[&json!("nightly"), refused, nobody]]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_somebody_is_given_of_others_are_noted_once_for_each_of_their_owners() {
    let world = World::start().await;
    world.known.put("agent", user("agent", Scopes::all()));
    let remote = json!({"name": "a", "schemas": {"type": "remote", "method": "shared"}});
    for who in ["ann", "bob", "ann", "agent"] {
        let tasks = json!({"tasks": [remote]});
        world.call(who, "tasks.execute", tasks).await;
    }
    let mut left = 4;
    while left > 0 {
        let claim = json!({"methods": ["shared"], "wait_seconds": 20, "max": 10});
        let claims = world.call("agent", "tasks.claim", claim).await;
        left -= claims["claims"].as_array().unwrap().len();
    }
    let rows = audited(&world, "agent", "task.claim").await;
    let mut owners: Vec<_> = rows.iter().map(|it| it["object"].clone()).collect();
    owners.sort_by_key(Value::to_string);
    assert_eq!(owners, ["ann", "bob"], "{rows:?}");
    // Of one's own tasks there is nothing to note.
    world
        .call("ann", "tasks.execute", json!({"tasks": [remote]}))
        .await;
    let claim = json!({"methods": ["shared"], "wait_seconds": 20});
    let claims = world.call("ann", "tasks.claim", claim).await;
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1);
    assert_eq!(audited(&world, "ann", "task.claim").await, [] as [Value; 0]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_and_workflows_of_others_are_noted_when_they_are_read() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let schedule = json!({"name": "nightly", "cron": "@yearly",
        "tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}]});
    let workflow = json!({"document": {"openintent": "1.0", "info": {"name": "Report"},
        "workflow": {"a": {"assign": "m"}}}});
    for who in ["ann", "auditor"] {
        world.call(who, "schedules.create", schedule.clone()).await;
        world.call(who, "workflows.save", workflow.clone()).await;
    }
    let (done, ann) = (&json!("done"), &json!("ann"));
    for (action, name, reads) in [
        ("schedule.read", "nightly", &["schedules.get"][..]),
        (
            "workflow.read",
            "Report",
            &["workflows.get", "workflows.versions", "workflows.run"],
        ),
    ] {
        let of_one = json!(name);
        for read in reads {
            world.call("auditor", read, json!({"name": name})).await;
        }
        assert_eq!(audited(&world, "auditor", action).await, [] as [Value; 0]);
        for read in reads {
            let theirs = json!({"name": name, "owner": "ann"});
            world.call("auditor", read, theirs).await;
        }
        let rows = audited(&world, "auditor", action).await;
        assert_eq!(told(&rows), [[&of_one, done, ann]], "{rows:?}");
        let list = format!("{}s.list", action.split_once('.').unwrap().0);
        world.call("auditor", &list, json!({"owner": "ann"})).await;
        let rows = audited(&world, "auditor", action).await;
        assert_eq!(told(&rows)[0], [&json!("*"), done, ann], "{rows:?}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_that_may_tell_of_others_are_noted() {
    let world = World::start().await;
    let url = json!({"url": "https://receiver.example.com/hook"});
    for who in ["ann", "auditor"] {
        world.known.put("auditor", user("auditor", Scopes::all()));
        let made = world.call(who, "webhooks.create", url.clone()).await;
        let of_it = json!({"id": made["id"]});
        let update = json!({"id": made["id"], "description": "d", "user_id": "bob"});
        let own = json!({"id": made["id"], "description": "d"});
        let update = if who == "ann" { own } else { update };
        world.call(who, "webhooks.update", update).await;
        world.call(who, "webhooks.get", of_it.clone()).await;
        world.call(who, "webhooks.deliveries", of_it).await;
        world.call(who, "webhooks.list", json!({})).await;
        let rows = |action| audited(&world, who, action);
        let (created, updated) = (rows("webhook.create").await, rows("webhook.update").await);
        let read = rows("webhook.read").await;
        if who == "ann" {
            assert_eq!([created.len(), updated.len(), read.len()], [1, 1, 0]);
            continue;
        }
        assert_eq!(created[0]["object"], made["id"]);
        let host = "receiver.example.com";
        assert_eq!(created[0]["detail"], json!({"user_id": null, "host": host}));
        assert_eq!(updated[0]["object"], made["id"]);
        let changed = json!(["description", "user_id"]);
        let detail = json!({"changed": changed, "user_id": "bob"});
        assert_eq!(updated[0]["detail"], detail);
        let read: Vec<_> = read.iter().map(|it| &it["object"]).collect();
        assert!(read.len() == 2 && read.contains(&&made["id"]) && read.contains(&&json!("*")));
        // One that is not made has a second row.
        let refused = json!({"url": "http://127.0.0.1:1/"});
        world.refusal(who, "webhooks.create", refused).await;
        let rows = rows("webhook.create").await;
        let outcomes: Vec<_> = rows
            .iter()
            .map(|it| it["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes, ["refused", "done", "done"]);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_reported_is_taken_back_by_nobody_and_one_rebuild_is_done_at_a_time() {
    let world = World::start().await;
    let hers = given_object(&world, "ann").await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let outcomes = |rows: Vec<Value>| {
        let told = rows.iter().map(|row| row["outcome"].as_str().unwrap());
        told.map(str::to_owned).collect::<Vec<_>>()
    };
    let asked = rows(UseCase::ReportRun, &hers, &hers);
    for asked in &asked {
        if shown(asked).contains("DeleteTaskPushNotificationConfig") {
            let (status, text) = answer(&world, Some("auditor"), asked).await;
            assert!(shows(status, &text, asked), "{text}");
        }
    }
    // Each is asked in every binding.
    let told = outcomes(audited(&world, "auditor", "run.report").await);
    let refused = told.iter().filter(|it| *it == "refused").count();
    assert!(refused > 0, "{told:?}");
    assert_eq!(told.len(), 2 * refused, "{told:?}");

    let none = json!({});
    let rebuild = || world.ask(Some("chief"), "system.rebuild", &none);
    let answers = tokio::join!(rebuild(), rebuild(), rebuild(), rebuild());
    let answers = format!("{answers:?}");
    let told = outcomes(audited(&world, "chief", "rebuild").await);
    let busy = answers.matches("-32013").count();
    let refused = told.iter().filter(|it| *it == "refused").count();
    assert_eq!((told.len(), refused), (4 + busy, busy), "{answers}");
    world.close().await;
}
