//! Postgres: positions become visible in their order, whoever writes and whoever is slow.

use crate::contract::fixture::{
    START, append, appended, assert_each_once_in_order, event, flow, manual_clock, open_postgres,
    postgres_options,
};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::ManualClock;
use taskledger::store::postgres::PostgresStore;
use taskledger::store::{Append, Error, EventStore, Outcome, Resolution};
use taskledger_domain::{Position, Timestamp, Version};
use taskledger_testkit::postgres::Database;
use taskledger_testkit::postgres::admin::{Admin, waits};

const APPENDERS: usize = 32;
const ROUNDS: Version = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_appenders_on_two_servers_are_seen_by_a_third_in_order() {
    let database = Database::create().await;
    let first = Arc::new(open_postgres(&database, manual_clock()).await);
    // Its clock is an hour behind, which must not show in the log.
    let behind = Arc::new(ManualClock::at(Timestamp(START.0 - 3_600_000_000)));
    let second = Arc::new(open_postgres(&database, behind).await);
    let third = open_postgres(&database, manual_clock()).await;
    let total = APPENDERS as u64 * ROUNDS * 2;
    let reader = tokio::spawn(async move {
        let mut watch = third.watch();
        let mut seen = Vec::new();
        let mut after = 0;
        while after < total {
            watch.wait_for(|head| *head > after).await.unwrap();
            // Odd page sizes, so that pages end within appends.
            let page = third.read_all(after, 7).await.unwrap();
            after = page.next;
            seen.extend(page.events);
        }
        assert!(third.read_all(after, 7).await.unwrap().at_end);
        seen
    });

    let writers = (0..APPENDERS).map(|n| {
        let store = if n % 2 == 0 { &first } else { &second }.clone();
        tokio::spawn(async move {
            let stream = flow();
            for round in 0..ROUNDS {
                // The load is uneven: this is its shape, nothing is waited for.
                let pause = u64::from(flow().0.as_bytes()[0]) * 20;
                tokio::time::sleep(Duration::from_micros(pause)).await;
                let two = append(stream, round * 2, 2);
                let written = appended(store.append(two).await.unwrap());
                assert_eq!(written[1].position, written[0].position + 1);
            }
            stream
        })
    });
    let streams = join_all(writers).await;

    let seen = reader.await.unwrap();
    let streams = streams.into_iter().map(Result::unwrap);
    assert_each_once_in_order(&seen, streams, ROUNDS * 2);
    let times: Vec<_> = seen.iter().map(|e| e.recorded_at).collect();
    assert!(times.is_sorted(), "recorded_at runs backwards");
    // Both have heard of all, and what they remember has no holes.
    for store in [first, second] {
        store.watch().wait_for(|head| *head == total).await.unwrap();
        for after in [0, total / 2, total - 3] {
            let last = (after + 5).min(total);
            let (mut at, mut positions) = (after, Vec::new());
            // A page from memory ends where this server has written last.
            while at < last {
                let page = store.read_all(at, (last - at) as usize).await.unwrap();
                assert!(page.next > at, "{page:?}");
                positions.extend(page.events.iter().map(|e| e.position));
                at = page.next;
            }
            assert_eq!(positions, (after + 1..=last).collect::<Vec<_>>());
        }
    }
}

/// Key of the advisory lock at which a commit by the actor `slow` waits.
const GATE: i64 = 7;

/// Commits by the actor `slow` wait at the gate, after all of their rows are written.
async fn given_a_gate(admin: &mut Admin) {
    admin
        .run(&format!(
            "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF NEW.actor = 'slow'::bytea THEN
                     PERFORM pg_advisory_xact_lock_shared({GATE});
                 END IF;
                 RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON taskledger.events
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate();
             SELECT pg_advisory_lock({GATE})"
        ))
        .await;
}

fn open_the_gate() -> String {
    format!("SELECT pg_advisory_unlock({GATE})")
}

