//! Types and values that are made to cost when they are checked, compared or repeated: what all of them take is
//! bounded for the document as a whole, and the rest is an error.

use super::{document, errors, sound};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use taskledger_workflows::{Fault, UnfitTrigger, limits, read};

/// A type that accepts numbers, for which it looks at each of them 2^`levels` times.
fn doubling(levels: usize) -> String {
    let mut definitions = String::new();
    for level in 0..levels {
        let next = format!("{{$ref: '#/definitions/d{}'}}", level + 1);
        write!(definitions, "d{level}: {{allOf: [{next}, {next}]}}, ")
            .expect("memory can be written to");
    }
    format!(
        "{{schema: {{definitions: {{{definitions}d{levels}: {{type: number}}}}, $ref: '#/definitions/d0'}}}}"
    )
}

/// A document with `types`, whose phase `p` has these inputs, each under a key of its own.
fn typed(types: &str, inputs: &[String]) -> String {
    let inputs = inputs.iter().enumerate();
    let inputs: Vec<String> = inputs.map(|(i, it)| format!("i{i}: {it}")).collect();
    let inputs = inputs.join(", ");
    let phases = format!("  p: {{assign: x, initial_state: {{n: 1}}, inputs: {{{inputs}}}}}\n");
    format!("{}types: {types}\n", document(&phases))
}

fn ends(faults: &[Fault], end: &str) -> bool {
    faults.iter().all(|fault| fault.reason.ends_with(end))
}

