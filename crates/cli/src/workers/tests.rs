//! The calls of each command line, and the output of answers.

use super::*;
use crate::testing::parsed;
use serde_json::{Value, json};
use taskledger_terminal::testing::Buffer;

fn request(line: &str) -> Request {
    let words = std::iter::once("workers").chain(line.split('|'));
    let args: Args = parsed(words).unwrap();
    args.command.request().unwrap()
}

fn shown(line: &str, answer: &Value) -> String {
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    (request(line).show)(answer, &mut out).unwrap();
    buffer.text()
}

#[test]
fn each_command_makes_the_call_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schema.json");
    std::fs::write(&file, r#"{"type": "object"}"#).unwrap();
    let declare = format!(
        "declare|m|--description|d e|--input-schema|{0}|--output-schema|{0}|--defaults|{{\"retry_count\":2}}|--limit|9",
        file.display()
    );
    let schema = json!({"type": "object"});
    let cases = [
        ("list", "workers.list", json!({})),
        ("methods", "workers.methods", json!({})),
        ("drain|w", "workers.drain", json!({"worker": "w"})),
        (
            "drain|w|--off",
            "workers.drain",
            json!({"worker": "w", "drain": false}),
        ),
        ("declare|m", "workers.declare", json!({"method": "m"})),
        (
            declare.as_str(),
            "workers.declare",
            json!({"method": "m", "description": "d e", "input_schema": schema, "output_schema": schema,
                "defaults": {"retry_count": 2}, "limit": 9}),
        ),
        ("undeclare|m", "workers.undeclare", json!({"method": "m"})),
        (
            "undeclare|m|--owner|ann",
            "workers.undeclare",
            json!({"method": "m", "owner": "ann"}),
        ),
    ];
    for (line, method, params) in cases {
        let request = request(line);
        assert_eq!((request.method, request.params), (method, params), "{line}");
    }
}

#[test]
fn workers_and_methods_are_tables() {
    let worker = |name: &str, draining: bool, held: u64| {
        json!({"worker": name, "methods": ["a", "b"], "connection": "poll", "since": "S", "last_seen_at": "L",
            "draining": draining, "held": held, "tasks": []})
    };
    let workers = [
        worker("w1", false, 0),
        worker("w2", false, 2),
        worker("w3", true, 1),
        worker("w4", true, 0),
    ];
    assert_eq!(
        shown("list", &json!({"workers": workers})),
        "WORKER  STATE     HELD  CONNECTION  SINCE  LAST SEEN  METHODS\n\
         w1      idle      0     poll        S      L          a,b\n\
         w2      working   2     poll        S      L          a,b\n\
         w3      draining  1     poll        S      L          a,b\n\
         w4      drained   0     poll        S      L          a,b\n"
    );
    let methods = json!({"methods": [
        {"method": "a", "declared": true, "description": "does", "limit": 5, "workers": 1, "running": 2, "waiting": 3,
            "last_asked_at": "L"},
        {"method": "b", "declared": false, "workers": 0, "running": 0, "waiting": 0, "last_asked_at": null},
    ]});
    assert_eq!(
        shown("methods", &methods),
        "METHOD  DECLARED  WORKERS  RUNNING  LIMIT  WAITING  LAST ASKED  DESCRIPTION\n\
         a       yes       1        2        5      3        L           does\n\
         b       no        0        0               0\n"
    );
}

#[test]
fn methods_of_several_owners_say_whose_they_are() {
    let method = |owner: Option<&str>| {
        let mut shown = json!({"method": "a", "declared": true, "workers": 0, "running": 0, "waiting": 0,
            "last_asked_at": null});
        if let Some(owner) = owner {
            shown["owner"] = json!(owner);
        }
        shown
    };
    let both = json!({"methods": [method(None), method(Some("ann"))]});
    assert_eq!(
        shown("methods", &both),
        "METHOD  OWNER  DECLARED  WORKERS  RUNNING  LIMIT  WAITING  LAST ASKED  DESCRIPTION\n\
         a              yes       0        0               0\n\
         a       ann    yes       0        0               0\n"
    );
    for owner in [None, Some("ann")] {
        let one = json!({"methods": [method(owner), method(owner)]});
        let of_one = shown("methods", &one);
        assert!(of_one.starts_with("METHOD  DECLARED  WORKERS"), "{of_one}");
    }
}

#[test]
fn changes_are_told_in_a_sentence() {
    let drained = |draining: bool, held: u64| {
        shown(
            "drain|w",
            &json!({"worker": "w", "draining": draining, "held": held}),
        )
    };
    assert_eq!(drained(true, 0), "w gets no more tasks and holds none\n");
    let absent = json!({"worker": "w", "draining": true, "held": 0, "present": false});
    assert_eq!(
        shown("drain|w", &absent),
        "no worker `w` is there; one that starts under this name gets no tasks until `taskledger workers drain w --off`\n"
    );
    assert_eq!(drained(true, 2), "w gets no more tasks; it holds 2 tasks\n");
    assert_eq!(drained(false, 2), "w gets tasks\n");
    for (line, said) in [
        ("undeclare|m", "m is not declared any more"),
        (
            "undeclare|m|--owner|ann",
            "m is not declared for tasks of ann any more",
        ),
        (
            "undeclare|m|--owner|",
            "m is not declared for everybody any more",
        ),
    ] {
        let words = std::iter::once("workers").chain(line.split('|'));
        let args: Args = parsed(words).unwrap();
        let Command::Undeclare(args) = args.command else {
            panic!("{line}");
        };
        assert_eq!(declare::undeclared(&args), said);
    }
    let declared = json!({"method": "m", "declared": true, "defaults": {"retry_count": 2}, "declared_by": "user:ann"});
    assert_eq!(
        shown("declare|m", &declared),
        "method           m\ndefaults         {\"retry_count\":2}\ndeclared_by      user:ann\n"
    );
}
