//! What requesters find in their inboxes: after an absence, after a kill, by the ids that they name.

use super::{Bus, NOW, next, nothing, one, task};
use crate::webhooks::site::ALLOWED;
use prost_types::Timestamp;
use prost_types::value::Kind;
use serde_json::{Value, json};
use taskledger_eventbus::{TaskResult, TaskStatus};
use taskledger_testkit::receiver::Receiver;
use taskledger_testkit::server::{Folder, Server};
use tonic::Code;

/// Status, error and executor.
fn of(result: &TaskResult) -> (&str, TaskStatus, &str, &str) {
    let (error, executor) = (&result.error_message, &result.executor_agent_id);
    (&result.task_id, result.status(), error, executor)
}

async fn a_requester_finds_what_ended_while_it_was_away(folder: Folder) {
    let bus = Bus::of(folder).await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    for id in ["done", "failed", "cancelled"] {
        bus.publish(task(id, "x")).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, id);
    }
    bus.complete("agent", "done").await.unwrap();
    bus.end("agent", "failed", TaskStatus::Failed, None, "bad page")
        .await
        .unwrap();
    bus.end("agent", "cancelled", TaskStatus::Cancelled, None, "no need")
        .await
        .unwrap();
    let mut late = task("late", "x");
    late.deadline = Some(NOW);
    bus.publish(late).await.unwrap();
    // Nobody was there, and the stream breaks before it has lived for long: all of it comes again, the same.
    let mut told = Vec::new();
    for _ in 0..2 {
        let mut results = bus.results("requester", &[]).await;
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(next(&mut results).await);
        }
        told.push(all);
        nothing(&mut results).await;
    }
    assert_eq!(told[0], told[1]);
    let found: Vec<_> = told[0].iter().map(of).collect();
    assert_eq!(
        found,
        [
            ("done", TaskStatus::Completed, "", "agent"),
            ("failed", TaskStatus::Failed, "bad page", "agent"),
            ("cancelled", TaskStatus::Cancelled, "no need", "agent"),
            (
                "late",
                TaskStatus::Failed,
                "DEADLINE_EXCEEDED",
                "taskledger"
            ),
        ]
    );
    assert_eq!(told[0][0].result, Some(one("n", Kind::NumberValue(1.0))));
    assert_eq!(told[0][1].result, None);
    // The time is that of the agent that ended it, else of the server.
    let (last, by_agents) = told[0].split_last().unwrap();
    for result in by_agents {
        assert_eq!(result.completed_at, Some(NOW), "{result:?}");
    }
    assert!(last.completed_at.unwrap().seconds > NOW.seconds);
    // What ends while it is there comes at once.
    let mut results = bus.results("requester", &[]).await;
    for _ in 0..4 {
        next(&mut results).await;
    }
    bus.publish(task("live", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "live");
    bus.complete("agent", "live").await.unwrap();
    assert_eq!(next(&mut results).await.task_id, "live");
    // Another requester has an inbox of its own.
    nothing(&mut bus.results("another", &[]).await).await;
}

#[tokio::test]
async fn a_requester_that_was_away_finds_what_ended_meanwhile() {
    a_requester_finds_what_ended_while_it_was_away(Folder::new()).await;
}

#[tokio::test]
async fn a_requester_that_was_away_finds_what_ended_meanwhile_on_postgres() {
    a_requester_finds_what_ended_while_it_was_away(Folder::with_database().await).await;
}

#[tokio::test]
async fn a_kill_between_completion_and_delivery_loses_nothing() {
    let mut bus = Bus::start().await;
    for n in 0..10 {
        let id = format!("t{n}");
        let mut stream = bus.subscribe("agent", &["x"]).await;
        bus.publish(task(&id, "x")).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, id);
        bus.complete("agent", &id).await.unwrap();
        if n % 5 == 4 {
            bus = bus.killed().await;
        }
    }
    let mut results = bus.results("requester", &[]).await;
    for n in 0..10 {
        let result = next(&mut results).await;
        let expected = format!("t{n}");
        assert_eq!(
            of(&result),
            (&*expected, TaskStatus::Completed, "", "agent")
        );
    }
    nothing(&mut results).await;
}

#[tokio::test]
async fn ids_that_are_named_are_told_again_and_nothing_else() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    for id in ["a", "b"] {
        bus.publish(task(id, "x")).await.unwrap();
        next(&mut stream).await;
        bus.complete("agent", id).await.unwrap();
    }
    let mut results = bus.results("requester", &["b", "later", "unknown"]).await;
    assert_eq!(next(&mut results).await.task_id, "b");
    for id in ["other", "later"] {
        bus.publish(task(id, "x")).await.unwrap();
        next(&mut stream).await;
        bus.complete("agent", id).await.unwrap();
    }
    assert_eq!(next(&mut results).await.task_id, "later");
    nothing(&mut results).await;
}

#[tokio::test]
async fn of_a_task_that_was_executed_again_only_the_latest_end_is_told_by_its_id() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    bus.publish(task(id, "x")).await.unwrap();
    next(&mut stream).await;
    bus.end("agent", id, TaskStatus::Failed, None, "bad page")
        .await
        .unwrap();
    let again = json!({"task_id": id});
    bus.server.api.call("tasks.execute", again).await;
    next(&mut stream).await;
    bus.complete("agent", id).await.unwrap();
    // Both are noted.
    let mut all = bus.results("requester", &[]).await;
    assert_eq!(next(&mut all).await.status(), TaskStatus::Failed);
    assert_eq!(next(&mut all).await.status(), TaskStatus::Completed);
    drop(all);
    let mut results = bus.results("requester", &[id]).await;
    assert_eq!(next(&mut results).await.status(), TaskStatus::Completed);
    nothing(&mut results).await;
}

