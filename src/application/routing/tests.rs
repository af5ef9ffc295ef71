//! Routing of requests to other nodes, and their serialized form.

use super::wire::{self, SEPARATE};
use super::*;
use crate::application::api::{Cancel, Created, Delete, Request};
use crate::application::context::Idempotency;
use crate::application::noted::Noted;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use taskledger_auth::{Caller, Name, Scope, Scopes};
use taskledger_domain::TaskId;
use taskledger_domain::flow::{Argument, Refusal};
use taskledger_domain::task::call::parse_create;
use taskledger_domain::testing::id;
use uuid::Uuid;

/// Another node that does what the test says, then takes nothing.
#[derive(Debug, Default)]
struct Other {
    answers: Mutex<VecDeque<Sent>>,
    sent: AtomicU64,
}

impl Forward for Other {
    fn send<'a>(&'a self, _: &'a Node, _: Vec<u8>, _: Duration) -> BoxFuture<'a, Sent> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let next = self.answers.lock().unwrap().pop_front();
        Box::pin(async { next.unwrap_or(Sent::NotTaken) })
    }
    fn admits(&self, _: &[u8]) -> bool {
        false
    }
}

fn answering(answers: impl IntoIterator<Item = Sent>) -> Other {
    Other {
        answers: Mutex::new(answers.into_iter().collect()),
        sent: AtomicU64::new(0),
    }
}

fn answered(outcome: Result<Reply, Error>) -> Sent {
    let written = wire::written_outcome(outcome, |_| "id of the failure".to_owned());
    Sent::Answered(written.expect("it was carried out"))
}

fn change() -> Request {
    Request::Delete(Delete {
        task: id("a"),
        cascade: false,
    })
}

fn read() -> Request {
    Request::Explain(id("a"))
}

fn caller(key: Option<&str>) -> Context {
    let mut context = Context::anonymous(Arc::from("request"));
    context.idempotency = key.map(|key| Idempotency::new(Arc::from(key)));
    context
}

const NEVER_HERE: u64 = u64::MAX;

/// Carries a request out; its flow comes here after so many looks.
async fn call(
    looks: u64,
    other: &Other,
    request: Request,
    key: Option<&str>,
) -> Result<Reply, Error> {
    let left = AtomicU64::new(looks);
    let here = |_| {
        let gone = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        async move {
            if gone.is_err() {
                return Ok(Reply::Deleted);
            }
            Err(Error::Elsewhere(Some(Arc::new(Node {
                id: Uuid::nil(),
                url: Arc::from("http://another"),
            }))))
        }
    };
    anywhere(other, &caller(key), request, here).await
}

fn sent(other: &Other) -> u64 {
    other.sent.load(Ordering::Relaxed)
}

