//! Libraries of three languages check what the server sends to webhooks.

use crate::clients::others;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use taskledger_testkit::program::end;
use taskledger_testkit::receiver::{Receiver, Request};
use taskledger_testkit::server::{Api, Folder, Server};

/// What a receiver needs to check a message. spec: Standard Webhooks / signature scheme
const SIGNED: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

/// Text that a sender must not write anew after it was signed.
const AWKWARD: &str = "\u{e9} e\u{301} \u{2028} \\/ \u{1F600} \"quoted\"";

/// A message as it came, or as somebody has changed it, and the secret that it is checked with.
#[derive(Debug, Clone)]
struct Case {
    what: String,
    secret: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    genuine: bool,
}

impl Case {
    fn new(what: &str, request: &Request, secret: &str, genuine: bool) -> Self {
        let header = |name| (name, request.header(name).unwrap().to_owned());
        Self {
            what: what.to_owned(),
            secret: secret.to_owned(),
            headers: SIGNED.map(header).to_vec(),
            body: String::from_utf8(request.body.clone()).unwrap(),
            genuine,
        }
    }

    /// The same with another header.
    fn with(mut self, what: &str, name: &str, change: impl Fn(&str) -> String) -> Self {
        let header = self.headers.iter_mut().find(|(n, _)| *n == name).unwrap();
        header.1 = change(&header.1);
        self.forged(what)
    }

    fn forged(mut self, what: &str) -> Self {
        self.what = format!("{}, {what}", self.what);
        self.genuine = false;
        self
    }

    fn line(&self) -> String {
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        json!({"secret": self.secret, "headers": headers, "body": self.body}).to_string()
    }

