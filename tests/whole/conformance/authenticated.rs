//! The clauses asked of a server that lets in nobody without a token, by a service that may act for all
//! users, with a user beside it who may not: what is skipped where everybody is let in is kept here.

use super::{AUTHENTICATION, address, fault, not_yet, server_with, write_private};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use taskledger::clock::SystemClock;
use taskledger_conformance::{Clause, Options, Suite, all};
use taskledger_testkit::program;
use taskledger_testkit::server::{Folder, Server};

/// What the suite needs: its tasks belong to many users.
const SUITE: [&str; 5] = [
    "tasks:read",
    "tasks:write",
    "tasks:run",
    "worker",
    "users:any",
];
/// What the other user may, with flows of its own.
const OTHER: [&str; 4] = ["tasks:read", "tasks:write", "tasks:run", "webhooks"];

/// A server that needs tokens, and the first of them. One caller may do as much as the suite does.
async fn guarded(folder: &Folder) -> (Server, String) {
    let mut arguments = vec!["--auth", "on", "--rate-per-second", "0"];
    if folder.url().is_none() {
        let server = server_with(folder, &arguments).await;
        let first = std::fs::read_to_string(folder.data().join("admin.token")).unwrap();
        return (server, first.trim().to_owned());
    }
    // Without a data folder the operator brings it.
    let first = program::run(["tokens", "generate"]).await.done();
    let path = folder.path().join("operator.token");
    write_private(&path, &first);
    arguments.extend(["--admin-token-file", path.to_str().unwrap()]);
    let server = server_with(folder, &arguments).await;
    (server, first.trim().to_owned())
}

/// Makes a token with the first one; gives the headers that show it.
async fn credentials(server: &Server, first: &str, new: Value) -> HeaderMap {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tokens.create", "params": new});
    let request = server.api.http.post(&server.api.url).json(&call);
    let answer = request.bearer_auth(first).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    let Some(token) = answer["result"]["token"].as_str() else {
        panic!("tokens.create: {answer}");
    };
    let shown = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, shown)])
}

/// What is missing here too.
fn missing(id: &str) -> Option<(&'static str, &'static str)> {
    not_yet(id).filter(|(what, _)| *what != AUTHENTICATION)
}

/// Every clause is judged as it must be where callers need tokens; none about access is skipped.
async fn kept_with_tokens(clauses: &[Clause], folder: Folder) {
    let (server, first) = guarded(&folder).await;
    let suite = json!({"name": "conformance", "kind": "service", "scopes": SUITE});
    let other = json!({"name": "somebody", "kind": "user", "scopes": OTHER});
    let mut options = Options::new(address(&server));
    options.headers = credentials(&server, &first, suite).await;
    options.other_headers = credentials(&server, &first, other).await;
    let clock = SystemClock::default();
    let report = Suite::new(options, &clock).unwrap();
    let report = report.run(clauses, |_| {}).await;
    server.kill().await;
    let lines = report.lines.iter();
    let found: Vec<_> = lines
        .filter_map(|line| fault(line.id, &line.verdict, missing(line.id)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_with_tokens_on_sqlite() {
    kept_with_tokens(&all(), Folder::new()).await;
}

/// Only those that need tokens: the others do not depend on who calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn access_is_kept_with_tokens_on_postgres() {
    let mut clauses = all();
    clauses.retain(|clause| not_yet(clause.id).is_some_and(|(what, _)| what == AUTHENTICATION));
    assert_eq!(clauses.len(), 9);
    kept_with_tokens(&clauses, Folder::with_database().await).await;
}
