//! Reads the value of every metric of the [`table`](super::table) from where it is counted.

use super::broker;
use super::page::Page;
use super::slow::Figures as Slow;
use super::table as t;
use super::{Place, Sources};
use crate::application::figures::{AttemptEnd, Conflict, Figures, RUN_ENDS, TimeOfSchedule};
use crate::application::{App, RemoteWork};
use crate::engine::Dispatcher as Engine;
use crate::meters::{Counter, OTHER};
use crate::nodes::Peers;
use crate::transport::figures::Figures as Doors;
use crate::webhooks::worker::{self, CLASSES};
use std::collections::BTreeMap;
use taskledger_auth::store::TokenState;
use taskledger_domain::Timestamp;
use taskledger_domain::codec::KINDS;
use taskledger_domain::flow::RunState;
use taskledger_domain::task::Priority;
use tokio::runtime::Handle;

/// Adds all figures of a server that has started at `started`.
pub(super) fn all(page: &mut Page, sources: &Sources, slow: &Slow, started: Timestamp) {
    let figures = sources.app.flows.figures();
    page.add(&t::BUILD, &[env!("CARGO_PKG_VERSION")], 1);
    page.add(&t::READY, &[], slow.ready.into());
    doors(page, &sources.doors);
    credentials(page, sources, slow);
    log(page, &sources.app, figures);
    flows(page, &sources.app, figures, slow);
    executors(page, &sources.app, figures, &sources.engine);
    webhooks(page, &sources.deliveries, slow);
    broker::own(
        page,
        &sources.app,
        sources.doors.broker(),
        broker::Types::Known,
    );
    nodes(page, &sources.app, sources.peers.as_deref());
    storage(page, &sources.place, slow);
    process(page, slow, started);
}

fn doors(page: &mut Page, doors: &Doors) {
    for calls in doors.calls() {
        let labels = [calls.method, &*calls.code, calls.door];
        page.add_ranges(&t::CALLS, &labels, calls.durations);
    }
    let (connections, requests) = doors.load();
    page.add(&t::IN_FLIGHT, &[], requests as u64);
    page.add(&t::CONNECTIONS, &[], connections as u64);
    for (reason, count) in doors.refusals() {
        page.add(&t::REFUSED, &[reason.as_str()], count);
    }
    for (carrier, open, notices) in doors.streams() {
        page.add(&t::STREAMS, &[carrier.as_str()], open);
        page.add(&t::STREAM_NOTICES, &[carrier.as_str()], notices);
    }
    for (reason, count) in doors.streams_ended() {
        page.add(&t::STREAM_ENDED, &[reason.as_str()], count);
    }
}

/// Who is let in, and what the server shows to clients of itself.
fn credentials(page: &mut Page, sources: &Sources, slow: &Slow) {
    for (reason, count) in sources.doors.denials() {
        page.add(&t::DENIED, &[reason], count);
    }
    for (outcome, count) in sources.tokens.store().appended() {
        page.add(&t::AUDITED, &[outcome.as_str()], count);
    }
    if let Some(tokens) = &slow.tokens {
        for (state, count) in TokenState::ALL.iter().zip(tokens) {
            page.add(&t::TOKENS, &[state.as_str()], *count);
        }
    }
    let now = sources.app.clock.now();
    // Until the figures are read anew, one that has ended meanwhile is at its end.
    let token_left = slow.token_expires_at.map(|ends| ends.ms_since(now));
    if let Some(left) = token_left {
        page.add_float(&t::TOKEN_EXPIRY, &[], left as f64 / 1000.0);
    }
    if let Some(certificates) = &sources.certificates {
        let left = certificates.expires_at().timestamp_micros() - now.0;
        page.add_float(&t::TLS_EXPIRY, &[], left as f64 / 1e6);
        let reads = certificates.reads();
        let times = [("usable", Some(reads.usable)), ("failed", reads.failed)];
        for (outcome, at) in times {
            if let Some(at) = at {
                page.add_float(&t::TLS_READ, &[outcome], at.timestamp_micros() as f64 / 1e6);
            }
        }
    }
}

