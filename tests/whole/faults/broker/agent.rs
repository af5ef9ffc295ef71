//! An agent: it does its tasks one after the other, and is not always what one would wish.

use super::{Client, PAUSE, World, passes};
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp, Value};
use std::sync::Arc;
use std::time::Duration;
use taskledger_eventbus::{
    PublishTaskProgressRequest, PublishTaskResultRequest, SubscribeToTasksRequest, TaskMessage,
    TaskProgress, TaskResult, TaskStatus,
};
use taskledger_testkit::random::Random;
use tokio::time::{sleep, timeout};
use tonic::{Code, Request, Streaming};

/// Milliseconds for which one is dead, or stands still, at most.
const DEAD_MS: u64 = 1500;
const STILL_MS: u64 = 2000;
/// How long one waits for a task before it looks whether all is over.
const LOOK: Duration = Duration::from_millis(500);
/// Unfinished tasks of a stream at most.
const WINDOW_MAX: u64 = 40;

pub(super) fn name(n: u64) -> String {
    format!("agent-{n}")
}

/// What an agent asks for.
const fn types(n: u64) -> &'static [&'static str] {
    match n % 4 {
        0 => &[],
        1 => &["work.*"],
        2 => &["work.a", "work.b"],
        _ => &["work.c", "work.a"],
    }
}

fn wants(types: &[&str], task_type: &str) -> bool {
    let covers = |asked: &&str| match asked.strip_suffix('*') {
        Some(beginning) => task_type.starts_with(beginning),
        None => *asked == task_type,
    };
    types.is_empty() || types.iter().any(covers)
}

/// Whether tasks of a method are for an agent.
pub(super) fn takes(agent: &str, method: &str) -> bool {
    let n = agent.strip_prefix("agent-").and_then(|n| n.parse().ok());
    let (task_type, responder) = method.split_once('@').unwrap_or((method, agent));
    responder == agent && wants(types(n.expect("an agent of this test")), task_type)
}

pub(super) fn stamp(micros: i64) -> Timestamp {
    Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap(),
    }
}

/// What becomes of a stream behind a task.
enum Next {
    Stay,
    Reconnect,
    Die,
}

pub(super) struct Agent {
    name: String,
    /// What it asks for: every type, those below a dot, or two of them.
    types: &'static [&'static str],
    random: Random,
    world: Arc<World>,
    given: usize,
}

impl Agent {
    pub(super) fn new(n: u64, random: Random, world: Arc<World>) -> Self {
        Self {
            name: name(n),
            types: types(n),
            random,
            world,
            given: 0,
        }
    }

    /// Works until all is over. How many deliveries it got.
    pub(super) async fn work(mut self) -> usize {
        let world = self.world.clone();
        while !world.is_over() {
            let mut client = world.connect(&mut self.random).await;
            let mut asked = Request::new(SubscribeToTasksRequest {
                agent_id: self.name.clone(),
                task_types: self.types.iter().map(|it| (*it).to_owned()).collect(),
            });
            let window = (1 + self.random.below(WINDOW_MAX)).to_string();
            let metadata = asked.metadata_mut();
            metadata.insert("taskledger-window", window.parse().unwrap());
            match client.subscribe_to_tasks(asked).await {
                Ok(stream) => self.serve(client, stream.into_inner()).await,
                Err(status) => {
                    assert!(passes(&status), "{status:?}");
                    sleep(PAUSE).await;
                }
            }
        }
        self.given
    }

    async fn serve(&mut self, mut client: Client, mut stream: Streaming<TaskMessage>) {
        while !self.world.is_over() {
            let task = match timeout(LOOK, stream.message()).await {
                Ok(Ok(Some(task))) => task,
                Err(_) => continue,
                Ok(Ok(None)) => return,
                Ok(Err(status)) => {
                    assert!(passes(&status), "{status:?}");
                    return;
                }
            };
            self.given += 1;
            let responder = &task.responder_agent_id;
            assert!(responder.is_empty() || *responder == self.name, "{task:?}");
            let is_wanted = wants(self.types, &task.task_type);
            assert!(is_wanted, "{task:?} for {:?}", self.types);
            match self.take(&mut client, &task).await {
                Next::Stay => {}
                Next::Die => {
                    drop(stream);
                    let dead = self.random.below(DEAD_MS);
                    return sleep(Duration::from_millis(dead)).await;
                }
                // It goes on with the task that it holds.
                Next::Reconnect => {
                    drop(stream);
                    let mut client = self.world.connect(&mut self.random).await;
                    return self.finish(&mut client, &task).await;
                }
            }
        }
    }

    async fn take(&mut self, client: &mut Client, task: &TaskMessage) -> Next {
        match self.random.below(1000) {
            0..15 => return Next::Die,
            15..30 => return Next::Reconnect,
            30..45 => {
                let still = self.random.below(STILL_MS);
                sleep(Duration::from_millis(still)).await;
            }
            45..245 => {
                let percent = i32::try_from(self.random.below(100)).unwrap();
                self.progress(client, task, percent).await;
            }
            _ => {}
        }
        self.finish(client, task).await;
        Next::Stay
    }

    async fn progress(&mut self, client: &mut Client, task: &TaskMessage, percent: i32) {
        let progress = TaskProgress {
            task_id: task.task_id.clone(),
            status: TaskStatus::InProgress.into(),
            progress_message: "under way".to_owned(),
            progress_percentage: percent,
            progress_data: None,
            executor_agent_id: self.name.clone(),
            updated_at: Some(stamp(self.world.now())),
        };
        let request = PublishTaskProgressRequest {
            progress: Some(progress),
        };
        if let Err(status) = client.publish_task_progress(request).await {
            let is_over = status.code() == Code::FailedPrecondition;
            assert!(is_over || passes(&status), "{task:?}: {status:?}");
        }
    }

    /// Says how the task ended, until somebody answers; now and then once more.
    async fn finish(&mut self, client: &mut Client, task: &TaskMessage) {
        let (status, error) = match self.random.below(20) {
            0 => (TaskStatus::Failed, format!("{} could not", self.name)),
            1 => (TaskStatus::Cancelled, format!("{} would not", self.name)),
            _ => (TaskStatus::Completed, String::new()),
        };
        let by = Value {
            kind: Some(Kind::StringValue(self.name.clone())),
        };
        let result = TaskResult {
            task_id: task.task_id.clone(),
            status: status.into(),
            result: (status == TaskStatus::Completed).then(|| Struct {
                fields: [("by".to_owned(), by)].into(),
            }),
            error_message: error,
            executor_agent_id: self.name.clone(),
            completed_at: Some(stamp(self.world.now())),
            execution_metadata: None,
        };
        let mut times = 1 + self.random.below(50) / 49;
        while times > 0 {
            let request = PublishTaskResultRequest {
                result: Some(result.clone()),
            };
            match client.publish_task_result(request).await {
                Ok(_) => {
                    self.world.is_taken(&result);
                    times -= 1;
                }
                Err(status) if passes(&status) => {
                    sleep(PAUSE).await;
                    *client = self.world.connect(&mut self.random).await;
                }
                Err(status) => {
                    assert_eq!(
                        status.code(),
                        Code::FailedPrecondition,
                        "{task:?}: {status:?}"
                    );
                    return;
                }
            }
        }
    }
}
