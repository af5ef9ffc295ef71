//! Calls by workers about their attempts, on the node that owns the flow: renewals and outcomes.
//!
//! A lease counts together with the principal that claimed it, whoever owns the flow by now. The first outcome
//! of an attempt wins: the same one again is answered as the first was, another one changes nothing.

use super::App;
use super::api::work::{
    Appends, Complete, Ended, Fail, HeldLease, LeaseLoss, LeaseOf, Output, Release, Renew, Renewed,
};
use super::context::Context;
use super::error::Error;
use super::leases::{Holding, Term};
use super::leasing::loss;
use super::sending::{engine_metadata, metadata};
use taskledger_domain::contract::{Breach, Broken, OutputFault, Outputs, TooLarge};
use taskledger_domain::flow::{
    Append, Argument, Command, Done, Event, FailureReason, Flow, Kind, Outdated,
};
use taskledger_domain::task::{Progress, Status};
use taskledger_domain::{FlowId, LeaseId, Payload, Recorded, TaskId, limits};
use taskledger_projections::TaskRow;

/// An outcome, to be compared with the one that was recorded.
enum Said<'a> {
    Complete(&'a Payload),
    Fail(&'a Fail),
    Release,
}

impl App {
    /// Says for how long a lease holds from now on, and records what its attempt has made and how far it is. Where a
    /// part of the output is refused, the lease holds for that long all the same.
    ///
    /// # Errors
    /// [`Error`]; `LeaseNotHeld`.
    pub(super) async fn renew(&self, context: &Context, renew: Renew) -> Result<Renewed, Error> {
        let (task, lease) = (renew.task, renew.lease);
        let holder = context.caller.actor();
        let Some(flow) = self.flow_of_lease(task).await? else {
            return Err(not_held(task, LeaseLoss::Unknown));
        };
        if let Some(held) = self.flows.held((flow, task), lease, holder).await?
            && let Some(expires_at) = self.flows.renew(&held, term(&renew, &held)).await?
        {
            self.append(context, &held, renew.output.as_ref()).await?;
            self.report(context, &held, &renew).await?;
            let stop = None;
            return Ok(Renewed { expires_at, stop });
        }
        let stopped = self.flows.leases.stopped(lease, self.clock.now());
        match stopped.filter(|(held, _)| held.is_for(task, holder)) {
            Some((_, stopped)) => Ok(Renewed {
                expires_at: stopped.until,
                stop: Some(stopped.reason),
            }),
            None => Err(self.lost(flow, task, lease).await),
        }
    }

    /// The lease by which a worker of the caller holds a task now; `None`: it does not. Cost: a turn of the flow.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn lease_of(
        &self,
        context: &Context,
        of: LeaseOf,
    ) -> Result<Option<HeldLease>, Error> {
        let LeaseOf { task, worker } = of;
        let Some(flow) = self.flow_of_lease(task).await? else {
            return Ok(None);
        };
        let look = move |flow: &Flow| flow.task(task).map(|it| it.attempt);
        // Loading the flow brings its leases.
        let attempt = self.flows.look(flow, engine_metadata(), look).await?;
        let held = attempt.and_then(|attempt| self.flows.leases.of_attempt((task, attempt)));
        let is_its =
            |held: &Holding| held.worker == worker && held.is_for(task, context.caller.actor());
        Ok(held.filter(is_its).map(|held| HeldLease {
            lease: held.lease,
            attempt: held.attempt,
            expires_at: held.expires_at,
        }))
    }

    async fn append(
        &self,
        context: &Context,
        held: &Holding,
        appends: Option<&Appends>,
    ) -> Result<(), Error> {
        let Some(Appends { part, number }) = appends.cloned() else {
            return Ok(());
        };
        let append = Command::Append(Append {
            task: held.task,
            attempt: held.attempt,
            lease: Some(held.lease),
            number,
            part,
        });
        match self.flows.tell(held.flow, append, metadata(context)).await {
            // The next renewal says so.
            Ok(_) | Err(Error::Outdated(Outdated::Attempt)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn report(&self, context: &Context, held: &Holding, renew: &Renew) -> Result<(), Error> {
        let Some(progress) = renew
            .progress
            .or((renew.message.is_some() || renew.remarks.is_some()).then_some(held.progress))
        else {
            return Ok(());
        };
        if !self
            .flows
            .leases
            .reports(held.lease, progress, self.clock.now())
        {
            return Ok(());
        }
        let report = Command::Report {
            task: held.task,
            attempt: held.attempt,
            progress,
            message: renew.message.clone(),
            lease: Some(held.lease),
        };
        let report = report.remarked(renew.remarks.clone());
        match self.flows.tell(held.flow, report, metadata(context)).await {
            // The next renewal says so.
            Ok(_) | Err(Error::Outdated(Outdated::Attempt)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The result of an attempt.
    ///
    /// # Errors
    /// [`Error`]; `LeaseNotHeld`.
    pub(super) async fn complete(
        &self,
        context: &Context,
        complete: Complete,
    ) -> Result<Ended, Error> {
        let Complete {
            task,
            lease,
            output,
            remarks,
        } = complete;
        let output = match output {
            Output::Whole(output) => output,
            Output::TooLarge(large) => {
                return Err(Box::pin(self.too_large(context, (task, lease), large)).await);
            }
        };
        let result = output.clone();
        let command = |attempt| {
            let complete = Command::Complete {
                task,
                attempt,
                result,
                lease: Some(lease),
            };
            complete.remarked(remarks)
        };
        let said = Said::Complete(&output);
        self.end(context, (task, lease), command, said).await
    }

    /// Refuses an output that its task or its method does not declare so. The attempt goes on, and may be
    /// completed with another one.
    async fn fits(&self, context: &Context, held: &Holding, said: &Said<'_>) -> Result<(), Error> {
        let Said::Complete(output) = said else {
            return Ok(());
        };
        self.keeps_contract(context, held, output).await?;
        let violations = self.validation.check_output(&held.method, output).await;
        if violations.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(violations))
    }

    /// Refuses an output that is not what the task declares, and records that.
    async fn keeps_contract(
        &self,
        context: &Context,
        held: &Holding,
        output: &Payload,
    ) -> Result<(), Error> {
        let current = |row: &TaskRow| row.attempt == held.attempt;
        let (name, schemas) = self.declared((held.flow, held.task), current).await?;
        let Some(outputs) = schemas.as_ref().and_then(Outputs::of) else {
            return Ok(());
        };
        let output = output.to_map();
        let checking = tokio::task::spawn_blocking(move || outputs.check(&output));
        let checked = match checking.await {
            Ok(checked) => checked,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let Err(fault) = checked else {
            return Ok(());
        };
        self.reject(context, held, &name, &fault).await?;
        Err(output_broken(held.task, Some(&name), fault))
    }

    /// What is answered to an output that is too large, whoever sends it. That is recorded of an attempt that is held.
    async fn too_large(
        &self,
        context: &Context,
        (task, lease): (TaskId, LeaseId),
        large: TooLarge,
    ) -> Error {
        let fault = OutputFault::of_size(large);
        let held = match self.holding(context, task, lease).await {
            Ok(held) => held,
            Err(Error::LeaseNotHeld { .. }) => return output_broken(task, None, fault),
            Err(error) => return error,
        };
        let current = |row: &TaskRow| row.attempt == held.attempt;
        let name = match self.declared((held.flow, task), current).await {
            Ok((name, _)) => name,
            Err(error) => return error,
        };
        match self.reject(context, &held, &name, &fault).await {
            // It may have ended meanwhile.
            Ok(()) | Err(Error::Outdated(Outdated::Attempt)) => {
                output_broken(task, Some(&name), fault)
            }
            Err(error) => error,
        }
    }

    /// Records what is wrong with an output.
    async fn reject(
        &self,
        context: &Context,
        held: &Holding,
        name: &str,
        fault: &OutputFault,
    ) -> Result<(), Error> {
        let reject = Command::RejectCompletion {
            task: held.task,
            attempt: held.attempt,
            lease: held.lease,
            fault: fault.clone(),
            phase_name: Some(name.to_owned()),
        };
        let told = self.flows.tell(held.flow, reject, metadata(context));
        told.await.map(|_| ())
    }

    /// The failure of an attempt.
    ///
    /// # Errors
    /// [`Error`]; `LeaseNotHeld`.
    pub(super) async fn fail(&self, context: &Context, fail: Fail) -> Result<Ended, Error> {
        let (task, lease) = (fail.task, fail.lease);
        let (reason, progress) = (reason(&fail), Progress::ZERO);
        let command = |attempt| {
            let failure = match &fail.breach {
                None => Command::Fail {
                    task,
                    attempt,
                    error: fail.error.clone(),
                    reason,
                    progress,
                    lease: Some(lease),
                    retry_after_ms: 0,
                },
                Some(breach) => Command::FailBreached {
                    task,
                    attempt,
                    breach: breach.clone(),
                    reason,
                    progress,
                    lease: Some(lease),
                },
            };
            failure.remarked(fail.remarks.clone())
        };
        let said = Said::Fail(&fail);
        self.end(context, (task, lease), command, said).await
    }

    /// Gives an attempt back.
    ///
    /// # Errors
    /// [`Error`]; `LeaseNotHeld`.
    pub(super) async fn release(
        &self,
        context: &Context,
        release: Release,
    ) -> Result<Ended, Error> {
        let Release { task, lease } = release;
        let command = |attempt| Command::Release {
            task,
            attempt,
            lease,
        };
        let said = Said::Release;
        self.end(context, (task, lease), command, said).await
    }

    async fn end(
        &self,
        context: &Context,
        (task, lease): (TaskId, LeaseId),
        command: impl FnOnce(u32) -> Command,
        said: Said<'_>,
    ) -> Result<Ended, Error> {
        let holder = context.caller.actor();
        let Some(flow) = self.flow_of_lease(task).await? else {
            return Err(not_held(task, LeaseLoss::Unknown));
        };
        let held = self.flows.held((flow, task), lease, holder).await?;
        // One whose time has come is lost, whether that is recorded yet or not.
        let held = held.filter(|held| held.expires_at > self.clock.now());
        if let Some(held) = held {
            let command = command(held.attempt);
            let told = match self.fits(context, &held, &said).await {
                Ok(()) => self.flows.tell(flow, command, metadata(context)).await,
                Err(error) => Err(error),
            };
            match told {
                // When it is tried again is in the log, like the answer to a repetition.
                Ok(Done::Status(Status::Pending)) if matches!(said, Said::Fail(_)) => {
                    let recorded = self.flows.ended_lease((flow, task), lease).await?;
                    return match recorded {
                        Some(recorded) => self.again(task, &recorded).await,
                        None => Ok(ended(task, Status::Pending)),
                    };
                }
                Ok(Done::Status(status)) => return Ok(ended(task, status)),
                Ok(Done::Ok | Done::Begun(_) | Done::ClaimRefused)
                | Err(Error::Outdated(Outdated::Attempt)) => {}
                Err(error) => return Err(error),
            }
        }
        match self.flows.ended_lease((flow, task), lease).await? {
            Some(recorded) if said.is(&recorded, holder) => self.again(task, &recorded).await,
            Some(recorded) => Err(not_held(task, loss(&recorded.event))),
            None => Err(self.lost(flow, task, lease).await),
        }
    }

    /// The first answer once more, wherever the task is by now.
    async fn again(&self, task: TaskId, outcome: &Recorded) -> Result<Ended, Error> {
        let status = status(outcome);
        let next_attempt_at = match status {
            Status::Pending => self.flows.requeued_at(outcome).await?,
            Status::InProgress | Status::Completed | Status::Failed | Status::Cancelled => None,
        };
        Ok(Ended {
            task,
            status,
            next_attempt_at,
        })
    }

    /// The attempt that the caller holds under a lease.
    ///
    /// # Errors
    /// [`Error`]; `LeaseNotHeld`.
    pub(super) async fn holding(
        &self,
        context: &Context,
        task: TaskId,
        lease: LeaseId,
    ) -> Result<Holding, Error> {
        let Some(flow) = self.flow_of_lease(task).await? else {
            return Err(not_held(task, LeaseLoss::Unknown));
        };
        let holder = context.caller.actor();
        let held = self.flows.held((flow, task), lease, holder).await?;
        match held.filter(|held| held.expires_at > self.clock.now()) {
            Some(held) => Ok(held),
            None => Err(self.lost(flow, task, lease).await),
        }
    }

    /// Why a lease does not hold.
    pub(super) async fn lost(&self, flow: FlowId, task: TaskId, lease: LeaseId) -> Error {
        if self
            .flows
            .leases
            .get(lease)
            .is_some_and(|held| held.task == task && held.expires_at <= self.clock.now())
        {
            return not_held(task, LeaseLoss::Lost);
        }
        match self.flows.ended_lease((flow, task), lease).await {
            Ok(Some(recorded)) => not_held(task, loss(&recorded.event)),
            Ok(None) => not_held(task, LeaseLoss::Unknown),
            Err(error) => error,
        }
    }

    /// The flow of a task that a worker names; a task that never existed is as good as one that it does not hold.
    pub(super) async fn flow_of_lease(&self, task: TaskId) -> Result<Option<FlowId>, Error> {
        match self.flow_of(Argument::Task, task).await {
            Ok(flow) => Ok(Some(flow)),
            Err(Error::Refused(refused)) if refused.refusal.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A term that the worker names counts also if it is shorter than what is left.
fn term(renew: &Renew, held: &Holding) -> Term {
    renew
        .lease_ms
        .map_or(Term::AtLeast(held.lease_ms), Term::Exactly)
}

const fn ended(task: TaskId, status: Status) -> Ended {
    Ended {
        task,
        status,
        next_attempt_at: None,
    }
}

/// The result of a task is not what it declares, or too large. Named where it is the caller's.
pub(super) fn output_broken(task: TaskId, name: Option<&str>, fault: OutputFault) -> Error {
    let phase_name = name.map(str::to_owned);
    let broken = Broken::Output(fault);
    let breach = Box::new(Breach { phase_name, broken });
    Error::ContractBroken { task, breach }
}

pub(super) const fn not_held(task: TaskId, reason: LeaseLoss) -> Error {
    Error::LeaseNotHeld { task, reason }
}

const fn reason(fail: &Fail) -> FailureReason {
    match (fail.rejected, fail.retryable) {
        (true, _) => FailureReason::Rejected,
        (false, true) => FailureReason::Executor,
        (false, false) => FailureReason::NotRetryable,
    }
}

impl Said<'_> {
    /// Whether this outcome was recorded, said by the same principal.
    fn is(&self, recorded: &Recorded, holder: &str) -> bool {
        if &*recorded.metadata.actor != holder {
            return false;
        }
        match (self, &*recorded.event) {
            (Self::Complete(output), Event::TaskCompleted(e)) => output.is_same(&e.result),
            (Self::Fail(fail), Event::TaskFailed(e)) => {
                let error = limits::cut(&fail.error, limits::ERROR_BYTES_MAX);
                e.error == error && e.reason == reason(fail)
            }
            (Self::Release, Event::TaskFailed(e)) => e.reason == FailureReason::Released,
            (Self::Complete(_) | Self::Fail(_) | Self::Release, _) => false,
        }
    }
}

/// How the task stood after an outcome.
fn status(outcome: &Recorded) -> Status {
    if let Event::TaskCompleted(_) = &*outcome.event {
        return Status::Completed;
    }
    if let Event::TaskFailed(e) = &*outcome.event
        && e.will_retry
    {
        return Status::Pending;
    }
    Status::Failed
}
