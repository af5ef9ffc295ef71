//! Feeding the read models: whatever the batches, interruptions and caches, the rows are those
//! that the log means.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod common;

use common::{Engine, Ground, World, empty, fed};
use proptest::prelude::*;
use std::sync::Arc;
use taskledger_domain::flow::{Event, StatusCounts, TaskDeleted};
use taskledger_domain::{FlowId, Recorded};
use taskledger_projections::{Error, Found, Options, ReadModels, TaskProjector};

taskledger_testkit::on_both_engines!(
    an_event_that_makes_no_sense_leaves_out_its_flow_from_there_on,
    an_event_that_the_tables_refuse_is_found_in_its_batch,
    a_flow_that_loses_its_root_first_is_forgotten_with_its_last_task,
    a_second_writer_is_refused_and_changes_nothing,
);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// The engines of a case: PostgreSQL has every fourth, because its databases take their time.
fn engines(seed: u64) -> &'static [Engine] {
    match seed % 4 {
        _ if taskledger_testkit::postgres::is_left_out() => &[Engine::Sqlite],
        0 => &[Engine::Sqlite, Engine::Postgres],
        _ => &[Engine::Sqlite],
    }
}

/// Runs `claim` on places of the engines of a case.
fn on_either(seed: u64, claim: impl AsyncFn(Ground)) {
    block_on(async {
        for engine in engines(seed) {
            claim(Ground::new(*engine).await).await;
        }
    });
}

fn world(seed: u64, steps: usize) -> World {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn rows_and_sums_equal_a_naive_recomputation(seed: u64, steps in 1..150_usize, batch in 1..60_usize) {
        let world = world(seed, steps);
        on_either(seed, async |ground| {
            let models = ground.fed(&world.log, batch).await;
            for row in world.live.values() {
                let view = models.get(row.id).await.unwrap().unwrap();
                assert_eq!(view.row.as_ref(), row);
            }
            let flows: std::collections::BTreeSet<FlowId> =
                world.log.iter().map(|r| r.flow).collect();
            for flow in flows {
                let rows: Vec<_> = world.live.values().filter(|r| r.flow_id == flow).collect();
                let Some(summary) = models.flow_summary(flow).await.unwrap() else {
                    assert!(rows.is_empty());
                    continue;
                };
                let mut counts = StatusCounts::default();
                for row in &rows {
                    *common::count_mut(&mut counts, row.status) += 1;
                }
                assert_eq!(summary.counts, counts);
                let sum: u64 = rows.iter().map(|r| u64::from(r.progress.millionths())).sum();
                let mean = sum.checked_div(rows.len() as u64).unwrap_or(0);
                assert_eq!(u64::from(summary.progress.millionths()), mean);
                let last = world.log.iter().rfind(|r| r.flow == flow).unwrap();
                assert_eq!(summary.last_position, last.position);
                let open = world.runs.iter().any(|r| r.2 == flow && r.3);
                assert_eq!(summary.open_runs > 0, open);
                let found = models.open_runs(0, 1000).await.unwrap();
                assert_eq!(found.iter().any(|o| o.flow_id == flow), open);
            }
        });
    }

    #[test]
    fn a_running_run_counts_its_tasks_as_they_stand(seed: u64, steps in 1..150_usize) {
        let world = world(seed, steps);
        on_either(seed, async |ground| {
            let models = ground.fed(&world.log, 20).await;
            for (run, root, _, open) in &world.runs {
                let Some(view) = models.get(*root).await.unwrap() else { continue };
                if view.row.run_id != Some(*run) {
                    continue;
                }
                let shown = view.run.unwrap();
                assert_eq!(shown.id, *run);
                if *open {
                    let mut counts = StatusCounts::default();
                    let covered = world.live.values().filter(|r| r.run_id == Some(*run));
                    for row in covered.filter(|r| !r.is_group()) {
                        *common::count_mut(&mut counts, row.status) += 1;
                    }
                    assert_eq!(shown.counts, counts);
                }
            }
        });
    }

    #[test]
    fn engines_batches_caches_and_interruptions_leave_no_trace(seed: u64, steps in 1..150_usize, cut in 0..150_usize) {
        let world = world(seed, steps);
        block_on(async {
            let (whole, _file) = fed(Engine::Sqlite, &world.log, usize::MAX).await;
            let expected = whole.dump().await.unwrap();
            for engine in engines(seed) {
                leave_no_trace(Ground::new(*engine).await, &world, cut, &expected).await;
            }
        });
    }
}

