//! SIGKILL at random moments under load. `TASKLEDGER_TEST_KILLS` sets how many,
//! `TASKLEDGER_TEST_SEED` repeats a run as far as scheduling allows.

use crate::system::read_models::{dump, dump_of_rebuilt_copy};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taskledger_testkit::found::Found;
use taskledger_testkit::log::{self, Event};
use taskledger_testkit::model::Client;
use taskledger_testkit::program;
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Folder, Server};
use tokio::sync::Notify;

taskledger_testkit::on_both_backends!(
    a_server_killed_under_load_loses_nothing_acknowledged_and_finishes_what_was_running,
);

/// Kills unless the environment says otherwise.
const KILLS: u64 = 8;
const CLIENTS: usize = 16;
/// Answers before a kill, at most.
const ANSWERS_MAX: u64 = 400;
/// Rows that a failure shows of each side.
const SHOWN_ROWS: usize = 20;
/// Calls in one batch.
const BATCH_LEN: usize = 100;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

/// Counts answers, and wakes whoever waits for the last of them.
struct Countdown {
    left: AtomicU64,
    over: Notify,
}

impl Countdown {
    fn from(left: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(left),
            over: Notify::new(),
        })
    }

    fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.over.notify_one();
        }
    }
}

/// Lets all clients work until the server is killed after so many answers.
async fn work_until_killed(server: Server, clients: &mut Vec<Client>, answers: u64) {
    let countdown = Countdown::from(answers);
    let working = clients.drain(..).map(|mut client| {
        let (api, countdown) = (server.api.clone(), countdown.clone());
        tokio::spawn(async move {
            loop {
                let command = client.next_command();
                if client.send(&api, command).await.is_none() {
                    return client;
                }
                countdown.count();
            }
        })
    });
    let working: Vec<_> = working.collect();
    countdown.over.notified().await;
    server.kill().await;
    clients.extend(
        join_all(working)
            .await
            .into_iter()
            .map(|client| client.unwrap()),
    );
}

/// What must hold of the log whenever the server is down.
async fn check_log(folder: &Folder, clients: &[Client]) -> Vec<Event> {
    let verify = ["events", "verify"].map(str::to_owned).into_iter();
    let report = program::run(verify.chain(folder.storage())).await.done();
    assert!(report.starts_with("sound"), "{report}");
    let events = log::export(folder).await;
    log::assert_dense(&events);
    log::assert_started_in_order(&events);
    let found = Found::in_log(&events);
    for client in clients {
        client.check(&found);
        for mark in client.marks() {
            assert_eq!(found.flows[mark].len(), 1, "{mark} was created once");
        }
    }
    assert!(
        found.renamed.values().all(|times| *times == 1),
        "{:?}",
        found.renamed
    );
    events
}

/// The server shows every task as it was acknowledged.
async fn check_answers(server: &Server, clients: &[Client]) {
    let expected: Vec<_> = clients.iter().flat_map(Client::expected).collect();
    for part in expected.chunks(BATCH_LEN) {
        let calls = part.iter().enumerate().map(|(i, (id, _))| {
            json!({"jsonrpc": "2.0", "id": i, "method": "tasks.get", "params": {"task_id": id}})
        });
        let (_, answers) = server
            .api
            .post(json!(calls.collect::<Vec<_>>()).to_string())
            .await
            .unwrap();
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), part.len());
        for answer in answers {
            let (id, name) = part[usize::try_from(answer["id"].as_u64().unwrap()).unwrap()];
            match name {
                Some(name) => assert_eq!(answer["result"]["name"], json!(name), "{id}: {answer}"),
                None => assert_eq!(answer["error"]["code"], json!(-32001), "{id}: {answer}"),
            }
        }
    }
}

async fn a_server_killed_under_load_loses_nothing_acknowledged_and_finishes_what_was_running(
    folder: Folder,
) {
    let seed =
        setting("TASKLEDGER_TEST_SEED").unwrap_or(u64::from(std::process::id()) << 16 | 0x1ed9);
    let kills = setting("TASKLEDGER_TEST_KILLS").unwrap_or(folder.kills(KILLS));
    println!("TASKLEDGER_TEST_SEED={seed} TASKLEDGER_TEST_KILLS={kills}");
    let mut random = Random::new(seed);
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|number| Client::new(number, seed))
        .collect();
    for kill in 0..kills {
        let server = Server::start(&folder).await;
        join_all(clients.iter_mut().map(|client| client.repeat(&server.api))).await;
        let answers = 1 + random.below(ANSWERS_MAX);
        work_until_killed(server, &mut clients, answers).await;
        let events = check_log(&folder, &clients).await;
        println!(
            "kill {kill} after {answers} answers, {} events",
            events.len()
        );
    }

    let server = Server::start(&folder).await;
    join_all(clients.iter_mut().map(|client| client.repeat(&server.api))).await;
    server
        .api
        .eventually("nothing is in progress", async || {
            let list = server
                .api
                .call("tasks.list", json!({"status": "in_progress", "limit": 1}))
                .await;
            (list["total"] == 0).then_some(())
        })
        .await;
    server
        .api
        .eventually("every run has ended", async || {
            let found = Found::in_log(&log::export(&folder).await);
            found.runs.values().all(|ended| *ended).then_some(())
        })
        .await;
    check_answers(&server, &clients).await;
    let health: Value = server.api.call("system.health", json!({})).await;
    assert_eq!(health["status"], "ok", "{health}");
    server.api.caught_up().await;
    server.stop().await;

    let events = check_log(&folder, &clients).await;
    assert!(clients.iter().map(Client::flows).sum::<usize>() > 0);
    assert_same_rows(
        &dump(&folder).await,
        &dump_of_rebuilt_copy(&folder).await,
        &events,
    );
}

/// Shows the rows that differ, and where they come from.
fn assert_same_rows(kept: &str, rebuilt: &str, events: &[Event]) {
    let (old, new): (BTreeSet<_>, BTreeSet<_>) =
        (kept.lines().collect(), rebuilt.lines().collect());
    let only = |rows: &BTreeSet<&str>, others: &BTreeSet<&str>| -> Vec<String> {
        let only = rows.difference(others).take(SHOWN_ROWS);
        only.map(|row| (*row).to_owned()).collect()
    };
    assert!(
        kept == rebuilt,
        "the read models differ from a replay of {} events; only kept: {:#?}, only rebuilt: {:#?}",
        events.len(),
        only(&old, &new),
        only(&new, &old)
    );
}