#[test]
fn checks_of_values_share_their_steps() {
    let types = format!("{{S: {}}}", doubling(17));
    for input in [
        "{from: $trigger.k, type: S, default: 1}",
        "{from: $initial_state.n, type: S}",
    ] {
        let report = read(&typed(&types, &vec![input.to_owned(); 100]), false);
        let refused = report.errors.len();
        assert!((1..100).contains(&refused), "{input}: {refused} of 100");
        let end = "found too costly to check";
        assert!(ends(&report.errors, end), "{:?}", report.errors[0]);
    }
    let few = typed(&types, &["{from: $trigger.k, type: S}".to_owned()]);
    let many = typed(&types, &vec!["{from: $trigger.k, type: S}".to_owned(); 100]);
    let trigger = json!({"k": 1}).as_object().cloned().unwrap_or_default();
    assert!(sound(&few).tasks(&trigger, None).is_ok());
    let refused = sound(&many).tasks(&trigger, None);
    let Err(UnfitTrigger::Unlike { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.ends_with("found too costly to check"), "{reason}");
}

#[test]
fn a_default_within_a_type_is_cheap_to_check() {
    let types = |levels| {
        let of = doubling(levels);
        format!("{{S: {of}, T: {{a: {{type: S, default: 1}}}}}}")
    };
    sound(&typed(&types(4), &["$trigger.k".to_owned()]));
    let report = read(&typed(&types(17), &["$trigger.k".to_owned()]), false);
    let expected = "types.T.a.default: Wrong type: expected S, found `1`";
    assert!(errors(&report)[0].ends_with(expected), "{report:?}");
}

/// `count` phases behind a phase `first`, each with these members.
fn repeated(count: usize, members: &str) -> String {
    let mut phases = String::from("  first: {assign: x, outputs: {k: any}}\n");
    for i in 0..count {
        writeln!(
            phases,
            "  p{i}: {{assign: x, depends_on: [first], {members}}}"
        )
        .expect("memory can be written to");
    }
    document(&phases)
}

#[test]
fn types_that_tasks_repeat_are_bounded_however_the_tasks_come_by_them() {
    let field = |i| format!("{}{i}: any", "f".repeat(200));
    let fields: Vec<String> = (0..1_000).map(field).collect();
    let large = format!("types: {{T: {{{}}}}}\n", fields.join(", "));
    for members in [
        "outputs: {o: any}",
        "inputs: {k: {from: first.k, type: any}}",
    ] {
        let told = errors(&read(
            &format!("{}{large}", repeated(1_000, members)),
            false,
        ));
        let max = limits::REPEATED_BYTES_MAX;
        let end = format!("phases with outputs or typed inputs; together the limit is {max} bytes");
        assert!(told.len() == 1 && told[0].ends_with(&end), "{told:?}");
    }
    let few = format!("{}{large}", repeated(1_000, "inputs: {k: first.k}"));
    assert_eq!(sound(&few).phases.len(), 1_001);
}

#[test]
fn json_schemas_that_tasks_repeat_are_bounded_more_tightly() {
    let pattern = |i| format!("'{}{i}': {{}}", "[a-z]{3,9}x?".repeat(10));
    let patterns: Vec<String> = (0..64).map(pattern).collect();
    let schema = format!(
        "{{schema: {{patternProperties: {{{}}}}}}}",
        patterns.join(", ")
    );
    let types = format!("types: {{S: {schema}}}\n");
    let text = |count| format!("{}{types}", repeated(count, "outputs: {o: any}"));
    assert_eq!(errors(&read(&text(10), false)), [""; 0]);
    let told = errors(&read(&text(1_000), false));
    assert!(
        told.len() == 1
            && told[0].contains(" bytes of JSON Schemas in types for each of 1001 phases"),
        "{told:?}"
    );
}

#[test]
fn types_that_name_themselves_are_read_where_a_value_can_end_and_refused_elsewhere() {
    let structures = "types:\n  Tree: {value: any, children: array<Tree>}\n  Json: string|number|boolean|null|array<Json>|map<Json>\n  A: {b: B?}\n  B: {a: A}\n";
    let phases = "  a: {assign: x, outputs: {t: Tree, j: Json, c: A}}\n  b:\n    assign: x\n    depends_on: [a]\n    inputs:\n      t: {from: 'a.t#/children/0', type: Tree}\n      j: {from: a.j, type: Json}\n      c: {from: 'a.c#/b/a/b/a', type: A}\n";
    let workflow = sound(&format!("{}{structures}", document(phases)));
    let leaf = json!({"value": 1, "children": []});
    let tree = json!({"value": null, "children": [leaf]});
    let chain = json!({"b": {"a": {"b": {"a": {"b": null}}}}});
    let outputs = json!({"a": {"t": tree, "j": [[{}]], "c": chain}, "b": {}});
    let outputs = outputs.as_object().cloned().unwrap_or_default();
    let played = workflow.play(&Map::new(), &outputs).expect("it is played");
    let input = json!({"t": leaf, "j": [[{}]], "c": {"b": null}});
    assert_eq!(played.steps[2]["input"], input);

    for (types, expected) in [
        ("{A: A}", "types.A: Circular type"),
        ("{A: B, B: A?}", "types.A: Circular type"),
        ("{A: string|B, B: (A|C)?, C: any}", "types.A: Circular type"),
        ("{A: array<B>}", "types.A: Unknown type"),
    ] {
        let text = format!("types: {types}\n{}", document("  p: {assign: x}\n"));
        let told = errors(&read(&text, false));
        assert!(told.len() == 1 && told[0].contains(expected), "{told:?}");
        assert!(told[0].starts_with("1:9 "), "{told:?}");
    }
    let chain: Vec<String> = (0..200).map(|i| format!("T{i}: T{}?", i + 1)).collect();
    let chain = format!("types: {{{}, T200: any}}\n", chain.join(", "));
    let report = read(&format!("{}{chain}", document("  p: {assign: x}\n")), false);
    assert!(
        report.errors[0].reason.starts_with("Type nested too deep"),
        "{report:?}"
    );
}

#[test]
fn unions_of_recursive_types_are_compared_within_the_steps_of_the_report() {
    // Each alternative leads to both alternatives again.
    let types = |name: &str, last: &str| -> String {
        let one = |i: usize| {
            let next = format!("{name}A{0}|{name}B{0}", i + 1);
            format!("{name}A{i}: {{a: {next}, z: '\"a\"'}}, {name}B{i}: {{a: {next}, z: '\"b\"'}}")
        };
        let levels: Vec<String> = (0..40).map(one).collect();
        format!(
            "{}, {name}A40: {{z: {last}}}, {name}B40: {{z: {last}}}",
            levels.join(", ")
        )
    };
    let all = format!(
        "types: {{{}, {}}}\n",
        types("P", "integer"),
        types("C", "string")
    );
    let inputs: Vec<String> = (0..200)
        .map(|i| format!("i{i}: {{from: a.o, type: CA{}|CB{}}}", i % 40, i % 40))
        .collect();
    let phases = format!(
        "  a: {{assign: x, outputs: {{o: PA0|PB0}}}}\n  b: {{assign: x, depends_on: [a], inputs: {{{}}}}}\n",
        inputs.join(", ")
    );
    let report = read(&format!("{}{all}", document(&phases)), false);
    let told = report.errors.iter().chain(&report.warnings);
    let compared = told.filter(|fault| fault.reason.contains("is of type"));
    assert!(compared.count() > 0, "{report:?}");
}

#[test]
fn values_that_tasks_repeat_are_not_copied_before_they_are_counted() {
    let inputs: Vec<String> = (0..250).map(|i| format!("i{i}: $trigger.k")).collect();
    let workflow = sound(&document(&format!(
        "  p: {{assign: x, inputs: {{{}}}}}\n",
        inputs.join(", ")
    )));
    let large = json!({"k": vec![Value::from("x".repeat(1_000)); 1_000]});
    let trigger = large.as_object().cloned().unwrap_or_default();
    assert_eq!(workflow.tasks(&trigger, None), Err(UnfitTrigger::TooLarge));
}
