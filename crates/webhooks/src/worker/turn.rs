//! One endpoint, for as long as something is due there: attempts begin, end, and are recorded.
//!
//! Only the turn that holds an endpoint decides about it, one ended attempt after the other. An endpoint
//! that fails gets one attempt at a time. A turn is short: what the owner changes is read with the next.
//! Before each attempt it is checked that the endpoint's owner may still see the task.

use super::holding::Holding;
use super::room::{Host, Place};
use super::verdict::told;
use super::{STORE_AGAIN_AFTER, STORE_WAIT, Shared};
use crate::attempt::{Begins, Outcome, attempt};
use crate::breaker;
use crate::delivery::{Attempt, AttemptReport, Due, Health, Leased, Next, Recorded, Unavailable};
use crate::endpoint::EventName;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Messages that are read at once: what an endpoint sends in a moment, and not so many that they are old
/// when their turn comes.
const READ_MAX: usize = 16;
/// What was read is read again after this time: it may have been cancelled or replaced.
const FRESH: Duration = Duration::from_secs(2);
/// How often new messages are looked for while attempts are under way, if no hint says that there are any.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest pause between two looks of one endpoint, however many hints come: they are of all
/// endpoints together, and hundreds may be at work.
const GATHER: Duration = Duration::from_millis(100);
/// After this time nothing new is begun, so that changes of the endpoint (keys, headers, its address)
/// are read.
const TURN: Duration = Duration::from_secs(10);
/// An attempt may end this much after its limit.
const OVERTIME: Duration = Duration::from_secs(3);

/// What `webhooks.deliveries` shows of a message that is given up because its flow is somebody else's.
const OWNER_CHANGED: &str =
    "not sent: the task does not belong to the owner of the webhook any more";

type Made = (Attempt, Outcome);

/// When it is worth while to look again, after a look at `read`.
async fn new_messages(hints: &mut watch::Receiver<()>, read: Instant) {
    let hinted = async {
        if hints.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        sleep_until(read + GATHER).await;
    };
    tokio::select! {
        () = hinted => {}
        () = sleep(LOOK_EVERY) => {}
    }
}

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing is due, or nothing may begin; the endpoint is given back.
    Done,
    /// Somebody else has the endpoint.
    Lost,
}

/// One lease on one endpoint, with the attempts that were begun under it.
#[derive(Debug)]
pub(super) struct Turn {
    shared: Arc<Shared>,
    endpoint: Arc<Leased>,
    holding: Arc<Holding>,
    host: Host,
    /// When its first attempt began.
    begun: Option<Instant>,
    health: Health,
    disabled: bool,
    /// Read and not begun.
    queue: VecDeque<Due>,
    read: Instant,
    /// There was nothing more when it was last looked.
    drained: bool,
    /// Something may have become due somewhere.
    hints: watch::Receiver<()>,
    running: JoinSet<Made>,
    under_way: HashMap<Id, Due>,
    /// What is under way ends, and nothing begins any more.
    stop: CancellationToken,
}

