//! Rows made anew beside those that serve, and what several processes do to the same rows.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod common;

use common::{Engine, Ground, World, empty, fed};
use sqlx::AssertSqlSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use taskledger_domain::Recorded;
use taskledger_projections::{Error, Found, ListFilter, Order, ReadModels, Rebuild, Start, Swap};

taskledger_testkit::on_both_engines!(
    rebuilt_rows_are_the_old_ones_while_others_write_and_read,
    a_rebuild_that_is_broken_off_leaves_the_old_rows,
    a_long_answer_ends_on_the_rows_it_began_with,
    new_rows_that_are_behind_do_not_serve,
    one_rebuild_at_a_time,
    two_writers_fold_nothing_twice,
);

fn world(seed: u64, steps: usize) -> World {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world
}

async fn fold(rebuild: &mut Rebuild, events: &[Arc<Recorded>]) {
    for events in events.chunks(50) {
        rebuild.apply(events).await.unwrap();
    }
}

async fn rebuilt_rows_are_the_old_ones_while_others_write_and_read(engine: Engine) {
    let world = world(31, 500);
    let (expected, _other) = fed(engine, &world.log, 100).await;
    let expected = expected.dump().await.unwrap();
    let half = world.log.len() / 2;
    let (models, _ground) = fed(engine, &world.log[..half], 50).await;
    let models = Arc::new(models);

    let swapped = Arc::new(AtomicBool::new(false));
    let task = world.log[0].flow.root();
    let reads = Arc::new(AtomicUsize::new(0));
    let reader = tokio::spawn({
        let (models, swapped, reads) = (models.clone(), swapped.clone(), reads.clone());
        async move {
            let (mut before, mut after) = (0, 0);
            // Goes on for a while behind the swap, on connections with statements of before.
            while after < 20 {
                let page = models
                    .list(
                        &ListFilter::default(),
                        Order::Descending,
                        20,
                        Start::Offset(0),
                    )
                    .await
                    .unwrap();
                assert_eq!(page.tasks.len(), 20);
                let list = page.total;
                assert!(list > 20);
                let mut tree = models
                    .tree(task)
                    .await
                    .unwrap()
                    .expect("it is never deleted");
                while !tree.next().await.unwrap().is_empty() {}
                if swapped.load(Ordering::SeqCst) {
                    after += 1;
                } else {
                    before += 1;
                }
                reads.fetch_add(1, Ordering::SeqCst);
            }
            before
        }
    });
    // However fast the rebuild is, something was read before it.
    while reads.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let writer = tokio::spawn({
        let (models, log) = (models.clone(), world.log.clone());
        async move {
            for events in log[half..].chunks(3) {
                models.apply(events).await.unwrap();
            }
        }
    });
    let mut rebuild = models.begin_rebuild().await.unwrap();
    fold(&mut rebuild, &world.log[..half]).await;
    let mut at = half;
    loop {
        match rebuild.swap().await.unwrap() {
            Swap::Done => break,
            Swap::InUse => tokio::task::yield_now().await,
            Swap::Behind(position) => {
                fold(&mut rebuild, &world.log[at..position as usize]).await;
                at = position as usize;
            }
        }
    }
    swapped.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    assert!(reader.await.unwrap() > 0, "it read before the swap too");
    models.apply(&world.log).await.unwrap();
    assert_eq!(models.dump().await.unwrap(), expected);
}

