//! Quotas on the flows of one user: open flows and waiting tasks, counted from rows.
//!
//! A count is taken once a second for each owner that adds something, and what was added since is added to it.
//! So a quota is overshot at most by what rows do not show yet when they are counted (a tenth of a second's calls,
//! unless the server is behind), and by what other nodes took in the same second.

use super::Quota;
use crate::application::begins::Begins;
use crate::application::context::Context;
use crate::application::error::Error;
use crate::application::readings::failed;
use crate::clock::SharedClock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_auth::Reach;
use taskledger_domain::Timestamp;
use taskledger_domain::flow::Command;
use taskledger_projections::ReadModels;

/// Milliseconds for which a count is good enough to say yes.
const COUNT_LASTS_MS: i64 = 1000;
/// Milliseconds for which a count is good enough to say no: what has ended since makes room.
const REFUSAL_LASTS_MS: i64 = 100;
/// Owners whose counts are remembered; older counts are dropped first.
const OWNERS_MAX: usize = 16_384;

/// The quotas of a user; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaOptions {
    /// Flows whose root has not ended.
    pub open_flows: Option<NonZeroU32>,
    /// Pending tasks.
    pub waiting_tasks: Option<NonZeroU32>,
    /// Webhook endpoints that exist.
    pub webhooks: Option<NonZeroU32>,
    /// Streams of notices.
    pub streams: Option<NonZeroU32>,
    /// Callbacks of runs that go on.
    pub callbacks: Option<NonZeroU32>,
    /// Claims that wait for a task.
    pub waiting_claims: Option<NonZeroU32>,
}

impl Default for QuotaOptions {
    fn default() -> Self {
        Self {
            open_flows: NonZeroU32::new(10_000),
            waiting_tasks: NonZeroU32::new(100_000),
            webhooks: NonZeroU32::new(20),
            streams: NonZeroU32::new(100),
            callbacks: NonZeroU32::new(1_000),
            waiting_claims: NonZeroU32::new(2_000),
        }
    }
}

/// The use that an owner's flows make of quotas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InUse {
    /// Flows whose root has not ended.
    pub open_flows: u64,
    /// Pending tasks.
    pub waiting_tasks: u64,
}

impl InUse {
    /// What a command adds; `None` for one that adds nothing.
    fn added_by(command: &Command, begins: Begins) -> Option<Self> {
        let tasks = match command {
            Command::Create(tasks) => tasks.len(),
            // What is run again is known in the turn of the flow: `requeue`.
            Command::Execute(execute) => execute.create.len(),
            Command::Update(_)
            | Command::Delete { .. }
            | Command::Cancel { .. }
            | Command::CancelRun(_)
            | Command::Receive(_)
            | Command::Complete { .. }
            | Command::Fail { .. }
            | Command::FailBreached { .. }
            | Command::Report { .. }
            | Command::Append(_)
            | Command::Remarked { .. }
            | Command::RejectCompletion { .. }
            | Command::RejectClaim { .. }
            | Command::Suspend(_)
            | Command::Respond(_)
            | Command::Claim(_)
            | Command::Release { .. }
            | Command::EndLease { .. }
            | Command::Recover { .. }
            | Command::Wake
            | Command::Archive(_) => return None,
        };
        let open_flows = match begins {
            Begins::Minted | Begins::Chosen | Begins::Contested => 1,
            Begins::No => 0,
        };
        Some(Self {
            open_flows,
            waiting_tasks: tasks as u64,
        })
    }

    fn plus(self, more: Self) -> Self {
        Self {
            open_flows: self.open_flows + more.open_flows,
            waiting_tasks: self.waiting_tasks + more.waiting_tasks,
        }
    }
}

/// Counts what is in use.
pub trait Usage: Send + Sync + fmt::Debug {
    /// What the flows of this owner take up. Cost: O(1).
    ///
    /// # Errors
    /// [`Error`]: the rows cannot be read.
    fn of<'a>(&'a self, owner: &'a Arc<str>) -> BoxFuture<'a, Result<InUse, Error>>;
}

impl Usage for ReadModels {
    fn of<'a>(&'a self, owner: &'a Arc<str>) -> BoxFuture<'a, Result<InUse, Error>> {
        async move {
            let in_use = self.usage_of(owner).await.map_err(failed)?;
            Ok(InUse {
                open_flows: in_use.open_flows,
                waiting_tasks: in_use.waiting_tasks,
            })
        }
        .boxed()
    }
}

/// The quotas and their use, by user.
#[derive(Debug)]
pub struct Quotas {
    options: QuotaOptions,
    usage: Arc<dyn Usage>,
    clock: SharedClock,
    counts: Mutex<HashMap<Arc<str>, Count>>,
}

/// What is in use, as it was counted, with what was added since.
#[derive(Debug, Clone, Copy)]
struct Count {
    at: Timestamp,
    in_use: InUse,
}

impl Quotas {
    /// Nothing is counted yet.
    #[must_use]
    pub fn new(options: QuotaOptions, usage: Arc<dyn Usage>, clock: SharedClock) -> Self {
        Self {
            options,
            usage,
            clock,
            counts: Mutex::default(),
        }
    }

