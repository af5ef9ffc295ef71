//! Schemas that try to cost more than their size promises: each ends with a clean answer.

use super::super::{CHECK, LIST, compile, fuel, limits};
use super::{accepts, faults};
use serde_json::{Map, Value, json};

const TOO_COSTLY: &str = "is too costly to check these inputs against";

/// `a_i = keyword [a_{i+1}, a_{i+1}]`, with `last` at the end.
fn ladder(keyword: &str, levels: usize, last: Value) -> Value {
    let mut definitions = Map::new();
    for i in 0..levels {
        let next = json!({"$ref": format!("#/definitions/a{}", i + 1)});
        definitions.insert(format!("a{i}"), json!({keyword: [next.clone(), next]}));
    }
    definitions.insert(format!("a{levels}"), last);
    json!({"$ref": "#/definitions/a0", "definitions": definitions})
}

#[test]
fn a_doubling_any_of_runs_out_of_fuel() {
    for levels in [20, 22, 40] {
        let violations = faults(
            &ladder("anyOf", levels, json!({"type": "string"})),
            &json!({}),
        );
        assert_eq!(violations.len(), 1, "{levels}");
        assert!(
            [
                TOO_COSTLY,
                "do not conform to the input schema in too many ways to list"
            ]
            .contains(&violations[0].reason.as_str()),
            "{violations:?}"
        );
    }
    let written_out = (0..9).fold(
        json!({"type": "string"}),
        |next, _| json!({"anyOf": [next.clone(), next]}),
    );
    assert_eq!(faults(&written_out, &json!({})).len(), 1);
}

#[test]
fn a_doubling_all_of_or_one_of_ends() {
    let violations = faults(&ladder("allOf", 40, json!({"type": "string"})), &json!({}));
    assert_eq!(violations.len(), 1, "{violations:?}");
    let violations = faults(&ladder("oneOf", 40, json!({"type": "string"})), &json!({}));
    assert_eq!(violations.len(), 1, "{violations:?}");
    let scalars = json!({"properties": {"v": {"$ref": "#/definitions/a0"}},
        "definitions": ladder("allOf", 40, json!({"type": "integer"}))["definitions"]});
    let violations = faults(&scalars, &json!({"v": 1}));
    assert!(
        violations.is_empty() || violations[0].reason == TOO_COSTLY,
        "{violations:?}"
    );
}

#[test]
fn a_hurried_check_gives_up_on_a_ladder_and_not_on_what_people_write() {
    let bomb = compile(&ladder("allOf", 40, json!({"type": "object"}))).unwrap();
    assert_eq!(bomb.check_within(&json!({}), 10_000), None);
    let plain =
        json!({"required": ["url"], "properties": {"url": {"format": "uri"}, "n": {"minimum": 1}}});
    let plain = compile(&plain).unwrap();
    let good = json!({"url": "https://example.com", "n": 2});
    assert_eq!(plain.check_within(&good, 10_000), Some(Ok(())));
    let hurried = plain.check_within(&json!({"n": 0}), 10_000).unwrap();
    assert_eq!(hurried.unwrap_err().len(), 2);
}

#[test]
fn an_empty_tank_is_what_stops_the_ladder() {
    let compiled = compile(&ladder("anyOf", 40, json!({"type": "string"}))).expect("it compiles");
    let inputs = json!({});
    for budget in [CHECK, LIST] {
        let listed = fuel::metered(budget, || compiled.validator.iter_errors(&inputs).count());
        assert_eq!(listed, Err(fuel::Exhausted));
    }
}

#[test]
fn a_recursive_any_of_over_deep_inputs_ends() {
    let schema = json!({
        "anyOf": [
            {"properties": {"x": {"$ref": "#"}}, "required": ["y"]},
            {"properties": {"x": {"$ref": "#"}}, "required": ["z"]},
        ]
    });
    for depth in [18, 100] {
        let inputs = (0..depth).fold(json!({}), |inner, _| json!({"x": inner}));
        assert_eq!(faults(&schema, &inputs).len(), 1, "{depth}");
    }
}

#[test]
fn references_to_themselves_accept_everything() {
    assert!(accepts(&json!({"$ref": "#"}), &json!({"a": 1})));
    assert!(accepts(
        &json!({"allOf": [{"$ref": "#"}]}),
        &json!({"a": 1})
    ));
    let pair = json!({
        "allOf": [{"$ref": "#/definitions/a"}],
        "definitions": {
            "a": {"allOf": [{"$ref": "#/definitions/b"}]},
            "b": {"allOf": [{"$ref": "#/definitions/a"}]}
        }
    });
    assert!(accepts(&pair, &json!({})));
}

#[test]
fn a_long_chain_of_references_ends() {
    let last = 1_600; // as many as fit the text limit
    let mut definitions = Map::new();
    for i in 0..last {
        definitions.insert(
            format!("a{i}"),
            json!({"$ref": format!("#/definitions/a{}", i + 1)}),
        );
    }
    definitions.insert(format!("a{last}"), json!({"required": ["q"]}));
    let schema = json!({"$ref": "#/definitions/a0", "definitions": definitions});
    let violations = faults(&schema, &json!({}));
    assert_eq!(violations.len(), 1);
    assert!(
        ["is required", TOO_COSTLY].contains(&violations[0].reason.as_str()),
        "{violations:?}"
    );
}

