//! Declared methods as rows.

use super::{Error, WorkerStore, owner_of, owner_text};
use crate::method::{
    Method, MethodKey, OWN_METHODS_BYTES_MAX, OWN_METHODS_MAX, Refusal, Rights, measured,
};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Row, Tx};

/// Declared methods in all.
pub const METHODS_MAX: usize = 10_000;
/// Bytes of all declared methods: every server holds them in memory.
pub const METHODS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Methods that users have declared for their own flows, of all users together: the rest is left for shared ones.
pub const USERS_METHODS_MAX: usize = METHODS_MAX / 2;
/// Bytes of them.
pub const USERS_METHODS_BYTES_MAX: usize = METHODS_BYTES_MAX / 2;

impl WorkerStore {
    /// Declares a method, in the place of the one of that name and owner if there is one.
    ///
    /// # Errors
    /// [`Error`]; within, [`Refusal`]: nothing is changed then.
    pub async fn declare(
        &self,
        method: &Method,
        rights: Rights,
    ) -> Result<Result<(), Refusal>, Error> {
        if let Err(refusal) = measured(method) {
            return Ok(Err(refusal));
        }
        let work = async {
            let mut tx = self.change().await?;
            let key = method.key();
            let known = declared_by(&mut tx, &key).await?;
            if let Err(refusal) = allowed(&method.name, known.as_ref(), &method.declared_by, rights)
            {
                tx.rollback().await?;
                return Ok(Err(refusal));
            }
            put(&mut tx, method).await?;
            if let Some(refusal) = over(&mut tx, &key, known.is_none()).await? {
                tx.rollback().await?;
                return Ok(Err(refusal));
            }
            self.commit(tx).await?;
            Ok(Ok(()))
        };
        self.order(work).await
    }

    /// Removes a declared method. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error`]; within, [`Refusal::AnotherPrincipal`].
    pub async fn undeclare(
        &self,
        method: &MethodKey,
        by: &str,
        rights: Rights,
    ) -> Result<Result<bool, Refusal>, Error> {
        let work = async {
            let mut tx = self.change().await?;
            let known = declared_by(&mut tx, method).await?;
            let refused = allowed(&method.name, known.as_ref(), by, rights).err();
            if known.is_none() || refused.is_some() {
                tx.rollback().await?;
                return Ok(refused.map_or(Ok(false), Err));
            }
            let mut args = tx.args();
            args.text(method.name.clone());
            args.text(owner_text(method.owner.as_ref()));
            tx.execute(REMOVE, args).await?;
            self.commit(tx).await?;
            Ok(Ok(true))
        };
        self.order(work).await
    }

    /// All declared methods, by name, the shared one first. Cost: O(methods).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn methods(&self) -> Result<Vec<Method>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let rows = tx.fetch_all(LIST, args).await?;
            let found = rows.iter().map(row).collect::<Result<Vec<_>, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }
}

/// Whether a principal may replace or remove what another one declared.
fn allowed(
    name: &Arc<str>,
    declared_by: Option<&Arc<str>>,
    by: &str,
    rights: Rights,
) -> Result<(), Refusal> {
    let is_own = declared_by.is_none_or(|declared_by| **declared_by == *by);
    match rights {
        Rights::Own if !is_own => Err(Refusal::AnotherPrincipal { name: name.clone() }),
        Rights::Own | Rights::All => Ok(()),
    }
}

/// What keeps one more, or a larger one, from being declared; it is written already.
async fn over(tx: &mut Tx<'_>, key: &MethodKey, is_new: bool) -> Result<Option<Refusal>, Error> {
    let mut args = tx.args();
    args.text(owner_text(key.owner.as_ref()));
    let row = tx.fetch_one(SUMS, args).await?;
    let mut columns = Columns::of(&row);
    let mut sum = || -> Result<Sum, Error> {
        let (count, bytes) = (columns.number()?, columns.number()?);
        Ok(Sum { count, bytes })
    };
    let (all, users, own) = (sum()?, sum()?, sum()?);
    let of_users = key.owner.as_ref().map(|_| OfUsers { users, own });
    Ok(exceeded(all, of_users, is_new))
}

/// Declared methods together.
#[derive(Debug, Clone, Copy)]
struct Sum {
    count: usize,
    bytes: usize,
}

/// What counts beside all methods when a user declares one for themselves.
#[derive(Debug, Clone, Copy)]
struct OfUsers {
    /// Those of all users.
    users: Sum,
    /// Those of the user.
    own: Sum,
}

/// The limit that is exceeded. One that was declared already is only measured.
fn exceeded(all: Sum, of_users: Option<OfUsers>, is_new: bool) -> Option<Refusal> {
    // Whoever has many leaves room for other users, and all of them for what is shared.
    let of_users = of_users.and_then(|OfUsers { users, own }| {
        own.over(is_new, (OWN_METHODS_MAX, OWN_METHODS_BYTES_MAX), ALL)
            .or_else(|| users.over(is_new, (USERS_METHODS_MAX, USERS_METHODS_BYTES_MAX), USERS))
    });
    of_users.or_else(|| all.over(is_new, (METHODS_MAX, METHODS_BYTES_MAX), ALL))
}

