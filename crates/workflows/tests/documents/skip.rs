//! Phases that are left out of a run.

use super::{document, sound};
use serde_json::{Map, Value, json};
use taskledger_workflows::{SkipWhen, UnfitTrigger, alias, read};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Phases of a run, by alias, with what each waits for.
fn tasks(phases: &str, trigger: Value) -> Result<Vec<(String, Vec<String>)>, UnfitTrigger> {
    let tasks = sound(&document(phases)).tasks(&map(trigger), None)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |task: &Value| {
        let on = task["dependencies"].as_array().into_iter().flatten();
        (text(&task["id"]), on.map(|it| text(&it["id"])).collect())
    };
    Ok(tasks.iter().skip(1).map(of).collect())
}

fn is_skipped(condition: &str, trigger: Value) -> bool {
    let phases = format!(
        "  a: {{assign: x, initial_state: {{on: false, n: 1}}, skip_when: {condition}}}\n  b: {{assign: x}}\n"
    );
    let found = tasks(&phases, trigger).expect("the trigger fits");
    !found.iter().any(|(id, _)| *id == alias(0))
}

#[test]
fn a_condition_holds_for_what_is_known_when_the_run_is_created() {
    for (condition, trigger, skipped) in [
        ("true", json!({}), true),
        ("\"true\"", json!({}), true),
        ("false", json!({}), false),
        ("$trigger.fast", json!({}), false),
        ("$trigger.fast", json!({"fast": null}), false),
        ("$trigger.fast", json!({"fast": false}), false),
        ("$trigger.fast", json!({"fast": true}), true),
        ("$trigger.fast", json!({"fast": 0}), true),
        ("not $trigger.fast", json!({"fast": 0}), false),
        ("not $trigger.fast", json!({}), true),
        (
            "\"$trigger.o#/kind == \\\"small\\\"\"",
            json!({"o": {"kind": "small"}}),
            true,
        ),
        (
            "\"$trigger.o#/kind == \\\"small\\\"\"",
            json!({"o": {"kind": "large"}}),
            false,
        ),
        ("$trigger.n == 1", json!({"n": 1}), true),
        ("$trigger.n == 1", json!({"n": "1"}), false),
        ("$trigger.n == 1", json!({"n": 1.0}), true),
        (
            "'$trigger.mode != \"a==b\"'",
            json!({"mode": "a==b"}),
            false,
        ),
        ("'$trigger.mode == \"a!=b\"'", json!({"mode": "a!=b"}), true),
        ("$trigger.n != 1", json!({}), true),
        ("$trigger.n == null", json!({}), true),
        ("$initial_state.on", json!({}), false),
        ("not $initial_state.on", json!({}), true),
        ("$initial_state.n == 1", json!({}), true),
    ] {
        assert_eq!(
            is_skipped(condition, trigger.clone()),
            skipped,
            "{condition} {trigger}"
        );
    }
}

#[test]
fn what_follows_a_skipped_phase_waits_for_what_that_would_have_waited_for() {
    let phases = "  a: {assign: x}\n  b: {assign: x, depends_on: [a], skip_when: $trigger.fast}\n  c: {assign: x, depends_on: [b], skip_when: $trigger.fast}\n  d: {assign: x, depends_on: [c, a]}\n";
    let text = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let found = tasks(phases, json!({"fast": true})).expect("the trigger fits");
    assert_eq!(
        found,
        [(alias(0), text(&[])), (alias(3), text(&["phase-1"]))]
    );
    assert_eq!(tasks(phases, json!({})).expect("the trigger fits").len(), 4);
}

