//! A small HTTP server of a check, to which the server under test sends its callbacks.

use super::clause::Finding;
use super::probe::{PATIENCE, Probe};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Callbacks that wait to be looked at. More than a handful of tasks can cause.
const CALLBACKS_MAX: usize = 256;

/// One callback as it came.
#[derive(Debug, Clone)]
pub(super) struct Callback {
    /// `POST`, if all is well.
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    /// Its body; null if it is no JSON.
    pub(super) body: Value,
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Where callbacks go.
    pub(super) url: String,
    callbacks: mpsc::Receiver<Callback>,
    serving: JoinHandle<()>,
}

struct Inbox {
    callbacks: mpsc::Sender<Callback>,
    refuse: AtomicUsize,
}

async fn take(
    State(inbox): State<Arc<Inbox>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let callback = Callback {
        method,
        headers,
        body,
    };
    // A receiver that nobody reads any more has no use for it.
    let _ = inbox.callbacks.try_send(callback);
    let left = |left: usize| left.checked_sub(1);
    let refused = inbox
        .refuse
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    match refused {
        Ok(_) => StatusCode::SERVICE_UNAVAILABLE,
        Err(_) => StatusCode::OK,
    }
}

impl Probe {
    /// A receiver of callbacks that answers the first `refuse` of them with 503.
    ///
    /// # Errors
    /// [`Finding::Skipped`]: the server is on another machine, or there is no port.
    pub(super) async fn receiver(&self, refuse: usize) -> Result<Receiver, Finding> {
        let url = reqwest::Url::parse(&self.options().url);
        let host = url.ok().and_then(|url| url.host_str().map(str::to_owned));
        let near = |host: &str| {
            let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
            host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
        };
        if !host.as_deref().is_some_and(near) {
            let text =
                "callbacks arrive only from a server on this machine: look at it by 127.0.0.1";
            return Err(Finding::skipped(text));
        }
        let unable = |error: std::io::Error| Finding::skipped(format!("cannot listen: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(unable)?;
        let address = listener.local_addr().map_err(unable)?;
        let (sender, callbacks) = mpsc::channel(CALLBACKS_MAX);
        let inbox = Arc::new(Inbox {
            callbacks: sender,
            refuse: AtomicUsize::new(refuse),
        });
        let router = Router::new().fallback(take).with_state(inbox);
        let serving = tokio::spawn(async move {
            // Ends with the receiver.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Receiver {
            url: format!("http://{address}/callback"),
            callbacks,
            serving,
        })
    }
}

impl Receiver {
    /// Callbacks until one is `wanted`, which is the last of them.
    ///
    /// # Errors
    /// [`Finding::Failed`]: none within [`PATIENCE`].
    pub(super) async fn until(
        &mut self,
        what: &str,
        wanted: impl Fn(&Callback) -> bool,
    ) -> Result<Vec<Callback>, Finding> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        while let Ok(Some(callback)) = timeout_at(deadline, self.callbacks.recv()).await {
            let found = wanted(&callback);
            seen.push(callback);
            if found {
                return Ok(seen);
            }
        }
        let (count, seconds) = (seen.len(), PATIENCE.as_secs());
        Err(Finding::failed(format!(
            "waited {seconds} s in vain for {what}; {count} other callbacks came"
        )))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
