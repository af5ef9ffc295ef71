//! Quotas: what the flows of one user may take up, counted from rows.

use crate::application::world::{Make, World, caller, soon, task};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::Arc;
use taskledger::application::context::{Context, Idempotency};
use taskledger::application::limits::{Quota, QuotaOptions, RateOptions};
use taskledger::application::{Error, Target};
use taskledger_auth::{Caller, Name, Scope, Scopes};
use taskledger_domain::testing::id;

fn context(name: &str, scopes: Scopes) -> Context {
    let name = Name::new(name).expect("a name");
    Context::of(Arc::new(Caller::user(&name, scopes)), Arc::from("request"))
}

fn user(name: &str) -> Context {
    context(name, Scopes::of([Scope::TasksWrite, Scope::TasksRun]))
}

async fn world(open_flows: u32, waiting_tasks: u32) -> World {
    let quotas = QuotaOptions {
        open_flows: NonZeroU32::new(open_flows),
        waiting_tasks: NonZeroU32::new(waiting_tasks),
        ..QuotaOptions::default()
    };
    let mut w = World::made(Make {
        quotas,
        ..Make::default()
    })
    .await;
    w.run_read_models();
    w.run_flows();
    w
}

fn owned(name: &str, user: &str) -> Value {
    let mut task = task(name, "work");
    task["user_id"] = json!(user);
    task
}

/// What there is enough of, and how much there is.
async fn create(w: &World, who: Context, task: Value) -> Option<(Quota, u64)> {
    match soon(w.create(who, task)).await.expect("it does not panic") {
        Ok(_) => None,
        Err(Error::QuotaExceeded { quota, used, .. }) => Some((quota, used)),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_user_has_so_many_open_flows_and_others_do_not_count() {
    let w = world(2, 100).await;
    for name in ["a", "b"] {
        assert_eq!(create(&w, user("ann"), owned(name, "ann")).await, None);
    }
    let refused = create(&w, user("ann"), owned("c", "ann")).await;
    assert_eq!(refused, Some((Quota::OpenFlows, 2)));
    assert_eq!(create(&w, user("bob"), owned("d", "bob")).await, None);
    let operator = context("ann", Scopes::of([Scope::TasksWrite, Scope::UsersAny]));
    assert_eq!(create(&w, operator, owned("e", "ann")).await, None);
    assert_eq!(create(&w, caller(), owned("f", "ann")).await, None);
}

#[tokio::test]
async fn a_task_below_one_that_is_there_is_no_flow_but_waits() {
    let w = world(1, 3).await;
    assert_eq!(create(&w, user("ann"), owned("root", "ann")).await, None);
    let below = |name: &str| {
        let mut task = owned(name, "ann");
        task["parent_id"] = json!(id("root"));
        task
    };
    for name in ["b", "c"] {
        assert_eq!(create(&w, user("ann"), below(name)).await, None);
    }
    let refused = create(&w, user("ann"), below("d")).await;
    assert_eq!(refused, Some((Quota::WaitingTasks, 3)));
}

#[tokio::test]
async fn what_has_ended_makes_room() {
    let w = world(1, 100).await;
    assert_eq!(create(&w, user("ann"), owned("a", "ann")).await, None);
    assert!(create(&w, user("ann"), owned("b", "ann")).await.is_some());
    let run = w.call(|app| async move {
        let (target, options) = (Target::Stored(id("a")), Default::default());
        app.execute(&user("ann"), target, options).await
    });
    assert!(soon(run).await.unwrap().is_ok());
    w.script.launched(1).await;
    w.script.complete("a").await;
    // The rows follow the log: what was refused is looked at anew a moment later.
    soon(async {
        loop {
            w.clock.advance_ms(200);
            if create(&w, user("ann"), owned("b", "ann")).await.is_none() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_repetition_of_what_was_done_is_answered_when_there_is_enough() {
    let w = world(1, 100).await;
    let once = || Context {
        idempotency: Some(Idempotency::of(Arc::from("key"), Arc::from("body"))),
        ..user("ann")
    };
    let given = || json!({"name": "a", "user_id": "ann", "schemas": {"method": "work"}});
    let first = soon(w.create(once(), given()))
        .await
        .unwrap()
        .expect("it is created");
    assert!(create(&w, user("ann"), owned("b", "ann")).await.is_some());
    let again = soon(w.create(once(), given()))
        .await
        .unwrap()
        .expect("it is repeated");
    assert_eq!(first, again);
}

/// Waits until the rows show all that has happened.
async fn rows_are_there(w: &World) {
    soon(async {
        let head = w.app.store.watch();
        while w.app.projections.checkpoint() < *head.borrow() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A run of a stored task.
async fn run(w: &World, who: &str, name: &'static str) -> Option<(Quota, u64)> {
    let who = user(who);
    let run = w.call(move |app| async move {
        let (target, options) = (Target::Stored(id(name)), Default::default());
        app.execute(&who, target, options).await
    });
    match soon(run).await.expect("it does not panic") {
        Ok(_) => None,
        Err(Error::QuotaExceeded { quota, used, .. }) => Some((quota, used)),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_failed_and_would_wait_again_counts_as_waiting() {
    let w = world(10, 2).await;
    assert_eq!(create(&w, user("ann"), owned("a", "ann")).await, None);
    assert_eq!(run(&w, "ann", "a").await, None);
    w.script.launched(1).await;
    w.script.fail("a").await;
    // It waits no more, so there is room for two others.
    rows_are_there(&w).await;
    w.clock.advance_ms(1100);
    for name in ["b", "c"] {
        assert_eq!(create(&w, user("ann"), owned(name, "ann")).await, None);
    }
    assert_eq!(run(&w, "ann", "a").await, Some((Quota::WaitingTasks, 2)));
    assert_eq!(run(&w, "ann", "b").await, None, "it waits already");
}

#[tokio::test]
async fn a_copy_costs_what_its_tasks_cost() {
    let rates = RateOptions {
        per_second: Some(1),
        burst: NonZeroU32::new(10),
    };
    let mut w = World::made(Make {
        rates,
        ..Make::default()
    })
    .await;
    w.run_read_models();
    w.run_flows();
    assert_eq!(create(&w, user("ann"), owned("root", "ann")).await, None);
    for name in ["b", "c", "d"] {
        let mut task = owned(name, "ann");
        task["parent_id"] = json!(id("root"));
        assert_eq!(create(&w, user("ann"), task).await, None);
    }
    let copy = || {
        let copied = w.call(|app| async move {
            let who = user("ann");
            app.copy(&who, id("root"), true, None).await
        });
        soon(copied)
    };
    // Three tasks beyond the first one, each time.
    for _ in 0..3 {
        assert!(copy().await.expect("it does not panic").is_ok());
    }
    let refused = copy().await.expect("it does not panic");
    assert!(
        matches!(refused, Err(Error::RateLimited { .. })),
        "{refused:?}"
    );
}
