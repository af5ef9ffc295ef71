//! Several servers on the same rows, one of which folds; and a rebuild under way while they do.

use super::log::{Log, id};
use super::{PATIENCE, models};
use std::sync::Arc;
use std::time::Duration;
use taskledger::store::EventStore;
use taskledger::subscription::rebuild::{Error, Rebuilds, Status, beside};
use taskledger::subscription::runner::{Gather, Handle, Options, Service, State};
use taskledger_domain::{Payload, TaskId};
use taskledger_projections::{Error as ReadError, ReadModels};
use taskledger_testkit::ground::{Engine, Ground};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

taskledger_testkit::on_both_engines!(
    a_rebuild_on_a_running_server_changes_nothing_that_is_seen,
    a_rebuild_beside_rows_that_are_behind_folds_the_whole_log,
    a_rebuild_leaves_out_a_flow_that_cannot_be_folded,
);

/// A server, as far as its rows go.
struct Node {
    models: Arc<ReadModels>,
    handle: Handle,
    folds: watch::Sender<bool>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Node {
    async fn start(log: &Arc<Log>, ground: &Ground, folds: bool) -> Self {
        let options = Options {
            retry_first: Duration::from_millis(1),
            retry_max: Duration::from_millis(4),
            gather: Gather::NOTHING,
            gather_unread: Gather::NOTHING,
            fill_from: u64::MAX,
        };
        let models = models(ground).await;
        let store: Arc<dyn EventStore> = Arc::clone(log) as _;
        let (service, handle) = Service::new(store, models.clone(), options).await.unwrap();
        let (folds, seen) = watch::channel(folds);
        let stop = CancellationToken::new();
        let task = tokio::spawn(service.folding_while(seen).run(stop.clone()));
        Self {
            models,
            handle,
            folds,
            stop,
            task,
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test]
async fn whoever_does_not_fold_follows_and_takes_over_when_told() {
    let log = Log::new(None);
    for n in 1..=50 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(Engine::Postgres).await;
    let a = Node::start(&log, &ground, true).await;
    let b = Node::start(&log, &ground, false).await;
    for node in [&a, &b] {
        node.handle.wait_for(50, PATIENCE).await.unwrap();
    }
    for turn in 0..6 {
        let (folder, follower) = if turn % 2 == 0 { (&a, &b) } else { (&b, &a) };
        follower.folds.send_replace(false);
        folder.folds.send_replace(true);
        for n in 1..=5 {
            let position = log.rename(n);
            folder.handle.wait_for(position, PATIENCE).await.unwrap();
            follower.handle.wait_for(position, PATIENCE).await.unwrap();
            let seen = follower.models.get(TaskId(id(n))).await.unwrap().unwrap();
            assert_eq!(seen.row.position, position);
        }
    }
    // For a moment both believe that they fold; nothing is folded twice.
    a.folds.send_replace(true);
    for n in 51..=150 {
        log.create(n, Payload::empty());
    }
    let end = log.rename(51);
    for node in [&a, &b] {
        node.handle.wait_for(end, PATIENCE).await.unwrap();
    }
    let other = ground.another().await;
    let c = Node::start(&log, &other, true).await;
    c.handle.wait_for(end, PATIENCE).await.unwrap();
    assert_eq!(
        a.models.dump().await.unwrap(),
        c.models.dump().await.unwrap()
    );
    for node in [a, b, c] {
        node.stop().await;
    }
}

#[tokio::test]
async fn whoever_folds_again_does_not_need_the_connection_it_had() {
    let log = Log::new(None);
    log.create(1, Payload::empty());
    let ground = Ground::new(Engine::Postgres).await;
    let node = Node::start(&log, &ground, true).await;
    node.handle.wait_for(1, PATIENCE).await.unwrap();
    node.folds.send_replace(false);
    let (mut admin, _) = ground.admin().await;
    let ended: i64 = sqlx::query_scalar(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'taskledger read models'",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    assert_eq!(ended, 1);
    node.folds.send_replace(true);
    let end = log.rename(1);
    node.handle.wait_for(end, PATIENCE).await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn nobody_folds_while_nobody_is_told_to() {
    let log = Log::new(None);
    log.create(1, Payload::empty());
    let ground = Ground::new(Engine::Sqlite).await;
    let node = Node::start(&log, &ground, false).await;
    let lagging = node.handle.wait_for(1, Duration::ZERO).await.unwrap_err();
    assert!(!lagging.stopped);
    assert_eq!(node.models.checkpoint().await.unwrap(), 0);
    node.folds.send_replace(true);
    node.handle.wait_for(1, PATIENCE).await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn rows_of_another_version_are_replaced_by_whoever_folds() {
    let log = Log::new(None);
    for n in 1..=30 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(Engine::Postgres).await;
    let node = Node::start(&log, &ground, true).await;
    node.handle.wait_for(30, PATIENCE).await.unwrap();
    let expected = node.models.dump().await.unwrap();
    node.stop().await;
    let (mut db, schema) = ground.admin().await;
    let sql = format!("UPDATE {schema}.checkpoints SET version = 0, position = 7");
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .execute(&mut db)
        .await
        .unwrap();

    let node = Node::start(&log, &ground, true).await;

    node.handle.wait_for(30, PATIENCE).await.unwrap();
    assert_eq!(node.models.dump().await.unwrap(), expected);
    node.stop().await;
}

async fn a_rebuild_on_a_running_server_changes_nothing_that_is_seen(engine: Engine) {
    let log = Log::new(None);
    for n in 1..=3000 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let node = Node::start(&log, &ground, true).await;
    node.handle.wait_for(3000, PATIENCE).await.unwrap();
    let store: Arc<dyn EventStore> = log.clone();
    let rebuilds = Rebuilds::new(store.clone(), node.models.clone());
    assert_eq!(rebuilds.status(), None);

    assert_eq!(rebuilds.start().await.unwrap(), 3000);
    let refused = rebuilds.start().await.unwrap_err();
    assert!(
        matches!(refused, Error::ReadModels(ReadError::RebuildUnderWay)),
        "{refused:?}"
    );
    let mut n = 0;
    let done = loop {
        n = n % 3000 + 1;
        let position = log.rename(n);
        node.handle.wait_for(position, PATIENCE).await.unwrap();
        let seen = node.models.get(TaskId(id(n))).await.unwrap().unwrap();
        assert_eq!(seen.row.position, position);
        match rebuilds.status().unwrap() {
            Status::Running { .. } => {}
            Status::Done { position } => break position,
            Status::Failed { reason } => panic!("{reason}"),
        }
    };
    assert!(done >= 3000);
    let end = log.rename(1);
    node.handle.wait_for(end, PATIENCE).await.unwrap();
    let other = ground.another().await;
    let fresh = models(&other).await;
    beside(store, &fresh, |_, _| ()).await.unwrap();
    assert_eq!(
        node.models.dump().await.unwrap(),
        fresh.dump().await.unwrap()
    );
    rebuilds.close().await;
    node.stop().await;
}

async fn a_rebuild_beside_rows_that_are_behind_folds_the_whole_log(engine: Engine) {
    // More than fits into one batch.
    const EVENTS: u64 = 25_000;
    let log = Log::new(None);
    for n in 1..=EVENTS {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let behind = models(&ground).await;

    let mut told = Vec::new();
    let reached = beside(log, &behind, |at, of| told.push((at, of))).await;

    assert_eq!(reached.unwrap(), EVENTS);
    assert_eq!(behind.checkpoint().await.unwrap(), EVENTS);
    assert!(told.len() > 1, "{told:?}");
    assert_eq!(told.last(), Some(&(EVENTS, EVENTS)));
}

async fn a_rebuild_leaves_out_a_flow_that_cannot_be_folded(engine: Engine) {
    let log = Log::new(None);
    for n in 1..=5 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let node = Node::start(&log, &ground, true).await;
    node.handle.wait_for(5, PATIENCE).await.unwrap();
    // A task that does not exist.
    let bad = log.rename(99);
    log.create(6, Payload::empty());

    let reached = beside(log.clone(), &node.models, |_, _| ()).await.unwrap();

    assert_eq!(reached, 7);
    node.handle.wait_for(7, PATIENCE).await.unwrap();
    assert_eq!(node.handle.state(), State::Running);
    let damaged = node.models.damaged_flows();
    let named: Vec<_> = damaged.values().map(|it| it.position).collect();
    assert_eq!(named, [bad]);
    assert!(node.models.get(TaskId(id(6))).await.unwrap().is_some());
    node.stop().await;
}
