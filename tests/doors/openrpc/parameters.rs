//! The schemas of parameters are those of the code that reads them: what a schema refuses is
//! refused by name, and what it takes is never refused for what it is.

use crate::openrpc::document::described;
use crate::openrpc::support::{Document, World};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use taskledger::transport::jsonrpc::methods;
use taskledger_domain::text::is_unseen;

/// Values for each parameter in the property.
const CASES: u32 = 200;

/// One of each type, and some of each that look like something.
fn palette() -> Vec<Value> {
    vec![
        json!(true),
        json!(0),
        json!(7),
        json!(-1),
        json!(2.5),
        json!(""),
        json!("text"),
        json!("0f8fad5b-d9cb-169f-a165-70867728950e"),
        json!("x".repeat(5000)),
        json!([]),
        json!([1]),
        json!({}),
        json!({"x": 1}),
    ]
}

fn declared(document: &Document) -> Vec<(String, usize, Value)> {
    let mut all = Vec::new();
    for method in document.methods() {
        let name = method["name"].as_str().unwrap();
        for (at, param) in method["params"].as_array().unwrap().iter().enumerate() {
            all.push((name.to_owned(), at, param.clone()));
        }
    }
    all
}

#[tokio::test]
async fn what_a_schema_refuses_is_refused_by_name_in_both_forms() {
    let world = World::start().await;
    let document = world.document().await;
    for (method, at, param) in declared(&document) {
        let name = param["name"].as_str().unwrap();
        let validator = document.validator(&param["schema"]);
        let wrong: Vec<Value> = palette()
            .into_iter()
            .filter(|v| !validator.is_valid(v))
            .collect();
        assert!(
            wrong.len() > 2,
            "{method}, {name}: the schema takes nearly everything"
        );
        for value in wrong {
            let mut by_position = vec![Value::Null; at];
            by_position.push(value.clone());
            for params in [json!({name: value}), json!(by_position)] {
                let answer = world.answer(&method, params).await;
                let error = &answer["error"];
                assert_eq!(
                    error["code"], -32602,
                    "{method}, {name} = {value}: {answer}"
                );
                let faults = error["data"]["errors"].as_array().unwrap();
                let named = faults.iter().any(|f| {
                    let path = f["path"].as_array().unwrap();
                    path[0] == name && (path.len() > 1 || !f["actual"].is_null())
                });
                assert!(named, "{method}, {name} = {value}: {answer}");
            }
        }
    }
    world.close().await;
}

