//! Postgres: sessions ended and servers crashed under load. Every append is answered, and the log
//! holds exactly what was acknowledged.

use crate::contract::fixture::{
    append, flow, manual_clock, open_postgres, postgres_options, whole_log,
};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use taskledger::store::postgres::{Options, PostgresStore};
use taskledger::store::{Append, Error, EventStore, Outcome, Resolution};
use taskledger_domain::{EventId, FlowId, Recorded, Version};
use taskledger_testkit::postgres::Database;
use taskledger_testkit::postgres::admin::Admin;
use taskledger_testkit::postgres::server::Server;
use tokio::sync::watch;

const APPENDERS: usize = 8;
const APPENDS_EACH: Version = 150;
/// Between two tries of an appender whose database is away: a load, not a wait for something.
const RETRY: Duration = Duration::from_millis(20);
/// Tries of one append: a minute's worth and more, since those of the store wait as well.
const TRIES_MAX: usize = 500;

/// Appends to a stream of its own until all is written; what was acknowledged, in order.
async fn keep_appending(
    store: Arc<PostgresStore>,
    done: watch::Sender<u64>,
) -> (FlowId, Vec<Arc<Recorded>>) {
    let stream = flow();
    let mut written = Vec::new();
    for version in 0..APPENDS_EACH {
        let one = append(stream, version, 1);
        let ids: Vec<_> = one.events.iter().map(|e| e.id).collect();
        written.extend(append_somehow(&store, one, &ids).await);
        done.send_modify(|count| *count += 1);
    }
    (stream, written)
}

/// What a mailbox does: an outcome that is not known is asked for, a failure is tried again.
async fn append_somehow(store: &PostgresStore, one: Append, ids: &[EventId]) -> Vec<Arc<Recorded>> {
    for _ in 0..TRIES_MAX {
        match store.append(one.clone()).await {
            Ok(Outcome::Appended(events)) => return events,
            Ok(Outcome::Unknown) => {
                if let Resolution::Appended(events) = resolve(store, one.stream, ids).await {
                    return events;
                }
            }
            Err(Error::Unavailable(_)) => tokio::time::sleep(RETRY).await,
            other => panic!("{other:?}"),
        }
    }
    panic!("the database did not come back");
}

async fn resolve(store: &PostgresStore, stream: FlowId, ids: &[EventId]) -> Resolution {
    for _ in 0..TRIES_MAX {
        match store.resolve(stream, ids).await {
            Ok(resolution) => return resolution,
            Err(Error::Unavailable(_)) => tokio::time::sleep(RETRY).await,
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the database did not come back");
}

/// Runs appenders on `stores` while `disturb` is called after every `every` appends, `times` times.
async fn under_load<D: AsyncFnMut()>(stores: &[Arc<PostgresStore>], times: u64, mut disturb: D) {
    let (done, mut count) = watch::channel(0);
    let appenders = (0..APPENDERS).map(|n| {
        let store = stores[n % stores.len()].clone();
        tokio::spawn(keep_appending(store, done.clone()))
    });
    let appenders = appenders.collect::<Vec<_>>();
    let total = APPENDERS as u64 * APPENDS_EACH;
    for n in 1..=times {
        let next = total * n / (times + 1);
        count.wait_for(|count| *count >= next).await.unwrap();
        disturb().await;
    }
    let mut acknowledged = Vec::new();
    for written in join_all(appenders).await {
        let (stream, written) = written.unwrap();
        let versions = written.iter().map(|e| (e.flow, e.version));
        assert!(versions.eq((1..=APPENDS_EACH).map(|version| (stream, version))));
        acknowledged.extend(written);
    }
    acknowledged.sort_by_key(|e| e.position);
    for store in stores {
        // News of the last append has come to every server, its listener restored.
        store.watch().wait_for(|head| *head == total).await.unwrap();
        let log = whole_log(&**store).await;
        assert_eq!(log.len(), acknowledged.len());
        assert_eq!(log, acknowledged, "the log is what was acknowledged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_ended_under_load_lose_nothing() {
    let database = Database::create().await;
    let mut stores = Vec::new();
    for _ in 0..2 {
        stores.push(Arc::new(open_postgres(&database, manual_clock()).await));
    }
    let mut admin = Admin::of(&database).await;
    let mut ended = 0;

    under_load(&stores, 10, async || ended += admin.end_sessions().await).await;

    assert!(ended >= 10, "{ended} sessions were ended");
}

fn patient(server: &Server) -> Options {
    Options {
        acquire_timeout: Duration::from_secs(20),
        ..postgres_options(&server.url(), manual_clock())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_or_restarts_under_load_loses_nothing_acknowledged() {
    let server = Server::begin();
    let store = PostgresStore::open(patient(&server)).await.unwrap();
    let stores = [Arc::new(store)];
    let mut crash = true;

    under_load(&stores, 4, async || {
        if crash {
            server.stop_immediately();
            server.start();
        } else {
            server.restart();
        }
        crash = !crash;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_every_call_is_told_so() {
    let server = Server::begin();
    let options = Options {
        acquire_timeout: Duration::from_millis(200),
        ..patient(&server)
    };
    let store = PostgresStore::open(options).await.unwrap();
    let stream = crate::contract::fixture::given_stream(&store, 1).await;
    server.stop_immediately();

    let (lost, ids) = {
        let lost = append(stream, 1, 1);
        let ids: Vec<_> = lost.events.iter().map(|e| e.id).collect();
        (lost, ids)
    };
    let outcome = store.append(lost).await;
    let resolution = store.resolve(stream, &ids).await;
    let read = store.read_stream(stream, 0, 1, 1).await;
    let head = store.head().await;
    let fence = store.raise_fence("f").await;
    server.start();
    let resolved = resolve(&store, stream, &ids).await;

    // The connection broke either before the append or under it.
    assert!(
        matches!(outcome, Ok(Outcome::Unknown) | Err(Error::Unavailable(_))),
        "{outcome:?}"
    );
    assert!(
        matches!(resolution, Err(Error::Unavailable(_))),
        "{resolution:?}"
    );
    for error in [read.unwrap_err(), head.unwrap_err(), fence.unwrap_err()] {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
    assert_eq!(resolved, Resolution::Absent);
}
