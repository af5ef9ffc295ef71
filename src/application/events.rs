//! `events.query`: what happened in all flows that the caller sees, by time, actor, type, flow and task.
//!
//! Reads the log itself, so it shows every write that was answered before. A page reads a bounded number
//! of events, then gives what it has and a cursor; it may be empty although more follows. Times need no
//! index: those of recording rise with positions, so where a span begins and ends is found by bisection.

mod cursor;
mod places;

pub use cursor::Cursor;

use super::App;
use super::context::Context;
use super::error::Error;
use super::facts;
use super::history::{EventType, PAGE_BYTES_MAX, SCANNED_MAX};
use super::readings::failed;
use places::Places;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_auth::Reach;
use taskledger_domain::flow::{Argument, Refusal};
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, Recorded, TaskId, Timestamp};
use taskledger_projections::Order;

/// Flows whose owner one page looks up, for callers who see their own: about 0.1 s.
const FLOWS_LOOKED_MAX: usize = 1_000;

/// A filter for events. What is absent does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Recorded at this time or later.
    pub since: Option<Timestamp>,
    /// Recorded before this time.
    pub until: Option<Timestamp>,
    /// Caused by this principal.
    pub actor: Option<String>,
    /// Only events of these types.
    pub types: Option<Vec<EventType>>,
    /// Only events of this flow.
    pub flow: Option<FlowId>,
    /// About this task.
    pub task: Option<TaskId>,
    /// Entries of a page, at least 1.
    pub limit: usize,
    /// Oldest or newest first.
    pub order: Order,
    /// The cursor that the previous page printed; made with the same order, and with a flow if there is one now.
    pub cursor: Option<Cursor>,
}

impl Query {
    /// Whether it reads one flow, by versions, and not the log, by positions.
    #[must_use]
    pub const fn is_of_flow(&self) -> bool {
        self.flow.is_some() || self.task.is_some()
    }

    fn wants(&self, recorded: &Recorded) -> bool {
        let event = recorded.event.as_ref();
        let types = self.types.as_ref();
        self.actor
            .as_ref()
            .is_none_or(|actor| **actor == *recorded.metadata.actor)
            && types.is_none_or(|types| types.contains(&EventType::of(event)))
            && self.task.is_none_or(|task| event.task_id() == Some(task))
            && self.since.is_none_or(|since| recorded.recorded_at >= since)
            && self.until.is_none_or(|until| recorded.recorded_at < until)
    }
}

/// One page of events.
#[derive(Debug, Clone)]
pub struct Page {
    /// In the order that was asked for.
    pub events: Vec<Arc<Recorded>>,
    /// Where to go on, if more may follow.
    pub next: Option<Cursor>,
}

impl App {
    /// The events that match. Cost: O(events read), at most [`SCANNED_MAX`]; for callers who see their
    /// own flows only, a look at the owner of each flow in it besides.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a flow or a task that never existed, or is somebody else's.
    pub async fn events(&self, context: &Context, mut query: Query) -> Result<Page, Error> {
        query.flow = self.flow_of_query(context, &query).await?;
        let mut seen = self.seen(context).await?;
        let mut places = match query.flow {
            Some(flow) => Places::of_flow(&*self.store, flow).await?,
            None => Places::of_log(&*self.store, query.since, query.until).await?,
        };
        places.begin(query.order, query.cursor);
        let (mut events, mut bytes, mut budget) = (Vec::new(), 0, SCANNED_MAX);
        loop {
            let piece = places.next(&mut budget).await?;
            if piece.is_empty() {
                let next = (!places.are_done()).then(|| places.cursor());
                return Ok(Page { events, next });
            }
            for recorded in piece {
                let full = events.len() >= query.limit || bytes >= PAGE_BYTES_MAX;
                let more = || Some(places.cursor());
                if full || budget == 0 {
                    let next = more();
                    return Ok(Page { events, next });
                }
                budget -= 1;
                if query.wants(&recorded) {
                    match self.sees(&mut seen, recorded.flow).await? {
                        None => {
                            let next = more();
                            return Ok(Page { events, next });
                        }
                        Some(false) => {}
                        Some(true) => {
                            bytes += facts::bytes(&recorded.event);
                            events.push(recorded.clone());
                        }
                    }
                }
                places.pass(&recorded);
            }
        }
    }

    /// The flow that the query is about, which is the caller's.
    async fn flow_of_query(
        &self,
        context: &Context,
        query: &Query,
    ) -> Result<Option<FlowId>, Error> {
        if let Some(task) = query.task {
            let of = self.flow_of(Argument::Task, task).await?;
            self.is_owned(context, of, || Refusal::not_found(Argument::Task, task))
                .await?;
            if let Some(named) = query.flow.filter(|named| *named != of) {
                let expected = format!("the flow of the task, `{of}`, or none");
                let actual = named.to_string().into();
                let fault = Violation::of("flow", "not the task's flow", expected, &actual);
                return Err(Error::invalid(vec![fault]));
            }
            return Ok(Some(of));
        }
        if let Some(flow) = query.flow {
            if self.store.stream_head(flow).await?.is_none() {
                return Err(Refusal::FlowNotFound { flow }.into());
            }
            self.is_owned(context, flow, || Refusal::FlowNotFound { flow })
                .await?;
        }
        Ok(query.flow)
    }

    /// What the caller sees of the log as it is now.
    async fn seen(&self, context: &Context) -> Result<Seen, Error> {
        let reach = context.caller.reach();
        if reach != Reach::All {
            // Owners are read from the read models.
            self.await_position(self.store.head().await?).await?;
        }
        Ok(Seen {
            reach,
            flows: HashMap::new(),
        })
    }

    /// Whether the caller sees a flow; `None`: too many owners were looked up already. Cost: a look at the
    /// read models for the first event of each flow, nothing for callers who see all flows.
    async fn sees(&self, seen: &mut Seen, flow: FlowId) -> Result<Option<bool>, Error> {
        if seen.reach == Reach::All {
            return Ok(Some(true));
        }
        if let Some(known) = seen.flows.get(&flow) {
            return Ok(Some(*known));
        }
        if seen.flows.len() >= FLOWS_LOOKED_MAX {
            return Ok(None);
        }
        let owner = self.queries.owner_of(flow).await.map_err(failed)?;
        let covers = seen.reach.covers(owner.flatten().as_deref());
        seen.flows.insert(flow, covers);
        Ok(Some(covers))
    }
}

/// Flows that the caller is known to see, or not to see.
struct Seen {
    reach: Reach,
    flows: HashMap<FlowId, bool>,
}
