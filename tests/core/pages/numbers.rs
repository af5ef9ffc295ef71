//! Limits that people have written down are those of the code; those in the generated parts of the page of limits are
//! so by construction.

use super::{page, root};

/// A page, what it says, and where the code says it.
struct Number {
    page: &'static str,
    /// A part of a row.
    row: &'static str,
    file: &'static str,
    /// The constant.
    line: &'static str,
}

const fn number(
    page: &'static str,
    row: &'static str,
    file: &'static str,
    line: &'static str,
) -> Number {
    Number {
        page,
        row,
        file,
        line,
    }
}

const LIMITS: &str = "docs/reference/limits.md";
const WORKERS: &str = "docs/guides/workers.md";
const BROKER: &str = "docs/guides/agent-broker.md";

const NUMBERS: [Number; 30] = [
    number(
        LIMITS,
        "| body of a request | 16 MiB |",
        "domain/src/limits.rs",
        "pub const REQUEST_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;",
    ),
    number(
        LIMITS,
        "| memory of the JSON values of a body | 256 MiB,",
        "src/transport/json_size.rs",
        "pub(crate) const VALUES_BYTES_MAX: usize = 256 * 1024 * 1024;",
    ),
    number(
        LIMITS,
        "| one answer, a batch's together | 128 MiB |",
        "src/transport/jsonrpc/encode.rs",
        "pub const WHOLE_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;",
    ),
    number(
        LIMITS,
        "part of no request or message | 256 KiB at once and",
        "src/transport/overhead.rs",
        "pub(crate) const OVERHEAD_BYTES_MAX: u32 = 256 * 1024;",
    ),
    number(
        LIMITS,
        "at once and 8 KiB a second.",
        "src/transport/overhead.rs",
        "pub(crate) const OVERHEAD_BYTES_PER_SECOND: u32 = 8 * 1024;",
    ),
    number(
        LIMITS,
        "| calls in a batch | 100 |",
        "domain/src/limits.rs",
        "pub const BATCH_CALLS_MAX: usize = 100;",
    ),
    number(
        LIMITS,
        "sent while they are read | two at once;",
        "src/application/readings.rs",
        "const READINGS_MAX: usize = 2;",
    ),
    number(
        LIMITS,
        "each at most 256 MiB and 120 s",
        "src/application/readings.rs",
        "pub const READING_BYTES_MAX: u64 = 256 * 1024 * 1024;",
    ),
    number(
        LIMITS,
        "each at most 256 MiB and 120 s",
        "src/application/pieces.rs",
        "const SENDING_TIME_MAX: Duration = Duration::from_secs(120);",
    ),
    number(
        LIMITS,
        "5 s for each piece",
        "src/application/pieces.rs",
        "pub const PIECE_TIME_MAX: Duration = Duration::from_secs(5);",
    ),
    number(
        LIMITS,
        "the first 64 KiB of each do not count",
        "src/transport/jsonrpc/encode.rs",
        "const FREE_BYTES: usize = 64 * 1024;",
    ),
    number(
        LIMITS,
        "messages of 64 KiB in",
        "src/transport/ws/sockets.rs",
        "pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;",
    ),
    number(
        LIMITS,
        "32 subscriptions",
        "src/transport/ws/subscriptions.rs",
        "const SUBSCRIPTIONS_MAX: usize = 32;",
    ),
    number(
        LIMITS,
        "64 calls at once",
        "src/transport/ws/calls.rs",
        "const CALLS_MAX: usize = 64;",
    ),
    number(
        LIMITS,
        "answers of 16 MiB",
        "src/transport/ws/calls.rs",
        "const WHOLE_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;",
    ),
    number(
        LIMITS,
        "trees 64 MiB",
        "src/transport/ws/outbox.rs",
        "pub(super) const ANSWERS_BYTES_MAX: usize = 64 * 1024 * 1024;",
    ),
    number(
        WORKERS,
        "| tasks of one claim | 100 |",
        "domain/src/limits.rs",
        "pub const CLAIMS_MAX: usize = 100;",
    ),
    number(
        WORKERS,
        "| `wait_seconds` of a claim | 60 |",
        "src/transport/jsonrpc/params/work/claim.rs",
        "pub const WAIT_SECONDS_MAX: u32 = 60;",
    ),
    number(
        WORKERS,
        "| methods of a claim or a subscription | 100 |",
        "src/transport/jsonrpc/params/work/kinds.rs",
        "pub const METHODS_MAX: usize = 100;",
    ),
    number(
        WORKERS,
        "(`window`) | 1000, 10 unless given |",
        "src/transport/ws/params.rs",
        "const WINDOW_MAX: u64 = 1000;",
    ),
    number(
        WORKERS,
        "(`window`) | 1000, 10 unless given |",
        "src/transport/ws/params.rs",
        "const WINDOW_DEFAULT: u64 = 10;",
    ),
    number(
        WORKERS,
        "| workers that wait on a node | 20,000 |",
        "src/application/offers.rs",
        "pub(super) const WAITING_MAX: usize = 20_000;",
    ),
    number(
        WORKERS,
        "that they ask for | 20,000 each;",
        "src/engine/workers/known.rs",
        "pub(super) const WORKERS_MAX: usize = 20_000;",
    ),
    number(
        WORKERS,
        "| declared methods | 10,000,",
        "crates/workers/src/store/methods.rs",
        "pub const METHODS_MAX: usize = 10_000;",
    ),
    number(
        WORKERS,
        "| recorded progress of an attempt | once a second |",
        "src/application/leases.rs",
        "const PROGRESS_EVERY_MS: u64 = 1000;",
    ),
    number(
        BROKER,
        "| types of a stream | 64, and 256 types that match patterns with `*` |",
        "src/transport/eventbus/patterns.rs",
        "pub(super) const TYPES_MAX: usize = 64;",
    ),
    number(
        BROKER,
        "| types of a stream | 64, and 256 types that match patterns with `*` |",
        "src/transport/eventbus/patterns.rs",
        "const METHODS_MAX: usize = 256;",
    ),
    number(
        BROKER,
        "| streams of a connection | 256;",
        "src/transport/http/connection.rs",
        "const STREAMS_MAX: u32 = 256;",
    ),
    number(
        BROKER,
        "After 3 s other agents get them",
        "src/transport/eventbus/delivery.rs",
        "const GRACE: Duration = Duration::from_secs(3);",
    ),
    number(
        BROKER,
        "when the lease ends, 30 s after it was last renewed",
        "src/transport/eventbus.rs",
        "const LEASE_MS: u64 = 30_000;",
    ),
];

/// Whether a text has a line that is this one.
fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found.trim() == line)
}

#[test]
fn limits_that_are_written_by_hand_are_those_of_the_code() {
    for Number {
        page: name,
        row,
        file,
        line,
    } in NUMBERS
    {
        let source = std::fs::read_to_string(root().join(file)).expect("the file is there");
        assert!(
            has_line(&source, line),
            "{file} has no `{line}` any more: change `{row}` in {name}, then the row here"
        );
        assert!(page(name).text.contains(row), "{name} does not say `{row}`");
    }
}
