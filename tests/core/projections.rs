//! The read models follow the log: catching up, living, failing, being rebuilt.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod log;
mod several;

use log::{Log, id};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use taskledger::store::EventStore;
use taskledger::subscription::feed::Feed;
use taskledger::subscription::rebuild::beside;
use taskledger::subscription::runner::{Gather, Handle, Lagging, Options, Service, State};
use taskledger_domain::flow::{Event, TaskDeleted};
use taskledger_domain::{Payload, TaskId};
use taskledger_projections::ReadModels;
use taskledger_testkit::ground::{Engine, Ground};
use tokio_util::sync::CancellationToken;

/// Long enough never to be waited out by a test that passes.
const PATIENCE: Duration = Duration::from_secs(60);

taskledger_testkit::on_both_engines!(
    rows_follow_the_log_from_its_beginning_and_as_it_grows,
    an_event_that_cannot_be_projected_leaves_out_its_flow_alone,
    a_damaged_event_of_the_log_leaves_out_its_flow_alone,
    a_store_that_is_away_for_a_while_loses_nothing,
    read_models_that_are_ahead_of_the_log_are_kept,
    empty_rows_behind_a_long_log_are_filled_beside_and_follow_it_then,
    a_reader_does_not_wait_for_what_is_gathered,
    what_was_in_the_log_at_the_start_is_folded_first_and_at_once,
);

struct Running {
    models: Arc<ReadModels>,
    handle: Handle,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn stop(self) -> Arc<ReadModels> {
        self.stop.cancel();
        self.task.await.unwrap();
        self.models
    }
}

async fn models(ground: &Ground) -> Arc<ReadModels> {
    Arc::new(ground.open().await)
}

async fn start(log: &Arc<Log>, models: Arc<ReadModels>) -> Running {
    start_filling(log, models, u64::MAX).await
}

/// With empty read models that are filled beside from so many events on.
async fn start_filling(log: &Arc<Log>, models: Arc<ReadModels>, fill_from: u64) -> Running {
    let options = Options {
        retry_first: Duration::from_millis(1),
        retry_max: Duration::from_millis(4),
        gather: Gather::NOTHING,
        gather_unread: Gather::NOTHING,
        fill_from,
    };
    start_with(log, models, options).await
}

async fn start_with(log: &Arc<Log>, models: Arc<ReadModels>, options: Options) -> Running {
    let store: Arc<dyn EventStore> = Arc::clone(log) as _;
    let (service, handle) = Service::new(store, Arc::clone(&models), options)
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(service.run(stop.clone()));
    Running {
        models,
        handle,
        stop,
        task,
    }
}

async fn rows_follow_the_log_from_its_beginning_and_as_it_grows(engine: Engine) {
    let log = Log::new(None);
    for n in 1..=5000 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let running = start(&log, models(&ground).await).await;
    running.handle.wait_for(5000, PATIENCE).await.unwrap();
    for n in 1..=20 {
        let position = log.rename(n);
        running.handle.wait_for(position, PATIENCE).await.unwrap();
        let view = running.models.get(TaskId(id(n))).await.unwrap().unwrap();
        assert_eq!(&*view.row.name, "renamed");
    }
    assert_eq!(running.handle.lag(), 0);
    assert_eq!(running.handle.state(), State::Running);
    let models = running.stop().await;

    // What was written meanwhile is caught up by the next start.
    log.rename(21);
    let running = start(&log, models).await;
    running.handle.wait_for(5021, PATIENCE).await.unwrap();
    let models = running.stop().await;

    let other = ground.another().await;
    let fresh = self::models(&other).await;
    let mut told = Vec::new();
    let store: Arc<dyn EventStore> = Arc::clone(&log) as _;
    let reached = beside(Arc::clone(&store), &fresh, |at, of| told.push((at, of)))
        .await
        .unwrap();
    assert_eq!(reached, 5021);
    assert_eq!(told.last(), Some(&(5021, 5021)));
    assert!(told.is_sorted());
    let expected = fresh.dump().await.unwrap();
    assert_eq!(models.dump().await.unwrap(), expected);
    beside(store, &models, |_, _| ()).await.unwrap();
    assert_eq!(models.dump().await.unwrap(), expected);
}

