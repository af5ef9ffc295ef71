//! One owner's receivers do not take the room of others.

use super::*;

/// How long each message to the healthy endpoints took to arrive, sorted.
async fn latencies_of_healthy(world: &World, healthy: &[EndpointId], rounds: u32) -> Vec<Duration> {
    let mut all = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let sent: Vec<_> = healthy.iter().map(|e| world.message(*e)).collect();
        world
            .until(MINUTE * 5, "all healthy ones have arrived", |w| {
                sent.iter()
                    .all(|m| w.store.delivery(*m).state == State::Delivered)
            })
            .await;
        let seen = world.seen();
        let at = |m: &DeliveryId| seen.iter().find(|s| s.delivery == *m).map(|s| s.at - begun);
        all.extend(sent.iter().filter_map(at));
        sleep(SECOND).await;
    }
    all.sort_unstable();
    all
}

fn healthy(world: &World) -> Vec<EndpointId> {
    let one = |n: u128| world.endpoint(1_000 + n, &format!("healthy{n}"), arrives);
    (0..100).map(one).collect()
}

fn p99(latencies: &[Duration]) -> Duration {
    latencies[latencies.len() * 99 / 100]
}

#[tokio::test(start_paused = true)]
async fn one_dead_receiver_does_not_delay_a_hundred_healthy_ones() {
    let alone = World::new();
    let without = latencies_of_healthy(&alone, &healthy(&alone), 4).await;
    let world = World::new();
    let dead = world.endpoint(1, "dead", |_| Does::Hangs);
    for task in 0..500 {
        world.about(dead, task);
    }

    let with = latencies_of_healthy(&world, &healthy(&world), 4).await;

    assert!(world.seen_by("dead") > 0);
    let (with, without) = (p99(&with), p99(&without));
    assert!(
        with <= without + Duration::from_millis(5),
        "{with:?}, was {without:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dead_host_with_many_endpoints_does_not_keep_others_out() {
    let world = World::new();
    for n in 0..1_000 {
        let dead = world.endpoint(10_000 + n, "dead", |_| Does::Hangs);
        world.message(dead);
    }
    world
        .until(MINUTE, "its places are taken", |w| {
            w.receivers.under_way() == 8
        })
        .await;

    let latencies = latencies_of_healthy(&world, &healthy(&world), 3).await;

    assert!(p99(&latencies) < SECOND, "{:?}", p99(&latencies));
    assert_eq!(world.receivers.most("dead"), 8);
}

#[tokio::test(start_paused = true)]
async fn many_dead_hosts_do_not_keep_a_healthy_one_out() {
    let world = World::new();
    for n in 0..80 {
        let dead = world.endpoint(10_000 + n, &format!("dead{n}"), |_| Does::Hangs);
        for task in 0..50 {
            world.about(dead, task);
        }
    }
    // The first attempts take all places there are; from then on each dead endpoint gets one at a time.
    sleep(SECOND * 40).await;
    assert_eq!(world.receivers.most("all"), 256);

    let latencies = latencies_of_healthy(&world, &healthy(&world), 3).await;

    assert!(p99(&latencies) < SECOND, "{:?}", p99(&latencies));
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_attempts_at_once_than_allowed() {
    let mut world = World::idle();
    world.start(Options {
        attempts_max: 20,
        per_host_max: 6,
        per_endpoint_max: 3,
        ..Options::default()
    });
    let slow = |_| Does::After(SECOND, 200);
    for n in 0..10 {
        let host = format!("slow{}", n / 2);
        let endpoint = world.endpoint(n, &host, slow);
        for task in 0..30 {
            world.about(endpoint, task);
        }
    }
    let lonely = world.endpoint(100, "lonely", slow);
    for task in 0..30 {
        world.about(lonely, task);
    }

    world
        .until(HOUR, "all have arrived", |w| w.counts().delivered == 330)
        .await;

    assert_eq!(world.receivers.most("all"), 20);
    assert_eq!(world.receivers.most("slow0"), 6);
    assert_eq!(world.receivers.most("lonely"), 3);
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_wait_for_minutes_for_a_place_are_served_in_the_end() {
    let mut world = World::idle();
    world.start(Options {
        attempts_max: 1,
        ..Options::default()
    });
    let slow = |_| Does::After(SECOND * 12, 200);
    let messages: Vec<_> = (0..20)
        .map(|n| world.message(world.endpoint(n, &format!("slow{n}"), slow)))
        .collect();

    for message in messages {
        let delivery = world
            .ends(message, State::Delivered, SECOND * 12 * 20 + MINUTE)
            .await;
        assert_eq!(delivery.log.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_another_is_under_way_begins_as_long_as_there_is_room() {
    let world = World::new();
    let slow = |n| {
        if n == 1 {
            Does::Hangs
        } else {
            Does::Answers(200)
        }
    };
    let endpoint = world.endpoint(1, "slow", slow);
    world.about(endpoint, 1);
    world
        .until(SECOND, "the first is under way", |w| w.seen().len() == 1)
        .await;

    let mut waited = Vec::new();
    // At several distances from whatever looks at its own pace.
    for (n, pause_ms) in (2..).zip([5, 130, 250, 370, 510, 777]) {
        sleep(Duration::from_millis(pause_ms)).await;
        let begun = Instant::now();
        world.about(endpoint, n);
        world
            .until(SECOND * 5, "it is sent", |w| w.seen().len() == n as usize)
            .await;
        waited.push(world.seen()[n as usize - 1].at - begun);
    }

    let longest = waited.iter().max().copied().unwrap_or_default();
    assert!(longest <= Duration::from_millis(150), "{waited:?}");
    world
        .until(SECOND, "only the first is still there", |w| {
            w.receivers.under_way() == 1
        })
        .await;
}
