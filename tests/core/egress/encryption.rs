//! TLS, good and bad (F-22, F-23).

use crate::egress::world::{answered, egress, fails, hook, options, policy, short};
use std::path::PathBuf;
use taskledger::egress::{BuildError, Class, Egress};
use taskledger_testkit::receiver::{Receiver, Tls};
use tempfile::TempDir;

/// A client that trusts the authority of the tests.
fn trusting(folder: &TempDir) -> Egress {
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, Receiver::ca_pem()).unwrap();
    with_ca(file).unwrap()
}

fn with_ca(file: PathBuf) -> Result<Egress, BuildError> {
    let mut options = options(policy());
    options.ca_file = Some(file);
    Egress::new(options)
}

#[tokio::test]
async fn a_receiver_that_the_operator_trusts_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, egress) = (Receiver::start_tls(Tls::Good).await, trusting(&folder));
    for _ in 0..2 {
        let incoming = answered(&egress, hook(&receiver.url("/"))).await;
        assert_eq!(incoming.remote, Some(receiver.address()));
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_certificate_that_proves_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trusting = trusting(&folder);
    for (tls, told) in [
        (Tls::Expired, "expired"),
        (Tls::WrongName, "name"),
        (Tls::SelfSigned, "UnknownIssuer"),
    ] {
        let receiver = Receiver::start_tls(tls).await;
        let error = fails(&trusting, hook(&receiver.url("/")), Class::Tls).await;
        assert!(error.detail.contains(told), "{tls:?}: {error:?}");
        assert!(receiver.requests().is_empty(), "{tls:?}");
    }
    let receiver = Receiver::start_tls(Tls::Good).await;
    let error = fails(&egress(), hook(&receiver.url("/")), Class::Tls).await;
    assert!(error.detail.contains("UnknownIssuer"), "{error:?}");
}

#[tokio::test]
async fn what_is_not_tls_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let egress = trusting(&folder);
    for tls in [Tls::Plaintext, Tls::Truncated, Tls::Old, Tls::Http2Only] {
        let receiver = Receiver::start_tls(tls).await;
        fails(&egress, hook(&receiver.url("/")), Class::Tls).await;
        assert!(receiver.requests().is_empty(), "{tls:?}");
    }
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_given_up_in_time() {
    use taskledger_testkit::receiver::{Behaviour, Then};
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    receiver.answer(Behaviour::Unread(Then::Hang));
    let url = format!("https://{}/", receiver.address());
    fails(&trusting(&folder), short(hook(&url)), Class::Timeout).await;
}

#[tokio::test]
async fn a_server_of_tls_that_is_spoken_to_in_plain_text_is_no_http() {
    let receiver = Receiver::start_tls(Tls::Good).await;
    let url = format!("http://{}/", receiver.address());
    fails(&egress(), hook(&url), Class::Protocol).await;
}

#[test]
fn a_file_without_certificates_is_told_before_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    for file in [empty, folder.path().join("missing.pem")] {
        let error = with_ca(file.clone()).unwrap_err();
        assert!(
            error.to_string().contains(file.to_str().unwrap()),
            "{error}"
        );
    }
}
