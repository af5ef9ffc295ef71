//! Calls whose answer is the first message of a stream.
//!
//! Owns: the port through which doors get streams. Which calls ask for one and how is said in `stream_request`; what
//! carries a stream, and in which form, is the transport's.

use super::encode::{Outcome, Reply, Streamed};
use super::error::{RETRY_AFTER_TIMEOUT_MS, RpcError};
use super::methods::answer;
use crate::application::api::{Run, Watch, Watching};
use crate::application::{Context, Service};
use crate::subscription::stream::{From, Notices};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use tokio::time::timeout_at;

/// The port through which doors get streams.
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

/// The answer to a call that began a run, with what happens in the run behind it. The run goes on even
/// if it cannot be followed; then the answer stands alone, and names the run. So it does when finding
/// the run takes longer than the request may.
pub(super) async fn followed(streams: &dyn Streams, context: &Context, reply: Reply) -> Outcome {
    let (result, run) = match reply {
        Reply::Begun(result, run) => (result, run),
        other @ (Reply::Text(_) | Reply::Claimed(..) | Reply::Stream(_)) => return Ok(other),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::text::Text;
    use serde_json::value::RawValue;
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
