//! Proxies: the one of the operator, and those of the environment (F-31).

use crate::egress::world::{answered, egress, fails, hook, options, policy};
use std::process::Command;
use taskledger::egress::{Class, Egress, Policy};
use taskledger_testkit::receiver::{Answer, Receiver};
use url::Url;

/// In the child: where the receiver is. Without it, this is the parent.
const RECEIVER: &str = "EGRESS_TEST_RECEIVER";
const TEST: &str = "egress::proxies::a_proxy_in_the_environment_is_ignored";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_in_the_environment_is_ignored() {
    if let Ok(url) = std::env::var(RECEIVER) {
        assert_eq!(answered(&egress(), hook(&url)).await.status, 202);
        return;
    }
    let (receiver, proxy) = (Receiver::start().await, Receiver::start().await);
    receiver.answer(Answer::status(202));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", TEST, "--nocapture"]);
    child.env(RECEIVER, receiver.url("/"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        child.env(name, proxy.url(""));
        child.env(name.to_lowercase(), proxy.url(""));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        child.env_remove(name);
    }
    let child = tokio::task::spawn_blocking(move || child.output());
    let ended = child.await.unwrap().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let ran = String::from_utf8_lossy(&ended.stdout).contains("1 passed");
    assert!(ran, "{ended:?}");
    assert_eq!((receiver.requests().len(), proxy.connections()), (1, 0));
}

fn through(proxy: &Receiver) -> Egress {
    let policy = Policy {
        allow_http: true,
        proxy: Some(Url::parse(&proxy.url("")).unwrap()),
        ..policy()
    };
    Egress::new(options(policy)).unwrap()
}

#[tokio::test]
async fn the_proxy_of_the_operator_gets_every_request_and_looks_names_up() {
    let proxy = Receiver::start().await;
    proxy.answer(Answer::status(202));
    let incoming = answered(&through(&proxy), hook("http://hook.example:8080/a?b=c")).await;
    assert_eq!(incoming.status, 202);
    assert_eq!(incoming.remote, None, "the proxy is not the receiver");
    let came = &proxy.requests()[0];
    assert_eq!(came.path, "http://hook.example:8080/a?b=c");
    assert_eq!(came.header("host"), Some("hook.example:8080"));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_a_failure_to_connect() {
    let proxy = Receiver::start().await;
    proxy.answer(Answer::status(403).body("denied"));
    let error = fails(
        &through(&proxy),
        hook("https://hook.example/"),
        Class::Connect,
    )
    .await;
    assert_eq!(error.remote, None);
    let came = &proxy.requests()[0];
    assert_eq!(
        (came.method.as_str(), came.path.as_str()),
        ("CONNECT", "hook.example:443")
    );
    assert!(came.body.is_empty());
}
