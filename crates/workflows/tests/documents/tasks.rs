//! The tasks of a run, which the domain must take as they are.

use super::{EXAMPLE, document, sound};
use serde_json::{Map, Value, json};
use taskledger_domain::TaskId;
use taskledger_domain::task::call::parse_tasks;
use taskledger_workflows::{ROOT, UnfitTrigger, Workflow, alias};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

fn tasks(workflow: &Workflow, trigger: Value) -> Vec<Value> {
    workflow
        .tasks(&map(trigger), None)
        .expect("the trigger is small")
}

#[test]
fn the_example_becomes_a_root_and_a_task_for_each_phase() {
    let workflow = sound(EXAMPLE);
    let trigger = json!({"quarter": "Q1"});
    let tasks = workflow
        .tasks(&map(trigger.clone()), Some("ann"))
        .expect("the trigger is small");
    let name = "Quarterly Compliance Report";
    let of = json!({"name": name, "version": "1.0.0", "hash": workflow.hash});
    let root = json!({"id": ROOT, "name": name, "inputs": trigger, "params": {"workflow": of}, "user_id": "ann"});
    assert_eq!(tasks[0], root);
    let first = &tasks[1];
    assert_eq!(
        (&first["id"], &first["parent_id"]),
        (&json!(alias(0)), &json!(ROOT))
    );
    assert_eq!(first["name"], "fetch_financials");
    assert_eq!(first["inputs"], json!({"quarter": "Q1"}));
    assert_eq!(
        first["schemas"]["wiring"],
        json!({"source": "$initial_state.source"})
    );
    assert_eq!(first["schemas"]["type"], "remote");
    assert_eq!(first["schemas"]["method"], "data-agent");
    assert_eq!(first["schemas"]["types"]["HRData"]["headcount"], "number");
    assert_eq!(first["schemas"]["workflow"]["hash"], workflow.hash.as_str());
    assert_eq!(first["schemas"].get("validation"), None);
    let analysis = &tasks[3];
    let dependencies =
        json!([{"id": "phase-1", "required": true}, {"id": "phase-2", "required": true}]);
    assert_eq!(analysis["dependencies"], dependencies);
    assert_eq!(
        analysis["schemas"]["wiring"]["hr_headcount"],
        "phase-2.headcount"
    );
    assert_eq!(analysis["inputs"], json!({}));
}

#[test]
fn the_domain_takes_the_tasks() {
    let workflow = sound(&document(
        "  run: {assign: x, initial_state: {k: v}, inputs: {a: $initial_state.k}}\n  phase-1: {assign: x, depends_on: [run], inputs: {b: 'run.x.y#/0'}}\n  8a3f2c4e-1111-4111-8111-111111111111: {assign: x, depends_on: [phase-1], retry: {max_attempts: 3}, inputs: {c: {from: phase-1.z, default: 1}}}\n  \"a\\u0301.é\": {assign: x}\n",
    ));
    let tasks = tasks(&workflow, json!({}));
    let mut next = 0_u128;
    let list = parse_tasks(&json!(tasks)).expect("the tasks are well-formed");
    let resolved = list.resolve(|_| {
        next += 1;
        TaskId::parse(&format!("00000000-0000-4000-8000-{next:012}")).expect("a UUID v4")
    });
    assert!(resolved.is_ok(), "{resolved:?}");
}

#[test]
fn static_inputs_are_resolved_when_the_run_is_created() {
    let workflow = sound(&document(
        "  p:\n    assign: x\n    initial_state: {s: {d: [7]}}\n    inputs:\n      there: $trigger.a\n      inner: '$trigger.o#/x/0'\n      state: '$initial_state.s#/d/0'\n      absent: $initial_state.none\n      nothing: $trigger.null\n      filled: {from: $trigger.null, default: 5}\n      empty: {from: $trigger.none, default: null}\n      left_out: {from: $trigger.none, required: false}\n",
    ));
    let tasks = tasks(
        &workflow,
        json!({"a": false, "o": {"x": [1]}, "null": null}),
    );
    let expected = json!({"there": false, "inner": 1, "state": 7, "filled": 5, "empty": null});
    assert_eq!(tasks[1]["inputs"], expected);
    let expected = json!({"absent": "$initial_state.none", "nothing": "$trigger.null"});
    assert_eq!(tasks[1]["schemas"]["wiring"], expected);
}

#[test]
fn a_trigger_without_a_value_that_a_phase_needs_gives_no_tasks() {
    let workflow = sound(&document(
        "  a: {assign: x, skip_when: $trigger.fast, inputs: {only: $trigger.slow}}\n  b:\n    assign: x\n    inputs:\n      q: $trigger.query\n      deep: '$trigger.o#/x'\n      again: $trigger.query\n      null: $trigger.null\n      fine: {from: $trigger.fine, default: 1}\n      left_out: {from: $trigger.none, required: false}\n",
    ));
    let lacking = |trigger: Value| match workflow.tasks(&map(trigger), None) {
        Err(UnfitTrigger::Lacking(lacking)) => lacking,
        other => panic!("{other:?}"),
    };
    let found = lacking(json!({"fast": true, "o": {}, "null": null}));
    let found: Vec<_> = found
        .iter()
        .map(|it| (&*it.key, &*it.reference, &*it.phase, &*it.input))
        .collect();
    let expected = [
        ("query", "$trigger.query", "b", "q"),
        ("o", "$trigger.o#/x", "b", "deep"),
    ];
    assert_eq!(
        found, expected,
        "each once; a phase that is skipped needs none"
    );
    assert_eq!(lacking(json!({}))[0].key, "slow");
    let whole = json!({"fast": true, "query": "q", "o": {"x": false}, "null": 0});
    assert_eq!(tasks(&workflow, whole.clone()).len(), 2);
    let refused = workflow.tasks(&map(json!({"slow": 1, "o": {"x": 1}, "null": 1})), None);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the trigger has no value for `$trigger.query` (input `q` of phase `b`)"
    );
    // Nothing runs when a run is only played.
    let played = workflow
        .play(&Map::new(), &Map::new())
        .expect("it can be played");
    assert_eq!(played.phases[1]["status"], "pending");
}

