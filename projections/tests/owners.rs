//! Who owns what: rows, lists, totals and figures of one owner, against naive answers.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod common;

use common::{Engine, World, empty, fed};
use std::sync::Arc;
use taskledger_domain::flow::{Event, UserChanged};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, TaskId};
use taskledger_projections::{
    List, ListFilter, Order, Past, ReadModels, Start, TaskRow, Usage, WithRun,
};

taskledger_testkit::on_both_engines!(
    every_row_carries_the_user_of_its_root_as_it_is_now,
    owners_and_their_figures_equal_naive_ones,
    a_large_flow_changes_hands_as_a_small_one_does,
    nobody_notices_what_others_own,
);

fn busy_world(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..250 {
        world.step();
    }
    world
}

fn user_changed(task_id: TaskId, user: Option<&str>) -> Event {
    Event::UserChanged(UserChanged {
        task_id,
        user_id: user.map(str::to_owned),
    })
}

/// A flow with so many children, the first of another user than the root.
fn flow_of(world: &mut World, children: usize) -> FlowId {
    let (flow, event) = world.created(None, true, Vec::new());
    world.push(flow, event);
    world.push(flow, user_changed(flow.root(), Some("ann")));
    let root = world.live.values().next_back().unwrap().clone();
    for n in 0..children {
        let (_, event) = world.created(Some(&root), false, Vec::new());
        let id = event.task_id().unwrap();
        world.push(flow, event);
        if n == 0 {
            world.push(flow, user_changed(id, Some("bob")));
        }
    }
    flow
}

fn of(owner: &str) -> ListFilter {
    ListFilter {
        owner: Some(Arc::from(owner)),
        ..ListFilter::default()
    }
}

async fn page(models: &ReadModels, filter: &ListFilter) -> List {
    let page = models.list(filter, Order::Ascending, 1000, Start::Offset(0));
    page.await.unwrap()
}

async fn every_row_carries_the_user_of_its_root_as_it_is_now(engine: Engine) {
    let world = busy_world(31);
    let (models, _ground) = fed(engine, &world.log, 25).await;
    for row in world.live.values() {
        let owner = world.owner_of(row.flow_id);
        assert_eq!(row.owner, owner, "the picture itself");
        let stored = models.get(row.id).await.unwrap().unwrap();
        assert_eq!(stored.row.owner, owner, "{}", row.id);
    }
}

async fn owners_and_their_figures_equal_naive_ones(engine: Engine) {
    let world = busy_world(32);
    let (models, _ground) = fed(engine, &world.log, 25).await;
    let roots = world.live.values().filter(|row| row.is_root());
    for root in roots {
        let found = models.owner_of(root.flow_id).await.unwrap();
        assert_eq!(found, Some(root.user_id.clone()));
    }
    let unknown = common::task(999_999).as_flow();
    assert_eq!(models.owner_of(unknown).await.unwrap(), None);
    // The name of the rows that count for everybody is nobody's.
    for name in ["ann", "bob", "e\0\u{1}ve", "zoe", "nobody", ""] {
        let name: Arc<str> = Arc::from(name);
        let own = |row: &&TaskRow| row.owner.as_ref() == Some(&name);
        let own: Vec<&TaskRow> = world.live.values().filter(own).collect();
        let count = |wanted: fn(&TaskRow) -> bool| own.iter().filter(|row| wanted(row)).count();
        let open = |row: &TaskRow| {
            row.is_root() && matches!(row.status, Status::Pending | Status::InProgress)
        };
        let expected = Usage {
            open_flows: count(open) as u64,
            waiting_tasks: count(|row| row.status == Status::Pending) as u64,
        };
        assert_eq!(models.usage_of(&name).await.unwrap(), expected, "{name:?}");
    }
}

