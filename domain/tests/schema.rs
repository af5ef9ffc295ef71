//! The published schema of a task and the code that reads tasks agree, value by value, in both
//! directions; where a schema cannot say what the reader asks, the difference is listed here.

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use taskledger_domain::ids::parse_uuid_v4;
use taskledger_domain::limits;
use taskledger_domain::task::{call, schema, spec};

/// Tasks per property, on top of every palette value in every place: these are for combinations.
const CASES: u32 = 3000;

const V4: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// The validator of one component.
fn validator(name: &str) -> Validator {
    let schemas: Map<String, Value> = schema::components()
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    jsonschema::draft7::options()
        .offline()
        .should_validate_formats(true)
        .with_format("uuid", |text: &str| parse_uuid_v4(text).is_ok())
        .build(&json!({
            "$ref": format!("#/components/schemas/{name}"),
            "components": {"schemas": schemas},
        }))
        .expect("the schemas are draft-07 and every reference leads somewhere")
}

/// What an `application/json` body can hold where a task stands, wrong in most places.
fn palette() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(0.0),
        json!(-0.0),
        json!(1),
        json!(2.0),
        json!(2.5),
        json!(-1),
        json!(3),
        json!(4),
        json!(100),
        json!(101),
        json!(102),
        json!(1e300),
        json!(0.001),
        json!(0.0001),
        json!(2_592_000),
        json!(2_592_000_001_u64),
        json!(31_536_000),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!("pending"),
        json!("completed"),
        json!("local"),
        json!("é".repeat(255)),
        json!("é".repeat(256)),
        json!(V4),
        json!(V4.to_uppercase()),
        json!("0f8fad5b-d9cb-169f-a165-70867728950e"),
        json!("0f8fad5b-d9cb-469f-c165-70867728950e"),
        json!("0f8fad5bd9cb469fa16570867728950e"),
        json!("2026-01-31T12:00:00Z"),
        json!("2026-01-31T12:00:00.123456+02:00"),
        json!("2026-01-31 12:00:00"),
        json!("2026-01-31"),
        json!([]),
        json!([1]),
        json!([{"id": "a"}]),
        json!({}),
        json!({"x": [1, {"y": null}]}),
        json!({"id": "a", "required": false}),
        json!({"method": "echo_executor"}),
        json!({"max_attempts": 2.0}),
        json!({"name": "n"}),
        json!({"task": {"name": "n"}}),
    ]
}

/// A task with every member that a caller may write, in the forms that hold most.
fn full() -> Value {
    json!({
        "name": "n", "user_id": "u", "parent_id": "a", "priority": 1, "inputs": {"x": 1},
        "schemas": {
            "method": "m", "type": "local", "input_schema": {},
            "wiring": {"x": "a.b", "y": {"from": "a#/c~1", "required": true, "default": 1}},
            "templates": true,
        },
        "dependencies": [{"id": "a", "required": true}],
        "params": {
            "retry": {"max_attempts": 2, "initial_delay_ms": 5, "multiplier": 1.5, "max_delay_ms": 9},
            "timeout_seconds": 1.5, "deadline": "2030-01-31T12:00:00Z", "delay_seconds": 1.5,
        },
        "start_at": "2030-01-31T12:00:00Z",
        "status": "pending", "progress": 0, "result": null, "error": null, "started_at": null,
        "completed_at": null, "created_at": "2026-01-31", "updated_at": "2026-01-31",
        "labels": {"team": "data", "example.org/stage": "é"},
    })
}

fn full_with_id() -> Value {
    let mut task = full();
    task["id"] = json!("alias");
    task["params"] = json!({"retry_count": 1});
    task
}

/// Each palette value in each place of the samples, and each place left out.
fn everywhere(samples: &[Value]) -> Vec<Value> {
    let mut values = Vec::new();
    for sample in samples {
        let mut found = Vec::new();
        places(sample, "", &mut found);
        for at in &found {
            for new in palette() {
                let mut value = sample.clone();
                mutate(&mut value, at, Mutation::Replace(new));
                values.push(value);
            }
            let mut value = sample.clone();
            mutate(&mut value, at, Mutation::Remove);
            values.push(value);
        }
    }
    values
}

