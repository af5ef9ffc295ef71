//! `SubscribeToTasks`: serves an agent's stream as a worker for the task types that it asks for.
//!
//! A task is claimed when it is written to the stream, and kept for its agent as long as the stream lives: HTTP/2
//! pings tell. When the stream has ended, a stream of the same agent takes over what it held, also when the server of
//! the first one has ended; without one, it goes to others, unless the agent speaks of it meanwhile.

use super::held::{Agent, HeldTask};
use super::patterns::Patterns;
use super::types::Types;
use super::{Bus, LEASE_MS, Topic, published, status, wire};
use crate::application::Context;
use crate::application::api::work::{
    Claim, ClaimEnd, Claimed, Connection, Fail, HeldClaims, Left, Release, Renew, Wanted,
};
use crate::application::api::{Error, Reply, Request};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use taskledger_domain::limits::CLAIMS_MAX;
use taskledger_domain::{LeaseId, Timestamp};
use taskledger_eventbus::TaskMessage;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// How long one call for claims waits.
const WAIT: Duration = Duration::from_secs(30);
/// How often leases are renewed: three times before one ends.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Milliseconds without a renewal after which a stream that another node had is taken to be gone: longer than
/// [`RENEW_EVERY`], with time for a renewal to arrive.
const SILENT_MS: u64 = 12_000;
/// When a stream asks again, in seconds after it has opened, for what its agent held before a server ended: flows are
/// loaded one by one after a start, and leases are silent after a while. Leases that nobody keeps end before the last.
const LOOK_FOR_LEFT: [u64; 7] = [1, 2, 4, 8, 14, 20, 30];
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
    /// Cancelled when the server stops.
    pub(super) stopping: CancellationToken,
}

/// What a stream holds: dropped, it is closed, and what it leaves is given back after a while.
struct Outgoing {
    message: TaskMessage,
    attempt: u32,
    created_at: Timestamp,
}

struct Open {
    bus: Arc<Bus>,
    context: Context,
    agent: Agent,
    stream: u64,
    stopping: CancellationToken,
    /// What was claimed and not written: the agent works on tasks of the same ids.
    waiting: Mutex<Vec<(LeaseId, Outgoing)>>,
}

