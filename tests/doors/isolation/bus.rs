//! The EventBus in the matrix: what agents publish below and behind tasks, take, and say of tasks.

use super::inboxes::{KIND, NOW, client, first, refused, with};
use super::matrix::Object;
use super::world::Callers;
use prost_types::{ListValue, Struct, Value};
use taskledger::application::api::UseCase;
use taskledger::clock::{Clock, SystemClock};
use taskledger_eventbus::{
    PublishTaskProgressRequest, PublishTaskRequest, PublishTaskResultRequest,
    SubscribeToTasksRequest, TaskMessage, TaskProgress, TaskResult, TaskStatus,
};

/// What an agent asks or says.
#[derive(Debug)]
pub(super) struct OnBus {
    agent: String,
    does: Does,
}

#[derive(Debug)]
enum Does {
    /// Publishes a task of its own flow, or below this one and behind these.
    Publish {
        below: Option<String>,
        depends_on: Vec<String>,
    },
    /// Takes tasks.
    Take,
    /// Says how far this task is.
    Progress(String),
    /// Ends this task.
    End(String, TaskStatus),
}

/// Every way in which agents of `own` can ask for a use case and name something of `object`.
pub(super) fn rows(case: UseCase, object: &Object, own: &Object) -> Vec<OnBus> {
    let by_own = |does| OnBus {
        agent: own.agent.clone(),
        does,
    };
    let below = |id: &String, depends_on: &[&String]| {
        by_own(Does::Publish {
            below: Some(id.clone()),
            depends_on: depends_on.iter().map(|it| (*it).clone()).collect(),
        })
    };
    let works = &object.published[1];
    let ends = |status| by_own(Does::End(works.clone(), status));
    let takes = OnBus {
        agent: object.agent.clone(),
        does: Does::Take,
    };
    let all = [
        (UseCase::CreateTasks, below(&object.root, &[])),
        (UseCase::CreateTasks, below(&object.child, &[])),
        (UseCase::CreateTasks, below(&own.root, &[&object.child])),
        (UseCase::ClaimTasks, takes),
        (UseCase::RenewLease, by_own(Does::Progress(works.clone()))),
        (UseCase::CompleteTask, ends(TaskStatus::Completed)),
        (UseCase::FailTask, ends(TaskStatus::Failed)),
        (UseCase::CancelTasks, ends(TaskStatus::Cancelled)),
    ];
    let of_case = all.into_iter().filter(|(it, _)| *it == case);
    of_case.map(|(_, asked)| asked).collect()
}

/// What asks for a use case, and names nothing.
pub(super) fn plain(case: UseCase, own: &Object) -> Option<OnBus> {
    (case == UseCase::ExecuteTasks).then(|| OnBus {
        agent: own.agent.clone(),
        does: Does::Publish {
            below: None,
            depends_on: Vec::new(),
        },
    })
}

fn text(text: &str) -> Value {
    Value::from(text.to_owned())
}

fn published(agent: &str, below: Option<&str>, depends_on: &[String]) -> TaskMessage {
    let mut fields = std::collections::BTreeMap::new();
    if let Some(below) = below {
        fields.insert("parent_id".to_owned(), text(below));
    }
    if !depends_on.is_empty() {
        let values = depends_on.iter().map(|id| text(id)).collect();
        let kind = Some(prost_types::value::Kind::ListValue(ListValue { values }));
        fields.insert("dependencies".to_owned(), Value { kind });
    }
    TaskMessage {
        task_id: SystemClock::default().uuid().to_string(),
        task_type: KIND.to_owned(),
        requester_agent_id: agent.to_owned(),
        created_at: Some(NOW),
        metadata: Some(Struct { fields }),
        ..TaskMessage::default()
    }
}

/// The answer; of a stream its first message, or that none came.
pub(super) async fn answer(world: &Callers, token: Option<&str>, asked: &OnBus) -> (u16, String) {
    let mut client = client(world).await;
    let agent = asked.agent.clone();
    let answered = match &asked.does {
        Does::Take => {
            let task_types = vec![KIND.to_owned()];
            let request = SubscribeToTasksRequest {
                agent_id: agent,
                task_types,
            };
            let request = with(world, token, request);
            return first(client.subscribe_to_tasks(request).await).await;
        }
        Does::Publish { below, depends_on } => {
            let task = Some(published(&agent, below.as_deref(), depends_on));
            let request = with(world, token, PublishTaskRequest { task });
            client.publish_task(request).await
        }
        Does::Progress(id) => {
            let progress = Some(TaskProgress {
                task_id: id.clone(),
                status: TaskStatus::InProgress.into(),
                progress_percentage: 60,
                executor_agent_id: agent,
                updated_at: Some(NOW),
                ..TaskProgress::default()
            });
            let request = with(world, token, PublishTaskProgressRequest { progress });
            client.publish_task_progress(request).await
        }
        Does::End(id, status) => {
            let result = Some(TaskResult {
                task_id: id.clone(),
                status: (*status).into(),
                executor_agent_id: agent,
                completed_at: Some(NOW),
                ..TaskResult::default()
            });
            let request = with(world, token, PublishTaskResultRequest { result });
            client.publish_task_result(request).await
        }
    };
    match answered {
        Ok(answer) => (200, format!("{:?}", answer.into_inner())),
        Err(status) => refused(&status),
    }
}
