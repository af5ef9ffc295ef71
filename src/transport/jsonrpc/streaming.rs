//! Calls whose answer is the beginning of a stream.
//!
//! Owns: which calls ask for one and how, and the port through which doors get streams. What carries a
//! stream, and in which form, is the transport's.

use super::dispatch::{Method, Outcome, RETRY_AFTER_TIMEOUT_MS, Reply};
use super::envelope::{Element, Envelope, Params, Request};
use super::error::RpcError;
use super::methods::answer;
use crate::application::api::{Run, Watch, Watching};
use crate::application::{Context, Service};
use crate::subscription::stream::{From, Notices};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use taskledger_domain::Violation;
use tokio::time::timeout_at;

/// Methods that begin a run, whose callers may ask for its stream.
const FOLLOWED: [&str; 2] = ["tasks.execute", "tasks.retry"];
/// Methods that are always answered with a stream.
const SUBSCRIPTIONS: [&str; 2] = ["tasks.subscribe", "tasks.resubscribe"];
/// Methods that only a socket has, because they speak of its own subscriptions.
pub const OF_SOCKETS: [&str; 3] = ["subscribe", "unsubscribe", WORK];
/// The one of them that asks for work.
pub const WORK: &str = "work";

/// The parameter that asks for a stream.
const USE_STREAMING: &str = "use_streaming";
/// The member of `metadata` that asks for a stream.
pub(super) const STREAM: &str = "stream";

/// Where doors get streams from.
pub trait Streams: Send + Sync + fmt::Debug + 'static {
    /// What happens from a place on.
    fn watch<'a>(
        &'a self,
        context: &'a Context,
        watch: Watch,
        from: From,
    ) -> BoxFuture<'a, Result<Watching, RpcError>>;

    /// What happens in a run, from its start on.
    fn follow<'a>(
        &'a self,
        context: &'a Context,
        run: Run,
    ) -> BoxFuture<'a, Result<Notices, RpcError>>;
}

impl Streams for Service {
    fn watch<'a>(
        &'a self,
        context: &'a Context,
        watch: Watch,
        from: From,
    ) -> BoxFuture<'a, Result<Watching, RpcError>> {
        async move { answer(self, Self::watch(self, context, watch, from).await) }.boxed()
    }

    fn follow<'a>(
        &'a self,
        context: &'a Context,
        run: Run,
    ) -> BoxFuture<'a, Result<Notices, RpcError>> {
        async move { answer(self, Self::follow(self, context, run).await) }.boxed()
    }
}

/// A stream that a call is answered with, behind its result.
#[derive(Debug)]
pub struct Streamed {
    /// The result of the call.
    pub result: Box<RawValue>,
    /// What follows.
    pub stream: Notices,
}

impl std::convert::From<Streamed> for Reply {
    fn from(streamed: Streamed) -> Self {
        Self::Stream(Box::new(streamed))
    }
}

/// The answer to a call that began a run, with what happens in the run behind it. The run goes on even
/// if it cannot be followed; then the answer stands alone, and names the run. So it does when finding
/// the run takes longer than the request may.
pub(super) async fn followed(streams: &dyn Streams, context: &Context, reply: Reply) -> Outcome {
    let (result, run) = match reply {
        Reply::Begun(result, run) => (result, run),
        other @ (Reply::Text(_) | Reply::Stream(_)) => return Ok(other),
    };
    let begun = match context.deadline {
        None => streams.follow(context, run).await,
        Some(deadline) => timeout_at(deadline, streams.follow(context, run))
            .await
            .unwrap_or_else(|_| {
                let reason = "its log was not read in time";
                Err(RpcError::busy(reason, RETRY_AFTER_TIMEOUT_MS))
            }),
    };
    Ok(match begun {
        Ok(stream) => Reply::Stream(Box::new(Streamed { result, stream })),
        Err(error) => {
            tracing::warn!(error.code = error.code, "a run cannot be followed");
            result.into()
        }
    })
}

/// How a call asks for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamRequest {
    /// With the parameter [`USE_STREAMING`].
    Parameter,
    /// With the member [`STREAM`] of `metadata`.
    Metadata,
    /// By its method.
    Method,
}

