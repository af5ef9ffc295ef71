//! Writing: versions, atomicity, order, neighbours.

use crate::contract::fixture::{
    Backend, append, appended, assert_each_once_in_order, event, events, flow, given_stream,
    request, uuid,
};
use futures_util::future::join_all;
use std::sync::Arc;
use taskledger::store::{Append, Error, Outcome};
use taskledger_domain::{EventId, Version};

pub(crate) async fn a_new_stream_starts_at_version_one(b: &Backend) {
    let stream = flow();

    let written = appended(b.store.append(append(stream, 0, 1)).await.unwrap());

    assert_eq!(written.len(), 1);
    assert_eq!((written[0].position, written[0].version), (1, 1));
    assert_eq!(written[0].flow, stream);
}

pub(crate) async fn a_wrong_version_conflicts_and_names_the_actual_one(b: &Backend) {
    let stream = given_stream(&*b.store, 3).await;

    for expected in [0, 2, 4, u64::MAX] {
        let outcome = b.store.append(append(stream, expected, 1)).await.unwrap();
        assert_eq!(outcome, Outcome::Conflict { actual: 3 }, "{expected}");
    }
    let outcome = b.store.append(append(flow(), 1, 1)).await.unwrap();

    assert_eq!(outcome, Outcome::Conflict { actual: 0 });
    assert_eq!(b.store.head().await.unwrap(), 3);
}

pub(crate) async fn several_events_are_written_together_in_order(b: &Backend) {
    let stream = given_stream(&*b.store, 2).await;
    given_stream(&*b.store, 1).await;
    let more = append(stream, 2, 5);
    let ids: Vec<_> = more.events.iter().map(|e| e.id).collect();

    let written = appended(b.store.append(more).await.unwrap());

    let versions: Vec<_> = written.iter().map(|e| e.version).collect();
    let positions: Vec<_> = written.iter().map(|e| e.position).collect();
    assert_eq!(versions, [3, 4, 5, 6, 7]);
    assert_eq!(positions, [4, 5, 6, 7, 8]);
    assert_eq!(written.iter().map(|e| e.id).collect::<Vec<_>>(), ids);
}

