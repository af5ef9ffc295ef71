//! Several workers, workers that lose what they hold, workers that stop.

use super::*;

#[tokio::test(start_paused = true)]
async fn two_workers_deliver_everything_and_nothing_at_the_same_time() {
    let mut world = World::idle();
    world.start(Options::default());
    world.start(Options::default());
    let endpoints: Vec<_> = (0..20)
        .map(|n| {
            let does = |n: usize| {
                Does::After(
                    Duration::from_millis(40),
                    if n % 10 == 9 { 500 } else { 200 },
                )
            };
            world.endpoint(n, &format!("host{n}"), does)
        })
        .collect();
    let messages: Vec<_> = (0..1_000)
        .map(|n| world.about(endpoints[n % 20], (n / 20 % 7) as u128))
        .collect();

    world
        .until(HOUR * 3, "all have arrived", |w| {
            w.store
                .deliveries()
                .values()
                .all(|d| d.state == State::Delivered)
        })
        .await;

    for message in messages {
        let delivery = world.store.delivery(message);
        let arrived = delivery.log.iter().filter(|a| a.error.is_none()).count();
        assert_eq!(arrived, 1, "{delivery:?}");
        assert_eq!(world.receivers.most(&format!("#{}", message.0)), 1);
    }
    let [one, two] = [0, 1].map(|worker| world.workers[worker].handle.counts());
    assert_eq!(one.attempts + two.attempts, world.seen().len() as u64);
    assert!(
        one.attempts > 0 && two.attempts > 0,
        "both have worked: {one:?} {two:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_an_endpoint_records_nothing_there() {
    let world = World::new();
    let endpoint = world.endpoint(1, "slow", |n| match n {
        1 => Does::After(SECOND * 10, 500),
        _ => Does::Answers(200),
    });
    let message = world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;

    world.store.fence_all();
    world
        .until(SECOND * 30, "the attempt has ended", |w| {
            w.receivers.under_way() == 0
        })
        .await;
    world
        .until(MINUTE, "the loss is known", |w| w.store.fenced() > 0)
        .await;
    assert!(world.store.delivery(message).log.is_empty());

    // The lease of nobody ends, and it is sent again.
    let delivery = world.ends(message, State::Delivered, MINUTE * 2).await;
    assert_eq!((delivery.log.len(), delivery.attempts), (1, 1));
    assert_eq!(world.counts().failed, 0);
}

#[tokio::test(start_paused = true)]
async fn leases_of_a_worker_that_vanished_are_taken_over() {
    let mut world = World::new();
    let endpoint = world.endpoint(1, "slow", |n| match n {
        1 => Does::Hangs,
        _ => Does::Answers(200),
    });
    let message = world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;
    world.workers[0].task.abort();
    world
        .until(SECOND, "its attempt is over", |w| {
            w.receivers.under_way() == 0
        })
        .await;

    world.start(Options::default());

    world.ends(message, State::Delivered, SECOND * 70).await;
    let seen = world.seen();
    assert_eq!(seen[0].id, seen[1].id);
}

#[tokio::test(start_paused = true)]
async fn leases_are_kept_for_as_long_as_there_is_work() {
    let mut world = World::idle();
    let options = || Options {
        per_endpoint_max: 1,
        timeout: SECOND * 30,
        ..Options::default()
    };
    world.start(options());
    world.start(options());
    let endpoint = world.endpoint(1, "slow", |_| Does::After(SECOND * 29, 200));
    let messages: Vec<_> = (0..20).map(|task| world.about(endpoint, task)).collect();

    for message in messages {
        let delivery = world.ends(message, State::Delivered, SECOND * 40).await;
        assert_eq!(delivery.log.len(), 1);
    }

    assert_eq!(world.receivers.most("slow"), 1);
    assert_eq!(world.store.fenced(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_lets_attempts_end_and_gives_everything_back() {
    let mut world = World::new();
    for n in 0..15 {
        let endpoint = world.endpoint(n, &format!("slow{n}"), |_| Does::After(SECOND * 6, 200));
        for task in 0..20 {
            world.about(endpoint, task);
        }
    }
    world
        .until(SECOND * 2, "many are under way", |w| {
            w.receivers.under_way() >= 50
        })
        .await;
    let under_way = world.receivers.under_way();
    let sent = world.seen().len();

    let took = world.stop().await;

    assert!(took < SECOND * 7, "{took:?}");
    assert_eq!(world.seen().len(), sent, "nothing was begun");
    let deliveries = world.store.deliveries();
    let delivered = deliveries
        .values()
        .filter(|d| d.state == State::Delivered)
        .count();
    assert_eq!(delivered, under_way, "what was under way was recorded");
    assert_eq!(world.store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_waits_no_longer_than_its_grace() {
    let mut world = World::idle();
    world.start(Options {
        grace: SECOND * 3,
        ..Options::default()
    });
    let endpoint = world.endpoint(1, "hangs", |n| match n {
        1 => Does::Hangs,
        _ => Does::Answers(200),
    });
    let message = world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;

    let took = world.stop().await;

    assert!((SECOND * 3..SECOND * 4).contains(&took), "{took:?}");
    assert_eq!((world.receivers.under_way(), world.store.held()), (0, 0));
    let delivery = world.store.delivery(message);
    assert_eq!((delivery.attempts, delivery.log.len()), (0, 0));
    // The next one sends it at once.
    world.start(Options::default());
    world.ends(message, State::Delivered, SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_stops_although_the_store_is_away() {
    let mut world = World::new();
    let endpoint = world.endpoint(1, "ok", |_| Does::After(SECOND, 200));
    world.message(endpoint);
    world
        .until(SECOND, "it is sent", |w| w.receivers.under_way() == 1)
        .await;
    world.store.set_unavailable(true);

    let took = world.stop().await;

    assert!(took < SECOND * 30, "{took:?}");
}
