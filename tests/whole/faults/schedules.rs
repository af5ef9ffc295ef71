//! Servers are killed between a time of a schedule and the start of its run, on one server and on three.
//!
//! Afterwards each time that was not counted as skipped or missed has one flow: its root says which time it is of.

use crate::faults::seed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::log;
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::time::sleep;

/// Kills of the only server, and of one of three.
const KILLS: u64 = 8;
const KILLS_OF_NODES: u64 = 4;
/// A kill falls at any moment of so many milliseconds: between two times, and within a start.
const MOMENT_MAX_MS: u64 = 1_300;
/// Schedules with a time each second.
const SCHEDULES: usize = 6;
const NAME: &str = "each second";

async fn make(api: &Api) {
    for n in 0..SCHEDULES {
        let new = json!({
            "name": format!("{NAME} {n}"), "every_seconds": 1, "overlap": "allow", "catch_up_seconds": 600,
            "tasks": [
                {"id": "top", "name": "top"},
                {"name": "below", "parent_id": "top", "schemas": {"method": "echo_executor"},
                 "inputs": {"of": "$schedule.name", "at": "$schedule.scheduled_at"}},
            ],
        });
        api.call("schedules.create", new).await;
    }
}

/// Runs of each schedule that there are to be in the end, however long a lease of a node that was killed lasts.
const RUNS_MIN: u64 = 10;

/// What schedules count as started and skipped once they are paused and nothing of them is under way.
async fn counted(api: &Api) -> BTreeMap<String, [u64; 2]> {
    let mut started = BTreeMap::new();
    for n in 0..SCHEDULES {
        let name = format!("{NAME} {n}");
        let named = json!({"name": name});
        api.eventually("it goes on", async || {
            let shown = api
                .try_call("schedules.get", named.clone(), None)
                .await
                .ok()?;
            (shown["counters"]["started"].as_u64()? >= RUNS_MIN).then_some(())
        })
        .await;
        api.eventually("it can be paused", async || {
            let paused = api.try_call("schedules.pause", named.clone(), None).await;
            paused.is_ok().then_some(())
        })
        .await;
        let count = api.eventually("nothing is being started", async || {
            let shown = api
                .try_call("schedules.get", named.clone(), None)
                .await
                .ok()?;
            let runs = shown["runs"].as_array().unwrap();
            let rests = runs.iter().all(|run| run["outcome"] != "starting");
            rests.then(|| shown["counters"].clone())
        });
        let count = count.await;
        for none in ["missed", "failed"] {
            assert_eq!(count[none], 0, "{name}: {count}");
        }
        // Those that were being started when it was paused are skipped.
        let of = ["started", "skipped"].map(|it| count[it].as_u64().unwrap());
        started.insert(name, of);
    }
    started
}

