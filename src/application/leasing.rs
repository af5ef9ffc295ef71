//! What workers outside the server may do with tasks, and what becomes of those that fall silent: claims,
//! renewals, outcomes, ends of leases. The only way in is a command, decided in the flow's turn.

use super::error::{Error, Failure};
use super::facts;
use super::flows::Flows;
use super::leases::Holding;
use super::mailbox::Answer;
use super::ownership::Place;
use super::ports::Renewal;
use super::sending::engine_metadata;
use super::stream_reader::StreamReader;
use std::sync::Arc;
use taskledger_domain::flow::{Argument, Claim, Command, Done, Event, Flow, Outdated, Refusal};
use taskledger_domain::schedule;
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, LeaseId, Metadata, TaskId, Timestamp};

/// Times that a claim is built again because the specification changed under it.
const CLAIM_ROUNDS_MAX: usize = 8;
/// Leases whose ends are recorded at a time.
const EXPIRED_BATCH: usize = 1000;
/// Milliseconds after which the end of a lease that could not be recorded is tried again.
const END_AGAIN_MS: u64 = 1000;
/// Milliseconds that a lease holds at least after its flow has come to this process: neither a restart nor
/// a move may end an attempt whose worker had nobody to renew its lease with.
const ARRIVAL_GRACE_MS: u64 = 10_000;

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The flow of the task.
    pub flow: FlowId,
    /// A ready task of a method that workers claim.
    pub task: TaskId,
    /// The worker, by its name; at most `limits::KEY_CHARS_MAX` characters.
    pub worker: String,
    /// Milliseconds that the lease holds unless it is renewed.
    pub lease_ms: u64,
}

/// An attempt that a worker has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// What its outcome must present.
    pub lease: LeaseId,
    /// The attempt.
    pub attempt: u32,
    /// Until when the lease holds unless it is renewed.
    pub expires_at: Timestamp,
}

