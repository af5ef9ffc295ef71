//! The calls of a batch, one after the other, and their answers in one body.

use super::{Dispatcher, Element, Entrance, Stands};
use crate::application::Context;
use crate::transport::budget::Share;
use crate::transport::jsonrpc::encode::{self, Appended};

impl<C: Send + Sync + 'static> Dispatcher<C> {
    /// Executes elements and appends their answers.
    pub(super) async fn batch(
        &self,
        elements: Vec<Element>,
        context: &Context,
        entrance: Entrance,
        max: usize,
        share: &mut Share,
        buffer: &mut Vec<u8>,
    ) -> Appended {
        let (mut limited, mut all_claimed) = (Some(0), Vec::new());
        for element in elements {
            let before = buffer.len();
            buffer.push(if before == 0 { b'[' } else { b',' });
            let start = buffer.len();
            let Appended { wait_ms, claimed } = self
                .append(element, context, entrance, max, share, buffer)
                .await;
            all_claimed.extend(claimed);
            if buffer.len() == start {
                buffer.truncate(before);
            } else {
                limited = limited
                    .zip(wait_ms)
                    .map(|(most, wait_ms)| most.max(wait_ms));
            }
        }
        if !buffer.is_empty() {
            buffer.push(b']');
        }
        Appended {
            wait_ms: limited,
            claimed: all_claimed,
        }
    }

    /// Executes one element and appends its answer, if it gets one.
    pub(super) async fn append(
        &self,
        element: Element,
        context: &Context,
        entrance: Entrance,
        max: usize,
        share: &mut Share,
        buffer: &mut Vec<u8>,
    ) -> Appended {
        let mut room = encode::Room {
            bytes_max: max,
            share,
            must_be_told: false,
        };
        match element {
            Element::Invalid { id, error, .. } => {
                self.count_invalid(&error, entrance);
                encode::answer(buffer, room, id.as_deref(), &Err(error));
                Appended::default()
            }
            Element::Request(request) => {
                room.must_be_told = self.changes(&request);
                let asked = self.request(*request, context, entrance, Stands::Among);
                let Some((id, mut outcome)) = asked.await else {
                    return Appended::default();
                };
                let claimed = encode::claimed(&mut outcome);
                let outcome = encode::whole_by(max, outcome, context.deadline).await;
                encode::answer(buffer, room, Some(&id), &outcome);
                let wait_ms = outcome.err().and_then(|error| error.rate_limited_ms());
                Appended { wait_ms, claimed }
            }
        }
    }
}
