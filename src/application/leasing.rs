//! Leases of workers: claims, renewals, outcomes, and what happens to the attempts of workers that fall silent. The
//! only way in is a command, decided in the flow's turn.

use super::api::work::{Begun, LeaseLoss, StopReason};
use super::error::{Error, Failure};
use super::flows::Flows;
use super::guard::Guard;
use super::leases::{Holding, Source, Term};
use super::mailbox::Answer;
use super::offers::OnItsWay;
use super::ownership::Place;
use super::ports::Renewal;
use super::sending::engine_metadata;
use super::stream_reader::StreamReader;
use crate::subscription::notice::TakenBack;
use std::sync::Arc;
use taskledger_domain::contract::Breach;
use taskledger_domain::flow::{
    CancelReason, Claim, Claimable, Command, Done, Event, FailureReason, Flow,
};
use taskledger_domain::schedule;
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, LeaseId, Metadata, Recorded, TaskId, Timestamp};
use taskledger_workers::MethodKey;

/// Leases whose ends are recorded at a time.
const EXPIRED_BATCH: usize = 1000;
/// Milliseconds after which the end of a lease that could not be recorded is tried again.
const END_AGAIN_MS: u64 = 1000;
/// Milliseconds that a lease holds at least after its flow has come to this process: neither a restart nor
/// a move may end an attempt whose worker had nobody to renew its lease with.
const ARRIVAL_GRACE_MS: u64 = 10_000;
/// How often in a row a lease that nobody renews is extended for that: a server that restarts again and again would
/// keep the attempts of workers that are gone for ever.
const ARRIVAL_GRACES_MAX: u32 = 3;

/// How often a renewal is stored while others of the same lease are.
const STORED_MAX: usize = 3;

/// The tasks of a flow that a worker asks for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) flow: FlowId,
    /// The method of the task; `None` when nothing can be claimed.
    pub(super) method: Option<MethodKey>,
    /// Which tasks of it.
    pub(super) of: Claimable,
    /// At most so many.
    pub(super) many: usize,
    /// The worker, by its name; at most `limits::KEY_CHARS_MAX` characters.
    pub(super) worker: Arc<str>,
    /// The principal that may use the leases.
    pub(super) holder: Arc<str>,
    /// Milliseconds that the leases hold unless they are renewed.
    pub(super) lease_ms: u64,
    /// The flow waits for the claim for a moment.
    pub(super) on_its_way: Option<OnItsWay>,
}

impl Flows {
    /// Begins attempts of a worker; none when nothing of it could start now.
    ///
    /// # Errors
    /// [`Error`]; `Refused` when the task that was named cannot be claimed, now or ever.
    pub(super) async fn claim(
        self: &Arc<Self>,
        mut wanted: Wanted,
        metadata: Metadata,
        guard: Option<Box<Guard>>,
    ) -> Result<Vec<Begun>, Error> {
        let leases = (0..wanted.many).map(|_| LeaseId(self.clock.uuid()));
        let mut leases: Vec<LeaseId> = leases.collect();
        let expires_at = self.clock.now().plus_ms(wanted.lease_ms);
        let method = wanted.method;
        let ticketed = match &method {
            Some(method) if self.shares_limit_of(method) => {
                // No append waits for the database.
                drop(wanted.on_its_way.take());
                let granted = self.tickets_for(method, (&leases, expires_at)).await?;
                leases.truncate(granted);
                true
            }
            Some(_) | None => false,
        };
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let named = match &wanted.of {
            Claimable::Task(task) => Some(*task),
            Claimable::Next { .. } => None,
        };
        let claim = Claim {
            of: wanted.of,
            leases: leases.clone(),
            worker: wanted.worker.as_ref().to_owned(),
            holder: Some(wanted.holder.as_ref().to_owned()),
            expires_at,
        };
        let trace = metadata.trace.clone();
        let mut order = self.order(Some(Command::Claim(claim)), None, metadata, false);
        order.guard = guard;
        let asked = self.put(wanted.flow, order);
        drop(wanted.on_its_way);
        let answer = match asked {
            Ok(asked) => asked.answered().await,
            Err(error) => Err(error),
        };
        if ticketed {
            self.settle_tickets(wanted.flow, &leases, &answer);
        }
        match (answer?, named) {
            (
                Answer::Done {
                    done: Done::Status(Status::InProgress),
                    ..
                },
                _,
            ) => {}
            (
                Answer::Done {
                    done: Done::ClaimRefused,
                    ..
                },
                Some(task),
            ) => {
                let look = move |state: &Flow| state.claim_fault(task);
                let found = self.look(wanted.flow, engine_metadata(), look).await?;
                // What kept it from its start may have gone meanwhile.
                return match found {
                    Some(broken) => {
                        let phase_name = None;
                        let breach = Box::new(Breach { phase_name, broken });
                        Err(Error::ContractBroken { task, breach })
                    }
                    None => Ok(Vec::new()),
                };
            }
            (Answer::Done { .. } | Answer::Repeated(_), _) => return Ok(Vec::new()),
        }
        // Kept before the claim is answered, unless the flow has moved to another node.
        // One that was taken back at once hides none of the others.
        let held = leases
            .into_iter()
            .filter_map(|lease| self.leases.get(lease));
        let begun: Vec<Begun> = held.map(|held| begun(held, trace.clone())).collect();
        if begun.is_empty() {
            // The attempts have ended already, for example with a cancel in the same append; or the flow has moved, and
            // whether they go on is not known here.
            return match self.stay(wanted.flow) {
                Ok(()) => Ok(Vec::new()),
                Err(_) => Err(Error::OutcomeUnknown),
            };
        }
        // The limit was declared while the flow decided.
        if let Some(method) = method.filter(|method| !ticketed && self.shares_limit_of(method)) {
            let ticket = |begun: &Begun| (method.clone(), begun.lease, begun.expires_at);
            self.keep_tickets(begun.iter().map(ticket).collect());
        }
        Ok(begun)
    }

