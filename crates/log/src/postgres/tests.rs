//! Prepares every statement of this folder on a real server, and checks the plans of frequent ones.

use super::{Options, PostgresStore, call, export, import, link, queries, retention, verify};
use crate::chain::Mark;
use crate::verify::Report;
use crate::{Append, ClaimKey, EventStore, NewClaim, NewEvent, Outcome};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Executor, PgConnection, SqlSafeStr};
use std::str::FromStr;
use std::sync::Arc;
use taskledger_clock::ManualClock;
use taskledger_domain::flow::{Event, FlowArchived, TaskRenamed};
use taskledger_domain::{EventId, FlowId, Metadata, TaskId, Timestamp};
use taskledger_testkit::postgres::Database;
use uuid::Uuid;

const STATEMENTS: &[(&str, &str)] = &[
    ("append", call::APPEND),
    ("raise_epoch", link::RAISE_EPOCH),
    ("size", queries::SIZE),
    ("head", queries::HEAD),
    ("chain_head", queries::CHAIN_HEAD),
    ("stream", queries::STREAM),
    ("stream_events", queries::STREAM_EVENTS),
    ("stream_events_back", queries::STREAM_EVENTS_BACK),
    ("stream_versions", queries::STREAM_VERSIONS),
    ("next_of_stream", queries::NEXT_OF_STREAM),
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
    ("remains", retention::REMAINS),
    ("put_remains", retention::PUT_REMAINS),
    ("lock_dropped", retention::LOCK),
    ("delete_claims", retention::DELETE_CLAIMS),
    ("delete_events", retention::DELETE_EVENTS),
    ("delete_snapshot", retention::DELETE_SNAPSHOT),
    ("count_dropped", retention::COUNT),
    ("set_dropped", retention::SET),
    ("verify_events", verify::EVENTS),
    ("verify_streams", verify::STREAMS),
    ("verify_versions", verify::STREAM_VERSIONS),
    ("verify_dropped_flows", verify::DROPPED_FLOWS),
    ("verify_dropped_counts", verify::DROPPED_COUNTS),
    ("verify_snapshots", verify::SNAPSHOTS),
    ("verify_stream_events", verify::STREAM_EVENTS),
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
            "next_of_stream",
            queries::NEXT_OF_STREAM,
            format!("{flow}, 4"),
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

/// The events, and those whose hash is the one that an auditor computes with `taskledger.event_content`.
const HASHES: &str = "SELECT count(*), count(*) FILTER (WHERE c.hash = c.computed)
      FROM (
          SELECT e.hash, sha256(coalesce(lag(e.hash) OVER (ORDER BY e.position), decode(repeat('00', 32), 'hex'))
              || int8send(e.position) || int8send(e.recorded_at)
              || taskledger.event_content(s.flow, e.version, e.id, e.time, e.kind, e.schema_version, e.actor,
                  e.correlation, e.causation, e.trace, e.data)) AS computed
          FROM taskledger.events AS e
          JOIN taskledger.streams AS s ON s.number = e.stream
      ) AS c";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_computes_the_contents_that_hashes_cover() {
    let database = Database::create().await;
    let store = given_a_log(&database).await;
    store.append(append(1, 3)).await.expect("it is written");
    let mut caused = append(2, 2);
    caused.events[1].metadata.causation = Some(caused.events[0].id);
    caused.events[1].metadata.trace = Some(Arc::from("t"));
    store.append(caused).await.expect("it is written");
    let mut connection = store.pool().acquire().await.expect("a connection");

    let hashes: (i64, i64) = sqlx::query_as(HASHES)
        .fetch_one(&mut *connection)
        .await
        .expect("they are computed");

    assert_eq!(hashes, (5, 5));
}

async fn verified(database: &Database, kept: Option<Mark>) -> Report {
    let connect = PgConnectOptions::from_str(database.url()).expect("a URL");
    let options = Options::new(connect, Arc::new(ManualClock::at(Timestamp(1))));
    let report = verify::verify(&options, kept, |_, _| ()).await;
    report.expect("it is read")
}

