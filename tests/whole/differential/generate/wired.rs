//! Results with declarations, inputs that are wired to them, and questions to people.

use super::Generator;
use crate::differential::oracle::{Oracle, When, answers, is_wired};
use crate::differential::script::Call;
use serde_json::{Map, Value, json};

/// Percent of tasks with dependencies that take inputs from them, if their method may.
const WIRED_PERCENT: usize = 75;
/// Methods whose tasks do: workers', and one without a limit, for which an attempt that ends at once makes
/// no difference to others.
const WIRED_METHODS: [&str; 2] = ["far", "free"];

impl Generator {
    /// A result; often one that lacks something or has it otherwise.
    pub(super) fn result(&mut self) -> Value {
        let r = &mut self.random;
        match r.below(10) {
            0..=4 => json!({"n": r.below(3)}),
            5 => json!({"n": r.below(3), "list": [{"k": r.below(3)}, "x"]}),
            6 => json!({"n": "many", "list": []}),
            7 => json!({"n": null, "text": "word"}),
            8 => json!({"n": 1.5, "text": 7}),
            _ => json!({}),
        }
    }

    /// Declares outputs, now and then.
    pub(super) fn declare(&mut self, schemas: &mut Value) {
        let r = &mut self.random;
        if !r.chance(25) {
            return;
        }
        schemas["outputs"] = match r.below(6) {
            0 | 1 => json!({"n": "integer"}),
            2 => json!({"n": "number?"}),
            3 => json!({"n": "any", "text": {"type": "string", "required": false}}),
            4 => json!({"list": "array", "n": {"type": "integer", "required": false}}),
            _ => json!({"n": {"type": "number", "required": false}}),
        };
    }

    /// Wires inputs of a task to its dependencies, which references name as `named` says.
    pub(super) fn wire(&mut self, task: &mut Value, named: impl Fn(&str) -> String) {
        let method = task["schemas"]["method"].as_str().unwrap_or_default();
        let dependencies = task["dependencies"].as_array().cloned().unwrap_or_default();
        let may = WIRED_METHODS.contains(&method) && !dependencies.is_empty();
        if !may || !self.random.chance(WIRED_PERCENT) {
            return;
        }
        let mut wiring = Map::new();
        for key in ["v", "w"].iter().take(1 + self.random.below(2)) {
            let on = self.random.pick(&dependencies).clone();
            let name = named(on["id"].as_str().unwrap_or_default());
            // What may have no result needs a default, which a client sometimes forgets.
            let is_safe = When::of(&on) != When::Completed && self.random.chance(85);
            wiring.insert((*key).to_owned(), self.input(&name, is_safe));
        }
        task["schemas"]["wiring"] = Value::Object(wiring);
        task["schemas"]
            .as_object_mut()
            .and_then(|s| s.remove("input_schema"));
        if self.random.chance(3) {
            task["inputs"] = json!({"w": 1});
        }
    }

    fn input(&mut self, name: &str, is_safe: bool) -> Value {
        let r = &mut self.random;
        let places = [
            ".n",
            ".n",
            ".n",
            ".text",
            "#",
            "#/n",
            ".list#/0",
            ".list#/0/k",
        ];
        let from = format!("{name}{}", r.pick(&places));
        match r.below(8) {
            0 => json!({"from": from, "default": 7}),
            1 => json!({"from": from, "default": null, "required": false}),
            2 => json!({"from": from, "required": false}),
            _ if is_safe => json!({"from": from, "default": [1]}),
            3 => json!({"from": from, "required": true}),
            _ => json!(from),
        }
    }

    /// A question of a worker.
    pub(super) fn question(&mut self) -> Value {
        let r = &mut self.random;
        let mut request = match r.below(5) {
            0 | 1 => json!({"question": "Go?", "response_type": "confirm"}),
            2 | 3 => json!({"question": "Which?", "response_type": "choice",
                "choices": [{"value": "a", "label": "The first"}, {"value": "b"}]}),
            _ => json!({"question": "Why?"}),
        };
        if r.chance(8) {
            request
                .as_object_mut()
                .and_then(|map| map.remove("question"));
        }
        if r.chance(55) {
            request["timeout_seconds"] = json!(*r.pick(&[3, 20]));
            match r.below(5) {
                0 => request["fallback_policy"] = json!("fail"),
                1 => {
                    request["fallback_policy"] = json!("complete_with_fallback");
                    request["fallback_value"] = r.pick(&[json!({"n": 1}), json!({})]).clone();
                }
                2 | 3 => {
                    request["fallback_policy"] = json!("use_default_and_continue");
                    let default = match request["response_type"].as_str() {
                        Some("confirm") => json!(r.chance(50)),
                        _ => json!("a"),
                    };
                    request["fallback_value"] = if r.chance(10) { json!(7) } else { default };
                }
                _ => {}
            }
        }
        request
    }

    /// What a person says: mostly to an open question, sometimes again, too late or beside the point.
    pub(super) fn answer(&mut self, world: &Oracle) -> Option<Call> {
        let tasks = || world.order.iter().map(|s| (s, world.task(s)));
        let open = tasks().filter_map(|(s, task)| {
            let question = task.question.as_ref()?;
            Some((s, &question.symbol, Some(&question.request), None))
        });
        let open: Vec<_> = open.collect();
        let told = tasks().flat_map(|(s, task)| {
            let turns = task.turns.iter();
            turns.map(move |turn| (s, &turn.symbol, None, Some(&turn.value)))
        });
        let told: Vec<_> = told.collect();
        let known = if open.is_empty() || (!told.is_empty() && self.random.chance(25)) {
            &told
        } else {
            &open
        };
        if known.is_empty() {
            return None;
        }
        let (task, wait, request, before) = *self.random.pick(known);
        let values = [
            json!(true),
            json!(false),
            json!("a"),
            json!("b"),
            json!("c"),
            json!({}),
        ];
        let good: Vec<&Value> = match request {
            Some(request) => values.iter().filter(|v| answers(request, v)).collect(),
            None => before.into_iter().collect(),
        };
        let value = if good.is_empty() || self.random.chance(20) {
            self.random.pick(&values).clone()
        } else {
            (*self.random.pick(&good)).clone()
        };
        let mut params = json!({"task_id": format!("@{task}"),
            "suspension_id": format!("@{wait}"), "value": value});
        if self.random.chance(8) {
            self.spoil(&mut params, world);
        }
        Some(Call::new("tasks.respond", params))
    }
}

/// Whether an attempt of the server may end by itself at once, for inputs that are not there: until then a
/// call of the same batch may see it running.
pub(super) fn may_end_at_once(world: &Oracle, call: &Call) -> bool {
    let mut tasks = world.order.iter().map(|s| world.task(s));
    let stored = tasks.any(|task| !task.is_remote() && is_wired(&task.schemas));
    stored || call.params.to_string().contains("\"wiring\"")
}
