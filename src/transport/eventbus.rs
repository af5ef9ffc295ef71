//! The AgentHub EventBus over gRPC: agents publish tasks, are given tasks, and say how they go.
//!
//! Owns: what messages mean as tasks, which statuses they are answered with, which stream holds what. A published
//! task is a task like any other; the stream of an agent is a worker like any other. May not touch: the log, HTTP.
//! Specification: docs/guides/agent-broker.md

mod delivery;
mod figures;
mod held;
mod live;
mod outcomes;
mod patterns;
mod progress;
mod publish;
mod published;
mod results;
mod spoken;
mod status;
mod types;
mod values;
mod wire;
mod words;

pub(super) use results::Polled;
pub(super) use wire::{CALLS, undecodable};

pub use figures::{Figures, SERVICE, Topic};

use crate::application::api::{EarlyTurn, UseCase};
use crate::application::{Context, Service};
use crate::clock::SharedClock;
use crate::transport::figures::Figures as Doors;
use delivery::Delivery;
use held::{Agent, Held};
use live::Live;
use patterns::Patterns;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::limits::{KEY_CHARS_MAX, NAME_CHARS_MAX};
use taskledger_domain::{TaskId, Timestamp};
use taskledger_eventbus::{
    EventBus, PublishResponse, PublishTaskProgressRequest, PublishTaskRequest,
    PublishTaskResultRequest, SubscribeToTaskResultsRequest, SubscribeToTasksRequest, TaskMessage,
    TaskProgress, TaskResult, WINDOW,
};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// Milliseconds for which a task is kept for an agent that is silent.
const LEASE_MS: u64 = 30_000;
/// How many unfinished tasks a stream may hold without [`WINDOW`].
const WINDOW_DEFAULT: usize = 100;
/// How many at most.
const WINDOW_MAX: usize = 1000;

/// Tasks without a stream that are ended at the same time, at most.
const TURNS: usize = 64;

/// How a call came in: put into its extensions by the listener.
#[derive(Debug, Clone)]
pub(super) struct Came {
    /// Its caller.
    pub(super) context: Context,
    /// Cancelled when its stream has to end.
    pub(super) ending: CancellationToken,
    /// Cancelled when the server stops.
    pub(super) stopping: CancellationToken,
    /// The turn in which the message is read, if it is large.
    pub(super) turn: EarlyTurn,
}

/// The service.
#[derive(Debug)]
pub(super) struct Bus {
    service: Arc<Service>,
    clock: SharedClock,
    doors: Arc<Doors>,
    held: Arc<Held>,
    /// Told when something that a stream held is over.
    room: Notify,
    /// Told when a stream of tasks has ended, for others of its agent.
    closed: Notify,
    /// How long a task without a deadline waits for an agent; `None`: for ever.
    ttl: Option<Duration>,
    /// Bytes of a message that agents are taken to accept.
    message_bytes_max: usize,
    /// Hands progress to the streams of this node.
    live: Live,
    /// Held by who ends a task that nobody holds, by its id.
    turns: [Mutex<()>; TURNS],
}

/// [`Bus`], shared by all calls.
#[derive(Debug, Clone)]
pub(super) struct Shared(Arc<Bus>);

impl Shared {
    pub(super) fn new(
        service: Arc<Service>,
        clock: SharedClock,
        doors: Arc<Doors>,
        ttl: Option<Duration>,
        message_bytes_max: usize,
    ) -> Self {
        Self(Arc::new(Bus {
            service,
            clock,
            doors,
            held: Arc::default(),
            room: Notify::new(),
            closed: Notify::new(),
            ttl,
            // Whoever takes less from agents does not make them take less.
            message_bytes_max: message_bytes_max.max(wire::CLIENT_BYTES_MAX),
            live: Live::default(),
            turns: std::array::from_fn(|_| Mutex::default()),
        }))
    }
}

impl Bus {
    fn figures(&self) -> &Figures {
        self.doors.broker()
    }

