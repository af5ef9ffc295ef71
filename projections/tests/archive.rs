//! Rows of flows that were archived: gone, with everything that was counted of them.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod common;

use common::{Engine, World, fed};
use std::collections::BTreeSet;
use std::sync::Arc;
use taskledger_domain::flow::{Event, FlowArchived};
use taskledger_domain::{FlowId, Recorded};
use taskledger_projections::ReadModels;

taskledger_testkit::on_both_engines!(
    an_archived_flow_leaves_no_row,
    the_end_of_a_flow_whose_events_are_gone_changes_nothing,
    flows_at_rest_are_found_in_pages_up_to_a_position,
);

/// A world, and every other flow of it.
fn world() -> (World, BTreeSet<FlowId>) {
    let mut world = World::new(7);
    for _ in 0..600 {
        world.step();
    }
    let flows: BTreeSet<FlowId> = world.log.iter().map(|r| r.flow).collect();
    assert!(flows.len() > 4, "several flows");
    (world, flows.into_iter().step_by(2).collect())
}

fn archive(world: &mut World, flow: FlowId) {
    let runs = world.runs.iter().filter(|run| run.2 == flow);
    let archived = FlowArchived {
        file: "f".to_owned(),
        sha256: "s".to_owned(),
        events: 1,
        runs: runs.map(|run| run.0).collect(),
        owner: None,
    };
    world.push_quick(flow, Event::FlowArchived(archived));
}

/// All rows but those that say where in the order of creation the tasks of a time lie, which are never
/// narrowed.
async fn rows(models: &ReadModels) -> Vec<String> {
    let dump = models.dump().await.unwrap();
    let lines = dump
        .lines()
        .filter(|line| !line.starts_with("created_buckets"));
    lines.map(str::to_owned).collect()
}

async fn an_archived_flow_leaves_no_row(engine: Engine) {
    let (mut world, gone) = world();
    for flow in &gone {
        archive(&mut world, *flow);
    }
    let is_end = |r: &Recorded| matches!(*r.event, Event::FlowArchived(_));
    let kept = |r: &&Arc<Recorded>| is_end(r) || !gone.contains(&r.flow);
    let without: Vec<_> = world.log.iter().filter(kept).cloned().collect();
    let (expected, _ground) = fed(engine, &without, 100).await;

    for batch in [1, 64, 10_000] {
        let (models, _ground) = fed(engine, &world.log, batch).await;

        assert_eq!(
            rows(&models).await,
            rows(&expected).await,
            "batches of {batch}"
        );
        for flow in &gone {
            assert!(models.flow_summary(*flow).await.unwrap().is_none());
        }
    }
}

async fn the_end_of_a_flow_whose_events_are_gone_changes_nothing(engine: Engine) {
    let (mut world, gone) = world();
    let (before, _ground) = fed(engine, &world.log, 100).await;
    let before = rows(&before).await;
    // Of a flow that these read models never saw.
    let unseen = FlowId(world.fresh());
    archive(&mut world, unseen);

    let (models, _ground) = fed(engine, &world.log, 100).await;

    let without_checkpoint = |rows: &[String]| -> Vec<String> {
        let rows = rows.iter().filter(|line| !line.starts_with("checkpoints"));
        rows.cloned().collect()
    };
    assert_eq!(
        without_checkpoint(&rows(&models).await),
        without_checkpoint(&before)
    );
    assert!(!gone.is_empty());
}

async fn flows_at_rest_are_found_in_pages_up_to_a_position(engine: Engine) {
    let (world, _) = world();
    let (models, _ground) = fed(engine, &world.log, 100).await;
    let flows: BTreeSet<FlowId> = world.log.iter().map(|r| r.flow).collect();
    let upto = world.log.len() as u64 / 2;
    let mut expected = BTreeSet::new();
    for flow in flows {
        if let Some(summary) = models.flow_summary(flow).await.unwrap()
            && summary.open_runs == 0
            && summary.last_position <= upto
        {
            let open = summary.counts.pending + summary.counts.in_progress;
            expected.insert((flow, open));
        }
    }

    for limit in [1, 2, 1000] {
        let (mut found, mut after) = (BTreeSet::new(), Some(0));
        while let Some(from) = after {
            let (page, next) = models.at_rest(from, upto, limit).await.unwrap();
            found.extend(page.iter().map(|flow| (flow.flow_id, flow.open_tasks)));
            after = next;
        }
        assert_eq!(found, expected, "pages of {limit}");
    }
}