#[test]
fn a_chain_walked_again_at_each_level_of_the_inputs_ends() {
    let chain = 400;
    let mut definitions = Map::new();
    for i in 0..chain {
        definitions.insert(
            format!("a{i}"),
            json!({"allOf": [{"$ref": format!("#/definitions/a{}", i + 1)}]}),
        );
    }
    definitions.insert(
        format!("a{chain}"),
        json!({"additionalProperties": {"$ref": "#/definitions/a0"}}),
    );
    let schema = json!({"$ref": "#/definitions/a0", "definitions": definitions});
    let inputs = (0..120).fold(json!({}), |inner, _| json!({"x": inner}));
    let violations = faults(&schema, &inputs);
    assert!(
        violations.is_empty() || violations[0].reason == TOO_COSTLY,
        "{violations:?}"
    );
}

#[test]
fn deeply_nested_not_is_refused_before_anything_recurses_over_it() {
    let nested = (0..1_000).fold(json!({}), |inner, _| json!({"not": inner}));
    let violations = compile(&nested).expect_err("it is too deep");
    assert_eq!(violations[0].reason, "is nested too deeply");
}

#[test]
fn patterns_with_nested_counts_are_refused_or_small() {
    let greedy = json!({"pattern": "^((a{1,100}){1,100}){1,100}$"});
    let violations = compile(&greedy).expect_err("the compiled pattern is too large");
    assert_eq!(violations[0].field, "pattern");
    let many: Vec<_> = (0..200)
        .map(|i| json!({"pattern": format!("(a{{1,20}}{i}){{1,20}}")}))
        .collect();
    let violations = compile(&json!({"allOf": many})).expect_err("there are too many");
    assert_eq!(violations[0].reason, "has too many regular expressions");
}

#[test]
fn catastrophic_backtracking_does_not_happen() {
    let schema = json!({"properties": {"v": {"pattern": "^(a+)+$"}}});
    assert!(!accepts(
        &schema,
        &json!({"v": format!("{}!", "a".repeat(50_000))})
    ));
}

#[test]
fn a_pattern_with_many_states_is_not_matched_against_long_texts() {
    let schema = json!({"properties": {"v": {"pattern": "[ab]*a[ab]{300}c"}}});
    let text = |bytes: usize| json!({"v": "ab".repeat(bytes / 2)});
    assert_eq!(faults(&schema, &text(1_000_000))[0].reason, TOO_COSTLY);
    assert_eq!(
        faults(&schema, &text(2_000))[0].reason,
        "does not match the pattern"
    );
    let names = json!({"patternProperties": {"[ab]*a[ab]{300}c": true}});
    assert_eq!(
        faults(&names, &json!({"ab".repeat(500_000): 1}))[0].reason,
        TOO_COSTLY
    );
}

#[test]
fn a_regular_expression_that_comes_as_a_value_is_bounded_too() {
    let schema = json!({"properties": {"v": {"format": "regex"}}});
    for text in [
        "(".repeat(20_000),
        "(a{1,100}){1,100}".repeat(1_000),
        "(a|".repeat(10_000),
    ] {
        let reason = faults(&schema, &json!({"v": text}))
            .first()
            .map(|v| v.reason.clone());
        assert!(
            reason
                .as_deref()
                .is_none_or(|r| r == "does not have the format" || r == TOO_COSTLY),
            "{reason:?}"
        );
    }
    assert_eq!(
        faults(&schema, &json!({"v": "a".repeat(100_000)}))[0].reason,
        TOO_COSTLY
    );
}

#[test]
fn a_pattern_read_again_and_again_runs_out_of_fuel() {
    let all: Vec<_> = (0..60)
        .map(|i| json!({"pattern": format!("^(a|b|{i})*$")}))
        .collect();
    let schema = json!({"properties": {"v": {"allOf": all}}});
    let violations = faults(&schema, &json!({"v": "a".repeat(500_000)}));
    assert_eq!(violations[0].reason, TOO_COSTLY);
}

#[test]
fn large_enums_are_refused_and_long_values_cost_fuel() {
    let objects: Vec<_> = (0..50_000).map(|i| json!({"a": i})).collect();
    let violations = compile(&json!({"enum": objects})).expect_err("it is too large");
    assert_eq!(violations[0].reason, "is too large");
}

#[test]
fn many_unique_objects_are_compared_within_the_fuel() {
    let items: Vec<_> = (0..20_000).map(|i| json!({"a": i, "b": [i]})).collect();
    let schema = json!({"properties": {"v": {"uniqueItems": true}}});
    assert!(accepts(&schema, &json!({"v": items})));
}

#[test]
fn unique_items_asked_for_again_and_again_runs_out_of_fuel() {
    let all: Vec<_> = (0..1_000).map(|_| json!({"uniqueItems": true})).collect();
    let items: Vec<_> = (0..20_000).map(|i| json!({"a": i})).collect();
    let schema = json!({"properties": {"v": {"allOf": all}}});
    assert_eq!(faults(&schema, &json!({"v": items}))[0].reason, TOO_COSTLY);
}

#[test]
fn long_lists_of_required_names_cost_fuel_at_each_visit() {
    let names: Vec<_> = (0..5_000).map(|i| format!("n{i}")).collect();
    let schema = json!({"properties": {"v": {"items": {"required": names}}}});
    let items: Vec<_> = (0..50_000).map(|_| json!({})).collect();
    let violations = faults(&schema, &json!({"v": items}));
    assert!(
        violations.len() <= limits::LISTED_MAX + 1,
        "{}",
        violations.len()
    );
}