    /// The answer to a call that publishes something, counted.
    async fn counted(
        &self,
        topic: Topic,
        event: &str,
        work: impl Future<Output = Result<(), Status>>,
    ) -> Result<Response<PublishResponse>, Status> {
        let began = Instant::now();
        let done = work.await;
        let error = done.as_ref().err().map(Status::code);
        let took = began.elapsed();
        self.figures().published(topic, event, error, took);
        done.map(|()| {
            Response::new(PublishResponse {
                success: true,
                error: String::new(),
            })
        })
    }

    /// How long ago something was, for what is counted.
    fn since(&self, at: Timestamp) -> Duration {
        Duration::from_millis(self.clock.now().ms_since(at))
    }

    /// Whether a caller may speak for an agent, which this member names, when it asks for this.
    fn speaks_for(
        &self,
        context: &Context,
        agent: &str,
        (field, asked): (&str, UseCase),
    ) -> Result<(), Status> {
        let speaks = self.service.speaks_for(context, agent, asked);
        speaks.map_err(|_| {
            Status::permission_denied(format!(
                "{field}: the credentials are not those of this agent"
            ))
        })
    }

    /// The tasks that may be meant by an id: that with this UUID, and those that the caller has published under it.
    async fn candidates(
        &self,
        context: &Context,
        external_id: &str,
    ) -> Result<Vec<TaskId>, Status> {
        // One with a UUID has it as its id, whoever has published it.
        if let Ok(id) = TaskId::parse(external_id)
            && id.to_string() == external_id
        {
            return Ok(vec![id]);
        }
        let found = self.service.published_as(context, external_id).await;
        found.map_err(|error| status::of(&*self.clock, error))
    }
}

