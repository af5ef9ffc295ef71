//! Reads the log in order and records which messages must be sent to which endpoints.
//!
//! Owns: the loop, its place, and the sweeping of what is old. What follows from events and the place are
//! written in one transaction, so each notice is noted once however often a server stops. As long as
//! nobody wants anything, the place moves seldom, and an event costs nothing but being read.
//! Of several servers one does it; two that both believe it lose nothing, because the place is moved
//! by compare-and-set.

mod body;
mod interest;
mod reported;
mod runs;

pub use body::{BODY_BYTES_MAX, body};

use super::reports::Wording;
use super::store::{Error, Intake, Message, Recipient, State, Store, Taken};
use interest::Interest;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::flow::Event;
use taskledger_domain::{Position, Recorded, Timestamp};
use taskledger_log::{self as log, EventStore};
use taskledger_subscription::feed::Feed;
use taskledger_subscription::notice::notices;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

/// Deliveries that one transaction aims at. Those of one event are never divided.
const DELIVERIES_AIM: usize = 20_000;
/// Events that are passed over, because nobody wants them, before the place is moved.
const PASSED_EVENTS_MAX: u64 = 1000;
/// How long the place may lag behind events that nobody wants. Also how late an endpoint that was
/// made through another server may hear of its first event.
const PASSED_WAIT: Duration = Duration::from_secs(1);
/// Pause after a failure; each is twice the one before, up to the last.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How often what is old is removed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Drives the outbox.
#[derive(Debug)]
pub struct Outbox {
    log: Arc<dyn EventStore>,
    store: Arc<Store>,
    /// Whether this server is the one that does it.
    folds: watch::Receiver<bool>,
    position: watch::Sender<Position>,
    /// How reports of runs are written; without it there are none.
    wording: Option<Arc<dyn Wording>>,
}

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Store(#[from] Error),
    #[error("the log cannot be read: {0}")]
    Log(#[from] log::Error),
    #[error("the log ends at position {head}, but the outbox has read up to position {position}")]
    Ahead { position: Position, head: Position },
}

/// How a batch ended.
enum Step {
    /// Go on.
    Done,
    /// Somebody else has moved the place, or endpoints want something else: begin anew.
    Anew,
}

/// Where the outbox stands between two steps.
struct OutboxState {
    feed: Feed,
    interest: Interest,
    state: State,
    /// Since when events have been passed over that the stored place is not behind.
    lagging: Option<Instant>,
}

/// What a batch comes to, as far as it goes into one transaction.
struct Piece {
    intake: Intake,
    deliveries: usize,
}

impl Outbox {
    /// An outbox of this log.
    #[must_use]
    pub fn new(log: Arc<dyn EventStore>, store: Arc<Store>) -> Self {
        Self {
            log,
            store,
            folds: watch::channel(true).1,
            position: watch::Sender::new(0),
            wording: None,
        }
    }

    /// Reports of runs are written so.
    #[must_use]
    pub fn wording(mut self, wording: Arc<dyn Wording>) -> Self {
        self.wording = Some(wording);
        self
    }

    /// It works only while `folds` is true.
    #[must_use]
    pub fn working_while(mut self, folds: watch::Receiver<bool>) -> Self {
        self.folds = folds;
        self
    }

    /// How far this server's outbox has come; stands still while another server does it.
    #[must_use]
    pub fn position(&self) -> watch::Receiver<Position> {
        self.position.subscribe()
    }

    /// Follows the log until `stop`. A transaction that is under way when `stop` comes is ended.
    pub async fn run(self, stop: CancellationToken) {
        tokio::join!(self.follow(&stop), self.sweep(&stop));
    }

    async fn follow(&self, stop: &CancellationToken) {
        let mut pause = RETRY_FIRST;
        let mut stand: Option<OutboxState> = None;
        // What is known of runs is not read from the log again when endpoints change.
        let mut before: Option<Interest> = None;
        let mut folds = self.folds.clone();
        loop {
            if !*folds.borrow() {
                (stand, before) = (None, None);
                tokio::select! {
                    () = stop.cancelled() => return,
                    Ok(_) = folds.wait_for(|folds| *folds) => {}
                }
            }
            let step = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Ok(_) = folds.wait_for(|folds| !folds) => continue,
                step = self.step(&mut stand, &mut before) => step,
            };
            match step {
                Ok(Step::Done) => pause = RETRY_FIRST,
                Ok(Step::Anew) => before = stand.take().map(|stand| stand.interest),
                Err(error) => {
                    tracing::warn!(%error, "the outbox of the webhooks could not go on, trying again");
                    (stand, before) = (None, None);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = sleep(pause) => {}
                    }
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// Dropping it half-way is as if the server had stopped: the next one begins at the stored place.
    async fn step(
        &self,
        stand: &mut Option<OutboxState>,
        before: &mut Option<Interest>,
    ) -> Result<Step, Stopped> {
        let Some(stand) = stand else {
            *stand = Some(self.begin(before.take()).await?);
            return Ok(Step::Done);
        };
        let store = self.store.clone();
        let waiting = async {
            match stand.lagging {
                None => Some(stand.feed.next().await),
                Some(since) => timeout_at(since + PASSED_WAIT, stand.feed.next())
                    .await
                    .ok(),
            }
        };
        let events = tokio::select! {
            events = waiting => events,
            () = store.wants_changed() => return Ok(Step::Anew),
        };
        match events {
            Some(events) => self.deal(stand, &events?).await,
            None => self.move_on(stand).await,
        }
    }

    /// Finds the place to go on from.
    async fn begin(&self, before: Option<Interest>) -> Result<OutboxState, Stopped> {
        let known = before.as_ref().map(Interest::generation);
        let wanted = loop {
            let head = self.log.head().await?;
            let mut wanted = self.store.wanted(known).await?;
            let Some(to) = self.elsewhere(wanted.state, head).await? else {
                break wanted;
            };
            // What is wanted must be what was wanted when the place was moved.
            let only_moves = nothing(wanted.state, to);
            if self.store.take(&only_moves, self.now()).await? == Taken::Yes {
                wanted.state.position = Some(to);
                break wanted;
            }
        };
        let state = wanted.state;
        let place = state.position.unwrap_or(0);
        self.position.send_replace(place);
        Ok(OutboxState {
            feed: Feed::new(self.log.clone(), place),
            interest: Interest::new(self.log.clone(), wanted, before).await?,
            state,
            lagging: None,
        })
    }

    /// Where to begin instead of the stored place, if that is of no use.
    async fn elsewhere(&self, state: State, head: Position) -> Result<Option<Position>, Stopped> {
        Ok(match state.position {
            // Nobody can want anything of before.
            None => Some(
                self.store
                    .first_since()
                    .await?
                    .map_or(head, |s| s.min(head)),
            ),
            Some(position) if position > head => {
                return Err(Stopped::Ahead { position, head });
            }
            Some(_) => None,
        })
    }

    /// Notes what follows from events.
    async fn deal(
        &self,
        stand: &mut OutboxState,
        events: &[Arc<Recorded>],
    ) -> Result<Step, Stopped> {
        let mut piece = Piece::behind(stand.state);
        piece.intake.ended = stand.interest.take_over();
        for recorded in events {
            self.note(stand, recorded, &mut piece).await?;
            piece.intake.to = recorded.position;
            if piece.deliveries >= DELIVERIES_AIM {
                if self.write(stand, &piece.intake).await? == Taken::Moved {
                    return Ok(Step::Anew);
                }
                piece = Piece::behind(stand.state);
            }
        }
        let passed = piece.intake.to - stand.state.position.unwrap_or(0);
        if piece.intake.messages.is_empty()
            && piece.intake.started.is_empty()
            && piece.intake.ended.is_empty()
            && passed < PASSED_EVENTS_MAX
        {
            stand.lagging.get_or_insert_with(Instant::now);
            return Ok(Step::Done);
        }
        self.written(stand, &piece.intake).await
    }

    /// Moves the place behind events that nobody wants.
    async fn move_on(&self, stand: &mut OutboxState) -> Result<Step, Stopped> {
        let to = stand.feed.position();
        let intake = nothing(stand.state, to);
        self.written(stand, &intake).await
    }

    async fn written(&self, stand: &mut OutboxState, intake: &Intake) -> Result<Step, Stopped> {
        Ok(match self.write(stand, intake).await? {
            Taken::Yes => Step::Done,
            Taken::Moved => Step::Anew,
        })
    }

    async fn write(&self, stand: &mut OutboxState, intake: &Intake) -> Result<Taken, Stopped> {
        let taken = self.store.take(intake, self.now()).await?;
        if taken == Taken::Yes {
            stand.state.position = Some(intake.to);
            stand.interest.stands_at(intake.to);
            stand.lagging = None;
            self.position.send_replace(intake.to);
        }
        Ok(taken)
    }

    /// Adds what follows from one event.
    async fn note(
        &self,
        stand: &mut OutboxState,
        recorded: &Arc<Recorded>,
        piece: &mut Piece,
    ) -> Result<(), Stopped> {
        let interest = &mut stand.interest;
        interest.learn(recorded);
        if let Event::RunStarted(run) = recorded.event.as_ref()
            && let Some(callback) = run.callback
            && let Some(to) = self.store.callback(callback).await?
        {
            let started = interest.start(to, recorded, run).await?;
            piece.intake.started.push(started);
        }
        if interest.is_idle(recorded) {
            return Ok(());
        }
        for made in interest.reports(recorded).await? {
            let Some(wording) = &self.wording else {
                continue;
            };
            piece.deliveries += made.to.len();
            for (id, form, to) in made.by_form() {
                piece.intake.messages.push(Message {
                    id: Arc::from(id),
                    event: super::endpoint::EventName::Run,
                    task: None,
                    flow: Some(recorded.flow),
                    position: Some(recorded.position),
                    traceparent: recorded.metadata.trace.clone(),
                    body: wording.body(&made.report, form),
                    to,
                });
            }
        }
        for mut notice in notices(recorded) {
            let to: Vec<Recipient> = interest.recipients(recorded, &mut notice).await?;
            if let Some(run) = notice.ended_run() {
                piece.intake.ended.extend(interest.end(run.id));
            }
            if to.is_empty() {
                continue;
            }
            piece.deliveries += to.len();
            piece.intake.messages.push(Message {
                id: Arc::from(notice.id.to_string()),
                event: super::endpoint::EventName::Task(notice.kind),
                task: Some(notice.task_id),
                flow: Some(recorded.flow),
                position: Some(recorded.position),
                traceparent: recorded.metadata.trace.clone(),
                body: body(&notice),
                to,
            });
        }
        Ok(())
    }

    /// Removes what is old now and then.
    async fn sweep(&self, stop: &CancellationToken) {
        // All events up to here have been seen when the outbox has come as far.
        let mut seen: Option<(Position, Timestamp)> = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(SWEEP_EVERY) => {}
            }
            if !*self.folds.borrow() {
                seen = None;
                continue;
            }
            let now = self.now();
            let swept = self.sweep_once(&mut seen, now).await;
            match swept {
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, "old deliveries of webhooks were not removed"),
            }
        }
    }

    async fn sweep_once(
        &self,
        seen: &mut Option<(Position, Timestamp)>,
        now: Timestamp,
    ) -> Result<(), Stopped> {
        let head = self.log.head().await?;
        let position = self.store.state().await?.position.unwrap_or(0);
        let before = seen.filter(|(head, _)| position >= *head);
        if seen.is_none() || before.is_some() {
            *seen = Some((head, now));
        }
        let swept = self.store.sweep(now, before.map(|(_, at)| at)).await?;
        if swept.deliveries + swept.callbacks + swept.keys > 0 {
            tracing::info!(
                deliveries = swept.deliveries,
                callbacks = swept.callbacks,
                keys = swept.keys,
                "old webhooks were removed"
            );
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.store.clock().now()
    }
}

impl Piece {
    fn behind(state: State) -> Self {
        Self {
            intake: nothing(state, state.position.unwrap_or(0)),
            deliveries: 0,
        }
    }
}

/// Moves the place and nothing else.
const fn nothing(from: State, to: Position) -> Intake {
    Intake {
        from,
        to,
        messages: Vec::new(),
        started: Vec::new(),
        ended: Vec::new(),
    }
}
