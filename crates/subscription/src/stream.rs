//! One watcher's stream: history from its cursor on, then what happens, without a gap or a repetition.
//!
//! A stream begins to watch, notes how far everything was published, reads the log up to there, and continues with
//! live chunks. If it falls behind what is kept, it begins anew at its place: a slow reader loses nothing.
//! [`Reader`] is all of that; doors get it as a [`Notices`], which is a `Stream`.

mod beginning;
mod notices;
mod rest;

pub use beginning::{From, Reset};
pub use notices::{HEARTBEAT, Item, Notices};

use super::cursor::{Cursor, PARTS_ALL};
use super::live::{Chunk, Live, Published, Watch};
use super::notice::Kind;
use rest::Found;
use std::collections::HashSet;
use std::sync::Arc;
use taskledger_domain::task::Selector;
use taskledger_domain::{FlowId, Position, Recorded, RunId, TaskId, Version};
use taskledger_log::damage::read_stream_over;
use taskledger_log::retention::Dropped;
use taskledger_log::{Error, PIECE_BYTES_MAX};

/// Events that one page of history reads.
const PAGE_EVENTS: usize = 512;
/// Bytes that a stream gives at a time, unless a single notice has more.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// The filter of a stream.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only this flow.
    pub flow: Option<FlowId>,
    /// Only this task; needs its flow.
    pub task: Option<TaskId>,
    /// Only flows of this user.
    pub user: Option<Arc<str>>,
    /// Only these kinds.
    pub kinds: Option<Vec<Kind>>,
    /// Only tasks of a run; needs its flow.
    pub run: Option<Covered>,
    /// Only tasks with these labels, as they are when the notice is made.
    pub labels: Selector,
}

/// A run, and the tasks of which it consists.
#[derive(Debug, Clone)]
pub struct Covered {
    /// The run that the stream follows.
    pub run: RunId,
    /// Its tasks; `None`: all of the flow's. Those that join it later are added as they come.
    pub tasks: Option<HashSet<TaskId>>,
}

impl Filter {
    /// Whether every notice of the source passes.
    fn takes_all(&self) -> bool {
        self.task.is_none()
            && self.user.is_none()
            && self.kinds.is_none()
            && self.run.is_none()
            && self.labels.is_empty()
    }
}

/// The condition on which a stream ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It does not.
    Forever,
    /// Behind the end of this run.
    RunEnds(RunId),
    /// Behind the end of a run after which nothing of the flow runs; see [`Reader::ending_after`].
    NothingRuns,
}

/// Reads one watcher's stream.
#[derive(Debug)]
pub struct Reader {
    live: Arc<Live>,
    watch: Watch,
    filter: Filter,
    until: Until,
    place: Cursor,
    source: Source,
    /// What is missing of the log, as far as the watcher was told, or was to know.
    dropped: Dropped,
    /// What has come and was not chosen from yet.
    pending: Vec<Arc<Chunk>>,
    /// With [`Until::NothingRuns`], another run was on after the ends of runs up to here.
    ends_after: Position,
    /// Set for a flow at rest.
    rest: Option<Rest>,
    /// Whether the flow has never run, so that no run's end will end the stream if it is cancelled.
    unrun: bool,
    /// Something was cancelled in such a flow since it was last looked at.
    cancelled: bool,
    ended: bool,
}

/// What ends the stream of a flow at rest, once everything that has happened was given.
#[derive(Debug)]
enum Rest {
    /// This notice, which lies before the stream's place.
    Told(Arc<Published>),
    /// Nothing: it was told before.
    Known,
}

/// Where the next notices come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Not known yet: the place is to be looked for in the log.
    Unsought,
    /// The log, up to where the watch begins.
    Log,
    /// The stream of the filter's flow, behind this version, up to where the watch begins.
    FlowLog(Version),
    /// The watch.
    Live,
}

/// The next items of a stream.
#[derive(Debug)]
pub enum Batch {
    /// All notices of a chunk, which many streams share.
    Whole(Arc<Chunk>),
    /// Some notices.
    Notices(Vec<Arc<Published>>),
    /// Nothing for this watcher; its place has moved on.
    Passed,
    /// What comes is not all that was: the archive has overtaken the watcher.
    Reset(Reset),
}

