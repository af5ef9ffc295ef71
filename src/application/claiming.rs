//! Claims of workers on the node that owns the flows: finds offers, checks who may have them, and begins attempts.

use super::App;
use super::api::work::{Begun, ClaimHere, Left, Wanted};
use super::context::Context;
use super::error::Error;
use super::guard::Guard;
use super::leases::{Holding, Term};
use super::leasing;
use super::offers::{Ask, Reservation, Waiting, Wakeup};
use super::ports::ExecutorSnapshot;
use super::sending::metadata;
use super::task_names::TaskNames;
use super::undelivered::UndeliveredClaims;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::Reach;
use taskledger_domain::contract::Broken;
use taskledger_domain::flow::{Argument, Claimable, Command, Flow, Refusal};
use taskledger_domain::{FlowId, TaskId, Timestamp};
use taskledger_workers::MethodKey;
use tokio::sync::oneshot;

/// Offers in a row that turn out to be none, after which a worker that does not wait gets nothing.
const MISSES_MAX: usize = 4;
/// How long an offer rests whose flow could not be asked.
const PAUSE: Duration = Duration::from_millis(250);
/// Milliseconds after which a worker may ask again when too many wait.
const RETRY_AFTER_MS: u64 = 1000;
/// Tasks of flows of one node that a worker may hold at once.
const LEASES_PER_WORKER_MAX: usize = 10_000;

impl App {
    /// Begins attempts of flows of this node, without waiting for any.
    ///
    /// # Errors
    /// [`Error`]; `Elsewhere` for a task of another node.
    pub(super) async fn claim_here(
        &self,
        context: &Context,
        claim: &ClaimHere,
    ) -> Result<UndeliveredClaims, Error> {
        let methods = match &claim.wanted {
            Wanted::Task(task) => return self.claim_task(context, claim, *task).await,
            Wanted::Left(left) => return self.take_over(context, claim, left).await,
            Wanted::Methods(methods) => methods,
        };
        if self.is_silent(context, claim) {
            return Ok(self.undelivered(context, Vec::new()));
        }
        self.has_room(context, claim)?;
        self.claim_offered(context, claim, methods, Vec::new())
            .await
    }

