//! Faults and their places: line, column and path.

use super::{document, errors};
use serde_json::json;
use taskledger_workflows::{Fault, Report, VALIDATION, WIRING, read, read_json};

fn told(text: &str) -> Vec<String> {
    errors(&read(text, false))
}

/// The one error of a document with these phases.
fn wiring(phases: &str) -> Fault {
    let mut report = read(&document(phases), false);
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    report.errors.remove(0)
}

fn at(fault: &Fault) -> (u32, u32, &str) {
    (
        fault.line.unwrap_or(0),
        fault.column.unwrap_or(0),
        &fault.path,
    )
}

#[test]
fn faults_of_yaml_have_their_place() {
    for (text, expected) in [
        ("a: [1\nb: 2\n", "2:2 : invalid YAML: "),
        (
            "a: 1\na: 2\nb: {c: 1, c: 2}\n",
            "2:1 a: duplicate key `a`; the first is in line 1",
        ),
        (
            "? [a]\n: 1\n",
            "1:3 : a key is a map or a list; keys are strings",
        ),
        (
            "a: &x b\n*x : 1\n",
            "2:1 : a key is an alias; keys are written out",
        ),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n",
            "3:3 c[\"<<\"]: merge keys (`<<`) are not part of YAML 1.2",
        ),
        (
            "a: !thing 1\n",
            "1:4 a: only the tags of the core schema are known, such as !!str: `1`",
        ),
        (
            "a: !!int x\n",
            "1:4 a: the value is not of the type that its tag names: `x`",
        ),
        (
            "a: [.nan]\n",
            "1:5 a[0]: the number is not finite, which JSON cannot express; quote it if it is a text: `.nan`",
        ),
        (
            "a: 18446744073709551616\n",
            "1:4 a: the integer does not fit into 64 bits; quote it if it is a text: `18446744073709551616`",
        ),
        ("- a\n", "1:1 : a workflow document is a map, found a list"),
        (
            "text\n",
            "1:1 : a workflow document is a map, found `\"text\"`",
        ),
    ] {
        let told = told(text);
        assert!(
            told.iter().any(|fault| fault.starts_with(expected)),
            "{text}: {told:?}"
        );
    }
}

#[test]
fn all_faults_are_told_in_the_order_of_the_document() {
    let text = "\
openintent: false
info: {version: 1.0}
workflow:
  a:
    depends_on: [a, b, nothing]
    retry: {max_attempts: 0, backoff: linaer}
  b:
    assign: ''
    depends_on: a
    constraints: [1]
    outputs: {k: 1}
    inputs: [x]
  c: text
  d:
validation: deeep
";
    assert_eq!(
        told(text),
        [
            "1:13 openintent: `openintent` must be the version of the format, such as \"1.0\", found `false`",
            "2:1 info.name: `name` is missing: the name of the workflow",
            "2:17 info.version: `version` must be a string, found `1.0`",
            "4:3 workflow.a.assign: `assign` is missing: who works on the phase",
            "5:18 workflow.a.depends_on[0]: the phase depends on itself",
            "5:24 workflow.a.depends_on[2]: there is no phase `nothing`",
            "6:27 workflow.a.retry.max_attempts: `max_attempts` must be a whole number from 1 to 101, found `0`",
            "6:39 workflow.a.retry.backoff: `backoff` must be `constant`, `linear` or `exponential`, found `\"linaer\"`",
            "8:13 workflow.b.assign: `assign` must be a string of 1 to 255 characters, found 0",
            "9:17 workflow.b.depends_on: `depends_on` must be a list of phase names, found `\"a\"`",
            "10:19 workflow.b.constraints[0]: an item of `constraints` must be a string, found `1`",
            "11:18 workflow.b.outputs.k: Invalid type: expected a type expression, a shape {field: type}, {enum: [values]} or {schema: JSON Schema}, found `1`",
            "12:13 workflow.b.inputs: `inputs` must be a map from keys to references, found a list",
            "13:6 workflow.c: a phase is a map, found `\"text\"`",
            "14:3 workflow.d: a phase is a map, found nothing",
            "15:13 validation: `validation` must be `deep` or `shallow`, found `\"deeep\"`",
        ]
    );
    let report = read(text, false);
    let suggestion = |path: &str| {
        let fault = report.errors.iter().find(|fault| fault.path == path);
        fault.and_then(|fault| fault.suggestion.as_deref())
    };
    assert_eq!(suggestion("info.version"), Some("quote it: \"1.0\""));
    assert_eq!(
        suggestion("workflow.a.retry.backoff"),
        Some("did you mean `linear`?")
    );
    assert_eq!(
        suggestion("workflow.b.depends_on"),
        Some("write a list: `[a]`")
    );
    assert_eq!(suggestion("validation"), Some("did you mean `deep`?"));
    let of_b = report
        .errors
        .iter()
        .find(|fault| fault.path == "workflow.b.assign");
    let of_b = of_b.expect("it is told");
    assert_eq!(
        (of_b.error, of_b.phase_name.as_deref()),
        (VALIDATION, Some("b"))
    );
}

