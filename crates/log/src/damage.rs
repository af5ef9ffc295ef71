//! Damaged events: rows of the log that are not believed, or missing.
//!
//! A reader of the whole log steps over them ([`crate::Page::damaged`]), so that one flow does not stop all others. The
//! store keeps those that were met in a [`DamageRegister`]: named once in the server's log, shown by health, and read
//! again now and then, since a disk or a person may mend them.

use crate::{Error, EventStore};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::{FlowId, Position, Recorded, Version};

/// Damaged events that one page of the log names: a page with more ends behind them.
pub const PAGE_DAMAGED_MAX: usize = 1_000;
/// Damaged events that are kept in memory. Of those beyond, readers still step over each; they are counted only.
pub const REGISTERED_MAX: usize = 1_000;
/// Damaged events of one flow, one after the other, that a reader of the flow steps over; behind so many it ends.
const STEPPED_OVER_MAX: usize = 1_000;

/// An event of the log that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Where it is in the log. If a flow lacks a version, that of the flow's next event; that of its last one if none
    /// follows.
    pub position: Position,
    /// Its flow; `None` when the row is missing, or too damaged to show it.
    pub flow: Option<FlowId>,
    /// What is wrong with it, in words for people.
    pub reason: Arc<str>,
}

impl Damaged {
    /// A row that is not there, between two that are.
    pub(crate) fn missing(position: Position) -> Self {
        Self {
            position,
            flow: None,
            reason: Arc::from("the row is missing"),
        }
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.flow {
            Some(flow) => write!(f, "flow `{flow}` at position {}", self.position),
            None => write!(f, "position {}", self.position),
        }
    }
}

impl From<&Damaged> for Error {
    fn from(damaged: &Damaged) -> Self {
        Self::Corrupt {
            position: damaged.position,
            flow: damaged.flow,
            reason: damaged.reason.to_string(),
        }
    }
}

/// The damaged events that readers of a log have met since it was opened.
#[derive(Debug, Default)]
pub struct DamageRegister(Mutex<Registered>);

#[derive(Debug, Default)]
struct Registered {
    by_position: BTreeMap<Position, Damaged>,
    /// Whether more were met than are kept.
    is_full: bool,
}

impl DamageRegister {
    /// Registers a damaged event. The first one of its flow is named in the server's log. Cost: O(registered events).
    pub fn add(&self, damaged: &Damaged) {
        let mut registered = self.lock();
        if registered.by_position.contains_key(&damaged.position) {
            return;
        }
        if registered.by_position.len() >= REGISTERED_MAX {
            if !registered.is_full {
                registered.is_full = true;
                tracing::warn!(
                    position = damaged.position,
                    "more than {REGISTERED_MAX} events of the log are damaged: the others are stepped over and not named"
                );
            }
            return;
        }
        let is_named = damaged.flow.is_some()
            && registered
                .by_position
                .values()
                .any(|it| it.flow == damaged.flow);
        if !is_named {
            tracing::warn!(
                position = damaged.position,
                flow.id = damaged.flow.map(tracing::field::display),
                reason = %damaged.reason,
                "an event of the log is damaged: readers of the log step over it (see `taskledger events verify`)"
            );
        }
        registered
            .by_position
            .insert(damaged.position, damaged.clone());
    }

    /// Registers what a read of a flow met, if that is damage at a known position.
    pub(crate) fn add_error(&self, error: &Error) {
        if let Error::Corrupt {
            position,
            flow,
            reason,
        } = error
            && *position > 0
            && flow.is_some()
        {
            self.add(&Damaged {
                position: *position,
                flow: *flow,
                reason: Arc::from(reason.as_str()),
            });
        }
    }

    /// Forgets an event that can be read again.
    pub fn remove(&self, position: Position) {
        let mut registered = self.lock();
        if registered.by_position.remove(&position).is_some() {
            registered.is_full = false;
        }
    }

    /// The damaged events, by position, up to [`REGISTERED_MAX`].
    #[must_use]
    pub fn list(&self) -> Vec<Damaged> {
        self.lock().by_position.values().cloned().collect()
    }

    /// Whether more were met than [`Self::list`] shows.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.lock().is_full
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a damaged event can be read again. So must the one before it in its flow: where a flow lacks a version, the
/// next event is the one that is registered. Cost: two events.
///
/// # Errors
/// Those of [`EventStore::read_all`] and [`EventStore::read_stream_back`], but no damage.
pub async fn is_mended(store: &dyn EventStore, damaged: &Damaged) -> Result<bool, Error> {
    let page = store
        .read_all(damaged.position.saturating_sub(1), 1)
        .await?;
    let event = page.events.first();
    let Some(event) = event.filter(|event| event.position == damaged.position) else {
        return Ok(false);
    };
    let before = store.read_stream_back(event.flow, event.version, 1, usize::MAX);
    match before.await {
        Ok(_) => Ok(true),
        // Damage at another position is registered by itself.
        Err(Error::Corrupt { position, .. }) => Ok(position != damaged.position),
        Err(error) => Err(error),
    }
}

/// As [`EventStore::read_stream`], for readers that only observe a flow: damaged events are stepped over. Empty when
/// nothing that can be read follows. Whoever decides by what a flow is must not read it like this.
/// Cost: O(events returned), and a read for each damaged event.
///
/// # Errors
/// Those of [`EventStore::read_stream`], but no damage of single events.
pub async fn read_stream_over(
    store: &dyn EventStore,
    stream: FlowId,
    after: Version,
    limit: usize,
    bytes_max: usize,
) -> Result<Vec<Arc<Recorded>>, Error> {
    let mut after = after;
    let mut end = None;
    for _ in 0..STEPPED_OVER_MAX {
        match store.read_stream(stream, after, limit, bytes_max).await {
            Err(Error::Corrupt { .. }) => {}
            read => return read,
        }
        let last = match end {
            Some(last) => last,
            None => store
                .stream_head(stream)
                .await?
                .map_or(0, |(version, _)| version),
        };
        end = Some(last);
        after += 1;
        if after >= last {
            break;
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn damaged(position: Position, flow: Option<u128>) -> Damaged {
        Damaged {
            position,
            flow: flow.map(|n| FlowId(Uuid::from_u128(n))),
            reason: Arc::from("the checksum does not agree"),
        }
    }

    #[test]
    fn the_register_is_bounded_and_takes_events_again_when_one_was_mended() {
        let register = DamageRegister::default();
        for position in 1..=REGISTERED_MAX as u64 + 1 {
            register.add(&damaged(position, Some(1)));
        }
        assert_eq!(register.list().len(), REGISTERED_MAX);
        assert!(register.is_full());
        register.remove(1);
        assert!(!register.is_full());
        register.add(&damaged(9_999, None));
        assert_eq!(register.list().last().map(|it| it.position), Some(9_999));
    }

    #[test]
    fn an_event_is_registered_once() {
        let register = DamageRegister::default();
        register.add(&damaged(7, Some(1)));
        register.add(&damaged(7, Some(1)));
        register.add_error(&Error::from(&damaged(7, Some(1))));
        register.add_error(&Error::from(&damaged(0, Some(1))));
        assert_eq!(register.list(), [damaged(7, Some(1))]);
    }
}
