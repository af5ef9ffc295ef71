//! Connections that are kept, and those that died meanwhile (F-19).

use crate::egress::world::{answered, egress, fails, get, hook};
use axum::http::Method;
use taskledger::egress::{Class, Outgoing};
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver, Then};

fn kept() -> Behaviour {
    Answer::status(200).into()
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (receiver, egress) = (Receiver::start().await, egress());
    for _ in 0..5 {
        answered(&egress, hook(&receiver.url("/"))).await;
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 5));
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_costs_no_attempt() {
    let (receiver, egress) = (Receiver::start().await, egress());
    for _ in 0..20 {
        // Closed right after the answer, without saying so in a header.
        let answer = Answer::status(200).bytes();
        receiver.answers([Behaviour::Raw(answer, Then::Close)]);
        answered(&egress, hook(&receiver.url("/"))).await;
    }
    assert_eq!(receiver.requests().len(), 20);
}

#[tokio::test]
async fn a_kept_connection_that_dies_under_a_request_is_replaced_once() {
    for death in [Then::Close, Then::Reset] {
        let (receiver, egress) = (Receiver::start().await, egress());
        receiver.answers([kept(), Behaviour::raw("", death), kept()]);
        answered(&egress, hook(&receiver.url("/"))).await;
        answered(&egress, hook(&receiver.url("/"))).await;
        let connections: Vec<_> = receiver.requests().iter().map(|r| r.connection).collect();
        assert_eq!(connections, [1, 1, 2], "{death:?}");

        receiver.answers([kept(), Behaviour::raw("", death), Behaviour::raw("", death)]);
        answered(&egress, get(&receiver.url("/"))).await;
        fails(&egress, get(&receiver.url("/")), Class::Reset).await;
        assert_eq!(receiver.requests().len(), 6, "{death:?}");
    }
}

#[tokio::test]
async fn a_request_that_must_not_arrive_twice_gets_a_connection_of_its_own() {
    let (receiver, egress) = (Receiver::start().await, egress());
    answered(&egress, get(&receiver.url("/"))).await;
    let post = || Outgoing {
        method: Method::POST,
        ..get(&receiver.url("/"))
    };
    answered(&egress, post()).await;
    receiver.answers([Behaviour::raw("", Then::Close)]);
    fails(&egress, post(), Class::Reset).await;
    let connections: Vec<_> = receiver.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [1, 2, 3]);
}
