//! A client under test, and requests to send with it.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use taskledger::egress::{
    Class, Egress, Error, Incoming, Options, Outgoing, Policy, SystemLookup, Target,
};
use taskledger_testkit::dns::Dns;

/// Bytes of an answer that are read.
pub(crate) const BYTES_MAX: usize = 16 * 1024;
/// For attempts that are not about time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// For attempts that must run out of it.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

/// Only 127.0.0.1 is allowed.
pub(crate) fn policy() -> Policy {
    Policy {
        allow_nets: vec!["127.0.0.1/32".parse().unwrap()],
        ..Policy::default()
    }
}

/// Options that look names up where nobody answers.
pub(crate) fn options(policy: Policy) -> Options {
    let nobody: SocketAddr = "127.0.0.1:9".parse().unwrap();
    Options::new(policy, Arc::new(SystemLookup::of_server(nobody).unwrap()))
}

/// A client that may call 127.0.0.1.
pub(crate) fn egress() -> Egress {
    Egress::new(options(policy())).unwrap()
}

/// The same with a name server.
pub(crate) fn egress_with(dns: &Dns) -> Egress {
    let lookup = SystemLookup::of_server(dns.address()).unwrap();
    Egress::new(Options::new(policy(), Arc::new(lookup))).unwrap()
}

pub(crate) fn get(url: &str) -> Outgoing {
    Outgoing {
        target: Target::parse(url, &policy()).unwrap(),
        method: Method::GET,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        timeout: PATIENCE,
        response_bytes_max: BYTES_MAX,
    }
}

/// A POST that may be sent twice.
pub(crate) fn hook(url: &str) -> Outgoing {
    let id = HeaderValue::from_static("msg_1");
    Outgoing {
        method: Method::POST,
        headers: [("webhook-id".parse().unwrap(), id)].into_iter().collect(),
        body: Bytes::from_static(br#"{"type":"task_completed"}"#),
        ..get(url)
    }
}

/// With little time.
pub(crate) fn short(request: Outgoing) -> Outgoing {
    Outgoing {
        timeout: SHORT,
        ..request
    }
}

/// The answer that must come.
pub(crate) async fn answered(egress: &Egress, request: Outgoing) -> Incoming {
    egress.send(request).await.unwrap()
}

/// The failure that must come, of this class.
pub(crate) async fn fails(egress: &Egress, request: Outgoing, class: Class) -> Error {
    let shown = format!("{} {}", request.method, request.target);
    match egress.send(request).await {
        Ok(incoming) => panic!("{shown} was answered: {incoming:?}"),
        Err(error) => {
            assert_eq!(error.class, class, "{shown}: {error:?}");
            assert!(!error.detail.is_empty(), "{shown}");
            error
        }
    }
}
