//! Messages whose receiver, store or clock misbehaves.

use super::*;
use crate::endpoint::{DisabledReason, EventName};
use crate::schedule::DEFAULT_SECONDS;

fn errors(delivery: &Delivery) -> Vec<Option<&'static str>> {
    delivery.log.iter().map(|attempt| attempt.error).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_arrives_is_sent_once_and_logged() {
    let world = World::new();
    let endpoint = world.endpoint(1, "ok", arrives);

    let message = world.message(endpoint);
    let delivery = world.ends(message, State::Delivered, SECOND).await;
    sleep(HOUR).await;

    assert_eq!(world.seen().len(), 1);
    assert_eq!(delivery.log.len(), 1);
    let attempt = &delivery.log[0];
    assert_eq!(
        (attempt.status, attempt.error, attempt.cause),
        (Some(200), None, Cause::Scheduled)
    );
    assert_eq!(attempt.duration_ms, 10);
    assert_eq!(delivery.attempts, 1);
    let expected = Counts {
        attempts: 1,
        delivered: 1,
        ..Counts::default()
    };
    assert_eq!(world.counts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_tried_again_under_the_same_id_and_a_fresh_timestamp() {
    let world = World::new();
    let endpoint = world.endpoint(1, "shaky", |n| {
        Does::Answers(if n == 1 { 500 } else { 200 })
    });

    let message = world.message(endpoint);
    let delivery = world.ends(message, State::Delivered, MINUTE).await;

    assert_eq!(errors(&delivery), [Some("status"), None]);
    let seen = world.seen();
    assert_eq!(seen[0].id, seen[1].id);
    assert!(seen[1].timestamp - seen[0].timestamp >= 4, "{seen:?}");
    let expected = Counts {
        attempts: 2,
        delivered: 1,
        failed: 1,
        ..Counts::default()
    };
    assert_eq!(world.counts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_never_arrives_is_dead_after_the_last_slot() {
    let world = World::new();
    let endpoint = world.endpoint(1, "broken", |_| Does::Answers(500));

    let message = world.message(endpoint);
    let delivery = world.ends(message, State::Dead, HOUR * 40).await;
    sleep(HOUR * 24).await;

    let seen = world.seen();
    assert_eq!(seen.len(), DEFAULT_SECONDS.len());
    assert_eq!(errors(&delivery), [Some("status"); 8]);
    for (pair, slot) in seen.windows(2).zip(&DEFAULT_SECONDS[1..]) {
        let (pause, slot) = ((pair[1].at - pair[0].at).as_secs_f64(), f64::from(*slot));
        // What is due is found within the shortest pause of the worker.
        assert!(
            (slot * 0.8..slot * 1.2 + 1.0).contains(&pause),
            "{pause} for {slot}"
        );
    }
    assert_eq!((world.counts().dead, world.counts().failed), (1, 8));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_can_have_a_schedule_of_its_own() {
    let world = World::new();
    let endpoint = world.endpoint(1, "broken", |_| Does::Answers(404));
    world
        .store
        .change(endpoint, |e| e.schedule = Some(Arc::from([0, 10])));

    let message = world.message(endpoint);
    let delivery = world.ends(message, State::Dead, MINUTE).await;

    assert_eq!(errors(&delivery), [Some("status"); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_gone_disables_its_endpoint_and_keeps_the_message() {
    let world = World::new();
    let endpoint = world.endpoint(1, "gone", |_| Does::Answers(410));

    let (first, second) = (world.about(endpoint, 1), world.about(endpoint, 1));
    let disabled = |w: &World| w.store.endpoint(endpoint).disabled.is_some();
    world.until(MINUTE, "it is disabled", disabled).await;
    world.message(endpoint);
    sleep(HOUR * 48).await;

    assert_eq!(world.seen().len(), 1);
    assert_eq!(
        world.store.endpoint(endpoint).disabled,
        Some(DisabledReason::Gone)
    );
    assert_eq!(
        world.store.said(),
        [(endpoint, EventName::EndpointDisabled)]
    );
    let (first, second) = (world.store.delivery(first), world.store.delivery(second));
    assert_eq!(
        (first.state, first.attempts, first.log.len()),
        (State::Waiting, 0, 1)
    );
    assert_eq!((second.state, second.log.len()), (State::Waiting, 0));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_asks_for_a_pause_gets_it_within_bounds() {
    for (asked, least, most) in [
        ("7", 7.0, 7.5),
        ("1000000000", 10.0, 10.5),
        ("-1", 4.0, 6.5),
        ("soon", 4.0, 6.5),
        ("Thu, 01 Jan 2026 00:00:08 GMT", 7.9, 8.5),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 4.0, 6.5),
    ] {
        let world = World::new();
        let does = move |n| {
            if n == 1 {
                Does::Asks(429, asked)
            } else {
                Does::Answers(200)
            }
        };
        let endpoint = world.endpoint(1, "busy", does);

        let message = world.message(endpoint);
        world.ends(message, State::Delivered, MINUTE).await;

        let seen = world.seen();
        let pause = (seen[1].at - seen[0].at).as_secs_f64();
        assert!((least..most).contains(&pause), "{asked}: {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_has_its_time_to_answer_and_not_more() {
    let world = World::new();
    let late = |ms| move |_| Does::After(Duration::from_millis(ms), 200);
    let just = world.endpoint(1, "just", late(14_900));
    let over = world.endpoint(2, "over", late(15_100));

    let (just, over) = (world.message(just), world.message(over));
    world.ends(just, State::Delivered, MINUTE).await;
    world
        .until(MINUTE, "it has failed", |w| {
            !w.store.delivery(over).log.is_empty()
        })
        .await;

    let failed = world.store.delivery(over);
    assert_eq!(failed.log[0].error, Some("timeout"));
    assert_eq!(failed.log[0].duration_ms, 15_000);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_breaks_has_failed_and_uses_its_slot() {
    let world = World::new();
    let does = |n| {
        if n == 1 {
            Does::Panics
        } else {
            Does::Answers(200)
        }
    };
    let endpoint = world.endpoint(1, "odd", does);

    let message = world.message(endpoint);
    let delivery = world.ends(message, State::Delivered, MINUTE).await;

    assert_eq!(errors(&delivery), [Some("internal"), None]);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_nothing_is_sent_twice() {
    let world = World::new();
    let endpoint = world.endpoint(1, "slow", |_| Does::After(SECOND * 2, 200));
    let message = world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;

    world.store.set_unavailable(true);
    sleep(SECOND * 30).await;
    world.store.set_unavailable(false);

    let delivery = world.ends(message, State::Delivered, SECOND * 5).await;
    assert_eq!(delivery.log.len(), 1);
    sleep(HOUR).await;
    assert_eq!(world.seen().len(), 1);
    // And it goes on.
    let next = world.message(endpoint);
    world.ends(next, State::Delivered, SECOND * 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_does_not_wait_for_a_store_that_is_away() {
    let mut world = World::idle();
    world.start(Options {
        grace: MINUTE,
        ..Options::default()
    });
    let endpoint = world.endpoint(1, "ok", |_| Does::After(SECOND, 200));
    world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;
    world.store.set_unavailable(true);

    let took = world.stop().await;

    assert!((SECOND * 5..SECOND * 8).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_recorded_while_the_lease_lasted_is_sent_again() {
    let world = World::new();
    let endpoint = world.endpoint(1, "ok", |_| Does::After(SECOND, 200));
    let message = world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;

    world.store.set_unavailable(true);
    sleep(SECOND * 90).await;
    world.store.set_unavailable(false);

    let delivery = world.ends(message, State::Delivered, MINUTE).await;
    assert_eq!(delivery.log.len(), 1);
    let seen = world.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].id, seen[1].id);
    assert!(seen[0].timestamp < seen[1].timestamp);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_stalls_nothing() {
    let world = World::new();
    let does = |n| Does::Answers(if n <= 2 { 500 } else { 200 });
    let endpoint = world.endpoint(1, "shaky", does);
    world
        .store
        .change(endpoint, |e| e.schedule = Some(Arc::from([0, 5, 60])));
    let message = world.message(endpoint);
    world
        .until(SECOND, "it has failed", |w| {
            w.store.delivery(message).log.len() == 1
        })
        .await;

    world.clock.skew_ms.store(-3_600_000, Ordering::Relaxed);

    // Pauses are twice as long at most.
    world
        .ends(
            message,
            State::Delivered,
            SECOND * (6 + 72) * 2 + SECOND * 5,
        )
        .await;
    let other = world.message(endpoint);
    world.ends(other, State::Delivered, SECOND * 10).await;
    // Receivers compare it with their own time.
    for seen in &world.seen()[1..] {
        let passed = i64::try_from((seen.at - world.clock.began).as_secs()).unwrap();
        let sent = START.0 / 1_000_000 - 3_600 + passed;
        assert!((seen.timestamp - sent).abs() <= 1, "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_leaps_ahead_brings_one_attempt_forward_and_no_more() {
    let world = World::new();
    let endpoint = world.endpoint(1, "broken", |_| Does::Answers(500));
    world.store.change(endpoint, |e| {
        e.schedule = Some(Arc::from([0, 3000, 3000, 3000]))
    });
    let message = world.message(endpoint);
    world
        .until(SECOND, "it has failed", |w| {
            w.store.delivery(message).log.len() == 1
        })
        .await;

    world.clock.skew_ms.store(3_600_000, Ordering::Relaxed);
    sleep(MINUTE * 30).await;

    assert_eq!(world.seen().len(), 2);
    assert_eq!(world.receivers.most(&format!("#{}", message.0)), 1);
    assert_eq!(world.store.fenced(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_over_which_the_clock_leaps_is_taken_again_by_the_same_worker() {
    let world = World::new();
    let endpoint = world.endpoint(1, "slow", |_| Does::After(SECOND * 10, 200));
    let (first, second) = (world.about(endpoint, 1), world.about(endpoint, 2));
    world
        .until(SECOND, "both are sent", |w| w.receivers.under_way() == 2)
        .await;

    world.clock.skew_ms.store(3_600_000, Ordering::Relaxed);
    world.about(endpoint, 3);

    for message in [first, second] {
        let delivery = world.ends(message, State::Delivered, MINUTE).await;
        assert_eq!(delivery.log.len(), 1);
        assert_eq!(world.receivers.most(&format!("#{}", message.0)), 1);
    }
    assert_eq!(world.seen().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn deleting_an_endpoint_ends_its_deliveries() {
    let world = World::new();
    let endpoint = world.endpoint(1, "slow", |_| Does::After(SECOND * 5, 500));
    world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;

    world.store.delete(endpoint);
    sleep(HOUR * 3).await;

    assert_eq!(world.seen().len(), 1);
    assert_eq!(world.counts(), Counts::default());
}

#[tokio::test(start_paused = true)]
async fn without_hints_messages_are_found_by_asking() {
    let world = World::new();
    let endpoint = world.endpoint(1, "ok", arrives);
    sleep(MINUTE).await;

    let at = world.clock.now().plus_ms(100);
    let message = world.store.add_message(endpoint, None, at);

    world.ends(message, State::Delivered, SECOND * 6).await;
}
