//! Dispatches calls to handlers, through one method table.
//!
//! Generic over the context `C` that handlers work on. Elements of a batch run one after the
//! other, in the order sent, and are answered in that order; what fails or panics in one of them
//! touches no other. No handler runs past the deadline of its request.

mod batch;
mod inside;

use super::encode::{self, Answer, Appended};
pub use super::encode::{Body, Outcome, Reply};
use super::envelope::{Element, Envelope, Params, Request};
use super::error::{RETRY_AFTER_TIMEOUT_MS, RpcError};
use super::prepare::{by_name, prepare};
use super::reader::Reader;
use super::refusals;
use super::stream_request::{self, OF_SOCKETS, StreamRequest, WORK};
use super::streaming::{self, Streams};
pub use super::table::{Call, Changes, Handler, Method};
use super::text::Text;
use super::working::Work;
use crate::application::Context;
use crate::clock::SharedClock;
use crate::transport::budget::{Budget, Share};
use crate::transport::figures::{Entrance, Figures};
use crate::transport::openrpc::{self, DISCOVER, Discovery};
use futures_util::FutureExt;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use taskledger_domain::Violation;
use taskledger_domain::suggestion::suggestion;
use tokio::time::{Instant, timeout_at};

/// The method table and the context that its handlers work on.
pub struct Dispatcher<C> {
    context: Arc<C>,
    methods: Vec<Method<C>>,
    by_name: HashMap<&'static str, usize>,
    clock: SharedClock,
    answer_bytes_max: usize,
    failed_notifications: AtomicU64,
    discovery: OnceLock<Discovery>,
    /// Where streams come from, when there are any.
    streams: Option<Arc<dyn Streams>>,
    /// Where the work of sockets comes from, if it does.
    work: Option<Arc<dyn Work>>,
    figures: Arc<Figures>,
}

/// What the calls of these methods are counted in: those of the table, and those that stand outside of it.
#[must_use]
pub fn figures<C>(methods: &[Method<C>]) -> Figures {
    let names = methods.iter().map(|method| method.name);
    Figures::new(names.chain([DISCOVER]).chain(OF_SOCKETS))
}

/// How a call can be answered; a stream only when it stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// It is the only one, and gets an answer.
    Alone,
    /// It is one of a batch, or is asked inside the process.
    Among,
    /// It is a notification, and gets no answer.
    Unheard,
}

