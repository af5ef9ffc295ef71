//! Where a stream begins, and what the watcher is told when that is not where it asked to begin.

use crate::cursor::{Cursor, PARTS_ALL};
use crate::live::Live;
use std::sync::Arc;
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Position, Recorded, Version};
use taskledger_log::{Error, Page};

/// The place where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// With the first event of the log.
    Beginning,
    /// Behind everything that is in the log now.
    Now,
    /// Behind the event at this position.
    Position(Position),
    /// Where another stream ended.
    Cursor(Cursor),
}

/// Why a stream does not give all that it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// What was given is no cursor.
    Malformed,
    /// The place lies behind the end of the log.
    Ahead,
    /// Another event is there: the cursor was made for another log.
    AnotherLog,
    /// Events behind the place were archived: the stream goes on from there, without them.
    Archived,
}

impl Reset {
    /// For people and programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Ahead => "ahead_of_log",
            Self::AnotherLog => "another_log",
            Self::Archived => "archived",
        }
    }
}

/// The place to begin at.
pub(super) async fn place(live: &Live, from: From) -> Result<(Cursor, Option<Reset>), Error> {
    let store = &live.store;
    let at = async |position: Position| -> Result<At, Error> {
        let page = store.read_all(position.saturating_sub(1), 1).await?;
        let event = page.events.into_iter().next();
        if let Some(event) = event.filter(|e| e.position == position) {
            return Ok(At::Event(event));
        }
        let is_damaged = page.damaged.iter().any(|it| it.position == position);
        Ok(if is_damaged { At::Damaged } else { At::Nothing })
    };
    let now = async || {
        let head = store.head().await?;
        Ok::<_, Error>(match at(head).await? {
            At::Event(event) => Cursor::behind(&event, PARTS_ALL),
            At::Damaged => behind(head),
            At::Nothing => Cursor::default(),
        })
    };
    let wanted = match from {
        From::Beginning | From::Cursor(Cursor::BEGINNING) | From::Position(0) => {
            return Ok((Cursor::BEGINNING, None));
        }
        From::Now => return Ok((now().await?, None)),
        From::Position(position) => behind(position),
        From::Cursor(cursor) => cursor,
    };
    // What was dropped by then is known: looked at behind the event.
    let there = at(wanted.position).await?;
    let horizon = store.dropped().await?.horizon;
    let reset = (wanted.position < horizon).then_some(Reset::Archived);
    match (there, from) {
        (At::Event(event), From::Cursor(_)) if !wanted.names(&event) => {
            Ok((now().await?, Some(Reset::AnotherLog)))
        }
        (At::Event(_), From::Cursor(_)) => Ok((wanted, reset)),
        // By its number the place was asked for as it is, with what there is behind it.
        (At::Event(event), _) => Ok((Cursor::behind(&event, PARTS_ALL), None)),
        // Whether it is the event of the cursor cannot be known.
        (At::Damaged, _) => Ok((wanted, reset)),
        (At::Nothing, _) if wanted.position <= horizon => Ok((wanted, reset)),
        (At::Nothing, _) => Ok((now().await?, Some(Reset::Ahead))),
    }
}

/// What is at a position of the log.
enum At {
    Event(Arc<Recorded>),
    /// An event that cannot be read.
    Damaged,
    Nothing,
}

/// The place behind an event of which only the position is known.
const fn behind(position: Position) -> Cursor {
    Cursor {
        position,
        parts: PARTS_ALL,
        ..Cursor::BEGINNING
    }
}

/// The place behind a page all of whose events are damaged, though the log goes on.
pub(super) fn behind_damage(page: &Page, after: Position) -> Option<Cursor> {
    let is_damaged = page.events.is_empty() && !page.at_end && page.next > after;
    is_damaged.then(|| behind(page.next))
}

/// Whether a flow was archived behind a place: what stood between is dropped, or will be.
pub(super) async fn has_lost(live: &Live, flow: FlowId, place: Cursor) -> Result<bool, Error> {
    let last = live
        .store
        .read_stream_back(flow, Version::MAX, 1, usize::MAX);
    let last = match last.await {
        // It goes on from where it is; what can be read of it is given.
        Err(Error::Corrupt { .. }) => return Ok(false),
        last => last?,
    };
    Ok(last.iter().any(|event| {
        matches!(*event.event, Event::FlowArchived(_)) && place.position < event.position
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Filter, Reader, Until};
    use crate::testing::{Immediate, append};
    use taskledger_clock::ManualClock;
    use taskledger_domain::testing::START;
    use taskledger_log::EventStore;
    use taskledger_log::faulty::FaultyStore;
    use taskledger_log::memory::MemoryStore;

    /// Positions of the notices of a stream until it has come as far as the log.
    async fn positions(live: &Arc<Live>, from: From) -> Vec<Position> {
        let filter = Filter::default();
        let begun = Reader::begin(live.clone(), filter, from, Until::Forever).await;
        let (mut reader, reset) = begun.expect("damage does not keep it from beginning");
        assert_eq!(reset, None);
        let head = live.store.head().await.expect("the log in memory answers");
        let mut positions = Vec::new();
        while reader.place().position < head {
            let batch = reader.next().await.expect("damage is stepped over");
            let batch = batch.expect("it does not end");
            positions.extend(batch.notices().iter().map(|it| it.cursor.position));
        }
        positions
    }

    #[tokio::test]
    async fn a_stream_steps_over_damaged_events_wherever_it_begins() {
        let inner = Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))));
        for version in 0..6 {
            append(&inner, version).await;
        }
        let store = Arc::new(FaultyStore::new(inner));
        store.faults().damage(3);
        let (_service, live) = Live::new(store.clone(), Arc::new(Immediate));
        assert_eq!(positions(&live, From::Beginning).await, [1, 2, 4, 5, 6]);
        // Behind the damaged event itself: where a client was before it was damaged.
        assert_eq!(positions(&live, From::Position(3)).await, [4, 5, 6]);
        let behind = Cursor::behind(
            &store.inner().read_all(2, 1).await.expect("memory").events[0],
            PARTS_ALL,
        );
        assert_eq!(positions(&live, From::Cursor(behind)).await, [4, 5, 6]);
        // The last event is damaged: now is behind it, and not the beginning.
        store.faults().damage(6);
        assert_eq!(positions(&live, From::Now).await, [] as [Position; 0]);
        assert_eq!(store.damage().list().len(), 2);
    }
}
