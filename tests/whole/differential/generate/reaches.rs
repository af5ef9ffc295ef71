//! What random scripts come to, played to the oracle alone: a rule that no script comes to is not tested.

use super::Generator;
use crate::differential::STEPS;
use crate::differential::driver::START;
use crate::differential::oracle::{Answer, Oracle};
use crate::differential::script::Action;
use serde_json::Value;
use std::collections::BTreeMap;

/// Scripts: a few runs on servers play as many.
const SCRIPTS: u64 = 600;

/// Answers to calls of workers and people, and errors with their codes.
const REACHED: &[&str] = &[
    "a claim with results of others",
    "an empty claim",
    "an answer: \"responded\"",
    "an answer: \"expired\"",
    "tasks.claim -31022",
    "tasks.claim -31023",
    "tasks.complete",
    "tasks.complete -31010",
    "tasks.complete -31024",
    "tasks.complete -31025",
    "tasks.suspend",
    "tasks.suspend -31010",
    "tasks.suspend -32602",
    "tasks.respond",
    "tasks.respond -31011",
    "tasks.respond -32602",
];

/// Plays a script; gives each call with its answer.
fn play(seed: u64) -> Vec<(String, Answer)> {
    let mut generator = Generator::new(seed);
    let mut world = Oracle::new(START);
    let mut told = Vec::new();
    for number in 1..=STEPS {
        let now = world.now + 1000;
        world.pass_time(now);
        match generator.step(number, &world).action {
            Action::Call(calls) => {
                for (i, call) in calls.iter().enumerate() {
                    let answer = world.call(&format!("{number}x{i}"), call);
                    told.push((call.method.clone(), answer));
                }
            }
            Action::Attempt(task, outcome) => {
                let next = world.attempt(&task, &outcome);
                world = next.and_then(|mut worlds| worlds.pop()).unwrap_or(world);
            }
            Action::Advance(ms) => {
                let end = world.now + i64::try_from(ms * 1000).expect("scripts are short");
                while let Some((at, _)) = world.next_time().filter(|(at, _)| *at < end) {
                    world.pass_time(at);
                }
                world.pass_time(end);
            }
            Action::Restart => world = world.restart().swap_remove(0),
            Action::Pages(_) => {}
        }
    }
    told
}

/// What an answer shows.
fn words(method: &str, answer: &Answer) -> Vec<String> {
    let result = match answer {
        Ok(result) => result,
        Err(refusal) => return vec![format!("{method} {}", refusal.code)],
    };
    let mut words = vec![method.to_owned()];
    for claim in result["claims"].as_array().into_iter().flatten() {
        let filled = claim["lineage"].as_array().is_some_and(|it| !it.is_empty());
        words.extend(filled.then(|| "a claim with results of others".to_owned()));
        let answers = claim["context"]["answers"].as_array();
        for answer in answers.into_iter().flatten() {
            words.push(format!("an answer: {}", answer["resolution"]));
        }
    }
    if result["claims"] == Value::Array(Vec::new()) {
        words.push("an empty claim".to_owned());
    }
    words
}

#[test]
fn random_scripts_come_to_wired_inputs_declared_outputs_and_questions() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (method, answer) in (1..=SCRIPTS).flat_map(play) {
        for word in words(&method, &answer) {
            *counts.entry(word).or_default() += 1;
        }
    }
    for word in REACHED {
        assert!(
            counts.contains_key(*word),
            "`{word}` is not among {counts:#?}"
        );
    }
}
