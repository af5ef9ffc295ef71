//! What an operator does to the data itself has its row, and is not done without it.

use super::in_both_places;
use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::program::{Ended, run, run_with};
use taskledger_testkit::server::{Folder, Server};

in_both_places!(an_operator_leaves_rows);

fn words(of: &[&str], folder: &Folder) -> Vec<String> {
    let words = of.iter().map(|word| (*word).to_owned());
    words.chain(folder.storage()).collect()
}

/// `principal action outcome` of each row, the oldest first.
async fn rows(folder: &Folder) -> Vec<String> {
    let said = run(words(&["--json", "audit"], folder)).await.done();
    let audit: Value = serde_json::from_str(&said).unwrap();
    let entries = audit["entries"].as_array().unwrap().iter().rev();
    let told = entries.map(|row| {
        let [by, action, outcome] =
            ["principal", "action", "outcome"].map(|member| row[member].as_str().unwrap());
        if by == "operator" {
            assert_eq!(row["detail"]["means"], "store", "{row}");
        }
        format!("{by} {action} {outcome}")
    });
    told.collect()
}

async fn an_operator_leaves_rows(folder: Folder) {
    let server = Server::start(&folder).await;
    server.api.call("tasks.create", json!({"name": "a"})).await;
    server.stop().await;
    run(words(&["projections", "rebuild"], &folder))
        .await
        .done();
    assert_eq!(
        rows(&folder).await[1..],
        ["operator rebuild done".to_owned()]
    );
    // A token that is not there is revoked by nobody.
    let nothing = words(&["tokens", "revoke", "aaaaaaaaaaaaaaaa"], &folder);
    run(nothing).await;
    assert_eq!(
        rows(&folder).await[2..],
        ["operator token.revoke refused".to_owned()]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_sealed_anew_behind_their_row() {
    let folder = Folder::new();
    Server::start(&folder).await.stop().await;
    run(words(&["secrets", "reseal"], &folder)).await.done();
    assert_eq!(
        rows(&folder).await[1..],
        ["operator secret.reseal done".to_owned()]
    );
}

async fn imported(text: &str, folder: &Folder) -> Ended {
    let import = words(&["events", "import", "-"], folder);
    run_with(import, Path::new("."), text).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_done_offline_without_its_row() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    server.api.call("tasks.create", json!({"name": "a"})).await;
    server.stop().await;
    let export = words(&["events", "export"], &folder);
    let text = run(export).await.done();

    let broken = Folder::new();
    std::fs::create_dir_all(broken.data()).unwrap();
    std::fs::write(broken.data().join("auth.db"), [7; 8192]).unwrap();
    let refused = imported(&text, &broken).await.refused(1);
    assert!(refused.contains("audit log cannot be written"), "{refused}");
    assert!(!broken.data().join("ledger.db").exists());

    let fresh = Folder::new();
    imported(&text, &fresh).await.done();
    assert_eq!(rows(&fresh).await, ["operator import done".to_owned()]);

    std::fs::write(folder.data().join("auth.db"), [7; 8192]).unwrap();
    for command in [["projections", "rebuild"], ["secrets", "reseal"]] {
        run(words(&command, &folder)).await.refused(1);
    }
}
