//! The documents that RFC-0024 shows.

use super::{EXAMPLE, document, sound};
use serde_json::{Value, json};
use taskledger_workflows::{Source, Validation, Workflow, read, read_json};

fn outputs(workflow: &Workflow, index: usize) -> Value {
    json!(workflow.phases[index].outputs)
}

fn sources(workflow: &Workflow, index: usize) -> Vec<String> {
    let inputs = workflow.phases[index].inputs.iter();
    let shown = inputs.map(|(key, input)| match &input.source {
        Source::Phase {
            phase, key: output, ..
        } => format!("{key} <- {phase} {output}"),
        Source::Trigger { key: from, .. } => format!("{key} <- trigger {from}"),
        Source::InitialState { key: from, .. } => format!("{key} <- state {from}"),
    });
    shown.collect()
}

#[test]
fn the_complete_example_is_read() {
    let workflow = sound(EXAMPLE);
    assert_eq!(workflow.name, "Quarterly Compliance Report");
    assert_eq!(
        (&*workflow.version, workflow.validation),
        ("1.0.0", Validation::Deep)
    );
    let names: Vec<_> = workflow.phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(
        names,
        [
            "fetch_financials",
            "fetch_hr_data",
            "run_analysis",
            "generate_report"
        ]
    );
    let analysis = &workflow.phases[2];
    assert_eq!(analysis.title, "Run Compliance Analysis");
    assert_eq!(analysis.assign, "analytics-agent");
    assert_eq!(analysis.depends_on, ["fetch_financials", "fetch_hr_data"]);
    assert_eq!(
        sources(&workflow, 2),
        [
            "fin_revenue <- fetch_financials revenue",
            "fin_expenses <- fetch_financials expenses",
            "hr_headcount <- fetch_hr_data headcount",
            "hr_attrition <- fetch_hr_data attrition_rate",
        ]
    );
    let expected =
        json!({"findings": "array", "risk_level": "string", "violations_found": "boolean"});
    assert_eq!(outputs(&workflow, 2), expected);
    assert_eq!(
        workflow.types.expect("it has types")["HRData"]["headcount"],
        "number"
    );
    assert_eq!(workflow.not_acted_on, [""; 0]);
    assert_eq!(workflow.hash.len(), 64);
}

#[test]
fn its_one_fault_is_the_state_that_it_does_not_have() {
    for strict in [false, true] {
        let report = read(EXAMPLE, strict);
        let (told, others) = match strict {
            false => (&report.warnings, &report.errors),
            true => (&report.errors, &report.warnings),
        };
        assert_eq!(*others, [], "strict: {strict}");
        let [warning] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(warning.path, "workflow.fetch_financials.inputs.source");
        assert_eq!((warning.line, warning.column), (Some(23), Some(15)));
        assert_eq!(warning.invalid_refs, ["$initial_state.source"]);
    }
}

#[test]
fn the_snippets_are_read() {
    // 1.1, 1.2
    let declared = sound(&format!(
        "types:\n  FinancialSummary: {{revenue: number}}\n{}",
        document(
            "  fetch_financials:\n    title: \"Fetch Financials\"\n    assign: data-agent\n    outputs:\n      revenue: number\n      findings: FinancialSummary\n"
        )
    ));
    assert_eq!(
        outputs(&declared, 0),
        json!({"revenue": "number", "findings": "FinancialSummary"})
    );
    // 1.3
    let optional = sound(&document(
        "  check:\n    assign: a\n    outputs:\n      status: string\n      warnings:\n        type: array\n        required: false\n",
    ));
    let expected = json!({"status": "string", "warnings": {"type": "array", "required": false}});
    assert_eq!(outputs(&optional, 0), expected);
    // 2.1, 2.2
    let wired = sound(&document(
        "  research: {assign: r, outputs: {sources: array, findings: any}}\n  compliance_check: {assign: c}\n  analysis:\n    assign: analyst\n    depends_on: [research, compliance_check]\n    inputs:\n      research_findings: research.findings\n      sources_list: research.sources\n      status: compliance_check.status\n",
    ));
    assert_eq!(
        sources(&wired, 2),
        [
            "research_findings <- research findings",
            "sources_list <- research sources",
            "status <- compliance_check status",
        ]
    );
    // 2.3
    let fixed = sound(&document(
        "  fetch_data:\n    assign: data-agent\n    initial_state: {source: db}\n    inputs:\n      quarter: $trigger.quarter\n      source: $initial_state.source\n",
    ));
    assert_eq!(
        sources(&fixed, 0),
        ["quarter <- trigger quarter", "source <- state source"]
    );
    // 9
    let bare = sound(&document("  old: {assign: a}\n"));
    assert_eq!(
        (sources(&bare, 0).len(), outputs(&bare, 0)),
        (0, json!(null))
    );
    let legacy = sound(&document("  old: {assign: a, outputs: [x, y]}\n"));
    assert_eq!(outputs(&legacy, 0), json!({"x": "any", "y": "any"}));
}

