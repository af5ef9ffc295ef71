//! `secrets.set`.

use super::kinds::{NameOfSecret, ValueOfSecret, owner};
use crate::application::Service;
use crate::application::api::Secret;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::secrets::{described, secret, shown};
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_domain::Violation;

/// The secret to be set. `Debug` does not show its value.
#[derive(Debug, Clone)]
pub struct Params {
    /// The name by which tasks refer to the secret.
    pub name: SecretName,
    /// The secret text; never written to logs.
    pub value: Secret,
    /// The owner, if it was given.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        reader.hide_unknown();
        let name = reader.required(
            "name",
            NameOfSecret,
            "What tasks call it: `{\"$secret\": \"name\"}`.",
        );
        let value = reader.required(
            "value",
            ValueOfSecret,
            "At most 8192 bytes. Never shown again, and removed from what attempts say.",
        );
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                name: name?,
                value: value?,
                owner,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "secrets.set",
        title: "Set Secret",
        summary: "Keep a secret that tasks can name, or replace it",
        tags: &["secret"],
        params: Params::declared(),
        changes: Changes::Secrets,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let set = service.set_secret(&call.context, p.owner, &p.name, &p.value);
                let set = answer(&service, set.await)?;
                Ok::<_, RpcError>(replies::secret(&set))
            })
        },
    }
}

fn about() -> About {
    described(
        "Stores or replaces a secret for the tasks of one user. Inputs of `http_executor` and `a2a_executor` \
         (values of `headers`, members of `auth`) and of `command_executor` (values of `env`) name it as \
         `{\"$secret\": \"name\"}`. It is resolved when an attempt starts, for the user of the flow's root, \
         and removed from what the attempt says. It is stored encrypted beside the log and no call shows it.",
        "secret",
        secret(),
        (
            "a token",
            json!({"name": "api-key", "value": "an-example-of-a-secret"}),
            shown("api-key"),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{faults, map};
    use serde_json::json;

    #[test]
    fn everything_is_read_and_the_value_not_shown() {
        let given = json!({"name": "a", "value": "hunter2-hunter2", "owner": "ann"});
        let read = Params::read(&map(given)).unwrap();
        assert_eq!(&*read.value.0, "hunter2-hunter2");
        assert_eq!(read.owner.as_deref(), Some("ann"));
        assert!(!format!("{read:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_wrong_shows_no_value() {
        for given in [
            json!({"name": "a", "value": "hunter2"}),
            json!({"name": "a", "value": "hunter2\0hunter2"}),
            json!({"name": "a", "value": ["hunter2"]}),
            json!({"name": "a", "value": "hunter2-hunter2", "valeu": "hunter2-hunter2"}),
            json!({"name": "a b", "value": "hunter2-hunter2"}),
            json!({"name": "a", "value": "hunter2".repeat(2_000)}),
        ] {
            let refused = Params::read(&map(given)).unwrap_err();
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
        }
        let fields = faults(Params::read(&map(json!({}))));
        assert_eq!(fields.len(), 2);
    }
}
