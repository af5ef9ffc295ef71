//! What a group that failed, and a retry of a task in it, show in reads, in notices and in the past.

use crate::application::world::{World, caller, soon, task};
use serde_json::{Value, json};
use taskledger::application::{AsOf, Consistency, ExecuteOptions, Target};
use taskledger::store::EventStore;
use taskledger::subscription::notice::{Kind, notices};
use taskledger::transport::jsonrpc::tree_json::TreeJson;
use taskledger_domain::testing::id;
use taskledger_projections::{ListFilter, Order, Start};

const CHILDREN: [&str; 3] = ["a", "b", "c"];

/// A group of three tasks of which the last has failed.
async fn two_of_three() -> World {
    let mut w = World::new().await;
    w.run_read_models();
    let children = CHILDREN.map(|name| task(name, "work"));
    let tree = json!([{"id": id("root"), "name": "root", "children": children}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    w.script.launched(3).await;
    w.script.complete("a").await;
    w.script.complete("b").await;
    w.script.fail("c").await;
    w
}

async fn get(w: &World, name: &str) -> Value {
    let task = id(name);
    let read =
        w.call(move |app| async move { app.get(&caller(), task, Consistency::Strong).await });
    soon(read).await.unwrap().unwrap()
}

async fn tree(w: &World, name: &str) -> Value {
    let task = id(name);
    let read = w.call(move |app| async move {
        app.tree(&caller(), task, Consistency::Strong, TreeJson::default())
            .await
    });
    soon(read).await.unwrap().unwrap()
}

async fn now_as_of(w: &World, name: &str) -> Value {
    let (task, head) = (id(name), AsOf::Position(*w.log.watch().borrow()));
    let read = w.call(move |app| async move { app.get_as_of(&caller(), task, head).await });
    soon(read).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_progress_of_a_failed_group_is_the_same_wherever_it_is_told() {
    let w = two_of_three().await;
    let mean = json!(0.666_666);
    let list = w.call(move |app| async move {
        let (filter, order) = (ListFilter::default(), Order::default());
        app.list(
            &caller(),
            filter,
            order,
            Start::Offset(0),
            100,
            Consistency::Strong,
        )
        .await
    });
    let list = soon(list).await.unwrap().unwrap();
    let listed = list["tasks"].as_array().unwrap();
    let listed = listed.iter().find(|t| t["id"] == json!(id("root")));
    for (shown, place) in [
        (&get(&w, "root").await, "get"),
        (&tree(&w, "root").await["task"], "tree"),
        (&now_as_of(&w, "root").await, "as of"),
        (listed.unwrap(), "list"),
    ] {
        assert_eq!(shown["status"], "failed", "{place}");
        assert_eq!(shown["progress"], mean, "{place}");
    }
    let history = w.history(id("root").as_flow()).await;
    let all = history.iter().flat_map(|event| notices(event));
    let of_root = all.filter(|notice| notice.task_id == id("root"));
    let ends: Vec<_> = of_root
        .map(|notice| serde_json::to_value(&notice).unwrap())
        .filter(|notice| notice["status"] == "failed")
        .collect();
    assert_eq!(
        ends.len(),
        4,
        "a change, a failure, the verdict on the run, and its end"
    );
    assert!(ends.iter().all(|end| end["progress"] == mean), "{ends:?}");
    let counts = &ends[3]["run"]["counts"];
    assert_eq!(
        (&counts["completed"], &counts["failed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(counts, &get(&w, "root").await["run"]["counts"]);
}

#[tokio::test]
async fn after_a_retry_the_root_of_the_flow_shows_its_run_and_the_group_counts_all_tasks() {
    let w = two_of_three().await;
    let retry = w.call(|app| async move {
        app.retry(&caller(), id("c"), Default::default(), None)
            .await
    });
    let run = soon(retry).await.unwrap().unwrap()["run_id"].take();
    assert!(run.is_string());
    w.script.launched(4).await;
    let running = get(&w, "root").await;
    assert_eq!(
        (&running["run"]["id"], &running["run"]["state"]),
        (&run, &json!("running"))
    );
    w.script.complete("c").await;
    let root = get(&w, "root").await;
    assert_eq!(
        (&root["status"], &root["result"]),
        (
            &json!("completed"),
            &json!({"completed": 3, "failed": 0, "cancelled": 0})
        )
    );
    for (shown, place) in [
        (&root, "get of the flow's root"),
        (&tree(&w, "root").await["task"], "tree of the flow's root"),
        (&now_as_of(&w, "root").await, "the flow's root as of now"),
        (&get(&w, "c").await, "get of the run's root"),
        (&now_as_of(&w, "c").await, "the run's root as of now"),
    ] {
        assert_eq!(
            (&shown["run"]["id"], &shown["run"]["state"]),
            (&run, &json!("completed")),
            "{place}"
        );
    }
    assert_eq!(get(&w, "a").await["run"], Value::Null);
}

#[tokio::test]
async fn a_task_that_is_the_root_of_a_flow_shows_a_run_that_covers_it_too() {
    let mut w = World::new().await;
    w.run_read_models();
    let mut root = task("root", "work");
    let mut child = task("child", "work");
    child["dependencies"] = json!([{"id": id("root")}]);
    root["children"] = json!([child]);
    assert!(soon(w.create(caller(), root)).await.unwrap().is_ok());
    let execute = w.call(|app| async move {
        let (target, options) = (Target::Stored(id("child")), ExecuteOptions::default());
        app.execute(&caller(), target, options).await
    });
    let run = soon(execute).await.unwrap().unwrap()["run_id"].take();
    w.script.launched(1).await;
    w.script.complete("root").await;
    w.script.launched(2).await;
    w.script.complete("child").await;
    for name in ["root", "child"] {
        assert_eq!(get(&w, name).await["run"]["id"], run, "{name}");
    }
}

#[tokio::test]
async fn notices_of_every_attempt_have_the_same_names() {
    let w = two_of_three().await;
    let retry = w.call(|app| async move {
        app.retry(&caller(), id("c"), Default::default(), None)
            .await
    });
    assert!(soon(retry).await.unwrap().is_ok());
    w.script.launched(4).await;
    w.script.fail("c").await;
    let history = w.history(id("root").as_flow()).await;
    let kinds = |attempt: u32| -> Vec<Kind> {
        let all = history.iter().flat_map(|event| notices(event));
        all.filter(|n| n.task_id == id("c") && n.attempt == Some(attempt))
            .map(|n| n.kind)
            .collect()
    };
    assert_eq!(kinds(1), kinds(2));
    assert_eq!(
        kinds(2),
        [Kind::StatusUpdate, Kind::StatusUpdate, Kind::Failed]
    );
}
