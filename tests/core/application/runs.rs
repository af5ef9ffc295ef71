//! Runs that are begun by messages: how they stand, what is said in them, and who is told of it.

mod following;
mod lists;

use crate::application::broker::{Broker, object};
use crate::application::world::{World, caller, quiet, soon, task};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::application::api::runs::{
    AwaitRun, CancelRun, FollowUp, FollowedUp, HistoryEntry, ListRuns, ReadRun, RunChange, RunItem,
    RunOrigin, RunStage, RunUntil, RunUpdate, RunView, StartRun, StartedRun, StatusMessage,
    WatchRun, WatchedRun,
};
use taskledger::application::api::work::{Claimed, Suspend};
use taskledger::application::api::{Request, Target};
use taskledger::application::context::Idempotency;
use taskledger::application::{Context, Error};
use taskledger_auth::{Caller, Name, Scope, Scopes};
use taskledger_domain::RunId;
use taskledger_domain::flow::{Event, Refusal};
use taskledger_domain::limits::EXECUTOR_WAIT_MS_DEFAULT;
use taskledger_domain::task::call::parse_tasks;
use taskledger_domain::testing::{id, run};
use tokio_stream::StreamExt;

/// A service whose read models follow the log.
async fn served() -> Broker {
    let mut w = World::new().await;
    w.run_read_models();
    Broker::over(w).await.run().await
}

/// Somebody who sees what is theirs.
fn user(name: &str) -> Context {
    let name = Name::new(name).unwrap();
    let scopes = Scopes::all().without(Scope::UsersAny);
    Context::of(Arc::new(Caller::user(&name, scopes)), Arc::from("request"))
}

fn starts(tasks: Value, origin: RunOrigin) -> StartRun {
    StartRun {
        target: Target::New(parse_tasks(&tasks).unwrap()),
        allow_unknown_executors: false,
        executor_wait_ms: EXECUTOR_WAIT_MS_DEFAULT,
        origin,
        reported: None,
    }
}

fn origin(text: &str) -> RunOrigin {
    RunOrigin {
        context: Some("a trip".to_owned()),
        message: Some(object(&json!({"text": text}))),
        references: Vec::new(),
    }
}

/// A run of a group with the tasks `a` and `b`, which workers carry out.
async fn begun(b: &Broker, context: &Context) -> StartedRun {
    let below = json!([task("a", "resize"), task("b", "resize")]);
    let tasks = json!([{"id": id("r"), "name": "r", "children": below}]);
    let start = starts(tasks, origin("Go"));
    soon(b.service.start_run(context, start)).await.unwrap()
}

fn whole(run: RunId) -> ReadRun {
    ReadRun {
        run,
        history: None,
        artifacts: true,
    }
}

async fn view(b: &Broker, run: RunId) -> RunView {
    soon(b.service.read_run(&caller(), whole(run)))
        .await
        .unwrap()
}

async fn asks(b: &Broker, held: &Claimed, question: Value) {
    let suspend = Suspend {
        task: held.task.id,
        lease: held.lease,
        request: object(&question),
    };
    let caller = caller();
    let asked = b.service.call(&caller, Request::Suspend(suspend));
    soon(asked).await.unwrap();
}

fn message(run: RunId, name: &str, text: &str) -> FollowUp {
    FollowUp {
        run,
        context: None,
        message_id: Arc::from(name),
        message: object(&json!({"id": name, "text": text})),
        text: Some(text.to_owned()),
        data: None,
        task: None,
    }
}

