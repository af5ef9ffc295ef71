//! Faults that stand beside each other: each is told, at its own place, whatever else is wrong.

use super::{document, errors};
use taskledger_workflows::{Fault, Report, WIRING, read, read_json};

fn of(phases: &str) -> Report {
    read(&document(phases), false)
}

fn at(fault: &Fault) -> (Option<u32>, Option<u32>, &str) {
    (fault.line, fault.column, &fault.path)
}

/// The one fault of a list.
fn one(faults: &[Fault]) -> &Fault {
    match faults {
        [fault] => fault,
        _ => panic!("{faults:?}"),
    }
}

#[test]
fn a_fault_in_types_hides_no_fault_of_outputs_and_inputs() {
    let text = "\
openintent: '1'
info: {name: n}
types:
  Unused: Strin
  Used: {a: [string], b: number}
  Good: {n: number}
workflow:
  a: {assign: x, outputs: {o: numbr, good: Good, used: Used, list: array<Used>}}
  b:
    assign: x
    depends_on: [a]
    inputs:
      i: {from: a.o, type: strng, default: 5}
      j: {from: a.good, type: string}
      k: {from: a.used, type: string, default: 1}
      l: {from: 'a.list#/0/b', type: string}
      m: {from: a.nothing, type: Used}
";
    let told = errors(&read(text, false));
    let places: Vec<&str> = told
        .iter()
        .map(|told| told.split_once(": ").map_or("", |(place, _)| place))
        .collect();
    assert_eq!(
        places,
        [
            "4:3 types.Unused",
            "5:13 types.Used.a",
            "8:31 workflow.a.outputs.o",
            "13:28 workflow.b.inputs.i.type",
            "14:31 workflow.b.inputs.j",
            "15:48 workflow.b.inputs.k.default",
            "17:17 workflow.b.inputs.m",
        ],
        "{told:#?}"
    );
}

#[test]
fn types_with_faults_make_nothing_else_of_a_strict_reading_suspicious() {
    let text = format!(
        "types: {{Bad: strng, On: {{b: Bad}}}}\n{}",
        document(
            "  a: {assign: x, outputs: {o: On}}\n  b: {assign: x, depends_on: [a], inputs: {i: {from: a.o, type: {b: string}}}}\n"
        )
    );
    let report = read(&text, true);
    assert_eq!(one(&report.errors).path, "types.Bad");
    assert_eq!(report.warnings, []);
}

#[test]
fn each_bad_reference_has_its_own_fault() {
    let report = of(
        "  a: {assign: x, outputs: {total: number}}\n  b:\n    assign: x\n    depends_on: [a]\n    inputs:\n      one: a.totl\n      two: $triger.k\n      three: {from: c.k}\n      fine: a.total\n  d:\n    assign: x\n    inputs: {k: a.total}\n",
    );
    let places: Vec<_> = report.errors.iter().map(at).collect();
    assert_eq!(
        places,
        [
            (Some(9), Some(12), "workflow.b.inputs.one"),
            (Some(10), Some(12), "workflow.b.inputs.two"),
            (Some(11), Some(21), "workflow.b.inputs.three"),
            (Some(15), Some(17), "workflow.d.inputs.k"),
        ]
    );
    let refs: Vec<&[String]> = report
        .errors
        .iter()
        .map(|it| &it.invalid_refs[..])
        .collect();
    let all: &[&str] = &["a.totl", "$triger.k", "c.k"];
    assert_eq!(refs, [all, &["$triger.k"], &["c.k"], &["a.total"]]);
    assert!(report.errors.iter().all(|it| it.error == WIRING));
    let suggestions: Vec<_> = report
        .errors
        .iter()
        .map(|it| it.suggestion.as_deref())
        .collect();
    assert_eq!(
        suggestions,
        [
            Some("did you mean `total`?"),
            Some("did you mean `$trigger.k`?"),
            None,
            Some("add `a` to `depends_on`"),
        ]
    );
}

