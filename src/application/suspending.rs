//! Tasks that wait for people: the questions that workers ask, and their answers.
//!
//! A suspended task has no lease and no slot. The first valid answer counts; the same one again, by the same
//! principal, is answered as the first was.

use super::App;
use super::api::work::{
    AnsweredBefore, LeaseLoss, OriginMessage, Respond, Responded, Suspend, Suspended,
};
use super::api::{Consistency, Reply, UseCase};
use super::context::Context;
use super::error::{Error, Failure};
use super::idempotency::ReplyOf;
use super::leasing::loss;
use super::sending::{engine_metadata, metadata};
use super::stream_reader::StreamReader;
use super::working::{not_held, output_broken};
use crate::runtime::maybe_block_in_place;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_domain::contract::Outputs;
use taskledger_domain::flow::{
    self, Command, Done, Event, Flow, OnAnswer, OnExpiry, Outdated, Refusal, TaskSuspended, Then,
    Turn,
};
use taskledger_domain::limits::ANSWER_BYTES_MAX;
use taskledger_domain::question::{Expected, answer_of, prepare, value_of};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, Payload, Recorded, SuspensionId, Version, Violation};
use taskledger_projections::TaskRow;

/// The parameter with a question.
const REQUEST: &str = "request";
/// The parameter with an answer.
const VALUE: &str = "value";

