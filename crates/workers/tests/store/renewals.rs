//! Renewals of leases.

use crate::world::{DAY, SECOND, START, World};
use std::collections::HashMap;
use taskledger_clock::{Clock, SystemClock};
use taskledger_domain::{FlowId, LeaseId, TaskId, Timestamp};
use taskledger_workers::{Renewal, Renewed};

crate::on_both_engines!(
    the_renewal_that_was_stored_last_counts,
    renewals_are_found_by_their_flow_and_forgotten_by_their_lease,
    renewals_that_ended_a_day_ago_are_swept,
);

fn until(expires_at: Timestamp) -> Renewed {
    let graces = 0;
    Renewed { expires_at, graces }
}

fn renewal(flow: FlowId, expires_at: Timestamp) -> Renewal {
    let clock = SystemClock::default();
    Renewal {
        flow,
        task: TaskId(clock.uuid()),
        attempt: 2,
        lease: LeaseId(clock.uuid()),
        expires_at,
        graces: 0,
    }
}

fn flow() -> FlowId {
    FlowId(SystemClock::default().uuid())
}

async fn the_renewal_that_was_stored_last_counts(w: World) {
    let first = renewal(flow(), START.plus_ms(60 * SECOND));
    for seconds in [60, 120, 90] {
        let expires_at = START.plus_ms(seconds * SECOND);
        let renewal = Renewal {
            expires_at,
            graces: 0,
            ..first
        };
        w.store.renew(&[renewal]).await.unwrap();
    }
    let w = w.reopened().await;
    let kept = w.store.renewals(first.flow).await.unwrap();
    let expected = START.plus_ms(90 * SECOND);
    assert_eq!(kept, HashMap::from([(first.lease, until(expected))]));
}

async fn renewals_are_found_by_their_flow_and_forgotten_by_their_lease(w: World) {
    let (one, other) = (flow(), flow());
    let of_one: Vec<_> = (0..40).map(|_| renewal(one, START)).collect();
    let of_other = renewal(other, START);
    w.store.renew(&of_one).await.unwrap();
    w.store.renew(&[of_other]).await.unwrap();
    assert_eq!(w.store.renewals(one).await.unwrap().len(), 40);
    let over: Vec<_> = of_one[1..].iter().map(|renewal| renewal.lease).collect();
    w.store.forget_renewals(&over).await.unwrap();
    let kept = w.store.renewals(one).await.unwrap();
    assert_eq!(kept, HashMap::from([(of_one[0].lease, until(START))]));
    assert_eq!(w.store.renewals(other).await.unwrap().len(), 1);
    assert!(w.store.renewals(flow()).await.unwrap().is_empty());
}

async fn renewals_that_ended_a_day_ago_are_swept(w: World) {
    let flow = flow();
    let old: Vec<_> = (0..1_100).map(|_| renewal(flow, START)).collect();
    w.store.renew(&old).await.unwrap();
    let newer = renewal(flow, START.plus_ms(SECOND));
    w.store.renew(&[newer]).await.unwrap();
    let now = START.plus_ms(DAY + SECOND);
    assert_eq!(w.store.sweep(START.plus_ms(DAY)).await.unwrap(), 0);
    assert_eq!(w.store.sweep(now).await.unwrap(), 1_100);
    let kept = w.store.renewals(flow).await.unwrap();
    assert_eq!(
        kept,
        HashMap::from([(newer.lease, until(newer.expires_at))])
    );
}
