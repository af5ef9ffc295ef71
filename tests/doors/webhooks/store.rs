//! The store of deliveries as its worker and its callers see it.

use crate::webhooks::on_both_engines;
use crate::webhooks::world::{KEY, OTHER_KEY, SECRET, TOKEN, World, id, task, told};
use std::sync::Arc;
use taskledger::clock::Clock;
use taskledger::webhooks::delivery::{Cause, Deliveries, Next, Recorded, Secret};
use taskledger::webhooks::endpoint::{DisabledReason, EndpointId, EventName, Filter, Ordering};
use taskledger::webhooks::store::{Change, Recover, Redelivered, Rotated};
use taskledger_domain::Timestamp;

on_both_engines!(
    a_leased_endpoint_is_nobody_elses_until_its_time_is_over,
    whoever_lost_an_endpoint_changes_nothing,
    an_endpoint_comes_back_when_its_next_message_is_due,
    of_each_task_only_the_first_open_message_is_due,
    an_endpoint_in_order_has_one_message_due_and_one_without_has_all,
    an_order_that_is_changed_holds_for_what_waits,
    newer_progress_takes_the_place_of_older_and_a_status_never_does,
    what_was_given_up_begins_anew_in_its_order,
    one_order_to_send_again_sends_once_and_leaves_the_schedule,
    what_a_disabled_endpoint_would_get_is_kept_for_it,
    deleting_an_endpoint_cancels_what_waits,
    others_are_told_of_an_endpoint_if_they_ask_for_it,
    during_a_rotation_both_secrets_sign_and_then_the_new_one,
    no_secret_lies_open_and_a_new_key_seals_everything,
    what_is_old_is_removed_and_what_waits_is_kept,
);

async fn a_leased_endpoint_is_nobody_elses_until_its_time_is_over(world: World) {
    world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;

    let leased = world.lease().await;
    assert_eq!(leased.len(), 1);
    assert_eq!(&*leased[0].keys[0].secret.0, SECRET);
    assert_eq!(&*leased[0].headers[0].1.0, TOKEN);
    assert!(!format!("{leased:?}").contains("hunter2"));
    assert_eq!(world.lease().await.len(), 0);

    let until = world.later(120);
    let lease = leased[0].lease.clone();
    let renewed = world.store.renew(std::slice::from_ref(&lease), until).await;
    assert_eq!(renewed.unwrap(), [true]);
    world.clock.advance_ms(61_000);
    assert_eq!(world.lease().await.len(), 0, "it was renewed");
    world.clock.advance_ms(60_000);
    assert_eq!(world.lease().await.len(), 1);
    let renewed = world.store.renew(&[lease], until).await;
    assert_eq!(renewed.unwrap(), [false]);
}

async fn whoever_lost_an_endpoint_changes_nothing(world: World) {
    let endpoint = world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let old = world.only_lease().await;
    let due = world.due(&old).await.remove(0);
    world.clock.advance_ms(61_000);
    let new = world.only_lease().await;

    assert_eq!(world.tell(&old, &due, Next::Dead).await, Recorded::Fenced);
    assert_eq!(world.due(&old).await.len(), 0);
    assert_eq!(world.states().await, ["waiting"]);
    assert_eq!(world.tell(&new, &due, Next::Delivered).await, Recorded::Yes);
    assert_eq!(world.deliveries().await[0].log.len(), 1);
    world.store.delete(endpoint, world.now()).await.unwrap();
    assert_eq!(world.tell(&new, &due, Next::Dead).await, Recorded::Gone);
}

async fn an_endpoint_comes_back_when_its_next_message_is_due(world: World) {
    world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);

    let next = Next::RetryAt(world.later(300));
    assert_eq!(world.tell(&lease, &due, next).await, Recorded::Yes);
    world.store.release(&lease).await.unwrap();

    assert_eq!(world.lease().await.len(), 0);
    let next_due = world.store.next_due().await.unwrap();
    assert_eq!(next_due, Some(world.later(300)));
    world.clock.advance_ms(300_000);
    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);
    assert_eq!((due.attempts, due.cause), (1, Cause::Scheduled));
    world.tell(&lease, &due, Next::Delivered).await;
    world.store.release(&lease).await.unwrap();
    assert_eq!(world.store.next_due().await.unwrap(), None);
}

