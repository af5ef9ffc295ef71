//! Why no worker has claimed a task.

use super::{Said, Speaker, said};
use serde_json::json;
use taskledger_domain::Timestamp;
use taskledger_domain::flow::explain::Place;

impl Speaker<'_> {
    /// Why no worker has claimed it yet.
    pub(super) fn worker(&self, place: &Place, until: Option<Timestamp>) -> Said {
        let method = self.method();
        let workers = self.workers;
        let asking = workers.map_or(0, |workers| workers.asking);
        let last = workers.and_then(|workers| workers.last_asked_at);
        let limit = workers.and_then(|workers| workers.limit);
        let running = workers.map_or(0, |workers| workers.running);
        let ahead = place.ahead_in_flow + workers.map_or(0, |workers| workers.tasks_ahead);
        let more = workers.is_some_and(|workers| workers.more_tasks_ahead);
        let why = match (asking, last) {
            (0, Some(last)) => {
                format!("no worker asks for `{method}`; the last one asked at {last}")
            }
            (0, None) => format!("no worker asks for `{method}`, and none has in the last day"),
            (_, _) if workers.is_some_and(|workers| workers.is_full) => {
                format!("as many attempts of `{method}` are under way as its limit allows")
            }
            (_, _) if ahead > 0 => {
                let more = if more { "more than " } else { "" };
                format!("its turn is behind {more}{ahead} other tasks of `{method}`")
            }
            (_, _) => format!("all workers of `{method}` are busy"),
        };
        let ends = until.map_or_else(String::new, |until| {
            format!(", and fails at {until} if that stays so")
        });
        said(
            "waits_for_worker",
            format!("waits for a worker since {}: {why}{ends}", place.since),
            json!({
                "executor": method,
                "ready_since": place.since,
                "workers": asking,
                "last_asked_at": last,
                "running": running,
                "limit": limit,
                "tasks_ahead": ahead,
                "more_tasks_ahead": more,
                "fails_at": until,
            }),
        )
    }
}
