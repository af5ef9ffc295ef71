//! Schemas that try to cost more than their size promises: each ends with a clean answer.

use super::super::{CHECK, LIST, OutOfSteps, compile, fuel, limits};
use super::faults;
use crate::testing::hostile::{attacks, ladder};
use serde_json::json;

const TOO_COSTLY: &str = "is too costly to check these inputs against";

/// Every one of the list, which the benchmark measures and a running server is given.
#[test]
fn every_hostile_schema_ends_with_what_is_wrong() {
    for attack in attacks() {
        let outcome = compile(&attack.schema).and_then(|s| s.check(&attack.inputs));
        let faults = outcome.err().unwrap_or_default();
        assert!(faults.len() <= limits::LISTED_MAX + 1, "{}", attack.name);
        match faults.first() {
            None => assert!(attack.ends.is_empty(), "{} is accepted", attack.name),
            Some(first) => assert!(
                attack.ends.contains(&first.reason.as_str()),
                "{}: {first:?}",
                attack.name
            ),
        }
    }
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
    let hurried = bomb.check_within(&json!({}), &mut 10_000);
    assert_eq!(hurried, Err(OutOfSteps));
    let plain =
        json!({"required": ["url"], "properties": {"url": {"format": "uri"}, "n": {"minimum": 1}}});
    let plain = compile(&plain).unwrap();
    let good = json!({"url": "https://example.com", "n": 2});
    assert_eq!(plain.check_within(&good, &mut 10_000), Ok(Ok(())));
    let hurried = plain.check_within(&json!({"n": 0}), &mut 10_000).unwrap();
    assert_eq!(hurried.unwrap_err().len(), 2);
}

#[test]
fn an_empty_tank_is_what_stops_the_ladder() {
    let compiled = compile(&ladder("anyOf", 40, json!({"type": "string"}))).expect("it compiles");
    let inputs = json!({});
    for budget in [CHECK, LIST] {
        let (listed, steps) =
            fuel::metered(budget, || compiled.validator.iter_errors(&inputs).count());
        assert_eq!(listed, Err(fuel::Exhausted));
        assert!((1..=budget.steps).contains(&steps));
    }
}

#[test]
fn several_checks_share_what_is_left() {
    let costly = compile(&ladder("allOf", 12, json!({}))).expect("it compiles");
    let inputs = json!({});
    let mut left = limits::CHECK_STEPS_MAX;
    assert_eq!(costly.check_within(&inputs, &mut left), Ok(Ok(())));
    let taken = limits::CHECK_STEPS_MAX - left;
    assert!(taken > 1 << 12, "each level doubles the work: {taken}");
    let mut left = 2 * taken + 1;
    for outcome in [Ok(Ok(())), Ok(Ok(())), Err(OutOfSteps)] {
        assert_eq!(costly.check_within(&inputs, &mut left), outcome);
    }
    let endless = compile(&ladder("allOf", 40, json!({}))).expect("it compiles");
    let mut left = 2 * limits::CHECK_STEPS_MAX;
    let refused = endless.check_within(&inputs, &mut left);
    assert_eq!(
        refused.map(|r| r.is_err()),
        Ok(true),
        "the schema is at fault"
    );
    assert!(endless.compile_steps() > 1000);
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
