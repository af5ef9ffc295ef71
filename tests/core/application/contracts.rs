//! What tasks declare of their inputs and outputs, kept where workers claim and complete.

use crate::application::broker::{Broker, flow, lost};
use crate::application::world::{caller, soon, task, updates};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::api::Reply;
use taskledger::application::api::work::{Claimed, LeaseLoss, Wanted};
use taskledger::application::{App, Error, ExecuteOptions, Target};
use taskledger_domain::contract::Broken;
use taskledger_domain::task::Status;
use taskledger_domain::testing::id;

/// The claim of a task to which `n` of the result of `a` is wired, which has completed.
async fn claim_of_wired_task(b: &Broker) -> Claimed {
    with_wired_task(b).await;
    let first = b.next(9).await;
    let size = json!({"size": {"width": 640}});
    assert!(b.complete(&first[0], size).await.is_ok());
    b.next(9).await.remove(0)
}

/// A task behind `a`, to which `n` of its result is wired.
async fn with_wired_task(b: &Broker) {
    let mut second = task("b", "resize");
    second["dependencies"] = json!([{"id": id("a")}]);
    second["inputs"] = json!({"own": 1});
    second["schemas"]["wiring"] = json!({"n": "a.size#/width"});
    let children = json!([task("a", "resize"), second]);
    b.execute(json!([{"id": id("g"), "name": "g", "children": children}]))
        .await;
}

#[tokio::test]
async fn a_worker_gets_results_of_others_as_inputs() {
    let b = Broker::running().await;
    let second = claim_of_wired_task(&b).await;
    assert_eq!(second.task.id, id("b"));
    let input = Value::Object(second.input.to_map());
    assert_eq!(input, json!({"own": 1, "n": 640}));
    assert!(b.complete(&second, json!({})).await.is_ok());
}

