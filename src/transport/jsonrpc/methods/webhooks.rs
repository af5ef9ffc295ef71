//! The methods `webhooks.*`, and executions whose caller wants to be called back.

use super::super::dispatch::{Call, Changes, Method};
use super::super::encode::Reply;
use super::super::error::RpcError;
use super::super::params::webhooks::{
    create, deliveries, list, one, recover, redeliver, rotate_secret, update,
};
use super::super::params::{beside, execute, retry};
use super::super::reader::Parameters;
use super::super::{refusals, replies};
use super::{answer, boxed, listed};
use crate::application::api::runs::{AwaitRun, ReadRun};
use crate::application::api::webhooks::Callback;
use crate::application::api::{self, Consistency, Error, Execute, IdCheck, Request, Retry, Run};
use crate::application::{Context, Service};
use crate::runtime::maybe_block_in_place;
use crate::transport::openrpc::about;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::time::Duration;
use taskledger_domain::{Violation, limits};

/// What is left of the time of a call that has waited for a run, to answer it.
const ANSWER_TIME: Duration = Duration::from_secs(1);

pub(super) fn methods() -> Vec<Method<Service>> {
    let mut methods = endpoints();
    methods.extend(secrets());
    methods.extend(sending());
    methods
}

fn endpoints() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "webhooks.create",
            title: "Create Webhook",
            summary: "Send what happens to an address",
            tags: &["webhook"],
            params: create::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::create(),
            handler: |service, call| {
                boxed(async move {
                    let p = create::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.create_webhook(&call.context, p.0).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.get",
            title: "Get Webhook",
            summary: "Show a webhook",
            tags: &["webhook"],
            params: one::Params::declared(),
            changes: Changes::Nothing,
            about: about::webhooks::get(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.webhook(&call.context, p.id).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.list",
            title: "List Webhooks",
            summary: "List webhooks, oldest first",
            tags: &["webhook"],
            params: list::Params::declared(),
            changes: Changes::Nothing,
            about: about::webhooks::list(),
            handler: |service, call| {
                boxed(async move {
                    let p = list::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.webhooks(&call.context, p.after, p.limit).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.update",
            title: "Update Webhook",
            summary: "Change what is given of a webhook",
            tags: &["webhook"],
            params: update::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::update(),
            handler: |service, call| {
                boxed(async move {
                    let p = update::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.update_webhook(&call.context, p.id, p.change).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.delete",
            title: "Delete Webhook",
            summary: "Delete a webhook and what waits for it",
            tags: &["webhook"],
            params: one::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::delete(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    let cancelled = service.delete_webhook(&call.context, p.id).await;
                    let done = cancelled.map(|n| json!({"success": true, "cancelled": n}));
                    told(&service, &call.params, done)
                })
            },
        },
        Method {
            name: "webhooks.enable",
            title: "Enable Webhook",
            summary: "Send to a webhook again",
            tags: &["webhook"],
            params: one::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::enable(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.enable_webhook(&call.context, p.id).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.disable",
            title: "Disable Webhook",
            summary: "Disable a webhook, and keep its messages",
            tags: &["webhook"],
            params: one::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::disable(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.disable_webhook(&call.context, p.id).await,
                    )
                })
            },
        },
    ]
}

fn secrets() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "webhooks.rotate_secret",
            title: "Rotate Secret",
            summary: "Replace the secret; the old one stays valid for a while",
            tags: &["webhook"],
            params: rotate_secret::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::rotate_secret(),
            handler: |service, call| {
                boxed(async move {
                    let p = rotate_secret::Params::read(&call.params)?;
                    let rotated = service.rotate_webhook_secret(
                        &call.context,
                        p.id,
                        p.secret,
                        p.grace_seconds,
                    );
                    told(&service, &call.params, rotated.await)
                })
            },
        },
        Method {
            name: "webhooks.secret",
            title: "Show Secret",
            summary: "Show the secrets of a webhook; who asked is logged",
            tags: &["webhook"],
            params: one::Params::declared(),
            changes: Changes::Nothing,
            about: about::webhooks::secret(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    let shown = service.webhook_secrets(&call.context, p.id);
                    told(&service, &call.params, shown.await)
                })
            },
        },
    ]
}

