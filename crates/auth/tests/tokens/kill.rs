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
const FOLDER: &str = "TASKLEDGER_TEST_TOKENS_FOLDER";
/// What it was told to write down after each change: what its user saw.
const SEEN: &str = "seen";
const ROUNDS: u64 = 8;

async fn open(folder: &Path) -> Tokens {
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
    let path = folder.join(SEEN);
    let mut seen = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    // One write: a kill leaves a whole line or none.
    let mut see = |word: &str, made: &Created| {
        let line = format!("{word} {}\n", made.token.reveal());
        seen.write_all(line.as_bytes()).unwrap();
    };
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

#[tokio::test]
async fn after_a_kill_every_token_is_as_its_holder_was_told() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::the_process_that_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let seen = folder.path().join(SEEN);
        let before = std::fs::metadata(&seen).map_or(0, |seen| seen.len());
        while std::fs::metadata(&seen).map_or(0, |seen| seen.len()) <= before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(round * 7)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        holds(folder.path()).await;
    }
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
