//! Follows the progress of rows that another server writes.

use sqlx::postgres::{PgListener, PgPool};
use std::future::pending;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a connection that listens may take to be made.
const LISTEN_WAIT: Duration = Duration::from_secs(5);
/// Pause before the next try to make one.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Wakes whoever follows rows that somebody else folds. A wake-up, never the truth: a connection may
/// break unseen, so whoever waits here asks for the checkpoint now and then.
pub struct Elsewhere {
    source: Option<(PgPool, String)>,
    listener: Option<PgListener>,
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elsewhere")
            .field("listens", &self.listener.is_some())
            .finish_non_exhaustive()
    }
}

impl Elsewhere {
    pub(super) const fn nowhere() -> Self {
        Self {
            source: None,
            listener: None,
        }
    }

    pub(super) const fn on(pool: PgPool, channel: String) -> Self {
        Self {
            source: Some((pool, channel)),
            listener: None,
        }
    }

    /// Returns when the checkpoint may have moved; never, where nobody else can move it or as long
    /// as the database does not answer. Dropping the future loses nothing that asking again for the
    /// checkpoint does not find; but whoever drops it while it connects begins anew.
    pub async fn changed(&mut self) {
        let Some((pool, channel)) = &self.source else {
            return pending().await;
        };
        if let Some(listener) = &mut self.listener {
            match listener.try_recv().await {
                Ok(Some(_)) => while listener.next_buffered().is_some() {},
                // What was said meanwhile is lost.
                Ok(None) | Err(_) => self.listener = None,
            }
            return;
        }
        loop {
            if let Ok(Ok(listener)) = timeout(LISTEN_WAIT, listen(pool, channel)).await {
                self.listener = Some(listener);
                // Something may have happened before it listened.
                return;
            }
            sleep(LISTEN_AGAIN_AFTER).await;
        }
    }
}

async fn listen(pool: &PgPool, channel: &str) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    Ok(listener)
}
