//! Schemas that try to cost more than their size promises, with inputs that let them: one list for
//! the tests, the benchmark and the server's test.

use crate::task::inputs::limits;
use serde_json::{Map, Value, json};

/// A schema and inputs for it.
#[derive(Debug, Clone)]
pub struct Attack {
    /// What is tried.
    pub name: &'static str,
    /// The JSON Schema that the inputs are checked against.
    pub schema: Value,
    /// The inputs, always an object, as a task has them.
    pub inputs: Value,
    /// What the first violation may say; empty when there is nothing wrong with it.
    pub ends: &'static [&'static str],
}

const COSTLY: &str = "is too costly to check these inputs against";
const MANY: &str = "do not conform to the input schema in too many ways to list";
const TYPE: &str = "has the wrong type";
const FAULTY: &str = "is no draft-07 schema in too many ways to list";
const DEEP: &str = "is nested too deeply";
const EXCLUDED: &str = "matches a schema that is excluded";
const LARGE: &str = "is too large";
const MISSING: &str = "is required";
const PATTERNS: &str = "has too many regular expressions";
const PATTERN: &str = "does not match the pattern";
const EXPRESSION: &str = "cannot be used as a regular expression";
const FORMAT: &str = "does not have the format";
const VALUE: &str = "is not one of the allowed values";
const CONTAINS: &str = "contains no item of the required form";

fn attack(name: &'static str, schema: Value, inputs: Value) -> Attack {
    Attack {
        name,
        schema,
        inputs,
        ends: &[],
    }
}

impl Attack {
    fn ends(mut self, reasons: &'static [&'static str]) -> Self {
        self.ends = reasons;
        self
    }
}

/// `a_i = keyword [a_{i+1}, a_{i+1}]`, with `last` at the end: each level doubles the work.
#[must_use]
pub fn ladder(keyword: &str, levels: usize, last: Value) -> Value {
    let mut definitions = Map::new();
    for i in 0..levels {
        let next = json!({"$ref": format!("#/definitions/a{}", i + 1)});
        definitions.insert(format!("a{i}"), json!({keyword: [next.clone(), next]}));
    }
    definitions.insert(format!("a{levels}"), last);
    json!({"$ref": "#/definitions/a0", "definitions": definitions})
}

/// A chain of `length` references, with `last` at its end.
#[must_use]
pub fn chain(length: usize, last: Value) -> Value {
    let mut definitions = Map::new();
    for i in 0..length {
        let next = json!({"$ref": format!("#/definitions/a{}", i + 1)});
        definitions.insert(format!("a{i}"), next);
    }
    definitions.insert(format!("a{length}"), last);
    json!({"$ref": "#/definitions/a0", "definitions": definitions})
}

/// `{"x": {"x": ... {}}}`.
#[must_use]
pub fn nested_inputs(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({"x": inner}))
}

/// Different patterns of the form `make(i)`, all tried on `v`.
fn patterns(count: usize, make: impl Fn(usize) -> String) -> Value {
    let all: Vec<_> = (0..count).map(|i| json!({"pattern": make(i)})).collect();
    json!({"properties": {"v": {"allOf": all}}})
}

fn property(schema: Value) -> Value {
    json!({"properties": {"v": schema}})
}

/// All attacks. Cost: tens of megabytes of JSON, made anew at each call.
#[must_use]
pub fn attacks() -> Vec<Attack> {
    let mut all = branching();
    all.extend(references());
    all.extend(expressions());
    all.extend(volumes());
    all
}

fn branching() -> Vec<Attack> {
    let string = || json!({"type": "string"});
    let recursive = json!({"anyOf": [
        {"properties": {"x": {"$ref": "#"}}, "required": ["y"]},
        {"properties": {"x": {"$ref": "#"}}, "required": ["z"]},
    ]});
    let deep = |levels| (0..levels).fold(json!({}), |inner, _| json!({"not": inner}));
    let fits = limits::SCHEMA_DEPTH_MAX - 1;
    vec![
        attack(
            "anyOf ladder, 20 levels",
            ladder("anyOf", 20, string()),
            json!({}),
        )
        .ends(&[COSTLY, MANY]),
        attack(
            "anyOf ladder, 40 levels",
            ladder("anyOf", 40, string()),
            json!({}),
        )
        .ends(&[COSTLY]),
        attack(
            "allOf ladder, 22 levels",
            ladder("allOf", 22, string()),
            json!({}),
        )
        .ends(&[TYPE, COSTLY]),
        attack(
            "allOf ladder, 40 levels",
            ladder("allOf", 40, string()),
            json!({}),
        )
        .ends(&[TYPE, COSTLY]),
        attack(
            "allOf ladder, 40 levels, no fault",
            ladder("allOf", 40, json!({})),
            json!({}),
        )
        .ends(&[COSTLY]),
        attack(
            "oneOf ladder, 40 levels",
            ladder("oneOf", 40, string()),
            json!({}),
        )
        .ends(&[COSTLY]),
        attack(
            "recursive anyOf, inputs 18 deep",
            recursive.clone(),
            nested_inputs(18),
        )
        .ends(&[MANY]),
        attack(
            "recursive anyOf, inputs 100 deep",
            recursive,
            nested_inputs(100),
        )
        .ends(&[MANY, COSTLY]),
        attack("nested not, 1,000 levels", deep(1000), json!({})).ends(&[DEEP]),
        attack("nested not, as deep as allowed", deep(fits), json!({})).ends(&[EXCLUDED]),
    ]
}

