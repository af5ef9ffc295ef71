//! Secrets of users: set, listed, deleted, and opened for the attempts that use them.
//!
//! Owns: the rules of secrets, and sealing them. May not: show one to a caller; [`Vault::open`] is for attempts
//! only. Each change and its row of the audit log are one transaction, which names the secret and never holds
//! its value.

use crate::audit::{Action, By, Entry};
use crate::secret::{SECRET_BYTES, SECRETS_PER_OWNER_MAX, SecretName};
use crate::store::{self, AuthStore, OwnKey, SecretOwner, SecretRow, secrets};
use serde_json::json;
use std::sync::Arc;
use taskledger_clock::SharedClock;
use taskledger_domain::Timestamp;
use taskledger_sealing::{Keyring, KeysError, Secret};

/// Values that one transaction seals anew.
const RESEAL_ROWS: i64 = 200;

/// A secret cannot be kept or opened.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The store does not do its work.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// There is no key, or not the one that sealed; the operator can mend it.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// It does not open; the operator can mend it.
    #[error("the secret `{name}` does not open: {source}")]
    Closed {
        /// Name of the secret.
        name: SecretName,
        /// The error from the keyring.
        source: KeysError,
    },
    /// The owner has no secret of this name.
    #[error("there is no secret `{0}`")]
    Missing(SecretName),
    /// The value is too short, too long, or no text that a program can be given.
    #[error("a secret has {} to {} bytes and no NUL character", SECRET_BYTES.start(), SECRET_BYTES.end())]
    Value,
    /// The owner has as many as may be.
    #[error("an owner has at most {SECRETS_PER_OWNER_MAX} secrets")]
    Full,
}

/// All secrets of a server. Lasts as long as it.
pub struct Vault {
    store: Arc<AuthStore>,
    keys: Keyring,
    clock: SharedClock,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}

impl Vault {
    /// The secrets of a store, sealed with these keys. What was sealed must open: a server that finds out
    /// later would fail the attempts.
    ///
    /// # Errors
    /// [`VaultError::Keys`]: a key is missing. [`VaultError::Store`].
    pub async fn new(
        store: Arc<AuthStore>,
        keys: Keyring,
        clock: SharedClock,
    ) -> Result<Self, VaultError> {
        for id in store.sealing_keys().await? {
            if !keys.knows(&id) {
                let id = id.to_string();
                return Err(KeysError::Unknown { id }.into());
            }
        }
        Ok(Self { store, keys, clock })
    }

    /// Sets a secret, in the place of the one before if there is one. Attempts that have begun keep what they
    /// were given.
    ///
    /// # Errors
    /// [`VaultError`]: nothing was changed, unless the store gave no answer.
    pub async fn set(
        &self,
        by: By,
        owner: &SecretOwner,
        name: &SecretName,
        value: &Secret,
    ) -> Result<SecretRow, VaultError> {
        if !SECRET_BYTES.contains(&value.0.len()) || value.0.contains('\0') {
            return Err(VaultError::Value);
        }
        let sealed = self.keys.seal(&self.clock, &owner.row(name), &value.0)?;
        let now = self.clock.now();
        let work = async {
            let mut tx = self.store.write().await?;
            let known = secrets::sealed(&mut tx, owner, name).await?;
            let full = SECRETS_PER_OWNER_MAX as i64;
            if known.is_none() && secrets::count(&mut tx, owner).await? >= full {
                tx.rollback().await?;
                return Ok(None);
            }
            let row = secrets::put(&mut tx, owner, name, sealed, now).await?;
            self.store
                .append(&mut tx, &entry(by, Action::SecretSet, owner, name), now)
                .await?;
            tx.commit().await?;
            Ok(Some(row))
        };
        self.store.order(work).await?.ok_or(VaultError::Full)
    }

    /// The key that the server has made for itself for this purpose, if it has.
    ///
    /// # Errors
    /// [`VaultError::Store`].
    pub async fn own_key(&self, name: &'static str) -> Result<Option<OwnKey>, VaultError> {
        Ok(self.store.own_key(&Arc::from(name)).await?)
    }

