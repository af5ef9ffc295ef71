//! The documentation is whole and true: links lead somewhere, every page is in the book, examples parse, the program
//! knows the commands that it shows, and what is generated from the code is current. (`tests/whole/pages` runs the
//! commands.)

mod book;
mod clients;
mod examples;
mod links;
mod numbers;
mod owasp;
mod paths;
mod reference;
mod shell;
mod unrun;

use std::collections::BTreeSet;
use std::path::Path;
use taskledger_testkit::pages::{Page, pages};

/// Where users and contributors read.
const ALL: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "bench",
    "clients",
    "deploy",
    "docs",
    "examples",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn all() -> Vec<Page> {
    pages(root(), &ALL)
}

fn page(name: &str) -> Page {
    pages(root(), &[name]).remove(0)
}

/// Lines of the README, which is a map and no manual.
const README_LINES_MAX: usize = 120;
/// Lines of ARCHITECTURE.md, which is read in one sitting.
const ARCHITECTURE_LINES_MAX: usize = 250;
/// Characters of a cell of its tables; what is longer belongs into docs/maintaining.md.
const CELL_CHARS_MAX: usize = 400;
/// Lines that are seen at once.
const FIRST_SCREEN: usize = 45;

#[test]
fn the_readme_is_short_and_begins_with_the_two_commands() {
    let readme = page("README.md");
    let count = readme.text.lines().count();
    assert!(count <= README_LINES_MAX, "{count} lines");
    let commands: Vec<_> = readme
        .blocks()
        .into_iter()
        .filter(|block| block.line < FIRST_SCREEN)
        .map(|block| block.text)
        .collect();
    for command in ["./quickstart.sh\n", "./test.sh\n"] {
        assert!(commands.iter().any(|c| c == command), "{commands:?}");
        let program = root().join(command.trim());
        assert!(program.is_file(), "{}", program.display());
    }
}

#[test]
fn every_error_is_listed_with_its_cause_and_what_to_do() {
    use taskledger::transport::jsonrpc::ErrorKind;
    let errors = page("docs/reference/errors.md");
    for kind in ErrorKind::ALL {
        let (code, message) = kind.row();
        let begin = format!("| {code} | {message} | ");
        let row = errors.text.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("docs/reference/errors.md has no row `{begin}`"));
        let cells: Vec<_> = row.trim_matches('|').split(" | ").collect();
        assert!(
            cells.len() == 4 && cells.iter().all(|cell| !cell.trim().is_empty()),
            "cause and what to do: {row}"
        );
    }
}

/// The statuses that `src/transport/http/refusal.rs` names.
fn statuses_of_refusals() -> BTreeSet<u16> {
    use axum::http::StatusCode;
    let path = root().join("src/transport/http/refusal.rs");
    let source = std::fs::read_to_string(path).expect("it is there");
    let names = source.split("StatusCode::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    });
    let reason = |status: StatusCode| {
        let reason = status.canonical_reason().unwrap_or_default();
        reason.to_uppercase().replace([' ', '-'], "_")
    };
    let known = |name: &str| {
        let all = (400..600).filter_map(|code| StatusCode::from_u16(code).ok());
        all.into_iter().find(|status| reason(*status) == name)
    };
    names.filter_map(known).map(|s| s.as_u16()).collect()
}

#[test]
fn every_status_of_a_refusal_is_listed() {
    let errors = page("docs/reference/errors.md");
    let statuses = statuses_of_refusals();
    assert!(
        statuses.contains(&405) && statuses.contains(&426),
        "{statuses:?}"
    );
    for status in statuses {
        let row = format!("\n| {status} | ");
        assert!(
            errors.text.contains(&row),
            "docs/reference/errors.md has no row of {status}"
        );
    }
}

#[test]
fn every_built_in_executor_is_listed() {
    use taskledger::engine::executor::{BuiltInOptions, Registry, command, with_built_ins};
    let options = BuiltInOptions {
        command: Some(command::Options::allowing(["true"])),
        ..BuiltInOptions::default()
    };
    let built = with_built_ins(Registry::builder(), options).expect("`true` is everywhere");
    let page = page("docs/guides/executors.md");
    let registry = built.build().expect("names are different");
    for executor in registry.iter() {
        let row = format!("| `{}`", executor.name());
        assert!(page.text.contains(&row), "docs/guides/executors.md: {row}");
    }
}

#[test]
fn the_architecture_is_short_and_its_tables_can_be_read() {
    let page = page("ARCHITECTURE.md");
    let count = page.text.lines().count();
    assert!(count <= ARCHITECTURE_LINES_MAX, "{count} lines");
    let rows = page.text.lines().filter(|line| line.starts_with('|'));
    for cell in rows.flat_map(|row| row.split(" | ")) {
        let chars = cell.chars().count();
        assert!(chars <= CELL_CHARS_MAX, "{chars} characters: {cell}");
    }
}
