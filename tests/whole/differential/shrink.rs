//! Makes a script that fails short: without steps, then without members and items of parameters,
//! as long as it still fails.

use crate::differential::script::{Action, Step};
use serde_json::Value;
use std::future::Future;

/// Scripts that are tried. A shrunk script is for people; more is not worth their waiting.
const TRIES_MAX: usize = 600;

/// A script that fails and what the failure says.
pub(crate) struct Shrunk {
    pub(crate) steps: Vec<Step>,
    pub(crate) difference: String,
}

/// The shortest script found. `fails` plays a script and gives, when it fails, how many steps were
/// played and what differed.
pub(crate) async fn shrink<F: Future<Output = Option<(usize, String)>>>(
    found: Shrunk,
    fails: impl Fn(Vec<Step>) -> F,
) -> Shrunk {
    let mut best = found;
    let mut tries = 0;
    let mut len = best.steps.len().div_ceil(2);
    loop {
        let before = weight(&best.steps);
        while len > 0 {
            let mut at = 0;
            while at < best.steps.len() && tries < TRIES_MAX {
                let mut steps = best.steps.clone();
                steps.drain(at..(at + len).min(steps.len()));
                tries += 1;
                if !improve(&mut best, steps, &fails).await {
                    at += len;
                }
            }
            len /= 2;
        }
        let mut at = 0;
        while let Some(steps) = simpler(&best.steps, at).filter(|_| tries < TRIES_MAX) {
            tries += 1;
            if !improve(&mut best, steps, &fails).await {
                at += 1;
            }
        }
        if weight(&best.steps) == before || tries >= TRIES_MAX {
            return best;
        }
        len = 1;
    }
}

async fn improve<F: Future<Output = Option<(usize, String)>>>(
    best: &mut Shrunk,
    mut steps: Vec<Step>,
    fails: impl Fn(Vec<Step>) -> F,
) -> bool {
    let Some((played, difference)) = fails(steps.clone()).await else {
        return false;
    };
    steps.truncate(played);
    *best = Shrunk { steps, difference };
    true
}

fn weight(steps: &[Step]) -> usize {
    crate::differential::script::write(steps).len()
}

/// The script with its `n`-th removable part removed; `None` when there are fewer.
fn simpler(steps: &[Step], n: usize) -> Option<Vec<Step>> {
    let mut left = n;
    let mut simpler = steps.to_vec();
    for step in &mut simpler {
        let Action::Call(calls) = &mut step.action else {
            continue;
        };
        if calls.len() > 1 {
            if left < calls.len() {
                calls.remove(left);
                return Some(simpler);
            }
            left -= calls.len();
        }
        for call in calls {
            if call.key.is_some() {
                if left == 0 {
                    call.key = None;
                    return Some(simpler);
                }
                left -= 1;
            }
            if remove_part(&mut call.params, &mut left) {
                return Some(simpler);
            }
        }
    }
    None
}

/// Removes the part of a value that `left` counts down to; outer parts come first.
fn remove_part(value: &mut Value, left: &mut usize) -> bool {
    match value {
        Value::Object(map) => {
            if *left < map.len() {
                let key = map.keys().nth(*left).cloned();
                return key.and_then(|key| map.remove(&key)).is_some();
            }
            *left -= map.len();
            // Of these the oracle knows how they are meant, not all that can be wrong with them.
            let whole = ["wiring", "outputs", "request"];
            let parts = map
                .iter_mut()
                .filter(|(name, _)| !whole.contains(&name.as_str()));
            parts.map(|(_, v)| v).any(|v| remove_part(v, left))
        }
        Value::Array(items) => {
            if *left < items.len() {
                items.remove(*left);
                return true;
            }
            *left -= items.len();
            items.iter_mut().any(|v| remove_part(v, left))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[tokio::test]
async fn a_script_shrinks_to_what_makes_it_fail() {
    let text = r#"
        1 tasks.create {"name":"a","priority":1}
        2 advance 5
        3 tasks.create {"tasks":[{"name":"x"},{"name":"bad","inputs":{"n":1}}]}
        4 restart
    "#;
    let fails = |steps: Vec<Step>| async move {
        let at = steps.iter().position(|s| s.to_string().contains("bad"))?;
        Some((at + 1, "bad".to_owned()))
    };
    let found = Shrunk {
        steps: crate::differential::script::parse(text),
        difference: String::new(),
    };
    let shrunk = shrink(found, fails).await;
    let expected = r#"3 tasks.create {"tasks":[{"name":"bad"}]}"#;
    assert_eq!(
        crate::differential::script::write(&shrunk.steps).trim(),
        expected
    );
}
