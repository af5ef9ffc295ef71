//! The store of schedules, on each engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod corrections;
mod world;

use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_domain::Timestamp;
use taskledger_schedules::{
    Definition, Deleted, LOOK_AGAIN_MS, NewSchedule, Outcome, Overlap, RUNS_KEPT, Refusal, Run,
    Schedule, ScheduleStore, State, Step, Timing, Work, flow_of, key_of_time,
};
use uuid::Uuid;
use world::World;

macro_rules! on_both {
    ($name:ident) => {
        mod $name {
            #[tokio::test]
            async fn sqlite() {
                super::claims::$name(super::World::on_sqlite().await).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::claims::$name(super::World::on_postgres().await).await;
            }
        }
    };
}

on_both!(a_schedule_is_as_it_was_kept_and_has_one_name_per_owner);
on_both!(a_change_of_what_is_not_so_any_more_is_refused);
on_both!(one_look_at_a_time_decides_and_a_change_takes_its_lease);
on_both!(a_start_is_counted_once_and_found_after_a_restart);
on_both!(counters_and_runs_are_shown_as_of_one_moment);
on_both!(what_is_over_is_forgotten_and_what_is_open_stays);
on_both!(nothing_is_deleted_or_begun_in_the_middle_of_a_start);
on_both!(what_cannot_be_read_holds_nothing_else_up);
on_both!(what_waits_is_looked_at_once_somebody_tells_or_in_the_end);
on_both!(times_that_a_clock_ahead_has_noted_are_due_again);
on_both!(another_edition_of_the_time_zones_makes_all_times_due_again);

fn t(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000_000)
}

fn owner(user: Option<&str>) -> Owner {
    Owner {
        tenant: "main".into(),
        user: user.map(Arc::from),
    }
}

fn new(id: u128, user: Option<&str>, name: &str) -> NewSchedule {
    NewSchedule {
        id: Uuid::from_u128(id),
        owner: owner(user),
        name: name.into(),
        actor: "user:ann".into(),
        scopes: "tasks:run".into(),
        definition: Definition {
            timing: Timing::Every { seconds: 60 },
            work: Work::Workflow {
                name: "Report\u{0}".into(),
                version: Some(3),
                inputs: serde_json::Map::new(),
            },
            start_at: Some(t(0)),
            end_at: None,
            max_runs: Some(7),
            overlap: Overlap::Queue,
            catch_up_seconds: 60,
            jitter_seconds: 0,
        },
        paused: None,
        at: t(1),
        cursor: t(1),
        next_at: Some(t(60)),
        due_at: Some(t(60)),
        work_version: Some(3),
    }
}

fn run(schedule: &Schedule, at: Timestamp, state: State) -> Run {
    let key = key_of_time(at);
    Run {
        flow: flow_of(schedule.id, &key),
        key,
        scheduled_at: at,
        state,
        run: None,
        stage: None,
        error: None,
        decided_at: at,
        cancels: false,
    }
}

/// Its newest runs, newest first.
async fn runs_of(store: &ScheduleStore, kept: &Schedule, limit: u32) -> Vec<Run> {
    let found = store.with_runs(&kept.owner, &kept.name, limit).await;
    found.unwrap().unwrap().1
}

mod claims {
    pub(super) use super::corrections::{
        another_edition_of_the_time_zones_makes_all_times_due_again,
        times_that_a_clock_ahead_has_noted_are_due_again,
    };
    use super::*;

