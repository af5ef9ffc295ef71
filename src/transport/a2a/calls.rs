//! The operations of the protocol: the request that each makes to the application, and how it answers.

use super::mapping::bounds::{whole, within};
use super::mapping::errors::{self, Doing};
use super::mapping::plan::{self, Plan, Source};
use super::mapping::{modes, said, views};
use super::runs::{Ahead, Looks};
use super::{A2a, Heard, Outcome};
use crate::application::Context;
use crate::application::api::Target;
use crate::application::api::runs::{
    AwaitRun, BegunRun, CancelRun, FollowUp, ListRuns, ReadRun, RunOrigin, RunUntil, RunView,
    StartRun, WatchRun,
};
use crate::application::api::webhooks::Callback;
use crate::application::context::{IDEMPOTENCY_KEY_CHARS_MAX, Idempotency};
use crate::transport::a2a::streams::Followed;
use serde_json::Value;
use std::sync::Arc;
use taskledger_a2a::card::AgentCard;
use taskledger_a2a::operation::{Answer, Call};
use taskledger_a2a::request::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, PAGE_SIZE_DEFAULT,
    SendMessageRequest, SubscribeToTaskRequest,
};
use taskledger_a2a::{Error, ErrorKind, Message, Part, SendMessageResponse, StreamResponse, Task};
use taskledger_domain::limits::{EXECUTOR_WAIT_MS_DEFAULT, REFERENCES_MAX};
use taskledger_domain::payload::Json;
use taskledger_domain::{RunId, TaskId, Timestamp};

/// What a caller is told to wait when the server stops, in milliseconds.
const DRAINED_RETRY_MS: u64 = 1000;
/// Saved workflows that a card names: some hundred bytes each.
const CARD_WORKFLOWS_MAX: u32 = 200;
/// The member of metadata with which a node is meant that asks.
const NODE: &str = "nodeId";

/// What a message has led to.
enum Said {
    /// A run goes on, or has begun.
    Run {
        run: RunId,
        source: Source,
        /// If it has begun now.
        begun: Option<BegunRun>,
        /// The caller was let in for a look at it before anything was stored.
        ahead: Ahead,
    },
    /// Nothing could be run.
    Direct(Message),
}

impl A2a {
    /// Carries out a call.
    ///
    /// # Errors
    /// [`Error`].
    pub(in super::super) async fn call(&self, heard: &Heard, call: Call) -> Result<Outcome, Error> {
        let answer = match call {
            Call::SendMessage(request) => Answer::Sent(self.sent(heard, request).await?),
            Call::SendStreamingMessage(request) => {
                return Ok(Outcome::Stream(self.streamed(heard, request).await?));
            }
            Call::GetTask(request) => Answer::Task(self.task(heard, &request).await?),
            Call::ListTasks(request) => Answer::Tasks(self.tasks(heard, request).await?),
            Call::CancelTask(request) => Answer::Task(self.cancelled(heard, request).await?),
            Call::SubscribeToTask(request) => {
                return Ok(Outcome::Stream(self.subscribed(heard, &request).await?));
            }
            Call::CreatePushConfig(it) => Answer::PushConfig(self.push_created(heard, it).await?),
            Call::GetPushConfig(it) => Answer::PushConfig(self.push_read(heard, it).await?),
            Call::ListPushConfigs(it) => Answer::PushConfigs(self.push_listed(heard, it).await?),
            Call::DeletePushConfig(it) => {
                self.push_deleted(heard, it).await?;
                Answer::Deleted
            }
            Call::GetExtendedAgentCard(_) => Answer::Card(Box::new(self.card(heard).await?)),
        };
        Ok(Outcome::Answer(answer))
    }

    /// The card with what its caller has saved.
    async fn card(&self, heard: &Heard) -> Result<AgentCard, Error> {
        if !self.cards.has_extended() {
            let reason = "this agent has one card for everybody: it knows no callers";
            return Err(Error::new(ErrorKind::UnsupportedOperation, reason));
        }
        let kept = self
            .runs
            .workflows(&heard.context, CARD_WORKFLOWS_MAX)
            .await;
        let kept = kept.map_err(|error| self.told(error, Doing::Reading))?;
        Ok(self.cards.card(self.described().as_deref(), &kept))
    }

