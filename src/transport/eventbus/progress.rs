//! `SubscribeToTaskProgress`: streams the progress of a requester's tasks from now on, after one message for each task
//! that runs.
//!
//! What agents send to this node comes as they sent it, each message; what they send to other nodes comes from the log,
//! which has the newest of each second. A message that came as it was sent is not repeated when it was recorded.

use super::live::{Content, Report};
use super::published::NOBODY;
use super::results::Asked;
use super::values::{struct_of, timestamp_of};
use super::{Bus, Sent, Topic, ended, status};
use crate::application::Context;
use crate::application::api::broker::{Attempt, Inbox, Running};
use crate::application::api::{Error, Watching};
use crate::subscription::notice::Notice;
use crate::subscription::stream::{Item, Notices};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{TaskId, Timestamp};
use taskledger_eventbus::{TaskProgress, TaskStatus};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Tasks of which a stream remembers whose they are, and attempts with their workers.
const KNOWN_MAX: usize = 4096;
/// Messages that wait for a slow receiver; then the stream waits.
const WAITING_MAX: usize = 16;
/// Messages of one task that a stream remembers, to know them when they were recorded: more than an agent sends within
/// the second after which the newest of them is.
const TOLD_MAX: usize = 128;
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

impl Bus {
    /// How far tasks of a requester are, without an end.
    pub(super) async fn progress(
        self: &Arc<Self>,
        context: Context,
        asked: Asked,
        ending: CancellationToken,
    ) -> Result<Sent<TaskProgress>, Status> {
        let told = |error| status::of(&*self.clock, error);
        let requester = asked.requester;
        let inbox = self.service.inbox(&context, requester.clone()).await;
        let inbox = inbox.map_err(told)?;
        let watching = self.service.watch_progress(&context).await;
        let Watching { stream, .. } = watching.map_err(told)?;
        let (out, sent) = mpsc::channel(WAITING_MAX);
        let wanted = asked.ids.map(|ids| ids.into_iter().collect());
        let live = self.live.listen();
        let telling = Telling {
            bus: self.clone(),
            inbox,
            requester,
            wanted,
            names: HashMap::new(),
            workers: HashMap::new(),
            told: HashMap::new(),
            out: out.clone(),
        };
        tokio::spawn(async move {
            let end = tokio::select! {
                () = telling.run(stream, live) => return,
                () = out.closed() => return,
                () = ending.cancelled() => ended(&context),
            };
            // One whose receiver is gone needs no reason.
            let _ = out.send(Err(end)).await;
        });
        Ok(Box::pin(ReceiverStream::new(sent)))
    }
}

/// One stream.
struct Telling {
    bus: Arc<Bus>,
    inbox: Inbox,
    requester: Arc<str>,
    wanted: Option<HashSet<Arc<str>>>,
    /// What agents call tasks; `None`: they are not of this inbox.
    names: HashMap<TaskId, Option<Arc<str>>>,
    workers: HashMap<Attempt, Option<Arc<str>>>,
    /// The newest messages of tasks that came as they were sent, the oldest first.
    told: HashMap<TaskId, VecDeque<Content>>,
    out: mpsc::Sender<Result<TaskProgress, Status>>,
}

