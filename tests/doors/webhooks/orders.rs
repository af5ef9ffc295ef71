//! What owners order of an endpoint, and what they are told of it, on the store.

use crate::webhooks::on_both_engines;
use crate::webhooks::world::{KEY, OTHER_KEY, SECRET, World, id};
use std::sync::Arc;
use taskledger::webhooks::delivery::{Cause, Deliveries, DeliveryState, Next, Secret};
use taskledger::webhooks::endpoint::{DisabledReason, EndpointId, Ordering};
use taskledger::webhooks::store::{
    Change, DeliveryFilter, DeliveryView, KEPT_PER_ENDPOINT, OLD_KEYS_MAX, Recover, Redelivered,
    Rotated, Store, WaitsFor,
};

on_both_engines!(
    a_rotation_that_would_end_a_secret_early_is_refused_and_changes_nothing,
    a_test_is_tried_once_and_what_is_recovered_says_so,
    deliveries_say_whose_they_were_when_their_endpoint_is_gone,
    what_waits_says_what_it_waits_for,
    a_secret_is_known_to_be_in_use_under_every_key,
    an_endpoint_is_as_new_as_its_owner_made_it,
    of_one_endpoint_no_more_is_shown_than_a_count,
);

async fn a_rotation_that_would_end_a_secret_early_is_refused_and_changes_nothing(world: World) {
    let endpoint = world.endpoint().await;
    let secret = |n: i64| Secret(Arc::from(format!("whsec_{}", format!("{n:02}").repeat(16))));
    let rotate = async |n: i64, grace: i64| {
        let (new, until) = (secret(n), world.later(grace));
        let rotated = world.store.rotate(endpoint, &new, until, world.now());
        rotated.await.unwrap()
    };
    for n in 1..=OLD_KEYS_MAX {
        let rotated = rotate(n, 100 + n).await;
        assert!(matches!(rotated, Rotated::Yes(_)), "{n}: {rotated:?}");
    }
    let first_end = world.later(101);
    let signing = async || {
        let keys = world.store.signing_keys(endpoint, world.now()).await;
        keys.unwrap().unwrap()
    };
    let before = signing().await;

    let refused = rotate(90, 500).await;

    assert_eq!(refused, Rotated::Full { until: first_end });
    assert_eq!(signing().await, before);
    assert_eq!(before.len() as i64, OLD_KEYS_MAX + 1);
    assert_eq!(&*before.last().unwrap().secret.0, SECRET);
    let shown = world.store.get(endpoint).await.unwrap().unwrap();
    let ends: Vec<_> = shown.key_times.iter().map(|key| key.expires_at).collect();
    let expected: Vec<_> = before.iter().map(|key| key.expires_at).collect();
    assert_eq!(ends, expected);

    // When the first has ended there is room; and without grace there always is.
    world.clock.advance_ms(101_000);
    assert!(matches!(rotate(91, 500).await, Rotated::Yes(_)));
    assert!(matches!(rotate(92, 0).await, Rotated::Yes(_)));
    assert_eq!(signing().await.len(), 1);
}

async fn a_test_is_tried_once_and_what_is_recovered_says_so(world: World) {
    let endpoint = world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let test = world.store.test(endpoint, world.now()).await.unwrap();
    let lease = world.only_lease().await;

    let due = world.due(&lease).await;
    let causes: Vec<_> = due.iter().map(|due| due.cause).collect();
    assert_eq!(causes, [Cause::Test, Cause::Scheduled]);
    for due in &due {
        world.tell(&lease, due, Next::Dead).await;
    }
    assert_eq!(world.due(&lease).await.len(), 0, "neither is tried again");
    let all = Recover {
        since: world.now(),
        until: None,
        all: true,
    };
    let count = world.store.recover(endpoint, all, world.now()).await;
    assert_eq!(count.unwrap(), Some(1), "not the test");
    let due = world.due(&lease).await.remove(0);
    world.tell(&lease, &due, Next::Delivered).await;

    let views = world.deliveries().await;
    let triggers = |view: &DeliveryView| -> Vec<_> {
        view.log.iter().map(|attempt| attempt.trigger).collect()
    };
    let (task, test_view) = (&views[0], &views[1]);
    assert_eq!(Some(test_view.id), test);
    assert_eq!(triggers(task), ["scheduled", "recovered"]);
    assert_eq!(triggers(test_view), ["test"]);
    assert_eq!(
        (test_view.state, test_view.attempts),
        (DeliveryState::Dead, 1)
    );
}

async fn deliveries_say_whose_they_were_when_their_endpoint_is_gone(world: World) {
    let endpoint = world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    world.store.delete(endpoint, world.now()).await.unwrap();

    let of_it = DeliveryFilter {
        endpoint: Some(endpoint),
        ..DeliveryFilter::default()
    };
    let shown = world.store.deliveries(&of_it, 9).await.unwrap();

    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].endpoint_id, Some(endpoint));
    assert!(world.store.knew(endpoint).await.unwrap());
    assert!(!world.store.knew(EndpointId(id(1))).await.unwrap());
    let again = world.store.redeliver(shown[0].id, None, world.now()).await;
    assert_eq!(again.unwrap(), Redelivered::Unknown);
    // When nothing of it is kept any more, it is forgotten.
    world.clock.advance_ms(32 * 24 * 3_600_000);
    world.store.sweep(world.now(), None).await.unwrap();
    assert!(!world.store.knew(endpoint).await.unwrap());
}

