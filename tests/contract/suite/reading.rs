//! Reading: by stream, by version, by position; the watch.

use crate::fixture::{Backend, append, appended, flow, given_stream, whole_log};
use taskledger::store::Error;

pub(crate) async fn a_stream_is_read_in_pages(b: &Backend) {
    given_stream(&*b.store, 4).await;
    let stream = given_stream(&*b.store, 10).await;
    given_stream(&*b.store, 4).await;

    for (after, limit, expected) in [
        (0, 3, vec![1, 2, 3]),
        (3, 3, vec![4, 5, 6]),
        (8, 3, vec![9, 10]),
        (9, 1, vec![10]),
        (10, 3, vec![]),
        (u64::MAX, 3, vec![]),
        (0, 0, vec![]),
        (7, usize::MAX, vec![8, 9, 10]),
    ] {
        let page = b.store.read_stream(stream, after, limit).await.unwrap();
        let versions: Vec<_> = page.iter().map(|e| e.version).collect();
        assert_eq!(versions, expected, "after {after}, limit {limit}");
        assert!(page.iter().all(|e| e.flow == stream));
    }
}

pub(crate) async fn a_stream_of_ten_thousand_events_is_read_whole(b: &Backend) {
    let stream = flow();
    for part in 0..5 {
        appended(
            b.store
                .append(append(stream, part * 2_000, 2_000))
                .await
                .unwrap(),
        );
    }

    let events = b.store.read_stream(stream, 0, 20_000).await.unwrap();

    assert!(events.iter().map(|e| e.version).eq(1..=10_000));
    let page = b.store.read_versions(stream, &[10_000, 1, 5_000]).await;
    let page: Vec<_> = page.unwrap().iter().map(|e| e.version).collect();
    assert_eq!(page, [10_000, 1, 5_000]);
}

pub(crate) async fn a_stream_that_does_not_exist_is_empty(b: &Backend) {
    given_stream(&*b.store, 1).await;

    assert_eq!(b.store.read_stream(flow(), 0, 10).await.unwrap(), []);
    assert_eq!(b.store.stream_head(flow()).await.unwrap(), None);
    assert_eq!(b.store.load_snapshot(flow(), 1).await.unwrap(), None);
}

pub(crate) async fn versions_are_read_in_the_order_asked_for(b: &Backend) {
    let stream = given_stream(&*b.store, 5).await;

    let events = b.store.read_versions(stream, &[4, 2, 4]).await.unwrap();

    let versions: Vec<_> = events.iter().map(|e| e.version).collect();
    assert_eq!(versions, [4, 2, 4]);
    assert_eq!(b.store.read_versions(stream, &[]).await.unwrap(), []);
    for missing in [0, 6, u64::MAX] {
        let error = b.store.read_versions(stream, &[1, missing]).await;
        assert!(matches!(error, Err(Error::Corrupt { .. })), "{missing}");
    }
    let error = b.store.read_versions(flow(), &[1]).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

pub(crate) async fn the_whole_log_is_read_in_pages(b: &Backend) {
    for count in [3, 1, 4] {
        given_stream(&*b.store, count).await;
    }

    let page = b.store.read_all(2, 4).await.unwrap();
    let positions: Vec<_> = page.events.iter().map(|e| e.position).collect();
    assert_eq!(positions, [3, 4, 5, 6]);
    assert_eq!((page.next, page.at_end), (6, false));

    let page = b.store.read_all(6, 4).await.unwrap();
    let positions: Vec<_> = page.events.iter().map(|e| e.position).collect();
    assert_eq!(positions, [7, 8]);
    assert_eq!((page.next, page.at_end), (8, true));

    for after in [8, 9, u64::MAX] {
        let page = b.store.read_all(after, 4).await.unwrap();
        assert_eq!(page.events, []);
        assert_eq!((page.next, page.at_end), (after, true));
    }
    assert_eq!(whole_log(&*b.store).await.len(), 8);
}

pub(crate) async fn the_watch_moves_with_the_head_and_the_event_is_there(b: &Backend) {
    let mut watch = b.store.watch();
    assert_eq!(*watch.borrow_and_update(), 0);
    let store = b.store.clone();
    let writer = tokio::spawn(async move { given_stream(&*store, 2).await });

    watch.changed().await.unwrap();

    let head = *watch.borrow_and_update();
    assert_eq!(head, 2);
    assert_eq!(b.store.read_all(0, 10).await.unwrap().events.len(), 2);
    let stream = writer.await.unwrap();
    assert_eq!(b.store.read_stream(stream, 0, 10).await.unwrap().len(), 2);
    assert!(!watch.has_changed().unwrap());
}

pub(crate) async fn heads_are_told(b: &Backend) {
    assert_eq!(b.store.head().await.unwrap(), 0);
    let one = given_stream(&*b.store, 2).await;
    let two = given_stream(&*b.store, 3).await;
    appended(b.store.append(append(one, 2, 1)).await.unwrap());

    assert_eq!(b.store.head().await.unwrap(), 6);
    assert_eq!(b.store.stream_head(one).await.unwrap(), Some((3, 6)));
    assert_eq!(b.store.stream_head(two).await.unwrap(), Some((3, 5)));
}