fn log(page: &mut Page, app: &App, figures: &Figures) {
    for ((kind, _), count) in KINDS.iter().zip(&figures.events) {
        page.add(&t::LOG_EVENTS, &[kind], count.get());
    }
    page.add_ranges(&t::LOG_APPEND, &[], figures.append.read());
    page.add_ranges(&t::LOG_BATCH, &[], figures.batch.read());
    page.add(&t::LOG_COMMITS, &[], app.store.commits());
    for (cause, count) in Conflict::ALL.iter().zip(&figures.conflicts) {
        page.add(&t::LOG_CONFLICTS, &[cause.as_str()], count.get());
    }
    page.add(&t::LOG_UNKNOWN, &[], figures.unknown_outcomes.get());
    page.add(&t::LOG_HEAD, &[], *app.store.watch().borrow());
    page.add(&t::READMODEL_POSITION, &[], app.projections.checkpoint());
}

fn flows(page: &mut Page, app: &App, figures: &Figures, slow: &Slow) {
    if let Some(lag) = slow.lag_seconds {
        page.add_float(&t::READMODEL_LAG, &[], lag);
    }
    page.add(&t::FLOWS, &[], app.flows.resident().0 as u64);
    page.add_ranges(&t::FLOW_LOAD, &[], figures.load.read());
    page.add_ranges(&t::MAILBOX_WAIT, &[], figures.mailbox_wait.read());
    page.add_known(&t::RUNS_ACTIVE, &[], slow.runs_active);
    for (state, count) in RUN_ENDS.iter().zip(&figures.runs) {
        page.add(&t::RUNS, &[verdict(*state)], count.get());
    }
    for (outcome, count) in TimeOfSchedule::ALL.iter().zip(&figures.schedule_times) {
        page.add(&t::SCHEDULE_TIMES, &[outcome.as_str()], count.get());
    }
    page.add_ranges(&t::SCHEDULE_LAG, &[], figures.schedule_lag.read());
}

const fn verdict(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
    }
}

/// How an executor is used, or all those together that have no name of their own.
#[derive(Default)]
struct Use {
    running: u64,
    limit: u64,
    waiting: [u64; Priority::ALL.len()],
    oldest: f64,
}

fn executors(page: &mut Page, app: &App, figures: &Figures, engine: &Engine) {
    let mut used: BTreeMap<&str, Use> = BTreeMap::new();
    let now = app.clock.now();
    for queue in app.flows.slots().queues() {
        let name = figures.attempts.shown(&queue.executor);
        let one = used.entry(name).or_default();
        one.running += queue.running as u64;
        one.limit = one.limit.saturating_add(queue.limit as u64);
        for (all, flows) in one.waiting.iter_mut().zip(queue.waiting) {
            *all += flows as u64;
        }
        let waited = queue.oldest.map_or(0, |since| now.ms_since(since)) as f64 / 1000.0;
        one.oldest = one.oldest.max(waited);
    }
    for (name, one) in used {
        page.add(&t::SLOTS, &[name, "running"], one.running);
        // A method without a limit has as many slots as there are numbers.
        if one.limit < u64::MAX {
            page.add(&t::SLOTS, &[name, "limit"], one.limit);
        }
        for (priority, flows) in Priority::ALL.iter().zip(one.waiting) {
            page.add(&t::WAITING, &[name, &priority.get().to_string()], flows);
        }
        page.add_float(&t::WAIT_OLDEST, &[name], one.oldest);
    }
    let mut work: BTreeMap<&str, RemoteWork> = BTreeMap::new();
    let known = app.flows.slots().view(None);
    for (method, of_method) in app.flows.remote_work() {
        // Names that only tasks have made up must not take the places of others.
        let is_known = known.is_remote_for_any(&method) || of_method.leased > 0;
        let name = if is_known {
            figures.attempts.shown(&method)
        } else {
            OTHER
        };
        let one = work.entry(name).or_default();
        one.ready += of_method.ready;
        one.leased += of_method.leased;
        one.workers_waiting += of_method.workers_waiting;
    }
    for (name, one) in work {
        page.add(&t::WORKER_TASKS, &[name, "ready"], one.ready as u64);
        page.add(&t::WORKER_TASKS, &[name, "leased"], one.leased as u64);
        page.add(&t::WORKERS_WAITING, &[name], one.workers_waiting as u64);
    }
    page.add(&t::LEASES_LOST, &[], figures.leases_lost.get());
    for (name, ends) in figures.attempts.iter() {
        for (end, count) in AttemptEnd::ALL.iter().zip(ends.iter().map(Counter::get)) {
            page.add(&t::ATTEMPTS, &[name, end.as_str()], count);
        }
    }
    for (name, times) in engine.times().iter() {
        page.add_ranges(&t::ATTEMPT_TIME, &[name], times.read());
    }
}

