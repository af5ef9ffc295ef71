//! The program is killed, stopped, or has no room: what it has promised to tell arrives all the same.

use crate::webhooks::in_both_places;
use crate::webhooks::site::{ALLOWED, Site, about, verifies};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use taskledger::clock::{Clock, SystemClock};
use taskledger_testkit::program;
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver, Then};
use taskledger_testkit::server::{Folder, Server};

in_both_places!(
    a_receiver_whose_answer_was_awaited_at_a_kill_hears_again_under_the_same_id,
    a_server_killed_at_any_moment_tells_everything_that_it_acknowledged,
    what_waits_for_its_next_attempt_goes_on_waiting_after_a_kill,
    what_happened_right_before_a_kill_is_told_by_the_next_server,
);

/// Reads a request, and never answers.
fn holds() -> Behaviour {
    Behaviour::raw("", Then::Hang)
}

async fn a_receiver_whose_answer_was_awaited_at_a_kill_hears_again_under_the_same_id(
    folder: Folder,
) {
    let site = Site::of(folder, json!({})).await;
    site.receiver.answers([holds()]);
    let task = site.execute("held").await;
    let first = site.receiver.wait_for(1).await.remove(0);
    let second_of_first: i64 = first.header("webhook-timestamp").unwrap().parse().unwrap();
    let clock = SystemClock::default();
    let next_second = async || (clock.now().0 / 1_000_000 > second_of_first).then_some(());
    site.server
        .api
        .eventually("the next second begins", next_second)
        .await;

    let site = site.killed().await;

    let second = site.receiver.wait_for(2).await.remove(1);
    assert_eq!((about(&first), about(&second)), (task.clone(), task));
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_ne!(
        first.header("webhook-timestamp"),
        second.header("webhook-timestamp")
    );
    assert!(verifies(&first, &site.secret) && verifies(&second, &site.secret));
    // What was not recorded was not an attempt.
    let delivery = site
        .delivery("it arrives", |d| d["state"] == "delivered")
        .await;
    assert_eq!(delivery["log"].as_array().unwrap().len(), 1, "{delivery}");
    site.server.stop().await;
}

async fn a_server_killed_at_any_moment_tells_everything_that_it_acknowledged(folder: Folder) {
    let mut site = Site::of(folder, json!({"ordering": "none"})).await;
    // Some answers are late, so that kills fall between sending and recording too.
    let late = |ms| Behaviour::Delayed(Duration::from_millis(ms), Answer::status(200));
    let mut tasks = Vec::new();
    for round in 0..site.folder.kills(6) {
        site.receiver
            .answers([late(0), late(round * 20), late(200)]);
        for n in 0..=round * 2 {
            tasks.push(site.execute(&format!("{round} {n}")).await);
        }
        let come = site.receiver.requests().len();
        if round % 2 == 1 && come < tasks.len() {
            // From claim to record.
            site.receiver.wait_for(come + 1).await;
        }
        site = site.killed().await;
    }

    site.told_of(&tasks).await;

    let mut bodies = HashMap::new();
    for request in site.receiver.requests() {
        let id = request.header("webhook-id").unwrap().to_owned();
        let body = bodies.entry(id).or_insert_with(|| request.body.clone());
        assert_eq!(*body, request.body, "one id, one message");
        assert!(verifies(&request, &site.secret));
    }
    assert_eq!(bodies.len(), tasks.len());
    site.server.stop().await;
}

async fn what_happened_right_before_a_kill_is_told_by_the_next_server(folder: Folder) {
    let site = Site::of(folder, json!({})).await;
    let one = json!({"id": site.webhook});
    site.server.api.call("webhooks.disable", one.clone()).await;
    let task = site.execute("noted, and taken by nobody").await;
    site.server.api.run_of(&json!(task)).await;
    site.delivery("it is noted", |d| d["waits_for"] == "enabling")
        .await;

    let site = site.killed().await;
    site.server.api.call("webhooks.enable", one).await;

    site.told_of(&[task]).await;
    let delivery = site
        .delivery("it arrives", |d| d["state"] == "delivered")
        .await;
    assert_eq!(delivery["log"].as_array().unwrap().len(), 1);
    site.server.stop().await;
}

