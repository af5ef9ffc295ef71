//! The faults that tests of the mailboxes rely on, one by one.

use crate::contract::fixture::{append, appended, events, flow, manual_clock};
use std::sync::Arc;
use taskledger::store::faulty::FaultyStore;
use taskledger::store::memory::MemoryStore;
use taskledger::store::{Append, Error, EventStore, Outcome, Resolution};

fn store() -> Arc<FaultyStore<MemoryStore>> {
    Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(manual_clock()))))
}

fn ids(append: &Append) -> Vec<taskledger_domain::EventId> {
    append.events.iter().map(|e| e.id).collect()
}

#[tokio::test]
async fn a_refused_append_writes_nothing_and_the_next_one_passes() {
    let s = store();
    s.faults()
        .refuse_next_append(Error::NotWritable("full".to_owned()));

    let refused = s.append(append(flow(), 0, 1)).await;
    let passed = s.append(append(flow(), 0, 1)).await;

    assert!(matches!(refused, Err(Error::NotWritable(_))));
    assert_eq!(appended(passed.unwrap())[0].position, 1);
    assert_eq!(s.faults().appends(), 2);
}

#[tokio::test]
async fn a_held_append_is_judged_after_its_release() {
    let s = store();
    let stream = flow();
    let mut hold = s.faults().hold_next_append();
    let writer = tokio::spawn({
        let s = s.clone();
        async move { s.append(append(stream, 0, 1)).await }
    });
    hold.arrived().await;
    assert_eq!(s.head().await.unwrap(), 0);
    appended(s.append(append(stream, 0, 2)).await.unwrap());

    hold.release();

    let outcome = writer.await.unwrap().unwrap();
    assert_eq!(outcome, Outcome::Conflict { actual: 2 });
}

#[tokio::test]
async fn a_held_answer_belongs_to_an_append_that_is_written() {
    let s = store();
    let stream = flow();
    let mut hold = s.faults().hold_next_answer();
    let writer = tokio::spawn({
        let s = s.clone();
        async move { s.append(append(stream, 0, 1)).await }
    });

    hold.arrived().await;

    assert_eq!(s.stream_head(stream).await.unwrap(), Some((1, 1)));
    assert!(!writer.is_finished());
    drop(hold);
    appended(writer.await.unwrap().unwrap());
}

#[tokio::test]
async fn a_held_read_sees_what_was_written_meanwhile() {
    let s = store();
    let stream = flow();
    let mut hold = s.faults().hold_next_read();
    let reader = tokio::spawn({
        let s = s.clone();
        async move { s.read_stream(stream, 0, 10, usize::MAX).await }
    });
    hold.arrived().await;
    appended(s.append(append(stream, 0, 1)).await.unwrap());

    hold.release();

    assert_eq!(reader.await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn unknown_resolves_to_what_really_happened() {
    let s = store();
    let (written, unwritten) = (append(flow(), 0, 1), append(flow(), 0, 1));
    let asked = [&written, &unwritten].map(|a| (a.stream, ids(a)));
    s.faults().unknown_after_next_append();
    s.faults().unknown_instead_of_next_append();

    assert_eq!(s.append(written).await.unwrap(), Outcome::Unknown);
    assert_eq!(s.append(unwritten).await.unwrap(), Outcome::Unknown);

    let [first, second] = asked;
    let resolution = s.resolve(first.0, &first.1).await.unwrap();
    assert!(matches!(resolution, Resolution::Appended(e) if e.len() == 1));
    let resolution = s.resolve(second.0, &second.1).await.unwrap();
    assert_eq!(resolution, Resolution::Absent);
}

#[tokio::test]
async fn after_a_crash_nothing_answers_until_it_is_reopened() {
    let s = store();
    let stream = flow();
    let lost = append(stream, 0, 2);
    let asked = ids(&lost);
    s.faults().crash_after_next_append();

    assert_eq!(s.append(lost).await.unwrap(), Outcome::Unknown);

    for error in [
        s.append(append(flow(), 0, 1)).await.err(),
        s.resolve(stream, &asked).await.err(),
        s.read_stream(stream, 0, 1, usize::MAX).await.err(),
        s.head().await.err(),
    ] {
        assert!(matches!(error, Some(Error::Unavailable(_))), "{error:?}");
    }
    s.faults().reopen();
    assert_eq!(s.stream_head(stream).await.unwrap(), Some((2, 2)));
}

#[tokio::test]
async fn a_foreign_write_makes_the_next_append_conflict() {
    let s = store();
    let stream = flow();
    s.faults().pass_next_append();
    s.faults().foreign_write_before_next_append(events(2));
    appended(s.append(append(stream, 0, 1)).await.unwrap());

    let outcome = s.append(append(stream, 1, 1)).await.unwrap();

    assert_eq!(outcome, Outcome::Conflict { actual: 3 });
}
