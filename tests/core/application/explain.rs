//! `tasks.explain`: names, errors, attempts, slots and people joined to the reasons of the rules.

mod groups;

use crate::application::world::{World, caller, quiet, refused, soon, task, user_named};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::application::Context;
use taskledger::application::slots::HOLDERS_MAX;
use taskledger::application::{ExecuteOptions, Target};
use taskledger_auth::{Caller, Name, Scope, Scopes};
use taskledger_domain::flow::Kind;
use taskledger_domain::testing::id;

async fn explain(w: &World, name: &str) -> Value {
    let task = id(name);
    soon(w.call(move |app| async move { app.explain(&caller(), task).await }))
        .await
        .unwrap()
        .unwrap()
}

/// The first reason, whose message the summary ends with.
fn first(answer: &Value) -> &Value {
    let reason = &answer["reasons"][0];
    let summary = answer["summary"].as_str().unwrap();
    assert!(summary.ends_with(reason["message"].as_str().unwrap()));
    assert!(summary.contains(answer["name"].as_str().unwrap()));
    reason
}

async fn executed(w: &World, children: Value) {
    let tree = json!([{"id": id("root"), "name": "root", "children": children}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
}

fn after(mut task: Value, on: &[&str]) -> Value {
    task["dependencies"] = on.iter().map(|name| json!({"id": id(name)})).collect();
    task
}

async fn world() -> World {
    let mut w = World::new().await;
    w.run_read_models();
    w
}

#[tokio::test]
async fn a_task_says_whether_it_was_ever_executed_and_how_that_run_ended() {
    let w = world().await;
    w.given_flow("never", &["a"]).await;
    let answer = explain(&w, "a").await;
    assert_eq!(first(&answer)["code"], "not_covered");
    assert_eq!(first(&answer)["executed"], false);
    assert_eq!(answer["root_task_id"], json!(id("never")));
    assert_eq!(
        first(&answer)["next_steps"][0],
        json!({"method": "tasks.execute", "params": {"task_id": id("a")}, "why": "run it", "when": "now"})
    );

    executed(
        &w,
        json!([task("bad", "work"), after(task("behind", "work"), &["bad"])]),
    )
    .await;
    w.script.launched(1).await;
    w.script.fail("bad").await;
    let answer = explain(&w, "behind").await;
    assert_eq!(
        first(&answer)["code"],
        "blocked",
        "a run alone would not help"
    );
    let reason = &answer["reasons"][1];
    assert_eq!(reason["code"], "not_covered");
    assert_eq!(
        (&reason["executed"], &reason["run_state"]),
        (&json!(true), &json!("failed"))
    );
    assert_eq!(reason["run_root_task_id"], json!(id("root")));
    assert_eq!(answer["skipped"], true);
    let answer = explain(&w, "root").await;
    assert_eq!(
        first(&answer)["not_done"],
        json!([{"id": id("behind"), "name": "behind", "status": "pending", "skipped": true}])
    );
}

#[tokio::test]
async fn a_task_that_its_run_may_still_reach_is_not_skipped() {
    let w = world().await;
    let after_long = after(task("behind", "work"), &["long"]);
    executed(&w, json!([task("long", "work"), after_long])).await;
    w.script.launched(1).await;
    assert_eq!(explain(&w, "behind").await.get("skipped"), None);
}

#[tokio::test]
async fn a_blocked_task_shows_the_chain_the_error_and_how_to_go_on() {
    let w = world().await;
    executed(
        &w,
        json!([
            task("bad", "work"),
            after(task("middle", "work"), &["bad"]),
            after(task("end", "work"), &["middle"]),
            task("long", "work"),
        ]),
    )
    .await;
    w.script.launched(2).await;
    w.script.fail("bad").await;
    let answer = explain(&w, "end").await;
    let reason = first(&answer);
    assert_eq!(reason["code"], "blocked");
    let names: Vec<_> = reason["chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["name"])
        .collect();
    assert_eq!(names, ["middle", "bad"]);
    assert_eq!(
        reason["root_cause"],
        json!({"id": id("bad"), "name": "bad", "status": "failed", "error": "boom", "reason": "executor"})
    );
    let steps: Vec<_> = reason["next_steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (&s["method"], &s["params"]["task_id"]))
        .collect();
    assert_eq!(
        steps,
        [
            (&json!("tasks.update"), &json!(id("middle"))),
            (&json!("tasks.retry"), &json!(id("bad")))
        ]
    );
    assert_eq!(reason["next_steps"][1]["when"], "after_run");
    assert!(reason["message"].as_str().unwrap().contains("boom"));
    assert_eq!(answer["reasons"][1]["code"], "waits_for_dependencies");
    assert_eq!(
        answer["reasons"][1]["dependencies"][0]["can_satisfy"],
        false
    );
}

#[tokio::test]
async fn a_running_task_says_since_when_which_attempt_and_its_timeout() {
    let w = world().await;
    let mut timed = task("timed", "work");
    timed["params"] =
        json!({"timeout_seconds": 5, "retry_count": 2, "deadline": "2099-01-01T00:00:00Z"});
    executed(&w, json!([timed])).await;
    w.script.launched(1).await;
    let answer = explain(&w, "timed").await;
    let reason = first(&answer);
    assert_eq!(reason["code"], "running");
    assert_eq!(
        (&reason["attempt"], &reason["max_attempts"]),
        (&json!(1), &json!(3))
    );
    assert!(reason["since"].is_string() && reason["timeout_at"].is_string());
    assert_eq!(reason["run_root_task_id"], json!(id("root")));
    assert_eq!(answer["attempts"][0]["attempt"], 1);
    assert_eq!(answer["reasons"][1]["code"], "deadline");
    assert_eq!(answer["reasons"][1]["of"]["name"], "timed");

    w.script.fail("timed").await;
    let answer = explain(&w, "timed").await;
    let reason = first(&answer);
    assert_eq!(reason["code"], "waits_for_retry");
    assert_eq!(
        (&reason["attempt"], &reason["last_error"]),
        (&json!(2), &json!("boom"))
    );
}

#[tokio::test]
async fn ended_tasks_show_their_attempts_and_whether_retries_were_left() {
    let w = world().await;
    let mut twice = task("twice", "work");
    twice["params"] = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 0}});
    executed(
        &w,
        json!([twice, task("good", "work"), task("once", "work")]),
    )
    .await;
    w.script.launched(3).await;
    w.script.fail("twice").await;
    w.script.launched(4).await;
    w.script.fail("twice").await;
    w.clock.advance_ms(40);
    w.script.complete("good").await;
    w.script.fail("once").await;
    let answer = explain(&w, "twice").await;
    let reason = first(&answer);
    assert_eq!(
        (&reason["retries"], &reason["error"]),
        (&json!("exhausted"), &json!("boom"))
    );
    let errors: Vec<_> = answer["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["error"])
        .collect();
    assert_eq!(errors, ["boom", "boom"]);
    let summary = answer["summary"].as_str().unwrap();
    assert!(
        summary.contains("failed in the last of 2 attempts"),
        "{summary}"
    );
    let retry = w.call(|app| async move {
        app.retry(&caller(), id("twice"), Default::default(), None)
            .await
    });
    assert!(soon(retry).await.unwrap().is_ok());
    w.script.launched(5).await;
    w.script.fail("twice").await;
    w.script.launched(6).await;
    w.script.fail("twice").await;
    let again = explain(&w, "twice").await;
    let summary = again["summary"].as_str().unwrap();
    assert!(
        summary.contains("failed in attempt 4, the last of 2 in its run"),
        "{summary}"
    );
    let answer = explain(&w, "once").await;
    assert_eq!(first(&answer)["retries"], "not_asked_for");
    let answer = explain(&w, "good").await;
    let reason = first(&answer);
    assert_eq!(
        (&reason["code"], &reason["duration_ms"]),
        (&json!("completed"), &json!(40))
    );
    assert_eq!(reason["attempt"], 1);
}

#[tokio::test]
async fn a_cancelled_task_says_by_whom_and_through_which_group() {
    let w = world().await;
    executed(
        &w,
        json!([{"id": id("inner"), "name": "inner", "children": [task("a", "work")]}]),
    )
    .await;
    w.script.launched(1).await;
    let (root, who) = (
        id("root"),
        Context {
            caller: user_named("alice"),
            ..caller()
        },
    );
    let cancel = w.call(move |app| async move {
        app.cancel(&who, root, false, Some("no longer needed".to_owned()))
            .await
    });
    assert!(soon(cancel).await.unwrap().is_ok());
    let answer = explain(&w, "a").await;
    let reason = first(&answer);
    assert_eq!(
        (&reason["code"], &reason["actor"]),
        (&json!("cancelled"), &json!("user:alice"))
    );
    assert_eq!(reason["reason"], "requested");
    assert_eq!(reason["error"], "no longer needed");
    assert_eq!(reason["through"]["name"], "root");
    let answer = explain(&w, "root").await;
    assert_eq!(first(&answer).get("through"), None);
}

#[tokio::test]
async fn a_task_cancelled_alone_names_nobody_around_it() {
    let w = world().await;
    executed(&w, json!([task("a", "work"), task("b", "work")])).await;
    w.script.launched(2).await;
    for name in ["a", "root"] {
        w.clock.advance_ms(1);
        let task = id(name);
        let cancel =
            w.call(move |app| async move { app.cancel(&caller(), task, false, None).await });
        assert!(soon(cancel).await.unwrap().is_ok());
    }
    assert_eq!(first(&explain(&w, "a").await).get("through"), None);
    assert_eq!(first(&explain(&w, "b").await)["through"]["name"], "root");
}

#[tokio::test]
async fn a_task_without_a_slot_says_who_holds_them_and_who_is_ahead() {
    let w = world().await;
    w.executors.add("narrow", "narrow", 2, true);
    executed(&w, json!([task("one", "narrow"), task("two", "narrow")])).await;
    w.script.launched(2).await;
    let alone = async |name: &str, priority: u8| {
        let mut alone = task(name, "narrow");
        alone["priority"] = json!(priority);
        assert!(soon(w.create(caller(), alone)).await.unwrap().is_ok());
        let (target, options) = (Target::Stored(id(name)), ExecuteOptions::default());
        let run = w.call(move |app| async move { app.execute(&caller(), target, options).await });
        assert!(soon(run).await.unwrap().is_ok());
        w.clock.advance_ms(1);
    };
    alone("urgent", 0).await;
    alone("late", 2).await;
    let answer = explain(&w, "late").await;
    let reason = first(&answer);
    assert_eq!(reason["code"], "waits_for_slot");
    assert_eq!(
        (&reason["executor"], &reason["limit"], &reason["running"]),
        (&json!("narrow"), &json!(2), &json!(2))
    );
    assert_eq!(
        (&reason["flows_ahead"], &reason["ahead_in_flow"]),
        (&json!(1), &json!(0))
    );
    let mut holders: Vec<_> = reason["holders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| (h["name"].as_str().unwrap(), h["root_task_id"].clone()))
        .collect();
    holders.sort_by_key(|(name, _)| *name);
    assert_eq!(
        holders,
        [("one", json!(id("root"))), ("two", json!(id("root")))]
    );
    assert_eq!(reason["more_flows_ahead"], false);
    let answer = explain(&w, "urgent").await;
    assert_eq!(first(&answer)["flows_ahead"], 0);
}

#[tokio::test]
async fn only_some_holders_of_a_wide_executor_are_named() {
    let w = world().await;
    w.executors.add("wide", "wide", HOLDERS_MAX + 5, true);
    let tasks: Vec<Value> = (0..HOLDERS_MAX + 6)
        .map(|n| task(&format!("t{n}"), "wide"))
        .collect();
    executed(&w, json!(tasks)).await;
    w.script.launched(HOLDERS_MAX + 5).await;
    quiet().await;
    let last = format!("t{}", HOLDERS_MAX + 5);
    let answer = explain(&w, &last).await;
    let reason = first(&answer);
    assert_eq!(
        reason["holders"].as_array().map(Vec::len),
        Some(HOLDERS_MAX)
    );
    assert_eq!(reason["holders_more"], 5);
}

#[tokio::test]
async fn a_task_waits_for_its_executor_until_a_time() {
    let w = world().await;
    assert!(
        soon(w.create(caller(), task("a", "absent")))
            .await
            .unwrap()
            .is_ok()
    );
    let options = ExecuteOptions {
        allow_unknown_executors: true,
        executor_wait_ms: 1000,
        ..ExecuteOptions::default()
    };
    let target = Target::Stored(id("a"));
    let run = w.call(move |app| async move { app.execute(&caller(), target, options).await });
    assert!(soon(run).await.unwrap().is_ok());
    let answer = explain(&w, "a").await;
    let reason = first(&answer);
    assert_eq!(
        (&reason["code"], &reason["executor"]),
        (&json!("waits_for_executor"), &json!("absent"))
    );
    assert!(reason["until"].is_string());
}

#[tokio::test]
async fn what_does_not_exist_any_more_is_not_explained() {
    let w = world().await;
    w.given_flow("root", &["a"]).await;
    let a = id("a");
    let gone = w.call(move |app| async move { app.delete(&caller(), a, false).await });
    assert!(soon(gone).await.unwrap().is_ok());
    for task in [a, id("nobody")] {
        let answer =
            soon(w.call(move |app| async move { app.explain(&caller(), task).await })).await;
        assert_eq!(refused(answer.unwrap()), Kind::NotFound);
    }
}

#[tokio::test]
async fn who_sees_only_their_own_flows_is_told_of_others_without_a_number() {
    let w = world().await;
    w.executors.add("narrow", "narrow", 2, true);
    let of = |user: &str| {
        let scopes = Scopes::all().without(Scope::UsersAny);
        let user = Name::new(user).expect("a name");
        Context::of(Arc::new(Caller::user(&user, scopes)), Arc::from("request"))
    };
    let run = async |name: &str, user: &str| {
        let tree = json!([task(name, "narrow")]);
        assert!(soon(w.execute(of(user), tree)).await.unwrap().is_ok());
        w.clock.advance_ms(1);
    };
    let told = async |name: &str, user: &str| {
        let (task, context) = (id(name), of(user));
        let call = w.call(move |app| async move { app.explain(&context, task).await });
        let answer = soon(call).await.unwrap().expect("it is there");
        first(&answer).clone()
    };
    for name in ["ann 1", "ann 2", "ann 3"] {
        run(name, "ann").await;
    }
    w.script.launched(2).await;
    run("bob", "bob").await;

    let reason = told("bob", "bob").await;

    let message = reason["message"].as_str().unwrap();
    assert!(
        message.contains("2 of 2 are taken, 0 tasks of its flow and a few other flows come first"),
        "{message}"
    );
    assert_eq!(reason["others_ahead"], "few");
    for member in ["flows_ahead", "more_flows_ahead"] {
        assert_eq!(reason.get(member), None, "{member} would be untrue");
    }
    assert_eq!(reason["holders"], json!([]));
    for n in 4..=13 {
        run(&format!("ann {n}"), "ann").await;
    }
    run("eve", "eve").await;
    let reason = told("eve", "eve").await;
    assert_eq!(reason["others_ahead"], "many");
    w.clock.advance_ms(1);
    // Nobody is before the first one in the line.
    let first_in_line = told("ann 3", "ann").await;
    assert_eq!(first_in_line["flows_ahead"], 0);
    assert_eq!(first_in_line.get("others_ahead"), None);
}