async fn of_each_task_only_the_first_open_message_is_due(world: World) {
    world.endpoint().await;
    let first = world.created(100, 0, None, None).await;
    let second = world.created(200, 0, None, None).await;
    world.started(100, first, 1).await;
    world.started(200, second, 1).await;
    world.note_all().await;
    let lease = world.only_lease().await;

    let due = world.due(&lease).await;
    let tasks: Vec<_> = due.iter().map(|due| due.task.unwrap()).collect();
    assert_eq!(tasks, [first, second]);
    assert!(due.iter().all(|due| told(due)["status"] == "pending"));

    // The one fails and waits, the other goes on.
    world
        .tell(&lease, &due[0], Next::RetryAt(world.later(60)))
        .await;
    world.tell(&lease, &due[1], Next::Delivered).await;
    let due = world.due(&lease).await;
    assert_eq!(due.len(), 1);
    assert_eq!(
        (due[0].task, &told(&due[0])["status"]),
        (Some(second), &"in_progress".into())
    );
    let under_way = world.store.due(&lease, world.now(), &[due[0].id], 9).await;
    assert_eq!(under_way.unwrap().len(), 0);

    // Given up, the next one of its task follows.
    world.clock.advance_ms(60_000);
    let retry = world.due(&lease).await;
    let retry = retry.iter().find(|due| due.task == Some(first)).unwrap();
    assert_eq!(retry.attempts, 1);
    world.tell(&lease, retry, Next::Dead).await;
    let due = world.due(&lease).await;
    assert!(
        due.iter()
            .any(|d| d.task == Some(first) && told(d)["status"] == "in_progress")
    );
}

async fn an_endpoint_in_order_has_one_message_due_and_one_without_has_all(world: World) {
    let ordered = world.endpoint_with(Ordering::Endpoint).await;
    world.endpoint_with(Ordering::None).await;
    for flow in [100, 200] {
        let task = world.created(flow, 0, None, None).await;
        world.started(flow, task, 1).await;
    }
    world.note_all().await;

    for leased in world.lease().await {
        let due = world.due(&leased.lease).await;
        if leased.lease.endpoint == ordered {
            assert_eq!(due.len(), 1);
            world.tell(&leased.lease, &due[0], Next::Delivered).await;
            let next = world.due(&leased.lease).await;
            assert_eq!((next.len(), next[0].task), (1, Some(task(100))));
        } else {
            assert_eq!(due.len(), 4);
        }
    }
}

async fn an_order_that_is_changed_holds_for_what_waits(world: World) {
    let endpoint = world.endpoint().await;
    for flow in [100, 200] {
        let task = world.created(flow, 0, None, None).await;
        world.started(flow, task, 1).await;
    }
    world.note_all().await;
    let lease = world.only_lease().await;
    for (ordering, due) in [
        (Ordering::Endpoint, 1),
        (Ordering::None, 4),
        (Ordering::Task, 2),
    ] {
        let change = Change {
            ordering: Some(ordering),
            ..Change::default()
        };
        world
            .store
            .update(endpoint, &change, world.now())
            .await
            .unwrap();
        assert_eq!(world.due(&lease).await.len(), due, "{ordering:?}");
    }
}

async fn newer_progress_takes_the_place_of_older_and_a_status_never_does(world: World) {
    world.endpoint().await;
    let task = world.created(100, 0, None, None).await;
    world.started(100, task, 1).await;
    world.progressed(100, task, 100_000).await;
    world.note_all().await;
    world.progressed(100, task, 200_000).await;
    world.progressed(100, task, 300_000).await;
    world.note_all().await;
    assert_eq!(
        world.states().await,
        ["waiting", "waiting", "superseded", "superseded", "waiting"]
    );

    // One that may be under way stays.
    let lease = world.only_lease().await;
    for _ in 0..2 {
        let due = world.due(&lease).await.remove(0);
        world.tell(&lease, &due, Next::Delivered).await;
    }
    assert_eq!(told(&world.due(&lease).await[0])["progress"], 0.3);
    world.progressed(100, task, 400_000).await;
    world.note_all().await;
    assert_eq!(world.states().await[4..], ["waiting", "waiting"]);
}

async fn what_was_given_up_begins_anew_in_its_order(world: World) {
    let endpoint = world.endpoint().await;
    let task = world.created(100, 0, None, None).await;
    world.started(100, task, 1).await;
    world.completed(100, task).await;
    world.note_all().await;
    let since = world.now();
    let lease = world.only_lease().await;
    for next in [Next::Delivered, Next::Dead, Next::Dead] {
        let due = world.due(&lease).await.remove(0);
        world.tell(&lease, &due, next).await;
    }
    assert_eq!(
        world.states().await,
        ["delivered", "dead", "dead", "waiting"]
    );

    let dead = Recover {
        since,
        until: None,
        all: false,
    };
    let count = world.store.recover(endpoint, dead, world.now()).await;
    assert_eq!(count.unwrap(), Some(2));

    let mut statuses = Vec::new();
    loop {
        let due = world.due(&lease).await;
        let Some(due) = due.first() else { break };
        assert_eq!(due.attempts, 0);
        statuses.push(told(due)["type"].clone());
        world.tell(&lease, due, Next::Delivered).await;
    }
    assert_eq!(
        statuses,
        ["task_status_update", "task_status_update", "task_completed"]
    );
    let all = Recover { all: true, ..dead };
    let count = world.store.recover(endpoint, all, world.now()).await;
    assert_eq!(count.unwrap(), Some(4));
    let later = Recover {
        since: world.later(1),
        ..all
    };
    let count = world.store.recover(endpoint, later, world.now()).await;
    assert_eq!(count.unwrap(), Some(0));
    let unknown = EndpointId(id(1));
    let count = world.store.recover(unknown, all, world.now()).await;
    assert_eq!(count.unwrap(), None);
}

