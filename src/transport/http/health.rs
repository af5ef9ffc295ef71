//! Whether the server can do its work, for load balancers and people.

use crate::application::api::{Check, DRAINING};
use crate::application::{Context, Service};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How old an answer may be: probes from many sides cost one check.
const FRESH: Duration = Duration::from_secs(1);
/// How long a check may take before it counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// What the server's readiness depends on.
pub trait Readiness: Send + Sync + 'static {
    /// Checks everything now.
    fn check(&self) -> BoxFuture<'_, Vec<Check>>;
}

impl Readiness for Service {
    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        // A probe shows no credentials.
        let context = Context::anonymous(Arc::from("readiness"));
        async move {
            let checks = self.readiness(&context).await;
            checks.unwrap_or_else(|error| {
                vec![Check {
                    name: "checks",
                    ok: false,
                    detail: error.to_string(),
                }]
            })
        }
        .boxed()
    }
}

/// Asks [`Readiness`] at most once a second.
pub(super) struct Probe {
    readiness: Arc<dyn Readiness>,
    latest: Mutex<Option<(Instant, Vec<Check>)>>,
}

impl Probe {
    pub(super) fn new(readiness: Arc<dyn Readiness>) -> Self {
        Self {
            readiness,
            latest: Mutex::new(None),
        }
    }

    /// Whether requests should be sent here, and the JSON text that says why not.
    pub(super) async fn report(&self, draining: bool, verbose: bool) -> (bool, String) {
        let checks = self.checks().await;
        let draining = draining || checks.iter().any(|check| check.name == DRAINING);
        let ready = !draining && checks.iter().all(|check| check.ok);
        let status = match (ready, draining) {
            (true, _) => "ok",
            (false, true) => "draining",
            (false, false) => "unavailable",
        };
        let mut body = json!({ "status": status });
        if verbose {
            let shown =
                |check: &Check| json!({"name": check.name, "ok": check.ok, "detail": check.detail});
            body["checks"] = checks.iter().map(shown).collect();
        }
        (ready, body.to_string())
    }

    /// What was checked a second ago at most.
    pub(super) async fn checks(&self) -> Vec<Check> {
        let mut latest = self.latest.lock().await;
        if let Some((at, checks)) = &*latest
            && at.elapsed() < FRESH
        {
            return checks.clone();
        }
        let checks = tokio::time::timeout(CHECK_TIMEOUT, self.readiness.check())
            .await
            .unwrap_or_else(|_| {
                vec![Check {
                    name: "checks",
                    ok: false,
                    detail: "the checks did not end in time".to_owned(),
                }]
            });
        *latest = Some((Instant::now(), checks.clone()));
        checks
    }
}
