//! `as_of`: what was answered then is what is answered now, from the log alone.

use crate::application::world::{World, caller, is_busy, quiet, refused, soon, task, updates};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use taskledger::application::history::{Query, Scope};
use taskledger::application::readings::{Encoded, REBUILDS_MAX};
use taskledger::application::{AsOf, Consistency, ExecuteOptions, Target};
use taskledger::clock::Clock;
use taskledger::store::PIECE_BYTES_MAX;
use taskledger::transport::jsonrpc::tree_json::TreeJson;
use taskledger_domain::flow::{Fault, Kind, Refusal};
use taskledger_domain::testing::{START, id};
use taskledger_domain::{Position, TaskId};
use taskledger_projections::Order;

async fn now(w: &World, task: TaskId, whole: bool) -> Option<Value> {
    let strong = Consistency::Strong;
    let read = if whole {
        w.call(
            move |app| async move { app.tree(&caller(), task, strong, TreeJson::default()).await },
        )
    } else {
        w.call(move |app| async move { app.get(&caller(), task, strong).await })
    };
    soon(read).await.unwrap().ok()
}

async fn then(w: &World, task: TaskId, whole: bool, at: AsOf) -> Option<Value> {
    let read = if whole {
        w.call(move |app| async move {
            app.tree_as_of(&caller(), task, at, TreeJson::default())
                .await
        })
    } else {
        w.call(move |app| async move { app.get_as_of(&caller(), task, at).await })
    };
    match soon(read).await.unwrap() {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(refused(Err(error)), Kind::NotFound);
            None
        }
    }
}

/// The answer without `as_of`, which it must have.
fn without_moment(mut answer: Value) -> Value {
    let moment = answer.as_object_mut().unwrap().remove("as_of").unwrap();
    assert!(moment["position"].is_u64() && moment["time"].is_string());
    answer
}

fn head(w: &World) -> Position {
    use taskledger::store::EventStore;
    *w.log.watch().borrow()
}

/// A small generator, so that a failure names the seed that repeats it.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// One random command, accepted or not.
async fn anything(w: &World, random: &mut Random, names: &mut Vec<String>) {
    let any = |random: &mut Random, names: &[String]| names[random.below(names.len())].clone();
    let name = any(random, names);
    let target = id(&name);
    let cascade = random.below(2) == 0;
    let step = random.below(12);
    if name == "root" && matches!(step, 7 | 8) {
        return; // Nothing could happen any more.
    }
    let done = match step {
        0 | 1 => {
            let new = format!("n{}", names.len());
            let mut tasks = if random.below(3) == 0 {
                json!({"id": id(&new), "name": new})
            } else {
                task(&new, "work")
            };
            tasks["parent_id"] = json!(target);
            let on = any(random, names);
            if random.below(2) == 0 {
                tasks["dependencies"] = json!([{"id": id(&on), "required": random.below(2) == 0}]);
            }
            // Larger than what a rebuilt flow keeps.
            if random.below(3) == 0 {
                tasks["inputs"] = json!({"text": "x".repeat(500)});
            }
            if random.below(3) == 0 {
                tasks["params"] = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 30}});
            }
            names.push(new);
            w.create(caller(), tasks)
        }
        2 => {
            let change = match random.below(4) {
                0 => json!({"name": format!("renamed {}", random.below(100))}),
                1 => json!({"priority": random.below(4)}),
                2 => json!({"inputs": {"n": random.below(100)}}),
                _ => json!({"parent_id": id(&any(random, names))}),
            };
            w.call(move |app| async move { app.update(&caller(), target, updates(change)).await })
        }
        3 => {
            let on = id(&any(random, names));
            let change = json!({"dependencies": [{"id": on}]});
            w.call(move |app| async move { app.update(&caller(), target, updates(change)).await })
        }
        4 | 5 => {
            let options = ExecuteOptions::default();
            let target = Target::Stored(target);
            w.call(move |app| async move { app.execute(&caller(), target, options).await })
        }
        6 => w.call(move |app| async move {
            app.retry(&caller(), target, Default::default(), None).await
        }),
        7 => w.call(move |app| async move { app.cancel(&caller(), target, cascade, None).await }),
        8 => w.call(move |app| async move { app.delete(&caller(), target, cascade).await }),
        9 => {
            if w.status(&name).await == Some(taskledger_domain::task::Status::InProgress)
                && w.script.launches().iter().any(|(task, _)| *task == target)
            {
                w.script.complete(&name).await;
            }
            return;
        }
        _ => {
            if w.status(&name).await == Some(taskledger_domain::task::Status::InProgress)
                && w.script.launches().iter().any(|(task, _)| *task == target)
            {
                w.script.fail(&name).await;
            }
            w.clock.advance_ms(10);
            let flow = id("root").as_flow();
            soon(w.app.flows.wake_and_wait(flow)).await;
            return;
        }
    };
    let _ = soon(done).await.unwrap();
}

