//! Arbitrary commands against small flows, and what must hold after each of them, judged by a
//! naive model that shares no code with the domain.

mod model;
mod odds;
mod outside;
mod steps;
mod world;

use odds::step;
use proptest::prelude::*;
use steps::Step;
use world::World;

/// Sequences per property, unless `PROPTEST_CASES` asks for more: with it the whole crate's tests
/// end within a minute in the dev profile.
const CASES: u32 = 2000;

fn config() -> ProptestConfig {
    let standard = ProptestConfig::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if asked { standard.cases } else { CASES },
        // A failure prints its smallest input; a real one becomes a test among the rules.
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..standard
    }
}

proptest! {
    #![proptest_config(config())]

    /// After each command: a refusal changed nothing; each event was allowed by the model; nothing
    /// that could happen was left undone; replay, snapshot and rebuilt indexes give the same state.
    #[test]
    fn any_sequence_of_commands_keeps_every_rule(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::default();
        for step in &steps {
            world.take(step);
        }
        world.check_full_replay();
    }

    /// Whatever was done before: once every attempt ends, every run ends.
    #[test]
    fn a_run_always_ends(
        steps in prop::collection::vec(step(), 1..40),
        outcomes in prop::collection::vec(any::<bool>(), 16),
    ) {
        let mut world = World::default();
        for step in &steps {
            world.take(step);
        }
        world.drive_to_the_end(&outcomes);
    }

    /// Groups that wait for each other's insides, in every shape that dependencies allow.
    #[test]
    fn groups_that_wait_for_each_other_end(
        tasks in prop::collection::vec(odds::knotted_task(), 2..14),
        outcomes in prop::collection::vec(any::<bool>(), 16),
        slots in 1..4_usize,
    ) {
        let mut world = World::default();
        world.take(&Step::Slots(slots as u8));
        world.take(&Step::Create(tasks));
        world.take(&Step::Execute { task: 0, unknown: true, wait: 1, retry: false });
        world.drive_to_the_end(&outcomes);
    }
}
