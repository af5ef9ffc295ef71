//! The same script on both backends: whatever can be asked must be answered alike, event for event
//! and row for row.
//!
//! Servers make up their own ids, so each text is compared with its ids replaced by numbers, in the
//! order in which the log names them first.

use crate::differential::driver::{Difference, Driver};
use crate::differential::generate::Generator;
use crate::differential::place::Backend;
use crate::differential::script::{self, Action, Call, Step};
use crate::differential::{PATIENCE, SCRIPTS_SIDE_BY_SIDE, STEPS, setting};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use taskledger_domain::Position;

/// Steps after which the two servers must at least have been compared in a run of many scripts: four
/// of five. Where the documents leave an order open, the two may part, which ends a script.
const COMPARED_MIN_PERCENT: usize = 80;
/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 32;

/// How far a script went before the servers were in different worlds.
struct Went {
    steps: usize,
    fault: Option<String>,
}

/// The numbers of ids, in the order of their first appearance.
#[derive(Default)]
struct Numbers(HashMap<String, usize>);

impl Numbers {
    /// `text` with a number for each id, with or without hyphens.
    fn read(&mut self, text: &str) -> String {
        let mut read = String::with_capacity(text.len());
        let mut word = String::new();
        for c in text.chars().chain(['\0']) {
            if c.is_ascii_hexdigit() || c == '-' {
                word.push(c);
                continue;
            }
            let digits: String = word.chars().filter(|c| *c != '-').collect();
            if digits.len() == ID_DIGITS {
                let next = self.0.len();
                let number = *self.0.entry(digits.to_ascii_lowercase()).or_insert(next);
                read.push_str(&format!("#{number}"));
            } else {
                read.push_str(&word);
            }
            word.clear();
            if c != '\0' {
                read.push(c);
            }
        }
        read
    }

    /// The same of JSON, whose members are in the order of their names.
    fn read_json(&mut self, value: &Value) -> String {
        let read: Value = serde_json::from_str(&self.read(&value.to_string()))
            .expect("numbers in strings are still JSON");
        read.to_string()
    }
}

/// A server, and what its ids are called.
struct Side {
    driver: Driver,
    numbers: Numbers,
    /// The last event whose ids have numbers.
    read: Position,
}

impl Side {
    async fn start(backend: Backend) -> Self {
        Self {
            driver: Driver::start(PATIENCE, backend).await,
            numbers: Numbers::default(),
            read: 0,
        }
    }

    /// The events since the last time, up to the position `to`.
    async fn events(&mut self, to: Position) -> Vec<String> {
        let mut events = self.driver.server().events(self.read).await;
        events.retain(|e| e.position <= to);
        self.read = to;
        let lines = events.iter().map(|e| format!("{e:?}"));
        lines.map(|line| self.numbers.read(&line)).collect()
    }

    async fn answers(&mut self, calls: &[Call]) -> Vec<String> {
        let mut lines = Vec::new();
        for call in calls {
            let mut answer = self.driver.ask(call).await;
            forget_presence(&mut answer["result"]);
            let answer = self.numbers.read_json(&answer);
            lines.push(format!("{} {}: {answer}", call.method, call.params));
        }
        lines
    }

