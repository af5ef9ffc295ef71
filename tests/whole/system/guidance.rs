//! What people are told who find nothing, ask for what cannot be, or meet a refusal: what to type next.

use serde_json::{Value, json};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_list_says_what_makes_some_and_leaves_pipes_clean() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    for (words, member, said) in [
        (
            &["tasks", "list"][..],
            "tasks",
            "no tasks; `taskledger run FILE --url URL` starts a workflow",
        ),
        (
            &["tasks", "list", "--status", "failed", "--all"],
            "tasks",
            "no task matches --status failed",
        ),
        (
            &["schedules", "list"],
            "schedules",
            "no schedules; `taskledger schedules create NAME --url URL` makes one",
        ),
        (
            &["workflows", "list"],
            "workflows",
            "no saved workflows; `taskledger workflows save FILE --url URL` saves one",
        ),
        (
            &["secrets", "list"],
            "secrets",
            "no secrets; `taskledger secrets set NAME --url URL` stores one",
        ),
        (
            &["webhooks", "list"],
            "webhooks",
            "no webhooks; `taskledger webhooks create URL --url URL` makes one",
        ),
        (
            &["webhooks", "deliveries", "--since", "1h"],
            "deliveries",
            "no delivery matches --since 1h",
        ),
        (&["tokens", "list", "ci"], "tokens", "no token matches ci"),
        (
            &["workers", "list"],
            "workers",
            "no workers; `taskledger worker --method NAME --url URL -- PROGRAM` starts one",
        ),
        (&["respond"], "tasks", "no task waits for an answer"),
    ] {
        let with_url = || words.iter().copied().chain(["--url", url]);
        let ended = run(with_url()).await;
        assert_eq!(ended.out, "", "{words:?}");
        let told = ended.refused(0).replace(url, "URL");
        assert_eq!(told, format!("taskledger: {said}\n"), "{words:?}");
        let json = run(with_url().chain(["--json"])).await;
        assert_eq!(json.err, "", "{words:?}");
        let json: Value = serde_json::from_str(&json.done()).expect("JSON");
        assert_eq!(json[member], json!([]), "{words:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_name_commands_and_what_would_be_accepted() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    for (words, said) in [
        (
            &["schedules", "get", "x"][..],
            "expected a name of `taskledger schedules list`",
        ),
        (
            &["tasks", "list", "--at", "tomorrow"],
            "--at: `tomorrow` is still to come; expected a time that has passed",
        ),
        (
            &["events", "tail", "--since", "tomorrow"],
            "--since: `tomorrow` is still to come; expected a time that has passed",
        ),
        (
            &["audit", "--principal", "ann"],
            "expected the kind too: `user:ann` or `service:ann`",
        ),
        (
            &["worker", "--method", "echo_executor"],
            "`echo_executor` is built in: its tasks run in the server",
        ),
        (
            &["worker", "--method", "text.*"],
            "expected the whole name of a method",
        ),
    ] {
        let program: &[&str] = match words[0] {
            "worker" => &["--", "cat"],
            _ => &[],
        };
        let words = words.iter().copied().chain(["--url", url]);
        let ended = run(words.chain(program.iter().copied())).await;
        let told = ended.refused(2);
        assert!(told.contains(said), "{told}");
        assert!(!told.contains("asking http"), "{told}");
    }
    let unknown = json!([{"name": "a", "schemas": {"method": "nobody"}}]).to_string();
    let file = folder.path().join("unknown.json");
    std::fs::write(&file, unknown).unwrap();
    let told = run(["run", file.to_str().unwrap(), "--url", url]).await;
    let told = told.refused(2);
    assert!(
        told.contains("expected the name of an executor: `a2a_executor`"),
        "{told}"
    );
    assert!(told.contains("`schemas.type: \"remote\"`"), "{told}");
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    let told = run(["events", "verify", "--data-dir", nowhere]).await;
    let told = told.refused(1);
    assert_eq!(told.matches(nowhere).count(), 1, "{told}");
    server.stop().await;
}
