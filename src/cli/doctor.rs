//! `taskledger doctor`: what would keep a server from working here, and what to do about it.
//!
//! Looks and changes nothing: no folder is made, no table, no file.

mod database;
mod door;
mod settings;

use super::{CliError, storage};
use crate::config::ServerConfig;
use crate::engine::executor::RegistryBuilder;
use crate::private;
use crate::server::{self, Storage};
use crate::store::lock::{DataDirLock, LOCK_FILE};
use crate::store::sqlite::LEDGER_FILE;
use crate::store::witness::LostEvents;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use taskledger_cli::output::{Output, Style, Text};
use taskledger_domain::Timestamp;

/// Free bytes below which a folder is said to be full soon.
const FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;
/// Files from the future by less are a matter of how clocks are set.
const AHEAD_MS_MAX: u64 = 5_000;

/// A folder that a server writes to, and the option that names it.
#[derive(Debug, Clone, Copy)]
struct Folder {
    name: &'static str,
    option: &'static str,
}

const DATA: Folder = Folder {
    name: "data folder",
    option: "--data-dir",
};
const ARCHIVE: Folder = Folder {
    name: "archive",
    option: "--retention-archive",
};
/// What to do where the disk of the data is nearly full.
const ROOM_FOR_DATA: &str = "make room, or let `--retention-age` archive what has ended";
/// The same for the disk of the archive.
const ROOM_FOR_ARCHIVE: &str = "make room, for example by moving older archives away, or give --retention-archive another disk";

/// Check the settings of a server: its data folder or database, disk, clock, egress, addresses and certificates
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger doctor --data-dir /var/lib/taskledger
  taskledger doctor --database-url postgres://taskledger@db.example/taskledger
  taskledger doctor --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem

Takes the options and variables of `taskledger serve`, and changes nothing. Exit code 1: a server with these
settings would not work. Warnings alone give exit code 0.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ServerConfig,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Warning,
    Bad,
}

/// What was looked at, what was found, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    of: &'static str,
    verdict: Verdict,
    found: String,
    /// Empty when there is nothing to do.
    advice: String,
}

impl Finding {
    fn new(
        of: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            of,
            verdict,
            found: found.into(),
            advice: advice.into(),
        }
    }

    fn good(of: &'static str, found: impl Into<String>) -> Self {
        Self::new(of, Verdict::Good, found, "")
    }
}

