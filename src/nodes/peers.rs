//! Calls to other nodes, over HTTP. They show a secret that only users of the same database know, so
//! there is nothing to configure for them to be believed. Whether what they say is encrypted follows from
//! the URL of each node; certificates are verified.

use super::ownership::NodeOwnership;
use crate::application::ownership::Node;
use crate::application::routing::{Forward, PATH, Sent};
use crate::meters::Counter;
use crate::tls::Certificates;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for a connection: nodes are near each other.
const CONNECT_WAIT: Duration = Duration::from_secs(1);
/// Bytes of an answer: several times the largest page of a history.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Passes calls on to the owners of flows; one client for all nodes, whose addresses `ownership` knows.
pub struct Peers {
    client: reqwest::Client,
    ownership: Arc<NodeOwnership>,
    /// What goes into `Authorization`.
    shown: String,
    answered: Counter,
    not_taken: Counter,
    broken: Counter,
}

/// Counts of calls to other nodes, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forwarded {
    /// Answered by the owner of their flow.
    pub answered: u64,
    /// Refused by a node that did nothing, or could not be reached.
    pub not_taken: u64,
    /// The connection broke, or there was no answer in time.
    pub broken: u64,
}

/// Other nodes cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    /// The file of authorities cannot be used; the operator mends it.
    #[error(
        "--node-ca: `{path}` cannot be used: {reason}; expected PEM, blocks of `-----BEGIN CERTIFICATE-----`"
    )]
    CaFile {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The client cannot be made.
    #[error("cannot call other nodes: {0}")]
    Client(#[from] reqwest::Error),
}

/// The trust between nodes over TLS: whose certificates they accept, and which one they show.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Authorities beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Shown to nodes that ask for a certificate.
    pub shown: Option<Arc<Certificates>>,
}

fn client(trust: &Trust) -> Result<reqwest::ClientBuilder, CallsError> {
    let fail = |reason: String| CallsError::CaFile {
        path: trust.ca_file.clone().unwrap_or_default(),
        reason,
    };
    let ca_file = trust.ca_file.as_deref();
    let authorities = ca_file.map(crate::tls::authorities).transpose();
    let authorities = authorities.map_err(fail)?.unwrap_or_default();
    crate::tls::client_showing(authorities, trust.shown.clone())
        .map_err(|error| fail(error.to_string()))
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

impl Peers {
    /// The other nodes of the cluster with this secret; nothing is sent yet.
    ///
    /// # Errors
    /// [`CallsError`].
    pub fn new(
        ownership: Arc<NodeOwnership>,
        secret: &[u8],
        trust: &Trust,
    ) -> Result<Self, CallsError> {
        let client = client(trust)?
            .connect_timeout(CONNECT_WAIT)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .build()?;
        let mut shown = "Bearer ".to_owned();
        for byte in secret {
            write!(shown, "{byte:02x}").expect("a string can always be written to");
        }
        Ok(Self {
            client,
            ownership,
            shown,
            answered: Counter::default(),
            not_taken: Counter::default(),
            broken: Counter::default(),
        })
    }

    /// What became of the calls that were sent since the start.
    #[must_use]
    pub fn forwarded(&self) -> Forwarded {
        Forwarded {
            answered: self.answered.get(),
            not_taken: self.not_taken.get(),
            broken: self.broken.get(),
        }
    }

    async fn exchange(&self, to: &Node, body: Vec<u8>) -> Sent {
        let url = format!("{}{PATH}", to.url.trim_end_matches('/'));
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, &self.shown)
            .body(body);
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() || error.is_builder() => {
                if let Some(fault) = crate::tls::fault(&error) {
                    tracing::warn!(
                        node.id = %to.id, url = %to.url, error = %fault,
                        "no agreement with a node on encryption; `--node-ca` names its authority"
                    );
                    return Sent::NotTaken;
                }
                tracing::debug!(node.id = %to.id, error = %error, "a node cannot be reached");
                return Sent::NotTaken;
            }
            Err(error) => {
                tracing::warn!(node.id = %to.id, error = %error, "a node gave no answer to a call");
                return Sent::Broken;
            }
        };
        let refused = [
            StatusCode::MISDIRECTED_REQUEST,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::UNAUTHORIZED,
            StatusCode::NOT_FOUND,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::REQUEST_TIMEOUT,
        ];
        let status = response.status();
        if refused.contains(&status) {
            if status != StatusCode::MISDIRECTED_REQUEST {
                tracing::warn!(node.id = %to.id, %status, "a node did not take a call");
            }
            return Sent::NotTaken;
        }
        let mut answer = Vec::new();
        if status == StatusCode::OK {
            loop {
                match response.chunk().await {
                    Ok(Some(piece)) if answer.len() + piece.len() <= ANSWER_BYTES_MAX => {
                        answer.extend_from_slice(&piece);
                    }
                    Ok(None) => return Sent::Answered(answer),
                    Ok(Some(_)) | Err(_) => break,
                }
            }
        }
        tracing::warn!(node.id = %to.id, %status, "the answer of a node to a call broke off");
        Sent::Broken
    }
}

impl Forward for Peers {
    fn send<'a>(&'a self, to: &'a Node, body: Vec<u8>, wait: Duration) -> BoxFuture<'a, Sent> {
        let exchange = tokio::time::timeout(wait, self.exchange(to, body));
        async move {
            let sent = tokio::select! {
                biased;
                sent = exchange => sent.unwrap_or(Sent::Broken),
                () = self.ownership.gone(to.id) => {
                    tracing::warn!(node.id = %to.id, "a node is gone that had a call");
                    Sent::Broken
                }
            };
            match &sent {
                Sent::Answered(_) => &self.answered,
                Sent::NotTaken => &self.not_taken,
                Sent::Broken => &self.broken,
            }
            .increment();
            sent
        }
        .boxed()
    }

    fn admits(&self, authorization: &[u8]) -> bool {
        // Digests have one length, and comparing all of both tells nothing about either.
        let (shown, expected) = (
            Sha256::digest(authorization),
            Sha256::digest(self.shown.as_bytes()),
        );
        let differing = shown.iter().zip(expected.iter()).map(|(a, b)| a ^ b);
        differing.fold(0, |all, bits| all | bits) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::routing::SEARCH_MAX;
    use crate::nodes::{BEAT_EVERY, TTL};
    use uuid::Uuid;

    fn peers() -> Peers {
        Peers::new(NodeOwnership::new(Uuid::nil()), &[7; 32], &Trust::default()).expect("a client")
    }

    #[test]
    fn only_the_secret_of_the_cluster_is_admitted() {
        let p = peers();
        assert!(p.admits(format!("Bearer {}", "07".repeat(32)).as_bytes()));
        for other in ["", "Bearer ", "bearer 07", &"07".repeat(32)] {
            assert!(!p.admits(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn an_owner_is_looked_for_longer_than_a_dead_node_keeps_its_leases() {
        assert!(SEARCH_MAX > TTL + 2 * BEAT_EVERY);
    }

    #[tokio::test]
    async fn a_node_that_refuses_connections_has_not_taken_a_call() {
        let p = peers();
        let to = Node {
            id: Uuid::nil(),
            url: Arc::from("http://127.0.0.1:1"),
        };
        let sent = p.exchange(&to, b"{}".to_vec()).await;
        assert!(matches!(sent, Sent::NotTaken), "{sent:?}");
    }
}