fn maybe(
    name: &'static str,
    values: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Option<(String, Value)>> {
    prop::option::of(values.prop_map(move |value| (name.to_owned(), value))).boxed()
}

fn any_of(values: Vec<Value>) -> impl Strategy<Value = Value> {
    prop::sample::select(values)
}

/// A task that both take.
fn valid_fields() -> impl Strategy<Value = Value> {
    let members = vec![
        maybe("user_id", any_of(vec![json!("u"), json!(null)])),
        maybe(
            "parent_id",
            any_of(vec![json!("a"), json!(V4), json!(null)]),
        ),
        maybe("priority", any_of(vec![json!(0), json!(3.0), json!(null)])),
        maybe("inputs", any_of(vec![json!({}), json!({"x": {"y": [1]}})])),
        maybe(
            "schemas",
            any_of(vec![
                json!(null),
                json!({"method": "m"}),
                json!({"method": "m", "type": "remote", "input_schema": {}, "more": 1}),
                json!({"method": "m", "wiring": {"x": "a.b#/c", "y": {"from": "a#", "required": false, "default": null}}}),
                json!({"method": "m", "templates": true}),
            ]),
        ),
        maybe(
            "dependencies",
            any_of(vec![
                json!([]),
                json!([{"id": "a"}, {"id": V4, "required": false}]),
            ]),
        ),
        maybe(
            "params",
            any_of(vec![
                json!(null),
                json!({"retry_count": 3, "timeout_seconds": 1.5, "user_agent": "x"}),
                json!({"retry": {"max_attempts": 2, "initial_delay_ms": 5, "multiplier": 1.5, "max_delay_ms": 9}}),
                json!({"deadline": "2030-01-31T12:00:00Z"}),
            ]),
        ),
        maybe("id", any_of(vec![json!("alias"), json!(V4)])),
        maybe("status", any_of(vec![json!("pending")])),
        maybe("progress", any_of(vec![json!(0), json!(0.0)])),
        maybe("result", any_of(vec![json!(null)])),
        maybe("error", any_of(vec![json!(null)])),
        maybe("started_at", any_of(vec![json!(null)])),
        maybe(
            "created_at",
            any_of(vec![json!("2026-01-31T12:00:00Z"), json!("2026-01-31")]),
        ),
    ];
    members.prop_map(|members| {
        let mut task: Map<String, Value> = members.into_iter().flatten().collect();
        task.insert("name".to_owned(), json!("n"));
        Value::Object(task)
    })
}

/// With `children`, as a node, or plain.
fn valid_task() -> impl Strategy<Value = Value> {
    valid_fields().prop_recursive(3, 8, 3, |inner| {
        let children = prop::collection::vec(inner, 0..3);
        (valid_fields(), children, any::<bool>()).prop_map(|(mut task, children, node)| {
            if node {
                return json!({"task": task, "children": children});
            }
            task["children"] = Value::Array(children);
            task
        })
    })
}

#[derive(Debug, Clone)]
enum Mutation {
    Replace(Value),
    Remove,
    Add(&'static str, Value),
}

fn mutation() -> impl Strategy<Value = (prop::sample::Index, Mutation)> {
    let names = vec![
        "unknown",
        "task",
        "tasks",
        "children",
        "retry",
        "retry_count",
        "method",
        "id",
        "required",
        "completed_at",
        "updated_at",
        "error",
        "progress",
        "status",
    ];
    let what = prop_oneof![
        4 => prop::sample::select(palette()).prop_map(Mutation::Replace),
        1 => Just(Mutation::Remove),
        2 => (prop::sample::select(names), prop::sample::select(palette()))
            .prop_map(|(name, value)| Mutation::Add(name, value)),
    ];
    (any::<prop::sample::Index>(), what)
}

/// JSON pointers of everything below `value`.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{i}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(member, &format!("{at}/{name}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn mutate(value: &mut Value, at: &str, mutation: Mutation) {
    match mutation {
        Mutation::Replace(new) => {
            *value.pointer_mut(at).expect("the place was found") = new;
        }
        Mutation::Add(name, new) => {
            if let Some(Value::Object(members)) = value.pointer_mut(at) {
                members.insert(name.to_owned(), new);
            }
        }
        Mutation::Remove => {
            let Some((around, name)) = at.rsplit_once('/') else {
                return;
            };
            let holder = value.pointer_mut(around).expect("the place was found");
            if let Value::Object(members) = holder {
                members.remove(&name.replace("~1", "/").replace("~0", "~"));
            } else if let Value::Array(items) = holder {
                items.remove(name.parse::<usize>().expect("a position in an array"));
            }
        }
    }
}

fn mutated(valid: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (valid, prop::collection::vec(mutation(), 0..3)).prop_map(|(mut value, mutations)| {
        for (place, mutation) in mutations {
            let mut found = Vec::new();
            places(&value, "", &mut found);
            let at: &String = place.get(&found);
            mutate(&mut value, at, mutation);
        }
        value
    })
}

/// Both judge the samples with every palette value in every place, and random ones, alike; and
/// there are many of both sorts.
fn both_agree(
    samples: &[Value],
    values: impl Strategy<Value = Value>,
    takes: impl Fn(&Value) -> bool,
    reads: impl Fn(&Value) -> Result<(), String>,
) {
    let (taken, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    let agree = |value: &Value| {
        let read = reads(value);
        let count = if read.is_ok() { &taken } else { &refused };
        count.set(count.get() + 1);
        if read.is_ok() == takes(value) {
            return Ok(());
        }
        Err(format!(
            "only the other one takes it; reader: {read:?}; value: {value}"
        ))
    };
    for value in everywhere(samples) {
        if let Err(difference) = agree(&value) {
            panic!("{difference}");
        }
    }
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome =
        TestRunner::new(config).run(&values, |value| agree(&value).map_err(TestCaseError::fail));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let (taken, refused) = (taken.get(), refused.get());
    assert!(
        taken > CASES / 10 && refused > CASES / 10,
        "{taken} taken and {refused} refused prove too little"
    );
}

fn listed(tasks: &Value) -> Result<(), String> {
    call::parse_tasks(tasks)
        .map(drop)
        .map_err(|v| format!("{v:?}"))
}

#[test]
fn a_list_of_tasks_is_read_exactly_when_its_schema_takes_it() {
    let schema = validator("TaskInputs");
    let nested = json!({"name": "n", "children": [{"task": full(), "children": [full()]}]});
    let samples = [json!([full()]), json!([full_with_id()]), json!([nested])];
    let lists = prop::collection::vec(valid_task(), 1..3).prop_map(Value::Array);
    both_agree(&samples, mutated(lists), |v| schema.is_valid(v), listed);
}

#[test]
fn updates_are_read_exactly_when_their_schema_takes_them() {
    let schema = validator("TaskUpdates");
    let updates = valid_fields().prop_map(|mut task| {
        let members = task.as_object_mut().expect("a task is an object");
        members.remove("id");
        // References to tasks of the same call, of which there are none.
        members.remove("dependencies");
        if members.get("parent_id") == Some(&json!("a")) {
            members.remove("parent_id");
        }
        task
    });
    let reads = |value: &Value| {
        let members = value.as_object().ok_or("no object")?;
        spec::updates(members)
            .map(drop)
            .map_err(|v| format!("{v:?}"))
    };
    let stored = |mut task: Value| {
        task["parent_id"] = json!(V4);
        task["dependencies"] = json!([{"id": V4, "required": true}]);
        task
    };
    let samples = [stored(full()), full(), stored(full_with_id())];
    both_agree(&samples, mutated(updates), |v| schema.is_valid(v), reads);
}

#[test]
fn parameters_of_a_creation_are_read_exactly_when_their_schemas_take_them() {
    let (one, several) = (validator("TaskInput"), validator("TaskInputs"));
    let takes = |value: &Value| match value.get("tasks") {
        Some(tasks) => value.as_object().is_some_and(|v| v.len() == 1) && several.is_valid(tasks),
        None => one.is_valid(value),
    };
    let reads = |value: &Value| {
        let members = value.as_object().ok_or("no object")?;
        call::parse_create(members)
            .map(drop)
            .map_err(|v| format!("{v:?}"))
    };
    let samples = [full_with_id(), json!({"tasks": [{"name": "n"}]})];
    both_agree(&samples, mutated(valid_task()), takes, reads);
}

/// A list of one task with these members.
fn one(members: Value) -> Value {
    let mut task = members;
    task["name"] = json!("n");
    json!([task])
}

/// What a schema cannot say. That the tasks form one tree, and that names in `parent_id` and
/// `dependencies` mean something, is asked after reading, of all tasks of the call together.
#[test]
fn the_differences_between_schema_and_reader_are_these() {
    let deep = (0..limits::PAYLOAD_DEPTH_MAX).fold(json!(1), |inner, _| json!({"x": inner}));
    let large = "x".repeat(limits::PAYLOAD_BYTES_MAX);
    let child = json!({"name": "c"});
    let broad = Value::Array(vec![child; limits::TASKS_PER_CALL_MAX]);
    let differences = [
        (
            "levels of JSON",
            one(json!({"inputs": {"deep": deep}})),
            true,
            false,
        ),
        (
            "bytes of JSON",
            one(json!({"inputs": {"large": large}})),
            true,
            false,
        ),
        (
            "tasks over all levels",
            one(json!({"children": broad})),
            true,
            false,
        ),
        (
            "a time without an offset that no clock shows",
            one(json!({"created_at": "2026-99-31 12:00:00"})),
            true,
            false,
        ),
        (
            "a date with short numbers",
            one(json!({"created_at": "2026-1-2"})),
            false,
            true,
        ),
        (
            "a deadline with a space between date and time",
            one(json!({"params": {"deadline": "2026-01-31 12:00:00Z"}})),
            false,
            true,
        ),
    ];
    let schema = validator("TaskInputs");
    for (what, tasks, schema_takes, reader_takes) in differences {
        assert_eq!(
            (schema.is_valid(&tasks), listed(&tasks).is_ok()),
            (schema_takes, reader_takes),
            "{what}"
        );
    }
}

#[test]
fn the_parameters_of_a_creation_are_all_members_of_a_task_and_the_forms() {
    let declared: Vec<_> = schema::create_members().iter().map(|m| m.name).collect();
    assert_eq!(declared[0], "name", "positional calls begin with the name");
    let mut expected: BTreeSet<_> = schema::MEMBERS.iter().map(|m| m.name).collect();
    expected.extend(["children", "task", "tasks"]);
    assert_eq!(declared.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(declared.len(), expected.len(), "each stands there once");
}
