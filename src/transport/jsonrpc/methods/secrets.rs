//! The methods `secrets.*`.

use super::super::dispatch::{Changes, Method};
use super::super::error::RpcError;
use super::super::params::secrets::{list, one, set};
use super::super::reader::Parameters;
use super::super::replies;
use super::{answer, boxed};
use crate::application::Service;
use crate::transport::openrpc::about;

pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "secrets.set",
            title: "Set Secret",
            summary: "Keep a secret that tasks can name, or replace it",
            tags: &["secret"],
            params: set::Params::declared(),
            changes: Changes::Secrets,
            about: about::secrets::set(),
            handler: |service, call| {
                boxed(async move {
                    let p = set::Params::read(&call.params)?;
                    let set = service.set_secret(&call.context, p.owner, &p.name, &p.value);
                    let set = answer(&service, set.await)?;
                    Ok::<_, RpcError>(replies::secret(&set))
                })
            },
        },
        Method {
            name: "secrets.list",
            title: "List Secrets",
            summary: "List the names of secrets",
            tags: &["secret"],
            params: list::Params::declared(),
            changes: Changes::Nothing,
            about: about::secrets::list(),
            handler: |service, call| {
                boxed(async move {
                    let p = list::Params::read(&call.params)?;
                    let found = service.secrets(&call.context, p.owner).await;
                    let found = answer(&service, found)?;
                    Ok::<_, RpcError>(replies::secrets(&found))
                })
            },
        },
        Method {
            name: "secrets.delete",
            title: "Delete Secret",
            summary: "Delete a secret",
            tags: &["secret"],
            params: one::Params::declared(),
            changes: Changes::Secrets,
            about: about::secrets::delete(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    let deleted = service.delete_secret(&call.context, p.owner, &p.name);
                    let deleted = answer(&service, deleted.await)?;
                    Ok::<_, RpcError>(replies::secret_deleted(deleted))
                })
            },
        },
    ]
}