/// Changes the payload at position 2 so that every read believes it.
async fn forge(connection: &mut PgConnection) {
    let select = AssertSqlSafe(format!("{} LIMIT 1", verify::EVENTS));
    let sql = sqlx::query(select).bind(1_i64).bind(2_i64);
    let sql = sql.fetch_one(&mut *connection).await.expect("a row");
    let row = super::row::read(&sql, 0).expect("it is sound");
    let data = row.data.replace("name\":\"name", "name\":\"fame");
    assert_ne!(data, row.data);
    let forged = crate::row::Row { data: &data, ..row };
    let checksum = super::row::checksum(&forged);
    for statement in [
        "ALTER TABLE taskledger.events DISABLE TRIGGER append_only".to_owned(),
        format!(
            "UPDATE taskledger.events SET data = '{data}', checksum = {checksum} WHERE position = 2"
        ),
    ] {
        let changed = connection.execute(AssertSqlSafe(statement)).await;
        changed.expect("it is changed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_was_changed_with_its_checksum_is_found() {
    let database = Database::create().await;
    let store = given_a_log(&database).await;
    for n in 1..=3 {
        store.append(append(n, 4)).await.expect("it is written");
    }
    let head = store.chain_head().await.expect("it is read");
    let sound = verified(&database, head).await;
    assert!(sound.is_sound(), "{sound:?}");
    let mut connection = store.pool().acquire().await.expect("a connection");

    forge(&mut connection).await;

    let report = verified(&database, head).await;
    assert_eq!(report.faults.len(), 1, "{report:?}");
    assert_eq!(report.faults[0].position, Some(2));
    assert!(report.faults[0].reason.contains("was changed"));
    connection
        .execute("UPDATE taskledger.head SET hash = NULL")
        .await
        .expect("it is changed");
    let report = verified(&database, None).await;
    assert_eq!(report.faults.len(), 2, "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hashes_are_those_of_their_events_behind_an_append_that_is_refused() {
    let database = Database::create().await;
    let store = given_a_log(&database).await;
    let mut refused = append(2, 1);
    refused.expected = 7;

    // While the first one is written, the others gather into one batch.
    let (first, refused, third) = tokio::join!(
        store.append(append(1, 100)),
        store.append(refused),
        store.append(append(3, 2)),
    );

    assert!(matches!(first, Ok(Outcome::Appended(_))), "{first:?}");
    assert!(!matches!(refused, Ok(Outcome::Appended(_))), "{refused:?}");
    assert!(matches!(third, Ok(Outcome::Appended(_))), "{third:?}");
    let head = store.chain_head().await.expect("it is read");
    let report = verified(&database, head).await;
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_dropped_leaves_its_place_in_the_chain() {
    let database = Database::create().await;
    let store = given_a_log(&database).await;
    store.append(append(1, 3)).await.expect("it is written");
    let archived = Event::FlowArchived(FlowArchived {
        file: "f".to_owned(),
        sha256: "s".to_owned(),
        events: 3,
        runs: Vec::new(),
        owner: None,
    });
    let mut last = append(1, 1);
    let metadata = last.events[0].metadata.clone();
    let id = EventId(Uuid::from_u128(77));
    last.events = vec![NewEvent::new(id, Timestamp(1), metadata, archived)];
    (last.expected, last.claims) = (3, Vec::new());
    store.append(last).await.expect("it is written");
    store.append(append(2, 2)).await.expect("it is written");
    let head = store.chain_head().await.expect("it is read");

    let flow = FlowId(Uuid::from_u128(1));
    while store.drop_archived(flow, 2).await.expect("it is dropped") > 0 {}

    let report = verified(&database, head).await;
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.dropped, 3);
    assert_eq!(
        report.chain.map(|c| (c.from, Some(c.head))),
        Some((1, head))
    );
}
