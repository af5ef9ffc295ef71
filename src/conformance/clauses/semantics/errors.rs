//! What this project decided. Section: Errors

use crate::conformance::clauses::prelude::*;

/// Of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![decided(
        "semantics/errors/1-standard-messages",
        "errors with standard codes have exactly the standard's messages",
        standard_messages,
    )]
}

async fn standard_messages(probe: &Probe) -> Outcome {
    let reply = |method: &'static str, params| probe.call(method, params);
    let errors = [
        probe.post("{").await?.expect_error_without_id(-32700)?,
        probe.post("1").await?.expect_error_without_id(-32600)?,
        reply("no.such", json!({})).await?.expect_error(-32601)?,
        reply("tasks.get", json!({})).await?.expect_error(-32602)?,
    ];
    let expected = [
        "Parse error",
        "Invalid Request",
        "Method not found",
        "Invalid params",
    ];
    for (error, message) in errors.iter().zip(expected) {
        ensure!(error.message == message, "{error}: expected `{message}`");
    }
    seen(format!("{expected:?}"))
}