#[test]
fn what_is_said_wrong_of_an_output_has_a_place() {
    for (written, found, column) in [
        ("\"no\"", "`\"no\"`", 56),
        ("0", "`0`", 56),
        ("null", "nothing", 46),
    ] {
        let report = of(&format!(
            "  a: {{assign: x, outputs: {{o: {{type: string, required: {written}}}}}}}\n"
        ));
        let fault = one(&report.errors);
        let place = (Some(4), Some(column), "workflow.a.outputs.o.required");
        assert_eq!(at(fault), place);
        assert_eq!(
            fault.reason,
            format!("Wrong type: expected true or false, found {found}")
        );
        assert_eq!(fault.phase_name.as_deref(), Some("a"));
    }
    let many: String = (0..257).map(|i| format!("k{i}: any, ")).collect();
    let report = of(&format!("  a: {{assign: w, outputs: {{{many}}}}}\n"));
    assert_eq!(at(one(&report.errors)).0, Some(4));
    let empty = of("  a: {assign: x, outputs: {o: {enum: []}}}\n");
    let expected =
        "4:38 workflow.a.outputs.o.enum: Invalid enum: expected 1 to 1000 values, found `0`";
    assert_eq!(errors(&empty), [expected]);
    let near = of("  a: {assign: x, outputs: {o: {f: {type: string, requird: false}}}}\n");
    let fault = one(&near.errors);
    assert_eq!(fault.path, "workflow.a.outputs.o.f.requird");
    assert!(
        fault.reason.contains("did you mean `required`?"),
        "{}",
        fault.reason
    );
}

#[test]
fn an_input_from_a_phase_that_is_always_skipped_is_an_error() {
    let document = |a: &str, b: &str, input: &str| {
        format!(
            "  a: {{assign: x, {a}}}\n  b: {{assign: x, {b}depends_on: [a], inputs: {{k: {input}}}}}\n"
        )
    };
    for always in [
        "skip_when: true",
        "initial_state: {off: yes}, skip_when: $initial_state.off",
        "initial_state: {off: null}, skip_when: $initial_state.off == null",
    ] {
        let report = of(&document(always, "", "a.k"));
        let fault = one(&report.errors);
        assert_eq!(at(fault).2, "workflow.b.inputs.k", "{always}");
        assert!(
            fault.reason.contains("is skipped in every run"),
            "{}",
            fault.reason
        );
        assert_eq!(fault.error, WIRING);
        let with_default = of(&document(always, "", "{from: a.k, default: 1}"));
        assert_eq!(
            (with_default.errors, with_default.warnings),
            (vec![], vec![])
        );
        // What is never there itself needs nothing.
        let both = of(&document(always, "skip_when: true, ", "a.k"));
        assert_eq!((both.errors, both.warnings), (vec![], vec![]));
        let perhaps = of(&document(always, "skip_when: $trigger.t, ", "a.k"));
        assert_eq!((perhaps.errors.len(), perhaps.warnings.len()), (0, 1));
    }
    let never = of(&document(
        "initial_state: {off: false}, skip_when: $initial_state.off",
        "",
        "a.k",
    ));
    assert_eq!((never.errors, never.warnings), (vec![], vec![]));
    let depends = of(&document("skip_when: $trigger.t", "", "a.k"));
    assert_eq!((depends.errors.len(), depends.warnings.len()), (0, 1));
}

#[test]
fn an_executor_of_the_server_without_an_input_that_it_needs_is_told() {
    let report = of(
        "  a: {assign: approval_executor}\n  b: {assign: approval_executor, inputs: {qestion: $trigger.q}}\n  c: {assign: approval_executor, inputs: {question: $trigger.q}}\n  d: {assign: somebody}\n  e: {assign: http_executor, inputs: {}}\n",
    );
    assert_eq!(report.errors, []);
    let told: Vec<_> = report.warnings.iter().map(at).collect();
    assert_eq!(
        told,
        [
            (Some(4), Some(7), "workflow.a.inputs.question"),
            (Some(5), Some(34), "workflow.b.inputs.question"),
            (Some(8), Some(30), "workflow.e.inputs.url"),
        ]
    );
    assert_eq!(
        report.warnings[1].suggestion.as_deref(),
        Some("rename `qestion` to `question`")
    );
    let strict = read(&document("  a: {assign: approval_executor}\n"), true);
    assert_eq!(strict.errors.len(), 1);
}

#[test]
fn initial_state_that_is_absent_is_an_error_of_a_strict_reading() {
    for (state, reference, reason, suggestion) in [
        (
            "{source: x}",
            "$initial_state.sorce",
            "`initial_state` of the phase has no `sorce`: ",
            "did you mean `source`?",
        ),
        (
            "{other: x}",
            "$initial_state.sorce",
            "`initial_state` of the phase has no `sorce`: ",
            "add `sorce` to `initial_state`, or give a default",
        ),
        (
            "{source: {a: 1}}",
            "'$initial_state.source#/b'",
            "`source` of `initial_state` has nothing at `/b`: ",
            "add `source` to `initial_state`, or give a default",
        ),
    ] {
        let text = document(&format!(
            "  a: {{assign: x, initial_state: {state}, inputs: {{s: {reference}}}}}\n"
        ));
        let lenient = read(&text, false);
        assert_eq!(lenient.errors, []);
        let strict = read(&text, true);
        for fault in [one(&lenient.warnings), one(&strict.errors)] {
            assert!(fault.reason.starts_with(reason), "{}", fault.reason);
            assert_eq!(fault.suggestion.as_deref(), Some(suggestion));
            assert_eq!(fault.path, "workflow.a.inputs.s");
        }
    }
}

