//! Data folders and addresses that cannot be used: the program says why and ends.

use serde_json::json;
use std::path::Path;
use taskledger_testkit::program::{Ended, run};
use taskledger_testkit::server::{Folder, Server};

async fn serve(data: &Path, address: &str) -> Ended {
    run([
        "serve",
        "--listen",
        address,
        "--data-dir",
        data.to_str().unwrap(),
    ])
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;

    let refused = serve(&folder.data(), "127.0.0.1:0").await.refused(1);

    assert!(refused.contains("is in use by process"), "{refused}");
    assert!(refused.contains("--data-dir"), "{refused}");
    server
        .api
        .call("tasks.create", json!({"name": "still here"}))
        .await;
    server.kill().await;
    Server::start(&folder).await.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_taken_is_named() {
    let (folder, other) = (Folder::new(), Folder::new());
    let server = Server::start(&folder).await;
    let address = server
        .api
        .url
        .trim_start_matches("http://")
        .trim_end_matches('/');

    let refused = serve(&other.data(), address).await.refused(1);

    assert!(
        refused.contains(&format!(
            "cannot listen on `{address}`: another program listens there"
        )),
        "{refused}"
    );
    assert!(!other.data().exists(), "nothing was made");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_leaves_no_new_folder_and_keeps_one_that_was_there() {
    let (folder, other) = (Folder::new(), Folder::new());
    let data = folder.data();
    let listens = Server::start(&other).await;
    let address = listens.api.url.trim_start_matches("http://");
    let address = address.trim_end_matches('/').to_owned();
    let refused = serve(&data, &address).await.refused(1);
    assert!(
        refused.contains("another program listens there"),
        "{refused}"
    );
    assert!(!data.exists(), "nothing is left");
    Server::start(&folder).await.stop().await;
    serve(&data, &address).await.refused(1);
    assert!(folder.ledger().exists(), "what was there stays");
    listens.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    for place in [file.clone(), file.join("below")] {
        let refused = serve(&place, "127.0.0.1:0").await.refused(1);
        let named = format!("cannot use the data folder `{}`", place.display());
        assert!(refused.contains(&named), "{refused}");
    }
    let refused = serve(&file, "127.0.0.1:0").await.refused(1);
    assert!(
        refused.contains("--data-dir: ") && refused.contains("it is not a folder"),
        "{refused}"
    );
    // The kernel refuses every new folder here, also to root.
    let refused = serve(Path::new("/proc/taskledger"), "127.0.0.1:0")
        .await
        .refused(1);
    assert!(
        refused.contains("cannot use the data folder `/proc/taskledger`"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_none_is_refused_and_left_alone() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    let text = "this is not a database, but it is longer than a header".repeat(99);
    std::fs::write(folder.ledger(), &text).unwrap();

    let refused = serve(&folder.data(), "127.0.0.1:0").await.refused(1);

    assert!(refused.contains("ledger.db"), "{refused}");
    assert_eq!(std::fs::read_to_string(folder.ledger()).unwrap(), text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_of_a_newer_program_is_refused_and_left_alone() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    server.api.call("tasks.create", json!({"name": "a"})).await;
    server.stop().await;
    let ledger = rusqlite::Connection::open(folder.ledger()).unwrap();
    ledger.pragma_update(None, "user_version", 99).unwrap();
    ledger.close().unwrap();

    let refused = serve(&folder.data(), "127.0.0.1:0").await.refused(1);

    assert!(refused.contains("has schema version 99"), "{refused}");
    assert!(refused.contains("use the newer program"), "{refused}");
}