pub(crate) async fn an_append_without_events_is_invalid(b: &Backend) {
    let error = b.store.append(append(flow(), 0, 0)).await.unwrap_err();

    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

pub(crate) async fn an_append_that_claims_something_twice_is_invalid(b: &Backend) {
    let twice = Append {
        claims: vec![request("k", "1", None), request("k", "2", None)],
        ..append(flow(), 0, 1)
    };

    let error = b.store.append(twice).await.unwrap_err();

    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

pub(crate) async fn a_refused_append_does_not_hurt_its_neighbours(b: &Backend) {
    let taken = given_stream(&*b.store, 1).await;
    let claimed = Append {
        claims: vec![request("taken", "first", None)],
        ..append(flow(), 0, 1)
    };
    appended(b.store.append(claimed).await.unwrap());
    let stale = b.store.raise_fence("owner").await.unwrap();
    b.store.raise_fence("owner").await.unwrap();

    let outcomes = join_all((0..120).map(|n| {
        let good = append(flow(), 0, 2);
        let appends = match n % 4 {
            0 | 1 => good,
            2 => append(taken, 0, 1),
            _ if n % 8 == 3 => Append {
                claims: vec![request("taken", "again", None)],
                ..good
            },
            _ => Append {
                fence: Some(taskledger::store::Fence {
                    name: Arc::from("owner"),
                    token: stale,
                }),
                ..good
            },
        };
        b.store.append(appends)
    }))
    .await;

    for (n, outcome) in outcomes.into_iter().enumerate() {
        let outcome = outcome.unwrap();
        match n % 4 {
            0 | 1 => assert_eq!(appended(outcome).len(), 2),
            2 => assert_eq!(outcome, Outcome::Conflict { actual: 1 }),
            _ if n % 8 == 3 => assert!(matches!(outcome, Outcome::Exists { .. }), "{outcome:?}"),
            _ => assert_eq!(outcome, Outcome::Fenced),
        }
    }
    assert_eq!(b.store.head().await.unwrap(), 2 + 60 * 2);
}

pub(crate) async fn of_two_appends_on_one_stream_one_wins(b: &Backend) {
    for round in 0..50 {
        let stream = flow();
        let (one, two) = tokio::join!(
            b.store.append(append(stream, 0, 2)),
            b.store.append(append(stream, 0, 2))
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        let conflict = Outcome::Conflict { actual: 2 };
        assert!(
            (one == conflict) != (two == conflict),
            "round {round}: {one:?} and {two:?}"
        );
        assert_eq!(
            b.store
                .read_stream(stream, 0, 10, usize::MAX)
                .await
                .unwrap()
                .len(),
            2
        );
    }
}

pub(crate) async fn what_was_appended_reads_back_equal(b: &Backend) {
    let mut rich = event("nämé \u{1f980} \" \\ \u{0}");
    rich.metadata.causation = Some(EventId(uuid()));
    rich.metadata.trace = Some(Arc::from(
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ));
    let stream = flow();
    let both = Append {
        events: vec![rich, event("")],
        ..append(stream, 0, 0)
    };

    let written = appended(b.store.append(both).await.unwrap());

    assert_eq!(
        b.store
            .read_stream(stream, 0, 10, usize::MAX)
            .await
            .unwrap(),
        written
    );
    assert_eq!(b.store.read_all(0, 10).await.unwrap().events, written);
    assert_eq!(
        b.store.read_versions(stream, &[1, 2]).await.unwrap(),
        written
    );
}

pub(crate) async fn recorded_at_never_runs_backwards(b: &Backend) {
    let mut last = crate::contract::fixture::START;
    for ms in [0, 5, 0, 1] {
        b.clock.advance_ms(ms);
        let written = appended(b.store.append(append(flow(), 0, 2)).await.unwrap());
        assert_eq!(written[0].recorded_at, last.plus_ms(ms));
        assert_eq!(written[1].recorded_at, written[0].recorded_at);
        last = written[1].recorded_at;
    }
}

pub(crate) async fn an_event_of_one_mebibyte_is_kept(b: &Backend) {
    let text = "x".repeat(1024 * 1024);
    let stream = flow();
    let large = Append {
        events: vec![event(&text), event("small"), event(&text)],
        ..append(stream, 0, 0)
    };

    let written = appended(b.store.append(large).await.unwrap());

    assert_eq!(
        b.store
            .read_stream(stream, 0, 10, usize::MAX)
            .await
            .unwrap(),
        written
    );
}

/// The writer decided long ago; meanwhile another one wrote.
pub(crate) async fn a_slow_writer_with_an_old_version_is_refused(b: &Backend) {
    let stream = given_stream(&*b.store, 1).await;
    let slow = append(stream, 1, 3);
    for version in 1..=20 {
        appended(b.store.append(append(stream, version, 1)).await.unwrap());
        b.clock.advance_ms(1_000);
    }

    let outcome = b.store.append(slow).await.unwrap();

    assert_eq!(outcome, Outcome::Conflict { actual: 21 });
    assert_eq!(b.store.stream_head(stream).await.unwrap(), Some((21, 21)));
}

const APPENDERS: usize = 32;
const ROUNDS: Version = 25;

pub(crate) async fn thirty_two_appenders_and_a_reader_see_every_position_once_in_order(
    b: &Backend,
) {
    let total = APPENDERS as u64 * ROUNDS * 3;
    let store = b.store.clone();
    let reader = tokio::spawn(async move {
        let mut watch = store.watch();
        let mut seen = Vec::new();
        let mut after = 0;
        while after < total {
            watch.wait_for(|head| *head > after).await.unwrap();
            // Odd page sizes, so that pages end within appends.
            let page = store.read_all(after, 7).await.unwrap();
            assert!(!page.events.is_empty(), "the watch moved past {after}");
            after = page.next;
            seen.extend(page.events);
        }
        seen
    });
    let writers = (0..APPENDERS).map(|_| {
        let store = b.store.clone();
        tokio::spawn(async move {
            let stream = flow();
            for round in 0..ROUNDS {
                let three = Append {
                    events: events(3),
                    ..append(stream, round * 3, 0)
                };
                let written = appended(store.append(three).await.unwrap());
                assert_eq!(written[2].position, written[0].position + 2);
            }
            stream
        })
    });
    let streams = join_all(writers).await;

    let seen = reader.await.unwrap();

    let streams = streams.into_iter().map(Result::unwrap);
    assert_each_once_in_order(&seen, streams, ROUNDS * 3);
}
