//! Fences, unknown outcomes, snapshots.

use crate::contract::fixture::{Backend, append, appended, event, flow, given_stream};
use std::sync::Arc;
use taskledger::store::{Append, Error, Fence, Outcome, Resolution, Snapshot};
use taskledger_domain::FlowId;

fn fenced(stream: FlowId, expected: u64, name: &str, token: u64) -> Append {
    Append {
        fence: Some(Fence {
            name: Arc::from(name),
            token,
        }),
        ..append(stream, expected, 1)
    }
}

pub(crate) async fn an_older_token_is_fenced_and_others_are_not(b: &Backend) {
    let stream = flow();
    let first = b.store.raise_fence("p7").await.unwrap();
    assert_eq!(first, 1);
    appended(
        b.store
            .append(fenced(stream, 0, "p7", first))
            .await
            .unwrap(),
    );

    let second = b.store.raise_fence("p7").await.unwrap();

    assert_eq!(second, 2);
    let late = b
        .store
        .append(fenced(stream, 1, "p7", first))
        .await
        .unwrap();
    assert_eq!(late, Outcome::Fenced);
    appended(
        b.store
            .append(fenced(stream, 1, "p7", second))
            .await
            .unwrap(),
    );
    appended(b.store.append(fenced(stream, 2, "p8", 0)).await.unwrap());
    appended(b.store.append(append(stream, 3, 1)).await.unwrap());
    assert_eq!(b.store.raise_fence("p8").await.unwrap(), 1);
    assert_eq!(b.store.head().await.unwrap(), 4);
}

pub(crate) async fn a_fence_is_judged_before_the_version(b: &Backend) {
    let stale = b.store.raise_fence("p").await.unwrap();
    b.store.raise_fence("p").await.unwrap();

    let outcome = b.store.append(fenced(flow(), 9, "p", stale)).await.unwrap();

    assert_eq!(outcome, Outcome::Fenced);
}

pub(crate) async fn resolve_finds_what_was_written(b: &Backend) {
    let stream = given_stream(&*b.store, 3).await;
    let asked = append(stream, 3, 2);
    let ids: Vec<_> = asked.events.iter().map(|e| e.id).collect();
    let written = appended(b.store.append(asked).await.unwrap());
    appended(b.store.append(append(stream, 5, 4)).await.unwrap());

    let resolution = b.store.resolve(stream, &ids).await.unwrap();

    assert_eq!(resolution, Resolution::Appended(written));
}

pub(crate) async fn resolve_of_nothing_is_absent(b: &Backend) {
    let stream = given_stream(&*b.store, 3).await;
    let never = [event("never").id];

    for asked in [stream, flow()] {
        let resolution = b.store.resolve(asked, &never).await.unwrap();
        assert_eq!(resolution, Resolution::Absent);
    }
    let error = b.store.resolve(stream, &[]).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

fn snapshot(version: u64, format: u32, byte: u8) -> Snapshot {
    Snapshot {
        version,
        format,
        bytes: vec![byte; 10_000],
    }
}

pub(crate) async fn the_newest_snapshot_of_a_format_is_kept(b: &Backend) {
    let stream = given_stream(&*b.store, 9).await;
    let other = given_stream(&*b.store, 9).await;
    let load = |format| b.store.load_snapshot(stream, format);
    assert_eq!(load(1).await.unwrap(), None);

    let five = snapshot(5, 1, 5);
    b.store.save_snapshot(stream, five.clone()).await.unwrap();
    assert_eq!(load(1).await.unwrap(), Some(five));
    assert_eq!(load(2).await.unwrap(), None);

    let nine = snapshot(9, 1, 9);
    b.store.save_snapshot(stream, nine.clone()).await.unwrap();
    b.store
        .save_snapshot(stream, snapshot(7, 1, 7))
        .await
        .unwrap();
    assert_eq!(load(1).await.unwrap(), Some(nine));

    let newer_format = snapshot(8, 2, 8);
    b.store
        .save_snapshot(stream, newer_format.clone())
        .await
        .unwrap();
    assert_eq!(load(2).await.unwrap(), Some(newer_format));
    assert_eq!(b.store.load_snapshot(other, 1).await.unwrap(), None);
}

pub(crate) async fn a_snapshot_of_what_does_not_exist_is_invalid(b: &Backend) {
    let stream = given_stream(&*b.store, 2).await;

    for (stream, version) in [(flow(), 1), (stream, 3)] {
        let saved = b.store.save_snapshot(stream, snapshot(version, 1, 0)).await;
        assert!(matches!(saved, Err(Error::Invalid(_))), "{saved:?}");
    }
}
