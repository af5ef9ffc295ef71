//! Calls inside the process: the same bytes in and out, without a socket.

use crate::application::Context;
use crate::clock::SharedClock;
use crate::subscription::stream::{Item, Notices};
use crate::transport::jsonrpc::Dispatcher;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use taskledger_auth::Caller;
use taskledger_cli::api::run_events::{Begun, News, RunEvent, RunEvents};
use taskledger_cli::api::{Api, ApiError, begin, request, result};
use tokio_stream::StreamExt as _;

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
        let body = request(method, params);
        let answer = self.dispatcher.answer_bytes(&body, self.context()).await;
        result(&answer.expect(ANSWERED))
    }

    async fn begin(&self, method: &str, params: Value) -> Result<Begun, ApiError> {
        let body = begin(method, params);
        let told = self.dispatcher.answer_told(&body, self.context()).await;
        let (answer, stream) = told.expect(ANSWERED);
        Ok(Begun {
            answer: result(&answer)?,
            events: stream.map(|stream| -> Box<dyn RunEvents> {
                Box::new(LocalRunEvents {
                    stream,
                    waiting: VecDeque::new(),
                })
            }),
        })
    }

    fn is_in_process(&self) -> bool {
        true
    }
}

const ANSWERED: &str = "a request with an id is always answered";

impl<C: Send + Sync + 'static> LocalApi<C> {
    fn context(&self) -> Context {
        Context::of(
            self.caller.clone(),
            Arc::from(self.clock.uuid().to_string()),
        )
    }
}

/// What happens in a run of this process.
struct LocalRunEvents {
    stream: Notices,
    /// Read, and not told yet.
    waiting: VecDeque<News>,
}

#[async_trait]
impl RunEvents for LocalRunEvents {
    async fn next(&mut self) -> Result<Option<News>, ApiError> {
        loop {
            if let Some(news) = self.waiting.pop_front() {
                return Ok(Some(news));
            }
            let item = match self.stream.next().await {
                None => return Ok(None),
                Some(item) => item.map_err(|error| ApiError::Connection(error.to_string()))?,
            };
            let Item::Batch(batch) = item else { continue };
            let told = batch.notices().iter().map(|published| {
                let mut json = Vec::new();
                published.notice.write_json(&mut json);
                News::Event(RunEvent {
                    name: published.notice.kind.as_str().to_owned(),
                    data: serde_json::from_slice(&json).unwrap_or(Value::Null),
                })
            });
            self.waiting = told.collect();
        }
    }
}
