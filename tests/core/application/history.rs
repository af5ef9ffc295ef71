//! `tasks.history` from the log: whole, in pages, of deleted tasks, while others write.

use crate::application::world::{World, caller, foreign_rename, refused, soon, task, updates};
use serde_json::{Value, json};
use taskledger::application::history::{Cursor, EventType, Query, SCANNED_MAX, Scope};
use taskledger::store::{Append, EventStore, NewEvent};
use taskledger_domain::flow::{Event, Kind, RunKind, RunStarted, TaskProgressed};
use taskledger_domain::task::Progress;
use taskledger_domain::testing::{START, id, run};
use taskledger_domain::{EventId, FlowId};
use taskledger_projections::Order;

fn all(name: &str) -> Query {
    Query {
        task: id(name),
        scope: Scope::Task,
        limit: 1000,
        order: Order::Ascending,
        cursor: None,
        types: None,
    }
}

async fn page(w: &World, query: Query) -> Value {
    soon(w.call(move |app| async move { app.history(&caller(), query).await }))
        .await
        .unwrap()
        .unwrap()
}

/// All pages, and how many there were.
async fn pages(w: &World, query: Query) -> (Vec<Value>, usize) {
    let (mut events, mut count, mut cursor) = (Vec::new(), 0, query.cursor);
    loop {
        let query = Query {
            cursor,
            ..query.clone()
        };
        let order = query.order;
        let mut found = page(w, query).await;
        count += 1;
        events.append(found["events"].as_array_mut().unwrap());
        let Some(next) = found["next_cursor"].as_str() else {
            return (events, count);
        };
        cursor = Some(Cursor::parse(next, order).unwrap());
    }
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|e| e["type"].as_str().unwrap()).collect()
}

fn sequences(events: &[Value]) -> Vec<u64> {
    events
        .iter()
        .map(|e| e["sequence"].as_u64().unwrap())
        .collect()
}

