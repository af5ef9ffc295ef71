//! Checks that precede a call, and the wording of refusals.

use super::{Error, Webhooks};
use crate::delivery::Secret;
use crate::endpoint::EndpointId;
use serde_json::Value;
use std::sync::Arc;
use taskledger_domain::violation::PathSegment;
use taskledger_domain::{FlowId, Timestamp, Violation};
use taskledger_log::PIECE_BYTES_MAX;
use taskledger_net::egress::{Target, without_secrets};

/// A flow does not exist, or is not the caller's.
#[must_use]
pub fn no_such_flow(flow: FlowId) -> Error {
    let expected = "the id of a root task that exists";
    let actual = Value::from(flow.0.to_string());
    let fault = Violation::of("flow_id", "there is no such flow", expected, &actual);
    Error::Invalid(vec![fault])
}

impl Webhooks {
    /// The URL as it is kept.
    pub(super) fn allowed(&self, path: &[PathSegment], url: &str) -> Result<Arc<str>, Error> {
        match Target::parse(url, &self.policy) {
            Ok(target) => Ok(Arc::from(target.url().as_str())),
            Err(error) => {
                let text = error.to_string();
                let (reason, expected) = text
                    .rsplit_once(", expected ")
                    .unwrap_or((&text, "the URL of a receiver that is allowed"));
                let actual = Value::from(without_secrets(url));
                let fault = Violation::new(path, reason, expected, &actual);
                Err(Error::Invalid(vec![fault]))
            }
        }
    }

    /// A flow that does not exist would never be heard of. Cost: O(1).
    pub(super) async fn exists(&self, flow: FlowId) -> Result<(), Error> {
        let first = self.log.read_stream(flow, 0, 1, PIECE_BYTES_MAX).await?;
        if first.is_empty() {
            return Err(no_such_flow(flow));
        }
        Ok(())
    }

    /// A receiver that knows the secret of another endpoint of the owner could sign for it.
    pub(super) async fn is_its_own(
        &self,
        secret: &Secret,
        owner: Option<&Arc<str>>,
    ) -> Result<(), Error> {
        if self.store.is_in_use(secret, owner, self.now()).await? {
            let expected = "one that none of your webhooks signs with, or none: then one is made";
            // It is never repeated.
            let fault = Violation::of(
                "secret",
                "another webhook of yours signs with it",
                expected,
                &Value::Null,
            );
            return Err(Error::Invalid(vec![fault]));
        }
        Ok(())
    }
}

pub(super) fn is_disabled(field: &str, actual: &Value) -> Error {
    let reason = "the webhook is disabled";
    let expected = "one that is enabled; call `webhooks.enable` first";
    Error::Invalid(vec![Violation::of(field, reason, expected, actual)])
}

/// As many secrets sign as may.
pub(super) fn too_many_secrets(id: EndpointId, max: i64, until: Timestamp) -> Error {
    let reason = format!(
        "{max} old secrets sign beside the present one, and one more would end the first of them early"
    );
    let expected = format!(
        "a rotation after {until}, when the first of them ends, or `grace_seconds` 0, which ends all of them"
    );
    let fault = Violation::of("id", reason, expected, &id.to_string().into());
    Error::Invalid(vec![fault])
}
