//! The methods that follow tasks.

pub mod resubscribe;
pub mod subscribe;

use crate::application::api::Subscribe;
use crate::application::{Context, Service};
use crate::transport::jsonrpc::encode::Streamed;
use crate::transport::jsonrpc::methods::calling::answer;
use crate::transport::jsonrpc::table::Method;
use crate::transport::jsonrpc::{RpcError, replies};

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![subscribe::method(), resubscribe::method()]
}

/// The task as it is shown first, and the stream behind it.
async fn subscribed(
    service: &Service,
    context: &Context,
    subscribe: Subscribe,
) -> Result<Streamed, RpcError> {
    let begun = answer(service, service.subscribe(context, subscribe).await)?;
    Ok(Streamed {
        result: replies::subscribed(&begun),
        stream: begun.stream,
    })
}
