//! What becomes of a delivery whose receiver does something odd with the connection.

use crate::webhooks::sending::{LIMIT, Sending, shown};
use std::time::Duration;
use taskledger::webhooks::attempt::KEPT_BYTES_MAX;
use taskledger::webhooks::memory::{Delivery, State};
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver, Then, Tls};

/// Sends one message to a receiver that behaves so, and waits for its first attempt.
async fn first_attempt(behaviour: impl Into<Behaviour>) -> Delivery {
    let receiver = Receiver::start().await;
    receiver.answer(behaviour);
    first_attempt_at(&receiver.url("/hook")).await
}

async fn first_attempt_at(url: &str) -> Delivery {
    let sending = Sending::start();
    let endpoint = sending.endpoint(url, &[]);
    let message = sending.message(endpoint, b"{}");
    let delivery = sending.tried(message, 1).await;
    let counts = sending.end().await;
    assert_eq!(counts.attempts, 1);
    assert_eq!(counts.delivered == 1, delivery.state == State::Delivered);
    if delivery.state != State::Delivered {
        let slot_ms = delivery.next_at.ms_since(delivery.log[0].at);
        let took_ms = u64::from(delivery.log[0].duration_ms);
        assert!(
            (4_000..=6_000 + took_ms + 1_000).contains(&slot_ms),
            "{slot_ms}"
        );
        assert_eq!((delivery.state, delivery.attempts), (State::Waiting, 1));
    }
    delivery
}

fn raw(text: &str, then: Then) -> Behaviour {
    Behaviour::raw(text.as_bytes(), then)
}

#[tokio::test]
async fn every_2xx_is_delivered_and_its_body_kept() {
    for answer in [
        Answer::status(200),
        Answer::status(204),
        Answer::status(201).body("made"),
        Answer::status(202).body(b"a\0b\xff".as_slice()),
    ] {
        let delivery = first_attempt(answer.clone()).await;
        assert_eq!(delivery.state, State::Delivered, "{answer:?}");
        let kept = delivery.log[0].response.clone();
        assert!(kept.is_none_or(|text| *text == *"made" || *text == *"ab\u{FFFD}"));
        assert!(
            delivery.log[0]
                .remote
                .as_deref()
                .unwrap()
                .starts_with("127.0.0.1:")
        );
    }
}

#[tokio::test]
async fn every_other_status_is_a_failure_and_is_tried_again() {
    for status in [400, 404, 418, 429, 500, 502, 503, 504] {
        let answer = Answer::status(status).body("not now");
        let delivery = first_attempt(answer).await;
        assert_eq!(shown(&delivery), (false, Some(status), Some("status")));
        assert_eq!(delivery.log[0].response.as_deref(), Some("not now"));
    }
}

