//! Which worker gets which offer, and when.

mod declared;

use super::*;
use futures_util::FutureExt;
use taskledger_domain::testing::{START, id};

const HOME: &str = "home";

fn flow(name: &str) -> FlowId {
    id(name).as_flow()
}

fn name(text: &str) -> MethodKey {
    MethodKey::shared(Arc::from(text))
}

/// Of a usual priority, ready since so many milliseconds after the start.
fn rank(since_ms: u64) -> Rank {
    (Priority::NORMAL, START.plus_ms(since_ms))
}

fn offer(method: &str, rank: Rank, ready: usize) -> Offer {
    let method = name(method);
    Offer {
        method,
        rank,
        ready,
    }
}

fn set_of(offers: &Arc<Offers>, of: (FlowId, Option<&str>), offered: Vec<Offer>) {
    offers.set(of, offered, &Arc::default());
}

/// What belongs to [`HOME`].
fn set(offers: &Arc<Offers>, of: &str, offered: Vec<Offer>) {
    set_of(offers, (flow(of), Some(HOME)), offered);
}

fn asks(methods: &[&str], reach: Reach, max: usize) -> Ask {
    Ask {
        methods: methods.iter().map(|method| name(method)).collect(),
        reach,
        max,
        by: (Arc::from("w"), Arc::from("user:ann")),
    }
}

fn wait(offers: &Arc<Offers>, methods: &[&str], max: usize) -> Waiting {
    let ask = asks(methods, Reach::All, max);
    offers.ask(ask).expect("there is room")
}

fn wait_for_own(offers: &Arc<Offers>, method: &str, owner: &str) -> Waiting {
    let ask = asks(&[method], Reach::Of(Arc::from(owner)), 1);
    offers.ask(ask).expect("there is room")
}

/// What the worker has been told of, if it has been told.
fn given(waiting: &mut Waiting) -> Option<Reservation> {
    match waiting.now()? {
        Wakeup::Here(reservation) => Some(reservation),
        Wakeup::There(_) | Wakeup::Look => panic!("there was nothing to be told"),
    }
}

#[track_caller]
fn gets(waiting: &mut Waiting, of: &str) -> Reservation {
    let reservation = given(waiting).expect("it gets something");
    assert_eq!(reservation.flow, flow(of));
    reservation
}

/// Nothing is left of workers or offers that are gone.
fn assert_empty(offers: &Offers) {
    assert_eq!(offers.figures(), HashMap::new());
    assert_eq!(offers.inner().waiting(), 0);
}

#[test]
fn the_best_offer_goes_to_the_worker_that_has_waited_for_the_longest_time() {
    let offers = Offers::new();
    let (mut first, mut second) = (wait(&offers, &["a"], 1), wait(&offers, &["a"], 1));
    set(&offers, "one", vec![offer("a", rank(5), 1)]);
    let held = gets(&mut first, "one");
    assert!(given(&mut second).is_none());
    set(&offers, "two", vec![offer("a", rank(9), 1)]);
    let other = gets(&mut second, "two");
    assert_eq!((held.many, other.many), (1, 1));
    assert_eq!((&*held.method.name, held.until), ("a", None));
}

#[test]
fn urgency_goes_before_age_and_age_before_the_order_of_arrival_across_flows() {
    let offers = Offers::new();
    let urgent = (Priority::ALL[0], START.plus_ms(900));
    set(&offers, "late", vec![offer("a", rank(300), 1)]);
    set(&offers, "early", vec![offer("a", rank(200), 1)]);
    set(&offers, "urgent", vec![offer("a", urgent, 1)]);
    let mut held = Vec::new();
    for expected in ["urgent", "early", "late"] {
        held.push(gets(&mut wait(&offers, &["a"], 1), expected));
    }
    assert!(given(&mut wait(&offers, &["a"], 1)).is_none());
}

