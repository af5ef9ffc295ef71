//! A process that is killed while it changes secrets, or makes the first token, leaves nothing by halves.

use crate::kill::{
    SEEN, Site, after_each_kill, after_each_kill_on_postgres, in_a_process, killed_in, note, open,
};
use crate::world::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use taskledger_auth::jwt::{DenyList as _, Revocable};
use taskledger_auth::store::{AuditFilter, AuthStore, DeniedJwt, SecretOwner};
use taskledger_auth::tokens::ADMIN_TOKEN_FILE;
use taskledger_auth::{
    AuditLog, By, Denial, MAIN_TENANT, Origin, Scopes, SecretName, Vault, VaultError,
};
use taskledger_clock::{Clock, SharedClock, SystemClock};
use taskledger_sealing::{Keyring, Secret};

/// Whose JWTs are denied.
const ISSUER: &str = "https://login.example.com";
const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
/// Secrets that are set and deleted in turn.
const NAMES: usize = 5;
/// First starts that are killed, each a little later than the one before.
const STARTS: u64 = 16;
/// The step between two of those, in microseconds: all of them take some milliseconds.
const STEP_US: u64 = 500;

/// A word about a secret, and its text.
type Said<'s> = (&'s str, &'s str);

fn ann() -> SecretOwner {
    SecretOwner {
        tenant: Arc::from(MAIN_TENANT),
        user: Some(Arc::from("ann")),
    }
}

fn named(number: usize) -> SecretName {
    SecretName::new(&format!("s{number}")).unwrap()
}

async fn vault(site: Site<'_>) -> (Arc<AuthStore>, Vault) {
    let clock: SharedClock = Arc::new(SystemClock::default());
    let store = site.store().await;
    let keys = Keyring::parse(KEY).unwrap();
    let vault = Vault::new(store.clone(), keys, clock).await.unwrap();
    (store, vault)
}

/// Sets and deletes secrets until it is killed. Does nothing when it is run as a test.
#[tokio::test]
async fn the_process_that_changes_secrets() {
    in_a_process(change_secrets).await;
}

async fn change_secrets(site: Site<'_>) {
    let (_, vault) = vault(site).await;
    let mut seen = note(site.folder);
    let by = || By::call(&root(), &Origin::default());
    for change in 0_usize.. {
        let name = named(change % NAMES);
        let text = format!("text-{}-{change:08}", std::process::id());
        let secret = Secret(Arc::from(&*text));
        seen(&format!("setting {name} {text}"));
        vault.set(by(), &ann(), &name, &secret).await.unwrap();
        seen(&format!("set {name} {text}"));
        if change % 3 != 0 {
            seen(&format!("deleting {name} {text}"));
            assert!(vault.delete(by(), &ann(), &name).await.unwrap());
            seen(&format!("deleted {name} {text}"));
        }
    }
}

#[tokio::test]
async fn after_a_kill_every_secret_is_as_its_owner_was_told() {
    after_each_kill("kill_more::the_process_that_changes_secrets", secrets_hold).await;
}

#[tokio::test]
async fn after_a_kill_every_secret_is_as_its_owner_was_told_on_postgres() {
    let process = "kill_more::the_process_that_changes_secrets";
    after_each_kill_on_postgres(process, secrets_hold).await;
}

async fn secrets_hold(site: Site<'_>) {
    let (store, vault) = vault(site).await;
    let seen = fs::read_to_string(site.folder.join(SEEN)).unwrap();
    // What was told last of a name, and what it was before.
    let mut told: BTreeMap<&str, (Said<'_>, Option<Said<'_>>)> = BTreeMap::new();
    for line in seen.lines() {
        let [word, name, text] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let before = told.get(name).map(|(said, _)| *said);
        told.insert(name, ((word, text), before));
    }
    let log = AuditLog::new(store.clone(), Arc::new(SystemClock::default()));
    let audit = log.list(&AuditFilter::default(), None, 1_000_000).await;
    let audit = audit.unwrap();
    for (name, ((word, text), before)) in told {
        let secret = SecretName::new(name).unwrap();
        let opened = vault.open(&ann(), &[secret]).await;
        let found = match &opened {
            Ok(texts) => Some(&*texts[0].0),
            Err(VaultError::Missing(_)) => None,
            Err(other) => panic!("{name}: {other}"),
        };
        match word {
            "set" => assert_eq!(found, Some(text), "{name}"),
            "deleted" => assert_eq!(found, None, "{name}"),
            "deleting" => assert!(found.is_none_or(|it| it == text), "{name}: {found:?}"),
            _ => {
                let is_as_before = match before {
                    None | Some(("deleted", _)) => found.is_none(),
                    Some(("set", text)) => found == Some(text),
                    Some(("deleting", text)) => found.is_none_or(|it| it == text),
                    // Killed twice in a row while it was set: what was before that is not known.
                    Some(_) => true,
                };
                assert!(found == Some(text) || is_as_before, "{name}: {found:?}");
            }
        }
        // The newest row of the audit log says the same as the table.
        let mut rows = audit.iter();
        let last = rows.find(|row| row.object.as_deref() == Some(name));
        let is_set = last.is_some_and(|row| &*row.action == "secret.set");
        assert_eq!(is_set, found.is_some(), "{name}: {last:?}");
    }
    store.close().await;
}

