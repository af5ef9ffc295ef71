//! `taskledger a2a` as scripts use it: with a taskledger server, and with an agent that is none.

use serde_json::{Value, json};
use taskledger_testkit::program::{Ended, run};
use taskledger_testkit::receiver::{Answer, Receiver};
use taskledger_testkit::server::{Folder, Server};

const ECHO: &str = r#"{"tasks": [{"name": "echo", "schemas": {"method": "echo_executor"}, "inputs": {"text": "hello"}}]}"#;
const LONG: &str = r#"{"tasks": [{"name": "long", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600000}}]}"#;
const ASK: &str = r#"{"tasks": [{"name": "ask", "schemas": {"method": "approval_executor"}, "inputs": {"question": "Send it?"}}]}"#;

async fn a2a(arguments: &[&str]) -> Ended {
    run([&["a2a"], arguments].concat()).await
}

/// Ids and times are not the same twice.
fn normal(text: &str, known: &[(&str, &str)]) -> String {
    let replaced = known.iter().fold(text.to_owned(), |text, (value, name)| {
        text.replace(value, name)
    });
    let lines = replaced.lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_sent_shown_listed_and_watched() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.trim_end_matches('/');

    let card = a2a(&["card", url]).await.done();
    let card = normal(
        &card,
        &[(url, "URL"), (env!("CARGO_PKG_VERSION"), "VERSION")],
    );
    let begins = "taskledger VERSION\nDurable orchestration and execution of task trees for agents\n\
                  called over JSONRPC at URL/a2a\ncan: streaming";
    assert!(card.starts_with(begins), "{card}");
    assert!(
        card.contains("\nHTTP+JSON  1.0      URL/a2a/rest"),
        "{card}"
    );

    let file = folder.path().join("tasks.json");
    std::fs::write(&file, ECHO).unwrap();
    let file = format!("@{}", file.display());
    let sent = a2a(&["send", url, "--data", &file, "--context-id", "c-1"])
        .await
        .done();
    let id = sent.split_whitespace().nth(1).unwrap().to_owned();
    let told = "task ID  completed\ncontext c-1\nartifact result (echo):\n  {\"text\":\"hello\"}";
    assert_eq!(normal(&sent, &[(&id, "ID")]), told);
    let again = a2a(&["get", url, &id]).await.done();
    assert_eq!(again, sent);
    let as_json = a2a(&["get", url, &id, "--json", "--binding", "HTTP+JSON"])
        .await
        .done();
    assert_eq!(parsed(&as_json)["status"]["state"], "TASK_STATE_COMPLETED");
    let watched = a2a(&["watch", url, &id]).await.done();
    assert_eq!(watched, sent);

    let listed = a2a(&["list", url, "--context-id", "c-1", "--json"])
        .await
        .done();
    assert_eq!(parsed(&listed)["tasks"][0]["id"], id);
    let listed = a2a(&["list", url, "--status", "completed"]).await.done();
    assert!(listed.starts_with("TASK "), "{listed}");
    assert!(listed.contains(&format!("{id}  completed  20")), "{listed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_a_task_is_cancelled_and_refusals_have_their_exit_codes() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.clone();
    let url = url.trim_end_matches('/');

    let asked = a2a(&["send", url, "--data", ASK]).await.done();
    let id = asked.split_whitespace().nth(1).unwrap().to_owned();
    assert!(asked.contains("  input required\n"), "{asked}");
    assert!(asked.contains("asks:\n  Send it?\n"), "{asked}");
    let answered = a2a(&["send", url, "yes", "--task", &id]).await.done();
    assert!(
        answered.starts_with(&format!("task {id}  completed\n")),
        "{answered}"
    );

    let long = a2a(&["send", url, "--data", LONG, "--no-wait", "--json"])
        .await
        .done();
    let id = parsed(&long)["id"].as_str().unwrap().to_owned();
    let cancelled = a2a(&["cancel", url, &id]).await.done();
    assert!(
        cancelled.starts_with(&format!("task {id}  canceled\n")),
        "{cancelled}"
    );
    let told = a2a(&["cancel", url, &id]).await.refused(2);
    assert!(told.contains("TASK_NOT_CANCELABLE (-32002)"), "{told}");
    let watched = a2a(&["watch", url, &id]).await;
    assert_eq!(watched.code, Some(3), "{watched:?}");
    let told = a2a(&["get", url, "no-such-task"]).await.refused(2);
    assert!(told.contains("TASK_NOT_FOUND (-32001)"), "{told}");
    let told = a2a(&["send", url, "hello", "--data", "{"]).await.refused(2);
    assert!(told.contains("--data: not valid JSON"), "{told}");
    server.stop().await;
    let told = a2a(&["card", url]).await.refused(4);
    assert!(told.contains("cannot reach"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_go_to_the_agent_that_was_named_and_to_nobody_else() {
    let (stranger, other) = (Receiver::start().await, Receiver::start().await);
    let card = |url: &str| {
        json!({
            "name": "stranger", "description": "d", "version": "1", "skills": [],
            "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {}, "defaultInputModes": [], "defaultOutputModes": []
        })
    };
    let path = "/.well-known/agent-card.json";
    stranger.answer_at(
        path,
        Answer::status(200).body(card(&other.url("/rpc")).to_string()),
    );
    let url = stranger.url("");
    let header = ["--header", "authorization: Bearer t0k3n"];
    let told = a2a(&[&["send", &url, "hello"], &header[..]].concat())
        .await
        .refused(2);
    assert!(
        told.contains("credentials for one are not sent to the other"),
        "{told}"
    );
    assert_eq!(other.connections(), 0);

    let said = json!({"jsonrpc": "2.0", "id": 1, "result": {"message":
        {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi\u{1b}[2J"}]}}});
    other.answer_at("/rpc", Answer::status(200).body(said.to_string()));
    let hi = a2a(&["send", &url, "hello"]).await.done();
    assert_eq!(hi, "  hi\u{fffd}[2J\n");
    let requests = other.requests();
    assert_eq!(requests[0].header("authorization"), None);
    assert_eq!(requests[0].header("a2a-version"), Some("1.0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_answer_is_of_no_use_counts_as_reached() {
    let stranger = Receiver::start().await;
    let url = stranger.url("");
    let path = "/.well-known/agent-card.json";
    let (html, huge) = ("<html>", "x".repeat(2_000_000));
    for (body, reason) in [(html, "no JSON object"), (&*huge, "has more than")] {
        stranger.answer_at(path, Answer::status(200).body(body.to_owned()));
        let told = a2a(&["send", &url, "hello"]).await.refused(1);
        assert!(told.contains(reason), "{told}");
    }
}
