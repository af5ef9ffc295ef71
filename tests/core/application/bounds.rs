//! What a mailbox holds is bounded, for callers and not for the engine.

use crate::application::world::{World, caller, is_busy, quiet, soon, task, updates};
use serde_json::json;
use taskledger::application::mailbox::{BYTES_MAX, COMMANDS_MAX};
use taskledger::store::faulty::Hold;
use taskledger_domain::task::Status;
use taskledger_domain::testing::id;

/// A flow with one append in flight that does not end.
async fn stuck(w: &World, root: &str) -> Hold {
    let mut hold = w.faults.hold_next_append();
    drop(w.rename(root, "in flight"));
    hold.arrived().await;
    hold
}

#[tokio::test]
async fn a_full_mailbox_is_busy_while_outcomes_still_pass() {
    let w = World::new().await;
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    let hold = stuck(&w, "a").await;
    // One append is being filled behind the one in flight, and one mailbox behind that.
    let mut waiting = Vec::new();
    for half in ["next append", "mailbox"] {
        waiting.extend((0..COMMANDS_MAX).map(|n| w.rename("a", &format!("{half} {n}"))));
        quiet().await;
    }
    assert!(waiting.iter().all(|call| !call.is_finished()));
    let busy = soon(w.rename("a", "one too many")).await.unwrap();
    assert!(is_busy(&busy), "{busy:?}");
    let script = w.script.clone();
    let outcome = tokio::spawn(async move { script.complete("a").await });
    quiet().await;
    assert!(
        !outcome.is_finished(),
        "it waits in the mailbox like the others"
    );
    hold.release();
    for call in waiting {
        assert!(soon(call).await.unwrap().is_ok());
    }
    soon(outcome).await.unwrap();
    assert_eq!(w.status("a").await, Some(Status::Completed));
    assert!(
        soon(w.rename("a", "there is room again"))
            .await
            .unwrap()
            .is_ok()
    );
}

#[tokio::test]
async fn refusals_and_looks_count_too() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let hold = stuck(&w, "root").await;
    let refused = || {
        w.call(|app| async move {
            app.retry(&caller(), id("a"), Default::default(), None)
                .await
        })
    };
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.extend((0..COMMANDS_MAX).map(|_| refused()));
        quiet().await;
    }
    assert!(is_busy(&soon(refused()).await.unwrap()));
    hold.release();
    for call in waiting {
        assert!(soon(call).await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_mailbox_holds_so_many_bytes_of_commands() {
    let w = World::new().await;
    w.given_flow("root", &[]).await;
    let hold = stuck(&w, "root").await;
    let text = "x".repeat(1000 * 1000);
    let create = || {
        w.create(
            caller(),
            json!({"name": "big", "parent_id": id("root"), "inputs": {"text": text}}),
        )
    };
    let mut waiting = Vec::new();
    // Two go into the next append; the others wait in the mailbox.
    for _ in 0..2 + BYTES_MAX / text.len() {
        waiting.push(create());
        quiet().await;
    }
    assert!(waiting.iter().filter(|call| call.is_finished()).count() <= 1);
    assert!(is_busy(&soon(create()).await.unwrap()));
    let small = w.call(|app| async move {
        app.update(&caller(), id("root"), updates(json!({"name": "small"})))
            .await
    });
    quiet().await;
    assert!(!small.is_finished(), "a small one still fits");
    drop(waiting);
    hold.release();
    assert!(soon(small).await.unwrap().is_ok());
}

#[tokio::test]
async fn updates_weigh_what_they_carry() {
    let w = World::new().await;
    w.given_flow("root", &[]).await;
    let hold = stuck(&w, "root").await;
    let text = "x".repeat(1000 * 1000);
    let update = || {
        let changes = updates(json!({"name": "n", "dependencies": [], "inputs": {"text": text}}));
        w.call(move |app| async move { app.update(&caller(), id("root"), changes).await })
    };
    let waiting: Vec<_> = (0..3 + BYTES_MAX / text.len()).map(|_| update()).collect();
    quiet().await;
    // They first look at the specification, behind the append that is held; then they all change it.
    hold.release();
    let mut hold = w.faults.hold_next_append();
    hold.arrived().await;
    quiet().await;
    let busy = waiting.iter().filter(|call| call.is_finished()).count();
    assert!(busy >= 1, "more than the mailbox holds");
    drop(hold);
    for call in waiting {
        soon(call).await.unwrap().ok();
    }
}

#[tokio::test]
async fn wake_ups_of_a_stuck_flow_do_not_pile_up() {
    let w = World::new().await;
    let flow = w.given_flow("root", &[]).await;
    let hold = stuck(&w, "root").await;
    let waiting: Vec<_> = (0..COMMANDS_MAX)
        .map(|n| w.rename("root", &format!("name {n}")))
        .collect();
    quiet().await;
    (0..10 * COMMANDS_MAX).for_each(|_| w.app.flows.wake(flow));
    // Wake-ups take no place from callers.
    let more: Vec<_> = (0..COMMANDS_MAX)
        .map(|n| w.rename("root", &format!("more {n}")))
        .collect();
    quiet().await;
    assert!(more.iter().all(|call| !call.is_finished()));
    assert!(is_busy(
        &soon(w.rename("root", "one too many")).await.unwrap()
    ));
    hold.release();
    for call in waiting.into_iter().chain(more) {
        assert!(soon(call).await.unwrap().is_ok());
    }
}