    /// Makes a key for this purpose unless there is one already, and returns the one that counts.
    ///
    /// # Errors
    /// [`VaultError::Store`].
    pub async fn make_own_key(&self, name: &'static str) -> Result<OwnKey, VaultError> {
        let value = Arc::from(self.clock.bytes32());
        let made = OwnKey { value };
        Ok(self.store.keep_own_key(&Arc::from(name), &made).await?)
    }

    /// The secrets of an owner, by name, without their values.
    ///
    /// # Errors
    /// [`VaultError::Store`].
    pub async fn list(&self, owner: &SecretOwner) -> Result<Vec<SecretRow>, VaultError> {
        Ok(self.store.secrets(owner).await?)
    }

    /// Deletes a secret. Returns whether there was one; where there was none, nothing is recorded.
    ///
    /// # Errors
    /// [`VaultError::Store`].
    pub async fn delete(
        &self,
        by: By,
        owner: &SecretOwner,
        name: &SecretName,
    ) -> Result<bool, VaultError> {
        let now: Timestamp = self.clock.now();
        let work = async {
            let mut tx = self.store.write().await?;
            let existed = secrets::remove(&mut tx, owner, name).await?;
            if existed {
                self.store
                    .append(&mut tx, &entry(by, Action::SecretDelete, owner, name), now)
                    .await?;
            }
            tx.commit().await?;
            Ok(existed)
        };
        Ok(self.store.order(work).await?)
    }

    /// The values of these secrets, in the same order and as they stood at one moment, for an attempt of a
    /// flow of the owner. Cost: O(names), one transaction.
    ///
    /// # Errors
    /// [`VaultError`].
    pub async fn open(
        &self,
        owner: &SecretOwner,
        names: &[SecretName],
    ) -> Result<Vec<Secret>, VaultError> {
        let work = async {
            let mut tx = self.store.read().await?;
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                found.push(secrets::sealed(&mut tx, owner, name).await?);
            }
            tx.commit().await?;
            Ok(found)
        };
        let found = self.store.order(work).await?;
        let opened = names.iter().zip(found).map(|(name, sealed)| {
            let sealed = sealed.ok_or_else(|| VaultError::Missing(name.clone()))?;
            let opened = self.keys.open(&owner.row(name), &sealed);
            opened.map_err(|source| VaultError::Closed {
                name: name.clone(),
                source,
            })
        });
        opened.collect()
    }

    /// Seals everything with the first key of the file, so that the others can be taken out of it. Returns how
    /// many values were sealed anew. May be run while servers work, if they have the same key file.
    /// Cost: O(secrets).
    ///
    /// # Errors
    /// [`VaultError`]: what was counted is done; run it again.
    pub async fn reseal(&self) -> Result<u64, VaultError> {
        let first: Arc<str> = self.keys.first().ok_or(KeysError::None)?.into();
        let mut done = 0;
        loop {
            let work = async {
                let mut tx = self.store.write().await?;
                let rows = secrets::sealed_by_others(&mut tx, &first, RESEAL_ROWS).await?;
                let mut resealed = 0;
                for row in rows {
                    let place = row.owner.row(&row.name);
                    let value = match self.keys.open(&place, &row.sealed) {
                        Ok(value) => value,
                        Err(source) => return Ok(Err((row.name, source))),
                    };
                    let new = match self.keys.seal(&self.clock, &place, &value.0) {
                        Ok(new) => new,
                        Err(source) => return Ok(Err((row.name, source))),
                    };
                    resealed += secrets::reseal(&mut tx, &row, new).await?;
                }
                tx.commit().await?;
                Ok(Ok(resealed))
            };
            let resealed = self.store.order(work).await?;
            let resealed =
                resealed.map_err(|(name, source)| VaultError::Closed { name, source })?;
            done += resealed;
            if resealed == 0 {
                return Ok(done);
            }
        }
    }
}

fn entry(by: By, action: Action, owner: &SecretOwner, name: &SecretName) -> Entry {
    let object = Some(Arc::from(name.as_str()));
    Entry::done(by, action, object).with(json!({"owner": owner.user}))
}
