//! Names and what they are said to be (F-25 to F-30).

use crate::egress::world::{PATIENCE, answered, egress_with, fails, get, hook, policy};
use axum::http::Method;
use std::time::Duration;
use taskledger::egress::{Class, Egress, Options, Outgoing, Policy, SystemLookup, Target};
use taskledger_testkit::dns::{Dns, Reply};
use taskledger_testkit::receiver::{Answer, Receiver};

const HOST: &str = "hook.example";
/// The limit of a lookup, and what a slow machine adds.
const LOOKUP_MAX: Duration = Duration::from_secs(6);

/// An allowed receiver, and one on the same port of an address that is forbidden.
async fn receivers() -> (Receiver, Receiver) {
    let allowed = Receiver::start().await;
    let twin = format!("127.0.0.2:{}", allowed.address().port());
    let forbidden = Receiver::at(twin.parse().unwrap(), None).await;
    (allowed, forbidden)
}

/// A request that does not use a kept connection.
fn post(url: &str) -> Outgoing {
    Outgoing {
        method: Method::POST,
        ..get(url)
    }
}

#[tokio::test]
async fn a_name_is_looked_up_and_its_address_is_told() {
    let (dns, receiver) = (Dns::start().await, Receiver::start().await);
    dns.says(HOST, [Reply::addresses(&["127.0.0.1"])]);
    let egress = egress_with(&dns);
    let incoming = answered(&egress, hook(&receiver.url_of(HOST, "/"))).await;
    assert_eq!(incoming.remote, Some(receiver.address()));
    let host = format!("{HOST}:{}", receiver.address().port());
    assert_eq!(receiver.requests()[0].header("host"), Some(host.as_str()));
}

#[tokio::test]
async fn a_name_without_addresses_is_a_failure_of_its_own_class() {
    let dns = Dns::start().await;
    let egress = egress_with(&dns);
    for reply in [
        Reply::NxDomain,
        Reply::Empty,
        Reply::ServFail,
        Reply::Silence,
    ] {
        dns.says(HOST, [reply.clone()]);
        let error = fails(&egress, hook("http://hook.example:8080/"), Class::Dns).await;
        assert!(
            error.duration < LOOKUP_MAX.min(PATIENCE),
            "{reply:?}: {error:?}"
        );
        assert_eq!(error.remote, None);
        // A failure is remembered for a while; the next one is another name.
        dns.says(HOST, [Reply::NxDomain]);
        let other = egress_with(&dns);
        fails(&other, hook("http://unknown.example:8080/"), Class::Dns).await;
    }
}

#[tokio::test]
async fn a_name_that_means_a_forbidden_address_is_not_called() {
    let (dns, (allowed, forbidden)) = (Dns::start().await, receivers().await);
    let egress = egress_with(&dns);
    for (n, address) in [
        "127.0.0.2",
        "10.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "::",
        "fd00::1",
        "fe80::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.2",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "::7f00:2",
        "8.8.8.8", // plain http goes to networks that are listed only
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{n}.example");
        dns.says(&name, [Reply::addresses(&[address])]);
        let url = allowed.url_of(&name, "/");
        let error = fails(&egress, hook(&url), Class::BlockedAddress).await;
        assert_eq!(
            error.detail,
            "the address is not allowed; the operator allows it with --egress-allow-net NET or \
             --egress-allow-host NAME",
            "{address}"
        );
        assert_eq!(error.remote, None, "{address}");
    }
    assert_eq!((allowed.connections(), forbidden.connections()), (0, 0));
}

