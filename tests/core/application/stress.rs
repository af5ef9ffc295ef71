//! Many flows at once on several threads; every run prints its seed.

use crate::application::world::{Make, World, caller, soon, task};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use taskledger_domain::Payload;
use taskledger_domain::flow::{Command, Event, FailureReason};
use taskledger_domain::task::Progress;
use taskledger_domain::testing::id;

/// Numbers that look random and are the same for the same seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commands_that_race_with_evictions_are_not_lost() {
    const FLOWS: usize = 12;
    const SENDERS: usize = 8;
    const COMMANDS: usize = 150;
    // Room for about three idle flows, so that mailboxes retire all the time.
    let w = Arc::new(
        World::made(Make {
            idle_bytes_max: 8_000,
            ..Make::default()
        })
        .await,
    );
    for n in 0..FLOWS {
        w.given_flow(
            &format!("flow {n}"),
            &["child"].map(|c| Box::leak(format!("{c} {n}").into_boxed_str()) as &str),
        )
        .await;
    }
    let senders = (0..SENDERS).map(|sender| {
        let w = w.clone();
        tokio::spawn(async move {
            let mut dice = Dice(0x5eed + sender as u64);
            for n in 0..COMMANDS {
                let flow = dice.below(FLOWS as u64);
                let done = w.rename(
                    &format!("child {flow}"),
                    &format!("sender {sender} command {n}"),
                );
                soon(done)
                    .await
                    .unwrap()
                    .expect("a rename is always possible");
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    let mut names = HashSet::new();
    for n in 0..FLOWS {
        for recorded in w.history(id(&format!("flow {n}")).as_flow()).await {
            if let Event::TaskRenamed(e) = recorded.event.as_ref() {
                assert!(
                    names.insert(e.name.clone()),
                    "`{}` is recorded once",
                    e.name
                );
            }
        }
    }
    assert_eq!(names.len(), SENDERS * COMMANDS);
    let (_, bytes) = w.app.flows.resident();
    assert!(bytes <= 8_000, "{bytes} bytes of idle flows");
}

/// A flow of `tasks` tasks, each after some of those before it.
fn random_flow(flow: usize, tasks: usize, dice: &mut Dice) -> Value {
    let child = |n: usize, dice: &mut Dice| {
        let method = ["few", "fewer", "one", "uno"][dice.below(4) as usize];
        let mut child = task(&format!("{flow}/{n}"), method);
        let on: Vec<_> = (0..n)
            .filter_map(|m| {
                let (waits, required) = (dice.below(4) == 0, dice.below(2) == 0);
                waits.then(|| json!({"id": id(&format!("{flow}/{m}")), "required": required}))
            })
            .collect();
        child["dependencies"] = json!(on);
        child["priority"] = json!(dice.below(4));
        if dice.below(3) == 0 {
            child["params"] = json!({"retry": {"max_attempts": 3, "initial_delay_ms": 0}});
        }
        child
    };
    let children: Vec<_> = (0..tasks).map(|n| child(n, dice)).collect();
    json!([{"id": id(&format!("root {flow}")), "name": "root", "children": children}])
}

async fn everything_ends(seed: u64) {
    const FLOWS: usize = 24;
    const TASKS: usize = 12;
    println!("seed {seed}");
    let mut w = World::made(Make {
        idle_bytes_max: 30_000,
        ..Make::default()
    })
    .await;
    for (name, lane, slots) in [
        ("few", "few", 3),
        ("fewer", "fewer", 2),
        ("one", "one", 1),
        ("uno", "one", 1),
    ] {
        w.executors.add(name, lane, slots, true);
    }
    w.run_flows();
    let mut dice = Dice(seed);
    let mut calls = Vec::new();
    let mut lost = 0;
    for flow in 0..FLOWS {
        let tasks = random_flow(flow, TASKS, &mut dice);
        // Some appends are lost on the way and some answers are; both are found out at once.
        match dice.below(4) {
            0 => w.faults.unknown_after_next_append(),
            // Not more in all than one flow may meet in a row.
            1 if lost < 3 => {
                lost += 1;
                w.faults.unknown_instead_of_next_append();
            }
            _ => w.faults.pass_next_append(),
        }
        calls.push(w.execute(caller(), tasks));
    }
    for call in calls {
        soon(call).await.unwrap().expect("it starts");
    }
    // Each attempt ends in its own time, as attempts do.
    let (script, mut ended) = (w.script.clone(), 0);
    let mut attempts = tokio::task::JoinSet::new();
    let (mut head, mut launched) = (w.app.store.watch(), script.count());
    loop {
        head.mark_unchanged();
        launched.mark_unchanged();
        let launches = script.launches();
        for &(task, attempt) in &launches[ended..] {
            let (script, roll) = (script.clone(), dice.below(5));
            attempts.spawn(async move {
                for _ in 0..roll {
                    tokio::task::yield_now().await;
                }
                script
                    .end_attempt(task, attempt, |task, attempt| match roll {
                        0 => Command::Fail {
                            task,
                            attempt,
                            error: "boom".to_owned(),
                            reason: FailureReason::Executor,
                            progress: Progress::ZERO,
                            lease: None,
                            retry_after_ms: 0,
                        },
                        _ => Command::Complete {
                            task,
                            attempt,
                            result: Payload::empty(),
                            lease: None,
                        },
                    })
                    .await;
            });
        }
        ended = launches.len();
        let runs = w
            .whole_log()
            .await
            .iter()
            .filter(|r| matches!(r.event.as_ref(), Event::RunEnded(_)))
            .count();
        if runs == FLOWS && script.launches().len() == ended {
            break;
        }
        if script.launches().len() == ended {
            // A launch comes after the commit that it is from, so both are waited for.
            soon(async {
                tokio::select! { _ = head.changed() => {} _ = launched.changed() => {} }
            })
            .await;
        }
    }
    while let Some(result) = attempts.join_next().await {
        result.unwrap();
    }
    assert_eq!(w.taken(), 0, "every slot is free again");
    for (method, slots) in [("few", 3), ("fewer", 2)] {
        assert_eq!(
            script.most(method),
            slots,
            "all slots of `{method}` were used, and no more"
        );
    }
    assert!(script.most("one") <= 1 && script.most("uno") <= 1);
    let started: HashSet<_> = script.launches().into_iter().collect();
    assert_eq!(
        started.len(),
        script.launches().len(),
        "no attempt is launched twice"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_run_ends_and_no_wake_up_is_lost() {
    for seed in [1, 2, 3, 0xfeed, 0xbeef] {
        everything_ends(seed).await;
    }
}
