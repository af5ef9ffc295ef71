//! No statement of a batch walks over a table, on either engine.

use super::super::archive;
use super::*;
use crate::{Options, ReadModels};
use taskledger_sql::Engine;

/// Tables, and their names within the statements.
const STORED: [&str; 17] = [
    "run_status",
    "run_said",
    "run_past",
    "run_output",
    "tasks",
    "task_bodies",
    "task_labels",
    "attempts",
    "runs",
    "flow_summary",
    "rootless_flows",
    "open_runs",
    "t",
    "c",
    "s",
    "o",
    "r",
];

#[tokio::test]
async fn no_statement_of_a_batch_walks_over_a_table() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("read_models.db");
    let (models, _) = ReadModels::open(&Options::new(&path))
        .await
        .expect("a fresh file");
    models.close().await.expect("a file that can be closed");
    let db = rusqlite::Connection::open(path).expect("the file");
    let statements = [
        UPDATE_FIGURES.text(Engine::Sqlite),
        UPDATE_STATE.text(Engine::Sqlite),
        UPDATE_DEFINITION.text(Engine::Sqlite),
        UPDATE_DEPENDENCIES.text(Engine::Sqlite),
        UPDATE_SPECIFICATIONS.text(Engine::Sqlite),
        DELETE_TASKS.text(Engine::Sqlite),
        DELETE_BODIES.text(Engine::Sqlite),
        DELETE_ATTEMPTS.text(Engine::Sqlite),
        DELETE_FLOWS.text(Engine::Sqlite),
        DELETE_OPEN_RUNS.text(Engine::Sqlite),
        COVER.text(Engine::Sqlite),
        COVERED,
        NEXT_ATTEMPT,
        super::super::owners::UPDATE_OWNERS.text(Engine::Sqlite),
        super::super::owners::UPDATE_RUN_OWNERS.text(Engine::Sqlite),
        super::super::owners::UPDATE_PAST_OWNERS.text(Engine::Sqlite),
        super::super::labels::DELETE.text(Engine::Sqlite),
        super::super::labels::UPDATE_OWNERS.text(Engine::Sqlite),
        super::super::load::WAITS.text(Engine::Sqlite),
        super::super::load::FLOWS.text(Engine::Sqlite),
        super::super::load::TASKS.text(Engine::Sqlite),
        super::super::load::WHOLE_FLOWS.text(Engine::Sqlite),
        super::super::load::RUNS.text(Engine::Sqlite),
    ];
    let archive = archive::statements().into_iter().skip(1);
    let archive = archive.map(|(statement, _)| statement.text(Engine::Sqlite));
    for sql in statements.into_iter().chain(archive) {
        let plan = plan(&db, sql);
        for step in &plan {
            let walked = step.strip_prefix("SCAN ").and_then(|s| s.split(' ').next());
            assert!(
                walked.is_none_or(|name| !STORED.contains(&name)),
                "{step} in {plan:?}"
            );
        }
    }
}

/// The steps of a statement whose parameters are all null.
fn plan(db: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = db
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .expect("a statement");
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().expect("a plan") {
        steps.push(row.get(3).expect("a step"));
    }
    steps
}

#[tokio::test]
async fn no_statement_of_a_batch_walks_over_a_table_of_postgresql() {
    let database = taskledger_testkit::postgres::Database::create().await;
    let connect = database.url().parse().expect("a URL");
    let (models, _) = ReadModels::open(&Options::postgres(connect))
        .await
        .expect("a fresh schema");
    let mut tx = models.read().await.expect("a reader");
    let state = "iiiiiitttiiiibt";
    let definition = format!("{state}bittitiit");
    let statements = [
        (&*UPDATE_FIGURES, "iiiiii"),
        (&*UPDATE_STATE, state),
        (&*UPDATE_DEFINITION, definition.as_str()),
        (&*UPDATE_DEPENDENCIES, "it"),
        (&*UPDATE_SPECIFICATIONS, "ittt"),
        (&*DELETE_TASKS, "i"),
        (&*DELETE_BODIES, "i"),
        (&*DELETE_ATTEMPTS, "i"),
        (&*DELETE_FLOWS, "i"),
        (&*DELETE_OPEN_RUNS, "i"),
        (&*DELETE_ROOTLESS, "b"),
        (&*COVER, "biii"),
        (&*super::super::counts::DELETE_FALLEN, "tiitii"),
        (&*super::super::owners::UPDATE_OWNERS, "it"),
        (&*super::super::owners::UPDATE_RUN_OWNERS, "it"),
        (&*super::super::labels::DELETE, "i"),
        (&*super::super::labels::UPDATE_OWNERS, "it"),
        (&*super::super::load::WAITS, "i"),
        (&*super::super::load::FLOWS, "b"),
        (&*super::super::load::TASKS, "b"),
        (&*super::super::load::WHOLE_FLOWS, "i"),
        (&*super::super::load::RUNS, "b"),
    ];
    for (statement, kinds) in statements.into_iter().chain(archive::statements()) {
        let plan = statement.plan(&mut tx, kinds).await.expect("a plan");
        let walks = |step: &String| step.contains("Seq Scan on") || step.contains("Sort");
        assert!(!plan.iter().any(walks), "{plan:#?}");
    }
    for (sql, ids) in [(COVERED, 1), (NEXT_ATTEMPT, 0)] {
        let mut args = tx.args();
        args.int(1);
        // NULL would make a plan that reads nothing.
        (0..ids).for_each(|_| args.id(uuid::Uuid::nil()));
        let plan = tx.plan(sql, args).await.expect("a plan");
        let by_index = |step: &String| step.contains("Index");
        assert!(plan.iter().any(by_index), "{plan:#?}");
    }
}
