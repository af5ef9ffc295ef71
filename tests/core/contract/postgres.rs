//! Postgres alone: opening, texts that it does not like, damage, news from other servers.

use crate::contract::fixture::{
    START, append, appended, event, flow, given_stream, manual_clock, open_postgres,
    postgres_options, request,
};
use futures_util::future::join_all;
use std::sync::Arc;
use taskledger::store::damage::is_mended;
use taskledger::store::postgres::{OpenError, Options, PostgresStore, migrate};
use taskledger::store::{Append, ClaimKey, Error, EventStore, Fence, NewClaim, Outcome};
use taskledger_domain::Position;
use taskledger_testkit::postgres::Database;
use taskledger_testkit::postgres::admin::{Admin, waits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_open_an_empty_database_at_once_all_succeed() {
    let database = Database::create().await;
    let options = postgres_options(database.url(), manual_clock());

    let migrated = join_all((0..4).map(|_| migrate(&options))).await;
    let opened = join_all((0..4).map(|_| PostgresStore::open(options.clone()))).await;

    let taken: Vec<_> = migrated.into_iter().map(|m| m.unwrap().taken).collect();
    assert_eq!(taken.concat(), ["0001_event_log"], "{taken:?}");
    for (n, store) in (1..).zip(opened) {
        let written = appended(store.unwrap().append(append(flow(), 0, 1)).await.unwrap());
        assert_eq!(written[0].position, n);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_program_is_refused() {
    let database = Database::create().await;
    let options = postgres_options(database.url(), manual_clock());
    migrate(&options).await.unwrap();
    let mut admin = Admin::of(&database).await;
    admin
        .run("INSERT INTO taskledger.schema_steps (purpose, number, name) VALUES ('log', 99, 'x')")
        .await;

    let error = PostgresStore::open(options).await.unwrap_err();

    assert!(
        matches!(
            error,
            OpenError::Newer {
                found: 99,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("use the newer program"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_be_reached_or_used_is_named_without_the_password() {
    let database = Database::create().await;
    let options = postgres_options(database.url(), manual_clock());
    let connect = options.connect.clone().password("hunter2");
    let nobody = Options {
        connect: connect.clone().port(1),
        ..options.clone()
    };
    let missing = Options {
        connect: connect.database("no_such_database"),
        ..options.clone()
    };

    let debug = format!("{nobody:?}");
    let nobody = PostgresStore::open(nobody).await.unwrap_err().to_string();
    let missing = PostgresStore::open(missing).await.unwrap_err().to_string();
    let mut admin = Admin::of(&database).await;
    let name = options.connect.get_database().unwrap().to_owned();
    admin
        .run(&format!(
            "ALTER DATABASE {name} SET default_transaction_read_only = on"
        ))
        .await;
    let read_only = PostgresStore::open(options).await.unwrap_err().to_string();

    assert!(nobody.contains("127.0.0.1:1"), "{nobody}");
    assert!(missing.contains("no_such_database"), "{missing}");
    assert!(read_only.contains("read-only"), "{read_only}");
    for text in [debug, nobody, missing, read_only] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_change_the_schema_is_told_what_to_do() {
    let database = Database::create().await;
    let options = postgres_options(database.url(), manual_clock());
    let mut admin = Admin::of(&database).await;
    let user = format!("user_{}", flow().0.simple());
    admin.run(&format!("CREATE ROLE {user} LOGIN")).await;
    let options = Options {
        connect: options.connect.clone().username(&user),
        ..options
    };

    let error = PostgresStore::open(options).await.unwrap_err();
    admin.run(&format!("DROP ROLE {user}")).await;

    assert!(matches!(error, OpenError::Forbidden { .. }), "{error}");
    assert!(error.to_string().contains("taskledger migrate"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_turns_read_only_refuses_writes_by_name_and_is_read() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    let stream = given_stream(&store, 1).await;
    let mut admin = Admin::of(&database).await;
    admin
        .run(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
             current_database()); END $$",
        )
        .await;
    admin.end_sessions().await;

    let first = store.append(append(stream, 1, 1)).await;
    let refused = store.append(append(stream, 1, 1)).await.unwrap_err();
    let read = store.read_stream(stream, 0, 9, usize::MAX).await.unwrap();

    // The first one finds the connection gone.
    assert!(!matches!(first, Ok(Outcome::Appended(_))), "{first:?}");
    assert!(matches!(refused, Error::NotWritable(_)), "{refused}");
    assert_eq!(read.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_character_nul_is_kept_wherever_a_caller_may_write_it() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    let fence = store.raise_fence("f\0").await.unwrap();
    let strange = |n: usize| {
        let mut new = event("name \0");
        new.metadata.actor = Arc::from("act\0r");
        new.metadata.correlation = Arc::from("\0");
        new.metadata.trace = Some(Arc::from("tr\0ce"));
        Append {
            events: vec![new],
            claims: vec![request(&format!("key \0 {n}"), "val\0e", None)],
            fence: Some(Fence {
                name: Arc::from("f\0"),
                token: fence,
            }),
            ..append(flow(), 0, 0)
        }
    };
    let appends = (0..20).map(|n| match n % 2 {
        0 => strange(n),
        _ => append(flow(), 0, 1),
    });

    let outcomes = join_all(appends.map(|one| store.append(one))).await;

    let mut written: Vec<_> = outcomes
        .into_iter()
        .flat_map(|outcome| appended(outcome.unwrap()))
        .collect();
    written.sort_by_key(|e| e.position);
    // Another server, which has nothing in memory.
    let other = open_postgres(&database, manual_clock()).await;
    assert_eq!(other.read_all(0, 100).await.unwrap().events, written);
    let key = ClaimKey::Request(Arc::from("key \0 4"));
    let held = other.claims(&[key], START).await.unwrap();
    assert_eq!(held, [Some(Arc::from("val\0e"))]);
    let taken = store.append(strange(4)).await.unwrap();
    assert!(matches!(taken, Outcome::Exists { value, .. } if &*value == "val\0e"));
    assert_eq!(other.raise_fence("f\0").await.unwrap(), fence + 1);
    assert_eq!(store.append(strange(99)).await.unwrap(), Outcome::Fenced);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_no_index_takes_is_refused_and_its_neighbours_are_written() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    // Not compressible, or an index would take more.
    let text: String = (0..80).map(|_| flow().0.simple().to_string()).collect();
    let claiming = |bytes: usize| Append {
        claims: vec![request(&text[..bytes], "v", None)],
        ..append(flow(), 0, 1)
    };

    let (long, longest, neighbour) = tokio::join!(
        store.append(claiming(2_560)),
        store.append(Append {
            claims: vec![request(&text.repeat(2), "v", None)],
            ..append(flow(), 0, 1)
        }),
        store.append(append(flow(), 0, 1)),
    );
    let fence = store.raise_fence(&text.repeat(2)).await;

    appended(long.unwrap());
    appended(neighbour.unwrap());
    assert!(matches!(longest, Err(Error::Invalid(_))), "{longest:?}");
    assert!(matches!(fence, Err(Error::Invalid(_))), "{fence:?}");
    let again = store.append(claiming(2_560)).await.unwrap();
    assert!(matches!(again, Outcome::Exists { .. }), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_whose_connections_are_all_taken_fails_reads_and_not_appends() {
    let database = Database::create().await;
    let options = Options {
        connections: 1,
        acquire_timeout: std::time::Duration::from_millis(500),
        ..postgres_options(database.url(), manual_clock())
    };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let stream = given_stream(&*store, 1).await;
    // The only connection waits for a lock on what appends do not need.
    let mut foreign = Admin::of(&database).await;
    let lock = "BEGIN; LOCK TABLE taskledger.snapshots IN ACCESS EXCLUSIVE MODE";
    foreign.run(lock).await;
    let waiting = store.clone();
    let waiting = tokio::spawn(async move { waiting.load_snapshot(stream, 1).await });
    waits(&mut Admin::of(&database).await, 1).await;

    let refused = store
        .read_stream(stream, 0, 9, usize::MAX)
        .await
        .unwrap_err();
    let written = appended(store.append(append(stream, 1, 1)).await.unwrap());
    foreign.run("ROLLBACK").await;
    let waited = waiting.await.unwrap();
    let read = store.read_stream(stream, 0, 9, usize::MAX).await.unwrap();

    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    assert!(refused.to_string().contains("stayed busy"), "{refused}");
    assert_eq!(waited.unwrap(), None);
    assert_eq!(written[0].position, 2);
    assert_eq!(read.len(), 2);
}

/// Rows arrive before the commit that follows them; only the commit counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_commit_fails_is_not_answered_as_written() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    let mut admin = Admin::of(&database).await;
    admin
        .run(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'no commit today'; END $$;
             CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON taskledger.events
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()",
        )
        .await;

    let refused = store.append(append(flow(), 0, 2)).await.unwrap_err();

    assert!(refused.to_string().contains("no commit today"), "{refused}");
    assert_eq!(store.head().await.unwrap(), 0);
    admin.run("DROP TRIGGER fail ON taskledger.events").await;
    appended(store.append(append(flow(), 0, 1)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_whose_epoch_was_cleared_away_gets_a_new_one() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    given_stream(&store, 1).await;
    let mut admin = Admin::of(&database).await;
    let before = admin.number("SELECT epoch FROM taskledger.writers").await;

    admin.run("DELETE FROM taskledger.writers").await;
    let written = appended(store.append(append(flow(), 0, 1)).await.unwrap());

    assert_eq!(written[0].position, 2);
    let after = admin.number("SELECT epoch FROM taskledger.writers").await;
    assert!(after > before, "{before}, then {after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_whose_notification_was_lost_come_all_the_same() {
    let database = Database::create().await;
    let reader = open_postgres(&database, manual_clock()).await;
    let mut admin = Admin::of(&database).await;
    let notify = "PERFORM pg_notify('taskledger', last_position::text);";
    admin
        .change_function("taskledger.append_chained", &[(notify, "NULL;")])
        .await;
    let writer = open_postgres(&database, manual_clock()).await;
    let mut watch = reader.watch();

    given_stream(&writer, 3).await;
    watch.wait_for(|head| *head == 3).await.unwrap();
    // The one that listens is gone as well.
    admin.end_sessions().await;
    let last = loop {
        // The sessions are made anew; until then outcomes are not known, or nothing is written.
        if let Ok(Outcome::Appended(events)) = writer.append(append(flow(), 0, 1)).await {
            break events[0].clone();
        }
    };
    watch.wait_for(|head| *head >= last.position).await.unwrap();

    let page = reader.read_all(last.position - 1, 1).await.unwrap();
    assert_eq!(page.events, [last]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_batch_notifies_the_head_once() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    let mut listener = sqlx::postgres::PgListener::connect(database.url())
        .await
        .unwrap();
    listener.listen("taskledger").await.unwrap();

    given_stream(&store, 3).await;
    let conflict = store.append(append(flow(), 5, 1)).await.unwrap();
    given_stream(&store, 2).await;

    assert_eq!(conflict, Outcome::Conflict { actual: 0 });
    for head in ["3", "5"] {
        assert_eq!(listener.recv().await.unwrap().payload(), head);
    }
    assert_eq!(store.commits(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_cannot_be_changed_by_statements() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    given_stream(&store, 2).await;
    let mut admin = Admin::of(&database).await;

    for sql in [
        "UPDATE taskledger.events SET data = '{}'",
        "DELETE FROM taskledger.events WHERE position = 1",
        "TRUNCATE taskledger.events",
    ] {
        let error = admin.try_run(sql).await.unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    assert_eq!(store.read_all(0, 10).await.unwrap().events.len(), 2);
}

/// The one exception, and that it is no hole in the rule.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_lets_only_archived_flows_be_deleted_and_not_their_ends() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    let kept = given_stream(&store, 2).await;
    let gone = crate::contract::suite::dropping::given_archived(&store, 2).await;
    let mut admin = Admin::of(&database).await;

    for sql in [
        "DELETE FROM taskledger.events WHERE position IN (2, 3)",
        "DELETE FROM taskledger.events WHERE position = 5",
        "DELETE FROM taskledger.events",
    ] {
        let error = admin.try_run(sql).await.unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    admin
        .run("DELETE FROM taskledger.events WHERE position IN (3, 4)")
        .await;

    let left = store.read_stream(gone, 0, 10, usize::MAX).await.unwrap();
    assert_eq!(left.iter().map(|e| e.version).collect::<Vec<_>>(), [3]);
    let whole = store.read_stream(kept, 0, 10, usize::MAX).await.unwrap();
    assert_eq!(whole.len(), 2);
}

async fn corrupt_at(store: &PostgresStore, what: &str) -> Position {
    let page = store.read_all(0, 10).await.unwrap();
    assert_eq!((page.next, page.at_end), (5, true), "{what}");
    page.damaged.first().expect(what).position
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_or_missing_row_is_named_by_its_position() {
    let database = Database::create().await;
    let stream = {
        let writer = open_postgres(&database, manual_clock()).await;
        given_stream(&writer, 5).await
    };
    let store = open_postgres(&database, manual_clock()).await;
    let mut admin = Admin::of(&database).await;
    admin
        .run("ALTER TABLE taskledger.events DISABLE TRIGGER USER")
        .await;

    for (column, other) in [
        ("data", "data || ' '"),
        ("actor", "actor || '\\x00'"),
        ("time", "time + 1"),
        ("recorded_at", "recorded_at + 1"),
        ("version", "version + 100"),
        ("id", "gen_random_uuid()"),
        ("trace", "''::bytea"),
    ] {
        let change = format!(
            "CREATE TABLE kept AS SELECT * FROM taskledger.events WHERE position = 3;
             UPDATE taskledger.events SET {column} = {other} WHERE position = 3"
        );
        admin.run(&change).await;
        assert_eq!(corrupt_at(&store, column).await, 3, "{column}");
        let back = format!(
            "UPDATE taskledger.events AS e SET {column} = kept.{column} FROM kept
             WHERE e.position = 3; DROP TABLE kept"
        );
        admin.run(&back).await;
        assert_eq!(store.read_all(0, 10).await.unwrap().events.len(), 5);
    }
    for (gone, named) in [(5, 5), (4, 4), (2, 2), (1, 1)] {
        admin
            .run(&format!(
                "DELETE FROM taskledger.events WHERE position = {gone}"
            ))
            .await;
        assert_eq!(corrupt_at(&store, "a missing row").await, named);
    }
    for (read, named) in [
        (store.read_stream(stream, 0, 10, usize::MAX).await, 3),
        (store.read_stream(stream, 0, 1, usize::MAX).await, 3),
        (store.read_stream_back(stream, 3, 10, usize::MAX).await, 3),
        (store.read_versions(stream, &[2]).await, 3),
        // Nothing follows: the last event that the stream knows of.
        (store.read_stream_back(stream, 6, 10, usize::MAX).await, 5),
        (store.read_versions(stream, &[3, 4]).await, 5),
    ] {
        assert!(
            matches!(read, Err(Error::Corrupt { position, .. }) if position == named),
            "{named}: {read:?}"
        );
    }
    for damaged in store.damage().list() {
        assert!(!is_mended(&store, &damaged).await.unwrap(), "{damaged}");
    }
    assert_eq!(store.read_versions(stream, &[3]).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_on_one_stream_that_arrive_together_are_judged_one_after_the_other() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    let stream = flow();
    let claim = |n: usize| NewClaim {
        value: Arc::from(format!("{n}")),
        ..request("one key", "", None)
    };

    // Each is right when the one before it was written.
    let chain = (0..40).map(|n| store.append(append(stream, n, 1)));
    let rivals = (0..10).map(|n| {
        store.append(Append {
            claims: vec![claim(n)],
            ..append(flow(), 0, 1)
        })
    });
    let (chain, rivals) = tokio::join!(join_all(chain), join_all(rivals));

    let versions: Vec<_> = chain
        .into_iter()
        .map(|outcome| appended(outcome.unwrap())[0].version)
        .collect();
    assert_eq!(versions, (1..=40).collect::<Vec<_>>());
    let mut rivals = rivals.into_iter().map(Result::unwrap);
    appended(rivals.next().unwrap());
    for lost in rivals {
        assert!(matches!(lost, Outcome::Exists { value, .. } if &*value == "0"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_arrived_is_written_before_the_log_closes() {
    let database = Database::create().await;
    let store = Arc::new(open_postgres(&database, manual_clock()).await);
    let appends = (0..50).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.append(append(flow(), 0, 1)).await })
    });
    let appends: Vec<_> = appends.collect();

    store.close().await;
    store.close().await;

    let mut written = 0;
    for outcome in join_all(appends).await {
        match outcome.unwrap() {
            Ok(outcome) => written += appended(outcome).len(),
            Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error}"),
        }
    }
    let late = store.append(append(flow(), 0, 1)).await.unwrap_err();
    assert!(matches!(late, Error::Unavailable(_)), "{late}");
    assert!(store.head().await.is_err());
    let mut admin = Admin::of(&database).await;
    let head = admin.number("SELECT position FROM taskledger.head").await;
    assert_eq!(usize::try_from(head), Ok(written));
}