    /// Carries out what a worker says of its attempt: an outcome, progress, or that it gives it back.
    ///
    /// # Errors
    /// [`Error`]; `Outdated` when the attempt is not held under that lease any more.
    pub(super) async fn tell(
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

    /// The attempt that runs under a lease of a task, if this principal may use it. Loads the flow if that is
    /// needed, which finds its leases.
    ///
    /// # Errors
    /// [`Error`]; `Elsewhere`.
    pub(super) async fn held(
        self: &Arc<Self>,
        (flow, task): (FlowId, TaskId),
        lease: LeaseId,
        holder: &str,
    ) -> Result<Option<Holding>, Error> {
        self.stay(flow)?;
        if self.leases.get(lease).is_none() {
            let look = |_: &Flow| ();
            self.look(flow, engine_metadata(), look).await?;
        }
        let held = self.leases.get(lease);
        Ok(held.filter(|held| held.flow == flow && held.is_for(task, holder)))
    }

    /// How the attempt under a lease ended that is not held any more, as far as the flow remembers: the event.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn ended_lease(
        self: &Arc<Self>,
        (flow, task): (FlowId, TaskId),
        lease: LeaseId,
    ) -> Result<Option<Arc<Recorded>>, Error> {
        let look = move |state: &Flow| state.lease_ended_at(task, lease);
        let Some(version) = self.look(flow, engine_metadata(), look).await? else {
            return Ok(None);
        };
        let mut found = None;
        StreamReader::of(&*self.store, flow)
            .versions(&[version], |recorded| {
                found = Some(Arc::new(recorded.clone()))
            })
            .await?;
        Ok(found)
    }

