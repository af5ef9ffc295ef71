//! A notice as it is sent, encoded once for all who get it.

use super::super::cursor::{Cursor, PARTS_ALL};
use super::super::notice::{EndedRun, Kind, Notice, at_rest, notices};
use std::ops::Range;
use std::sync::Arc;
use taskledger_domain::{FlowId, Recorded, RunId, TaskId};

use axum::body::Bytes;

/// One notice in the form of server-sent events, and what filters look at.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The place behind it.
    pub cursor: Cursor,
    /// Its kind.
    pub kind: Kind,
    /// The flow.
    pub flow: FlowId,
    /// What the notice is about, by which watchers of one task choose.
    pub task: TaskId,
    /// The run that a new task has joined.
    pub joins: Option<RunId>,
    /// The run that has ended.
    pub ended: Option<EndedRun>,
    sse: Bytes,
    data: Range<usize>,
}

/// What stands before the place of a frame.
const ID: &[u8] = b"id: ";
/// Bytes of a frame besides its JSON, roughly.
const HEAD_BYTES: usize = 96;

impl Frame {
    /// The frames of an event: none, one or two. Cost: O(size).
    pub fn of(recorded: &Recorded) -> impl Iterator<Item = Arc<Self>> + use<'_> {
        let mut parts = 0;
        notices(recorded).map(move |notice| {
            parts += 1;
            Arc::new(Self::encode(recorded, &notice, parts))
        })
    }

    /// What ends the stream of a task that has ended with this event, and that nothing runs.
    #[must_use]
    pub fn at_rest(recorded: &Recorded) -> Option<Arc<Self>> {
        let notice = at_rest(recorded)?;
        Some(Arc::new(Self::encode(recorded, &notice, PARTS_ALL)))
    }

    /// The same notice for somebody who is told of it late, at `place`: nobody is to go back behind
    /// a place at which they were. Cost: O(size).
    #[must_use]
    pub fn told_at(&self, place: Cursor) -> Self {
        let before = ID.len() + self.cursor.to_string().len();
        let mut sse = Vec::with_capacity(self.sse.len());
        sse.extend_from_slice(ID);
        sse.extend_from_slice(place.to_string().as_bytes());
        let after = sse.len();
        sse.extend_from_slice(&self.sse[before..]);
        let moved = |at: usize| at - before + after;
        Self {
            cursor: place,
            data: moved(self.data.start)..moved(self.data.end),
            sse: Bytes::from(sse),
            ..self.clone()
        }
    }

    fn encode(recorded: &Recorded, notice: &Notice<'_>, parts: u8) -> Self {
        let cursor = Cursor::behind(recorded, parts);
        let mut sse = Vec::with_capacity(HEAD_BYTES + 400);
        sse.extend_from_slice(ID);
        sse.extend_from_slice(cursor.to_string().as_bytes());
        sse.extend_from_slice(b"\nevent: ");
        sse.extend_from_slice(notice.kind.as_str().as_bytes());
        sse.extend_from_slice(b"\ndata: ");
        let begin = sse.len();
        notice.write_json(&mut sse);
        one_line(&mut sse[begin..]);
        let data = begin..sse.len();
        sse.extend_from_slice(b"\n\n");
        Self {
            cursor,
            kind: notice.kind,
            flow: recorded.flow,
            task: notice.task_id,
            joins: notice.joins,
            ended: notice.run,
            sse: Bytes::from(sse),
            data,
        }
    }

    /// As a server-sent event.
    #[must_use]
    pub const fn sse(&self) -> &Bytes {
        &self.sse
    }

    /// The JSON alone, on one line.
    #[must_use]
    pub fn data(&self) -> Bytes {
        self.sse.slice(self.data.clone())
    }
}

/// Line breaks of JSON stand between its tokens only, and would end the field of a server-sent event.
pub fn one_line(json: &mut [u8]) {
    for byte in json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Frames that came together.
#[derive(Debug)]
pub struct Chunk {
    /// In order.
    pub frames: Vec<Arc<Frame>>,
    /// All of them, one after the other.
    pub sse: Bytes,
    /// The place behind the last event that was looked at, whether it made frames or not.
    pub end: Cursor,
}

impl Chunk {
    /// Joins frames. Cost: O(bytes), once for all readers.
    #[must_use]
    pub fn of(frames: Vec<Arc<Frame>>, end: Cursor) -> Self {
        let sse = join(&frames);
        Self { frames, sse, end }
    }
}

/// One text of several frames; a single one is shared and not copied.
#[must_use]
pub fn join(frames: &[Arc<Frame>]) -> Bytes {
    if let [only] = frames {
        return only.sse.clone();
    }
    let mut all = Vec::with_capacity(frames.iter().map(|f| f.sse.len()).sum());
    for frame in frames {
        all.extend_from_slice(&frame.sse);
    }
    Bytes::from(all)
}
