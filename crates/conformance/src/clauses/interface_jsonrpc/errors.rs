//! Checks of errors and their codes.

use super::calls::{ids, request};
use super::{INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::clauses::prelude::*;

pub(super) async fn ids_come_back_with_errors(probe: &Probe) -> Outcome {
    for id in ids() {
        let reply = probe.request(&request("no.such", id)).await?;
        reply.expect_error(METHOD_NOT_FOUND)?;
    }
    seen("texts and numbers come back as they were")
}

/// Errors of several kinds, their envelopes sound.
async fn some_errors(probe: &Probe) -> Result<Vec<RpcError>, Finding> {
    let calls = [
        ("no.such", json!({})),
        ("tasks.get", json!({"task_id": UNKNOWN_ID})),
        ("tasks.get", json!({"task_id": "x"})),
        ("tasks.create", json!({})),
    ];
    let mut errors = vec![
        probe
            .post("{")
            .await?
            .expect_error_without_id(PARSE_ERROR)?,
        probe
            .post("1")
            .await?
            .expect_error_without_id(INVALID_REQUEST)?,
    ];
    for (method, params) in calls {
        errors.push(probe.call(method, params).await?.expect_any_error()?);
    }
    Ok(errors)
}

pub(super) async fn errors_are_sound(probe: &Probe) -> Outcome {
    let errors = some_errors(probe).await?;
    for error in &errors {
        ensure!(
            !error.message.trim().is_empty(),
            "{error}: expected a message"
        );
    }
    let codes: Vec<_> = errors.iter().map(|error| error.code).collect();
    seen(format!("sound errors with the codes {codes:?}"))
}

pub(super) async fn errors_have_data(probe: &Probe) -> Outcome {
    let errors = some_errors(probe).await?;
    let with_data = errors.into_iter().find(|error| !error.data.is_null());
    let error = with_data.ok_or_else(|| Finding::skipped("no error has `data`"))?;
    seen(error.to_string())
}

pub(super) async fn parse_errors_have_no_id(probe: &Probe) -> Outcome {
    let broken: [&[u8]; 6] = [
        b"",
        b"{",
        b"{'a': 1}",
        br#"{"jsonrpc": "2.0", "method": "tasks.list", "params": {}, "id": 1"#,
        br#"{"jsonrpc": "2.0", "method": "tasks.list", "params": {}, "id": 1}x"#,
        b"{\"jsonrpc\": \"2.0\", \"method\": \"\xff\", \"params\": {}, \"id\": 1}",
    ];
    for body in broken {
        probe
            .post(body)
            .await?
            .expect_error_without_id(PARSE_ERROR)?;
    }
    seen("six bodies that are no JSON are -32700 with id null")
}

pub(super) async fn invalid_requests_are_told(probe: &Probe) -> Outcome {
    for body in ["1", "null", "\"x\"", "{}", "[]"] {
        probe
            .post(body)
            .await?
            .expect_error_without_id(INVALID_REQUEST)?;
    }
    seen("JSON that is no request is -32600")
}

pub(super) async fn unknown_methods_are_told(probe: &Probe) -> Outcome {
    for method in ["foobar", "tasks", "tasks.", "tasks.no-such", ""] {
        probe.refused(method, json!({}), METHOD_NOT_FOUND).await?;
    }
    seen("`foobar` and `tasks.no-such` are -32601")
}

pub(super) async fn invalid_params_are_told(probe: &Probe) -> Outcome {
    for (method, params) in [
        ("tasks.get", json!({})),
        ("tasks.get", json!({"task_id": 1})),
        ("tasks.get", json!({"task_id": "x"})),
        ("tasks.list", json!({"limit": "many"})),
        ("tasks.create", json!({"name": 1})),
        ("tasks.execute", json!({"tasks": {}})),
    ] {
        probe.refused(method, params, INVALID_PARAMS).await?;
    }
    seen("missing and mistyped parameters are -32602")
}

pub(super) async fn own_codes_are_in_the_servers_range(probe: &Probe) -> Outcome {
    let standard = [
        PARSE_ERROR,
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        INVALID_PARAMS,
        -32603,
    ];
    let errors = some_errors(probe).await?;
    for error in &errors {
        let reserved = (-32_768..=-32_100).contains(&error.code);
        ensure!(
            !reserved || standard.contains(&error.code),
            "{error}: a reserved code"
        );
    }
    let codes: Vec<_> = errors.iter().map(|error| error.code).collect();
    seen(format!("seen: {codes:?}"))
}

pub(super) async fn standard_codes_are_used(probe: &Probe) -> Outcome {
    parse_errors_have_no_id(probe).await?;
    invalid_requests_are_told(probe).await?;
    unknown_methods_are_told(probe).await?;
    invalid_params_are_told(probe).await?;
    seen("-32700, -32600, -32601 and -32602 where they belong")
}