fn webhooks(page: &mut Page, deliveries: &worker::Handle, slow: &Slow) {
    for (class, count) in CLASSES.iter().zip(deliveries.by_class()) {
        page.add(&t::WEBHOOK_ATTEMPTS, &[class], count);
    }
    page.add_ranges(&t::WEBHOOK_TIME, &[], deliveries.times());
    if let Some(lag) = slow.webhook_lag {
        page.add_float(&t::WEBHOOK_LAG, &[], lag.as_secs_f64());
    }
    let counts = deliveries.counts();
    page.add(&t::WEBHOOK_DEAD, &[], counts.dead);
    page.add(&t::BREAKERS, &[], counts.open_breakers as u64);
}

fn nodes(page: &mut Page, app: &App, peers: Option<&Peers>) {
    if let Some(census) = app.flows.ownership().census() {
        page.add(&t::NODES, &[], census.nodes.len() as u64);
        page.add(&t::PARTITIONS, &[], census.partitions as u64);
        page.add(&t::MOVES, &[], census.moves);
    }
    if let Some(peers) = peers {
        let sent = peers.forwarded();
        page.add(&t::FORWARDED, &["answered"], sent.answered);
        page.add(&t::FORWARDED, &["not_taken"], sent.not_taken);
        page.add(&t::FORWARDED, &["broken"], sent.broken);
    }
}

fn storage(page: &mut Page, place: &Place, slow: &Slow) {
    if let Some(database) = &place.database {
        let (open, idle) = database.connections();
        page.add(&t::DB_POOL, &["idle"], idle);
        page.add(&t::DB_POOL, &["used"], open.saturating_sub(idle));
        page.add_known(&t::DB_BYTES, &["database"], slow.database_bytes);
    }
    if let Some(disk) = &slow.disk {
        for (part, bytes) in &disk.files {
            page.add(&t::DB_BYTES, &[part], *bytes);
        }
        page.add_known(&t::DISK_FREE, &[], disk.free_bytes);
    }
}

pub(super) fn process(page: &mut Page, slow: &Slow, started: Timestamp) {
    let process = &slow.process;
    if let Some(seconds) = process.cpu_seconds {
        page.add_float(&t::PROCESS_CPU, &[], seconds);
    }
    page.add_known(&t::PROCESS_RSS, &[], process.resident_bytes);
    page.add_known(&t::PROCESS_VIRTUAL, &[], process.virtual_bytes);
    page.add_known(&t::PROCESS_FDS, &[], process.open_fds);
    page.add_known(&t::PROCESS_FDS_MAX, &[], process.max_fds);
    page.add_known(&t::PROCESS_THREADS, &[], process.threads);
    page.add_float(&t::PROCESS_START, &[], started.0 as f64 / 1e6);
    let runtime = Handle::current().metrics();
    page.add(&t::TOKIO_WORKERS, &[], runtime.num_workers() as u64);
    page.add(&t::TOKIO_TASKS, &[], runtime.num_alive_tasks() as u64);
    page.add(&t::TOKIO_QUEUE, &[], runtime.global_queue_depth() as u64);
    let busy = (0..runtime.num_workers()).map(|worker| runtime.worker_total_busy_duration(worker));
    let busy: f64 = busy.map(|time| time.as_secs_f64()).sum();
    page.add_float(&t::TOKIO_BUSY, &[], busy);
}
