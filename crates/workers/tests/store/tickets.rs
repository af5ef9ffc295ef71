//! Places of methods with a limit.

use crate::world::{self, DAY, SECOND, START, World};
use std::sync::Arc;
use taskledger_clock::{Clock, SystemClock};
use taskledger_domain::{FlowId, LeaseId, TaskId, Timestamp};
use taskledger_workers::{Method, MethodKey, Renewal, Rights};

crate::on_both_engines!(
    no_more_tickets_are_taken_than_the_limit_allows,
    a_method_without_a_limit_gives_everybody_a_ticket,
    tickets_count_while_the_lease_holds,
    attempts_under_way_keep_theirs_whatever_the_limit,
    tickets_that_ended_a_day_ago_are_swept,
    many_at_once_share_one_limit,
    what_a_user_has_declared_for_themselves_counts_by_itself,
);

fn leases(many: usize) -> Vec<LeaseId> {
    let clock = SystemClock::default();
    (0..many).map(|_| LeaseId(clock.uuid())).collect()
}

async fn limited(w: &World, limit: Option<u32>) -> MethodKey {
    let method = Method {
        limit,
        ..world::method("scrape", "user:a")
    };
    w.store
        .declare(&method, Rights::Own)
        .await
        .unwrap()
        .unwrap();
    method.key()
}

async fn take(
    w: &World,
    method: &MethodKey,
    wanted: &[LeaseId],
    over: &[LeaseId],
    now: Timestamp,
) -> usize {
    let wanted = (wanted, now.plus_ms(60 * SECOND));
    w.store
        .take_tickets(method, wanted, over, now)
        .await
        .unwrap()
}

async fn no_more_tickets_are_taken_than_the_limit_allows(w: World) {
    let method = limited(&w, Some(3)).await;
    let (first, second) = (leases(2), leases(2));
    assert_eq!(take(&w, &method, &first, &[], START).await, 2);
    assert_eq!(take(&w, &method, &second, &[], START).await, 1);
    assert_eq!(take(&w, &method, &leases(1), &[], START).await, 0);
    w.store.give_tickets_back(&first[..1]).await.unwrap();
    assert_eq!(take(&w, &method, &leases(5), &[], START).await, 1);
    // What is over is free for the call that says it.
    assert_eq!(
        take(&w, &method, &leases(5), &[first[1], second[0]], START).await,
        2
    );
    let w = w.reopened().await;
    assert_eq!(take(&w, &method, &leases(1), &[], START).await, 0);
}

async fn a_method_without_a_limit_gives_everybody_a_ticket(w: World) {
    let method = limited(&w, None).await;
    for method in [&method, &MethodKey::shared(Arc::from("unknown"))] {
        assert_eq!(take(&w, method, &leases(50), &[], START).await, 50);
        assert_eq!(take(&w, method, &leases(50), &[], START).await, 50);
    }
}

async fn tickets_count_while_the_lease_holds(w: World) {
    let method = limited(&w, Some(2)).await;
    let both = leases(2);
    assert_eq!(take(&w, &method, &both, &[], START).await, 2);
    let clock = SystemClock::default();
    let renewal = Renewal {
        flow: FlowId(clock.uuid()),
        task: TaskId(clock.uuid()),
        attempt: 1,
        lease: both[0],
        expires_at: START.plus_ms(120 * SECOND),
        graces: 0,
    };
    w.store.renew(&[renewal]).await.unwrap();
    let at = |seconds| START.plus_ms(seconds * SECOND);
    assert_eq!(take(&w, &method, &leases(2), &[], at(59)).await, 0);
    assert_eq!(take(&w, &method, &leases(2), &[], at(60)).await, 1);
}

async fn attempts_under_way_keep_theirs_whatever_the_limit(w: World) {
    let method = limited(&w, Some(2)).await;
    let before = leases(5);
    let until = START.plus_ms(60 * SECOND);
    let tickets: Vec<_> = before
        .iter()
        .map(|lease| (method.clone(), *lease, until))
        .collect();
    w.store.keep_tickets(&tickets).await.unwrap();
    assert_eq!(take(&w, &method, &leases(1), &[], START).await, 0);
    assert_eq!(take(&w, &method, &leases(2), &before[..4], START).await, 1);
}

async fn tickets_that_ended_a_day_ago_are_swept(w: World) {
    let method = limited(&w, Some(2)).await;
    assert_eq!(take(&w, &method, &leases(2), &[], START).await, 2);
    let end = START.plus_ms(60 * SECOND);
    assert_eq!(w.store.sweep(end.plus_ms(DAY)).await.unwrap(), 0);
    assert_eq!(w.store.sweep(end.plus_ms(DAY + 1)).await.unwrap(), 2);
}

async fn many_at_once_share_one_limit(w: World) {
    let method = limited(&w, Some(4)).await;
    let (a, b, c) = (leases(2), leases(3), leases(4));
    let taken = tokio::join!(
        take(&w, &method, &a, &[], START),
        take(&w, &method, &b, &[], START),
        take(&w, &method, &c, &[], START),
    );
    assert_eq!(taken.0 + taken.1 + taken.2, 4, "{taken:?}");
}

async fn what_a_user_has_declared_for_themselves_counts_by_itself(w: World) {
    let shared = limited(&w, Some(2)).await;
    let own = Method {
        owner: Some(Arc::from("bob")),
        limit: Some(1),
        ..world::method("scrape", "user:bob")
    };
    w.store.declare(&own, Rights::Own).await.unwrap().unwrap();
    assert_eq!(take(&w, &own.key(), &leases(5), &[], START).await, 1);
    assert_eq!(take(&w, &shared, &leases(5), &[], START).await, 2);
}
