//! The newest chunks, for readers that go at their own pace. Bounded: who falls behind what is kept finds it in the
//! log.

use super::super::cursor::Cursor;
use super::published::Chunk;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Chunks kept, whatever their size: some hold nothing but the news how far the log is.
const CHUNKS_MAX: usize = 4096;

/// The end of what was published, shared by its readers.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Mutex<Kept>,
    /// Number of the next chunk.
    next: watch::Sender<u64>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    chunks: VecDeque<Arc<Chunk>>,
    /// Number of the first one.
    first: u64,
    bytes: usize,
}

/// What a reader finds.
pub(super) enum Found {
    /// These chunks follow.
    Chunks(Vec<Arc<Chunk>>),
    /// What follows is kept no more.
    Lost,
}

impl Tail {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            kept: Mutex::default(),
            next: watch::channel(0).0,
            bytes_max,
        }
    }

    /// Adds a chunk; readers are told by [`Self::tell`].
    pub(super) fn push(&self, chunk: Arc<Chunk>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += chunk.weight;
        kept.chunks.push_back(chunk);
        while (kept.bytes > self.bytes_max || kept.chunks.len() > CHUNKS_MAX)
            && kept.chunks.len() > 1
        {
            if let Some(old) = kept.chunks.pop_front() {
                kept.bytes -= old.weight;
                kept.first += 1;
            }
        }
    }

    /// Lets its readers find in the log what comes now.
    pub(super) fn lose(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // One more than there were, so that who has read all of them misses something too.
        kept.first += kept.chunks.len() as u64 + 1;
        kept.chunks.clear();
        kept.bytes = 0;
    }

    /// Wakes the readers.
    pub(super) fn tell(&self) {
        let next = self.next();
        self.next.send_replace(next);
    }

    /// Number of the first chunk that holds something behind `place`, if everything behind it is kept.
    pub(super) fn behind(&self, place: Cursor) -> Option<u64> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = kept.chunks.partition_point(|chunk| chunk.end <= place);
        (passed > 0).then(|| kept.first + passed as u64)
    }

    /// Number of the next chunk to come.
    pub(super) fn next(&self) -> u64 {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.first + kept.chunks.len() as u64
    }

    /// Tells when there is something new.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.next.subscribe()
    }

    /// The chunks from number `from` on, up to about `bytes_max`. Cost: O(chunks).
    pub(super) fn read(&self, from: u64, bytes_max: usize) -> Found {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(skip) = from.checked_sub(kept.first) else {
            return Found::Lost;
        };
        let mut bytes = 0;
        let skip = usize::try_from(skip)
            .unwrap_or(usize::MAX)
            .min(kept.chunks.len());
        let chunks = kept.chunks.range(skip..);
        let taken = chunks.take_while(|chunk| {
            let fits = bytes == 0 || bytes + chunk.weight <= bytes_max;
            bytes += chunk.weight;
            fits
        });
        Found::Chunks(taken.cloned().collect())
    }
}
