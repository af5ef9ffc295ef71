//! How the databases find the pages of lists, on tables that are large enough to go wrong.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod common;

use common::{Engine, Ground, START, World};
use std::sync::Arc;
use taskledger_domain::flow::{CancelReason, Event, TaskCancelled, TaskCreated};
use taskledger_domain::task::{Labels, Priority, Selector, Status};
use taskledger_domain::{TaskId, Timestamp};
use taskledger_projections::{Cursor, ListFilter, Order, ReadModels, Start};

taskledger_testkit::on_both_engines!(no_page_sorts_or_scans);

const TASKS: u64 = 20_000;
/// Every so many tasks a flow begins.
const FLOW: u64 = 500;
/// The only flow that `ann` does not own.
const RARE_OWNER: u64 = 7;

/// Some users, names and priorities that are rare and some that most tasks have; nine of ten tasks
/// are cancelled, so that what is pending lies far apart.
async fn large(ground: &Ground) -> (ReadModels, TaskId) {
    let mut world = World::new(1);
    let specification = world.specification(false);
    let mut root = common::task(1);
    let mut parent = root;
    for n in 0..TASKS {
        let id = common::task(n + 1);
        let first = n % FLOW == 0;
        if first {
            root = id;
        } else if n % FLOW == 1 {
            parent = id;
        }
        world.now += 1_000_000;
        let created = TaskCreated {
            task_id: id,
            ordinal: (n % FLOW) as u32,
            parent_id: match n % FLOW {
                0 => None,
                n if n % 7 == 2 => Some(parent),
                _ => Some(root),
            },
            name: if n % 10 < 7 {
                "fetch".to_owned()
            } else {
                format!("task {}", n % 1000)
            },
            user_id: match n % 20 {
                0 if n == RARE_OWNER * FLOW => Some("user 10".to_owned()),
                0..=9 => Some("ann".to_owned()),
                10 => Some(format!("user {}", n % 300)),
                _ => None,
            },
            priority: if n % 5 == 0 {
                Priority::ALL[(n % 4) as usize]
            } else {
                Priority::NORMAL
            },
            dependencies: Vec::new(),
            specification: specification.clone(),
            copied_from: None,
            labels: labels(n),
            run_id: None,
        };
        world.push_quick(root.as_flow(), Event::TaskCreated(created));
        if n % 10 != 3 {
            let cancelled = TaskCancelled {
                task_id: id,
                attempt: None,
                error: "stopped".to_owned(),
                reason: CancelReason::Requested,
                progress: taskledger_domain::task::Progress::ZERO,
                remarks: None,
            };
            world.push_quick(root.as_flow(), Event::TaskCancelled(cancelled));
        }
    }
    (ground.fed(&world.log, 2048).await, parent)
}

/// Two of three tasks have a label that is common, one in 500 one that is rare.
fn labels(n: u64) -> Labels {
    let mut labels = std::collections::BTreeMap::new();
    if !n.is_multiple_of(3) {
        labels.insert("team".to_owned(), "data".to_owned());
    }
    if n % 500 == 7 {
        labels.insert("rare".to_owned(), format!("{}", n % 7));
    }
    Labels::from(labels)
}

async fn no_page_sorts_or_scans(engine: Engine) {
    let ground = Ground::new(engine).await;
    let (models, parent) = large(&ground).await;
    every_page_has_an_index(engine, &models, parent).await;
    labelled_pages_have_an_index(engine, &models).await;
    if engine == Engine::Postgres {
        let (mut db, schema) = ground.admin().await;
        for table in ["tasks", "task_labels", "task_counts", "created_buckets"] {
            let sql = sqlx::AssertSqlSafe(format!("ANALYZE {schema}.{table}"));
            sqlx::query(sql).execute(&mut db).await.unwrap();
        }
        every_page_has_an_index(engine, &models, parent).await;
        labelled_pages_have_an_index(engine, &models).await;
    }
}

