//! Answers that are HTTP, whatever they say (F-1 to F-4, F-6, F-8, F-10, F-11, F-15, F-16, F-24).

use crate::egress::world::{BYTES_MAX, answered, egress, get, hook};
use axum::http::Method;
use taskledger::egress::Outgoing;
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver};

/// What the network may hold of an answer that nobody reads any more: socket buffers of both sides.
const BUFFERED_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[tokio::test]
async fn every_status_is_an_answer() {
    let (receiver, egress) = (Receiver::start().await, egress());
    for (status, body) in [
        (200, ""),
        (201, "created"),
        (204, ""),
        (404, "no"),
        (410, "gone"),
        (429, "slow"),
        (500, "bug"),
        (503, "busy"),
    ] {
        let answer = Answer::status(status).header("Retry-After", "7").body(body);
        receiver.answers([answer.into()]);
        let incoming = answered(&egress, hook(&receiver.url("/hook"))).await;
        assert_eq!(incoming.status.as_u16(), status);
        assert_eq!(incoming.body, body);
        assert_eq!(incoming.headers["retry-after"], "7");
        assert_eq!(incoming.remote, Some(receiver.address()));
        assert!(!incoming.truncated && !incoming.cut);
    }
    assert_eq!(receiver.requests().len(), 8, "one attempt each");
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made_and_says_who_sends_it() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let body = b"{\"n\":1.0,\"big\":12345678901234567890,\"\xc3\xa4\":\"\\u00e4\"}";
    let mut request = hook(&receiver.url("/a/b?x=1&x=2#part"));
    request.body = body.to_vec().into();
    request.headers.insert("x-a", "1".parse().unwrap());
    answered(&egress, request).await;
    let came = &receiver.requests()[0];
    assert_eq!(
        (came.method.as_str(), came.path.as_str()),
        ("POST", "/a/b?x=1&x=2")
    );
    assert_eq!(came.body, body);
    assert_eq!(came.header("x-a"), Some("1"));
    let host = receiver.address().to_string();
    assert_eq!(came.header("host"), Some(host.as_str()));
    let program = concat!("taskledger/", env!("CARGO_PKG_VERSION"));
    assert_eq!(came.header("user-agent"), Some(program));
    for absent in ["accept-encoding", "cookie", "referer", "traceparent"] {
        assert_eq!(came.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn every_method_is_sent() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    for method in methods {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = Outgoing {
            method,
            ..get(&receiver.url("/"))
        };
        assert_eq!(answered(&egress, request).await.status, 200);
    }
    let came: Vec<_> = receiver.requests().into_iter().map(|r| r.method).collect();
    assert_eq!(came, methods);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_never_followed() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let forbidden = format!("127.0.0.2:{}", receiver.address().port());
    let elsewhere = Receiver::at(forbidden.parse().unwrap(), None).await;
    for status in [301, 302, 303, 307, 308] {
        for location in [
            receiver.url("/other"),
            elsewhere.url("/"),
            "/other".to_owned(),
        ] {
            let answer = Answer::status(status).header("location", &location);
            receiver.answers([answer.into()]);
            let before = receiver.requests().len();
            let incoming = answered(&egress, hook(&receiver.url("/"))).await;
            assert_eq!(incoming.status.as_u16(), status);
            assert_eq!(incoming.headers["location"], location.as_str());
            assert_eq!(receiver.requests().len(), before + 1);
        }
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn an_endless_body_is_read_up_to_the_limit_only() {
    let (receiver, egress) = (Receiver::start().await, egress());
    receiver.answer(Behaviour::endless_body());
    let incoming = answered(&egress, hook(&receiver.url("/"))).await;
    assert_eq!(incoming.status, 200);
    assert!(incoming.truncated);
    assert_eq!(incoming.body.len(), BYTES_MAX);
    // The connection is closed: a receiver that goes on writing is told so.
    let written = receiver.written();
    assert!(written < BUFFERED_BYTES_MAX, "{written} bytes were taken");
    receiver.answer(Answer::status(200));
    answered(&egress, hook(&receiver.url("/"))).await;
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_whole() {
    let (receiver, egress) = (Receiver::start().await, egress());
    for (len, truncated) in [
        (BYTES_MAX - 1, false),
        (BYTES_MAX, false),
        (BYTES_MAX + 1, true),
    ] {
        receiver.answers([Answer::status(200).body(vec![b'x'; len]).into()]);
        let incoming = answered(&egress, get(&receiver.url("/"))).await;
        assert_eq!(incoming.truncated, truncated, "{len}");
        assert_eq!(incoming.body.len(), len.min(BYTES_MAX));
    }
    receiver.answers([Answer::status(200).body("x").into()]);
    let nothing = Outgoing {
        response_bytes_max: 0,
        ..get(&receiver.url("/"))
    };
    let incoming = answered(&egress, nothing).await;
    assert!(incoming.truncated && incoming.body.is_empty());
}

/// A gzip stream is not taken for what it would become.
#[tokio::test]
async fn a_compressed_body_stays_as_it_is() {
    let (receiver, egress) = (Receiver::start().await, egress());
    // The head of a gzip member, and a block of stored bytes that repeats.
    let bomb = [
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255][..],
        &[0xed, 0xc1, 1, 1, 0, 0, 0, 0x80].repeat(500),
    ]
    .concat();
    let answer = Answer::status(200).header("content-encoding", "gzip");
    receiver.answer(answer.body(bomb.clone()));
    let incoming = answered(&egress, get(&receiver.url("/"))).await;
    assert_eq!(incoming.body, bomb);
    assert_eq!(incoming.headers["content-encoding"], "gzip");
}

#[tokio::test]
async fn a_body_may_hold_any_bytes() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let bytes: Vec<u8> = (0..=255).collect();
    receiver.answer(Answer::status(200).body(bytes.clone()));
    assert_eq!(answered(&egress, get(&receiver.url("/"))).await.body, bytes);
}