#[test]
fn names_with_dots_and_pointers_are_split_at_the_longest_dependency() {
    let workflow = sound(&document(
        "  a: {assign: x}\n  a.b: {assign: x}\n  both:\n    assign: x\n    depends_on: [a, a.b]\n    inputs: {k: a.b.c, p: 'a.json#/items/0/id'}\n  one:\n    assign: x\n    depends_on: [a.b]\n    inputs: {k: a.b.c.d}\n",
    ));
    assert_eq!(sources(&workflow, 2), ["k <- a.b c", "p <- a json"]);
    let Source::Phase { pointer, .. } = &workflow.phases[2].inputs[1].1.source else {
        panic!("it names a phase")
    };
    assert_eq!(pointer.as_deref(), Some("/items/0/id"));
    assert_eq!(sources(&workflow, 3), ["k <- a.b c.d"]);
}

#[test]
fn words_of_yaml_1_1_are_strings_and_keys_are_their_texts() {
    let workflow = sound(&document(
        "  on:\n    assign: no\n    initial_state: {1: yes, null: ~, true: off, t: 12:30, d: 2026-01-01}\n  1: {assign: y, depends_on: [on]}\n",
    ));
    assert_eq!(
        (&*workflow.phases[0].name, &*workflow.phases[0].assign),
        ("on", "no")
    );
    let expected =
        json!({"1": "yes", "null": null, "true": "off", "t": "12:30", "d": "2026-01-01"});
    assert_eq!(json!(workflow.phases[0].initial_state), expected);
    assert_eq!(workflow.phases[1].depends_on, ["on"]);
}

#[test]
fn the_same_document_as_json_is_the_same_workflow() {
    let value = json!({
        "openintent": "1.0",
        "info": {"name": "n", "version": "2", "description": "d"},
        "types": {"T": {"x": "number"}},
        "validation": "shallow",
        "agents": {"a": {"description": "kept"}},
        "workflow": {
            "a": {"assign": "m", "outputs": {"x": "T"}, "retry": {"max_attempts": 2, "backoff": "linear"}},
            "b": {"assign": "m", "depends_on": ["a"], "initial_state": {"f": 1.5, "big": u64::MAX},
                "inputs": {"k": {"from": "a.x#/x", "required": false, "default": null, "type": "number?"}},
                "leasing": "never", "constraints": ["c"]},
        },
    });
    let yaml = "# the same\nworkflow:\n  a: &a\n    assign: &m m\n    retry: {backoff: 'linear', max_attempts: 0x2}\n    outputs: {x: T}\n  b:\n    leasing: never\n    assign: *m\n    depends_on: [\"a\"]\n    constraints:\n    - c\n    inputs:\n      k:\n        from: a.x#/x\n        required: False\n        default:\n        type: number?\n    initial_state:\n      f: 15e-1\n      big: 18446744073709551615\nopenintent: \"1.0\"\ninfo: {name: n, version: \"2\", description: d}\nagents: {a: {description: kept}}\ntypes: {T: {x: number}}\nvalidation: shallow\n";
    let by_value = read_json(&value, true);
    assert_eq!((&by_value.errors, &by_value.warnings), (&vec![], &vec![]));
    let by_value = by_value.workflow.expect("it has no errors");
    assert_eq!(sound(&value.to_string()), by_value);
    assert_eq!(
        sound(&serde_json::to_string_pretty(&value).expect("JSON")),
        by_value
    );
    assert_eq!(sound(yaml), by_value);
    assert_eq!(by_value.not_acted_on, ["agents", "workflow.b.leasing"]);
    assert_eq!(
        json!(by_value.kept),
        json!({"agents": {"a": {"description": "kept"}}})
    );
    assert_eq!(json!(by_value.phases[1].kept), json!({"leasing": "never"}));
}

#[test]
fn json_text_is_read_as_writers_write_it() {
    let text = "{\n\t\"openintent\": \"1.0\",\r\n\t\"info\": {\"name\": \"\\ud83d\\ude00 \\u00e9 a\\/b\"},\n\t\"workflow\": {\"p\":{\"assign\":\"x\"}}}";
    assert_eq!(sound(text).name, "\u{1F600} é a/b");
}
