//! Health and readiness of the server, for load balancers and people.

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
/// The same of an answer that something is not as it should be: whoever waits for a start learns its end at once.
const FRESH_UNLESS_WELL: Duration = Duration::from_millis(100);
/// How long a check may take before it counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The port to the checks that readiness depends on.
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

    /// What was checked a moment ago.
    pub(super) async fn checks(&self) -> Vec<Check> {
        let mut latest = self.latest.lock().await;
        if let Some((at, checks)) = &*latest
            && at.elapsed() < fresh(checks)
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

fn fresh(checks: &[Check]) -> Duration {
    match checks.iter().all(|check| check.ok) {
        true => FRESH,
        false => FRESH_UNLESS_WELL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Is well from the second check on.
    #[derive(Default)]
    struct Starting(AtomicUsize);

    impl Readiness for Starting {
        fn check(&self) -> BoxFuture<'_, Vec<Check>> {
            let ok = self.0.fetch_add(1, Ordering::SeqCst) > 0;
            let check = Check {
                name: "projections",
                ok,
                detail: String::new(),
            };
            async move { vec![check] }.boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_start_is_told_soon_and_what_is_well_is_not_checked_all_the_time() {
        let starting = Arc::new(Starting::default());
        let probe = Probe::new(starting.clone());
        let ready = async || probe.report(false, false).await.0;
        assert!(!ready().await);
        assert!(!ready().await);
        assert_eq!(starting.0.load(Ordering::SeqCst), 1);
        tokio::time::advance(FRESH_UNLESS_WELL).await;
        assert!(ready().await);
        tokio::time::advance(FRESH / 2).await;
        assert!(ready().await);
        assert_eq!(starting.0.load(Ordering::SeqCst), 2);
        tokio::time::advance(FRESH).await;
        assert!(ready().await);
        assert_eq!(starting.0.load(Ordering::SeqCst), 3);
    }
}