#[test]
fn keys_of_a_trigger_that_no_phase_uses_are_warned_of() {
    let workflow = sound(&document(
        "  a: {assign: x, skip_when: $trigger.fast, start_at: $trigger.at, inputs: {q: $trigger.quarter}}\n",
    ));
    let warnings = |trigger: Value| -> Vec<_> {
        let found = workflow.trigger_warnings(&map(trigger), &["schedule"]);
        found
            .into_iter()
            .map(|it| (it.path, it.reason, it.suggestion))
            .collect()
    };
    let used = json!({"fast": false, "at": null, "quarter": 1, "schedule": "s"});
    assert_eq!(warnings(used), []);
    let expected = [(
        "trigger.qarter".to_owned(),
        "no phase uses `$trigger.qarter`".to_owned(),
        Some("did you mean `quarter`?".to_owned()),
    )];
    assert_eq!(warnings(json!({"qarter": 1})), expected);
    let expected = [(
        "trigger.quarter".to_owned(),
        "`$trigger.quarter` is null: phase `a` cannot begin without a value for `q`".to_owned(),
        None,
    )];
    assert_eq!(warnings(json!({"quarter": null})), expected);
}

#[test]
fn retry_is_mapped_as_far_as_it_can_be_said() {
    let retry = |text: &str| {
        let workflow = sound(&document(&format!("  p: {{assign: x, retry: {text}}}\n")));
        (
            tasks(&workflow, json!({}))[1]["params"]["retry"].clone(),
            workflow.not_acted_on,
        )
    };
    let policy = |attempts, initial, multiplier: f64, max| json!({"max_attempts": attempts, "initial_delay_ms": initial, "multiplier": multiplier, "max_delay_ms": max});
    let none = Vec::<String>::new();
    assert_eq!(retry("{}"), (policy(3, 1000, 2.0, 60_000), none.clone()));
    let text = "{max_attempts: 5, backoff: constant, initial_delay_ms: 90000}";
    assert_eq!(retry(text), (policy(5, 90_000, 1.0, 90_000), none.clone()));
    let text = "{max_attempts: 2, backoff: linear, max_delay_ms: 10}";
    assert_eq!(retry(text), (policy(2, 1000, 1.0, 10), none));
    let text = "{backoff: linear, retryable_errors: [x], fallback_agent: y}";
    let without_effect = ["retryable_errors", "fallback_agent", "backoff"];
    let without_effect = without_effect.map(|key| format!("workflow.p.retry.{key}"));
    assert_eq!(
        retry(text),
        (policy(3, 1000, 1.0, 60_000), without_effect.to_vec())
    );
}

#[test]
fn a_trigger_that_many_phases_repeat_is_refused() {
    let phases: String = (0..100)
        .map(|i| format!("  p{i}: {{assign: x, inputs: {{k: $trigger.k}}}}\n"))
        .collect();
    let workflow = sound(&document(&phases));
    let trigger = map(json!({"k": "x".repeat(200_000)}));
    assert_eq!(workflow.tasks(&trigger, None), Err(UnfitTrigger::TooLarge));
}

#[test]
fn inputs_and_outputs_of_each_phase_are_those_of_its_task() {
    let workflow = sound(EXAMPLE);
    let tasks = tasks(&workflow, json!({"quarter": "Q1"}));
    for (phase, task) in workflow.phases.iter().zip(&tasks[1..]) {
        let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let (literal, wired) = (
            members(&task["inputs"]),
            members(&task["schemas"]["wiring"]),
        );
        let keys: Vec<_> = literal.keys().chain(wired.keys()).collect();
        assert_eq!(keys.len(), phase.inputs.len(), "{task}");
        for (key, input) in &phase.inputs {
            let reference = |text: &str| {
                phase.depends_on.iter().fold(text.to_owned(), |text, on| {
                    let index = workflow.phases.iter().position(|it| it.name == *on);
                    text.replacen(
                        &format!("{on}."),
                        &format!("{}.", alias(index.unwrap_or(0))),
                        1,
                    )
                })
            };
            match wired.get(key) {
                Some(wire) => assert_eq!(*wire, json!(reference(&input.reference))),
                None => assert_eq!(literal[key], "Q1"),
            }
        }
        assert_eq!(task["schemas"]["outputs"], json!(phase.outputs));
        assert_eq!(task["name"], phase.name);
        assert_eq!(task["schemas"]["method"], phase.assign);
    }
}
