//! The methods `webhooks.*`, and executions whose caller wants to be called back.

use super::super::dispatch::{Call, Changes, Method};
use super::super::error::{ErrorKind, RpcError};
use super::super::params::webhooks::{
    create, deliveries, list, one, recover, redeliver, rotate_secret, update,
};
use super::super::params::{beside, execute, retry};
use super::super::reader::Parameters;
use super::{Context, answer, boxed, listed};
use crate::application::caller::Caller;
use crate::application::stretch::at_a_stretch;
use crate::application::{Answer, ExecuteOptions};
use crate::transport::openrpc::about;
use crate::webhooks::api::Error;
use crate::webhooks::store;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use taskledger_domain::{CallbackId, Violation, limits};

/// What a caller is told to wait when the store of webhooks does not answer, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

pub(super) fn methods() -> Vec<Method<Context>> {
    let mut methods = endpoints();
    methods.extend(secrets());
    methods.extend(sending());
    methods
}

fn endpoints() -> Vec<Method<Context>> {
    vec![
        Method {
            name: "webhooks.create",
            title: "Create Webhook",
            summary: "Send what happens to an address",
            tags: &["webhook"],
            params: create::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::create(),
            handler: |context, call| {
                boxed(async move {
                    let p = create::Params::read(&call.params)?;
                    told(&context, &call.params, context.webhooks.create(p.0).await)
                })
            },
        },
        Method {
            name: "webhooks.get",
            title: "Get Webhook",
            summary: "Show a webhook",
            tags: &["webhook"],
            params: one::Params::questions(),
            changes: Changes::Nothing,
            about: about::webhooks::get(),
            handler: |context, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(&context, &call.params, context.webhooks.get(p.id).await)
                })
            },
        },
        Method {
            name: "webhooks.list",
            title: "List Webhooks",
            summary: "List webhooks, oldest first",
            tags: &["webhook"],
            params: list::Params::questions(),
            changes: Changes::Nothing,
            about: about::webhooks::list(),
            handler: |context, call| {
                boxed(async move {
                    let p = list::Params::read(&call.params)?;
                    told(
                        &context,
                        &call.params,
                        context.webhooks.list(p.after, p.limit).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.update",
            title: "Update Webhook",
            summary: "Change what is given of a webhook",
            tags: &["webhook"],
            params: update::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::update(),
            handler: |context, call| {
                boxed(async move {
                    let p = update::Params::read(&call.params)?;
                    told(
                        &context,
                        &call.params,
                        context.webhooks.update(p.id, p.change).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.delete",
            title: "Delete Webhook",
            summary: "Delete a webhook and what waits for it",
            tags: &["webhook"],
            params: one::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::delete(),
            handler: |context, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    let cancelled = context.webhooks.delete(p.id).await;
                    let done = cancelled.map(|n| json!({"success": true, "cancelled": n}));
                    told(&context, &call.params, done)
                })
            },
        },
        Method {
            name: "webhooks.enable",
            title: "Enable Webhook",
            summary: "Send to a webhook again",
            tags: &["webhook"],
            params: one::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::enable(),
            handler: |context, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(&context, &call.params, context.webhooks.enable(p.id).await)
                })
            },
        },
        Method {
            name: "webhooks.disable",
            title: "Disable Webhook",
            summary: "Send nothing to a webhook, and keep what it would get",
            tags: &["webhook"],
            params: one::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::disable(),
            handler: |context, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(&context, &call.params, context.webhooks.disable(p.id).await)
                })
            },
        },
    ]
}

fn secrets() -> Vec<Method<Context>> {
    vec![
        Method {
            name: "webhooks.rotate_secret",
            title: "Rotate Secret",
            summary: "Let a new secret sign, beside the old one for a while",
            tags: &["webhook"],
            params: rotate_secret::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::rotate_secret(),
            handler: |context, call| {
                boxed(async move {
                    let p = rotate_secret::Params::read(&call.params)?;
                    let rotated = context.webhooks.rotate(p.id, p.secret, p.grace_seconds);
                    told(&context, &call.params, rotated.await)
                })
            },
        },
        Method {
            name: "webhooks.secret",
            title: "Show Secret",
            summary: "Show the secrets of a webhook; who asked is logged",
            tags: &["webhook"],
            params: one::Params::questions(),
            changes: Changes::Nothing,
            about: about::webhooks::secret(),
            handler: |context, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    let (principal, correlation) = (call.caller.principal, call.caller.correlation);
                    let shown = context.webhooks.secret(p.id, &principal, &correlation);
                    told(&context, &call.params, shown.await)
                })
            },
        },
    ]
}

