//! Workflow documents and I/O contracts. Document: RFC-0024, with its patch about suspended phases. A server that has
//! no `workflows.create` is skipped.

use super::prelude::*;
use crate::answer::RpcError;

const INPUT_WIRING: i64 = -31021;
const UNRESOLVABLE: i64 = -31022;
const UPSTREAM_SUSPENDED: i64 = -31023;
const MISSING_OUTPUT: i64 = -31024;
const TYPE_MISMATCH: i64 = -31025;
const NO_METHOD: i64 = -32601;

/// In the order of the document.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "workflows/outputs/1-required",
            "a declared key is required in an output unless it says `required: false`",
            outputs_are_required,
        ),
        must(
            "workflows/outputs/2-named-types",
            "a value of a named type has the declared shape",
            named_types_are_checked,
        ),
        must(
            "workflows/inputs/1-exactly",
            "a claim gives exactly the declared inputs, from results and from the trigger; an empty object without any",
            claims_give_declared_inputs,
        ),
        must(
            "workflows/claims/1-dependencies",
            "a phase is not claimed before its `depends_on` have completed: `UnresolvableInputError`, and it stays as it is",
            claims_wait_for_dependencies,
        ),
        must(
            "workflows/claims/2-results",
            "a phase whose inputs a result lacks is not claimed: `UnresolvableInputError` with the references, and it stays ready",
            claims_need_results,
        ),
        must(
            "workflows/claims/3-static",
            "a value of `$trigger` that is null keeps a phase from its claim",
            claims_need_triggers,
        ),
        must(
            "workflows/completion/1-presence-first",
            "required keys are looked for before types: `MissingOutputError` names all that are missing",
            presence_comes_first,
        ),
        must(
            "workflows/completion/2-no-coercion",
            "nothing is converted: an integer is a number, a text or a boolean is none (`OutputTypeMismatchError`)",
            nothing_is_converted,
        ),
        must(
            "workflows/completion/3-goes-on",
            "an attempt whose output is refused goes on, and may be completed with another one",
            attempts_go_on,
        ),
        must(
            "workflows/completion/4-other-keys",
            "keys that are not declared are accepted and recorded",
            other_keys_are_recorded,
        ),
        must(
            "workflows/errors/1-history",
            "refused claims and outputs are in the history of the task with the members of the answer, equal repetitions once",
            refusals_are_facts,
        ),
        must(
            "workflows/validation/1-wiring",
            "a reference to a phase that does not exist, is no dependency, declares no such key, or in another form is an `InputWiringError`",
            wiring_is_validated,
        ),
        must(
            "workflows/suspension/1-claims",
            "a claim that needs the result of a phase that waits for a person is refused with `UpstreamIntentSuspendedError`",
            suspended_phases_keep_others_off,
        ),
        must(
            "workflows/suspension/2-progress",
            "the progress of a run lists the phases that wait for a person",
            progress_lists_suspended_phases,
        ),
    ]
}

/// A run of a document with these types and phases; the tasks of the phases in order.
async fn run(probe: &Probe, types: Value, phases: Value) -> Result<(Value, Vec<Value>), Finding> {
    run_of(probe, types, phases, json!({})).await
}

async fn run_of(
    probe: &Probe,
    types: Value,
    phases: Value,
    trigger: Value,
) -> Result<(Value, Vec<Value>), Finding> {
    let document = json!({
        "openintent": "1.0", "info": {"name": probe.name("workflow")},
        "types": types, "workflow": phases,
    });
    let params = json!({"document": document, "trigger": trigger, "execute": true});
    let reply = probe.call("workflows.create", params).await?;
    let error = reply.clone().expect_any_error();
    if error.is_ok_and(|error| error.code == NO_METHOD) {
        return Err(Finding::skipped("the server has no `workflows.create`"));
    }
    let created = reply.expect_result()?;
    let phases = created["phases"].as_array().cloned().unwrap_or_default();
    let tasks = phases.into_iter().map(|mut phase| phase["task_id"].take());
    Ok((created["root_task_id"].clone(), tasks.collect()))
}

/// A phase for a worker.
fn phase(probe: &Probe, more: Value) -> Value {
    let mut phase = json!({"assign": probe.name("agent")});
    if let (Value::Object(phase), Value::Object(more)) = (&mut phase, more) {
        phase.extend(more);
    }
    phase
}

