//! `SubscribeToTaskProgress`: streams the progress of a requester's tasks from now on, after one message for each task
//! that runs.

use super::published::NOBODY;
use super::results::Asked;
use super::values::{struct_of, timestamp_of};
use super::{Bus, Sent, Topic, ended, status};
use crate::application::Context;
use crate::application::api::broker::{Attempt, Inbox, Running};
use crate::application::api::{Error, Watching};
use crate::subscription::notice::Notice;
use crate::subscription::stream::{Item, Notices};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::TaskId;
use taskledger_eventbus::{TaskProgress, TaskStatus};
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
        let telling = Telling {
            bus: self.clone(),
            inbox,
            requester,
            wanted,
            names: HashMap::new(),
            workers: HashMap::new(),
            out: out.clone(),
        };
        tokio::spawn(async move {
            let end = tokio::select! {
                () = telling.run(stream) => return,
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
    out: mpsc::Sender<Result<TaskProgress, Status>>,
}

impl Telling {
    async fn run(mut self, mut notices: Notices) {
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
        while let Some(item) = notices.next().await {
            match item {
                Ok(Item::Batch(batch)) => {
                    for published in batch.notices() {
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

    async fn tell(&mut self, notice: &Notice) -> Result<(), Error> {
        let (task, Some(attempt)) = (notice.task_id, notice.attempt) else {
            return Ok(());
        };
        let external_id = match self.names.get(&task) {
            Some(known) => known.clone(),
            None => {
                let name = self.inbox.name_of(task).await?;
                if self.names.len() >= KNOWN_MAX {
                    self.names.clear();
                }
                self.names.insert(task, name.clone());
                name
            }
        };
        let Some(external_id) = external_id else {
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
        let wanted = self.wanted.as_ref();
        if !wanted.is_none_or(|ids| ids.contains(&running.external_id)) {
            return;
        }
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
        // Whoever is gone ends the stream.
        if self.out.send(Ok(told)).await.is_ok() {
            let (topic, after) = (Topic::Progress, self.bus.since(running.at));
            let figures = self.bus.figures();
            figures.delivered(topic, topic.event(), &self.requester, after);
        }
    }
}
