//! Decides the end of a flow in the log: the flow was copied, and everything before may be dropped. Cost: O(tasks).

use super::Decision;
use crate::flow::command::{Archive, Done, Rest};
use crate::flow::event::{Event, FlowArchived};
use crate::flow::refusal::{ArchiveFault, Refusal};
use crate::flow::state::Flow;
use crate::task::Status;

pub(super) fn archive(flow: &Flow, order: &Archive) -> Decision {
    if let Some(fault) = fault(flow, order) {
        return Err(Refusal::NotArchivable(fault).into());
    }
    let archived = FlowArchived {
        owner: flow.owner().map(str::to_owned),
        ..order.copy.clone()
    };
    Ok((vec![Event::FlowArchived(archived)], Done::Ok))
}

fn fault(flow: &Flow, order: &Archive) -> Option<ArchiveFault> {
    let version = flow.version();
    if flow.archived().is_some() {
        return Some(ArchiveFault::Already { version });
    }
    if version == 0 || version != order.version {
        let copied = order.version;
        return Some(ArchiveFault::Changed { version, copied });
    }
    if flow.has_active_run() {
        return Some(ArchiveFault::Running);
    }
    let live = flow.tasks.iter().filter(|task| !task.deleted);
    let moving = live.map(|task| task.status).find(|status| match status {
        Status::Pending => order.rest == Rest::Finished,
        Status::InProgress => true,
        Status::Completed | Status::Failed | Status::Cancelled => false,
    });
    moving.map(|status| ArchiveFault::NotEnded { status })
}
