//! Finished flows leave the log, and their archive is a log of its own.

use crate::system::read_models::{dump, dump_of_rebuilt_copy};
use crate::system::workflow::Workflow;
use chrono::{DateTime, Duration, SecondsFormat, Utc};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use taskledger_testkit::log;
use taskledger_testkit::program::{self, Ended, run, run_with};
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    the_archive_of_finished_flows_is_a_log_that_gives_the_same_rows,
    what_is_left_of_a_log_is_sound_and_serves,
    a_server_archives_what_is_old_enough_while_it_serves,
    archiving_that_is_killed_at_any_moment_loses_nothing_and_goes_on,
    who_archives_without_a_server_is_the_operator,
);

/// Age of what the tests archive.
const DAYS: i64 = 40;

/// A log that was made by a server, as if it had been so many days ago.
async fn aged(folder: &Folder) -> String {
    let words = ["events", "export"].map(str::to_owned).into_iter();
    let text = run(words.chain(folder.storage())).await.done();
    let lines = program::events_of(&text).map(|line| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        for member in ["time", "recorded_at"] {
            let time = DateTime::parse_from_rfc3339(event[member].as_str().unwrap()).unwrap();
            let then = time.with_timezone(&Utc) - Duration::days(DAYS);
            event[member] = json!(then.to_rfc3339_opts(SecondsFormat::Micros, true));
        }
        format!("{event}\n")
    });
    lines.collect()
}

async fn import(text: &str, folder: &Folder) {
    // Other times make other hashes.
    let flags = ["--allow-unterminated", "--restart-chain"];
    let words = ["events", "import", "-"].into_iter().chain(flags);
    let words = words.map(str::to_owned);
    let words: Vec<_> = words.chain(folder.storage()).collect();
    run_with(words, Path::new("."), text).await.done();
}

async fn import_file(file: &Path, folder: &Folder) -> Ended {
    // An archive has no chain: it is what was taken out of one.
    let flag = "--accept-unchained";
    let words = ["events", "import", flag, file.to_str().unwrap()];
    let words = words.map(str::to_owned).into_iter();
    run(words.chain(folder.storage())).await
}

async fn verify(folder: &Folder) -> String {
    let words = ["events", "verify"].map(str::to_owned).into_iter();
    run(words.chain(folder.storage())).await.done()
}

/// Old flows: some that have finished, and one that waits. Gives the roots of both.
async fn given_old_flows(folder: &Folder, finished: usize) -> (Vec<Value>, Value) {
    let made = Folder::new();
    let server = Server::start(&made).await;
    let mut roots = Vec::new();
    for _ in 0..finished {
        let workflow = Workflow::fork_join(5, 1).request();
        let started = server.api.call("tasks.execute", workflow).await;
        let root = started["root_task_id"].clone();
        server.api.run_of(&root).await;
        roots.push(root);
    }
    let waiting = server
        .api
        .call("tasks.create", json!({"name": "waiting"}))
        .await;
    server.stop().await;
    import(&aged(&made).await, folder).await;
    (roots, waiting["id"].clone())
}

fn retention(folder: &Folder, archive: &Path, more: &[&str]) -> Vec<String> {
    let words = ["--json", "retention", "--older-than", "30d", "--archive"];
    let words = words.into_iter().chain([archive.to_str().unwrap()]);
    let words = words.chain(more.iter().copied()).map(str::to_owned);
    words.chain(folder.storage()).collect()
}

async fn archive(folder: &Folder, into: &Path, more: &[&str]) -> Value {
    let said = run(retention(folder, into, more)).await.done();
    serde_json::from_str(&said).unwrap()
}

/// Files of the archive, oldest first, and whether one is not whole.
fn files(archive: &Path) -> (Vec<PathBuf>, bool) {
    let Ok(found) = std::fs::read_dir(archive) else {
        return (Vec::new(), false);
    };
    let mut files: Vec<PathBuf> = found.map(|f| f.unwrap().path()).collect();
    files.sort();
    let is_part = |f: &PathBuf| f.extension().is_some_and(|e| e == "part");
    let has_part = files.iter().any(is_part);
    files.retain(|f| !is_part(f));
    (files, has_part)
}

