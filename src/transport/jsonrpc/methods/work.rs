//! The methods of workers: `tasks.claim` and the calls that follow it, and `workers.*`.

use super::super::dispatch::{Call, Changes, Method, Reply};
use super::super::error::RpcError;
use super::super::params::nothing;
use super::super::params::work::{
    claim, complete, fail, release, renew, respond, sibling_output, suspend,
};
use super::super::params::workers::{declare, drain, undeclare};
use super::super::reader::Parameters;
use super::super::{refusals, replies};
use super::{answer, boxed, called};
use crate::application::Service;
use crate::application::api::Request;
use crate::application::api::work::{
    Appends, Claim, Claimed, Complete, Connection, Fail, LeaseLoss, Release, Renew, Respond,
    SiblingOutput, Suspend,
};
use crate::transport::openrpc::about;
use taskledger_domain::{LeaseId, TaskId};
use tokio::time::Instant;

pub(super) fn methods() -> Vec<Method<Service>> {
    let mut methods = of_tasks();
    methods.extend(of_workers());
    methods
}

fn of_tasks() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "tasks.claim",
            title: "Claim Tasks",
            summary: "Get tasks to work on them outside the server, and wait for some",
            tags: &["task", "worker"],
            params: claim::Params::declared(),
            changes: Changes::Claims,
            about: about::work::claim(),
            handler: |service, call| boxed(async move { claim_tasks(&service, &call).await }),
        },
        Method {
            name: "tasks.renew",
            title: "Renew Lease",
            summary: "Hold a claimed task for longer, and hear whether to stop",
            tags: &["task", "worker"],
            params: renew::Params::declared(),
            changes: Changes::Work,
            about: about::work::renew(),
            handler: |service, call| {
                boxed(async move {
                    let p = renew::Params::read(&call.params)?;
                    let renew = Renew {
                        task: p.task,
                        lease: named(p.task, p.lease)?,
                        lease_ms: p.lease_ms,
                        progress: p.progress,
                        message: p.message,
                        remarks: None,
                        output: p.output.map(|(number, part)| Appends { part, number }),
                    };
                    called(&service, &call.context, Request::Renew(renew)).await
                })
            },
        },
        Method {
            name: "tasks.complete",
            title: "Complete Task",
            summary: "End a claimed task with its result",
            tags: &["task", "worker"],
            params: complete::Params::declared(),
            changes: Changes::Work,
            about: about::work::complete(),
            handler: |service, call| {
                boxed(async move {
                    let p = complete::Params::read(&call.params)?;
                    let complete = Complete {
                        task: p.task,
                        lease: named(p.task, p.lease)?,
                        output: p.output,
                        remarks: None,
                    };
                    called(&service, &call.context, Request::Complete(complete)).await
                })
            },
        },
        Method {
            name: "tasks.fail",
            title: "Fail Task",
            summary: "End the attempt of a claimed task with an error",
            tags: &["task", "worker"],
            params: fail::Params::declared(),
            changes: Changes::Work,
            about: about::work::fail(),
            handler: |service, call| {
                boxed(async move {
                    let p = fail::Params::read(&call.params)?;
                    let fail = Fail {
                        task: p.task,
                        lease: named(p.task, p.lease)?,
                        error: p.error,
                        retryable: p.retryable,
                        rejected: p.rejected,
                        remarks: None,
                        breach: None,
                    };
                    called(&service, &call.context, Request::Fail(fail)).await
                })
            },
        },
        Method {
            name: "tasks.release",
            title: "Release Task",
            summary: "Give a claimed task back, for another worker",
            tags: &["task", "worker"],
            params: release::Params::declared(),
            changes: Changes::Work,
            about: about::work::release(),
            handler: |service, call| {
                boxed(async move {
                    let p = release::Params::read(&call.params)?;
                    let release = Release {
                        task: p.task,
                        lease: named(p.task, p.lease)?,
                    };
                    called(&service, &call.context, Request::Release(release)).await
                })
            },
        },
        Method {
            name: "tasks.suspend",
            title: "Suspend Task",
            summary: "Ask a person, and suspend the claimed task until the answer",
            tags: &["task", "worker"],
            params: suspend::Params::declared(),
            changes: Changes::Work,
            about: about::people::suspend(),
            handler: |service, call| {
                boxed(async move {
                    let p = suspend::Params::read(&call.params)?;
                    let suspend = Suspend {
                        task: p.task,
                        lease: named(p.task, p.lease)?,
                        request: p.request,
                    };
                    called(&service, &call.context, Request::Suspend(suspend)).await
                })
            },
        },
        Method {
            name: "tasks.respond",
            title: "Respond to Task",
            summary: "Answer what a suspended task asks",
            tags: &["task"],
            params: respond::Params::declared(),
            changes: Changes::Flows,
            about: about::people::respond(),
            handler: |service, call| {
                boxed(async move {
                    let p = respond::Params::read(&call.params)?;
                    let respond = Respond {
                        task: p.task,
                        suspension: p.suspension,
                        answer: p.answer,
                        on_behalf_of: p.on_behalf_of,
                    };
                    called(&service, &call.context, Request::Respond(respond)).await
                })
            },
        },
        Method {
            name: "tasks.sibling_output",
            title: "Read Sibling Output",
            summary: "Read the result of another task below the same parent as a claimed one",
            tags: &["task", "worker"],
            params: sibling_output::Params::declared(),
            changes: Changes::Nothing,
            about: about::work::sibling_output(),
            handler: |service, call| {
                boxed(async move {
                    let p = sibling_output::Params::read(&call.params)?;
                    let wanted = SiblingOutput {
                        task: p.task,
                        lease: named(p.task, p.lease)?,
                        name: p.name,
                    };
                    called(&service, &call.context, Request::SiblingOutput(wanted)).await
                })
            },
        },
    ]
}

