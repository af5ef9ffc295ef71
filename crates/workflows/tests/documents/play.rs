//! Runs without workers.

use super::{document, sound};
use serde_json::{Map, Value, json};
use taskledger_workflows::{Played, Unplayable};

const PHASES: &str = "  a: {assign: x, inputs: {q: $trigger.q}, outputs: {n: number, note: {type: string, required: false}}, retry: {max_attempts: 2}}\n  b: {assign: y, depends_on: [a], inputs: {n: a.n, note: {from: a.note, default: none}}}\n  c: {assign: z, depends_on: [a], inputs: {note: a.note}}\n  d: {assign: z, depends_on: [c]}\n";

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn play(outputs: Value) -> Result<Played, Unplayable> {
    sound(&document(PHASES)).play(&map(json!({"q": 1})), &map(outputs))
}

fn told(played: &Played) -> Vec<String> {
    let steps = played.steps.iter();
    steps
        .map(|it| format!("{} {}", it["step"], it["phase"]).replace('"', ""))
        .collect()
}

#[test]
fn claims_and_completions_follow_the_rules_of_tasks() {
    let played = play(json!({
        "a": [{"$fail": "out of paper"}, {"n": "1"}, {"note": "x"}, {"n": 1}],
        "b": {},
    }));
    let played = played.expect("the outputs are objects");
    assert_eq!(
        told(&played),
        [
            "claim a",
            "fail a",
            "claim a",
            "reject a",
            "reject a",
            "complete a",
            "claim b",
            "complete b",
            "reject c"
        ]
    );
    assert_eq!(played.steps[0]["input"], json!({"q": 1}));
    assert_eq!(played.steps[3]["error"]["error"], "OutputTypeMismatchError");
    assert_eq!(played.steps[4]["error"]["error"], "MissingOutputError");
    assert_eq!(played.steps[4]["error"]["missing_keys"], json!(["n"]));
    assert_eq!(played.steps[6]["input"], json!({"n": 1, "note": "none"}));
    assert_eq!(
        played.steps[8]["error"],
        json!({
            "error": "UnresolvableInputError", "message": "no value for a.note",
            "unresolvable_refs": ["a.note"],
        })
    );
    assert_eq!(
        played.phases,
        [
            json!({"phase": "a", "status": "completed"}),
            json!({"phase": "b", "status": "completed"}),
            json!({"phase": "c", "status": "pending", "reason": "no value for a.note"}),
            json!({"phase": "d", "status": "pending", "reason": "phase `c` has not completed"}),
        ]
    );
}

#[test]
fn a_phase_ends_when_its_attempts_or_its_outputs_do() {
    let played = play(json!({"a": [{"$fail": 1}, {"$fail": 2}, {"n": 1}]}));
    let played = played.expect("the outputs are objects");
    assert_eq!(told(&played), ["claim a", "fail a", "claim a", "fail a"]);
    assert_eq!(played.phases[0]["status"], "failed");
    assert_eq!(played.phases[1]["reason"], "phase `a` has not completed");
    let played = play(json!({})).expect("no output is an output of nothing");
    assert_eq!(
        played.phases[0],
        json!({"phase": "a", "status": "in_progress", "reason": "no further output is given"})
    );
}

#[test]
fn a_phase_whose_inputs_are_of_other_types_fails_as_its_task_does() {
    let phases = "  a: {assign: x, outputs: {n: any}}\n  b: {assign: y, depends_on: [a], inputs: {n: {from: a.n, type: number}}, retry: {max_attempts: 3}}\n  c: {assign: z, depends_on: [b]}\n";
    let outputs = map(json!({"a": {"n": "many"}, "b": {}}));
    let played = sound(&document(phases)).play(&Map::new(), &outputs);
    let played = played.expect("the outputs are objects");
    assert_eq!(told(&played), ["claim a", "complete a", "fail b"]);
    assert_eq!(
        played.steps[2]["error"],
        "inputs do not conform: `n`: string, expected number"
    );
    let phases = [
        json!({"phase": "a", "status": "completed"}),
        json!({"phase": "b", "status": "failed"}),
        json!({"phase": "c", "status": "pending", "reason": "phase `b` has not completed"}),
    ];
    assert_eq!(played.phases, phases);
}

