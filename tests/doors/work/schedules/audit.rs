//! Who changed a schedule is in the audit log; what cannot be written there does not happen.

use serde_json::{Value, json};
use sqlx::{Connection, Executor, SqliteConnection};
use taskledger_testkit::on_both_backends;
use taskledger_testkit::server::{Api, Folder, Server};

on_both_backends!(
    every_change_has_a_row_and_what_changes_nothing_has_none,
    nothing_changes_without_its_row,
    what_the_store_does_not_take_has_a_second_row,
);

/// `action outcome` of each row of this schedule, the oldest first.
async fn rows(api: &Api, name: &str) -> Vec<String> {
    let audit = api.call("audit.list", json!({"object": name})).await;
    let entries = audit["entries"].as_array().unwrap().iter().rev();
    let told = entries.map(|it| {
        let [action, outcome] = ["action", "outcome"].map(|key| it[key].as_str().unwrap());
        assert_eq!(it["principal"], "anonymous", "{it}");
        let expected = match action {
            "schedule.update" => json!({"owner": null, "changed": ["overlap"]}),
            _ => json!({"owner": null}),
        };
        assert_eq!(it["detail"], expected, "{it}");
        assert!(it["request"].is_string(), "{it}");
        format!("{action} {outcome}")
    });
    told.collect()
}

fn new(name: &str) -> Value {
    let tasks = json!([{"name": "poll", "schemas": {"method": "echo_executor"}}]);
    json!({"name": name, "cron": "@yearly", "tasks": tasks})
}

async fn every_change_has_a_row_and_what_changes_nothing_has_none(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    let named = json!({"name": "yearly"});
    // Refused, or without effect.
    let mut wrong = new("yearly");
    wrong["cron"] = json!("never");
    api.refusal("schedules.create", wrong).await;
    api.refusal("schedules.pause", named.clone()).await;
    api.refusal("schedules.run_now", named.clone()).await;
    let deleted = api.call("schedules.delete", named.clone()).await;
    assert_eq!(deleted["deleted"], false);
    assert_eq!(rows(api, "yearly").await, [] as [String; 0]);

    api.call("schedules.create", new("yearly")).await;
    api.refusal("schedules.create", new("yearly")).await;
    let update =
        |version: u32| json!({"name": "yearly", "overlap": "allow", "expected_version": version});
    api.call("schedules.update", update(1)).await;
    api.refusal("schedules.update", update(1)).await;
    api.call("schedules.pause", named.clone()).await;
    api.call(
        "schedules.pause",
        json!({"name": "yearly", "paused": false}),
    )
    .await;
    for _ in 0..2 {
        let run = api.try_call("schedules.run_now", named.clone(), Some("k"));
        assert_eq!(run.await.unwrap()["outcome"], "started");
    }
    api.call("schedules.get", named.clone()).await;
    api.call("schedules.list", json!({})).await;
    let stale = json!({"name": "yearly", "expected_version": 1});
    api.refusal("schedules.delete", stale).await;
    api.call("schedules.delete", named).await;
    let done = ["create", "update", "pause", "resume", "run_now", "delete"];
    assert_eq!(
        rows(api, "yearly").await,
        done.map(|action| format!("schedule.{action} done"))
    );
    server.stop().await;
}

/// Has the audit log take rows, or not.
async fn takes_rows(folder: &Folder, takes: bool) {
    if folder.url().is_some() {
        folder
            .execute(match takes {
                true => "ALTER TABLE taskledger_auth.audit DROP CONSTRAINT full_up",
                false => {
                    "ALTER TABLE taskledger_auth.audit ADD CONSTRAINT full_up CHECK (false) NOT VALID"
                }
            })
            .await;
        return;
    }
    let url = format!("sqlite://{}", folder.data().join("auth.db").display());
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

async fn nothing_changes_without_its_row(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    api.call("schedules.create", new("kept")).await;
    let before = api.call("schedules.get", json!({"name": "kept"})).await;
    takes_rows(&folder, false).await;
    for (method, params) in [
        ("schedules.create", new("another")),
        (
            "schedules.update",
            json!({"name": "kept", "overlap": "allow"}),
        ),
        ("schedules.pause", json!({"name": "kept"})),
        ("schedules.run_now", json!({"name": "kept"})),
        ("schedules.delete", json!({"name": "kept"})),
    ] {
        let refusal = api.refusal(method, params).await;
        assert!([-32603, -32013].contains(&refusal.code), "{refusal:?}");
    }
    takes_rows(&folder, true).await;
    let after = api.call("schedules.get", json!({"name": "kept"})).await;
    assert_eq!(after, before);
    let list = api.call("schedules.list", json!({})).await;
    assert_eq!(list["schedules"].as_array().unwrap().len(), 1, "{list}");
    let flows = api.call("tasks.list", json!({})).await;
    assert_eq!(flows["total"], 0);
    assert_eq!(rows(api, "kept").await, ["schedule.create done"]);
    server.stop().await;
}

/// Has the store of schedules take changes, or not; it can be read all the time.
async fn takes_changes(folder: &Folder, takes: bool) {
    if folder.url().is_some() {
        folder
            .execute(match takes {
                true => "DROP FUNCTION full_up CASCADE",
                false => {
                    "CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''full''; END';
                     CREATE TRIGGER full_up BEFORE INSERT OR UPDATE OR DELETE ON taskledger_schedules.schedules
                     FOR EACH ROW EXECUTE FUNCTION full_up()"
                }
            })
            .await;
        return;
    }
    let url = format!("sqlite://{}", folder.data().join("schedules.db").display());
    let mut db = SqliteConnection::connect(&url).await.unwrap();
    for change in ["INSERT", "UPDATE", "DELETE"] {
        let statement = match takes {
            true => format!("DROP TRIGGER full_up_{change}"),
            false => format!(
                "CREATE TRIGGER full_up_{change} BEFORE {change} ON schedules
                 BEGIN SELECT RAISE(ABORT, 'full'); END"
            ),
        };
        db.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    }
    db.close().await.unwrap();
}

async fn what_the_store_does_not_take_has_a_second_row(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    api.call("schedules.create", new("kept")).await;
    takes_changes(&folder, false).await;
    for (method, params) in [
        ("schedules.create", new("another")),
        (
            "schedules.update",
            json!({"name": "kept", "overlap": "allow"}),
        ),
        ("schedules.pause", json!({"name": "kept"})),
        ("schedules.run_now", json!({"name": "kept"})),
        ("schedules.delete", json!({"name": "kept"})),
    ] {
        let refusal = api.refusal(method, params).await;
        assert_eq!(refusal.code, -32013, "{method}: {refusal:?}");
    }
    takes_changes(&folder, true).await;
    let both = |action: &str| ["done", "refused"].map(|it| format!("schedule.{action} {it}"));
    assert_eq!(rows(api, "another").await, both("create"));
    let changes = ["update", "pause", "run_now", "delete"].map(both);
    assert_eq!(rows(api, "kept").await[1..], changes.concat());
    server.stop().await;
}
