//! The command line as scripts use it: texts on standard output, exit codes, JSON.

use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::program::{self, Ended, end, events_of, run, run_with};
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(the_log_is_exported_in_order_and_verified,);

const WORKFLOW: &str = r#"[
    {"id": "r", "name": "root"},
    {"id": "a", "name": "first", "parent_id": "r", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 5}},
    {"id": "b", "name": "second", "parent_id": "r", "schemas": {"method": "echo_executor"}, "inputs": {"x": 1},
     "dependencies": [{"id": "a"}]}
]"#;
const FAILING: &str = r#"{"tasks": [{"name": "slow", "schemas": {"method": "sleep_executor"},
    "inputs": {"duration_ms": 60000}, "params": {"timeout_seconds": 0.01}}]}"#;
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";
const TREE: &str = "✓ root  completed\n├─ ✓ first  completed\n└─ ✓ second  completed\n";

/// A tree without how long its tasks took.
fn untimed(tree: &str) -> String {
    let lines = tree
        .lines()
        .map(|line| match line.split_once("completed  ") {
            Some((line, _)) => format!("{line}completed\n"),
            None => format!("{line}\n"),
        });
    lines.collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_runs_on_a_server_and_in_the_program_itself() {
    let folder = Folder::new();
    let file = folder.path().join("workflow.json");
    std::fs::write(&file, WORKFLOW).unwrap();
    let file = file.to_str().unwrap();
    let server = Server::start(&folder).await;

    let on_server = run(["run", file, "--url", &server.api.url]).await.done();
    let from_stdin = run_with(
        ["run", "-", "--url", &server.api.url],
        Path::new("."),
        WORKFLOW,
    )
    .await
    .done();
    let mut alone = program::command();
    alone
        .args(["run", file])
        .current_dir(folder.path())
        .env("TMPDIR", folder.path());
    let embedded = end(alone, "").await.done();

    for said in [on_server, from_stdin, embedded] {
        assert!(untimed(&said).ends_with(TREE), "{said}");
        let id = said
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("flow "));
        assert_eq!(id.map(str::len), Some(36), "{said}");
        assert!(
            !said.contains('\x1b'),
            "nothing for a terminal in a pipe: {said:?}"
        );
    }
    let mut left = std::fs::read_dir(folder.path()).unwrap();
    let left = left.find(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("taskledger")
    });
    assert!(left.is_none(), "nothing of it is kept: {left:?}");
    let kept = folder.path().join("kept");
    let words = ["run", file, "--data-dir", kept.to_str().unwrap()];
    run(words).await.done();
    assert!(kept.join("ledger.db").is_file());
    let as_json = run(["--json", "run", file, "--url", &server.api.url])
        .await
        .done();
    assert_eq!(as_json.lines().count(), 1);
    assert_eq!(parsed(&as_json)["task"]["status"], "completed");
    let data = folder.data();
    let held = run(["run", file, "--data-dir", data.to_str().unwrap()])
        .await
        .refused(1);
    assert!(
        held.contains("is in use by process")
            && held.contains("choose another `--data-dir`")
            && held.contains("--url"),
        "{held}"
    );
    let off = run_with(
        ["run", "-", "--url", &server.api.url],
        Path::new("."),
        r#"[{"name": "a", "schemas": {"method": "command_executor"}, "inputs": {"command": "true"}}]"#,
    )
    .await
    .refused(2);
    assert!(off.contains("--allow-command PROGRAM turns it on"), "{off}");
    let unknown = run(["taks", "list"]).await.refused(2);
    assert!(unknown.contains("'tasks'"), "{unknown}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_code_of_a_run_tells_how_it_ended() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let on_server = async |text: &str| {
        run_with(["run", "-", "--url", &server.api.url], Path::new("."), text).await
    };

    let failed = on_server(FAILING).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("✗ slow  failed: "), "{failed:?}");
    let cancelled = on_server(
        r#"[{"name": "late", "schemas": {"method": "echo_executor"},
        "params": {"deadline": "2000-01-01T00:00:00Z"}}]"#,
    )
    .await;
    assert_eq!(cancelled.code, Some(2), "over its deadline: {cancelled:?}");
    let unknown = on_server(r#"[{"name": "a", "schemas": {"method": "no_such"}}]"#)
        .await
        .refused(2);
    assert!(
        unknown.contains("Executor not found (-32003)") && unknown.contains("no_such"),
        "{unknown}"
    );
    let yaml = on_server("tasks:\n  - name: a\n    schemas: {method: echo_executor}\n").await;
    assert_eq!(yaml.code, Some(0), "{yaml:?}");
    assert!(on_server("{").await.refused(2).contains("not valid JSON"));
    assert!(
        on_server("{}")
            .await
            .refused(2)
            .contains("expected a `tasks.execute` request")
    );
    let missing = run(["run", "no/such/file", "--url", &server.api.url])
        .await
        .refused(2);
    assert!(missing.contains("cannot read `no/such/file`"), "{missing}");
    let url = server.api.url.clone();
    server.stop().await;
    let nobody = run_with(["run", "-", "--url", &url], Path::new("."), WORKFLOW)
        .await
        .refused(4);
    assert!(nobody.contains("cannot reach"), "{nobody}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_somebody_cancels_ends_with_three() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let text = r#"[{"name": "cancelled by another", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 60000}}]"#;
    let url = server.api.url.clone();
    let following =
        tokio::spawn(
            async move { run_with(["run", "-", "--url", &url], Path::new("."), text).await },
        );
    let id = server
        .api
        .eventually("the task runs", async || {
            let list = server
                .api
                .call("tasks.list", json!({"status": "in_progress"}))
                .await;
            list["tasks"].get(0).map(|task| task["id"].clone())
        })
        .await;

    server
        .api
        .call(
            "tasks.cancel",
            json!({"task_id": id, "reason": "no longer needed"}),
        )
        .await;

    let ended = following.await.unwrap();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.out.contains("no longer needed"), "{ended:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_made_read_changed_and_removed() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let tasks = async |arguments: &[&str]| -> Ended {
        let mut command = taskledger_testkit::program::command();
        command
            .env("TASKLEDGER_URL", &server.api.url)
            .arg("tasks")
            .args(arguments);
        end(command, "").await
    };
    let as_json =
        async |arguments: &[&str]| parsed(&tasks(&[arguments, &["--json"]].concat()).await.done());
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();

    let root = id(&as_json(&["create", "--name", "root"]).await);
    let first = [
        "create",
        "--name",
        "first",
        "--parent",
        &root,
        "--method",
        "echo_executor",
        "--inputs",
        "{\"x\":1}",
    ];
    let first = id(&as_json(&first).await);
    let second = [
        "create",
        "--name",
        "second",
        "--parent",
        &root,
        "--depends-on",
        &first,
    ];
    let second = id(&as_json(&second).await);
    assert_eq!(
        as_json(&["get", &second]).await["dependencies"][0]["id"],
        json!(first)
    );
    assert!(tasks(&["get", &first]).await.done().contains("first"));
    assert_eq!(
        tasks(&["tree", &root]).await.done(),
        "· root  pending\n├─ · first  pending\n└─ · second  pending  waits for `first`\n"
    );
    assert_eq!(as_json(&["list", "--parent", &root]).await["total"], 2);
    assert_eq!(
        tasks(&["list", "--all"])
            .await
            .done()
            .lines()
            .filter(|line| line.contains("pending"))
            .count(),
        3
    );
    assert_eq!(as_json(&["list"]).await["total"], 1, "flows by default");
    assert_eq!(as_json(&["list", "--since", "1h"]).await["total"], 1);
    assert_eq!(
        as_json(&["list", "--until", "2001-02-03"]).await["total"],
        0
    );
    assert_eq!(
        as_json(&["list", "--all", "--name", "*c*d"]).await["looked_at"],
        3
    );
    assert_eq!(id(&as_json(&["get", &second[..13]]).await), second);
    assert_eq!(id(&as_json(&["get", "@last"]).await), root);
    assert_eq!(
        id(&as_json(&["get", &format!("{}@root", &second[..13])]).await),
        root
    );
    assert!(
        tasks(&["get", "ffffffff-ffff"])
            .await
            .refused(2)
            .contains("no task has an id")
    );
    assert!(tasks(&["children", &root]).await.done().contains("second"));
    tasks(&["update", &second, "--name", "renamed", "--priority", "0"])
        .await
        .done();
    assert_eq!(as_json(&["get", &second]).await["name"], "renamed");
    let copy = as_json(&["copy", &root, "--children"]).await;
    let copy = copy["copied_task_id"].as_str().unwrap();
    assert_ne!(copy, root);
    assert!(
        tasks(&["delete", &first])
            .await
            .refused(2)
            .contains("Task cannot be deleted (-32009)")
    );
    tasks(&["delete", &second]).await.done();
    assert!(
        tasks(&["get", &second])
            .await
            .refused(2)
            .contains("Task not found (-32001)")
    );
    tasks(&["execute", &root]).await.done();
    assert_eq!(server.api.run_of(&json!(root)).await["state"], "completed");
    assert!(
        tasks(&["cancel", &root])
            .await
            .refused(2)
            .contains("Invalid state transition (-32006)")
    );
    tasks(&["cancel", copy]).await.done();
    assert!(
        tasks(&["retry", UNKNOWN])
            .await
            .refused(2)
            .contains("-32001")
    );
    assert!(
        tasks(&["get", "7"])
            .await
            .refused(2)
            .contains("`7` is not the id of a task; expected an id, at least its first 4 digits")
    );
    server.stop().await;
}