/// Every time of every schedule has one flow, without a gap but for what it counts, as many as the schedules count.
async fn check(folder: &Folder, counted: &BTreeMap<String, [u64; 2]>) {
    let mut flows: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for event in log::export(folder).await {
        if event.kind != "TaskCreated" {
            continue;
        }
        let inputs = &event.data["specification"]["inputs"];
        if let (Some(of), Some(at)) = (inputs["of"].as_str(), inputs["at"].as_str()) {
            let at = taskledger_domain::Timestamp::parse(at).unwrap();
            flows.entry(of.to_owned()).or_default().push(at.0);
        }
    }
    assert_eq!(flows.len(), SCHEDULES, "{flows:?}");
    for (name, mut times) in flows {
        times.sort_unstable();
        assert!(times.len() as u64 >= RUNS_MIN, "{name}: {times:?}");
        let [started, skipped] = counted[&name];
        let mut lost = 0;
        for pair in times.windows(2) {
            let seconds = (pair[1] - pair[0]) / 1_000_000;
            assert!(seconds >= 1, "{name}: each time once");
            lost += seconds.unsigned_abs() - 1;
        }
        assert!(
            lost <= skipped,
            "{name} lost {lost} times, and counts {skipped}"
        );
        assert_eq!(times.len() as u64, started, "{name} counts what it started");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_time_has_one_run_although_the_server_is_killed() {
    let mut random = Random::new(seed());
    let folder = Folder::new();
    let mut server = Server::start(&folder).await;
    make(&server.api).await;
    for _ in 0..KILLS {
        sleep(Duration::from_millis(random.below(MOMENT_MAX_MS))).await;
        server.kill().await;
        server = Server::start(&folder).await;
    }
    sleep(Duration::from_millis(MOMENT_MAX_MS)).await;
    let started = counted(&server.api).await;
    server.stop().await;
    check(&folder, &started).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_time_has_one_run_although_nodes_are_killed() {
    let mut random = Random::new(seed());
    let mut cluster = Cluster::of(3).await;
    make(&cluster.nodes[0].api).await;
    for _ in 0..KILLS_OF_NODES {
        sleep(Duration::from_millis(random.below(MOMENT_MAX_MS))).await;
        let victim = usize::try_from(random.below(3)).unwrap();
        cluster.nodes.remove(victim).kill().await;
        cluster.nodes.push(Server::start(&cluster.folder).await);
    }
    sleep(Duration::from_secs(2)).await;
    let started = counted(&cluster.nodes[0].api).await;
    for node in cluster.nodes.drain(..) {
        node.stop().await;
    }
    check(&cluster.folder, &started).await;
}

/// What a server that was killed leaves: a decision that was recorded and nothing more, which is what a kill right
/// between the time and the start leaves; and one whose start was not recorded, which is what a kill right behind the
/// start leaves.
const KILLED: &str = "UPDATE taskledger_schedules.runs SET state = 'starting', run = NULL, stage = NULL;
    INSERT INTO taskledger_schedules.runs (schedule, key, scheduled_at, state, flow, decided_at, at)
        SELECT id, '7', 7, 'starting', decode('0f8fad5bd9cb469fa16570867728950e', 'hex'), 7, 7 FROM taskledger_schedules.schedules;
    UPDATE taskledger_schedules.schedules SET due_at = 7, leased_until = 0, started_by_hand = 0";

/// Makes a schedule, runs it once, and gives what the run was.
async fn run_once(api: &Api) -> Value {
    let new = json!({
        "name": NAME, "cron": "@yearly",
        "tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}],
    });
    api.call("schedules.create", new).await;
    let run = api.call("schedules.run_now", json!({"name": NAME})).await;
    api.run_of(&run["root_task_id"]).await;
    run
}

/// Runs that were started at their times, and by hand.
fn counters(shown: &Value) -> [Option<u64>; 2] {
    ["started", "started_by_hand"].map(|it| shown["counters"][it].as_u64())
}

/// Both that were decided have one run, one of them the run that was begun.
async fn both_are_started(api: &Api, run: &Value) {
    let shown = api
        .eventually("both are started", async || {
            let shown = api.try_call("schedules.get", json!({"name": NAME}), None);
            let shown = shown.await.ok()?;
            let runs = shown["runs"].as_array().unwrap();
            // A run may have ended before its start is recorded and counted.
            let counted = |run: &&Value| run["outcome"] != "starting";
            let started = runs.iter().filter(|run| run["status"] == "completed");
            let is_counted = counters(&shown) == [Some(1), Some(1)];
            (started.filter(counted).count() == 2 && is_counted).then_some(shown.clone())
        })
        .await;
    let begun = &shown["runs"][0];
    assert_eq!(begun["root_task_id"], run["root_task_id"]);
    assert_eq!(begun["run_id"], run["run_id"]);
    let list = api.call("tasks.list", json!({"root_only": true})).await;
    assert_eq!(list["total"], 2, "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_decided_is_started_once_after_a_kill() {
    let folder = Folder::with_database().await;
    let server = Server::start(&folder).await;
    let run = run_once(&server.api).await;
    server.kill().await;
    folder.execute(KILLED).await;
    let server = Server::start(&folder).await;
    both_are_started(&server.api, &run).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_node_had_decided_is_started_once_by_one_of_the_others() {
    let mut cluster = Cluster::of(3).await;
    let run = run_once(&cluster.nodes[0].api).await;
    cluster.nodes.remove(0).kill().await;
    cluster.folder.execute(KILLED).await;
    for node in &cluster.nodes {
        both_are_started(&node.api, &run).await;
    }
    for node in cluster.nodes.drain(..) {
        node.stop().await;
    }
}