#[tokio::test]
async fn a_task_whose_inputs_are_not_there_reaches_no_worker() {
    let b = Broker::running().await;
    with_wired_task(&b).await;
    let first = b.next(9).await;
    assert!(b.complete(&first[0], json!({"size": {}})).await.is_ok());
    assert!(b.next(9).await.is_empty());
    for _ in 0..2 {
        let refused = b.try_claim("b").await;
        let Err(Error::ContractBroken { task, breach }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((task, breach.phase_name.as_deref()), (id("b"), Some("b")));
        let found = Broken::Inputs {
            unresolvable_refs: vec!["a.size#/width".to_owned()],
            incomplete: Vec::new(),
        };
        assert_eq!(breach.broken, found);
    }
    assert_eq!(b.w.status("b").await, Some(Status::Pending));
    let kinds = b.w.kinds(flow("g")).await;
    let rejected = kinds.iter().filter(|kind| **kind == "TaskClaimRejected");
    assert_eq!(rejected.count(), 1, "{kinds:?}");
    // Nothing of it goes round in circles.
    let before = b.w.history(flow("g")).await.len();
    b.execute(json!([task("c", "resize")])).await;
    let claimed: Vec<_> = b.next(9).await.iter().map(|claim| claim.task.id).collect();
    assert_eq!(claimed, [id("c")]);
    assert_eq!(b.w.history(flow("g")).await.len(), before);
}

#[tokio::test]
async fn a_task_that_is_wired_to_what_a_result_lacks_already_reaches_no_worker() {
    let b = Broker::running().await;
    let mut second = task("b", "resize");
    second["dependencies"] = json!([{"id": id("a")}]);
    let children = json!([task("a", "resize"), second]);
    b.execute(json!([{"id": id("g"), "name": "g", "children": children}]))
        .await;
    let first = b.next(1).await;
    assert!(b.complete(&first[0], json!({"there": 1})).await.is_ok());
    let wired =
        json!({"schemas": {"method": "resize", "wiring": {"n": format!("{}.none", id("a"))}}});
    let update =
        move |app: Arc<App>| async move { app.update(&caller(), id("b"), updates(wired)).await };
    assert!(soon(b.w.call(update)).await.unwrap().is_ok());
    assert!(b.next(9).await.is_empty());
    assert_eq!(b.w.status("b").await, Some(Status::Pending));
    let refused = b.try_claim("b").await;
    let Err(Error::ContractBroken { breach, .. }) = refused else {
        panic!("{refused:?}");
    };
    let found = Broken::Inputs {
        unresolvable_refs: vec!["a.none".to_owned()],
        incomplete: Vec::new(),
    };
    assert_eq!(breach.broken, found);
}

#[tokio::test]
async fn a_task_is_claimed_once_its_inputs_are_mended() {
    let b = Broker::running().await;
    with_wired_task(&b).await;
    let first = b.next(9).await;
    assert!(
        b.complete(&first[0], json!({"size": {}, "w": 3}))
            .await
            .is_ok()
    );
    let worker = b.waits("worker");
    let mended =
        json!({"schemas": {"method": "resize", "wiring": {"n": format!("{}.w", id("a"))}}});
    let update =
        move |app: Arc<App>| async move { app.update(&caller(), id("b"), updates(mended)).await };
    assert!(soon(b.w.call(update)).await.unwrap().is_ok());
    let claims = soon(worker).await.unwrap().expect("it is answered").claims;
    assert_eq!(claims[0].task.id, id("b"));
    assert_eq!(claims[0].input.to_map()["n"], 3);
}

#[tokio::test]
async fn a_copy_without_its_dependency_waits_alone_and_gets_no_result_of_the_original() {
    let b = Broker::running().await;
    let second = claim_of_wired_task(&b).await;
    assert!(b.complete(&second, json!({})).await.is_ok());
    let copied = soon(b.w.app.copy(&caller(), id("b"), false, None)).await;
    let Ok(Reply::Copied(copied)) = copied else {
        panic!("{copied:?}");
    };
    let run = Target::Stored(copied.copy);
    let executed =
        b.w.app
            .execute(&caller(), run, ExecuteOptions::default())
            .await;
    assert!(executed.is_ok());
    b.execute(json!([task("c", "resize")])).await;
    let claims = b.next(9).await;
    let claimed: Vec<_> = claims.iter().map(|claim| claim.task.id).collect();
    assert_eq!(claimed, [id("c")]);
    let wanted = Wanted::Task(copied.copy);
    let claim = b.claims(caller(), "worker", wanted, 1, Duration::ZERO);
    let refused = soon(claim).await.unwrap();
    assert!(
        matches!(&refused, Err(Error::ContractBroken { breach, .. }) if matches!(breach.broken, Broken::Inputs { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_output_that_breaks_its_contract_is_refused_and_may_be_repeated() {
    let b = Broker::running().await;
    let mut declared = task("a", "resize");
    declared["schemas"]["outputs"] = json!({
        "width": "integer", "tags": {"type": "array<string>", "required": false},
    });
    b.execute(json!([declared])).await;
    let held = b.claim("a").await;
    for _ in 0..2 {
        let refused = b.complete(&held, json!({"tags": ["x", 1]})).await;
        let Err(Error::ContractBroken { breach, .. }) = refused else {
            panic!("{refused:?}");
        };
        let Broken::Output(fault) = &breach.broken else {
            panic!("{breach:?}");
        };
        assert_eq!(
            (breach.phase_name.as_deref(), fault.name()),
            (Some("a"), "MissingOutputError")
        );
        assert_eq!(fault.missing, ["width"]);
        assert_eq!(fault.mismatches[0].pointer, "/tags/1");
    }
    let refused = b.complete(&held, json!({"width": true})).await;
    assert!(matches!(refused, Err(Error::ContractBroken { .. })));
    let kinds = b.w.kinds(flow("a")).await;
    let rejected = kinds
        .iter()
        .filter(|kind| **kind == "TaskCompletionRejected");
    assert_eq!(rejected.count(), 2, "an equal repetition says nothing new");

    let output = json!({"width": 3, "more": null});
    assert!(b.complete(&held, output.clone()).await.is_ok());
    assert_eq!(b.w.status("a").await, Some(Status::Completed));
    // The first outcome counts, whatever is said now.
    assert!(b.complete(&held, output).await.is_ok());
    assert_eq!(lost(b.complete(&held, json!({})).await), LeaseLoss::Ended);
}

#[tokio::test]
async fn an_output_that_is_refused_waits_through_a_restart() {
    let b = Broker::running().await;
    let mut declared = task("a", "resize");
    declared["schemas"]["outputs"] = json!({"width": "integer"});
    b.execute(json!([declared])).await;
    let held = b.claim("a").await;
    assert!(b.complete(&held, json!({})).await.is_err());
    tokio::time::resume();
    let b = b.restarted().await.run().await;
    assert!(b.complete(&held, json!({})).await.is_err());
    assert!(b.complete(&held, json!({"width": 1})).await.is_ok());
    let kinds = b.w.kinds(flow("a")).await;
    let rejected = kinds
        .iter()
        .filter(|kind| **kind == "TaskCompletionRejected");
    assert_eq!(rejected.count(), 1);
}
