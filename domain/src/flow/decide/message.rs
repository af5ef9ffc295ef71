//! Decides messages to a run from whoever began it. Cost: O(messages of the run + size).

use super::{Decision, suspend};
use crate::flow::command::{Done, Receive};
use crate::flow::event::{Event, MessageReceived};
use crate::flow::refusal::{Fault, Refusal, Rejection};
use crate::flow::state::Flow;
use crate::limits;

/// A message answers a question of a task of the run. The same message again changes nothing.
pub(super) fn receive(flow: &Flow, order: &Receive) -> Decision {
    let Some(run) = flow.run_keys.get(&order.run).map(|key| &flow.runs[key]) else {
        return Err(Refusal::RunOver { run: order.run }.into());
    };
    if run.heard.iter().any(|hash| **hash == *order.body_hash) {
        return Ok((Vec::new(), Done::Ok));
    }
    if run.heard.len() >= limits::MESSAGES_PER_RUN_MAX {
        let fault = Fault::TooManyMessages {
            run: order.run,
            messages: run.heard.len(),
            messages_max: limits::MESSAGES_PER_RUN_MAX,
        };
        return Err(Refusal::invalid([fault]).into());
    }
    let refused = Refusal::RunNotWaiting {
        run: order.run,
        task: Some(order.answers.task),
    };
    let is_of_run = flow.live(order.answers.task).is_some_and(|i| {
        flow.runs
            .get(&flow.at(i).run)
            .is_some_and(|of| of.id == order.run)
    });
    if !is_of_run {
        return Err(refused.into());
    }
    let (answered, done) = match suspend::respond(flow, &order.answers) {
        Err(Rejection::Refused(why)) if matches!(why.first, Refusal::NotSuspended { .. }) => {
            return Err(refused.into());
        }
        decided => decided?,
    };
    let mut events = vec![Event::MessageReceived(MessageReceived {
        run_id: order.run,
        message_id: order.message_id.clone(),
        body_hash: order.body_hash.clone(),
        message: order.message.clone(),
        suspension_id: Some(order.answers.suspension),
    })];
    events.extend(answered);
    Ok((events, done))
}