    /// What the crate `standardwebhooks` says.
    fn verified_by_the_crate(&self) -> bool {
        let header = |(name, value): &(&'static str, String)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        };
        let headers: HeaderMap = self.headers.iter().map(header).collect();
        let webhook = Webhook::new(&self.secret).unwrap();
        webhook.verify(self.body.as_bytes(), &headers).is_ok()
    }
}

/// A genuine message, and what all must refuse of it.
fn forgeries(case: &Case) -> Vec<Case> {
    let mut longer = case.clone();
    longer.body.push(' ');
    let later = |seconds: &str| (seconds.parse::<u64>().unwrap() + 1).to_string();
    vec![
        longer.forged("with a longer body"),
        case.clone()
            .with("with another time", "webhook-timestamp", later),
        case.clone()
            .with("with another id", "webhook-id", |id| format!("{id}0")),
        case.clone()
            .with("with another algorithm", "webhook-signature", |signature| {
                signature.replace("v1,", "v2,")
            }),
        case.clone().with("of long ago", "webhook-timestamp", |_| {
            "1649367553".to_owned()
        }),
    ]
}

/// What the libraries say, each of all cases.
async fn verdicts(cases: &[Case]) -> Vec<(&'static str, Vec<bool>)> {
    let lines: String = cases.iter().map(|case| case.line() + "\n").collect();
    let of_lines = |out: String| -> Vec<bool> {
        let lines = out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    vec![
        (
            "crate",
            cases.iter().map(Case::verified_by_the_crate).collect(),
        ),
        (
            "npm",
            of_lines(end(others::node("verify.cjs"), &lines).await.done()),
        ),
        (
            "PyPI",
            of_lines(end(others::python("verify.py"), &lines).await.done()),
        ),
    ]
}

/// Waits for the next request at `path` behind the first `known`.
async fn next(api: &Api, receiver: &Receiver, path: &str, known: usize) -> Request {
    let came = async || {
        let requests = receiver.requests();
        requests
            .into_iter()
            .filter(|request| request.path == path)
            .nth(known)
    };
    api.eventually(&format!("request {known} at {path}"), came)
        .await
}

/// A message that only tests.
async fn tested(api: &Api, receiver: &Receiver, webhook: &Value, path: &str) -> Request {
    let known = receiver
        .requests()
        .iter()
        .filter(|r| r.path == path)
        .count();
    api.call("webhooks.test", json!({"id": webhook["id"]}))
        .await;
    next(api, receiver, path, known).await
}

#[tokio::test]
async fn libraries_of_three_languages_verify_what_is_sent_also_during_and_after_a_rotation() {
    libraries_verify_what_is_sent(&[]).await;
}

#[tokio::test]
async fn libraries_of_three_languages_verify_what_is_sent_of_a_server_that_wants_a_token() {
    libraries_verify_what_is_sent(&["--auth", "on"]).await;
}

/// `auth`: options of the server, which shows its first token then.
async fn libraries_verify_what_is_sent(auth: &[&str]) {
    // Given two webhooks, of which one is told of a task with an awkward result.
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let allowed = ["--egress-allow-net", "127.0.0.1/32"];
    let mut server = Server::start_with(&folder, &[&allowed[..], auth].concat()).await;
    if !auth.is_empty() {
        server.api = server.api.with_token(&folder.first_token());
    }
    let api = &server.api;
    let make = async |path: &str, events: Value| {
        let params = json!({"url": receiver.url(path), "events": events});
        api.call("webhooks.create", params).await
    };
    let long = make("/long", json!(["task_completed"])).await;
    let short = make("/short", json!(["task_cancelled"])).await;
    let secret = |made: &Value| made["secret"].as_str().unwrap().to_owned();
    let (old, short_old) = (secret(&long), secret(&short));
    let run = json!({"tasks": [{"name": "awkward", "inputs": {"text": AWKWARD, "number": 1.0},
        "schemas": {"method": "echo_executor"}}]});
    api.call("tasks.execute", run).await;
    let told = next(api, &receiver, "/long", 0).await;
    assert_eq!(
        serde_json::from_slice::<Value>(&told.body).unwrap()["result"]["text"],
        AWKWARD
    );

    // When the secret of the first is replaced and the old one signs for long,
    let ask = json!({"id": long["id"], "grace_seconds": 3600});
    let new = secret(&api.call("webhooks.rotate_secret", ask).await);
    let during = tested(api, &receiver, &long, "/long").await;
    // and that of the second, whose old one ends,
    let ask = json!({"id": short["id"], "grace_seconds": 1});
    let short_new = secret(&api.call("webhooks.rotate_secret", ask).await);
    let signatures = |request: &Request| {
        request
            .header("webhook-signature")
            .unwrap()
            .split(' ')
            .count()
    };
    let after = async || {
        let request = tested(api, &receiver, &short, "/short").await;
        (signatures(&request) == 1).then_some(request)
    };
    let after = api.eventually("the old secret ends", after).await;

    // Then each library believes what is genuine, and nothing else.
    assert_eq!((signatures(&told), signatures(&during)), (1, 2));
    let before = Case::new("before the rotation", &told, &old, true);
    let by_new = Case::new("during the rotation, the new secret", &during, &new, true);
    let by_old = Case::new("during the rotation, the old secret", &during, &old, true);
    let ended = Case::new(
        "after the rotation, the new secret",
        &after,
        &short_new,
        true,
    );
    let mut cases = vec![
        Case::new(
            "before the rotation, the secret to come",
            &told,
            &new,
            false,
        ),
        Case::new("another webhook's secret", &told, &short_old, false),
        Case::new(
            "after the rotation, the old secret",
            &after,
            &short_old,
            false,
        ),
    ];
    for case in [before, by_new, by_old, ended] {
        cases.extend(forgeries(&case));
        cases.push(case);
    }
    for (library, verdicts) in verdicts(&cases).await {
        assert_eq!(verdicts.len(), cases.len(), "{library}");
        for (case, verdict) in cases.iter().zip(verdicts) {
            assert_eq!(verdict, case.genuine, "{library}: {}", case.what);
        }
    }
    server.stop().await;
}
