//! Commands against the state: events, or a refusal. Pure: the same state, command and time give
//! the same answer. One file per family of commands; the cost of each is stated there.

mod archive;
pub(crate) mod attempt;
mod create;
mod decision;
mod edit;
mod execute;
mod lease;
mod message;
mod output;
mod remarked;
mod remove;
mod suspend;

use super::command::{Capacity, Command, Done};
use super::event::Event;
use super::refusal::Rejection;
use super::state::Flow;
use crate::schedule;
use crate::task::Status;
use crate::{Timestamp, limits};
pub(crate) use decision::Decision;
use decision::find;

impl Flow {
    /// One turn: judges the command, applies its events, and lets the scheduler react, so that an
    /// outcome and the starts that it makes possible stand in one append. A refused command
    /// leaves the state as it was.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn handle(
        &mut self,
        command: &Command,
        now: Timestamp,
        capacity: &mut dyn Capacity,
    ) -> Result<(Vec<Event>, Done), Rejection> {
        let (mut events, mut done) = self.decide(command, now, capacity)?;
        let starts = done == Done::Status(Status::InProgress) && !events.is_empty();
        if starts && matches!(command, Command::Claim(_)) {
            let begin = lease::take_slots(self, &events, capacity);
            events.truncate(begin);
            if begin == 0 {
                done = Done::Status(Status::Pending);
            }
        }
        for event in &events {
            self.apply(event, now);
        }
        assert!(
            self.forward.is_empty(),
            "a decision never names a task that does not exist"
        );
        schedule::settle(self, now, capacity, &mut events);
        Ok((events, done))
    }

    /// Judges a command without changing anything. A claim is judged as if slots were free.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn decide(&self, command: &Command, now: Timestamp, capacity: &dyn Capacity) -> Decision {
        match command {
            Command::Create(tasks) => create::create(self, tasks),
            Command::Execute(execute) => execute::execute(self, execute, now, capacity),
            Command::Update(update) => edit::update(self, update),
            Command::Delete { task, cascade } => remove::delete(self, *task, *cascade),
            Command::Cancel {
                task,
                cascade,
                reason,
            } => remove::cancel(self, *task, *cascade, reason.as_deref()),
            Command::Complete {
                task,
                attempt,
                result,
                lease,
            } => attempt::complete(self, (*task, *attempt, *lease), result),
            Command::Fail {
                task,
                attempt,
                error,
                reason,
                progress,
                lease,
                retry_after_ms,
            } => {
                let named = (*task, *attempt, *lease);
                let earliest = now.plus_ms((*retry_after_ms).min(limits::RETRY_AFTER_MS_MAX));
                let times = (now, earliest);
                attempt::fail(self, named, (error, None), (*reason, *progress), times)
            }
            Command::FailBreached {
                task,
                attempt,
                breach,
                reason,
                progress,
                lease,
            } => {
                let named = (*task, *attempt, *lease);
                let said = (&*breach.failure(), Some(&**breach));
                attempt::fail(self, named, said, (*reason, *progress), (now, now))
            }
            Command::Report {
                task,
                attempt,
                progress,
                message,
                lease,
            } => {
                let named = (*task, *attempt, *lease);
                attempt::report(self, named, *progress, message.as_deref())
            }
            Command::Append(order) => output::append(self, order),
            Command::Remarked { said, remarks } => {
                remarked::decide(self, said, remarks, now, capacity)
            }
            Command::RejectCompletion {
                task,
                attempt,
                lease,
                fault,
                phase_name,
            } => {
                let named = (*task, *attempt, Some(*lease));
                lease::reject(self, named, fault, phase_name.as_deref())
            }
            Command::RejectClaim {
                task,
                worker,
                found,
                breach,
            } => lease::reject_claim(self, *task, worker, found, breach),
            Command::Suspend(order) => suspend::suspend(self, order, now),
            Command::Respond(order) => suspend::respond(self, order),
            Command::Receive(order) => message::receive(self, order),
            Command::CancelRun(order) => remove::cancel_run(self, order, now),
            Command::Claim(claim) => lease::claim(self, claim, now, capacity),
            Command::Release {
                task,
                attempt,
                lease,
            } => lease::release(self, (*task, *attempt, Some(*lease))),
            Command::EndLease {
                task,
                attempt,
                lease,
                expired_at,
            } => lease::end(self, (*task, *attempt, Some(*lease)), *expired_at, now),
            Command::Recover { alive } => {
                Ok((attempt::recover(self, alive, now, capacity), Done::Ok))
            }
            Command::Wake => Ok((Vec::new(), Done::Ok)),
            Command::Archive(order) => archive::archive(self, order),
        }
    }
}