async fn what_waits_says_what_it_waits_for(world: World) {
    let endpoint = world.endpoint().await;
    let task = world.created(100, 0, None, None).await;
    world.started(100, task, 1).await;
    world.note_all().await;
    let waits = async || -> Vec<_> {
        let views = world.deliveries().await;
        views
            .iter()
            .map(|view| (view.waits_for, view.next_at))
            .collect()
    };
    let behind = (Some(WaitsFor::EarlierMessage), None);
    assert_eq!(waits().await, [(None, Some(world.now())), behind]);

    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);
    let mut told = world.told(&due, Next::RetryAt(world.later(5)));
    told.health.failures = 5;
    told.health.openings = 1;
    told.health.open_until = Some(world.later(60));
    world.store.record(&lease, told).await.unwrap();
    let open = (Some(WaitsFor::Breaker), Some(world.later(60)));
    assert_eq!(waits().await, [open, behind]);

    world.store.disable(endpoint, world.now()).await.unwrap();
    let off = (Some(WaitsFor::Enabling), None);
    assert_eq!(waits().await, [off, off]);
    world.store.enable(endpoint, world.now()).await.unwrap();
    assert_eq!(waits().await, [(None, Some(world.later(5))), behind]);
}

async fn a_secret_is_known_to_be_in_use_under_every_key(world: World) {
    let endpoint = world.endpoint().await;
    let (own, other) = (
        Secret(Arc::from(SECRET)),
        Secret(Arc::from("whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXI=")),
    );
    let used = async |store: &Store, secret: &Secret| {
        let used = store.is_in_use(secret, None, world.now()).await;
        used.unwrap()
    };
    assert!(used(&world.store, &own).await);
    assert!(!used(&world.store, &other).await);
    // Endpoints of others do not count.
    let ann = Some(Arc::from("ann"));
    let of_ann = world.store.is_in_use(&own, ann.as_ref(), world.now());
    assert!(!of_ann.await.unwrap());
    world.store.close().await;

    let both = world.again(&format!("{OTHER_KEY}\n{KEY}")).await.unwrap();
    assert!(used(&both, &own).await);
    both.reseal().await.unwrap();
    both.close().await;
    let new = world.again(OTHER_KEY).await.unwrap();
    assert!(used(&new, &own).await);

    let rotated = new.rotate(endpoint, &other, world.later(60), world.now());
    assert!(matches!(rotated.await.unwrap(), Rotated::Yes(_)));
    assert!(used(&new, &own).await && used(&new, &other).await);
    world.clock.advance_ms(60_000);
    assert!(!used(&new, &own).await);
    new.delete(endpoint, world.now()).await.unwrap();
    assert!(!used(&new, &other).await);
    new.close().await;
}

async fn an_endpoint_is_as_new_as_its_owner_made_it(world: World) {
    let endpoint = world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let changed = async || {
        let shown = world.store.get(endpoint).await.unwrap().unwrap();
        shown.updated_at
    };
    let made = changed().await;
    let next = || {
        world.clock.advance_ms(1_000);
        world.now()
    };
    // What becomes of attempts is no change.
    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);
    next();
    let mut gone = world.told(&due, Next::Unchanged);
    gone.disable = Some(DisabledReason::Gone);
    world.store.record(&lease, gone).await.unwrap();
    assert_eq!(changed().await, made);

    let at = next();
    world.store.enable(endpoint, at).await.unwrap();
    assert_eq!(changed().await, at);
    let at = next();
    world.store.disable(endpoint, at).await.unwrap();
    assert_eq!(changed().await, at);
    world.store.disable(endpoint, next()).await.unwrap();
    assert_eq!(changed().await, at, "it is disabled already");
    let at = next();
    let secret = Secret(Arc::from("whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXI="));
    let rotated = world.store.rotate(endpoint, &secret, at, at).await;
    assert!(matches!(rotated.unwrap(), Rotated::Yes(_)));
    assert_eq!(changed().await, at);
    let at = next();
    let change = Change::default();
    world.store.update(endpoint, &change, at).await.unwrap();
    assert_eq!(changed().await, at);
}

async fn of_one_endpoint_no_more_is_shown_than_a_count(world: World) {
    // Of two endpoints, the one has too many that have ended.
    let full = world.endpoint_with(Ordering::None).await;
    world.endpoint_with(Ordering::None).await;
    world.ended_deliveries(full, KEPT_PER_ENDPOINT + 700).await;
    world.created(100, 0, None, None).await;
    world.note_all().await;

    let mut removed = 0;
    for _ in 0..3 {
        removed += world
            .store
            .sweep(world.now(), None)
            .await
            .unwrap()
            .deliveries;
    }

    // What waits is among those that are counted.
    assert_eq!(removed, 701);
    let of_it = DeliveryFilter {
        endpoint: Some(full),
        ..DeliveryFilter::default()
    };
    let kept = world.store.deliveries(&of_it, 20_000).await.unwrap();
    assert_eq!(kept.len() as i64, KEPT_PER_ENDPOINT);
    let newest = kept[0].state;
    assert_eq!(newest, DeliveryState::Waiting, "the newest are kept");
    assert_eq!(world.states().await.len() as i64, KEPT_PER_ENDPOINT + 1);
}