#[test]
fn one_worker_is_woken_for_each_task() {
    let offers = Offers::new();
    let mut waiting: Vec<_> = (0..5).map(|_| wait(&offers, &["a"], 1)).collect();
    set(&offers, "f", vec![offer("a", rank(0), 2)]);
    let told: Vec<_> = waiting.iter_mut().map(given).collect();
    let woken: Vec<bool> = told.iter().map(Option::is_some).collect();
    assert_eq!(woken, [true, true, false, false, false]);
    // The same offer again wakes nobody while those two have not claimed.
    set(&offers, "f", vec![offer("a", rank(0), 2)]);
    assert!(waiting.iter_mut().all(|waiting| given(waiting).is_none()));
    // A third task wakes the third worker.
    set(&offers, "f", vec![offer("a", rank(0), 3)]);
    let _third = gets(&mut waiting[2], "f");
    assert!(given(&mut waiting[3]).is_none());
}

#[test]
fn workers_get_the_flows_of_their_user_only_and_others_wait_behind_nobody() {
    let offers = Offers::new();
    let mut ann = wait_for_own(&offers, "a", "ann");
    let mut bob = wait_for_own(&offers, "a", "bob");
    let mut all = wait(&offers, &["a"], 1);
    set_of(
        &offers,
        (flow("of bob"), Some("bob")),
        vec![offer("a", rank(0), 1)],
    );
    assert!(given(&mut ann).is_none());
    let _bobs = gets(&mut bob, "of bob");
    assert!(given(&mut all).is_none());
    // What belongs to nobody goes to those who may have all.
    set_of(
        &offers,
        (flow("of nobody"), None),
        vec![offer("a", rank(0), 1)],
    );
    let _nobodys = gets(&mut all, "of nobody");
    assert!(given(&mut ann).is_none());
    set_of(
        &offers,
        (flow("of ann"), Some("ann")),
        vec![offer("a", rank(0), 1)],
    );
    let _anns = gets(&mut ann, "of ann");
}

#[test]
fn no_more_attempts_begin_than_the_limit_of_a_method() {
    let offers = Offers::new();
    offers.limit(&HashMap::from([(name("a"), 2)]));
    set(&offers, "f", vec![offer("a", rank(0), 9)]);
    let mut held = gets(&mut wait(&offers, &["a"], 5), "f");
    assert_eq!(held.many, 2, "a worker that would take more gets these");
    let mut next = wait(&offers, &["a"], 5);
    assert!(given(&mut next).is_none());
    // Two begin, which the reservation stood for.
    offers.began(&held.method);
    offers.began(&held.method);
    set(&offers, "f", vec![offer("a", rank(0), 7)]);
    drop(held);
    assert!(given(&mut next).is_none());
    offers.ended(&name("a"));
    held = gets(&mut next, "f");
    assert_eq!(held.many, 1);
    // A higher limit counts at once, and no limit too.
    let mut more = wait(&offers, &["a"], 9);
    offers.limit(&HashMap::from([(name("a"), 4)]));
    let two = gets(&mut more, "f");
    assert_eq!(two.many, 2);
    let mut rest = wait(&offers, &["a"], 9);
    assert!(given(&mut rest).is_none());
    offers.limit(&HashMap::new());
    assert_eq!(gets(&mut rest, "f").many, 4);
}

#[test]
fn what_a_worker_gives_back_goes_to_the_next_one() {
    let offers = Offers::new();
    let (mut first, mut second) = (wait(&offers, &["a"], 1), wait(&offers, &["a"], 1));
    set(&offers, "f", vec![offer("a", rank(0), 1)]);
    let held = gets(&mut first, "f");
    assert!(given(&mut second).is_none());
    drop(held);
    let _again = gets(&mut second, "f");
}

#[test]
fn what_a_worker_was_given_that_went_away_unread_goes_to_the_next_one() {
    let offers = Offers::new();
    let (first, mut second) = (wait(&offers, &["a"], 1), wait(&offers, &["a"], 1));
    set(&offers, "f", vec![offer("a", rank(0), 1)]);
    drop(first);
    let held = gets(&mut second, "f");
    set(&offers, "f", Vec::new());
    drop(held);
    assert_empty(&offers);
}

