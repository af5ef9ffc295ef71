//! Random calls go to the real server over HTTP and to an oracle that is written from the documents
//! alone; every answer, every running attempt and every read must be the same.
//!
//! `TASKLEDGER_TEST_SEED` (first seed) and `TASKLEDGER_TEST_SCRIPTS` (how many) ask for other or more
//! scripts. A failure prints its seed and a short script; put such a script into `regressions.rs`.

mod claims;
mod compare;
mod contracts;
mod driver;
mod gate;
mod generate;
mod oracle;
mod place;
mod random;
mod regressions;
mod script;
mod server;
mod shrink;
mod side_by_side;

use driver::{Difference, Driver};
use generate::Generator;
use place::Backend;
use script::Step;
use shrink::Shrunk;
use std::time::{Duration, Instant};

/// Scripts of a run, unless the environment says otherwise: what fits into a minute.
const SCRIPTS: u64 = 30;
/// The same on Postgres, where each read crosses to another process several times.
const SCRIPTS_ON_POSTGRES: u64 = 8;
/// The same for scripts that both backends play side by side.
const SCRIPTS_SIDE_BY_SIDE: u64 = 8;
/// Where the seeds on Postgres begin: the first ones are played side by side.
const SEED_ON_POSTGRES: u64 = 1001;
/// Steps of a script: enough for several flows to get into each other's way.
const STEPS: usize = 45;
/// What the server may need on a busy machine until it has done what a step asks for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same while a script is made shorter: many tries fail, each of them this slowly.
const PATIENCE_SHRINKING: Duration = Duration::from_millis(1500);

/// How long a script may be made shorter: less than the test runner waits for a test.
const SHRINKING_MAX: Duration = Duration::from_secs(75);

/// Plays a script. `None`: the server did as the oracle says; else how many steps were played, and
/// the difference.
async fn play(backend: Backend, steps: Vec<Step>, patience: Duration) -> Option<(usize, String)> {
    let mut driver = Driver::start(patience, backend).await;
    let mut found = None;
    for (i, step) in steps.iter().enumerate() {
        if let Err(Difference(text)) = driver.step(step).await {
            found = Some((i + 1, text));
            break;
        }
    }
    driver.stop().await;
    found
}

/// Makes up a script while it is played.
async fn explore(backend: Backend, seed: u64) -> Option<Shrunk> {
    let mut generator = Generator::new(seed);
    let mut driver = Driver::start(PATIENCE, backend).await;
    let mut steps = Vec::new();
    let mut found = None;
    for number in 1..=STEPS {
        let step = generator.step(number, driver.oracle());
        steps.push(step.clone());
        if let Err(Difference(difference)) = driver.step(&step).await {
            found = Some(difference);
            break;
        }
    }
    driver.stop().await;
    found.map(|difference| Shrunk { steps, difference })
}

/// A failure as people want to read it: short, if the short script really fails.
async fn told(backend: Backend, found: Shrunk) -> String {
    let steps = script::write(&found.steps);
    let whole = format!("{}\nafter\n{steps}", found.difference);
    // In case somebody ends the test before it is short.
    println!("{whole}");
    let until = Instant::now() + SHRINKING_MAX;
    let fails = |steps| async move {
        if Instant::now() > until {
            return None;
        }
        play(backend, steps, PATIENCE_SHRINKING).await
    };
    let shrunk = shrink::shrink(found, fails).await;
    // A busy machine may have looked like a difference to the little patience of the shrinking.
    match play(backend, shrunk.steps.clone(), PATIENCE).await {
        Some((_, difference)) => {
            let short = script::write(&shrunk.steps);
            format!("{difference}\nafter\n{short}\nbefore it was shrunk: {whole}")
        }
        None => whole,
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| v.parse().expect("the setting is a number"))
}

/// Scripts on one backend.
async fn does_what_the_documents_say(backend: Backend, seed: u64, scripts: u64) {
    let first = setting("TASKLEDGER_TEST_SEED", seed);
    for seed in first..first + setting("TASKLEDGER_TEST_SCRIPTS", scripts) {
        let Some(found) = explore(backend, seed).await else {
            continue;
        };
        let told = told(backend, found).await;
        panic!("TASKLEDGER_TEST_SEED={seed} on {backend:?}\n{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_does_what_the_documents_say_whatever_it_is_asked() {
    does_what_the_documents_say(Backend::Sqlite, 1, SCRIPTS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_the_server_does_what_the_documents_say_whatever_it_is_asked() {
    does_what_the_documents_say(Backend::Postgres, SEED_ON_POSTGRES, SCRIPTS_ON_POSTGRES).await;
}
