//! What commands show on terminals of 80 and 120 columns, colours included, compared with files in
//! `tests/whole/system/screens`. `TASKLEDGER_WRITE_SCREENS=1` writes them anew. `@` stands for the escape character, so
//! that the files can be read.

use super::super::{events_table, explain, get, history, list, tree as tasks_tree};
use crate::event_stream::Event;
use crate::health;
use crate::output::{Look, Output, Text, member};
use crate::paging::show_next;
use crate::run::screen::Screen;
use crate::tree;
use crate::watch::{flows::Flows, lines};
use crate::when::{Times, tests::at_noon};
use crate::{webhooks, workers};
use serde_json::{Value, json};
use std::collections::HashMap;
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

/// One task as `tasks.get` tells it.
fn got() -> Value {
    let mut task = flow()["children"][2]["task"].clone();
    let more = json!({"root_task_id": "018fad5b-d9cb-469f-a165-70867728950e", "created_at": "2026-01-31T11:57:59Z",
        "updated_at": "2026-01-31T11:58:42Z", "schemas": {"method": "http_executor"}, "result": null,
        "inputs": {"method": "POST", "url": "https://example.com/render", "headers": {"accept": "application/pdf"}},
        "dependencies": [{"id": "028fad5b-d9cb-469f-a165-70867728950e", "required": true}]});
    let members = more.as_object().unwrap().clone();
    task.as_object_mut().unwrap().extend(members);
    task
}

/// A page of events.
fn past() -> Value {
    let event = |position: u64, second: u8, kind: &str, data: Value| {
        json!({"position": position, "timestamp": format!("2026-01-31T11:58:{second:02}Z"), "actor": "user:ann",
            "type": kind, "task_id": "048fad5b-d9cb-469f-a165-70867728950e",
            "root_task_id": "018fad5b-d9cb-469f-a165-70867728950e", "data": data})
    };
    let changed = |from: &str, to: &str, more: Value| {
        let mut data = json!({"status": {"from": from, "to": to}});
        data.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        data
    };
    let error = "POST https://example.com/render: 503 Service Unavailable, and no answer after that for 30 s";
    json!({"next_cursor": "d1045", "events": [
        event(1042, 0, "task_created", json!({"status": {"from": null, "to": "pending"}, "name": "render", "priority": 2})),
        event(1043, 12, "task_started", changed("pending", "in_progress", json!({"attempt": 1}))),
        event(1044, 42, "task_failed", changed("in_progress", "failed", json!({"attempt": 1, "error": error, "will_retry": true}))),
        event(1045, 42, "task_specification_changed", json!({"inputs": {"url": "https://example.com/render?again"}})),
    ]})
}