/// `root` over `a` and `b`, executed; `a` completed, `b` failed: the run has ended.
async fn ended() -> World {
    let w = World::new().await;
    let tree = json!([{"id": id("root"), "name": "root", "children": [task("a", "work"), task("b", "work")]}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    w.script.launched(2).await;
    w.script.complete("a").await;
    w.script.fail("b").await;
    w
}

#[tokio::test]
async fn a_task_shows_its_own_events_and_the_runs_that_covered_it() {
    let w = ended().await;
    let found = page(&w, all("a")).await;
    assert_eq!(found["task_id"], json!(id("a")));
    assert_eq!(found["root_task_id"], json!(id("root")));
    assert_eq!(found.get("next_cursor"), None);
    let events = found["events"].as_array().unwrap();
    assert_eq!(
        types(events),
        [
            "task_created",
            "run_started",
            "task_started",
            "task_completed",
            "run_ended"
        ]
    );
    assert_eq!(events[1]["data"]["covered_tasks"], 3);
    assert_eq!(events[1]["task_id"], json!(id("root")));
    assert_eq!(
        events[1]["data"].get("covers"),
        None,
        "ordinals do not leak"
    );
    assert_eq!(
        events[2]["data"]["status"],
        json!({"from": "pending", "to": "in_progress"})
    );
    assert_eq!(events[3]["data"]["attempt"], 1);
    assert_eq!(events[3]["causation_id"], events[2]["id"]);
    assert_eq!(events[4]["data"]["state"], "failed");
    assert_eq!(events[0]["actor"], "anonymous");
    assert_eq!(events[0]["correlation_id"], "request");
    assert_eq!(events[0].get("causation_id"), None);
    let failed = page(&w, all("b")).await;
    let failed = &failed["events"][3];
    assert_eq!(
        (
            &failed["data"]["error"],
            &failed["data"]["reason"],
            &failed["data"]["will_retry"]
        ),
        (&json!("boom"), &json!("executor"), &json!(false))
    );
}

#[tokio::test]
async fn a_flow_shows_all_of_its_events_without_gaps() {
    let w = ended().await;
    let query = Query {
        scope: Scope::Flow,
        ..all("b")
    };
    let (events, _) = pages(&w, query).await;
    let expected = w.history(id("root").as_flow()).await.len() as u64;
    assert_eq!(sequences(&events), (1..=expected).collect::<Vec<_>>());
}

#[tokio::test]
async fn pages_of_any_size_in_both_orders_give_the_same_events() {
    let w = ended().await;
    for scope in [Scope::Task, Scope::Flow] {
        let whole = Query { scope, ..all("a") };
        let (expected, _) = pages(&w, whole.clone()).await;
        for limit in 1..=expected.len() + 1 {
            for order in [Order::Ascending, Order::Descending] {
                let query = Query {
                    limit,
                    order,
                    ..whole.clone()
                };
                let (mut events, _) = pages(&w, query).await;
                if order == Order::Descending {
                    events.reverse();
                }
                assert_eq!(events, expected, "{scope:?} {order:?} {limit}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_written_between_two_pages_moves_nothing() {
    let w = ended().await;
    let query = Query {
        limit: 2,
        ..all("a")
    };
    let first = page(&w, query.clone()).await;
    let newest = Query {
        order: Order::Descending,
        ..query.clone()
    };
    let last = page(&w, newest.clone()).await;
    soon(w.rename("a", "later")).await.unwrap().unwrap();
    let on = |text: &Value, order| Cursor::parse(text.as_str().unwrap(), order);
    let (rest, _) = pages(
        &w,
        Query {
            cursor: on(&first["next_cursor"], Order::Ascending),
            ..query
        },
    )
    .await;
    assert_eq!(
        types(&rest),
        [
            "task_started",
            "task_completed",
            "run_ended",
            "task_renamed"
        ]
    );
    let (rest, _) = pages(
        &w,
        Query {
            cursor: on(&last["next_cursor"], Order::Descending),
            ..newest
        },
    )
    .await;
    assert_eq!(
        types(&rest),
        ["task_started", "run_started", "task_created"]
    );
}

#[tokio::test]
async fn types_choose_among_the_events() {
    let w = ended().await;
    let query = Query {
        types: Some(vec![EventType::TaskFailed, EventType::RunEnded]),
        ..all("b")
    };
    let (events, _) = pages(&w, query).await;
    assert_eq!(types(&events), ["task_failed", "run_ended"]);
}

#[tokio::test]
async fn a_deleted_task_keeps_its_history() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let a = id("a");
    let gone = soon(w.call(move |app| async move { app.delete(&caller(), a, false).await })).await;
    assert!(gone.unwrap().is_ok());
    let (events, _) = pages(&w, all("a")).await;
    assert_eq!(types(&events), ["task_created", "task_deleted"]);
    assert_eq!(
        events[1]["data"]["status"],
        json!({"from": "pending", "to": null})
    );
}

#[tokio::test]
async fn an_id_that_no_task_ever_had_has_no_history() {
    let w = World::new().await;
    let query = all("nobody");
    let result = soon(w.call(move |app| async move { app.history(&caller(), query).await })).await;
    assert_eq!(refused(result.unwrap()), Kind::NotFound);
}

#[tokio::test]
async fn a_moved_and_changed_task_shows_every_change() {
    let w = World::new().await;
    w.given_flow("root", &["a", "b", "c"]).await;
    let a = id("a");
    let changes = json!({"name": "new", "priority": 0, "user_id": "u", "parent_id": id("b"),
        "inputs": {"x": 1}, "dependencies": [{"id": id("c")}]});
    let update = w.call(move |app| async move { app.update(&caller(), a, updates(changes)).await });
    assert!(soon(update).await.unwrap().is_ok());
    let (events, _) = pages(&w, all("a")).await;
    let mut seen = types(&events);
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            "task_created",
            "task_dependencies_changed",
            "task_moved",
            "task_priority_changed",
            "task_renamed",
            "task_specification_changed",
            "task_user_changed"
        ]
    );
    let data = |kind: &str| &events.iter().find(|e| e["type"] == kind).unwrap()["data"];
    assert_eq!(data("task_moved"), &json!({"parent_id": id("b")}));
    assert_eq!(
        data("task_specification_changed")["inputs"],
        json!({"x": 1})
    );
    // Its name and its specification are both younger than its creation.
    assert_eq!(events[0]["data"]["name"], "a");
}

#[tokio::test]
async fn a_task_that_joined_a_run_shows_its_end_and_no_stranger_does() {
    let w = World::new().await;
    let tree = json!([{"id": id("root"), "name": "root", "children": [
        task("a", "work"), {"id": id("apart"), "name": "apart"}]}]);
    assert!(
        soon(w.create(caller(), tree[0].clone()))
            .await
            .unwrap()
            .is_ok()
    );
    let target = taskledger::application::Target::Stored(id("a"));
    let options = taskledger::application::ExecuteOptions::default();
    let run = w.call(move |app| async move { app.execute(&caller(), target, options).await });
    assert!(soon(run).await.unwrap().is_ok());
    w.script.launched(1).await;
    let mut late = task("late", "work");
    late["parent_id"] = json!(id("a"));
    assert!(soon(w.create(caller(), late)).await.unwrap().is_ok());
    w.script.launched(2).await;
    w.script.complete("a").await;
    w.script.complete("late").await;
    let (events, _) = pages(&w, all("late")).await;
    assert_eq!(
        types(&events),
        [
            "task_created",
            "task_started",
            "task_completed",
            "run_ended"
        ]
    );
    let (events, _) = pages(&w, all("apart")).await;
    assert_eq!(types(&events), ["task_created"]);
}

/// Many events of one task between the start of a run and its end.
async fn long(w: &World, flow: FlowId, reports: usize) {
    let event = |n: usize, event| {
        let id = EventId(id(&format!("event {n}")).0);
        NewEvent::new(
            id,
            START,
            crate::application::world::metadata("foreign"),
            event,
        )
    };
    let started = Event::RunStarted(RunStarted {
        run_id: run("long"),
        task_id: id("root"),
        kind: RunKind::Execute,
        covers: vec![(0, 1)],
        allow_unknown_executors: false,
        executor_wait_ms: 0,
        wait_bounds: Default::default(),
        callback: None,
        origin: None,
    });
    let mut events = vec![event(0, started)];
    events.extend((1..=reports).map(|n| {
        let progress = Progress::from_millionths(u32::try_from(n).unwrap());
        let report = TaskProgressed {
            task_id: id("a"),
            attempt: 1,
            progress,
            message: None,
            remarks: None,
        };
        event(n, Event::TaskProgressed(report))
    }));
    let ended = taskledger_domain::flow::RunEnded {
        run_id: run("long"),
        task_id: id("root"),
        state: taskledger_domain::flow::RunState::Completed,
        counts: Default::default(),
        root: taskledger_domain::testing::root_at_end(),
        others: 0,
        rejected: false,
    };
    events.push(event(reports + 1, Event::RunEnded(ended)));
    let expected = w.history(flow).await.len() as u64;
    for (n, part) in events.chunks(5000).enumerate() {
        let append = Append {
            stream: flow,
            expected: expected + 5000 * n as u64,
            events: part.to_vec(),
            claims: Vec::new(),
            fence: None,
        };
        w.log.inner().append(append).await.unwrap();
    }
}

#[tokio::test]
async fn a_page_reads_a_bounded_number_of_events_and_goes_on_where_it_stopped() {
    let w = World::new().await;
    w.given_flow("root", &["a", "b"]).await;
    long(&w, id("root").as_flow(), SCANNED_MAX * 2).await;
    for order in [Order::Ascending, Order::Descending] {
        let query = Query {
            order,
            types: Some(vec![EventType::RunEnded, EventType::TaskCreated]),
            ..all("root")
        };
        // The end of the run can be told to be the root's only once its start is found.
        let (mut events, count) = pages(&w, query.clone()).await;
        if order == Order::Descending {
            events.reverse();
        }
        assert_eq!(types(&events), ["task_created", "run_ended"]);
        assert!((3..=7).contains(&count), "{order:?}: {count} pages");
        // `b` is not covered.
        let (events, _) = pages(
            &w,
            Query {
                task: id("b"),
                ..query
            },
        )
        .await;
        assert_eq!(types(&events), ["task_created"]);
    }
}

#[tokio::test]
async fn the_search_for_an_old_creation_is_bounded_and_done_once() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    long(&w, id("root").as_flow(), SCANNED_MAX * 2).await;
    let a = id("a");
    let changes = updates(json!({"name": "new", "inputs": {"x": 1}}));
    let update = w.call(move |app| async move { app.update(&caller(), a, changes).await });
    assert!(soon(update).await.unwrap().is_ok());
    for order in [Order::Ascending, Order::Descending] {
        let query = Query {
            order,
            types: Some(vec![EventType::TaskCreated, EventType::TaskRenamed]),
            ..all("a")
        };
        let first = page(&w, query.clone()).await;
        assert_eq!(
            first["events"],
            json!([]),
            "the budget goes into the search"
        );
        let (mut events, count) = pages(&w, query.clone()).await;
        if order == Order::Descending {
            events.reverse();
        }
        assert_eq!(types(&events), ["task_created", "task_renamed"]);
        // Two for the search, and those of the scan.
        assert!((4..=6).contains(&count), "{order:?}: {count} pages");
        // A place that is not the creation is not believed.
        for forged in ["0~3", "0+3", "0+1"] {
            let text = match order {
                Order::Ascending => format!("a{forged}"),
                Order::Descending => format!("d9{forged}"),
            };
            let cursor = Cursor::parse(&text, order);
            let forged = Query {
                cursor,
                ..query.clone()
            };
            let (found, _) = pages(&w, forged).await;
            assert!(types(&found).contains(&"task_created"), "{text}");
        }
    }
}

#[tokio::test]
async fn what_another_server_wrote_is_seen_at_once() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    w.foreign_write(id("root").as_flow(), vec![foreign_rename("a")])
        .await;
    let (events, _) = pages(&w, all("a")).await;
    assert_eq!(types(&events), ["task_created", "task_renamed"]);
}

#[tokio::test]
async fn a_page_ends_when_it_holds_enough_bytes() {
    let w = World::new().await;
    w.given_flow("root", &[]).await;
    let megabyte = "x".repeat(1_000_000);
    for n in 0..20 {
        let mut large = task(&format!("large {n}"), "work");
        large["parent_id"] = json!(id("root"));
        large["inputs"] = json!({"text": megabyte});
        assert!(soon(w.create(caller(), large)).await.unwrap().is_ok());
    }
    let query = Query {
        scope: Scope::Flow,
        ..all("root")
    };
    let first = page(&w, query.clone()).await;
    let held = first["events"].as_array().unwrap().len();
    assert!((10..20).contains(&held), "{held}");
    let (events, count) = pages(&w, query).await;
    assert_eq!((events.len(), count), (21, 2));
}
