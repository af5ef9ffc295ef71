//! Connected workers.

use crate::world::{DAY, SECOND, START, World};
use std::sync::Arc;
use taskledger_clock::{Clock, SystemClock};
use taskledger_workers::store::News;
use taskledger_workers::{Connection, Worker};
use uuid::Uuid;

crate::on_both_engines!(
    a_worker_is_there_once_for_each_server,
    who_fell_silent_is_not_found_and_is_removed_later,
    only_what_is_announced_is_a_change,
);

fn worker(name: &str, node: Option<Uuid>) -> Worker {
    Worker {
        worker: Arc::from(name),
        principal: Arc::from("user:ann\u{0}"),
        owner: Some(Arc::from("ann\u{0}")),
        node,
        methods: [Arc::from("scrape"), Arc::from("re\u{0}size")].into(),
        connection: Connection::Poll,
        since: START,
        last_seen_at: START,
    }
}

async fn a_worker_is_there_once_for_each_server(w: World) {
    let node = SystemClock::default().uuid();
    let (here, there) = (worker("w1", None), worker("w1", Some(node)));
    let both = [here.clone(), there.clone()];
    w.store.see(&both, News::Quiet).await.unwrap();
    assert_eq!(w.store.workers(START).await.unwrap(), both);
    let later = Worker {
        methods: [Arc::from("scrape")].into(),
        connection: Connection::Socket,
        last_seen_at: START.plus_ms(SECOND),
        ..here
    };
    w.store
        .see(std::slice::from_ref(&later), News::Quiet)
        .await
        .unwrap();
    assert_eq!(
        w.store.workers(START).await.unwrap(),
        [later.clone(), there]
    );
    w.store.leave(Some(node)).await.unwrap();
    assert_eq!(
        w.store.workers(START).await.unwrap(),
        std::slice::from_ref(&later)
    );
    let gone = [(later.principal, later.worker)];
    w.store.gone(&gone, Some(node)).await.unwrap();
    assert_eq!(w.store.workers(START).await.unwrap().len(), 1);
    w.store.gone(&gone, None).await.unwrap();
    assert_eq!(w.store.workers(START).await.unwrap(), []);
}

async fn who_fell_silent_is_not_found_and_is_removed_later(w: World) {
    let all: Vec<_> = (0..300).map(|n| worker(&format!("w{n}"), None)).collect();
    w.store.see(&all, News::Quiet).await.unwrap();
    let later = START.plus_ms(SECOND);
    assert_eq!(w.store.workers(START).await.unwrap().len(), 300);
    assert_eq!(w.store.workers(later).await.unwrap(), []);
    assert_eq!(w.store.sweep(later).await.unwrap(), 0);
    assert_eq!(w.store.sweep(START.plus_ms(DAY)).await.unwrap(), 300);
}

async fn only_what_is_announced_is_a_change(w: World) {
    let before = w.store.changes().await.unwrap();
    let one = [worker("w1", None)];
    w.store.see(&one, News::Quiet).await.unwrap();
    assert_eq!(w.store.changes().await.unwrap(), before);
    w.store.see(&one, News::Announced).await.unwrap();
    let after = w.store.changes().await.unwrap();
    assert!(after.presence > before.presence);
    assert_eq!(after.declared, before.declared);
}
