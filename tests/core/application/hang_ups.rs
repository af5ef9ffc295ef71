//! Workers that hang up while another node begins attempts for them.

use crate::application::broker::{Broker, methods};
use crate::application::ownership::Hand;
use crate::application::world::{caller, soon, task};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::Service;
use taskledger::application::api::work::Wanted;
use taskledger::application::ownership::Node;
use taskledger::application::routing::{Forward, Sent};
use taskledger_domain::task::Status;
use taskledger_domain::testing::id;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long the other node may work for a call.
const LATEST: Duration = Duration::from_secs(60);

/// The way to another node, whose answers are kept back as long as the test wants.
#[derive(Debug)]
struct Way {
    to: Arc<Service>,
    carried_out: Semaphore,
    answers: Semaphore,
}

impl Forward for Way {
    fn send<'a>(&'a self, _: &'a Node, body: Vec<u8>, _: Duration) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let latest = Instant::now() + LATEST;
            let answer = self.to.taken(body, latest, |_| "failure".to_owned()).await;
            self.carried_out.add_permits(1);
            self.answers.acquire().await.unwrap().forget();
            answer.map_or(Sent::NotTaken, Sent::Answered)
        })
    }
    fn admits(&self, _: &[u8]) -> bool {
        false
    }
}

/// A worker asks one node for a task of another one, and hangs up when it has been claimed there.
async fn hangs_up(wanted: Wanted) {
    let (w, _hand) = Hand::world().await;
    let owner = Broker::over(w).await;
    owner.execute(json!([task("a", "resize")])).await;
    let (beside, hand) = Hand::beside(&owner.w).await;
    hand.count();
    let way = Arc::new(Way {
        to: owner.service.clone(),
        carried_out: Semaphore::new(0),
        answers: Semaphore::new(0),
    });
    let asked = Broker::reaching(beside, way.clone()).await;
    let claim = asked.claims(caller(), "gone", wanted, 1, LATEST);
    soon(way.carried_out.acquire()).await.unwrap().forget();
    assert_eq!(owner.w.status("a").await, Some(Status::InProgress));

    claim.abort();
    assert!(claim.await.unwrap_err().is_cancelled());
    way.answers.add_permits(Semaphore::MAX_PERMITS / 2);
    // Not only when the lease ends.
    let next = soon(owner.waits("next")).await.unwrap().unwrap();
    assert_eq!(
        (next.claims[0].task.id, next.claims[0].attempt),
        (id("a"), 2)
    );
}

#[tokio::test]
async fn what_was_claimed_elsewhere_for_a_poll_that_has_gone_is_given_back() {
    hangs_up(methods(&["resize"])).await;
}

#[tokio::test]
async fn a_task_that_was_claimed_elsewhere_by_its_id_for_nobody_is_given_back() {
    hangs_up(Wanted::Task(id("a"))).await;
}
