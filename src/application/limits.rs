//! Limits for each caller: calls per second, and quotas on what its flows may take up.
//!
//! Calls are counted where they enter, so each node counts for itself and a call that travels is counted once. Quotas
//! are kept where a command is sent to its flow, behind the look for an idempotency key: a repetition adds nothing.
//! Nothing here concerns a caller while authentication is off, unless the operator says so.

mod places;
mod quota;
mod quotas;
mod rates;
mod recent;
mod refused;
mod turn;
mod turns;

pub use places::HeldPlace;
use places::Places;
pub use quota::Quota;
pub use quotas::{InUse, QuotaOptions, Quotas, Usage};
pub use rates::{BURST_DEFAULT, PER_SECOND_DEFAULT, RateOptions};

use super::api::Cost;
use super::authorize::UseCase;
use super::context::Context;
use super::error::Error;
use crate::clock::SharedClock;
use rates::Rates;
use refused::Refused;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Caller, Reach};
use tokio::time::Instant;
pub use turn::{EarlyTurn, Turn};
use turns::Turns;

/// Settings of [`Limits`].
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Calls a second.
    pub rates: RateOptions,
    /// What flows and streams may take up.
    pub quotas: QuotaOptions,
}

/// The limits of callers, and their use. One per server.
#[derive(Debug)]
pub struct Limits {
    rates: Rates,
    refused: Refused,
    quotas: Arc<Quotas>,
    streams: Arc<Places>,
    waiting_claims: Arc<Places>,
    turns: Turns,
}

impl Limits {
    /// Nothing is counted yet.
    #[must_use]
    pub fn new(options: &Options, usage: Arc<dyn Usage>, clock: SharedClock) -> Self {
        Self {
            rates: Rates::new(options.rates, clock.clone()),
            refused: Refused::new(clock.clone()),
            streams: Arc::new(Places::new(Quota::Streams, options.quotas.streams)),
            waiting_claims: Arc::new(Places::new(
                Quota::WaitingClaims,
                options.quotas.waiting_claims,
            )),
            quotas: Arc::new(Quotas::new(options.quotas, usage, clock)),
            turns: Turns::new(),
        }
    }

    /// What is kept where commands are sent to their flows.
    #[must_use]
    pub const fn quotas(&self) -> &Arc<Quotas> {
        &self.quotas
    }

    /// Counts a call. Cost: O(1).
    ///
    /// # Errors
    /// `RateLimited`: the caller has to wait.
    pub fn rate(&self, context: &Context, use_case: UseCase, tasks: usize) -> Result<(), Error> {
        self.take(context, use_case.cost(), tasks)
    }

    /// Counts a call that is free for the caller's own tasks, when it adds a row to the audit log because the task is
    /// somebody else's. Cost: O(1).
    ///
    /// # Errors
    /// `RateLimited`: the caller has to wait.
    pub(in crate::application) fn rate_audited(&self, context: &Context) -> Result<(), Error> {
        self.take(context, Cost::Write, 1)
    }

    fn take(&self, context: &Context, cost: Cost, tasks: usize) -> Result<(), Error> {
        self.turns.note(&context.caller);
        let taken = self.rates.take(&context.caller, cost, tasks);
        if let Err(error) = &taken {
            self.refused.count(&context.caller);
            if let Error::RateLimited { retry_after_ms } = error {
                let wait = Duration::from_millis(*retry_after_ms);
                self.turns.refused(&context.caller, tasks, wait);
            }
        }
        taken
    }

    /// How long the next call of a caller waits before it is read: not at all, unless many of its calls were refused a
    /// moment ago because there were too many. Cost: O(1).
    #[must_use]
    pub fn pause(&self, caller: &Caller) -> Option<Duration> {
        self.refused.pause(caller)
    }

    /// Waits until a call of so many bytes may be read beside others of its caller; `None` for one that needs no turn.
    /// Cost: O(1).
    ///
    /// # Errors
    /// `Busy`: the time of the call ended before its turn came; nothing was done.
    pub async fn turn_to_read(
        &self,
        caller: &Caller,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Option<Turn>, Error> {
        self.turns.to_read(caller, bytes, deadline).await
    }

    /// Waits until a call with so many tasks may begin beside others of its caller. Cost: O(1).
    ///
    /// # Errors
    /// `Busy`: the time of the call ended before its turn came; nothing was done.
    pub async fn turn(&self, context: &Context, tasks: usize) -> Result<Turn, Error> {
        self.turns.wait(context, tasks).await
    }

    /// Counts the tasks that a call makes beyond the first one, when nobody could know how many there are until it was
    /// under way; so on the node that carries it out. Cost: O(1).
    ///
    /// # Errors
    /// `RateLimited`: the caller has to wait.
    pub(in crate::application) fn further_tasks(
        &self,
        context: &Context,
        tasks: usize,
    ) -> Result<(), Error> {
        let further = tasks.saturating_sub(1);
        self.rates.take_further(&context.caller, further)
    }

    /// Whether the caller may have one webhook more than these.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub fn one_more_webhook(&self, context: &Context, used: u64) -> Result<(), Error> {
        self.quotas.one_more_webhook(context, used)
    }

    /// Callbacks of runs that one user may have; `None` for no limit, or one who acts for all users.
    #[must_use]
    pub fn callbacks_max(&self, context: &Context) -> Option<NonZeroU32> {
        self.quotas.callbacks_max(context)
    }

    /// Whether the caller may have one callback more than these.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub fn one_more_callback(&self, context: &Context, used: u64) -> Result<(), Error> {
        self.quotas.one_more_callback(context, used)
    }

    /// A place among the streams of the caller, which it keeps until this is dropped; `None` when nobody counts
    /// them.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub fn stream(&self, context: &Context) -> Result<Option<HeldPlace>, Error> {
        match context.caller.reach() {
            Reach::All => Ok(None),
            Reach::Of(owner) => self.streams.take(owner).map(Some),
        }
    }

    /// A place among the claims of the caller that wait, which it keeps until this is dropped; `None` when nobody
    /// counts them.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub fn waiting_claim(&self, context: &Context) -> Result<Option<HeldPlace>, Error> {
        match context.caller.reach() {
            Reach::All => Ok(None),
            Reach::Of(owner) => self.waiting_claims.take(owner).map(Some),
        }
    }
}
