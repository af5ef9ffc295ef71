//! The conformance suite, run against the real program: one test for each clause and endpoint, and
//! tests that the suite itself can tell a wrong server.
//!
//! The clauses are made by the program, so their tests are named at run time.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod faulty;
mod gateway;
#[path = "../common/postgres.rs"]
mod postgres;
mod probe;
mod program;

use libtest_mimic::{Arguments, Failed, Trial};
use program::Server;
use std::collections::BTreeMap;
use std::process::ExitCode;
use taskledger::clock::SystemClock;
use taskledger::conformance::{Check, Clause, Options, Suite, all, markdown};

/// Clauses that this server does not keep yet, what is missing, and the verdict that says so. Each is
/// proven to have it, so that an entry goes when the thing comes. What need not be there is skipped.
const NOT_YET: &[(&str, &str, &str)] = &[
    ("interface/standards/3-a2a", "A2A calls", "failed"),
    ("interface/transport.a2a/1-http", "A2A calls", "failed"),
    (
        "interface/transport.a2a/5-rpc-endpoint",
        "A2A calls",
        "failed",
    ),
    ("interface/a2a-mapping/1-id", "A2A tasks", "skipped"),
    ("interface/a2a-mapping/2-status", "A2A tasks", "skipped"),
    ("interface/a2a-mapping/3-result", "A2A tasks", "skipped"),
    ("interface/a2a-mapping/4-error", "A2A tasks", "skipped"),
    ("interface/a2a-mapping/5-user-id", "A2A tasks", "skipped"),
    ("interface/a2a-mapping/6-instance", "A2A tasks", "skipped"),
    ("interface/a2a-mapping/7-history", "A2A tasks", "skipped"),
    ("interface/a2a-mapping/8-mapped", "A2A tasks", "skipped"),
    ("interface/a2a-methods/2-response", "A2A tasks", "skipped"),
    (
        "interface/a2a-methods/3-status-message",
        "A2A tasks",
        "skipped",
    ),
    ("interface/a2a-methods/4-protocol", "A2A tasks", "skipped"),
    (
        "interface/authentication/1-supported",
        "authentication",
        "skipped",
    ),
    (
        "interface/authentication/2-validates",
        "authentication",
        "skipped",
    ),
    (
        "interface/authentication/3-access",
        "authentication",
        "skipped",
    ),
    (
        "interface/authentication/4-errors",
        "authentication",
        "skipped",
    ),
    (
        "interface/authentication/5-header",
        "authentication",
        "skipped",
    ),
    (
        "interface/errors/6-unauthorized",
        "authentication",
        "skipped",
    ),
    ("interface/requirements/2-a2a", "A2A calls", "failed"),
    ("semantics/trees/16-access", "authentication", "skipped"),
    (
        "semantics/errors/4-unauthorized",
        "authentication",
        "skipped",
    ),
    (
        "semantics/errors/14-not-for-others",
        "authentication",
        "skipped",
    ),
];

/// Where calls go, and how its tests are named.
const ENDPOINTS: [(&str, &str); 2] = [("root", "/"), ("tasks", "/tasks")];

