//! Streams of notices: every place can be gone on from, nothing is missing, nothing comes twice.

use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::ManualClock;
use taskledger::store::memory::MemoryStore;
use taskledger::store::{Append, EventStore, NewEvent, Outcome};
use taskledger::subscription::cursor::Cursor;
use taskledger::subscription::live::{Live, Published};
use taskledger::subscription::notice::Kind;
use taskledger::subscription::stream::{Batch, Filter, From, Reader, Reset, Until};
use taskledger::subscription::testing::Immediate;
use taskledger_domain::flow::{
    Event, RunEnded, RunState, StatusCounts, TaskCompleted, TaskProgressed, TaskRenamed,
};
use taskledger_domain::task::Progress;
use taskledger_domain::testing::{START, id};
use taskledger_domain::{EventId, FlowId, Payload, RunId, TaskId};
use tokio_util::sync::CancellationToken;

mod archived;
mod labels;

/// Real time after which a test that waits has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const FLOWS: usize = 5;

/// A log and those who watch it.
struct World {
    store: Arc<MemoryStore>,
    live: Arc<Live>,
    stop: CancellationToken,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))));
        let (service, live) = Live::new(store.clone(), Arc::new(Immediate));
        let stop = CancellationToken::new();
        tokio::spawn(service.run(stop.clone()));
        Self { store, live, stop }
    }

    /// Appends an event to a flow.
    async fn append(&self, flow: FlowId, event: Event) {
        loop {
            let head = self.store.stream_head(flow).await.unwrap();
            #[allow(clippy::disallowed_methods, reason = "an id that no other event has")]
            let id = EventId(uuid::Uuid::new_v4());
            let metadata = crate::application::world::metadata("test");
            let append = Append {
                stream: flow,
                expected: head.map_or(0, |(version, _)| version),
                events: vec![NewEvent::new(id, START, metadata, event.clone())],
                claims: Vec::new(),
                fence: None,
            };
            match self.store.append(append).await.unwrap() {
                Outcome::Appended(_) => return,
                Outcome::Conflict { .. } => tokio::task::yield_now().await,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Appends the `n`th of many events: with no notice, one, or two.
    async fn append_nth(&self, n: usize) {
        let flow = flow(n % FLOWS);
        self.append(flow, nth(flow, n)).await;
    }

    async fn stream(&self, filter: Filter, from: From) -> Reader {
        let begun = Reader::begin(self.live.clone(), filter, from, Until::Forever).await;
        let (stream, reset) = begun.unwrap();
        assert_eq!(reset, None);
        stream
    }

    /// What a watcher that was never cut off would have got.
    async fn all(&self) -> Vec<Arc<Published>> {
        let log = self.store.read_all(0, usize::MAX).await.unwrap().events;
        let mut all = Vec::new();
        for event in &log {
            all.extend(self.live.published(event).await.unwrap());
        }
        all
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn flow(n: usize) -> FlowId {
    id(&format!("flow {n}")).as_flow()
}

/// Two tasks in each flow.
fn task(flow: FlowId, n: usize) -> TaskId {
    if n.is_multiple_of(2) {
        flow.root()
    } else {
        id(&format!("below {flow}"))
    }
}

fn nth(flow: FlowId, n: usize) -> Event {
    let task_id = task(flow, n / FLOWS);
    match n % 3 {
        0 => Event::TaskCompleted(TaskCompleted {
            task_id,
            attempt: 1,
            result: Payload::parse(&format!("{{\"n\": {n}}}")).unwrap(),
            remarks: None,
            parts: 0,
        }),
        1 => Event::TaskProgressed(TaskProgressed {
            task_id,
            attempt: 1,
            progress: Progress::ZERO,
            message: None,
            remarks: None,
        }),
        _ => Event::TaskRenamed(TaskRenamed {
            task_id,
            name: format!("{n}"),
        }),
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it happens soon")
}

/// The next frames of a stream, at least one.
async fn frames(stream: &mut Reader) -> Vec<Arc<Published>> {
    loop {
        let batch = soon(stream.next()).await.unwrap().expect("it goes on");
        if !matches!(batch, Batch::Passed) {
            return batch.notices().to_vec();
        }
    }
}

/// The next frames, so many or some more.
async fn take(stream: &mut Reader, count: usize) -> Vec<Arc<Published>> {
    let mut taken = Vec::new();
    while taken.len() < count {
        taken.extend(frames(stream).await);
    }
    taken
}

fn text(frames: &[Arc<Published>]) -> Vec<String> {
    let text = |published: &Arc<Published>| {
        let notice = serde_json::to_string(&published.notice).unwrap();
        format!(
            "{} {} {notice}",
            published.cursor,
            published.notice.kind.as_str()
        )
    };
    frames.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_cut_everywhere_gets_the_exact_union_while_appends_go_on() {
    const EVENTS: usize = 1000;
    // given
    let world = Arc::new(World::new());
    for n in 0..EVENTS / 4 {
        world.append_nth(n).await;
    }
    let appending = tokio::spawn({
        let world = world.clone();
        async move {
            for n in EVENTS / 4..EVENTS {
                world.append_nth(n).await;
                tokio::task::yield_now().await;
            }
        }
    });
    let notices = (0..EVENTS).map(|n| [2, 1, 0][n % 3]).sum::<usize>();
    // when: it takes one notice each time, so it is cut between the two of one event, too
    let (mut place, mut got) = (Cursor::BEGINNING, Vec::new());
    while got.len() < notices {
        let mut stream = world.stream(Filter::default(), From::Cursor(place)).await;
        let frame = frames(&mut stream).await.swap_remove(0);
        place = frame.cursor;
        got.push(frame);
    }
    soon(appending).await.unwrap();
    // then
    assert_eq!(text(&got), text(&world.all().await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_a_place_is_the_same_in_history_and_live() {
    // given
    let world = World::new();
    for n in 0..200 {
        world.append_nth(n).await;
    }
    let before = world.all().await;
    let mut streams = Vec::new();
    for frame in before.iter().step_by(7) {
        let from = From::Cursor(frame.cursor);
        streams.push((frame.cursor, world.stream(Filter::default(), from).await));
    }
    // when
    for n in 200..300 {
        world.append_nth(n).await;
    }
    // then
    let all = world.all().await;
    for (place, mut stream) in streams {
        let expected: Vec<_> = all.iter().filter(|f| f.cursor > place).cloned().collect();
        assert_eq!(
            text(&take(&mut stream, expected.len()).await),
            text(&expected)
        );
        assert!(stream.place() >= all.last().unwrap().cursor);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_choose_the_same_in_history_and_live() {
    let world = World::new();
    for n in 0..150 {
        world.append_nth(n).await;
    }
    let one = flow(1);
    let filters = [
        Filter {
            flow: Some(one),
            ..Filter::default()
        },
        Filter {
            flow: Some(one),
            task: Some(one.root()),
            ..Filter::default()
        },
        Filter {
            kinds: Some(vec![Kind::Completed]),
            ..Filter::default()
        },
        Filter {
            flow: Some(one),
            kinds: Some(vec![Kind::ProgressUpdate]),
            ..Filter::default()
        },
    ];
    let mut streams = Vec::new();
    for filter in &filters {
        streams.push(world.stream(filter.clone(), From::Beginning).await);
    }
    // Each has read what was there when the rest comes.
    let mut got = Vec::new();
    for stream in &mut streams {
        got.push(frames(stream).await);
    }
    for n in 150..300 {
        world.append_nth(n).await;
    }
    let all = world.all().await;
    for ((filter, mut stream), mut got) in filters.into_iter().zip(streams).zip(got) {
        let passes = |frame: &&Arc<Published>| {
            filter.flow.is_none_or(|flow| flow == frame.flow)
                && filter.task.is_none_or(|task| task == frame.notice.task_id)
                && filter
                    .kinds
                    .as_ref()
                    .is_none_or(|kinds| kinds.contains(&frame.notice.kind))
        };
        let expected: Vec<_> = all.iter().filter(passes).cloned().collect();
        let missing = expected.len() - got.len();
        got.extend(take(&mut stream, missing).await);
        assert_eq!(text(&got), text(&expected), "{filter:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_falls_behind_what_is_kept_reads_the_log_and_misses_nothing() {
    // given: watchers that have begun and take nothing
    let world = World::new();
    let one = Filter {
        flow: Some(flow(1)),
        ..Filter::default()
    };
    let mut of_all = world.stream(Filter::default(), From::Now).await;
    let mut of_one = world.stream(one, From::Now).await;
    // when: more comes than is kept for a flow, and more chunks than are kept for all
    for n in 0..10_000 {
        world.append_nth(n).await;
        if n % 2 == 0 {
            tokio::task::yield_now().await;
        }
    }
    // then
    let all = world.all().await;
    assert_eq!(text(&take(&mut of_all, all.len()).await), text(&all));
    let expected: Vec<_> = all.into_iter().filter(|f| f.flow == flow(1)).collect();
    assert_eq!(
        text(&take(&mut of_one, expected.len()).await),
        text(&expected)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_under_many_appenders_has_no_gap() {
    const APPENDERS: usize = 32;
    const EACH: usize = 60;
    let world = Arc::new(World::new());
    let mut stream = world.stream(Filter::default(), From::Now).await;
    let appending = (0..APPENDERS).map(|appender| {
        let world = world.clone();
        tokio::spawn(async move {
            for n in 0..EACH {
                world.append_nth(appender * EACH + n).await;
            }
        })
    });
    let appending = join_all(appending.collect::<Vec<_>>());
    let notices = (0..APPENDERS * EACH)
        .map(|n| [2, 1, 0][n % 3])
        .sum::<usize>();
    let got = take(&mut stream, notices).await;
    soon(appending).await;
    assert_eq!(text(&got), text(&world.all().await));
}

#[tokio::test]
async fn a_place_that_is_not_in_the_log_is_named_and_not_guessed() {
    // given
    let (world, other) = (World::new(), World::new());
    for n in 0..10 {
        world.append_nth(n).await;
        other.append_nth(n).await;
    }
    let foreign = other.all().await.last().unwrap().cursor;
    let ahead = Cursor {
        position: 11,
        ..foreign
    };
    // when, then
    for (from, reason) in [
        (From::Cursor(foreign), Reset::AnotherLog),
        (From::Cursor(ahead), Reset::Ahead),
        (From::Position(11), Reset::Ahead),
        (From::Position(u64::MAX), Reset::Ahead),
    ] {
        let live = world.live.clone();
        let begun = Reader::begin(live, Filter::default(), from, Until::Forever).await;
        let (stream, reset) = begun.unwrap();
        assert_eq!(reset, Some(reason), "{from:?}");
        assert_eq!(stream.place().position, 10, "it goes on from now");
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_run_after_which_nothing_runs() {
    // given
    let world = World::new();
    let flow = flow(0);
    let ended = |others| {
        Event::RunEnded(RunEnded {
            run_id: RunId(id(&format!("run {others}")).0),
            task_id: flow.root(),
            state: RunState::Completed,
            counts: StatusCounts::default(),
            root: taskledger_domain::testing::root_at_end(),
            others,
            rejected: false,
        })
    };
    // when
    for event in [nth(flow, 1), ended(1), nth(flow, 4), ended(0), nth(flow, 7)] {
        world.append(flow, event).await;
    }
    // then
    for task in [None, Some(id("another task"))] {
        let filter = Filter {
            flow: Some(flow),
            task,
            ..Filter::default()
        };
        let live = world.live.clone();
        let begun = Reader::begin(live, filter, From::Beginning, Until::NothingRuns).await;
        let (mut stream, _) = begun.unwrap();
        let mut got = Vec::new();
        while let Some(batch) = soon(stream.next()).await.unwrap() {
            got.extend(batch.notices().to_vec());
        }
        // The ends of runs are told to those, too, who watch one task.
        assert_eq!(got.len(), if task.is_none() { 6 } else { 4 });
        assert_eq!(got.last().unwrap().notice.ended_run().unwrap().others, 0);
    }
}
