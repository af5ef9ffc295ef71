//! Notifications: which calls are carried out although nobody is told their outcome.

use super::*;
use crate::application::api::work::Release;
use crate::clock::SystemClock;
use crate::transport::jsonrpc::envelope;
use crate::transport::jsonrpc::reader::Declared;
use crate::transport::openrpc::about;
use futures_util::future::ready;
use taskledger_domain::LeaseId;
use taskledger_domain::testing::id;

fn counting(name: &'static str, changes: Changes) -> Method<AtomicU64> {
    Method {
        name,
        title: "",
        summary: "",
        tags: &[],
        params: Declared {
            questions: Vec::new(),
            faults: |_| Vec::new(),
        },
        changes,
        about: about::work::claim(),
        handler: |calls, _| {
            calls.fetch_add(1, Ordering::Relaxed);
            let text = RawValue::from_string("{}".to_owned()).expect("JSON");
            Box::pin(ready(Ok(Text::Whole(text).into())))
        },
    }
}

#[tokio::test]
async fn a_claim_that_nobody_hears_of_is_not_carried_out() {
    let calls = Arc::new(AtomicU64::new(0));
    let methods = vec![
        counting("claim", Changes::Claims),
        counting("renew", Changes::Work),
    ];
    let dispatcher = Dispatcher::new(calls.clone(), methods, Arc::new(SystemClock::default()));
    for (method, id, carried_out) in [
        ("claim", None, 0),
        ("claim", Some("null"), 1),
        ("claim", Some("1"), 1),
        ("renew", None, 1),
    ] {
        let id = id.map(|id| format!(r#","id":{id}"#)).unwrap_or_default();
        let call = format!(r#"{{"jsonrpc":"2.0","method":"{method}"{id}}}"#);
        let before = calls.load(Ordering::Relaxed);
        for body in [call.clone(), format!("[{call}]")] {
            let context = Context::anonymous(Arc::from("r"));
            let answer = dispatcher.answer_bytes(body.as_bytes(), context).await;
            assert_eq!(answer.is_some(), !id.is_empty(), "{body}");
        }
        let made = calls.load(Ordering::Relaxed) - before;
        assert_eq!(made, 2 * carried_out, "{call}");
    }
    assert_eq!(dispatcher.failed_notifications(), 2);
}

#[tokio::test]
async fn what_was_claimed_comes_beside_the_answer_to_one_call_or_to_a_batch() {
    let (task, lease) = (id("task"), LeaseId(id("lease").0));
    let mut claims = counting("claim", Changes::Claims);
    claims.handler = |_, _| {
        let claimed = vec![Release {
            task: id("task"),
            lease: LeaseId(id("lease").0),
        }];
        let text = RawValue::from_string("{}".to_owned()).expect("JSON");
        Box::pin(ready(Ok(Reply::Claimed(text, claimed))))
    };
    let methods = vec![claims, counting("renew", Changes::Work)];
    let clock = Arc::new(SystemClock::default());
    let dispatcher = Dispatcher::new(Arc::new(AtomicU64::new(0)), methods, clock);
    let call = |method: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":1}}"#);
    let (claim, other) = (call("claim"), call("renew"));
    for (body, claimed) in [
        (claim.clone(), 1),
        (other.clone(), 0),
        (format!("[{other},{claim},7,{claim}]"), 2),
        (format!("[{other}]"), 0),
    ] {
        let envelope = envelope::parse(body.as_bytes());
        let context = Context::anonymous(Arc::from("r"));
        let (max, mut share) = (4096, Budget::unlimited().share_of_all());
        let answer = dispatcher.answer_within(envelope, context, Entrance::Socket, max, &mut share);
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.claimed.len(), claimed, "{body}");
        for release in answer.claimed {
            assert_eq!((release.task, release.lease), (task, lease));
        }
    }
}
