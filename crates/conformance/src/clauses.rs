//! The clauses, one file for each part of the documents.
//!
//! # How to write a clause
//!
//! 1. Find the sentence. Its id is `document/section/number-what-it-says`: `document` is `interface`,
//!    `data-model`, `validation`, `semantics` or `workflows` (RFC-0024); numbers run from 1 in each section, in the
//!    order of the sentences. Every sentence has an id of its own; one that repeats another says so with
//!    `.same_as(&["validation/uuid/1-..."])` and shares its check. A new section goes into its document's list in the
//!    tests below.
//! 2. Add a line to `clauses()` of the file: `must`, `must_not`, `should`, `may` or `decided`, with
//!    the id, one sentence of your own that says what is demanded, and the name of the check;
//!    `not_testable` with the reason if no call can show it.
//! 3. Write the check below: `async fn its_claim(probe: &Probe) -> Outcome`. Look at the negative
//!    side too. End with `seen("what convinced you")`.
//!
//! ```text
//! must("interface/tasks.get/2-unknown-task", "a task that does not exist is an error", get_of_nothing)
//!
//! async fn get_of_nothing(probe: &Probe) -> Outcome {
//!     let task = probe.create(&probe.task("kept")).await?;
//!     ensure!(probe.get(&task).await?["name"] == probe.name("kept"), "task {task} has another name");
//!     let error = probe.refused("tasks.get", json!({"task_id": UNKNOWN_ID}), -32001).await?;
//!     seen(error.to_string())
//! }
//! ```
//!
//! What a [`Probe`](super::Probe) offers:
//! * calls: `result(method, params)` must succeed, `refused(method, params, code)` must not,
//!   `call(method, params)` gives a `Reply` for `expect_result`, `expect_error(code)`,
//!   `expect_error_of(&codes)`, `expect_any_error`; `request(&object)` sends a whole request object
//!   (`metadata`), `batch(&requests)`, `post(bytes)`, `raw(bytes, headers)` and
//!   `http(method, path, headers, bytes)` give an unchecked `Answer`;
//! * tasks: `task(alias)`, `slow(alias, ms)`, `failing(alias)`, `group(alias)`, shaped by `.with(field,
//!   value)`, `.without(field)`, `.below(parent)`, `.after(id)`, `.after_end_of(id)`; `create(&task)`
//!   stores one and gives its id (parents and dependencies: stored ids), `run(&[..])` executes several,
//!   root first (parents and dependencies: aliases) and tells the stored `id(alias)?`; `.value()` and
//!   `.element()` are their JSON;
//! * waiting: `wait_until_terminal(id)`, `wait_for(id, status)`, `eventually(what, async || ..)`. Never
//!   sleep, never measure time: order is read from `started_at` and `completed_at`;
//! * names: `name(what)` and `user()` are this check's own, so that other data disturbs nothing. Count
//!   and list by them only;
//! * refusals: `refuses(method, calls, codes)` and `refuses_values(field, values)` also see that nothing
//!   has changed; `takes_values(field, values)` is the other side; `ANY` stands for codes that the
//!   documents leave open;
//! * streams and callbacks: `stream(&request, until)` reads events, `receiver()` takes callbacks;
//! * looking: `get(id)`, `one_of_each_status()`, `tree(root)`, `expect_task(&task)` (the schema of the data model),
//!   `text_of(&object, member)?`, `shown(value)` for texts; `ensure!(condition, "text with {values}")`.
//!
//! A check for `MUST` and the like uses only what the documents have: create trees by `parent_id`, not
//! by what we added (groups are ours: let a `task` be the root). `Err(Finding::skipped(why))` is for a thing that the
//! server need not have. A clause that the server beside does not keep yet goes into `NOT_YET` of
//! `tests/whole/conformance.rs`. Then `cargo run -- conformance --list --markdown > CONFORMANCE.md`, and
//! `cargo nextest run --locked -p taskledger --test conformance <id>`.

mod data_model;
mod interface_jsonrpc;
mod interface_methods;
mod interface_rest;
mod interface_transport;
mod prelude;
mod semantics;
mod validation;
mod workflows;

use super::clause::Clause;