    async fn sent(
        &self,
        heard: &Heard,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse, Error> {
        let history = length(request.configuration.history_length);
        let as_text = modes::are_text(&request.configuration.accepted_output_modes);
        let now = request.configuration.return_immediately;
        let looks = match now {
            true => Looks::Once,
            false => Looks::Waiting,
        };
        let (run, source, begun, ahead) = match self.say(heard, request, looks).await? {
            Said::Direct(message) => return Ok(SendMessageResponse::Message(message)),
            Said::Run {
                run,
                source,
                begun,
                ahead,
            } => (run, source, begun, ahead),
        };
        let artifacts = true;
        let view = match now {
            true => {
                let request = ReadRun {
                    run,
                    history,
                    artifacts,
                };
                self.runs.read(&heard.context, request, ahead).await
            }
            false => {
                let request = AwaitRun {
                    run,
                    history,
                    artifacts,
                    begun,
                };
                tokio::select! {
                    view = self.runs.wait(&heard.context, request, ahead) => view,
                    () = heard.ending.cancelled() => return Err(sent_away(run)),
                }
            }
        };
        let view = view.map_err(|error| {
            let error = self.told(error, Doing::Sending(&source));
            error.with("taskId", run.to_string())
        })?;
        let mut task = whole(view);
        if as_text {
            task.artifacts.iter_mut().for_each(modes::as_text);
        }
        Ok(SendMessageResponse::Task(task))
    }

    async fn streamed(
        &self,
        heard: &Heard,
        request: SendMessageRequest,
    ) -> Result<Followed, Error> {
        let history = length(request.configuration.history_length);
        let as_text = modes::are_text(&request.configuration.accepted_output_modes);
        match self.say(heard, request, Looks::Following).await? {
            Said::Direct(message) => Ok(Followed::only(StreamResponse::Message(message))),
            Said::Run {
                run, begun, ahead, ..
            } => {
                let watch = WatchRun {
                    run,
                    until: RunUntil::EndedOrInput,
                    history,
                    results: true,
                    parts: true,
                    nodes: heard.nodes,
                    behind: None,
                    begun,
                };
                let followed = self.followed(heard, watch, ahead).await;
                let followed = followed.map_err(|error| error.with("taskId", run.to_string()))?;
                Ok(followed.in_text(as_text))
            }
        }
    }

    async fn followed(
        &self,
        heard: &Heard,
        watch: WatchRun,
        ahead: Ahead,
    ) -> Result<Followed, Error> {
        let run = watch.run;
        let watched = self.runs.watch(&heard.context, watch, ahead).await;
        let watched = watched.map_err(|error| self.told(error, Doing::Reading))?;
        Ok(Followed::of(run, watched))
    }

    async fn subscribed(
        &self,
        heard: &Heard,
        request: &SubscribeToTaskRequest,
    ) -> Result<Followed, Error> {
        let watch = WatchRun {
            run: run_of(&request.id)?,
            until: RunUntil::Ended,
            history: None,
            results: true,
            parts: true,
            nodes: heard.nodes,
            behind: heard.last_event.clone(),
            begun: None,
        };
        let ahead = self.ahead(heard, Looks::Following, Doing::Reading)?;
        let followed = self.followed(heard, watch, ahead).await?;
        match followed.is_over() {
            false => Ok(followed),
            true => {
                let reason = "the task has ended; there is nothing to follow";
                let error = Error::new(ErrorKind::UnsupportedOperation, reason);
                Err(error.with("taskId", &*request.id))
            }
        }
    }

    /// Lets a caller in for a look at a run.
    fn ahead(&self, heard: &Heard, looks: Looks, doing: Doing<'_>) -> Result<Ahead, Error> {
        let ahead = self.runs.look_ahead(&heard.context, looks);
        ahead.map_err(|error| self.told(error, doing))
    }

    /// Begins a run, or says something to one. Whether its caller may look at it then is settled before.
    async fn say(
        &self,
        heard: &Heard,
        request: SendMessageRequest,
        looks: Looks,
    ) -> Result<Said, Error> {
        let push = request.configuration.task_push_notification_config;
        let push = self.push_of(heard, push)?;
        let mut message = request.message;
        said::checked(&message)?;
        match message.task_id.take() {
            Some(task) => self.follow_up(heard, &task, message, (push, looks)).await,
            None => match self.plan(&message, request.metadata.as_ref())? {
                Plan::Run { target, source } => {
                    self.begin(heard, message, (target, source), (push, looks))
                        .await
                }
                Plan::Workflow { run, source } => {
                    let context = &heard.context;
                    let tasks = self.runs.tasks_of_workflow(context, run).await;
                    let tasks = tasks.map_err(|error| self.told(error, Doing::Sending(&source)))?;
                    let tasks = tasks.map_err(|it| plan::unfit(&it, &source))?;
                    let target = (Target::New(tasks), source);
                    self.begin(heard, message, target, (push, looks)).await
                }
                Plan::Direct(text) => Ok(Said::Direct(self.direct(message, text.to_owned()))),
                Plan::Nothing => Ok(Said::Direct(self.nothing(message))),
            },
        }
    }

    async fn begin(
        &self,
        heard: &Heard,
        message: Message,
        (target, source): (Target, Source),
        (push, looks): (Option<Callback>, Looks),
    ) -> Result<Said, Error> {
        let references = message.reference_task_ids.iter();
        let references = references.filter_map(|id| RunId::parse(id).ok());
        let start = StartRun {
            target,
            // Phases of a workflow wait for their workers, and so does the method that the operator has chosen.
            allow_unknown_executors: source.waits_for_workers(),
            executor_wait_ms: EXECUTOR_WAIT_MS_DEFAULT,
            origin: RunOrigin {
                context: message.context_id.clone(),
                message: Some(said::kept(&message)?),
                references: references.take(REFERENCES_MAX).collect(),
            },
            reported: push,
        };
        let ahead = self.ahead(heard, looks, Doing::Sending(&source))?;
        let (runs, context) = (self.runs.clone(), heard.context.clone());
        let started = async move { runs.start(&context, start).await };
        let started = self.detached.spawn(started).await.map_err(|_| stopping())?;
        let started = started.map_err(|error| self.told(error, Doing::Sending(&source)))?;
        Ok(Said::Run {
            run: started.run,
            source,
            begun: Some(started.begun),
            ahead,
        })
    }

    async fn follow_up(
        &self,
        heard: &Heard,
        task: &str,
        message: Message,
        (push, looks): (Option<Callback>, Looks),
    ) -> Result<Said, Error> {
        let run = run_of(task)?;
        let node = node_of(&message)?;
        let source = Source::of_answer(&message.parts);
        let follow_up = FollowUp {
            run,
            context: message.context_id.as_deref().map(Arc::from),
            message_id: Arc::from(&*message.message_id),
            message: said::kept(&message)?,
            text: self.text_of(&message),
            data: Part::data_of(&message.parts).map(Json::of),
            task: node,
        };
        let ahead = self.ahead(heard, looks, Doing::Sending(&source))?;
        if let Some(push) = push {
            // What follows from the message is reported already.
            let kept = self.runs.report(&heard.context, run, push).await;
            kept.map_err(|error| self.told(error, Doing::Reporting))?;
        }
        let (runs, context) = (self.runs.clone(), heard.context.clone());
        let followed = async move { runs.message(&context, follow_up).await };
        let followed = self
            .detached
            .spawn(followed)
            .await
            .map_err(|_| stopping())?;
        followed.map_err(|error| self.told(error, Doing::Sending(&source)))?;
        Ok(Said::Run {
            run,
            source,
            begun: None,
            ahead,
        })
    }

    async fn task(&self, heard: &Heard, request: &GetTaskRequest) -> Result<Task, Error> {
        let read = ReadRun {
            run: run_of(&request.id)?,
            history: length(request.history_length),
            artifacts: true,
        };
        let ahead = self.ahead(heard, Looks::Once, Doing::Reading)?;
        let view = self.runs.read(&heard.context, read, ahead).await;
        Ok(whole(self.shown(view)?))
    }

    fn shown(
        &self,
        view: Result<RunView, crate::application::api::Error>,
    ) -> Result<RunView, Error> {
        view.map_err(|error| self.told(error, Doing::Reading))
    }

    async fn tasks(
        &self,
        heard: &Heard,
        request: ListTasksRequest,
    ) -> Result<ListTasksResponse, Error> {
        let page_size = request.page_size.unwrap_or(PAGE_SIZE_DEFAULT);
        let stage = request.status.map(views::stage);
        let since = request.status_timestamp_after;
        let list = ListRuns {
            context: request.context_id.map(Arc::from),
            stage,
            since: since.map(|at| Timestamp(at.timestamp_micros())),
            page_size: u32::try_from(page_size).ok(),
            page_token: request.page_token.map(Arc::from),
            history: length(request.history_length),
            artifacts: request.include_artifacts,
        };
        let page = self.runs.list(&heard.context, list).await;
        let page = page.map_err(|error| self.told(error, Doing::Reading))?;
        Ok(ListTasksResponse {
            tasks: within(page.runs.into_iter().map(views::task)),
            next_page_token: page.next.unwrap_or_default(),
            page_size,
            total_size: i32::try_from(page.total).unwrap_or(i32::MAX),
        })
    }

    async fn cancelled(&self, heard: &Heard, request: CancelTaskRequest) -> Result<Task, Error> {
        let cancel = CancelRun {
            run: run_of(&request.id)?,
            reason: None,
        };
        let (runs, context) = (self.runs.clone(), heard.context.clone());
        let cancelled = async move { runs.cancel(&context, cancel).await };
        let cancelled = self
            .detached
            .spawn(cancelled)
            .await
            .map_err(|_| stopping())?;
        let view = cancelled.map_err(|error| self.told(error, Doing::Cancelling))?;
        Ok(whole(view))
    }

    pub(super) fn told(&self, error: crate::application::api::Error, doing: Doing<'_>) -> Error {
        errors::of(&*self.clock, error, doing)
    }
}

/// A call has taken longer than it may.
pub(in super::super) fn out_of_time() -> Error {
    let reason = "the call took too long; its outcome is unknown";
    Error::new(ErrorKind::Unavailable, reason).after(DRAINED_RETRY_MS)
}

/// The same caller with an idempotency key.
///
/// # Errors
/// `InvalidParams`: it is too long or empty.
pub(in super::super) fn keyed(context: Context, key: Option<&str>) -> Result<Context, Error> {
    let Some(key) = key else { return Ok(context) };
    if !(1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.chars().count()) {
        let reason = format!("1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters are required");
        return Err(Error::invalid_member("idempotency-key", reason));
    }
    Ok(Context {
        idempotency: Some(Idempotency::new(Arc::from(key))),
        ..context
    })
}

fn length(given: Option<i32>) -> Option<usize> {
    given.and_then(|it| usize::try_from(it).ok())
}

pub(super) fn run_of(id: &str) -> Result<RunId, Error> {
    let short: String = id.chars().take(64).collect();
    RunId::parse(id).map_err(|_| Error::task_not_found(&short))
}

/// The node whose question a message answers.
fn node_of(message: &Message) -> Result<Option<TaskId>, Error> {
    let given = message.metadata.as_ref().and_then(|it| it.get(NODE));
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => match TaskId::parse(id) {
            Ok(id) => Ok(Some(id)),
            Err(_) => Err(no_node()),
        },
        Some(_) => Err(no_node()),
    }
}

fn no_node() -> Error {
    let reason = "the id of a node that waits is required, a UUID of version 4";
    Error::invalid_member("message.metadata.nodeId", reason)
}

fn stopping() -> Error {
    Error::new(ErrorKind::Unavailable, "the server is shutting down").after(DRAINED_RETRY_MS)
}

/// The run goes on; whoever waits for it is sent away.
fn sent_away(run: RunId) -> Error {
    let reason =
        "the server stops or the credentials have expired; the task continues, read it by its id";
    let error = Error::new(ErrorKind::Unavailable, reason).after(DRAINED_RETRY_MS);
    error.with("taskId", run.to_string())
}
