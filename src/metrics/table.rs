//! Every metric: its name, kind, labels and meaning. Adding one is a row here and a line in `gather`.
//!
//! Labels have closed sets of values, or the first 64 that are used (`meters::FirstUse`); never an id, a
//! user, a URL or the text of an error. `docs/guides/metrics.md` shows the same table, which a test compares.

/// The kinds of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start of the process. Its name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often values lay in which range.
    Histogram,
    /// Always 1; its labels say something. Its name ends with `_info`.
    Info,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// The servers that have a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// All of them.
    Every,
    /// Those that keep their data in a folder.
    Folder,
    /// Those that keep it in a database, which others may share.
    Database,
    /// Those that speak TLS.
    Tls,
    /// Those with a token that can be used and has an end.
    Expiring,
}

/// A metric.
#[derive(Debug)]
pub struct Row {
    /// The name as Prometheus shows it; of a histogram without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// Which servers have it.
    pub on: On,
    /// The names of its labels, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence.
    pub help: &'static str,
}

macro_rules! table {
    ($($(#[$on:ident])? $constant:ident = $kind:ident $name:literal [$($label:literal)*] $help:literal;)+) => {
        $(
            #[doc = $help]
            pub static $constant: Row = Row {
                name: $name,
                kind: Kind::$kind,
                on: table!(@on $($on)?),
                labels: &[$($label),*],
                help: $help,
            };
        )+

        /// All metrics, in the order in which they are shown.
        pub static TABLE: &[&Row] = &[$(&$constant),+];
    };
    (@on) => { On::Every };
    (@on $on:ident) => { On::$on };
}

pub(super) use table;

table! {
    CALLS = Histogram "rpc_server_call_duration_seconds" ["rpc_method" "rpc_response_status_code" "door"]
        "Duration of calls, from the parsed call to its result or the start of its stream. The status code is `OK` or the code of the error: of JSON-RPC, and of gRPC for the doors `a2a_jsonrpc`, `a2a_rest`, `a2a_grpc` and `eventbus`.";
    BUILD = Info "taskledger_build_info" ["version"]
        "The version of the program.";
    READY = Gauge "taskledger_ready" []
        "Whether the server can take calls, as /readyz says: 1 or 0.";
    IN_FLIGHT = Gauge "taskledger_requests_in_flight" []
        "Requests that are being handled.";
    CONNECTIONS = Gauge "taskledger_connections" []
        "Connections that are open.";
    REFUSED = Counter "taskledger_refused_total" ["reason"]
        "Requests that were refused as a whole, before a call was carried out.";
    DENIED = Counter "taskledger_authentication_refused_total" ["reason"]
        "Requests whose credentials were refused, by reason; `limited`: not checked after too many wrong ones from that address.";
    AUDITED = Counter "taskledger_audit_entries_total" ["outcome"]
        "Entries that this server has added to the audit log, by their outcome: `done` or `refused`.";
    TOKENS = Gauge "taskledger_tokens" ["state"]
        "Stored tokens, including expired ones that are still listed; of all servers on the database.";
    #[Expiring] TOKEN_EXPIRY = Gauge "taskledger_token_expires_seconds" []
        "Seconds until the next valid token expires; of all servers on the database.";
    #[Tls] TLS_EXPIRY = Gauge "taskledger_tls_certificate_expiry_seconds" []
        "Seconds until the certificate for new connections expires; negative after that.";
    #[Tls] TLS_READ = Gauge "taskledger_tls_certificate_read_time_seconds" ["outcome"]
        "When the files of the certificate were last read, in seconds since 1970: successfully (`usable`) and without success (`failed`); after a failure the previous certificate stays in use.";

    LOG_EVENTS = Counter "taskledger_log_events_total" ["kind"]
        "Events that this server has appended to the log.";
    LOG_APPEND = Histogram "taskledger_log_append_seconds" []
        "Appends, from sending to the answer of the store.";
    LOG_BATCH = Histogram "taskledger_log_batch_events" []
        "Events in one append.";
    LOG_COMMITS = Counter "taskledger_log_commits_total" []
        "Transactions of the log that this server has made durable; several appends may share one.";
    LOG_CONFLICTS = Counter "taskledger_log_conflicts_total" ["cause"]
        "Appends that were not written because of another version, a claim or another owner.";
    LOG_UNKNOWN = Counter "taskledger_log_unknown_outcomes_total" []
        "Appends for which the store could not say at first whether they were written.";
    LOG_HEAD = Gauge "taskledger_log_head" []
        "Position of the last event in the log.";
    READMODEL_POSITION = Gauge "taskledger_readmodel_position" []
        "Position of the last event that the read models contain.";
    READMODEL_LAG = Gauge "taskledger_readmodel_lag_seconds" []
        "Age of the oldest event that the read models do not contain yet; 0 when they contain all.";

    FLOWS = Gauge "taskledger_flows_resident" []
        "Flows in memory, idle ones included.";
    FLOW_LOAD = Histogram "taskledger_flow_load_seconds" []
        "Loading of flows into memory.";
    MAILBOX_WAIT = Histogram "taskledger_mailbox_wait_seconds" []
        "How long commands waited before their flow decided them.";

    ATTEMPTS = Counter "taskledger_attempts_total" ["executor" "outcome"]
        "Attempts that ended, by outcome.";
    ATTEMPT_TIME = Histogram "taskledger_attempt_seconds" ["executor"]
        "How long executors of this process ran.";
    SLOTS = Gauge "taskledger_slots" ["executor" "state"]
        "Attempts in progress (`running`), and their limit (`limit`).";
    WAITING = Gauge "taskledger_waiting" ["executor" "priority"]
        "Flows that wait for a slot, by the priority of their most urgent task.";
    WAIT_OLDEST = Gauge "taskledger_wait_oldest_seconds" ["executor"]
        "How long the oldest waiting flow has waited for a slot; 0 if none waits.";
    WORKER_TASKS = Gauge "taskledger_worker_tasks" ["executor" "state"]
        "Tasks of its flows for workers outside the server: waiting (`ready`) and claimed (`leased`).";
    WORKERS_WAITING = Gauge "taskledger_workers_waiting" ["executor"]
        "Workers that wait at this server for tasks.";
    LEASES_LOST = Counter "taskledger_leases_lost_total" []
        "Attempts of workers outside the server, agents included, that were lost because their leases were not renewed.";
    RUNS_ACTIVE = Gauge "taskledger_runs_active" []
        "Runs that have not ended, as far as the read models know; of all servers on the log.";
    RUNS = Counter "taskledger_runs_total" ["state"]
        "Runs that ended, by verdict.";

    SCHEDULE_TIMES = Counter "taskledger_schedule_times_total" ["outcome"]
        "Times of schedules that this server has decided, and runs started by hand: `started`, `skipped`, `missed` or `failed`.";
    SCHEDULE_LAG = Histogram "taskledger_schedule_lag_seconds" []
        "Delay between a due time of a schedule and the decision about it; without missed times.";

    WEBHOOK_ATTEMPTS = Counter "taskledger_webhook_attempts_total" ["class"]
        "Attempts to deliver webhooks: `delivered`, or the class of the error.";
    WEBHOOK_TIME = Histogram "taskledger_webhook_attempt_seconds" []
        "How long attempts to deliver webhooks took.";
    WEBHOOK_LAG = Gauge "taskledger_webhook_lag_seconds" []
        "How long the oldest due delivery has waited for a server.";
    WEBHOOK_DEAD = Counter "taskledger_webhook_dead_total" []
        "Deliveries that were given up.";
    BREAKERS = Gauge "taskledger_breakers_open" []
        "Endpoints to which sending is paused because deliveries fail.";

    STREAMS = Gauge "taskledger_streams" ["kind"]
        "Streams that are open.";
    STREAM_NOTICES = Counter "taskledger_stream_notices_total" ["kind"]
        "Notices that were sent on streams.";
    STREAM_ENDED = Counter "taskledger_stream_ended_total" ["reason"]
        "Streams that the server has ended: slow client, expired or revoked credentials, server stopped.";

    BROKER_STREAMS = Gauge "taskledger_broker_streams" ["kind"]
        "Streams of agents of the broker that are open.";
    BROKER_QUEUE = Gauge "taskledger_broker_queue_depth" ["event_type"]
        "Tasks that wait for an agent or another worker, of its flows, by type.";
    BROKER_OLDEST = Gauge "taskledger_broker_queue_oldest_seconds" ["event_type"]
        "How long the oldest waiting task has waited for an agent or another worker; 0 if none waits.";
    BROKER_HELD = Gauge "taskledger_broker_leases" ["event_type"]
        "Tasks that agents and other workers hold, of its flows, by type.";
    BROKER_REDELIVERIES = Counter "taskledger_broker_redeliveries_total" []
        "Tasks that were delivered again, because the previous agent was lost or released them.";

    #[Database] NODES = Gauge "taskledger_nodes_alive" []
        "Live servers on the database, this one included.";
    #[Database] PARTITIONS = Gauge "taskledger_partitions" []
        "Partitions of the flows that this server owns, of 256.";
    #[Database] MOVES = Counter "taskledger_ownership_moves_total" []
        "Partitions that have come to this server or left it.";
    #[Database] FORWARDED = Counter "taskledger_forwarded_total" ["outcome"]
        "Calls that were sent to the server that owns their flow.";

    #[Database] DB_POOL = Gauge "taskledger_db_pool" ["state"]
        "Connections with which the log is read: `idle` and `used`.";
    DB_BYTES = Gauge "taskledger_db_bytes" ["part"]
        "Bytes of the data: of each file, or of the `database`.";
    #[Folder] DISK_FREE = Gauge "taskledger_disk_free_bytes" []
        "Bytes that can still be written to the disk with the data folder.";

    PROCESS_CPU = Counter "process_cpu_seconds_total" []
        "Processor time of the process.";
    PROCESS_RSS = Gauge "process_resident_memory_bytes" []
        "Memory of the process that is not swapped out.";
    PROCESS_VIRTUAL = Gauge "process_virtual_memory_bytes" []
        "Address space of the process.";
    PROCESS_FDS = Gauge "process_open_fds" []
        "File descriptors that are open.";
    PROCESS_FDS_MAX = Gauge "process_max_fds" []
        "File descriptors that may be open.";
    PROCESS_THREADS = Gauge "process_threads" []
        "Threads of the process.";
    PROCESS_START = Gauge "process_start_time_seconds" []
        "When the server started, in seconds since 1970.";
    TOKIO_WORKERS = Gauge "taskledger_tokio_workers" []
        "Threads that run tasks of the server.";
    TOKIO_TASKS = Gauge "taskledger_tokio_tasks" []
        "Tasks of the runtime that have not ended.";
    TOKIO_QUEUE = Gauge "taskledger_tokio_queue" []
        "Tasks that wait in the common queue of the runtime.";
    TOKIO_BUSY = Counter "taskledger_tokio_busy_seconds_total" []
        "Time that the threads of the runtime were busy, added up.";
}

#[cfg(test)]
mod tests {
    use super::{Kind, TABLE};
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_say_what_they_are() {
        let names: HashSet<_> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for row in TABLE {
            let name = row.name;
            assert_eq!(
                name.ends_with("_total"),
                row.kind == Kind::Counter,
                "{name}"
            );
            assert_eq!(name.ends_with("_info"), row.kind == Kind::Info, "{name}");
            let prefixes = ["taskledger_", "process_", "rpc_server_"];
            assert!(
                prefixes.iter().any(|prefix| name.starts_with(prefix)),
                "{name}"
            );
            assert!(row.help.ends_with('.') && !row.help.contains('|'), "{name}");
        }
    }
}