/// Tasks with a label are found through it, or on PostgreSQL in their order where they are most; nobody walks over what
/// others own.
async fn labelled_pages_have_an_index(engine: Engine, models: &ReadModels) {
    for (term, status, owned) in [
        ("team=data", false, false),
        ("rare", true, false),
        ("rare=3", false, true),
        ("team", true, true),
    ] {
        let mut labels = Selector::default();
        labels.add(term).unwrap();
        let filter = ListFilter {
            labels,
            status: status.then_some(Status::Pending),
            owner: owned.then(|| Arc::from("user 10")),
            ..ListFilter::default()
        };
        for order in [Order::Ascending, Order::Descending] {
            let start = Start::Offset(0);
            let plan = models.explain_list(&filter, order, start).await.unwrap();
            let all = plan.join("\n");
            assert!(
                !all.contains("Seq Scan") && !all.contains("SCAN"),
                "{term}: {all}"
            );
            if engine == Engine::Sqlite {
                let index = if owned {
                    "task_labels_owner"
                } else {
                    "PRIMARY KEY (term=?"
                };
                assert!(
                    plan[0].contains("task_labels") && plan[0].contains(index),
                    "{all}"
                );
                assert!(!all.contains("TEMP B-TREE"), "{all}");
            } else {
                assert!(all.contains("task_labels"), "{all}");
            }
        }
    }
}

async fn every_page_has_an_index(engine: Engine, models: &ReadModels, parent: TaskId) {
    for mask in 0..512_u32 {
        let on = |bit: u32| mask & (1 << bit) != 0;
        let common = mask % 3 == 0;
        let user: Arc<str> = Arc::from(if common { "ann" } else { "user 10" });
        // The parent's flow is another owner's: nothing can match.
        let foreign = on(8) && on(3) && !common;
        let filter = ListFilter {
            status: on(0).then_some(if common {
                Status::Cancelled
            } else {
                Status::Pending
            }),
            user_id: on(1).then(|| user.clone()),
            owner: on(8).then(|| user.clone()),
            root_only: on(2),
            suspended: false,
            parent_id: on(3).then_some(parent),
            name: on(4).then(|| Arc::from(if common { "fetch" } else { "task 8" })),
            priority: on(5).then_some(Priority::NORMAL),
            created_after: on(6).then_some(Timestamp(START)),
            created_before: on(7).then_some(Timestamp(START * 2)),
            ids: None,
            labels: Selector::default(),
        };
        let indexed = mask & 0b1_0011_1111 != 0;
        for order in [Order::Ascending, Order::Descending] {
            let letter = if order == Order::Ascending { "u" } else { "d" };
            let cursor = Cursor::parse(&format!("{letter}2710"), order).unwrap();
            for start in [Start::Offset(0), Start::After(cursor)] {
                let plan = models.explain_list(&filter, order, start).await.unwrap();
                let sound = match engine {
                    Engine::Sqlite | Engine::Postgres if foreign => plan.is_empty(),
                    // What others own is not walked over.
                    Engine::Sqlite if on(8) && !on(3) => {
                        on_sqlite_by_index(&plan, true)
                            && searches(&plan).all(|step| {
                                step.contains(" tasks_owner") || step.contains(" tasks_both")
                            })
                    }
                    Engine::Sqlite => on_sqlite_by_index(&plan, indexed),
                    Engine::Postgres => on_postgres_by_index(&plan, indexed),
                };
                assert!(sound, "{filter:?}: {plan:#?}");
            }
        }
    }
}

/// Whoever asks for something that has an index gets it by an index.
fn on_sqlite_by_index(plan: &[String], indexed: bool) -> bool {
    let is_merged = ["MERGE (UNION ALL)", "LEFT", "RIGHT"];
    let merges = plan.iter().filter(|step| is_merged.contains(&&***step));
    let mut searches = searches(plan);
    matches!((searches.clone().count(), merges.count()), (1, 0) | (2, 3))
        && plan.len() <= 5
        && searches.all(|step| !indexed || step.contains("USING") && !step.contains("PRIMARY KEY"))
}

fn searches(plan: &[String]) -> impl Iterator<Item = &String> + Clone {
    plan.iter().filter(|step| step.starts_with("SEARCH tasks"))
}

/// The order comes from the index, and so does every condition on the order.
fn on_postgres_by_index(plan: &[String], indexed: bool) -> bool {
    let steps: Vec<&str> = plan
        .iter()
        .map(|line| line.trim_start().trim_start_matches("->  "))
        .collect();
    steps[0].starts_with("Limit")
        && steps[1].starts_with("Index")
        && indexed != steps[1].contains("tasks_pkey")
        && steps[2].starts_with("Index Cond")
        && steps[2].contains("created_position")
        && steps[3..].iter().all(|step| step.starts_with("Filter"))
}
