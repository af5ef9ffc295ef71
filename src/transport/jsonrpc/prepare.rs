//! Prepares a request for its handler: it reads parameters by name, the caller, the idempotency key, and whether a
//! stream is wanted. Knows the names of parameters, not their meaning.

use super::dispatch::{Call, Changes, Method};
use super::envelope::{Params, Request};
use super::error::RpcError;
use super::reader::Question;
use super::replies;
use super::stream_request::StreamRequest;
use crate::application::Context;
use crate::application::context::{IDEMPOTENCY_KEY_CHARS_MAX, Idempotency};
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_domain::Violation;

/// Parameters by name, and the caller with the call's idempotency key. Cost: O(parameters) when there is an idempotency
/// key.
pub(super) fn prepare<C>(
    method: &Method<C>,
    mut request: Request,
    origin: &Context,
) -> Result<(Call, Option<StreamRequest>), RpcError> {
    if !request.faults.is_empty() {
        return Err(RpcError::invalid_params(request.faults));
    }
    let mut params = match request.params {
        Params::Named(map) => map,
        Params::Positional(values) => by_name(&method.params.questions, values)?,
    };
    // Before the fingerprint: with and without a stream it is the same call.
    let stream = StreamRequest::take(method.name, &mut params, request.metadata.as_mut());
    if let (Some(_), Some(metadata)) = (&stream, request.metadata.as_mut()) {
        // A stream has a form of its own, and begins at once.
        metadata.remove(replies::a2a::PROTOCOL);
    }
    let mut idempotency = None;
    let key = request
        .metadata
        .as_ref()
        .and_then(|m| m.get("idempotency_key"));
    let mut members = request.metadata.iter().flat_map(Map::keys);
    if let (None, Some(name)) = (key, members.find(|it| is_misspelt_key(it))) {
        // The call would be carried out again when it is repeated.
        return Err(RpcError::invalid_params(vec![Violation::new(
            &["metadata".into(), name.as_str().into()],
            "unknown member, did you mean `idempotency_key`?",
            "`idempotency_key`",
            &Value::from(name.as_str()),
        )]));
    }
    if let Some(key) = key.filter(|key| !key.is_null()) {
        let key = idempotency_key(key)?;
        match method.changes {
            Changes::Nothing | Changes::Server => {}
            Changes::Flows => {
                idempotency = Some(Idempotency::new(key));
            }
            Changes::Webhooks => {
                let instead = "none; `webhooks.create` takes a `secret` that no other webhook of its owner has, `webhooks.redeliver` a `request_key`";
                return Err(keeps_no_keys(&key, instead));
            }
            Changes::Claims => {
                return Err(keeps_no_keys(&key, "none; each claim is another one"));
            }
            Changes::Work => {
                let instead = "none; the first outcome under a lease is the only one";
                return Err(keeps_no_keys(&key, instead));
            }
            Changes::Workflows => {
                let instead =
                    "none; a document that is equal to the newest version is not saved again";
                return Err(keeps_no_keys(&key, instead));
            }
            Changes::Schedules => {
                let instead = "none; an owner has one schedule of a name, so that a repeated call makes no second one";
                return Err(keeps_no_keys(&key, instead));
            }
            Changes::Secrets | Changes::Workers => {
                return Err(keeps_no_keys(&key, "none; repeating the call does no harm"));
            }
            Changes::Tokens => {
                return Err(keeps_no_keys(&key, "none; `tokens.create` takes an `id`"));
            }
        }
    }
    let call = Call {
        params,
        metadata: request.metadata,
        configuration: request.configuration,
        context: Context {
            idempotency,
            ..origin.clone()
        },
    };
    Ok((call, stream))
}

/// Whether a member of `metadata` is an idempotency key in another spelling.
fn is_misspelt_key(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.map(|it| it.to_ascii_lowercase()).collect();
    let likely = [
        "idempotencykey",
        "idempotentkey",
        "idempotencekey",
        "idempotency",
    ];
    likely.contains(&&*plain)
}

fn keeps_no_keys(key: &str, instead: &str) -> RpcError {
    RpcError::invalid_params(vec![Violation::new(
        &["metadata".into(), "idempotency_key".into()],
        "this method keeps no keys",
        instead,
        &Value::from(key),
    )])
}

/// Positional parameters by name. `null` leaves one out, as it does by name.
pub(super) fn by_name(
    params: &[Question],
    values: Vec<Value>,
) -> Result<Map<String, Value>, RpcError> {
    let names = params.iter().map(|question| question.name);
    if values.len() > params.len() {
        let names: Vec<_> = names.collect();
        return Err(RpcError::invalid_params(vec![Violation::of(
            "params",
            "too many positional parameters",
            format!("at most {}: {}", names.len(), names.join(", ")),
            &values.len().into(),
        )]));
    }
    let given = names.zip(values).filter(|(_, value)| !value.is_null());
    Ok(given
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}

fn idempotency_key(value: &Value) -> Result<Arc<str>, RpcError> {
    let fits = |key: &&str| (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.chars().count());
    value.as_str().filter(fits).map(Arc::from).ok_or_else(|| {
        RpcError::invalid_params(vec![Violation::new(
            &["metadata".into(), "idempotency_key".into()],
            "not an idempotency key",
            format!("a string of 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters"),
            value,
        )])
    })
}