impl Batch {
    /// The notices, in order.
    #[must_use]
    pub fn notices(&self) -> &[Arc<Published>] {
        match self {
            Self::Whole(chunk) => &chunk.notices,
            Self::Notices(notices) => notices,
            Self::Passed | Self::Reset(_) => &[],
        }
    }
}

impl Reader {
    /// A stream that begins at `from`, and why it begins now instead, if it does.
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub async fn begin(
        live: Arc<Live>,
        filter: Filter,
        from: From,
        until: Until,
    ) -> Result<(Self, Option<Reset>), Error> {
        // Asked for first: what is dropped from now on is told when the stream comes there.
        let dropped = live.store.dropped().await?;
        let (place, mut reset) = beginning::place(&live, from).await?;
        if let Some(flow) = filter.flow
            && reset.is_none_or(|reset| reset == Reset::Archived)
        {
            let lost =
                place.position < dropped.horizon && beginning::has_lost(&live, flow, place).await?;
            reset = lost.then_some(Reset::Archived);
        }
        let watch = live.watch(&filter, place);
        let mut stream = Self {
            live,
            watch,
            filter,
            until,
            place,
            source: Source::Unsought,
            dropped,
            pending: Vec::new(),
            ends_after: 0,
            rest: None,
            unrun: false,
            cancelled: false,
            ended: false,
        };
        stream.source = stream.log().await?;
        Ok((stream, reset))
    }

    /// The same stream, which does not end with a run that had ended up to `position`: another one was
    /// on then, or came later.
    #[must_use]
    pub fn ending_after(mut self, position: Position) -> Self {
        self.ends_after = position;
        self
    }

    /// The same stream of a flow at rest, which ends with this notice once it has given everything up to
    /// `position`, where the flow was seen at rest. The notice gets the place where the stream stands then.
    #[must_use]
    pub fn ending_with(self, last: Arc<Published>, position: Position) -> Self {
        self.resting(Rest::Told(last), position)
    }

    /// The same for a watcher who was told of the end before.
    #[must_use]
    pub fn ending_silently(self, position: Position) -> Self {
        self.resting(Rest::Known, position)
    }

    /// The same stream of a flow that has never run: it also ends when nothing is left to run.
    #[must_use]
    pub const fn of_unrun(mut self) -> Self {
        self.unrun = true;
        self
    }

    fn resting(mut self, rest: Rest, position: Position) -> Self {
        self.rests(rest, position);
        self
    }

    fn rests(&mut self, rest: Rest, position: Position) {
        self.rest = Some(rest);
        // All of it is read from the log, so that its end can be seen.
        self.watch = self.live.watch(&self.filter, Cursor::BEGINNING);
        self.watch.from = self.watch.from.max(position);
    }

    /// Ends the stream if nothing is left to run.
    async fn look_for_rest(&mut self) -> Result<(), Error> {
        let Some(flow) = self.filter.flow else {
            return Ok(());
        };
        let found = rest::of_unrun(&*self.live.store, flow, self.filter.task).await?;
        match found {
            Found::Runs => self.unrun = false,
            Found::Waits => {}
            Found::Over { end, position } => {
                let end = self.live.at_rest(&end).await?;
                self.unrun = false;
                self.pending.clear();
                self.source = Source::Unsought;
                self.rests(end.map_or(Rest::Known, Rest::Told), position);
            }
        }
        self.cancelled = false; // Last: it is looked for again if this is dropped or fails.
        Ok(())
    }

    /// Behind everything that was given, or passed over.
    #[must_use]
    pub const fn place(&self) -> Cursor {
        self.place
    }