async fn a_large_flow_changes_hands_as_a_small_one_does(engine: Engine) {
    let mut world = World::new(33);
    // More than are loaded whole; the other one is in memory.
    let flows = [flow_of(&mut world, 300), flow_of(&mut world, 3)];
    let (models, ground) = fed(engine, &world.log, 64).await;
    models.close().await.unwrap();
    let models = ground.open().await;
    let seen = world.log.len();
    for flow in flows {
        world.push(flow, user_changed(flow.root(), Some("bob")));
        world.push(flow, user_changed(flow.root(), None));
        world.push(flow, user_changed(flow.root(), Some("zoe")));
    }
    models.apply(&world.log[seen..]).await.unwrap();
    let tasks = world.live.len() as u64;
    for (name, expected) in [("ann", 0), ("bob", 0), ("zoe", tasks)] {
        let list = page(&models, &of(name)).await;
        let found = (list.total, list.tasks.len() as u64);
        assert_eq!(found, (expected, expected), "{name}");
        assert!(list.tasks.iter().all(|task| task.row.owner.is_some()));
    }
    let (again, _ground) = fed(engine, &world.log, 1).await;
    assert_eq!(models.dump().await.unwrap(), again.dump().await.unwrap());
}

async fn nobody_notices_what_others_own(engine: Engine) {
    let mut world = World::new(34);
    let flow = flow_of(&mut world, 5);
    let (models, _ground) = fed(engine, &world.log, 64).await;
    let (nothing, _other) = empty(engine).await;
    let child = world.live.values().next_back().unwrap().clone();
    let filters = [
        of("bob"),
        ListFilter {
            user_id: Some(Arc::from("bob")),
            ..of("bob")
        },
        ListFilter {
            user_id: Some(Arc::from("ann")),
            ..of("bob")
        },
        ListFilter {
            parent_id: Some(flow.root()),
            ..of("bob")
        },
        ListFilter {
            name: Some(child.name.clone()),
            ..of("bob")
        },
        ListFilter {
            created_after: Some(child.created_at),
            ..of("bob")
        },
    ];
    for filter in filters {
        for models in [&models, &nothing] {
            let list = page(models, &filter).await;
            assert_eq!((list.total, list.tasks.len()), (0, 0), "{filter:?}");
            assert!(list.next_cursor.is_none());
        }
    }
    let bobs = ListFilter {
        user_id: Some(Arc::from("bob")),
        ..of("ann")
    };
    let expected = world.rows(|row| row.user_id.as_deref() == Some("bob"));
    assert_eq!(page(&models, &bobs).await.total, expected.len() as u64);
    let usage = models.usage_of(&Arc::from("bob")).await.unwrap();
    assert_eq!(usage, Usage::default(), "a label is nobody's property");
}

#[test]
fn the_past_shows_the_owner_of_then() {
    let mut world = World::new(35);
    let flow = flow_of(&mut world, 2);
    let child = world.live.values().next_back().unwrap().id;
    let mut past = Past::default();
    let owner = |past: &Past| past.view(child, WithRun::No).unwrap().0.row.owner.clone();
    for recorded in &world.log {
        past.apply(recorded).unwrap();
    }
    assert_eq!(owner(&past).as_deref(), Some("ann"));
    let moved = world.push(flow, user_changed(flow.root(), None));
    past.apply(&moved).unwrap();
    assert_eq!(owner(&past), None);
}

#[tokio::test]
async fn rows_of_an_earlier_version_are_replaced_without_new_indexes_on_them() {
    use sqlx::Connection as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read_models.db");
    let options = taskledger_projections::Options::new(&path);
    let (models, _) = ReadModels::open(&options).await.unwrap();
    models.apply(&busy_world(36).log).await.unwrap();
    models.close().await.unwrap();
    let url = format!("sqlite://{}", path.display());
    let mut db = sqlx::SqliteConnection::connect(&url).await.unwrap();
    for sql in [
        "UPDATE checkpoints SET version = 2",
        "DROP INDEX tasks_suspended",
        "DROP INDEX tasks_both",
        "DROP INDEX tasks_both_status",
        "DROP INDEX tasks_user",
        "DROP INDEX tasks_user_status",
        "DROP INDEX tasks_owner",
        "DROP INDEX tasks_owner_status",
        "DROP INDEX tasks_owner_root",
        "ALTER TABLE tasks DROP COLUMN owner",
    ] {
        sqlx::query(sql).execute(&mut db).await.unwrap();
    }
    db.close().await.unwrap();
    let (models, found) = ReadModels::open(&options).await.unwrap();
    let why = format!("{found:?}");
    assert!(
        why.contains("Unusable") && why.contains("version 2"),
        "{why}"
    );
    assert_eq!(models.checkpoint().await.unwrap(), 0);
    assert_eq!(page(&models, &of("ann")).await.total, 0);
    models.close().await.unwrap();
}