#[test]
fn a_worker_that_went_away_is_not_given_anything() {
    let offers = Offers::new();
    let (first, mut second) = (wait(&offers, &["a", "b"], 1), wait(&offers, &["b"], 1));
    drop(first);
    set(&offers, "f", vec![offer("b", rank(0), 1)]);
    let _held = gets(&mut second, "f");
}

#[test]
fn a_worker_that_takes_several_stops_where_another_flow_has_the_better_right() {
    let offers = Offers::new();
    set(&offers, "old", vec![offer("a", rank(10), 5)]);
    set(&offers, "older", vec![offer("a", rank(0), 5)]);
    let held = gets(&mut wait(&offers, &["a"], 4), "older");
    assert_eq!((held.many, held.until), (4, Some(rank(10))));
    // The next one for another method of the same worker counts as well.
    let offers = Offers::new();
    set(&offers, "old", vec![offer("a", rank(20), 5)]);
    set(&offers, "other", vec![offer("b", rank(10), 5)]);
    set(&offers, "older", vec![offer("a", rank(0), 5)]);
    let held = gets(&mut wait(&offers, &["a", "b"], 4), "older");
    assert_eq!(held.until, Some(rank(10)));
    // For one task there is nothing behind it to compare.
    drop(held);
    assert_eq!(gets(&mut wait(&offers, &["a"], 1), "older").until, None);
}

#[test]
fn a_worker_that_gets_something_of_one_method_waits_for_none_of_the_others() {
    let offers = Offers::new();
    let mut both = wait(&offers, &["a", "b"], 1);
    set(&offers, "f", vec![offer("a", rank(0), 1)]);
    let held = gets(&mut both, "f");
    let mut second = wait(&offers, &["b"], 1);
    set(&offers, "g", vec![offer("b", rank(0), 1)]);
    let other = gets(&mut second, "g");
    for gone in ["f", "g"] {
        set(&offers, gone, Vec::new());
    }
    drop((held, other));
    assert_empty(&offers);
}

#[test]
fn a_worker_of_several_methods_gets_the_best_of_a_flow_that_offers_both() {
    let offers = Offers::new();
    let both = vec![offer("a", rank(5), 1), offer("b", rank(0), 1)];
    set(&offers, "f", both);
    let (first, second) = (
        gets(&mut wait(&offers, &["a", "b"], 1), "f"),
        gets(&mut wait(&offers, &["a", "b"], 1), "f"),
    );
    assert_eq!((&*first.method.name, &*second.method.name), ("b", "a"));
    // One that waited already does so too.
    let mut waiting = wait(&offers, &["a", "b"], 1);
    let both = vec![offer("a", rank(5), 9), offer("b", rank(0), 9)];
    set(&offers, "f", both);
    assert_eq!(&*gets(&mut waiting, "f").method.name, "b");
}

#[test]
fn only_so_many_workers_may_wait() {
    let offers = Offers::new();
    let waiting: Vec<_> = (0..WAITING_MAX).map(|_| wait(&offers, &["a"], 1)).collect();
    assert!(offers.ask(asks(&["b"], Reach::All, 1)).is_err());
    drop(waiting);
    assert_empty(&offers);
    let _again = wait(&offers, &["b"], 1);
}

#[test]
fn flows_that_belong_to_another_node_are_offered_here_no_more() {
    let offers = Offers::new();
    let (here, there) = (flow("f"), flow("g"));
    assert_ne!(Partitions::of(here), Partitions::of(there));
    set(&offers, "f", vec![offer("a", rank(9), 1)]);
    set(&offers, "g", vec![offer("a", rank(0), 1)]);
    offers.forget(&Partitions::of(there));
    let held = gets(&mut wait(&offers, &["a"], 1), "f");
    assert!(given(&mut wait(&offers, &["a"], 1)).is_none());
    offers.forget(&Partitions::of(here));
    drop(held);
    assert_empty(&offers);
}