    /// All rows, but for the partitions of flows, which are made of their ids. Few are sorted by ids,
    /// which differ.
    async fn rows(&mut self) -> Vec<String> {
        let text = self.driver.server().dump().await;
        let of_flow = |column: &&str| !column.starts_with("partition=");
        let same = |row: &str| row.split(' ').filter(of_flow).collect::<Vec<_>>().join(" ");
        let rows = text.lines().map(|row| self.numbers.read(&same(row)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        rows
    }
}

/// Who asks for work is kept beside the log, and known some time after a start.
fn forget_presence(explained: &mut Value) {
    let reasons = explained["reasons"].as_array_mut();
    let of_workers = |reason: &&mut Value| reason["code"] == "waits_for_worker";
    let Some(reason) = reasons.and_then(|all| all.iter_mut().find(of_workers)) else {
        return;
    };
    *reason = json!({"code": reason["code"], "ready_since": reason["ready_since"]});
    explained["summary"] = Value::Null;
}

/// Everything that can be read, of each task and of all together.
fn questions(driver: &Driver) -> Vec<Call> {
    let mut calls = Vec::new();
    for order in ["asc", "desc"] {
        let list = json!({"order": order, "limit": 1000});
        calls.push(Call::new("tasks.list", list));
    }
    for status in ["pending", "in_progress", "completed", "failed", "cancelled"] {
        let list = json!({"status": status, "limit": 1000});
        calls.push(Call::new("tasks.list", list));
    }
    calls.push(Call::new("tasks.list", json!({"suspended": true})));
    for symbol in &driver.oracle().order {
        let id = json!({"task_id": format!("@{symbol}")});
        for method in ["tasks.get", "tasks.tree", "tasks.explain"] {
            calls.push(Call::new(method, id.clone()));
        }
        let children = json!({"parent_id": format!("@{symbol}")});
        calls.push(Call::new("tasks.children", children));
        let history = json!({"task_id": format!("@{symbol}"), "limit": 1000});
        calls.push(Call::new("tasks.history", history));
    }
    calls
}

/// The first line that differs.
fn same(what: &str, sqlite: &[String], postgres: &[String]) -> Result<(), String> {
    let differs = |(a, b): &(&String, &String)| a != b;
    if let Some((a, b)) = sqlite.iter().zip(postgres).find(differs) {
        return Err(format!("{what}\non SQLite   {a}\non Postgres {b}"));
    }
    if sqlite.len() == postgres.len() {
        return Ok(());
    }
    let (some, more) = (sqlite.len(), postgres.len());
    Err(format!("{what}: {some} on SQLite, {more} on Postgres"))
}

/// Waits until both logs are equally long: what nobody can see yet may still be on its way.
async fn settle(sides: &mut [Side; 2]) -> Result<Position, String> {
    let [mut ours, mut theirs] = sides.each_mut().map(|side| side.driver.server().head());
    let (a, b) = (ours.clone(), theirs.clone());
    let settled = tokio::time::timeout(PATIENCE, async {
        loop {
            let (a, b) = (*ours.borrow_and_update(), *theirs.borrow_and_update());
            if a == b {
                return a;
            }
            let changed = tokio::select! {
                changed = ours.changed() => changed,
                changed = theirs.changed() => changed,
            };
            changed.expect("a server that runs shows its head");
        }
    });
    let lengths = || {
        format!(
            "{} events on SQLite, {} on Postgres",
            *a.borrow(),
            *b.borrow()
        )
    };
    settled.await.map_err(|_| lengths())
}

/// Plays a step on both. False: the servers are in different worlds now.
async fn step(sides: &mut [Side; 2], step: &Step) -> Result<bool, String> {
    let [a, b] = &mut *sides;
    let played = tokio::join!(a.driver.step(step), b.driver.step(step));
    for (side, outcome) in Backend::BOTH.iter().zip([played.0, played.1]) {
        outcome.map_err(|Difference(text)| format!("{side:?}: {text}"))?;
    }
    if a.driver.worlds() != b.driver.worlds() {
        return Ok(false);
    }
    let to = settle(sides).await?;
    let [a, b] = sides;
    let (ours, theirs) = (a.events(to).await, b.events(to).await);
    let logs = same("the log", &ours, &theirs);
    if logs.is_err() && matches!(step.action, Action::Restart) && flows(&ours) > 1 {
        // After a start several flows are looked at beside each other: whose events come first is open,
        // and all positions behind them follow from it.
        return Ok(false);
    }
    logs?;
    let told = |side: &mut Side| vec![side.numbers.read_json(side.driver.told())];
    same("the answer", &told(a), &told(b))?;
    Ok(true)
}

/// How many flows these events are of.
fn flows(events: &[String]) -> usize {
    let flow = |line: &String| {
        let (_, behind) = line.split_once("flow: ")?;
        Some(behind.split(',').next()?.to_owned())
    };
    events.iter().filter_map(flow).collect::<HashSet<_>>().len()
}

/// Compares all that can be read.
async fn look(sides: &mut [Side; 2]) -> Result<(), String> {
    let [a, b] = sides;
    let calls = questions(&a.driver);
    let (ours, theirs) = (a.answers(&calls).await, b.answers(&calls).await);
    same("the answer", &ours, &theirs)?;
    same("a row", &a.rows().await, &b.rows().await)
}

/// Makes up a script while both play it.
async fn explore(seed: u64) -> Went {
    let mut generator = Generator::new(seed);
    let mut sides = [
        Side::start(Backend::Sqlite).await,
        Side::start(Backend::Postgres).await,
    ];
    let (mut steps, mut fault, mut parted) = (Vec::new(), None, false);
    for number in 1..=STEPS {
        steps.push(generator.step(number, sides[0].driver.oracle()));
        match step(&mut sides, &steps[number - 1]).await {
            Ok(true) => {}
            Ok(false) => {
                parted = true;
                break;
            }
            Err(text) => {
                fault = Some(text);
                break;
            }
        }
    }
    if fault.is_none() && !parted {
        fault = look(&mut sides).await.err();
    }
    for side in sides {
        side.driver.stop().await;
    }
    let played = script::write(&steps);
    Went {
        steps: steps.len(),
        fault: fault.map(|text| format!("{text}\nafter\n{played}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_backends_record_answer_and_show_the_same() {
    let first = setting("TASKLEDGER_TEST_SEED", 1);
    let scripts = setting("TASKLEDGER_TEST_SCRIPTS", SCRIPTS_SIDE_BY_SIDE);
    let mut compared = 0;
    for seed in first..first + scripts {
        let went = explore(seed).await;
        if let Some(fault) = went.fault {
            panic!("TASKLEDGER_TEST_SEED={seed}\n{fault}");
        }
        compared += went.steps;
    }
    let all = usize::try_from(scripts).expect("few") * STEPS;
    assert!(
        compared * 100 >= all * COMPARED_MIN_PERCENT,
        "{compared} of {all} steps were compared"
    );
}

#[test]
fn ids_are_read_as_numbers_in_both_forms() {
    let mut numbers = Numbers::default();
    let text = "a 0f8fad5b-d9cb-469f-a165-70867728950e, 2026-01-01T00:00:00Z";
    assert_eq!(numbers.read(text), "a #0, 2026-01-01T00:00:00Z");
    let row = "id=0f8fad5bd9cb469fa16570867728950e x=7";
    assert_eq!(numbers.read(row), "id=#0 x=7");
    let other = "\"10000000-0000-4000-8000-000000000000\"";
    assert_eq!(numbers.read(other), "\"#1\"");
}
