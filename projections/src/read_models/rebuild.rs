//! Rebuilds rows beside those that serve, and swaps them in.
//!
//! Owns the second place: a schema or a file, empty at first, with a checkpoint of its own. Whatever
//! breaks off leaves the rows that served; the leftover is removed by the next rebuild.

use super::conn::Conn;
use super::found::Swap;
use super::writer::{self, Page, Way, Writer};
use super::{Place, ReadModels, Readers, postgres, sqlite};
use crate::tasks::TaskProjector;
use crate::{DamagedFlow, Error};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{Position, Recorded};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

/// How long a swap keeps new reads waiting for old ones to end, before it gives way and tries later.
const SWAP_WAIT: Duration = Duration::from_millis(200);

/// A rebuild under way. Dropping it leaves everything as it was.
pub struct Rebuild {
    models: Arc<ReadModels>,
    writer: Arc<Mutex<Writer>>,
    /// What makes the indexes that only queries need: made at the end, from sorted keys, they cost a
    /// fraction of what it costs to keep them. `None`: they are made.
    indexes: Option<Vec<String>>,
    _one_at_a_time: OwnedMutexGuard<()>,
}

impl std::fmt::Debug for Rebuild {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rebuild").finish_non_exhaustive()
    }
}

impl ReadModels {
    /// Begins rows anew, beside those that serve, at position 0.
    ///
    /// # Errors
    /// [`Error::RebuildUnderWay`]: here or, on PostgreSQL, on another server;
    /// [`Error::Unavailable`], [`Error::File`].
    pub async fn begin_rebuild(self: &Arc<Self>) -> Result<Rebuild, Error> {
        let one = self.rebuilding.clone().try_lock_owned();
        let one = one.map_err(|_| Error::RebuildUnderWay)?;
        let (way, conn, indexes) = match &self.place {
            Place::File(path) => {
                let indexes = sqlite::make_next(path).await?;
                (Way::NextFile(sqlite::next_path(path)), None, indexes)
            }
            Place::Postgres(place) => (
                Way::postgres(place, &place.next_schema(), None),
                Some(postgres::make_next(place).await?),
                Vec::new(),
            ),
        };
        let writer = Writer::new(way, conn, TaskProjector::in_large_batches());
        Ok(Rebuild {
            writer: Arc::new(Mutex::new(writer)),
            indexes: Some(indexes),
            models: Arc::clone(self),
            _one_at_a_time: one,
        })
    }
}

impl Rebuild {
    /// Folds the next events of the log. Returns the new checkpoint.
    ///
    /// # Errors
    /// As [`ReadModels::apply`]; after any, the rebuild is of no use.
    pub async fn apply(&mut self, events: &[Arc<Recorded>]) -> Result<Position, Error> {
        self.apply_to(Page::of(events)).await
    }

    /// Folds the next page of the log. Returns the new checkpoint.
    ///
    /// # Errors
    /// As [`ReadModels::apply_page`]; after any, the rebuild is of no use.
    pub async fn apply_page(
        &mut self,
        events: Vec<Arc<Recorded>>,
        damaged: Vec<DamagedFlow>,
        to: Position,
    ) -> Result<Position, Error> {
        let page = Page {
            events,
            damaged,
            to,
        };
        self.apply_to(page).await
    }

    async fn apply_to(&self, page: Page) -> Result<Position, Error> {
        writer::with(&self.writer, |mut writer| async move {
            writer.apply_or_leave_out(page).await
        })
        .await
    }

    /// Removes what was made. Dropping the rebuild leaves that to the next one.
    pub async fn abandon(self) {
        let mut writer = self.writer.lock().await;
        let unsettled = writer.unsettled;
        let left = match &self.models.place {
            Place::File(path) => {
                let _ = close(&mut writer).await;
                sqlite::remove(&sqlite::next_path(path))
            }
            Place::Postgres(place) => match &mut writer.conn {
                Some(conn) if !unsettled => {
                    let wait = place.write_statement_timeout + postgres::GRACE;
                    let next = place.next_schema();
                    postgres::in_time(wait, postgres::drop_schema(conn, &next)).await
                }
                Some(_) | None => Ok(()),
            },
        };
        // The next rebuild removes it.
        drop(left);
    }

    /// Puts the new rows in the place of the old ones, unless those are further.
    ///
    /// # Errors
    /// Nothing was swapped, and the rebuild is of no use; except [`Error::Unavailable`] on
    /// PostgreSQL: the connection may have broken behind the swap.
    pub async fn swap(&mut self) -> Result<Swap, Error> {
        if let Some(indexes) = self.indexes.take() {
            writer::with(&self.writer, |mut next| async move {
                next.execute(&indexes).await?;
                // Most of it, while nobody waits; the rest is synced when it takes its place. Only once:
                // while a sync takes its time, the serving rows go on.
                next.way.sync()
            })
            .await?;
        }
        let mut next = self.writer.lock().await;
        let position = next.certain().await?;
        match (&self.models.place, &self.models.readers) {
            (Place::File(path), Readers::Sqlite { serving, count }) => {
                let mut writer = self.models.writer.lock().await;
                if let Ok(at) = writer.certain().await
                    && at > position
                {
                    return Ok(Swap::Behind(at));
                }
                let Ok(mut pool) = timeout(SWAP_WAIT, serving.write()).await else {
                    return Ok(Swap::InUse);
                };
                // From here on nobody reads, and nobody folds. Closed files have nothing beside them.
                *pool = sqlite::readers(path, *count);
                let closed = close(&mut writer).await;
                let finished = match &next.conn {
                    Some(Conn::File(file)) => sqlite::finish_next(&file.connection),
                    Some(Conn::Postgres(_)) | None => Ok(()),
                };
                let closed = closed.and(finished).and(close(&mut next).await);
                let next = sqlite::next_path(path);
                let moved = closed.and_then(|()| sqlite::put_in_place(&next, path));
                match moved {
                    Err(Error::InUse) => Ok(Swap::InUse),
                    moved => moved.map(|()| Swap::Done),
                }
            }
            (Place::Postgres(place), Readers::Postgres { .. }) => {
                let unsettled = next.unsettled;
                let conn = match &mut next.conn {
                    Some(conn) if !unsettled => conn,
                    // The right to rebuild went with the connection.
                    Some(_) | None => return Err(Error::RebuildUnderWay),
                };
                let wait = place.write_statement_timeout + postgres::GRACE;
                let swapped = postgres::swap(place, conn, position);
                let swapped = match postgres::in_time(wait, swapped).await {
                    Ok(swapped) => swapped,
                    Err(error) => {
                        next.forget();
                        return Err(error);
                    }
                };
                if swapped == Swap::Done {
                    self.models.writer.lock().await.forget();
                    self.models.serves();
                }
                Ok(swapped)
            }
            (Place::File(_), Readers::Postgres { .. })
            | (Place::Postgres(_), Readers::Sqlite { .. }) => Err(Error::Damaged(
                "the readers are of another place than the rows".to_owned(),
            )),
        }
    }
}

/// Closes a connection to a file, so that all of it is in the file.
async fn close(writer: &mut Writer) -> Result<(), Error> {
    writer.forget();
    writer.unsettled = false;
    match writer.conn.take() {
        Some(conn) => conn.close().await,
        None => Ok(()),
    }
}
