//! What callers sent is for the user who runs the program: modes of files and folders.

use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All that lies below a folder, the folder included.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The paths that others than their owner can use.
fn readable(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let others = |path: &&PathBuf| mode(path) & 0o077 != 0;
    paths.iter().filter(others).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_server_makes_can_be_read_by_other_users() {
    let folder = Folder::new();
    let archive = folder.path().join("archive/inner");
    let export = folder.path().join("log.jsonl");
    let kept = [
        "--retention-age",
        "30d",
        "--retention-archive",
        archive.to_str().unwrap(),
    ];
    let server = Server::start_with(&folder, &kept).await;
    let task = json!({"name": "a", "inputs": {"token": "hunter2"}});
    server.api.call("tasks.create", task).await;
    server.api.caught_up().await;

    let running = below(&folder.data());
    assert_eq!(readable(&running), [] as [&PathBuf; 0]);
    let warned = server.stop().await;
    let storage = folder.storage();
    let words = ["events", "export", "--output", export.to_str().unwrap()].map(str::to_owned);
    run(words.into_iter().chain(storage)).await.done();

    let names: Vec<_> = running.iter().filter_map(|path| path.file_name()).collect();
    for name in ["ledger.db-wal", "read_models.db-shm", "webhooks.db", "lock"] {
        assert!(names.iter().any(|found| *found == name), "{names:?}");
    }
    assert_eq!(mode(&export), 0o600);
    let archive = below(&folder.path().join("archive"));
    assert_eq!(archive.len(), 2, "{archive:?}");
    assert_eq!(readable(&archive), [] as [&PathBuf; 0]);
    assert!(!warned.contains("other users"), "{warned}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modes_that_let_others_in_are_named_at_the_start_and_left_alone() {
    let folder = Folder::new();
    Server::start(&folder).await.stop().await;
    for (path, mode) in [(folder.data(), 0o755), (folder.ledger(), 0o644)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    let logged = Server::start(&folder).await.stop().await;

    let warnings: Vec<Value> = logged
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|entry: &Value| entry["level"] == "WARN")
        .collect();
    let said = |path: &Path| {
        let path = path.display().to_string();
        let warning = warnings.iter().find(|warning| warning["path"] == path);
        warning.map(|warning| (warning["mode"].clone(), warning["command"].clone()))
    };
    let command = |mode: &str, path: &Path| json!(format!("chmod {mode} {}", path.display()));
    let (data, ledger) = (folder.data(), folder.ledger());
    assert_eq!(
        said(&data),
        Some((json!("0755"), command("700", &data))),
        "{logged}"
    );
    assert_eq!(
        said(&ledger),
        Some((json!("0644"), command("600", &ledger))),
        "{logged}"
    );
    assert_eq!(said(&folder.read_models()), None, "{logged}");
    assert_eq!((mode(&data), mode(&ledger)), (0o755, 0o644));
}
