//! A log that has lost events which other stores have read: a server does not start on it, and erases nothing.

use rusqlite::Connection;
use serde_json::json;
use std::path::{Path, PathBuf};
use taskledger_testkit::program::{self, Ended};
use taskledger_testkit::server::{Folder, Server};

/// A killed server with three tasks, all of which the read models contain.
async fn given_a_killed_server(folder: &Folder) {
    let server = Server::start(folder).await;
    for name in ["first", "second", "third"] {
        server.api.call("tasks.create", json!({"name": name})).await;
    }
    server.api.caught_up().await;
    server.kill().await;
}

async fn serve(folder: &Folder) -> Ended {
    let words = ["serve", "--listen", "127.0.0.1:0"].map(str::to_owned);
    program::run(words.into_iter().chain(folder.storage())).await
}

fn wal(folder: &Folder) -> PathBuf {
    let mut name = folder.ledger().into_os_string();
    name.push("-wal");
    name.into()
}

/// Names and contents of all files but the lock and the memory that SQLite shares.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    let mut files: Vec<_> = files
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name.starts_with("ledger.db") || name.starts_with("read_models.db"))
        .filter(|(name, _)| !name.ends_with("-shm"))
        .map(|(name, path)| (name, std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

fn rows(read_models: &Path) -> i64 {
    let rows = Connection::open(read_models).unwrap();
    rows.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))
        .unwrap()
}

fn remove_wal(folder: &Folder) {
    std::fs::remove_file(wal(folder)).unwrap();
}

fn remove_log(folder: &Folder) {
    remove_wal(folder);
    std::fs::remove_file(folder.ledger()).unwrap();
}

fn empty_log(folder: &Folder) {
    remove_wal(folder);
    std::fs::write(folder.ledger(), "").unwrap();
}

/// Of the second half of the write-ahead log nothing is read any more.
fn flip_a_byte(folder: &Folder) {
    let mut bytes = std::fs::read(wal(folder)).unwrap();
    // Behind the frames that are in use there is room of zeros.
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[used - 2_000] ^= 1;
    std::fs::write(wal(folder), bytes).unwrap();
}

fn cut_wal(folder: &Folder) {
    let bytes = std::fs::read(wal(folder)).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(wal(folder), &bytes[..used - 2_000]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_refuses_a_log_that_has_lost_events_and_changes_nothing() {
    for lose in [remove_wal, remove_log, empty_log, flip_a_byte, cut_wal] {
        let folder = Folder::new();
        given_a_killed_server(&folder).await;
        lose(&folder);
        let before = contents(&folder.data());

        let refused = serve(&folder).await;

        assert_eq!(refused.code, Some(1), "{refused:?}");
        let expected = "the read models contain events up to position 3";
        assert!(refused.err.contains(expected), "{refused:?}");
        assert!(refused.err.contains("--accept-older-log"), "{refused:?}");
        assert!(contents(&folder.data()) == before, "{refused:?}");
        let doctor = ["doctor".to_owned()].into_iter().chain(folder.storage());
        let doctor = program::run(doctor).await;
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        assert!(doctor.out.contains(expected), "{doctor:?}");
        assert!(contents(&folder.data()) == before, "{doctor:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_replaced_by_another_one_is_refused() {
    let (folder, other) = (Folder::new(), Folder::new());
    given_a_killed_server(&folder).await;
    let server = Server::start(&other).await;
    for n in 0..5 {
        let name = format!("other {n}");
        server.api.call("tasks.create", json!({"name": name})).await;
    }
    server.stop().await;
    remove_log(&folder);
    std::fs::copy(other.ledger(), folder.ledger()).unwrap();

    let refused = serve(&folder).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    let expected = "the read models contain another event at position 3 than the log";
    assert!(refused.err.contains(expected), "{refused:?}");
    let verify = ["events", "verify"].map(str::to_owned).into_iter();
    let verified = program::run(verify.chain(folder.storage())).await;
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.out.contains(expected), "{verified:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_log_is_accepted_on_request_and_the_old_read_models_are_kept() {
    let folder = Folder::new();
    given_a_killed_server(&folder).await;
    remove_log(&folder);

    let server = Server::start_with(&folder, &["--accept-older-log"]).await;
    let list = server.api.call("tasks.list", json!({})).await;
    server
        .api
        .call("tasks.create", json!({"name": "new"}))
        .await;
    server.api.caught_up().await;
    server.stop().await;

    assert_eq!(list["tasks"], json!([]), "{list}");
    let entries = std::fs::read_dir(folder.data()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let kept: Vec<_> = names
        .filter(|name| name.starts_with("read_models.db.set-aside-") && !name.contains("-wal"))
        .filter(|name| !name.ends_with("-shm"))
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(rows(&folder.data().join(&kept[0])), 3, "the last copy");
    let auth = Connection::open(folder.data().join("auth.db")).unwrap();
    let detail: String = auth
        .query_row(
            "SELECT detail FROM audit WHERE action = 'log.accept_older'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert!(detail.contains(&kept[0]), "{detail}");
    // It is accepted once and for all: the next start needs no option.
    let server = Server::start(&folder).await;
    let list = server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["tasks"].as_array().map(Vec::len), Some(1), "{list}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_whose_log_was_cut_is_refused() {
    let folder = Folder::with_database().await;
    given_a_killed_server(&folder).await;
    for sql in [
        "ALTER TABLE taskledger.events DISABLE TRIGGER USER",
        "DELETE FROM taskledger.events WHERE position = 3",
        "UPDATE taskledger.head SET position = 2",
    ] {
        folder.execute(sql).await;
    }

    let refused = serve(&folder).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    let expected =
        "the log ends at position 2, but the read models contain events up to position 3";
    assert!(refused.err.contains(expected), "{refused:?}");
    let server = Server::start_with(&folder, &["--accept-older-log"]).await;
    let list = server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["tasks"].as_array().map(Vec::len), Some(2), "{list}");
    server.stop().await;
}