fn references() -> Vec<Attack> {
    let required = || json!({"required": ["q"]});
    let mut walked = Map::new();
    for i in 0..400 {
        let next = json!({"$ref": format!("#/definitions/a{}", i + 1)});
        walked.insert(format!("a{i}"), json!({"allOf": [next]}));
    }
    let again = json!({"additionalProperties": {"$ref": "#/definitions/a0"}});
    walked.insert("a400".to_owned(), again);
    let walked = json!({"$ref": "#/definitions/a0", "definitions": walked});
    let itself = json!({"allOf": [{"$ref": "#"}]});
    let either = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let far = json!({"properties": {"v": {"items": either}}});
    let numbers: Vec<_> = (0..20_000).collect();
    vec![
        attack(
            "a reference to itself",
            json!({"$ref": "#"}),
            json!({"a": 1}),
        )
        .ends(&[]),
        attack("allOf of itself", itself, json!({"a": 1})).ends(&[]),
        attack(
            "chain of 25,000 references",
            chain(25_000, required()),
            json!({}),
        )
        .ends(&[LARGE]),
        attack(
            "chain as long as allowed",
            chain(1600, required()),
            json!({}),
        )
        .ends(&[MISSING, COSTLY]),
        attack(
            "20,000 faults at the end of a chain",
            chain(1000, far),
            json!({"v": numbers}),
        )
        .ends(&[MANY, COSTLY]),
        attack(
            "chain walked again at each level",
            walked,
            nested_inputs(120),
        )
        .ends(&[COSTLY]),
    ]
}

fn expressions() -> Vec<Attack> {
    let text = |times: usize| json!({"v": format!("{}!", "a".repeat(times))});
    let most = limits::PATTERNS_MAX;
    let nested = |i: usize| format!("(a{{1,20}}{i}){{1,20}}");
    let huge = json!({"pattern": "^((a{1,100}){1,100}){1,100}$"});
    let all_huge = patterns(most, |i| format!("((a{{1,100}}){{1,100}}){{1,100}}{i}"));
    let names: Map<String, Value> = (0..most)
        .map(|i| (format!("^(a|b|{i})*$"), json!(true)))
        .collect();
    let members: Map<String, Value> = (0..5000)
        .map(|i| (format!("aaaaaaaaaaaaaaaa{i}"), json!(1)))
        .collect();
    let states = "[ab]*a[ab]{300}c";
    let regexes = |text: String| json!({"v": text});
    vec![
        attack(
            "200 patterns with nested counts",
            patterns(200, nested),
            text(1000),
        )
        .ends(&[PATTERNS]),
        attack(
            "as many with nested counts as allowed",
            patterns(most, nested),
            text(1000),
        )
        .ends(&[PATTERN]),
        attack("one pattern too large to compile", property(huge), text(10)).ends(&[EXPRESSION]),
        attack("all patterns too large to compile", all_huge, text(10)).ends(&[EXPRESSION]),
        attack(
            "as many classes of letters as allowed",
            patterns(most, |i| format!(r"^\p{{L}}{{3}}{i}$")),
            text(1000),
        )
        .ends(&[EXPRESSION]),
        attack(
            "as many word boundaries as allowed",
            patterns(most, |i| format!(r"(\b\w+\b){{4}}{i}")),
            text(1000),
        )
        .ends(&[PATTERN]),
        attack(
            "as many long texts as allowed",
            patterns(most, |i| format!("{}{i}", "x".repeat(900))),
            text(1000),
        )
        .ends(&[PATTERN]),
        attack(
            "as many long classes as allowed",
            patterns(most, |i| {
                format!("[{}]{{9}}{i}", "a\u{100}b\u{200}é".repeat(60))
            }),
            text(1000),
        )
        .ends(&[PATTERN]),
        attack(
            "catastrophic backtracking",
            property(json!({"pattern": "^(a+)+$"})),
            text(50_000),
        )
        .ends(&[PATTERN]),
        attack(
            "many states, a long text",
            property(json!({"pattern": states})),
            json!({"v": "ab".repeat(500_000)}),
        )
        .ends(&[COSTLY]),
        attack(
            "many states, a text that is let through",
            property(json!({"pattern": states})),
            json!({"v": "ab".repeat(5000)}),
        )
        .ends(&[PATTERN]),
        attack(
            "patterns for names, many members",
            json!({"patternProperties": names}),
            Value::Object(members),
        )
        .ends(&[COSTLY]),
        attack(
            "60 patterns, a long text",
            patterns(60, |i| format!("^(a|b|{i})*$")),
            text(500_000),
        )
        .ends(&[PATTERN]),
        attack(
            "a regular expression as value, nested",
            property(json!({"format": "regex"})),
            regexes("(a{1,100}){1,100}".repeat(1000)),
        )
        .ends(&[]),
        attack(
            "a regular expression as value, open",
            property(json!({"format": "regex"})),
            regexes("(".repeat(20_000)),
        )
        .ends(&[FORMAT]),
        attack(
            "a regular expression as value, counts",
            property(json!({"format": "regex"})),
            regexes("((((a{1,99}){1,99}){1,99}){1,99}){1,99}".to_owned()),
        )
        .ends(&[]),
    ]
}