    /// When the task whose attempt ended with this event, and is tried again, may be claimed: as it was said
    /// then.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn requeued_at(&self, failed: &Recorded) -> Result<Option<Timestamp>, Error> {
        let mut next_attempt_at = None;
        StreamReader::of(&*self.store, failed.flow)
            // In the same append, right behind it.
            .versions(&[failed.version + 1], |recorded| {
                if let Event::TaskRequeued(e) = &*recorded.event {
                    next_attempt_at = e.next_attempt_at;
                }
            })
            .await?;
        Ok(next_attempt_at)
    }

    /// Lets a lease hold for so long from now; gives until when it holds. Not an event.
    ///
    /// # Errors
    /// [`Error`]; `Elsewhere`. `None`: the lease does not hold any more.
    pub(super) async fn renew(
        self: &Arc<Self>,
        held: &Holding,
        term: Term,
    ) -> Result<Option<Timestamp>, Error> {
        // First here, so that nobody ends it meanwhile; what is not stored holds until a restart.
        let Some(renewed) = self.leases.renew(held.lease, term, self.clock.now()) else {
            return Ok(None);
        };
        let mut renewal = Renewal {
            flow: held.flow,
            task: held.task,
            attempt: held.attempt,
            lease: held.lease,
            expires_at: renewed.expires_at,
            graces: 0,
        };
        for _ in 0..STORED_MAX {
            self.leases.renewals.renew(&[renewal]).await?;
            // Another renewal may have been stored meanwhile, and been overtaken by this one.
            match self.leases.get(held.lease) {
                Some(now) if now.expires_at != renewal.expires_at => {
                    renewal.expires_at = now.expires_at;
                }
                Some(_) | None => break,
            }
        }
        // Another node may have read the renewals before this one was stored.
        self.stay(held.flow)?;
        Ok(Some(renewed.expires_at))
    }

    fn stay(&self, flow: FlowId) -> Result<(), Error> {
        match self.ownership.of(flow) {
            Place::Here(_) => Ok(()),
            Place::There(node) => Err(Error::Elsewhere(Some(node))),
            Place::Nobody => Err(Error::Elsewhere(None)),
        }
    }

    /// Keeps the leases of a flow that was loaded, until the time that was said last, and for a moment at least, unless
    /// that was given several times already.
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
        // Who owns it now reads the same.
        self.stay(id)?;
        let grace = self.clock.now().plus_ms(ARRIVAL_GRACE_MS);
        let view = self.slots.view(flow.owner());
        let (mut tickets, mut extended) = (Vec::new(), Vec::new());
        let mut adopted = Vec::with_capacity(unknown.len());
        for mut leased in unknown {
            let kept = renewed.get(&leased.lease).copied();
            let graces = kept.map_or(0, |kept| kept.graces);
            leased.expires_at = kept.map_or(leased.expires_at, |kept| kept.expires_at);
            let is_extended = leased.expires_at < grace && graces < ARRIVAL_GRACES_MAX;
            if is_extended {
                leased.expires_at = grace;
                extended.push(Renewal {
                    flow: id,
                    task: leased.task,
                    attempt: leased.attempt,
                    lease: leased.lease,
                    expires_at: grace,
                    graces: graces + 1,
                });
            }
            adopted.push((leased, kept.is_some() || is_extended));
        }
        // Before the leases are kept here, so that no renewal is overtaken.
        if !extended.is_empty()
            && let Err(error) = self.leases.renewals.renew(&extended).await
        {
            tracing::debug!(flow.id = %id, %error, "the next restart extends leases once more");
        }
        for (leased, is_renewed) in adopted {
            let slot = self
                .slots
                .occupy(&leased.method, leased.task, leased.attempt);
            let method = view.key(&leased.method);
            if self.shares_limit_of(&method) {
                tickets.push((method.clone(), leased.lease, leased.expires_at));
            }
            self.leases
                .hold((id, method), &leased, slot, Source::Loaded { is_renewed });
        }
        self.keep_tickets(tickets);
        Ok(())
    }

    /// An event has become durable that may end an attempt outside the server.
    pub(super) fn attempt_ended(self: &Arc<Self>, recorded: &Recorded) {
        if self.leases.is_empty() {
            return;
        }
        let event = &*recorded.event;
        let (task, attempt, stop) = if let Event::TaskCompleted(e) = event {
            (e.task_id, e.attempt, None)
        } else if let Event::TaskSuspended(e) = event {
            (e.task_id, e.attempt, None)
        } else if let Event::TaskFailed(e) = event {
            (e.task_id, e.attempt, stop_reason(e.reason))
        } else if let Event::TaskCancelled(e) = event
            && let Some(attempt) = e.attempt
        {
            (e.task_id, attempt, Some(StopReason::Cancelled))
        } else {
            return;
        };
        let stopped = stop.map(|reason| (reason, recorded.time));
        self.forget_attempt((task, attempt), stopped);
    }

    fn forget_attempt(
        self: &Arc<Self>,
        (task, attempt): (TaskId, u32),
        stopped: Option<(StopReason, Timestamp)>,
    ) {
        let Some(kept) = self.leases.ended(task, attempt, stopped) else {
            return;
        };
        let flows = self.clone();
        self.tasks.spawn(async move {
            if let Err(error) = flows.leases.clean_up(kept).await {
                tracing::debug!(task.id = %task, error = %error, "what is kept of a lease that is over is not forgotten");
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
                return self.forget_attempt((held.task, held.attempt), None);
            }
            // The owner of the flow ends it.
            Err(Error::Elsewhere(_)) => return self.leases.let_go(held.lease),
            Err(error) => {
                tracing::warn!(task.id = %held.task, error = %error, "the end of a lease is not recorded yet");
            }
        }
        let again = self.clock.now().plus_ms(END_AGAIN_MS);
        self.leases.end_later(held.lease, again);
    }
}

pub(super) fn begun(held: Holding, trace: Option<Arc<str>>) -> Begun {
    Begun {
        flow: held.flow,
        task: held.task,
        attempt: held.attempt,
        lease: held.lease,
        expires_at: held.expires_at,
        lease_ms: held.lease_ms,
        deadline: held.deadline,
        trace,
        turns: held.turns,
        results: held.results,
        origin_at: held.origin_at,
    }
}

/// Why a worker should stop whose attempt failed without its word; `None`: it knows, or is not to be told.
const fn stop_reason(reason: FailureReason) -> Option<StopReason> {
    match TakenBack::by_failure(reason) {
        Some(TakenBack::TimedOut) => Some(StopReason::TimedOut),
        Some(TakenBack::Deadline) => Some(StopReason::Deadline),
        // One that was lost is somebody else's by now.
        Some(TakenBack::Cancelled | TakenBack::Lost) | None => None,
    }
}

/// Why a lease does not hold any more, from the event with which its attempt ended.
pub(super) fn loss(event: &Event) -> LeaseLoss {
    let taken_back = if let Event::TaskCancelled(e) = event {
        Some(match e.reason {
            CancelReason::Requested => TakenBack::Cancelled,
            CancelReason::Deadline => TakenBack::Deadline,
        })
    } else if let Event::TaskFailed(e) = event {
        TakenBack::by_failure(e.reason)
    } else {
        None
    };
    match taken_back {
        Some(TakenBack::Cancelled) => LeaseLoss::Cancelled,
        Some(TakenBack::TimedOut) => LeaseLoss::TimedOut,
        Some(TakenBack::Deadline) => LeaseLoss::Deadline,
        Some(TakenBack::Lost) => LeaseLoss::Lost,
        None => LeaseLoss::Ended,
    }
}
