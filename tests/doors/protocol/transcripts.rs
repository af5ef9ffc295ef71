//! Runs the transcripts of `transcripts/`, each on a server of its own, on both paths and over
//! both versions of HTTP.
//!
//! A transcript is a text of exchanges. `--> ` begins the body of a request (in the notation of
//! `notation.rs`; lines that begin with four blanks go on with it), `<-- ` the body of its answer,
//! in which `...` stands for any text; `<-- nothing` is 204 without a body. Several requests before
//! one answer are all answered so. `>> name: value` before a request sets a header of it (without
//! a value: leaves it out), `>> method: GET` its method, `<< name: value` before an answer demands
//! a header, `<< status: 415` another status than 200. Lines that begin with `#` are comments.

use crate::protocol::harness::{Answer, Client, Http2, Server};
use crate::protocol::notation;

/// One or several requests and what each of them is answered.
#[derive(Debug, Default, Clone)]
struct Exchange {
    line: usize,
    sent: Vec<(String, String)>,
    bodies: Vec<String>,
    headers: Vec<(String, String)>,
    answer: String,
}

fn parse(text: &str) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut now = Exchange::default();
    let header = |rest: &str| {
        let (name, value) = rest.split_once(':').expect("a header has a colon");
        (name.trim().to_owned(), value.trim().to_owned())
    };
    for (at, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix(">>") {
            now.sent.push(header(rest));
        } else if let Some(rest) = line.strip_prefix("<<") {
            now.headers.push(header(rest));
        } else if let Some(rest) = line.strip_prefix("-->") {
            now.line = at + 1;
            now.bodies
                .push(rest.strip_prefix(' ').unwrap_or(rest).to_owned());
        } else if let Some(rest) = line.strip_prefix("<-- ") {
            assert!(
                !now.bodies.is_empty(),
                "line {}: an answer to what?",
                at + 1
            );
            now.answer = rest.to_owned();
            exchanges.push(std::mem::take(&mut now));
        } else if let Some(rest) = line.strip_prefix("    ") {
            let body = match exchanges.last_mut() {
                Some(last) if now.bodies.is_empty() => &mut last.answer,
                _ => now.bodies.last_mut().expect("something to go on with"),
            };
            body.push_str(rest);
        } else {
            let blank = line.is_empty() || line.starts_with('#');
            assert!(blank, "line {}: `{line}`", at + 1);
        }
    }
    assert!(now.bodies.is_empty(), "the last request has no answer");
    exchanges
}

/// Whether `text` is `pattern`, in which `...` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split("...");
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

enum Connection {
    Http1(Client),
    Http2(Http2),
}

impl Connection {
    async fn send(&mut self, path: &str, sent: &[(String, String)], body: &[u8]) -> Answer {
        let mut method = "POST";
        let mut headers = vec![("content-type", "application/json")];
        for (name, value) in sent {
            if name == "method" {
                method = value;
                continue;
            }
            headers.retain(|(n, _)| n != name);
            if !value.is_empty() {
                headers.push((name, value));
            }
        }
        match self {
            Self::Http1(client) => client.send_with(method, path, &headers, body).await,
            Self::Http2(client) => client.send_with(method, path, &headers, body).await,
        }
    }
}

async fn run(name: &str, text: &str) {
    let exchanges = parse(text);
    assert!(!exchanges.is_empty(), "{name} holds exchanges");
    for path in ["/", "/tasks"] {
        for http in ["HTTP/1.1", "HTTP/2"] {
            let server = Server::start().await;
            let mut connection = match http {
                "HTTP/2" => Connection::Http2(Http2::connect(server.addr()).await),
                _ => Connection::Http1(server.connect().await),
            };
            for exchange in &exchanges {
                for body in &exchange.bodies {
                    let bytes = notation::bytes(body);
                    let answer = connection.send(path, &exchange.sent, &bytes).await;
                    let shown = format!("{name}:{} on {path} over {http}", exchange.line);
                    judge(exchange, &answer, &format!("{shown}: {body}\n{answer:?}"));
                }
            }
        }
    }
}

fn judge(exchange: &Exchange, answer: &Answer, place: &str) {
    let (mut status, mut headers) = (200, Vec::new());
    for (name, value) in &exchange.headers {
        match name.as_str() {
            "status" => status = value.parse().expect("a status is a number"),
            _ => headers.push((name, value)),
        }
    }
    if exchange.answer == "nothing" {
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{place}");
        assert_eq!(answer.header("content-type"), None, "{place}");
        return;
    }
    assert_eq!(answer.status, status, "{place}");
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("application/json"), "{place}");
    for (name, value) in headers {
        assert_eq!(answer.header(name), Some(value.as_str()), "{place}");
    }
    serde_json::from_str::<serde::de::IgnoredAny>(&answer.body).expect("an answer is JSON");
    let pattern = String::from_utf8(notation::bytes(&exchange.answer)).expect("answers are text");
    assert!(
        matches(&pattern, &answer.body),
        "{place}\nexpected: {pattern}"
    );
}

macro_rules! transcripts {
    ($($name:ident)+) => {
        $(#[tokio::test]
        async fn $name() {
            let file = concat!(stringify!($name), ".txt");
            run(file, include_str!(concat!("transcripts/", stringify!($name), ".txt"))).await;
        })+

        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

transcripts! {
    j01_what_is_json
    j02_absent_and_null_ids
    j03_ids_come_back_as_they_were_sent
    j04_an_invalid_request_gets_its_id_back
    j05_invalid_requests_are_answered
    j06_batches
    j07_parameters
    j08_names_of_methods
    j09_members_beside_the_standard_ones
    j10_members_that_occur_twice
    j11_depth
    j12_http
    j13_messages
    j14_error_data
    j15_codes
    j16_notifications
    j17_faults_of_the_server
    j18_everywhere_alike
}

#[test]
fn every_corner_has_a_transcript_and_every_transcript_runs() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/doors/protocol/transcripts"
    );
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let names: Vec<String> = NAMES.iter().map(|n| format!("{n}.txt")).collect();
    assert_eq!(files, names);
    for corner in 1..=18 {
        let prefix = format!("j{corner:02}_");
        assert!(names.iter().any(|n| n.starts_with(&prefix)), "{prefix}");
    }
}

#[test]
fn dots_stand_for_any_text_and_everything_else_for_itself() {
    for (pattern, text) in [
        ("ab", "ab"),
        ("a...", "a"),
        ("a...c", "abbc"),
        ("...b...", "abc"),
        ("a...b...c", "a.b.b.c"),
    ] {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [
        ("ab", "abc"),
        ("b", "ab"),
        ("a...c", "ab"),
        ("...b", "ba"),
        ("ab...ba", "aba"),
    ] {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}
