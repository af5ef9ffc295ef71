//! The programs of others, and how they are started: alone, with nothing of whoever runs the tests.

use std::path::{Path, PathBuf};
use taskledger_testkit::program::command_of;
use tokio::process::Command;

/// Below the repository: where `need_clients` of `.ci/tools.sh` installs.
const INSTALLED: &str = "target/clients";

/// A file of the repository that must be there.
pub(super) fn file(path: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let hint = "run the tests with `./test.sh`, or `. .ci/tools.sh && need_clients` first";
    assert!(file.exists(), "{} is missing: {hint}", file.display());
    file
}

/// A script beside this file, run by Node.js with the installed packages.
pub(crate) fn node(script: &str) -> Command {
    let mut command = command_of("node");
    command
        .env("NODE_PATH", file(&format!("{INSTALLED}/node_modules")))
        .arg(file(&format!("tests/whole/clients/{script}")));
    command
}

/// Python with the installed packages.
pub(super) fn interpreter() -> PathBuf {
    file(&format!("{INSTALLED}/python/bin/python"))
}

/// A script beside this file, run by Python with the installed packages.
pub(crate) fn python(script: &str) -> Command {
    let mut command = command_of(interpreter().to_str().unwrap());
    command.arg(file(&format!("tests/whole/clients/{script}")));
    command
}

/// Chromium without a window, with a profile of its own at `profile`, on a page. What it would ask of
/// its maker's servers is switched off.
pub(crate) fn chromium(profile: &Path, page: &str) -> Command {
    let mut command = command_of("chromium");
    command
        .env("HOME", profile)
        .arg(format!("--user-data-dir={}", profile.display()))
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--remote-debugging-port=0",
        ])
        .arg(page);
    command
}
