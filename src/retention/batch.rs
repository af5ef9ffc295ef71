//! Gathers flows for one archive file.
//!
//! Lines of a file go by position, and flows lie interleaved in the log, so small flows are gathered
//! and sorted; a flow that is larger than the memory for that gets a file of its own, written while
//! it is read.

use super::file::{Writing, Written};
use super::pass::Error;
use crate::clock::SharedClock;
use crate::store::{EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Position, Recorded, RunId, Version, codec};
use tokio::task::spawn_blocking;

/// Bytes of events that are gathered for one file.
const BATCH_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Flows in one file: each is then ended by a command of its own.
const BATCH_FLOWS_MAX: usize = 1000;
/// What an event takes in memory besides its data, roughly.
const EVENT_BYTES: usize = 400;

/// A flow that was copied.
#[derive(Debug, Clone)]
pub(super) struct Copied {
    pub(super) flow: FlowId,
    /// Version of the flow's last event.
    pub(super) version: Version,
    pub(super) runs: Vec<RunId>,
}

/// A file and what is in it.
#[derive(Debug)]
pub(super) struct Filed {
    pub(super) file: Written,
    pub(super) flows: Vec<Copied>,
}

/// What is gathered for the next file.
#[derive(Debug)]
pub(super) struct Batch {
    folder: PathBuf,
    clock: SharedClock,
    events: Vec<Arc<Recorded>>,
    bytes: usize,
    flows: Vec<Copied>,
}

impl Batch {
    pub(super) fn new(folder: PathBuf, clock: SharedClock) -> Self {
        Self {
            folder,
            clock,
            events: Vec::new(),
            bytes: 0,
            flows: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES_MAX || self.flows.len() >= BATCH_FLOWS_MAX
    }

    /// Copies a flow, unless it has an event behind `upto`: what the read models said may be old.
    /// `Some`: it was so large that it has a file of its own already.
    pub(super) async fn add(
        &mut self,
        store: &dyn EventStore,
        flow: FlowId,
        upto: Position,
    ) -> Result<Option<Filed>, Error> {
        let mut copied = Copied {
            flow,
            version: 0,
            runs: Vec::new(),
        };
        let (mut events, mut bytes) = (Vec::new(), 0);
        let mut large: Option<Writing> = None;
        loop {
            let piece = store
                .read_stream(flow, copied.version, PIECE_EVENTS_MAX, PIECE_BYTES_MAX)
                .await?;
            let Some(last) = piece.last() else { break };
            // Somebody else was faster, or it has just changed.
            if matches!(*last.event, Event::FlowArchived(_)) || last.position > upto {
                return Ok(None);
            }
            copied.version = last.version;
            for recorded in &piece {
                if let Event::RunStarted(started) = &*recorded.event {
                    copied.runs.push(started.run_id);
                }
                bytes += EVENT_BYTES + codec::encode(&recorded.event).data.len();
            }
            events.extend(piece);
            if large.is_some() || bytes > BATCH_BYTES_MAX {
                large = Some(self.write(large, std::mem::take(&mut events)).await?);
            }
        }
        if let Some(writing) = large {
            let file = self.to_disk(move || writing.finish()).await?;
            let flows = vec![copied];
            return Ok(Some(Filed { file, flows }));
        }
        if copied.version > 0 {
            self.events.append(&mut events);
            self.bytes += bytes;
            self.flows.push(copied);
        }
        Ok(None)
    }

    async fn write(
        &self,
        writing: Option<Writing>,
        events: Vec<Arc<Recorded>>,
    ) -> Result<Writing, Error> {
        let (folder, clock) = (self.folder.clone(), self.clock.clone());
        let begin = move || Writing::begin(&folder, &clock, 1);
        self.to_disk(move || {
            let mut writing = writing.map_or_else(begin, Ok)?;
            events.iter().try_for_each(|e| writing.event(e))?;
            Ok(writing)
        })
        .await
    }

    /// Writes what was gathered; `None` when that is nothing.
    pub(super) async fn file(&mut self) -> Result<Option<Filed>, Error> {
        let flows = std::mem::take(&mut self.flows);
        if flows.is_empty() {
            return Ok(None);
        }
        let mut events = std::mem::take(&mut self.events);
        self.bytes = 0;
        let (folder, clock, count) = (self.folder.clone(), self.clock.clone(), flows.len() as u64);
        let written = self.to_disk(move || {
            events.sort_unstable_by_key(|e| e.position);
            let mut writing = Writing::begin(&folder, &clock, count)?;
            events.iter().try_for_each(|e| writing.event(e))?;
            writing.finish()
        });
        let file = written.await?;
        Ok(Some(Filed { file, flows }))
    }

    async fn to_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.folder.clone();
        let done = spawn_blocking(work).await;
        done.unwrap_or_else(|e| Err(io::Error::other(e)))
            .map_err(|source| Error::Archive { folder, source })
    }
}
