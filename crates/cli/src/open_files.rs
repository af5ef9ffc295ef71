//! The limit on files that this program may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit, raised to the highest that is permitted; `None`: there is none.
pub fn raised() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let highest = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // What is refused stays as it is.
        let _ = setrlimit(Resource::Nofile, highest);
    }
    getrlimit(Resource::Nofile).current
}
