//! `webhooks.get`, `delete`, `secret`, `test`, `enable`, `disable`: those that name one endpoint.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::Id;
use crate::application::api::webhooks::EndpointId;
use taskledger_domain::Violation;

/// Names an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Identifies the endpoint, as `webhooks.create` returned it.
    pub id: EndpointId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The webhook.");
        reader.finish(|| Some(Self { id: id? }))
    }
}