async fn the_log_is_exported_in_order_and_verified(folder: Folder) {
    let events = async |arguments: &[&str]| {
        let words = [&["events"], arguments].concat().into_iter();
        let words = words.map(str::to_owned);
        run(words.chain(folder.storage())).await
    };
    let none = events(&["export"]).await.refused(1);
    assert!(none.contains(&folder.name()), "{none}");
    let server = Server::start(&folder).await;
    for number in 0..5 {
        server
            .api
            .call("tasks.create", json!({"name": format!("task {number}")}))
            .await;
    }

    let all = events(&["export"]).await.done();
    let names: Vec<_> = events_of(&all)
        .map(|line| parsed(line)["data"]["name"].clone())
        .collect();
    assert_eq!(names, ["task 0", "task 1", "task 2", "task 3", "task 4"]);
    let rest = events(&["export", "--after", "3"]).await.done();
    let last: Vec<_> = events_of(&all).skip(3).collect();
    assert_eq!(events_of(&rest).collect::<Vec<_>>(), last);
    let verified = events(&["verify"]).await.done();
    assert!(
        verified.starts_with("sound: 5 events in 5 flows\nhead "),
        "{verified}"
    );
    let mut lines = verified.lines().rev();
    let audit = lines.next().unwrap();
    assert!(audit.starts_with("audit log: sound, "), "{verified}");
    assert!(lines.next().unwrap().ends_with("@5"), "{verified}");
    let report = parsed(&events(&["verify", "--json"]).await.done());
    assert_eq!(
        (&report["sound"], &report["report"]["events"]),
        (&json!(true), &json!(5))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_names_a_server_and_what_is_there_is_looked_at() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let contexts = folder.path().join("contexts.json");
    let by_context = async |words: &[&str]| -> Ended {
        let mut command = taskledger_testkit::program::command();
        command.env("TASKLEDGER_CONTEXTS", &contexts).args(words);
        end(command, "").await
    };
    let add = ["context", "add", "here", "--server", &server.api.url];
    assert_eq!(by_context(&add).await.done(), "added here\n");
    assert!(
        by_context(&["context", "list"])
            .await
            .done()
            .contains("*  here")
    );
    assert!(by_context(&["health"]).await.done().contains("✓ ok"));
    assert!(
        by_context(&["executors"])
            .await
            .done()
            .contains("echo_executor")
    );
    let detached = by_context(&["run", "-", "--detach"]).await.refused(2);
    assert!(
        detached.contains("it is empty; expected"),
        "it reads the file first: {detached}"
    );
    let unknown = by_context(&["health", "--context", "there"])
        .await
        .refused(2);
    assert!(
        unknown.contains("did you mean `here`? Expected one of here"),
        "{unknown}"
    );
    let data = folder.data();
    let looked = by_context(&["doctor", "--data-dir", data.to_str().unwrap()]).await;
    assert!(
        looked.out.contains("! lock") && looked.out.contains("is in use by process"),
        "{looked:?}"
    );
    assert_eq!(looked.code, Some(0), "{looked:?}");
    let bad = [
        "doctor",
        "--data-dir",
        "d",
        "--egress-proxy",
        "socks5://p:1080",
    ];
    let bad = by_context(&bad).await;
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(
        bad.out
            .contains("proxies of scheme `socks5` are not supported"),
        "{bad:?}"
    );
    server.stop().await;
    let gone = by_context(&["health"]).await.refused(4);
    assert!(gone.contains("cannot reach"), "{gone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completions_know_the_commands() {
    let script = run(["completions", "bash"]).await.done();
    for word in ["complete -o", "TASKLEDGER_COMPLETE=\"bash\"", "taskledger"] {
        assert!(script.contains(word), "{word}: {script}");
    }
    assert!(
        run(["completions", "klingon"])
            .await
            .refused(2)
            .contains("invalid value")
    );
    assert!(run(["--help"]).await.done().contains("Examples:"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_told_at_once_what_it_cannot_do() {
    let absent = run(["worker", "--method", "m", "--", "no-such-program"])
        .await
        .refused(2);
    assert!(absent.contains("cannot run `no-such-program`"), "{absent}");
    let without = run(["worker", "--method", "m"]).await.refused(2);
    assert!(without.contains("<PROGRAM>"), "{without}");
    let help = run(["worker", "--help"]).await.done();
    assert!(
        help.contains("TASKLEDGER_TASK_ID") && help.contains("Exit code 65"),
        "{help}"
    );
    let folder = Folder::new();
    let missing = folder.path().join("schema.json");
    let missing = missing.to_str().unwrap();
    let refused = run(["workers", "declare", "m", "--input-schema", missing]).await;
    let refused = refused.refused(2);
    assert!(refused.contains("cannot read"), "{refused}");
}