async fn says(b: &Broker, message: FollowUp) -> Result<FollowedUp, Error> {
    soon(b.service.message_run(&caller(), message)).await
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Refusal {
    match result {
        Err(Error::Refused(refused)) => refused.refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn follows(run: RunId) -> WatchRun {
    WatchRun {
        run,
        until: RunUntil::Ended,
        history: None,
        results: true,
        parts: true,
        nodes: true,
        behind: None,
        begun: None,
    }
}

async fn watched(b: &Broker, watch: WatchRun) -> WatchedRun {
    soon(b.service.watch_run(&caller(), watch)).await.unwrap()
}

/// What comes until the stream ends.
async fn rest(mut watched: WatchedRun) -> Vec<RunUpdate> {
    let mut all = Vec::new();
    while let Some(item) = soon(watched.updates.next()).await {
        match item.unwrap() {
            RunItem::Update(update) => all.push(*update),
            RunItem::Silence => {}
            RunItem::Reset(reset) => panic!("{reset:?}"),
        }
    }
    all
}

fn stages(updates: &[RunUpdate]) -> Vec<RunStage> {
    let stage = updates.iter().filter_map(|update| match &update.change {
        RunChange::Status(status) => Some(status.stage),
        RunChange::Artifact(_) | RunChange::Node(_) => None,
    });
    stage.collect()
}

fn texts(view: &RunView) -> Vec<Value> {
    let text = view.history.iter().map(|entry| match entry {
        HistoryEntry::Message { message, .. } => message.to_map()["text"].clone(),
        HistoryEntry::Question(question) => question.question.to_map()["question"].clone(),
    });
    text.collect()
}

#[tokio::test]
async fn a_run_is_begun_by_a_message_in_one_commit() {
    let b = served().await;
    let started = begun(&b, &caller()).await;
    assert_eq!((&*started.context, started.root), ("a trip", id("r")));
    let view = view(&b, started.run).await;
    assert_eq!(view.status.stage, RunStage::Working);
    assert_eq!((view.task, &*view.context), (id("r"), "a trip"));
    assert_eq!(texts(&view), ["Go"]);
    let kinds = b.w.kinds(id("r").as_flow()).await;
    assert_eq!(
        kinds[..4],
        ["TaskCreated", "TaskCreated", "TaskCreated", "RunStarted"]
    );
    let history = b.w.history(id("r").as_flow()).await;
    assert!(history.iter().all(|it| it.time == history[0].time));
}

#[tokio::test]
async fn without_a_context_of_its_own_a_run_has_the_id_of_its_root() {
    let b = served().await;
    let start = starts(json!([task("a", "resize")]), RunOrigin::default());
    let started = soon(b.service.start_run(&caller(), start)).await.unwrap();
    let view = view(&b, started.run).await;
    assert_eq!(*view.context, id("a").to_string());
    assert_eq!(started.context, view.context);
    assert_eq!(
        view.status.stage,
        RunStage::Submitted,
        "nobody has claimed it"
    );
    assert!(view.history.is_empty());
}

#[tokio::test]
async fn a_question_waits_for_a_message_and_the_run_goes_on_with_it() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    let held = b.claim("a").await;
    asks(&b, &held, json!({"question": "Where to?"})).await;
    let waiting = view(&b, run).await;
    assert_eq!(waiting.status.stage, RunStage::InputRequired);
    let Some(StatusMessage::Question(question)) = &waiting.status.message else {
        panic!("{:?}", waiting.status);
    };
    assert_eq!(question.task, id("a"));
    assert_eq!(
        texts(&waiting),
        ["Go"],
        "a question that waits is no history yet"
    );
    // when
    b.w.clock.advance_ms(10);
    says(&b, message(run, "m", "Rome")).await.unwrap();
    // then
    let going_on = view(&b, run).await;
    assert_eq!(going_on.status.stage, RunStage::Working);
    assert!(going_on.status.at > waiting.status.at);
    assert_eq!(texts(&going_on), ["Go", "Where to?", "Rome"]);
    let again = b.claim("a").await;
    assert_eq!(again.answers[0].answer.to_map()["value"], json!("Rome"));
    b.complete(&again, json!({"hotel": "Roma"})).await.unwrap();
    let other = b.claim("b").await;
    b.complete(&other, json!({"train": 7})).await.unwrap();
    let ended = view(&b, run).await;
    assert_eq!(ended.status.stage, RunStage::Completed);
    let results: Vec<_> = ended
        .artifacts
        .iter()
        .map(|it| (&*it.name, it.is_result))
        .collect();
    assert_eq!(results, [("r", true), ("a", false), ("b", false)]);
    assert_eq!(
        ended.artifacts[1].result.as_ref().unwrap().to_map()["hotel"],
        json!("Roma")
    );
    let newest = ReadRun {
        history: Some(1),
        artifacts: false,
        ..whole(run)
    };
    let newest = soon(b.service.read_run(&caller(), newest)).await.unwrap();
    assert_eq!(
        (texts(&newest), newest.artifacts.len()),
        (vec![json!("Rome")], 0)
    );
}

#[tokio::test]
async fn the_same_message_is_recorded_once_also_behind_the_end() {
    let b = served().await;
    let start = starts(json!([task("a", "resize")]), origin("Go"));
    let run = soon(b.service.start_run(&caller(), start))
        .await
        .unwrap()
        .run;
    asks(&b, &b.claim("a").await, json!({"question": "Which?"})).await;
    for _ in 0..2 {
        says(&b, message(run, "m", "this")).await.unwrap();
    }
    let other = says(&b, message(run, "m", "that")).await;
    assert_eq!(refused(other), Refusal::RunNotWaiting { run, task: None });
    b.complete(&b.claim("a").await, json!({})).await.unwrap();
    says(&b, message(run, "m", "this")).await.unwrap();
    let other = says(&b, message(run, "n", "this")).await;
    assert_eq!(refused(other), Refusal::RunOver { run });
    let history = b.w.history(id("a").as_flow()).await;
    let said = history
        .iter()
        .filter(|it| matches!(&*it.event, Event::MessageReceived(_)));
    assert_eq!(said.count(), 1);
}

#[tokio::test]
async fn the_oldest_question_is_shown_and_answered_unless_a_task_is_named() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    asks(
        &b,
        &b.claim("a").await,
        json!({"question": "First?", "asks": "auth"}),
    )
    .await;
    b.w.clock.advance_ms(10);
    asks(
        &b,
        &b.claim("b").await,
        json!({"question": "Second?", "response_type": "confirm"}),
    )
    .await;
    let shown = view(&b, run).await;
    assert_eq!(shown.status.stage, RunStage::AuthRequired);
    // when
    let named = FollowUp {
        task: Some(id("b")),
        ..message(run, "m", "yes")
    };
    says(&b, named).await.unwrap();
    // then
    let still = view(&b, run).await;
    assert_eq!(
        still.status, shown.status,
        "the oldest question waits still"
    );
    let named = FollowUp {
        task: Some(id("b")),
        ..message(run, "n", "yes")
    };
    let task = Some(id("b"));
    assert_eq!(
        refused(says(&b, named).await),
        Refusal::RunNotWaiting { run, task }
    );
    says(&b, message(run, "o", "they are there")).await.unwrap();
    assert_eq!(view(&b, run).await.status.stage, RunStage::Working);
    let again = b.claim("b").await;
    assert_eq!(again.answers[0].answer.to_map()["value"], json!(true));
}

#[tokio::test]
async fn a_message_that_is_no_answer_or_names_another_context_is_refused() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    let early = says(&b, message(run, "m", "hello")).await;
    assert_eq!(refused(early), Refusal::RunNotWaiting { run, task: None });
    asks(
        &b,
        &b.claim("a").await,
        json!({"question": "?", "response_type": "confirm"}),
    )
    .await;
    let elsewhere = FollowUp {
        context: Some(Arc::from("another trip")),
        ..message(run, "m", "yes")
    };
    for wrong in [
        message(run, "m", "perhaps"),
        elsewhere,
        message(run, "", "yes"),
    ] {
        assert!(matches!(
            refused(says(&b, wrong).await),
            Refusal::Invalid(_)
        ));
    }
    assert_eq!(view(&b, run).await.status.stage, RunStage::InputRequired);
    let here = FollowUp {
        context: Some(Arc::from("a trip")),
        ..message(run, "m", "yes")
    };
    says(&b, here).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_run_shows_it_at_once_and_is_cancelled_once() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    asks(&b, &b.claim("a").await, json!({"question": "?"})).await;
    let cancel = || CancelRun {
        run,
        reason: Some("no more".to_owned()),
    };
    let cancelled = soon(b.service.cancel_run(&caller(), cancel()))
        .await
        .unwrap();
    assert_eq!(cancelled.status.stage, RunStage::Cancelled);
    assert_eq!(
        cancelled.status.message,
        Some(StatusMessage::Error(Arc::from("no more")))
    );
    let again = soon(b.service.cancel_run(&caller(), cancel())).await;
    assert_eq!(refused(again), Refusal::RunOver { run });
}

