//! The program: its output and exit codes, for lists, wrong addresses, a server that keeps a clause, and servers that
//! are wrong on purpose, where the suite must say so and come to an end.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use taskledger_conformance::{all, markdown};

/// Clauses of which none can be kept by luck.
const SAMPLE: &str = "interface/json-rpc";
/// A clause that the least server can keep.
const KEPT: &str = "interface/json-rpc.codes/3-method-not-found";
/// Seconds that the suite waits for an answer that never comes.
const TIMEOUT_SECONDS: &str = "1";
/// How much of a request is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The program without the settings of whoever runs the tests.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskledger-conformance"));
    command
        .env_clear()
        .envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME"))
        .stdin(Stdio::null());
    command
}

/// Runs it; gives the exit code and its report or error.
fn conformance(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = command().arg("--json").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_str(&text);
    let json = json.unwrap_or_else(|error| panic!("{error}: {text} {err}"));
    (output.status.code(), json)
}

/// A server that does this with each connection, until the process ends; its address.
fn serve(server: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.unwrap();
            std::thread::spawn(move || server(connection));
        }
    });
    url
}

#[test]
fn clauses_are_listed_without_a_server() {
    let (code, list) = conformance(&["--list", "--only", "interface/"]);
    let listed = list
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["id"].as_str().unwrap());
    let listed: Vec<_> = listed.collect();
    let ids = all().into_iter().map(|clause| clause.id);
    let ids: Vec<_> = ids.filter(|id| id.contains("interface/")).collect();
    assert_eq!((code, listed), (Some(0), ids));
    let (code, error) = conformance(&["--only", "no such clause"]);
    assert_eq!(code, Some(2), "{error}");
    let page = command().args(["--list", "--markdown"]).output().unwrap();
    assert!(page.stdout == markdown(&all()).into_bytes());
}

#[test]
fn a_wrong_address_is_no_verdict() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (code, answer) = conformance(&["--url", &url]);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        code == Some(4) && message.contains(&url),
        "{code:?}: {answer}"
    );
}

#[test]
fn a_server_that_keeps_the_clauses_that_are_asked_conforms() {
    let arguments = ["--url", &serve(know_no_method), "--only", KEPT];
    let (code, report) = conformance(&arguments);
    assert_eq!(
        (code, &report["conforms"]),
        (Some(0), &json!(true)),
        "{report}"
    );
    assert_eq!(report["clauses"][0]["verdict"], "passed", "{report}");
    let output = command().args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("conforms: no MUST is broken\n"), "{text}");
}

#[test]
fn a_server_that_says_nothing_sound_fails() {
    every_must_fails(answer_nothing_sound);
}

#[test]
fn a_server_that_never_answers_fails() {
    every_must_fails(hang);
}

#[test]
fn a_server_that_closes_fails() {
    every_must_fails(drop);
}

#[test]
fn a_server_that_echoes_fails() {
    every_must_fails(echo);
}

/// Runs the sample against a server that does this with each connection.
fn every_must_fails(server: fn(TcpStream)) {
    let url = serve(server);
    let arguments = [
        "--url",
        &url,
        "--only",
        SAMPLE,
        "--timeout",
        TIMEOUT_SECONDS,
    ];
    let (code, report) = conformance(&arguments);
    let lines = report["clauses"].as_array().unwrap();
    let musts = || {
        lines
            .iter()
            .filter(|line| line["level"].as_str().unwrap().starts_with("MUST"))
    };
    let kept: Vec<_> = musts()
        .filter(|line| line["verdict"] != "failed" && line["verdict"] != "not testable")
        .map(ToString::to_string)
        .collect();
    assert!(
        code == Some(1) && kept.is_empty() && musts().count() >= 20,
        "{code:?}: {}",
        kept.join("\n")
    );
}

/// `200 {}`, whatever was asked, as often as it is asked.
fn answer_nothing_sound(connection: TcpStream) {
    answer_each(connection, |_| "{}".to_owned());
}

/// The request as its own answer: the id is right, and nothing else.
fn echo(connection: TcpStream) {
    answer_each(connection, str::to_owned);
}

/// No method is known, which is said as it must be.
fn know_no_method(connection: TcpStream) {
    answer_each(connection, |body| {
        let call: Value = serde_json::from_str(body).unwrap();
        let error = json!({"code": -32601, "message": "Method not found"});
        json!({"jsonrpc": "2.0", "id": call["id"], "error": error}).to_string()
    });
}

/// Reads and never answers, until the client goes away.
fn hang(mut connection: TcpStream) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while connection.read(&mut chunk).is_ok_and(|read| read > 0) {}
}

fn answer_each(mut connection: TcpStream, answer: fn(&str) -> String) {
    while let Some(body) = request(&mut connection) {
        let body = answer(&body);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        if connection
            .write_all(format!("{head}{body}").as_bytes())
            .is_err()
        {
            return;
        }
    }
}

/// The body of the next request; none when the client has gone away.
fn request(connection: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let lengths = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = lengths.map_or(0, |length| length.trim().parse().unwrap());
            let begin = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            if bytes.len() >= begin + length {
                return Some(String::from_utf8_lossy(&bytes[begin..]).into_owned());
            }
        }
        match connection.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend(&chunk[..read]),
        }
    }
}
