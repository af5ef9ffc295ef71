//! The keys of one issuer over time: fetched by one task, in the background, and kept while the issuer is
//! away.
//!
//! Tokens never fetch anything themselves. One that names an unknown key asks the task to look now, which it
//! does at most once in [`REST`], however many ask.

use super::Denied;
use super::claimed::Claimed;
use super::claims::Verified;
use super::discovery::{self, Documents};
use super::issuer::Issuer;
use super::keys::Keys;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

/// Between two looks at an issuer that answers.
const REFRESH_EVERY: Duration = Duration::from_secs(600);
/// Between two looks at an issuer that does not.
const RETRY_EVERY: Duration = Duration::from_secs(30);
/// Between two looks, whoever asks: strangers can name unknown keys as often as they like.
const REST: Duration = Duration::from_secs(10);
/// How long keys are good when the issuer cannot be asked.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long a token waits for the look that it asked for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Keys, and until when they are good.
#[derive(Debug, Clone)]
struct Held {
    keys: Arc<Keys>,
    until: Instant,
}

#[derive(Debug)]
struct Shared {
    issuer: Issuer,
    held: RwLock<Option<Held>>,
    /// Somebody wants a look now.
    wanted: Notify,
    /// Whether a look was just made, and none is made however many want it.
    resting: AtomicBool,
    /// Looks that are over.
    looks: watch::Sender<u64>,
}

/// The keys of one issuer. Stops fetching when dropped.
#[derive(Debug)]
pub(super) struct KeyRing {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for KeyRing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl KeyRing {
    /// Begins to fetch.
    pub(super) fn start(issuer: Issuer, documents: Arc<dyn Documents>) -> Self {
        let shared = Arc::new(Shared {
            issuer,
            held: RwLock::new(None),
            wanted: Notify::new(),
            resting: AtomicBool::new(false),
            looks: watch::Sender::new(0),
        });
        let task = tokio::spawn(keep_fresh(shared.clone(), documents));
        Self { shared, task }
    }

    /// The issuer that publishes these keys.
    pub(super) fn issuer(&self) -> &Issuer {
        &self.shared.issuer
    }

    /// Judges a token by the present keys.
    pub(super) fn verify(
        &self,
        token: &str,
        claimed: &Claimed,
        now_ms: i64,
    ) -> Result<Verified, Denied> {
        let keys = self.shared.keys().ok_or(Denied::KeysUnavailable)?;
        self.shared.issuer.judge(token, claimed, &keys, now_ms)
    }

    /// Has the issuer looked at now, unless that was just done, and waits for the end of it, for at most
    /// [`PATIENCE`].
    pub(super) async fn ask(&self) {
        let mut looks = self.shared.looks.subscribe();
        if self.shared.resting.load(Ordering::SeqCst) {
            return;
        }
        // Lost on a task that is looking just now, whose look will do.
        self.shared.wanted.notify_waiters();
        // In vain or not: the keys are looked at once more.
        _ = timeout(PATIENCE, looks.changed()).await;
    }
}

impl Shared {
    fn keys(&self) -> Option<Arc<Keys>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let good = held.as_ref().filter(|held| Instant::now() < held.until);
        good.map(|held| held.keys.clone())
    }

    fn hold(&self, keys: Keys) {
        let held = Held {
            keys: Arc::new(keys),
            until: Instant::now() + KEPT,
        };
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }
}

async fn keep_fresh(shared: Arc<Shared>, documents: Arc<dyn Documents>) {
    let issuer = shared.issuer.url();
    let mut answers = None;
    loop {
        let began = Instant::now();
        let next = match discovery::keys(&shared.issuer, &*documents).await {
            Ok(keys) => {
                if answers != Some(true) {
                    tracing::info!(
                        issuer,
                        keys = keys.count(),
                        "the keys of an issuer are there"
                    );
                }
                shared.hold(keys);
                answers = Some(true);
                REFRESH_EVERY
            }
            Err(error) => {
                if answers != Some(false) {
                    tracing::warn!(issuer, %error, "the keys of an issuer cannot be fetched");
                }
                answers = Some(false);
                RETRY_EVERY
            }
        };
        shared.resting.store(true, Ordering::SeqCst);
        shared.looks.send_modify(|looks| *looks += 1);
        sleep_until(Instant::now() + REST).await;
        // Heard from before anybody asks.
        let mut wanted = pin!(shared.wanted.notified());
        wanted.as_mut().enable();
        shared.resting.store(false, Ordering::SeqCst);
        tokio::select! {
            () = sleep_until(began + next) => {}
            () = wanted => {}
        }
    }
}
