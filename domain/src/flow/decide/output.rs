//! What attempts make before they end. Cost: O(1).

use super::Decision;
use super::attempt::current;
use crate::flow::command::{Append, Done};
use crate::flow::event::{Event, TaskOutputAppended};
use crate::flow::refusal::Refusal;
use crate::flow::state::Flow;
use crate::task::Status;
use crate::{Violation, limits};
use serde_json::Value;

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
        let reason = "not the next part";
        let expected = format!("{next}, or the number of a part that is there already");
        return refused("output_number", reason, expected, number.into());
    }
    if next > limits::OUTPUT_PARTS_MAX {
        let expected = format!("at most {} parts of an attempt", limits::OUTPUT_PARTS_MAX);
        return refused("output_part", "too many parts", expected, next.into());
    }
    let bytes = there.bytes as usize + order.part.bytes();
    for (bytes, bytes_max, what) in [
        (
            order.part.bytes(),
            limits::OUTPUT_PART_BYTES_MAX,
            "in a part",
        ),
        (
            bytes,
            limits::OUTPUT_BYTES_MAX,
            "in all parts of an attempt",
        ),
    ] {
        if bytes > bytes_max {
            let expected = format!("at most {bytes_max} bytes {what}");
            let reason = format!("Too large: {bytes} bytes {what}");
            return refused("output_part", &reason, expected, bytes.into());
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

fn refused(field: &str, reason: &str, expected: String, actual: Value) -> Decision {
    let fault = Violation::of(field, reason, expected, &actual);
    Err(Refusal::invalid([fault]).into())
}