impl Open {
    fn waiting(&self) -> MutexGuard<'_, Vec<(LeaseId, Outgoing)>> {
        // What a panic left is a list of tasks still.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.bus.held.close(self.stream);
        self.bus.closed.notify_waiters();
        let bus = self.bus.clone();
        let (context, agent, stream) = (self.context.clone(), self.agent.clone(), self.stream);
        let stopping = self.stopping.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            // The agent of a server that stops can come back only after it, or at another node, where silence tells
            // what it held: however long the stop takes, its leases end by themselves.
            tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                () = sleep(GRACE) => {}
            }
            let silent = Duration::from_millis(LEASE_MS);
            let left = bus.held.left_by(stream, &agent, silent);
            bus.room.notify_waiters();
            for left in left {
                let release = Release {
                    task: left.task,
                    lease: left.lease,
                };
                // Its lease ends by itself otherwise.
                if let Err(error) = bus.service.call(&context, Request::Release(release)).await {
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
        let stream = self.bus.held.open(&self.agent);
        let taken = self.taken(stream);
        let open = Open {
            bus: self.bus.clone(),
            context: self.context.clone(),
            agent: self.agent.clone(),
            stream,
            stopping: self.stopping.clone(),
            waiting: Mutex::default(),
        };
        let types = Types::default();
        tokio::select! {
            end = self.claim(&open, &types, &watch.held, taken) => end,
            end = self.find_types(&types) => end,
            end = self.take_over(&open, &watch.held) => end,
            end = self.inherit(&open, &watch.held) => end,
            end = self.give_waiting(&open) => end,
            end = self.note_ends(watch.ends) => end,
            end = self.renew(&open) => end,
        }
    }

    async fn claim(
        &self,
        open: &Open,
        types: &Types,
        watched: &HeldClaims,
        taken: Vec<HeldTask>,
    ) -> Status {
        for held in taken.chunks(CLAIMS_MAX) {
            if let Err(end) = self.left(open, watched, held).await {
                return end;
            }
        }
        if let Err(end) = self.silent(open, watched).await {
            return end;
        }
        loop {
            let room = self.room(open.stream).await;
            let methods = types.methods(&self.patterns);
            if methods.is_empty() {
                types.changed().notified().await;
                continue;
            }
            let claim = Claim {
                worker: Some(self.agent.name.clone()),
                wanted: Wanted::Methods(methods),
                max: room.min(CLAIMS_MAX),
                lease_ms: LEASE_MS,
                wait: WAIT,
                connection: Connection::Socket,
                heard_at: Instant::now(),
            };
            let news = Some(types.changed());
            match self
                .bus
                .service
                .claim_until(&self.context, claim, news)
                .await
            {
                Ok(claims) if claims.draining => sleep(DRAINED_PAUSE).await,
                Ok(claims) => {
                    if let Err(end) = self.give(open, watched, claims.claims).await {
                        return end;
                    }
                }
                Err(Error::Busy { retry_after_ms, .. } | Error::RateLimited { retry_after_ms }) => {
                    sleep(Duration::from_millis(retry_after_ms)).await;
                }
                // Other claims of the user wait: what the agent holds, it keeps.
                Err(Error::QuotaExceeded { .. }) => sleep(PAUSE).await,
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

    /// Asks now and then for what the agent held through a stream of a server that has ended.
    async fn take_over(&self, open: &Open, watched: &HeldClaims) -> Status {
        let opened = Instant::now();
        for after in LOOK_FOR_LEFT {
            sleep_until(opened + Duration::from_secs(after)).await;
            if let Err(end) = self.silent(open, watched).await {
                return end;
            }
        }
        std::future::pending().await
    }

    /// Takes over what its agent held through another stream of this server whose end is seen only now: who comes back
    /// is here before that, now and then.
    async fn inherit(&self, open: &Open, watched: &HeldClaims) -> Status {
        loop {
            let mut closed = pin!(self.bus.closed.notified());
            closed.as_mut().enable();
            for held in self.taken(open.stream).chunks(CLAIMS_MAX) {
                if let Err(end) = self.left(open, watched, held).await {
                    return end;
                }
            }
            closed.await;
        }
    }

    /// What ended streams of this server held for the agent, which this stream holds from now on.
    fn taken(&self, stream: u64) -> Vec<HeldTask> {
        let is_for_it = |held: &HeldTask| self.patterns.covers(&held.method);
        self.bus.held.inherit(&self.agent, stream, is_for_it)
    }

    /// Gives the agent what ended streams of this server held for it.
    async fn left(
        &self,
        open: &Open,
        watched: &HeldClaims,
        left: &[HeldTask],
    ) -> Result<(), Status> {
        let leases = left.iter().map(|held| held.lease).collect();
        let claims = self.come_back(Left::These(leases), left.len()).await;
        for held in left {
            if claims.iter().all(|claimed| claimed.lease != held.lease) {
                self.bus.held.release(&self.agent, held.task, held.attempt);
            }
        }
        self.give(open, watched, claims).await
    }

    /// Gives the agent what it held and no server keeps for it, whatever its window is by now.
    async fn silent(&self, open: &Open, watched: &HeldClaims) -> Result<(), Status> {
        loop {
            let left = self.patterns.left(SILENT_MS);
            let mut claims = self.come_back(left, CLAIMS_MAX).await;
            let is_all = claims.len() < CLAIMS_MAX;
            claims.retain(|claimed| !self.bus.held.has(&self.agent, claimed.lease));
            self.give(open, watched, claims).await?;
            if is_all {
                return Ok(());
            }
        }
    }

    /// Claims what the agent has left.
    async fn come_back(&self, left: Left, max: usize) -> Vec<Claimed> {
        let claim = Claim {
            worker: Some(self.agent.name.clone()),
            wanted: Wanted::Left(left),
            max,
            lease_ms: LEASE_MS,
            wait: Duration::ZERO,
            connection: Connection::Socket,
            heard_at: Instant::now(),
        };
        match self.bus.service.claim(&self.context, claim).await {
            Ok(claims) => claims.claims,
            Err(error) => {
                tracing::debug!(%error, "a stream of tasks could not take over what its agent held");
                Vec::new()
            }
        }
    }

    /// Writes what was claimed, unless the agent works on another task of the same id: that has to end first.
    async fn give(
        &self,
        open: &Open,
        watched: &HeldClaims,
        claims: Vec<Claimed>,
    ) -> Result<(), Status> {
        let mut given = Vec::with_capacity(claims.len());
        for claimed in claims {
            let message = published::message(&claimed.task, &claimed.input, claimed.attempt);
            if let Some(reason) = wire::unreadable(&message, self.bus.message_bytes_max) {
                self.fail(&claimed, reason).await;
                continue;
            }
            let outgoing = Outgoing {
                message,
                attempt: claimed.attempt,
                created_at: claimed.task.created_at,
            };
            match self.hold(open.stream, watched, &claimed) {
                true => given.push(outgoing),
                false => open.waiting().push((claimed.lease, outgoing)),
            }
        }
        for outgoing in given {
            self.write(outgoing).await?;
        }
        Ok(())
    }

    async fn write(&self, outgoing: Outgoing) -> Result<(), Status> {
        let event = outgoing.message.task_type.clone();
        let sent = self.out.send(Ok(outgoing.message)).await;
        sent.map_err(|_| gone())?;
        let (figures, agent) = (self.bus.figures(), &self.agent.name);
        let after = self.bus.since(outgoing.created_at);
        figures.delivered(Topic::Tasks, &event, agent, after);
        if outgoing.attempt > 1 {
            figures.redelivered();
        }
        Ok(())
    }

    /// Writes what had to wait, as soon as it may.
    async fn give_waiting(&self, open: &Open) -> Status {
        loop {
            let changed = self.bus.room.notified();
            let now = self.bus.clock.now();
            let next = self.bus.held.next(open.stream, &self.agent, now);
            let outgoing: Vec<Outgoing> = {
                let mut waiting = open.waiting();
                let next = waiting.extract_if(.., |(lease, _)| next.contains(lease));
                let outgoing = next.map(|(_, outgoing)| outgoing).collect();
                // What has ended meanwhile is written no more.
                waiting.retain(|(lease, _)| self.bus.held.has(&self.agent, *lease));
                outgoing
            };
            for outgoing in outgoing {
                if let Err(end) = self.write(outgoing).await {
                    return end;
                }
            }
            changed.await;
        }
    }

    /// Ends an attempt whose task no agent could read: another one would get it, and lose its stream.
    async fn fail(&self, claimed: &Claimed, reason: String) {
        let fail = Fail {
            task: claimed.task.id,
            lease: claimed.lease,
            error: format!("the task cannot be sent to an agent: {reason}"),
            retryable: false,
            rejected: false,
            remarks: None,
            breach: None,
        };
        // Its lease ends by itself otherwise.
        if let Err(error) = self
            .bus
            .service
            .call(&self.context, Request::Fail(fail))
            .await
        {
            tracing::debug!(task.id = %claimed.task.id, %error, "a task that cannot be sent goes on");
        }
    }

    /// Whether the agent may be given it now.
    fn hold(&self, stream: u64, watched: &HeldClaims, claimed: &Claimed) -> bool {
        let held = HeldTask {
            task: claimed.task.id,
            attempt: claimed.attempt,
            lease: claimed.lease,
            external_id: published::external_id(&claimed.task),
            method: Arc::from(claimed.task.method.as_deref().unwrap_or_default()),
            given_at: self.bus.clock.now(),
            said_at: None,
        };
        let may_be_given = self.bus.held.hold(stream, &self.agent, held);
        watched.hold(claimed.task.id, claimed.attempt);
        may_be_given
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
                    lease_ms: None,
                    progress: None,
                    message: None,
                    remarks: None,
                    output: None,
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
