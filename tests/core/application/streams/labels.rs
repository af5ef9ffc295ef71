//! Notices say how their tasks are described, and are chosen by labels, in history and live.

use super::{World, flow, frames, soon, take};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::store::EventStore;
use taskledger::subscription::live::Published;
use taskledger::subscription::stream::{Filter, From};
use taskledger_domain::flow::{Event, LabelsChanged, TaskProgressed};
use taskledger_domain::task::{Labels, Progress, Selector};
use taskledger_domain::testing::{given, group, id};
use taskledger_domain::{FlowId, TaskId};

/// A root called `root`, and below it `data` with the label `team=data` and `ops` with `team=ops`.
async fn created(world: &World, flow: FlowId, names: [TaskId; 2]) {
    let labelled = |name: &str| Labels::parse(&json!({ "team": name })).unwrap();
    let mut root = group("root");
    root.id = flow.root();
    let mut tasks = vec![root];
    for (id, name) in names.into_iter().zip(["data", "ops"]) {
        let mut task = group(name);
        (task.id, task.parent, task.labels) = (id, Some(flow.root()), labelled(name));
        tasks.push(task);
    }
    for (_, event) in given(tasks).history {
        world.append(flow, event).await;
    }
}

fn moved(task_id: TaskId) -> Event {
    Event::TaskProgressed(TaskProgressed {
        task_id,
        attempt: 1,
        progress: Progress::ZERO,
        message: None,
        remarks: None,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_choose_the_same_in_history_and_live() {
    let (world, flow) = (World::new(), flow(0));
    let names = [id("data"), id("ops")];
    created(&world, flow, names).await;
    let mut labels = Selector::default();
    labels.add("team=data").unwrap();
    let filter = Filter {
        labels,
        ..Filter::default()
    };
    // Somebody who has come late knows how tasks are described, too.
    let mut late = world.stream(filter.clone(), From::Now).await;
    let mut history = world.stream(filter, From::Beginning).await;
    let first = frames(&mut history).await;
    for task in names.into_iter().chain([flow.root()]) {
        world.append(flow, moved(task)).await;
    }
    let told = take(&mut history, 2 - first.len()).await;
    let live = take(&mut late, 1).await;
    let all: Vec<Value> = first
        .iter()
        .chain(&told)
        .chain(&live)
        .map(|frame| serde_json::to_value(&frame.notice).unwrap())
        .collect();
    for notice in &all {
        assert_eq!(notice["name"], "data", "{notice}");
        assert_eq!(notice["labels"], json!({"team": "data"}));
        assert_eq!(notice["parent_id"], json!(flow.root()));
        assert_eq!(notice["task_id"], json!(names[0]));
    }
    assert_eq!(all.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_that_change_choose_from_then_on() {
    let (world, flow) = (World::new(), flow(0));
    let names = [id("data"), id("ops")];
    created(&world, flow, names).await;
    let mut labels = Selector::default();
    labels.add("stage").unwrap();
    let filter = Filter {
        labels,
        ..Filter::default()
    };
    let mut stream = world.stream(filter, From::Now).await;
    world.append(flow, moved(names[1])).await;
    let changed = LabelsChanged {
        task_id: names[1],
        labels: Labels::parse(&json!({"stage": "test"})).unwrap(),
    };
    world.append(flow, Event::LabelsChanged(changed)).await;
    world.append(flow, moved(names[0])).await;
    world.append(flow, moved(names[1])).await;
    let end = world.store.head().await.unwrap();
    let mut told = Vec::new();
    while told
        .last()
        .is_none_or(|it: &Arc<Published>| it.cursor.position < end)
    {
        told.extend(soon(take(&mut stream, 1)).await);
    }
    // What was told before may be told with the new labels; nothing is told without them.
    for published in &told {
        let notice = serde_json::to_value(&published.notice).unwrap();
        assert_eq!(notice["labels"], json!({"stage": "test"}));
        assert_eq!(notice["name"], "ops");
    }
}