#[tokio::test]
async fn a_failed_run_says_why() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    b.fail(&b.claim("a").await, "no hotel", false)
        .await
        .unwrap();
    b.complete(&b.claim("b").await, json!({})).await.unwrap();
    let failed = view(&b, run).await;
    assert_eq!(failed.status.stage, RunStage::Failed);
    let why = "1 of 2 tasks completed, 1 failed, 0 cancelled, 0 not done";
    assert_eq!(
        failed.status.message,
        Some(StatusMessage::Error(Arc::from(why)))
    );
}

#[tokio::test]
async fn runs_of_others_are_as_absent() {
    let b = served().await;
    let (ann, eve) = (user("ann"), user("eve"));
    let run = begun(&b, &ann).await.run;
    asks(&b, &b.claim("a").await, json!({"question": "?"})).await;
    let service = &b.service;
    let nobody = RunId(id("nobody").0);
    for run in [run, nobody] {
        let expected = || Refusal::RunNotFound { run };
        let read = soon(service.read_run(&eve, whole(run))).await;
        assert_eq!(refused(read), expected());
        let cancel = CancelRun { run, reason: None };
        let cancelled = soon(service.cancel_run(&eve, cancel)).await;
        assert_eq!(refused(cancelled), expected());
        let said = soon(service.message_run(&eve, message(run, "m", "x"))).await;
        assert_eq!(refused(said), expected());
        let watched = soon(service.watch_run(&eve, follows(run))).await;
        assert_eq!(refused(watched), expected());
        let wait = AwaitRun {
            run,
            history: None,
            artifacts: false,
            begun: None,
        };
        let waited = soon(service.await_run(&eve, wait)).await;
        assert_eq!(refused(waited), expected());
    }
    let seen = soon(service.list_runs(&eve, ListRuns::default()))
        .await
        .unwrap();
    assert_eq!((seen.runs.len(), seen.total), (0, 0));
    // A run that is not the caller's is not named in what is theirs.
    let naming = RunOrigin {
        references: vec![run, nobody],
        ..origin("Go on")
    };
    let start = |name: &str| starts(json!([task(name, "resize")]), naming.clone());
    let own = soon(service.start_run(&eve, start("e"))).await.unwrap().run;
    let own = soon(service.read_run(&eve, whole(own))).await.unwrap();
    assert_eq!(own.references, []);
    let other = soon(service.start_run(&ann, start("n"))).await.unwrap().run;
    let other = soon(service.read_run(&ann, whole(other))).await.unwrap();
    assert_eq!(other.references, [run]);
}

