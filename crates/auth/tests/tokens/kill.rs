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
use taskledger_testkit::beside::options_of;
use taskledger_testkit::postgres::Database;

/// The folder of the process that is killed.
pub(crate) const FOLDER: &str = "TASKLEDGER_TEST_TOKENS_FOLDER";
/// What it was told to write down after each change: what its user saw.
pub(crate) const SEEN: &str = "seen";
/// Seconds of a grace that no test outlasts.
const GRACE_S: u64 = 3_600;
/// The URL of its database, if its store is in one.
const DATABASE: &str = "TASKLEDGER_TEST_TOKENS_DATABASE";
const ROUNDS: u64 = 8;

/// Where a process works that is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'s> {
    /// Where it writes down what its user saw; its store is there too, unless it is in a database.
    pub(crate) folder: &'s Path,
    pub(crate) database: Option<&'s str>,
}

impl Site<'_> {
    pub(crate) async fn store(self) -> Arc<AuthStore> {
        let opened = match self.database {
            None => AuthStore::of_folder(self.folder).await,
            Some(url) => AuthStore::of_database(&options_of(url)).await,
        };
        Arc::new(opened.unwrap())
    }
}

/// Runs what is to be killed, where whoever kills it says; does nothing when it is run as a test.
pub(crate) async fn in_a_process(work: impl AsyncFnOnce(Site<'_>)) {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let database = std::env::var(DATABASE).ok();
    let (folder, database) = (Path::new(&folder), database.as_deref());
    work(Site { folder, database }).await;
}

pub(crate) async fn open(site: Site<'_>) -> Tokens {
    let clock: SharedClock = Arc::new(SystemClock::default());
    let store = site.store().await;
    let audit = Arc::new(AuditLog::new(store.clone(), clock.clone()));
    Tokens::new(store, audit, clock, AdminTokens::default())
}

/// Makes, rotates and revokes tokens until it is killed. Does nothing when it is run as a test.
#[tokio::test]
async fn the_process_that_is_killed() {
    in_a_process(change_tokens).await;
}

async fn change_tokens(site: Site<'_>) {
    let tokens = open(site).await;
    let mut seen = note(site.folder);
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
        // With a grace both are good.
        let graced = tokens.rotate(&root, &origin, id, Some(GRACE_S)).await;
        let graced = graced.unwrap().unwrap();
        see("good", &graced);
        see("changing", &rotated);
        see("changing", &graced);
        tokens.revoke(&root, &origin, id).await.unwrap().unwrap();
        see("bad", &rotated);
        see("bad", &graced);
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
pub(crate) async fn killed_in(site: Site<'_>, process: &str, after_us: u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", process])
        .env(FOLDER, site.folder)
        .envs(site.database.map(|url| (DATABASE, url)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let seen = site.folder.join(SEEN);
    let noted = || std::fs::metadata(&seen).map_or(0, |seen| seen.len());
    let before = noted();
    while noted() <= before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_micros(after_us)).await;
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills a process on one store again and again, later each time, and looks at what it has left.
async fn after_each_kill_on(database: Option<&str>, process: &str, holds: impl AsyncFn(Site<'_>)) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let site = Site { folder, database };
    for round in 0..ROUNDS {
        killed_in(site, process, round * 7_000).await;
        holds(site).await;
    }
}

/// The same on SQLite.
pub(crate) async fn after_each_kill(process: &str, holds: impl AsyncFn(Site<'_>)) {
    after_each_kill_on(None, process, holds).await;
}

/// The same on PostgreSQL.
pub(crate) async fn after_each_kill_on_postgres(process: &str, holds: impl AsyncFn(Site<'_>)) {
    let database = Database::create().await;
    after_each_kill_on(Some(database.url()), process, holds).await;
}

#[tokio::test]
async fn after_a_kill_every_token_is_as_its_holder_was_told() {
    after_each_kill("kill::the_process_that_is_killed", holds).await;
}

#[tokio::test]
async fn after_a_kill_every_token_is_as_its_holder_was_told_on_postgres() {
    after_each_kill_on_postgres("kill::the_process_that_is_killed", holds).await;
}

async fn holds(site: Site<'_>) {
    let (tokens, folder) = (open(site).await, site.folder);
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
                matches!(
                    shown,
                    Err(Denial::Expired | Denial::Revoked | Denial::Unknown)
                ),
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
