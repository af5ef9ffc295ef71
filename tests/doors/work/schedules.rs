//! Schedules over JSON-RPC, on both engines.

mod audit;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::{Api, Folder, NoResult, Server};

const DOCUMENT: &str = "openintent: \"1.0\"\ninfo: {name: Report}\nworkflow:\n  fetch:\n    assign: echo_executor\n    inputs: {q: $trigger.q, at: $trigger.scheduled_at, by: $trigger.schedule}\n";

fn violation(refused: Result<Value, NoResult>) -> (i64, String) {
    match refused {
        Err(NoResult::Refused(refusal)) => {
            let path = refusal.data["errors"][0]["path"].as_array().unwrap();
            let path: Vec<String> = path
                .iter()
                .map(|part| {
                    part.as_str()
                        .map_or_else(|| part.to_string(), str::to_owned)
                })
                .collect();
            (refusal.code, path.join("."))
        }
        other => panic!("{other:?}"),
    }
}

/// Each through the next of the servers.
async fn schedules_are_made_shown_changed_and_deleted(apis: [&Api; 2]) {
    let [one, other] = apis;
    one.call("workflows.save", json!({"document": DOCUMENT}))
        .await;
    let workflow = json!({"name": "Report", "inputs": {"q": 7}});
    let new = json!({
        "name": "nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "workflow": workflow,
        "jitter_seconds": 5, "max_runs": 9,
    });
    let made = one.call("schedules.create", new.clone()).await;
    assert_eq!(
        (&made["version"], &made["overlap"]),
        (&json!(1), &json!("skip"))
    );
    assert_eq!(made["next"].as_array().unwrap().len(), 5);
    assert_eq!(
        violation(other.try_call("schedules.create", new, None).await),
        (-31015, "name".to_owned())
    );
    let list = other.call("schedules.list", json!({})).await;
    assert_eq!(list["schedules"][0]["name"], "nightly");
    // The zone is a member of its own: it stays where another rule comes.
    let zoned = json!({"name": "zoned", "cron": "0 2 * * *", "time_zone": "Europe/Berlin", "workflow": workflow});
    one.call("schedules.create", zoned).await;
    for (change, zone) in [
        (json!({"cron": "0 4 * * *"}), "Europe/Berlin"),
        (json!({"rrule": "FREQ=DAILY"}), "Europe/Berlin"),
        (json!({"time_zone": "Asia/Tokyo"}), "Asia/Tokyo"),
        (json!({"cron": "0 5 * * *", "time_zone": "UTC"}), "UTC"),
    ] {
        let mut update = change.clone();
        update["name"] = json!("zoned");
        let changed = other.call("schedules.update", update).await;
        assert_eq!(changed["time_zone"], zone, "{change}");
    }
    one.call("schedules.delete", json!({"name": "zoned"})).await;
    let changed = json!({"name": "nightly", "every_seconds": 3600, "without": ["max_runs"], "expected_version": 1});
    let changed = other.call("schedules.update", changed.clone()).await;
    assert_eq!(
        (&changed["version"], &changed["every_seconds"]),
        (&json!(2), &json!(3600))
    );
    assert_eq!(
        (&changed["max_runs"], &changed["jitter_seconds"]),
        (&Value::Null, &json!(5))
    );
    assert_eq!(changed.get("cron"), None);
    let stale = json!({"name": "nightly", "overlap": "allow", "expected_version": 1});
    let stale = one.try_call("schedules.update", stale, None).await;
    assert_eq!(violation(stale), (-31015, "expected_version".to_owned()));
    let paused = json!({"name": "nightly", "note": "moving"});
    let paused = one.call("schedules.pause", paused).await;
    assert_eq!(
        (&paused["paused"], &paused["note"]),
        (&json!(true), &json!("moving"))
    );
    assert_eq!(paused["next"], json!([]));
    let run = one
        .try_call("schedules.run_now", json!({"name": "nightly"}), Some("k"))
        .await
        .unwrap();
    assert_eq!(run["outcome"], "started");
    let again = other
        .try_call("schedules.run_now", json!({"name": "nightly"}), Some("k"))
        .await
        .unwrap();
    assert_eq!(again["root_task_id"], run["root_task_id"]);
    let ended = one.run_of(&run["root_task_id"]).await;
    assert_eq!(ended["state"], "completed");
    let tree = other
        .call("tasks.tree", json!({"task_id": run["root_task_id"]}))
        .await;
    assert_eq!(tree["task"]["params"]["schedule"]["name"], "nightly");
    assert_eq!(
        tree["task"]["params"]["schedule"]["scheduled_at"],
        run["scheduled_at"]
    );
    let input = json!({"q": 7, "at": run["scheduled_at"], "by": "nightly"});
    assert_eq!(tree["children"][0]["task"]["inputs"], input, "{tree}");
    let shown = other
        .call("schedules.get", json!({"name": "nightly"}))
        .await;
    assert_eq!(shown["runs"][0]["status"], "completed");
    assert_eq!(shown["runs"][0]["by_hand"], true);
    assert_eq!(shown["counters"]["started_by_hand"], 1);
    let deleted = one
        .call("schedules.delete", json!({"name": "nightly"}))
        .await;
    assert_eq!(deleted["deleted"], true);
    let absent = other
        .try_call("schedules.get", json!({"name": "nightly"}), None)
        .await;
    assert_eq!(violation(absent), (-31014, "name".to_owned()));
}

