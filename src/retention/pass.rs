//! One retention pass: it drops what an earlier pass left, then copies, ends and drops flows that are old enough, file
//! by file.

use super::batch::{Batch, Filed};
use super::{Pace, Policy, Retention};
use crate::application::ownership::Place;
use crate::application::{self as app, Failure};
use crate::store;
use crate::store::retention::{DROP_EVENTS_MAX, Undropped};
use futures_util::StreamExt;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Action, Entry};
use taskledger_domain::flow::{Archive, FlowArchived, Rest};
use taskledger_domain::{FlowId, Position, Timestamp};
use taskledger_projections as projections;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Flows that one question to the read models looks at: a few milliseconds.
const LOOKED_AT: u32 = 2_000;
/// Flows that are ended at once: their appends share a sync.
const ENDED_AT_ONCE: usize = 16;
/// Archived streams that are asked for at once.
const UNDROPPED_AT_ONCE: usize = 500;
/// How long others get to see the end of a flow before its events go. Else a later pass drops them.
const SEEN_WAIT: Duration = Duration::from_secs(30);
/// Pause between two questions how far they are.
const SEEN_PAUSE: Duration = Duration::from_millis(100);
/// A gentle pause is as long as its transaction took, this many times: the writer is then ours for a
/// fifth of the time at most.
const GENTLE_TIMES: u32 = 4;
/// And never shorter.
const GENTLE_PAUSE_MIN: Duration = Duration::from_millis(5);

/// The result of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Done {
    /// Flows that were archived, or would be.
    pub flows: u64,
    /// Events of these flows.
    pub events: u64,
    /// Files that were written.
    pub files: Vec<String>,
    /// Events that were dropped, those of earlier passes included.
    pub dropped_events: u64,
    /// Flows that changed while they were copied, and stay.
    pub changed_flows: u64,
    /// Archived flows whose events stay until the next pass, because somebody who follows the log
    /// has not come so far.
    pub undropped_flows: u64,
    /// Flows that could not be read, ended or dropped, and stay as they are; the server's log says
    /// why. They do not keep others from being archived.
    pub failed_flows: u64,
}

impl Done {
    /// Goes on without a flow if `error` is a matter of that flow alone.
    fn without(&mut self, flow: FlowId, error: Error) -> Result<(), Error> {
        let alone = match &error {
            Error::Store(store::Error::Corrupt { .. } | store::Error::Invalid(_)) => true,
            Error::Flow(app::Error::Failed(Failure::Store(store::Error::Unavailable(_)))) => false,
            Error::Flow(_) => true,
            Error::Store(store::Error::Unavailable(_) | store::Error::NotWritable(_))
            | Error::ReadModels(_)
            | Error::Audit(_)
            | Error::Archive { .. } => false,
        };
        if !alone {
            return Err(error);
        }
        tracing::error!(flow.id = %flow, error = %error, "a flow was not archived; the others are");
        self.failed_flows += 1;
        Ok(())
    }
}