async fn claim_tasks(service: &Service, call: &Call) -> Result<Reply, RpcError> {
    let p = claim::Params::read(&call.params)?;
    let claim = Claim {
        worker: p.worker,
        wanted: p.wanted,
        max: p.max,
        lease_ms: p.lease_ms,
        wait: p.wait,
        connection: Connection::Poll,
        heard_at: Instant::now(),
    };
    let claims = answer(service, service.claim(&call.context, claim).await)?;
    let claimed = claims.claims.iter().map(Claimed::release).collect();
    Ok(Reply::Claimed(replies::claims(&claims), claimed))
}

/// The lease of a task. What cannot be one is held by nobody.
fn named(task: TaskId, lease: Option<LeaseId>) -> Result<LeaseId, RpcError> {
    lease.ok_or_else(|| refusals::lease_not_held(task, LeaseLoss::Unknown))
}

fn of_workers() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "workers.declare",
            title: "Declare Method",
            summary: "Say that workers carry out a method, and how",
            tags: &["worker"],
            params: declare::Params::declared(),
            changes: Changes::Workers,
            about: about::work::declare(),
            handler: |service, call| {
                boxed(async move {
                    let p = declare::Params::read(&call.params)?;
                    let declared = service.declare(&call.context, p.0).await;
                    let declared = answer(&service, declared)?;
                    Ok::<_, RpcError>(replies::method(&declared))
                })
            },
        },
        Method {
            name: "workers.undeclare",
            title: "Undeclare Method",
            summary: "Take the declaration of a method back",
            tags: &["worker"],
            params: undeclare::Params::declared(),
            changes: Changes::Workers,
            about: about::work::undeclare(),
            handler: |service, call| {
                boxed(async move {
                    let p = undeclare::Params::read(&call.params)?;
                    let removed = service.undeclare(&call.context, &p.method, p.owner).await;
                    let removed = answer(&service, removed)?;
                    Ok::<_, RpcError>(replies::undeclared(&p.method, removed))
                })
            },
        },
        Method {
            name: "workers.methods",
            title: "List Methods",
            summary: "List the methods that workers carry out",
            tags: &["worker"],
            params: nothing::Params::declared(),
            changes: Changes::Nothing,
            about: about::work::methods(),
            handler: |service, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    let methods = service.methods(&call.context).await;
                    let methods = answer(&service, methods)?;
                    Ok::<_, RpcError>(replies::methods(&methods))
                })
            },
        },
        Method {
            name: "workers.list",
            title: "List Workers",
            summary: "List the workers that are there, with what they hold",
            tags: &["worker"],
            params: nothing::Params::declared(),
            changes: Changes::Nothing,
            about: about::work::workers(),
            handler: |service, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    let workers = service.workers(&call.context).await;
                    let workers = answer(&service, workers)?;
                    Ok::<_, RpcError>(replies::workers(&workers))
                })
            },
        },
        Method {
            name: "workers.drain",
            title: "Drain Worker",
            summary: "Give a worker no more work",
            tags: &["worker"],
            params: drain::Params::declared(),
            changes: Changes::Workers,
            about: about::work::drain(),
            handler: |service, call| {
                boxed(async move {
                    let p = drain::Params::read(&call.params)?;
                    let drained = service.drain(&call.context, &p.worker, p.drain).await;
                    let drained = answer(&service, drained)?;
                    Ok::<_, RpcError>(replies::drained(&drained))
                })
            },
        },
    ]
}