async fn a_rebuild_that_is_broken_off_leaves_the_old_rows(engine: Engine) {
    let world = world(32, 200);
    let (models, ground) = fed(engine, &world.log, 50).await;
    let models = Arc::new(models);
    let before = models.dump().await.unwrap();

    let mut rebuild = models.begin_rebuild().await.unwrap();
    fold(&mut rebuild, &world.log[..100]).await;
    drop(rebuild);
    assert_eq!(models.dump().await.unwrap(), before);
    drop(models);

    // As after a crash: the leftover does no harm, and the next rebuild begins at the beginning.
    let (models, found) = ReadModels::open(&ground.options()).await.unwrap();
    assert_eq!(found, Found::Usable);
    assert_eq!(models.dump().await.unwrap(), before);
    let models = Arc::new(models);
    let mut rebuild = loop {
        // The right to rebuild goes with a connection, whose end the server notices a moment later.
        match models.begin_rebuild().await {
            Err(Error::RebuildUnderWay) => tokio::task::yield_now().await,
            begun => break begun.unwrap(),
        }
    };
    fold(&mut rebuild, &world.log).await;
    assert_eq!(rebuild.swap().await.unwrap(), Swap::Done);
    assert_eq!(models.dump().await.unwrap(), before);
}

async fn a_long_answer_ends_on_the_rows_it_began_with(engine: Engine) {
    let world = world(33, 200);
    let (models, _ground) = fed(engine, &world.log, 50).await;
    let models = Arc::new(models);
    let mut rebuild = models.begin_rebuild().await.unwrap();
    fold(&mut rebuild, &world.log).await;
    let mut reading = models
        .tree(world.log[0].flow.root())
        .await
        .unwrap()
        .unwrap();

    assert_eq!(rebuild.swap().await.unwrap(), Swap::InUse);

    while !reading.is_ended() {
        reading.next().await.unwrap();
    }
    drop(reading);
    while rebuild.swap().await.unwrap() != Swap::Done {
        tokio::task::yield_now().await;
    }
    assert_eq!(models.checkpoint().await.unwrap(), world.log.len() as u64);
}

async fn new_rows_that_are_behind_do_not_serve(engine: Engine) {
    let world = world(34, 60);
    let (models, _ground) = fed(engine, &world.log, 50).await;
    let models = Arc::new(models);
    let before = models.dump().await.unwrap();
    let mut rebuild = models.begin_rebuild().await.unwrap();
    fold(&mut rebuild, &world.log[..20]).await;
    let end = world.log.len() as u64;
    assert_eq!(rebuild.swap().await.unwrap(), Swap::Behind(end));
    assert_eq!(models.dump().await.unwrap(), before);
    rebuild.abandon().await;
}

async fn one_rebuild_at_a_time(engine: Engine) {
    let (models, ground) = empty(engine).await;
    let models = Arc::new(models);
    let first = models.begin_rebuild().await.unwrap();
    let refused = models.begin_rebuild().await.unwrap_err();
    assert!(matches!(refused, Error::RebuildUnderWay), "{refused}");
    if engine == Engine::Postgres {
        let other = Arc::new(ground.open().await);
        let refused = other.begin_rebuild().await.unwrap_err();
        assert!(matches!(refused, Error::RebuildUnderWay), "{refused}");
    }
    first.abandon().await;
    while let Err(error) = models.begin_rebuild().await {
        assert!(matches!(error, Error::RebuildUnderWay), "{error}");
        tokio::task::yield_now().await;
    }
}