#[test]
fn what_a_document_must_have_is_missed() {
    let expected = [
        "1:1 openintent: `openintent` is missing: the version of the format, such as \"1.0\"",
        "1:1 info: `info` is missing: a map with `name`",
        "1:1 workflow: `workflow` is missing: a map from names to phases",
    ];
    assert_eq!(told("other: 1\n"), expected);
    let empty = read("openintent: '1'\ninfo: {name: n}\nworkflow: {}\n", false);
    assert_eq!(errors(&empty), ["3:1 workflow: the workflow has no phases"]);
    let as_value = read_json(&json!({"other": 1}), false);
    assert_eq!(
        errors(&as_value),
        expected.map(|text| text.replacen("1:1", "-:-", 1))
    );
    let near = read(
        "openinten: '1'\ninfo: {name: n}\nworkflow: {p: {assing: x}}\n",
        false,
    );
    let suggestions: Vec<_> = near
        .errors
        .iter()
        .map(|fault| fault.suggestion.as_deref())
        .collect();
    assert_eq!(
        suggestions,
        [
            Some("rename `openinten` to `openintent`"),
            Some("rename `assing` to `assign`")
        ]
    );
}

/// N5, N6
#[test]
fn a_reference_to_a_phase_that_does_not_exist_is_an_error() {
    let fault = wiring(
        "  fetch: {assign: x}\n  use:\n    assign: x\n    depends_on: [fetch]\n    inputs:\n      a: fetsh.k\n",
    );
    assert_eq!(at(&fault), (9, 10, "workflow.use.inputs.a"));
    assert_eq!(
        (fault.error, fault.phase_name.as_deref()),
        (WIRING, Some("use"))
    );
    assert_eq!(fault.invalid_refs, ["fetsh.k"]);
    assert_eq!(fault.reason, "`a`: `fetsh.k` there is no phase `fetsh`");
    assert_eq!(fault.suggestion.as_deref(), Some("did you mean `fetch`?"));
}

/// N7
#[test]
fn a_reference_to_an_indirect_dependency_is_an_error() {
    let report = read(
        &document(
            "  a: {assign: x}\n  b: {assign: x, depends_on: [a]}\n  c: {assign: x, depends_on: [b], inputs: {k: a.v, own: c.v}}\n",
        ),
        false,
    );
    let [indirect, own] = &report.errors[..] else {
        panic!("{:?}", report.errors)
    };
    assert_eq!(at(indirect), (6, 47, "workflow.c.inputs.k"));
    // The first says all references of the phase that are wrong.
    assert_eq!(indirect.invalid_refs, ["a.v", "c.v"]);
    assert_eq!(
        indirect.suggestion.as_deref(),
        Some("add `a` to `depends_on`")
    );
    assert_eq!(at(own), (6, 57, "workflow.c.inputs.own"));
    assert_eq!(own.invalid_refs, ["c.v"]);
    assert_eq!(own.reason, "`own`: `c.v` names the phase itself");
    for fault in [indirect, own] {
        assert_eq!(
            (fault.error, fault.phase_name.as_deref()),
            (WIRING, Some("c"))
        );
    }
}

