//! Tasks of the same id from several requesters, and results that come twice: each requester gets its own result.

use super::{Bus, Peer, next, nothing, one, task};
use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::json;
use taskledger::clock::{Clock, SystemClock};
use taskledger_eventbus::{TaskMessage, TaskResult, TaskStatus};
use tonic::{Code, Status, Streaming};

fn of(requester: &str, id: &str) -> TaskMessage {
    TaskMessage {
        requester_agent_id: requester.to_owned(),
        ..task(id, "x")
    }
}

fn made_for(requester: &str) -> Struct {
    one("made_for", Kind::StringValue(requester.to_owned()))
}

async fn complete(peer: &Peer, agent: &str, id: &str, of: &str) -> Result<(), Status> {
    let status = TaskStatus::Completed;
    peer.end(agent, id, status, Some(made_for(of)), "").await
}

#[tokio::test]
async fn an_agent_is_given_one_task_of_an_id_at_a_time_and_each_requester_gets_its_own_result() {
    let bus = Bus::start().await;
    let mut first = bus.subscribe("a", &["x"]).await;
    bus.publish(of("r1", "same")).await.unwrap();
    bus.publish(of("r2", "same")).await.unwrap();
    assert_eq!(next(&mut first).await.requester_agent_id, "r1");
    nothing(&mut first).await;
    // Not through another stream either.
    let mut second = bus.subscribe("a", &["x"]).await;
    bus.publish(of("r3", "same")).await.unwrap();
    nothing(&mut second).await;
    complete(&bus, "a", "same", "r1").await.unwrap();
    // What was said already is heard once: it does not end the next task of this id.
    complete(&bus, "a", "same", "r1").await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let given = tokio::select! {
            given = next(&mut first) => given,
            given = next(&mut second) => given,
        };
        let requester = given.requester_agent_id;
        complete(&bus, "a", "same", "r1").await.unwrap();
        complete(&bus, "a", "same", &requester).await.unwrap();
        seen.push(requester);
    }
    seen.sort();
    assert_eq!(seen, ["r2", "r3"]);
    for requester in ["r1", "r2", "r3"] {
        let mut results = bus.results(requester, &[]).await;
        let told = next(&mut results).await;
        assert_eq!(told.result, Some(made_for(requester)));
        nothing(&mut results).await;
    }
}

#[tokio::test]
async fn two_agents_with_tasks_of_one_id_end_their_own() {
    let bus = Bus::start().await;
    let mut streams = Vec::new();
    for agent in ["a", "b"] {
        let stream = bus.try_subscribe(agent, &["x"], Some("1")).await;
        streams.push((agent, stream.unwrap()));
    }
    for requester in ["r1", "r2"] {
        bus.publish(of(requester, "same")).await.unwrap();
    }
    let mut held = Vec::new();
    for (agent, stream) in &mut streams {
        held.push((*agent, next(stream).await.requester_agent_id));
    }
    // The one that was given its task last ends it first.
    for (agent, requester) in held.iter().rev() {
        complete(&bus, agent, "same", requester).await.unwrap();
    }
    for (agent, requester) in held {
        let told = next(&mut bus.results(&requester, &[]).await).await;
        assert_eq!(told.result, Some(made_for(&requester)));
        assert_eq!(told.executor_agent_id, agent);
    }
}

#[tokio::test]
async fn what_waits_behind_a_task_of_the_same_id_goes_to_others_when_its_agent_leaves() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    bus.publish(of("r1", "same")).await.unwrap();
    next(&mut stream).await;
    bus.publish(of("r2", "same")).await.unwrap();
    nothing(&mut stream).await;
    drop(stream);
    let mut other = bus.subscribe("b", &["x"]).await;
    for _ in 0..2 {
        let given = next(&mut other).await;
        let requester = &given.requester_agent_id;
        complete(&bus, "b", "same", requester).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_results_at_once_of_a_task_that_nobody_holds_are_one() {
    let bus = Bus::start().await;
    for n in 0..20 {
        let id = format!("t{n}");
        bus.publish(task(&id, "x")).await.unwrap();
        let results = (0..8).map(|_| bus.complete("a", &id));
        for answer in futures_util::future::join_all(results).await {
            answer.unwrap();
        }
        let other = bus.end("a", &id, TaskStatus::Failed, None, "no").await;
        assert_eq!(other.unwrap_err().code(), Code::FailedPrecondition);
    }
}

/// A task with one retry, which agents that ask for `x` do.
async fn with_a_retry(bus: &Bus) -> String {
    let create = json!({"tasks": [{"name": "n", "params": {"retry_count": 1},
        "schemas": {"type": "remote", "method": "x"}}]});
    let started = bus.server.api.call("tasks.execute", create).await;
    started["root_task_id"].as_str().unwrap().to_owned()
}

async fn is(bus: &Bus, id: &str, status: &str, error: Option<&str>) {
    let found = bus.server.api.call("tasks.get", json!({"task_id": id}));
    let found = found.await;
    assert_eq!(
        (&found["status"], &found["error"]),
        (&json!(status), &json!(error)),
        "{found}"
    );
}

/// The second attempt of a task arrives.
async fn again(stream: &mut Streaming<TaskMessage>) {
    let again = next(stream).await;
    let attempt = &again.metadata.unwrap().fields["taskledger.attempt"];
    assert_eq!(attempt.kind, Some(Kind::NumberValue(2.0)));
}

#[tokio::test]
async fn a_task_with_retries_is_given_again_after_a_failure_and_the_same_word_counts_once() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let id = with_a_retry(&bus).await;
    assert_eq!(next(&mut stream).await.metadata, None);
    let failed = |error| TaskResult {
        task_id: id.clone(),
        status: TaskStatus::Failed.into(),
        result: None,
        error_message: error,
        executor_agent_id: "a".to_owned(),
        completed_at: Some(finely()),
        execution_metadata: None,
    };
    let once = failed("once".to_owned());
    bus.say(once.clone()).await.unwrap();
    bus.say(once.clone()).await.unwrap();
    again(&mut stream).await;
    bus.say(once).await.unwrap();
    is(&bus, &id, "in_progress", None).await;
    bus.say(failed("twice".to_owned())).await.unwrap();
    is(&bus, &id, "failed", Some("twice")).await;
}

#[tokio::test]
async fn an_agent_whose_times_say_nothing_fails_a_later_attempt_in_the_same_words() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let id = with_a_retry(&bus).await;
    assert_eq!(next(&mut stream).await.metadata, None);
    // At the same time of a day that is long gone.
    let fail = async || bus.end("a", &id, TaskStatus::Failed, None, "no").await;
    fail().await.unwrap();
    again(&mut stream).await;
    is(&bus, &id, "in_progress", None).await;
    fail().await.unwrap();
    is(&bus, &id, "failed", Some("no")).await;
    fail().await.unwrap();
    is(&bus, &id, "failed", Some("no")).await;
}

/// Now, to the microsecond, as most agents write it.
fn finely() -> prost_types::Timestamp {
    let now = SystemClock::default().now().0;
    let micros = now.rem_euclid(1_000_000);
    prost_types::Timestamp {
        seconds: now.div_euclid(1_000_000),
        // Never a whole millisecond.
        nanos: i32::try_from(micros).unwrap() * 1_000 + 1,
    }
}
