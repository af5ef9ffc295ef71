//! Progress as agents send it, for the streams of this node: every message, while the log has the newest of each
//! second.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::{Payload, TaskId};
use taskledger_eventbus::TaskProgress;
use tokio::sync::broadcast;

/// Messages of all tasks that wait for one stream; of more the oldest are dropped.
const WAITING_MAX: usize = 1024;

/// Tells messages of one task apart, whether they were sent or recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Content(u64);

impl Content {
    /// `percent`: 0 to 100.
    pub(super) fn of(percent: u32, message: &str, data: Option<&Payload>) -> Self {
        let mut hasher = DefaultHasher::new();
        (percent, message, data.map(Payload::as_str)).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A message of progress.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) task: TaskId,
    pub(super) content: Content,
    /// As the agent sent it.
    pub(super) progress: TaskProgress,
}

/// Hands messages of progress to streams.
#[derive(Debug)]
pub(super) struct Live {
    reports: broadcast::Sender<Arc<Report>>,
    /// Messages that are being recorded and will be handed on; each call has at most one.
    under_way: Mutex<HashMap<(TaskId, Content), u32>>,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            reports: broadcast::Sender::new(WAITING_MAX),
            under_way: Mutex::default(),
        }
    }
}

impl Live {
    /// The messages from now on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Arc<Report>> {
        self.reports.subscribe()
    }

    /// Announces a message that is about to be recorded; `None`: no stream listens.
    pub(super) fn begin(&self, report: Report) -> Option<UnderWay<'_>> {
        if self.reports.receiver_count() == 0 {
            return None;
        }
        let key = (report.task, report.content);
        *self.under_way().entry(key).or_default() += 1;
        Some(UnderWay {
            live: self,
            report: Some(report),
            key,
        })
    }

    /// Whether such a message is being recorded: then it is handed on, and a record of it need not be.
    pub(super) fn is_under_way(&self, task: TaskId, content: Content) -> bool {
        self.under_way().contains_key(&(task, content))
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<(TaskId, Content), u32>> {
        // Counts stay right whatever panics: a guard takes back what it has added.
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message that is being recorded.
#[derive(Debug)]
pub(super) struct UnderWay<'l> {
    live: &'l Live,
    report: Option<Report>,
    key: (TaskId, Content),
}

impl UnderWay<'_> {
    /// The agent holds the task: streams get the message.
    pub(super) fn accepted(mut self) {
        if let Some(report) = self.report.take() {
            // Without streams there is nothing to do.
            let _ = self.live.reports.send(Arc::new(report));
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = self.live.under_way();
        if let Some(count) = under_way.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::testing::id;

    fn report(percent: u32) -> Report {
        Report {
            task: id("t"),
            content: Content::of(percent, "", None),
            progress: TaskProgress::default(),
        }
    }

    #[test]
    fn a_message_is_under_way_until_it_was_accepted_or_refused() {
        let live = Live::default();
        assert!(live.begin(report(1)).is_none(), "no stream listens");
        let mut stream = live.listen();
        let (first, second) = (live.begin(report(1)), live.begin(report(1)));
        assert!(live.is_under_way(id("t"), report(1).content));
        assert!(!live.is_under_way(id("t"), report(2).content));
        drop(first);
        assert!(live.is_under_way(id("t"), report(1).content));
        second.expect("a stream listens").accepted();
        assert!(!live.is_under_way(id("t"), report(1).content));
        assert_eq!(
            stream.try_recv().map(|it| it.content),
            Ok(report(1).content)
        );
        assert!(
            stream.try_recv().is_err(),
            "the refused one is not handed on"
        );
    }

    #[test]
    fn a_slow_stream_gets_the_newest_messages() {
        let live = Live::default();
        let mut stream = live.listen();
        let sent = 2 * u32::try_from(WAITING_MAX).expect("it is small");
        for percent in 0..sent {
            live.begin(report(percent))
                .expect("a stream listens")
                .accepted();
        }
        assert!(stream.try_recv().is_err(), "it has missed some");
        let mut last = None;
        while let Ok(report) = stream.try_recv() {
            last = Some(report.content);
        }
        assert_eq!(last, Some(report(sent - 1).content));
    }
}
