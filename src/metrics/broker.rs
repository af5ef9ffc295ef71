//! Metrics of the agent broker, on a listener of its own: with the names, labels and format of the public broker, so
//! that its dashboards and alerts work, and further metrics under our names.

use super::page::Page;
use super::slow::Figures as Slow;
use super::table::{self as t, Kind, On, Row, table};
use super::{Sources, gather, plain};
use crate::application::App;
use crate::meters::{FirstUse, OTHER};
use crate::transport::eventbus::{Figures, SERVICE};
use std::collections::BTreeMap;
use taskledger_domain::Timestamp;

table! {
    EVENTS = Counter "events_processed_total" ["service" "event_type" "success"]
        "Total number of events processed.";
    PUBLISHED = Counter "events_published_total" ["event_type" "target_agent"]
        "Total number of events published: messages that were written to the streams of agents.";
    ERRORS = Counter "event_errors_total" ["service" "event_type" "error_type"]
        "Total number of event processing errors.";
    PROCESSING = Histogram "event_processing_duration_seconds" ["service" "event_type"]
        "Event processing duration in seconds.";
    PUBLISHING = Histogram "message_broker_publish_duration_seconds" ["topic"]
        "Message broker publish duration in seconds: from the call to its answer, when the event is on the disk.";
    CONSUMING = Histogram "message_broker_consume_duration_seconds" ["topic"]
        "Message broker consume duration in seconds: from the event to its message on a stream.";
    CONNECTION_ERRORS = Counter "message_broker_connection_errors_total" []
        "Total number of message broker connection errors: streams that could not reach the store or another node.";
}

/// The names that this listener has beside those of the public broker.
static OWN: [&Row; 10] = [
    &t::BROKER_STREAMS,
    &t::BROKER_QUEUE,
    &t::BROKER_OLDEST,
    &t::BROKER_HELD,
    &t::BROKER_REDELIVERIES,
    &t::BUILD,
    &t::PROCESS_CPU,
    &t::PROCESS_RSS,
    &t::PROCESS_FDS,
    &t::PROCESS_START,
];

/// All metrics of this listener, in the order in which they are shown.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().chain(&OWN).copied()
}

/// The text of a scrape, as `text/plain; version=0.0.4`.
pub(super) fn text(sources: &Sources, slow: &Slow, started: Timestamp) -> String {
    let mut page = Page::default();
    let figures = sources.doors.broker();
    events(&mut page, figures);
    own(&mut page, &sources.app, figures, Types::All);
    page.add(&t::BUILD, &[env!("CARGO_PKG_VERSION")], 1);
    gather::process(&mut page, slow, started);
    plain::text(page, rows())
}

fn events(page: &mut Page, figures: &Figures) {
    for (event, succeeded, failed, took) in figures.events() {
        page.add(&EVENTS, &[SERVICE, event, "true"], succeeded);
        page.add(&EVENTS, &[SERVICE, event, "false"], failed);
        page.add_ranges(&PROCESSING, &[SERVICE, event], took);
    }
    for (event, agent, count) in figures.deliveries() {
        page.add(&PUBLISHED, &[event, agent], count);
    }
    for (event, error, count) in figures.errors() {
        page.add(&ERRORS, &[SERVICE, event, error], count);
    }
    for (topic, publishing, consuming, _) in figures.topics() {
        page.add_ranges(&PUBLISHING, &[topic.as_str()], publishing);
        page.add_ranges(&CONSUMING, &[topic.as_str()], consuming);
    }
    page.add(&CONNECTION_ERRORS, &[], figures.connection_errors());
}

/// What waits for agents and what they hold, by type.
#[derive(Default)]
struct Work {
    waiting: u64,
    held: u64,
    oldest_ms: u64,
}

/// Which types have series of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Types {
    /// Those that somebody asks for or holds tasks of: names that only tasks have made up have none.
    Known,
    /// All of them, those with the most tasks first.
    All,
}

/// What stands in the table of all metrics too.
pub(super) fn own(page: &mut Page, app: &App, figures: &Figures, types: Types) {
    for (topic, _, _, open) in figures.topics() {
        page.add(&t::BROKER_STREAMS, &[topic.kind()], open);
    }
    page.add(&t::BROKER_REDELIVERIES, &[], figures.redeliveries());
    let now = app.clock.now();
    // As many series as elsewhere; which types these are may change from scrape to scrape.
    let names = FirstUse::new(|| ());
    let known = app.flows.slots().view(None);
    let work = app.flows.remote_work();
    let mut work: Vec<_> = work.iter().collect();
    work.sort_unstable_by_key(|(method, of)| {
        (usize::MAX - of.ready - of.leased, (*method).clone())
    });
    let mut by_type: BTreeMap<&str, Work> = BTreeMap::new();
    for (method, of) in work {
        if of.ready + of.leased == 0 {
            continue;
        }
        let (name, _) = method.split_once('@').unwrap_or((method, ""));
        let is_known = || known.is_remote_for_any(method) || of.leased > 0;
        let may_be_shown = types == Types::All || is_known();
        let name = match may_be_shown && names.shown(name) == name {
            true => name,
            false => OTHER,
        };
        let one = by_type.entry(name).or_default();
        one.waiting += of.ready as u64;
        one.held += of.leased as u64;
        let waited = of.oldest.map_or(0, |since| now.ms_since(since));
        one.oldest_ms = one.oldest_ms.max(waited);
    }
    for (name, one) in by_type {
        page.add(&t::BROKER_QUEUE, &[name], one.waiting);
        page.add(&t::BROKER_HELD, &[name], one.held);
        page.add_float(&t::BROKER_OLDEST, &[name], one.oldest_ms as f64 / 1000.0);
    }
}
