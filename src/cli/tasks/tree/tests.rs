//! What commands show on terminals of 80 and 120 columns, colours included, compared with files in
//! `tests/whole/system/screens`. `TASKLEDGER_WRITE_SCREENS=1` writes them anew. `@` stands for the escape character, so
//! that the files can be read.

use super::super::{explain, list, tree as tasks_tree};
use crate::cli::health;
use crate::cli::output::{Look, Output, Text};
use crate::cli::run::screen::Screen;
use crate::cli::tree;
use crate::cli::when::{Times, tests::at_noon};
use serde_json::{Value, json};
use std::path::Path;
use taskledger_terminal::testing::Buffer;

fn task(number: u8, name: &str, status: &str, more: Value) -> Value {
    let mut task = json!({"id": format!("{number:02x}8fad5b-d9cb-469f-a165-70867728950e"), "name": name,
        "status": status, "progress": 0, "attempt": 1, "user_id": "ann"});
    let (Some(members), Some(more)) = (task.as_object_mut(), more.as_object()) else {
        panic!("both are objects");
    };
    members.extend(more.clone());
    task
}

/// A flow with a task in every state.
fn flow() -> Value {
    let times = |start: &str, end: Value| json!({"started_at": start, "completed_at": end});
    let id = |number: u8| format!("{number:02x}8fad5b-d9cb-469f-a165-70867728950e");
    let fetched = times("2026-01-31T11:58:00Z", json!("2026-01-31T11:58:12Z"));
    let mut parsing = times("2026-01-31T11:58:12Z", Value::Null);
    parsing["progress"] = 0.425.into();
    let mut broken = times("2026-01-31T11:58:12Z", json!("2026-01-31T11:58:42Z"));
    broken["error"] = "POST https://example.com/render: 503 Service Unavailable, and no answer after that for 30 s".into();
    broken["attempt"] = 3.into();
    let children = [
        task(2, "fetch", "completed", fetched),
        task(3, "parse the report of the quarter", "in_progress", parsing),
        task(4, "render", "failed", broken),
        task(
            5,
            "upload",
            "pending",
            json!({"dependencies": [{"id": id(3)}, {"id": id(2)}]}),
        ),
        task(
            6,
            "notify",
            "pending",
            json!({"dependencies": [{"id": id(4)}]}),
        ),
        task(
            7,
            "again",
            "pending",
            json!({"next_attempt_at": "2026-01-31T12:00:02Z", "attempt": 2}),
        ),
        task(
            8,
            "not needed",
            "cancelled",
            json!({"error": "cancelled by ann"}),
        ),
    ];
    let root = times("2026-01-31T11:58:00Z", Value::Null);
    json!({"task": task(1, "quarterly report", "in_progress", root),
        "children": children.map(|task| json!({"task": task, "children": []}))})
}

fn tasks() -> Vec<Value> {
    let mut tasks = vec![flow()["task"].clone()];
    let children = flow()["children"].as_array().unwrap().clone();
    tasks.extend(children.into_iter().map(|node| node["task"].clone()));
    tasks
}

/// A terminal with colours.
fn screen(columns: usize, show: impl FnOnce(&mut Output)) -> String {
    let buffer = Buffer::default();
    let look = Look {
        coloured: true,
        columns: Some(columns),
    };
    let mut out = Output::to(Box::new(buffer.clone()), false, true).looking(look);
    show(&mut out);
    buffer.text().replace('\x1b', "@")
}

fn of(columns: usize, name: &str) -> String {
    let when = at_noon(Times::Age);
    let texts = |texts: Vec<Text>| screen(columns, |out| out.texts(&texts).unwrap());
    match name {
        "tasks-list" => texts(list::all_of_them(
            &json!({"children": tasks()}),
            &when,
            Some(columns),
        )),
        "tasks-list-local" => {
            let when = at_noon(Times::Local);
            texts(list::all_of_them(
                &json!({"children": tasks()}),
                &when,
                Some(columns),
            ))
        }
        "tasks-tree" => texts(tasks_tree::table(&flow(), &when, Some(columns))),
        "tasks-explain" => {
            let answer = json!({"summary": "`notify` cannot start by itself: `render` failed", "status": "pending",
                "reasons": [{"code": "blocked", "message": "-", "chain": [
                    {"id": "048fad5b-d9cb-469f-a165-70867728950e", "name": "render", "status": "failed", "required": true}],
                 "next_steps": [{"method": "tasks.retry", "params": {"task_id": "048fad5b-d9cb-469f-a165-70867728950e"},
                    "why": "run the failed task again, and those behind it"}]}]});
            screen(columns, |out| explain::show(&answer, out).unwrap())
        }
        "run-end" => {
            let lines = tree::lines_at(&flow(), when.now);
            let mut ending = Screen::Plain {
                shown: lines
                    .iter()
                    .map(|it| (it.id.clone(), it.status.clone()))
                    .collect(),
            };
            screen(columns, |out| ending.finish(&lines, out).unwrap())
        }
        "run-pipe" => {
            let lines = tree::lines_at(&flow(), when.now);
            let mut changes = Screen::Plain {
                shown: std::collections::HashMap::new(),
            };
            screen(columns, |out| changes.show(&lines, out).unwrap())
        }
        "run-end-large" => {
            let failed = |number: usize| {
                let task = json!({"id": number.to_string(), "name": format!("task {number}"), "status":
                    if number.is_multiple_of(100) { "failed" } else { "completed" }, "error": "no route to host"});
                json!({ "task": task })
            };
            let mut large = flow();
            large["children"] = (0..5_000).map(failed).collect();
            let lines = tree::lines_at(&large, when.now);
            let mut ending = Screen::Plain {
                shown: lines
                    .iter()
                    .map(|it| (it.id.clone(), it.status.clone()))
                    .collect(),
            };
            screen(columns, |out| ending.finish(&lines, out).unwrap())
        }
        "health" => texts(health::of_health(
            &json!({"status": "degraded", "version": "0.1.0",
            "checks": [{"name": "log", "ok": true, "detail": "writes"}, {"name": "disk", "ok": false, "detail": "full"}],
            "log": {"head": 1042}, "projections": {"lag": 2}, "flows": {"resident": 1}}),
        )),
        "executors" => texts(health::of_executors(
            &json!({"executors": [
            {"name": "echo_executor", "summary": "Returns its inputs", "limit": 256},
            {"name": "http_executor", "summary": "Sends an HTTP request and returns status, headers and body, within the rules for egress", "limit": 256},
            {"name": "ocr", "summary": "", "limit": null, "remote": true}]}),
            Some(columns),
        )),
        other => panic!("no screen {other}"),
    }
}

#[test]
fn screens_are_as_their_files_show_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/whole/system/screens");
    for name in [
        "tasks-list",
        "tasks-list-local",
        "tasks-tree",
        "tasks-explain",
        "run-end",
        "run-pipe",
        "run-end-large",
        "health",
        "executors",
    ] {
        for columns in [80, 120] {
            let shown = of(columns, name);
            let file = folder.join(format!("{name}.{columns}.txt"));
            if std::env::var_os("TASKLEDGER_WRITE_SCREENS").is_some() {
                std::fs::write(&file, &shown).unwrap();
            }
            let expected = std::fs::read_to_string(&file).unwrap();
            assert_eq!(shown, expected, "{name} at {columns} columns");
            for line in shown.lines().map(without_colours) {
                let is_whole = name == "tasks-explain";
                assert!(
                    is_whole || line.chars().count() <= columns,
                    "{name}: {line}"
                );
            }
        }
    }
}

fn without_colours(line: &str) -> String {
    let mut pieces = line.split("@[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}
