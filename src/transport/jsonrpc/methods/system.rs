//! Methods that concern the server.

use super::super::dispatch::{Changes, Method};
use super::super::error::RpcError;
use super::super::params::{drain, nothing};
use super::super::reader::Parameters;
use super::super::replies;
use super::{answer, boxed};
use crate::application::Service;
use crate::transport::openrpc::about;

/// All of them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "system.health",
            title: "Health",
            summary: "Show how the server is",
            tags: &["system"],
            params: nothing::Params::declared(),
            changes: Changes::Nothing,
            about: about::health(),
            handler: |service, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    let health = service.health(&call.context).await;
                    Ok::<_, RpcError>(replies::health(&answer(&service, health)?))
                })
            },
        },
        Method {
            name: "system.executors",
            title: "Executors",
            summary: "List the executors with their schemas and limits",
            tags: &["system"],
            params: nothing::Params::declared(),
            changes: Changes::Nothing,
            about: about::executors(),
            handler: |service, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    let executors = answer(&service, service.executors(&call.context))?;
                    Ok::<_, RpcError>(replies::executors(&executors))
                })
            },
        },
        Method {
            name: "system.drain",
            title: "Drain",
            summary: "Start or stop draining: a draining server starts no new attempts",
            tags: &["system"],
            params: drain::Params::declared(),
            changes: Changes::Server,
            about: about::drain(),
            handler: |service, call| {
                boxed(async move {
                    let params = drain::Params::read(&call.params)?;
                    let draining = service.drain_server(&call.context, params.drain).await;
                    Ok::<_, RpcError>(replies::draining(&answer(&service, draining)?))
                })
            },
        },
        Method {
            name: "system.rebuild",
            title: "Rebuild",
            summary: "Rebuild the read models from the log, while the old ones serve",
            tags: &["system"],
            params: nothing::Params::declared(),
            changes: Changes::Server,
            about: about::rebuild(),
            handler: |service, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    let started = service.rebuild_read_models(&call.context).await;
                    Ok::<_, RpcError>(replies::rebuild_started(answer(&service, started)?))
                })
            },
        },
    ]
}
