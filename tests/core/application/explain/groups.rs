//! What groups say of the tasks below them.

use super::*;

#[tokio::test]
async fn a_group_says_what_it_waits_for_and_then_what_harmed_it() {
    let w = world().await;
    executed(&w, json!([task("a", "work"), task("b", "work")])).await;
    w.script.launched(2).await;
    w.script.complete("a").await;
    let answer = explain(&w, "root").await;
    let reason = first(&answer);
    assert_eq!(reason["code"], "waits_for_descendants");
    assert_eq!(
        reason["counts"],
        json!({"open": 1, "completed": 1, "failed": 0, "cancelled": 0})
    );
    assert_eq!(reason["open"][0]["name"], "b");
    w.script.fail("b").await;
    let answer = explain(&w, "root").await;
    let reason = first(&answer);
    assert_eq!(
        (&reason["code"], &reason["reason"]),
        (&json!("failed"), &json!("group"))
    );
    assert_eq!(
        reason["harmed_by"],
        json!([{"id": id("b"), "name": "b", "status": "failed", "error": "boom"}])
    );
    assert_eq!(reason["retries"], "not_applicable");
}

#[tokio::test]
async fn a_group_names_the_tasks_that_it_counts_and_no_groups() {
    let w = world().await;
    let post = json!({"id": id("post"), "name": "post", "children": [task("inner", "work")]});
    executed(&w, json!([post, task("a", "work")])).await;
    w.script.launched(2).await;
    w.script.complete("a").await;
    let answer = explain(&w, "root").await;
    let reason = first(&answer);
    assert_eq!(
        answer["summary"],
        "`root` waits for 1 of 2 tasks below it: `inner` (in_progress)"
    );
    assert_eq!(reason["counts"]["open"], 1);
    assert_eq!(
        (&reason["open"], &reason["more"]),
        (
            &json!([{"id": id("inner"), "name": "inner", "status": "in_progress"}]),
            &json!(0)
        )
    );
}

#[tokio::test]
async fn a_group_says_that_a_drain_keeps_what_is_below_it_from_starting() {
    let mut w = world().await;
    w.executors.add("narrow", "narrow", 1, true);
    w.run_flows();
    executed(&w, json!([task("one", "narrow"), task("two", "narrow")])).await;
    w.script.launched(1).await;
    w.app.flows.hold_back(true);
    let codes = async |name: &str| {
        let answer = explain(&w, name).await;
        let reasons = answer["reasons"].as_array().unwrap().iter();
        reasons
            .map(|reason| reason["code"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // One task still runs, and its end is not held back.
    assert_eq!(codes("root").await, ["waits_for_descendants", "draining"]);
    w.script.complete("one").await;
    assert_eq!(codes("root").await, ["draining", "waits_for_descendants"]);
    let answer = explain(&w, "root").await;
    let summary = answer["summary"].as_str().unwrap();
    assert!(
        summary.contains("the server is draining: no task below it starts"),
        "{summary}"
    );
    assert_eq!(codes("two").await, ["draining", "waits_for_slot"]);
    w.app.flows.hold_back(false);
    w.script.launched(2).await;
    assert_eq!(codes("root").await, ["waits_for_descendants"]);
}

#[tokio::test]
async fn a_failed_flow_names_its_root_cause_and_a_retry_only_where_it_can_work() {
    let w = world().await;
    let inner = json!({"id": id("inner"), "name": "inner", "children": [task("bad", "work")]});
    let outer = json!({"id": id("outer"), "name": "outer", "children": [inner]});
    executed(&w, json!([outer, task("other", "work")])).await;
    w.script.launched(2).await;
    w.script.fail("bad").await;
    w.script.complete("other").await;
    let answer = explain(&w, "root").await;
    let summary = answer["summary"].as_str().unwrap();
    assert!(
        summary.ends_with("; root cause: `bad` failed: boom"),
        "{summary}"
    );
    let reason = first(&answer);
    assert_eq!(reason["harmed_by"][0]["name"], "bad");
    assert_eq!(reason["next_steps"][0]["method"], "tasks.retry");

    let w = world().await;
    executed(&w, json!([task("stopped", "work"), task("other", "work")])).await;
    w.script.launched(2).await;
    w.script.complete("other").await;
    let stopped = id("stopped");
    let cancel =
        w.call(move |app| async move { app.cancel(&caller(), stopped, false, None).await });
    assert!(soon(cancel).await.unwrap().is_ok());
    let answer = explain(&w, "root").await;
    let reason = first(&answer);
    assert_eq!(reason["code"], "failed");
    // A retry skips what was cancelled.
    let steps: Vec<_> = reason["next_steps"].as_array().unwrap().iter().collect();
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert_eq!(steps[0]["method"], "tasks.copy");
    assert_eq!(steps[0]["params"]["copy_children"], true);
}
