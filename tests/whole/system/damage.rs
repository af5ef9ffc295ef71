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

/// Undoes [`damage`].
fn mend(folder: &Folder, position: u64) {
    let ledger = rusqlite::Connection::open(folder.ledger()).unwrap();
    let changed = ledger.execute(
        "UPDATE events SET data = replace(data, 'previous', 'precious') WHERE position = ?1",
        [position.cast_signed()],
    );
    assert_eq!(changed, Ok(1));
    ledger.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_was_mended_is_served_again_without_a_restart() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let precious = create(&server.api, "precious").await;
    create(&server.api, "second").await;
    server.api.caught_up().await;
    server.stop().await;
    damage(&folder, 1);
    std::fs::remove_file(folder.read_models()).unwrap();
    let server = Server::start(&folder).await;
    server.api.caught_up().await;
    let get = json!({"task_id": precious});
    let refused = server.api.refusal("tasks.get", get.clone()).await;
    assert_eq!(refused.code, -32603, "{refused:?}");

    mend(&folder, 1);
    let task = server.api.eventually("it is served again", async || {
        server
            .api
            .try_call("tasks.get", get.clone(), None)
            .await
            .ok()
    });
    assert_eq!(task.await["name"], "precious");
    server
        .api
        .eventually("health is well again", async || {
            let health = server.api.call("system.health", json!({})).await;
            (health["status"] == "ok").then_some(())
        })
        .await;
    server.stop().await;
}

/// The stream of the whole log from its beginning, up to the notice with this text.
async fn streamed(api: &Api, text: &str) -> String {
    let request = api.http.get(format!("{}events?from=beginning", api.url));
    let mut response = request.send().await.unwrap();
    let mut all = String::new();
    while !all.contains(text) {
        let chunk = response.chunk().await.unwrap();
        all.push_str(std::str::from_utf8(&chunk.expect("it goes on")).unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_of_the_log_steps_over_a_damaged_flow() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let first = create(&server.api, "first").await;
    let precious = create(&server.api, "precious").await;
    let third = create(&server.api, "third").await;
    server.api.caught_up().await;
    server.stop().await;
    damage(&folder, 2);
    // The read models and the broker begin before it.
    for name in ["read_models.db", "broker.db"] {
        std::fs::remove_file(folder.data().join(name)).unwrap();
    }

    let data = folder.data();
    let rebuild = [
        "projections",
        "rebuild",
        "--data-dir",
        data.to_str().unwrap(),
    ];
    program::run(rebuild).await.done();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let named = precious.as_str().unwrap();
    let health = api
        .eventually("health names the damaged flow", async || {
            let health = api.call("system.health", json!({})).await;
            health["checks"]
                .to_string()
                .contains(named)
                .then_some(health)
        })
        .await;
    assert_eq!(health["status"], "degraded", "{health}");
    let ready = api
        .http
        .get(format!("{}readyz", api.url))
        .send()
        .await
        .unwrap();
    assert_eq!(ready.status(), 200, "the rest is served");
    for id in [&first, &third] {
        api.call("tasks.get", json!({"task_id": id})).await;
    }
    let refused = api.refusal("tasks.get", json!({"task_id": precious})).await;
    assert_eq!(refused.code, -32603, "{refused:?}");
    let reason = refused.data.to_string();
    assert!(
        reason.contains(named) && reason.contains("position 2"),
        "{reason}"
    );
    let listed = api.call("tasks.list", json!({})).await;
    assert_eq!(listed["total"], 2, "{listed}");
    let events = api.call("events.query", json!({})).await;
    assert!(
        events.to_string().contains(third.as_str().unwrap()),
        "{events}"
    );
    let fourth = create(api, "fourth").await;
    let stream = streamed(api, fourth.as_str().unwrap()).await;
    for id in [&first, &third] {
        assert!(stream.contains(id.as_str().unwrap()), "{stream}");
    }
    let publish = [
        "broker", "publish", "--type", "t", "--agent", "ann", "--url", &api.url,
    ];
    program::run(publish).await.done();
    let take = [
        "broker",
        "subscribe",
        "--type",
        "t",
        "--agent",
        "bob",
        "--count",
        "1",
    ];
    let taken = program::run([&take[..], &["--result", "{}", "--url", &api.url]].concat()).await;
    taken.done();

    let log = server.stop().await;
    let warnings = log
        .lines()
        .filter(|it| it.contains("WARN") && it.contains("damaged"));
    assert_eq!(warnings.count(), 1, "it is named once: {log}");
}
