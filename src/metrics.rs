//! Metrics of the server, as OpenMetrics text.
//!
//! Owns: the [`table`] of names and labels, the reading of figures at a scrape, the text. Counts nothing:
//! counters lie with whoever owns the fact, and what `system.health` shows is read where that reads it.
//! May read every part; only `server` knows this one. Doors get the text through
//! [`Service`](crate::application::Service).
//! Figures that cost a query or a look at the disk are one second old at most while the store answers
//! (`slow`), and a scrape never waits for a store that does not.

pub mod broker;
mod gather;
mod page;
mod plain;
mod process;
mod slow;
pub mod table;

use crate::application::App;
use crate::application::ports::Exposition;
use crate::engine::Dispatcher as Engine;
use crate::nodes::Peers;
use crate::store::postgres::PostgresStore;
use crate::tls::Certificates;
use crate::transport::figures::Figures as Doors;
use crate::webhooks::worker;
use async_trait::async_trait;
use page::Page;
use slow::Slow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use taskledger_auth::Tokens;
use taskledger_domain::Timestamp;

/// The sources of metrics.
pub struct Sources {
    /// The application, the log and the read models.
    pub app: Arc<App>,
    /// Executors.
    pub engine: Arc<Engine>,
    /// Counts calls and streams at the doors.
    pub doors: Arc<Doors>,
    /// Webhooks.
    pub deliveries: worker::Handle,
    /// Calls to other nodes, where there may be others.
    pub peers: Option<Arc<Peers>>,
    /// Counts the checks of tokens.
    pub tokens: Arc<Tokens>,
    /// The certificate that the server shows, if it speaks TLS.
    pub certificates: Option<Arc<Certificates>>,
    /// Where the data is.
    pub place: Place,
}

/// The places of the data.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Files of SQLite, by what they hold. Each may have a `-wal` beside it.
    pub files: Vec<(&'static str, PathBuf)>,
    /// The folder whose disk must not become full.
    pub folder: Option<PathBuf>,
    /// The PostgreSQL database, where the data is in one.
    pub database: Option<Arc<PostgresStore>>,
}

/// Reads all figures and writes them as text. One per server.
pub struct Metrics {
    sources: Arc<Sources>,
    slow: Slow,
    started: Timestamp,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// The figures of a server that starts now.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        Self {
            started: sources.app.clock.now(),
            slow: Slow::default(),
            sources: Arc::new(sources),
        }
    }
}

#[async_trait]
impl Exposition for Metrics {
    async fn text(&self) -> String {
        let slow = self.slow.figures(&self.sources).await;
        let mut page = Page::default();
        gather::all(&mut page, &self.sources, &slow, self.started);
        page.text()
    }

    async fn broker_text(&self) -> String {
        let slow = self.slow.figures(&self.sources).await;
        broker::text(&self.sources, &slow, self.started)
    }
}
