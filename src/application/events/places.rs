//! Reads the events of the log, or of one flow, piece by piece in either direction.

use super::cursor::Cursor;
use crate::application::error::Error;
use crate::application::stream_reader::StreamReader;
use crate::store::{EventStore, PIECE_EVENTS_MAX};
use std::sync::Arc;
use taskledger_domain::{FlowId, Position, Recorded, Timestamp, Version};
use taskledger_projections::Order;

/// Where events are read.
pub(super) struct Places<'a> {
    store: &'a dyn EventStore,
    flow: Option<FlowId>,
    /// First and last place: positions, or versions of the flow.
    first: u64,
    last: u64,
    order: Order,
    /// The last place that is done with.
    at: u64,
}

impl<'a> Places<'a> {
    /// Those of one flow.
    pub(super) async fn of_flow(store: &'a dyn EventStore, flow: FlowId) -> Result<Self, Error> {
        let head: Option<(Version, Position)> = store.stream_head(flow).await?;
        let last = head.map_or(0, |(version, _)| version);
        Ok(Self::between(store, Some(flow), (1, last)))
    }

    /// Those of the log that were recorded between two times. Cost: O(log n) reads.
    pub(super) async fn of_log(
        store: &'a dyn EventStore,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Self, Error> {
        let head = store.head().await?;
        let first = match since {
            Some(since) => first_at(store, head, since).await?,
            None => 1,
        };
        let last = match until {
            Some(until) => first_at(store, head, until).await? - 1,
            None => head,
        };
        Ok(Self::between(store, None, (first, last)))
    }

    fn between(store: &'a dyn EventStore, flow: Option<FlowId>, (first, last): (u64, u64)) -> Self {
        Self {
            store,
            flow,
            first,
            last,
            order: Order::Ascending,
            at: 0,
        }
    }

    /// Goes to the beginning, or behind the place of a cursor.
    pub(super) fn begin(&mut self, order: Order, cursor: Option<Cursor>) {
        self.order = order;
        self.at = match order {
            Order::Ascending => cursor.map_or(0, |c| c.at).max(self.first - 1),
            Order::Descending => cursor.map_or(u64::MAX, |c| c.at).min(self.last + 1),
        };
    }

    /// Whether nothing is left.
    pub(super) const fn are_done(&self) -> bool {
        match self.order {
            Order::Ascending => self.at >= self.last,
            Order::Descending => self.at <= self.first,
        }
    }

    /// Where the next page begins.
    pub(super) const fn cursor(&self) -> Cursor {
        Cursor {
            order: self.order,
            is_of_flow: self.flow.is_some(),
            at: self.at,
        }
    }

    /// An event is done with.
    pub(super) fn pass(&mut self, recorded: &Recorded) {
        self.at = self.place(recorded);
    }

    fn place(&self, recorded: &Recorded) -> u64 {
        match self.flow {
            Some(_) => recorded.version,
            None => recorded.position,
        }
    }

    /// The next events; none when nothing is left, or when `budget`, from which the places that were
    /// dropped are taken, is used up.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub(super) async fn next(&mut self, budget: &mut usize) -> Result<Vec<Arc<Recorded>>, Error> {
        while !self.are_done() && *budget > 0 {
            let mut piece = match (self.flow, self.order) {
                (Some(flow), Order::Ascending) => {
                    StreamReader::of(self.store, flow).after(self.at).await?
                }
                (Some(flow), Order::Descending) => {
                    let reader = StreamReader::of(self.store, flow);
                    reader.before(self.at, PIECE_EVENTS_MAX).await?
                }
                (None, Order::Ascending) => {
                    let page = self.store.read_all(self.at, PIECE_EVENTS_MAX).await?;
                    if page.events.is_empty() && page.next > self.at && !page.at_end {
                        // All of it is damaged.
                        self.at = page.next;
                        *budget = budget.saturating_sub(PIECE_EVENTS_MAX);
                        continue;
                    }
                    page.events
                }
                (None, Order::Descending) => self.window(budget).await?,
            };
            let (first, last) = (self.first, self.last);
            piece.retain(|recorded| (first..=last).contains(&self.place(recorded)));
            let is_window = self.flow.is_none() && self.order == Order::Descending;
            if !piece.is_empty() {
                return Ok(piece);
            }
            if !is_window {
                // What is left was dropped, or has been written since.
                self.at = match self.order {
                    Order::Ascending => self.last,
                    Order::Descending => self.first,
                };
            }
        }
        Ok(Vec::new())
    }

    /// The events of the positions next below, the newest first. An empty window is passed.
    async fn window(&mut self, budget: &mut usize) -> Result<Vec<Arc<Recorded>>, Error> {
        let span = PIECE_EVENTS_MAX as u64;
        let below = self.at.saturating_sub(1 + span).max(self.first - 1);
        let (mut events, mut after) = (Vec::new(), below);
        while after + 1 < self.at {
            let page = self.store.read_all(after, PIECE_EVENTS_MAX).await?;
            let found = page.events.len();
            let within = page.events.into_iter().filter(|e| e.position < self.at);
            events.extend(within);
            if found == 0 {
                break;
            }
            after = page.next;
        }
        if events.is_empty() {
            self.at = below + 1;
            *budget = budget.saturating_sub(PIECE_EVENTS_MAX);
        }
        events.reverse();
        Ok(events)
    }
}

/// The first position whose event was recorded at `time` or later; behind the head if none was.
async fn first_at(
    store: &dyn EventStore,
    head: Position,
    time: Timestamp,
) -> Result<Position, Error> {
    // Up to `before` all were recorded earlier, above `after` none was.
    let (mut before, mut after) = (0, head);
    while before < after {
        let middle = before.midpoint(after);
        let page = store.read_all(middle, 1).await?;
        match page.events.first() {
            Some(next) if next.position <= after && next.recorded_at < time => {
                before = next.position;
            }
            Some(_) | None => after = middle,
        }
    }
    Ok(before + 1)
}
