//! Why no worker has claimed a task.

use super::{Said, Speaker, counted, said};
use crate::application::api::AwaitedWorkers;
use serde_json::json;
use taskledger_domain::Timestamp;
use taskledger_domain::flow::explain::Place;

impl Speaker<'_> {
    /// Why no worker has claimed it yet.
    pub(super) fn worker(&self, place: &Place, until: Option<Timestamp>) -> Said {
        let method = self.method();
        let workers = self.workers;
        let asking = workers.map_or(0, |workers| workers.asking);
        let drained = workers.map_or(0, |workers| workers.drained);
        let last = workers.and_then(|workers| workers.last_asked_at);
        let limit = workers.and_then(|workers| workers.limit);
        let running = workers.map_or(0, |workers| workers.running);
        let ahead = place.ahead_in_flow + workers.map_or(0, |workers| workers.tasks_ahead);
        let more = workers.is_some_and(|workers| workers.more_tasks_ahead);
        let why = why(method, workers, place.ahead_in_flow);
        let ends = until.map_or_else(String::new, |until| {
            format!(", and fails at {until} if that stays so")
        });
        let mut said = said(
            "waits_for_worker",
            format!("waits for a worker since {}: {why}{ends}", place.since),
            json!({
                "executor": method,
                "ready_since": place.since,
                "workers": asking,
                "drained": drained,
                "last_asked_at": last,
                "running": running,
                "limit": limit,
                "tasks_ahead": ahead,
                "more_tasks_ahead": more,
                "fails_at": until,
            }),
        );
        if workers.is_some_and(|workers| workers.fair_share) {
            said.details.insert("fair_share".to_owned(), json!(true));
        }
        said
    }
}

/// What keeps a task waiting, of whose flow so many go before it.
fn why(method: &str, workers: Option<&AwaitedWorkers>, ahead_in_flow: usize) -> String {
    let Some(workers) = workers else {
        return format!("it is not known who asks for `{method}`");
    };
    let ahead = ahead_in_flow + workers.tasks_ahead;
    match (workers.asking, workers.last_asked_at) {
        (0, _) if workers.drained > 0 => format!(
            "no worker asks for `{method}` now: {} drained",
            counted(workers.drained, "worker is", "workers are")
        ),
        (0, Some(last)) => format!(
            "no worker asks for `{method}` now; the last one asked {} s ago, at {last}",
            workers.silent_ms.unwrap_or_default() / 1000
        ),
        (0, None) => format!("no worker asks for `{method}`, and none has in the last day"),
        (_, _) if workers.is_full => {
            format!("as many attempts of `{method}` are under way as its limit allows")
        }
        (_, _) if ahead > 0 => {
            let more = if workers.more_tasks_ahead {
                "more than "
            } else {
                ""
            };
            let others = counted(ahead, "other task", "other tasks");
            let shared = if workers.fair_share {
                "; users share its workers fairly"
            } else {
                ""
            };
            format!("its turn is behind {more}{others} of `{method}`{shared}")
        }
        (_, _) => format!("all workers of `{method}` are busy"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_are_gone_are_told_from_drained_and_busy_ones() {
        let nobody = AwaitedWorkers {
            asking: 0,
            drained: 0,
            last_asked_at: None,
            silent_ms: None,
            running: 0,
            limit: None,
            tasks_ahead: 0,
            more_tasks_ahead: false,
            is_full: false,
            fair_share: false,
        };
        let last = Timestamp(1_768_473_000_000_000);
        let gone = AwaitedWorkers {
            last_asked_at: Some(last),
            silent_ms: Some(42_900),
            ..nobody.clone()
        };
        let drained = |drained| AwaitedWorkers {
            drained,
            ..gone.clone()
        };
        let there = AwaitedWorkers {
            asking: 2,
            ..gone.clone()
        };
        let behind = |tasks_ahead, more_tasks_ahead| AwaitedWorkers {
            tasks_ahead,
            more_tasks_ahead,
            ..there.clone()
        };
        let full = AwaitedWorkers {
            is_full: true,
            ..there.clone()
        };
        for (workers, expected) in [
            (
                nobody,
                "no worker asks for `m`, and none has in the last day".to_owned(),
            ),
            (
                gone.clone(),
                format!("no worker asks for `m` now; the last one asked 42 s ago, at {last}"),
            ),
            (
                drained(1),
                "no worker asks for `m` now: 1 worker is drained".to_owned(),
            ),
            (
                drained(2),
                "no worker asks for `m` now: 2 workers are drained".to_owned(),
            ),
            (there.clone(), "all workers of `m` are busy".to_owned()),
            (
                behind(1, false),
                "its turn is behind 1 other task of `m`".to_owned(),
            ),
            (
                behind(9, true),
                "its turn is behind more than 9 other tasks of `m`".to_owned(),
            ),
            (
                AwaitedWorkers {
                    fair_share: true,
                    ..behind(2, false)
                },
                "its turn is behind 2 other tasks of `m`; users share its workers fairly"
                    .to_owned(),
            ),
            (
                full,
                "as many attempts of `m` are under way as its limit allows".to_owned(),
            ),
        ] {
            assert_eq!(why("m", Some(&workers), 0), expected);
        }
    }
}
