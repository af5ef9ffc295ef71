//! Servers that are wrong on purpose: the suite must say so, and must come to an end.

use crate::program::conformance;
use libtest_mimic::{Failed, Trial};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Clauses of which none can be kept by luck.
const SAMPLE: &str = "interface/json-rpc";
/// Seconds that the suite waits for an answer that never comes.
const TIMEOUT_SECONDS: &str = "1";
/// How much of a request is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("faults::a_server_that_says_nothing_sound_fails", || {
            every_must_fails(answer_nothing_sound)
        }),
        Trial::test("faults::a_server_that_never_answers_fails", || {
            every_must_fails(hang)
        }),
        Trial::test("faults::a_server_that_closes_fails", || {
            every_must_fails(drop)
        }),
        Trial::test("faults::a_server_that_echoes_fails", || {
            every_must_fails(echo)
        }),
    ]
}

/// Runs the sample against a server that does this with each connection.
fn every_must_fails(server: fn(TcpStream)) -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    // Ends with the process.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.unwrap();
            std::thread::spawn(move || server(connection));
        }
    });
    let arguments = [
        "--url",
        &url,
        "--only",
        SAMPLE,
        "--timeout",
        TIMEOUT_SECONDS,
    ];
    let (code, report) = conformance(&arguments);
    let lines = report["clauses"].as_array().ok_or("no clauses")?;
    let musts = || {
        lines
            .iter()
            .filter(|line| line["level"].as_str().unwrap().starts_with("MUST"))
    };
    let kept: Vec<_> = musts()
        .filter(|line| line["verdict"] != "failed" && line["verdict"] != "not testable")
        .map(ToString::to_string)
        .collect();
    if code != Some(1) || !kept.is_empty() || musts().count() < 20 {
        return Err(Failed::from(format!("{code:?}: {}", kept.join("\n"))));
    }
    Ok(())
}

/// `200 {}`, whatever was asked, as often as it is asked.
fn answer_nothing_sound(connection: TcpStream) {
    answer_each(connection, |_| "{}".to_owned());
}

/// The request as its own answer: the id is right, and nothing else.
fn echo(connection: TcpStream) {
    answer_each(connection, str::to_owned);
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