impl StreamRequest {
    /// What a call asks for, which is taken out of it: what is carried out, perhaps on another node and
    /// perhaps twice, is the call without it.
    pub(super) fn take(
        method: &str,
        params: &mut Map<String, Value>,
        metadata: Option<&mut Map<String, Value>>,
    ) -> Option<Self> {
        if SUBSCRIPTIONS.contains(&method) {
            return Some(Self::Method);
        }
        if !FOLLOWED.contains(&method) {
            return None;
        }
        // `false` goes too: it says what its absence says. What is no boolean stays, to be refused.
        let take = |from: &mut Map<String, Value>, name: &str| {
            let asked = from.get(name).and_then(Value::as_bool);
            if asked.is_some() {
                from.remove(name);
            }
            asked == Some(true)
        };
        let by_metadata = metadata.is_some_and(|metadata| take(metadata, STREAM));
        let by_parameter = take(params, USE_STREAMING);
        if by_parameter {
            Some(Self::Parameter)
        } else {
            by_metadata.then_some(Self::Metadata)
        }
    }

    /// The refusal of a stream where there can be none.
    pub(super) fn refused(self, method: &str, reason: &str, expected: &str) -> RpcError {
        let (path, actual): (&[_], Value) = match self {
            Self::Parameter => (&[USE_STREAMING.into()], true.into()),
            Self::Metadata => (&["metadata".into(), STREAM.into()], true.into()),
            Self::Method => (&["method".into()], method.into()),
        };
        vec![Violation::new(path, reason, expected, &actual)].into()
    }
}

/// Whether the calls of a method begin a run.
#[must_use]
pub fn begins_run(method: &str) -> bool {
    FOLLOWED.contains(&method)
}

/// Whether this is a call that will be answered with a stream unless it is refused.
pub(super) fn is_asked_for<C>(envelope: &Envelope, methods: &[Method<C>]) -> bool {
    let Envelope::Single(Element::Request(request)) = envelope else {
        return false;
    };
    let Request {
        method,
        params,
        metadata,
        ..
    } = &**request;
    if request.id.is_none() {
        return false;
    }
    if SUBSCRIPTIONS.contains(&method.as_str()) {
        return true;
    }
    if !FOLLOWED.contains(&method.as_str()) {
        return false;
    }
    let given = match params {
        Params::Named(map) => map.get(USE_STREAMING),
        Params::Positional(values) => methods
            .iter()
            .find(|row| row.name == method)
            .and_then(|row| row.params.iter().position(|q| q.name == USE_STREAMING))
            .and_then(|at| values.get(at)),
    };
    let metadata = metadata.as_ref().and_then(|metadata| metadata.get(STREAM));
    [given, metadata].contains(&Some(&Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::text::Text;
    use std::sync::Arc;
    use std::time::Duration;
    use taskledger_domain::RunId;
    use taskledger_domain::testing::id;
    use tokio::time::Instant;

    /// Finds no run in time.
    #[derive(Debug)]
    struct Slow;

    impl Streams for Slow {
        fn watch<'a>(
            &'a self,
            _: &'a Context,
            _: Watch,
            _: From,
        ) -> BoxFuture<'a, Result<Watching, RpcError>> {
            std::future::pending().boxed()
        }

        fn follow<'a>(
            &'a self,
            _: &'a Context,
            _: Run,
        ) -> BoxFuture<'a, Result<Notices, RpcError>> {
            std::future::pending().boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_is_not_found_in_time_is_answered_without_its_stream() {
        let begun = Instant::now();
        let wait = Duration::from_secs(30);
        let context = Context::anonymous(Arc::from("request")).until(Some(begun + wait));
        let result = RawValue::from_string("{}".to_owned()).unwrap();
        let run = Run {
            flow: id("a").as_flow(),
            id: RunId(id("run").0),
        };
        let followed = followed(&Slow, &context, Reply::Begun(result, run)).await;
        assert!(matches!(followed, Ok(Reply::Text(Text::Whole(_)))));
        assert_eq!(begun.elapsed(), wait);
    }
}
