//! From an issuer's URL to its keys (OpenID Connect Discovery 1.0): two documents, fetched through the guard
//! of outgoing requests.

use super::issuer::{Issuer, can_be_called};
use super::keys::{DOCUMENT_BYTES_MAX, Keys, KeysRefused};
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use taskledger_net::egress::{self, AddressError, Egress, Outgoing, Target};
use url::Url;

/// Where an issuer describes itself, below its URL.
const DESCRIPTION: &str = "/.well-known/openid-configuration";
/// How long one document may take.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Issuer {
    /// Where it describes itself.
    #[must_use]
    pub fn discovery_url(&self) -> String {
        format!("{}{DESCRIPTION}", self.url().trim_end_matches('/'))
    }
}

/// Why keys cannot be had; for the log.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address is not allowed; `--egress-allow-host` could.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// No answer came.
    #[error(transparent)]
    NoAnswer(#[from] egress::Error),
    /// The answer is no document.
    #[error("`{url}` answered with status {status}, expected 200")]
    Status {
        /// What was asked for.
        url: String,
        /// What came.
        status: StatusCode,
    },
    /// The document is too long, or broke off.
    #[error("`{url}` did not answer with a whole document of at most {DOCUMENT_BYTES_MAX} bytes")]
    Incomplete {
        /// What was asked for.
        url: String,
    },
    /// The issuer does not describe itself.
    #[error("`{url}` is not the description of an OIDC issuer")]
    NoDescription {
        /// What was asked for.
        url: String,
    },
    /// The issuer describes another one.
    #[error("the issuer calls itself `{other}`, expected the URL that is configured")]
    OtherIssuer {
        /// What it calls itself.
        other: String,
    },
    /// The keys are where they could be changed on the way.
    #[error("the issuer's keys are not at an https URL")]
    NotEncrypted,
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysRefused),
}

/// Documents of issuers, by URL.
#[async_trait]
pub trait Documents: fmt::Debug + Send + Sync {
    /// The document, of at most 256 KiB.
    ///
    /// # Errors
    /// [`FetchError`].
    async fn get(&self, url: &Url) -> Result<Bytes, FetchError>;
}

/// Documents from the network. No redirect is followed; private addresses must be allowed by the policy.
#[derive(Debug, Clone)]
pub struct GuardedDocuments(pub Arc<Egress>);

#[async_trait]
impl Documents for GuardedDocuments {
    async fn get(&self, url: &Url) -> Result<Bytes, FetchError> {
        let target = Target::parse(url.as_str(), self.0.policy())?;
        let shown = target.to_string();
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::ACCEPT, json);
        let request = Outgoing {
            target,
            method: Method::GET,
            headers,
            body: Bytes::new(),
            timeout: TIMEOUT,
            response_bytes_max: DOCUMENT_BYTES_MAX,
        };
        let answer = self.0.send(request).await?;
        if answer.status != StatusCode::OK {
            let status = answer.status;
            return Err(FetchError::Status { url: shown, status });
        }
        if answer.truncated || answer.cut {
            return Err(FetchError::Incomplete { url: shown });
        }
        Ok(answer.body)
    }
}

#[derive(Deserialize)]
struct Description {
    issuer: String,
    jwks_uri: String,
}

/// The present keys of an issuer.
pub(super) async fn keys(issuer: &Issuer, documents: &dyn Documents) -> Result<Keys, FetchError> {
    let options = issuer.options();
    let text = issuer.discovery_url();
    let unusable = || FetchError::NoDescription { url: text.clone() };
    let url = Url::parse(&text).map_err(|_| unusable())?;
    let found = documents.get(&url).await?;
    let found: Description = serde_json::from_slice(&found).map_err(|_| unusable())?;
    if found.issuer != issuer.url() {
        let other = egress::without_secrets(&found.issuer);
        let other = other.chars().filter(|c| !c.is_control());
        let other = other.take(egress::URL_CHARS_MAX).collect();
        return Err(FetchError::OtherIssuer { other });
    }
    let url = Url::parse(&found.jwks_uri).map_err(|_| unusable())?;
    if !can_be_called(&url, options.loopback_http) {
        return Err(FetchError::NotEncrypted);
    }
    let set = documents.get(&url).await?;
    Ok(Keys::parse(&set, &options.algorithms)?)
}
