//! The schema, brought up to date by hand.

use serde_json::{Value, json};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

async fn migrate(folder: &Folder) -> Value {
    let words = ["--json", "migrate"].map(str::to_owned).into_iter();
    let said = run(words.chain(folder.storage())).await.done();
    serde_json::from_str(&said).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_migrated_once_and_then_serves() {
    let folder = Folder::with_database().await;

    let first = migrate(&folder).await;
    let second = migrate(&folder).await;

    for tables in ["log", "nodes", "webhooks", "auth", "workers"] {
        assert_eq!(first[tables]["from"], 0, "{first}");
        assert_ne!(first[tables]["steps"], json!([]), "{first}");
        assert_eq!(second[tables]["steps"], json!([]), "{second}");
        assert_eq!(second[tables]["to"], first[tables]["to"], "{second}");
    }
    let server = Server::start(&folder).await;
    server.api.call("tasks.create", json!({"name": "n"})).await;
    server.api.caught_up().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_migrated_unless_a_server_uses_it() {
    let folder = Folder::new();
    let refused = async || {
        let words = ["migrate"].map(str::to_owned).into_iter();
        run(words.chain(folder.storage())).await.refused(1)
    };
    let nothing = refused().await;
    assert!(
        nothing.contains("there is nothing to migrate: there is no log in"),
        "{nothing}"
    );
    assert!(!folder.data().exists(), "nor is one made");
    let server = Server::start(&folder).await;
    let held = refused().await;
    assert!(held.contains("in use"), "{held}");
    server.stop().await;
    assert_eq!(migrate(&folder).await["log"]["steps"], json!([]));
}