impl Telling {
    async fn run(mut self, mut notices: Notices, mut live: Receiver<Arc<Report>>) {
        let _counted = self.bus.clone().figures().stream(Topic::Progress);
        match self.bus.service.running_in_inbox(&self.inbox).await {
            Ok(running) => {
                for one in running {
                    self.send(one).await;
                }
            }
            // What comes is told all the same.
            Err(error) => tracing::warn!(%error, "a stream of progress begins without what runs"),
        }
        loop {
            let item = tokio::select! {
                biased;
                sent = live.recv() => {
                    match sent {
                        Ok(report) => self.pass_on(&report).await,
                        // The newest follow.
                        Err(RecvError::Lagged(_)) => self.bus.figures().cut_off(),
                        Err(RecvError::Closed) => return,
                    }
                    continue;
                }
                item = notices.next() => item,
            };
            let Some(item) = item else { return };
            match item {
                Ok(Item::Batch(batch)) => {
                    for published in batch.notices() {
                        // In this order: what is not being recorded any more was sent before.
                        let (task, content) = content_of(&published.notice);
                        let is_under_way = self.bus.live.is_under_way(task, content);
                        while let Ok(report) = live.try_recv() {
                            self.pass_on(&report).await;
                        }
                        if is_under_way || self.was_passed_on(task, content) {
                            continue;
                        }
                        let told = self.tell(&published.notice).await;
                        if let Err(error) = told {
                            tracing::warn!(%error, "progress was not told");
                        }
                    }
                }
                Ok(Item::Silence) => {}
                Err(error) => {
                    tracing::warn!(%error, "a stream of progress waits for the log");
                    self.bus.figures().cut_off();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// What agents call a task; `None`: it is not of this inbox.
    async fn name_of(&mut self, task: TaskId) -> Result<Option<Arc<str>>, Error> {
        if let Some(known) = self.names.get(&task) {
            return Ok(known.clone());
        }
        let name = self.inbox.name_of(task).await?;
        if self.names.len() >= KNOWN_MAX {
            self.names.clear();
        }
        self.names.insert(task, name.clone());
        Ok(name)
    }

    /// Passes on a message as its agent sent it.
    async fn pass_on(&mut self, report: &Report) {
        let name = match self.name_of(report.task).await {
            Ok(Some(name)) => name,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "progress was not told");
                return;
            }
        };
        if self.told.len() >= KNOWN_MAX {
            self.told.clear();
        }
        let told = self.told.entry(report.task).or_default();
        if told.len() >= TOLD_MAX {
            told.pop_front();
        }
        told.push_back(report.content);
        let progress = TaskProgress {
            task_id: name.to_string(),
            status: TaskStatus::InProgress.into(),
            ..report.progress.clone()
        };
        self.deliver(&name, progress, self.bus.clock.now()).await;
    }

    /// Whether a message that was recorded came as it was sent.
    fn was_passed_on(&self, task: TaskId, content: Content) -> bool {
        let told = self.told.get(&task);
        told.is_some_and(|told| told.contains(&content))
    }

    async fn tell(&mut self, notice: &Notice) -> Result<(), Error> {
        let (task, Some(attempt)) = (notice.task_id, notice.attempt) else {
            return Ok(());
        };
        let Some(external_id) = self.name_of(task).await? else {
            return Ok(());
        };
        let attempt = Attempt {
            flow: notice.root_task_id.as_flow(),
            task,
            attempt,
        };
        let worker = match self.workers.get(&attempt) {
            Some(known) => known.clone(),
            None => {
                let service = &self.bus.service;
                let worker = service.worker_in_inbox(&self.inbox, attempt).await?;
                if self.workers.len() >= KNOWN_MAX {
                    self.workers.clear();
                }
                self.workers.insert(attempt, worker.clone());
                worker
            }
        };
        self.send(Running {
            external_id,
            progress: notice.progress,
            message: notice.message.clone(),
            data: notice.progress_data.clone(),
            worker,
            at: notice.timestamp,
        })
        .await;
        Ok(())
    }

    async fn send(&self, running: Running) {
        let percent = running.progress.millionths() / 10_000;
        let told = TaskProgress {
            task_id: running.external_id.to_string(),
            status: TaskStatus::InProgress.into(),
            progress_message: running.message.as_deref().unwrap_or_default().to_owned(),
            // At most 100.
            progress_percentage: i32::try_from(percent).unwrap_or(100),
            progress_data: running.data.map(|it| struct_of(it.to_map())),
            executor_agent_id: running.worker.as_deref().unwrap_or(NOBODY).to_owned(),
            updated_at: Some(timestamp_of(running.at.0)),
        };
        self.deliver(&running.external_id, told, running.at).await;
    }

    async fn deliver(&self, external_id: &Arc<str>, told: TaskProgress, at: Timestamp) {
        let wanted = self.wanted.as_ref();
        if !wanted.is_none_or(|ids| ids.contains(external_id)) {
            return;
        }
        // Whoever is gone ends the stream.
        if self.out.send(Ok(told)).await.is_ok() {
            let (topic, after) = (Topic::Progress, self.bus.since(at));
            let figures = self.bus.figures();
            figures.delivered(topic, topic.event(), &self.requester, after);
        }
    }
}

/// What tells a message that was recorded apart from others.
fn content_of(notice: &Notice) -> (TaskId, Content) {
    let message = notice.message.as_deref().unwrap_or_default();
    let percent = notice.progress.millionths() / 10_000;
    let content = Content::of(percent, message, notice.progress_data.as_ref());
    (notice.task_id, content)
}