async fn claim(probe: &Probe, task: &Value) -> Result<Value, Finding> {
    let params = json!({"task_id": task, "worker": probe.name("worker")});
    let mut claims = probe.result("tasks.claim", params).await?;
    let claim = claims["claims"][0].take();
    ensure!(claim.is_object(), "task {task} was not claimed");
    Ok(claim)
}

async fn not_claimed(probe: &Probe, task: &Value, code: i64) -> Result<RpcError, Finding> {
    let params = json!({"task_id": task, "worker": probe.name("worker")});
    let error = probe.refused("tasks.claim", params, code).await?;
    let id = task.as_str().unwrap_or_default();
    let status = probe.get(id).await?["status"].clone();
    ensure!(
        status == "pending",
        "task {task} is {status} after a refused claim"
    );
    ensure!(error.data["task_id"] == *task, "`task_id` of {error}");
    Ok(error)
}

fn ending(claim: &Value, output: Value) -> Value {
    json!({"task_id": claim["task"]["id"], "lease": claim["lease"]["token"], "output": output})
}

async fn completes(probe: &Probe, claim: &Value, output: Value) -> Result<(), Finding> {
    let ended = probe
        .result("tasks.complete", ending(claim, output))
        .await?;
    ensure!(
        ended["status"] == "completed",
        "an output was answered {ended}"
    );
    Ok(())
}

async fn not_completed(
    probe: &Probe,
    claim: &Value,
    output: Value,
    code: i64,
) -> Result<RpcError, Finding> {
    let error = probe
        .refused("tasks.complete", ending(claim, output), code)
        .await?;
    let id = text_of(&claim["task"], "id")?;
    let status = probe.get(&id).await?["status"].clone();
    ensure!(
        status == "in_progress",
        "task {id} is {status} after a refused output"
    );
    ensure!(
        error.data["phase_name"] == claim["task"]["name"],
        "`phase_name` of {error}"
    );
    Ok(error)
}

async fn outputs_are_required(probe: &Probe) -> Outcome {
    let outputs = json!({"a": "number", "b": {"type": "string", "required": false}});
    let phases = json!({"p": phase(probe, json!({"outputs": outputs}))});
    let (_, tasks) = run(probe, json!({}), phases).await?;
    let held = claim(probe, &tasks[0]).await?;
    let error = not_completed(probe, &held, json!({"b": "x"}), MISSING_OUTPUT).await?;
    ensure!(
        error.data["missing_keys"] == json!(["a"]),
        "`missing_keys` of {error}"
    );
    completes(probe, &held, json!({"a": 1})).await?;
    seen("without `a` refused, without `b` completed")
}

async fn named_types_are_checked(probe: &Probe) -> Outcome {
    let types = json!({"Finding": {"source": "string", "confidence": "number"}});
    let phases = json!({"p": phase(probe, json!({"outputs": {"f": "Finding"}}))});
    let (_, tasks) = run(probe, types, phases).await?;
    let held = claim(probe, &tasks[0]).await?;
    let half = json!({"f": {"source": "press"}});
    let error = not_completed(probe, &held, half, TYPE_MISMATCH).await?;
    ensure!(error.data["key"] == "f", "`key` of {error}");
    completes(
        probe,
        &held,
        json!({"f": {"source": "press", "confidence": 0.8}}),
    )
    .await?;
    seen("without a field refused, with all completed")
}

/// `a` gives `n`, `b` takes it.
fn chain(probe: &Probe) -> Value {
    json!({
        "a": phase(probe, json!({})),
        "b": phase(probe, json!({"depends_on": ["a"], "inputs": {"x": "a.n", "q": "$trigger.q"}})),
    })
}

async fn claims_give_declared_inputs(probe: &Probe) -> Outcome {
    let (_, tasks) = run_of(probe, json!({}), chain(probe), json!({"q": "Q1", "z": 1})).await?;
    let first = claim(probe, &tasks[0]).await?;
    ensure!(
        first["input"] == json!({}),
        "without inputs: {}",
        first["input"]
    );
    completes(probe, &first, json!({"n": [1], "m": 2})).await?;
    let second = claim(probe, &tasks[1]).await?;
    let expected = json!({"x": [1], "q": "Q1"});
    ensure!(second["input"] == expected, "inputs: {}", second["input"]);
    seen(second["input"].to_string())
}