/// How it is refused that there are too many, and that they are too large.
type Refusals = (fn(usize) -> Refusal, fn(usize) -> Refusal);

const ALL: Refusals = (
    |max| Refusal::TooMany { max },
    |max| Refusal::TooLarge { max },
);
const USERS: Refusals = (
    |max| Refusal::UsersTooMany { max },
    |max| Refusal::UsersTooLarge { max },
);

impl Sum {
    fn over(
        self,
        is_new: bool,
        (count_max, bytes_max): (usize, usize),
        (too_many, too_large): Refusals,
    ) -> Option<Refusal> {
        if is_new && self.count > count_max {
            Some(too_many(count_max))
        } else {
            (self.bytes > bytes_max).then(|| too_large(bytes_max))
        }
    }
}

async fn declared_by(tx: &mut Tx<'_>, method: &MethodKey) -> Result<Option<Arc<str>>, Error> {
    let mut args = tx.args();
    args.text(method.name.clone());
    args.text(owner_text(method.owner.as_ref()));
    let row = tx.fetch_optional(DECLARED_BY, args).await?;
    let read = |row: &Row| Ok(Columns::of(row).text()?);
    row.as_ref().map(read).transpose()
}

async fn put(tx: &mut Tx<'_>, method: &Method) -> Result<(), Error> {
    let mut args = tx.args();
    args.text(method.name.clone());
    args.text(owner_text(method.owner.as_ref()));
    args.text(method.description.clone());
    args.payload(method.input_schema.as_ref());
    args.payload(method.output_schema.as_ref());
    args.payload(method.defaults.as_ref());
    args.int(method.limit.map(i64::from));
    args.text(method.declared_by.clone());
    args.time(method.declared_at);
    args.int(i64::try_from(method.bytes()).unwrap_or(i64::MAX));
    tx.execute(PUT, args).await?;
    Ok(())
}

fn row(row: &Row) -> Result<Method, Error> {
    let mut c = Columns::of(row);
    Ok(Method {
        name: c.text()?,
        owner: owner_of(c.text()?),
        description: c.opt_text()?,
        input_schema: c.opt_payload()?,
        output_schema: c.opt_payload()?,
        defaults: c.opt_payload()?,
        limit: c.opt_int()?.map(limit).transpose()?,
        declared_by: c.text()?,
        declared_at: Timestamp(c.int()?),
    })
}

fn limit(stored: i64) -> Result<u32, Error> {
    u32::try_from(stored).map_err(|_| Error::Damaged(format!("`{stored}` is no limit")))
}

const LIST: &str =
    "SELECT name, owner, description, input_schema, output_schema, defaults, attempts_max,
        declared_by, declared_at
    FROM methods
    ORDER BY name, owner";
const DECLARED_BY: &str = "SELECT declared_by FROM methods WHERE name = $1 AND owner = $2";
const PUT: &str = "INSERT INTO methods
    (name, owner, description, input_schema, output_schema, defaults, attempts_max, declared_by, declared_at, bytes)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (name, owner) DO UPDATE SET
        description = excluded.description,
        input_schema = excluded.input_schema,
        output_schema = excluded.output_schema,
        defaults = excluded.defaults,
        attempts_max = excluded.attempts_max,
        declared_by = excluded.declared_by,
        declared_at = excluded.declared_at,
        bytes = excluded.bytes";
const REMOVE: &str = "DELETE FROM methods WHERE name = $1 AND owner = $2";
/// Count and bytes of all, of those of users, and of those of one owner. Of at most [`METHODS_MAX`] rows.
const SUMS: &str = "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN owner <> '' THEN 1 ELSE 0 END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN owner <> '' THEN bytes ELSE 0 END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN owner = $1 THEN 1 ELSE 0 END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN owner = $1 THEN bytes ELSE 0 END), 0) AS BIGINT)
    FROM methods";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_leave_room_for_what_is_shared() {
        let sum = |count, bytes| Sum { count, bytes };
        let own = sum(1, 10);
        let full = sum(USERS_METHODS_MAX + 1, 10);
        let of_users = |users| Some(OfUsers { users, own });
        let max = USERS_METHODS_MAX;
        let refusal = Some(Refusal::UsersTooMany { max });
        assert_eq!(exceeded(full, of_users(full), true), refusal);
        assert_eq!(exceeded(full, of_users(full), false), None);
        assert_eq!(exceeded(full, None, true), None, "a shared one");
        let large = sum(2, USERS_METHODS_BYTES_MAX + 1);
        let max = USERS_METHODS_BYTES_MAX;
        let refusal = Some(Refusal::UsersTooLarge { max });
        assert_eq!(exceeded(large, of_users(large), false), refusal);
        assert_eq!(exceeded(large, None, true), None, "a shared one");
    }
}