#[tokio::test]
async fn subscriptions_that_make_no_sense_are_refused() {
    let bus = Bus::start().await;
    let many: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(|it| &**it).collect();
    for (requester, ids, text) in [
        ("", &[][..], "requester_agent_id cannot be empty"),
        ("a\u{0}", &[], "requester_agent_id: "),
        ("a", &[""], "task_ids: "),
        ("a", &many, "task_ids: "),
    ] {
        let request = super::of_requester(requester, ids);
        let mut client = bus.client.clone();
        for refused in [
            client
                .subscribe_to_task_results(request.clone())
                .await
                .map(|_| ()),
            client.subscribe_to_task_progress(request).await.map(|_| ()),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert!(refused.message().starts_with(text), "{refused}");
        }
    }
}

#[tokio::test]
async fn an_id_that_is_no_uuid_is_found_without_a_stream() {
    let bus = Bus::start().await;
    bus.publish(task("t", "x")).await.unwrap();
    bus.progress("agent", "t", 10).await.unwrap();
    let bus = bus.killed().await;
    bus.complete("agent", "t").await.unwrap();
    let mut results = bus.results("requester", &[]).await;
    let result = next(&mut results).await;
    assert_eq!(of(&result), ("t", TaskStatus::Completed, "", "agent"));
}

#[tokio::test]
async fn json_rpc_events_webhooks_and_the_broker_tell_one_story() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &ALLOWED).await;
    let peer = super::Peer::of(&server).await;
    let bus = Bus {
        server,
        peer,
        folder,
    };
    let receiver = Receiver::start().await;
    let kinds = ["task_progress_update", "task_completed"];
    let webhook = json!({"url": receiver.url("/hook"), "events": kinds});
    bus.server.api.call("webhooks.create", webhook).await;
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    let (mut going, mut results) = (
        bus.going("requester", &[]).await,
        bus.results("requester", &[]).await,
    );
    let mut message = task(id, "x");
    message.deadline = Some(Timestamp {
        seconds: 4_000_000_000,
        nanos: 0,
    });
    bus.publish(message).await.unwrap();
    let url = format!("{}events?task={id}", bus.server.api.url);
    let events = bus.server.api.http.get(url).send().await.unwrap();
    let mut events = crate::streams::sse::Sse::of(events);
    let mut stream = bus.subscribe("agent", &["x"]).await;
    assert_eq!(next(&mut stream).await.task_id, id);
    bus.progress("agent", id, 40).await.unwrap();
    let progress = next(&mut going).await;
    assert_eq!((&*progress.task_id, progress.progress_percentage), (id, 40));
    bus.complete("agent", id).await.unwrap();
    let result = next(&mut results).await;
    assert_eq!(of(&result), (id, TaskStatus::Completed, "", "agent"));
    let mut seen = Vec::new();
    let last: Value = loop {
        let block = events.block().await.expect("the stream goes on");
        let Some(kind) = block.event.clone() else {
            continue;
        };
        seen.push(kind.clone());
        if kind == "task_completed" {
            break block.json();
        }
    };
    assert!(
        seen.contains(&"task_progress_update".to_owned()),
        "{seen:?}"
    );
    let found = bus
        .server
        .api
        .call("tasks.get", json!({"task_id": id}))
        .await;
    assert_eq!(
        (&found["status"], &found["result"], &last["result"]),
        (&json!("completed"), &json!({"n": 1}), &json!({"n": 1}))
    );
    let posted = receiver.wait_for(2).await;
    let posted: Vec<Value> = posted
        .iter()
        .map(|it| serde_json::from_slice(&it.body).unwrap())
        .collect();
    let about: Vec<_> = posted
        .iter()
        .map(|it| (&it["type"], &it["task_id"], &it["progress"]))
        .collect();
    let id = &json!(id);
    assert_eq!(
        about,
        [
            (&json!("task_progress_update"), id, &json!(0.4)),
            (&json!("task_completed"), id, &json!(1.0)),
        ],
        "{posted:?}"
    );
    assert_eq!(posted[1]["result"], found["result"]);
    // The requester is told the agent's time, other doors the server's.
    assert_eq!(result.completed_at, Some(NOW));
    let recorded = found["completed_at"].as_str().unwrap();
    let recorded = chrono::DateTime::parse_from_rfc3339(recorded).unwrap();
    assert!(recorded.timestamp() > NOW.seconds);
}

#[tokio::test]
async fn the_time_of_a_result_is_delivered_as_the_agent_wrote_it() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    let statuses = [
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];
    let mut sent = Vec::new();
    for (n, status) in (0..).zip(statuses) {
        let id = format!("t{n}");
        bus.publish(task(&id, "x")).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, id);
        let at = Timestamp {
            seconds: 1_767_225_600,
            nanos: 123_456_789 + n,
        };
        let is_well = status == TaskStatus::Completed;
        let result = TaskResult {
            task_id: id,
            status: status.into(),
            result: is_well.then(|| one("n", Kind::NumberValue(1.0))),
            error_message: if is_well { "" } else { "no" }.to_owned(),
            executor_agent_id: "agent".to_owned(),
            completed_at: Some(at),
            execution_metadata: None,
        };
        bus.say(result.clone()).await.unwrap();
        sent.push(result);
    }
    let mut results = bus.results("requester", &[]).await;
    for expected in sent {
        assert_eq!(next(&mut results).await, expected);
    }
}