fn main() -> ExitCode {
    let mut trials = vec![
        Trial::test("the_page_lists_the_clauses", the_page_lists_the_clauses),
        Trial::test("what_is_not_kept_yet_is_a_clause", not_yet_names_clauses),
        Trial::test(
            "the_program_reports_exactly_what_is_not_kept",
            whole_program,
        ),
        Trial::test(
            "a_wrong_address_is_no_verdict",
            a_wrong_address_is_no_verdict,
        ),
    ];
    trials.push(Trial::test(
        "clauses_are_listed_without_a_server",
        clauses_are_listed,
    ));
    trials.extend(faulty::trials());
    trials.extend(gateway::trials());
    trials.extend(probe::trials());
    trials.extend(on_postgres());
    for (prefix, path) in ENDPOINTS {
        for clause in all() {
            if matches!(clause.check, Check::Test { .. }) {
                let id = clause.id;
                let name = format!("{prefix}::{id}");
                trials.push(Trial::test(name, move || {
                    look_at(&[id], path, Server::start)
                }));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
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

/// What is wrong with this verdict on the clause, if anything.
fn fault(id: &str, verdict: &str, evidence: &str) -> Option<String> {
    // Says nothing of the server: the check itself broke, or waited for ever.
    if verdict == "failed" && evidence.starts_with("the check ") {
        return Some(format!("{id}: {evidence}"));
    }
    let (missing, expected) = not_yet(id).unwrap_or(("nothing", "passed"));
    let right = verdict == expected || (verdict == "not testable" && expected == "passed");
    let text = format!("{id}: {verdict}: {evidence}: expected {expected}, as {missing} is missing");
    (!right).then_some(text)
}

/// Runs clauses, one after the other, against a server of their own.
fn look_at(ids: &[&str], path: &str, start: fn() -> Server) -> Result<(), Failed> {
    let server = start();
    let mut options = Options::new(&server.url);
    path.clone_into(&mut options.path);
    let clock = SystemClock::default();
    let suite = Suite::new(options, &clock)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut faults = Vec::new();
    for id in ids {
        let verdict = runtime.block_on(suite.verdict(&clause(id)));
        faults.extend(fault(id, verdict.name(), verdict.text()));
    }
    server.end();
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failed::from(faults.join("\n")))
}

/// One test for each section of the documents: a server on Postgres takes longer to start, with a
/// database of its own, than a clause to be looked at.
fn on_postgres() -> Vec<Trial> {
    let mut sections: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for clause in all() {
        if matches!(clause.check, Check::Test { .. }) {
            let section: Vec<_> = clause.id.split('/').take(2).collect();
            sections
                .entry(section.join("/"))
                .or_default()
                .push(clause.id);
        }
    }
    let test = |(section, ids): (String, Vec<&'static str>)| {
        let name = format!("postgres::{section}");
        Trial::test(name, move || look_at(&ids, "/", Server::start_on_postgres))
    };
    sections.into_iter().map(test).collect()
}

fn the_page_lists_the_clauses() -> Result<(), Failed> {
    let page = include_str!("../../CONFORMANCE.md");
    if page == markdown(&all()) {
        return Ok(());
    }
    let how = "cargo run -- conformance --list --markdown > CONFORMANCE.md";
    Err(Failed::from(format!(
        "CONFORMANCE.md is out of date: {how}"
    )))
}

fn not_yet_names_clauses() -> Result<(), Failed> {
    let clauses = all();
    for (id, missing, verdict) in NOT_YET {
        let known = clauses.iter().filter(|clause| clause.id == *id).count();
        let entries = NOT_YET.iter().filter(|(other, ..)| other == id).count();
        let negative = ["failed", "skipped"].contains(verdict);
        if known != 1 || entries != 1 || missing.is_empty() || !negative {
            return Err(Failed::from(format!("`{id}` in NOT_YET")));
        }
    }
    Ok(())
}

fn clauses_are_listed() -> Result<(), Failed> {
    let (code, list) = program::conformance(&["--list", "--only", "interface/"]);
    let listed: Vec<_> = list
        .as_array()
        .ok_or("no list")?
        .iter()
        .map(|c| c["id"].as_str())
        .collect();
    let ids: Vec<_> = all()
        .iter()
        .map(|c| c.id)
        .filter(|id| id.contains("interface/"))
        .map(Some)
        .collect();
    let (refused, error) = program::conformance(&["--only", "no such clause"]);
    if code != Some(0) || listed != ids || refused != Some(2) {
        return Err(Failed::from(format!(
            "{code:?} {list}, {refused:?} {error}"
        )));
    }
    Ok(())
}

/// All clauses side by side against one server, by the program itself.
fn whole_program() -> Result<(), Failed> {
    let server = Server::start();
    let (code, report) = program::conformance(&["--url", &server.url]);
    server.end();
    let lines = report["clauses"].as_array().ok_or("no clauses")?;
    let mut faults = Vec::new();
    let mut broken = false;
    for line in lines {
        let (id, verdict) = (
            line["id"].as_str().unwrap(),
            line["verdict"].as_str().unwrap(),
        );
        broken |= verdict == "failed" && line["level"].as_str().unwrap().starts_with("MUST");
        faults.extend(fault(id, verdict, line["evidence"].as_str().unwrap()));
    }
    if code != Some(i32::from(broken)) || report["conforms"] == broken {
        faults.push(format!("exit code {code:?}, a MUST is broken: {broken}"));
    }
    if lines.len() != all().len() {
        faults.push(format!("{} lines for {} clauses", lines.len(), all().len()));
    }
    match faults.as_slice() {
        [] => Ok(()),
        faults => Err(Failed::from(faults.join("\n"))),
    }
}

fn a_wrong_address_is_no_verdict() -> Result<(), Failed> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    drop(listener);
    let (code, answer) = program::conformance(&["--url", &url]);
    match (code, answer["error"]["message"].as_str()) {
        (Some(4), Some(message)) if message.contains(&url) => Ok(()),
        _ => Err(Failed::from(format!("{code:?}: {answer}"))),
    }
}
