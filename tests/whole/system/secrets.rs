//! Secrets that tasks name: they reach a receiver and a program, and nothing that is stored, shown or logged.

use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::program::{command, end, run};
use taskledger_testkit::receiver::{Answer, Receiver};
use taskledger_testkit::server::{Folder, Server};

/// The canary.
const TEXT: &str = "c4nary/hunter2-c4nary";
const ALLOWED: [&str; 6] = [
    "--egress-allow-net",
    "127.0.0.1/32",
    "--allow-command",
    "sh",
    "--log-level",
    "debug",
];

/// A task of a user, once its run has ended.
async fn ran(server: &Server, user: &str, method: &str, inputs: Value) -> Value {
    let task = json!({"name": "call", "user_id": user, "schemas": {"method": method}, "inputs": inputs,
        "params": {"retry_count": 2}});
    let run = server
        .api
        .call("tasks.execute", json!({"tasks": [task]}))
        .await;
    let root = run["root_task_id"].clone();
    server.api.run_of(&root).await;
    server.api.call("tasks.get", json!({"task_id": root})).await
}

fn assert_clean(place: &str, text: &str) {
    for part in ["hunter2", "aHVudGVyM", "h1bnRlcjI", "odW50ZXIy"] {
        assert!(!text.contains(part), "{place} shows the secret: {part}");
    }
}

/// Every file below a folder, as text as far as it is some.
fn assert_files_are_clean(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_files_are_clean(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            assert_clean(
                &path.display().to_string(),
                &String::from_utf8_lossy(&bytes),
            );
        }
    }
}

