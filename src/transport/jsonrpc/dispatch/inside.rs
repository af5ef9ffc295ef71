//! Answers calls from inside the process.

use super::{Budget, Dispatcher, Entrance, Envelope};
use crate::application::Context;
use crate::subscription::stream::Notices;
use crate::transport::jsonrpc::encode::{self, Body};
use crate::transport::jsonrpc::envelope;

impl<C: Send + Sync + 'static> Dispatcher<C> {
    /// Reads and answers a body, whole. `None`: there is nothing to answer. For callers inside the
    /// process, who take no long answers.
    pub async fn answer_bytes(&self, body: &[u8], context: Context) -> Option<Vec<u8>> {
        let (mut buffer, mut share) = (Vec::new(), Budget::unlimited().share_of_all());
        let (max, entrance) = (self.answer_bytes_max, Entrance::Process);
        match envelope::parse(body) {
            Envelope::Refused(error) => return Some(self.refusal(&error, entrance)),
            Envelope::Single(element) => {
                self.append(element, &context, entrance, max, &mut share, &mut buffer)
                    .await;
            }
            Envelope::Batch(elements) => {
                self.batch(elements, &context, entrance, max, &mut share, &mut buffer)
                    .await;
            }
        }
        (!buffer.is_empty()).then_some(buffer)
    }

    /// Reads and answers a body for a caller inside the process, who may have asked for a stream: it comes beside the
    /// answer. `None`: there is nothing to answer.
    pub(crate) async fn answer_told(
        &self,
        body: &[u8],
        context: Context,
    ) -> Option<(Vec<u8>, Option<Notices>)> {
        let (envelope, max) = (envelope::parse(body), self.answer_bytes_max);
        let mut share = Budget::unlimited().share_of_all();
        let answered = self.answer_within(envelope, context, Entrance::Process, max, &mut share);
        Some(match answered.await?.body {
            Body::Whole(answer) | Body::Limited(answer, _) => (answer, None),
            Body::Stream { id, streamed } => {
                let answer = encode::first(&id, &streamed.result);
                (answer, Some(streamed.stream))
            }
            Body::Long { .. } => unreachable!("what begins a run has a short result"),
        })
    }
}
