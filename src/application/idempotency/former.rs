//! Records without a version, which kept the JSON-RPC result of a call: read as replies for as long as they
//! live, which is a day after the upgrade.

use super::record::unreadable;
use crate::application::api::{Copied, Created, DroppedDependency, Reply, Started};
use crate::application::authorize::UseCase;
use crate::application::error::Error;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_domain::flow::WillRun;
use taskledger_domain::task::Status;
use taskledger_domain::{RunId, TaskId};

/// The members of all results that were kept.
#[derive(Deserialize)]
struct Answer {
    id: Option<TaskId>,
    task_id: Option<TaskId>,
    root_task_id: Option<TaskId>,
    original_task_id: Option<TaskId>,
    copied_task_id: Option<TaskId>,
    run_id: Option<RunId>,
    status: Option<String>,
    task_ids: Option<BTreeMap<String, TaskId>>,
    will_run: Option<WillRun>,
    dropped_dependencies: Option<Vec<Dropped>>,
}

#[derive(Deserialize)]
struct Dropped {
    task_id: TaskId,
    id: TaskId,
    required: bool,
}

/// The reply that a kept result stands for.
///
/// # Errors
/// `Failed`: it is none of this use case.
pub(super) fn reply(use_case: UseCase, answer: &RawValue) -> Result<Reply, Error> {
    let answer: Answer = serde_json::from_str(answer.get()).map_err(|error| unreadable(&error))?;
    let name = use_case.as_str();
    of(use_case, answer).ok_or_else(|| unreadable(&format!("it is no result of {name}")))
}

fn of(use_case: UseCase, answer: Answer) -> Option<Reply> {
    let task_ids = answer.task_ids.map(|ids| ids.into_iter().collect());
    if use_case == UseCase::CreateTasks {
        let task = answer.id?;
        return Some(Reply::Created(Created { task, task_ids }));
    }
    if use_case == UseCase::ExecuteTasks || use_case == UseCase::RetryTask {
        return Some(Reply::Started(Started {
            root: answer.root_task_id?,
            task: answer.task_id,
            run: answer.run_id?,
            task_ids: task_ids.unwrap_or_default(),
            will_run: answer.will_run.unwrap_or_default(),
        }));
    }
    if use_case == UseCase::UpdateTask {
        let status = answer.status.as_deref().and_then(Status::parse);
        let task = answer.id?;
        return Some(Reply::Updated { task, status });
    }
    if use_case == UseCase::DeleteTasks {
        return Some(Reply::Deleted);
    }
    if use_case == UseCase::CancelTasks {
        return answer.task_id.map(|task| Reply::Cancelled { task });
    }
    if use_case == UseCase::CopyTasks {
        let copies = task_ids.unwrap_or_default();
        let copies: Option<Vec<_>> = copies
            .iter()
            .map(|(from, to)| Some((TaskId::parse(from).ok()?, *to)))
            .collect();
        let dropped = answer.dropped_dependencies.unwrap_or_default();
        return Some(Reply::Copied(Copied {
            original: answer.original_task_id?,
            copy: answer.copied_task_id?,
            task_ids: copies?.into(),
            dropped: dropped
                .into_iter()
                .map(|it| DroppedDependency {
                    task: it.task_id,
                    on: it.id,
                    required: it.required,
                })
                .collect::<Arc<[_]>>(),
        }));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};
    use taskledger_domain::testing::id;

    fn read(use_case: UseCase, answer: Value) -> Reply {
        let answer = to_raw_value(&answer).expect("JSON can be written");
        reply(use_case, &answer).expect("it was kept")
    }

    #[test]
    fn every_kept_result_is_read() {
        let (a, b, run) = (id("a"), id("b"), id("run"));
        let created = json!({"id": a, "status": "pending", "task_ids": {"x": a, "y": b}});
        let Reply::Created(created) = read(UseCase::CreateTasks, created) else {
            panic!("tasks were created");
        };
        assert_eq!(created.task_ids.map(|ids| ids.len()), Some(2));
        let started = json!({"root_task_id": a, "task_id": b, "status": "started", "run_id": run,
            "will_run": {"tasks": [b], "count": 1}});
        let Reply::Started(started) = read(UseCase::RetryTask, started) else {
            panic!("a run was started");
        };
        assert_eq!((started.task, started.run), (Some(b), RunId(run.0)));
        assert_eq!(
            (started.will_run.tasks, started.will_run.count),
            (vec![b], 1)
        );
        let updated = read(UseCase::UpdateTask, json!({"id": a, "status": "failed"}));
        assert!(matches!(
            updated,
            Reply::Updated {
                status: Some(Status::Failed),
                ..
            }
        ));
        let deleted = read(UseCase::DeleteTasks, json!({"success": true}));
        assert!(matches!(deleted, Reply::Deleted));
        let cancelled = json!({"task_id": a, "status": "cancelled"});
        assert!(
            matches!(read(UseCase::CancelTasks, cancelled), Reply::Cancelled { task } if task == a)
        );
        let copied = json!({"original_task_id": a, "copied_task_id": b, "status": "pending",
            "task_ids": {a.to_string(): b}, "dropped_dependencies": [{"task_id": b, "id": a, "required": true}]});
        let Reply::Copied(copied) = read(UseCase::CopyTasks, copied) else {
            panic!("a task was copied");
        };
        assert_eq!(*copied.task_ids, [(a, b)]);
        assert_eq!((copied.dropped[0].task, copied.dropped[0].on), (b, a));
    }
}
