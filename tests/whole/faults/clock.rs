//! Somebody sets the clock of the machine while the server runs: leases that are renewed hold, others end in time, and
//! the time of events goes on. The server sees a clock of its own, by libfaketime.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use taskledger_testkit::program;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::process::Command;

/// Where Debian's `libfaketime` puts the library for programs with threads, below the folder of an architecture.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
/// How far the clock is set from the right time.
const SET: [&str; 4] = ["+1h", "-3h", "+20h", "+0"];
/// Seconds of the lease that is renewed: no machine stands still for as long.
const KEPT_S: u64 = 30;
/// Seconds of the lease that is not.
const LEFT_S: u64 = 5;
/// How far the server's time may be from the one that has passed, by decision 0096, when it catches up: half as fast
/// again.
const FASTEST: f64 = 1.5;
/// When it waits for the machine's clock: half as fast. With the time in which the end of a lease is noticed, on a
/// machine that has much to do.
const SLOWEST: Duration = Duration::from_secs(2 * LEFT_S + 20);

/// The clock of one program.
struct Clock {
    file: PathBuf,
}

impl Clock {
    fn beside(folder: &Folder) -> Self {
        let clock = Self {
            file: folder.path().join("clock"),
        };
        clock.set("+0");
        clock
    }

    /// A server that sees this clock, and counts the time that passes as the machine does.
    fn server(&self, folder: &Folder) -> Command {
        let mut command = program::command();
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(folder.storage())
            .env("LD_PRELOAD", library())
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1");
        command
    }

    /// Sets it, at once.
    fn set(&self, offset: &str) {
        let next = self.file.with_extension("next");
        fs::write(&next, offset).unwrap();
        fs::rename(next, &self.file).unwrap();
    }
}

fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap();
    let mut found = folders.map(|folder| folder.unwrap().path().join(LIBRARY));
    found
        .find(|library| library.is_file())
        .expect("what Debian calls libfaketime is installed")
}

/// A task that a worker has claimed for so many seconds.
async fn claimed(api: &Api, method: &str, seconds: u64) -> Value {
    let task = json!({"name": method, "schemas": {"method": method, "type": "remote"}});
    let started = api.call("tasks.execute", json!({"tasks": [task]})).await;
    let claim =
        json!({"task_id": started["root_task_id"], "worker": method, "lease_seconds": seconds});
    api.call("tasks.claim", claim).await["claims"][0].take()
}

fn held(claim: &Value) -> Value {
    json!({"task_id": claim["task"]["id"], "lease": claim["lease"]["token"]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_ends_no_lease_too_soon_and_none_too_late() {
    let folder = Folder::new();
    let clock = Clock::beside(&folder);
    let server = Server::spawn(clock.server(&folder), folder.path()).await;
    let api = &server.api;
    let kept = claimed(api, "kept", KEPT_S).await;
    let mut left = Vec::new();
    for offset in SET {
        let began = Instant::now();
        let claim = claimed(api, "left", LEFT_S).await;
        clock.set(offset);
        let id = json!({"task_id": claim["task"]["id"]});
        api.eventually("the lease that nobody renews ends", async || {
            let renewed = api.call("tasks.renew", held(&kept)).await;
            assert_eq!(renewed["cancel_requested"], false, "{offset}: {renewed}");
            let task = api.call("tasks.get", id.clone()).await;
            (task["status"] == "pending").then_some(())
        })
        .await;
        let took = began.elapsed();
        let least = Duration::from_secs(LEFT_S).div_f64(FASTEST);
        assert!(took >= least, "{offset}: it ended after {took:?}");
        assert!(took <= SLOWEST, "{offset}: it ended after {took:?}");
        left.push(id);
    }
    let output = json!({"output": {"n": 1}});
    let complete: Value = [held(&kept), output]
        .iter()
        .flat_map(|it| it.as_object().unwrap().clone())
        .collect::<serde_json::Map<_, _>>()
        .into();
    api.call("tasks.complete", complete).await;

    // Whatever the machine said, nothing was before what had happened before it.
    for id in left
        .into_iter()
        .chain([json!({"task_id": kept["task"]["id"]})])
    {
        let mut asked = id;
        asked["order"] = json!("asc");
        let history = api.call("tasks.history", asked).await;
        let events = history["events"].as_array().unwrap();
        let times: Vec<&str> = events
            .iter()
            .map(|it| it["timestamp"].as_str().unwrap())
            .collect();
        assert!(times.is_sorted(), "{history}");
        assert!(times.len() > 3, "{history}");
    }
    server.stop().await;
}