impl App {
    /// Has a claimed task wait for a person.
    ///
    /// # Errors
    /// [`Error`]; `LeaseNotHeld`.
    pub(super) async fn suspend(
        &self,
        context: &Context,
        suspend: Suspend,
    ) -> Result<Suspended, Error> {
        let Suspend {
            task,
            lease,
            request,
        } = suspend;
        let holder = context.caller.actor();
        let Some(flow) = self.flow_of_lease(task).await? else {
            return Err(not_held(task, LeaseLoss::Unknown));
        };
        let held = self.flows.held((flow, task), lease, holder).await?;
        if let Some(held) = held.filter(|held| held.expires_at > self.clock.now()) {
            let current = |row: &TaskRow| row.attempt == held.attempt;
            let (_, schemas) = self.declared((flow, task), current).await?;
            let outputs = schemas.as_ref().and_then(Outputs::of);
            let prepared = maybe_block_in_place(usize::MAX, || {
                prepare(&request.to_map(), OnAnswer::Continue, outputs.as_ref())
            });
            let (asked, question, on_expiry) = prepared.map_err(|faults| {
                let below = |fault: Violation| fault.below(&[REQUEST.into()]);
                Error::invalid(faults.into_iter().map(below))
            })?;
            let command = Command::Suspend(flow::Suspend {
                task,
                attempt: held.attempt,
                lease: Some(lease),
                suspension: SuspensionId(self.clock.uuid()),
                asked,
                question,
                on_answer: OnAnswer::Continue,
                on_expiry,
            });
            match self.flows.tell(flow, command, metadata(context)).await {
                Ok(_) | Err(Error::Outdated(Outdated::Attempt)) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(recorded) = self.flows.ended_lease((flow, task), lease).await? else {
            return Err(self.lost(flow, task, lease).await);
        };
        if let Event::TaskSuspended(e) = &*recorded.event
            && *recorded.metadata.actor == **holder
            && e.question.to_map() == request.to_map()
        {
            return Ok(Suspended {
                task,
                suspension: e.suspension_id,
                expires_at: e.expires_at,
            });
        }
        Err(not_held(task, loss(&recorded.event)))
    }

    /// Answers what a task has asked.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a task that does not wait for it, or a value that is no answer.
    pub(super) async fn respond(
        &self,
        context: &Context,
        respond: Respond,
    ) -> Result<Reply, Error> {
        let Respond {
            task,
            suspension,
            answer,
            on_behalf_of,
        } = respond;
        let row = self.get(context, task, Consistency::Strong).await?.row;
        let flow = row.flow_id;
        let look = move |state: &Flow| (state.waits(task), state.turns(task).to_vec());
        let (waits, turns) = self.flows.look(flow, engine_metadata(), look).await?;
        let responded_by = context.caller.actor().to_string();
        let (given, by) = (answer.clone(), responded_by.clone());
        let asked = match waits.filter(|waits| waits.suspension == suspension) {
            Some(waits) => self.asked(flow, waits.asked_at).await?,
            None => {
                let before = turns.iter().find(|turn| turn.suspension == suspension);
                let before = match before {
                    Some(turn) => self.repeated(flow, turn, &answer, &responded_by).await?,
                    None => None,
                };
                let open = waits.map(|waits| waits.suspension);
                return before
                    .map(|it| Reply::Responded(Box::new(it)))
                    .ok_or_else(|| {
                        let refusal = Refusal::NotSuspended {
                            task,
                            suspension: open,
                        };
                        refusal.into()
                    });
            }
        };
        let expected = Expected::of(&asked.question);
        let expected = expected.ok_or_else(|| broken(flow))?;
        let value = value_of(&answer);
        let asks = (&asked, &expected);
        let command = self.answer(context, &row, asks, value.clone(), on_behalf_of)?;
        let command = Command::Respond(command);
        let choice_label = expected.label_of(&value).map(str::to_owned);
        let reply: ReplyOf = Arc::new(move |done| {
            let status = match done {
                Done::Status(status) => status,
                Done::Ok | Done::Begun(_) | Done::ClaimRefused => Status::InProgress,
            };
            Reply::Responded(Box::new(Responded {
                task,
                suspension,
                status,
                answer: answer.clone(),
                choice_label: choice_label.clone(),
                responded_by: responded_by.clone(),
            }))
        });
        let use_case = UseCase::RespondTask;
        let done = self.simple(context, use_case, (flow, task), command, reply);
        match done.await {
            // The same answer may have come at once with this one, and before it.
            Err(Error::Refused(refused))
                if matches!(refused.refusal, Refusal::NotSuspended { .. }) =>
            {
                let look = move |state: &Flow| state.turns(task).to_vec();
                let turns = self.flows.look(flow, engine_metadata(), look).await?;
                let turn = turns.iter().find(|turn| turn.suspension == suspension);
                let before = match turn {
                    Some(turn) => self.repeated(flow, turn, &given, &by).await?,
                    None => None,
                };
                let before = before.map(|it| Reply::Responded(Box::new(it)));
                before.ok_or(Error::Refused(refused))
            }
            done => done,
        }
    }

    /// What a value is to the task that asked for it.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a value that is no answer.
    pub(super) fn answer(
        &self,
        context: &Context,
        row: &TaskRow,
        (asked, expected): (&TaskSuspended, &Expected),
        value: Value,
        on_behalf_of: Option<String>,
    ) -> Result<flow::Respond, Error> {
        let (task, answer) = (row.id, answer_of(value.clone()));
        let responded_by = context.caller.actor().to_string();
        if answer.as_str().len() > ANSWER_BYTES_MAX {
            let accepted = format!("at most {ANSWER_BYTES_MAX} bytes of JSON");
            let found = answer.as_str().len().into();
            return Err(Error::invalid([Violation::of(
                VALUE,
                "too large",
                accepted,
                &found,
            )]));
        }
        maybe_block_in_place(usize::MAX, || expected.check(&value)).map_err(|fault| {
            let expected = fault.expected();
            Error::invalid([Violation::of(
                VALUE,
                "is not an answer to this question",
                expected,
                &value,
            )])
        })?;
        let then = match asked.on_answer {
            OnAnswer::Continue => Then::Continue,
            on_answer if on_answer.declines(&value) => {
                Then::Decline(format!("declined by `{responded_by}`"))
            }
            OnAnswer::Complete | OnAnswer::CompleteOrDecline => {
                let result = expected.result(&value, Some(&responded_by));
                let checked = maybe_block_in_place(usize::MAX, || {
                    let outputs = row.schemas.as_ref().and_then(Outputs::of);
                    outputs.map_or(Ok(()), |outputs| outputs.check(&result))
                });
                if let Err(fault) = checked {
                    return Err(output_broken(task, Some(&row.name), fault));
                }
                let result = Payload::checked(&result).map_err(|unfit| {
                    let found = unfit.found().into();
                    let fault = Violation::of(VALUE, unfit.reason(), unfit.expected(), &found);
                    Error::invalid([fault])
                })?;
                Then::Complete(result)
            }
        };
        Ok(flow::Respond {
            task,
            suspension: asked.suspension_id,
            answer,
            responded_by,
            on_behalf_of,
            then,
        })
    }

    /// What was asked and answered before an attempt. Cost: a look at two events for each.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) async fn answers(
        &self,
        flow: FlowId,
        turns: &[Turn],
    ) -> Result<Vec<AnsweredBefore>, Error> {
        let versions = turns
            .iter()
            .flat_map(|turn| [turn.asked_at, turn.answered_at]);
        let events = self.events_at(flow, versions.collect()).await?;
        let answered = turns.iter().filter_map(|turn| {
            let asked = &*events.get(&turn.asked_at)?.event;
            let answered = events.get(&turn.answered_at)?;
            let Event::TaskSuspended(asked) = asked else {
                return None;
            };
            let (answer, responded_by) = said(&answered.event)?;
            Some(AnsweredBefore {
                suspension: turn.suspension,
                question: asked.question.clone(),
                answer: answer.clone(),
                responded_by: responded_by.map(str::to_owned),
                at: answered.time,
            })
        });
        Ok(answered.collect())
    }

    /// The message that the `RunStarted` of this version holds. Cost: a look at an event.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) async fn origin_message(
        &self,
        flow: FlowId,
        version: Version,
    ) -> Result<Option<OriginMessage>, Error> {
        let events = self.events_at(flow, vec![version]).await?;
        let Some(Event::RunStarted(started)) = events.get(&version).map(|it| &*it.event) else {
            return Ok(None);
        };
        let Some(origin) = &started.origin else {
            return Ok(None);
        };
        let mut members = origin.message.as_ref().map(Payload::to_map);
        let mut member = |name: &str| members.as_mut().and_then(|it| it.remove(name));
        let text = |value: Value| value.as_str().map(str::to_owned);
        let free = |value: Value| match value {
            Value::Object(free) => Some(Payload::from_map(&free)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => None,
        };
        let root = || flow.root().to_string();
        Ok(Some(OriginMessage {
            context_id: origin.context.clone().unwrap_or_else(root).into(),
            message_id: member("messageId").and_then(text),
            metadata: member("metadata").and_then(free),
            references: origin.references.clone(),
        }))
    }

    pub(super) async fn events_at(
        &self,
        flow: FlowId,
        mut versions: Vec<Version>,
    ) -> Result<BTreeMap<Version, Recorded>, Error> {
        let mut found = BTreeMap::new();
        versions.sort_unstable();
        if !versions.is_empty() {
            let mut take = |recorded: &Recorded| {
                found.insert(recorded.version, recorded.clone());
            };
            StreamReader::of(&*self.flows.store, flow)
                .versions(&versions, &mut take)
                .await?;
        }
        Ok(found)
    }

    pub(super) async fn asked(
        &self,
        flow: FlowId,
        version: Version,
    ) -> Result<TaskSuspended, Error> {
        let mut events = self.events_at(flow, vec![version]).await?;
        let event = events.remove(&version).map(|recorded| recorded.event);
        match event.as_deref() {
            Some(Event::TaskSuspended(asked)) => Ok(asked.clone()),
            Some(_) | None => Err(broken(flow)),
        }
    }

    /// The first answer, if this is the same one by the same principal.
    async fn repeated(
        &self,
        flow: FlowId,
        turn: &Turn,
        answer: &Payload,
        responded_by: &str,
    ) -> Result<Option<Responded>, Error> {
        // What followed stands right behind it.
        let versions = vec![turn.asked_at, turn.answered_at, turn.answered_at + 1];
        let events = self.events_at(flow, versions).await?;
        let first = events
            .get(&turn.answered_at)
            .map(|recorded| &*recorded.event);
        let Some(Event::TaskAnswered(first)) = first else {
            return Ok(None);
        };
        let is_same =
            first.responded_by == responded_by && first.answer.to_map() == answer.to_map();
        let asked = events.get(&turn.asked_at).map(|recorded| &*recorded.event);
        let Some(Event::TaskSuspended(asked)) = asked.filter(|_| is_same) else {
            return Ok(None);
        };
        let then = events.get(&(turn.answered_at + 1));
        let status = match then.map(|recorded| &*recorded.event) {
            Some(Event::TaskCompleted(_)) => Status::Completed,
            Some(Event::TaskFailed(_)) => Status::Failed,
            Some(_) | None => Status::Pending,
        };
        let value = value_of(answer);
        let expected = Expected::of(&asked.question);
        let label = expected.and_then(|it| it.label_of(&value).map(str::to_owned));
        Ok(Some(Responded {
            task: first.task_id,
            suspension: turn.suspension,
            status,
            answer: answer.clone(),
            choice_label: label,
            responded_by: first.responded_by.clone(),
        }))
    }
}

fn broken(flow: FlowId) -> Error {
    let text = format!("the log of flow {flow} lacks a question that its state names");
    Failure::Broken(text).into()
}

/// What an event says in answer to a question, and who.
fn said(event: &Event) -> Option<(&Payload, Option<&str>)> {
    if let Event::TaskAnswered(e) = event {
        return Some((&e.answer, Some(&e.responded_by)));
    }
    if let Event::TaskSuspensionExpired(e) = event
        && let OnExpiry::Continue { answer } = &e.policy
    {
        return Some((answer, None));
    }
    None
}
