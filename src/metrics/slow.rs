//! Metrics that cost a query or a look at the disk.
//!
//! Read at a scrape by a task of their own, at most once a second and one at a time. A scrape waits a moment
//! for them. Figures of long before are not shown: an old figure must not look like a new one.

use super::process::Process;
use super::{Place, Sources};
use crate::application::App;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taskledger_auth::store::TokenState;
use taskledger_domain::Timestamp;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

/// How old figures may be that are shown without asking anew.
const FRESH: Duration = Duration::from_secs(1);
/// How long a scrape waits for new ones.
const PATIENCE: Duration = Duration::from_secs(1);
/// How old figures may be that are shown when the new ones are late.
const STALE: Duration = Duration::from_secs(5);
/// How long each question may take.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// What was answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// Whether all checks were passed in time.
    pub(super) ready: bool,
    pub(super) lag_seconds: Option<f64>,
    pub(super) runs_active: Option<u64>,
    pub(super) webhook_lag: Option<Duration>,
    pub(super) database_bytes: Option<u64>,
    /// Tokens by state.
    pub(super) tokens: Option<[u64; TokenState::ALL.len()]>,
    /// When the token ends that ends next; `None`: none does.
    pub(super) token_expires_at: Option<Timestamp>,
    pub(super) disk: Option<Disk>,
    pub(super) process: Process,
}

/// The data on the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) files: Vec<(&'static str, u64)>,
    pub(super) free_bytes: Option<u64>,
}

type Latest = Option<(Instant, Arc<Figures>)>;

/// The newest figures, and whether newer ones are being read.
#[derive(Debug)]
pub(super) struct Slow {
    latest: watch::Sender<Latest>,
    reading: Arc<AtomicBool>,
    /// A look at a disk that does not answer keeps a thread; there is one at most.
    looking: Arc<AtomicBool>,
}

impl Default for Slow {
    fn default() -> Self {
        Self {
            latest: watch::Sender::new(None),
            reading: Arc::default(),
            looking: Arc::default(),
        }
    }
}

/// Raised until it is dropped, whatever becomes of the work.
struct Flag(Arc<AtomicBool>);

impl Flag {
    /// `None`: it is raised already.
    fn raise(flag: &Arc<AtomicBool>) -> Option<Self> {
        let raised = flag.swap(true, Ordering::AcqRel);
        (!raised).then(|| Self(flag.clone()))
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Slow {
    /// The newest figures. Takes [`PATIENCE`] at most.
    pub(super) async fn figures(&self, sources: &Arc<Sources>) -> Arc<Figures> {
        let mut changed = self.latest.subscribe();
        let known = changed.borrow_and_update().clone();
        if let Some((at, figures)) = known
            && at.elapsed() < FRESH
        {
            return figures;
        }
        if let Some(flag) = Flag::raise(&self.reading) {
            let (sources, latest) = (sources.clone(), self.latest.clone());
            let looking = self.looking.clone();
            tokio::spawn(async move {
                let figures = read(&sources, &looking).await;
                // Before the others are told, who may ask anew at once.
                drop(flag);
                latest.send_replace(Some((Instant::now(), Arc::new(figures))));
            });
        }
        // When it has not changed in time, what is shown is what was known.
        let _ = timeout(PATIENCE, changed.changed()).await;
        let latest = self.latest.borrow();
        let latest = latest.as_ref().filter(|(at, _)| at.elapsed() < STALE);
        latest
            .map(|(_, figures)| figures.clone())
            .unwrap_or_default()
    }
}

async fn in_time<T>(question: impl Future<Output = T>) -> Option<T> {
    timeout(ANSWER_WAIT, question).await.ok()
}

async fn read(sources: &Sources, looking: &Arc<AtomicBool>) -> Figures {
    let app = &sources.app;
    let (checks, lag, runs, webhooks, database, tokens, expiry, disk, process) = tokio::join!(
        in_time(app.checks()),
        in_time(lag_seconds(app)),
        in_time(app.queries.active_runs()),
        in_time(sources.deliveries.lag()),
        in_time(database_bytes(&sources.place)),
        in_time(sources.tokens.store().count_by_state(app.clock.now())),
        in_time(sources.tokens.store().next_expiry(app.clock.now())),
        in_time(disk(&sources.place, looking)),
        spawn_blocking(Process::read),
    );
    Figures {
        ready: checks.is_some_and(|checks| checks.iter().all(|check| check.ok)),
        lag_seconds: lag.flatten(),
        runs_active: runs.and_then(Result::ok),
        webhook_lag: webhooks.and_then(Result::ok),
        database_bytes: database.flatten(),
        tokens: tokens.and_then(Result::ok),
        token_expires_at: expiry.and_then(Result::ok).flatten(),
        disk: disk.flatten(),
        process: process.unwrap_or_default(),
    }
}

/// The age of the first event that the read models do not contain.
async fn lag_seconds(app: &App) -> Option<f64> {
    let checkpoint = app.projections.checkpoint();
    if checkpoint >= *app.store.watch().borrow() {
        return Some(0.0);
    }
    let next = app.store.read_all(checkpoint, 1).await.ok()?;
    let age = |event: &taskledger_domain::Recorded| app.clock.now().ms_since(event.time);
    Some(next.events.first().map_or(0, |event| age(event)) as f64 / 1000.0)
}

async fn database_bytes(place: &Place) -> Option<u64> {
    place.database.as_ref()?.size_bytes().await.ok()
}

async fn disk(place: &Place, looking: &Arc<AtomicBool>) -> Option<Disk> {
    let folder = place.folder.clone()?;
    let files = place.files.clone();
    let flag = Flag::raise(looking)?;
    let look = spawn_blocking(move || {
        let _raised = flag;
        look(&folder, &files)
    });
    look.await.ok()
}

fn look(folder: &Path, files: &[(&'static str, PathBuf)]) -> Disk {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let size = |file: &PathBuf| {
        let mut beside = file.clone().into_os_string();
        beside.push("-wal");
        length(file) + length(Path::new(&beside))
    };
    let free = rustix::fs::statvfs(folder).ok();
    Disk {
        files: files
            .iter()
            .map(|(part, file)| (*part, size(file)))
            .collect(),
        free_bytes: free.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
    }
}