async fn a_secret_is_used_and_never_shown(folder: Folder, more: &[&str]) {
    let receiver = Receiver::start().await;
    let options: Vec<&str> = ALLOWED.iter().chain(more).copied().collect();
    let server = Server::start_with(&folder, &options).await;
    let api = &server.api;
    let set = json!({"name": "pw", "value": TEXT, "owner": "ann"});
    let mut answers = vec![api.call("secrets.set", set).await];
    let reference = json!({"$secret": "pw"});

    receiver.answer(
        Answer::status(200)
            .header("x-echo", TEXT)
            .body(format!("you sent {TEXT}")),
    );
    let inputs = json!({"url": receiver.url("/a"), "headers": {"x-key": reference},
        "auth": {"type": "bearer", "token": reference}});
    let task = ran(&server, "ann", "http_executor", inputs).await;
    assert_eq!(task["result"]["body"], "you sent [secret pw]", "{task}");
    assert_eq!(task["result"]["headers"]["x-echo"], "[secret pw]");
    assert_eq!(task["inputs"]["headers"]["x-key"], reference);
    let came = &receiver.requests()[0];
    assert_eq!(came.header("x-key"), Some(TEXT));
    assert_eq!(
        came.header("authorization"),
        Some(format!("Bearer {TEXT}").as_str())
    );
    answers.push(task);

    let script =
        |script: &str| json!({"program": "sh", "args": ["-c", script], "env": {"PW": reference}});
    let task = ran(
        &server,
        "ann",
        "command_executor",
        script("echo ${#PW} $PW; printf $PW | base64"),
    )
    .await;
    let printed = task["result"]["stdout"].as_str().unwrap().to_owned();
    assert!(
        printed.starts_with(&format!("{} [secret pw]\n[secret pw]", TEXT.len())),
        "{printed}"
    );
    answers.push(task);
    let task = ran(
        &server,
        "ann",
        "command_executor",
        script("echo no $PW >&2; exit 1"),
    )
    .await;
    assert_eq!(
        task["error"],
        "program `sh` ended with exit code 1: no [secret pw]"
    );
    assert_eq!(task["attempt"], 3);
    answers.push(task);

    // The secret is that of the flow's owner, and nobody else has one of this name.
    let task = ran(&server, "bob", "command_executor", script("true")).await;
    let told =
        "there is no secret `pw` of user `bob`, to whom this flow belongs; `secrets.set` makes one";
    assert_eq!(task["error"], told);
    assert_eq!(
        task["attempt"], 1,
        "another attempt would find nothing else"
    );

    let wrong = json!({"name": "x", "schemas": {"method": "http_executor"},
        "inputs": {"url": receiver.url("/"), "json": {"a": [reference]}}});
    let refused = api.refusal("tasks.create", wrong).await;
    assert_eq!(
        refused.data["reason"], "a secret cannot be used here",
        "{refused:?}"
    );

    for params in [
        json!({"limit": 100}),
        json!({"limit": 100, "user_id": "ann"}),
    ] {
        answers.push(api.call("tasks.list", params).await);
    }
    let root = answers[1]["id"].clone();
    answers.push(api.call("tasks.history", json!({"task_id": root})).await);
    answers.push(api.call("tasks.explain", json!({"task_id": root})).await);
    let listed = api.call("secrets.list", json!({"owner": "ann"})).await;
    assert_eq!(listed["secrets"][0]["name"], "pw");
    answers.push(listed);
    answers.push(api.call("audit.list", json!({"object": "pw"})).await);
    let deleted = api
        .call("secrets.delete", json!({"name": "pw", "owner": "ann"}))
        .await;
    assert_eq!(deleted, json!({"deleted": true}));
    let task = ran(&server, "ann", "command_executor", script("true")).await;
    assert!(
        task["error"]
            .as_str()
            .unwrap()
            .contains("there is no secret `pw`"),
        "{task}"
    );
    for answer in &answers {
        assert_clean("an answer", &answer.to_string());
    }

    assert_clean("the log of the server", &server.stop().await);
    assert_files_are_clean(folder.path());
    let export = ["events", "export", "--with-keys"].map(str::to_owned);
    let exported = run(export.into_iter().chain(folder.storage())).await.done();
    assert!(exported.contains("[secret pw]"));
    assert_clean("the exported log", &exported);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_used_and_never_shown_on_sqlite() {
    a_secret_is_used_and_never_shown(Folder::new(), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_used_and_never_shown_on_postgres() {
    let folder = Folder::with_database().await;
    let key = folder.path().join("keys");
    std::fs::write(&key, "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n").unwrap();
    let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, only_owner).unwrap();
    let options = ["--secrets-key-file", key.to_str().unwrap()];
    a_secret_is_used_and_never_shown(folder, &options).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_sets_a_secret_from_standard_input_and_a_crash_keeps_it() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &ALLOWED).await;
    let set = |url: &str| {
        let mut program = command();
        program.args(["secrets", "set", "pw", "--url", url]);
        program
    };
    let shown = end(set(&server.api.url), &format!("{TEXT}\n")).await.done();
    assert!(shown.starts_with("pw set at "), "{shown}");
    let refused = end(set(&server.api.url), "short").await.refused(2);
    assert!(
        refused.contains("too short") && !refused.contains("`short`"),
        "{refused}"
    );
    server.kill().await;

    let server = Server::start_with(&folder, &ALLOWED).await;
    let words = ["secrets", "list", "--url", &server.api.url];
    let listed = run(words).await.done();
    assert!(listed.contains("pw "), "{listed}");
    let inputs = json!({"program": "sh", "args": ["-c", "test \"$PW\" = \"$WANTED\""],
        "env": {"PW": {"$secret": "pw"}, "WANTED": TEXT}});
    let task = json!({"name": "a", "schemas": {"method": "command_executor"}, "inputs": inputs});
    let run_of = server
        .api
        .call("tasks.execute", json!({"tasks": [task]}))
        .await;
    let root = run_of["root_task_id"].clone();
    server.api.run_of(&root).await;
    let task = server.api.call("tasks.get", json!({"task_id": root})).await;
    assert_eq!(task["status"], "completed", "{task}");
    let words = ["secrets", "delete", "pw", "--url", &server.api.url];
    assert_eq!(run(words).await.done(), "deleted\n");
    let again = run(words).await.refused(2);
    assert!(again.contains("there is no such secret"), "{again}");
    server.stop().await;
}
