//! What use cases leave in the audit log, from what each says of itself: changes that lack a scope, changes of what is
//! somebody else's, and nothing without its row.

use super::asked::{Asked, answer, shown};
use super::audited::{audited, shows, told};
use super::inboxes;
use super::matrix::{given_object, rows};
use super::scopes::{asking, methods};
use super::world::{World, user, usual};
use serde_json::{Value, json};
use sqlx::{Connection, Executor, SqliteConnection};
use std::collections::BTreeSet;
use taskledger::application::api::{Recorded, UseCase};
use taskledger_a2a::Operation;
use taskledger_auth::{Action, Scopes};

/// The actions under which a use case may be noted.
fn actions(case: UseCase) -> Vec<Action> {
    let mut actions: Vec<_> = case.recorded().change().into_iter().collect();
    if actions.contains(&Action::SchedulePause) {
        actions.push(Action::ScheduleResume);
    }
    if actions.contains(&Action::TaskUpdate) {
        actions.push(Action::FlowOwner);
    }
    actions
}

/// How often a caller was refused something, according to the audit log, and what.
async fn refusals(world: &World, name: &str) -> (u64, BTreeSet<String>) {
    let filter = json!({"principal": format!("user:{name}")});
    let audit = world.call("chief", "audit.list", filter).await;
    let rows = audit["entries"].as_array().unwrap().iter();
    let refused: Vec<_> = rows.filter(|row| row["outcome"] == "refused").collect();
    let counts = refused.iter().map(|row| row["detail"]["count"].as_u64());
    let actions = refused.iter().map(|row| row["action"].as_str().unwrap());
    (
        counts.map(Option::unwrap_or_default).sum(),
        actions.map(str::to_owned).collect(),
    )
}

