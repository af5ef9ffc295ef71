//! Receivers that are slow or broken (F-12 to F-14, F-17, F-18, F-20, F-21, F-23).

use crate::egress::world::{SHORT, answered, egress, fails, get, hook, short};
use std::time::Duration;
use taskledger::egress::Class;
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver, Then};

/// Later than any attempt with little time, earlier than any with much.
const LATE: Duration = Duration::from_millis(600);

#[tokio::test]
async fn who_never_answers_is_given_up_in_time() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let partial = b"HTTP/1.1 200 OK\r\ncontent-le".to_vec();
    for silent in [
        Behaviour::Unread(Then::Hang),
        Behaviour::Raw(Vec::new(), Then::Hang),
        Behaviour::Raw(partial, Then::Hang),
    ] {
        receiver.answer(silent);
        let error = fails(&egress, short(hook(&receiver.url("/"))), Class::Timeout).await;
        assert!((SHORT..SHORT * 10).contains(&error.duration), "{error:?}");
        assert_eq!(error.remote, Some(receiver.address()));
    }
}

#[tokio::test]
async fn a_late_answer_counts_if_it_is_in_time() {
    let (receiver, egress) = (Receiver::start().await, egress());
    receiver.answer(Behaviour::Delayed(LATE, Answer::status(200)));
    fails(&egress, short(hook(&receiver.url("/"))), Class::Timeout).await;
    let incoming = answered(&egress, hook(&receiver.url("/"))).await;
    assert!(incoming.duration >= LATE, "{:?}", incoming.duration);
}

#[tokio::test]
async fn a_body_that_drips_is_cut_by_the_time_of_the_whole_attempt() {
    let (receiver, egress) = (Receiver::start().await, egress());
    receiver.answer(Behaviour::drip(Duration::from_millis(20)));
    let error = fails(&egress, short(hook(&receiver.url("/"))), Class::Timeout).await;
    assert!(error.duration < SHORT * 10, "{error:?}");
}

#[tokio::test]
async fn what_is_not_http_is_told_as_such() {
    let (receiver, egress) = (Receiver::start().await, egress());
    // What a server of HTTP/2 says to a client of HTTP/1: settings, and that it goes.
    let http2 = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    for nonsense in [
        b"HTTP/1.1 banana OK\r\n\r\n".as_slice(),
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/7.7 200 OK\r\n\r\n",
        b"<html>an answer of HTTP/0.9</html>\r\n",
        b"HTTP/1.1 200 OK\r\nx-a: a\0b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx a: b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        http2,
    ] {
        receiver.answer(Behaviour::raw(nonsense, Then::Close));
        let shown = String::from_utf8_lossy(nonsense).into_owned();
        let error = fails(&egress, hook(&receiver.url("/")), Class::Protocol).await;
        assert!(
            !error.detail.contains("SSH") && !error.detail.contains("html"),
            "{shown}: {error:?}"
        );
    }
}

#[tokio::test]
async fn headers_have_a_limit() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let large = Answer::status(200).header("x-large", &"x".repeat(100 * 1024));
    let many = (0..300).fold(Answer::status(200), |a, i| a.header(&format!("x-{i}"), "1"));
    for behaviour in [large.into(), many.into(), Behaviour::endless_headers()] {
        receiver.answer(behaviour);
        fails(&egress, hook(&receiver.url("/")), Class::Protocol).await;
    }
    assert!(
        receiver.written() < 16 * 1024 * 1024,
        "{}",
        receiver.written()
    );
    let usual = Answer::status(200).header("x-usual", &"x".repeat(8 * 1024));
    receiver.answer(usual);
    answered(&egress, hook(&receiver.url("/"))).await;
}

#[tokio::test]
async fn interim_answers_do_not_count() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(3);
    let answer = Answer::status(202).bytes();
    receiver.answer(Behaviour::raw([interim, answer].concat(), Then::Keep));
    assert_eq!(
        answered(&egress, hook(&receiver.url("/"))).await.status,
        202
    );
    receiver.answer(Behaviour::flood_of_interim_answers());
    fails(&egress, short(hook(&receiver.url("/"))), Class::Timeout).await;
}

#[tokio::test]
async fn a_reset_before_an_answer_is_a_failure_and_one_attempt() {
    let egress = egress();
    for (behaviour, seen) in [
        (Behaviour::Unread(Then::Reset), 0),
        (Behaviour::Unread(Then::Close), 0),
        (
            Behaviour::MidRequest {
                bytes: 5,
                then: Then::Reset,
            },
            1,
        ),
        (Behaviour::raw("", Then::Reset), 1),
        (Behaviour::raw("", Then::Close), 1),
        (Behaviour::raw("", Then::HalfClose), 1),
        (Behaviour::raw("HTTP/1.1 200 OK\r\nx-a: ", Then::Reset), 1),
        (
            Behaviour::raw("HTTP/1.1 200 OK\r\nx-a: ", Then::HalfClose),
            1,
        ),
    ] {
        let receiver = Receiver::start().await;
        let shown = format!("{behaviour:?}");
        receiver.answer(behaviour);
        let error = fails(&egress, hook(&receiver.url("/")), Class::Reset).await;
        assert_eq!(error.remote, Some(receiver.address()), "{shown}");
        assert_eq!(
            (receiver.connections(), receiver.requests().len()),
            (1, seen),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_an_answer_that_says_so() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let too_short = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello";
    for (bytes, then) in [
        (chunked, Then::Close),
        (too_short, Then::Close),
        (too_short, Then::HalfClose),
    ] {
        receiver.answer(Behaviour::raw(bytes, then));
        let incoming = answered(&egress, hook(&receiver.url("/"))).await;
        assert_eq!(
            (incoming.status.as_u16(), incoming.cut),
            (200, true),
            "{bytes}"
        );
        assert_eq!(incoming.body, "hello");
    }
    // A reset may overtake what was sent before it; what has been seen counts.
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    receiver.answer(Behaviour::Endless {
        head: head.into(),
        piece: vec![b'x'; 200],
        pause: Duration::from_millis(1),
    });
    let incoming = answered(&egress, hook(&receiver.url("/"))).await;
    assert_eq!(
        (incoming.body.len(), incoming.cut),
        (100, false),
        "no more than was announced"
    );
}

#[tokio::test]
async fn more_than_was_announced_is_not_the_next_answer() {
    let (receiver, egress) = (Receiver::start().await, egress());
    let split = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
    receiver.answers([Behaviour::raw(split.as_slice(), Then::Keep)]);
    let first = answered(&egress, get(&receiver.url("/"))).await;
    assert_eq!(
        (first.status.as_u16(), &*first.body),
        (200, b"ok".as_slice())
    );
    let second = answered(&egress, get(&receiver.url("/"))).await;
    assert_eq!(second.status, 200);
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn nobody_there_is_told_as_such() {
    let egress = egress();
    let receiver = Receiver::start().await;
    let (url, address) = (receiver.url("/"), receiver.address());
    drop(receiver);
    // The listener goes with its task.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let error = fails(&egress, hook(&url), Class::Connect).await;
    assert_eq!(error.remote, Some(address));
    assert!(error.detail.contains("refused"), "{error:?}");
}