#[test]
fn of_phases_whose_names_begin_alike_the_one_with_the_output_is_meant() {
    let inputs = |outputs: &str, depends_on: &str, reference: &str| {
        of(&format!(
            "  a: {{assign: x, outputs: {{b.x: any, c: any}}}}\n  a.b: {{assign: x{outputs}}}\n  both: {{assign: x, depends_on: {depends_on}, inputs: {{k: '{reference}'}}}}\n"
        ))
    };
    let from = |report: Report| {
        let workflow = report.workflow.expect("it has no errors");
        format!("{:?}", workflow.phases[2].inputs[0].1.source)
    };
    let longest = inputs(", outputs: {x: any}", "[a, a.b]", "a.b.x#/y.z");
    assert!(from(longest).contains("phase: \"a.b\", key: \"x\", pointer: Some(\"/y.z\")"));
    let declared = inputs(", outputs: {y: any}", "[a, a.b]", "a.b.x");
    assert!(from(declared).contains("phase: \"a\", key: \"b.x\""));
    let depended = inputs(", outputs: {x: any}", "[a]", "a.b.x");
    assert!(from(depended).contains("phase: \"a\", key: \"b.x\""));
    let neither = inputs(", outputs: {y: any}", "[a, a.b]", "a.b.z");
    assert!(
        one(&neither.errors)
            .reason
            .contains("phase `a.b` declares no output `z`")
    );
    let absent = inputs("", "[a]", "a.b.z");
    assert_eq!(
        one(&absent.errors).suggestion.as_deref(),
        Some("add `a.b` to `depends_on`")
    );
}

#[test]
fn the_limit_of_levels_is_named_however_deep_a_text_is() {
    for text in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(5_000),
    ] {
        let report = read(&text, false);
        let reason = &one(&report.errors).reason;
        assert!(
            reason.contains("more than 64 levels of maps and lists"),
            "{reason}"
        );
    }
}

#[test]
fn a_document_without_places_has_the_same_faults() {
    let value = serde_json::json!({
        "openintent": "1", "info": {"name": "n"}, "types": {"T": "strng"},
        "workflow": {"a": {"assign": "x", "outputs": {"o": {"type": "T", "required": "no"}}, "inputs": {"k": "b.c", "l": "d"}}},
    });
    let report = read_json(&value, false);
    let paths: Vec<_> = report.errors.iter().map(at).collect();
    assert_eq!(
        paths,
        [
            (None, None, "types.T"),
            (None, None, "workflow.a.outputs.o.required"),
            (None, None, "workflow.a.inputs.k"),
            (None, None, "workflow.a.inputs.l"),
        ]
    );
    assert_eq!(report.errors[2].invalid_refs, ["b.c", "d"]);
}

#[test]
fn foreign_keys_of_an_output_are_a_warning_and_a_strict_error() {
    for output in [
        "{type: number, unit: kg, required: true}",
        "{type: number, unit: kg}",
        "{type: number, unit: {si: kg}, required: false}",
    ] {
        let text = format!("  a: {{assign: x, outputs: {{v: {output}}}}}\n");
        let report = of(&text);
        assert_eq!(report.errors, [], "{output}");
        let warning = one(&report.warnings);
        assert_eq!(warning.path, "workflow.a.outputs.v.unit");
        assert_eq!(warning.reason, "unknown key `unit`, which has no effect");
        let workflow = report.workflow.expect("no errors");
        let tasks = workflow.tasks(&serde_json::Map::new(), None).unwrap();
        let declared = &tasks[1]["schemas"]["outputs"]["v"];
        assert_eq!(declared["type"], "number");
        assert!(declared.get("unit").is_none(), "{declared}");
    }
    let strict = read(
        &document("  a: {assign: x, outputs: {v: {type: number, unit: kg}}}\n"),
        true,
    );
    assert_eq!(one(&strict.errors).path, "workflow.a.outputs.v.unit");
    // What is wrong with the type itself is an error of its own.
    let report = of("  a: {assign: x, outputs: {v: {type: numbr, unit: kg}}}\n");
    assert!(!report.errors.is_empty());
    // A shape keeps a field that is called `type`.
    let report = of("  a: {assign: x, outputs: {v: {type: string, unit: string}}}\n");
    assert_eq!((report.errors, report.warnings), (vec![], vec![]));
}
