//! The clauses of the protocol, asked of the real program: for each backend one server, all clauses
//! side by side, and every clause that is not judged as it must be is named. Clauses cannot disturb
//! each other: each has tasks with names and users of its own.
//!
//! To look at clauses one by one, `TASKLEDGER_CONFORMANCE=isolated` starts a server for each, and
//! `TASKLEDGER_CONFORMANCE_ONLY=TEXT` asks those only whose id contains the text.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod authenticated;
mod gateway;
mod probe;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use taskledger::clock::SystemClock;
use taskledger_conformance::{Check, Clause, Options, Suite, Verdict, all, markdown};
use taskledger_testkit::server::{Folder, Server};

/// What is missing where everybody is let in.
const AUTHENTICATION: &str = "authentication";

/// Clauses that this server does not keep yet, or not without tokens, what is missing, and the verdict that
/// says so. Each is proven to have it, so that an entry goes when the thing comes. What need not be there is
/// skipped.
const NOT_YET: &[(&str, &str, &str)] = &[
    (
        "interface/authentication/1-supported",
        AUTHENTICATION,
        "skipped",
    ),
    (
        "interface/authentication/2-validates",
        AUTHENTICATION,
        "skipped",
    ),
    (
        "interface/authentication/3-access",
        AUTHENTICATION,
        "skipped",
    ),
    (
        "interface/authentication/4-errors",
        AUTHENTICATION,
        "skipped",
    ),
    (
        "interface/authentication/5-header",
        AUTHENTICATION,
        "skipped",
    ),
    ("interface/errors/6-unauthorized", AUTHENTICATION, "skipped"),
    ("semantics/trees/16-access", AUTHENTICATION, "skipped"),
    ("semantics/errors/4-unauthorized", AUTHENTICATION, "skipped"),
    (
        "semantics/errors/14-not-for-others",
        AUTHENTICATION,
        "skipped",
    ),
];

/// 32 bytes in base64.
const SEALING_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A server for the clauses. The receiver of callbacks is on this machine, and refuses some of them
/// once. Callbacks have secrets, which a server on Postgres keeps only with a key.
async fn server(folder: &Folder) -> Server {
    server_with(folder, &[]).await
}

/// The same with more arguments.
async fn server_with(folder: &Folder, more: &[&str]) -> Server {
    let mut arguments = vec![
        "--log-level",
        "info",
        "--egress-allow-net",
        "127.0.0.1/32",
        "--webhook-schedule",
        "0,1,1",
    ];
    let key = folder.path().join("keys");
    if folder.url().is_some() {
        write_private(&key, SEALING_KEY);
        arguments.extend(["--secrets-key-file", key.to_str().unwrap()]);
    }
    arguments.extend(more);
    Server::start_with(folder, &arguments).await
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    let readable_by_its_owner = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, readable_by_its_owner).unwrap();
}

/// The address that the suite takes.
fn address(server: &Server) -> &str {
    server.api.url.trim_end_matches('/')
}

fn clause(id: &str) -> Clause {
    let found = all().into_iter().find(|clause| clause.id == id);
    found.expect("the id comes from the list")
}

/// What is missing for the clause, and the verdict that says so.
fn not_yet(id: &str) -> Option<(&'static str, &'static str)> {
    let entry = NOT_YET.iter().find(|(known, ..)| *known == id);
    entry.map(|(_, missing, verdict)| (*missing, *verdict))
}

/// What is wrong with this verdict on the clause, if anything. `missing` says what the server does not have
/// that the clause needs, and the verdict that says so.
fn fault(id: &str, verdict: &Verdict, missing: Option<(&str, &str)>) -> Option<String> {
    let (verdict, evidence) = (verdict.name(), verdict.text());
    // Says nothing of the server: the check itself broke, or waited for ever.
    if verdict == "failed" && evidence.starts_with("the check ") {
        return Some(format!("{id}: {evidence}"));
    }
    let (missing, expected) = missing.unwrap_or(("nothing", "passed"));
    let right = verdict == expected || (verdict == "not testable" && expected == "passed");
    let text = format!("{id}: {verdict}: {evidence}: expected {expected}, as {missing} is missing");
    (!right).then_some(text)
}

/// Asks clauses of one server, side by side; what is wrong with the verdicts.
async fn faults(clauses: &[Clause], folder: Folder) -> Vec<String> {
    let server = server(&folder).await;
    let clock = SystemClock::default();
    let suite = Suite::new(Options::new(address(&server)), &clock).unwrap();
    let report = suite.run(clauses, |_| {}).await;
    server.kill().await;
    let lines = report.lines.iter();
    lines
        .filter_map(|line| fault(line.id, &line.verdict, not_yet(line.id)))
        .collect()
}

/// Every clause is judged as it must be, on servers in places that `folder` makes.
async fn every_clause_is_kept(folder: impl AsyncFn() -> Folder) {
    let mut clauses = all();
    if let Ok(text) = std::env::var("TASKLEDGER_CONFORMANCE_ONLY") {
        clauses.retain(|clause| clause.id.contains(&text));
    }
    assert!(!clauses.is_empty(), "TASKLEDGER_CONFORMANCE_ONLY fits none");
    let mut found = Vec::new();
    match std::env::var("TASKLEDGER_CONFORMANCE").as_deref() {
        Err(_) => found = faults(&clauses, folder().await).await,
        Ok("isolated") => {
            for clause in clauses.chunks(1) {
                if matches!(clause[0].check, Check::Test { .. }) {
                    println!("{}", clause[0].id);
                    found.extend(faults(clause, folder().await).await);
                }
            }
        }
        Ok(other) => panic!("TASKLEDGER_CONFORMANCE is `isolated` or not set, not `{other}`"),
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_on_sqlite() {
    every_clause_is_kept(async || Folder::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_on_postgres() {
    every_clause_is_kept(Folder::with_database).await;
}

#[test]
fn the_page_lists_the_clauses() {
    let page = include_str!("../../CONFORMANCE.md");
    assert!(
        page == markdown(&all()),
        "CONFORMANCE.md is out of date: \
         cargo run -p taskledger-conformance -- --list --markdown > CONFORMANCE.md"
    );
}

#[test]
fn what_is_not_kept_yet_is_a_clause() {
    let clauses = all();
    for (id, missing, verdict) in NOT_YET {
        let known = clauses.iter().filter(|clause| clause.id == *id).count();
        let entries = NOT_YET.iter().filter(|(other, ..)| other == id).count();
        let negative = ["failed", "skipped"].contains(verdict);
        assert!(
            known == 1 && entries == 1 && !missing.is_empty() && negative,
            "`{id}` in NOT_YET"
        );
    }
}
