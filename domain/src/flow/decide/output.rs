//! Decides parts of outputs, which attempts report before they end. Cost: O(1).

use super::Decision;
use super::attempt::current;
use crate::flow::command::{Append, Done};
use crate::flow::event::{Event, TaskOutputAppended};
use crate::flow::refusal::{Fault, OutputExtent, Refusal};
use crate::flow::state::Flow;
use crate::limits;
use crate::task::Status;

/// The next part of the output of an attempt. The same part again changes nothing.
pub(super) fn append(flow: &Flow, order: &Append) -> Decision {
    let task = current(flow, (order.task, order.attempt, order.lease))?;
    let i = super::find(flow, order.task)?;
    let there = flow.outputs.get(&i).copied().unwrap_or_default();
    let (next, number) = (there.parts + 1, order.number);
    let done = Done::Status(Status::InProgress);
    if (1..next).contains(&number) {
        return Ok((Vec::new(), done));
    }
    if number != next {
        return refused(Fault::OutputPartOutOfOrder {
            task: order.task,
            number,
            next,
        });
    }
    if next > limits::OUTPUT_PARTS_MAX {
        return refused(Fault::TooManyOutputParts {
            task: order.task,
            parts: next,
            parts_max: limits::OUTPUT_PARTS_MAX,
        });
    }
    let bytes = there.bytes as usize + order.part.bytes();
    for (bytes, bytes_max, extent) in [
        (
            order.part.bytes(),
            limits::OUTPUT_PART_BYTES_MAX,
            OutputExtent::Part,
        ),
        (bytes, limits::OUTPUT_BYTES_MAX, OutputExtent::Attempt),
    ] {
        if bytes > bytes_max {
            return refused(Fault::OutputTooLarge {
                task: order.task,
                extent,
                bytes,
                bytes_max,
            });
        }
    }
    let event = Event::TaskOutputAppended(TaskOutputAppended {
        task_id: order.task,
        attempt: order.attempt,
        number: next,
        part: order.part.clone(),
        progress: task.progress,
    });
    Ok((vec![event], done))
}

fn refused(fault: Fault) -> Decision {
    Err(Refusal::invalid([fault]).into())
}