#[test]
fn figures_count_tasks_attempts_and_workers() {
    let offers = Offers::new();
    let mut first = wait(&offers, &["a", "b"], 1);
    let _second = wait(&offers, &["b"], 1);
    set(&offers, "f", vec![offer("a", rank(0), 3)]);
    let held = gets(&mut first, "f");
    offers.began(&held.method);
    let of = |method: &str| {
        offers
            .figures()
            .get(&name(method))
            .copied()
            .unwrap_or_default()
    };
    let figures = |ready, leased, workers_waiting| RemoteWork {
        ready,
        oldest: (ready > 0).then(|| rank(0).1),
        leased,
        workers_waiting,
    };
    assert_eq!((of("a"), of("b")), (figures(3, 1, 0), figures(0, 0, 1)));
    assert_eq!(
        offers.ahead(&name("a"), (rank(1), flow("x")), &Reach::All, 10),
        3
    );
    assert_eq!(
        offers.ahead(&name("a"), (rank(1), flow("x")), &Reach::All, 2),
        2
    );
    assert_eq!(
        offers.ahead(&name("b"), (rank(1), flow("x")), &Reach::All, 10),
        0
    );
}

#[test]
fn tasks_that_wait_are_counted_as_far_as_they_are_in_reach() {
    let offers = Offers::new();
    for (of, owner, ready) in [("f", Some("ann"), 3), ("g", Some("bob"), 2), ("h", None, 1)] {
        set_of(&offers, (flow(of), owner), vec![offer("a", rank(0), ready)]);
    }
    let of = |reach: Reach| offers.ready_of(&reach).get(&name("a")).copied();
    assert_eq!(of(Reach::All), Some(6));
    assert_eq!(of(Reach::Of(Arc::from("ann"))), Some(3));
    assert_eq!(of(Reach::Of(Arc::from("carl"))), Some(0));
}

#[test]
fn offers_without_a_worker_here_are_for_other_nodes() {
    let offers = Offers::new();
    set(&offers, "f", vec![offer("a", rank(0), 3)]);
    let held = gets(&mut wait(&offers, &["a"], 1), "f");
    assert_eq!(offers.unwanted(), [(name("a"), 2)]);
    let node = uuid::Uuid::from_u128(7);
    let mut waiting: Vec<_> = (0..3).map(|_| wait(&offers, &["b"], 1)).collect();
    offers.hint(node, &[(name("b"), 2)]);
    let told = waiting.iter_mut().map(|waiting| match waiting.now() {
        Some(Wakeup::There(at)) => Some(at),
        Some(Wakeup::Here(_) | Wakeup::Look) => panic!("there is nothing here"),
        None => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told, [Some(node), Some(node), None]);
    drop(held);
}

#[tokio::test]
async fn workers_that_wait_when_the_server_stops_and_those_that_come_then_get_nothing() {
    let offers = Offers::new();
    let mut before = wait(&offers, &["a"], 1);
    offers.close();
    assert!(before.told().await.is_none());
    set(&offers, "f", vec![offer("a", rank(0), 1)]);
    let mut after = wait(&offers, &["a"], 1);
    assert!(after.told().await.is_none());
}

#[tokio::test]
async fn a_flow_knows_which_claims_of_its_own_tasks_are_on_their_way() {
    let offers = Offers::new();
    let coming = Arc::<Coming>::default();
    let [mut first, mut second, mut other] = ["a", "a", "b"].map(|of| wait(&offers, &[of], 1));
    // when it offers two tasks, and another flow one
    let of = (flow("one"), Some(HOME));
    offers.set(of, vec![offer("a", rank(0), 2)], &coming);
    set(&offers, "other", vec![offer("b", rank(0), 1)]);
    let mut of_first = gets(&mut first, "one");
    let of_second = gets(&mut second, "one");
    assert!(!coming.is_empty() && coming.all().now_or_never().is_none());
    drop(gets(&mut other, "other"));
    // then it waits until one claim has arrived and the other one will not come
    drop(of_first.on_its_way.take());
    assert!(coming.all().now_or_never().is_none());
    drop(of_second);
    coming.all().await;
    assert!(coming.is_empty());
}

/// Offers that owners of these weights share fairly.
fn shared(weights: &[(&str, u32)]) -> Arc<Offers> {
    let offers = Offers::new();
    let weights = weights.iter().map(|(owner, weight)| {
        let weight = std::num::NonZeroU32::new(*weight).expect("a weight");
        ((*owner).to_owned(), weight)
    });
    offers.share(Sharing::Fair(Arc::new(weights.collect())));
    offers
}

/// The owner of the task that a worker is given now, if the worker may claim all tasks or those of one owner; it claims
/// the task.
fn next_owner(offers: &Arc<Offers>, reach: Reach) -> &'static str {
    let waiting = offers.ask(asks(&["a"], reach, 10));
    let held = given(&mut waiting.expect("there is room")).expect("something is open");
    assert_eq!(held.many, 1, "others wait for their turn");
    offers.began(&held.method);
    ["ann", "bob"]
        .into_iter()
        .find(|owner| (0..100).any(|n| held.flow == flow(&format!("{owner} {n}"))))
        .expect("a flow of one of them")
}