/// Rows, but for those that are never narrowed.
fn lasting(dump: &str) -> Vec<String> {
    let lines = dump
        .lines()
        .filter(|line| !line.starts_with("created_buckets"));
    lines.map(str::to_owned).collect()
}

async fn rows_of_import(file: &Path) -> Vec<String> {
    let copy = Folder::new();
    import_file(file, &copy).await.done();
    let said = verify(&copy).await;
    assert!(said.starts_with("sound"), "{said}");
    let data = copy.data();
    let rebuild = [
        "projections",
        "rebuild",
        "--data-dir",
        data.to_str().unwrap(),
    ];
    run(rebuild).await.done();
    lasting(&dump(&copy).await)
}

async fn the_archive_of_finished_flows_is_a_log_that_gives_the_same_rows(folder: Folder) {
    given_old_flows(&folder, 6).await;
    let into = folder.path().join("archive");
    let before = lasting(&dump_of_rebuilt_copy(&folder).await);

    let done = archive(&folder, &into, &["--pending"]).await;

    assert_eq!(done["flows"], 7, "{done}");
    assert_eq!(done["dropped_events"], done["events"], "{done}");
    let (files, _) = files(&into);
    assert_eq!(files.len(), 1);
    assert_eq!(rows_of_import(&files[0]).await, before);
    let left = log::export(&folder).await;
    assert!(left.iter().all(|e| e.kind == "FlowArchived"), "{left:?}");
    let digest = run_sha256(&files[0]);
    assert!(left.iter().all(|e| e.text("sha256") == digest), "{digest}");
}

fn run_sha256(file: &Path) -> String {
    let said = std::process::Command::new("sha256sum")
        .arg(file)
        .output()
        .unwrap();
    String::from_utf8(said.stdout)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

async fn what_is_left_of_a_log_is_sound_and_serves(folder: Folder) {
    let (roots, waiting) = given_old_flows(&folder, 4).await;
    let into = folder.path().join("archive");

    let dry = archive(&folder, &into, &["--dry-run"]).await;
    assert_eq!(
        (&dry["flows"], &dry["files"]),
        (&json!(4), &json!([])),
        "{dry}"
    );
    assert!(!into.exists());
    let done = archive(&folder, &into, &[]).await;
    assert_eq!(
        (&done["flows"], &done["events"]),
        (&json!(4), &dry["events"]),
        "{done}"
    );
    let again = archive(&folder, &into, &[]).await;
    assert_eq!(again["flows"], 0, "{again}");

    let said = verify(&folder).await;
    assert!(said.starts_with("sound"), "{said}");
    let rows = lasting(&dump(&folder).await);
    assert_eq!(
        rows,
        lasting(&dump_of_rebuilt_copy(&folder).await),
        "an export with gaps is imported"
    );
    let server = Server::start(&folder).await;
    let list = server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["total"], 1, "{list}");
    for method in [
        "tasks.get",
        "tasks.tree",
        "tasks.history",
        "tasks.explain",
        "tasks.execute",
    ] {
        let refusal = server
            .api
            .refusal(method, json!({"task_id": roots[0]}))
            .await;
        assert_eq!(refusal.code, -32001, "{method}");
        let said = refusal.data.to_string();
        assert!(
            said.contains("archived at") && said.contains(".jsonl"),
            "{method}: {said}"
        );
    }
    let workflow = Workflow::fork_join(5, 1).request();
    let started = server.api.call("tasks.execute", workflow).await;
    assert_eq!(
        server.api.run_of(&started["root_task_id"]).await["state"],
        "completed"
    );
    let found = server
        .api
        .call("tasks.get", json!({"task_id": waiting}))
        .await;
    assert_eq!(found["status"], "pending");
    server.api.caught_up().await;
    server.stop().await;
    assert!(verify(&folder).await.starts_with("sound"));
}