async fn two_writers_fold_nothing_twice(engine: Engine) {
    let world = world(35, 400);
    let (expected, _other) = fed(engine, &world.log, 100).await;
    let (models, ground) = empty(engine).await;
    let log = Arc::new(world.log.clone());
    // Neither may fold all of it before the other has begun.
    let begun = Arc::new(tokio::sync::Barrier::new(2));
    let fold = |models: ReadModels, batch: usize| {
        let (log, begun) = (log.clone(), begun.clone());
        tokio::spawn(async move {
            let (mut at, mut folded) = (0, 0);
            while at < log.len() {
                let end = (at + batch).min(log.len());
                match models.apply(&log[at..end]).await {
                    Ok(position) => {
                        folded += 1;
                        at = position as usize;
                        if folded == 1 {
                            begun.wait().await;
                        }
                    }
                    // The other one was first: go on from there.
                    Err(Error::CheckpointMoved { .. }) => {
                        at = models.checkpoint().await.unwrap() as usize;
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            (models, folded)
        })
    };
    let other = ground.open().await;
    let (first, second) = (fold(models, 3), fold(other, 5));
    let (models, a) = first.await.unwrap();
    let (_, b) = second.await.unwrap();
    assert!(a > 0 && b > 0, "both have folded: {a} and {b} batches");
    assert_eq!(models.dump().await.unwrap(), expected.dump().await.unwrap());
}

#[tokio::test]
async fn rows_of_another_version_serve_others_until_a_rebuild_takes_their_place() {
    let world = world(36, 80);
    let (models, ground) = fed(Engine::Postgres, &world.log, 50).await;
    let expected = models.dump().await.unwrap();
    models.close().await.unwrap();
    let (mut db, schema) = ground.admin().await;
    let sql = format!("UPDATE {schema}.checkpoints SET version = 99");
    sqlx::query(AssertSqlSafe(sql))
        .execute(&mut db)
        .await
        .unwrap();

    let (models, found) = ReadModels::open(&ground.options()).await.unwrap();

    assert!(
        matches!(&found, Found::Foreign(why) if why.contains("version 99")),
        "{found:?}"
    );
    let task = world.log[0].flow.root();
    let refused = models.get(task).await.unwrap_err();
    assert!(
        matches!(refused, Error::OtherVersion { found: 99 }),
        "{refused}"
    );
    let refused = models.apply(&world.log).await.unwrap_err();
    assert!(
        matches!(refused, Error::OtherVersion { found: 99 }),
        "{refused}"
    );
    let sql = format!("SELECT COUNT(*) FROM {schema}.tasks");
    let kept: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(&mut db)
        .await
        .unwrap();
    assert!(kept > 0, "what others read is still there");

    let models = Arc::new(models);
    let mut rebuild = models.begin_rebuild().await.unwrap();
    fold(&mut rebuild, &world.log).await;
    assert_eq!(rebuild.swap().await.unwrap(), Swap::Done);
    assert!(models.get(task).await.unwrap().is_some());
    assert_eq!(models.dump().await.unwrap(), expected);
}

#[tokio::test]
async fn progress_of_another_process_wakes_whoever_follows() {
    let world = world(37, 30);
    let (models, ground) = empty(Engine::Postgres).await;
    let other = ground.open().await;
    let mut elsewhere = other.elsewhere();
    elsewhere.changed().await; // it listens now
    models.apply(&world.log).await.unwrap();
    while other.checkpoint().await.unwrap() < world.log.len() as u64 {
        elsewhere.changed().await;
    }
}

#[tokio::test]
async fn a_fold_whose_connection_is_killed_goes_on_with_another() {
    let world = world(38, 300);
    let (expected, _other) = fed(Engine::Sqlite, &world.log, 100).await;
    let (models, ground) = empty(Engine::Postgres).await;
    let (mut db, _) = ground.admin().await;
    let mut killed = 0;
    let mut at = 0;
    while at < world.log.len() {
        if at % 3 == 0 {
            let sql = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            let n: i64 = sqlx::query_scalar(sql).fetch_one(&mut db).await.unwrap();
            killed += n;
        }
        match models
            .apply(&world.log[at..(at + 10).min(world.log.len())])
            .await
        {
            Ok(position) => at = position as usize,
            Err(error) => assert!(error.is_passing(), "{error:?}"),
        }
    }
    assert!(killed > 0);
    assert_eq!(models.dump().await.unwrap(), expected.dump().await.unwrap());
}

#[tokio::test]
async fn a_connection_that_died_while_nobody_folded_is_replaced() {
    let world = world(40, 60);
    let (models, ground) = empty(Engine::Postgres).await;
    models.apply(&world.log[..20]).await.unwrap();
    models.forget().await;
    let (mut db, _) = ground.admin().await;
    let sql = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'taskledger read models'";
    sqlx::query(sql).execute(&mut db).await.unwrap();
    let end = world.log.len() as u64;
    assert_eq!(models.apply(&world.log).await.unwrap(), end);
}

#[tokio::test]
async fn a_network_that_falls_silent_holds_up_neither_the_fold_nor_the_end() {
    let world = world(41, 60);
    let ground = Ground::new(Engine::Postgres).await;
    let mut options = ground.options();
    let taskledger_projections::Place::Postgres(place) = &mut options.place else {
        panic!("not on PostgreSQL");
    };
    let line = Line::to(place.connect.get_host(), place.connect.get_port()).await;
    place.connect = place.connect.clone().host("127.0.0.1").port(line.port);
    place.write_statement_timeout = std::time::Duration::from_secs(1);
    let (models, _) = ReadModels::open(&options).await.unwrap();
    models.apply(&world.log[..20]).await.unwrap();
    let task = world.log[0].flow.root();
    models.get(task).await.unwrap();

    line.cut();
    let late = models.apply(&world.log).await.unwrap_err();
    assert!(late.is_passing(), "{late:?}");
    let late = models.checkpoint().await.unwrap_err();
    assert!(late.is_passing(), "{late:?}");

    line.mend();
    let end = world.log.len() as u64;
    assert_eq!(models.apply(&world.log).await.unwrap(), end);
    models.get(task).await.unwrap();
    line.cut();
    let _ = models.close().await;
}

/// A way to the database that can fall silent: what went over it before the cut stays silent.
struct Line {
    port: u16,
    cuts: Arc<tokio::sync::watch::Sender<(bool, u32)>>,
}

impl Line {
    async fn to(host: &str, port: u16) -> Self {
        let target = (host.to_owned(), port);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(tokio::sync::watch::channel((false, 0)).0);
        let watched = cuts.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (target, mut cuts) = (target.clone(), watched.subscribe());
                tokio::spawn(async move {
                    let born = cuts.borrow_and_update().1;
                    let silent = |now: &(bool, u32)| now.0 || now.1 != born;
                    let mut far = tokio::net::TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        biased;
                        _ = async { cuts.wait_for(silent).await.map(|_| ()) } => {}
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => return,
                    }
                    // Both ends stay open, nothing passes.
                    std::future::pending::<()>().await;
                });
            }
        });
        Self { port, cuts }
    }

    fn cut(&self) {
        self.cuts.send_modify(|(silent, cuts)| {
            *silent = true;
            *cuts += 1;
        });
    }

    fn mend(&self) {
        self.cuts.send_modify(|(silent, _)| *silent = false);
    }
}

#[tokio::test]
async fn whoever_finds_no_connection_is_told_to_come_back() {
    let world = world(39, 30);
    let ground = Ground::new(Engine::Postgres).await;
    let mut options = ground.options();
    options.readers = taskledger_projections::READERS_MIN;
    if let taskledger_projections::Place::Postgres(place) = &mut options.place {
        place.acquire_timeout = std::time::Duration::from_millis(50);
    }
    let (models, _) = ReadModels::open(&options).await.unwrap();
    models.apply(&world.log).await.unwrap();
    let task = world.log[0].flow.root();
    let held = [
        models.tree(task).await.unwrap(),
        models.tree(task).await.unwrap(),
    ];
    let refused = models.get(task).await.unwrap_err();
    assert!(refused.is_passing(), "{refused:?}");
    assert_eq!(models.checkpoint().await.unwrap(), world.log.len() as u64);
    drop(held);
    // They come back to the pool a moment after they are dropped.
    let mut found = models.get(task).await;
    for _ in 0..100 {
        if !found.as_ref().is_err_and(|error| error.is_passing()) {
            break;
        }
        found = models.get(task).await;
    }
    assert!(found.unwrap().is_some());
}
