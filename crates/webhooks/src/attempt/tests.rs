//! The request of an attempt, and how answers are read.

use super::*;
use crate::delivery::{Cause, DeliveryId, Health, Key, Lease, Secret};
use crate::endpoint::{EndpointId, Ordering};
use std::sync::Mutex;
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_767_225_600_999_999);
const BEGINS: Begins = Begins {
    now: NOW,
    wall: NOW,
};
const LIMIT: Duration = Duration::from_secs(15);

/// Gives the same answer always, and keeps the latest headers.
#[derive(Debug)]
struct Canned {
    answer: Result<Incoming, egress::Error>,
    headers: Mutex<HeaderMap>,
}

#[async_trait]
impl Sender for Canned {
    async fn send(
        &self,
        _: &str,
        headers: HeaderMap,
        _: Bytes,
        _: Duration,
    ) -> Result<Incoming, egress::Error> {
        *self.headers.lock().unwrap() = headers;
        self.answer.clone()
    }
}

/// Never answers, and ignores its limit.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl Sender for Silent {
    async fn send(
        &self,
        _: &str,
        _: HeaderMap,
        _: Bytes,
        _: Duration,
    ) -> Result<Incoming, egress::Error> {
        std::future::pending().await
    }
}

fn secret(text: &str) -> Secret {
    Secret(Arc::from(text))
}

fn endpoint(headers: &[(&str, &str)]) -> Leased {
    let lease = Lease {
        endpoint: EndpointId(Uuid::from_u128(1)),
        token: 1,
    };
    let own = |(name, value): &(&str, &str)| (Arc::from(*name), secret(value));
    Leased {
        lease,
        url: Arc::from("https://example.com/hook"),
        owner: None,
        headers: headers.iter().map(own).collect(),
        keys: vec![Key {
            secret: secret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"),
            expires_at: None,
        }],
        ordering: Ordering::Task,
        schedule: None,
        content_type: None,
        health: Health::default(),
    }
}

fn due() -> Due {
    Due {
        id: DeliveryId(1),
        message_id: Arc::from("msg_1"),
        task: None,
        flow: None,
        body: Bytes::from_static(b"{}"),
        attempts: 0,
        cause: Cause::Scheduled,
        traceparent: Some(Arc::from("00-1-2-01")),
    }
}

fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Incoming {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_static(value));
    }
    Incoming {
        status: StatusCode::from_u16(status).unwrap(),
        headers: map,
        body: Bytes::copy_from_slice(body),
        truncated: false,
        cut: false,
        remote: Some(([203, 0, 113, 9], 443).into()),
        duration: Duration::from_millis(12),
    }
}

async fn made_with(
    endpoint: &Leased,
    answer: Result<Incoming, egress::Error>,
) -> (Attempt, Outcome, HeaderMap) {
    let headers = Mutex::default();
    let sender = Canned { answer, headers };
    let (made, outcome) = attempt(&sender, endpoint, &due(), BEGINS, LIMIT).await;
    (made, outcome, sender.headers.into_inner().unwrap())
}

async fn made(answer: Incoming) -> (Attempt, Outcome) {
    let (made, outcome, _) = made_with(&endpoint(&[]), Ok(answer)).await;
    (made, outcome)
}