fn busy() -> Error {
    Error::Busy {
        reason: "full".to_owned(),
        retry_after_ms: 7,
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_with_what_the_owner_says() {
    let created = Reply::Created(Created {
        task: id("a"),
        task_ids: Some(Arc::from([("x".to_owned(), id("b"))])),
    });
    let other = answering([answered(Ok(created))]);
    let reply = call(NEVER_HERE, &other, change(), None).await;
    let Ok(Reply::Created(created)) = reply else {
        panic!("tasks were created: {reply:?}");
    };
    assert_eq!(
        created.task_ids.as_deref(),
        Some(&[("x".to_owned(), id("b"))][..])
    );

    let refusal = Refusal::not_found(Argument::Task, id("a"));
    let other = answering([answered(Err(refusal.clone().into()))]);
    let refused = call(NEVER_HERE, &other, change(), None).await;
    assert!(matches!(refused, Err(Error::Refused(told)) if told.refusal == refusal));

    let failure = Failure::Broken("a secret of the server".to_owned());
    let other = answering([answered(Err(failure.into()))]);
    let failed = call(NEVER_HERE, &other, change(), None).await;
    assert!(
        matches!(&failed, Err(Error::Failed(Failure::OfNode { id, reason: None })) if id == "id of the failure"),
        "{failed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_owner_does_not_take_is_looked_for_anew() {
    let other = answering([]);
    let reply = call(3, &other, change(), None).await;
    assert!(matches!(reply, Ok(Reply::Deleted)));
    assert_eq!(sent(&other), 3);
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_nobody_owns_is_busy_in_the_end() {
    let begin = Instant::now();
    let told = call(NEVER_HERE, &answering([]), change(), None).await;
    assert!(matches!(
        told,
        Err(Error::Busy {
            retry_after_ms: 1..,
            ..
        })
    ));
    let looked = begin.elapsed();
    assert!(
        looked <= SEARCH_MAX && looked > SEARCH_MAX / 2,
        "{looked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_that_may_have_happened_is_not_sent_twice() {
    let other = answering([Sent::Broken]);
    let told = call(1, &other, change(), None).await;
    assert!(matches!(told, Err(Error::Unanswered { .. })), "{told:?}");
    assert_eq!(sent(&other), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_that_nothing_was_changed_after_a_change_broke_off() {
    let other = answering([Sent::Broken]);
    let told = call(NEVER_HERE, &other, change(), Some("k")).await;
    assert!(matches!(told, Err(Error::Unanswered { .. })), "{told:?}");
    assert!(sent(&other) > 1, "it was sent again before");
    // A read changes nothing, whatever became of it.
    let told = call(NEVER_HERE, &answering([Sent::Broken]), read(), None).await;
    assert!(matches!(told, Err(Error::Busy { .. })), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_with_a_key_and_a_read_are_sent_again() {
    for (request, key) in [(change(), Some("k")), (read(), None)] {
        let other = answering([Sent::Broken, answered(Ok(Reply::Deleted))]);
        let reply = call(NEVER_HERE, &other, request, key).await;
        assert!(matches!(reply, Ok(Reply::Deleted)), "{reply:?}");
        assert_eq!(sent(&other), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_change_that_may_have_happened_it_is_never_said_that_it_did_not() {
    let failure = || Error::from(Failure::Broken("x".to_owned()));
    let later = [
        answering([Sent::Broken]),
        answering([Sent::Broken, Sent::NotTaken, answered(Err(busy()))]),
        answering([Sent::Broken, answered(Err(failure()))]),
    ];
    for other in later {
        let told = call(NEVER_HERE, &other, change(), Some("k")).await;
        assert!(matches!(told, Err(Error::Unanswered { .. })), "{told:?}");
    }
    // A refusal that the rules give stands for both tries: the key was looked for first.
    let refusal = Refusal::not_found(Argument::Task, id("a"));
    let other = answering([Sent::Broken, answered(Err(refusal.into()))]);
    let told = call(NEVER_HERE, &other, change(), Some("k")).await;
    assert!(matches!(told, Err(Error::Refused(_))), "{told:?}");
}

fn list() -> Request {
    let params = json!({"tasks": [
        {"id": "a", "name": "line\nbreak", "user_id": "ann", "inputs": {"n": 1.5, "m": {"x": [null]}}},
        {"name": "b", "parent_id": "a", "priority": 0, "schemas": {"method": "m"},
         "dependencies": [{"id": "a", "required": false}],
         "params": {"retry_count": 2, "timeout_seconds": 1.5}},
    ]});
    let params = params.as_object().cloned().expect("an object");
    Request::Create(parse_create(&params).expect("valid tasks"))
}

/// The parts of a request as they are sent.
fn sent_by(context: &Context, request: &Request) -> Vec<u8> {
    wire::covered(
        context,
        Duration::from_millis(1500),
        &wire::written(request),
    )
}

#[tokio::test]
async fn a_request_arrives_as_it_was_sent() {
    let mut context = caller(Some("k \"x\"\né"));
    let name = Name::new("ann \"x\"é").expect("a name");
    let scopes = Scopes::of([Scope::TasksRead, Scope::Admin]);
    let user = Caller::user(&name, scopes).by(Arc::from("token"), Some(7));
    context.caller = Arc::new(user);
    let noted = Noted::of(&Arc::from("ann"), [None]);
    let context = context.noting(noted, Some(Uuid::from_u128(1)));
    let request = list();
    let arrived = arrived(sent_by(&context, &request)).await;
    let arrived = arrived.expect("it can be read");
    assert_eq!(arrived.context, context);
    assert_eq!(arrived.wait.as_millis(), 1500);
    let (Request::Create(sent), Request::Create(received)) = (request, arrived.request) else {
        panic!("tasks are created");
    };
    assert_eq!(received, sent);
}

#[tokio::test]
async fn updates_that_remove_and_updates_that_keep_arrive_as_they_are() {
    use taskledger_domain::task::spec;
    let given = json!({"user_id": null, "params": null, "name": "x", "inputs": {"a": 1}});
    let updates = spec::updates(given.as_object().expect("an object")).expect("valid updates");
    let task = id("a");
    let update = crate::application::api::Update {
        task,
        updates: updates.clone(),
    };
    let body = sent_by(&caller(None), &Request::Update(Box::new(update)));
    let arrived = arrived(body).await.expect("it can be read");
    let Request::Update(update) = arrived.request else {
        panic!("a task is changed");
    };
    assert_eq!(update.updates, updates);
    assert_eq!(update.updates.user_id, Some(None));
    assert_eq!(update.updates.schemas, None);
}

#[tokio::test]
async fn what_no_node_of_this_release_sends_is_not_taken() {
    let cancel = Request::Cancel(Cancel {
        task: id("a"),
        cascade: false,
        reason: None,
        remarks: None,
    });
    let body = sent_by(&caller(None), &cancel);
    let text = String::from_utf8(body).expect("it is text");
    assert!(arrived(text.clone()).await.is_some());
    let (cover, request) = text.split_once(SEPARATE).expect("two lines");
    let with = |line: &str, change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(line).expect("it is JSON");
        change(&mut value);
        value.to_string()
    };
    // Its members are those of a request that is known: only its name is not.
    let renamed = request.replacen("Cancel", "NoRequestOfAnyRelease", 1);
    let known = serde_json::from_str::<Request>(request).is_ok();
    assert!(known && serde_json::from_str::<Request>(&renamed).is_err());
    let later = with(cover, &|cover| cover["v"] = json!(wire::WIRE_VERSION + 1));
    let more = with(cover, &|cover| cover["region"] = json!("x"));
    let member = with(request, &|request| request["Cancel"]["force"] = json!(true));
    let unknown = json!({"NoRequestOfAnyRelease": {"task": TaskId(Uuid::nil())}}).to_string();
    for (cover, request) in [
        (&*later, request),
        (&*more, request),
        (cover, &*member),
        (cover, &*unknown),
        (cover, &*renamed),
        ("", ""),
        ("{}", "{}"),
    ] {
        let body = format!("{cover}{SEPARATE}{request}");
        assert!(arrived(body.clone()).await.is_none(), "{body}");
    }
    assert!(arrived("no line".to_owned()).await.is_none());
}

#[test]
fn of_a_flow_that_is_elsewhere_nothing_is_sent_back() {
    let outcome = wire::written_outcome(Err(Error::Elsewhere(None)), |_| String::new());
    assert!(outcome.is_none());
}
