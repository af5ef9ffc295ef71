//! Calls inside the process: the same bytes in and out, without a socket.

use crate::application::Context;
use crate::clock::SharedClock;
use crate::transport::jsonrpc::Dispatcher;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use taskledger_auth::Caller;
use taskledger_cli::api::{Api, ApiError, request, result};

/// A dispatcher in this process.
pub struct LocalApi<C> {
    dispatcher: Arc<Dispatcher<C>>,
    clock: SharedClock,
    caller: Arc<Caller>,
}

impl<C: Send + Sync + 'static> LocalApi<C> {
    /// Calls go to `dispatcher`; each gets a correlation id of its own.
    #[must_use]
    pub fn new(dispatcher: Arc<Dispatcher<C>>, clock: SharedClock) -> Self {
        Self {
            dispatcher,
            clock,
            caller: Caller::anonymous(),
        }
    }

    /// The same for an operator, who works on the store itself.
    #[must_use]
    pub fn of_operator(dispatcher: Arc<Dispatcher<C>>, clock: SharedClock) -> Self {
        Self {
            caller: Caller::operator(),
            ..Self::new(dispatcher, clock)
        }
    }
}

#[async_trait]
impl<C: Send + Sync + 'static> Api for LocalApi<C> {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        let correlation = Arc::from(self.clock.uuid().to_string());
        let context = Context::of(self.caller.clone(), correlation);
        let body = request(method, params);
        let answer = self.dispatcher.answer_bytes(&body, context).await;
        result(&answer.expect("a request with an id is always answered"))
    }
}
