//! Templates: how they are checked, stored, filled and copied.

mod properties;

use crate::flow::{Dependency, Specification, When};
use crate::task::call::read_tasks;
use crate::task::spec::Schemas;
use crate::task::wiring::tests::ATTEMPT;
use crate::task::wiring::{InputFault, Unresolved, Wiring, copied, is_wired, resolve};
use crate::testing::id;
use crate::violation::{PathSegment, Violation};
use crate::{Payload, TaskId, limits};
use serde_json::{Map, Value, json};

fn payload(value: &Value) -> Payload {
    Payload::from_map(value.as_object().unwrap())
}

/// A task with these inputs, in which templates count.
fn task(inputs: &Value) -> Specification {
    with_schemas(inputs, &json!({"method": "work", "templates": true}))
}

fn with_schemas(inputs: &Value, schemas: &Value) -> Specification {
    let schemas = Schemas {
        raw: payload(schemas),
        method: "work".to_owned(),
        remote: false,
    };
    Specification::assemble(payload(inputs), Some(schemas), None)
}

/// What is wrong with it for a task that depends on `a`, and on `maybe` without needing it.
fn resolved(task: &Specification) -> Result<Specification, Vec<(String, String)>> {
    let dependencies = ["a", "maybe"].map(|name| Dependency {
        id: id(name),
        when: When::required(name == "a"),
    });
    let find = |text: &str| ["a", "maybe", "b"].contains(&text).then(|| id(text));
    let by_id = |text: &str| TaskId::parse(text).ok();
    let resolved = resolve(task, &dependencies, |it| find(it).or_else(|| by_id(it)));
    let fault = |it| match it {
        Unresolved::Template(it) => {
            let path = it.path.iter().map(|step| match step {
                PathSegment::Key(key) => key.clone(),
                PathSegment::Index(i) => i.to_string(),
            });
            (path.collect::<Vec<_>>().join("/"), it.reason)
        }
        Unresolved::Wire(it) => panic!("{it:?}"),
    };
    let resolved = resolved.map_err(|faults| faults.into_iter().map(fault).collect::<Vec<_>>());
    Ok(resolved?.unwrap_or_else(|| task.clone()))
}

fn stored(inputs: &Value) -> Specification {
    resolved(&task(inputs)).unwrap()
}

/// The inputs of an attempt after this result.
fn filled(inputs: &Value, result: &Value) -> Result<Value, InputFault> {
    let task = stored(inputs);
    let filled = Wiring::of(&task).inputs(&task.inputs, ATTEMPT, |_| result.as_object());
    filled.map(|inputs| Value::Object(inputs.to_map()))
}

#[test]
fn templates_name_the_attempt_unless_a_dependency_has_the_name() {
    let inputs = json!({
        "key": "{{run.id}}-{{ task.id }}", "n": "{{attempt}}", "of": "try {{attempt}}", "a": "{{a.n}}",
    });
    let task_with = stored(&inputs);
    let text = task_with.inputs.as_str();
    assert!(
        text.contains("{{task.id}}") || text.contains("{{ task.id }}"),
        "{text}"
    );
    let (task_id, run) = (ATTEMPT.task, ATTEMPT.run);
    let expected = json!({"key": format!("{run}-{task_id}"), "n": 3, "of": "try 3", "a": 1});
    assert_eq!(filled(&inputs, &json!({"n": 1})).unwrap(), expected);
    // Nothing is awaited, and no result is named.
    let alone = Wiring::of(&stored(&json!({"n": "{{attempt}}"})));
    assert_eq!(alone.needs().count(), 0);
    assert_eq!(alone.sources().count(), 0);
    assert!(
        alone
            .uses(&payload(&json!({"n": "{{attempt}}"})))
            .is_empty()
    );

    let dependencies = [Dependency {
        id: id("task"),
        when: When::required(true),
    }];
    let named = task(&json!({"x": "{{task.id}}"}));
    let find = |text: &str| (text == "task").then(|| id(text));
    let resolved = resolve(&named, &dependencies, find).unwrap().unwrap();
    let result = json!({"id": "of the result"});
    let wiring = Wiring::of(&resolved);
    let filled = wiring.inputs(&resolved.inputs, ATTEMPT, |_| result.as_object());
    assert_eq!(filled.unwrap().to_map()["x"], "of the result");
    for unknown in ["{{task.name}}", "{{run.attempt}}", "{{attempts}}"] {
        assert_eq!(refused(&json!({"x": unknown})).len(), 1, "{unknown}");
    }
}

fn refused(inputs: &Value) -> Vec<(String, String)> {
    resolved(&task(inputs)).unwrap_err()
}

#[test]
fn references_are_stored_with_ids_and_everything_else_as_it_is() {
    let inputs = json!({
        "url": r"https://\{{x}}/\\{{ a.json#/id }}?{{a.n}}", "deep": [{"text": "{{a#}}"}], "n": 1,
        "later": "{{$trigger.day}}",
    });
    let a = id("a");
    let expected = json!({
        "url": format!(r"https://\{{{{x}}}}/\\{{{{{a}.json#/id}}}}?{{{{{a}.n}}}}"),
        "deep": [{"text": format!("{{{{{a}#}}}}")}], "n": 1, "later": "{{$trigger.day}}",
    });
    let once = stored(&inputs);
    assert_eq!(Value::Object(once.inputs.to_map()), expected);
    assert_eq!(resolved(&once).unwrap(), once, "what is shown is taken");
}