async fn an_event_that_cannot_be_projected_leaves_out_its_flow_alone(engine: Engine) {
    for fill_from in [u64::MAX, 1] {
        let log = Log::new(None);
        log.create(1, Payload::empty());
        let task_id = TaskId(id(99));
        let flow = TaskId(id(1)).as_flow();
        let bad = log.push(flow, Event::TaskDeleted(TaskDeleted { task_id }));
        log.rename(1);
        let last = log.create(2, Payload::empty());
        let ground = Ground::new(engine).await;
        let running = start_filling(&log, models(&ground).await, fill_from).await;
        running.handle.wait_for(last, PATIENCE).await.unwrap();
        assert_eq!(running.handle.state(), State::Running);
        let damaged = running.models.damaged_flows();
        let found = damaged.get(&flow).expect("it is named");
        assert_eq!((found.position, found.is_readable), (bad, true));
        assert!(found.reason.contains("does not exist"), "{found:?}");
        let first = running.models.get(TaskId(id(1))).await.unwrap().unwrap();
        assert_eq!(&*first.row.name, "task 1");
        assert!(running.models.get(TaskId(id(2))).await.unwrap().is_some());
        running.stop().await;
    }
}

async fn a_damaged_event_of_the_log_leaves_out_its_flow_alone(engine: Engine) {
    for fill_from in [u64::MAX, 1] {
        // One in the middle, and the last one: the rows come as far as the log.
        for corrupt in [4, 8] {
            let log = Log::new(Some(corrupt));
            for n in 1..=6 {
                log.create(n, Payload::empty());
            }
            log.rename(4);
            log.rename(6);
            let ground = Ground::new(engine).await;
            let running = start_filling(&log, models(&ground).await, fill_from).await;
            running.handle.wait_for(8, PATIENCE).await.unwrap();
            assert_eq!(running.handle.state(), State::Running);
            assert_eq!(running.handle.lag(), 0);
            let damaged = running.models.damaged_flows();
            let named: Vec<_> = damaged
                .values()
                .map(|it| (it.position, it.is_readable))
                .collect();
            assert_eq!(named, [(corrupt, false)]);
            for n in [1, 2, 3, 5, 6] {
                assert!(
                    running.models.get(TaskId(id(n))).await.unwrap().is_some(),
                    "{n}"
                );
            }
            let fourth = running.models.get(TaskId(id(4))).await.unwrap();
            assert_eq!(fourth.is_some(), corrupt != 4);
            running.stop().await;
        }
    }
}

async fn a_store_that_is_away_for_a_while_loses_nothing(engine: Engine) {
    let log = Log::new(None);
    log.failures.store(5, Ordering::SeqCst);
    for n in 1..=10 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let running = start(&log, models(&ground).await).await;
    running.handle.wait_for(10, PATIENCE).await.unwrap();
    assert_eq!(log.failures.load(Ordering::SeqCst), 0);
    assert_eq!(running.handle.state(), State::Running);
    running.stop().await;
}

async fn empty_rows_behind_a_long_log_are_filled_beside_and_follow_it_then(engine: Engine) {
    let log = Log::new(None);
    for n in 1..=5000 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let store: Arc<dyn EventStore> = Arc::clone(&log) as _;
    let options = Options {
        fill_from: 5000,
        ..Options::default()
    };
    let models = models(&ground).await;
    let (_, handle) = Service::new(store, Arc::clone(&models), options)
        .await
        .unwrap();
    let before = State::Filling {
        position: 0,
        of: 5000,
    };
    assert_eq!(handle.state(), before, "from the first moment on");
    assert!(handle.is_unfilled());
    let running = start_filling(&log, models, 5000).await;
    running.handle.wait_for(1, PATIENCE).await.unwrap();
    assert_eq!(
        running.handle.checkpoint(),
        5000,
        "nothing is seen before the end"
    );
    assert_eq!(running.handle.state(), State::Running);
    assert!(!running.handle.is_unfilled());
    let position = log.rename(7);
    running.handle.wait_for(position, PATIENCE).await.unwrap();
    let filled = running.stop().await.dump().await.unwrap();

    let other = ground.another().await;
    let running = start_filling(&log, self::models(&other).await, 5002).await;
    running.handle.wait_for(position, PATIENCE).await.unwrap();
    assert_eq!(
        running.stop().await.dump().await.unwrap(),
        filled,
        "followed from the beginning"
    );
}

