//! A log that misbehaves on command, for tests.
//!
//! Owns: a script of faults, taken one per append in the order in which they were written, and
//! gates that let a test force an interleaving. Deterministic: nothing happens that the script does
//! not say.

use super::chain::Mark;
use super::damage::{DamageRegister, Damaged};
use super::retention::{Dropped, Undropped};
use super::{Append, ClaimKey, Error, EventStore, NewEvent, Outcome, Page, Resolution, Snapshot};
use async_trait::async_trait;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version};
use tokio::sync::{oneshot, watch};

/// A log around another log.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: Arc<S>,
    faults: Faults,
}

/// The script of a [`FaultyStore`]; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    appends: VecDeque<Fault>,
    reads: VecDeque<Gate>,
    crashed: bool,
    stalled: bool,
    count: u64,
    damaged: BTreeSet<Position>,
}

#[derive(Debug)]
enum Fault {
    Refuse(Error),
    HoldAppend(Gate),
    HoldAnswer(Gate),
    UnknownWritten,
    UnknownUnwritten,
    Crash,
    ForeignWrite(Vec<NewEvent>),
    Pass,
}

#[derive(Debug)]
struct Gate {
    arrived: oneshot::Sender<()>,
    release: oneshot::Receiver<()>,
}

/// A call that is held back. Dropping this lets it go.
#[derive(Debug)]
pub struct Hold {
    arrived: Option<oneshot::Receiver<()>>,
    release: oneshot::Sender<()>,
}

impl Hold {
    /// Waits until the call has come to the gate. At once when it has been awaited before.
    pub async fn arrived(&mut self) {
        if let Some(arrived) = self.arrived.take() {
            // An error means that the call was abandoned after it had arrived.
            let _ = arrived.await;
        }
    }

    /// Lets the call go on.
    pub fn release(self) {
        let _ = self.release.send(());
    }
}

impl Gate {
    fn new() -> (Self, Hold) {
        let (arrived_sender, arrived) = oneshot::channel();
        let (release, release_receiver) = oneshot::channel();
        let gate = Self {
            arrived: arrived_sender,
            release: release_receiver,
        };
        let hold = Hold {
            arrived: Some(arrived),
            release,
        };
        (gate, hold)
    }

    async fn pass(self) {
        let _ = self.arrived.send(());
        // An error means that the hold was dropped, which opens the gate.
        let _ = self.release.await;
    }
}

impl Faults {
    /// The next append gets `error`; nothing is written.
    pub fn refuse_next_append(&self, error: Error) {
        self.add(Fault::Refuse(error));
    }

    /// The next append waits before it is judged.
    #[must_use]
    pub fn hold_next_append(&self) -> Hold {
        let (gate, hold) = Gate::new();
        self.add(Fault::HoldAppend(gate));
        hold
    }

    /// The next append is judged and written, and waits before it is answered.
    #[must_use]
    pub fn hold_next_answer(&self) -> Hold {
        let (gate, hold) = Gate::new();
        self.add(Fault::HoldAnswer(gate));
        hold
    }

    /// The next append is judged and written, and answered `Unknown`.
    pub fn unknown_after_next_append(&self) {
        self.add(Fault::UnknownWritten);
    }

    /// The next append is not written, and answered `Unknown`.
    pub fn unknown_instead_of_next_append(&self) {
        self.add(Fault::UnknownUnwritten);
    }

    /// The next append is judged and written, and answered `Unknown`; from then on every call is
    /// `Unavailable` until [`Self::reopen`].
    pub fn crash_after_next_append(&self) {
        self.add(Fault::Crash);
    }

    /// Just before the next append is judged, somebody else appends `events` to its stream.
    pub fn foreign_write_before_next_append(&self, events: Vec<NewEvent>) {
        self.add(Fault::ForeignWrite(events));
    }

    /// The next append meets no fault; those behind it meet what is scripted next.
    pub fn pass_next_append(&self) {
        self.add(Fault::Pass);
    }