#[test]
fn a_text_that_is_one_template_becomes_the_value_and_a_longer_one_a_text() {
    let result = json!({
        "n": 1.5, "yes": true, "text": "a b", "list": [1], "none": null, "json": {"id": 7},
    });
    let inputs = json!({
        "whole": "{{a#}}", "n": "{{a.n}}", "none": "{{ a.none }}", "list": ["{{a.list}}"],
        "url": "x/{{a.json#/id}}/{{a.text}}?{{a.yes}}&{{a.n}}", "escaped": r"\{{a.n}} \\{{a.n}} \x",
        "plain": "{a} }}",
    });
    let expected = json!({
        "whole": result, "n": 1.5, "none": null, "list": [[1]],
        "url": "x/7/a b?true&1.5", "escaped": r"{{a.n}} \1.5 \x", "plain": "{a} }}",
    });
    assert_eq!(filled(&inputs, &result).unwrap(), expected);
}

#[test]
fn what_is_put_in_is_not_read_again() {
    let result = json!({"self": "{{a.self}}", "half": "{{a."});
    let inputs = json!({"x": "{{a.self}}", "y": "-{{a.self}}-", "z": "{{a.half}}half}}"});
    let expected = json!({"x": "{{a.self}}", "y": "-{{a.self}}-", "z": "{{a.half}}"});
    assert_eq!(filled(&inputs, &result).unwrap(), expected);
}

#[test]
fn without_the_member_texts_mean_what_they_say() {
    let inputs = json!({"x": "{{a.n}}", "y": "{{", "z": r"\{{"});
    for schemas in [
        json!({"method": "work"}),
        json!({"method": "work", "templates": false}),
        json!({"method": "work", "note": "templates"}),
    ] {
        let task = with_schemas(&inputs, &schemas);
        assert_eq!(resolved(&task).unwrap(), task);
        assert!(Wiring::of(&task).is_empty());
        assert!(!is_wired(&task));
    }
    assert!(!is_wired(&self::task(&json!({"x": "plain"}))));
    assert!(is_wired(&self::task(&inputs)));
}

#[test]
fn faults_are_told_with_the_path_of_their_text() {
    let fault = |path: &str, reason: &str| vec![(path.to_owned(), reason.to_owned())];
    let stranger = "Not a dependency of the task";
    assert_eq!(
        refused(&json!({"x": [{"y": "{{b.n}}"}]})),
        fault("inputs/x/0/y", stranger)
    );
    assert_eq!(
        refused(&json!({"x": "{{root.n}}"})),
        fault("inputs/x", stranger)
    );
    let optional = "The dependency is optional and may have no result";
    assert_eq!(
        refused(&json!({"x": "{{maybe.n}}"})),
        fault("inputs/x", optional)
    );
    for text in ["{{a.n", "x{{", "{{a.n}}{{a.n}"] {
        assert_eq!(
            refused(&json!({"x": text})),
            fault("inputs/x", "Template is not closed")
        );
    }
    for text in ["{{}}", "{{a}}", "{{a.{{a.n}}}}", "{{a.n#x}}", "{{.n}}"] {
        assert_eq!(
            refused(&json!({"x": text})),
            fault("inputs/x", "Invalid reference"),
            "{text}"
        );
    }
}

#[test]
fn what_only_documents_have_is_refused_with_the_path_of_its_text() {
    let task = json!({
        "name": "t",
        "inputs": {"a": [0, {"b": "of {{$trigger.q}}"}], "c": "{{$initial_state.c}}", "d": "$trigger.q"},
        "schemas": {"method": "work", "templates": true},
    });
    let list = read_tasks(&json!([task])).unwrap().without_statics();
    let fault = |it: &Violation| (it.path.clone(), it.actual.clone());
    let at = |rest: &[PathSegment]| [&["tasks".into(), 0.into(), "inputs".into()], rest].concat();
    assert_eq!(
        list.faults().iter().map(fault).collect::<Vec<_>>(),
        [
            (at(&["a".into(), 1.into(), "b".into()]), json!("$trigger.q")),
            (at(&["c".into()]), json!("$initial_state.c")),
        ]
    );
}

#[test]
fn templates_are_bounded() {
    let many = |n: usize| json!({"x": "{{a.n}}".repeat(n), "y": "{{a.n}}"});
    assert!(resolved(&task(&many(limits::TEMPLATES_MAX - 1))).is_ok());
    let faults = refused(&many(limits::TEMPLATES_MAX));
    assert_eq!(
        faults,
        [("inputs/y".to_owned(), "Too many templates".to_owned())]
    );
    let bytes = limits::PAYLOAD_BYTES_MAX - 64;
    assert_eq!(refused(&json!({"x": "{{".repeat(bytes / 2)})).len(), 1);
    assert_eq!(
        refused(&json!({"x": "{{}}".repeat(bytes / 4)})).len(),
        limits::VIOLATIONS_MAX
    );
    let list = vec!["{{"; bytes / 8];
    assert_eq!(refused(&json!({"x": list})).len(), limits::VIOLATIONS_MAX);
    let faults = refused(&json!({"x": "x".repeat(bytes), "y": "{{a.n}}".repeat(3)}));
    assert!(faults[0].1.starts_with("Too large"), "{faults:?}");
}

