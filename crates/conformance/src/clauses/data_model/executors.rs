//! What executes tasks. spec: data-model / Executor Registration

use super::configuration::{methods_are_required, unknown_methods_never_complete};
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = vec![
        must(
            "data-model/executors/1-at-least-one",
            "there is at least one executor",
            an_executor_runs,
        ),
        not_testable(
            Level::Should,
            "data-model/executors/2-built-in",
            "there are built-in executors for what systems commonly need",
            "what is commonly needed is for people to judge, and no method of the documents lists executors",
        ),
        not_testable(
            Level::May,
            "data-model/executors/3-optional",
            "there may be executors for special purposes",
            "no method of the documents lists executors, and their names are each server's own",
        ),
    ];
    clauses.extend(identifiers());
    clauses.extend(registration());
    clauses
}

fn identifiers() -> Vec<Clause> {
    vec![
        must(
            "data-model/executor-id/1-not-empty",
            "`schemas.method` is a text that is not empty",
            methods_are_required,
        )
        .same_as(&["data-model/schemas/2-method-required"]),
        must(
            "data-model/executor-id/2-registered",
            "`schemas.method` is the name of an executor",
            unknown_methods_never_complete,
        )
        .same_as(&["data-model/schemas/3-method-registered"]),
        not_testable(
            Level::Must,
            "data-model/executor-id/3-unique",
            "no two executors have the same name",
            "a name leads to one executor; a second of the same name could not be called, nor seen",
        ),
        not_testable(
            Level::Should,
            "data-model/executor-id/4-descriptive",
            "names of executors say what they do",
            "whether a name describes is for people to judge",
        ),
        not_testable(
            Level::Should,
            "data-model/executor-id/5-convention",
            "names of executors follow one convention",
            "the convention is each server's own, and no method of the documents lists the names",
        ),
    ]
}

fn registration() -> Vec<Clause> {
    vec![
        must(
            "data-model/executor-registry/1-registry",
            "names of executors lead to executors",
            an_executor_runs,
        ),
        must(
            "data-model/executor-registry/2-before-use",
            "only a registered executor runs tasks",
            unknown_methods_never_complete,
        ),
        must(
            "data-model/executor-registry/3-lookup",
            "the executor of a task is the one that `schemas.method` names",
            methods_choose_executors,
        ),
        must(
            "data-model/executor-registry/4-not-found",
            "a task whose executor does not exist fails, or its execution is refused, with an error that says so",
            unknown_methods_never_complete,
        ),
    ]
}

async fn an_executor_runs(probe: &Probe) -> Outcome {
    let started = probe.run(&[probe.task("one")]).await?;
    probe.wait_for(&started.root, "completed").await?;
    seen(format!("`{}` completes a task", probe.options().executor))
}

/// The same inputs end at once with one executor and last with the other.
async fn methods_choose_executors(probe: &Probe) -> Outcome {
    let slow = probe.slow("slow", FOREVER_MS);
    let options = probe.options();
    let quick = slow
        .clone()
        .with("schemas", json!({"method": options.executor}));
    let quick = probe.run(&[quick]).await?;
    probe.wait_for(&quick.root, "completed").await?;
    let slow = probe.run(&[slow]).await?;
    probe.wait_for(&slow.root, "in_progress").await?;
    probe.cancel(&slow.root).await?;
    seen(format!(
        "with the same inputs, `{}` ends and `{}` lasts",
        options.executor, options.slow_executor
    ))
}