    /// The next `read_stream` waits before it reads.
    #[must_use]
    pub fn hold_next_read(&self) -> Hold {
        let (gate, hold) = Gate::new();
        self.script().reads.push_back(gate);
        hold
    }

    /// Ends a crash: what was written is there.
    pub fn reopen(&self) {
        self.script().crashed = false;
    }

    /// Appends so far, faulty ones included.
    #[must_use]
    pub fn appends(&self) -> u64 {
        self.script().count
    }

    /// From now on whoever asks for the head, or reads the log in order, gets no answer; or gets one again.
    /// Questions that were asked meanwhile are never answered.
    pub fn stall(&self, stalled: bool) {
        self.script().stalled = stalled;
    }

    /// From now on the event at `position` cannot be read.
    pub fn damage(&self, position: Position) {
        self.script().damaged.insert(position);
    }

    /// The event at `position` can be read again.
    pub fn mend(&self, position: Position) {
        self.script().damaged.remove(&position);
    }

    fn damaged(&self, event: &Recorded) -> Option<Damaged> {
        let is_damaged = self.script().damaged.contains(&event.position);
        is_damaged.then(|| Damaged {
            position: event.position,
            flow: Some(event.flow),
            reason: Arc::from("the checksum does not agree"),
        })
    }

    /// The events up to the first one that is damaged, as a store of rows gives them.
    fn sound(&self, mut events: Vec<Arc<Recorded>>) -> Result<Vec<Arc<Recorded>>, Error> {
        let found = events
            .iter()
            .enumerate()
            .find_map(|(index, event)| Some((index, self.damaged(event)?)));
        match found {
            Some((0, damaged)) => Err(Error::from(&damaged)),
            Some((index, _)) => {
                events.truncate(index);
                Ok(events)
            }
            None => Ok(events),
        }
    }

    async fn check_speaks(&self) {
        let stalled = self.script().stalled;
        if stalled {
            std::future::pending::<()>().await;
        }
    }

    fn add(&self, fault: Fault) {
        self.script().appends.push_back(fault);
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_alive(&self) -> Result<(), Error> {
        if self.script().crashed {
            return Err(Error::Unavailable("crashed by the test".to_owned()));
        }
        Ok(())
    }

    fn next_append(&self) -> Fault {
        let mut script = self.script();
        script.count += 1;
        script.appends.pop_front().unwrap_or(Fault::Pass)
    }
}

impl<S: EventStore> FaultyStore<S> {
    /// Wraps `inner`. Without a script it behaves as `inner` does.
    #[must_use]
    pub fn new(inner: Arc<S>) -> Self {
        Self {
            inner,
            faults: Faults::default(),
        }
    }

    /// Where faults are scripted.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// The log itself, past all faults.
    #[must_use]
    pub fn inner(&self) -> &Arc<S> {
        &self.inner
    }

    /// Registers the damage that a read has met.
    fn registered<T>(&self, read: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &read {
            self.inner.damage().add_error(error);
        }
        read
    }

    async fn write_foreign(&self, stream: FlowId, events: Vec<NewEvent>) -> Result<(), Error> {
        let head = self.inner.stream_head(stream).await?;
        let append = Append {
            stream,
            expected: head.map_or(0, |(version, _)| version),
            events,
            claims: Vec::new(),
            fence: None,
        };
        let outcome = self.inner.append(append).await?;
        assert!(
            matches!(outcome, Outcome::Appended(_)),
            "the foreign write of a test is written, not {outcome:?}"
        );
        Ok(())
    }
}

#[async_trait]
impl<S: EventStore> EventStore for FaultyStore<S> {
    async fn append(&self, append: Append) -> Result<Outcome, Error> {
        self.faults.check_alive()?;
        match self.faults.next_append() {
            Fault::Pass => self.inner.append(append).await,
            Fault::Refuse(error) => Err(error),
            Fault::HoldAppend(gate) => {
                gate.pass().await;
                self.faults.check_alive()?;
                self.inner.append(append).await
            }
            Fault::HoldAnswer(gate) => {
                let outcome = self.inner.append(append).await;
                gate.pass().await;
                outcome
            }
            Fault::UnknownWritten => {
                self.inner.append(append).await?;
                Ok(Outcome::Unknown)
            }
            Fault::UnknownUnwritten => Ok(Outcome::Unknown),
            Fault::Crash => {
                let outcome = self.inner.append(append).await;
                self.faults.script().crashed = true;
                outcome.map(|_| Outcome::Unknown)
            }
            Fault::ForeignWrite(events) => {
                self.write_foreign(append.stream, events).await?;
                self.inner.append(append).await
            }
        }
    }

    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        self.faults.check_alive()?;
        self.inner.resolve(stream, ids).await
    }