impl Flows {
    /// Begins an attempt of a worker. `None`: the task is ready, and no slot of its method is free.
    ///
    /// # Errors
    /// [`Error`]; `Refused` when the task cannot be claimed, now or ever.
    pub async fn claim(
        self: &Arc<Self>,
        wanted: &Wanted,
        metadata: &Metadata,
    ) -> Result<Option<Claimed>, Error> {
        let lease = LeaseId(self.clock.uuid());
        for _ in 0..CLAIM_ROUNDS_MAX {
            let claim = self.claim_of(wanted, lease).await?;
            let claim = Command::Claim(claim);
            match self.tell(wanted.flow, claim, metadata.clone()).await {
                Ok(Done::Status(Status::InProgress)) => {
                    // Kept before the claim is answered, unless the flow has moved to another node.
                    let held = self.leases.get(lease).ok_or(Error::OutcomeUnknown)?;
                    return Ok(Some(Claimed {
                        lease,
                        attempt: held.attempt,
                        expires_at: held.expires_at,
                    }));
                }
                Ok(_) => return Ok(None),
                Err(Error::Outdated(Outdated::Specification)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Busy {
            reason: "the task is changed all the time".to_owned(),
            retry_after_ms: 100,
        })
    }

    async fn claim_of(self: &Arc<Self>, wanted: &Wanted, lease: LeaseId) -> Result<Claim, Error> {
        let (flow, task) = (wanted.flow, wanted.task);
        let look = move |state: &Flow| state.task(task).map(|t| t.spec_at);
        let spec_at = self.look(flow, engine_metadata(), look).await?;
        let spec_at = spec_at.ok_or_else(|| Refusal::not_found(Argument::Task, task))?;
        let mut timeout_ms = None;
        StreamReader::of(&*self.store, flow)
            .versions(&[spec_at], |recorded| {
                timeout_ms = facts::specification(&recorded.event).map(|s| s.timeout_ms);
            })
            .await?;
        let broken = || {
            Failure::Broken(format!(
                "event {spec_at} of flow {flow} holds no specification"
            ))
        };
        Ok(Claim {
            task,
            spec_at,
            timeout_ms: timeout_ms.ok_or_else(broken)?,
            lease,
            worker: wanted.worker.clone(),
            expires_at: self.clock.now().plus_ms(wanted.lease_ms),
        })
    }

    /// Carries out what a worker says of its attempt: an outcome, progress, or that it gives it back.
    ///
    /// # Errors
    /// [`Error`]; `Outdated` when the attempt is not held under that lease any more.
    pub async fn tell(
        self: &Arc<Self>,
        flow: FlowId,
        command: Command,
        metadata: Metadata,
    ) -> Result<Done, Error> {
        let order = self.order(Some(command), None, metadata, false);
        match self.ask(flow, order).await? {
            Answer::Done { done, .. } => Ok(done),
            Answer::Repeated(_) => {
                Err(Failure::Broken("a repetition without a key".to_owned()).into())
            }
        }
    }

    /// Lets a lease hold `lease_ms` from now; gives until when it holds. Not an event.
    ///
    /// # Errors
    /// [`Error`]; `Outdated` when the lease does not hold any more.
    pub async fn renew(
        self: &Arc<Self>,
        flow: FlowId,
        task: TaskId,
        lease: LeaseId,
        lease_ms: u64,
    ) -> Result<Timestamp, Error> {
        self.stay(flow)?;
        let is_it = |held: &Holding| held.flow == flow && held.task == task;
        if self.leases.get(lease).is_none() {
            // Nobody has asked for the flow since this process has it: loading it finds its leases.
            let look = |_: &Flow| ();
            self.look(flow, engine_metadata(), look).await?;
        }
        let stale = || Error::Outdated(Outdated::Attempt);
        self.leases.get(lease).filter(is_it).ok_or_else(stale)?;
        let now = self.clock.now();
        let until = now.plus_ms(lease_ms);
        // First here, so that nobody ends it meanwhile; what is not stored holds until a restart.
        let held = self.leases.extend(lease, until, now).ok_or_else(stale)?;
        let renewal = Renewal {
            flow,
            task,
            attempt: held.attempt,
            lease,
            expires_at: held.expires_at,
        };
        self.leases.renewals.renew(renewal).await?;
        // Another node may have read the renewals before this one was stored.
        self.stay(flow)?;
        Ok(held.expires_at)
    }

    fn stay(&self, flow: FlowId) -> Result<(), Error> {
        match self.ownership.of(flow) {
            Place::Here(_) => Ok(()),
            Place::There(node) => Err(Error::Elsewhere(Some(node))),
            Place::Nobody => Err(Error::Elsewhere(None)),
        }
    }

    /// Keeps the leases of a flow that was loaded, until the latest time that anybody was told of.
    ///
    /// # Errors
    /// The renewals cannot be read.
    pub(super) async fn adopt_leases(&self, id: FlowId, flow: &Flow) -> Result<(), Error> {
        let unknown = |leased: &schedule::Leased| self.leases.get(leased.lease).is_none();
        let unknown: Vec<_> = schedule::leased(flow).filter(unknown).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let renewed = self.leases.renewals.of(id).await?;
        let grace = self.clock.now().plus_ms(ARRIVAL_GRACE_MS);
        for mut leased in unknown {
            let known = leased.expires_at.max(grace);
            let until = renewed.get(&leased.lease).copied();
            leased.expires_at = until.map_or(known, |until| until.max(known));
            let slot = self
                .slots
                .occupy(&leased.method, leased.task, leased.attempt);
            self.leases.hold(id, &leased, slot);
        }
        Ok(())
    }

    /// An event has become durable that may end an attempt outside the server.
    pub(super) fn attempt_ended(self: &Arc<Self>, event: &Event) {
        if self.leases.is_empty() {
            return;
        }
        let ended = if let Event::TaskCompleted(e) = event {
            Some((e.task_id, e.attempt))
        } else if let Event::TaskFailed(e) = event {
            Some((e.task_id, e.attempt))
        } else if let Event::TaskCancelled(e) = event {
            e.attempt.map(|attempt| (e.task_id, attempt))
        } else {
            None
        };
        if let Some((task, attempt)) = ended {
            self.forget_attempt(task, attempt);
        }
    }

    fn forget_attempt(self: &Arc<Self>, task: TaskId, attempt: u32) {
        let Some(lease) = self.leases.ended(task, attempt) else {
            return;
        };
        let flows = self.clone();
        self.tasks.spawn(async move {
            if let Err(error) = flows.leases.renewals.forget(&[lease]).await {
                tracing::debug!(task.id = %task, error = %error, "the renewal of a lease that is over is not forgotten");
            }
        });
    }

    /// Ends the leases whose time has come.
    pub(super) fn end_expired_leases(self: &Arc<Self>) {
        for held in self.leases.expired(self.clock.now(), EXPIRED_BATCH) {
            let flows = self.clone();
            self.tasks.spawn(async move { flows.end_lease(held).await });
        }
    }

    async fn end_lease(self: &Arc<Self>, held: Holding) {
        let command = Command::EndLease {
            task: held.task,
            attempt: held.attempt,
            lease: held.lease,
            expired_at: held.expires_at,
        };
        match self.ask(held.flow, self.engine_order(command)).await {
            // What follows from its event has dropped the lease; the clock may have gone back.
            Ok(Answer::Done {
                done: Done::Status(Status::InProgress),
                ..
            }) => {}
            Ok(_) => return,
            // The attempt is over already, or never was.
            Err(Error::Refused(_) | Error::Outdated(_)) => {
                return self.forget_attempt(held.task, held.attempt);
            }
            // The owner of the flow ends it.
            Err(Error::Elsewhere(_)) => return,
            Err(error) => {
                tracing::warn!(task.id = %held.task, error = %error, "the end of a lease is not recorded yet");
            }
        }
        let again = self.clock.now().plus_ms(END_AGAIN_MS);
        self.leases.end_later(held.lease, again);
    }
}