fn sending() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "webhooks.test",
            title: "Test Webhook",
            summary: "Send a message that only tests, once, and say what came of it",
            tags: &["webhook"],
            params: one::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::test(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.test_webhook(&call.context, p.id).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.deliveries",
            title: "List Deliveries",
            summary: "Show what was sent, every attempt, and what waits",
            tags: &["webhook"],
            params: deliveries::Params::declared(),
            changes: Changes::Nothing,
            about: about::webhooks::deliveries(),
            handler: |service, call| {
                boxed(async move {
                    let p = deliveries::Params::read(&call.params)?;
                    told(
                        &service,
                        &call.params,
                        service.deliveries(&call.context, p.filter, p.limit).await,
                    )
                })
            },
        },
        Method {
            name: "webhooks.redeliver",
            title: "Redeliver",
            summary: "Send a message once more, now",
            tags: &["webhook"],
            params: redeliver::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::redeliver(),
            handler: |service, call| {
                boxed(async move {
                    let p = redeliver::Params::read(&call.params)?;
                    let done = service.redeliver(&call.context, p.delivery_id, p.request_key);
                    let done = done.await.map(|id| json!({"delivery_id": id}));
                    told(&service, &call.params, done)
                })
            },
        },
        Method {
            name: "webhooks.recover",
            title: "Recover",
            summary: "Deliver again messages that were given up",
            tags: &["webhook"],
            params: recover::Params::declared(),
            changes: Changes::Webhooks,
            about: about::webhooks::recover(),
            handler: |service, call| {
                boxed(async move {
                    let p = recover::Params::read(&call.params)?;
                    let done = service
                        .recover_deliveries(&call.context, p.id, p.which)
                        .await;
                    told(
                        &service,
                        &call.params,
                        done.map(|count| json!({"recovered": count})),
                    )
                })
            },
        },
    ]
}

/// `tasks.execute`.
pub(super) async fn execute(service: &Service, call: Call) -> Result<Reply, RpcError> {
    let read = maybe_block_in_place(listed(&call.params), || execute::Params::read(&call.params));
    let as_task = replies::a2a::is_asked_for(call.metadata.as_ref());
    let (context, p, callback) = with_callback(call, read, execute::Params::with_faults)?;
    let execute = Execute {
        target: p.target,
        allow_unknown_executors: p.allow_unknown_executors,
        executor_wait_ms: p.executor_wait_ms,
        id_check: IdCheck::First,
        callback,
    };
    let reply = begun(service, &context, Request::Execute(execute)).await?;
    match reply {
        Reply::Begun(_, run) if as_task => ended(service, &context, run).await,
        other @ (Reply::Text(_) | Reply::Begun(..) | Reply::Stream(_)) => Ok(other),
    }
}

/// The run once it has ended or waits for its caller, or as it is when the call's time is up, in the form that
/// the protocol's document gives tasks of A2A. spec: interface / A2A Protocol Methods
async fn ended(service: &Service, context: &Context, run: Run) -> Result<Reply, RpcError> {
    let wait = AwaitRun {
        run: run.id,
        history: None,
        artifacts: true,
        begun: None,
    };
    let waited = service.await_run(context, wait);
    let until = context.deadline.map(|deadline| deadline - ANSWER_TIME);
    let waited = match until {
        None => Some(waited.await),
        Some(until) => tokio::time::timeout_at(until, waited).await.ok(),
    };
    let view = match waited {
        Some(view) => view,
        None => {
            let read = ReadRun {
                run: run.id,
                history: None,
                artifacts: true,
            };
            service.read_run(context, read).await
        }
    };
    let view = answer(service, view)?;
    let root = service.get(context, view.task, Consistency::Strong).await;
    let root = answer(service, root)?;
    let task = replies::a2a::task(&view, &root.row);
    let text = to_raw_value(&task).map_err(|_| RpcError::internal_answer("no JSON"))?;
    Ok(text.into())
}