type Sent<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl EventBus for Shared {
    type SubscribeToTasksStream = Sent<TaskMessage>;
    type SubscribeToTaskResultsStream = Sent<TaskResult>;
    type SubscribeToTaskProgressStream = Sent<TaskProgress>;

    async fn publish_task(
        &self,
        request: Request<PublishTaskRequest>,
    ) -> Result<Response<PublishResponse>, Status> {
        let mut came = came(&request)?;
        // It has its turn until it is the first request.
        came.context.early_turn = came.turn;
        let context = came.context;
        let task = request.into_inner().task;
        let event = task.as_ref().map(|it| it.task_type.clone());
        // Large, and moved on the way.
        let work = Box::pin(self.0.publish(&context, task));
        let event = event.unwrap_or_default();
        self.0.counted(Topic::Tasks, &event, work).await
    }

    async fn publish_task_result(
        &self,
        request: Request<PublishTaskResultRequest>,
    ) -> Result<Response<PublishResponse>, Status> {
        let context = read(&request)?.context;
        let work = Box::pin(self.0.ended(&context, request.into_inner().result));
        let topic = Topic::Results;
        self.0.counted(topic, topic.event(), work).await
    }

    async fn publish_task_progress(
        &self,
        request: Request<PublishTaskProgressRequest>,
    ) -> Result<Response<PublishResponse>, Status> {
        let context = read(&request)?.context;
        let work = Box::pin(self.0.progressed(&context, request.into_inner().progress));
        let topic = Topic::Progress;
        self.0.counted(topic, topic.event(), work).await
    }

    async fn subscribe_to_tasks(
        &self,
        request: Request<SubscribeToTasksRequest>,
    ) -> Result<Response<Self::SubscribeToTasksStream>, Status> {
        let Came {
            context,
            ending,
            stopping,
            ..
        } = read(&request)?;
        let window = window(&request)?;
        let asked = request.into_inner();
        if asked.agent_id.is_empty() {
            return Err(Status::invalid_argument("agent_id cannot be empty"));
        }
        values::name_of(&asked.agent_id, "agent_id", KEY_CHARS_MAX)?;
        let taking = ("agent_id", UseCase::ClaimTasks);
        self.0.speaks_for(&context, &asked.agent_id, taking)?;
        if asked.task_types.len() > patterns::TYPES_MAX {
            let reason = format!(
                "{} types; at most {} are accepted",
                asked.task_types.len(),
                patterns::TYPES_MAX
            );
            return Err(values::invalid("task_types", reason));
        }
        for given in &asked.task_types {
            values::name_of(
                given,
                "task_types",
                NAME_CHARS_MAX - 1 - KEY_CHARS_MAX.min(64),
            )?;
            if let Some(fault) = patterns::fault(given) {
                return Err(values::invalid("task_types", format!("`{given}`: {fault}")));
            }
        }
        let name: Arc<str> = asked.agent_id.into();
        let agent = Agent {
            principal: context.caller.actor().clone(),
            name: name.clone(),
        };
        // One at a time: what is written is claimed, and what is claimed is held.
        let (out, stream) = mpsc::channel(1);
        let delivery = Delivery {
            bus: self.0.clone(),
            context,
            agent,
            patterns: Patterns::of(name, &asked.task_types),
            window,
            out,
            stopping,
        };
        tokio::spawn(delivery.run(ending));
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn subscribe_to_task_results(
        &self,
        request: Request<SubscribeToTaskResultsRequest>,
    ) -> Result<Response<Self::SubscribeToTaskResultsStream>, Status> {
        let Came {
            context, ending, ..
        } = read(&request)?;
        let asked = self.0.asked(&context, request.into_inner())?;
        let (stream, polled) = self.0.results(context, asked, ending).await?;
        let mut response = Response::new(stream);
        response.extensions_mut().insert(polled);
        Ok(response)
    }

    async fn subscribe_to_task_progress(
        &self,
        request: Request<SubscribeToTaskResultsRequest>,
    ) -> Result<Response<Self::SubscribeToTaskProgressStream>, Status> {
        let Came {
            context, ending, ..
        } = read(&request)?;
        let asked = self.0.asked(&context, request.into_inner())?;
        let stream = self.0.progress(context, asked, ending).await?;
        Ok(Response::new(stream))
    }
}

fn came<T>(request: &Request<T>) -> Result<Came, Status> {
    let came = request.extensions().get::<Came>().cloned();
    came.ok_or_else(|| Status::internal("the call has no caller"))
}

/// The same of a message that does not keep its turn.
fn read<T>(request: &Request<T>) -> Result<Came, Status> {
    let came = came(request)?;
    came.turn.end();
    Ok(came)
}

fn window<T>(request: &Request<T>) -> Result<usize, Status> {
    let Some(given) = request.metadata().get(WINDOW) else {
        return Ok(WINDOW_DEFAULT);
    };
    let number = given.to_str().ok().and_then(|text| text.parse().ok());
    let number = number.filter(|it| (1..=WINDOW_MAX).contains(it));
    number.ok_or_else(|| values::invalid(WINDOW, format!("not a number from 1 to {WINDOW_MAX}")))
}

/// What a message becomes that anybody publishes at `now`: a task as `tasks.create` takes it. Nothing is published; for
/// tests that make messages up.
///
/// # Errors
/// `INVALID_ARGUMENT`, with the member that is wrong.
pub fn task_of(message: TaskMessage, now: Timestamp) -> Result<serde_json::Value, Status> {
    publish::task_of(now, message)
}

/// What is wrong with a struct of a message, or the same as JSON and back; see [`task_of`].
///
/// # Errors
/// `INVALID_ARGUMENT`, with the place of what is wrong.
pub fn there_and_back(
    given: prost_types::Struct,
    field: &str,
) -> Result<prost_types::Struct, Status> {
    values::json_of(given, field).map(values::struct_of)
}

/// Why a stream ends that the server ends.
fn ended(_: &Context) -> Status {
    Status::unavailable("the server stops or the credentials have ended; subscribe again")
}