async fn what_waits_for_its_next_attempt_goes_on_waiting_after_a_kill(folder: Folder) {
    let site = Site::of(folder, json!({"schedule": [0, 4, 4]})).await;
    site.receiver.answers([Answer::status(503).into()]);
    site.execute("shaky").await;
    let tried = |n: usize| move |d: &Value| d["log"].as_array().unwrap().len() == n;
    let waiting = site.delivery("one attempt failed", tried(1)).await;
    assert_eq!(waiting["state"], "waiting");

    let site = site.killed().await;

    let found = site.deliveries().await.remove(0);
    assert_eq!(found["next_at"], waiting["next_at"]);
    let delivered = site
        .delivery("it arrives", |d| d["state"] == "delivered")
        .await;
    assert_eq!(delivered["attempts"], 2);
    assert_eq!(delivered["log"][0], waiting["log"][0]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert!(text(&delivered["log"][1]["at"]) >= text(&waiting["next_at"]));
    let ids: Vec<_> = site
        .receiver
        .requests()
        .iter()
        .map(|r| r.header("webhook-id").unwrap().to_owned())
        .collect();
    assert_eq!(ids[0], ids[1]);
    site.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_asked_to_stop_lets_attempts_end_and_records_them() {
    let mut site = Site::new(json!({"ordering": "none"})).await;
    let slow = Behaviour::Delayed(Duration::from_secs(3), Answer::status(200));
    site.receiver.answer(slow);
    // As many as one host is sent at once.
    for n in 0..8 {
        site.execute(&n.to_string()).await;
    }
    let sent = site.receiver.wait_for(8).await.len();

    site.server.stop().await;

    let requests = site.receiver.requests().len();
    assert_eq!(requests, sent, "nothing was begun");
    site.server = Server::start_with(&site.folder, &ALLOWED).await;
    let states = site.deliveries().await;
    assert!(
        states.iter().all(|d| d["state"] == "delivered"),
        "{states:?}"
    );
    assert_eq!(
        site.receiver.requests().len(),
        requests,
        "nothing was sent again"
    );
    site.server.stop().await;
}

/// Endpoints that are told of each task.
const ENDPOINTS: usize = 20;
/// Tasks: what is kept of all answers is more than fits.
const TASKS: usize = 60;
/// Bytes of each answer, all of which are kept.
const ANSWER_BYTES: usize = 4096;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_full_disk_kept_from_being_recorded_is_told_when_there_is_room() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    // A shell in which files cannot grow beyond 3 MiB, which becomes the server.
    let mut command = program::command_of("sh");
    command.args(["-c", "ulimit -f 6144 && exec \"$0\" \"$@\""]);
    command.arg(program::path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(folder.data()).args(ALLOWED);
    let server = Server::spawn(command, folder.path()).await;
    receiver.answer(Answer::status(200).body([b'x'; ANSWER_BYTES]));
    let mut site = Site::with(folder, receiver, server, json!({})).await;
    for n in 1..ENDPOINTS {
        let url = site.receiver.url(&format!("/hook{n}"));
        let wanted = json!({"url": url, "events": ["task_completed"]});
        site.server.api.call("webhooks.create", wanted).await;
    }
    let mut tasks = Vec::new();
    for n in 0..TASKS {
        tasks.push(site.execute(&n.to_string()).await);
    }
    let full = async || {
        site.server
            .logged()
            .contains("which webhooks are due")
            .then_some(())
    };
    site.server.api.eventually("the disk is full", full).await;
    assert!(site.server.runs(), "{}", site.server.logged());

    site.server.stop().await;
    site.server = Server::start_with(&site.folder, &ALLOWED).await;

    let all_told = async || {
        let requests = site.receiver.requests();
        let told: HashSet<_> = requests
            .iter()
            .map(|r| (r.path.clone(), about(r)))
            .collect();
        (told.len() == ENDPOINTS * TASKS).then_some(())
    };
    site.server.api.eventually("all are told", all_told).await;
    let told: HashSet<_> = site.receiver.requests().iter().map(about).collect();
    assert_eq!(told, tasks.into_iter().collect());
    site.server.stop().await;
}