async fn a_server_archives_what_is_old_enough_while_it_serves(folder: Folder) {
    let (roots, _) = given_old_flows(&folder, 4).await;
    let into = folder.path().join("archive");
    let settings = [
        "--retention-age",
        "30d",
        "--retention-archive",
        into.to_str().unwrap(),
    ];

    let server = Server::start_with(&folder, &settings).await;

    let gone = server.api.eventually("old flows are gone", async || {
        let list = server.api.call("tasks.list", json!({})).await;
        (list["total"] == 1).then_some(())
    });
    gone.await;
    let refusal = server
        .api
        .refusal("tasks.get", json!({"task_id": roots[0]}))
        .await;
    assert!(
        refusal.data.to_string().contains("archived at"),
        "{refusal:?}"
    );
    let young = server
        .api
        .call("tasks.create", json!({"name": "young"}))
        .await;
    server
        .api
        .call("tasks.get", json!({"task_id": young["id"]}))
        .await;
    let done = server.api.eventually("their events are gone", async || {
        let text = server.logged();
        text.contains("finished flows were archived").then_some(())
    });
    done.await;
    server.stop().await;
    let left = log::export(&folder).await;
    assert!(!left.iter().any(|e| e.kind == "TaskCompleted"), "{left:?}");
    assert!(verify(&folder).await.starts_with("sound"));
}

async fn archiving_that_is_killed_at_any_moment_loses_nothing_and_goes_on(folder: Folder) {
    given_old_flows(&folder, 12).await;
    let into = folder.path().join("archive");
    let before = log::export(&folder).await;

    // The first is killed while it writes its file or soon after, the next ones a little later each.
    for looks in [0_u32, 1, 4, 16, 64] {
        let mut command = program::command();
        command.args(retention(&folder, &into, &["--pending"]));
        let mut child = command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut seen = 0;
        while seen <= looks && child.try_wait().unwrap().is_none() {
            let (whole, has_part) = files(&into);
            seen += u32::from(has_part || !whole.is_empty());
            tokio::task::yield_now().await;
        }
        let _ = child.start_kill();
        child.wait().await.unwrap();
        let said = verify(&folder).await;
        assert!(said.starts_with("sound"), "after {looks} looks: {said}");
    }
    archive(&folder, &into, &["--pending"]).await;

    let left = log::export(&folder).await;
    assert!(left.iter().all(|e| e.kind == "FlowArchived"), "{left:?}");
    let (files, _) = files(&into);
    let mut kept = std::collections::BTreeSet::new();
    for file in &files {
        let copy = Folder::new();
        import_file(file, &copy).await.done();
        kept.extend(log::export(&copy).await.iter().map(|e| e.position));
    }
    let all: std::collections::BTreeSet<u64> = before.iter().map(|e| e.position).collect();
    assert_eq!(kept, all, "every event is in some file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_a_server_uses_and_one_without_a_log_are_refused() {
    let folder = Folder::new();
    let into = folder.path().join("archive");
    let refused = run(retention(&folder, &into, &[])).await.refused(1);
    assert!(refused.contains("there is no log"), "{refused}");

    let server = Server::start(&folder).await;
    let refused = run(retention(&folder, &into, &[])).await.refused(1);
    assert!(refused.contains("in use"), "{refused}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_a_server_uses_is_refused() {
    let folder = Folder::with_database().await;
    let into = folder.path().join("archive");
    let server = Server::start(&folder).await;
    server.api.call("tasks.create", json!({"name": "n"})).await;
    let refused = run(retention(&folder, &into, &[])).await.refused(1);
    assert!(
        refused.contains("servers run on this database"),
        "{refused}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_that_was_cut_off_is_refused() {
    let folder = Folder::new();
    given_old_flows(&folder, 1).await;
    let into = folder.path().join("archive");
    archive(&folder, &into, &["--pending"]).await;
    let (files, _) = files(&into);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let without_one: String = text
        .lines()
        .enumerate()
        .filter(|(n, _)| *n != 3)
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    let cut = folder.path().join("cut.jsonl");
    std::fs::write(&cut, without_one).unwrap();

    let refused = import_file(&cut, &Folder::new()).await.refused(2);

    assert!(refused.contains("line "), "{refused}");
}

async fn who_archives_without_a_server_is_the_operator(folder: Folder) {
    given_old_flows(&folder, 1).await;
    archive(&folder, &folder.path().join("archive"), &[]).await;
    let words = ["--json", "audit", "--action", "retention"].map(str::to_owned);
    let said = run(words.into_iter().chain(folder.storage())).await.done();
    let audit: Value = serde_json::from_str(&said).unwrap();
    let rows = audit["entries"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{audit}");
    assert_eq!(rows[0]["principal"], "operator", "{audit}");
}
