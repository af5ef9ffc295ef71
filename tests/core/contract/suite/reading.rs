//! Reading: by stream, by version, by position; the watch.

use crate::contract::fixture::{Backend, append, appended, event, flow, given_stream, whole_log};
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
        let page = b
            .store
            .read_stream(stream, after, limit, usize::MAX)
            .await
            .unwrap();
        let versions: Vec<_> = page.iter().map(|e| e.version).collect();
        assert_eq!(versions, expected, "after {after}, limit {limit}");
        assert!(page.iter().all(|e| e.flow == stream));
    }
}

pub(crate) async fn a_stream_is_read_backwards_from_any_version(b: &Backend) {
    given_stream(&*b.store, 4).await;
    let stream = given_stream(&*b.store, 10).await;

    for (before, limit, expected) in [
        (11, 3, vec![10, 9, 8]),
        (8, 3, vec![7, 6, 5]),
        (3, 3, vec![2, 1]),
        (2, 1, vec![1]),
        (1, 3, vec![]),
        (0, 3, vec![]),
        (5, 0, vec![]),
        (u64::MAX, 2, vec![10, 9]),
        (4, usize::MAX, vec![3, 2, 1]),
    ] {
        let read = b.store.read_stream_back(stream, before, limit, usize::MAX);
        let page = read.await.unwrap();
        let versions: Vec<_> = page.iter().map(|e| e.version).collect();
        assert_eq!(versions, expected, "before {before}, limit {limit}");
        assert!(page.iter().all(|e| e.flow == stream));
    }
    let read = b.store.read_stream_back(flow(), 9, 9, usize::MAX);
    assert_eq!(read.await.unwrap(), []);
}

pub(crate) async fn what_is_read_of_a_stream_is_bounded_in_bytes_but_never_nothing(b: &Backend) {
    // Each of these has about 10,000 bytes, the third many more.
    let stream = flow();
    let mut large = append(stream, 0, 0);
    large.events = [10_000, 10_000, 90_000, 10_000, 10_000]
        .map(|bytes| event(&"x".repeat(bytes)))
        .to_vec();
    appended(b.store.append(large).await.unwrap());

    for (bytes_max, forwards, backwards, within) in [
        (25_000, vec![1, 2], vec![5, 4], vec![4, 2]),
        (15_000, vec![1], vec![5], vec![4]),
        (0, vec![1], vec![5], vec![4]),
        (115_000, vec![1, 2, 3], vec![5, 4, 3], vec![4, 2, 3]),
        (
            usize::MAX,
            vec![1, 2, 3, 4, 5],
            vec![5, 4, 3, 2, 1],
            vec![4, 2, 3, 1],
        ),
    ] {
        let versions = |events: Vec<std::sync::Arc<taskledger_domain::Recorded>>| {
            events.iter().map(|e| e.version).collect::<Vec<_>>()
        };
        let read = b.store.read_stream(stream, 0, 9, bytes_max).await;
        assert_eq!(versions(read.unwrap()), forwards, "{bytes_max}");
        let read = b.store.read_stream_back(stream, 6, 9, bytes_max).await;
        assert_eq!(versions(read.unwrap()), backwards, "{bytes_max}");
        let wanted = [4, 2, 3, 1];
        let read = b.store.read_versions_within(stream, &wanted, bytes_max);
        assert_eq!(versions(read.await.unwrap()), within, "{bytes_max}");
    }
    let read = b.store.read_stream(stream, 2, 9, 0).await.unwrap();
    assert_eq!(read.iter().map(|e| e.version).collect::<Vec<_>>(), [3]);
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

    let events = b
        .store
        .read_stream(stream, 0, 20_000, usize::MAX)
        .await
        .unwrap();

    assert!(events.iter().map(|e| e.version).eq(1..=10_000));
    let page = b.store.read_versions(stream, &[10_000, 1, 5_000]).await;
    let page: Vec<_> = page.unwrap().iter().map(|e| e.version).collect();
    assert_eq!(page, [10_000, 1, 5_000]);
}

pub(crate) async fn a_stream_that_does_not_exist_is_empty(b: &Backend) {
    given_stream(&*b.store, 1).await;

    assert_eq!(
        b.store
            .read_stream(flow(), 0, 10, usize::MAX)
            .await
            .unwrap(),
        []
    );
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
    assert_eq!(
        b.store
            .read_stream(stream, 0, 10, usize::MAX)
            .await
            .unwrap()
            .len(),
        2
    );
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
