//! How calls that begin runs are read and answered.

use crate::application::api::webhooks::Callback;
use crate::application::api::{Request, Run};
use crate::application::{Context, Service, api};
use crate::transport::jsonrpc::encode::Reply;
use crate::transport::jsonrpc::methods::calling::answer;
use crate::transport::jsonrpc::params::beside;
use crate::transport::jsonrpc::reader::{Choice, choice};
use crate::transport::jsonrpc::table::Call;
use crate::transport::jsonrpc::{RpcError, replies};
use taskledger_domain::flow::Include;
use taskledger_domain::{Violation, limits};

/// Which failed tasks run again.
pub(super) const INCLUDE: Choice<Include> =
    choice("unknown choice", &[("failed", Include::Failed)]);

/// The parameters of a call that begins a run, and where its caller wants to be called; or all that is wrong
/// with either. `keep`: parameters in which more may be found to be wrong keep the faults of the rest. The call
/// itself is not needed any more.
pub(super) fn with_callback<P>(
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
pub(super) async fn begun(
    service: &Service,
    context: &Context,
    request: Request,
) -> Result<Reply, RpcError> {
    let called = service.call_with_warnings(context, request).await;
    let (reply, warnings) = answer(service, called)?;
    let result = replies::with_warnings(replies::reply(&reply), &warnings);
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