#[test]
fn a_large_value_is_not_put_in_more_often_than_fits() {
    let result = json!({"v": "x".repeat(limits::PAYLOAD_BYTES_MAX / 4)});
    for text in ["{{a.v}}".repeat(5), "{{a.v}}".repeat(limits::TEMPLATES_MAX)] {
        let error = filled(&json!({"x": text}), &result).unwrap_err();
        assert!(matches!(error, InputFault::Unfit(_)), "{error}");
    }
    let each: Map<_, _> = (0..5).map(|i| (i.to_string(), json!("{{a.v}}"))).collect();
    let error = filled(&Value::Object(each), &result).unwrap_err();
    assert!(matches!(error, InputFault::Unfit(_)), "{error}");
}

#[test]
fn values_that_are_missing_or_no_text_are_named() {
    let inputs = json!({"x": "{{a.none}}", "y": "-{{a.none}}{{a.list#/3}}"});
    let missing = filled(&inputs, &json!({"list": []})).unwrap_err();
    let mut names = ["list#/3", "none"].map(|place| format!("{}.{place}", id("a")));
    names.sort();
    assert_eq!(missing, InputFault::Unresolvable(names.to_vec()));
    for (value, kind) in [
        (json!(null), "null"),
        (json!([]), "array"),
        (json!({}), "object"),
    ] {
        let error = filled(&json!({"x": {"y": "-{{a.v}}"}}), &json!({"v": value})).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, InputFault::Unlike(_)), "{text}");
        assert!(text.contains("`x/y`") && text.contains(kind), "{text}");
    }
}

#[test]
fn needs_and_sources_are_those_of_wires_and_of_texts() {
    let wiring = json!({"w": format!("{}.w", id("a"))});
    let schemas = json!({"method": "work", "templates": true, "wiring": wiring});
    let task = with_schemas(&json!({"x": format!("{{{{{}.n}}}}", id("b"))}), &schemas);
    let wiring = Wiring::of(&task);
    let mut both = vec![id("a"), id("b")];
    both.sort();
    assert_eq!(wiring.sources().collect::<Vec<_>>(), both);
    let needs: Vec<_> = wiring.needs().map(|need| need.text().to_owned()).collect();
    let expected = [format!("{}.w", id("a")), format!("{}.n", id("b"))];
    assert_eq!(needs, expected);
    let attempt = task.with_inputs(payload(&json!({"x": "{{", "w": 1})));
    assert!(Wiring::of(&attempt).is_empty());
}

#[test]
fn what_comes_from_results_is_told_from_what_is_literal() {
    let literal = json!({
        "env": {"OWN": {"$secret": "mine"}, "NOT": "{{a.v}}", "NAME": {"$secret": "{{a.n}}"}},
        "list": ["x", "{{a.n}}"], "escaped": r"\{{",
    });
    let result = json!({"v": {"$secret": "other"}, "n": "n"});
    let task = stored(&literal);
    let wiring = Wiring::of(&task);
    let inputs = wiring
        .inputs(&task.inputs, ATTEMPT, |_| result.as_object())
        .unwrap();
    let of_results = wiring.from_results(&task.inputs, &inputs.to_map());
    let expected = json!({
        "env": {"OWN": {"$secret": null}, "NOT": {"$secret": "other"}, "NAME": {"$secret": "n"}},
        "list": [null, "n"], "escaped": null,
    });
    assert_eq!(Value::Object(of_results), expected);
}

#[test]
fn a_copy_names_what_was_copied_with_it() {
    let inputs = json!({"x": "-{{a.n}}", "y": r"\{{a.n}}"});
    let new_id = |old: TaskId| (old == id("a")).then(|| id("copy"));
    let copied = copied(stored(&inputs), new_id).inputs.to_map();
    let expected = json!({"x": format!("-{{{{{}.n}}}}", id("copy")), "y": r"\{{a.n}}"});
    assert_eq!(Value::Object(copied), expected);
}

#[test]
fn a_key_that_ends_with_a_brace_or_a_space_is_the_same_key_as_it_is_stored() {
    let inputs = json!({"x": "{{a.n} }}}", "y": "{{ a.n} }}", "z": "{{a.n #}}", "w": "{{a.n }}"});
    let once = stored(&inputs);
    assert_eq!(resolved(&once).unwrap(), once);
    let result = json!({"n": "plain", "n}": "brace", "n ": "space"});
    let expected = json!({"x": "brace}", "y": "brace", "z": "space", "w": "plain"});
    assert_eq!(filled(&inputs, &result).unwrap(), expected);
}
