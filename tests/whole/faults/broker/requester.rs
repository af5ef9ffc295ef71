//! A requester: it publishes, several calls at a time, and reads what becomes of it on streams that break.

use super::agent::{name, stamp};
use super::{AGENTS, Content, PAUSE, World, passes};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use taskledger_eventbus::{
    Priority, PublishTaskRequest, SubscribeToTaskResultsRequest, TaskMessage, TaskResult,
};
use taskledger_testkit::random::Random;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tonic::Streaming;

/// Publications under way of one requester.
const AT_ONCE: u64 = 8;
/// How long one waits for a result before it looks whether all is over.
const LOOK: Duration = Duration::from_millis(500);
/// Milliseconds until most deadlines.
const DEADLINE_MS: u64 = 3000;
/// Microseconds of a millisecond.
const MS: i64 = 1000;

/// A publication that was acknowledged.
#[derive(Debug, Clone)]
pub(super) struct Publication {
    pub(super) deadline: Option<i64>,
    pub(super) acknowledged_at: i64,
}

/// What a requester knows at the end.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) published: HashMap<String, Publication>,
    /// Calls that it took.
    pub(super) sent: usize,
    pub(super) results: HashMap<String, TaskResult>,
    /// Results that came again.
    pub(super) repeated: usize,
}

pub(super) struct Requester {
    publishing: Vec<JoinHandle<Told>>,
    reading: JoinHandle<Told>,
}

impl Requester {
    pub(super) fn begin(n: u64, tasks: usize, mut random: Random, world: Arc<World>) -> Self {
        let requester = format!("requester-{n}");
        let mut publishing = Vec::new();
        for part in 0..AT_ONCE {
            let publisher = Publisher {
                requester: requester.clone(),
                random: Random::new(random.next()),
                world: world.clone(),
            };
            let ids = (0..tasks).filter(move |id| *id as u64 % AT_ONCE == part);
            let ids: Vec<String> = ids.map(|id| format!("{n}-{id}")).collect();
            publishing.push(tokio::spawn(publisher.publish(ids)));
        }
        let reader = Reader {
            requester: requester.clone(),
            tasks,
            random: Random::new(random.next()),
            world: world.clone(),
            told: Told::default(),
        };
        Self {
            publishing,
            reading: tokio::spawn(reader.read()),
        }
    }

    /// What it knows, when all is over.
    pub(super) async fn end(self) -> Told {
        let mut told = self.reading.await.unwrap();
        for publishing in self.publishing {
            let published = publishing.await.unwrap();
            told.sent += published.sent;
            told.published.extend(published.published);
        }
        told
    }
}

struct Publisher {
    requester: String,
    random: Random,
    world: Arc<World>,
}

impl Publisher {
    async fn publish(mut self, ids: Vec<String>) -> Told {
        let mut told = Told::default();
        let mut client = self.world.connect(&mut self.random).await;
        for id in ids {
            let message = self.message(&id);
            loop {
                told.sent += 1;
                let request = PublishTaskRequest {
                    task: Some(message.clone()),
                };
                match client.publish_task(request).await {
                    Ok(answer) => {
                        assert!(answer.into_inner().success);
                        break;
                    }
                    Err(status) => {
                        assert!(passes(&status), "{message:?}: {status:?}");
                        sleep(PAUSE).await;
                        client = self.world.connect(&mut self.random).await;
                    }
                }
            }
            let deadline = message
                .deadline
                .map(|at| at.seconds * 1_000_000 + i64::from(at.nanos) / 1000);
            let acknowledged_at = self.world.now();
            let publication = Publication {
                deadline,
                acknowledged_at,
            };
            told.published.insert(id, publication);
            self.world.publications.fetch_add(1, Ordering::Relaxed);
        }
        told
    }

    fn message(&mut self, id: &str) -> TaskMessage {
        let random = &mut self.random;
        let now = self.world.now();
        let types = ["work.a", "work.b", "work.c"];
        let mut task_type = types[random.index(&types)].to_owned();
        let mut responder = String::new();
        let mut deadline = None;
        match random.below(100) {
            // To agents that take every type.
            0..10 => responder = name(random.below(AGENTS / 4) * 4),
            // Nobody takes them in time, or at all.
            10..14 => {
                task_type = "nobody's".to_owned();
                responder = "nobody".to_owned();
                let within = i64::try_from(random.below(DEADLINE_MS)).unwrap();
                deadline = Some(now + within * MS);
            }
            14..16 => deadline = Some(now - MS),
            16..20 => deadline = Some(now + 3_600_000 * MS),
            _ => {}
        }
        let priorities = [
            Priority::Unspecified,
            Priority::Low,
            Priority::Medium,
            Priority::High,
            Priority::Critical,
        ];
        let value = Value {
            kind: Some(Kind::StringValue("x".repeat(random.below(200) as usize))),
        };
        TaskMessage {
            task_id: id.to_owned(),
            task_type,
            parameters: Some(Struct {
                fields: [("text".to_owned(), value)].into(),
            }),
            requester_agent_id: self.requester.clone(),
            responder_agent_id: responder,
            deadline: deadline.map(stamp),
            priority: priorities[random.index(&priorities)].into(),
            metadata: None,
            created_at: Some(stamp(now)),
        }
    }
}

struct Reader {
    requester: String,
    tasks: usize,
    random: Random,
    world: Arc<World>,
    told: Told,
}

impl Reader {
    async fn read(mut self) -> Told {
        let world = self.world.clone();
        while !world.is_over() {
            let mut client = world.connect(&mut self.random).await;
            let request = SubscribeToTaskResultsRequest {
                requester_agent_id: self.requester.clone(),
                task_ids: Vec::new(),
            };
            match client.subscribe_to_task_results(request).await {
                Ok(stream) => self.follow(stream.into_inner()).await,
                Err(status) => {
                    assert!(passes(&status), "{status:?}");
                    sleep(PAUSE).await;
                }
            }
        }
        self.told
    }

    /// Reads a stream until it breaks, or has lived for long enough. Everything comes again behind that, so a stream
    /// lives for more results than there were.
    async fn follow(&mut self, mut stream: Streaming<TaskResult>) {
        let life = self.told.results.len() as u64 + 1 + self.random.below(self.tasks as u64);
        let mut read = 0;
        while read < life && !self.world.is_over() {
            match timeout(LOOK, stream.message()).await {
                Ok(Ok(Some(result))) => self.note(result),
                Err(_) => continue,
                Ok(Ok(None)) => return,
                Ok(Err(status)) => {
                    assert!(passes(&status), "{status:?}");
                    return;
                }
            }
            read += 1;
        }
    }

    fn note(&mut self, result: TaskResult) {
        match self.told.results.entry(result.task_id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(result);
                self.world.results.fetch_add(1, Ordering::Relaxed);
            }
            Entry::Occupied(first) => {
                let (first, again) = (first.get(), &result);
                assert_eq!(Content::of(first), Content::of(again));
                assert_eq!(first.completed_at, again.completed_at, "{again:?}");
                self.told.repeated += 1;
            }
        }
    }
}
