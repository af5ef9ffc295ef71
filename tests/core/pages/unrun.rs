//! Every block of `sh` is run by `tests/whole/pages`, or has its reason here.

use super::{all, root};
use std::collections::BTreeSet;
use taskledger_testkit::pages::Page;

/// It builds the program, which takes minutes; `packaging/try.sh` types it on a bare Debian.
const BUILDS: &str = "it builds the program; packaging/try.sh types it";
/// The tests have no container engine.
const CONTAINERS: &str =
    "it needs a container engine; packaging/image.sh --try and deploy/ are tried in a release";

/// Blocks that no test runs: page, how the first line begins, why.
const UNRUN: [(&str, &str, &str); 26] = [
    ("README.md", "./quickstart.sh", BUILDS),
    (
        "README.md",
        "./test.sh",
        "it runs all tests, this one among them",
    ),
    ("README.md", "cargo install", BUILDS),
    ("docs/quickstart.md", "./quickstart.sh", BUILDS),
    ("docs/quickstart.md", "cargo install", BUILDS),
    (
        "docs/contributing.md",
        "./test.sh",
        "it runs all tests, this one among them",
    ),
    (
        "docs/contributing.md",
        "TASKLEDGER_WRITE_PAGES=1",
        "it writes pages of the checkout",
    ),
    (
        "docs/contributing.md",
        "mdbook build",
        "it needs mdBook; .ci/run runs it",
    ),
    (
        "docs/reference/a2a-requirements.md",
        "taskledger serve",
        "it needs the kit of the A2A project; tests/whole/clients runs its clauses",
    ),
    (
        "docs/reference/conformance.md",
        "cargo install",
        "it builds a program; tests/whole/conformance runs it",
    ),
    (
        "docs/guides/executors.md",
        "cargo run --example",
        "it builds the example; tests/whole/real_workflow.rs runs one",
    ),
    (
        "docs/guides/workers.md",
        "python3 -m venv",
        "it fetches packages; the page is run with the package in PYTHONPATH",
    ),
    (
        "docs/guides/workers.md",
        "npm install",
        "it fetches packages; tests/whole/clients runs workers with the built package",
    ),
    (
        "docs/guides/workers.md",
        "(cd clients/typescript",
        "it fetches packages; .ci/tools.sh builds them",
    ),
    (
        "docs/guides/workers.md",
        "node worker.mjs",
        "it needs the built package; tests/whole/clients runs workers with it",
    ),
    (
        "docs/operating/postgres.md",
        "POSTGRES_PASSWORD=",
        CONTAINERS,
    ),
    ("docs/operating/postgres.md", "umask 077", CONTAINERS),
    ("docs/operating/install.md", "cargo install", BUILDS),
    (
        "docs/operating/install.md",
        "mkdir -p ~/.local",
        "it writes into the home folder; tests of the command line compare both with the options",
    ),
    (
        "docs/operating/install.md",
        "packaging/build.sh",
        "it builds for every target; a release does",
    ),
    (
        "docs/operating/install.md",
        "sha256sum --check",
        "it needs the files of a release; packaging/build.sh writes the sums",
    ),
    (
        "docs/operating/install.md",
        "sudo apt install",
        "it needs root and systemd; packaging/try.sh installs the package",
    ),
    ("docs/operating/install.md", "docker build", CONTAINERS),
    ("docs/operating/install.md", "docker cp", CONTAINERS),
    (
        "docs/operating/install.md",
        "packaging/image.sh",
        "it needs a release build",
    ),
    ("docs/operating/install.md", "docker compose", CONTAINERS),
];

/// Pages beside programs that have tests of their own, and who runs what they show.
const BESIDE: [(&str, &str); 10] = [
    (
        "clients/python/README.md",
        "tests/whole/clients/packages.rs runs the package's tests",
    ),
    (
        "clients/typescript/README.md",
        "tests/whole/clients/packages.rs runs the package's tests",
    ),
    (
        "examples/README.md",
        "tests/whole/real_workflow.rs runs the example, step by step",
    ),
    (
        "examples/agents/README.md",
        "tests/whole/clients/agents.rs runs the agents",
    ),
    (
        "examples/agents/go/README.md",
        "tests/whole/clients/agents.rs runs the agent",
    ),
    (
        "examples/workflow/README.md",
        "tests/whole/clients/examples.rs runs run.sh",
    ),
    (
        "examples/workers/README.md",
        "tests/whole/clients/examples.rs runs run.sh",
    ),
    ("bench/README.md", "it measures for minutes"),
    ("bench/RESULTS.md", "it measures for minutes"),
    ("bench/peers/README.md", "it measures for minutes"),
];

/// What the tests that type commands say.
fn sources() -> String {
    let folder = root().join("tests/whole/pages");
    let of_module = folder.with_extension("rs");
    let entries = std::fs::read_dir(folder).expect("the tests are there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let paths = paths.chain([of_module]);
    let read = |path| std::fs::read_to_string(path).expect("sources can be read");
    paths.map(read).collect()
}

/// Blocks of `sh` that no test runs and that have no reason.
fn faults(pages: &[Page], sources: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut unused: BTreeSet<_> = UNRUN
        .iter()
        .map(|(page, begin, _)| (*page, *begin))
        .collect();
    let is_beside = |page: &&Page| !BESIDE.iter().any(|(name, _)| *name == page.name);
    for page in pages.iter().filter(is_beside) {
        let is_typed = sources.contains(&format!("\"{}\"", page.name));
        let on_postgres = format!("the_commands_work_on_postgres(\"{}\"", page.name);
        let is_typed_on_postgres = sources.contains(&on_postgres);
        for block in page.blocks().iter().filter(|it| it.language == "sh") {
            let has = |word: &str| block.notes.iter().any(|note| note == word);
            let place = format!("{}:{}", page.name, block.line);
            if has("no-run") {
                let row = unused
                    .iter()
                    .find(|(name, begin)| {
                        *name == page.name && block.text.trim_start().starts_with(begin)
                    })
                    .copied();
                match row {
                    Some(row) => {
                        unused.remove(&row);
                    }
                    None => faults.push(format!("{place}: `no-run` without a reason in `UNRUN`")),
                }
            } else if has("postgres") && !is_typed_on_postgres {
                faults.push(format!("{place}: no test on Postgres runs it"));
            } else if !is_typed {
                faults.push(format!("{place}: no test of tests/whole/pages runs it"));
            }
        }
    }
    let unused = unused.iter();
    faults.extend(unused.map(|row| format!("{row:?}: there is no such block any more")));
    faults
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let faults = faults(&all(), &sources());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for (page, _) in BESIDE {
        assert!(root().join(page).is_file(), "{page}");
    }
}

#[test]
fn a_block_that_nobody_runs_is_noticed() {
    let page = |text: &str| Page {
        name: "docs/new.md".to_owned(),
        text: text.to_owned(),
    };
    let of_page = |text: &str, sources: &str| {
        let mut faults = faults(&[page(text)], sources);
        faults.retain(|fault| fault.starts_with("docs/new.md"));
        faults.len()
    };
    let typed = "the_commands_work(\"docs/new.md\")";
    assert_eq!(of_page("```sh\nls\n```\n", typed), 0);
    assert_eq!(of_page("```sh\nls\n```\n", ""), 1);
    assert_eq!(of_page("```sh no-run\nls\n```\n", typed), 1);
    assert_eq!(of_page("```sh postgres\nls\n```\n", typed), 1);
}
