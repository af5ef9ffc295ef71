//! Dependencies and trees. spec: validation / Dependency Validation, Task Tree Validation

use crate::clauses::data_model::{
    cancelled_is_an_end_for_optional, cycles_are_refused, failed_required_blocks,
    missing_dependencies_are_refused, missing_parents_are_refused, one_root_is_demanded,
    optional_waits_and_goes_on, parent_cycles_are_refused, required_waits_for_completion,
    self_dependencies_are_refused,
};
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = vec![
        must(
            "validation/references/1-exist",
            "all dependencies name tasks that exist",
            missing_dependencies_are_refused,
        ),
        must(
            "validation/references/2-validated",
            "a dependency on a task that does not exist is refused",
            missing_dependencies_are_refused,
        ),
        must(
            "validation/references/3-self",
            "a dependency of a task on itself is refused",
            self_dependencies_are_refused,
        )
        .same_as(&["data-model/dependency-rules/2-self"]),
        must_not(
            "validation/cycles/1-none",
            "dependencies form no cycle",
            cycles_are_refused,
        )
        .same_as(&["data-model/dependency-rules/3-cycle"]),
        must(
            "validation/cycles/2-detected",
            "circular dependencies are found",
            cycles_are_refused,
        ),
        must(
            "validation/cycles/3-rejected",
            "tasks with circular dependencies are refused",
            cycles_are_refused,
        ),
        must(
            "validation/cycles/4-example",
            "A on B, B on C, C on A is a cycle",
            example_is_a_cycle,
        ),
    ];
    clauses.extend(satisfaction());
    clauses.extend(trees());
    clauses
}

fn satisfaction() -> Vec<Clause> {
    vec![
        must(
            "validation/satisfaction/1-checked",
            "dependencies are looked at before a task is executed",
            required_waits_for_completion,
        ),
        must(
            "validation/satisfaction/2-not-ready",
            "a dependency that is pending or in progress keeps the task waiting, required or not",
            cancelled_is_an_end_for_optional,
        ),
        must(
            "validation/satisfaction/3-required",
            "a required dependency that has not completed keeps the task from running",
            failed_required_blocks,
        ),
        must(
            "validation/satisfaction/4-satisfied",
            "when none keeps it, the task runs",
            optional_waits_and_goes_on,
        ),
    ]
}

fn trees() -> Vec<Clause> {
    vec![
        must(
            "validation/root/1-exactly-one",
            "a tree has exactly one root",
            one_root_is_demanded,
        ),
        must(
            "validation/root/2-validated",
            "trees with several roots, and with none, are refused",
            one_root_is_demanded,
        ),
        must(
            "validation/parents/1-exist",
            "all parents are tasks that exist",
            missing_parents_are_refused,
        ),
        must(
            "validation/parents/2-validated",
            "a parent that does not exist is refused",
            missing_parents_are_refused,
        )
        .same_as(&["data-model/relations/6-parent-exists"]),
        must_not(
            "validation/acyclic/1-none",
            "parents form no cycle",
            parent_cycles_are_refused,
        )
        .same_as(&["data-model/tree/3-acyclic"]),
        must(
            "validation/acyclic/2-detected",
            "circular parents are found",
            parent_cycles_are_refused,
        ),
        must(
            "validation/acyclic/3-rejected",
            "trees with circular parents are refused",
            parent_cycles_are_refused,
        ),
        must(
            "validation/completeness/1-present",
            "all parents and dependencies of a tree's tasks are in the tree",
            references_are_in_the_tree,
        ),
        must(
            "validation/completeness/2-validated",
            "a tree that refers to a task that it does not have is refused",
            references_are_in_the_tree,
        ),
    ]
}

async fn example_is_a_cycle(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root"),
        probe.task("a").below("root").after("b"),
        probe.task("b").below("root").after("c"),
        probe.task("c").below("root").after("a"),
    ];
    let tasks = tasks.map(|task| task.element());
    let call = json!({"tasks": tasks});
    let errors = probe.refuses("tasks.execute", [call], &[CIRCULAR]).await?;
    seen(errors[0].to_string())
}

async fn references_are_in_the_tree(probe: &Probe) -> Outcome {
    let root = || probe.task("root").element();
    let child = || probe.task("child").below("root");
    let lists = [
        json!([root(), child().below(UNKNOWN_ID).element()]),
        json!([root(), child().after(UNKNOWN_ID).element()]),
        json!([root(), child().after_end_of(UNKNOWN_ID).element()]),
        json!([root(), child().below("nowhere").element()]),
        json!([root(), child().after("nowhere").element()]),
    ];
    let calls = lists.map(|tasks| json!({"tasks": tasks}));
    let errors = probe.refuses("tasks.execute", calls, ANY).await?;
    let stranger = probe.create(&probe.task("stranger")).await?;
    let list = json!([root(), child().after(&stranger).element()]);
    probe
        .refuses("tasks.execute", [json!({"tasks": list})], ANY)
        .await?;
    seen(format!(
        "parents and dependencies outside the tree: {}",
        errors[0]
    ))
}