async fn read_models_that_are_ahead_of_the_log_are_kept(engine: Engine) {
    let longer = Log::new(None);
    for n in 1..=9 {
        longer.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let running = start(&longer, models(&ground).await).await;
    running.handle.wait_for(9, PATIENCE).await.unwrap();
    let models = running.stop().await;

    let restored = Log::new(None);
    for n in 101..=104 {
        restored.create(n, Payload::empty());
    }
    let running = start(&restored, models).await;
    let reason = loop {
        if let State::Retrying { reason } = running.handle.state() {
            break reason;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        &*reason,
        "the log ends at position 4, but the read models contain events up to position 9"
    );
    assert!(running.models.get(TaskId(id(1))).await.unwrap().is_some());
    assert!(running.models.get(TaskId(id(101))).await.unwrap().is_none());
    assert_eq!(running.models.checkpoint().await.unwrap(), 9);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_after_its_time() {
    let log = Log::new(None);
    log.create(1, Payload::empty());
    let ground = Ground::new(Engine::Sqlite).await;
    let models = models(&ground).await;
    let store: Arc<dyn EventStore> = Arc::clone(&log) as _;
    // Nobody runs the service.
    let (_service, handle) = Service::new(store, models, Options::default())
        .await
        .unwrap();
    assert!(handle.wait_for(0, Duration::ZERO).await.is_ok());
    let lagging = handle
        .wait_for(1, Duration::from_secs(2))
        .await
        .unwrap_err();
    let expected = Lagging {
        checkpoint: 0,
        wanted: 1,
        stopped: false,
    };
    assert_eq!(lagging, expected);
}

#[tokio::test]
async fn large_events_make_small_batches() {
    let log = Log::new(None);
    let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000_000));
    let large = Payload::parse(&text).unwrap();
    for n in 1..=40 {
        log.create(n, large.clone());
    }
    let mut feed = Feed::new(Arc::clone(&log) as _, 0);
    let mut sizes = Vec::new();
    while let Some(events) = feed.ready().await.unwrap() {
        sizes.push(events.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), 40);
    assert_eq!(feed.position(), 40);
    // The first batch cannot know; all others can.
    assert_eq!(sizes[0], 40);
    for n in 41..=60 {
        log.create(n, large.clone());
    }
    let next = feed.next().await.unwrap();
    assert_eq!(next.len(), 8);
}

async fn a_reader_does_not_wait_for_what_is_gathered(engine: Engine) {
    let log = Log::new(None);
    let ground = Ground::new(engine).await;
    let gather = Gather {
        within: 10 * PATIENCE,
        events: u64::MAX / 2,
    };
    let options = Options {
        gather,
        gather_unread: gather,
        fill_from: u64::MAX,
        ..Options::default()
    };
    let running = start_with(&log, models(&ground).await, options).await;
    for n in 1..=3 {
        log.create(n, Payload::empty());
        running.handle.wait_for(n, PATIENCE).await.unwrap();
    }
    running.stop().await;
}

async fn what_was_in_the_log_at_the_start_is_folded_first_and_at_once(engine: Engine) {
    // given
    let log = Log::new(None);
    for n in 1..=5 {
        log.create(n, Payload::empty());
    }
    let ground = Ground::new(engine).await;
    let never = Gather {
        within: Duration::from_secs(86_400),
        events: u64::MAX / 2,
    };
    let options = Options {
        gather: never,
        gather_unread: never,
        ..Options::default()
    };
    let models = models(&ground).await;
    let store: Arc<dyn EventStore> = Arc::clone(&log) as _;
    let (service, handle) = Service::new(store, Arc::clone(&models), options)
        .await
        .unwrap();
    assert_eq!(handle.catching_up_to(), Some(5), "before the first fold");
    // when
    let stop = CancellationToken::new();
    let task = tokio::spawn(service.run(stop.clone()));
    let caught_up = async {
        while handle.catching_up_to().is_some() {
            tokio::task::yield_now().await;
        }
    };
    // then: nobody has to read for that
    tokio::time::timeout(PATIENCE, caught_up).await.unwrap();
    assert_eq!(handle.checkpoint(), 5);
    log.create(6, Payload::empty());
    assert_eq!((handle.lag(), handle.catching_up_to()), (1, None));
    stop.cancel();
    task.await.unwrap();
    // when it starts on what another one has folded
    let store: Arc<dyn EventStore> = Arc::clone(&log) as _;
    let started = Service::new(store, models, Options::default());
    let (_, handle) = started.await.unwrap();
    assert_eq!(handle.catching_up_to(), Some(6));
}