    /// Begins what is reserved, and what else is on offer, without waiting for any. The flows decide at the same
    /// time: their appends become one wait for the disk.
    ///
    /// # Errors
    /// [`Error`]; not when anything has begun.
    pub(super) async fn claim_offered(
        &self,
        context: &Context,
        claim: &ClaimHere,
        methods: &Arc<[Arc<str>]>,
        mut reserved: Vec<Reservation>,
    ) -> Result<UndeliveredClaims, Error> {
        let (mut all, mut misses) = (self.undelivered(context, Vec::new()), 0);
        while all.begun().len() < claim.max && misses < MISSES_MAX {
            let places: usize = reserved.iter().map(|it: &Reservation| it.many.max(1)).sum();
            let left = (claim.max - all.begun().len()).saturating_sub(places);
            match self.reserved(context, methods, (&claim.worker, left)) {
                Ok(more) => reserved.extend(more),
                Err(error) if reserved.is_empty() && all.is_empty() => return Err(error),
                Err(_) => {}
            }
            if reserved.is_empty() {
                break;
            }
            let begins = std::mem::take(&mut reserved).into_iter();
            let begins = begins.map(|it| self.begin(context, claim, it));
            let mut failed = None;
            for outcome in join_all(begins).await {
                match outcome {
                    Ok(more) => {
                        misses += usize::from(more.is_empty());
                        all.extend(more.delivered());
                    }
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                Some(error) if all.is_empty() => return Err(error),
                // What has begun is not kept from its worker.
                Some(_) => break,
                None => {}
            }
        }
        Ok(all)
    }

    /// Offers for so many attempts, as far as there are any now.
    fn reserved(
        &self,
        context: &Context,
        methods: &Arc<[Arc<str>]>,
        (worker, mut many): (&Arc<str>, usize),
    ) -> Result<Vec<Reservation>, Error> {
        let mut reserved = Vec::new();
        while many > 0 {
            let waiting = self.wait_for(context, methods, (worker, many));
            match waiting.map(|mut it| it.now()) {
                Ok(Some(Wakeup::Here(reservation))) => {
                    many = many.saturating_sub(reservation.many.max(1));
                    reserved.push(reservation);
                }
                Err(error) if reserved.is_empty() => return Err(error),
                Ok(Some(Wakeup::There(_) | Wakeup::Look) | None) | Err(_) => break,
            }
        }
        Ok(reserved)
    }

    /// Refuses a worker that holds as much as one may.
    fn has_room(&self, context: &Context, claim: &ClaimHere) -> Result<(), Error> {
        let (worker, holder) = (&claim.worker, context.caller.actor());
        if self.flows.leases.of_worker(worker, holder) < LEASES_PER_WORKER_MAX {
            return Ok(());
        }
        Err(Error::Busy {
            reason: format!(
                "worker `{worker}` holds {LEASES_PER_WORKER_MAX} tasks; some must end first"
            ),
            retry_after_ms: RETRY_AFTER_MS,
        })
    }

    /// Whether the worker has lost a lease on this node since it was last heard of, so that it gets nothing until
    /// it says something.
    pub(super) fn is_silent(&self, context: &Context, claim: &ClaimHere) -> bool {
        let now = self.clock.now();
        let silent_us = i64::try_from(claim.silent_ms.saturating_mul(1000)).unwrap_or(i64::MAX);
        let heard_at = Timestamp(now.0.saturating_sub(silent_us));
        let (worker, holder) = (&claim.worker, context.caller.actor());
        self.flows.leases.is_silent(worker, holder, heard_at)
    }

    /// Waits for offers of flows of this node.
    ///
    /// # Errors
    /// `Busy`: too many wait.
    pub(super) fn wait_for(
        &self,
        context: &Context,
        methods: &Arc<[Arc<str>]>,
        (worker, max): (&Arc<str>, usize),
    ) -> Result<Waiting, Error> {
        let reach = context.caller.reach();
        let mut executors = self.validation.executors();
        loop {
            let ask = Ask {
                methods: self.asked_for(&*executors, methods, &reach),
                reach: reach.clone(),
                max,
                by: (worker.clone(), context.caller.actor().clone()),
            };
            let waiting = self.flows.offers.ask(ask).map_err(|_| Error::Busy {
                reason: "too many workers wait on this node".to_owned(),
                retry_after_ms: RETRY_AFTER_MS,
            })?;
            // Whoever waits when somebody declares a method for themselves is told to look; this one may have come
            // too late for that.
            let newest = self.validation.executors();
            if newest.declared_since() == executors.declared_since() {
                return Ok(waiting);
            }
            executors = newest;
        }
    }

    /// The methods under every declaration that holds for flows in reach. Cost: O(methods + their declarations).
    fn asked_for(
        &self,
        executors: &dyn ExecutorSnapshot,
        methods: &[Arc<str>],
        reach: &Reach,
    ) -> Arc<[MethodKey]> {
        let shared = |name: &Arc<str>| MethodKey::shared(name.clone());
        if !executors.has_owners() {
            return methods.iter().map(shared).collect();
        }
        let own = |name: &Arc<str>, owner: &Arc<str>| MethodKey {
            name: name.clone(),
            owner: Some(owner.clone()),
        };
        let of_method = |name: &Arc<str>| -> Vec<MethodKey> {
            let owners = executors.owners_of(name);
            match reach {
                Reach::All => {
                    let own = owners.iter().map(|owner| own(name, owner));
                    std::iter::once(shared(name)).chain(own).collect()
                }
                Reach::Of(owner) if owners.contains(owner) => vec![own(name, owner)],
                Reach::Of(_) => vec![shared(name)],
            }
        };
        methods.iter().flat_map(of_method).collect()
    }

    /// Gives workers nothing more, because the server stops: those that wait are answered at once, so that their
    /// calls do not hold it up.
    pub(crate) fn give_no_more_work(&self) {
        self.flows.offers.close();
    }

    /// Begins the attempts that were offered. Nothing when the offer was out of date.
    ///
    /// # Errors
    /// [`Error`].
    async fn begin(
        &self,
        context: &Context,
        claim: &ClaimHere,
        mut reservation: Reservation,
    ) -> Result<UndeliveredClaims, Error> {
        let next = Claimable::Next {
            method: reservation.method.name.as_ref().to_owned(),
            until: reservation.until,
        };
        let method = Some(reservation.method.clone());
        let of = (reservation.flow, method, next);
        let mut wanted = wanted(context, claim, of, reservation.many);
        wanted.on_its_way = reservation.on_its_way.take();
        let foreign = Refusal::not_found(Argument::Task, wanted.flow.root());
        let begun = self.begin_wanted(context, wanted, foreign, Some(reservation));
        match begun.await {
            // Somebody else's by now, or another node's, or there is nothing left.
            Err(Error::Refused(_) | Error::Forbidden { .. } | Error::Elsewhere(_)) => {
                Ok(self.undelivered(context, Vec::new()))
            }
            other => other,
        }
    }

    /// Has a flow begin attempts, to the end also when whoever asks goes away meanwhile.
    async fn begin_wanted(
        &self,
        context: &Context,
        wanted: leasing::Wanted,
        foreign: Refusal,
        reservation: Option<Reservation>,
    ) -> Result<UndeliveredClaims, Error> {
        let guard = Guard::of(context, || self.validation.executors(), || foreign);
        let (flows, metadata) = (self.flows.clone(), metadata(context));
        let mut undelivered = self.undelivered(context, Vec::new());
        let (tell, told) = oneshot::channel();
        self.flows.tasks.spawn(async move {
            let begun = flows.claim(wanted, metadata, guard).await.map(|begun| {
                undelivered.extend(begun);
                undelivered
            });
            let is_failed = matches!(
                begun,
                Err(Error::Busy { .. } | Error::OutcomeUnknown | Error::Failed(_))
            );
            if is_failed && reservation.is_some() {
                // The flow is left alone for a moment.
                tokio::time::sleep(PAUSE).await;
            }
            drop(reservation);
            // Nobody is left who could be told: dropping it gives the attempts back.
            let _ = tell.send(begun);
        });
        told.await.unwrap_or(Err(Error::OutcomeUnknown))
    }

    /// The attempts of a worker that nobody keeps for it any more, of flows of this node: it keeps them from now on. A
    /// server without others knows that nobody keeps what it has found in the log; where nodes share it, silence tells.
    async fn take_over(
        &self,
        context: &Context,
        claim: &ClaimHere,
        left: &Left,
    ) -> Result<UndeliveredClaims, Error> {
        let caller = &context.caller;
        let census = self.flows.ownership().census();
        let (is_single, is_alone) = census.map_or((true, true), |census| {
            let mut nodes = census.nodes.iter();
            (false, nodes.all(|(node, _)| node.id == census.me))
        });
        let now = self.clock.now();
        let is_left = |held: &Holding, is_inherited: bool| match left {
            Left::These(leases) => leases.contains(&held.lease),
            Left::Silent {
                methods,
                beginnings,
                silent_ms,
            } => {
                let silent = now.plus_ms(claim.lease_ms.saturating_sub(*silent_ms));
                let is_silent = !is_single && held.expires_at <= silent;
                let mut beginnings = beginnings.iter();
                (is_silent || is_alone && is_inherited)
                    && (methods.contains(&held.method.name)
                        || beginnings.any(|it| held.method.name.starts_with(&**it)))
            }
        };
        let is_allowed = |held: &Holding| {
            let allowed = caller.methods();
            allowed.is_none_or(|allowed| allowed.contains(&held.method.name))
        };
        let worker = (claim.worker.clone(), Some(caller.actor().clone()));
        let times = (now, now.plus_ms(claim.lease_ms));
        let taken = self
            .flows
            .leases
            .take_over(&worker, times, claim.max, |held, is_inherited| {
                is_allowed(held) && is_left(held, is_inherited)
            });
        let mut kept = Vec::with_capacity(taken.len());
        // Given back when the worker goes away meanwhile.
        let begun = taken.iter().cloned();
        let mut undelivered = self.undelivered(
            context,
            begun.map(|held| leasing::begun(held, None)).collect(),
        );
        for held in taken {
            match self.flows.renew(&held, Term::AtLeast(claim.lease_ms)).await {
                Ok(Some(_)) => kept.push(held.lease),
                Ok(None) => {}
                // It ends, or the worker asks again.
                Err(error) => {
                    tracing::debug!(task.id = %held.task, %error, "an attempt was not taken over");
                }
            }
        }
        undelivered.retain(|begun| kept.contains(&begun.lease));
        Ok(undelivered)
    }

    /// Attempts that were not delivered to their worker yet.
    pub(super) fn undelivered(&self, context: &Context, begun: Vec<Begun>) -> UndeliveredClaims {
        UndeliveredClaims::new(self.flows.clone(), metadata(context), begun)
    }

    async fn claim_task(
        &self,
        context: &Context,
        claim: &ClaimHere,
        task: TaskId,
    ) -> Result<UndeliveredClaims, Error> {
        let flow = self.flow_of(Argument::Task, task).await?;
        let reach = context.caller.reach();
        let slots = self.flows.slots().clone();
        let look = move |state: &Flow| {
            let method = state.method(task).filter(|_| reach.covers(state.owner()))?;
            Some(slots.view(state.owner()).key(method))
        };
        let method = self.flows.look(flow, metadata(context), look).await?;
        let reservation = match &method {
            None => None,
            Some(method) => match self.flows.offers.reserve(flow, method) {
                // As many of its method are under way as may be.
                None => return Ok(self.undelivered(context, Vec::new())),
                some => some,
            },
        };
        let of = (flow, method, Claimable::Task(task));
        let wanted = wanted(context, claim, of, 1);
        let foreign = Refusal::not_found(Argument::Task, task);
        let begun = self.begin_wanted(context, wanted, foreign, reservation);
        match begun.await {
            Err(Error::ContractBroken { task, breach }) => {
                let worker = claim.worker.as_ref();
                let refused = self.refuse_claim(context, (flow, task), worker, breach.broken);
                Err(refused.await?)
            }
            other => other,
        }
    }

    /// What a worker is told that cannot be given a task yet, and records it.
    async fn refuse_claim(
        &self,
        context: &Context,
        (flow, task): (FlowId, TaskId),
        worker: &str,
        found: Broken,
    ) -> Result<Error, Error> {
        let breach = TaskNames::new(self, flow).breach(task, &found).await?;
        let breach = Box::new(breach);
        let reject = Command::RejectClaim {
            task,
            worker: worker.to_owned(),
            found: Box::new(found),
            breach: breach.clone(),
        };
        self.flows.tell(flow, reject, metadata(context)).await?;
        Ok(Error::ContractBroken { task, breach })
    }
}

fn wanted(
    context: &Context,
    claim: &ClaimHere,
    (flow, method, of): (FlowId, Option<MethodKey>, Claimable),
    many: usize,
) -> leasing::Wanted {
    leasing::Wanted {
        flow,
        method,
        of,
        many,
        worker: claim.worker.clone(),
        holder: context.caller.actor().clone(),
        lease_ms: claim.lease_ms,
        on_its_way: None,
    }
}
