//! The command line as people use it: what it prints to be pasted, completes, looks for and says when nothing is found.

use serde_json::{Value, json};
use taskledger_testkit::program::{self, Ended, run};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;

/// Runs the program with these variables.
pub(super) async fn with(variables: &[(&str, &str)], words: &[&str]) -> Ended {
    let mut command = program::command();
    command.args(words).envs(variables.iter().copied());
    program::end(command, "").await
}

fn echo(name: &str) -> Value {
    json!({"name": name, "schemas": {"method": "echo_executor"}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_printed_command_reaches_the_same_server() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let made = server.api.call("tasks.create", echo("never run")).await;
    let id = made["id"].as_str().unwrap();

    let said = run(["tasks", "explain", id, "--url", url]).await.done();

    let line = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("you can: "));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(line, format!("taskledger tasks execute {id} --url {url}"));
    let words = line.split(' ').skip(1);
    assert!(run(words).await.done().contains(id), "it can be pasted");
    let unknown = run(["tasks", "get", "ffff", "--url", url]).await.refused(2);
    assert!(
        unknown.contains(&format!("`taskledger tasks list --url {url}`")),
        "{unknown}"
    );
    let misspelt = run(["tasks", "get", "@lst", "--url", url]).await.refused(2);
    assert!(misspelt.contains("did you mean `@last`?"), "{misspelt}");
    server.stop().await;
}

#[tokio::test]
async fn a_value_of_a_variable_that_cannot_be_used_is_told_with_its_name() {
    let url = [("TASKLEDGER_URL", "ftp://x")];
    let told = with(&url, &["tasks", "list"]).await.refused(2);
    let begin = "taskledger: TASKLEDGER_URL: expected http";
    assert!(told.starts_with(begin), "{told}");
    // What is written is told as it is written.
    let told = with(&url, &["tasks", "list", "--url", "x"])
        .await
        .refused(2);
    assert!(told.contains("'x' for '--url <URL>'"), "{told}");
    let told = with(&[("TASKLEDGER_TIME", "soon")], &["whoami"]).await;
    let told = told.refused(2);
    assert!(told.contains("'soon' for 'TASKLEDGER_TIME'"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_variable_is_none() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let empty = [
        "CA_FILE",
        "COLOR",
        "CONTEXT",
        "CONTEXTS",
        "HEADER",
        "INSECURE_TOKEN",
        "PROXY",
        "SERVER",
        "TIME",
        "TOKEN",
        "TOKEN_FILE",
        "URL",
    ];
    let names = empty.map(|name| format!("TASKLEDGER_{name}"));
    let mut variables: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    with(&variables, &["tasks", "list", "--url", url])
        .await
        .done();
    variables.retain(|(name, _)| *name != "TASKLEDGER_SERVER");
    variables.push(("TASKLEDGER_SERVER", url));
    with(&variables, &["tasks", "list"]).await.done();
    // A server is told what it is to do without.
    let folder = folder.data();
    let words = [
        "serve",
        "--data-dir",
        folder.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ];
    let refused = with(&[("TASKLEDGER_ADMIN_TOKEN_FILE", "")], &words).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_a_drain_keeps_from_starting_says_so() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let never = run(["drain", "--cancel", "--url", url]).await.done();
    assert!(never.starts_with("the server was not draining"), "{never}");
    run(["drain", "--url", url]).await.done();
    let again = run(["drain", "--url", url]).await.done();
    assert!(again.starts_with("already draining"), "{again}");
    let root = server
        .api
        .call("tasks.execute", json!({"tasks": [echo("late")]}))
        .await["root_task_id"]
        .take();
    let id = root.as_str().unwrap();

    let said = run(["tasks", "explain", id, "--url", url]).await.done();

    assert!(
        said.starts_with("`late` waits because the server is draining: no task starts until"),
        "{said}"
    );
    assert!(
        said.contains(&format!("you can: taskledger drain --cancel --url {url}")),
        "{said}"
    );
    let tree = run(["tasks", "tree", id, "--url", url]).await;
    let line = "· late  pending  waits because the server is draining\n";
    assert_eq!(tree.out, line);
    let end = format!("until `taskledger drain --cancel --url {url}` or its next start\n");
    assert!(tree.err.ends_with(&end), "{tree:?}");
    run(["drain", "--cancel", "--url", url]).await.done();
    let run = server.api.run_of(&root).await;
    assert_eq!(run["state"], "completed", "{run}");
    let later = program::run(["tasks", "explain", id, "--url", url])
        .await
        .done();
    assert!(!later.contains("draining"), "{later}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_says_why_no_attempt_follows() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--allow-command", "sh"]).await;
    let url = server.api.url.as_str();
    let task = |name: &str, retry: Value| {
        json!({"name": name, "schemas": {"method": "command_executor"},
            "inputs": {"program": "sh", "args": ["-c", "exit 7"]}, "params": {"retry": retry}})
    };
    let tasks = [
        task(
            "hopeless",
            json!({"max_attempts": 3, "non_retryable_exit_codes": [7]}),
        ),
        task(
            "slow",
            json!({"max_attempts": 3, "initial_delay_ms": 60_000, "max_elapsed_seconds": 5}),
        ),
    ];
    let mut said = Vec::new();
    for task in tasks {
        let root = server
            .api
            .call("tasks.execute", json!({"tasks": [task]}))
            .await["root_task_id"]
            .take();
        server.api.run_of(&root).await;
        let explain = run(["tasks", "explain", root.as_str().unwrap(), "--url", url]).await;
        said.push(explain.done());
    }
    let hopeless =
        "`hopeless` failed, and no further attempt follows because the failure is non-retryable: ";
    assert!(said[0].starts_with(hopeless), "{}", said[0]);
    let slow = "`slow` failed, and no further attempt follows because the next one would start more than 5 s after the \
                start of the first one at ";
    assert!(
        said[1].starts_with(slow) && said[1].contains("which `max_elapsed_seconds` does not allow"),
        "{}",
        said[1]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_searched_by_what_people_write() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let query = async |words: &[&str]| {
        let words = [&["events", "query", "--url", url], words].concat();
        run(words).await
    };
    let none = query(&[]).await;
    assert!(none.err.contains("there is no event yet"), "{none:?}");
    for name in ["first", "second"] {
        let root = server
            .api
            .call("tasks.execute", json!({"tasks": [echo(name)]}))
            .await["root_task_id"]
            .take();
        server.api.run_of(&root).await;
    }
    let flows = server
        .api
        .call("tasks.list", json!({"root_only": true}))
        .await;
    let ids = [0, 1].map(|at| flows["tasks"][at]["id"].as_str().unwrap().to_owned());

    for named in ["@last", &ids[0][..13]] {
        let found = query(&["--flow", named, "--since", "1h", "--until", "2999-01-01"])
            .await
            .done();
        assert!(
            found.contains(&ids[0]) && !found.contains(&ids[1]),
            "{named}: {found}"
        );
    }
    let none = query(&["--actor", "user:nobody", "--since", "1h"]).await;
    assert!(
        none.err
            .contains("no event fits --actor user:nobody and --since "),
        "{none:?}"
    );
    let wrong = query(&["--since", "soon"]).await.refused(2);
    assert!(wrong.contains("--since: `soon` is not a time"), "{wrong}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_begins_at_a_time() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let root = server
        .api
        .call("tasks.execute", json!({"tasks": [echo("early")]}))
        .await["root_task_id"]
        .take();
    server.api.run_of(&root).await;
    let first = async |since: &str| {
        let mut command = program::command();
        command
            .args(["events", "tail", "--since", since, "--url", url])
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // What a tail has begun behind is told by what comes next.
        let mut named = None;
        while named.is_none() {
            let made = echo("late");
            server
                .api
                .call("tasks.execute", json!({"tasks": [made]}))
                .await;
            let wait = std::time::Duration::from_millis(500);
            named = tokio::time::timeout(wait, lines.next_line()).await.ok();
        }
        child.kill().await.unwrap();
        let line = named.unwrap().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["root_task_id"].take()
    };

    assert_eq!(first("1h").await, root, "the first event since then");
    assert_ne!(first("0s").await, root, "only what happens from now on");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_has_left_pending_is_listed_as_skipped() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--allow-command", "sh"]).await;
    let url = server.api.url.as_str();
    let tasks = json!([{"id": "r", "name": "r"},
        {"id": "a", "name": "a", "parent_id": "r", "schemas": {"method": "command_executor"},
            "inputs": {"program": "sh", "args": ["-c", "exit 1"]}},
        {"id": "b", "name": "b", "parent_id": "r", "schemas": {"method": "echo_executor"}, "dependencies": [{"id": "a"}]}]);
    let root = server
        .api
        .call("tasks.execute", json!({ "tasks": tasks }))
        .await["root_task_id"]
        .take();
    server.api.run_of(&root).await;
    let list = run(["tasks", "list", "--all", "--url", url]).await.done();
    let line = list.lines().find(|line| line.ends_with("  b"));
    assert!(
        line.is_some_and(|line| line.contains("○ skipped")),
        "{list}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_and_methods_complete_themselves_and_nothing_is_said_when_they_cannot() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let made = server
        .api
        .call("tasks.create", echo("to be completed"))
        .await;
    let id = made["id"].as_str().unwrap();
    let completed = async |shell: &str, words: &[&str]| {
        let at = (words.len() - 1).to_string();
        let variables = [
            ("TASKLEDGER_COMPLETE", shell),
            ("_CLAP_COMPLETE_INDEX", at.as_str()),
            ("_CLAP_IFS", "\n"),
        ];
        let ended = with(&variables, &[&["--"], words].concat()).await;
        assert_eq!(ended.err, "", "{words:?}");
        ended.out
    };

    for shell in ["bash", "zsh", "fish"] {
        let by_prefix = ["taskledger", "tasks", "--url", url, "get", &id[..9]];
        let found = completed(shell, &by_prefix).await;
        assert!(found.contains(id), "{shell}: {found}");
        let commands = completed(shell, &["taskledger", "ta"]).await;
        assert!(commands.contains("tasks"), "{shell}: {commands}");
    }
    let words = completed("bash", &["taskledger", "tasks", "--url", url, "get", "@"]).await;
    assert!(words.contains("@last"), "{words}");
    let methods = [
        "taskledger",
        "tasks",
        "--url",
        url,
        "create",
        "--method",
        "echo",
    ];
    let methods = completed("bash", &methods).await;
    assert!(methods.contains("echo_executor"), "{methods}");
    // Nobody listens, and somebody listens who never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    for url in ["http://127.0.0.1:1", silent.as_str(), "nonsense"] {
        let words = ["taskledger", "tasks", "--url", url, "get", "0f8fad"];
        assert!(!completed("bash", &words).await.contains("0f8fad"), "{url}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn man_pages_and_features_are_those_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    run(["man", pages.to_str().unwrap()]).await.done();
    for page in [
        "taskledger.1",
        "taskledger-tasks-list.1",
        "taskledger-serve.1",
    ] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(
            text.contains(".SH OPTIONS") || text.contains(".SH SUBCOMMANDS"),
            "{page}"
        );
        let title = text.lines().find(|line| line.starts_with(".TH "));
        let source = concat!("\"taskledger ", env!("CARGO_PKG_VERSION"), "\"");
        assert!(
            title.is_some_and(|title| title.contains(source)),
            "{title:?}"
        );
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let said = run(["man", file.to_str().unwrap()]).await.refused(2);
    assert!(said.contains("expected a folder"), "{said}");
    let version = run(["--version"]).await.done();
    for part in [
        "taskledger ",
        "build:",
        "storage:   sqlite",
        "postgres",
        "protocols:",
        "A2A",
    ] {
        assert!(version.contains(part), "{part}: {version}");
    }
    assert_eq!(run(["-V"]).await.done().lines().count(), 1);
}
