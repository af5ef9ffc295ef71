//! A bounded set of threads that read, so that a slow reader blocks neither the committer nor the
//! runtime.
//!
//! Owns: [`READERS`] read-only connections, one thread each, fed from one queue.

use super::open::{self, OpenError};
use super::queries::Queries;
use crate::Error;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Connections that read at once: reads are short and mostly from memory; more than a few only
/// fight for the cores.
const READERS: usize = 4;
/// Reads that wait; more wait in front of the queue, unqueued.
const READ_QUEUE_MAX: usize = 256;

type Job = Box<dyn FnOnce(Queries<'_>) + Send>;

/// A cloneable way to the reading threads.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    queue: mpsc::Sender<Job>,
}

impl Readers {
    /// Opens the connections and starts the threads; they end when every clone is gone.
    pub(super) fn start(path: &Path) -> Result<(Self, Vec<JoinHandle<()>>), OpenError> {
        let (queue, jobs) = mpsc::channel(READ_QUEUE_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        let mut threads = Vec::with_capacity(READERS);
        for n in 0..READERS {
            let connection = open::reader(path)?;
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new()
                .name(format!("log-reader-{n}"))
                .spawn(move || serve(&connection, &jobs))
                .map_err(OpenError::Thread)?;
            threads.push(thread);
        }
        Ok((Self { queue }, threads))
    }

    /// Runs `read` on one of the threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(Queries<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |queries| {
            // A caller that is gone needs no answer, and none needs to be read.
            if !reply.is_closed() {
                let _ = reply.send(read(queries));
            }
        });
        let gone = || Error::Unavailable("the log is closed".to_owned());
        self.queue.send(job).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

fn serve(connection: &rusqlite::Connection, jobs: &Mutex<mpsc::Receiver<Job>>) {
    let queries = match Queries::prepare(connection) {
        Ok(queries) => queries,
        Err(error) => {
            tracing::error!(%error, "a reader of the log cannot start");
            return;
        }
    };
    loop {
        // One thread waits in the queue, the others for the lock.
        let job = jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv();
        let Some(job) = job else { return };
        if std::panic::catch_unwind(AssertUnwindSafe(|| job(queries))).is_err() {
            tracing::error!("a read of the log panicked; its caller is told that it failed");
        }
    }
}