impl Turn {
    pub(super) fn new(
        shared: Arc<Shared>,
        endpoint: Leased,
        holding: Arc<Holding>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            host: shared.room.host(&endpoint.url),
            health: endpoint.health,
            endpoint: Arc::new(endpoint),
            holding,
            begun: None,
            disabled: false,
            queue: VecDeque::new(),
            read: Instant::now(),
            drained: false,
            hints: shared.hints.subscribe(),
            shared,
            running: JoinSet::new(),
            under_way: HashMap::new(),
            stop,
        }
    }

    /// Until nothing is due, the worker stops (what is under way ends), or `cut` (nothing does).
    pub(super) async fn run(mut self, cut: CancellationToken) {
        let (shared, holding) = (self.shared.clone(), self.holding.clone());
        let end = tokio::select! {
            biased;
            () = holding.lost.cancelled() => End::Lost,
            () = cut.cancelled() => End::Done,
            end = self.work() => end,
        };
        // Before it is given back: whoever takes it then takes it anew.
        shared
            .holdings
            .remove(self.endpoint.lease.endpoint, &holding);
        // Attempts that are still under way end here: who has the endpoint next may begin them again.
        self.running.shutdown().await;
        match end {
            End::Done => {
                let lease = holding.lease();
                let release = shared.ask(shared.parts.deliveries.release(&lease));
                if let Err(error) = release.await {
                    tracing::debug!(error = %error, "the lease of an endpoint ends by itself");
                }
            }
            End::Lost => {
                tracing::info!(endpoint.id = %self.endpoint.lease.endpoint, "an endpoint was lost to another worker");
            }
        }
        shared.room.leave(self.host);
        shared.ended.notify_one();
    }

    async fn work(&mut self) -> End {
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        loop {
            let willing = self.is_willing();
            let able = willing && self.has_room();
            if able && self.queue.is_empty() && !self.drained {
                self.read_due().await;
                continue;
            }
            if self.running.is_empty() && (!willing || (self.queue.is_empty() && self.drained)) {
                return End::Done;
            }
            let wants = able && !self.queue.is_empty();
            tokio::select! {
                biased;
                Some(ended) = self.running.join_next_with_id() => {
                    if self.take_in(ended).await == Recorded::Fenced {
                        return End::Lost;
                    }
                }
                () = stop.cancelled(), if willing => {}
                place = shared.room.enter(&self.host), if wants => {
                    if self.begin(place).await == Recorded::Fenced {
                        return End::Lost;
                    }
                }
                () = new_messages(&mut self.hints, self.read), if !wants => self.drained = false,
            }
        }
    }

    /// Whether anything may begin at all.
    fn is_willing(&self) -> bool {
        let open = breaker::is_open(&self.health, self.shared.time.now());
        let over = self.begun.is_some_and(|begun| begun.elapsed() >= TURN);
        !self.disabled && !open && !over && !self.stop.is_cancelled()
    }

    /// Whether one more attempt may begin now.
    fn has_room(&self) -> bool {
        let limit = match breaker::on_probation(&self.health) {
            true => 1,
            false => self.shared.options.per_endpoint_max.max(1),
        };
        let whole = self.shared.options.timeout + OVERTIME;
        self.running.len() < limit && self.holding.lasts(whole)
    }

    async fn read_due(&mut self) {
        let under_way: Vec<_> = self.under_way.values().map(|due| due.id).collect();
        let (lease, now) = (self.holding.lease(), self.shared.time.now());
        let deliveries = &self.shared.parts.deliveries;
        let due = self
            .shared
            .ask(deliveries.due(&lease, now, &under_way, READ_MAX));
        match due.await {
            Ok(due) => {
                self.queue = due.into();
                self.drained = self.queue.is_empty();
                self.read = Instant::now();
            }
            Err(_) => sleep(STORE_AGAIN_AFTER).await,
        }
    }

    /// Begins the first of the queue, or gives it up. What has waited long for its place keeps it while it is
    /// read again.
    async fn begin(&mut self, place: Place) -> Recorded {
        if self.read.elapsed() > FRESH {
            self.queue.clear();
            self.read_due().await;
        }
        if !self.is_willing() || !self.has_room() {
            return Recorded::Yes;
        }
        let Some(due) = self.queue.pop_front() else {
            return Recorded::Yes;
        };
        match self.is_allowed(&due).await {
            Ok(true) => self.start(due, place),
            Ok(false) => return self.give_up(&due).await,
            Err(_) => {
                drop(place);
                self.queue.push_front(due);
                sleep(STORE_AGAIN_AFTER).await;
            }
        }
        Recorded::Yes
    }

    /// Whether the owner of the endpoint may see now what a message is about.
    async fn is_allowed(&self, due: &Due) -> Result<bool, Unavailable> {
        let (Some(user), Some(flow)) = (&self.endpoint.owner, due.flow) else {
            return Ok(true);
        };
        let owner = self.shared.ask(self.shared.parts.owners.of(flow)).await?;
        Ok(owner.allows(user))
    }

    fn start(&mut self, due: Due, place: Place) {
        self.begun.get_or_insert_with(Instant::now);
        let (shared, endpoint, sent) = (self.shared.clone(), self.endpoint.clone(), due.clone());
        let started = self.running.spawn(async move {
            let _place = place;
            let sender = &*shared.parts.sender;
            let begins = Begins {
                now: shared.parts.clock.now(),
                wall: shared.parts.clock.wall(),
            };
            attempt(sender, &endpoint, &sent, begins, shared.options.timeout).await
        });
        self.under_way.insert(started.id(), due);
    }

    /// Ends a message that must not be sent. That is no fault of the receiver, so its health stays as it is.
    async fn give_up(&mut self, due: &Due) -> Recorded {
        self.drained = false;
        let attempt = Attempt {
            detail: Some(Arc::from(OWNER_CHANGED)),
            ..self.unsent(due, "owner")
        };
        let told = AttemptReport {
            delivery: due.id,
            attempt,
            next: Next::Dead,
            health: self.health,
            disable: None,
            say: None,
        };
        let recorded = self.record(&told).await;
        if recorded == Recorded::Yes {
            self.shared.counters.count_given_up();
        }
        recorded
    }

    async fn take_in(&mut self, ended: Result<(Id, Made), JoinError>) -> Recorded {
        let (id, made) = match ended {
            Ok((id, made)) => (id, Some(made)),
            Err(error) => (error.id(), None),
        };
        self.drained = false;
        let due = self.under_way.remove(&id).expect("what ends was begun");
        let (attempt, outcome) = made.unwrap_or_else(|| self.broken(&due));
        let schedule = self.endpoint.schedule.clone();
        let seconds = schedule.unwrap_or_else(|| self.shared.options.schedule.clone());
        let now = self.shared.time.now();
        let told = told(&self.health, &seconds, &due, attempt, outcome, now);
        let recorded = self.record(&told).await;
        if recorded == Recorded::Yes {
            let id = self.endpoint.lease.endpoint;
            self.shared.counters.count(id, &told, outcome, now);
            self.speak(&told);
            self.health = told.health;
            self.disabled |= told.disable.is_some();
        }
        recorded
    }

    /// Told again until the store has taken it, or the lease is over. A worker that stops does not wait for a store
    /// that fails: whoever has the endpoint next sends again what was not recorded.
    async fn record(&self, told: &AttemptReport) -> Recorded {
        let begun = Instant::now();
        loop {
            let lease = self.holding.lease();
            match self
                .shared
                .parts
                .deliveries
                .record(&lease, told.clone())
                .await
            {
                // It may be ourselves who have taken it again.
                Ok(Recorded::Fenced) if self.holding.lease() != lease => {}
                Ok(recorded) => return recorded,
                Err(_) if self.stop.is_cancelled() && begun.elapsed() >= STORE_WAIT => {
                    return Recorded::Fenced;
                }
                Err(_) => sleep(STORE_AGAIN_AFTER).await,
            }
        }
    }

    /// An attempt that did not even end: a fault of ours, which must not be repeated for ever.
    fn broken(&self, due: &Due) -> Made {
        tracing::error!(endpoint.id = %self.endpoint.lease.endpoint, "an attempt to deliver a webhook broke");
        let attempt = self.unsent(due, "internal");
        (attempt, Outcome::Failed { retry_after: None })
    }

    /// An attempt without a request.
    fn unsent(&self, due: &Due, error: &'static str) -> Attempt {
        Attempt {
            at: self.shared.parts.clock.now(),
            duration_ms: 0,
            status: None,
            error: Some(error),
            detail: None,
            remote: None,
            response: None,
            cause: due.cause,
        }
    }

    /// Says in the log what changes for the endpoint; never its headers, nor what follows the host.
    fn speak(&self, told: &AttemptReport) {
        let id = self.endpoint.lease.endpoint;
        let host = &*self.host.name;
        let reason = told.disable.map(|reason| reason.as_str());
        match told.say {
            Some(EventName::EndpointFailing) => {
                tracing::warn!(endpoint.id = %id, endpoint.host = host, "webhooks keep failing");
            }
            Some(EventName::EndpointDisabled) => {
                tracing::warn!(endpoint.id = %id, endpoint.host = host, reason, "webhooks are disabled");
            }
            Some(EventName::EndpointRecovered) => {
                tracing::info!(endpoint.id = %id, endpoint.host = host, "webhooks arrive again");
            }
            Some(EventName::Task(_) | EventName::Run | EventName::Test) | None => {}
        }
    }
}
