//! The member of a task's `params` that says it was published through the broker. Owns reading it; what the other parts
//! of the member mean is the broker's business.

use serde::Deserialize;
use std::sync::Arc;
use taskledger_domain::flow::TaskCreated;

/// The member of `params`.
pub const MEMBER: &str = taskledger_domain::task::spec::BROKER_PARAM;
/// Bytes of UTF-8 of an external id, and of the id of an agent. A task with longer ones counts as not published.
pub const ID_BYTES_MAX: usize = 1_024;

/// The parsed member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Mark {
    #[serde(rename = "task_id")]
    pub(crate) external_id: Arc<str>,
    pub(crate) requester: Arc<str>,
}

#[derive(Deserialize)]
struct Params {
    eventbus: Mark,
}

/// The mark of a new task; `None`: it was not published. A copy of a published task was not. Cost: O(size of `params`),
/// a search for the name unless it occurs there.
pub(crate) fn mark(created: &TaskCreated) -> Option<Mark> {
    if created.copied_from.is_some() {
        return None;
    }
    let params = created.specification.params.as_ref()?.as_str();
    if !params.contains(MEMBER) {
        return None;
    }
    // Before only the broker could write it, anybody wrote a member of this name that is no mark.
    let Params { eventbus: mark } = serde_json::from_str(params).ok()?;
    let fits = |id: &str| !id.is_empty() && id.len() <= ID_BYTES_MAX;
    (fits(&mark.external_id) && fits(&mark.requester)).then_some(mark)
}
