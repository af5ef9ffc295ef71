//! What `--version` says.

use std::sync::LazyLock;

/// The release and, if whoever built it said so in `TASKLEDGER_BUILD`, the commit and its date. No git is asked: a
/// build from a tarball is like any other.
static LONG: LazyLock<String> =
    LazyLock::new(|| text(env!("CARGO_PKG_VERSION"), option_env!("TASKLEDGER_BUILD")));

/// The text for clap.
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

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn the_commit_is_told_if_it_is_known() {
        assert_eq!(
            text("1.0.0", Some(" 1a2b3c4 2026-01-31 ")),
            "1.0.0 (1a2b3c4 2026-01-31)"
        );
        assert_eq!(text("1.0.0", Some("")), "1.0.0");
        assert_eq!(text("1.0.0", None), "1.0.0");
    }
}
