//! Declared types of inputs against the types of their sources, before a run.

use super::{document, errors, sound};
use serde_json::{Map, Value, json};
use taskledger_workflows::{Report, UnfitTrigger, WIRING, read};

/// A document in which `b` takes `input` and `a` gives `outputs`, each in the flow style of YAML.
fn wired(outputs: &str, input: &str) -> String {
    document(&format!(
        "  a: {{assign: x, outputs: {outputs}}}\n  b: {{assign: y, depends_on: [a], initial_state: {{n: 5}}, inputs: {{v: {input}}}}}\ntypes:\n  P: {{name: string, age?: integer}}\n"
    ))
}

fn told(outputs: &str, input: &str) -> Report {
    read(&wired(outputs, input), false)
}

fn reasons(report: &Report) -> (Vec<&str>, Vec<&str>) {
    let of = |faults| -> Vec<&str> {
        let faults: &[taskledger_workflows::Fault] = faults;
        faults.iter().map(|fault| &*fault.reason).collect()
    };
    (of(&report.errors), of(&report.warnings))
}

#[test]
fn an_output_that_can_never_be_of_the_declared_type_is_an_error_with_its_place() {
    let report = told("{o: string}", "{from: a.o, type: number}");
    assert_eq!(
        errors(&report),
        ["5:88 workflow.b.inputs.v: `a.o` is of type `string`, which is never of type `number`"]
    );
    assert_eq!(report.errors[0].error, WIRING);
    assert_eq!(report.errors[0].invalid_refs, ["a.o"]);
    assert_eq!(report.errors[0].phase_name.as_deref(), Some("b"));
}

#[test]
fn an_output_that_may_not_be_of_the_declared_type_is_a_warning_and_an_error_when_strict() {
    let text = wired("{o: string?}", "{from: a.o, type: string}");
    let expected = "`a.o` is of type `string?`, which may be not of type `string`";
    assert_eq!(reasons(&read(&text, false)), (vec![], vec![expected]));
    assert_eq!(reasons(&read(&text, true)), (vec![expected], vec![]));
}

#[test]
fn what_fits_or_is_not_declared_is_not_mentioned() {
    for (outputs, input) in [
        ("{o: integer}", "{from: a.o, type: number}"),
        ("{o: {type: P}}", "{from: a.o, type: P}"),
        ("{o: any}", "{from: a.o, type: number}"),
        ("[o]", "{from: a.o, type: number}"),
        ("{o: object}", "{from: \"a.o#/x/y\", type: number}"),
        ("{o: string}", "a.o"),
        ("{o: P}", "{from: \"a.o#/name\", type: string}"),
        (
            "{o: map<array<P>>}",
            "{from: \"a.o#/x/0/age\", type: integer}",
        ),
        ("{o: P?}", "{from: \"a.o#/more\", type: integer}"),
        (
            "{o: {enum: [{k: 1}, {k: 2}]}}",
            "{from: \"a.o#/k\", type: 1|2}",
        ),
    ] {
        let report = told(outputs, input);
        assert_eq!(reasons(&report), (vec![], vec![]), "{outputs} {input}");
    }
}

#[test]
fn pointers_lead_into_types() {
    let error = |outputs: &str, input: &str| {
        let report = told(outputs, input);
        let (errors, _) = reasons(&report);
        errors.first().map(|&it| it.to_owned()).unwrap_or_default()
    };
    assert_eq!(
        error("{o: array<P>}", "{from: \"a.o#/0/age\", type: string}"),
        "`a.o#/0/age` is of type `integer`, which is never of type `string`"
    );
    assert_eq!(
        error(
            "{o: array<P>|map<number>}",
            "{from: \"a.o#/0\", type: boolean}"
        ),
        "`a.o#/0` is of type `P|number`, which is never of type `boolean`"
    );
    for (outputs, input, of, place) in [
        ("{o: string}", "\"a.o#/x\"", "string", "/x"),
        (
            "{o: array<P>}",
            "{from: \"a.o#/name\", default: 1}",
            "array<P>",
            "/name",
        ),
        ("{o: array<string>}", "\"a.o#/01\"", "array<string>", "/01"),
    ] {
        let (expected, found) = (
            format!("values of type `{of}` have nothing at `{place}`"),
            error(outputs, input),
        );
        assert!(found.ends_with(&expected), "{found}");
    }
}