#[test]
fn what_a_schema_takes_is_never_refused_for_what_it_is() {
    let document = described();
    let table = methods::table();
    for (method, _, param) in declared(&document) {
        let name = param["name"].as_str().unwrap().to_owned();
        let faults = table.iter().find(|row| row.name == method).unwrap();
        let faults = faults.params.faults;
        let validator = document.validator(&param["schema"]);
        let config = Config {
            cases: CASES,
            failure_persistence: None,
            ..Config::default()
        };
        let values = values(&document, &param["schema"], 4);
        let outcome = TestRunner::new(config).run(&values, |value| {
            prop_assume!(validator.is_valid(&value));
            // Not every validator's patterns can name what is beyond four digits.
            let beyond = |c: char| c > '\u{ffff}' && is_unseen(c);
            prop_assume!(!value.to_string().contains(beyond));
            let params = Map::from_iter([(name.clone(), value.clone())]);
            let about_it: Vec<_> = faults(&params)
                .into_iter()
                .filter(|v| !v.actual.is_null() && v.path.first() == Some(&name.as_str().into()))
                .collect();
            prop_assert!(about_it.is_empty(), "{} {}: {:?}", method, value, about_it);
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{method}, {name}: {failure}");
        }
    }
}

/// Values that a schema takes, nearly always.
fn values(document: &Document, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
    if schema.get("$ref").is_some() {
        return values(document, document.at(schema), depth);
    }
    if let Some(words) = schema["enum"].as_array() {
        return prop::sample::select(words.clone()).boxed();
    }
    // Alternatives beside a type only narrow it; the validator sorts out what they refuse.
    if let (Some(any), None) = (schema["anyOf"].as_array(), schema.get("type")) {
        let all: Vec<_> = any.iter().map(|s| values(document, s, depth)).collect();
        return proptest::strategy::Union::new(all).boxed();
    }
    let types = match schema["type"].as_array() {
        Some(several) => several.iter().map(|t| t.as_str().unwrap()).collect(),
        // One that takes any value.
        None if schema["type"].is_null() => vec!["boolean", "integer", "string"],
        None => vec![schema["type"].as_str().expect("a type is a text")],
    };
    let all = types
        .iter()
        .map(|kind| of_type(document, schema, kind, depth));
    proptest::strategy::Union::new(all).boxed()
}

fn of_type(document: &Document, schema: &Value, kind: &str, depth: u32) -> BoxedStrategy<Value> {
    let number = |member: &str, or: u64| schema[member].as_u64().unwrap_or(or);
    match kind {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" => {
            let (low, high) = (number("minimum", 0), number("maximum", u64::MAX));
            prop_oneof![low..=high, Just(low), Just(high)]
                .prop_map(Value::from)
                .boxed()
        }
        "number" => {
            let low = schema["minimum"].as_f64().unwrap_or(0.0);
            let high = schema["maximum"].as_f64().unwrap_or(1e6);
            prop_oneof![low..=high, Just(low), Just(high)]
                .prop_map(Value::from)
                .boxed()
        }
        "string" => texts(schema),
        "array" if depth == 0 => Just(json!([])).boxed(),
        "array" => {
            let least = usize::try_from(number("minItems", 0)).unwrap();
            let item = values(document, &schema["items"], depth - 1);
            prop::collection::vec(item, least..least + 3)
                .prop_map(Value::Array)
                .boxed()
        }
        "object" => objects(document, schema, depth),
        other => panic!("an unknown type: {other}"),
    }
}

fn texts(schema: &Value) -> BoxedStrategy<Value> {
    let dates = |s: &Value| s["format"] == "date-time";
    let any_date = |any: &Vec<Value>| any.iter().any(dates);
    if dates(schema) || schema["anyOf"].as_array().is_some_and(any_date) {
        let times = [
            "2026-01-31T12:00:00Z",
            "2030-12-31T23:59:59.999999+14:00",
            "1999-02-28T00:00:00-01:30",
        ];
        return prop::sample::select(times.to_vec())
            .prop_map(Value::from)
            .boxed();
    }
    if schema["format"] == "uuid" {
        return "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
            .prop_map(Value::from)
            .boxed();
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let whole = pattern.trim_start_matches('^').trim_end_matches('$');
        return proptest::string::string_regex(whole)
            .unwrap()
            .prop_map(Value::from)
            .boxed();
    }
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap();
    let most = usize::try_from(schema["maxLength"].as_u64().unwrap_or(20)).unwrap();
    let text = |len| {
        prop::collection::vec(any::<char>(), len)
            .prop_map(|chars| Value::from(chars.into_iter().collect::<String>()))
    };
    prop_oneof![3 => text(least..least + 10), 1 => text(most..most + 1)].boxed()
}

/// Each member that need not be there is there in half of the values.
fn objects(document: &Document, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
    let Some(members) = schema["properties"].as_object().filter(|_| depth > 0) else {
        return Just(json!({})).boxed();
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().map(|n| n.as_str().unwrap()).collect())
        .unwrap_or_default();
    let all: Vec<BoxedStrategy<Option<(String, Value)>>> = members
        .iter()
        .map(|(name, schema)| {
            let name_of = name.clone();
            let member =
                values(document, schema, depth - 1).prop_map(move |v| (name_of.clone(), v));
            if required.contains(&name.as_str()) {
                member.prop_map(Some).boxed()
            } else {
                prop::option::of(member).boxed()
            }
        })
        .collect();
    // Of members that exclude each other, the first gives way.
    let excluded = schema["not"]["required"][0].as_str().map(str::to_owned);
    all.prop_map(move |members| {
        let mut object: Map<String, Value> = members.into_iter().flatten().collect();
        if let Some(name) = &excluded {
            object.remove(name);
        }
        Value::Object(object)
    })
    .boxed()
}