/// What one answer shows that an easier one would not.
fn sights(task: &Value, seen: &mut BTreeSet<&'static str>) {
    for member in ["blocked_by", "run", "next_attempt_at", "result", "error"] {
        if task.get(member).is_some_and(|v| !v.is_null()) {
            seen.insert(member);
        }
    }
    let progress = task["progress"].as_f64().unwrap();
    if task["schemas"].is_null() && progress > 0.0 && progress < 1.0 {
        seen.insert("the progress of a group");
    }
    if task["inputs"]["text"].is_string() {
        seen.insert("a large payload");
    }
}

async fn remember_and_compare(seed: u64, steps: usize, seen: &mut BTreeSet<&'static str>) {
    let mut random = Random(seed);
    let mut w = World::new().await;
    w.run_read_models();
    w.given_flow("root", &["a", "b"]).await;
    let mut names: Vec<String> = ["root", "a", "b"].map(str::to_owned).to_vec();
    let mut remembered: BTreeMap<Position, BTreeMap<(TaskId, bool), Option<Value>>> =
        BTreeMap::new();
    for _ in 0..steps {
        w.clock.advance_ms(1);
        anything(&w, &mut random, &mut names).await;
        quiet().await;
        let at = head(&w);
        let mut answers = BTreeMap::new();
        for name in &names {
            for whole in [false, true] {
                answers.insert((id(name), whole), now(&w, id(name), whole).await);
            }
        }
        assert_eq!(at, head(&w), "seed {seed}: nothing happens by itself");
        for ((_, whole), answer) in &answers {
            if let (false, Some(task)) = (whole, answer) {
                sights(task, seen);
            }
        }
        remembered.insert(at, answers);
    }
    for (at, answers) in &remembered {
        for ((task, whole), expected) in answers {
            let found = then(&w, *task, *whole, AsOf::Position(*at)).await;
            let found = found.map(without_moment);
            assert_eq!(found, *expected, "seed {seed}, position {at}, task {task}");
        }
    }
}