/// N8
#[test]
fn a_reference_to_an_output_that_is_not_declared_is_an_error() {
    let phases = |outputs: &str| {
        format!(
            "  a: {{assign: x{outputs}}}\n  b: {{assign: x, depends_on: [a], inputs: {{k: a.totl}}}}\n"
        )
    };
    let fault = wiring(&phases(", outputs: {total: number}"));
    assert_eq!(at(&fault), (5, 47, "workflow.b.inputs.k"));
    assert_eq!(fault.suggestion.as_deref(), Some("did you mean `total`?"));
    for unchecked in ["", ", outputs: {}", ", outputs: []", ", outputs:"] {
        assert_eq!(told(&document(&phases(unchecked))), [""; 0], "{unchecked}");
    }
}

/// N4, N9
#[test]
fn a_reference_has_one_of_three_forms() {
    let inputs = [
        "a",
        "a.",
        ".k",
        "''",
        "$trigger",
        "$trigger.",
        "$triger.k",
        "$state.k",
        "a#/k",
        "a#",
        "'a.k#k'",
        "'a.k#/~2'",
        "7",
        "[a.k]",
        "{}",
        "{from: }",
        "{from: [a]}",
        "{from: b.k}",
        "a.#/x",
    ];
    for text in inputs {
        let fault = wiring(&format!(
            "  a: {{assign: x}}\n  c:\n    assign: x\n    depends_on: [a]\n    inputs:\n      in: {text}\n"
        ));
        assert_eq!(
            (fault.error, &*fault.path, fault.line),
            (WIRING, "workflow.c.inputs.in", Some(9)),
            "{text}"
        );
        assert_eq!(fault.invalid_refs.len(), 1, "{text}");
    }
    for text in [
        "a.k",
        "'a.k#'",
        "'a.k#/x~01/0'",
        "$trigger.a.b",
        "'$trigger.k#/x'",
        "{from: a.k, type: string, required: false}",
    ] {
        let phases = format!(
            "  a: {{assign: x}}\n  c: {{assign: x, depends_on: [a], inputs: {{in: {text}}}}}\n"
        );
        assert_eq!(told(&document(&phases)), [""; 0], "{text}");
    }
}

#[test]
fn a_cycle_names_its_members() {
    let phases = "  a: {assign: x, depends_on: [c]}\n  b: {assign: x, depends_on: [a]}\n  c: {assign: x, depends_on: [b]}\n  d: {assign: x, depends_on: [a]}\n";
    let expected = "4:18 workflow.a.depends_on: phases depend on each other in a cycle: `a` -> `c` -> `b` -> `a`";
    assert_eq!(told(&document(phases)), [expected]);
}

/// The paths of errors and of warnings.
fn paths(report: &Report) -> (Vec<&str>, Vec<&str>) {
    let errors = report.errors.iter().map(|fault| &*fault.path).collect();
    (
        errors,
        report.warnings.iter().map(|fault| &*fault.path).collect(),
    )
}

#[test]
fn what_is_probably_a_mistake_is_a_warning_and_an_error_when_strict() {
    let text = document(
        "  a: {assign: x, title: T, outputs: {k: {type: any, required: false}}}\n  b: {assign: x, title: T, depnds_on: []}\n  c:\n    assign: x\n    depends_on: [a, a, B two]\n    inputs:\n      k: a.k\n      l: {from: a.k, default: 1}\n      m: {from: a.k, required: false, tpye: string}\n  d: {assign: x, title: B two, skip_when: never, retry: {max_atempts: 2}}\ngovernance: {}\nagent: {}\n",
    );
    let expected = [
        "workflow.b.title",
        "workflow.b.depnds_on",
        "workflow.c.depends_on[1]",
        "workflow.c.depends_on[2]",
        "workflow.c.inputs.k",
        "workflow.c.inputs.m.tpye",
        "workflow.d.skip_when",
        "workflow.d.retry.max_atempts",
        "agent",
    ];
    let lenient = read(&text, false);
    assert_eq!(paths(&lenient), (vec![], expected.to_vec()));
    let workflow = lenient.workflow.expect("warnings are no errors");
    assert_eq!(workflow.phases[2].depends_on, ["a", "d"]);
    let without_effect = [
        "governance",
        "agent",
        "workflow.b.depnds_on",
        "workflow.c.inputs.m.tpye",
        "workflow.d.skip_when",
        "workflow.d.retry.max_atempts",
    ];
    assert_eq!(workflow.not_acted_on, without_effect);
    let strict = read(&text, true);
    assert_eq!(paths(&strict), (expected.to_vec(), vec![]));
    assert_eq!(strict.errors[4].error, WIRING);
    assert_eq!(
        strict.errors[1].suggestion.as_deref(),
        Some("did you mean `depends_on`?")
    );
}

