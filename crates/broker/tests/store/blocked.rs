//! Tasks that cannot run, and how that can change.

use crate::events::{blocked, cancelled, failed, published, requeued, started};
use crate::world::World;
use crate::{take, waiting};
use taskledger_domain::flow::RequeueReason;

pub(crate) async fn a_task_that_is_cancelled_and_run_again_is_told_of_again(world: World) {
    let store = &world.store;
    let (first, second) = (failed(3, 9, false), failed(9, 8, false));
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "bob", "b"),
        first.clone(),
    ];
    let all = [blocked(1, &first, 3), blocked(2, &first, 3)];
    assert_eq!(store.intake(0, &events, &all, 3).await.unwrap(), 3);
    // Cancelled before it began, run again, and it cannot begin again: in batches of their own, and in one.
    take(store, 3, &[cancelled(4, 1)]).await;
    take(store, 4, &[requeued(5, 1, RequeueReason::Rerun)]).await;
    let again = failed(6, 8, false);
    let told = [blocked(1, &again, 6)];
    let events = [again.clone()];
    assert_eq!(store.intake(5, &events, &told, 6).await.unwrap(), 6);
    let events = [
        cancelled(7, 2),
        requeued(8, 2, RequeueReason::Rerun),
        second.clone(),
    ];
    let told = [blocked(2, &second, 9)];
    assert_eq!(store.intake(6, &events, &told, 9).await.unwrap(), 9);
    assert_eq!(waiting(store, "ann").await, ["1 a 3", "3 a 6"]);
    assert_eq!(waiting(store, "bob").await, ["2 b 3", "4 b 9"]);
    // The cause of which they were told last does not count again.
    take(store, 9, &[cancelled(10, 1), cancelled(11, 2)]).await;
    assert_eq!(waiting(store, "ann").await.len(), 2);
    assert_eq!(waiting(store, "bob").await.len(), 2);
}

pub(crate) async fn a_server_learns_that_no_task_waits_from_what_another_noted(world: World) {
    let (one, other) = (&world.store, &world.other().await);
    let end = failed(2, 9, false);
    let told = [blocked(1, &end, 2)];
    let events = [published(1, 1, "ann", "a"), end];
    for store in [one, other] {
        assert_eq!(store.intake(0, &events, &told, 2).await.unwrap(), 2);
    }
    for store in [one, other] {
        assert_eq!(take(store, 2, &[started(3, 1)]).await, 3);
        // Here it sees that none is left.
        assert_eq!(take(store, 3, &[started(4, 9)]).await, 4);
    }
    world.run("ALTER TABLE outcomes RENAME TO gone").await;
    for store in [one, other] {
        assert_eq!(take(store, 4, &[started(5, 8)]).await, 5);
    }
    world.run("ALTER TABLE gone RENAME TO outcomes").await;
    assert_eq!(waiting(other, "ann").await, ["1 a 2"]);
}