/// Why a pass ended early. What is done is done; the next pass goes on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The read models could not be read.
    #[error("the read models cannot be read")]
    ReadModels(#[from] projections::Error),
    /// The archive's folder.
    #[error("cannot write to the archive `{folder}`: {source}")]
    Archive {
        /// Path of the archive.
        folder: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// What is about to leave the log cannot be written into the audit log, so nothing leaves.
    #[error("the audit log cannot be written: {0}")]
    Audit(#[from] taskledger_auth::store::Error),
    /// A flow could not be ended.
    #[error("a flow was not archived: {0}")]
    Flow(#[from] app::Error),
}

impl Retention {
    /// Archives what `policy` says, until `stop`. Cost: O(flows + events of those that are
    /// archived).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn pass(&self, policy: &Policy, stop: &CancellationToken) -> Result<Done, Error> {
        let mut done = Done::default();
        self.drop_what_was_left(policy, stop, &mut done).await?;
        let mut batch = Batch::new(policy.archive.clone(), self.clock.clone());
        let upto = self.last_before(policy.age, stop).await?;
        let mut after = 0;
        loop {
            let (flows, next) = self.candidates(policy, after, upto).await?;
            for flow in flows {
                if stop.is_cancelled() {
                    return Ok(done);
                }
                match batch.add(&*self.store, flow, upto).await {
                    Ok(Some(filed)) => self.end(policy, filed, stop, &mut done).await?,
                    Ok(None) => {}
                    Err(error) => done.without(flow, error)?,
                }
                if batch.is_full()
                    && let Some(filed) = batch.file().await?
                {
                    self.end(policy, filed, stop, &mut done).await?;
                }
            }
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        if let Some(filed) = batch.file().await? {
            self.end(policy, filed, stop, &mut done).await?;
        }
        Ok(done)
    }

    /// What [`Self::pass`] would archive; nothing is changed. Cost: O(flows).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn dry_run(&self, policy: &Policy) -> Result<Done, Error> {
        let mut done = Done::default();
        let stop = CancellationToken::new();
        let upto = self.last_before(policy.age, &stop).await?;
        let mut after = 0;
        loop {
            let (flows, next) = self.candidates(policy, after, upto).await?;
            for flow in flows {
                let end = self.store.stream_head(flow).await?;
                done.flows += 1;
                done.events += end.map_or(0, |(version, _)| version);
            }
            match next {
                Some(next) => after = next,
                None => return Ok(done),
            }
        }
    }

    /// Position of the last event that the log took longer ago than `age`; the read models show it, if
    /// they come so far in time. Cost: O(log events of the log) looks.
    async fn last_before(
        &self,
        age: Duration,
        stop: &CancellationToken,
    ) -> Result<Position, Error> {
        let micros = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        let before = Timestamp(self.clock.now().0.saturating_sub(micros));
        let (mut low, mut high) = (0, self.store.head().await?);
        // Times in the log never run backwards.
        while low < high {
            let middle = low + (high - low) / 2;
            let page = self.store.read_all(middle, 1).await?;
            match page.events.first() {
                Some(event) if event.recorded_at <= before => low = middle + 1,
                Some(_) | None => high = middle,
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            // What they do not show is for a later pass.
            _ = self.projections.wait_for(low, SEEN_WAIT) => {}
        }
        Ok(low)
    }

    /// Flows of ours that may be old enough, behind `after`, and where to go on.
    async fn candidates(
        &self,
        policy: &Policy,
        after: Position,
        upto: Position,
    ) -> Result<(Vec<FlowId>, Option<Position>), Error> {
        let (flows, next) = self.queries.at_rest(after, upto, LOOKED_AT).await?;
        let wanted = |open: u32| match policy.rest {
            Rest::Finished => open == 0,
            Rest::Idle => true,
        };
        let flows = flows
            .into_iter()
            .filter(|flow| wanted(flow.open_tasks) && self.is_ours(flow.flow_id));
        Ok((flows.map(|flow| flow.flow_id).collect(), next))
    }

    fn is_ours(&self, flow: FlowId) -> bool {
        matches!(self.flows.ownership().of(flow), Place::Here(_))
    }

    /// Ends the flows of a file in the log, then drops them from it.
    async fn end(
        &self,
        policy: &Policy,
        filed: Filed,
        stop: &CancellationToken,
        done: &mut Done,
    ) -> Result<(), Error> {
        let Filed { file, flows } = filed;
        if let Some(audit) = &self.audit {
            let object = Arc::from(file.name.as_str());
            let entry = Entry::done(self.by.clone(), Action::Retention, Some(object));
            let detail = serde_json::json!({"flows": flows.len()});
            audit.record(&entry.with(detail)).await?;
        }
        done.files.push(file.name.clone());
        let mut ended = Vec::new();
        let orders = flows.into_iter().map(|copied| {
            let archive = Archive {
                version: copied.version,
                rest: policy.rest,
                copy: FlowArchived {
                    file: file.name.clone(),
                    sha256: file.sha256.clone(),
                    events: copied.version,
                    runs: copied.runs,
                    owner: None, // the flow says it
                },
            };
            async move {
                let answer = self.flows.archive(copied.flow, archive).await;
                (copied.flow, copied.version, answer)
            }
        });
        let mut orders = futures_util::stream::iter(orders).buffer_unordered(ENDED_AT_ONCE);
        let mut failed = Ok(());
        while let Some((flow, events, answer)) = orders.next().await {
            match answer {
                Ok(end) => {
                    done.flows += 1;
                    done.events += events;
                    ended.push((flow, end));
                }
                // It has changed, or went to another node: it stays.
                Err(app::Error::Refused(_) | app::Error::Elsewhere(_)) => done.changed_flows += 1,
                Err(app::Error::Failed(Failure::Store(error))) => {
                    failed = failed.and(done.without(flow, error.into()));
                }
                Err(error) => failed = failed.and(done.without(flow, Error::Flow(error))),
            }
        }
        self.drop_all(policy, ended, stop, done).await?;
        failed
    }

    /// Flows whose end is in the log, but not only that: a crash, or somebody who was late.
    async fn drop_what_was_left(
        &self,
        policy: &Policy,
        stop: &CancellationToken,
        done: &mut Done,
    ) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let left = self.store.undropped(after, UNDROPPED_AT_ONCE).await?;
            let Some(last) = left.last() else {
                return Ok(());
            };
            after = last.number;
            let ours = left.iter().filter(|left| self.is_ours(left.flow));
            let ours = ours.map(|&Undropped { flow, end, .. }| (flow, end));
            self.drop_all(policy, ours.collect(), stop, done).await?;
        }
    }

    /// Drops what was ended at these positions, once everybody has seen that.
    async fn drop_all(
        &self,
        policy: &Policy,
        ended: Vec<(FlowId, Position)>,
        stop: &CancellationToken,
        done: &mut Done,
    ) -> Result<(), Error> {
        let Some(end) = ended.iter().map(|(_, end)| *end).max() else {
            return Ok(());
        };
        if !self.is_seen(end, stop).await {
            done.undropped_flows += ended.len() as u64;
            return Ok(());
        }
        let before = self.store.dropped().await?.events;
        for (flow, _) in ended {
            let dropped = self.drop_one(policy, flow, stop).await;
            // Also when it was dropped in part: ids whose claims went with that are free.
            (self.forget)(&HashSet::from([flow]));
            dropped.or_else(|error| done.without(flow, error))?;
        }
        done.dropped_events += self.store.dropped().await?.events.saturating_sub(before);
        Ok(())
    }

    async fn drop_one(
        &self,
        policy: &Policy,
        flow: FlowId,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let mut left = u64::MAX;
        while left > 0 && !stop.is_cancelled() {
            let began = Instant::now();
            left = self.store.drop_archived(flow, DROP_EVENTS_MAX).await?;
            if policy.pace == Pace::Gentle {
                sleep((began.elapsed() * GENTLE_TIMES).max(GENTLE_PAUSE_MIN)).await;
            }
        }
        Ok(())
    }

    /// Waits until all who follow the log have come to `end`; false when they do not in time.
    async fn is_seen(&self, end: Position, stop: &CancellationToken) -> bool {
        let until = Instant::now() + SEEN_WAIT;
        let seen = tokio::select! {
            () = stop.cancelled() => return false,
            seen = self.projections.wait_for(end, SEEN_WAIT) => seen,
        };
        if let Err(lagging) = seen {
            tracing::warn!(%lagging, "archived flows stay in the log for now");
            return false;
        }
        loop {
            let reason = match self.follower.position().await {
                Ok(position) if position >= end => return true,
                Ok(position) => format!(
                    "the outbox of the webhooks or the inboxes of the broker are at position {position}"
                ),
                Err(unknown) => unknown.to_string(),
            };
            if Instant::now() >= until || stop.is_cancelled() {
                tracing::warn!(reason, "archived flows stay in the log for now");
                return false;
            }
            sleep(SEEN_PAUSE).await;
        }
    }
}