#[tokio::test]
async fn a_receiver_that_speaks_http_2_alone_is_a_failure_that_is_tried_again() {
    // Its first frame (settings), then one that ends the connection (go away: HTTP/1.1 is required).
    let settings: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let go_away: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13];
    let frames = [settings.as_slice(), &go_away].concat();
    for then in [Then::Close, Then::Reset] {
        let delivery = first_attempt(Behaviour::raw(frames.clone(), then)).await;
        let (delivered, status, error) = shown(&delivery);
        assert_eq!((delivered, status), (false, None));
        assert!(matches!(error, Some("protocol" | "reset")), "{error:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_nobody_is_asked_there() {
    let elsewhere = Receiver::start().await;
    let forbidden = "http://127.0.0.2:8080/inside".to_owned();
    for status in [301, 302, 307, 308] {
        for target in [elsewhere.url("/moved"), forbidden.clone()] {
            let answer = Answer::status(status).header("location", &target);
            let delivery = first_attempt(answer).await;
            assert_eq!(shown(&delivery), (false, Some(status), Some("redirect")));
        }
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_body_that_breaks_off_or_does_not_end_is_delivered_when_its_status_says_so() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    for behaviour in [
        raw(HEAD, Then::Reset),
        raw(&format!("{HEAD}half"), Then::Reset),
        raw(&format!("{HEAD}half"), Then::Close),
        raw(&format!("{HEAD}half"), Then::HalfClose),
        Behaviour::endless_body(),
    ] {
        let delivery = first_attempt(behaviour.clone()).await;
        assert_eq!(shown(&delivery), (true, Some(200), None));
        let kept = delivery.log[0]
            .response
            .as_ref()
            .map_or(0, |text| text.len());
        assert!(kept <= KEPT_BYTES_MAX);
    }
}

#[tokio::test]
async fn a_compressed_body_is_kept_as_it_came() {
    // Says to be gzip; nobody looks.
    let answer = Answer::status(200)
        .header("content-encoding", "gzip")
        .body("no gzip at all");
    let delivery = first_attempt(answer).await;
    assert_eq!(shown(&delivery), (true, Some(200), None));
    assert_eq!(delivery.log[0].response.as_deref(), Some("no gzip at all"));
}

#[tokio::test]
async fn what_is_no_answer_is_a_failure_of_its_class() {
    for (behaviour, classes) in [
        (
            raw("HTTP/1.1 abc\r\n\r\n", Then::Close),
            ["protocol", "reset"],
        ),
        (raw("hello\n", Then::Close), ["protocol", "reset"]),
        (Behaviour::endless_headers(), ["protocol", "protocol"]),
        (
            Behaviour::MidRequest {
                bytes: 0,
                then: Then::Reset,
            },
            ["reset", "reset"],
        ),
        (
            Behaviour::MidRequest {
                bytes: 1,
                then: Then::Reset,
            },
            ["reset", "reset"],
        ),
        (Behaviour::Unread(Then::Reset), ["reset", "connect"]),
        (raw("", Then::HalfClose), ["reset", "protocol"]),
    ] {
        let shape = format!("{behaviour:?}");
        let (delivered, status, error) = shown(&first_attempt(behaviour).await);
        assert!(!delivered && status.is_none());
        assert!(
            classes.contains(&error.unwrap()),
            "{error:?} for {shape:.80}"
        );
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_in_time_has_failed() {
    let pause = Duration::from_millis(50);
    for behaviour in [
        Behaviour::Unread(Then::Hang),
        raw("", Then::Hang),
        raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", Then::Hang),
        Behaviour::drip(pause),
        Behaviour::flood_of_interim_answers(),
    ] {
        let shape = format!("{behaviour:?}");
        let delivery = first_attempt(behaviour).await;
        let (delivered, _, error) = shown(&delivery);
        // A flood may be noticed before the time is over.
        assert!(
            !delivered && matches!(error, Some("timeout" | "protocol")),
            "{error:?} for {shape:.80}"
        );
        let took = Duration::from_millis(delivery.log[0].duration_ms.into());
        assert!(
            took < LIMIT + Duration::from_secs(1),
            "{took:?} for {shape:.80}"
        );
    }
}

#[tokio::test]
async fn a_failed_handshake_is_of_class_tls() {
    for tls in [
        Tls::SelfSigned,
        Tls::Expired,
        Tls::WrongName,
        Tls::Plaintext,
        Tls::Truncated,
        Tls::Old,
    ] {
        let receiver = Receiver::start_tls(tls).await;
        let delivery = first_attempt_at(&receiver.url("/hook")).await;
        let (delivered, status, error) = shown(&delivery);
        assert_eq!((delivered, status), (false, None), "{tls:?}");
        assert!(
            matches!(error, Some("tls" | "connect" | "reset")),
            "{error:?} for {tls:?}"
        );
        assert!(receiver.requests().is_empty());
    }
}

#[tokio::test]
async fn an_address_that_became_forbidden_gets_nothing_and_tells_nothing() {
    for url in [
        "http://127.0.0.2:8080/",
        "http://10.0.0.1/",
        "https://169.254.169.254/",
        "http://[::1]/",
    ] {
        let delivery = first_attempt_at(url).await;
        assert_eq!(
            shown(&delivery),
            (false, None, Some("blocked_address")),
            "{url}"
        );
        assert_eq!(delivery.log[0].remote, None);
    }
}

#[tokio::test]
async fn a_kept_connection_that_died_costs_no_attempt() {
    let receiver = Receiver::start().await;
    let sending = Sending::start();
    let endpoint = sending.endpoint(&receiver.url("/hook"), &[]);
    let closes = raw("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Then::Close);
    receiver.answers([closes]);
    let first = sending.message(endpoint, b"1");
    sending.tried(first, 1).await;

    let second = sending.message(endpoint, b"2");
    let delivery = sending.tried(second, 1).await;

    assert_eq!(shown(&delivery), (true, Some(200), None));
    assert_eq!(sending.end().await.attempts, 2);
}
