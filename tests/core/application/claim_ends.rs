//! What sockets learn of the ends of the claims that they hold.

use crate::application::broker::Broker;
use crate::application::world::{caller, quiet, soon, task};
use serde_json::json;
use taskledger::subscription::notice::TakenBack;
use taskledger_domain::testing::id;

#[tokio::test]
async fn whoever_holds_a_claim_is_told_of_its_end_and_others_are_told_of_nothing() {
    let b = Broker::new().await;
    let mut one = b.service.watch_claims(&caller()).await.unwrap();
    let mut other = b.service.watch_claims(&caller()).await.unwrap();
    for name in ["a", "b", "c"] {
        b.execute(json!([task(name, "resize")])).await;
    }
    let (a, of_b, of_c) = (b.claim("a").await, b.claim("b").await, b.claim("c").await);
    one.held.hold(a.task.id, a.attempt);
    one.held.hold(of_c.task.id, of_c.attempt);
    assert!(b.complete(&of_b, json!({})).await.is_ok());
    b.cancel("a").await;
    let end = soon(one.ends.recv()).await.unwrap();
    assert_eq!((end.task, end.attempt), (id("a"), 1));
    assert_eq!(end.taken_back, Some(TakenBack::Cancelled));
    // An end that nobody has waited for yet is told as soon as somebody does.
    other.held.hold(of_b.task.id, of_b.attempt);
    let end = soon(other.ends.recv()).await.unwrap();
    assert_eq!((end.task, end.taken_back), (id("b"), None));
    assert!(one.ends.try_recv().is_err());
}

#[tokio::test]
async fn the_log_is_read_again_when_somebody_watches_again() {
    let b = Broker::new().await;
    drop(b.service.watch_claims(&caller()).await.unwrap());
    quiet().await;
    b.execute(json!([task("a", "resize")])).await;
    let mut watch = b.service.watch_claims(&caller()).await.unwrap();
    let a = b.claim("a").await;
    watch.held.hold(a.task.id, a.attempt);
    assert!(b.complete(&a, json!({})).await.is_ok());
    assert_eq!(soon(watch.ends.recv()).await.unwrap().task, id("a"));
}