    /// Whether the caller may have one webhook more than these.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub(super) fn one_more_webhook(&self, context: &Context, used: u64) -> Result<(), Error> {
        match context.caller.reach() {
            Reach::All => Ok(()),
            Reach::Of(_) => exceeded(Quota::Webhooks, self.options.webhooks, used, 1),
        }
    }

    pub(super) fn callbacks_max(&self, context: &Context) -> Option<NonZeroU32> {
        match context.caller.reach() {
            Reach::All => None,
            Reach::Of(_) => self.options.callbacks,
        }
    }

    pub(super) fn one_more_callback(&self, context: &Context, used: u64) -> Result<(), Error> {
        exceeded(Quota::Callbacks, self.callbacks_max(context), used, 1)
    }

    /// Whether the owner of a flow may have so many more pending tasks, which are counted then. By the count that
    /// [`Self::admit`] took when the command was sent: nothing waits in the turn of a flow. Cost: O(1).
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub(in crate::application) fn requeue(
        &self,
        owner: &Arc<str>,
        tasks: u64,
    ) -> Result<(), Error> {
        let added = InUse {
            open_flows: 0,
            waiting_tasks: tasks,
        };
        let mut counts = self.lock();
        let Some(count) = counts.get_mut(owner) else {
            // Dropped in favour of later ones meanwhile.
            return Ok(());
        };
        self.fits(count.in_use, added)?;
        count.in_use = count.in_use.plus(added);
        Ok(())
    }

    /// Whether what the command adds is within the quotas of its caller. Cost: O(1), and once a second for each
    /// caller a query.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub(in crate::application) async fn admit(
        &self,
        context: &Context,
        command: &Command,
        begins: Begins,
    ) -> Result<(), Error> {
        match (InUse::added_by(command, begins), context.caller.reach()) {
            (Some(added), Reach::Of(owner)) => self.take(&owner, added).await,
            (Some(_), Reach::All) | (None, _) => Ok(()),
        }
    }

    /// Adds to what the owner uses.
    async fn take(&self, owner: &Arc<str>, added: InUse) -> Result<(), Error> {
        if self.options.open_flows.is_none() && self.options.waiting_tasks.is_none() {
            return Ok(());
        }
        let known = self.lock().get(owner).copied();
        let known = match known {
            Some(known) if self.lasts(known, added) => known.in_use,
            known => self.count(owner, known).await,
        };
        self.fits(known, added)?;
        if let Some(count) = self.lock().get_mut(owner) {
            count.in_use = count.in_use.plus(added);
        }
        Ok(())
    }

    fn lasts(&self, count: Count, added: InUse) -> bool {
        let age_ms = (self.clock.now().0 - count.at.0) / 1000;
        let lasts_ms = match self.fits(count.in_use, added) {
            Ok(()) => COUNT_LASTS_MS,
            Err(_) => REFUSAL_LASTS_MS,
        };
        age_ms < lasts_ms
    }

    fn fits(&self, in_use: InUse, added: InUse) -> Result<(), Error> {
        let flows = (self.options.open_flows, in_use.open_flows, added.open_flows);
        exceeded(Quota::OpenFlows, flows.0, flows.1, flows.2)?;
        let tasks = (
            self.options.waiting_tasks,
            in_use.waiting_tasks,
            added.waiting_tasks,
        );
        exceeded(Quota::WaitingTasks, tasks.0, tasks.1, tasks.2)
    }

    /// Counts anew. Others go by the former count meanwhile, so that one asks at a time. When the rows cannot be
    /// read the former count stays: commands do not depend on read models.
    async fn count(&self, owner: &Arc<str>, former: Option<Count>) -> InUse {
        let at = self.clock.now();
        let former = former.map_or_else(InUse::default, |count| count.in_use);
        self.put(owner, Count { at, in_use: former });
        match Box::pin(self.usage.of(owner)).await {
            Ok(in_use) => {
                self.put(owner, Count { at, in_use });
                in_use
            }
            Err(error) => {
                tracing::warn!(%error, "quotas are checked against an old count");
                former
            }
        }
    }

    fn put(&self, owner: &Arc<str>, count: Count) {
        let mut counts = self.lock();
        if counts.len() >= OWNERS_MAX && !counts.contains_key(owner) {
            let lasts = |other: &Count| (count.at.0 - other.at.0) / 1000 < COUNT_LASTS_MS;
            counts.retain(|_, other| lasts(other));
            if counts.len() >= OWNERS_MAX {
                counts.clear();
            }
        }
        counts.insert(owner.clone(), count);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn exceeded(quota: Quota, limit: Option<NonZeroU32>, used: u64, added: u64) -> Result<(), Error> {
    match limit {
        Some(limit) if added > 0 && used + added > u64::from(limit.get()) => {
            Err(Error::QuotaExceeded {
                quota,
                limit: limit.get().into(),
                used,
                requested: added,
            })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