/// `taskledger.append_chained` without what orders positions: numbers come from a sequence, nobody holds the
/// head.
async fn given_no_order(admin: &mut Admin) {
    admin
        .run(
            "CREATE SEQUENCE unordered_position; CREATE SEQUENCE unordered_stream;
             CREATE TABLE unordered_head (LIKE taskledger.head)",
        )
        .await;
    admin
        .change_function(
            "taskledger.append_chained",
            &[
                (
                    "SELECT h.position, h.recorded_at, h.streams,",
                    "SELECT nextval('unordered_position') - 1, h.recorded_at, \
                     nextval('unordered_stream') - 1,",
                ),
                (
                    "FROM taskledger.head AS h FOR UPDATE",
                    "FROM taskledger.head AS h",
                ),
                ("UPDATE taskledger.head AS h", "UPDATE unordered_head AS h"),
            ],
        )
        .await;
}

fn by(actor: &str) -> Append {
    let mut one = event("late");
    one.metadata.actor = Arc::from(actor);
    Append {
        events: vec![one],
        ..append(flow(), 0, 0)
    }
}

/// A reader as simple as can be: what lies behind the last that it has seen.
struct Reader {
    admin: Admin,
    seen: Vec<Position>,
}

impl Reader {
    async fn read_on(&mut self) {
        let after = self.seen.last().copied().unwrap_or(0);
        let sql = format!(
            "SELECT position FROM taskledger.events WHERE position > {after} ORDER BY position"
        );
        let more = self.admin.numbers(&sql).await;
        self.seen.extend(more.into_iter().map(i64::cast_unsigned));
    }
}

struct Late {
    database: Database,
    admin: Admin,
    reader: Reader,
    store: PostgresStore,
    slow: tokio::task::JoinHandle<Position>,
    fast: tokio::task::JoinHandle<Position>,
}

