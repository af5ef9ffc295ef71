//! `secrets.list`.

use super::kinds::owner;
use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::secrets::{NAME, described, secret, shown};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Violation;

/// The owner of the secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The owner, if it was given.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let owner = owner(&mut reader);
        reader.finish(|| Some(Self { owner }))
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "secrets.list",
        title: "List Secrets",
        summary: "List the names of secrets",
        tags: &["secret"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let found = service.secrets(&call.context, p.owner).await;
                let found = answer(&service, found)?;
                Ok::<_, RpcError>(replies::secrets(&found))
            })
        },
    }
}

fn about() -> About {
    described(
        "Lists the secrets of one user by name, without their values. At most 1,000.",
        "secrets",
        object(json!({"secrets": {"type": "array", "items": secret()}})),
        ("all", json!({}), json!({"secrets": [shown(NAME)]})),
    )
}