    /// What comes next; waits for it. `None`: the stream has ended. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read; asking again goes on at the same place.
    pub async fn next(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            if self.ended {
                return Ok(None);
            }
            if self.cancelled {
                self.look_for_rest().await?;
            }
            if self.source == Source::Live
                && let Some(rest) = self.rest.take()
            {
                self.ended = true;
                let Rest::Told(last) = rest else { continue };
                self.place = self.place.with_end();
                let last = Arc::new(last.moved_to(self.place));
                return Ok(Some(Batch::Notices(vec![last])));
            }
            let batch = match self.source {
                Source::Unsought => {
                    self.source = self.log().await?;
                    continue;
                }
                Source::Log | Source::FlowLog(_) => self.history().await?,
                Source::Live => {
                    if self.pending.is_empty() {
                        match self.watch.next(BATCH_BYTES_MAX).await {
                            Some(chunks) => self.pending = chunks,
                            None => {
                                self.watch = self.live.watch(&self.filter, self.place);
                                self.source = Source::Unsought;
                                continue;
                            }
                        }
                    }
                    self.chosen().await?
                }
            };
            let cancels = |p: &Arc<Published>| p.notice.kind == Kind::Cancelled;
            self.cancelled |= self.unrun && batch.notices().iter().any(cancels);
            match batch {
                Batch::Passed if self.filter.flow.is_some() => {}
                Batch::Whole(_) | Batch::Notices(_) | Batch::Passed | Batch::Reset(_) => {
                    return Ok(Some(batch));
                }
            }
        }
    }

    /// The next page of history; goes over to what happens when it is read up to there.
    async fn history(&mut self) -> Result<Batch, Error> {
        let to = self.watch.from;
        // Notices of the event at the place may still be missing.
        let again = u64::from(self.place.parts < PARTS_ALL && self.place.position > 0);
        let live = self.live.clone();
        let mut events = Vec::new();
        // Until the notices are made: a page of large events is large twice.
        let _turn = live.history.acquire().await;
        if self.place.position - again < to {
            let store = &self.live.store;
            events = match (self.source, self.filter.flow) {
                (Source::FlowLog(after), Some(flow)) => {
                    let after = after.saturating_sub(again);
                    read_stream_over(&**store, flow, after, PAGE_EVENTS, PIECE_BYTES_MAX).await?
                }
                (Source::Unsought | Source::FlowLog(_) | Source::Log | Source::Live, _) => {
                    let page = store
                        .read_all(self.place.position - again, PAGE_EVENTS)
                        .await?;
                    if let Some(place) = beginning::behind_damage(&page, self.place.position) {
                        self.place = place;
                        return Ok(Batch::Passed);
                    }
                    page.events
                }
            };
        }
        if let Some(reset) = self.overtaken().await? {
            return Ok(Batch::Reset(reset));
        }
        events.retain(|event| event.position <= to);
        let Some(mut last) = events.last() else {
            self.source = Source::Live;
            return Ok(Batch::Passed);
        };
        let (mut notices, mut bytes) = (Vec::new(), 0);
        for event in &events {
            for published in self.live.published(event).await? {
                if published.cursor > self.place && self.takes(&published).await? {
                    bytes += published.notice.weight();
                    notices.push(published);
                }
            }
            if bytes >= BATCH_BYTES_MAX {
                last = event;
                break;
            }
        }
        self.place = Cursor::behind(last, PARTS_ALL);
        if let Source::FlowLog(version) = &mut self.source {
            *version = last.version;
        }
        Ok(self.cut(notices))
    }

    /// Whether something between the place and the end of the log was dropped since the stream began, or
    /// since that was told. A stream that was to end by itself ends: what would have ended it is gone.
    async fn overtaken(&mut self) -> Result<Option<Reset>, Error> {
        let dropped = self.live.store.dropped().await?;
        // Not by the horizon: what lies before it may be dropped later than what made it.
        if dropped == self.dropped {
            return Ok(None);
        }
        let lost = self.place.position < dropped.horizon
            && match self.filter.flow {
                // Or before the place: rather said once too often.
                None => true,
                Some(flow) => beginning::has_lost(&self.live, flow, self.place).await?,
            };
        self.dropped = dropped;
        self.ended |= lost && self.until != Until::Forever;
        Ok(lost.then_some(Reset::Archived))
    }

    /// The notices of live chunks that pass, behind the present place.
    async fn chosen(&mut self) -> Result<Batch, Error> {
        // Kept until they are chosen from: who asks may break off, or the log may not answer.
        let chunks = self.pending.clone();
        let end = chunks.last().map_or(self.place, |chunk| chunk.end);
        let first = chunks.first().and_then(|chunk| chunk.notices.first());
        let fresh = first.is_none_or(|published| published.cursor > self.place);
        if let [only] = chunks.as_slice()
            && fresh
            && self.filter.takes_all()
            && self.until == Until::Forever
        {
            self.place = self.place.max(end);
            self.pending.clear();
            return Ok(match only.notices.is_empty() {
                true => Batch::Passed,
                false => Batch::Whole(only.clone()),
            });
        }
        let mut notices = Vec::new();
        for published in chunks.iter().flat_map(|chunk| &chunk.notices) {
            if published.cursor > self.place && self.takes(published).await? {
                notices.push(published.clone());
            }
        }
        self.place = self.place.max(end);
        self.pending.clear();
        Ok(self.cut(notices))
    }

    /// Ends the stream behind the notice that ends it.
    fn cut(&mut self, mut notices: Vec<Arc<Published>>) -> Batch {
        let ends = |published: &Arc<Published>| match (self.until, published.notice.ended_run()) {
            (Until::Forever, _) | (_, None) => false,
            (Until::RunEnds(run), Some(ended)) => ended.id == run,
            (Until::NothingRuns, Some(ended)) => {
                ended.others == 0 && published.cursor.position > self.ends_after
            }
        };
        if let Some(at) = notices.iter().position(ends) {
            notices.truncate(at + 1);
            self.place = notices[at].cursor;
            self.ended = true;
        }
        if notices.is_empty() {
            Batch::Passed
        } else {
            Batch::Notices(notices)
        }
    }

    async fn takes(&mut self, published: &Published) -> Result<bool, Error> {
        let (filter, notice) = (&mut self.filter, &published.notice);
        // Who waits for the end of a run is told of it, whatever task it is about.
        let ends = self.until != Until::Forever && notice.run.is_some();
        if filter.flow.is_some_and(|flow| flow != published.flow)
            || filter
                .task
                .is_some_and(|task| task != notice.task_id && !ends)
            || filter
                .kinds
                .as_ref()
                .is_some_and(|kinds| !kinds.contains(&notice.kind))
            || !filter.labels.matches(&notice.labels)
        {
            return Ok(false);
        }
        if let Some(covered) = &mut filter.run {
            if notice.run.is_some_and(|ended| ended.id != covered.run) {
                return Ok(false);
            }
            if let Some(tasks) = &mut covered.tasks {
                if notice.joins == Some(covered.run) {
                    tasks.insert(notice.task_id);
                }
                if !tasks.contains(&notice.task_id) {
                    return Ok(false);
                }
            }
        }
        match &filter.user {
            None => Ok(true),
            Some(user) => Ok(self.live.users.of(published.flow).await?.as_ref() == Some(user)),
        }
    }

    /// How the log is read from the place on. With a flow, its place is found in the flow's own stream, so
    /// that nothing of others is read. Cost: one look when the place is the flow's end or was reached
    /// there, else O(log events of the flow) looks.
    async fn log(&self) -> Result<Source, Error> {
        let Some(flow) = self.filter.flow else {
            return Ok(Source::Log);
        };
        let (place, store) = (self.place, &self.live.store);
        let at = async |version: Version| {
            let events = read_stream_over(&**store, flow, version - 1, 1, usize::MAX).await?;
            Ok::<Option<Arc<Recorded>>, Error>(events.into_iter().next())
        };
        if place.version > 0
            && let Some(event) = at(place.version).await?
            && place.names(&event)
        {
            return Ok(Source::FlowLog(place.version));
        }
        let (mut high, last) = store.stream_head(flow).await?.unwrap_or_default();
        let mut low = if last <= place.position { high } else { 0 };
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match at(middle).await? {
                Some(event) if event.position <= place.position => low = middle,
                Some(_) | None => high = middle - 1,
            }
        }
        Ok(Source::FlowLog(low))
    }
}
