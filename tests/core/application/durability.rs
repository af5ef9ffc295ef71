//! Answers and effects wait until what they rest on is durable.

use crate::application::world::{
    World, caller, foreign_rename, metadata, quiet, refused, soon, task,
};
use futures_util::FutureExt;
use serde_json::json;
use taskledger::application::Consistency;
use taskledger::application::rows::Cached;
use taskledger::application::watching::ConfirmedReads;
use taskledger::subscription::live::Reads;
use taskledger_domain::flow::Kind;
use taskledger_domain::testing::id;

#[tokio::test]
async fn a_create_is_not_answered_before_its_append_is() {
    let w = World::new().await;
    let mut hold = w.faults.hold_next_append();
    let create = w.create(caller(), json!({"name": "a"}));
    hold.arrived().await;
    quiet().await;
    assert!(!create.is_finished(), "nothing is durable yet");
    hold.release();
    assert_eq!(soon(create).await.unwrap().unwrap()["status"], "pending");
}

#[tokio::test]
async fn a_refusal_on_undurable_state_is_answered_when_that_is_durable() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_answer();
    let first = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    hold.arrived().await;
    let second = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    quiet().await;
    assert!(
        !second.is_finished(),
        "the deletion that refuses it may still be lost"
    );
    hold.release();
    assert!(soon(first).await.unwrap().is_ok());
    assert_eq!(refused(soon(second).await.unwrap()), Kind::NotFound);
}

#[tokio::test]
async fn a_read_that_is_waited_for_shows_the_event() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let reads = ConfirmedReads {
        positions: w.app.positions.clone(),
        ownership: w.app.flows.ownership().clone(),
    };
    assert!(matches!(w.app.rows.view(id("a"), None), Cached::View(_)));
    let mut hold = w.faults.hold_next_answer();
    let delete = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    hold.arrived().await;
    let head = *w.app.store.watch().borrow();
    let mut shown = reads.show(id("root").as_flow(), head);
    assert!(
        shown.as_mut().now_or_never().is_none(),
        "the deletion is in the log, and reads do not show it"
    );
    hold.release();
    soon(shown).await;
    assert!(matches!(w.app.rows.view(id("a"), None), Cached::Miss));
    assert!(soon(delete).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_refusal_is_taken_back_when_the_state_it_rested_on_is_lost() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    w.faults.unknown_instead_of_next_append();
    let mut hold = w.faults.hold_next_append();
    let delete = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    hold.arrived().await;
    let again = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    hold.release();
    assert!(
        soon(delete).await.unwrap().is_ok(),
        "decided again, because it was not written"
    );
    assert_eq!(refused(soon(again).await.unwrap()), Kind::NotFound);
}

#[tokio::test]
async fn an_executor_is_not_launched_before_its_start_is_durable() {
    let w = World::new().await;
    let mut hold = w.faults.hold_next_append();
    let run = w.execute(caller(), json!([task("a", "work")]));
    hold.arrived().await;
    quiet().await;
    assert_eq!(w.script.launches(), []);
    hold.release();
    assert!(soon(run).await.unwrap().is_ok());
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
}

#[tokio::test]
async fn an_executor_whose_start_was_not_written_is_never_launched() {
    let w = World::new().await;
    w.faults
        .refuse_next_append(taskledger::store::Error::NotWritable("full".to_owned()));
    let run = w.execute(caller(), json!([task("a", "work")]));
    assert!(soon(run).await.unwrap().is_err());
    quiet().await;
    assert_eq!(w.script.launches(), []);
    assert_eq!(
        w.app
            .flows
            .slots()
            .usage()
            .iter()
            .map(|(_, taken, _)| taken)
            .sum::<usize>(),
        0
    );
}

#[tokio::test]
async fn a_look_waits_until_what_it_saw_is_durable() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let delete = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    hold.arrived().await;
    let flows = w.app.flows.clone();
    let look = tokio::spawn(async move {
        flows
            .look(flow, metadata("look"), |f| f.task(id("a")).is_some())
            .await
    });
    quiet().await;
    assert!(!look.is_finished());
    hold.release();
    assert!(!soon(look).await.unwrap().unwrap());
    assert!(soon(delete).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_look_at_state_that_was_lost_is_taken_again() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let rename = w.rename("a", "mine");
    hold.arrived().await;
    let flows = w.app.flows.clone();
    let version =
        tokio::spawn(async move { flows.look(flow, metadata("look"), |f| f.version()).await });
    quiet().await;
    // Another server writes while the append is held, so what the look saw never comes true.
    w.foreign_write(flow, vec![foreign_rename("root")]).await;
    hold.release();
    assert!(soon(rename).await.unwrap().is_ok());
    assert_eq!(
        soon(version).await.unwrap().unwrap(),
        4,
        "two creations and both renames"
    );
}

#[tokio::test]
async fn a_read_never_sees_what_is_not_durable() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let rename = w.rename("a", "new");
    hold.arrived().await;
    quiet().await;
    let seen = w.call(|app| async move { app.get(&caller(), id("a"), Consistency::Strong).await });
    assert_eq!(soon(seen).await.unwrap().unwrap()["name"], "a");
    hold.release();
    assert!(soon(rename).await.unwrap().is_ok());
    let seen = w.call(|app| async move { app.get(&caller(), id("a"), Consistency::Strong).await });
    assert_eq!(soon(seen).await.unwrap().unwrap()["name"], "new");
}

#[tokio::test]
async fn commands_that_arrive_during_an_append_form_the_next_one_in_order() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    let before = w.faults.appends();
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "name 0");
    hold.arrived().await;
    let mut others = Vec::new();
    for n in 1..=20 {
        others.push(w.rename("a", &format!("name {n}")));
        quiet().await;
    }
    assert_eq!(w.faults.appends(), before + 1, "one append in flight");
    hold.release();
    assert!(soon(first).await.unwrap().is_ok());
    for other in others {
        assert!(soon(other).await.unwrap().is_ok());
    }
    assert_eq!(w.faults.appends(), before + 2, "all others in one append");
    let names: Vec<_> = w
        .history(flow)
        .await
        .iter()
        .filter_map(|r| match r.event.as_ref() {
            taskledger_domain::flow::Event::TaskRenamed(e) => Some(e.name.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        names,
        (0..=20).map(|n| format!("name {n}")).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn flows_do_not_wait_for_each_other() {
    let w = World::new().await;
    w.given_flow("slow", &[]).await;
    w.given_flow("quick", &[]).await;
    let mut hold = w.faults.hold_next_append();
    let slow = w.rename("slow", "x");
    hold.arrived().await;
    assert!(soon(w.rename("quick", "y")).await.unwrap().is_ok());
    assert!(!slow.is_finished());
    hold.release();
    assert!(soon(slow).await.unwrap().is_ok());
}