/// Looks at everything and says what it found.
pub(super) async fn doctor(
    args: Args,
    executors: RegistryBuilder,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (config, engine) = (&args.config, &args.config.engine);
    let now = storage::clock().now();
    let mut findings = match storage::storage(&engine.storage)? {
        Storage::Folder(folder) => of_folder(&folder, now),
        Storage::Database(database) => {
            let mut findings = vec![database::finding(&database).await, of_clock(None, now)];
            // What is wrong with the database itself has been found already.
            if let Ok(Some(lost)) = server::lost_in_database(&database).await {
                findings.push(log(Some(&lost)));
            }
            findings
        }
    };
    if let Some(archive) = &config.retention.archive {
        findings.extend(of_archive(archive));
    }
    findings.extend(settings::findings(config, executors));
    findings.extend(door::findings(config));
    if out.is_json() {
        let findings = findings.iter().map(|finding| {
            let verdict = match finding.verdict {
                Verdict::Good => "good",
                Verdict::Warning => "warning",
                Verdict::Bad => "bad",
            };
            json!({"of": finding.of, "verdict": verdict, "found": finding.found, "advice": finding.advice})
        });
        out.value(&findings.collect())?;
    } else {
        out.texts(&shown(&findings))?;
    }
    let is_bad = findings.iter().any(|it| it.verdict == Verdict::Bad);
    Ok(if is_bad {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn shown(findings: &[Finding]) -> Vec<Text> {
    let mut lines = Vec::new();
    for finding in findings {
        let (style, mark) = match finding.verdict {
            Verdict::Good => (Style::Good, "✓"),
            Verdict::Warning => (Style::Warn, "!"),
            Verdict::Bad => (Style::Bad, "✗"),
        };
        lines.push(
            Text::of(style, mark)
                .with(Style::Bold, format!(" {}  ", finding.of))
                .with(Style::Plain, finding.found.as_str()),
        );
        if !finding.advice.is_empty() {
            let mut advice = finding.advice.lines();
            let first = advice.next().unwrap_or_default();
            lines.push(Text::from(format!("    do: {first}")));
            lines.extend(advice.map(|line| Text::from(format!("        {line}"))));
        }
    }
    lines
}

fn of_folder(folder: &Path, now: Timestamp) -> Vec<Finding> {
    let Ok(metadata) = std::fs::metadata(folder) else {
        let above = nearest(folder);
        let place = can_be_made(DATA, folder, above);
        // What is free elsewhere says nothing of where the folder will be.
        let disk = (place.verdict != Verdict::Bad).then(|| disk("disk", above, ROOM_FOR_DATA));
        let findings = [Some(place), disk, Some(of_clock(None, now))];
        return findings.into_iter().flatten().collect();
    };
    if !metadata.is_dir() {
        return vec![no_folder(DATA, folder)];
    }
    vec![
        access(DATA, folder),
        permissions(folder),
        lock(folder),
        log_in(folder),
        disk("disk", folder, ROOM_FOR_DATA),
        clock(folder, now),
    ]
}

/// The folder to which ended flows are archived, and its disk.
fn of_archive(folder: &Path) -> Vec<Finding> {
    let above = nearest(folder);
    let found = match std::fs::metadata(folder) {
        Err(_) => can_be_made(ARCHIVE, folder, above),
        Ok(metadata) if !metadata.is_dir() => no_folder(ARCHIVE, folder),
        Ok(_) => access(ARCHIVE, folder),
    };
    let disk =
        (found.verdict != Verdict::Bad).then(|| disk("archive disk", above, ROOM_FOR_ARCHIVE));
    [Some(found), disk].into_iter().flatten().collect()
}

fn no_folder(of: Folder, folder: &Path) -> Finding {
    let advice = format!("give {} a folder", of.option);
    let found = format!("`{}` is not a folder", folder.display());
    Finding::new(of.name, Verdict::Bad, found, advice)
}

/// The folder itself, or the one above it that is there.
fn nearest(folder: &Path) -> &Path {
    let mut above = folder.ancestors();
    let there = above.find(|above| *above == Path::new("") || above.exists());
    match there.unwrap_or(folder) {
        none if none == Path::new("") => Path::new("."),
        there => there,
    }
}

/// Whether `serve` can make a folder in the one above it that is there.
fn can_be_made(of: Folder, folder: &Path, above: &Path) -> Finding {
    use rustix::fs::{Access, access, statvfs};
    let (shown, within) = (folder.display(), above.display());
    let reason = if !above.is_dir() {
        Some(format!("`{within}` is not a folder"))
    } else if let Err(error) = access(above, Access::WRITE_OK | Access::EXEC_OK) {
        Some(format!(
            "`{within}` cannot be written by this user: {error}"
        ))
    } else if statvfs(above).is_ok_and(|disk| disk.f_blocks == 0) {
        Some(format!("`{within}` keeps no files"))
    } else {
        None
    };
    match reason {
        None => {
            let found = format!("`{shown}` does not exist yet; `serve` makes it in `{within}`");
            Finding::good(of.name, found)
        }
        Some(reason) => Finding::new(
            of.name,
            Verdict::Bad,
            format!("`{shown}` does not exist, and `serve` cannot make it: {reason}"),
            format!(
                "make it for the user that runs the server, or give {} another folder",
                of.option
            ),
        ),
    }
}

fn access(of: Folder, folder: &Path) -> Finding {
    use rustix::fs::{Access, access};
    let shown = folder.display();
    match access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::good(of.name, format!("`{shown}` can be read and written")),
        Err(error) => Finding::new(
            of.name,
            Verdict::Bad,
            format!("`{shown}` cannot be read and written by this user: {error}"),
            format!("chown it to the user that runs the server, and `chmod 700 '{shown}'`"),
        ),
    }
}

fn permissions(folder: &Path) -> Finding {
    let open = [folder.to_owned(), folder.join(LEDGER_FILE)]
        .into_iter()
        .find_map(|path| match private::mode_for_others(&path) {
            Ok(Some(mode)) => Some((path, mode)),
            Ok(None) | Err(_) => None,
        });
    match open {
        None => Finding::good("permissions", "only the owner can read the data"),
        Some((path, mode)) => Finding::new(
            "permissions",
            Verdict::Warning,
            format!(
                "other users can reach `{}` (mode {:04o})",
                path.display(),
                mode & 0o7777
            ),
            format!("chmod go= '{}'", path.display()),
        ),
    }
}

fn lock(folder: &Path) -> Finding {
    if !folder.join(LOCK_FILE).exists() {
        return Finding::good("lock", "no server has used the folder yet");
    }
    match DataDirLock::acquire(folder) {
        Ok(_free_again) => Finding::good("lock", "no server uses the folder now"),
        Err(error) => Finding::new(
            "lock",
            Verdict::Warning,
            error.to_string(),
            "fine if this server is already running; `taskledger health` checks it",
        ),
    }
}

/// Whether the log has all events that the stores in the folder have read.
fn log_in(folder: &Path) -> Finding {
    match server::lost_in_folder(folder) {
        Ok(lost) => log(lost.as_ref()),
        Err(error) => Finding::new(
            "log",
            Verdict::Bad,
            CliError::failed(&error).to_string(),
            "copy the folder, then restore it from a backup",
        ),
    }
}

fn log(lost: Option<&LostEvents>) -> Finding {
    match lost {
        None => Finding::good(
            "log",
            "it has every event that the read models, webhooks and broker have read",
        ),
        Some(lost) => Finding::new(
            "log",
            Verdict::Bad,
            format!("{lost}: events that were stored are missing, so a server does not start"),
            "copy the data before anything else, then restore the log from a backup;\n\
             or continue with the log as it is: `taskledger serve --accept-older-log`",
        ),
    }
}

/// How much is free; `room`: what to do if that is little.
fn disk(of: &'static str, folder: &Path, room: &str) -> Finding {
    let Ok(disk) = rustix::fs::statvfs(folder) else {
        let advice = "look at the mounts of this machine";
        let found = "the free space cannot be read";
        return Finding::new(of, Verdict::Warning, found, advice);
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!("{} MiB are free", free / 1024 / 1024);
    if free >= FREE_BYTES_MIN {
        return Finding::good(of, found);
    }
    let verdict = match free {
        0 => Verdict::Bad,
        _ => Verdict::Warning,
    };
    Finding::new(of, verdict, found, room)
}

/// A clock that was set back makes times of new events equal to those of old ones.
fn clock(folder: &Path, now: Timestamp) -> Finding {
    let written = std::fs::metadata(folder.join(LEDGER_FILE))
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_micros()).ok());
    of_clock(written.map(Timestamp), now)
}

/// What the clock says; `written`: when the log was.
fn of_clock(written: Option<Timestamp>, now: Timestamp) -> Finding {
    match written {
        Some(written) if written > now && written.ms_since(now) > AHEAD_MS_MAX => Finding::new(
            "clock",
            Verdict::Bad,
            format!("the log was written at {written}, which is after now, {now}"),
            "set the clock of this machine, for example with `timedatectl set-ntp true`",
        ),
        Some(_) | None => Finding::good("clock", format!("it is {now}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const EARLY: Timestamp = Timestamp(1_000_000);

    fn verdicts(findings: &[Finding]) -> Vec<(&'static str, Verdict)> {
        findings.iter().map(|it| (it.of, it.verdict)).collect()
    }

    #[test]
    fn a_folder_is_looked_at_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent");
        let found = of_folder(&absent, storage::clock().now());
        let of_absent = ["data folder", "disk", "clock"];
        assert_eq!(found.iter().map(|it| it.of).collect::<Vec<_>>(), of_absent);
        assert_eq!(found[0].verdict, Verdict::Good, "{found:?}");
        assert!(!absent.exists());

        let place = folder.path();
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
        let held = DataDirLock::acquire(place).unwrap();
        std::fs::write(place.join(LEDGER_FILE), "").unwrap();
        let found = of_folder(place, EARLY);
        let verdict = |of: &str| found.iter().find(|it| it.of == of).unwrap();
        assert_eq!(verdict("data folder").verdict, Verdict::Good);
        assert_eq!(verdict("permissions").verdict, Verdict::Warning);
        assert!(verdict("permissions").advice.starts_with("chmod go= "));
        assert_eq!(verdict("lock").verdict, Verdict::Warning);
        assert!(verdict("lock").found.contains("is in use by process"));
        assert_eq!(verdict("clock").verdict, Verdict::Bad);
        drop(held);
        assert_eq!(lock(place).verdict, Verdict::Good);

        let file = place.join("file");
        std::fs::write(&file, "").unwrap();
        let found = of_folder(&file, EARLY);
        assert_eq!(verdicts(&found), [("data folder", Verdict::Bad)]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_good_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for (place, reason) in [
            (file.join("deeper/data"), "is not a folder"),
            (Path::new("/proc/nope").to_owned(), "`/proc` "),
        ] {
            let found = of_folder(&place, storage::clock().now());
            assert_eq!(found[0].verdict, Verdict::Bad, "{found:?}");
            assert!(found[0].found.contains(reason), "{found:?}");
            assert!(found.iter().all(|it| it.of != "disk"), "{found:?}");
        }
        assert_eq!(nearest(Path::new("data")), Path::new("."));
    }

    #[test]
    fn an_archive_can_be_written_or_made_and_a_full_one_is_not_told_to_archive() {
        let folder = tempfile::tempdir().unwrap();
        let found = |place: &Path| of_archive(place);
        let there = found(folder.path());
        let of: Vec<_> = there.iter().map(|it| it.of).collect();
        assert_eq!(of, ["archive", "archive disk"]);
        assert_eq!(there[0].verdict, Verdict::Good, "{there:?}");
        let absent = folder.path().join("absent");
        assert_eq!(found(&absent)[0].verdict, Verdict::Good);
        assert!(!absent.exists());
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for place in [file.clone(), file.join("deeper")] {
            let found = found(&place);
            assert_eq!(found[0].verdict, Verdict::Bad, "{found:?}");
            assert!(found[0].advice.contains("--retention-archive"), "{found:?}");
        }
        // No file of this file system takes any room.
        let full = disk("archive disk", Path::new("/proc"), ROOM_FOR_ARCHIVE);
        assert_eq!(
            (full.verdict, full.advice.as_str()),
            (Verdict::Bad, ROOM_FOR_ARCHIVE)
        );
    }

    #[test]
    fn findings_say_what_to_do() {
        let findings = [
            Finding::good("disk", "9 MiB are free"),
            Finding::new("clock", Verdict::Bad, "wrong", "set it"),
        ];
        let lines: Vec<String> = shown(&findings).iter().map(Text::letters).collect();
        assert_eq!(
            lines,
            ["✓ disk  9 MiB are free", "✗ clock  wrong", "    do: set it"]
        );
    }
}