#[tokio::test]
async fn whatever_was_answered_then_is_answered_as_of_then() {
    let mut seen = BTreeSet::new();
    for seed in 0..12 {
        remember_and_compare(seed, 50, &mut seen).await;
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[tokio::test]
async fn a_time_stands_for_all_events_up_to_it() {
    let mut w = World::new().await;
    w.run_read_models();
    w.given_flow("root", &["a"]).await;
    let created = w.clock.now();
    w.clock.advance_ms(10);
    soon(w.rename("a", "later")).await.unwrap().unwrap();
    let name = async |at| {
        let task = then(&w, id("a"), false, AsOf::Time(at)).await?;
        Some(task["name"].as_str().unwrap().to_owned())
    };
    assert_eq!(name(taskledger_domain::Timestamp(START.0 - 1)).await, None);
    assert_eq!(name(created).await.as_deref(), Some("a"));
    assert_eq!(name(created.plus_ms(9)).await.as_deref(), Some("a"));
    assert_eq!(name(created.plus_ms(10)).await.as_deref(), Some("later"));
}

#[tokio::test]
async fn the_moment_of_an_answer_gives_the_same_answer_again() {
    let mut w = World::new().await;
    w.run_read_models();
    w.given_flow("root", &["a"]).await;
    soon(w.rename("a", "later")).await.unwrap().unwrap();
    w.given_flow("other", &[]).await;
    let first = then(&w, id("root"), true, AsOf::Position(head(&w)))
        .await
        .unwrap();
    let at = first["as_of"]["position"].as_u64().unwrap();
    assert!(at < head(&w), "the last event of the flow, not of the log");
    let again = then(&w, id("root"), true, AsOf::Position(at))
        .await
        .unwrap();
    assert_eq!(again, first);
}

#[tokio::test]
async fn before_creation_and_after_deletion_there_is_no_task() {
    let mut w = World::new().await;
    w.run_read_models();
    w.given_flow("first", &[]).await;
    let before = head(&w);
    w.given_flow("root", &["a"]).await;
    let with = head(&w);
    let a = id("a");
    let gone = w.call(move |app| async move { app.delete(&caller(), a, false).await });
    assert!(soon(gone).await.unwrap().is_ok());
    let after = head(&w);
    for whole in [false, true] {
        let exists = async |at| then(&w, a, whole, AsOf::Position(at)).await.is_some();
        assert!(!exists(before).await);
        assert!(exists(with).await);
        assert!(!exists(after).await);
    }
    let root = then(&w, id("root"), true, AsOf::Position(with))
        .await
        .unwrap();
    assert_eq!(root["children"][0]["task"]["id"], json!(a));
}

#[tokio::test]
async fn who_asks_for_a_time_before_creation_is_told_when_it_was() {
    let mut w = World::new().await;
    w.run_read_models();
    w.given_flow("first", &[]).await;
    let (position, time) = (head(&w), w.clock.now());
    w.clock.advance_ms(10);
    w.given_flow("root", &["a"]).await;
    let (a, root) = (id("a"), id("root"));
    let created = now(&w, a, false).await.unwrap()["created_at"].take();
    for task in [a, root] {
        for at in [AsOf::Position(position), AsOf::Time(time)] {
            let read = w.call(move |app| async move { app.get_as_of(&caller(), task, at).await });
            let Err(taskledger::application::Error::Refused(refused)) = soon(read).await.unwrap()
            else {
                panic!("{at:?} is before creation");
            };
            let Refusal::NotCreatedYet {
                task: told,
                created_at,
                position: at,
            } = &refused.refusal
            else {
                panic!("{refused:?}");
            };
            assert_eq!((*told, json!(created_at)), (task, created.clone()));
            assert!(*at > position && *at <= head(&w));
        }
    }
}

#[tokio::test]
async fn the_future_is_refused_and_the_answer_names_the_end() {
    let w = World::new().await;
    w.given_flow("root", &[]).await;
    let root = id("root");
    for at in [
        AsOf::Position(head(&w) + 1),
        AsOf::Time(w.clock.now().plus_ms(1)),
    ] {
        let read = w.call(move |app| async move { app.get_as_of(&caller(), root, at).await });
        let Err(taskledger::application::Error::Refused(refusal)) = soon(read).await.unwrap()
        else {
            panic!("{at:?} is the future");
        };
        let Refusal::Invalid(faults) = &refusal.refusal else {
            panic!("{refusal:?}");
        };
        let [Fault::Value(fault)] = faults.as_slice() else {
            panic!("{faults:?}");
        };
        assert_eq!(fault.field, "as_of");
        let end = match at {
            AsOf::Position(_) => head(&w).to_string(),
            AsOf::Time(_) => w.clock.now().to_string(),
        };
        assert!(fault.expected.contains(&end));
    }
}

#[tokio::test]
async fn more_rebuilds_than_allowed_wait_and_are_then_told_to_come_back() {
    let w = World::new().await;
    w.given_flow("root", &[]).await;
    let mut held = Vec::new();
    for _ in 0..REBUILDS_MAX {
        held.push(w.app.readings.begin_rebuild().await.unwrap());
    }
    let (root, at) = (id("root"), AsOf::Position(head(&w)));
    let read =
        |w: &World| w.call(move |app| async move { app.get_as_of(&caller(), root, at).await });
    let waiting = read(&w);
    quiet().await;
    assert!(!waiting.is_finished());
    held.pop();
    assert!(soon(waiting).await.unwrap().is_ok());
    held.push(w.app.readings.begin_rebuild().await.unwrap());
    tokio::time::pause();
    assert!(is_busy(&read(&w).await.unwrap()));
}

#[tokio::test]
async fn each_position_of_a_history_can_be_asked_for() {
    let mut w = World::new().await;
    w.run_read_models();
    let tree = json!([{"id": id("root"), "name": "root", "children": [task("a", "work")]}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    w.script.launched(1).await;
    w.script.fail("a").await;
    let query = Query {
        task: id("a"),
        scope: Scope::Task,
        limit: 100,
        order: Order::Ascending,
        cursor: None,
        types: None,
    };
    let history = soon(w.call(move |app| async move { app.history(&caller(), query).await }));
    let history = history.await.unwrap().unwrap();
    for event in history["events"].as_array().unwrap() {
        let at = AsOf::Position(event["position"].as_u64().unwrap());
        let seen = then(&w, id("a"), false, at).await.unwrap();
        if let Some(to) = event["data"]["status"]["to"].as_str() {
            assert_eq!(seen["status"], to);
        }
        assert_eq!(seen["as_of"]["position"], event["position"]);
    }
}

#[tokio::test]
async fn a_large_tree_with_large_payloads_comes_in_pieces_and_is_the_same() {
    let mut w = World::new().await;
    w.run_read_models();
    let children: Vec<Value> = (0..700)
        .map(|n| {
            let size = if n % 2 == 0 { 1000 } else { 10 };
            let mut child = task(&format!("task {n}"), "work");
            child["inputs"] = json!({"text": "x".repeat(size), "n": n});
            child
        })
        .collect();
    let tree = json!({"id": id("root"), "name": "root", "children": children});
    assert!(soon(w.create(caller(), tree)).await.unwrap().is_ok());
    let (root, at) = (id("root"), AsOf::Position(head(&w)));
    let pieces = soon(w.app.tree_as_of(&caller(), root, at, TreeJson::default())).await;
    assert!(matches!(pieces, Ok(Encoded::Pieces(_))), "it is long");
    drop(pieces);
    let found = then(&w, root, true, at).await.map(without_moment);
    assert_eq!(found, now(&w, root, true).await);
}

#[tokio::test]
async fn a_piece_of_a_tree_of_the_past_is_bounded_in_bytes() {
    let w = World::new().await;
    w.given_flow("root", &[]).await;
    let megabyte = "x".repeat(1_000_000);
    for n in 0..10 {
        let mut large = task(&format!("large {n}"), "work");
        large["parent_id"] = json!(id("root"));
        large["inputs"] = json!({"text": megabyte});
        assert!(soon(w.create(caller(), large)).await.unwrap().is_ok());
    }
    let (root, at) = (id("root"), AsOf::Position(head(&w)));
    let read = soon(w.app.tree_as_of(&caller(), root, at, TreeJson::default())).await;
    let Ok(Encoded::Pieces(pieces)) = read else {
        panic!("it is long");
    };
    let sizes: Vec<usize> = pieces.map(|piece| piece.unwrap().len()).collect().await;
    assert!(sizes.iter().sum::<usize>() > 10_000_000);
    let largest = sizes.iter().max().unwrap();
    assert!(*largest < PIECE_BYTES_MAX + 100_000, "{sizes:?}");
    assert!(*largest > 2_000_000, "not one by one: {sizes:?}");
}