fn volumes() -> Vec<Attack> {
    let objects =
        |count: usize| -> Vec<Value> { (0..count).map(|i| json!({"a": i, "b": [i]})).collect() };
    let properties: Map<String, Value> = (1..limits::SUBSCHEMAS_MAX)
        .map(|i| (format!("p{i}"), json!({"type": "string"})))
        .collect();
    let wrong: Map<String, Value> = (1..limits::SUBSCHEMAS_MAX)
        .map(|i| (format!("p{i}"), json!(i)))
        .collect();
    let unique: Vec<_> = (0..1000).map(|_| json!({"uniqueItems": true})).collect();
    let long: Vec<_> = (0..500).map(|i| format!("n{i}")).collect();
    let empty: Vec<_> = (0..50_000).map(|_| json!({})).collect();
    let any: Vec<_> = (0..1000).map(|i| json!({"const": i})).collect();
    let numbers: Vec<_> = (0..50_000).collect();
    let ones = vec![1; 25_000];
    let long_name = "d".repeat(30_000);
    vec![
        attack(
            "enum of 50,000 objects",
            property(json!({"enum": objects(50_000)})),
            json!({"v": {}}),
        )
        .ends(&[LARGE]),
        attack(
            "enum as large as allowed",
            property(json!({"enum": objects(1000)})),
            json!({"v": objects(1)[0]}),
        )
        .ends(&[]),
        attack(
            "enum as large as allowed, for each item",
            property(json!({"items": {"enum": (0..1000).collect::<Vec<_>>()}})),
            json!({"v": numbers}),
        )
        .ends(&[VALUE]),
        attack(
            "uniqueItems of 20,000 objects",
            property(json!({"uniqueItems": true})),
            json!({"v": objects(20_000)}),
        )
        .ends(&[]),
        attack(
            "uniqueItems again and again",
            property(json!({"allOf": unique})),
            json!({"v": objects(20_000)}),
        )
        .ends(&[COSTLY]),
        attack(
            "as many subschemas as allowed, all violated",
            json!({"properties": properties}),
            Value::Object(wrong),
        )
        .ends(&[TYPE]),
        attack(
            "long lists of required names, 50,000 items",
            property(json!({"items": {"required": long}})),
            json!({"v": empty}),
        )
        .ends(&[MISSING]),
        attack(
            "1,000 branches for each of 50,000 items",
            property(json!({"items": {"anyOf": any}})),
            json!({"v": numbers}),
        )
        .ends(&[MANY]),
        attack(
            "25,000 faults below a long name",
            json!({"additionalProperties": {"items": {"type": "string"}}}),
            json!({"n".repeat(900_000): ones}),
        )
        .ends(&[TYPE]),
        attack(
            "25,000 faults below a long name, in branches",
            json!({"additionalProperties": {"items": {"anyOf": [{"type": "string"}, false]}}}),
            json!({"n".repeat(900_000): ones}),
        )
        .ends(&[MANY]),
        attack(
            "25,000 faults of a long definition",
            json!({"properties": {"v": {"items": {"$ref": format!("#/definitions/{long_name}")}}},
                "definitions": {long_name.as_str(): {"type": "string"}}}),
            json!({"v": ones}),
        )
        .ends(&[TYPE]),
        attack(
            "a schema with 15,000 faults below a long name",
            json!({"definitions": {long_name.as_str(): {"required": ones[..15_000]}}}),
            json!({}),
        )
        .ends(&[FAULTY]),
        attack(
            "a schema with 15,000 faults below a long name, in branches",
            json!({"definitions": {long_name.as_str(): {"dependencies": {"a": ones[..15_000]}}}}),
            json!({}),
        )
        .ends(&[FAULTY]),
        attack(
            "contains nothing of 50,000 items",
            property(json!({"contains": {"type": "string"}})),
            json!({"v": numbers}),
        )
        .ends(&[CONTAINS]),
    ]
}
