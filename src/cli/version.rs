//! The text of `--version`, and the features that the program was built with.

use std::sync::LazyLock;
use taskledger_zones::newest_edition;

/// The release and, if whoever built it said so in `TASKLEDGER_BUILD`, the commit and its date. No git is asked: a
/// build from a tarball is like any other.
static SHORT: LazyLock<String> =
    LazyLock::new(|| text(env!("CARGO_PKG_VERSION"), option_env!("TASKLEDGER_BUILD")));
static LONG: LazyLock<String> = LazyLock::new(|| format!("{}\n{}", *SHORT, features()));

/// The text for `-V`.
pub(super) fn short() -> &'static str {
    &SHORT
}

/// The text for `--version`.
pub(super) fn long() -> &'static str {
    &LONG
}

fn text(release: &str, build: Option<&str>) -> String {
    let build = build.map(str::trim).filter(|build| !build.is_empty());
    match build {
        Some(build) => format!("{release} ({build})"),
        None => release.to_owned(),
    }
}

/// What there is in it, a line each. `TASKLEDGER_TARGET` is the target's own name, if whoever built it said so.
fn features() -> String {
    let target = option_env!("TASKLEDGER_TARGET").filter(|target| !target.is_empty());
    let target = target.map_or_else(
        || format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        str::to_owned,
    );
    let (edition, source) = newest_edition();
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    [
        format!("build:     {profile}, {target}"),
        "storage:   sqlite (a data folder), postgres".to_owned(),
        "protocols: JSON-RPC over HTTP, server-sent events, WebSocket, EventBus over\n           gRPC, A2A"
            .to_owned(),
        "tls:       rustls, 1.2 and 1.3".to_owned(),
        format!("zones:     {edition}, {source}"),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::{long, short, text};

    #[test]
    fn the_commit_is_told_if_it_is_known() {
        assert_eq!(
            text("1.0.0", Some(" 1a2b3c4 2026-01-31 ")),
            "1.0.0 (1a2b3c4 2026-01-31)"
        );
        assert_eq!(text("1.0.0", Some("")), "1.0.0");
        assert_eq!(text("1.0.0", None), "1.0.0");
    }

    #[test]
    fn the_long_text_begins_with_the_short_one_and_names_what_there_is() {
        let mut lines = long().lines();
        assert_eq!(lines.next(), Some(short()));
        let rest: Vec<&str> = lines.collect();
        for part in [
            "build:     ",
            "storage:   sqlite",
            "postgres",
            "protocols: JSON-RPC",
            "zones:     2",
        ] {
            assert!(rest.iter().any(|line| line.contains(part)), "{rest:?}");
        }
        assert!(rest.iter().all(|line| line.len() <= 80), "{rest:?}");
    }
}
