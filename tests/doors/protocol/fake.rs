//! A method table of fakes and the context that they work on.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use taskledger::application::api::Check;
use taskledger::clock::{SharedClock, SystemClock};
use taskledger::transport::http::Readiness;
use taskledger::transport::jsonrpc::dispatch::{self, result};
use taskledger::transport::jsonrpc::reader::{Declared, Question};
use taskledger::transport::jsonrpc::{Call, Changes, Method, RpcError};
use taskledger::transport::openrpc::about::About;
use taskledger_domain::TaskId;
use tokio::sync::Semaphore;

/// What the fakes have seen, and what holds them.
pub(crate) struct Fake {
    /// Names of executed calls with the `n` of their parameters, in order.
    pub(crate) calls: Mutex<Vec<String>>,
    /// One permit for each call that has begun to wait.
    pub(crate) waiting: Semaphore,
    /// One permit lets one waiting call go on.
    pub(crate) gate: Semaphore,
    /// One permit for each call that was held and has ended.
    pub(crate) ended: Semaphore,
    pub(crate) clock: SharedClock,
    pub(crate) ready: bool,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            calls: Mutex::new(Vec::new()),
            waiting: Semaphore::new(0),
            gate: Semaphore::new(0),
            ended: Semaphore::new(0),
            clock: Arc::new(SystemClock::default()),
            ready: true,
        }
    }
}

impl Fake {
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn note(&self, name: &str, params: &Map<String, Value>) {
        let n = params.get("n").map(Value::to_string).unwrap_or_default();
        self.calls.lock().unwrap().push(format!("{name}{n}"));
    }

    async fn hold(&self) {
        self.waiting.add_permits(1);
        self.gate.acquire().await.unwrap().forget();
        self.ended.add_permits(1);
    }
}

impl Readiness for Fake {
    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async {
            vec![Check {
                name: "store",
                ok: self.ready,
                detail: "a fake".to_owned(),
            }]
        })
    }
}

type Outcome = BoxFuture<'static, dispatch::Outcome>;

fn anything(name: &'static str) -> Question {
    Question::optional(name, json!({}), "Anything.")
}

fn method(
    name: &'static str,
    changes_state: bool,
    handler: fn(Arc<Fake>, Call) -> Outcome,
) -> Method<Fake> {
    Method {
        name,
        title: "A fake",
        summary: "Does nothing real",
        tags: &["test"],
        params: Declared {
            questions: vec![anything("n"), anything("b")],
            faults: |_| Vec::new(),
        },
        changes: if changes_state {
            Changes::Flows
        } else {
            Changes::Nothing
        },
        about: About {
            description: "Does nothing real.",
            result: "anything",
            schema: json!({}),
            errors: &[],
            examples: Vec::new(),
        },
        handler,
    }
}

/// The method table.
pub(crate) fn methods() -> Vec<Method<Fake>> {
    vec![
        method("test.echo", false, |fake, call| {
            Box::pin(async move {
                fake.note("echo", &call.params);
                result(&fake.clock, &call.params)
            })
        }),
        method("test.write", true, |fake, call| {
            Box::pin(async move {
                fake.note("write", &call.params);
                result(&fake.clock, &fake.calls().len())
            })
        }),
        method("test.missing", true, |_, _| {
            Box::pin(async {
                let id = TaskId::parse("0f8fad5b-d9cb-469f-a165-70867728950e").unwrap();
                Err(RpcError::task_not_found("task_id", id))
            })
        }),
        method("test.panic", false, |_, _| {
            Box::pin(async { panic!("a secret of the server") })
        }),
        method("test.panic_early", false, |_, _| {
            panic!("before the future")
        }),
        method("test.unwritable", false, |fake, _| {
            Box::pin(async move {
                let map = std::collections::HashMap::from([(vec![1], 1)]);
                result(&fake.clock, &map)
            })
        }),
        method("test.hold", false, |fake, call| {
            Box::pin(async move {
                fake.hold().await;
                fake.note("hold", &call.params);
                result(&fake.clock, &"held")
            })
        }),
        method("test.hold_write", true, |fake, call| {
            Box::pin(async move {
                fake.hold().await;
                fake.note("hold_write", &call.params);
                result(&fake.clock, &"held")
            })
        }),
        method("test.big", false, |fake, call| {
            Box::pin(async move {
                let bytes = call.params["n"].as_u64().unwrap_or(0) as usize;
                result(&fake.clock, &"x".repeat(bytes))
            })
        }),
        method("test.caller", true, |fake, call| {
            Box::pin(async move {
                let key = call.context.idempotency.as_ref();
                let seen = json!({
                    "principal": call.context.caller.actor(),
                    "correlation": call.context.correlation,
                    "traceparent": call.context.trace,
                    "key": key.map(|k| k.key.to_string()),
                    "metadata": call.metadata,
                    "configuration": call.configuration,
                });
                result(&fake.clock, &seen)
            })
        }),
        method("test.caller_reads", false, |fake, call| {
            Box::pin(async move { result(&fake.clock, &call.context.idempotency.is_some()) })
        }),
    ]
}
