//! What is known of each attempt.

use crate::webhooks::on_both_engines;
use crate::webhooks::world::World;
use std::sync::Arc;
use taskledger::webhooks::delivery::{Deliveries, Next, Recorded};

on_both_engines!(
    an_attempt_is_logged_with_all_that_is_known,
    an_attempt_that_is_told_again_is_recorded_once,
);

async fn an_attempt_is_logged_with_all_that_is_known(world: World) {
    world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);
    let mut told = world.told(&due, Next::RetryAt(world.later(5)));
    told.attempt.response = Some(Arc::from("nul \0 and \u{1}"));
    told.attempt.detail = Some(Arc::from("what it said"));
    told.health.failures = 3;
    told.health.open_until = Some(world.later(60));
    let health = told.health;
    world.store.record(&lease, told).await.unwrap();
    world.store.release(&lease).await.unwrap();

    let view = world.deliveries().await.remove(0);
    let attempt = &view.log[0];
    assert_eq!((attempt.status, attempt.duration_ms), (Some(500), 3));
    assert_eq!(attempt.error.as_deref(), Some("status"));
    assert_eq!(attempt.response.as_deref(), Some("nul \0 and \u{1}"));
    assert_eq!(attempt.remote.as_deref(), Some("192.0.2.1:443"));
    // The breaker is open: nothing before that.
    assert_eq!(world.store.next_due().await.unwrap(), health.open_until);
    world.clock.advance_ms(60_000);
    assert_eq!(world.lease().await[0].health, health);
}

async fn an_attempt_that_is_told_again_is_recorded_once(world: World) {
    world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);
    let told = world.told(&due, Next::RetryAt(world.later(60)));
    for _ in 0..2 {
        let recorded = world.store.record(&lease, told.clone()).await;
        assert_eq!(recorded.unwrap(), Recorded::Yes);
    }
    let view = world.deliveries().await.remove(0);
    assert_eq!(view.log.len(), 1);
}
