//! Secrets of users in the store.

use crate::on_both_engines;
use crate::world::{Place, World, root};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::store::{AUTH_FILE, AuditFilter, AuthStore, SecretOwner};
use taskledger_auth::{
    By, MAIN_TENANT, Origin, SECRETS_PER_OWNER_MAX, SecretName, Vault, VaultError,
};
use taskledger_clock::SystemClock;
use taskledger_sealing::{Keyring, KeysError, Secret};

const OLD_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const NEW_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
/// The canary.
const TEXT: &str = "hunter2-hunter2";

fn owner(user: Option<&str>) -> SecretOwner {
    SecretOwner {
        tenant: Arc::from(MAIN_TENANT),
        user: user.map(Arc::from),
    }
}

fn named(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

fn secret(text: &str) -> Secret {
    Secret(Arc::from(text))
}

fn by() -> By {
    By::call(&root(), &Origin::default())
}

async fn vault(world: &World, keys: &str) -> Result<Vault, VaultError> {
    let keys = Keyring::parse(keys).unwrap();
    Vault::new(world.tokens.store().clone(), keys, world.clock.clone()).await
}

async fn opened(
    vault: &Vault,
    owner: &SecretOwner,
    names: &[&str],
) -> Result<Vec<String>, VaultError> {
    let names: Vec<_> = names.iter().map(|name| named(name)).collect();
    let texts = vault.open(owner, &names).await?;
    Ok(texts.iter().map(|text| text.0.to_string()).collect())
}

async fn what_is_set_opens_for_its_owner_alone(world: World) {
    let vault = vault(&world, OLD_KEY).await.unwrap();
    let (ann, bob, nobody) = (owner(Some("ann")), owner(Some("bob/ä")), owner(None));
    for (owner, text) in [
        (&ann, "text of ann"),
        (&bob, "text of bob"),
        (&nobody, "text of nobody"),
    ] {
        vault
            .set(by(), owner, &named("key"), &secret(text))
            .await
            .unwrap();
        assert_eq!(opened(&vault, owner, &["key"]).await.unwrap(), [text]);
    }
    let set = vault
        .set(by(), &ann, &named("second"), &secret(TEXT))
        .await
        .unwrap();
    assert_eq!(set.name.as_str(), "second");
    assert_eq!(
        opened(&vault, &ann, &["second", "key"]).await.unwrap(),
        [TEXT, "text of ann"]
    );
    let missing = opened(&vault, &bob, &["key", "second"]).await.unwrap_err();
    assert!(matches!(missing, VaultError::Missing(name) if name.as_str() == "second"));
}

async fn setting_again_replaces_and_deleting_removes(world: World) {
    let vault = vault(&world, OLD_KEY).await.unwrap();
    let ann = owner(Some("ann"));
    let first = vault
        .set(by(), &ann, &named("a"), &secret("the first"))
        .await
        .unwrap();
    world.clock.advance_ms(5_000);
    let second = vault
        .set(by(), &ann, &named("a"), &secret("the second"))
        .await
        .unwrap();
    assert_eq!(second.created_at, first.created_at);
    assert!(second.updated_at > first.updated_at);
    assert_eq!(opened(&vault, &ann, &["a"]).await.unwrap(), ["the second"]);
    assert_eq!(vault.list(&ann).await.unwrap(), [second]);
    assert!(vault.delete(by(), &ann, &named("a")).await.unwrap());
    assert!(!vault.delete(by(), &ann, &named("a")).await.unwrap());
    assert!(vault.list(&ann).await.unwrap().is_empty());
    assert_eq!(
        world.audited().await,
        [
            "service:root secret.set a done",
            "service:root secret.set a done",
            "service:root secret.delete a done"
        ]
    );
}

async fn values_and_numbers_are_bounded(world: World) {
    let vault = vault(&world, OLD_KEY).await.unwrap();
    let ann = owner(Some("ann"));
    for bad in ["", "1234567", "1234567\0", &"x".repeat(8 * 1024 + 1)] {
        let refused = vault.set(by(), &ann, &named("a"), &secret(bad)).await;
        assert!(matches!(refused, Err(VaultError::Value)), "{bad:.9}");
    }
    for number in 0..SECRETS_PER_OWNER_MAX {
        let name = named(&format!("s{number}"));
        vault.set(by(), &ann, &name, &secret(TEXT)).await.unwrap();
    }
    let full = vault
        .set(by(), &ann, &named("one-more"), &secret(TEXT))
        .await;
    assert!(matches!(full, Err(VaultError::Full)));
    let again = vault
        .set(by(), &ann, &named("s0"), &secret("another text"))
        .await;
    assert!(again.is_ok(), "a secret that is there can be replaced");
}

async fn without_an_audit_row_nothing_changes(world: World) {
    let vault = vault(&world, OLD_KEY).await.unwrap();
    let ann = owner(Some("ann"));
    vault
        .set(by(), &ann, &named("a"), &secret(TEXT))
        .await
        .unwrap();
    world.run("DROP TABLE audit").await.unwrap();
    assert!(
        vault
            .set(by(), &ann, &named("a"), &secret("another text"))
            .await
            .is_err()
    );
    assert!(
        vault
            .set(by(), &ann, &named("b"), &secret(TEXT))
            .await
            .is_err()
    );
    assert!(vault.delete(by(), &ann, &named("a")).await.is_err());
    assert_eq!(opened(&vault, &ann, &["a"]).await.unwrap(), [TEXT]);
    assert_eq!(vault.list(&ann).await.unwrap().len(), 1);
}

async fn a_new_key_takes_over_and_a_missing_one_is_named(world: World) {
    let ann = owner(Some("ann"));
    let old = vault(&world, OLD_KEY).await.unwrap();
    for name in ["a", "b"] {
        old.set(by(), &ann, &named(name), &secret(TEXT))
            .await
            .unwrap();
    }
    let refused = vault(&world, NEW_KEY).await.unwrap_err();
    assert!(
        matches!(refused, VaultError::Keys(KeysError::Unknown { .. })),
        "{refused}"
    );
    let both = vault(&world, &format!("{NEW_KEY}\n{OLD_KEY}"))
        .await
        .unwrap();
    assert_eq!(both.reseal().await.unwrap(), 2);
    assert_eq!(both.reseal().await.unwrap(), 0);
    let new = vault(&world, NEW_KEY).await.unwrap();
    assert_eq!(opened(&new, &ann, &["a", "b"]).await.unwrap(), [TEXT, TEXT]);
}

async fn a_value_in_another_row_does_not_open(world: World) {
    let vault = vault(&world, OLD_KEY).await.unwrap();
    vault
        .set(by(), &owner(Some("ann")), &named("a"), &secret(TEXT))
        .await
        .unwrap();
    world.run("UPDATE secrets SET owner = 'bob'").await.unwrap();
    let stolen = opened(&vault, &owner(Some("bob")), &["a"])
        .await
        .unwrap_err();
    assert!(matches!(stolen, VaultError::Closed { .. }), "{stolen}");
}

async fn a_server_without_keys_keeps_no_secrets(world: World) {
    let (store, clock) = (world.tokens.store().clone(), world.clock.clone());
    let vault = Vault::new(store, Keyring::none(), clock).await.unwrap();
    let refused = vault
        .set(by(), &owner(None), &named("a"), &secret(TEXT))
        .await;
    assert!(matches!(refused, Err(VaultError::Keys(KeysError::None))));
}

async fn nothing_that_is_stored_shows_a_value(world: World) {
    let vault = vault(&world, OLD_KEY).await.unwrap();
    vault
        .set(by(), &owner(Some("ann")), &named("a"), &secret(TEXT))
        .await
        .unwrap();
    let rows = world.audit().await;
    assert!(!format!("{rows:?}").contains("hunter2"));
    if let Place::Folder(folder) = &world.place {
        world.tokens.store().close().await;
        for file in [AUTH_FILE, "auth.db-wal"] {
            let bytes = std::fs::read(folder.path().join(file)).unwrap_or_default();
            assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{file}");
        }
    }
}

on_both_engines!(
    what_is_set_opens_for_its_owner_alone,
    setting_again_replaces_and_deleting_removes,
    values_and_numbers_are_bounded,
    without_an_audit_row_nothing_changes,
    a_new_key_takes_over_and_a_missing_one_is_named,
    a_value_in_another_row_does_not_open,
    a_server_without_keys_keeps_no_secrets,
    nothing_that_is_stored_shows_a_value,
);

/// The folder of the process that is killed.
const FOLDER: &str = "TASKLEDGER_TEST_SECRETS_FOLDER";
/// Where it writes the number of the last value that it was told is set.
const SEEN: &str = "seen";
const ROUNDS: u64 = 8;

async fn vault_of(folder: &Path) -> (Arc<AuthStore>, Vault) {
    let store = Arc::new(AuthStore::of_folder(folder).await.unwrap());
    let keys = Keyring::parse(OLD_KEY).unwrap();
    let vault = Vault::new(store.clone(), keys, Arc::new(SystemClock::default()));
    (store, vault.await.unwrap())
}

/// Sets a secret to one number after the other until it is killed. Does nothing when it is run as a test.
#[tokio::test]
async fn the_process_that_sets_and_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let (_, vault) = vault_of(folder).await;
    let ann = owner(Some("ann"));
    let last = opened(&vault, &ann, &["a"]).await;
    let last = last.map_or(0, |texts| texts[0].trim().parse().unwrap());
    for number in last + 1_u64.. {
        let text = secret(&format!("{number:>20}"));
        vault.set(by(), &ann, &named("a"), &text).await.unwrap();
        std::fs::write(folder.join("new"), number.to_string()).unwrap();
        std::fs::rename(folder.join("new"), folder.join(SEEN)).unwrap();
    }
}

#[tokio::test]
async fn after_a_kill_an_attempt_gets_what_was_set_last() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "secrets::the_process_that_sets_and_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let seen = || std::fs::read_to_string(folder.path().join(SEEN)).unwrap_or_default();
        let before = seen();
        while seen() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(round * 7)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let (store, vault) = vault_of(folder.path()).await;
        let told: u64 = seen().parse().unwrap();
        let texts = opened(&vault, &owner(Some("ann")), &["a"]).await.unwrap();
        let stored: u64 = texts[0].trim().parse().unwrap();
        assert!(
            (told..=told + 1).contains(&stored),
            "{told} was told, {stored} is stored"
        );
        let rows = store
            .audit(&AuditFilter::default(), None, 1_000_000)
            .await
            .unwrap();
        assert_eq!(
            rows.len() as u64,
            stored,
            "a row of the audit log for each change"
        );
        store.close().await;
    }
}
