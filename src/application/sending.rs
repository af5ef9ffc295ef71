//! Sends a call's command to its flow: once for each idempotency key, and not while the read models are far behind.

use super::App;
use super::api::Reply;
use super::authorize::UseCase;
use super::context::Context;
use super::error::Error;
use super::guard::Guard;
use super::idempotency::{Key, Repeatable, ReplyOf};
use super::mailbox::{Answer, Begins, Order};
use crate::store::ClaimKey;
use std::future::ready;
use std::sync::Arc;
use taskledger_domain::flow::{Command, Refusal};
use taskledger_domain::task::spec::Updates;
use taskledger_domain::{FlowId, Metadata};

/// A command for a flow, and what its sender is answered.
pub(super) struct Sending {
    pub(super) flow: FlowId,
    pub(super) command: Command,
    pub(super) begins: Begins,
    pub(super) reply: ReplyOf,
    /// What the caller is answered when the flow is somebody else's.
    pub(super) foreign: Refusal,
}

impl App {
    /// Makes a call unless one with its idempotency key was accepted before: that one's reply is
    /// repeated. Comes before every check that looks at what is stored, because the first call may
    /// have changed that.
    pub(super) async fn once(
        &self,
        key: Option<&Key>,
        call: impl Future<Output = Result<Reply, Error>>,
    ) -> Result<Reply, Error> {
        let Some(key) = key else {
            return call.await;
        };
        if let Some(first) = self.first_reply(key).await? {
            return Ok(first);
        }
        match call.await {
            // The first call may have won between our look and the refusal.
            Err(error @ (Error::Refused(_) | Error::QuotaExceeded { .. })) => {
                match self.first_reply(key).await? {
                    Some(first) => Ok(first),
                    None => Err(error),
                }
            }
            other => other,
        }
    }

    /// The reply to the first call of a repetition, else why it is refused: a repetition adds nothing.
    pub(super) async fn repeated_or(
        &self,
        context: &Context,
        use_case: UseCase,
        error: Error,
    ) -> Result<Reply, Error> {
        let key = Key::of(context, use_case);
        self.once(key.as_ref(), ready(Err(error))).await
    }

    /// Whether a call with this one's idempotency key was accepted: then it changes nothing. Cost: a look at the log if
    /// it has a key.
    pub(super) async fn is_repeated(
        &self,
        context: &Context,
        use_case: UseCase,
    ) -> Result<bool, Error> {
        match Key::of(context, use_case) {
            Some(key) => Ok(self.claim_of(&key).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Whether an accepted call was answered with the reply to another one with its idempotency key, so that it has
    /// changed nothing. `false` for a call without an entry in the audit log. Cost: as [`Self::is_repeated`].
    pub(super) async fn has_repeated(
        &self,
        context: &Context,
        use_case: UseCase,
    ) -> Result<bool, Error> {
        let Some(key) = Key::of(context, use_case) else {
            return Ok(false);
        };
        let value = self.claim_of(&key).await?;
        Ok(value.is_some_and(|value| key.is_of_another_call(&value)))
    }

    async fn first_reply(&self, key: &Key) -> Result<Option<Reply>, Error> {
        let value = self.claim_of(key).await?;
        value.map(|value| key.repeat(&value)).transpose()
    }

    /// The value of the claim on an idempotency key that is still valid. Cost: a read of the log.
    async fn claim_of(&self, key: &Key) -> Result<Option<Arc<str>>, Error> {
        let claim = ClaimKey::Request(key.claimed.clone());
        let held = self.store.claims(&[claim], self.clock.now()).await?;
        Ok(held.into_iter().flatten().next())
    }

    /// Sends a command to its flow.
    pub(super) async fn command(
        &self,
        context: &Context,
        key: Option<&Key>,
        sending: Sending,
    ) -> Result<Reply, Error> {
        self.refuse_when_behind()?;
        let Sending {
            flow,
            command,
            begins,
            reply,
            foreign,
        } = sending;
        let quotas = self.limits.quotas();
        quotas.admit(context, &command, begins).await?;
        let mut order = self
            .flows
            .order(Some(command), None, metadata(context), false);
        let guard = Guard::of(context, || self.validation.executors(), || foreign);
        order.guard = guard.map(|guard| guard.within(quotas));
        order.begins = begins;
        order.repeatable = key.map(|key| Repeatable {
            key: key.clone(),
            reply: reply.clone(),
        });
        order.bytes = weight(&order);
        match self.flows.ask(flow, order).await {
            Ok(Answer::Done { done, .. }) => Ok(reply(done)),
            Ok(Answer::Repeated(first)) => Ok(*first),
            Err(error) => Err(error),
        }
    }
}

/// What goes into the events of a call.
pub(super) fn metadata(context: &Context) -> Metadata {
    Metadata {
        actor: context.caller.actor().clone(),
        correlation: context.correlation.clone(),
        causation: None,
        trace: context.trace.clone(),
    }
}

pub(super) fn engine_metadata() -> Metadata {
    Metadata {
        actor: Arc::from("engine"),
        correlation: Arc::from("look"),
        causation: None,
        trace: None,
    }
}

/// What an order holds in a mailbox, roughly.
pub(super) fn weight(order: &Order) -> usize {
    let tasks = match &order.command {
        Some(Command::Create(tasks)) => tasks.as_slice(),
        Some(Command::Execute(execute)) => &execute.create,
        Some(Command::Update(update)) => {
            let Updates {
                inputs,
                schemas,
                params,
                ..
            } = &update.updates;
            let raw = [
                inputs.as_ref(),
                schemas.as_ref().and_then(|s| s.as_ref().map(|s| &s.raw)),
                params.as_ref().and_then(|p| p.as_ref().map(|p| &p.raw)),
            ];
            let raw: usize = raw.into_iter().flatten().map(|p| p.as_str().len()).sum();
            let dependencies = update.dependencies.as_ref().map_or(0, |d| d.len() * 24);
            return order.bytes
                + raw
                + dependencies
                + update.current.as_ref().map_or(0, |(_, s)| s.bytes());
        }
        Some(Command::Suspend(suspend)) => {
            return order.bytes + suspend.asked.as_str().len() + suspend.on_expiry.bytes();
        }
        Some(Command::Respond(respond)) => return order.bytes + respond.answer.as_str().len(),
        Some(Command::Receive(receive)) => {
            let answer = receive.answers.answer.as_str().len();
            return order.bytes + receive.message.as_str().len() + answer;
        }
        Some(Command::Append(append)) => return order.bytes + append.part.bytes(),
        Some(Command::Remarked { remarks, .. }) => return order.bytes + remarks.bytes(),
        Some(
            Command::Delete { .. }
            | Command::Cancel { .. }
            | Command::CancelRun(_)
            | Command::Complete { .. }
            | Command::Fail { .. }
            | Command::FailBreached { .. }
            | Command::Report { .. }
            | Command::RejectCompletion { .. }
            | Command::RejectClaim { .. }
            | Command::Claim(_)
            | Command::Release { .. }
            | Command::EndLease { .. }
            | Command::Recover { .. }
            | Command::Wake
            | Command::Archive(_),
        )
        | None => return order.bytes,
    };
    tasks
        .iter()
        .map(|t| 400 + t.specification.bytes() + t.dependencies.len() * 24)
        .sum()
}