impl<C: Send + Sync + 'static> Dispatcher<C> {
    /// A dispatcher over `methods`.
    ///
    /// # Panics
    /// When two methods have one name or a name is reserved: a fault of the program, found at start.
    #[must_use]
    pub fn new(context: Arc<C>, methods: Vec<Method<C>>, clock: SharedClock) -> Self {
        let by_name: HashMap<_, _> = methods
            .iter()
            .enumerate()
            .map(|(index, method)| (method.name, index))
            .collect();
        assert!(by_name.len() == methods.len(), "method names are unique");
        assert!(
            methods.iter().all(|m| !m.name.starts_with("rpc.")),
            "names that begin with `rpc.` are reserved"
        );
        Self {
            context,
            figures: Arc::new(figures(&methods)),
            methods,
            by_name,
            clock,
            answer_bytes_max: encode::WHOLE_ANSWER_BYTES_MAX,
            failed_notifications: AtomicU64::new(0),
            discovery: OnceLock::new(),
            streams: None,
            work: None,
        }
    }

    /// The same dispatcher with another limit on the bytes of one answer.
    #[must_use]
    pub fn with_answer_bytes_max(mut self, bytes: usize) -> Self {
        self.answer_bytes_max = bytes;
        self
    }

    /// The same dispatcher with streams.
    #[must_use]
    pub fn with_streams(mut self, streams: Arc<dyn Streams>) -> Self {
        self.streams = Some(streams);
        self
    }

    /// The same dispatcher with work for sockets.
    #[must_use]
    pub fn with_work(mut self, work: Arc<dyn Work>) -> Self {
        self.work = Some(work);
        self
    }

    /// The same dispatcher, which counts in these figures, made by [`figures`] of the same methods.
    #[must_use]
    pub fn with_figures(mut self, figures: Arc<Figures>) -> Self {
        self.figures = figures;
        self
    }

    /// What the doors count.
    #[must_use]
    pub const fn figures(&self) -> &Arc<Figures> {
        &self.figures
    }

    /// Counts a call that a socket has answered itself.
    pub(crate) fn count_own(&self, method: &str, error: Option<i64>, begun: Instant) {
        let own = OF_SOCKETS.iter().position(|own| *own == method);
        // Behind those of the table and `rpc.discover`, as in [`figures`].
        let place = own.map(|own| self.methods.len() + 1 + own);
        self.figures
            .call(place, error, Entrance::Socket, begun.elapsed());
    }

    /// Where streams come from, when there are any.
    #[must_use]
    pub fn streams(&self) -> Option<&Arc<dyn Streams>> {
        self.streams.as_ref()
    }

    /// Where the work of sockets comes from, if it does.
    #[must_use]
    pub fn work(&self) -> Option<&Arc<dyn Work>> {
        self.work.as_ref()
    }

    /// Whether this will be answered with a stream, unless it is refused.
    #[must_use]
    pub fn streams_asked_for(&self, envelope: &Envelope) -> bool {
        self.streams.is_some() && stream_request::is_asked_for(envelope, &self.methods)
    }

    /// The method table.
    #[must_use]
    pub fn methods(&self) -> &[Method<C>] {
        &self.methods
    }

    /// The OpenRPC document, which is made once: by the first to ask, so whoever knows the URL of
    /// the server asks first.
    pub fn discovery(&self, url: Option<&str>) -> &Discovery {
        self.discovery
            .get_or_init(|| Discovery::new(&openrpc::document(&self.methods, url)))
    }

    /// How many notifications have failed since the start; nobody else hears of them.
    #[must_use]
    pub fn failed_notifications(&self) -> u64 {
        self.failed_notifications.load(Ordering::Relaxed)
    }

    /// Whether one of the calls runs to its end when the caller goes away.
    #[must_use]
    pub fn finishes_alone(&self, envelope: &Envelope) -> bool {
        envelope
            .requests()
            .filter_map(|request| self.method(&request.method))
            .any(Method::finishes_alone)
    }

    fn changes(&self, request: &Request) -> bool {
        self.method(&request.method)
            .is_some_and(Method::changes_state)
    }

    /// Executes every call of `envelope` and encodes the answers. `None`: there were only
    /// notifications. Calls that have not started by the deadline of `context` are not started. The
    /// result of a call that stands alone may be long. `share`: the answer's part of the memory.
    pub(crate) async fn answer(
        &self,
        envelope: Envelope,
        context: Context,
        share: &mut Share,
    ) -> Option<Body> {
        let max = self.answer_bytes_max;
        self.answer_within(envelope, context, Entrance::Http, max, share)
            .await
            .map(|answer| answer.body)
    }

    /// The same for a door that takes so many bytes of an answer that is made in memory, a batch's
    /// together.
    pub(crate) async fn answer_within(
        &self,
        envelope: Envelope,
        context: Context,
        entrance: Entrance,
        max: usize,
        share: &mut Share,
    ) -> Option<Answer> {
        match envelope {
            Envelope::Refused(error) => Some(Body::Whole(self.refusal(&error, entrance)).into()),
            Envelope::Single(Element::Request(request)) => {
                let must_be_told = self.changes(&request);
                let asked = self.request(*request, &context, entrance, Stands::Alone);
                let (id, mut outcome) = asked.await?;
                let claimed = encode::claimed(&mut outcome);
                let room = encode::Room {
                    bytes_max: max,
                    share,
                    must_be_told,
                };
                let refused = outcome.as_ref().err().map(|error| error.kind);
                let body = encode::body(room, id, outcome);
                Some(Answer {
                    body,
                    claimed,
                    refused,
                })
            }
            Envelope::Single(invalid @ Element::Invalid { .. }) => {
                let mut buffer = Vec::new();
                self.append(invalid, &context, entrance, max, share, &mut buffer)
                    .await;
                Some(Body::Whole(buffer).into())
            }
            Envelope::Batch(elements) => {
                let mut buffer = Vec::new();
                let Appended { wait_ms, claimed } = self
                    .batch(elements, &context, entrance, max, share, &mut buffer)
                    .await;
                let body = match wait_ms {
                    _ if buffer.is_empty() => return None,
                    Some(wait_ms) => Body::Limited(buffer, wait_ms),
                    None => Body::Whole(buffer),
                };
                Some(Answer {
                    claimed,
                    ..body.into()
                })
            }
        }
    }

    /// Executes a call; `None` when it was a notification.
    async fn request(
        &self,
        mut request: Request,
        context: &Context,
        entrance: Entrance,
        stands: Stands,
    ) -> Option<(Box<RawValue>, Outcome)> {
        let begun = Instant::now();
        let id = request.id.take();
        let stands = if id.is_some() {
            stands
        } else {
            Stands::Unheard
        };
        let place = match self.by_name.get(&*request.method) {
            Some(place) => Some(*place),
            None => (request.method == DISCOVER).then_some(self.methods.len()),
        };
        let outcome = match place {
            Some(place) => self.call(request, place, context, stands).await,
            None => Err(self.unknown(&request.method, entrance)),
        };
        let code = outcome.as_ref().err().map(|error| error.code);
        self.figures.call(place, code, entrance, begun.elapsed());
        match (id, outcome) {
            (Some(id), outcome) => Some((id, outcome)),
            (None, Ok(_)) => None,
            (None, Err(error)) => {
                self.failed_notifications.fetch_add(1, Ordering::Relaxed);
                tracing::info!(error.code = error.code, request.id = %context.correlation, "a notification failed");
                None
            }
        }
    }

    /// Carries out a call; `place` is that of its method, as in [`figures`].
    async fn call(
        &self,
        request: Request,
        place: usize,
        context: &Context,
        stands: Stands,
    ) -> Outcome {
        let Some(method) = self.methods.get(place) else {
            return self.discover(request.params);
        };
        if stands == Stands::Unheard && method.needs_answer() {
            let (reason, expected) = ("missing", "an id, because the answer has the leases");
            let fault = Violation::of("id", reason, expected, &Value::Null);
            return Err(RpcError::invalid_request(vec![fault]));
        }
        let (call, stream) = prepare(method, request, context)?;
        let Some(stream) = stream else {
            return self.execute(method, call).await;
        };
        let refused = |reason, expected| Err(stream.refused(method.name, reason, expected));
        let Some(streams) = &self.streams else {
            return refused(
                "not supported by this server",
                "false or absent; poll tasks.get, whose `run` shows the state",
            );
        };
        if stands != Stands::Alone {
            let expected = "a call with an id outside of a batch";
            return refused("a stream cannot be part of a batch", expected);
        }
        let outcome = self.execute(method, call).await;
        match stream {
            StreamRequest::Method => outcome,
            StreamRequest::Parameter | StreamRequest::Metadata => {
                streaming::followed(&**streams, context, outcome?).await
            }
        }
    }

    /// Carries out a call.
    async fn execute(&self, method: &Method<C>, call: Call) -> Outcome {
        let deadline = call.context.deadline;
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(RpcError::busy(
                "the request ran out of time before this call; it was not executed",
                RETRY_AFTER_TIMEOUT_MS,
            ));
        }
        let context = Arc::clone(&self.context);
        let handler = method.handler;
        // Inside the block, so that a panic of the handler before its first await is caught too.
        let work = AssertUnwindSafe(async move { handler(context, call).await }).catch_unwind();
        let finished = match deadline {
            Some(deadline) => match timeout_at(deadline, work).await {
                Ok(finished) => finished,
                Err(_) => {
                    tracing::warn!(rpc.method = method.name, "a call ran out of time");
                    return Err(refusals::out_of_time(method.changes_state()));
                }
            },
            None => work.await,
        };
        finished.unwrap_or_else(|panic| {
            let cause = format!("`{}` panicked: {}", method.name, panic_text(&*panic));
            Err(RpcError::internal(&*self.clock, &cause))
        })
    }

    /// The answer to what is no JSON-RPC at all.
    fn refusal(&self, error: &RpcError, entrance: Entrance) -> Vec<u8> {
        self.count_invalid(error, entrance);
        encode::refusal(error)
    }

    fn count_invalid(&self, error: &RpcError, entrance: Entrance) {
        let took = std::time::Duration::ZERO;
        self.figures.call(None, Some(error.code), entrance, took);
    }

    /// `rpc.discover`, which describes the table and so stands outside of it.
    fn discover(&self, params: Params) -> Outcome {
        let given = match params {
            Params::Named(map) => map,
            Params::Positional(values) => by_name(&[], values)?,
        };
        Reader::new(&given).finish(|| Some(()))?;
        Ok(Text::Whole(self.discovery(None).text.clone()).into())
    }

    fn method(&self, name: &str) -> Option<&Method<C>> {
        self.by_name.get(name).map(|index| &self.methods[*index])
    }

    fn unknown(&self, name: &str, entrance: Entrance) -> RpcError {
        let names = self.methods.iter().map(|method| method.name);
        let own = match entrance {
            Entrance::Socket => &OF_SOCKETS[..],
            Entrance::Http | Entrance::Process => &[],
        };
        let names = names.chain([DISCOVER]).chain(own.iter().copied());
        let accepted = match suggestion(name, names.clone()) {
            _ if name == WORK => {
                "a WebSocket at /ws, outside of a batch; here: tasks.claim".to_owned()
            }
            _ if OF_SOCKETS.contains(&name) => {
                "a WebSocket at /ws, outside of a batch; here: tasks.subscribe, or GET /events"
                    .to_owned()
            }
            Some(near) => format!("a method of this server; did you mean `{near}`?"),
            // Where that protocol is served, its methods do not come here.
            None if name.contains('/') => {
                "a method of this server or of A2A 1.0, such as SendMessage; methods of A2A 0.3, such as message/send, are \
                 off, `--a2a-0.3` turns them on"
                    .to_owned()
            }
            None => format!("one of {}", names.collect::<Vec<_>>().join(", ")),
        };
        RpcError::method_not_found(name, accepted)
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

/// The text of `value` as a handler returns it.
///
/// # Errors
/// -32603 when `value` cannot be written, for example a map whose keys are no strings.
pub fn result<T: serde::Serialize>(clock: &SharedClock, value: &T) -> Outcome {
    let text = serde_json::value::to_raw_value(value);
    text.map(|text| Text::Whole(text).into())
        .map_err(|error| RpcError::internal(&**clock, &error))
}

#[cfg(test)]
mod tests;
