//! Counters agree with the log.

use super::scrape::{Scrape, scrape, server, tree};
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder};

taskledger_testkit::on_both_backends!(counters_agree_with_the_log_also_after_kills);

/// Times that the server is killed: an attempt may be interrupted so often and is begun anew.
const KILLS: u64 = 3;

/// Four attempts that succeed, one that is cancelled, and one that goes on.
async fn work(api: &Api) -> Value {
    let quick = [
        "echo_executor",
        "aggregate_results_executor",
        "system_info_executor",
    ];
    let begun = api.call("tasks.execute", tree(&quick)).await;
    api.run_of(&begun["root_task_id"]).await;
    let sleeping = |ms: u64| {
        let task = json!({"name": "s", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": ms}});
        json!({"tasks": [task]})
    };
    let short = api.call("tasks.execute", sleeping(10)).await;
    api.run_of(&short["root_task_id"]).await;
    let cancelled = api.call("tasks.execute", sleeping(600_000)).await["root_task_id"].take();
    api.call("tasks.cancel", json!({"task_id": cancelled}))
        .await;
    api.call("tasks.execute", sleeping(600_000)).await["root_task_id"].take()
}

/// Whether a server that has begun behind this position, and taken over so many attempts, has counted
/// everything since.
fn agrees(now: &Scrape, head_before: f64, taken_over: f64) -> bool {
    let appended = now.sum("taskledger_log_events_total", &[]);
    let started = now.sum("taskledger_log_events_total", &[("kind", "TaskStarted")]);
    let running = now.sum("taskledger_slots", &[("state", "running")]);
    let ended = now.sum("taskledger_attempts_total", &[]);
    // A group begins too and has no attempts: there is one in each round of work.
    let groups = 1.0;
    appended == now.sum("taskledger_log_head", &[]) - head_before
        && now.sum("taskledger_runs_active", &[]) == taken_over + 1.0
        && started - groups + taken_over == ended + running
}

async fn counters_agree_with_the_log_also_after_kills(folder: Folder) {
    let mut head_before = 0.0;
    for round in 0..=folder.kills(KILLS) {
        let server = server(&folder).await;
        let api = &server.api;
        if round > 0 {
            // What was under way when the one before was killed is ended, and begun anew.
            api.eventually("attempts are recovered", async || {
                let now = scrape(api).await;
                let running = now.sum("taskledger_slots", &[("state", "running")]);
                (running == round as f64).then_some(())
            })
            .await;
        }
        work(api).await;
        // then: everything in the log is counted, and every attempt that was begun has ended or runs
        let before = round as f64;
        let now = api
            .eventually("counters and log agree", async || {
                let now = scrape(api).await;
                agrees(&now, head_before, before).then_some(now)
            })
            .await;
        let ends = |outcome| now.sum("taskledger_attempts_total", &[("outcome", outcome)]);
        assert_eq!(ends("interrupted"), before, "{}", now.text);
        assert_eq!(
            (ends("completed"), ends("cancelled")),
            (4.0, 1.0),
            "{}",
            now.text
        );
        head_before = now.sum("taskledger_log_head", &[]);
        server.kill().await;
    }
}