#[test]
fn another_version_of_the_format_is_a_warning_and_an_error_when_strict() {
    let with = |version: &str| {
        format!("openintent: {version}\ninfo: {{name: n}}\nworkflow:\n  a: {{assign: x}}\n")
    };
    for known in ["\"1.0\"", "'1'", "1.0", "1", "\" 1.0 \""] {
        let report = read(&with(known), true);
        assert_eq!(paths(&report), (vec![], vec![]), "{known}");
    }
    for other in ["\"2.0\"", "1.1", "latest", "true", "[1]", "{v: 1}"] {
        let lenient = read(&with(other), false);
        assert_eq!(paths(&lenient), (vec![], vec!["openintent"]), "{other}");
        assert!(lenient.workflow.is_some(), "{other}");
        let strict = read(&with(other), true);
        assert_eq!(paths(&strict), (vec!["openintent"], vec![]), "{other}");
    }
    let warning = read(&with("\"2.0\""), false).warnings.remove(0);
    assert_eq!(
        (warning.reason.as_str(), warning.suggestion.as_deref()),
        (
            "unknown version of the format: `\"2.0\"`; the document is read as \"1.0\"",
            Some("write \"1.0\"")
        )
    );
}

#[test]
fn a_title_that_two_phases_share_names_neither() {
    let phases = "  a: {assign: x, title: T}\n  b: {assign: x, title: T}\n  c: {assign: x, depends_on: [T]}\n";
    assert_eq!(
        told(&document(phases)),
        ["6:31 workflow.c.depends_on[0]: several phases have the title `T`"]
    );
}

#[test]
fn limits_of_tasks_are_those_of_phases() {
    let long = "n".repeat(256);
    let phases = format!(
        "  {long}: {{assign: x}}\n  p: {{assign: {long}}}\n  $q: {{assign: x}}\n  '': {{assign: x}}\n"
    );
    let told = told(&document(&phases));
    let expected = [
        "the name of a phase has 1 to 255 characters, found 256",
        "`assign` must be a string of 1 to 255 characters, found 256",
        "the name of a phase must not begin with `$`",
        "the name of a phase has 1 to 255 characters, found 0",
    ];
    assert!(
        told.len() == 4
            && told
                .iter()
                .zip(expected)
                .all(|(told, end)| told.ends_with(end)),
        "{told:?}"
    );
    let inputs: String = (0..257).map(|i| format!("k{i}: $trigger.k, ")).collect();
    let many = errors(&read(
        &document(&format!("  p: {{assign: x, inputs: {{{inputs}}}}}\n")),
        false,
    ));
    assert_eq!(
        many,
        ["4:18 workflow.p.inputs: 257 inputs, the limit is 256"]
    );
    let fault = wiring(&format!(
        "  p: {{assign: x, inputs: {{k: $trigger.{}}}}}\n",
        "k".repeat(1024)
    ));
    assert!(
        fault.reason.ends_with("has more than 1024 characters"),
        "{}",
        fault.reason
    );
}

#[test]
fn what_tasks_cannot_declare_is_told_before_there_are_tasks() {
    let many: String = (0..257).map(|i| format!("k{i}: any, ")).collect();
    let required = "x: {type: number, required: no}";
    for (outputs, expected) in [
        (required, "workflow.a.outputs.x.required"),
        (many.as_str(), "workflow.a.outputs"),
    ] {
        let phases = format!("  a: {{assign: w, outputs: {{{outputs}}}}}\n");
        let report = read(&document(&phases), false);
        let fault = report.errors.first().expect("it has an error");
        let found = (fault.path.as_str(), report.workflow.is_none());
        assert_eq!(found, (expected, true));
        assert_eq!(fault.phase_name.as_deref(), Some("a"));
    }
}
