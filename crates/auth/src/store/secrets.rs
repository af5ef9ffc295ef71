//! Secrets of users as rows. Their values come and go sealed.

use super::{AuthStore, Error};
use crate::secret::SecretName;
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sealing::Sealed;
use taskledger_sql::{Columns, Row, Tx};

/// The owner of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecretOwner {
    /// Name of the tenant that the secret belongs to.
    pub tenant: Arc<str>,
    /// The user of the flows that may use it; `None`: of those without a user.
    pub user: Option<Arc<str>>,
}

impl SecretOwner {
    /// Empty stands for nobody: no user has an empty name.
    fn column(&self) -> Arc<str> {
        self.user.clone().unwrap_or_else(|| Arc::from(""))
    }

    /// The row that a sealed value is bound to. The name has no `/`, so two rows never share a text.
    pub(crate) fn row(&self, name: &SecretName) -> String {
        format!("secrets/{}/{}/{name}", self.tenant, self.column())
    }
}

/// A secret as it is shown: never its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRow {
    /// The name by which tasks refer to the secret.
    pub name: SecretName,
    /// When it was first set.
    pub created_at: Timestamp,
    /// When it was last set.
    pub updated_at: Timestamp,
}

/// A sealed value, and where it is.
pub(crate) struct SealedRow {
    pub(crate) owner: SecretOwner,
    pub(crate) name: SecretName,
    pub(crate) sealed: Sealed,
}

impl AuthStore {
    /// The secrets of an owner, by name. Cost: O(secrets of the owner).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn secrets(&self, owner: &SecretOwner) -> Result<Vec<SecretRow>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.text(owner.tenant.clone());
            args.text(owner.column());
            let rows = tx.fetch_all(LIST, args).await?;
            let found = rows.iter().map(shown).collect::<Result<Vec<_>, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// The names of the keys with which secrets are sealed. Cost: O(secrets).
    pub(crate) async fn sealing_keys(&self) -> Result<Vec<Arc<str>>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let rows = tx.fetch_all(KEYS, args).await?;
            let names = rows.iter().map(|row| Ok(Columns::of(row).text()?));
            let names = names.collect::<Result<Vec<_>, Error>>()?;
            tx.commit().await?;
            Ok(names)
        };
        self.order(work).await
    }
}

/// The sealed value of a secret.
pub(crate) async fn sealed(
    tx: &mut Tx<'_>,
    owner: &SecretOwner,
    name: &SecretName,
) -> Result<Option<Sealed>, Error> {
    let args = key(tx, owner, name);
    let row = tx.fetch_optional(SEALED, args).await?;
    let read = |row: &Row| {
        let mut c = Columns::of(row);
        Ok(Sealed {
            key_id: c.text()?,
            bytes: c.bytes()?.to_vec(),
        })
    };
    row.as_ref().map(read).transpose()
}

/// How many secrets an owner has.
pub(crate) async fn count(tx: &mut Tx<'_>, owner: &SecretOwner) -> Result<i64, Error> {
    let mut args = tx.args();
    args.text(owner.tenant.clone());
    args.text(owner.column());
    Ok(Columns::of(&tx.fetch_one(COUNT, args).await?).int()?)
}

/// Stores a secret, in the place of the one before if there is one.
pub(crate) async fn put(
    tx: &mut Tx<'_>,
    owner: &SecretOwner,
    name: &SecretName,
    value: Sealed,
    now: Timestamp,
) -> Result<SecretRow, Error> {
    let mut args = key(tx, owner, name);
    args.text(value.key_id);
    args.bytes(value.bytes);
    args.time(now);
    shown(&tx.fetch_one(PUT, args).await?)
}

/// Removes a secret. Returns whether there was one.
pub(crate) async fn remove(
    tx: &mut Tx<'_>,
    owner: &SecretOwner,
    name: &SecretName,
) -> Result<bool, Error> {
    let args = key(tx, owner, name);
    Ok(tx.execute(REMOVE, args).await? > 0)
}

/// Secrets that another key than this one has sealed, at most `limit`.
pub(crate) async fn sealed_by_others(
    tx: &mut Tx<'_>,
    key_id: &Arc<str>,
    limit: i64,
) -> Result<Vec<SealedRow>, Error> {
    let mut args = tx.args();
    args.text(key_id.clone());
    args.int(limit);
    let rows = tx.fetch_all(OTHERS, args).await?;
    let read = |row: &Row| {
        let mut c = Columns::of(row);
        let (tenant, user) = (c.text()?, c.text()?);
        Ok(SealedRow {
            owner: SecretOwner {
                tenant,
                user: Some(user).filter(|user| !user.is_empty()),
            },
            name: secret_name(c.word()?)?,
            sealed: Sealed {
                key_id: c.text()?,
                bytes: c.bytes()?.to_vec(),
            },
        })
    };
    rows.iter().map(read).collect()
}

/// Puts another sealed form of the same value in the place of one that nobody has replaced meanwhile.
pub(crate) async fn reseal(tx: &mut Tx<'_>, old: &SealedRow, new: Sealed) -> Result<u64, Error> {
    let mut args = key(tx, &old.owner, &old.name);
    args.text(new.key_id);
    args.bytes(new.bytes);
    args.text(old.sealed.key_id.clone());
    Ok(tx.execute(RESEAL, args).await?)
}

fn key(tx: &Tx<'_>, owner: &SecretOwner, name: &SecretName) -> taskledger_sql::Args {
    let mut args = tx.args();
    args.text(owner.tenant.clone());
    args.text(owner.column());
    args.text(Arc::<str>::from(name.as_str()));
    args
}

fn shown(row: &Row) -> Result<SecretRow, Error> {
    let mut c = Columns::of(row);
    Ok(SecretRow {
        name: secret_name(c.word()?)?,
        created_at: c.time()?,
        updated_at: c.time()?,
    })
}

fn secret_name(text: &str) -> Result<SecretName, Error> {
    let damaged = |_| Error::Damaged(format!("`{text}` is not a valid name of a secret"));
    SecretName::new(text).map_err(damaged)
}

// All by the primary key, but for those that concern the keys.
const LIST: &str = "SELECT name, created_at, updated_at FROM secrets
    WHERE tenant = $1 AND owner = $2
    ORDER BY name";
const SEALED: &str = "SELECT key_id, sealed FROM secrets
    WHERE tenant = $1 AND owner = $2 AND name = $3";
const COUNT: &str = "SELECT count(*) FROM secrets WHERE tenant = $1 AND owner = $2";
const PUT: &str = "INSERT INTO secrets (tenant, owner, name, key_id, sealed, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6)
    ON CONFLICT (tenant, owner, name)
    DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed, updated_at = excluded.updated_at
    RETURNING name, created_at, updated_at";
const REMOVE: &str = "DELETE FROM secrets WHERE tenant = $1 AND owner = $2 AND name = $3";
const KEYS: &str = "SELECT DISTINCT key_id FROM secrets";
const OTHERS: &str = "SELECT tenant, owner, name, key_id, sealed FROM secrets
    WHERE key_id <> $1
    LIMIT $2";
const RESEAL: &str = "UPDATE secrets SET key_id = $4, sealed = $5
    WHERE tenant = $1 AND owner = $2 AND name = $3 AND key_id = $6";
