//! Endpoints under delivery: breakers, order, actions by hand.

use super::*;
use crate::breaker;
use crate::endpoint::{DisabledReason, EventName, Ordering as Order};

/// An endpoint that fails until a number of requests have come, with many messages.
fn failing(world: &World, until: usize, messages: u128) -> (EndpointId, Vec<DeliveryId>) {
    let does = move |n| Does::Answers(if n <= until { 503 } else { 200 });
    let endpoint = world.endpoint(1, "failing", does);
    let messages = (0..messages)
        .map(|task| world.about(endpoint, task))
        .collect();
    (endpoint, messages)
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_lets_probes_through_and_closes() {
    let world = World::new();
    let (endpoint, messages) = failing(&world, 9, 30);

    world
        .until(SECOND * 30, "it is open", |w| w.counts().open_breakers == 1)
        .await;
    // Attempts that began together end together: eight at most are sent before it is open.
    let before = world.seen().len();
    assert!((5..=8).contains(&before), "{before}");
    let tried = |w: &World| {
        w.store
            .deliveries()
            .values()
            .map(|d| d.attempts)
            .sum::<u32>()
    };
    let tried_before = tried(&world);
    sleep(SECOND * 50).await;
    assert_eq!((world.seen().len(), tried(&world)), (before, tried_before));

    world
        .until(HOUR, "all have arrived", |w| {
            let all = messages
                .iter()
                .all(|m| w.store.delivery(*m).state == State::Delivered);
            all && w.store.held() == 0
        })
        .await;

    assert_eq!(world.counts().open_breakers, 0);
    assert_eq!(world.store.endpoint(endpoint).health.failures, 0);
    assert_eq!(
        world.store.said(),
        [
            (endpoint, EventName::EndpointFailing),
            (endpoint, EventName::EndpointRecovered)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn probes_come_alone_and_ever_more_rarely() {
    let world = World::new();
    let (_, _) = failing(&world, usize::MAX, 100);
    world
        .until(SECOND * 30, "it is open", |w| w.counts().open_breakers == 1)
        .await;
    let opened = Instant::now();

    sleep(HOUR * 6).await;

    let probes: Vec<_> = world
        .seen()
        .iter()
        .filter(|s| s.at > opened)
        .map(|s| s.at)
        .collect();
    let pauses: Vec<_> = probes
        .windows(2)
        .map(|p| (p[1] - p[0]).as_secs() / 60)
        .collect();
    assert_eq!(pauses[..6], [2, 4, 8, 16, 32, 60], "{pauses:?}");
    assert!(
        pauses[6..].iter().all(|minutes| *minutes == 60),
        "{pauses:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn days_of_failure_disable_an_endpoint_and_keep_its_queue() {
    let world = World::new();
    let (endpoint, messages) = failing(&world, usize::MAX, 60);
    // All but two hours of the five days are over.
    let over_ms = breaker::GIVE_UP_MS - 2 * 3_600_000;
    let since = START.0 - i64::try_from(over_ms * 1_000).unwrap();
    world.store.change(endpoint, |e| {
        e.health.failures = 50;
        e.health.failing_since = Some(Timestamp(since));
    });

    let disabled = |w: &World| w.store.endpoint(endpoint).disabled;
    world
        .until(HOUR * 4, "it is disabled", |w| disabled(w).is_some())
        .await;
    let took = Instant::now() - world.seen()[0].at;
    let before = world.seen().len();
    sleep(HOUR * 3).await;

    assert_eq!(disabled(&world), Some(DisabledReason::Failing));
    assert!(took >= HOUR * 2, "{took:?}");
    assert_eq!(world.seen().len(), before);
    assert_eq!(world.counts().open_breakers, 0);
    let waiting = |m: &&DeliveryId| world.store.delivery(**m).state == State::Waiting;
    assert!(messages.iter().filter(waiting).count() > 50);
    // Somebody mends and enables it.
    world
        .receivers
        .rules
        .lock()
        .unwrap()
        .insert("failing".to_owned(), Box::new(arrives));
    world.store.change(endpoint, |e| {
        e.disabled = None;
        e.health = Default::default();
    });
    world
        .until(HOUR * 13, "nothing waits", |w| {
            let counts = w.counts();
            counts.delivered + counts.dead == messages.len() as u64
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_task_arrive_in_order_whatever_fails() {
    for ordering in [Order::Task, Order::Endpoint] {
        let world = World::new();
        let endpoint = world.endpoint(1, "shaky", |n| {
            Does::Answers(if n % 3 == 0 { 500 } else { 200 })
        });
        world.store.change(endpoint, |e| {
            e.ordering = ordering;
            e.schedule = Some(Arc::from([0; 20]));
        });
        for n in 0..60 {
            world.about(endpoint, n % 4);
        }

        world
            .until(HOUR, "all have arrived", |w| {
                w.store
                    .deliveries()
                    .values()
                    .all(|d| d.state == State::Delivered)
            })
            .await;

        let deliveries = world.store.deliveries();
        let mut latest = HashMap::new();
        for seen in world.seen() {
            let key = match ordering {
                Order::Endpoint => None,
                Order::Task | Order::None => deliveries[&seen.delivery].task,
            };
            let before = latest.insert(key, seen.delivery).unwrap_or(seen.delivery);
            assert!(
                before <= seen.delivery,
                "{ordering:?}: {before:?} came late"
            );
        }
        let at_once = world.receivers.most("shaky");
        assert_eq!(
            at_once == 1,
            ordering == Order::Endpoint,
            "{ordering:?}: {at_once}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_by_hand_neither_uses_nor_resets_the_schedule() {
    let world = World::new();
    let endpoint = world.endpoint(1, "broken", |_| Does::Answers(500));
    world
        .store
        .change(endpoint, |e| e.schedule = Some(Arc::from([0, 1_000])));
    let message = world.message(endpoint);
    world
        .until(SECOND, "it has failed", |w| {
            w.store.delivery(message).log.len() == 1
        })
        .await;
    let before = world.store.delivery(message);

    world.store.redeliver(message);
    world
        .until(SECOND * 5, "it was tried", |w| {
            w.store.delivery(message).log.len() == 2
        })
        .await;

    let after = world.store.delivery(message);
    assert_eq!((after.attempts, after.next_at), (1, before.next_at));
    assert!(after.log[1].cause == Cause::Manual && !after.by_hand);
    let dead = world.ends(message, State::Dead, HOUR).await;
    assert_eq!((dead.attempts, dead.log.len()), (2, 3));
    // A dead one stays dead when it fails by hand, and has arrived when it arrives.
    world.idles().await;
    world.store.redeliver(message);
    world
        .until(SECOND * 5, "it was tried", |w| {
            w.store.delivery(message).log.len() == 4
        })
        .await;
    assert_eq!(world.store.delivery(message).state, State::Dead);
    world
        .receivers
        .rules
        .lock()
        .unwrap()
        .insert("broken".to_owned(), Box::new(arrives));
    world.store.redeliver(message);
    world.ends(message, State::Delivered, MINUTE * 5).await;
    // One that has arrived is sent once more.
    world.store.redeliver(message);
    world
        .until(SECOND * 5, "it was sent", |w| {
            w.store.delivery(message).log.len() == 6
        })
        .await;
    assert_eq!(world.store.delivery(message).state, State::Delivered);
}

#[tokio::test(start_paused = true)]
async fn a_disabled_endpoint_gets_nothing_by_hand_either() {
    let world = World::new();
    let endpoint = world.endpoint(1, "ok", arrives);
    let message = world.message(endpoint);
    world.ends(message, State::Delivered, SECOND).await;
    world.idles().await;

    world
        .store
        .change(endpoint, |e| e.disabled = Some(DisabledReason::Requested));
    world.store.redeliver(message);
    let queued = world.message(endpoint);
    sleep(HOUR).await;

    assert_eq!(world.seen().len(), 1);
    // Nothing was lost.
    world.store.change(endpoint, |e| e.disabled = None);
    world.ends(queued, State::Delivered, SECOND * 10).await;
    assert_eq!(world.seen().len(), 3);
}