    async fn read_stream(
        &self,
        stream: FlowId,
        after: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.faults.check_alive()?;
        let gate = self.faults.script().reads.pop_front();
        if let Some(gate) = gate {
            gate.pass().await;
        }
        let read = self.inner.read_stream(stream, after, limit, bytes_max);
        self.registered(self.faults.sound(read.await?))
    }

    async fn read_stream_back(
        &self,
        stream: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.faults.check_alive()?;
        let read = self
            .inner
            .read_stream_back(stream, before, limit, bytes_max);
        self.registered(self.faults.sound(read.await?))
    }

    async fn read_versions_within(
        &self,
        stream: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.faults.check_alive()?;
        let read = self.inner.read_versions_within(stream, versions, bytes_max);
        let events = read.await?;
        let damaged = events.iter().find_map(|event| self.faults.damaged(event));
        self.registered(damaged.map_or(Ok(events), |it| Err(Error::from(&it))))
    }

    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        self.faults.check_alive()?;
        self.faults.check_speaks().await;
        let (mut after, mut damaged) = (after, Vec::new());
        loop {
            let mut page = self.inner.read_all(after, limit).await?;
            page.events.retain(|event| {
                let found = self.faults.damaged(event);
                let is_sound = found.is_none();
                damaged.extend(found);
                is_sound
            });
            if page.events.is_empty() && !page.at_end && page.next > after {
                after = page.next;
                continue;
            }
            for damaged in &damaged {
                self.inner.damage().add(damaged);
            }
            return Ok(Page { damaged, ..page });
        }
    }

    fn damage(&self) -> &DamageRegister {
        self.inner.damage()
    }

    async fn head(&self) -> Result<Position, Error> {
        self.faults.check_alive()?;
        self.faults.check_speaks().await;
        self.inner.head().await
    }

    async fn chain_head(&self) -> Result<Option<Mark>, Error> {
        self.faults.check_alive()?;
        self.inner.chain_head().await
    }

    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error> {
        self.faults.check_alive()?;
        self.inner.stream_head(stream).await
    }

    fn watch(&self) -> watch::Receiver<Position> {
        self.inner.watch()
    }

    async fn claims(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        self.faults.check_alive()?;
        self.inner.claims(keys, now).await
    }

    async fn raise_fence(&self, name: &str) -> Result<u64, Error> {
        self.faults.check_alive()?;
        self.inner.raise_fence(name).await
    }

    async fn load_snapshot(&self, stream: FlowId, format: u32) -> Result<Option<Snapshot>, Error> {
        self.faults.check_alive()?;
        self.inner.load_snapshot(stream, format).await
    }

    async fn save_snapshot(&self, stream: FlowId, snapshot: Snapshot) -> Result<(), Error> {
        self.faults.check_alive()?;
        self.inner.save_snapshot(stream, snapshot).await
    }

    async fn dropped(&self) -> Result<Dropped, Error> {
        self.faults.check_alive()?;
        self.inner.dropped().await
    }

    async fn undropped(&self, after: u64, limit: usize) -> Result<Vec<Undropped>, Error> {
        self.faults.check_alive()?;
        self.inner.undropped(after, limit).await
    }

    async fn drop_archived(&self, stream: FlowId, limit: usize) -> Result<u64, Error> {
        self.faults.check_alive()?;
        self.inner.drop_archived(stream, limit).await
    }
}
