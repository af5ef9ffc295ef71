//! A process that is killed while it changes tokens leaves no half token.

use crate::world::{Place, World, reader, root, service};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::store::{AuditFilter, AuthStore};
use taskledger_auth::tokens::Created;
use taskledger_auth::{AdminTokens, AuditLog, Denial, Origin, TokenId, Tokens};
use taskledger_clock::{Clock, SharedClock, SystemClock};

/// The folder of the process that is killed.
pub(crate) const FOLDER: &str = "TASKLEDGER_TEST_TOKENS_FOLDER";
/// What it was told to write down after each change: what its user saw.
pub(crate) const SEEN: &str = "seen";
const ROUNDS: u64 = 8;

pub(crate) async fn open(folder: &Path) -> Tokens {
    let clock: SharedClock = Arc::new(SystemClock::default());
    let store = Arc::new(AuthStore::of_folder(folder).await.unwrap());
    let audit = Arc::new(AuditLog::new(store.clone(), clock.clone()));
    Tokens::new(store, audit, clock, AdminTokens::default())
}

/// Makes, rotates and revokes tokens until it is killed. Does nothing when it is run as a test.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let tokens = open(folder).await;
    let mut seen = note(folder);
    let mut see = |word: &str, made: &Created| seen(&format!("{word} {}", made.token.reveal()));
    let (root, origin) = (root(), Origin::default());
    loop {
        let new = service("ci", reader());
        let created = tokens.create(&root, &origin, new).await.unwrap().unwrap();
        see("good", &created);
        let id = created.token.id();
        see("changing", &created);
        let rotated = tokens.rotate(&root, &origin, id, Some(0)).await;
        let rotated = rotated.unwrap().unwrap();
        see("bad", &created);
        see("good", &rotated);
        see("changing", &rotated);
        tokens.revoke(&root, &origin, id).await.unwrap().unwrap();
        see("bad", &rotated);
    }
}

/// Writes down lines for whoever looks after the kill.
pub(crate) fn note(folder: &Path) -> impl FnMut(&str) {
    let path = folder.join(SEEN);
    let seen = OpenOptions::new().create(true).append(true).open(path);
    let mut seen = seen.unwrap();
    // One write: a kill leaves a whole line or none.
    move |line| seen.write_all(format!("{line}\n").as_bytes()).unwrap()
}

/// Runs a process, which is a test of this program, on a folder, and kills it so many microseconds after it has noted
/// something.
pub(crate) async fn killed_in(folder: &Path, process: &str, after_us: u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", process])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let seen = folder.join(SEEN);
    let noted = || std::fs::metadata(&seen).map_or(0, |seen| seen.len());
    let before = noted();
    while noted() <= before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_micros(after_us)).await;
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills a process on one folder again and again, later each time, and looks at what it has left.
pub(crate) async fn after_each_kill(process: &str, holds: impl AsyncFn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        killed_in(folder.path(), process, round * 7_000).await;
        holds(folder.path()).await;
    }
}

#[tokio::test]
async fn after_a_kill_every_token_is_as_its_holder_was_told() {
    after_each_kill("kill::the_process_that_is_killed", holds).await;
}

async fn holds(folder: &Path) {
    let tokens = open(folder).await;
    let now = SystemClock::default().now();
    let seen = std::fs::read_to_string(folder.join(SEEN)).unwrap();
    let mut last = BTreeMap::new();
    for line in seen.lines() {
        let (word, token) = line.split_once(' ').unwrap();
        last.insert(token, word);
    }
    for (token, word) in last {
        let shown = tokens.authenticate(token, now).await;
        match word {
            "good" => assert!(shown.is_ok(), "{shown:?}"),
            "bad" => assert!(
                matches!(shown, Err(Denial::Unknown | Denial::Revoked)),
                "{shown:?}"
            ),
            _ => assert!(!matches!(shown, Err(Denial::Unavailable)), "{shown:?}"),
        }
    }
    // What the tables say of each token is what the audit log says, be its secret seen or not.
    let rows = tokens.store().tokens(None, 0, 100_000).await.unwrap();
    let log = tokens.audit();
    let audit = log.list(&AuditFilter::default(), None, 1_000_000).await;
    let audit = audit.unwrap();
    let ids = |action: &str| -> BTreeSet<TokenId> {
        let of_action = audit.iter().filter(|row| &*row.action == action);
        let id = |object: &Arc<str>| TokenId::parse(object).unwrap();
        of_action
            .map(|row| row.object.as_ref().map(id).unwrap())
            .collect()
    };
    let all: BTreeSet<_> = rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids("token.create"), all);
    let rotated = rows.iter().filter(|row| row.rotated_at.is_some());
    assert_eq!(
        ids("token.rotate"),
        rotated.map(|row| row.id.clone()).collect()
    );
    let revoked = rows.iter().filter(|row| row.revoked_at.is_some());
    assert_eq!(
        ids("token.revoke"),
        revoked.map(|row| row.id.clone()).collect()
    );
    tokens.store().close().await;
}

#[tokio::test]
async fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::on_sqlite().await;
    world.made(service("ci", reader())).await;
    let Place::Folder(folder) = &world.place else {
        unreachable!("it is on SQLite")
    };
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}
