//! Long answers: in pieces, only a few at once, and never quietly short.

use crate::application::world::{World, caller, is_busy, soon};
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use taskledger::application::api::{Cut, Encoded, Pieces};
use taskledger::application::{App, Consistency, Error};
use taskledger::transport::jsonrpc::text::{NotWhole, Text};
use taskledger::transport::jsonrpc::tree_json::{ChildrenJson, TreeJson};
use taskledger_domain::testing::id;
use tokio::task::JoinHandle;

/// More children than one piece holds, and more pieces than are read ahead.
const CHILDREN: usize = 2_000;

/// A world with a flow that is long to read.
async fn world() -> World {
    let mut w = World::new().await;
    let children: Vec<Value> = (0..CHILDREN)
        .map(|n| json!({"name": format!("task {n}")}))
        .collect();
    let tree = json!({"id": id("root"), "name": "root", "children": children});
    assert!(soon(w.create(caller(), tree)).await.unwrap().is_ok());
    w.run_read_models();
    w
}

async fn read(w: &World) -> Result<Encoded, Error> {
    soon(tree(&w.app, "root")).await
}

async fn tree(app: &App, name: &str) -> Result<Encoded, Error> {
    app.tree(
        &caller(),
        id(name),
        Consistency::Strong,
        TreeJson::default(),
    )
    .await
}

async fn children(app: &App, name: &str) -> Result<Encoded, Error> {
    app.children(
        &caller(),
        id(name),
        Consistency::Strong,
        ChildrenJson::default(),
    )
    .await
}

async fn pieces(w: &World) -> Pieces {
    match read(w).await {
        Ok(Encoded::Pieces(pieces)) => pieces,
        other => panic!("{other:?}"),
    }
}

/// A reader on a task of its own.
fn reader(w: &World) -> JoinHandle<Result<Encoded, Error>> {
    let app = w.app.clone();
    tokio::spawn(async move { tree(&app, "root").await })
}

#[tokio::test]
async fn a_long_answer_comes_in_pieces_that_make_one_text() {
    let w = world().await;
    let (mut count, mut all) = (0, Vec::new());
    let mut parts = pieces(&w).await;
    while let Some(piece) = soon(parts.try_next()).await.unwrap() {
        count += 1;
        all.extend(piece);
    }
    assert!(count > CHILDREN / 300, "{count}");
    let tree: Value = serde_json::from_slice(&all).unwrap();
    assert_eq!(tree["children"].as_array().map(Vec::len), Some(CHILDREN));
    let children = Text::from(soon(children(&w.app, "root")).await.unwrap());
    let children = soon(children.whole(usize::MAX)).await.unwrap();
    let children: Value = serde_json::from_str(children.get()).unwrap();
    for n in 0..CHILDREN {
        let name = json!(format!("task {n}"));
        assert_eq!(tree["children"][n]["task"]["name"], name);
        assert_eq!(children["children"][n]["name"], name);
    }
}

#[tokio::test]
async fn a_receiver_that_takes_no_long_answers_is_told_that_it_is_too_long() {
    let w = world().await;
    let whole = soon(Text::Pieces(pieces(&w).await).whole(100_000)).await;
    assert_eq!(whole.unwrap_err(), NotWhole::TooLong);
}

#[tokio::test]
async fn only_a_few_long_answers_are_read_at_once_and_short_ones_need_no_place() {
    let w = world().await;
    let (first, second) = (pieces(&w).await, pieces(&w).await);
    let short = soon(children(&w.app, "root")).await;
    assert!(is_busy(&short), "children are as long as the tree");
    let leaf = json!({"id": id("leaf"), "name": "leaf"});
    assert!(soon(w.create(caller(), leaf)).await.unwrap().is_ok());
    let short = soon(tree(&w.app, "leaf")).await;
    assert!(matches!(short, Ok(Encoded::Whole(_))));
    // Whoever goes makes room for whoever waits.
    let third = reader(&w);
    drop(first);
    assert!(matches!(soon(third).await.unwrap(), Ok(Encoded::Pieces(_))));
    drop(second);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_ends_in_an_error() {
    let w = world().await;
    let mut parts = pieces(&w).await;
    assert!(soon(parts.try_next()).await.unwrap().is_some());
    soon(w.app.readings.close()).await;
    let rest: Result<Vec<Vec<u8>>, Cut> = soon(parts.try_collect()).await;
    assert_eq!(rest, Err(Cut));
}

#[tokio::test]
async fn whoever_stops_reading_loses_the_place_to_others() {
    /// Each waits two seconds for a place, and five are allowed for a piece.
    const ATTEMPTS_MAX: usize = 1_000;
    let w = world().await;
    let (first, second) = (pieces(&w).await, pieces(&w).await);
    tokio::time::pause();
    let mut attempts = 0;
    while is_busy(&tree(&w.app, "root").await) {
        attempts += 1;
        assert!(attempts < ATTEMPTS_MAX, "the places stay taken");
    }
    tokio::time::resume();
    // One place is enough for the other reader, so one of the two may have kept its own.
    let rest = |parts: Pieces| soon(parts.try_collect::<Vec<_>>());
    let ends = [rest(first).await, rest(second).await];
    assert!(ends.contains(&Err(Cut)), "both whole answers came");
}
