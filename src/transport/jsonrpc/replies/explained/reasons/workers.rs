//! Reasons why no worker has claimed a task.

use super::{Said, Speaker, counted, said};
use crate::application::api::{Ahead, AwaitedWorkers};
use serde_json::{Value, json};
use taskledger_domain::Timestamp;
use taskledger_domain::flow::explain::Place;

/// Milliseconds after the last question of a worker from which on it is told that they may be gone.
const SILENT_MS_MIN: u64 = 3_000;

impl Speaker<'_> {
    /// Why no worker has claimed it yet.
    pub(super) fn worker(&self, place: &Place, until: Option<Timestamp>) -> Said {
        let method = self.method();
        let workers = self.workers;
        let asking = workers.map_or(0, |workers| workers.asking);
        let drained = workers.map_or(0, |workers| workers.drained);
        let last = workers.and_then(|workers| workers.last_asked_at);
        let limit = workers.and_then(|workers| workers.limit);
        let running = workers.and_then(|workers| workers.running);
        let others = workers.map_or(Ahead::NONE, |workers| workers.tasks_ahead);
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
                "limit": limit,
                "ahead_in_flow": place.ahead_in_flow,
                "fails_at": until,
            }),
        );
        let mut add = |name: &str, value: Value| said.details.insert(name.to_owned(), value);
        if let Some(running) = running {
            add("running", json!(running));
        }
        match others {
            Ahead::Counted { count, more } => {
                add("tasks_ahead", json!(place.ahead_in_flow + count));
                add("more_tasks_ahead", json!(more))
            }
            Ahead::Few => add("others_ahead", json!("few")),
            Ahead::Many => add("others_ahead", json!("many")),
        };
        if workers.is_some_and(|workers| workers.fair_share) {
            add("fair_share", json!(true));
        }
        said
    }
}

/// What keeps a task waiting, of whose flow so many go before it.
fn why(method: &str, workers: Option<&AwaitedWorkers>, ahead_in_flow: usize) -> String {
    let Some(workers) = workers else {
        return format!("it is not known which workers ask for `{method}`");
    };
    let ahead = ahead(ahead_in_flow, workers.tasks_ahead);
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
            format!("the limit of attempts of `{method}` at the same time is reached")
        }
        (_, _) if let Some(ahead) = ahead => {
            let shared = if workers.fair_share {
                "; users share its workers fairly"
            } else {
                ""
            };
            let silent = match workers.silent_ms {
                Some(silent_ms) if silent_ms >= SILENT_MS_MIN => format!(
                    "; all its workers are busy, or gone: none has asked for {} s",
                    silent_ms / 1000
                ),
                Some(_) | None => String::new(),
            };
            format!("{ahead} of `{method}` must start first{shared}{silent}")
        }
        (_, _) => match workers.silent_ms {
            // One that died without a word counts until it would have asked again.
            Some(silent_ms) if silent_ms >= SILENT_MS_MIN => format!(
                "all workers of `{method}` are busy, or gone: none has asked for {} s",
                silent_ms / 1000
            ),
            Some(_) | None => format!(
                "all workers of `{method}` are busy, or have not asked again since their last answer"
            ),
        },
    }
}

/// Tasks that come first, if there are any.
fn ahead(in_flow: usize, others: Ahead) -> Option<String> {
    let others = match others {
        Ahead::Counted { count, more } => {
            let all = in_flow + count;
            let told = counted(all, "other task", "other tasks");
            return match (all, more) {
                (0, false) => None,
                (_, false) => Some(told),
                (_, true) => Some(format!("more than {told}")),
            };
        }
        Ahead::Few => "a few",
        Ahead::Many => "many",
    };
    Some(match in_flow {
        0 => format!("{others} other tasks"),
        n => format!(
            "{} of its flow and {others} other tasks",
            counted(n, "task", "tasks")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_are_gone_are_told_from_drained_and_busy_ones() {
        let nobody = AwaitedWorkers {
            owner: None,
            asking: 0,
            drained: 0,
            last_asked_at: None,
            silent_ms: None,
            running: Some(0),
            limit: None,
            tasks_ahead: Ahead::NONE,
            own_ahead: Ahead::NONE,
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
        let behind = |count, more| AwaitedWorkers {
            tasks_ahead: Ahead::Counted { count, more },
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
            (
                there.clone(),
                "all workers of `m` are busy, or gone: none has asked for 42 s".to_owned(),
            ),
            (
                AwaitedWorkers {
                    silent_ms: Some(SILENT_MS_MIN - 1),
                    ..there.clone()
                },
                "all workers of `m` are busy, or have not asked again since their last answer"
                    .to_owned(),
            ),
            (
                behind(1, false),
                "1 other task of `m` must start first; all its workers are busy, or gone: none has asked for 42 s"
                    .to_owned(),
            ),
            (
                AwaitedWorkers {
                    silent_ms: Some(SILENT_MS_MIN - 1),
                    ..behind(1, false)
                },
                "1 other task of `m` must start first".to_owned(),
            ),
            (
                AwaitedWorkers {
                    silent_ms: None,
                    ..behind(9, true)
                },
                "more than 9 other tasks of `m` must start first".to_owned(),
            ),
            (
                AwaitedWorkers {
                    fair_share: true,
                    silent_ms: None,
                    ..behind(2, false)
                },
                "2 other tasks of `m` must start first; users share its workers fairly".to_owned(),
            ),
            (
                full,
                "the limit of attempts of `m` at the same time is reached".to_owned(),
            ),
        ] {
            assert_eq!(why("m", Some(&workers), 0), expected);
        }
    }

    #[test]
    fn who_does_not_see_others_is_told_of_them_without_a_number() {
        let told = |in_flow, others| ahead(in_flow, others).expect("somebody is ahead");
        assert_eq!(told(0, Ahead::Few), "a few other tasks");
        assert_eq!(told(0, Ahead::Many), "many other tasks");
        assert_eq!(
            told(1, Ahead::Few),
            "1 task of its flow and a few other tasks"
        );
        assert_eq!(told(2, Ahead::NONE), "2 other tasks");
        assert_eq!(ahead(0, Ahead::NONE), None);
    }
}