async fn leave_no_trace(ground: Ground, world: &World, cut: usize, expected: &str) {
    let singly = ground.fed(&world.log, 1).await;
    assert_eq!(singly.dump().await.unwrap(), expected);

    let plain = ground.another().await;
    let projector = TaskProjector::without_memory();
    let (plain, _) = ReadModels::open_with(&plain.options(), projector)
        .await
        .unwrap();
    for events in world.log.chunks(7) {
        plain.apply(events).await.unwrap();
    }
    assert_eq!(plain.dump().await.unwrap(), expected);

    // A batch that is dropped half-way, in the same process and with a new one.
    let cut = cut.min(world.log.len());
    let ground = ground.another().await;
    let models = ground.fed(&world.log[..cut], 10).await;
    interrupted(&models, &world.log[cut..]).await;
    // On a machine that is slow to ask, the batch may have been written before it was dropped.
    let at = models.checkpoint().await.unwrap();
    assert!(
        at == cut as u64 || at == world.log.len() as u64,
        "half a batch: {at}"
    );
    let middle = cut + (world.log.len() - cut) / 2;
    models.apply(&world.log[cut..middle]).await.unwrap();
    interrupted(&models, &world.log[middle..]).await;
    models.close().await.unwrap();
    let (models, found) = ReadModels::open(&ground.options()).await.unwrap();
    assert_eq!(found, Found::Usable);
    models.apply(&world.log).await.unwrap();
    assert_eq!(models.dump().await.unwrap(), expected);

    models.clear().await.unwrap();
    assert_eq!(models.checkpoint().await.unwrap(), 0);
    for events in world.log.chunks(33) {
        models.apply(events).await.unwrap();
    }
    assert_eq!(models.dump().await.unwrap(), expected);
}

/// Polls a batch a few times and then drops it.
async fn interrupted(models: &ReadModels, events: &[Arc<Recorded>]) {
    let mut apply = Box::pin(models.apply(events));
    for _ in 0..3 {
        tokio::select! {
            biased;
            _ = &mut apply => return,
            () = tokio::task::yield_now() => {}
        }
    }
}

fn poisoned(mut world: World) -> (Vec<Arc<Recorded>>, u64) {
    let flow = world.log[0].flow;
    let task_id = common::task(999_999);
    let bad = world.push(flow, Event::TaskDeleted(TaskDeleted { task_id }));
    for _ in 0..5 {
        world.step();
    }
    (world.log, bad.position)
}