/// `tasks.retry`.
pub(super) async fn retry(service: &Service, call: Call) -> Result<Reply, RpcError> {
    let read = retry::Params::read(&call.params);
    let (context, p, callback) = with_callback(call, read, |_, faults| Err(faults))?;
    let retry = Retry {
        task: p.task_id,
        callback,
    };
    begun(service, &context, Request::Retry(retry)).await
}

/// The parameters of a call that begins a run, and where its caller wants to be called; or all that is wrong
/// with either. `keep`: parameters in which more may be found to be wrong keep the faults of the rest. The call
/// itself is not needed any more.
fn with_callback<P>(
    call: Call,
    read: Result<P, Vec<Violation>>,
    keep: impl FnOnce(P, Vec<Violation>) -> Result<P, Vec<Violation>>,
) -> Result<(Context, P, Option<Callback>), RpcError> {
    let callback = beside::read(call.metadata.as_ref(), call.configuration.as_ref());
    match (read, callback) {
        (Ok(p), Ok(callback)) => Ok((call.context, p, callback)),
        (Ok(p), Err(faults)) => Ok((call.context, keep(p, faults)?, None)),
        (Err(mut faults), callback) => {
            faults.extend(callback.err().unwrap_or_default());
            faults.truncate(limits::VIOLATIONS_MAX);
            Err(faults.into())
        }
    }
}

/// Carries out a request that begins a run, which the caller may want to follow.
async fn begun(service: &Service, context: &Context, request: Request) -> Result<Reply, RpcError> {
    let reply = answer(service, service.call(context, request).await)?;
    let result = replies::reply(&reply);
    Ok(match &reply {
        api::Reply::Started(started) => {
            let run = Run {
                flow: started.root.as_flow(),
                id: started.run,
            };
            Reply::Begun(result, run)
        }
        api::Reply::Created(_)
        | api::Reply::OfRun(_)
        | api::Reply::Updated { .. }
        | api::Reply::Deleted
        | api::Reply::Cancelled { .. }
        | api::Reply::Copied(_)
        | api::Reply::Explained(_)
        | api::Reply::Progress(_)
        | api::Reply::Claimed(_)
        | api::Reply::Hinted
        | api::Reply::HeldHere(_)
        | api::Reply::TasksHeld(_)
        | api::Reply::MethodFigures(_)
        | api::Reply::Renewed(_)
        | api::Reply::Ended(_)
        | api::Reply::Suspended(_)
        | api::Reply::Responded(_)
        | api::Reply::Sibling(_)
        | api::Reply::Lease(_)
        | api::Reply::History(_) => result.into(),
    })
}

fn told<T: Serialize>(
    service: &Service,
    params: &Map<String, Value>,
    told: Result<T, Error>,
) -> Result<Box<RawValue>, RpcError> {
    let clock = &**service.clock();
    let told = told.map_err(|error| match error {
        Error::UnknownWebhook { field } => {
            RpcError::webhook_not_found(field, params.get(field).unwrap_or(&Value::Null))
        }
        error @ (Error::Refused(_)
        | Error::Outdated(_)
        | Error::Busy { .. }
        | Error::RateLimited { .. }
        | Error::QuotaExceeded { .. }
        | Error::Forbidden { .. }
        | Error::Elsewhere(_)
        | Error::LeaseNotHeld { .. }
        | Error::ContractBroken { .. }
        | Error::OutcomeUnknown
        | Error::Unanswered { .. }
        | Error::OutOfTime { .. }
        | Error::Failed(_)) => refusals::told(clock, error),
    })?;
    to_raw_value(&told).map_err(|error| RpcError::internal(clock, &error))
}
