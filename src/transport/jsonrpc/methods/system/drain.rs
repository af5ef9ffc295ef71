//! `system.drain`.

use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::{About, Example};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use taskledger_domain::Violation;

/// Whether to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Whether nothing begins any more; `false`: it does again.
    pub drain: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let about = "`true`: drain the server; `false`: let it start new attempts again.";
        let drain = reader.with_default("drain", BOOLEAN, true, about);
        reader.finish(|| Some(Self { drain }))
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "system.drain",
        title: "Drain",
        summary: "Start or stop draining: a draining server starts no new attempts",
        tags: &["system"],
        params: Params::declared(),
        changes: Changes::Server,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let params = Params::read(&call.params)?;
                let draining = service.drain_server(&call.context, params.drain).await;
                Ok::<_, RpcError>(replies::draining(&answer(&service, draining)?))
            })
        },
    }
}

fn about() -> About {
    About {
        description: "Drains the server that answers: it starts no new attempts, in itself or on workers, until it is called with `drain: false` or restarts. Attempts in progress continue, and their outcomes are recorded. `/readyz` says \
            `draining` meanwhile. A server that was told to stop (SIGTERM) drains until its end: `drain: false` is then -32602. It concerns one server, also where several share a database.",
        result: "draining",
        schema: object(json!({
            "draining": {"type": "boolean", "description": "Whether the server is draining."},
            "was_draining": {"type": "boolean", "description": "Whether that was so before the call."},
            "stopping": {"type": "boolean", "description": "Whether the server was told to stop: this drain ends with its next start."},
            "running": {"type": "integer", "minimum": 0, "description": "Attempts in the server that are under way."},
        })),
        errors: &[],
        examples: vec![Example {
            name: "again",
            description: "The server starts new attempts again.",
            params: json!({"drain": false}),
            result: json!({"draining": false, "was_draining": false, "stopping": false, "running": 0}),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{faults, map};
    use serde_json::json;

    #[test]
    fn a_server_is_drained_unless_it_is_said_otherwise() {
        assert!(Params::read(&map(json!({}))).unwrap().drain);
        assert!(!Params::read(&map(json!({"drain": false}))).unwrap().drain);
        assert_eq!(
            faults(Params::read(&map(json!({"drain": "no"})))),
            [("drain".into(), "not a boolean".into())]
        );
    }
}