#[tokio::test]
async fn a_key_makes_a_start_one_start_apart_from_other_calls() {
    let b = served().await;
    let keyed = || {
        let mut context = caller();
        context.idempotency = Some(Idempotency::new(Arc::from("k")));
        context
    };
    let start = |text: &str| {
        starts(
            json!([{"name": "a", "schemas": {"method": "resize"}}]),
            origin(text),
        )
    };
    let first = soon(b.service.start_run(&keyed(), start("Go")))
        .await
        .unwrap();
    let again = soon(b.service.start_run(&keyed(), start("Go")))
        .await
        .unwrap();
    assert_eq!((first.run, first.root), (again.run, again.root));
    let other = soon(b.service.start_run(&keyed(), start("Stop"))).await;
    assert!(matches!(refused(other), Refusal::Invalid(_)));
    let unkeyed = soon(b.service.start_run(&caller(), start("Go")))
        .await
        .unwrap();
    assert_ne!(unkeyed.run, first.run);
}

#[tokio::test]
async fn a_start_that_is_refused_stores_nothing() {
    let b = served().await;
    let unknown = starts(json!([task("a", "nobody")]), origin("Go"));
    let refusal = refused(soon(b.service.start_run(&caller(), unknown)).await);
    assert!(
        matches!(refusal, Refusal::ExecutorsNotFound(_)),
        "{refusal:?}"
    );
    let long = RunOrigin {
        context: Some("x".repeat(256)),
        references: vec![run("any"); 101],
        ..origin("Go")
    };
    let long = starts(json!([task("a", "resize")]), long);
    let Refusal::Invalid(faults) = refused(soon(b.service.start_run(&caller(), long)).await) else {
        panic!("it is not valid");
    };
    assert_eq!(faults.len(), 2);
    assert!(b.w.history(id("a").as_flow()).await.is_empty());
}