async fn an_event_that_makes_no_sense_leaves_out_its_flow_from_there_on(engine: Engine) {
    let (log, bad) = poisoned(world(7, 60));
    let flow = log[bad as usize - 1].flow;
    let (models, ground) = empty(engine).await;
    assert_eq!(models.apply(&log).await.unwrap(), log.len() as u64);
    let damaged = models.damaged_flows();
    let named: Vec<_> = damaged.values().map(|it| (it.flow, it.position)).collect();
    assert_eq!(named, [(flow, bad)]);
    let others: Vec<_> = log
        .iter()
        .filter(|it| it.flow != flow || it.position < bad)
        .cloned()
        .collect();
    let (expected, _other) = fed(engine, &others, 10).await;
    let rows = |dump: String| {
        let rows = dump
            .lines()
            .filter(|line| !line.starts_with("checkpoints") && !line.starts_with("damaged_flows"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        rows(models.dump().await.unwrap()),
        rows(expected.dump().await.unwrap())
    );
    // The next start knows it too, and folds nothing more of it.
    models.close().await.unwrap();
    let models = ground.open().await;
    assert_eq!(models.checkpoint().await.unwrap(), log.len() as u64);
    models.read_damaged_flows().await.unwrap();
    assert_eq!(models.damaged_flows(), damaged);
    let mut more = Recorded::clone(&log[bad as usize - 1]);
    more.position = log.len() as u64 + 1;
    let before = rows(models.dump().await.unwrap());
    assert_eq!(
        models.apply(&[Arc::new(more)]).await.unwrap(),
        log.len() as u64 + 1
    );
    assert_eq!(rows(models.dump().await.unwrap()), before);
}

async fn an_event_that_the_tables_refuse_is_found_in_its_batch(engine: Engine) {
    let mut world = world(7, 40);
    let (models, ground) = fed(engine, &world.log, 10).await;
    models.close().await.unwrap();
    // A root that exists, created once more; a projector without memory cannot know it.
    let root = world
        .live
        .values()
        .find(|row| row.is_root())
        .unwrap()
        .clone();
    let seen = world.log.len();
    world.step();
    let at = root.created_position as usize - 1;
    let again = Event::clone(&world.log[at].event);
    world.push_quick(root.flow_id, again);
    let bad = world.log.len() as u64;
    let models = ground.open().await;
    assert_eq!(models.apply(&world.log[seen..]).await.unwrap(), bad);
    let damaged = models.damaged_flows();
    let named: Vec<_> = damaged.values().map(|it| (it.flow, it.position)).collect();
    assert_eq!(named, [(root.flow_id, bad)]);
}

async fn a_flow_that_loses_its_root_first_is_forgotten_with_its_last_task(engine: Engine) {
    let mut world = World::new(8);
    let (flow, event) = world.created(None, true, Vec::new());
    world.push(flow, event);
    let root = world.live.values().next().unwrap().clone();
    for _ in 0..3 {
        let (_, event) = world.created(Some(&root), false, Vec::new());
        world.push(flow, event);
    }
    let ids: Vec<_> = world.live.values().map(|row| row.id).collect();
    for task_id in ids {
        world.push(flow, Event::TaskDeleted(TaskDeleted { task_id }));
    }
    let (whole, _a) = fed(engine, &world.log, 100).await;
    let rest = whole.dump().await.unwrap();
    assert_eq!(
        rest.lines().count(),
        2,
        "only times and checkpoint are left: {rest}"
    );
    let ground = Ground::new(engine).await;
    for recorded in &world.log {
        let models = ground.open().await;
        models.apply(std::slice::from_ref(recorded)).await.unwrap();
        models.close().await.unwrap();
    }
    let models = ground.open().await;
    assert_eq!(models.dump().await.unwrap(), rest);
}

async fn a_second_writer_is_refused_and_changes_nothing(engine: Engine) {
    let world = world(3, 50);
    let (models, ground) = fed(engine, &world.log[..20], 10).await;
    let other = ground.open().await;
    other.apply(&world.log[..30]).await.unwrap();
    let refused = models.apply(&world.log[..25]).await.unwrap_err();
    assert!(
        matches!(refused, Error::CheckpointMoved { expected: 20 }),
        "{refused}"
    );
    // Having been told, it goes on from where the other one is.
    models.apply(&world.log).await.unwrap();
    let (expected, _other_folder) = fed(engine, &world.log, 10).await;
    assert_eq!(models.dump().await.unwrap(), expected.dump().await.unwrap());
}

#[tokio::test]
async fn an_unusable_file_is_replaced_by_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read_models.db");
    let options = Options::new(&path);
    let (models, found) = ReadModels::open(&options).await.unwrap();
    assert_eq!(found, Found::Nothing);
    models.apply(&world(5, 20).log).await.unwrap();
    models.close().await.unwrap();

    // What cannot be read is kept: it may be the last copy of what the log has lost.
    for n in 1..=2_u8 {
        let damaged = [n; 9000];
        std::fs::write(&path, damaged).unwrap();
        let (models, found) = ReadModels::open(&options).await.unwrap();
        let aside = folder.path().join(format!("read_models.db.set-aside-{n}"));
        assert!(
            matches!(&found, Found::Damaged { kept, .. } if *kept == aside),
            "{found:?}"
        );
        assert_eq!(std::fs::read(aside).unwrap(), damaged);
        assert_eq!(models.checkpoint().await.unwrap(), 0);
        models.close().await.unwrap();
    }

    let (models, found) = ReadModels::open(&options).await.unwrap();
    assert_eq!(found, Found::Usable);
    models.close().await.unwrap();

    use sqlx::Connection;
    let url = format!("sqlite://{}", path.display());
    let mut db = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query("UPDATE checkpoints SET version = 99, position = 5")
        .execute(&mut db)
        .await
        .unwrap();
    db.close().await.unwrap();
    let (models, found) = ReadModels::open(&options).await.unwrap();
    assert!(
        matches!(&found, Found::Unusable(why) if why.contains("version 99")),
        "{found:?}"
    );
    assert_eq!(models.checkpoint().await.unwrap(), 0);
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_an_error_and_nothing_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").join("read_models.db");
    assert!(ReadModels::open(&Options::new(missing)).await.is_err());
    let occupied = folder.path().join("occupied");
    std::fs::create_dir(&occupied).unwrap();
    assert!(ReadModels::open(&Options::new(&occupied)).await.is_err());
    assert!(occupied.is_dir());
}