#[test]
fn inputs_from_a_skipped_phase_have_their_defaults_or_are_absent() {
    let phases = "  a: {assign: x, skip_when: $trigger.fast, outputs: {n: number}}\n  b:\n    assign: x\n    depends_on: [a]\n    inputs: {n: {from: a.n, default: 7}, m: {from: a.n, required: false}}\n";
    let run = sound(&document(phases)).tasks(&map(json!({"fast": true})), None);
    let run = run.expect("the trigger fits");
    assert_eq!(run[1]["inputs"], json!({"n": 7}));
    assert_eq!(run[1]["schemas"]["wiring"], json!({}));

    let needed = phases.replace("{from: a.n, default: 7}", "a.n");
    let report = read(&document(&needed), false);
    assert_eq!(report.warnings.len(), 1, "{report:?}");
    assert!(report.warnings[0].reason.contains("may be skipped"));
    assert!(!read(&document(&needed), true).errors.is_empty());
    let refused = tasks(&needed, json!({"fast": true}));
    let told = refused.expect_err("b cannot run").to_string();
    assert_eq!(
        told,
        "input `n` of phase `b`: `a.n` has no value, because `a` is skipped; it needs a default or `required: false`"
    );
    assert_eq!(
        tasks(&needed, json!({})).expect("nothing is skipped").len(),
        2
    );
}

#[test]
fn a_condition_that_is_not_understood_is_told_and_never_holds() {
    for condition in [
        "never",
        "a.n",
        "$trigger",
        "$trigger.a.b ==",
        "$trigger.a == b",
        "$trigger.a > 3",
        "not $trigger.a > 3",
        "$trigger.a && $trigger.b",
        "\"$trigger.a b\"",
        "[]",
        "3",
        "$state.x",
    ] {
        let text = document(&format!("  a: {{assign: x, skip_when: {condition}}}\n"));
        let report = read(&text, false);
        let warning = report.warnings.first().expect("it is told");
        assert_eq!(warning.path, "workflow.a.skip_when", "{condition}");
        let workflow = report.workflow.expect("it is a warning");
        assert_eq!(workflow.phases[0].skip_when, None);
        assert_eq!(workflow.not_acted_on, ["workflow.a.skip_when"]);
        assert_eq!(read(&text, true).errors[0].path, "workflow.a.skip_when");
    }
    let sure = sound(&document("  a: {assign: x, skip_when: false}\n"));
    assert_eq!(sure.phases[0].skip_when, Some(SkipWhen::Always(false)));
}

#[test]
fn dependencies_that_multiply_are_refused() {
    let phases = 1_000;
    let all: Vec<String> = (0..phases).map(|i| format!("a{i}")).collect();
    let mut lines: Vec<String> = all
        .iter()
        .map(|name| format!("  {name}: {{assign: x}}"))
        .collect();
    let all = all.join(", ");
    lines.push(format!(
        "  hub: {{assign: x, skip_when: $trigger.f, depends_on: [{all}]}}"
    ));
    lines.extend((0..phases).map(|i| format!("  b{i}: {{assign: x, depends_on: [hub]}}")));
    let text = lines.join("\n");
    let refused = tasks(&text, json!({"f": true}));
    assert_eq!(refused, Err(UnfitTrigger::TooManySkipped));
    assert!(tasks(&text, json!({})).is_ok());
}

#[test]
fn a_skipped_phase_is_played_as_one() {
    let phases = "  a: {assign: x}\n  b: {assign: x, depends_on: [a], skip_when: $trigger.fast}\n  c: {assign: x, depends_on: [b]}\n";
    let workflow = sound(&document(phases));
    let played = workflow.play(&map(json!({"fast": true})), &map(json!({"c": {}})));
    let statuses = |played: &[Value]| {
        played
            .iter()
            .map(|it| it["status"].clone())
            .collect::<Vec<_>>()
    };
    let first = played.expect("it is played");
    assert_eq!(
        statuses(&first.phases),
        ["in_progress", "skipped", "pending"]
    );
    assert_eq!(first.phases[2]["reason"], "phase `a` has not completed");
    let outputs = map(json!({"a": {}, "c": {}}));
    let whole = workflow.play(&map(json!({"fast": true})), &outputs);
    let whole = whole.expect("it is played");
    assert_eq!(
        statuses(&whole.phases),
        ["completed", "skipped", "completed"]
    );
}