/// Refuses JWTs until it is killed. Does nothing when it is run as a test.
#[tokio::test]
async fn the_process_that_denies() {
    in_a_process(deny).await;
}

async fn deny(site: Site<'_>) {
    let tokens = open(site).await;
    let mut seen = note(site.folder);
    let (root, origin) = (root(), Origin::default());
    for number in 0_u32.. {
        let id = format!("t-{}-{number}", std::process::id());
        let what = DeniedJwt::Id(Arc::from(&*id));
        let denied = tokens.deny(&root, &origin, Arc::from(ISSUER), what);
        denied.await.unwrap().unwrap();
        seen(&format!("denied {id}"));
    }
}

#[tokio::test]
async fn after_a_kill_what_was_denied_stays_denied() {
    after_each_kill("kill_more::the_process_that_denies", denials_hold).await;
}

#[tokio::test]
async fn after_a_kill_what_was_denied_stays_denied_on_postgres() {
    after_each_kill_on_postgres("kill_more::the_process_that_denies", denials_hold).await;
}

async fn denials_hold(site: Site<'_>) {
    let tokens = open(site).await;
    let is_denied = async |id: &str| {
        let token = Revocable {
            issuer: ISSUER,
            id: Some(id),
            subject: "ann",
            issued_ms: None,
            expires_ms: i64::MAX,
        };
        tokens.denied().denies(&token).await.unwrap()
    };
    let seen = fs::read_to_string(site.folder.join(SEEN)).unwrap();
    let seen = seen
        .lines()
        .map(|line| line.strip_prefix("denied ").unwrap());
    let (log, filter) = (tokens.audit(), AuditFilter::default());
    let audit = log.list(&filter, None, 1_000_000);
    let audit = audit.await.unwrap();
    let rows = audit.iter().filter(|row| &*row.action == "jwt.deny");
    let rows: BTreeSet<&str> = rows.map(|row| row.object.as_deref().unwrap()).collect();
    for id in seen {
        assert!(rows.contains(id), "{id}: no row");
    }
    // One of which nobody was told is denied if its row says so.
    for id in rows {
        assert!(is_denied(id).await, "{id}");
    }
    assert!(!is_denied("t-0").await);
    tokens.store().close().await;
}

/// Makes the first token, and waits to be killed. Does nothing when it is run as a test.
#[tokio::test]
async fn the_process_that_starts_for_the_first_time() {
    in_a_process(async |site| {
        let tokens = open(site).await;
        note(site.folder)("begins");
        tokens.make_first(site.folder).await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
}

#[tokio::test]
async fn after_a_first_start_that_was_killed_the_file_holds_the_one_token_there_is() {
    for start in 0..STARTS {
        let folder = tempfile::tempdir().unwrap();
        let process = "kill_more::the_process_that_starts_for_the_first_time";
        let site = Site {
            folder: folder.path(),
            database: None,
        };
        killed_in(site, process, start * STEP_US).await;
        first_start_holds(site).await;
    }
}

async fn first_start_holds(site: Site<'_>) {
    let (tokens, folder) = (open(site).await, site.folder);
    let now = SystemClock::default().now();
    let path = folder.join(ADMIN_TOKEN_FILE);
    let in_file = || fs::read_to_string(&path).map(|text| text.trim().to_owned());
    let was_made = tokens.any().await.unwrap();
    let left = in_file().ok();
    if let (false, Some(left)) = (was_made, &left) {
        let shown = tokens.authenticate(left, now).await;
        assert_eq!(shown, Err(Denial::Unknown), "it was not stored");
    }
    // The next start makes one where there is none, and else leaves everything as it is.
    let made = tokens.make_first(folder).await.unwrap();
    assert_eq!(made.is_some(), !was_made);
    let token = in_file().expect("the file is there once there is a token");
    if was_made {
        assert_eq!(Some(&token), left.as_ref());
    }
    let caller = tokens.authenticate(&token, now).await.unwrap();
    assert_eq!(caller.scopes(), Scopes::all());
    let rows = tokens.store().tokens(None, 0, 100).await.unwrap();
    assert_eq!(rows.len(), 1, "one token");
    let filter = AuditFilter::default();
    let audit = tokens.audit().list(&filter, None, 100).await.unwrap();
    let created = audit.iter().filter(|row| &*row.action == "token.create");
    assert_eq!(created.count(), 1, "{audit:?}");
    assert!(!path.with_extension("token.new").exists());
    tokens.store().close().await;
}
