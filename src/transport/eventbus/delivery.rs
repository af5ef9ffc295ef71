//! `SubscribeToTasks`: a stream of an agent is a worker for the types that it asks for.
//!
//! A task is claimed when it is written to the stream, and kept for its agent as long as the stream lives: HTTP/2
//! pings tell. When the stream has ended, a stream of the same agent takes over what it held; without one, it goes
//! to others, unless the agent speaks of it meanwhile.

use super::held::{Agent, Held, HeldTask};
use super::patterns::Patterns;
use super::{Bus, LEASE_MS, Topic, published, status};
use crate::application::api::work::{
    Claim, ClaimEnd, Claimed, Connection, HeldClaims, Release, Renew, Wanted,
};
use crate::application::api::{Error, Reply, Request};
use crate::application::{Context, Service};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::limits::CLAIMS_MAX;
use taskledger_eventbus::TaskMessage;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// How long one call for claims waits when all types are known.
const WAIT: Duration = Duration::from_secs(30);
/// The same when new types may come up: how long it takes to see them.
const LOOK_FOR_TYPES: Duration = Duration::from_secs(1);
/// How often leases are renewed: three times before one ends.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How long tasks stay with an agent whose stream has ended, in case it comes back.
const GRACE: Duration = Duration::from_secs(3);
/// Pause after a call has failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause of an agent that is drained.
const DRAINED_PAUSE: Duration = Duration::from_secs(5);

/// One stream.
pub(super) struct Delivery {
    pub(super) bus: Arc<Bus>,
    pub(super) context: Context,
    pub(super) agent: Agent,
    pub(super) patterns: Patterns,
    /// Unfinished tasks at most.
    pub(super) window: usize,
    pub(super) out: mpsc::Sender<Result<TaskMessage, Status>>,
}

/// What a stream holds: dropped, it is closed, and what it leaves is given back after a while.
struct Open {
    service: Arc<Service>,
    held: Arc<Held>,
    context: Context,
    agent: Agent,
    stream: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.held.close(self.stream);
        let (service, held) = (self.service.clone(), self.held.clone());
        let (context, agent, stream) = (self.context.clone(), self.agent.clone(), self.stream);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            sleep(GRACE).await;
            let silent = Duration::from_millis(LEASE_MS);
            for left in held.left_by(stream, &agent, silent) {
                let release = Release {
                    task: left.task,
                    lease: left.lease,
                };
                // Its lease ends by itself otherwise.
                if let Err(error) = service.call(&context, Request::Release(release)).await {
                    tracing::debug!(task.id = %left.task, %error, "a task was not given back");
                }
            }
        });
    }
}

impl Delivery {
    /// Gives the agent tasks until its stream, or the server, ends.
    pub(super) async fn run(self, ending: CancellationToken) {
        let end = tokio::select! {
            end = self.deliver() => end,
            () = self.out.closed() => return,
            () = ending.cancelled() => super::ended(&self.context),
        };
        // One whose receiver is gone needs no reason.
        let _ = self.out.send(Err(end)).await;
    }

    async fn deliver(&self) -> Status {
        let watch = match self.bus.service.watch_claims(&self.context).await {
            Ok(watch) => watch,
            Err(error) => return status::of(&*self.bus.clock, error),
        };
        let _counted = self.bus.figures().stream(Topic::Tasks);
        let name = Some(self.agent.name.clone());
        let _connected = self.bus.service.connected(&self.context, name);
        let (stream, taken) = self.bus.held.open(&self.agent);
        let open = Open {
            service: self.bus.service.clone(),
            held: self.bus.held.clone(),
            context: self.context.clone(),
            agent: self.agent.clone(),
            stream,
        };
        tokio::select! {
            end = self.claim(&open, &watch.held, taken) => end,
            end = self.note_ends(watch.ends) => end,
            end = self.renew(&open) => end,
        }
    }

