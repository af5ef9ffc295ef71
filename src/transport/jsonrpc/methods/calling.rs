//! Code that the rows of the method table share: a handler asks the application and passes its answer on.

use super::super::encode::{Outcome, Reply};
use super::super::error::RpcError;
use super::super::{refusals, replies};
use crate::application::api::{Error, Request};
use crate::application::{Context, Service};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::future::Future;

/// Handlers are plain functions; this gives them the form of the table.
pub(super) fn boxed<T: Into<Reply>>(
    future: impl Future<Output = Result<T, RpcError>> + Send + 'static,
) -> BoxFuture<'static, Outcome> {
    future.map(|outcome| outcome.map(Into::into)).boxed()
}

/// Carries out a request that concerns a flow.
pub(super) async fn called(
    service: &Service,
    context: &Context,
    request: Request,
) -> Result<Box<RawValue>, RpcError> {
    let done = service.call(context, request).await;
    answer(service, done).map(|reply| replies::reply(&reply))
}

/// Tasks in the list of a call.
pub(super) fn listed(params: &Map<String, Value>) -> usize {
    let list = params.get("tasks").and_then(Value::as_array);
    list.map_or(1, Vec::len)
}

/// The answer of a use case, or what its caller is told of its error.
pub(in crate::transport::jsonrpc) fn answer<T>(
    service: &Service,
    answer: Result<T, Error>,
) -> Result<T, RpcError> {
    answer.map_err(|error| refusals::told(&**service.clock(), error))
}
