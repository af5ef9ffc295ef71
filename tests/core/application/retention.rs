//! Finished flows leave the log: which, in what order, and what is said of them afterwards.

use crate::application::world::{World, caller, refused, soon, task};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use taskledger::application::history::{Query, Scope};
use taskledger::application::{AsOf, Consistency, Error, ExecuteOptions, Target};
use taskledger::retention::{AGE_MIN, Done, Follower, Pace, Policy, Retention, Unknown};
use taskledger::store::EventStore;
use taskledger::store::retention::Dropped;
use taskledger::transport::jsonrpc::tree_json::{ChildrenJson, TreeJson};
use taskledger_domain::flow::{Kind, Refusal, Rest};
use taskledger_domain::testing::id;
use taskledger_domain::{Position, TaskId};
use taskledger_projections::Order;
use tokio_util::sync::CancellationToken;

const HOUR_MS: u64 = 3_600_000;

/// Somebody who reads the log as far as the test says; a look at one who is late ends the pass.
struct Reader {
    at: AtomicU64,
    late: CancellationToken,
}

#[async_trait]
impl Follower for Reader {
    async fn position(&self) -> Result<Position, Unknown> {
        let at = self.at.load(Ordering::SeqCst);
        if at != u64::MAX {
            self.late.cancel();
        }
        Ok(at)
    }
}

fn reader(at: Position) -> Arc<Reader> {
    Arc::new(Reader {
        at: AtomicU64::new(at),
        late: CancellationToken::new(),
    })
}

fn retention(w: &World, follower: Arc<Reader>) -> Retention {
    let directory = w.app.directory.clone();
    Retention {
        by: taskledger_auth::By::server(),
        audit: None,
        store: w.app.store.clone(),
        flows: w.app.flows.clone(),
        queries: w.app.queries.clone(),
        projections: w.app.projections.clone(),
        follower,
        forget: Arc::new(move |gone| directory.forget(gone)),
        clock: w.app.clock.clone(),
    }
}

fn policy(archive: &Path, rest: Rest) -> Policy {
    Policy {
        age: AGE_MIN,
        rest,
        archive: archive.to_owned(),
        pace: Pace::Full,
    }
}

async fn pass(w: &World, archive: &Path, rest: Rest) -> Done {
    let retention = retention(w, reader(u64::MAX));
    let stop = CancellationToken::new();
    soon(retention.pass(&policy(archive, rest), &stop))
        .await
        .unwrap()
}

async fn world() -> World {
    let mut w = World::new().await;
    w.run_read_models();
    w
}

/// Runs a task of its own flow to its end.
async fn given_finished(w: &World, name: &str) {
    let before = *w.script.count().borrow();
    soon(w.execute(caller(), json!([task(name, "work")])))
        .await
        .unwrap()
        .unwrap();
    w.script.launched(before + 1).await;
    w.script.complete(name).await;
}

async fn get(w: &World, task: TaskId) -> Result<Value, Error> {
    let get = w.call(move |app| async move { app.get(&caller(), task, Consistency::Strong).await });
    soon(get).await.unwrap()
}

