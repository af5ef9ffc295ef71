//! Who looks again when a user declares a method, or a worker is drained.

use super::*;

#[test]
fn a_declaration_of_a_user_is_looked_at_by_those_who_wait_for_that_method_of_that_user() {
    let offers = Offers::new();
    let own = |owner: &str| MethodKey {
        name: Arc::from("a"),
        owner: Some(Arc::from(owner)),
    };
    let looks = |waiting: &mut Waiting| match waiting.now() {
        Some(Wakeup::Look) => true,
        None => false,
        Some(Wakeup::Here(_) | Wakeup::There(_)) => panic!("there is nothing here"),
    };
    let mut of_all = wait(&offers, &["b", "a"], 1);
    let mut of_ann = wait_for_own(&offers, "a", "ann");
    let mut of_bob = wait_for_own(&offers, "a", "bob");
    let mut of_another = wait(&offers, &["b"], 1);
    offers.look_for(&[own("ann")]);
    assert!(looks(&mut of_all) && looks(&mut of_ann));
    assert!(!looks(&mut of_bob) && !looks(&mut of_another));
    // Who waits under the declaration looks when it is taken back.
    let ask = Ask {
        methods: Arc::from([own("ann")]),
        reach: Reach::Of(Arc::from("ann")),
        max: 1,
        by: (Arc::from("w"), Arc::from("user:ann")),
    };
    let mut of_ann = offers.ask(ask).expect("there is room");
    offers.look_for(&[own("bob")]);
    assert!(!looks(&mut of_ann) && looks(&mut of_bob));
    offers.look_for(&[own("ann")]);
    assert!(looks(&mut of_ann) && !looks(&mut of_another));
    drop(of_another);
    assert_empty(&offers);
}

#[test]
fn a_drain_is_looked_at_by_the_worker_that_is_drained_and_no_other() {
    let offers = Offers::new();
    let looks = |waiting: &mut Waiting| matches!(waiting.now(), Some(Wakeup::Look));
    let of = |worker: &str, principal: &str| {
        let ask = Ask {
            by: (Arc::from(worker), Arc::from(principal)),
            ..asks(&["a"], Reach::All, 1)
        };
        offers.ask(ask).expect("there is room")
    };
    let mut drained = of("w", "user:ann");
    let mut others = [of("v", "user:ann"), of("w", "user:bob")];
    offers.look_of("w", &[Arc::from("user:ann")]);
    assert!(looks(&mut drained));
    assert!(!others.iter_mut().any(looks));
}