#[test]
fn a_shallow_check_knows_nothing_of_parts() {
    let text = wired("{o: array<string>}", "{from: \"a.o#/0\", type: number}");
    assert_eq!(read(&text, false).errors.len(), 1);
    let text = format!("{text}validation: shallow\n");
    assert_eq!(reasons(&read(&text, false)), (vec![], vec![]));
}

#[test]
fn defaults_and_initial_state_are_of_the_declared_type() {
    let report = told("{o: string}", "{from: a.o, type: string, default: 7}");
    assert_eq!(
        errors(&report),
        [
            "5:105 workflow.b.inputs.v.default: the default is not of its type: expected `string`, found integer"
        ]
    );
    let report = told("{o: string}", "{from: a.o, type: string, default: null}");
    assert_eq!(
        reasons(&report).0,
        ["the default is not of its type: expected `string`, found null"]
    );
    let report = told("{o: string}", "{from: $initial_state.n, type: string}");
    assert_eq!(
        reasons(&report).0,
        ["`$initial_state.n` is not of its type: expected `string`, found integer"]
    );
    let report = told(
        "{o: string}",
        "{from: $initial_state.n, type: integer, default: 1}",
    );
    assert_eq!(reasons(&report).0, [""; 0]);
}

#[test]
fn a_trigger_is_of_the_declared_types() {
    let workflow = sound(&wired("{o: string}", "{from: \"$trigger.t#/p\", type: P}"));
    let run = |trigger: Value| {
        let trigger: Map<String, Value> = trigger.as_object().cloned().unwrap_or_default();
        workflow.tasks(&trigger, None)
    };
    assert!(run(json!({"t": {"p": {"name": "Ada"}}})).is_ok());
    let absent = run(json!({"t": {}})).expect_err("the trigger lacks it");
    assert!(matches!(absent, UnfitTrigger::Lacking(_)));
    let null = run(json!({"t": {"p": null}}));
    assert!(null.is_ok(), "the claim names what is null");
    let refused = run(json!({"t": {"p": {"name": 1}}})).expect_err("a number is no name");
    assert_eq!(
        refused.to_string(),
        "input `v` of phase `b`: `$trigger.t#/p` is not of its type: expected `string` at `/name`, found integer"
    );
    assert!(matches!(refused, UnfitTrigger::Unlike { .. }));
}

#[test]
fn comparisons_of_a_report_share_their_steps() {
    let union: Vec<String> = (0..200)
        .map(|i| format!("{{f{i}: array<string>}}"))
        .collect();
    let types: String = union
        .iter()
        .enumerate()
        .map(|(i, shape)| format!("  T{i}: {shape}\n"))
        .collect();
    let names: Vec<String> = (0..200).map(|i| format!("T{i}")).collect();
    let (all, most) = (names.join("|"), names[..199].join("|"));
    let inputs: Vec<String> = (0..200)
        .map(|i| format!("i{i}: {{from: a.o, type: array<{most}>}}"))
        .collect();
    let text = format!(
        "{}types:\n{types}",
        document(&format!(
            "  a: {{assign: x, outputs: {{o: array<{all}>}}}}\n  b: {{assign: y, depends_on: [a], inputs: {{{}}}}}\n",
            inputs.join(", ")
        ))
    );
    let report = read(&text, false);
    assert_eq!(errors(&report), [""; 0]);
    let some = 1..200;
    assert!(
        some.contains(&report.warnings.len()),
        "{}",
        report.warnings.len()
    );
}