    async fn claim(&self, open: &Open, watched: &HeldClaims, taken: Vec<HeldTask>) -> Status {
        for held in taken {
            watched.hold(held.task, held.attempt);
            if self.out.send(Ok((*held.message).clone())).await.is_err() {
                return gone();
            }
        }
        loop {
            let room = self.room(open.stream).await;
            let methods = self.methods().await;
            let wait = match self.patterns.is_exact() {
                true => WAIT,
                false => LOOK_FOR_TYPES,
            };
            if methods.is_empty() {
                sleep(wait).await;
                continue;
            }
            let claim = Claim {
                worker: Some(self.agent.name.clone()),
                wanted: Wanted::Methods(methods),
                max: room.min(CLAIMS_MAX),
                lease_ms: LEASE_MS,
                wait,
                connection: Connection::Socket,
                heard_at: Instant::now(),
            };
            match self.bus.service.claim(&self.context, claim).await {
                Ok(claims) if claims.draining => sleep(DRAINED_PAUSE).await,
                Ok(claims) => {
                    for claimed in &claims.claims {
                        self.hold(open.stream, watched, claimed);
                    }
                    for claimed in claims.claims {
                        let message =
                            published::message(&claimed.task, &claimed.input, claimed.attempt);
                        let event = message.task_type.clone();
                        if self.out.send(Ok(message)).await.is_err() {
                            return gone();
                        }
                        self.count(&event, &claimed);
                    }
                }
                Err(Error::Busy { retry_after_ms, .. } | Error::RateLimited { retry_after_ms }) => {
                    sleep(Duration::from_millis(retry_after_ms)).await;
                }
                Err(
                    error @ (Error::Failed(_)
                    | Error::Elsewhere(_)
                    | Error::OutcomeUnknown
                    | Error::Unanswered { .. }
                    | Error::OutOfTime { .. }),
                ) => {
                    tracing::warn!(%error, "a stream of tasks could not claim");
                    self.bus.figures().cut_off();
                    sleep(PAUSE).await;
                }
                Err(error) => return status::of(&*self.bus.clock, error),
            }
        }
    }

    fn count(&self, event: &str, claimed: &Claimed) {
        let (figures, agent) = (self.bus.figures(), &self.agent.name);
        let after = self.bus.since(claimed.task.created_at);
        figures.delivered(Topic::Tasks, event, agent, after);
        if claimed.attempt > 1 {
            figures.redelivered();
        }
    }

    fn hold(&self, stream: u64, watched: &HeldClaims, claimed: &Claimed) {
        let message = published::message(&claimed.task, &claimed.input, claimed.attempt);
        let held = HeldTask {
            task: claimed.task.id,
            attempt: claimed.attempt,
            lease: claimed.lease,
            message: Arc::new(message),
            said_at: None,
        };
        self.bus.held.hold(stream, &self.agent, held);
        watched.hold(claimed.task.id, claimed.attempt);
    }

    /// Waits until the stream may hold another task; how many it may.
    async fn room(&self, stream: u64) -> usize {
        loop {
            let changed = self.bus.room.notified();
            let room = self
                .window
                .saturating_sub(self.bus.held.count(stream, &self.agent));
            if room > 0 {
                return room;
            }
            changed.await;
        }
    }

    /// The methods to ask for now.
    async fn methods(&self) -> Arc<[Arc<str>]> {
        if self.patterns.is_exact() {
            return self.patterns.methods(std::iter::empty());
        }
        match self.bus.service.waiting_methods(&self.context).await {
            Ok(waiting) => self.patterns.methods(waiting.iter().map(|it| &**it)),
            Err(error) => {
                tracing::debug!(%error, "the methods of waiting tasks are not known");
                self.patterns.methods(std::iter::empty())
            }
        }
    }

    /// Forgets what has ended, through whichever door.
    async fn note_ends(&self, mut ends: mpsc::UnboundedReceiver<ClaimEnd>) -> Status {
        while let Some(end) = ends.recv().await {
            self.bus.held.release(&self.agent, end.task, end.attempt);
            self.bus.room.notify_waiters();
        }
        Status::unavailable("the stream was cut off; subscribe again")
    }

    /// Keeps the leases of what the stream holds.
    async fn renew(&self, open: &Open) -> Status {
        let mut ticks = interval(RENEW_EVERY);
        loop {
            ticks.tick().await;
            for held in self.bus.held.of(open.stream, &self.agent) {
                let renew = Renew {
                    task: held.task,
                    lease: held.lease,
                    lease_ms: Some(LEASE_MS),
                    progress: None,
                    message: None,
                    remarks: None,
                };
                let is_over = match self
                    .bus
                    .service
                    .call(&self.context, Request::Renew(renew))
                    .await
                {
                    Ok(Reply::Renewed(renewed)) => renewed.stop.is_some(),
                    Ok(_) => false,
                    Err(Error::LeaseNotHeld { .. }) => true,
                    Err(error) => {
                        tracing::debug!(task.id = %held.task, %error, "a lease was not renewed");
                        false
                    }
                };
                if is_over {
                    self.bus.held.release(&self.agent, held.task, held.attempt);
                    self.bus.room.notify_waiters();
                }
            }
        }
    }
}

/// The receiver has gone; nobody reads this.
fn gone() -> Status {
    Status::cancelled("the stream is closed")
}
