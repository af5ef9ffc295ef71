//! Times that clocks or zones have made wrong are due again.

use super::{World, new, owner, t};
use std::sync::Arc;
use taskledger_schedules::{LOOK_AGAIN_MS, Step};

pub(super) async fn times_that_a_clock_ahead_has_noted_are_due_again(world: World) {
    let store = &world.store;
    const DAY: i64 = 86_400;
    for (id, name) in [(1, "decided"), (2, "held"), (3, "right"), (4, "ended")] {
        store.create(&new(id, None, name)).await.unwrap().unwrap();
    }
    // A clock that is a day ahead has decided a time, and another server died while it held a lease.
    for (name, next) in [("decided", Some(t(DAY + 60))), ("ended", None)] {
        let id = store
            .schedule(&owner(None), &name.into())
            .await
            .unwrap()
            .unwrap()
            .id;
        let turn = store.take(id, t(DAY), t(DAY + 10)).await.unwrap().unwrap();
        let step = Step {
            cursor: Some(t(DAY)),
            ..Step::default()
        };
        assert!(store.decide(&turn.schedule, &step).await.unwrap());
        let at = (next, next);
        store
            .let_go(&turn.schedule, at, false, (t(DAY), LOOK_AGAIN_MS))
            .await
            .unwrap();
    }
    let held = store
        .schedule(&owner(None), &"held".into())
        .await
        .unwrap()
        .unwrap();
    let held = store
        .take(held.id, t(DAY), t(DAY + 10))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        store.correct_ahead(t(DAY)).await.unwrap(),
        0,
        "by that clock all is well"
    );
    assert_eq!(store.correct_ahead(t(30)).await.unwrap(), 3);
    let due = store.take_due(t(30), t(40), 10).await.unwrap();
    let mut names: Vec<_> = due.iter().map(|turn| &*turn.schedule.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["decided", "ended", "held"]);
    let step = Step::default();
    assert!(
        !store.decide(&held.schedule, &step).await.unwrap(),
        "its lease was taken"
    );
}

pub(super) async fn another_edition_of_the_time_zones_makes_all_times_due_again(world: World) {
    let store = &world.store;
    let (old, newer) = (Arc::from("2025b"), Arc::from("2026f"));
    assert!(
        store.note_edition(&old, t(0)).await.unwrap().is_other,
        "nothing is noted yet"
    );
    store.create(&new(1, None, "a")).await.unwrap().unwrap();
    let same = store.note_edition(&old, t(10)).await.unwrap();
    assert_eq!((same.is_other, same.others.len()), (false, 0));
    assert!(store.take_due(t(10), t(20), 10).await.unwrap().is_empty());
    let other = store.note_edition(&newer, t(11)).await.unwrap();
    assert_eq!((other.is_other, &*other.others), (true, &[old.clone()][..]));
    let turn = store.take_due(t(11), t(20), 10).await.unwrap().remove(0);
    let at = (Some(t(60)), Some(t(60)));
    store
        .let_go(&turn.schedule, at, false, (t(11), LOOK_AGAIN_MS))
        .await
        .unwrap();
    // Both are in use: nothing is computed again and again.
    let mixed = store.note_edition(&old, t(12)).await.unwrap();
    assert_eq!(
        (mixed.is_other, &*mixed.others),
        (false, &[newer.clone()][..])
    );
    let mixed = store.note_edition(&newer, t(13)).await.unwrap();
    assert_eq!(
        (mixed.is_other, &*mixed.others),
        (false, &[old.clone()][..])
    );
    assert!(store.take_due(t(13), t(20), 10).await.unwrap().is_empty());
    // The last server with the old one has stopped.
    assert!(
        store
            .note_edition(&newer, t(600))
            .await
            .unwrap()
            .others
            .is_empty()
    );
    // After a long pause, a server with the edition that was used last.
    assert!(
        !store
            .note_edition(&newer, t(90_000))
            .await
            .unwrap()
            .is_other
    );
    assert!(store.note_edition(&old, t(90_001)).await.unwrap().is_other);
}