/// All clauses, in the order of the documents.
#[must_use]
pub fn all() -> Vec<Clause> {
    let parts = [
        data_model::clauses(),
        validation::clauses(),
        interface_transport::clauses(),
        interface_jsonrpc::clauses(),
        interface_methods::clauses(),
        interface_rest::clauses(),
        semantics::clauses(),
        workflows::clauses(),
    ];
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::all;
    use std::collections::BTreeSet;

    /// Every section of the documents that has a normative sentence, document by document.
    const SECTIONS: [&[&str]; 5] = [DATA_MODEL, VALIDATION, INTERFACE, SEMANTICS, WORKFLOWS];

    const DATA_MODEL: &[&str] = &[
        "data-model/compliance",
        "data-model/task",
        "data-model/task-outcome",
        "data-model/times",
        "data-model/relations",
        "data-model/json-schema",
        "data-model/schemas",
        "data-model/inputs",
        "data-model/example",
        "data-model/dependency",
        "data-model/dependency-rules",
        "data-model/dependency-required",
        "data-model/dependency-optional",
        "data-model/dependency-resolution",
        "data-model/tree-node",
        "data-model/tree",
        "data-model/parents",
        "data-model/serialization",
        "data-model/result",
        "data-model/error",
        "data-model/progress",
        "data-model/executors",
        "data-model/executor-id",
        "data-model/executor-registry",
        "data-model/rules",
        "data-model/rules-dependencies",
        "data-model/rules-tree",
    ];

    const VALIDATION: &[&str] = &[
        "validation/principles",
        "validation/schema",
        "validation/consistency",
        "validation/references",
        "validation/cycles",
        "validation/satisfaction",
        "validation/root",
        "validation/parents",
        "validation/acyclic",
        "validation/completeness",
        "validation/inputs",
        "validation/executor-inputs",
        "validation/states",
        "validation/uuid",
        "validation/timestamp",
        "validation/error-format",
        "validation/aggregation",
        "validation/requirements",
    ];

    const INTERFACE: &[&str] = &[
        "interface/standards",
        "interface/transport.http",
        "interface/transport.a2a",
        "interface/json-rpc",
        "interface/json-rpc.request",
        "interface/json-rpc.success",
        "interface/json-rpc.error",
        "interface/json-rpc.codes",
        "interface/methods",
        "interface/example",
        "interface/tasks.create",
        "interface/tasks.get",
        "interface/tasks.update",
        "interface/tasks.delete",
        "interface/tasks.list",
        "interface/tasks.execute",
        "interface/tasks.cancel",
        "interface/tasks.tree",
        "interface/tasks.children",
        "interface/tasks.copy",
        "interface/agent-card",
        "interface/a2a-mapping",
        "interface/a2a-methods",
        "interface/streaming",
        "interface/streaming-events",
        "interface/push",
        "interface/authentication",
        "interface/errors",
        "interface/requirements",
    ];

    const SEMANTICS: &[&str] = &[
        "semantics/ids",
        "semantics/trees",
        "semantics/limits",
        "semantics/states",
        "semantics/retries",
        "semantics/groups",
        "semantics/dependencies",
        "semantics/runs",
        "semantics/methods.execute",
        "semantics/methods.update",
        "semantics/methods.delete",
        "semantics/methods.cancel",
        "semantics/methods.copy",
        "semantics/methods.retry",
        "semantics/methods.read",
        "semantics/methods.ours",
        "semantics/methods.idempotency",
        "semantics/labels",
        "semantics/inputs",
        "semantics/errors",
        "semantics/guarantees",
    ];

    const WORKFLOWS: &[&str] = &[
        "workflows/outputs",
        "workflows/inputs",
        "workflows/claims",
        "workflows/completion",
        "workflows/errors",
        "workflows/validation",
        "workflows/suspension",
    ];

    #[test]
    fn ids_are_unique_and_well_formed() {
        let mut ids = BTreeSet::new();
        for clause in all() {
            let id = clause.id;
            assert!(ids.insert(id), "{id} occurs twice");
            let [document, section, last] = id.split('/').collect::<Vec<_>>()[..] else {
                panic!("{id}: expected document/section/number-slug");
            };
            let documents = [
                "data-model",
                "validation",
                "interface",
                "semantics",
                "workflows",
            ];
            assert!(documents.contains(&document), "{id}: unknown document");
            let plain = |text: &str| {
                let sound =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
                !text.is_empty() && text.chars().all(sound)
            };
            let (number, slug) = last.split_once('-').expect("number-slug");
            assert!(number.parse::<u32>().is_ok_and(|n| n > 0), "{id}: number");
            assert!(
                plain(section) && plain(slug),
                "{id}: lower case, digits and `-._`"
            );
        }
    }

    #[test]
    fn numbers_run_from_one_in_each_section_and_sections_stay_together() {
        let (mut section, mut expected, mut left) = ("", 0, BTreeSet::new());
        for clause in all() {
            if clause.section() != section {
                left.insert(section);
                (section, expected) = (clause.section(), 0);
                assert!(!left.contains(section), "{section} is in two places");
            }
            expected += 1;
            let prefix = format!("{section}/{expected}-");
            assert!(
                clause.id.starts_with(&prefix),
                "{}: expected {prefix}",
                clause.id
            );
        }
    }

    #[test]
    fn every_section_with_normative_sentences_appears_and_no_other() {
        let found: BTreeSet<_> = all().iter().map(super::Clause::section).collect();
        assert_eq!(found, SECTIONS.concat().into_iter().collect());
    }

    #[test]
    fn clauses_that_say_the_same_share_a_check() {
        let clauses = all();
        let check = |id: &str| {
            let found = clauses.iter().find(|clause| clause.id == id);
            found.map(|clause| format!("{:?}", clause.check))
        };
        for clause in &clauses {
            for other in clause.same_as {
                assert_eq!(check(clause.id), check(other), "{} and {other}", clause.id);
            }
        }
    }

    #[test]
    fn texts_say_something_and_references_lead_somewhere() {
        let clauses = all();
        let ids: BTreeSet<_> = clauses.iter().map(|c| c.id).collect();
        for clause in &clauses {
            assert!(clause.text.len() > 10, "{}: text", clause.id);
            if let super::super::Check::NotTestable(reason) = &clause.check {
                assert!(reason.len() > 10, "{}: reason", clause.id);
            }
            for other in clause.same_as {
                assert!(
                    ids.contains(other) && *other != clause.id,
                    "{}: {other}",
                    clause.id
                );
            }
        }
    }
}