#[tokio::test]
async fn of_a_mixed_answer_only_the_allowed_address_is_dialled() {
    let (dns, (allowed, forbidden)) = (Dns::start().await, receivers().await);
    let mixed = ["127.0.0.2", "10.0.0.1", "127.0.0.1", "::1", "fd00::1"];
    dns.says(HOST, [Reply::addresses(&mixed)]);
    let egress = egress_with(&dns);
    for _ in 0..3 {
        let incoming = answered(&egress, post(&allowed.url_of(HOST, "/"))).await;
        assert_eq!(incoming.remote, Some(allowed.address()));
    }
    assert_eq!((allowed.connections(), forbidden.connections()), (3, 0));
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_each_time_it_is_dialled() {
    let (dns, (allowed, forbidden)) = (Dns::start().await, receivers().await);
    let (good, bad) = (
        Reply::addresses(&["127.0.0.1"]),
        Reply::addresses(&["127.0.0.2"]),
    );
    dns.says(HOST, [good.clone(), bad, good]);
    let egress = egress_with(&dns);
    // One target, as it is stored when an endpoint is made.
    let request = post(&allowed.url_of(HOST, "/"));
    answered(&egress, request.clone()).await;
    fails(&egress, request.clone(), Class::BlockedAddress).await;
    answered(&egress, request).await;
    assert_eq!((allowed.connections(), forbidden.connections()), (2, 0));
}

/// What is checked is what is dialled: there is no second lookup that could say something else.
#[tokio::test]
async fn a_name_is_looked_up_once_for_each_connection() {
    let (dns, (allowed, forbidden)) = (Dns::start().await, receivers().await);
    let (good, bad) = (
        Reply::addresses(&["127.0.0.1"]),
        Reply::addresses(&["127.0.0.2"]),
    );
    dns.says(HOST, [good, bad]);
    let egress = egress_with(&dns);
    answered(&egress, hook(&allowed.url_of(HOST, "/"))).await;
    assert_eq!(dns.asked(HOST), 1);
    // A kept connection belongs to the address that was checked.
    answered(&egress, hook(&allowed.url_of(HOST, "/"))).await;
    assert_eq!(dns.asked(HOST), 1);
    assert_eq!((allowed.connections(), forbidden.connections()), (1, 0));
}

#[tokio::test]
async fn another_name_for_a_forbidden_address_is_not_called() {
    let (dns, (allowed, forbidden)) = (Dns::start().await, receivers().await);
    dns.says("inner.example", [Reply::addresses(&["127.0.0.2"])]);
    dns.says("outer.example", [Reply::Cname("inner.example".into())]);
    dns.says("good.example", [Reply::addresses(&["127.0.0.1"])]);
    dns.says("also.example", [Reply::Cname("good.example".into())]);
    let egress = egress_with(&dns);
    let inner = hook(&allowed.url_of("outer.example", "/"));
    fails(&egress, inner, Class::BlockedAddress).await;
    assert_eq!(forbidden.connections(), 0);
    answered(&egress, hook(&allowed.url_of("also.example", "/"))).await;
}

#[tokio::test]
async fn localhost_is_this_machine_and_short_names_are_nobody() {
    let dns = Dns::start().await;
    let lookup = SystemLookup::of_server(dns.address()).unwrap();
    let public_only = Options::new(Policy::default(), std::sync::Arc::new(lookup));
    let egress = Egress::new(public_only).unwrap();
    for (name, class) in [
        ("localhost", Class::BlockedAddress),
        ("a.localhost", Class::BlockedAddress),
        ("intranet", Class::Dns),
        ("metadata", Class::Dns),
    ] {
        fails(&egress, hook(&format!("https://{name}:8080/")), class).await;
    }
}

#[tokio::test]
async fn a_denied_name_is_not_even_looked_up() {
    let (dns, receiver) = (Dns::start().await, Receiver::start().await);
    dns.says(HOST, [Reply::addresses(&["127.0.0.1"])]);
    let request = hook(&receiver.url_of(HOST, "/"));
    let denying = Policy {
        deny_hosts: vec!["*.example".parse().unwrap()],
        ..policy()
    };
    assert!(Target::parse(request.target.url().as_str(), &denying).is_err());
    let lookup = SystemLookup::of_server(dns.address()).unwrap();
    let options = Options::new(denying, std::sync::Arc::new(lookup));
    let egress = Egress::new(options).unwrap();
    // It was stored when it was still allowed.
    fails(&egress, request, Class::BlockedAddress).await;
    assert_eq!((dns.asked(HOST), receiver.connections()), (0, 0));
}

#[tokio::test]
async fn the_server_itself_is_not_called_by_any_name() {
    let (dns, receiver) = (Dns::start().await, Receiver::start().await);
    let other = Receiver::start().await;
    receiver.answer(Answer::status(200));
    dns.says(HOST, [Reply::addresses(&["127.0.0.1"])]);
    let lookup = SystemLookup::of_server(dns.address()).unwrap();
    let own = Policy {
        own: vec![receiver.address()],
        ..policy()
    };
    let egress = Egress::new(Options::new(own, std::sync::Arc::new(lookup))).unwrap();
    let itself = hook(&receiver.url_of(HOST, "/"));
    fails(&egress, itself, Class::BlockedAddress).await;
    answered(&egress, hook(&other.url_of(HOST, "/"))).await;
    assert_eq!(receiver.connections(), 0);
}