    pub(super) async fn a_schedule_is_as_it_was_kept_and_has_one_name_per_owner(world: World) {
        let store = &world.store;
        let kept = store
            .create(&new(1, Some("ann"), "a"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(kept.definition, new(1, None, "").definition);
        assert_eq!(
            (kept.version, kept.is_paused, kept.next_at),
            (1, false, Some(t(60)))
        );
        let again = store.create(&new(2, Some("ann"), "a")).await.unwrap();
        assert_eq!(again, Err(Refusal::Exists(1)));
        store
            .create(&new(3, Some("bob"), "a"))
            .await
            .unwrap()
            .unwrap();
        store.create(&new(4, None, "a")).await.unwrap().unwrap();
        store
            .create(&new(5, Some("ann"), "b"))
            .await
            .unwrap()
            .unwrap();
        let names = |found: Vec<Schedule>| {
            found
                .into_iter()
                .map(|it| it.name.to_string())
                .collect::<Vec<_>>()
        };
        let ann = owner(Some("ann"));
        assert_eq!(
            names(store.schedules(&ann, None, 10).await.unwrap()),
            ["a", "b"]
        );
        let after = Arc::from("a");
        assert_eq!(
            names(store.schedules(&ann, Some(&after), 10).await.unwrap()),
            ["b"]
        );
        assert_eq!(store.count().await.unwrap(), 4);
        let world = world.reopened().await;
        let found = world.store.schedule(&ann, &"a".into()).await.unwrap();
        assert_eq!(found, Some(kept));
        assert_eq!(
            world
                .store
                .delete(&ann, &"a".into(), Some(2), t(9))
                .await
                .unwrap(),
            Err(Refusal::Changed(1))
        );
        assert_eq!(
            world
                .store
                .delete(&ann, &"a".into(), Some(1), t(9))
                .await
                .unwrap(),
            Ok(Deleted::Gone)
        );
        assert_eq!(
            world
                .store
                .delete(&ann, &"a".into(), None, t(9))
                .await
                .unwrap(),
            Ok(Deleted::Absent)
        );
        assert_eq!(
            names(world.store.schedules(&owner(None), None, 10).await.unwrap()),
            ["a"]
        );
    }

    pub(super) async fn a_change_of_what_is_not_so_any_more_is_refused(world: World) {
        let store = &world.store;
        let seen = store.create(&new(1, None, "a")).await.unwrap().unwrap();
        let mut paused = seen.clone();
        paused.is_paused = true;
        paused.note = Some("why".into());
        (paused.next_at, paused.due_at) = (None, None);
        let kept = store.replace(&seen, &paused, t(2)).await.unwrap().unwrap();
        assert_eq!((kept.version, kept.note.as_deref()), (2, Some("why")));
        assert_eq!(store.replace(&seen, &paused, t(3)).await.unwrap(), None);
        // A look has dealt with a time meanwhile.
        let turn = store.take(kept.id, t(60), t(90)).await.unwrap().unwrap();
        let step = Step {
            cursor: Some(t(60)),
            ..Step::default()
        };
        assert!(store.decide(&turn.schedule, &step).await.unwrap());
        assert_eq!(store.replace(&kept, &paused, t(61)).await.unwrap(), None);
    }

    pub(super) async fn one_look_at_a_time_decides_and_a_change_takes_its_lease(world: World) {
        let store = &world.store;
        let kept = store.create(&new(1, None, "a")).await.unwrap().unwrap();
        assert_eq!(store.soonest(t(10)).await.unwrap(), Some(t(60)));
        assert!(store.take_due(t(59), t(90), 10).await.unwrap().is_empty());
        let first = store.take_due(t(60), t(90), 10).await.unwrap().remove(0);
        assert!(store.take_due(t(61), t(90), 10).await.unwrap().is_empty());
        assert_eq!(store.take(kept.id, t(61), t(90)).await.unwrap(), None);
        assert_eq!(store.soonest(t(61)).await.unwrap(), Some(t(90)));
        // It stood still for longer than its lease.
        let second = store.take_due(t(91), t(120), 10).await.unwrap().remove(0);
        let skipped = Step {
            cursor: Some(t(60)),
            missed: 0,
            run: Some(run(&kept, t(60), State::Skipped)),
        };
        assert!(!store.decide(&first.schedule, &skipped).await.unwrap());
        assert!(store.decide(&second.schedule, &skipped).await.unwrap());
        let seen = store
            .schedule(&kept.owner, &kept.name)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((seen.counters.skipped, seen.cursor), (1, t(60)));
        store.replace(&seen, &seen, t(92)).await.unwrap().unwrap();
        assert!(!store.decide(&second.schedule, &skipped).await.unwrap());
        // It cannot undo when the schedule is due either.
        store
            .let_go(
                &second.schedule,
                (None, None),
                false,
                (t(92), LOOK_AGAIN_MS),
            )
            .await
            .unwrap();
        assert_eq!(store.soonest(t(92)).await.unwrap(), Some(t(60)));
    }

    pub(super) async fn a_start_is_counted_once_and_found_after_a_restart(world: World) {
        let kept = world
            .store
            .create(&new(1, None, "a"))
            .await
            .unwrap()
            .unwrap();
        let turn = world
            .store
            .take(kept.id, t(60), t(90))
            .await
            .unwrap()
            .unwrap();
        let starting = run(&kept, t(60), State::Starting);
        let step = Step {
            cursor: Some(t(60)),
            missed: 0,
            run: Some(starting.clone()),
        };
        assert!(world.store.decide(&turn.schedule, &step).await.unwrap());
        let world = world.reopened().await;
        let store = &world.store;
        let turn = store.take_due(t(91), t(120), 10).await.unwrap().remove(0);
        assert_eq!(turn.open, std::slice::from_ref(&starting));
        let started = Outcome::Started(Some(Uuid::from_u128(9)));
        assert!(
            store
                .settle(kept.id, &starting, &started, t(92))
                .await
                .unwrap()
        );
        assert!(
            !store
                .settle(kept.id, &starting, &started, t(92))
                .await
                .unwrap()
        );
        let failed = Outcome::Failed("why".into());
        assert!(
            !store
                .settle(kept.id, &starting, &failed, t(92))
                .await
                .unwrap()
        );
        let found = store
            .schedule(&kept.owner, &kept.name)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((found.counters.started, found.counters.failed), (1, 0));
        let runs = runs_of(store, &kept, 10).await;
        assert_eq!(
            (runs[0].state, runs[0].run),
            (State::Started, Some(Uuid::from_u128(9)))
        );
        store
            .ended(kept.id, &starting.key, "completed")
            .await
            .unwrap();
        store
            .let_go(
                &turn.schedule,
                (Some(t(120)), Some(t(120))),
                false,
                (t(93), LOOK_AGAIN_MS),
            )
            .await
            .unwrap();
        let turn = store.take(kept.id, t(94), t(120)).await.unwrap().unwrap();
        assert!(turn.open.is_empty());
        let let_go = store.let_go(&turn.schedule, (None, None), false, (t(94), LOOK_AGAIN_MS));
        let_go.await.unwrap();
        // Since when looks do not come to their end is kept until one does.
        for (now, waits, since) in [
            (95, true, Some(95)),
            (96, true, Some(95)),
            (97, false, None),
        ] {
            let turn = store.take(kept.id, t(now), t(120)).await.unwrap();
            let turn = turn.expect("nobody holds it");
            let let_go = store.let_go(&turn.schedule, (None, None), waits, (t(now), LOOK_AGAIN_MS));
            let_go.await.unwrap();
            let seen = store.schedule(&kept.owner, &kept.name).await.unwrap();
            assert_eq!(seen.unwrap().waits_since, since.map(t));
        }
    }

    pub(super) async fn what_waits_is_looked_at_once_somebody_tells_or_in_the_end(world: World) {
        let store = &world.store;
        let kept = store.create(&new(1, None, "a")).await.unwrap().unwrap();
        let turn = store.take(kept.id, t(0), t(10)).await.unwrap().unwrap();
        let waiting = Step {
            cursor: Some(t(0)),
            missed: 0,
            run: Some(run(&kept, t(0), State::Waiting)),
        };
        assert!(store.decide(&turn.schedule, &waiting).await.unwrap());
        assert!(!store.wake(kept.id, t(1)).await.unwrap(), "a look goes on");
        let at = (Some(t(60)), Some(t(60)));
        let let_go = store.let_go(&turn.schedule, at, false, (t(2), 30_000));
        let_go.await.unwrap();
        assert_eq!(store.soonest(t(2)).await.unwrap(), Some(t(32)));
        assert!(store.wake(kept.id, t(3)).await.unwrap());
        assert_eq!(store.soonest(t(3)).await.unwrap(), Some(t(3)));
        let turn = store.take_due(t(3), t(13), 10).await.unwrap().remove(0);
        let begun = Step {
            cursor: None,
            missed: 0,
            run: Some(run(&kept, t(0), State::Starting)),
        };
        assert!(store.decide(&turn.schedule, &begun).await.unwrap());
        let let_go = store.let_go(&turn.schedule, at, false, (t(4), 30_000));
        let_go.await.unwrap();
        assert_eq!(store.soonest(t(4)).await.unwrap(), Some(t(5)));
        assert!(store.wake(kept.id, t(4)).await.unwrap(), "nothing waits");
        assert_eq!(store.soonest(t(4)).await.unwrap(), Some(t(5)));
    }

    pub(super) async fn counters_and_runs_are_shown_as_of_one_moment(world: World) {
        let store = &world.store;
        let kept = store.create(&new(1, None, "a")).await.unwrap().unwrap();
        let turn = store.take(kept.id, t(0), t(900)).await.unwrap().unwrap();
        let all = 30;
        let starts = async {
            for second in 1..=all {
                let starting = run(&kept, t(second), State::Starting);
                let step = Step {
                    run: Some(starting.clone()),
                    ..Step::default()
                };
                assert!(store.decide(&turn.schedule, &step).await.unwrap());
                let started = Outcome::Started(None);
                let settled = store.settle(kept.id, &starting, &started, t(second));
                assert!(settled.await.unwrap());
            }
        };
        let looks = async {
            let mut counted = 0;
            while counted < all.unsigned_abs() {
                let shown = store.with_runs(&kept.owner, &kept.name, 100).await;
                let (schedule, runs) = shown.unwrap().unwrap();
                let is_started = |run: &&Run| run.state == State::Started;
                counted = schedule.counters.started;
                let started = runs.iter().filter(is_started).count() as u64;
                assert_eq!(counted, started);
            }
        };
        tokio::join!(starts, looks);
    }

    pub(super) async fn what_is_over_is_forgotten_and_what_is_open_stays(world: World) {
        let store = &world.store;
        let kept = store.create(&new(1, None, "a")).await.unwrap().unwrap();
        let turn = store.take(kept.id, t(0), t(900)).await.unwrap().unwrap();
        for second in 1..=2 {
            let starting = run(&kept, t(second), State::Starting);
            let step = Step {
                run: Some(starting.clone()),
                ..Step::default()
            };
            assert!(store.decide(&turn.schedule, &step).await.unwrap());
            let started = Outcome::Started(Some(Uuid::from_u128(9)));
            let settled = store.settle(kept.id, &starting, &started, t(second));
            assert!(settled.await.unwrap());
        }
        store
            .ended(kept.id, &key_of_time(t(2)), "completed")
            .await
            .unwrap();
        for second in 3..=i64::from(RUNS_KEPT) + 30 {
            let step = Step {
                cursor: Some(t(second)),
                missed: 0,
                run: Some(run(&kept, t(second), State::Skipped)),
            };
            assert!(store.decide(&turn.schedule, &step).await.unwrap());
        }
        let runs = runs_of(store, &kept, 1_000).await;
        assert_eq!(runs.len(), RUNS_KEPT as usize + 1);
        let oldest = runs.last().unwrap();
        assert_eq!(
            (oldest.scheduled_at, oldest.state),
            (t(1), State::Started),
            "one that goes on"
        );
        assert_eq!(runs[runs.len() - 2].scheduled_at, t(31));
    }

    pub(super) async fn nothing_is_deleted_or_begun_in_the_middle_of_a_start(world: World) {
        let store = &world.store;
        let kept = store.create(&new(1, None, "a")).await.unwrap().unwrap();
        let turn = store.take(kept.id, t(60), t(70)).await.unwrap().unwrap();
        let starting = run(&kept, t(60), State::Starting);
        let step = Step {
            cursor: Some(t(60)),
            missed: 0,
            run: Some(starting.clone()),
        };
        assert!(store.decide(&turn.schedule, &step).await.unwrap());
        let may = async |at| {
            let may = store.may_start(&turn.schedule, &starting, at);
            may.await.unwrap()
        };
        assert!(may(t(69)).await);
        assert!(!may(t(70)).await, "its lease is over");
        let delete = async |at| {
            let deleted = store.delete(&kept.owner, &kept.name, None, at);
            deleted.await.unwrap().unwrap()
        };
        assert_eq!(delete(t(69)).await, Deleted::Held);
        let seen = store.schedule(&kept.owner, &kept.name).await.unwrap();
        let seen = seen.unwrap();
        let mut paused = seen.clone();
        paused.is_paused = true;
        (paused.next_at, paused.due_at) = (None, None);
        store
            .replace(&seen, &paused, t(65))
            .await
            .unwrap()
            .expect("it is paused");
        assert!(!may(t(65)).await, "it was paused");
        // The next look comes once whatever was under way is over.
        assert_eq!(store.soonest(t(65)).await.unwrap(), Some(t(70)));
        assert!(store.take_due(t(69), t(90), 10).await.unwrap().is_empty());
        let next = store.take_due(t(70), t(80), 10).await.unwrap().remove(0);
        assert_eq!(next.open, std::slice::from_ref(&starting));
        assert!(store.skip(kept.id, &starting, t(71)).await.unwrap());
        assert!(!store.skip(kept.id, &starting, t(71)).await.unwrap());
        let found = store.schedule(&kept.owner, &kept.name).await.unwrap();
        assert_eq!(found.unwrap().counters.skipped, 1);
        assert_eq!(delete(t(71)).await, Deleted::Gone);
    }

    pub(super) async fn what_cannot_be_read_holds_nothing_else_up(world: World) {
        let store = &world.store;
        for (id, name) in [(1, "a"), (2, "b"), (3, "c")] {
            store.create(&new(id, None, name)).await.unwrap().unwrap();
        }
        // As a newer release may write them.
        world
            .execute("UPDATE schedules SET definition = '{\"timing\": {\"kind\": \"tides\"}}' WHERE name <> 'b'")
            .await;
        let turns = store.take_due(t(60), t(90), 10).await.unwrap();
        let names: Vec<_> = turns.iter().map(|turn| &*turn.schedule.name).collect();
        assert_eq!(names, ["b"]);
        assert!(store.take_due(t(61), t(90), 10).await.unwrap().is_empty());
        let later = store.soonest(t(61)).await.unwrap().unwrap();
        assert_eq!(later, t(90), "they are tried again");
    }
}
