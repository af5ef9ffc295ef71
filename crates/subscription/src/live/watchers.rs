//! The watchers of some events, and what each of them receives.

use super::CHUNK_BYTES_MAX;
use super::published::{Chunk, Published};
use super::tail::Tail;
use crate::cursor::Cursor;
use crate::descriptions::Descriptions;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::{FlowId, Recorded};

/// What a tail gets; `None`: its readers find it in the log.
pub(super) type News = (Arc<Tail>, Option<Vec<Arc<Chunk>>>);

/// The watchers of some events.
pub(super) struct Watchers {
    pub(super) generation: u64,
    /// Whether one of them needs to know whose flows are whose. Who comes later asks the log, which has
    /// these events.
    pub(super) by_user: bool,
    pub(super) all: Option<Arc<Tail>>,
    pub(super) flows: HashMap<FlowId, Arc<Tail>>,
}

impl Watchers {
    /// Whether somebody watches a flow, or all.
    pub(super) fn takes(&self, flow: FlowId) -> bool {
        self.all.is_some() || self.flows.contains_key(&flow)
    }

    /// Chunks for each tail that is watched; `None`: something of it cannot be described yet, so its readers find
    /// it in the log. Cost: O(bytes of watched events).
    pub(super) fn chunks(
        &self,
        events: &[Arc<Recorded>],
        end: Cursor,
        descriptions: &Descriptions,
    ) -> Vec<News> {
        let mut of_all = Some(Vec::new());
        let mut of_flows: HashMap<FlowId, Option<Vec<Arc<Published>>>> = HashMap::new();
        for event in events.iter().filter(|event| self.takes(event.flow)) {
            let mut of_flow = self.flows.contains_key(&event.flow).then(|| {
                of_flows
                    .entry(event.flow)
                    .or_insert_with(|| Some(Vec::new()))
            });
            let Some(notices) = descriptions.known_notices(event) else {
                of_all = None;
                if let Some(of_flow) = of_flow {
                    *of_flow = None;
                }
                continue;
            };
            for published in Published::all(event, notices) {
                if let Some(Some(of_flow)) = &mut of_flow {
                    of_flow.push(published.clone());
                }
                if let Some(of_all) = &mut of_all {
                    of_all.push(published);
                }
            }
        }
        let mut news = Vec::new();
        if let Some(tail) = &self.all {
            news.push((tail.clone(), of_all.map(|notices| chunks(notices, end))));
        }
        for (flow, notices) in of_flows {
            // What makes no notice moves nobody's place.
            if let Some(tail) = self.flows.get(&flow)
                && notices.as_ref().is_none_or(|notices| !notices.is_empty())
            {
                let chunks = notices.map(|notices| {
                    let end = notices.last().map_or(end, |published| published.cursor);
                    chunks(notices, end)
                });
                news.push((tail.clone(), chunks));
            }
        }
        news
    }
}

/// At least one chunk, so that those who wait for other things know how far the log is.
fn chunks(notices: Vec<Arc<Published>>, end: Cursor) -> Vec<Arc<Chunk>> {
    let mut all = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    for published in notices {
        let weight = published.notice.weight();
        if bytes > 0 && bytes + weight > CHUNK_BYTES_MAX {
            let behind = part.last().map_or(end, |last: &Arc<Published>| last.cursor);
            all.push(Arc::new(Chunk::of(std::mem::take(&mut part), behind)));
            bytes = 0;
        }
        bytes += weight;
        part.push(published);
    }
    all.push(Arc::new(Chunk::of(part, end)));
    all
}