/// One server's commit waits at the gate, another server appends after it.
async fn given_a_late_commit(ordered: bool) -> Late {
    let database = Database::create().await;
    let mut stores = Vec::new();
    for _ in 0..2 {
        let options = taskledger::store::postgres::Options {
            lock_timeout: Duration::from_secs(60),
            statement_timeout: Duration::from_secs(60),
            ..postgres_options(database.url(), manual_clock())
        };
        stores.push(PostgresStore::open(options).await.unwrap());
    }
    let store = open_postgres(&database, manual_clock()).await;
    let mut admin = Admin::of(&database).await;
    if !ordered {
        given_no_order(&mut admin).await;
    }
    given_a_gate(&mut admin).await;
    let mut appends = stores
        .into_iter()
        .zip(["slow", "fast"])
        .map(|(store, actor)| async move {
            let written = appended(store.append(by(actor)).await.unwrap());
            written[0].position
        });
    let (slow, fast) = (appends.next().unwrap(), appends.next().unwrap());
    let slow = tokio::spawn(slow);
    waits(&mut admin, 1).await;
    let fast = tokio::spawn(fast);
    let reader = Reader {
        admin: Admin::of(&database).await,
        seen: Vec::new(),
    };
    Late {
        database,
        admin,
        reader,
        store,
        slow,
        fast,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_commit_is_not_overtaken() {
    let mut late = given_a_late_commit(true).await;
    // The second one stands behind the first.
    waits(&mut late.admin, 2).await;

    late.reader.read_on().await;
    let early = late.store.read_all(0, 10).await.unwrap();
    assert_eq!((late.reader.seen.len(), early.events.len()), (0, 0));
    late.admin.run(&open_the_gate()).await;
    let positions = [late.slow.await.unwrap(), late.fast.await.unwrap()];
    late.reader.read_on().await;

    assert_eq!(positions, [1, 2]);
    assert_eq!(late.reader.seen, [1, 2]);
    let page = late.store.read_all(0, 10).await.unwrap();
    assert_eq!(page.events.len(), 2);
    drop(late.database);
}

/// The same with the order switched off, so that the test above is known to notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_head_lock_a_late_commit_is_overtaken_and_its_event_lost_to_readers() {
    let mut late = given_a_late_commit(false).await;

    let fast = late.fast.await.unwrap();
    late.reader.read_on().await;
    let early = late.store.read_all(0, 10).await;
    late.admin.run(&open_the_gate()).await;
    let slow = late.slow.await.unwrap();
    late.reader.read_on().await;

    assert_eq!((slow, fast), (1, 2));
    assert_eq!(late.reader.seen, [2], "the first event was never seen");
    // Our own reader knows that positions are dense, and names the one that is missing.
    let named: Vec<_> = early
        .unwrap()
        .damaged
        .iter()
        .map(|it| it.position)
        .collect();
    assert_eq!(named, [1]);
    drop(late.database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_transaction_held_open_stalls_nobody() {
    let database = Database::create().await;
    let store = open_postgres(&database, manual_clock()).await;
    let other = open_postgres(&database, manual_clock()).await;
    let mut foreign = Admin::of(&database).await;
    foreign
        .run(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE TABLE mine (x integer);
             INSERT INTO mine SELECT count(*) FROM taskledger.events;
             LOCK TABLE taskledger.events IN ACCESS SHARE MODE",
        )
        .await;

    for n in 1..=20 {
        let written = appended(store.append(append(flow(), 0, 1)).await.unwrap());
        assert_eq!(written[0].position, n);
        other.watch().wait_for(|head| *head == n).await.unwrap();
        let page = other.read_all(n - 1, 10).await.unwrap();
        assert_eq!((page.events.len(), page.at_end), (1, true));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_holds_the_head_makes_appends_fail_clearly_until_he_lets_go() {
    let database = Database::create().await;
    let options = taskledger::store::postgres::Options {
        lock_timeout: Duration::from_millis(100),
        ..postgres_options(database.url(), manual_clock())
    };
    let store = PostgresStore::open(options).await.unwrap();
    appended(store.append(append(flow(), 0, 1)).await.unwrap());
    let mut foreign = Admin::of(&database).await;
    foreign
        .run("BEGIN; SELECT FROM taskledger.head FOR UPDATE")
        .await;

    let refused = store.append(append(flow(), 0, 1)).await.unwrap_err();
    let page = store.read_all(0, 10).await.unwrap();
    foreign.run("ROLLBACK").await;
    let after = appended(store.append(append(flow(), 0, 1)).await.unwrap());

    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(refused.to_string().contains("55P03"), "{refused}");
    assert_eq!(page.events.len(), 1);
    assert_eq!(after[0].position, 2);
}

/// A store whose statements have little time, on a database with a gate.
async fn given_an_impatient_store(database: &Database) -> (PostgresStore, Admin) {
    let options = taskledger::store::postgres::Options {
        statement_timeout: Duration::from_millis(200),
        lock_timeout: Duration::from_secs(60),
        ..postgres_options(database.url(), manual_clock())
    };
    let store = PostgresStore::open(options).await.unwrap();
    let mut admin = Admin::of(database).await;
    given_a_gate(&mut admin).await;
    (store, admin)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_too_long_is_refused_and_leaves_nothing() {
    let database = Database::create().await;
    let (store, mut admin) = given_an_impatient_store(&database).await;
    // The gate stands within the statement, not at its commit.
    admin
        .run(
            "DROP TRIGGER gate ON taskledger.events;
             CREATE TRIGGER gate AFTER INSERT ON taskledger.events
                 FOR EACH ROW EXECUTE FUNCTION gate()",
        )
        .await;

    let refused = store.append(by("slow")).await.unwrap_err();
    admin.run(&open_the_gate()).await;
    let after = appended(store.append(by("slow")).await.unwrap());

    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(refused.to_string().contains("57014"), "{refused}");
    assert_eq!(after[0].position, 1);
}

/// The server's limit on statements ends before the commit (as it does for a commit that waits for a
/// standby), so it is ours that ends the wait, and nobody knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_hangs_is_unknown_until_it_is_over() {
    let database = Database::create().await;
    let (store, mut admin) = given_an_impatient_store(&database).await;
    let slow = by("slow");
    let (stream, ids) = (slow.stream, [slow.events[0].id]);

    let outcome = store.append(slow).await.unwrap();
    let still = store.resolve(stream, &ids).await;
    let next = store.append(append(flow(), 0, 1)).await;
    admin.run(&open_the_gate()).await;
    let resolved = loop {
        match store.resolve(stream, &ids).await {
            Ok(resolution) => break resolution,
            Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error}"),
        }
    };

    assert_eq!(outcome, Outcome::Unknown);
    assert!(matches!(still, Err(Error::Unavailable(_))), "{still:?}");
    assert!(matches!(next, Err(Error::Unavailable(_))), "{next:?}");
    assert!(matches!(resolved, Resolution::Appended(_)), "{resolved:?}");
    let next = appended(store.append(append(flow(), 0, 1)).await.unwrap());
    assert_eq!(next[0].position, 2);
}
