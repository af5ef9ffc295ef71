//! What a watcher is told of events that were archived.

use super::{PATIENCE, World, flow};
use std::sync::Arc;
use taskledger::store::EventStore;
use taskledger::subscription::cursor::Cursor;
use taskledger::subscription::live::Published;
use taskledger::subscription::stream::{Batch, Filter, From, Reader, Reset, Until};
use taskledger_domain::FlowId;
use taskledger_domain::flow::{Event, FlowArchived};

/// Ends a flow and drops what stands before.
async fn archive(world: &World, flow: FlowId) {
    let archived = FlowArchived {
        file: "file".to_owned(),
        sha256: "digest".to_owned(),
        events: 1,
        runs: Vec::new(),
        owner: None,
    };
    world.append(flow, Event::FlowArchived(archived)).await;
    while world.store.drop_archived(flow, 2).await.unwrap() > 0 {}
}

async fn begun(world: &World, filter: Filter, from: From) -> (Reader, Option<Reset>) {
    Reader::begin(world.live.clone(), filter, from, Until::Forever)
        .await
        .unwrap()
}

async fn next_frames(stream: &mut Reader, count: usize) -> Vec<Cursor> {
    let mut places = Vec::new();
    while places.len() < count {
        let batch = tokio::time::timeout(PATIENCE, stream.next()).await;
        let batch = batch.unwrap().unwrap().unwrap();
        places.extend(batch.notices().iter().map(|frame| frame.cursor));
    }
    places
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_before_archived_events_is_gone_on_from_and_that_is_told() {
    let world = World::new();
    for n in 0..30 {
        world.append_nth(n).await;
    }
    let before = world.all().await;
    archive(&world, flow(1)).await;
    let all = world.all().await;
    assert!(all.len() < before.len(), "something was dropped");

    for place in [before[0].cursor, before[7].cursor, before[8].cursor] {
        let (mut stream, reset) = begun(&world, Filter::default(), From::Cursor(place)).await;

        assert_eq!(reset, Some(Reset::Archived), "{place:?}");
        assert_eq!(stream.place(), place, "it goes on where it was");
        let left: Vec<_> = all
            .iter()
            .map(|f| f.cursor)
            .filter(|c| *c > place)
            .collect();
        assert_eq!(next_frames(&mut stream, left.len()).await, left);
    }
    let last = before.last().unwrap().cursor;
    let (_, reset) = begun(&world, Filter::default(), From::Cursor(last)).await;
    assert_eq!(reset, None, "nothing behind it was dropped");
    let (mut stream, reset) = begun(&world, Filter::default(), From::Beginning).await;
    assert_eq!(
        reset, None,
        "whoever asks for everything gets what there is"
    );
    assert_eq!(next_frames(&mut stream, all.len()).await.len(), all.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_a_flow_misses_nothing_when_others_were_archived() {
    let world = World::new();
    for n in 0..30 {
        world.append_nth(n).await;
    }
    let of_flow = |flow: FlowId| Filter {
        flow: Some(flow),
        ..Filter::default()
    };
    let before = world.all().await;
    archive(&world, flow(1)).await;
    let own: Vec<_> = before.iter().filter(|f| f.flow == flow(2)).collect();
    let gone: Vec<_> = before.iter().filter(|f| f.flow == flow(1)).collect();

    let place = own[0].cursor;
    let (mut stream, reset) = begun(&world, of_flow(flow(2)), From::Cursor(place)).await;
    assert_eq!(reset, None);
    let expected: Vec<_> = own[1..].iter().map(|f| f.cursor).collect();
    assert_eq!(next_frames(&mut stream, expected.len()).await, expected);

    let place = gone[0].cursor;
    let (_, reset) = begun(&world, of_flow(flow(1)), From::Cursor(place)).await;
    assert_eq!(reset, Some(Reset::Archived));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_the_archive_overtakes_is_told_so_once() {
    let world = World::new();
    // Each flow has more than a page of history.
    for n in 0..4000 {
        world.append_nth(n).await;
    }
    // What was dropped last lies before what was dropped first.
    archive(&world, flow(4)).await;
    let of_flow = |n| Filter {
        flow: Some(flow(n)),
        ..Filter::default()
    };
    let mut streams = Vec::new();
    for (filter, resets) in [(Filter::default(), 1), (of_flow(1), 1), (of_flow(2), 0)] {
        let (mut stream, reset) = begun(&world, filter.clone(), From::Beginning).await;
        assert_eq!(reset, None);
        next_frames(&mut stream, 1).await;
        streams.push((stream, filter, resets));
    }

    archive(&world, flow(1)).await;

    let all = world.all().await;
    for (mut stream, filter, expected) in streams {
        let place = stream.place();
        let passes = |f: &&Arc<Published>| filter.flow.is_none_or(|flow| flow == f.flow);
        let left = all.iter().filter(passes).map(|f| f.cursor);
        let left: Vec<_> = left.filter(|cursor| *cursor > place).collect();
        let (mut got, mut resets) = (Vec::new(), 0);
        while got.len() < left.len() || resets < expected {
            let batch = tokio::time::timeout(PATIENCE, stream.next()).await;
            let batch = batch.expect("nothing more comes").unwrap().unwrap();
            resets += usize::from(matches!(batch, Batch::Reset(Reset::Archived)));
            got.extend(batch.notices().iter().map(|frame| frame.cursor));
        }
        assert_eq!((got, resets), (left, expected), "{filter:?}");
    }
}