/// Many flows of one user that are there before one flow of another, with many tasks each.
fn flood(offers: &Arc<Offers>) {
    for n in 0..100 {
        let of = (flow(&format!("ann {n}")), Some("ann"));
        set_of(offers, of, vec![offer("a", rank(n), 1_000)]);
    }
    let of = (flow("bob 0"), Some("bob"));
    set_of(offers, of, vec![offer("a", rank(500), 1_000)]);
}

#[test]
fn claims_of_two_equal_users_differ_by_one_at_most_however_much_one_of_them_has() {
    let offers = shared(&[]);
    flood(&offers);
    let mut claimed = [0_i32, 0];
    for n in 0..400 {
        let owner = next_owner(&offers, Reach::All);
        claimed[usize::from(owner == "bob")] += 1;
        assert!(
            (claimed[0] - claimed[1]).abs() <= 1,
            "{claimed:?} after {n}"
        );
    }
    assert!(offers.is_fair());
    // Of the tasks that are more urgent or older only those of others count that come first.
    let last = (Priority::NORMAL, START.plus_ms(99));
    assert!(offers.ahead(&name("a"), (last, flow("ann 99")), &Reach::All, 1_000_000) > 1_000);
}

#[test]
fn claims_of_users_are_as_their_weights() {
    let offers = shared(&[("ann", 3)]);
    flood(&offers);
    let owners = (0..40).map(|_| next_owner(&offers, Reach::All));
    let of_ann = owners.filter(|owner| *owner == "ann").count();
    assert!((29..=31).contains(&of_ann), "{of_ann} of 40");
}

#[test]
fn workers_of_different_users_share_the_limit_of_a_method() {
    let offers = shared(&[]);
    offers.limit(&HashMap::from([(name("a"), 1)]));
    flood(&offers);
    let workers = ["ann", "ann", "bob", "bob"];
    let mut workers = workers.map(|owner| (owner, wait_for_own(&offers, "a", owner)));
    let mut order = Vec::new();
    for _ in 0..4 {
        let now = |(owner, waiting): &mut (&'static str, Waiting)| Some((*owner, given(waiting)?));
        let (owner, held) = workers
            .iter_mut()
            .find_map(now)
            .expect("one is given a task");
        order.push(owner);
        offers.began(&held.method);
        drop(held);
        offers.ended(&name("a"));
    }
    assert_eq!(order, ["ann", "bob", "ann", "bob"]);
}

#[test]
fn who_waits_alone_is_given_all_that_it_wants_and_nothing_is_remembered() {
    let offers = shared(&[]);
    set(&offers, "f", vec![offer("a", rank(0), 7)]);
    let held = gets(&mut wait(&offers, &["a"], 5), "f");
    assert_eq!(held.many, 5);
    drop(held);
    set(&offers, "f", Vec::new());
    assert_empty(&offers);
}