async fn claims_wait_for_dependencies(probe: &Probe) -> Outcome {
    let (_, tasks) = run_of(probe, json!({}), chain(probe), json!({"q": "Q1"})).await?;
    let error = not_claimed(probe, &tasks[1], UNRESOLVABLE).await?;
    ensure!(
        error.data["error"] == "UnresolvableInputError",
        "`error` of {error}"
    );
    ensure!(
        error.data["unresolvable_refs"] == json!(["a.n"]),
        "references of {error}"
    );
    let held = claim(probe, &tasks[0]).await?;
    not_claimed(probe, &tasks[1], UNRESOLVABLE).await?;
    completes(probe, &held, json!({"n": 1})).await?;
    claim(probe, &tasks[1]).await?;
    seen("refused while `a` was pending and in progress, claimed after its end")
}

async fn claims_need_results(probe: &Probe) -> Outcome {
    let (_, tasks) = run_of(probe, json!({}), chain(probe), json!({"q": "Q1"})).await?;
    let held = claim(probe, &tasks[0]).await?;
    completes(probe, &held, json!({"other": 1})).await?;
    let error = not_claimed(probe, &tasks[1], UNRESOLVABLE).await?;
    ensure!(
        error.data["error"] == "UnresolvableInputError",
        "`error` of {error}"
    );
    ensure!(error.data["phase_name"] == "b", "`phase_name` of {error}");
    ensure!(
        error.data["unresolvable_refs"] == json!(["a.n"]),
        "references of {error}"
    );
    seen(error.to_string())
}

async fn claims_need_triggers(probe: &Probe) -> Outcome {
    let phases = json!({"p": phase(probe, json!({"inputs": {"q": "$trigger.q"}}))});
    let (_, tasks) = run_of(probe, json!({}), phases, json!({"q": null})).await?;
    let error = not_claimed(probe, &tasks[0], UNRESOLVABLE).await?;
    ensure!(
        error.data["unresolvable_refs"] == json!(["$trigger.q"]),
        "references of {error}"
    );
    seen(error.to_string())
}

async fn presence_comes_first(probe: &Probe) -> Outcome {
    let outputs = json!({"a": "number", "b": "number", "c": "number"});
    let phases = json!({"p": phase(probe, json!({"outputs": outputs}))});
    let (_, tasks) = run(probe, json!({}), phases).await?;
    let held = claim(probe, &tasks[0]).await?;
    let error = not_completed(probe, &held, json!({"a": "1"}), MISSING_OUTPUT).await?;
    ensure!(
        error.data["error"] == "MissingOutputError",
        "`error` of {error}"
    );
    ensure!(
        error.data["missing_keys"] == json!(["b", "c"]),
        "`missing_keys` of {error}"
    );
    seen(error.to_string())
}

async fn nothing_is_converted(probe: &Probe) -> Outcome {
    let phases = json!({"p": phase(probe, json!({"outputs": {"n": "number"}}))});
    let (_, tasks) = run(probe, json!({}), phases).await?;
    let held = claim(probe, &tasks[0]).await?;
    for wrong in [json!("1"), json!(true), json!(null), json!([1])] {
        let error = not_completed(probe, &held, json!({"n": wrong}), TYPE_MISMATCH).await?;
        ensure!(
            error.data["error"] == "OutputTypeMismatchError",
            "`error` of {error}"
        );
        ensure!(
            error.data["expected_type"] == "number",
            "`expected_type` of {error}"
        );
    }
    completes(probe, &held, json!({"n": 1})).await?;
    seen("text, boolean, null and array refused, an integer accepted")
}

async fn attempts_go_on(probe: &Probe) -> Outcome {
    let phases = json!({"p": phase(probe, json!({"outputs": {"n": "number"}}))});
    let (_, tasks) = run(probe, json!({}), phases).await?;
    let held = claim(probe, &tasks[0]).await?;
    not_completed(probe, &held, json!({}), MISSING_OUTPUT).await?;
    not_completed(probe, &held, json!({"n": "x"}), TYPE_MISMATCH).await?;
    completes(probe, &held, json!({"n": 2})).await?;
    seen("completed under the same lease after two refusals")
}

