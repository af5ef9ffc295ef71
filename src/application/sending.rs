//! How a call's command gets to its flow: once for each idempotency key, and not while reads are
//! far behind.

use super::App;
use super::caller::Caller;
use super::commands::Answer;
use super::error::Error;
use super::idempotency::{self, AnswerOf, Repeatable};
use super::mailbox::{Begins, Order, Reply};
use crate::store::ClaimKey;
use serde_json::value::RawValue;
use std::sync::Arc;
use taskledger_domain::flow::Command;
use taskledger_domain::task::spec::Updates;
use taskledger_domain::{FlowId, Metadata};

impl App {
    /// Makes a call unless one with its idempotency key was accepted before: that one's answer is
    /// repeated. Comes before every check that looks at what is stored, because the first call may
    /// have changed that.
    pub(super) async fn once(
        &self,
        caller: &Caller,
        method: &str,
        call: impl Future<Output = Answer>,
    ) -> Answer {
        if let Some(first) = self.first_answer(caller, method).await? {
            return Ok(first);
        }
        match call.await {
            // The first call may have won between our look and the refusal.
            Err(Error::Refused(rejection)) => match self.first_answer(caller, method).await? {
                Some(first) => Ok(first),
                None => Err(Error::Refused(rejection)),
            },
            other => other,
        }
    }

    async fn first_answer(
        &self,
        caller: &Caller,
        method: &str,
    ) -> Result<Option<Box<RawValue>>, Error> {
        let Some(key) = idempotency::claimed_key(caller, method) else {
            return Ok(None);
        };
        let Some(idempotency) = &caller.idempotency else {
            return Ok(None);
        };
        let held = self
            .store
            .claims(&[ClaimKey::Request(key)], self.clock.now())
            .await?;
        let held = held.into_iter().next().flatten();
        held.map(|value| idempotency::repeat(idempotency, &value))
            .transpose()
    }

    /// Sends a command to its flow.
    pub(super) async fn command(
        &self,
        caller: Caller,
        method: &'static str,
        flow: FlowId,
        command: Command,
        begins: Begins,
        answer: AnswerOf,
    ) -> Answer {
        self.refuse_when_behind()?;
        let mut order = self
            .flows
            .order(Some(command), None, metadata(&caller), false);
        order.begins = begins;
        order.repeatable = Repeatable::of(&caller, method, answer.clone());
        order.bytes = weight(&order);
        match self.flows.ask(flow, order).await {
            Ok(Reply::Done { done, .. }) => Ok(answer(done)),
            Ok(Reply::Repeated(first)) => Ok(first),
            Err(error) => Err(error),
        }
    }
}

/// What goes into the events of a call.
pub(super) fn metadata(caller: &Caller) -> Metadata {
    Metadata {
        actor: caller.principal.clone(),
        correlation: caller.correlation.clone(),
        causation: None,
        trace: caller.traceparent.clone(),
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
fn weight(order: &Order) -> usize {
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
        Some(
            Command::Delete { .. }
            | Command::Cancel { .. }
            | Command::Complete { .. }
            | Command::Fail { .. }
            | Command::Report { .. }
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
