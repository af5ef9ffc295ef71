//! Messages whose flow was given to somebody else before they were sent.

use super::*;
use taskledger_domain::FlowId;

/// An endpoint of Ann, and a message about a flow.
fn given(world: &World, host: &str, rule: fn(usize) -> Does) -> (FlowId, DeliveryId) {
    let endpoint = world.endpoint(1, host, rule);
    let ann = Some(Arc::from("ann"));
    world
        .store
        .change(endpoint, |endpoint| endpoint.owner = ann);
    let later = world.clock.now().plus_ms(1000);
    let message = world.store.add_message(endpoint, None, later);
    let flow = FlowId(Uuid::from_u128(7));
    let of_flow = Some(flow);
    world
        .store
        .change_delivery(message, |delivery| delivery.flow = of_flow);
    (flow, message)
}

#[tokio::test(start_paused = true)]
async fn a_message_about_a_flow_of_the_owner_is_sent() {
    let world = World::new();
    let (flow, message) = given(&world, "ok", arrives);

    world.owners.give(flow, "ann");

    world.ends(message, State::Delivered, MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_about_a_flow_that_is_somebody_elses_now_is_given_up_unsent() {
    let world = World::new();
    let (flow, message) = given(&world, "ok", arrives);

    world.owners.give(flow, "bob");

    let delivery = world.ends(message, State::Dead, MINUTE).await;
    assert_eq!(delivery.log[0].error, Some("owner"));
    assert!(world.seen().is_empty());
    let expected = Counts {
        dead: 1,
        ..Counts::default()
    };
    assert_eq!(world.counts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_checked_as_the_first_attempt_was() {
    let world = World::new();
    let (flow, message) = given(&world, "broken", |_| Does::Answers(500));
    world.owners.give(flow, "ann");
    world
        .until(MINUTE, "it is tried", |w| w.seen().len() == 1)
        .await;

    world.owners.give(flow, "bob");

    let delivery = world.ends(message, State::Dead, HOUR).await;
    let errors: Vec<_> = delivery.log.iter().map(|attempt| attempt.error).collect();
    assert_eq!(errors, [Some("status"), Some("owner")]);
    assert_eq!(world.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_nobody_can_say_whose_the_flow_is() {
    let world = World::new();
    world.owners.set_unavailable(true);
    let (_, message) = given(&world, "ok", arrives);
    sleep(MINUTE).await;
    assert!(world.seen().is_empty() && world.store.delivery(message).log.is_empty());

    world.owners.set_unavailable(false);

    world.ends(message, State::Delivered, MINUTE).await;
}
