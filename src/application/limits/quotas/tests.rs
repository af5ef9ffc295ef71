//! Quotas over counts that the test sets.

use super::{InUse, Quota, QuotaOptions, Quotas, Usage};
use crate::application::error::{Error, Failure};
use crate::clock::ManualClock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use taskledger_domain::testing::START;

/// What the rows say, and how often they were asked.
#[derive(Debug, Default)]
struct Rows(Mutex<(Option<InUse>, usize)>);

impl Usage for Rows {
    fn of<'a>(&'a self, _owner: &'a Arc<str>) -> BoxFuture<'a, Result<InUse, Error>> {
        async move {
            let mut rows = self.0.lock().expect("no test panics here");
            rows.1 += 1;
            let away = || Error::Failed(Failure::ReadModel("away".to_owned()));
            rows.0.ok_or_else(away)
        }
        .boxed()
    }
}

impl Rows {
    fn say(&self, open_flows: u64, waiting_tasks: u64) {
        self.0.lock().expect("no test panics here").0 = Some(InUse {
            open_flows,
            waiting_tasks,
        });
    }

    fn asked(&self) -> usize {
        self.0.lock().expect("no test panics here").1
    }
}

fn quotas() -> (Quotas, Arc<Rows>, Arc<ManualClock>) {
    let (rows, clock) = (Arc::new(Rows::default()), Arc::new(ManualClock::at(START)));
    let options = QuotaOptions {
        open_flows: NonZeroU32::new(3),
        waiting_tasks: NonZeroU32::new(10),
        ..QuotaOptions::default()
    };
    let quotas = Quotas::new(options, rows.clone(), clock.clone());
    (quotas, rows, clock)
}

/// The quota that is exceeded, with its limit and what is used.
async fn take(quotas: &Quotas, open_flows: u64, waiting_tasks: u64) -> Option<(Quota, u64, u64)> {
    let added = InUse {
        open_flows,
        waiting_tasks,
    };
    match quotas.take(&Arc::from("ann"), added).await {
        Ok(()) => None,
        Err(Error::QuotaExceeded {
            quota,
            limit,
            used,
            requested,
        }) => {
            let asked = match quota {
                Quota::OpenFlows => open_flows,
                Quota::WaitingTasks => waiting_tasks,
                Quota::Webhooks | Quota::Streams | Quota::Callbacks | Quota::WaitingClaims => 0,
            };
            assert_eq!(requested, asked);
            Some((quota, limit, used))
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_was_added_since_the_count_is_counted_too() {
    let (quotas, rows, _clock) = quotas();
    rows.say(1, 1);
    assert_eq!(take(&quotas, 1, 1).await, None);
    assert_eq!(take(&quotas, 1, 1).await, None);
    assert_eq!(take(&quotas, 1, 1).await, Some((Quota::OpenFlows, 3, 3)));
    assert_eq!(
        take(&quotas, 0, 7).await,
        None,
        "tasks of a flow that is there"
    );
    assert_eq!(
        take(&quotas, 0, 1).await,
        Some((Quota::WaitingTasks, 10, 10))
    );
    assert_eq!(rows.asked(), 1, "once a second is enough");
}

#[tokio::test]
async fn what_has_ended_makes_room_soon() {
    let (quotas, rows, clock) = quotas();
    rows.say(3, 3);
    assert_eq!(take(&quotas, 1, 1).await, Some((Quota::OpenFlows, 3, 3)));
    rows.say(2, 2);
    assert!(
        take(&quotas, 1, 1).await.is_some(),
        "a moment ago there was none"
    );
    clock.advance_ms(100);
    assert_eq!(take(&quotas, 1, 1).await, None);
    clock.advance_ms(1000);
    rows.say(0, 0);
    assert_eq!(take(&quotas, 3, 3).await, None);
    assert_eq!(rows.asked(), 3);
}

#[tokio::test]
async fn rows_that_cannot_be_read_stop_nobody() {
    let (quotas, _rows, _clock) = quotas();
    assert_eq!(take(&quotas, 1, 1).await, None);
}

#[tokio::test]
async fn a_call_that_is_larger_than_the_quota_is_refused_whole() {
    let (quotas, rows, _clock) = quotas();
    rows.say(0, 4);
    assert_eq!(
        take(&quotas, 1, 7).await,
        Some((Quota::WaitingTasks, 10, 4))
    );
    assert_eq!(take(&quotas, 1, 6).await, None);
}