async fn what_is_wrong_is_named(api: &Api) {
    let task = json!([{"name": "a", "schemas": {"method": "echo_executor"}}]);
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    for (more, field) in [
        (json!({"cron": "0 25 * * *", "tasks": task}), "cron"),
        (json!({"cron": "0 0 30 2 *", "tasks": task}), "cron"),
        (json!({"cron": ", * * * *", "tasks": task}), "cron"),
        (json!({"cron": "* * * * ,", "tasks": task}), "cron"),
        (
            json!({"rrule": "FREQ=WEEKLY;BYDAY=1MO", "tasks": task}),
            "rrule",
        ),
        (
            json!({"rrule": "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2", "tasks": task}),
            "rrule",
        ),
        (
            json!({"every_seconds": 60, "start_at": "2030-01-31T12:00:60Z", "tasks": task}),
            "start_at",
        ),
        (
            json!({"cron": "0 2 * * *", "time_zone": "Mars", "tasks": task}),
            "time_zone",
        ),
        (
            json!({"cron": "0 2 * * *", "rrule": "FREQ=DAILY", "tasks": task}),
            "rrule",
        ),
        (json!({"tasks": task}), "cron"),
        (json!({"every_seconds": 60}), "workflow"),
        (json!({"every_seconds": 0, "tasks": task}), "every_seconds"),
        (
            json!({"every_seconds": 60, "time_zone": "UTC", "tasks": task}),
            "time_zone",
        ),
        (json!({"rrule": "FREQ=FORTNIGHTLY", "tasks": task}), "rrule"),
        (
            json!({"every_seconds": 60, "end_at": "2020-01-01T00:00:00Z", "tasks": task}),
            "every_seconds",
        ),
        (
            json!({"every_seconds": 60, "catch_up_seconds": 1, "tasks": task}),
            "catch_up_seconds",
        ),
        (
            json!({"every_seconds": 60, "tasks": [{"name": "a", "id": id}]}),
            "tasks.0.id",
        ),
        (
            json!({"every_seconds": 60, "tasks": [{"name": "a", "parent_id": "b"}]}),
            "tasks.0.parent_id",
        ),
        (
            json!({"every_seconds": 60, "tasks": [{"nam": "a"}]}),
            "tasks.0.nam",
        ),
        (
            json!({"every_seconds": 60, "tasks": [{"name": "a", "inputs": {"at": ["$schedule.time"]}}]}),
            "tasks.0.inputs.at.0",
        ),
        (
            json!({"every_seconds": 60, "workflow": {"nam": "a"}}),
            "workflow.name",
        ),
        (
            json!({"every_seconds": 60, "workflow": {"name": "Report", "inputs": {"q": 1, "schedule": "mine"}}}),
            "workflow.inputs.schedule",
        ),
        (
            json!({"every_seconds": 60, "workflow": {"name": "Report", "inputs": {"scheduled_at": null}}}),
            "workflow.inputs.scheduled_at",
        ),
    ] {
        let mut params = json!({"name": "x"});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (code, told) = violation(api.try_call("schedules.create", params.clone(), None).await);
        assert_eq!((code, told.as_str()), (-32602, field), "{params}");
    }
    let kept = json!({"name": "kept", "cron": "0 9 * * *", "time_zone": "America/Vancouver",
        "start_at": "2027-01-11T00:00:00Z", "tasks": task});
    let kept = api.call("schedules.create", kept).await;
    assert_eq!(kept["next"][0], "2027-01-11T16:00:00.000000Z");
    for rule in [
        json!({"cron": "1,,2 * * * *"}),
        json!({"rrule": "FREQ=DAILY;INTERVAL=0"}),
    ] {
        let mut update = rule.clone();
        update["name"] = json!("kept");
        let (code, _) = violation(api.try_call("schedules.update", update, None).await);
        assert_eq!(code, -32602, "{rule}");
    }
    api.call("schedules.delete", json!({"name": "kept"})).await;
    let absent = json!({"name": "x", "every_seconds": 60, "workflow": {"name": "none"}});
    let absent = api.try_call("schedules.create", absent, None).await;
    assert_eq!(violation(absent), (-31012, "workflow.name".to_owned()));
}