#[tokio::test]
async fn a_request_names_itself_its_time_and_its_trace() {
    let (_, _, headers) = made_with(&endpoint(&[]), Ok(answer(200, &[], b""))).await;

    let value = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(value("content-type"), "application/json");
    assert_eq!(
        value("user-agent"),
        format!("taskledger/{}", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(value("webhook-id"), "msg_1");
    assert_eq!(value("webhook-timestamp"), "1767225600");
    assert!(value("webhook-signature").starts_with("v1,"));
    assert_eq!(value("traceparent"), "00-1-2-01");
    assert!(!headers.contains_key("accept-encoding"));
}

#[tokio::test]
async fn what_receivers_compare_is_the_time_of_the_machine_and_what_is_kept_is_ours() {
    let sender = Canned {
        answer: Ok(answer(
            503,
            &[("retry-after", "Thu, 01 Jan 2026 01:01:00 GMT")],
            b"",
        )),
        headers: Mutex::default(),
    };
    let wall = NOW.plus_ms(3_600_000);
    let begins = Begins { now: NOW, wall };
    // Its end is told by the same clock that is asked here.
    let mut endpoint = endpoint(&[]);
    endpoint.keys[0].expires_at = Some(NOW.plus_ms(1));

    let (made, outcome) = attempt(&sender, &endpoint, &due(), begins, LIMIT).await;

    let headers = sender.headers.into_inner().unwrap();
    let seconds = 1_767_225_600 + 3_600;
    assert_eq!(headers["webhook-timestamp"], seconds.to_string());
    let signed = sign(&endpoint.keys, NOW, "msg_1", seconds, b"{}").unwrap();
    assert_eq!(headers["webhook-signature"], signed);
    assert_eq!(made.at, NOW);
    let asked = Duration::from_micros(59_000_001);
    let retry_after = Some(asked);
    assert_eq!(outcome, Outcome::Failed { retry_after });
}

#[tokio::test]
async fn headers_of_an_endpoint_never_replace_ours_nor_those_of_the_connection() {
    let hostile = [
        ("Webhook-Signature", "v1,forged"),
        ("WEBHOOK-ID", "other"),
        ("webhook-anything", "x"),
        ("host", "internal"),
        ("Content-Length", "3"),
        ("transfer-encoding", "chunked"),
        ("traceparent", "00-0-0-00"),
        ("user-agent", "curl"),
        ("content-type", "text/plain"),
        ("X-Injected", "a\r\nx-more: b"),
        ("bad name", "x"),
    ];
    let (_, _, plain) = made_with(&endpoint(&[]), Ok(answer(200, &[], b""))).await;

    let (_, _, headers) = made_with(&endpoint(&hostile), Ok(answer(200, &[], b""))).await;

    assert_eq!(headers, plain);
}

#[tokio::test]
async fn headers_of_an_endpoint_are_sent_and_hidden() {
    let own = [("X-Api-Key", "hush"), ("authorization", "Bearer hush")];
    let (_, _, headers) = made_with(&endpoint(&own), Ok(answer(200, &[], b""))).await;

    assert_eq!(headers["x-api-key"], "hush");
    assert_eq!(headers["authorization"], "Bearer hush");
    assert!(!format!("{headers:?}").contains("hush"));
    assert!(!format!("{:?}", endpoint(&own)).contains("hush"));
}

#[tokio::test]
async fn without_a_key_there_is_no_signature() {
    let mut unsigned = endpoint(&[]);
    unsigned.keys.clear();
    let (_, _, headers) = made_with(&unsigned, Ok(answer(200, &[], b""))).await;
    assert!(headers.contains_key("webhook-timestamp"));
    assert!(!headers.contains_key("webhook-signature"));
}

#[tokio::test]
async fn nothing_leaves_unsigned_when_a_key_is_unusable() {
    let mut broken = endpoint(&[]);
    broken.keys[0].secret = secret("whsec_*hush*");

    let (attempt, outcome, headers) = made_with(&broken, Ok(answer(200, &[], b""))).await;

    assert!(headers.is_empty(), "nothing was sent");
    assert_eq!(attempt.error, Some("key"));
    assert_eq!(outcome, Outcome::Failed { retry_after: None });
    assert!(!format!("{attempt:?}").contains("hush"));
}

#[tokio::test]
async fn every_2xx_arrives_whatever_became_of_its_body() {
    for status in [200, 201, 202, 204, 299] {
        let mut incoming = answer(status, &[], b"thanks");
        (incoming.cut, incoming.truncated) = (status == 201, status == 200);
        let (attempt, outcome) = made(incoming).await;
        assert_eq!(outcome, Outcome::Arrived, "{status}");
        assert_eq!((attempt.status, attempt.error), (Some(status), None));
        assert_eq!(attempt.response.as_deref(), Some("thanks"));
        assert_eq!(attempt.remote.as_deref(), Some("203.0.113.9:443"));
        assert_eq!((attempt.at, attempt.duration_ms), (NOW, 12));
    }
}

#[tokio::test]
async fn what_is_no_2xx_has_failed_and_says_how() {
    for (status, class) in [
        (301, "redirect"),
        (302, "redirect"),
        (307, "redirect"),
        (308, "redirect"),
        (400, "status"),
        (404, "status"),
        (500, "status"),
        (503, "status"),
    ] {
        let (attempt, outcome) = made(answer(status, &[], b"no")).await;
        assert_eq!(outcome, Outcome::Failed { retry_after: None });
        assert_eq!((attempt.status, attempt.error), (Some(status), Some(class)));
    }
    let (attempt, outcome) = made(answer(410, &[], b"")).await;
    assert_eq!((attempt.error, outcome), (Some("status"), Outcome::Gone));
}

#[tokio::test]
async fn a_receiver_can_ask_for_a_pause() {
    let asked = |s| Outcome::Failed {
        retry_after: Some(Duration::from_secs(s)),
    };
    let (_, outcome) = made(answer(429, &[("retry-after", "7")], b"")).await;
    assert_eq!(outcome, asked(7));
    let (_, outcome) = made(answer(503, &[("retry-after", "soon")], b"")).await;
    assert_eq!(outcome, Outcome::Failed { retry_after: None });
}

#[tokio::test]
async fn no_answer_has_the_class_of_what_went_wrong() {
    let error = egress::Error {
        class: Class::Dns,
        detail: "no such name".to_owned(),
        remote: None,
        duration: Duration::from_millis(3),
    };
    let (attempt, outcome, _) = made_with(&endpoint(&[]), Err(error)).await;
    assert_eq!(outcome, Outcome::Failed { retry_after: None });
    assert_eq!((attempt.status, attempt.error), (None, Some("dns")));
    assert_eq!(attempt.detail.as_deref(), Some("no such name"));
    assert_eq!(attempt.duration_ms, 3);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_although_its_client_does_not() {
    let (made, _) = attempt(&Silent, &endpoint(&[]), &due(), BEGINS, LIMIT).await;
    assert_eq!(made.error, Some("timeout"));
    assert_eq!(made.duration_ms, 17_000);
}

#[tokio::test]
async fn what_is_kept_of_an_answer_is_bounded_text_without_nul() {
    let (attempt, _) = made(answer(500, &[], b"a\0b\xffc")).await;
    assert_eq!(attempt.response.as_deref(), Some("ab\u{FFFD}c"));
    for byte in [b'x', 0xFF] {
        let (attempt, _) = made(answer(500, &[], &[byte; RESPONSE_BYTES_MAX])).await;
        let kept = attempt.response.expect("something is kept").len();
        assert!((KEPT_BYTES_MAX - 3..=KEPT_BYTES_MAX).contains(&kept));
    }
    let (attempt, _) = made(answer(500, &[], &[0; 9])).await;
    assert_eq!(attempt.response, None);
}

#[tokio::test]
async fn what_a_receiver_repeats_of_the_headers_of_an_endpoint_is_not_kept() {
    let token = "k4n4ry-of-a-header";
    let bearer = format!("Bearer {token}");
    let own = [("authorization", &*bearer), ("x-short", "a")];
    let filled = "-".repeat(KEPT_BYTES_MAX - token.len() / 2);
    for (said, left) in [
        (
            format!("you sent {bearer}"),
            "you sent [secret authorization]".to_owned(),
        ),
        (
            format!("{{\"token\": \"{token}\", \"a\": 1}}"),
            "{\"token\": \"[secret authorization]\", \"a\": 1}".to_owned(),
        ),
        // Across the end of what is kept.
        (format!("{filled}{token}"), filled.clone()),
    ] {
        let canned = Canned {
            answer: Ok(answer(500, &[], said.as_bytes())),
            headers: Mutex::default(),
        };
        let (attempt, _) = attempt(&canned, &endpoint(&own), &due(), BEGINS, LIMIT).await;
        let kept = attempt.response.unwrap();
        assert!(kept.starts_with(&left), "{kept}");
        assert!(!kept.contains("k4n4ry"), "{kept}");
    }
}
