//! Random calls of one user: what is answered is the same whether another user exists or not.

use super::world::{Callers, Nodes, World};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Calls of Bob in one script.
const CALLS: usize = 120;
/// Scripts.
const SEEDS: u64 = 4;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Answers without what differs from run to run: ids are numbered as they come, and times, positions and
/// cursors, which tell how much all users do, are left out.
#[derive(Default)]
struct Shown(HashMap<String, usize>);

impl Shown {
    /// A text, or the number of an id.
    fn text(&mut self, text: &str) -> String {
        if uuid::Uuid::parse_str(text).is_err() {
            return text.to_owned();
        }
        let next = self.0.len();
        let number = *self.0.entry(text.to_owned()).or_insert(next);
        format!("id {number}")
    }

    fn of(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.text(text)),
            Value::Object(members) => {
                let left_out = ["position", "next_cursor", "cursor", "as_of", "timestamp"];
                let shown = members.iter().filter(|(name, _)| {
                    !left_out.contains(&name.as_str()) && !name.ends_with("_at") && *name != "time"
                });
                let mut known = Map::new();
                for (name, value) in shown {
                    known.insert(self.text(name), self.of(value));
                }
                Value::Object(known)
            }
            Value::Array(values) => values.iter().map(|value| self.of(value)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// A call, about one of these tasks if there is one.
fn call(dice: &mut Dice, tasks: &[Value]) -> (&'static str, Value) {
    let any = |dice: &mut Dice| tasks.get(dice.below(tasks.len().max(1))).cloned();
    let task = any(dice);
    let about = json!({"task_id": task});
    match (dice.below(12), &task) {
        (0 | 1, _) | (_, None) => {
            let method = ["echo_executor", "sleep_executor", "no_such_executor"][dice.below(3)];
            let inputs = match method {
                "sleep_executor" => json!({"duration_ms": 1}),
                _ => json!({"n": dice.below(5)}),
            };
            let task = json!({"name": format!("task {}", dice.below(5)), "inputs": inputs,
                "schemas": {"method": method}});
            ("tasks.create", task)
        }
        (2, Some(parent)) => (
            "tasks.create",
            json!({"name": "child", "parent_id": parent}),
        ),
        (3, Some(_)) => ("tasks.cancel", about),
        (4, Some(_)) => ("tasks.delete", about),
        (5, Some(task)) => {
            let updates = json!({"name": "renamed", "priority": dice.below(4)});
            ("tasks.update", json!({"task_id": task, "updates": updates}))
        }
        (6, Some(_)) => ("tasks.copy", about),
        (7, Some(_)) => ("tasks.tree", about),
        (8, Some(_)) => ("tasks.history", about),
        (9, Some(parent)) => ("tasks.children", json!({"parent_id": parent})),
        (10, _) => {
            let filters = [
                json!({}),
                json!({"root_only": true}),
                json!({"status": "pending"}),
                json!({"user_id": "ann"}),
                json!({"name": "child"}),
                json!({"limit": 2}),
            ];
            ("tasks.list", filters[dice.below(filters.len())].clone())
        }
        (_, Some(_)) => ("tasks.get", about),
    }
}

async fn answered(callers: &Callers, name: &str, method: &str, params: &Value) -> Value {
    let (_, text) = callers.ask(Some(name), method, params).await;
    serde_json::from_str(&text).unwrap()
}

/// Plays a script of Bob, with Ann doing things in between or not, and shows what he is answered.
async fn played(callers: &Callers, seed: u64, with_ann: bool) -> Vec<String> {
    let (mut bob, mut ann) = (Dice(seed), Dice(seed + 1000));
    let (mut own, mut hers) = (Vec::new(), Vec::new());
    let mut ids = Shown::default();
    let mut shown = Vec::new();
    for _ in 0..CALLS {
        if with_ann {
            let (method, params) = call(&mut ann, &hers);
            let answer = answered(callers, "ann", method, &params).await;
            hers.extend(answer["result"].get("id").cloned());
        }
        let (method, params) = call(&mut bob, &own);
        let answer = answered(callers, "bob", method, &params).await;
        own.extend(answer["result"].get("id").cloned());
        let asked = ids.of(&params);
        shown.push(format!("{method} {asked}: {}", ids.of(&answer)));
    }
    shown
}

fn assert_alike(alone: &[String], beside: &[String], seed: u64) {
    for (alone, beside) in alone.iter().zip(beside) {
        assert_eq!(alone, beside, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_user_is_answered_does_not_depend_on_another_one() {
    for seed in 0..SEEDS {
        let (alone, beside) = (World::start().await, World::start().await);
        let expected = played(&alone, seed, false).await;
        let found = played(&beside, seed, true).await;
        assert_alike(&expected, &found, seed);
        alone.close().await;
        beside.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_user_is_answered_by_any_node_on_postgres_does_not_depend_on_another_one() {
    let world = World::start().await;
    let expected = played(&world, SEEDS, false).await;
    let nodes = Nodes::start().await;
    let found = played(&nodes, SEEDS, true).await;
    assert_alike(&expected, &found, SEEDS);
    world.close().await;
    nodes.close().await;
}