async fn other_keys_are_recorded(probe: &Probe) -> Outcome {
    let phases = json!({"p": phase(probe, json!({"outputs": {"n": "number"}}))});
    let (_, tasks) = run(probe, json!({}), phases).await?;
    let held = claim(probe, &tasks[0]).await?;
    let output = json!({"n": 1, "more": {"of": [null]}});
    completes(probe, &held, output.clone()).await?;
    let task = probe.get(&text_of(&held["task"], "id")?).await?;
    ensure!(task["result"] == output, "recorded: {}", task["result"]);
    seen(output.to_string())
}

async fn refusals_are_facts(probe: &Probe) -> Outcome {
    let (_, tasks) = run_of(probe, json!({}), chain(probe), json!({"q": "Q1"})).await?;
    let error = not_claimed(probe, &tasks[1], UNRESOLVABLE).await?;
    not_claimed(probe, &tasks[1], UNRESOLVABLE).await?;
    let params = json!({"task_id": tasks[1], "types": ["task_claim_rejected"]});
    let history = probe.result("tasks.history", params).await?;
    let entries = history["events"].as_array().map_or(0, Vec::len);
    ensure!(entries == 1, "two equal refusals make {entries} entries");
    let data = &history["events"][0]["data"];
    for member in ["error", "phase_name", "unresolvable_refs", "message"] {
        let (logged, told) = (&data[member], &error.data[member]);
        ensure!(
            logged == told,
            "`{member}` is {logged} in the history, {told} in the answer"
        );
    }
    seen(data.to_string())
}

async fn wiring_is_validated(probe: &Probe) -> Outcome {
    let a = phase(probe, json!({"outputs": {"n": "number"}}));
    for (reference, depends_on) in [
        ("none.n", json!(["a"])),
        ("a.n", json!([])),
        ("a.m", json!(["a"])),
        ("a", json!(["a"])),
    ] {
        let b = phase(
            probe,
            json!({"depends_on": depends_on, "inputs": {"x": reference}}),
        );
        let document = json!({
            "openintent": "1.0", "info": {"name": probe.name("workflow")},
            "workflow": {"a": a, "b": b},
        });
        let reply = probe
            .call("workflows.create", json!({"document": document}))
            .await?;
        let error = reply.expect_error_of(&[INPUT_WIRING, NO_METHOD])?;
        if error.code == NO_METHOD {
            return Err(Finding::skipped("the server has no `workflows.create`"));
        }
        let data = &error.data;
        ensure!(data["error"] == "InputWiringError", "`error` of {error}");
        ensure!(data["phase_name"] == "b", "`phase_name` of {error}");
        ensure!(
            data["invalid_refs"] == json!([reference]),
            "`invalid_refs` of {error}"
        );
    }
    seen("four kinds of wrong references refused")
}

/// A phase that asks a person, and one that needs its answer.
async fn asked(probe: &Probe) -> Result<(Value, Vec<Value>), Finding> {
    let phases = json!({
        "ask": phase(probe, json!({})),
        "then": phase(probe, json!({"depends_on": ["ask"], "inputs": {"x": "ask.value"}})),
    });
    let (root, tasks) = run(probe, json!({}), phases).await?;
    let held = claim(probe, &tasks[0]).await?;
    let params = json!({
        "task_id": held["task"]["id"], "lease": held["lease"]["token"],
        "request": {"question": "Go on?"},
    });
    probe.result("tasks.suspend", params).await?;
    Ok((root, tasks))
}

async fn suspended_phases_keep_others_off(probe: &Probe) -> Outcome {
    let (_, tasks) = asked(probe).await?;
    let error = not_claimed(probe, &tasks[1], UPSTREAM_SUSPENDED).await?;
    ensure!(
        error.data["error"] == "UpstreamIntentSuspendedError",
        "`error` of {error}"
    );
    ensure!(
        error.data["suspended_intent_id"] == tasks[0],
        "`suspended_intent_id` of {error}"
    );
    seen(error.to_string())
}

async fn progress_lists_suspended_phases(probe: &Probe) -> Outcome {
    let (root, tasks) = asked(probe).await?;
    let params = json!({"root_task_id": root});
    let progress = probe.result("workflows.progress", params).await?;
    let phase = &progress["suspended_phases"][0];
    ensure!(
        phase["phase_name"] == "ask" && phase["task_id"] == tasks[0],
        "`suspended_phases`: {}",
        progress["suspended_phases"]
    );
    seen(phase.to_string())
}