/// A tree of tasks, each second, until it has run three times.
async fn a_tree_is_started_at_each_time(api: &Api) {
    let tasks = json!([
        {"id": "top", "name": "top"},
        {"id": "one", "name": "one", "parent_id": "top", "schemas": {"method": "echo_executor"}, "inputs": {"at": "$schedule.scheduled_at"}},
        {"name": "two", "parent_id": "top", "dependencies": [{"id": "one"}], "schemas": {"method": "echo_executor"}},
    ]);
    let new = json!({"name": "each second", "every_seconds": 1, "overlap": "allow", "max_runs": 3, "tasks": tasks});
    api.call("schedules.create", new).await;
    let get = json!({"name": "each second"});
    let runs = api
        .eventually("three runs have completed", async || {
            let shown = api.call("schedules.get", get.clone()).await;
            let runs = shown["runs"].as_array().unwrap().clone();
            let done = runs
                .iter()
                .filter(|run| run["status"] == "completed")
                .count();
            (done == 3 && shown["next_at"].is_null()).then_some(runs)
        })
        .await;
    let times: BTreeSet<&str> = runs
        .iter()
        .map(|run| run["scheduled_at"].as_str().unwrap())
        .collect();
    assert_eq!(times.len(), 3);
    for run in &runs {
        let tree = api
            .call("tasks.tree", json!({"task_id": run["root_task_id"]}))
            .await;
        assert_eq!(
            tree["children"][0]["task"]["inputs"]["at"],
            run["scheduled_at"]
        );
        assert_eq!(
            tree["task"]["params"]["schedule"]["scheduled_at"],
            run["scheduled_at"]
        );
    }
}

/// A workflow that is gone is told, and the next one starts.
async fn a_start_that_fails_is_told(api: &Api) {
    api.call("workflows.save", json!({"document": DOCUMENT}))
        .await;
    let new = json!({"name": "gone", "cron": "@yearly", "workflow": {"name": "Report", "inputs": {"q": 7}}});
    api.call("schedules.create", new).await;
    api.call("workflows.delete", json!({"name": "Report"}))
        .await;
    let run = api.call("schedules.run_now", json!({"name": "gone"})).await;
    assert_eq!(
        (&run["outcome"], &run["run_id"]),
        (&json!("failed"), &Value::Null)
    );
    let shown = api.call("schedules.get", json!({"name": "gone"})).await;
    assert_eq!(shown["counters"]["failed"], 1);
    assert_eq!(shown["last_error"], "no workflow of this name is kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    schedules_are_made_shown_changed_and_deleted([&server.api, &server.api]).await;
    what_is_wrong_is_named(&server.api).await;
    a_tree_is_started_at_each_time(&server.api).await;
    a_start_that_fails_is_told(&server.api).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_two_nodes() {
    let cluster = Cluster::of(2).await;
    let [one, other] = [&cluster.nodes[0].api, &cluster.nodes[1].api];
    schedules_are_made_shown_changed_and_deleted([one, other]).await;
    what_is_wrong_is_named(other).await;
    a_tree_is_started_at_each_time(one).await;
    a_start_that_fails_is_told(other).await;
}
