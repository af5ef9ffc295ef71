//! A notice with its place, shared by all who are told of it.

use crate::cursor::{Cursor, PARTS_ALL};
use crate::encodings::Encodings;
use crate::notice::Notice;
use bytes::Bytes;
use std::sync::Arc;
use taskledger_domain::{FlowId, Recorded};

/// A format in which a door sends notices.
pub trait Format: 'static {
    /// Appends a notice. Cost: O(size).
    fn write(published: &Published, out: &mut Vec<u8>);
}

/// One notice at its place in the log.
#[derive(Debug)]
pub struct Published {
    /// The place behind it.
    pub cursor: Cursor,
    /// The flow that the notice is about.
    pub flow: FlowId,
    /// What is told.
    pub notice: Notice,
    encodings: Encodings,
}

impl Published {
    /// The notices of an event, all of them: none, one or two. Cost: O(1), payloads are shared.
    pub(crate) fn all(
        recorded: &Recorded,
        notices: Vec<Notice>,
    ) -> impl Iterator<Item = Arc<Self>> {
        let notices = notices.into_iter().zip(1..);
        notices.map(|(notice, parts)| Arc::new(Self::new(recorded, notice, parts)))
    }

    /// The notice behind all that an event makes.
    pub(crate) fn last(recorded: &Recorded, notice: Notice) -> Arc<Self> {
        Arc::new(Self::new(recorded, notice, PARTS_ALL))
    }

    fn new(recorded: &Recorded, notice: Notice, parts: u8) -> Self {
        Self {
            cursor: Cursor::behind(recorded, parts),
            flow: recorded.flow,
            notice,
            encodings: Encodings::default(),
        }
    }

    /// The same notice for a client that receives it late, at `place`: nobody is sent back behind a place
    /// that they had reached.
    #[must_use]
    pub fn moved_to(&self, place: Cursor) -> Self {
        Self {
            cursor: place,
            flow: self.flow,
            notice: self.notice.clone(),
            encodings: Encodings::default(),
        }
    }

    /// In the format `F`: encoded by the first who asks, shared afterwards.
    pub fn encoded<F: Format>(&self) -> &Bytes {
        self.encodings.get_or_encode::<F>(|| {
            let mut out = Vec::with_capacity(self.notice.weight());
            F::write(self, &mut out);
            out.into()
        })
    }

    /// Appends it in the format `F`: a copy if it is encoded already, else without keeping the encoding.
    fn append<F: Format>(&self, out: &mut Vec<u8>) {
        match self.encodings.get::<F>() {
            Some(bytes) => out.extend_from_slice(bytes),
            None => F::write(self, out),
        }
    }
}

/// Notices that came together.
#[derive(Debug)]
pub struct Chunk {
    /// In order.
    pub notices: Vec<Arc<Published>>,
    /// The place behind the last event that was looked at, whether it made notices or not.
    pub end: Cursor,
    /// Bytes in memory, roughly.
    pub(super) weight: usize,
    encodings: Encodings,
}

impl Chunk {
    /// These notices.
    #[must_use]
    pub fn of(notices: Vec<Arc<Published>>, end: Cursor) -> Self {
        Self {
            weight: notices.iter().map(|p| p.notice.weight()).sum(),
            notices,
            end,
            encodings: Encodings::default(),
        }
    }

    /// All of them in the format `F`, one after the other: encoded by the first who asks. A single one is
    /// shared with those who read it alone.
    pub fn encoded<F: Format>(&self) -> Bytes {
        if let [only] = self.notices.as_slice() {
            return only.encoded::<F>().clone();
        }
        let all = self.encodings.get_or_encode::<F>(|| {
            let mut out = Vec::with_capacity(self.weight);
            for published in &self.notices {
                published.append::<F>(&mut out);
            }
            out.into()
        });
        all.clone()
    }
}