fn sending() -> Vec<Method<Context>> {
    vec![
        Method {
            name: "webhooks.test",
            title: "Test Webhook",
            summary: "Send a message that only tests, once, and say what came of it",
            tags: &["webhook"],
            params: one::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::test(),
            handler: |context, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(&context, &call.params, context.webhooks.test(p.id).await)
                })
            },
        },
        Method {
            name: "webhooks.deliveries",
            title: "List Deliveries",
            summary: "Show what was sent, every attempt, and what waits",
            tags: &["webhook"],
            params: deliveries::Params::questions(),
            changes: Changes::Nothing,
            about: about::webhooks::deliveries(),
            handler: |context, call| {
                boxed(async move {
                    let p = deliveries::Params::read(&call.params)?;
                    told(
                        &context,
                        &call.params,
                        context.webhooks.deliveries(&p.filter, p.limit).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.redeliver",
            title: "Redeliver",
            summary: "Send a message once more, now",
            tags: &["webhook"],
            params: redeliver::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::redeliver(),
            handler: |context, call| {
                boxed(async move {
                    let p = redeliver::Params::read(&call.params)?;
                    let done = context.webhooks.redeliver(p.delivery_id, p.request_key);
                    let done = done.await.map(|id| json!({"delivery_id": id}));
                    told(&context, &call.params, done)
                })
            },
        },
        Method {
            name: "webhooks.recover",
            title: "Recover",
            summary: "Let deliveries that were given up begin anew",
            tags: &["webhook"],
            params: recover::Params::questions(),
            changes: Changes::Webhooks,
            about: about::webhooks::recover(),
            handler: |context, call| {
                boxed(async move {
                    let p = recover::Params::read(&call.params)?;
                    let done = context.webhooks.recover(p.id, p.which).await;
                    told(
                        &context,
                        &call.params,
                        done.map(|count| json!({"recovered": count})),
                    )
                })
            },
        },
    ]
}

/// `tasks.execute`.
pub(super) async fn execute(context: &Context, call: Call) -> Result<Box<RawValue>, RpcError> {
    let read = at_a_stretch(listed(&call), || execute::Params::read(&call.params));
    starting(context, call, read, async |caller, p, callback| {
        let options = ExecuteOptions {
            callback,
            ..p.options
        };
        context.app.execute(caller, p.target, options).await
    })
    .await
}

/// `tasks.retry`.
pub(super) async fn retry(context: &Context, call: Call) -> Result<Box<RawValue>, RpcError> {
    let read = retry::Params::read(&call.params);
    starting(context, call, read, async |caller, p, callback| {
        context.app.retry(caller, p.task_id, callback).await
    })
    .await
}

/// Carries out a call that starts a run. Where the caller wants to be called is kept before the command,
/// whose event names it; a callback that no event names is removed.
async fn starting<P>(
    context: &Context,
    call: Call,
    read: Result<P, Vec<Violation>>,
    start: impl AsyncFnOnce(Caller, P, Option<CallbackId>) -> Answer,
) -> Result<Box<RawValue>, RpcError> {
    let callback = beside::read(call.metadata.as_deref(), call.configuration.as_deref());
    let (p, callback) = match (read, callback) {
        (Ok(p), Ok(callback)) => (p, callback),
        (read, callback) => {
            let mut faults: Vec<Violation> = read.err().unwrap_or_default();
            faults.extend(callback.err().unwrap_or_default());
            faults.truncate(limits::VIOLATIONS_MAX);
            return Err(faults.into());
        }
    };
    let kept = match callback {
        None => None,
        Some(callback) => {
            // Boxed, here and below: hardly a call needs the room, and every one would be moved with it.
            let kept = Box::pin(context.webhooks.keep_callback(callback)).await;
            Some(kept.map_err(|error| refused(context, &call.params, error))?)
        }
    };
    let done = answer(context, start(call.caller, p, kept).await);
    if let (Some(callback), Err(error)) = (kept, &done)
        && error.code != ErrorKind::Internal.row().0
    {
        Box::pin(context.webhooks.drop_callback(callback)).await;
    }
    done
}

fn told<T: Serialize>(
    context: &Context,
    params: &Map<String, Value>,
    told: Result<T, Error>,
) -> Result<Box<RawValue>, RpcError> {
    let told = told.map_err(|error| refused(context, params, error))?;
    to_raw_value(&told).map_err(|error| RpcError::internal(&*context.app.clock, &error))
}

fn refused(context: &Context, params: &Map<String, Value>, error: Error) -> RpcError {
    match error {
        Error::Invalid(violations) => violations.into(),
        Error::Unknown(field) => {
            RpcError::webhook_not_found(field, params.get(field).unwrap_or(&Value::Null))
        }
        Error::Log(error) => RpcError::internal(&*context.app.clock, &error),
        Error::Store(store::Error::Database(_) | store::Error::Late) => {
            tracing::warn!(%error, "a call did not reach the store of webhooks");
            RpcError::busy("the store of webhooks does not answer", RETRY_AFTER_MS)
        }
        Error::Store(error @ (store::Error::Damaged(_) | store::Error::Keys(_))) => {
            RpcError::internal(&*context.app.clock, &error)
        }
    }
}
