//! How a stream begins.

use crate::application::api::Subscribe;
use crate::application::{Context, Service};
use crate::transport::jsonrpc::encode::Streamed;
use crate::transport::jsonrpc::methods::calling::answer;
use crate::transport::jsonrpc::{RpcError, replies};

/// The task as it is shown first, and the stream behind it.
pub(super) async fn subscribed(
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