/// Has the audit log take rows, or not.
pub(super) async fn takes_rows(world: &World, takes: bool) {
    let file = world.folder.path().join("auth.db");
    let url = format!("sqlite://{}", file.display());
    let mut db = SqliteConnection::connect(&url).await.unwrap();
    db.execute(match takes {
        true => "DROP TRIGGER full_up",
        false => {
            "CREATE TRIGGER full_up BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END"
        }
    })
    .await
    .unwrap();
    db.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_that_lacks_its_scope_is_noted_at_every_door() {
    let world = World::start().await;
    let own = given_object(&world, "ann").await;
    inboxes::fill(&world, "ann", &own.published).await;
    let methods = methods(&world).await;
    for case in UseCase::ALL {
        let (actions, Some(scope)) = (actions(*case), case.scope()) else {
            continue;
        };
        if actions.is_empty() {
            continue;
        }
        let name = format!("lacking-{case:?}").to_lowercase();
        let others = Scopes::all().without(scope);
        world.known.put(&name, user(&name, others));
        let mut noted = 0;
        for asked in asking(*case, &own, &methods) {
            answer(&world, Some(&name), &asked).await;
            let (now, _) = refusals(&world, &name).await;
            assert!(now > noted, "{case:?}: {}", shown(&asked));
            noted = now;
        }
        let (_, told) = refusals(&world, &name).await;
        assert!(
            actions.iter().any(|action| told.contains(action.as_str())),
            "{case:?}: {told:?}"
        );
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_somebody_elses_is_changed_behind_its_row_and_not_without_it() {
    let world = World::start().await;
    let own = given_object(&world, "bob").await;
    let mut made = BTreeSet::new();
    for case in UseCase::ALL {
        let is_recorded = matches!(case.recorded(), Recorded::Always(_) | Recorded::OfOthers(_));
        // A message that begins a run may begin one in a flow of the sender's own.
        if !is_recorded || *case == UseCase::StartRun {
            continue;
        }
        // Agents of the broker publish for themselves.
        let is_asked = |asked: &Asked| !matches!(asked, Asked::Inbox(_) | Asked::Bus(_));
        let asked = rows(*case, &own, &own);
        let numbers = (0..asked.len()).filter(|n| is_asked(&asked[*n]));
        for n in numbers {
            let hers = given_object(&world, "ann").await;
            let asked = &rows(*case, &hers, &own)[n];
            let name = format!("auditor-{case:?}-{n}").to_lowercase();
            world.known.put(&name, user(&name, Scopes::all()));
            takes_rows(&world, false).await;
            let before = world.head().await;
            let (status, text) = answer(&world, Some(&name), asked).await;
            let is_done = shows(status, &text, asked);
            assert!(!is_done, "{case:?}: {}: {text}", shown(asked));
            assert_eq!(world.head().await, before, "{case:?}: {}", shown(asked));
            takes_rows(&world, true).await;
            let (status, text) = answer(&world, Some(&name), asked).await;
            if shows(status, &text, asked) {
                let mut rows = Vec::new();
                for action in actions(*case) {
                    rows.extend(audited(&world, &name, action.as_str()).await);
                }
                let done = rows.iter().find(|row| row["outcome"] == "done");
                assert!(done.is_some(), "{case:?}: {}: {rows:?}", shown(asked));
                made.insert(case.as_str());
            }
            let webhook = json!({"id": hers.webhook()});
            world.ask(Some("ann"), "webhooks.delete", &webhook).await;
        }
    }
    let expected = [
        "runs.cancel",
        "runs.report",
        "tasks.cancel",
        "tasks.copy",
        "tasks.create",
        "tasks.delete",
        "tasks.execute",
        "tasks.update",
        "tokens.revoke",
        "tokens.rotate",
        "webhooks.delete",
        "webhooks.disable",
        "webhooks.enable",
        "webhooks.recover",
        "webhooks.redeliver",
        "webhooks.rotate_secret",
        "webhooks.secret",
        "webhooks.update",
    ];
    let missing: Vec<_> = expected.iter().filter(|it| !made.contains(**it)).collect();
    assert!(
        missing.is_empty(),
        "not made at all: {missing:?} of {made:?}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_keep_beside_tasks_is_changed_and_read_for_others_with_a_row() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let document = json!({"openintent": "1.0", "info": {"name": "Report"},
        "workflow": {"a": {"assign": "m"}}});
    let (done, ann) = (&json!("done"), &json!("ann"));
    let (report, all) = (&json!("Report"), &json!("*"));
    for owner in ["auditor", "ann"] {
        let save = json!({"document": document, "owner": owner});
        let named = json!({"name": "Report", "owner": owner});
        takes_rows(&world, false).await;
        let refused = async |method: &str, params: &Value| {
            let (_, text) = world.ask(Some("auditor"), method, params).await;
            assert_eq!(text.contains("error"), owner == "ann", "{method}: {text}");
        };
        refused("workflows.save", &save).await;
        refused("workflows.delete", &named).await;
        takes_rows(&world, true).await;
        world.call("auditor", "workflows.save", save).await;
        world.call("auditor", "workflows.delete", named).await;
        world
            .call("auditor", "secrets.list", json!({"owner": owner}))
            .await;
        for (action, object) in [
            ("workflow.save", report),
            ("workflow.delete", report),
            ("secret.read", all),
        ] {
            let rows = audited(&world, "auditor", action).await;
            match owner {
                "ann" => assert_eq!(told(&rows), [[object, done, ann]], "{action}"),
                _ => assert!(rows.is_empty(), "one's own: {rows:?}"),
            }
        }
    }
    // Workers and methods.
    let remote = json!({"name": "r", "schemas": {"type": "remote", "method": "m"}});
    let remote = json!({"tasks": [remote]});
    world.call("ann", "tasks.execute", remote).await;
    let claim = json!({"methods": ["m"], "worker": "hers", "wait_seconds": 20});
    let claims = world.call("ann", "tasks.claim", claim).await;
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1, "{claims}");
    world
        .call("ann", "workers.declare", json!({"method": "of-ann"}))
        .await;
    assert!(
        audited(&world, "ann", "method.declare").await.is_empty(),
        "for her own flows"
    );
    let shared = json!({"method": "shared"});
    world.call("auditor", "workers.declare", shared).await;
    world.call("auditor", "workers.list", json!({})).await;
    world.call("auditor", "workers.methods", json!({})).await;
    let drain = json!({"worker": "hers"});
    world.call("auditor", "workers.drain", drain).await;
    for (action, object) in [
        ("method.declare", "shared"),
        ("worker.read", "*"),
        ("method.read", "*"),
        ("worker.drain", "hers"),
    ] {
        let rows = audited(&world, "auditor", action).await;
        let objects: Vec<_> = rows.iter().map(|row| &row["object"]).collect();
        assert_eq!(objects, [object], "{action}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_say_which_members_they_change_and_no_values() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let hook = json!({"url": "https://receiver.example.com/hook"});
    let hook = world.call("ann", "webhooks.create", hook).await;
    let update = json!({"id": hook["id"], "url": "https://receiver.example.com/canary",
        "headers": {"authorization": "canary"}});
    world.call("auditor", "webhooks.update", update).await;
    let schedule = json!({"name": "nightly", "cron": "@yearly", "owner": "ann",
        "tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}]});
    world.call("auditor", "schedules.create", schedule).await;
    let update = json!({"name": "nightly", "owner": "ann", "overlap": "allow",
        "tasks": [{"name": "canary", "schemas": {"method": "echo_executor"}}]});
    world.call("auditor", "schedules.update", update).await;
    let task = world
        .call("ann", "tasks.create", json!({"name": "a"}))
        .await;
    let update = json!({"task_id": task["id"], "updates": {"name": "canary", "inputs": {"a": 1}}});
    world.call("auditor", "tasks.update", update).await;
    for (action, changed) in [
        ("webhook.update", json!(["url", "headers"])),
        ("schedule.update", json!(["tasks", "overlap"])),
        ("task.update", json!(["name", "inputs"])),
    ] {
        let rows = audited(&world, "auditor", action).await;
        assert_eq!(rows[0]["detail"]["changed"], changed, "{rows:?}");
        assert!(!rows[0].to_string().contains("canary"), "{rows:?}");
    }
    // Her own change of her task is an event and no row.
    let own = json!({"task_id": task["id"], "updates": {"name": "b"}});
    world.call("ann", "tasks.update", own).await;
    assert!(audited(&world, "ann", "task.update").await.is_empty());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_a_flow_and_gives_it_back_is_noted() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let task = world
        .call("ann", "tasks.create", json!({"name": "a"}))
        .await;
    for user in ["auditor", "ann"] {
        let give = json!({"task_id": task["id"], "updates": {"user_id": user}});
        world.call("auditor", "tasks.update", give).await;
    }
    let rows = audited(&world, "auditor", "flow.owner").await;
    let told: Vec<_> = rows
        .iter()
        .map(|row| (&row["object"], row["detail"].clone()))
        .collect();
    let detail = |owner, user| json!({"owner": owner, "changed": ["user_id"], "user_id": user});
    let id = &task["id"];
    let expected = [
        (id, detail("auditor", "ann")),
        (id, detail("ann", "auditor")),
    ];
    assert_eq!(told, expected);
    // One who may not is noted too.
    let own = world
        .call("bob", "tasks.create", json!({"name": "a"}))
        .await;
    let give = json!({"task_id": own["id"], "updates": {"user_id": "ann"}});
    world.refusal("bob", "tasks.update", give).await;
    let rows = audited(&world, "bob", "flow.owner").await;
    assert_eq!(rows[0]["detail"], json!({"count": 1, "scope": "users:any"}));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_the_results_of_others_sent_to_an_address_has_read_them() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let task = json!({"name": "a", "schemas": {"method": "echo_executor"}});
    let task = world.call("ann", "tasks.create", task).await;
    let url = "https://receiver.example.com/hook";
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks.execute",
        "params": {"task_id": task["id"]},
        "configuration": {"push_notification_config": {"url": url}},
    });
    let request = world.client.post(world.url()).json(&body);
    let (_, text) = world.send(world.as_caller(request, Some("auditor"))).await;
    assert!(text.contains("started"), "{text}");
    for action in ["flow.read", "task.execute"] {
        let rows = audited(&world, "auditor", action).await;
        let objects: Vec<_> = rows.iter().map(|row| &row["object"]).collect();
        assert_eq!(objects, [&task["id"]], "{action}");
    }
    // The same by an agent, of a run that is on.
    world.known.put("agent", user("agent", Scopes::all()));
    let hers = given_object(&world, "ann").await;
    let config = json!({"taskId": hers.run, "id": "c", "url": url});
    let asked = Asked::A2a(Operation::CreateTaskPushNotificationConfig, config);
    let (status, text) = answer(&world, Some("agent"), &asked).await;
    assert!(shows(status, &text, &asked), "{text}");
    let flow = json!(hers.run_flow());
    for (action, object) in [("flow.read", &flow), ("run.report", &json!(hers.run))] {
        let rows = audited(&world, "agent", action).await;
        let objects: Vec<_> = rows.iter().map(|row| &row["object"]).collect();
        assert!(
            !objects.is_empty() && objects.iter().all(|it| *it == object),
            "{action}: {rows:?}"
        );
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_webhooks_have_rows_when_they_change_and_not_when_they_are_tested() {
    let world = World::start().await;
    world.known.put("owner", user("owner", usual()));
    let hook = json!({"url": "https://receiver.example.com/hook"});
    let hook = world.call("owner", "webhooks.create", hook).await;
    let id = json!({"id": hook["id"]});
    takes_rows(&world, false).await;
    for method in ["disable", "rotate_secret", "delete"] {
        let method = format!("webhooks.{method}");
        let (_, text) = world.ask(Some("owner"), &method, &id).await;
        assert!(text.contains("error"), "{method}: {text}");
    }
    takes_rows(&world, true).await;
    for action in ["disable", "enable", "rotate_secret", "test", "delete"] {
        let method = format!("webhooks.{action}");
        world.ask(Some("owner"), &method, &id).await;
        let rows = audited(&world, "owner", &format!("webhook.{action}")).await;
        assert_eq!(rows.len(), usize::from(action != "test"), "{action}");
    }
    world.close().await;
}

#[test]
fn the_guide_names_every_action_and_no_other() {
    let guide = include_str!("../../../docs/guides/security.md");
    let (_, table) = guide
        .split_once("\n| action | when |\n|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let mut named: Vec<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    named.sort_unstable();
    let mut known: Vec<&str> = Action::ALL.iter().map(|it| it.as_str()).collect();
    known.sort_unstable();
    assert_eq!(named, known);
}
