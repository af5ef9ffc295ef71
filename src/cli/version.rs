//! What `--version` says of a build.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

/// The version, then a line for each of: the commit (if the build was told it in `TASKLEDGER_COMMIT`), the platform, how it
/// was compiled, the stores. `-V` shows the first line alone.
pub(super) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        let commit = option_env!("TASKLEDGER_COMMIT").unwrap_or("not recorded");
        let c_library = if cfg!(target_env = "musl") {
            "musl"
        } else {
            "gnu"
        };
        let build = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        let sqlite = rusqlite::version();
        format!(
            "{version}\ncommit: {commit}\nplatform: {ARCH}-{OS}-{c_library}\nbuild: {build}\n\
             stores: SQLite {sqlite} (built in), PostgreSQL"
        )
    });
    &TEXT
}

#[test]
fn a_build_says_what_it_is() {
    let lines: Vec<_> = long().lines().collect();
    assert_eq!(lines[0], env!("CARGO_PKG_VERSION"));
    let names: Vec<_> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["commit", "platform", "build", "stores"]);
}