#[test]
fn what_cannot_be_played_is_refused_by_name() {
    let unknown = Unplayable::UnknownPhase("e".to_owned());
    assert_eq!(play(json!({"e": {}})), Err(unknown));
    let no_object = Unplayable::NoObject("a".to_owned());
    assert_eq!(play(json!({"a": 1})), Err(no_object));
    let large = "x".repeat(9_000_000);
    let outputs = json!({"a": [{"n": large}, {"n": large}]});
    assert_eq!(play(outputs), Err(Unplayable::TooLarge));
}

#[test]
fn a_claim_gives_exactly_the_declared_inputs_and_nothing_without_any() {
    let workflow = sound(&document(
        "  a: {assign: x, initial_state: {hidden: 1}}\n  b:\n    assign: x\n    depends_on: [a]\n    initial_state: {hidden: 1, s: 2}\n    inputs: {k: a.k, t: $trigger.t, s: $initial_state.s}\n",
    ));
    let trigger = map(json!({"t": 3, "hidden": 1}));
    let outputs = map(json!({"a": {"k": 1, "hidden": 1}}));
    let played = workflow.play(&trigger, &outputs).expect("an object");
    assert_eq!(told(&played), ["claim a", "complete a", "claim b"]);
    assert_eq!(played.steps[0]["input"], json!({}));
    assert_eq!(played.steps[2]["input"], json!({"k": 1, "t": 3, "s": 2}));
}

#[test]
fn only_null_and_absent_static_values_keep_a_phase_from_its_claim() {
    let inputs = |from: &str| {
        let keys = ["f", "z", "e", "l", "n", "none"];
        keys.map(|key| format!("{key}: {from}.{key}")).join(", ")
    };
    let state = "{f: false, z: 0, e: '', l: [], n: null}";
    let workflow = sound(&document(&format!(
        "  t: {{assign: x, inputs: {{{}}}}}\n  s: {{assign: x, initial_state: {state}, inputs: {{{}}}}}\n",
        inputs("$trigger"),
        inputs("$initial_state")
    )));
    let trigger = map(json!({"f": false, "z": 0, "e": "", "l": [], "n": null}));
    let played = workflow.play(&trigger, &Map::new()).expect("no outputs");
    assert_eq!(told(&played), ["reject t", "reject s"]);
    for (step, from) in played.steps.iter().zip(["$trigger", "$initial_state"]) {
        let error = &step["error"];
        assert_eq!(error["error"], "UnresolvableInputError");
        let mut refs = vec![format!("{from}.n"), format!("{from}.none")];
        refs.sort();
        assert_eq!(error["unresolvable_refs"], json!(refs));
    }
    assert!(played.phases.iter().all(|it| it["status"] == "pending"));
}

#[test]
fn what_a_completion_has_beyond_its_outputs_and_what_is_not_declared_is_recorded() {
    let workflow = sound(&document(
        "  typed: {assign: x, outputs: {n: number}}\n  free: {assign: x}\n  c: {assign: x, depends_on: [free], inputs: {k: free.k}}\n",
    ));
    let outputs = json!({"typed": {"n": 1, "more": [null]}, "free": {"k": {"x": null}}, "c": {}});
    let played = workflow.play(&Map::new(), &map(outputs.clone()));
    let played = played.expect("the outputs are objects");
    let completed = |phase: &str| {
        let mut steps = played.steps.iter();
        let step = steps.find(|it| it["phase"] == phase && it["step"] == "complete");
        step.map(|it| it["output"].clone())
    };
    for phase in ["typed", "free", "c"] {
        assert_eq!(completed(phase).as_ref(), Some(&outputs[phase]), "{phase}");
    }
    let claim = played.steps.iter().rfind(|it| it["step"] == "claim");
    assert_eq!(
        claim.expect("c is claimed")["input"],
        json!({"k": {"x": null}})
    );
}
