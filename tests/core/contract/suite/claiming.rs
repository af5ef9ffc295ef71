//! Claims: insert-if-absent rows that are written with the events.

use crate::contract::fixture::{
    Backend, START, append, appended, flow, given_stream, request, uuid,
};
use std::sync::Arc;
use taskledger::store::{Append, ClaimKey, NewClaim, Outcome};
use taskledger_domain::{FlowId, TaskId, Timestamp};

fn with_claims(stream: FlowId, claims: Vec<NewClaim>) -> Append {
    Append {
        claims,
        ..append(stream, 0, 1)
    }
}

fn key(text: &str) -> ClaimKey {
    ClaimKey::Request(Arc::from(text))
}

async fn values(b: &Backend, keys: &[&str], now: Timestamp) -> Vec<Option<String>> {
    let keys: Vec<_> = keys.iter().map(|k| key(k)).collect();
    let values = b.store.claims(&keys, now).await.unwrap();
    values
        .into_iter()
        .map(|v| v.map(|v| v.to_string()))
        .collect()
}

fn exists(text: &str, value: &str) -> Outcome {
    Outcome::Exists {
        key: key(text),
        value: Arc::from(value),
    }
}

pub(crate) async fn a_claim_that_is_taken_is_answered_with_its_value(b: &Backend) {
    let first = with_claims(flow(), vec![request("k", "first", None)]);
    appended(b.store.append(first).await.unwrap());

    let second = with_claims(flow(), vec![request("k", "second", None)]);
    let outcome = b.store.append(second).await.unwrap();

    assert_eq!(outcome, exists("k", "first"));
    assert_eq!(b.store.head().await.unwrap(), 1);
    assert_eq!(
        values(b, &["x", "k"], START).await,
        [None, Some("first".to_owned())]
    );
}

pub(crate) async fn one_taken_claim_refuses_the_whole_append(b: &Backend) {
    let first = with_claims(flow(), vec![request("b", "1", None)]);
    appended(b.store.append(first).await.unwrap());
    let stream = flow();
    let claims = ["a", "b", "c"].map(|k| request(k, "2", None)).to_vec();

    let outcome = b.store.append(with_claims(stream, claims)).await.unwrap();

    assert_eq!(outcome, exists("b", "1"));
    assert_eq!(
        values(b, &["a", "b", "c"], START).await,
        [None, Some("1".to_owned()), None]
    );
    assert_eq!(b.store.stream_head(stream).await.unwrap(), None);
}

pub(crate) async fn a_version_is_judged_before_claims(b: &Backend) {
    let stream = given_stream(&*b.store, 1).await;
    let first = with_claims(flow(), vec![request("k", "1", None)]);
    appended(b.store.append(first).await.unwrap());

    let both_wrong = with_claims(stream, vec![request("k", "2", None)]);
    let outcome = b.store.append(both_wrong).await.unwrap();

    assert_eq!(outcome, Outcome::Conflict { actual: 1 });
}

pub(crate) async fn an_expired_claim_is_absent_and_is_replaced(b: &Backend) {
    let until = START.plus_ms(1_000);
    let first = with_claims(flow(), vec![request("k", "first", Some(until))]);
    appended(b.store.append(first).await.unwrap());
    let second = |value| {
        let claim = request("k", value, Some(until.plus_ms(1_000)));
        with_claims(flow(), vec![claim])
    };

    b.clock.advance_ms(1_000);
    let still_held = b.store.append(second("too soon")).await.unwrap();
    b.clock.advance_ms(1);
    let now = START.plus_ms(1_001);
    let seen = values(b, &["k"], now).await;
    let replaced = b.store.append(second("second")).await.unwrap();

    assert_eq!(still_held, exists("k", "first"));
    assert_eq!(seen, [None]);
    appended(replaced);
    assert_eq!(values(b, &["k"], now).await, [Some("second".to_owned())]);
}

pub(crate) async fn of_two_racing_claimants_one_wins(b: &Backend) {
    for round in 0..50 {
        let name = format!("k{round}");
        let claim = |value| with_claims(flow(), vec![request(&name, value, None)]);
        let (one, two) = tokio::join!(b.store.append(claim("1")), b.store.append(claim("2")));
        match (one.unwrap(), two.unwrap()) {
            (Outcome::Appended(_), lost) => assert_eq!(lost, exists(&name, "1")),
            (lost, won) => {
                appended(won);
                assert_eq!(lost, exists(&name, "2"));
            }
        }
    }
    assert_eq!(b.store.head().await.unwrap(), 50);
}

pub(crate) async fn a_task_and_a_request_do_not_share_claims(b: &Backend) {
    let id = TaskId(uuid());
    let task = NewClaim {
        key: ClaimKey::Task(id),
        value: Arc::from("flow"),
        expires_at: None,
    };
    let text = request(&id.to_string(), "answer", None);

    let both = with_claims(flow(), vec![task.clone(), text.clone()]);
    appended(b.store.append(both).await.unwrap());

    let held = b
        .store
        .claims(&[text.key.clone(), task.key.clone()], START)
        .await
        .unwrap();
    assert_eq!(held, [Some(text.value), Some(task.value)]);
}

/// More than one sweep deletes at once.
const MANY: usize = 6_000;

pub(crate) async fn many_expired_claims_do_not_disturb_the_held_ones(b: &Backend) {
    let expired = START.plus_ms(1);
    for part in 0..MANY / 1_000 {
        let claims = (0..1_000).map(|n| request(&format!("{part}-{n}"), "x", Some(expired)));
        let append = with_claims(flow(), claims.collect());
        appended(b.store.append(append).await.unwrap());
    }
    let held = [
        request("for ever", "a", None),
        request("for long", "b", Some(START.plus_ms(1_000_000))),
    ];
    appended(
        b.store
            .append(with_claims(flow(), held.to_vec()))
            .await
            .unwrap(),
    );
    b.clock.advance_ms(60_000);

    // Writes go on long enough for every sweep.
    let later = START.plus_ms(120_000);
    for n in 0..MANY / 1_000 {
        let claims = (0..1_000).map(|m| request(&format!("new {n}-{m}"), "y", Some(later)));
        let append = with_claims(flow(), claims.collect());
        appended(b.store.append(append).await.unwrap());
    }

    let now = START.plus_ms(60_001);
    let seen = values(b, &["0-0", "for ever", "5-999", "for long", "new 0-0"], now).await;
    let seen: Vec<_> = seen.iter().map(Option::as_deref).collect();
    assert_eq!(seen, [None, Some("a"), None, Some("b"), Some("y")]);
}
