//! Raises the limit on open files, since each connection needs a file descriptor.

use crate::transport::http;
use taskledger_cli::open_files::raised;

/// Descriptors for everything but connections: databases, programs that tasks run, the log.
const OTHER_FILES: u64 = 512;
/// Connections that a server takes at least, however few descriptors there are.
const CONNECTIONS_MIN: usize = 16;

/// Raises the limit as far as the system lets us; connections and streams that would still be beyond it
/// are not taken, instead of failing one by one.
pub(super) fn fitted(mut options: http::Options) -> http::Options {
    options.streams_max = options
        .streams_max
        .min(streams_beside(options.connections_max));
    let limit = raised();
    let Some(room) = limit.map(|limit| limit.saturating_sub(OTHER_FILES)) else {
        return options;
    };
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if options.connections_max <= room {
        return options;
    }
    let fitting = room.max(CONNECTIONS_MIN);
    tracing::warn!(
        wanted = options.connections_max,
        taken = fitting,
        open_files = limit,
        "the limit on open files (`ulimit -n`) lets the server take fewer connections"
    );
    options.connections_max = fitting;
    options.streams_max = options.streams_max.min(streams_beside(fitting));
    options
}

/// Calls keep a tenth of the connections.
const fn streams_beside(connections: usize) -> usize {
    connections - connections / 10
}
