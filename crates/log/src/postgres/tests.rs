//! Every statement of this folder, prepared on a real server; and the plans of those that are asked
//! all day.

use super::{Options, PostgresStore, call, export, import, link, queries, retention, verify};
use crate::{Append, ClaimKey, EventStore, NewClaim, NewEvent};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Executor, PgConnection, SqlSafeStr};
use std::str::FromStr;
use std::sync::Arc;
use taskledger_clock::ManualClock;
use taskledger_domain::flow::{Event, TaskRenamed};
use taskledger_domain::{EventId, FlowId, Metadata, TaskId, Timestamp};
use taskledger_testkit::postgres::Database;
use uuid::Uuid;

const STATEMENTS: &[(&str, &str)] = &[
    ("append", call::APPEND),
    ("raise_epoch", link::RAISE_EPOCH),
    ("size", queries::SIZE),
    ("head", queries::HEAD),
    ("stream", queries::STREAM),
    ("stream_events", queries::STREAM_EVENTS),
    ("stream_events_back", queries::STREAM_EVENTS_BACK),
    ("stream_versions", queries::STREAM_VERSIONS),
    ("all_events", queries::ALL_EVENTS),
    ("stream_ids", queries::STREAM_IDS),
    ("claims", queries::CLAIMS),
    ("raise_fence", queries::RAISE_FENCE),
    ("snapshot", queries::SNAPSHOT),
    ("put_snapshot", queries::PUT_SNAPSHOT),
    ("exported_keys", export::KEYS),
    ("import_lock", import::LOCK),
    ("import_events", import::INSERT_EVENTS),
    ("import_claims", import::INSERT_CLAIMS),
    ("import_streams", import::INSERT_STREAMS),
    ("import_head", import::MOVE_HEAD),
    ("import_news", import::TELL),
    ("dropped", retention::DROPPED),
    ("next_position", retention::NEXT),
    ("is_archived", retention::IS_ARCHIVED),
    ("undropped", retention::UNDROPPED),
    ("last_of_archived", retention::LAST),
    ("lock_dropped", retention::LOCK),
    ("delete_claims", retention::DELETE_CLAIMS),
    ("delete_events", retention::DELETE_EVENTS),
    ("delete_snapshot", retention::DELETE_SNAPSHOT),
    ("count_dropped", retention::COUNT),
    ("set_dropped", retention::SET),
    ("verify_events", verify::EVENTS),
    ("verify_streams", verify::STREAMS),
    ("verify_versions", verify::STREAM_VERSIONS),
    ("verify_end", verify::END),
];

async fn given_a_log(database: &Database) -> PostgresStore {
    let connect = PgConnectOptions::from_str(database.url()).expect("a URL");
    let clock = Arc::new(ManualClock::at(Timestamp(1)));
    PostgresStore::open(Options::new(connect, clock))
        .await
        .expect("it opens")
}

#[tokio::test]
async fn every_statement_is_understood_by_the_server() {
    let database = Database::create().await;
    let store = given_a_log(&database).await;
    let mut connection = store.pool().acquire().await.expect("a connection");

    for (name, sql) in STATEMENTS {
        let statement = AssertSqlSafe((*sql).to_owned()).into_sql_str();
        let prepared = (&mut *connection).prepare(statement).await;
        prepared.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // None is missing from the list: each statement of these files is a constant.
    let files = [
        include_str!("call.rs"),
        include_str!("export.rs"),
        include_str!("import.rs"),
        include_str!("link.rs"),
        include_str!("queries.rs"),
        include_str!("retention.rs"),
        include_str!("verify.rs"),
    ];
    let constants: usize = files.iter().map(|f| f.matches("&str =").count()).sum();
    assert_eq!(constants, STATEMENTS.len());
}

fn append(n: u128, events: usize) -> Append {
    let metadata = Metadata {
        actor: Arc::from("a"),
        correlation: Arc::from("c"),
        causation: None,
        trace: None,
    };
    let event = |m: usize| {
        let id = EventId(Uuid::from_u128(n * 1_000 + m as u128 + 1));
        let renamed = Event::TaskRenamed(TaskRenamed {
            task_id: TaskId(Uuid::nil()),
            name: "name".to_owned(),
        });
        NewEvent::new(id, Timestamp(1), metadata.clone(), renamed)
    };
    Append {
        stream: FlowId(Uuid::from_u128(n)),
        expected: 0,
        events: (0..events).map(event).collect(),
        claims: vec![NewClaim {
            key: ClaimKey::Task(TaskId(Uuid::from_u128(n))),
            value: Arc::from("v"),
            expires_at: Some(Timestamp(1_000)),
        }],
        fence: None,
    }
}

async fn plan(connection: &mut PgConnection, name: &str, sql: &str, arguments: &str) -> String {
    let prepare = format!("PREPARE {name} AS {sql}");
    connection
        .execute(AssertSqlSafe(prepare))
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE {name}({arguments})"));
    let lines: Vec<String> = sqlx::query_scalar(explain)
        .persistent(false)
        .fetch_all(connection)
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_all_day_is_answered_from_an_index() {
    let database = Database::create().await;
    let store = given_a_log(&database).await;
    let appends = (1..=1_500).map(|n| store.append(append(n, 10)));
    for outcome in futures_util::future::join_all(appends).await {
        outcome.expect("it is written");
    }
    let mut connection = store.pool().acquire().await.expect("a connection");
    // Plans for any arguments, as a statement that is asked often has them.
    let generic = "SET plan_cache_mode = force_generic_plan";
    connection.execute(generic).await.expect("it is set");
    let analyze = "VACUUM ANALYZE taskledger.events, taskledger.streams, taskledger.claims";
    connection.execute(analyze).await.expect("it is analyzed");

    let flow = format!("'{}'", Uuid::from_u128(700));
    for (name, sql, arguments, indexes) in [
        (
            "stream",
            queries::STREAM,
            flow.clone(),
            &["streams_flow_key"][..],
        ),
        (
            "stream_events",
            queries::STREAM_EVENTS,
            format!("{flow}, 2, 9, 1000000"),
            &["streams_flow_key", "events_by_stream"],
        ),
        (
            "stream_events_back",
            queries::STREAM_EVENTS_BACK,
            format!("{flow}, 9, 5, 1000000"),
            &["streams_flow_key", "events_by_stream"],
        ),
        (
            "stream_versions",
            queries::STREAM_VERSIONS,
            format!("{flow}, '{{3,9,4}}', 1000000"),
            &["streams_flow_key", "events_by_stream"],
        ),
        (
            "all_events",
            queries::ALL_EVENTS,
            "7000, 7100, 1000000".to_owned(),
            &["events_pkey", "streams_pkey"],
        ),
        (
            "claims",
            queries::CLAIMS,
            "'{1,1}', '{abc,def}', 5".to_owned(),
            &["claims_pkey"],
        ),
        (
            "snapshot",
            queries::SNAPSHOT,
            format!("{flow}, 1"),
            &["streams_flow_key"],
        ),
    ] {
        let plan = plan(&mut connection, name, sql, &arguments).await;
        for index in indexes {
            assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
        }
        for table in ["events", "streams", "claims"] {
            let scan = format!("Seq Scan on {table}");
            assert!(!plan.contains(&scan), "{name}:\n{plan}");
        }
    }
}