async fn one_order_to_send_again_sends_once_and_leaves_the_schedule(world: World) {
    let endpoint = world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let lease = world.only_lease().await;
    let first = world.due(&lease).await.remove(0);
    let retry_at = world.later(600);
    world.tell(&lease, &first, Next::RetryAt(retry_at)).await;
    world.store.release(&lease).await.unwrap();

    let key: Option<Arc<str>> = Some(Arc::from("k"));
    let delivery = first.id.0;
    let again = || world.store.redeliver(delivery, key.clone(), world.now());
    assert_eq!(again().await.unwrap(), Redelivered::Queued(delivery));
    assert_eq!(again().await.unwrap(), Redelivered::Already(delivery));

    let lease = world.only_lease().await;
    let by_hand = world.due(&lease).await;
    assert_eq!(by_hand.len(), 1);
    assert_eq!(by_hand[0].cause, Cause::Manual);
    assert_eq!(
        (&by_hand[0].message_id, &by_hand[0].body),
        (&first.message_id, &first.body)
    );
    world.tell(&lease, &by_hand[0], Next::Unchanged).await;
    assert_eq!(world.due(&lease).await.len(), 0);
    let view = world.deliveries().await.remove(0);
    assert_eq!((view.attempts, view.next_at), (1, Some(retry_at)));
    let triggers: Vec<_> = view.log.iter().map(|attempt| attempt.trigger).collect();
    assert_eq!(triggers, ["scheduled", "manual"]);

    // The same key again sends nothing; another one does, also when it has arrived.
    assert_eq!(again().await.unwrap(), Redelivered::Already(delivery));
    world.clock.advance_ms(600_000);
    let due = world.due(&lease).await.remove(0);
    world.tell(&lease, &due, Next::Delivered).await;
    let other = world.store.redeliver(delivery, None, world.now()).await;
    assert_eq!(other.unwrap(), Redelivered::Queued(delivery));
    let due = world.due(&lease).await.remove(0);
    world.tell(&lease, &due, Next::Unchanged).await;
    assert_eq!(world.states().await, ["delivered"]);

    world.store.disable(endpoint, world.now()).await.unwrap();
    let refused = world.store.redeliver(delivery, None, world.now()).await;
    assert_eq!(refused.unwrap(), Redelivered::Disabled);
    let unknown = world.store.redeliver(4711, None, world.now()).await;
    assert_eq!(unknown.unwrap(), Redelivered::Unknown);
}

async fn what_a_disabled_endpoint_would_get_is_kept_for_it(world: World) {
    let endpoint = world.endpoint().await;
    let task = world.created(100, 0, None, None).await;
    world.note_all().await;
    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);
    let mut gone = world.told(&due, Next::Unchanged);
    gone.disable = Some(DisabledReason::Gone);
    world.store.record(&lease, gone).await.unwrap();
    world.started(100, task, 1).await;
    world.note_all().await;

    assert_eq!(world.due(&lease).await.len(), 0);
    world.store.release(&lease).await.unwrap();
    assert_eq!(world.lease().await.len(), 0);
    let shown = world.store.get(endpoint).await.unwrap().unwrap();
    assert_eq!(shown.disabled.unwrap().0, DisabledReason::Gone);

    let enabled = world.store.enable(endpoint, world.now()).await.unwrap();
    assert_eq!(enabled.unwrap().disabled, None);
    let lease = world.only_lease().await;
    for _ in 0..2 {
        let due = world.due(&lease).await.remove(0);
        world.tell(&lease, &due, Next::Delivered).await;
    }
    assert_eq!(world.states().await, ["delivered", "delivered"]);
}

async fn deleting_an_endpoint_cancels_what_waits(world: World) {
    let endpoint = world.endpoint().await;
    world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;

    let deleted = world.store.delete(endpoint, world.now()).await.unwrap();

    assert_eq!(deleted, Some(1));
    let mut states = world.states().await;
    states.sort();
    assert_eq!(states, ["cancelled", "waiting"]);
    assert_eq!(world.store.get(endpoint).await.unwrap(), None);
    assert_eq!(world.lease().await.len(), 1);
    let again = world.store.delete(endpoint, world.now()).await;
    assert_eq!(again.unwrap(), None);
}

