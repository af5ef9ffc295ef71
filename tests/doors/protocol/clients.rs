//! The clients that the command line uses, and the exit codes of the program itself.

use crate::protocol::fake::{Fake, methods};
use crate::protocol::harness::Server;
use serde_json::json;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use taskledger::cli::{Api, ApiError, HttpApi, LocalApi};
use taskledger::clock::SystemClock;
use taskledger::transport::jsonrpc::Dispatcher;
use taskledger_testkit::program;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Of no task: the fake server has none.
const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// Runs the program with these arguments and no variables that would change them.
async fn taskledger(arguments: &[&str]) -> Output {
    let mut command = Command::new(program::path());
    command.args(arguments).env_remove("TASKLEDGER_URL");
    tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn the_same_call_has_the_same_outcome_over_http_and_inside_the_process() {
    let server = Server::start().await;
    let clock = Arc::new(SystemClock::default());
    let local = Dispatcher::new(Arc::new(Fake::default()), methods(), clock.clone());
    let local = LocalApi::new(Arc::new(local), clock);
    let http = HttpApi::new(&format!("http://{}", server.addr())).unwrap();
    for (method, params) in [
        ("test.echo", json!({"n": 1, "b": ["é", null, 1.5]})),
        ("test.missing", json!({})),
        ("no.such", json!({})),
        ("test.echo", json!([1, 2, 3])),
    ] {
        let outcome = http.call(method, params.clone()).await;
        assert_eq!(outcome, local.call(method, params).await, "{method}");
        assert_eq!(
            outcome.is_ok(),
            method == "test.echo" && outcome == Ok(json!({"n": 1, "b": ["é", null, 1.5]}))
        );
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_from_one_of_another_kind() {
    let url = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let gone = HttpApi::new(&url)
        .unwrap()
        .call("test.echo", json!({}))
        .await;
    assert!(matches!(gone, Err(ApiError::Connection(text)) if text.contains(&url)));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stranger = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        let answer =
            "HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\nconnection: close\r\n\r\nsorry";
        stream.write_all(answer.as_bytes()).await.unwrap();
    };
    let api = HttpApi::new(&url).unwrap();
    let (other, ()) = tokio::join!(api.call("test.echo", json!({})), stranger);
    assert!(matches!(other, Err(ApiError::Protocol(text)) if text.contains("404")));

    for bad in ["http://u:p@127.0.0.1", "127.0.0.1:8000", "", "ftp://x"] {
        assert!(
            matches!(HttpApi::new(bad), Err(ApiError::Connection(_))),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn the_program_says_by_its_exit_code_what_happened() {
    let server = Server::start().await;
    let url = format!("http://{}", server.addr());
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let refused = taskledger(&["tasks", "get", ID, "--url", &url]).await;
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        text.starts_with("taskledger: Method not found (-32601)"),
        "{text}"
    );
    for (arguments, code) in [
        (vec!["--version"], 0),
        (vec!["completions", "bash"], 0),
        (vec!["tasks", "nonsense"], 2),
        (vec!["run", "/no/such/file", "--url", &url], 2),
        // The fake server has no such method: refused.
        (vec!["tasks", "get", ID, "--url", &url], 2),
        (vec!["tasks", "list", "--url", &gone], 4),
    ] {
        let output = taskledger(&arguments).await;
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        assert_eq!(output.stdout.is_empty(), code != 0, "{arguments:?}");
        assert_eq!(output.stderr.is_empty(), code == 0, "{arguments:?}");
    }
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = tokio::task::spawn_blocking(move || {
        Command::new(program::path())
            .args(["completions", "zsh"])
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
    });
    let output = child.await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty());
}