/// Events as streams tell them.
fn told() -> Vec<Value> {
    let root = "018fad5b-d9cb-469f-a165-70867728950e";
    let event = |task: u8, second: u8, status: &str, more: Value| {
        let name = ["the report", "fetch", "parse", "render"][usize::from(task) - 1];
        let mut event = json!({"timestamp": format!("2026-01-31T11:58:{second:02}Z"), "status": status, "root_task_id": root,
            "task_id": format!("{task:02x}8fad5b-d9cb-469f-a165-70867728950e"), "progress": 0.0,
            "name": name});
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    vec![
        event(1, 0, "in_progress", json!({})),
        event(
            2,
            12,
            "completed",
            json!({"progress": 1.0, "result": {"bytes": 1042, "from": "https://example.com/quarter.csv"}}),
        ),
        event(3, 30, "in_progress", json!({"progress": 0.425})),
        event(
            4,
            42,
            "failed",
            json!({"error": "POST https://example.com/render: 503 Service Unavailable",
            "next_attempt_at": "2026-01-31T12:00:02Z"}),
        ),
    ]
}

fn at_work() -> Value {
    let worker = |name: &str, held: u64, draining: bool, methods: &[&str]| {
        json!({"worker": name, "held": held, "draining": draining, "methods": methods, "connection": "socket",
            "since": "2026-01-31T09:00:00Z", "last_seen_at": "2026-01-31T11:59:58Z"})
    };
    json!({"workers": [
        worker("gpu-1", 2, false, &["text.upper", "text.lower", "image.resize", "image.rotate", "image.describe"]),
        worker("gpu-2", 0, false, &["text.upper"]),
        worker("a-worker-with-a-long-name", 1, true, &["image.describe"]),
    ]})
}

fn hooks() -> Value {
    let ids = [
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "8c9e6679-7425-40de-944b-e07fc1f90ae7",
        "9c9e6679-7425-40de-944b-e07fc1f90ae7",
    ];
    json!({"webhooks": [
        {"id": ids[0], "url": "https://example.com/hooks/of/the/team/that/renders", "events": null, "description": "for the team"},
        {"id": ids[1], "url": "https://example.com/hooks", "events": ["task_failed", "task_completed"], "failing_since": "2026-01-31T11:00:00Z"},
        {"id": ids[2], "url": "https://example.org/", "events": null, "failing_since": "2026-01-31T11:00:00Z",
            "breaker": {"state": "open", "next_try_at": "2026-01-31T12:30:00Z"}},
    ], "deliveries": [
        {"id": 12, "state": "waiting", "attempts": 1, "created_at": "2026-01-31T11:59:00Z", "type": "task_failed",
            "task_id": "048fad5b-d9cb-469f-a165-70867728950e", "log": [{"status": null, "error": "timeout"}], "waits_for": null},
        {"id": 13, "state": "waiting", "attempts": 0, "created_at": "2026-01-31T11:59:00Z", "type": "task_progress_update",
            "task_id": "048fad5b-d9cb-469f-a165-70867728950e", "log": [], "waits_for": "breaker", "next_at": "2026-01-31T12:30:00Z"},
        {"id": 11, "state": "delivered", "attempts": 2, "created_at": "2026-01-31T11:58:00Z", "type": "task_completed",
            "task_id": "028fad5b-d9cb-469f-a165-70867728950e", "log": [{"status": 500, "error": "status"}, {"status": 204, "error": null}]},
    ]})
}

/// A terminal with colours.
fn screen(columns: usize, show: impl FnOnce(&mut Output)) -> String {
    let buffer = Buffer::default();
    let look = Look {
        coloured: true,
        columns: Some(columns),
    };
    let mut out = Output::to(Box::new(buffer.clone()), false, true)
        .looking(look)
        .telling(at_noon(Times::Age));
    out.calls_with(" --url https://ledger.example".to_owned());
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
        "tasks-tree" => texts(tasks_tree::drawn(&flow(), when.now, &HashMap::new())),
        "tasks-explain" => {
            let answer = json!({"summary": "`notify` cannot start by itself: `render` failed", "status": "pending",
                "reasons": [{"code": "blocked", "message": "-", "chain": [
                    {"id": "048fad5b-d9cb-469f-a165-70867728950e", "name": "render", "status": "failed", "required": true}],
                 "next_steps": [{"method": "tasks.retry", "params": {"task_id": "048fad5b-d9cb-469f-a165-70867728950e"},
                    "why": "retry the failed task; the tasks that depend on it follow"}]}]});
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
                    if number.is_multiple_of(100) { "failed" } else { "completed" }, "error": "no route to host",
                    "schemas": {"method": "http_executor"}});
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
        "tasks-get" => screen(columns, |out| get::show(&got(), out).unwrap()),
        "tasks-history" => screen(columns, |out| {
            history::show_task(&past(), out).unwrap();
            let asked = json!({"task_id": "048fad5b-d9cb-469f-a165-70867728950e"});
            show_next("tasks.history", &asked, &past(), out).unwrap();
        }),
        "events-query" => screen(columns, |out| {
            events_table(&past(), out).unwrap();
            show_next("events.query", &json!({"limit": 4}), &past(), out).unwrap();
        }),
        "events-tail" => screen(columns, |out| {
            for data in told() {
                let event = Event {
                    name: "task_status_update".to_owned(),
                    data: data.to_string(),
                    id: "c".to_owned(),
                };
                out.text_of_many(&lines::line(&event, &data, &member(&data, "name"), out))
                    .unwrap();
            }
        }),
        "watch" => {
            let mut flows = Flows::default();
            told().iter().for_each(|event| flows.take(event));
            flows.read("018fad5b-d9cb-469f-a165-70867728950e", Some(&flow()));
            // It is drawn in place, where nothing can be broken.
            let lines = flows.lines(20, when.now);
            texts(lines.iter().map(|line| line.cut(columns)).collect())
        }
        "workers-list" => screen(columns, |out| workers::list::show(&at_work(), out).unwrap()),
        "webhooks-list" => screen(columns, |out| webhooks::list::show(&hooks(), out).unwrap()),
        "webhooks-deliveries" => screen(columns, |out| {
            webhooks::deliveries::show(&hooks(), out).unwrap()
        }),
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

const NAMES: [&str; 17] = [
    "tasks-list",
    "tasks-list-local",
    "tasks-get",
    "tasks-tree",
    "tasks-explain",
    "tasks-history",
    "events-query",
    "events-tail",
    "watch",
    "workers-list",
    "webhooks-list",
    "webhooks-deliveries",
    "run-end",
    "run-pipe",
    "run-end-large",
    "health",
    "executors",
];

#[test]
fn screens_are_as_their_files_show_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/whole/system/screens");
    for name in NAMES {
        for columns in [80, 120] {
            let shown = of(columns, name);
            let file = folder.join(format!("{name}.{columns}.txt"));
            if std::env::var_os("TASKLEDGER_WRITE_SCREENS").is_some() {
                std::fs::write(&file, &shown).unwrap();
            }
            let expected = std::fs::read_to_string(&file).unwrap();
            assert_eq!(shown, expected, "{name} at {columns} columns");
        }
    }
}

#[test]
fn every_screen_fits_from_60_to_200_columns() {
    for name in NAMES {
        for columns in [60, 70, 80, 100, 120, 200] {
            for line in of(columns, name).lines().map(without_colours) {
                // Commands are there to be copied.
                let is_copied = line.contains("taskledger ");
                assert!(
                    is_copied || line.chars().count() <= columns,
                    "{name} at {columns} columns: {line}"
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
