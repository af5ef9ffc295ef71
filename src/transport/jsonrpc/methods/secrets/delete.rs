//! `secrets.delete`.

use super::kinds::{NameOfSecret, owner};
use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::secrets::{NAME, described};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_domain::Violation;

/// Names a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The name by which tasks refer to the secret.
    pub name: SecretName,
    /// The owner, if it was given.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = reader.required("name", NameOfSecret, "The secret.");
        let owner = owner(&mut reader);
        reader.finish(|| Some(Self { name: name?, owner }))
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "secrets.delete",
        title: "Delete Secret",
        summary: "Delete a secret",
        tags: &["secret"],
        params: Params::declared(),
        changes: Changes::Secrets,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let deleted = service.delete_secret(&call.context, p.owner, &p.name);
                let deleted = answer(&service, deleted.await)?;
                Ok::<_, RpcError>(replies::secret_deleted(deleted))
            })
        },
    }
}

fn about() -> About {
    described(
        "Deletes a secret. Attempts that start later and name it fail; those under way keep what they have.",
        "deleted",
        object(json!({
            "deleted": {"type": "boolean", "description": "Whether there was one."},
        })),
        ("one", json!({"name": NAME}), json!({"deleted": true})),
    )
}
