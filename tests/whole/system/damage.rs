//! A row of the log that was changed behind the server's back: it is named, and nobody guesses.

use serde_json::{Value, json};
use taskledger_testkit::program;
use taskledger_testkit::server::{Api, Folder, NoResult, Server};

/// Changes one letter in the stored event at `position`.
fn damage(folder: &Folder, position: u64) {
    let ledger = rusqlite::Connection::open(folder.ledger()).unwrap();
    let changed = ledger.execute(
        "UPDATE events SET data = replace(data, 'precious', 'previous') WHERE position = ?1",
        [position.cast_signed()],
    );
    assert_eq!(changed, Ok(1));
    ledger.close().unwrap();
}

async fn create(api: &Api, name: &str) -> Value {
    api.call("tasks.create", json!({"name": name})).await["id"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_row_is_named_and_its_flow_refuses_while_others_go_on() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let first = create(&server.api, "first").await;
    let precious = create(&server.api, "precious").await;
    let third = create(&server.api, "third").await;
    server.api.caught_up().await;
    server.stop().await;
    damage(&folder, 2);

    let verify = [
        "events",
        "verify",
        "--data-dir",
        folder.data().to_str().unwrap(),
    ]
    .map(str::to_owned);
    let verified = program::run(&verify).await;
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let named = format!("position 2, flow `{}`", precious.as_str().unwrap());
    assert!(
        verified.out.contains(&named) && verified.out.contains("DAMAGED"),
        "{verified:?}"
    );

    let server = Server::start(&folder).await;
    let rename = |id: &Value| json!({"task_id": id, "updates": {"name": "renamed"}});
    let refused = server
        .api
        .try_call("tasks.update", rename(&precious), None)
        .await;
    let Err(NoResult::Refused(refusal)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(refusal.code, -32603, "{refusal:?}");
    let error_id = refusal.data["error_id"]
        .as_str()
        .expect("the log has the cause")
        .to_owned();
    for id in [&first, &third] {
        server.api.call("tasks.update", rename(id)).await;
        assert_eq!(
            server.api.call("tasks.get", json!({"task_id": id})).await["name"],
            "renamed"
        );
    }
    let said = server.stop().await;
    let cause = said
        .lines()
        .find(|line| line.contains(&error_id))
        .expect("the cause is logged");
    assert!(cause.contains("position 2"), "{cause}");

    let export = program::run([
        "events",
        "export",
        "--data-dir",
        folder.data().to_str().unwrap(),
    ])
    .await;
    assert_eq!(export.code, Some(1), "{export:?}");
    assert_eq!(
        export.out.lines().count(),
        1,
        "what precedes the damage is given: {export:?}"
    );
    assert!(export.err.contains("position 2"), "{export:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_models_are_not_built_past_a_damaged_row() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let first = create(&server.api, "first").await;
    create(&server.api, "precious").await;
    let third = create(&server.api, "third").await;
    server.api.caught_up().await;
    server.stop().await;
    damage(&folder, 2);
    std::fs::remove_file(folder.read_models()).unwrap();

    let data = folder.data();
    let rebuilt = program::run([
        "projections",
        "rebuild",
        "--data-dir",
        data.to_str().unwrap(),
    ])
    .await
    .refused(1);
    assert!(rebuilt.contains("position 2"), "{rebuilt}");

    let server = Server::start(&folder).await;
    let health = server
        .api
        .eventually("health tells of the damage", async || {
            let health = server.api.call("system.health", json!({})).await;
            (health["status"] == "degraded").then_some(health)
        })
        .await;
    assert!(health["checks"].to_string().contains('2'), "{health}");
    let list = server.api.refusal("tasks.list", json!({})).await;
    assert_eq!(
        list.code, -32013,
        "rows behind the damage are not left out in silence: {list:?}"
    );
    for id in [first, third] {
        let task = server
            .api
            .refusal("tasks.get", json!({"task_id": id}))
            .await;
        assert_eq!(
            task.code, -32013,
            "a task that exists is not called unknown: {task:?}"
        );
    }
    let said = server.stop().await;
    assert!(
        said.lines().count() < 100,
        "a damaged log is no reason to fill the other one: {} lines",
        said.lines().count()
    );
}