async fn others_are_told_of_an_endpoint_if_they_ask_for_it(world: World) {
    let events: Arc<[EventName]> = Arc::from([EventName::EndpointFailing]);
    let asks = Filter {
        events: Some(events),
        ..Filter::default()
    };
    let watcher = world.create(world.new_endpoint(asks)).await;
    let failing = world.endpoint().await;
    world.created(100, 0, None, None).await;
    world.note_all().await;
    let lease = world.only_lease().await;
    assert_eq!(lease.endpoint, failing);
    let due = world.due(&lease).await.remove(0);
    for event in [EventName::EndpointFailing, EventName::EndpointRecovered] {
        let mut said = world.told(&due, Next::RetryAt(world.later(5)));
        said.say = Some(event);
        said.health.failures = 4;
        world.store.record(&lease, said).await.unwrap();
    }

    let lease = world.only_lease().await;
    assert_eq!(lease.endpoint, watcher);
    let due = world.due(&lease).await;
    assert_eq!(due.len(), 1);
    let said = told(&due[0]);
    assert_eq!(said["type"], "webhook.endpoint.failing");
    assert_eq!(said["endpoint_id"], failing.to_string());
    assert_eq!(said["failures"], 4);
}

async fn during_a_rotation_both_secrets_sign_and_then_the_new_one(world: World) {
    let endpoint = world.endpoint().await;
    let secrets = async || -> Vec<String> {
        let keys = world.store.signing_keys(endpoint, world.now()).await;
        let keys = keys.unwrap().unwrap();
        keys.iter().map(|key| key.secret.0.to_string()).collect()
    };
    let rotate = async |n: u32, seconds: i64| {
        let new = Secret(Arc::from(format!("whsec_new{n}")));
        let until = world.later(seconds);
        let done = world.store.rotate(endpoint, &new, until, world.now()).await;
        assert!(matches!(done.unwrap(), Rotated::Yes(_)), "{n}");
    };
    rotate(1, 60).await;
    assert_eq!(secrets().await, ["whsec_new1", SECRET]);
    world.clock.advance_ms(60_000);
    assert_eq!(secrets().await, ["whsec_new1"]);
    for n in 2..7 {
        rotate(n, 3600).await;
    }
    assert_eq!(
        secrets().await.len(),
        6,
        "the present one and five old ones"
    );
    rotate(10, 0).await;
    assert_eq!(secrets().await, ["whsec_new10"], "no grace, no old ones");
}

async fn no_secret_lies_open_and_a_new_key_seals_everything(world: World) {
    let endpoint = world.endpoint().await;
    let dump = world.dump().await;
    let holds = |dump: &[u8], text: &str| dump.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(
        holds(&dump, "receiver.example"),
        "the dump shows what is open"
    );
    for secret in [SECRET, TOKEN, &SECRET[6..]] {
        assert!(!holds(&dump, secret));
    }
    world.store.close().await;

    let refused = world.again(OTHER_KEY).await.unwrap_err();
    assert!(
        refused.to_string().contains("not in the key file"),
        "{refused}"
    );
    let both = world.again(&format!("{OTHER_KEY}\n{KEY}")).await.unwrap();
    assert_eq!(both.reseal().await.unwrap(), 2);
    assert_eq!(both.reseal().await.unwrap(), 0);
    both.close().await;
    let new = world.again(OTHER_KEY).await.unwrap();
    let keys = new.signing_keys(endpoint, world.now()).await.unwrap();
    assert_eq!(&*keys.unwrap()[0].secret.0, SECRET);
    new.close().await;
}

async fn what_is_old_is_removed_and_what_waits_is_kept(world: World) {
    world.endpoint().await;
    for flow in [100, 200] {
        world.created(flow, 0, None, None).await;
    }
    world.note_all().await;
    let lease = world.only_lease().await;
    let due = world.due(&lease).await.remove(0);
    world.tell(&lease, &due, Next::Delivered).await;
    let month = 30 * 24 * 3_600_000;

    world.clock.advance_ms(month - 60_000);
    let swept = world.store.sweep(world.now(), None).await.unwrap();
    assert_eq!(swept.deliveries, 0);
    world.clock.advance_ms(120_000);
    let swept = world.store.sweep(world.now(), None).await.unwrap();
    assert_eq!(swept.deliveries, 1);
    assert_eq!(world.states().await, ["waiting"]);
    assert_eq!(world.now(), Timestamp(world.clock.now().0));
}