fn says_where(result: Result<Value, Error>, file: &str) {
    let Err(Error::Refused(refused)) = result else {
        panic!("expected a refusal, got {result:?}");
    };
    let Refusal::TaskArchived { file: told, .. } = &refused.refusal else {
        panic!("expected where the task is, got {refused:?}");
    };
    assert_eq!(told, file);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_flows_that_are_finished_and_old_enough_are_archived() {
    let w = world().await;
    let folder = tempfile::tempdir().unwrap();
    given_finished(&w, "old").await;
    w.given_flow("waiting", &["child"]).await;
    w.clock.advance_ms(HOUR_MS + 1);
    given_finished(&w, "young").await;

    let done = pass(&w, folder.path(), Rest::Finished).await;

    assert_eq!((done.flows, done.files.len()), (1, 1), "{done:?}");
    assert_eq!(done.dropped_events, done.events, "{done:?}");
    assert_eq!(w.kinds(id("old").as_flow()).await, ["FlowArchived"]);
    assert!(get(&w, id("young")).await.is_ok());
    assert!(get(&w, id("waiting")).await.is_ok());
    assert_eq!(
        pass(&w, folder.path(), Rest::Finished).await,
        Done::default()
    );

    let idle = pass(&w, folder.path(), Rest::Idle).await;

    assert_eq!(idle.flows, 1, "{idle:?}");
    assert!(get(&w, id("waiting")).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_an_archived_flow_is_told_where_it_went() {
    let w = world().await;
    let folder = tempfile::tempdir().unwrap();
    w.given_flow("r", &["a"]).await;
    let before = w.log.head().await.unwrap();
    w.clock.advance_ms(HOUR_MS + 1);
    let done = pass(&w, folder.path(), Rest::Idle).await;
    let file = done.files[0].as_str();
    let root = id("r");

    says_where(get(&w, root).await, file);
    let tree = w.call(move |app| async move {
        app.tree(&caller(), root, Consistency::Strong, TreeJson::default())
            .await
    });
    says_where(soon(tree).await.unwrap(), file);
    let children = w.call(move |app| async move {
        app.children(
            &caller(),
            root,
            Consistency::Strong,
            ChildrenJson::default(),
        )
        .await
    });
    says_where(soon(children).await.unwrap(), file);
    let explain = w.call(move |app| async move { app.explain(&caller(), root).await });
    says_where(soon(explain).await.unwrap(), file);
    let at = AsOf::Position(before);
    let then = w.call(move |app| async move { app.get_as_of(&caller(), root, at).await });
    says_where(soon(then).await.unwrap(), file);
    for scope in [Scope::Task, Scope::Flow] {
        let query = Query {
            task: root,
            scope,
            limit: 10,
            order: Order::Ascending,
            cursor: None,
            types: None,
        };
        let history = w.call(move |app| async move { app.history(&caller(), query).await });
        says_where(soon(history).await.unwrap(), file);
    }
    let run = w.call(move |app| async move {
        let options = ExecuteOptions::default();
        app.execute(&caller(), Target::Stored(root), options).await
    });
    says_where(soon(run).await.unwrap(), file);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_keeps_its_id_and_the_ids_below_are_free_again() {
    let w = world().await;
    let folder = tempfile::tempdir().unwrap();
    w.given_flow("r", &["a"]).await;
    assert!(get(&w, id("a")).await.is_ok());
    w.clock.advance_ms(HOUR_MS + 1);
    pass(&w, folder.path(), Rest::Idle).await;

    let again = json!({"id": id("r"), "name": "again"});
    let again = soon(w.create(caller(), again)).await.unwrap();
    assert_eq!(refused(again), Kind::Invalid);
    w.given_flow("other", &["a"]).await;

    assert_eq!(
        get(&w, id("a")).await.unwrap()["parent_id"],
        json!(id("other"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_dropped_before_everybody_has_seen_the_end() {
    let w = world().await;
    let folder = tempfile::tempdir().unwrap();
    w.given_flow("r", &["a"]).await;
    w.clock.advance_ms(HOUR_MS + 1);
    let late = reader(1);
    let retention = retention(&w, late.clone());
    let policy = policy(folder.path(), Rest::Idle);

    let done = soon(retention.pass(&policy, &late.late)).await.unwrap();

    assert_eq!((done.flows, done.undropped_flows), (1, 1), "{done:?}");
    assert_eq!(w.log.dropped().await.unwrap(), Dropped::default());
    assert_eq!(
        w.kinds(id("r").as_flow()).await.last(),
        Some(&"FlowArchived")
    );
    says_where(get(&w, id("r")).await, &done.files[0]);

    late.at.store(u64::MAX, Ordering::SeqCst);
    let rest = soon(retention.pass(&policy, &CancellationToken::new()))
        .await
        .unwrap();

    assert_eq!(
        (rest.flows, rest.dropped_events),
        (0, done.events),
        "{rest:?}"
    );
    assert_eq!(w.kinds(id("r").as_flow()).await, ["FlowArchived"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_that_cannot_be_written_leaves_every_flow() {
    let w = world().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    std::fs::write(&file, "").unwrap();
    w.given_flow("r", &[]).await;
    w.clock.advance_ms(HOUR_MS + 1);
    let retention = retention(&w, reader(u64::MAX));
    let policy = policy(&file.join("below"), Rest::Idle);

    let error = soon(retention.pass(&policy, &CancellationToken::new()))
        .await
        .unwrap_err();

    assert!(
        error.to_string().contains("cannot write to the archive"),
        "{error}"
    );
    assert!(get(&w, id("r")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_counts_and_changes_nothing() {
    let w = world().await;
    let folder = tempfile::tempdir().unwrap();
    w.given_flow("r", &["a", "b"]).await;
    w.clock.advance_ms(HOUR_MS + 1);
    let head = w.log.head().await.unwrap();
    let retention = retention(&w, reader(u64::MAX));
    let checkpoint = w.app.projections.wait_for(head, Duration::from_secs(30));
    checkpoint.await.unwrap();

    let done = retention
        .dry_run(&policy(folder.path(), Rest::Idle))
        .await
        .unwrap();

    assert_eq!((done.flows, done.events), (1, 3));
    assert_eq!(w.log.head().await.unwrap(), head);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
