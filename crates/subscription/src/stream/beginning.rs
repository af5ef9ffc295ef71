//! Where a stream begins, and what the watcher is told when that is not where it asked to begin.

use crate::cursor::{Cursor, PARTS_ALL};
use crate::live::Live;
use std::sync::Arc;
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Position, Recorded, Version};
use taskledger_log::Error;

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
    let at = async |position: Position| -> Result<Option<Arc<Recorded>>, Error> {
        let page = store.read_all(position.saturating_sub(1), 1).await?;
        let event = page.events.into_iter().next();
        Ok(event.filter(|e| e.position == position))
    };
    let now = async || {
        let event = at(store.head().await?).await?;
        let place = event.map(|event| Cursor::behind(&event, PARTS_ALL));
        Ok::<_, Error>(place.unwrap_or_default())
    };
    let wanted = match from {
        From::Beginning | From::Cursor(Cursor::BEGINNING) | From::Position(0) => {
            return Ok((Cursor::BEGINNING, None));
        }
        From::Now => return Ok((now().await?, None)),
        From::Position(position) => Cursor {
            position,
            parts: PARTS_ALL,
            ..Cursor::BEGINNING
        },
        From::Cursor(cursor) => cursor,
    };
    // What was dropped by then is known: looked at behind the event.
    let there = at(wanted.position).await?;
    let horizon = store.dropped().await?.horizon;
    let reset = (wanted.position < horizon).then_some(Reset::Archived);
    match (there, from) {
        (Some(event), From::Cursor(_)) if !wanted.names(&event) => {
            Ok((now().await?, Some(Reset::AnotherLog)))
        }
        (Some(_), From::Cursor(_)) => Ok((wanted, reset)),
        // By its number the place was asked for as it is, with what there is behind it.
        (Some(event), _) => Ok((Cursor::behind(&event, PARTS_ALL), None)),
        (None, _) if wanted.position <= horizon => Ok((wanted, reset)),
        (None, _) => Ok((now().await?, Some(Reset::Ahead))),
    }
}

/// Whether a flow was archived behind a place: what stood between is dropped, or will be.
pub(super) async fn has_lost(live: &Live, flow: FlowId, place: Cursor) -> Result<bool, Error> {
    let last = live
        .store
        .read_stream_back(flow, Version::MAX, 1, usize::MAX);
    let last = last.await?;
    Ok(last.iter().any(|event| {
        matches!(*event.event, Event::FlowArchived(_)) && place.position < event.position
    }))
}
