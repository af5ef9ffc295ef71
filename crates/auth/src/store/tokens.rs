//! Tokens as rows.

use super::{AuthStore, Error};
use crate::caller::{Caller, Kind};
use crate::name::Name;
use crate::scopes::Scopes;
use crate::token::{Digest, TokenId};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Row, Tx, json};

/// Tokens in all, those included that have ended and are still shown.
pub const TOKENS_MAX: i64 = 100_000;
/// Tokens whose use one transaction notes.
const USED_AT_A_TIME: usize = 500;
/// Rows that one transaction removes: others wait for it.
const SLICE: i64 = 500;

/// The owner of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// A user or a service.
    pub kind: Kind,
    /// Name of the user or service that calls are made as.
    pub name: Name,
    /// Name of the tenant that the owner belongs to.
    pub tenant: Arc<str>,
}

impl Owner {
    /// The owner of this caller's own tokens; `None` for anonymous callers, who have none.
    #[must_use]
    pub fn of(caller: &Caller) -> Option<Self> {
        let (kind, actor) = (caller.kind(), caller.actor());
        let (_, name) = actor.split_once(':')?;
        Some(Self {
            kind,
            name: Name::new(name).ok()?,
            tenant: caller.tenant().clone(),
        })
    }
}

/// Whether a token can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// The token can be used.
    Active,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

impl TokenState {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Active, Self::Expired, Self::Revoked];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its number, by which lists are ordered: the oldest first.
    pub no: i64,
    /// Its public name.
    pub id: TokenId,
    /// The user or service that calls with this token are made as.
    pub owner: Owner,
    /// What it allows.
    pub scopes: Scopes,
    /// The methods that a worker may claim with it; `None`: all.
    pub methods: Option<Arc<[Arc<str>]>>,
    /// The agents of the broker for which it speaks beside the owner's name; `None`: no others.
    pub agents: Option<Arc<[Arc<str>]>>,
    /// Free text for people, set when the token is created.
    pub note: Arc<str>,
    /// Digest of the present secret.
    pub digest: Digest,
    /// Of the one before, and until when that is accepted.
    pub previous: Option<(Digest, Timestamp)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its secret was last replaced.
    pub rotated_at: Option<Timestamp>,
    /// When it ends; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute; never before it was made.
    pub last_used_at: Option<Timestamp>,
}

impl TokenRow {
    /// Whether it can be used.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> TokenState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => TokenState::Revoked,
            (None, Some(ends)) if ends <= now => TokenState::Expired,
            (None, _) => TokenState::Active,
        }
    }
}

/// A token to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Fresh.
    pub id: TokenId,
    /// The user or service that calls with this token are made as.
    pub owner: Owner,
    /// What it allows.
    pub scopes: Scopes,
    /// The methods that a worker may claim with it; `None`: all.
    pub methods: Option<Arc<[Arc<str>]>>,
    /// The agents of the broker for which it speaks beside the owner's name; `None`: no others.
    pub agents: Option<Arc<[Arc<str>]>>,
    /// Free text for people; may be empty.
    pub note: Arc<str>,
    /// Digest of its secret.
    pub digest: Digest,
    /// When it ends; `None`: never.
    pub expires_at: Option<Timestamp>,
}

impl AuthStore {
    /// The token with this id.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn token(&self, id: &TokenId) -> Result<Option<TokenRow>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let found = find(&mut tx, id, "").await?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// Tokens with a number above `after`, the oldest first, at most `limit`; `owner`: only theirs.
    /// Cost: O(limit).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tokens(
        &self,
        owner: Option<&Owner>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<TokenRow>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            let of_owner = if let Some(owner) = owner {
                args.text(owner.tenant.clone());
                args.name(owner.kind.as_str());
                args.text(Arc::<str>::from(owner.name.as_str()));
                "tenant = $1 AND kind = $2 AND name = $3 AND "
            } else {
                ""
            };
            args.int(after);
            args.int(i64::try_from(limit).unwrap_or(i64::MAX));
            let (at, limit) = (args.len() - 1, args.len());
            let text = format!(
                "SELECT {TOKEN} FROM tokens WHERE {of_owner}no > ${at} ORDER BY no LIMIT ${limit}"
            );
            let rows = tx.fetch_all(sqlx::AssertSqlSafe(text), args).await?;
            let found = rows.iter().map(token).collect::<Result<Vec<_>, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// Whether any token was ever made and is still known, ended ones included.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn has_tokens(&self) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let found = tx.fetch_optional(ANY, args).await?;
            tx.commit().await?;
            Ok(found.is_some())
        };
        self.order(work).await
    }

    /// Notes when tokens were last used, in slices. Other servers need not hear of it.
    ///
    /// # Errors
    /// [`Error`]: some may be noted.
    pub async fn used(&self, times: &[(TokenId, Timestamp)]) -> Result<(), Error> {
        for slice in times.chunks(USED_AT_A_TIME) {
            let work = async {
                let mut tx = self.connections.write().await?;
                for (id, at) in slice {
                    let mut args = tx.args();
                    args.time(*at);
                    args.text(id.as_str().clone());
                    tx.execute(USED, args).await?;
                }
                Ok(tx.commit().await?)
            };
            self.order(work).await?;
        }
        Ok(())
    }

    /// How many tokens there are in each state, in the order of [`TokenState::ALL`]. Cost: O(tokens), of which
    /// there are [`TOKENS_MAX`] at most.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn count_by_state(
        &self,
        now: Timestamp,
    ) -> Result<[u64; TokenState::ALL.len()], Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.time(now);
            let row = tx.fetch_one(STATES, args).await?;
            tx.commit().await?;
            let mut counts = Columns::of(&row);
            let (all, expired, revoked) = (counts.int()?, counts.int()?, counts.int()?);
            let counts = [all - expired - revoked, expired, revoked];
            Ok(counts.map(i64::unsigned_abs))
        };
        self.order(work).await
    }

    /// When the token ends that ends next of those that can be used; `None`: none of them ends. Cost: one pass over
    /// the tokens.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn next_expiry(&self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.time(now);
            let row = tx.fetch_one(NEXT_EXPIRY, args).await?;
            tx.commit().await?;
            Ok(Columns::of(&row).opt_int()?.map(Timestamp))
        };
        self.order(work).await
    }

    /// Removes tokens that ended before `old`, in slices. Returns how many.
    ///
    /// # Errors
    /// [`Error`]: what was removed is removed; ask again later.
    pub async fn sweep_tokens(&self, old: Timestamp) -> Result<u64, Error> {
        self.sweep((SWEEP, SLICE), old).await
    }
}

/// How many tokens there are.
pub(crate) async fn count(tx: &mut Tx<'_>) -> Result<i64, Error> {
    let args = tx.args();
    Ok(Columns::of(&tx.fetch_one(COUNT, args).await?).int()?)
}

/// The token with this id, which stays as it is until the transaction ends.
pub(crate) async fn hold(tx: &mut Tx<'_>, id: &TokenId) -> Result<Option<TokenRow>, Error> {
    let lock = match tx.engine() {
        taskledger_sql::Engine::Sqlite => "",
        taskledger_sql::Engine::Postgres => " FOR UPDATE",
    };
    find(tx, id, lock).await
}

async fn find(
    tx: &mut Tx<'_>,
    id: &TokenId,
    lock: &'static str,
) -> Result<Option<TokenRow>, Error> {
    let mut args = tx.args();
    args.text(id.as_str().clone());
    let text = format!("SELECT {TOKEN} FROM tokens WHERE id = $1{lock}");
    let found = tx.fetch_optional(sqlx::AssertSqlSafe(text), args).await?;
    found.as_ref().map(token).transpose()
}

/// Stores a token.
pub(crate) async fn insert(tx: &mut Tx<'_>, new: &NewToken, now: Timestamp) -> Result<(), Error> {
    let mut args = tx.args();
    args.text(new.id.as_str().clone());
    args.name(new.owner.kind.as_str());
    args.text(Arc::<str>::from(new.owner.name.as_str()));
    args.text(new.owner.tenant.clone());
    args.owned(new.scopes.to_string());
    args.text(new.methods.as_deref().map(names_text));
    args.text(new.agents.as_deref().map(names_text));
    args.text(new.note.clone());
    args.bytes(new.digest.0.to_vec());
    args.time(now);
    args.time(new.expires_at);
    tx.execute(INSERT, args).await?;
    Ok(())
}

/// Gives a token another secret; the present one is accepted until `grace`.
pub(crate) async fn rotate(
    tx: &mut Tx<'_>,
    held: &TokenRow,
    digest: Digest,
    until: Timestamp,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut args = tx.args();
    args.bytes(digest.0.to_vec());
    args.bytes(held.digest.0.to_vec());
    args.time(until);
    args.time(now);
    args.time(expires_at);
    args.int(held.no);
    tx.execute(ROTATE, args).await?;
    Ok(())
}

/// Ends a token with all of its secrets.
pub(crate) async fn revoke(tx: &mut Tx<'_>, no: i64, now: Timestamp) -> Result<(), Error> {
    let mut args = tx.args();
    args.time(now);
    args.int(no);
    tx.execute(REVOKE, args).await?;
    Ok(())
}

fn names_text(names: &[Arc<str>]) -> Arc<str> {
    Arc::from(serde_json::json!(names).to_string())
}

fn token(row: &Row) -> Result<TokenRow, Error> {
    let mut c = Columns::of(row);
    let no = c.int()?;
    let damaged = |what: &str| Error::Damaged(format!("token {no} has no valid {what}"));
    let id = TokenId::parse(c.word()?).ok_or_else(|| damaged("id"))?;
    let kind = match c.word()? {
        "user" => Kind::User,
        "service" => Kind::Service,
        _ => return Err(damaged("kind")),
    };
    let name = Name::new(&c.text()?).map_err(|_| damaged("name"))?;
    let tenant = c.text()?;
    let scopes = c.word()?.parse().map_err(|_| damaged("scopes"))?;
    let methods = c.opt_text()?;
    let methods: Option<Vec<Arc<str>>> = methods.map(|text| json(&text)).transpose()?;
    let agents = c.opt_text()?;
    let agents: Option<Vec<Arc<str>>> = agents.map(|text| json(&text)).transpose()?;
    let note = c.text()?;
    let digest = |bytes: &[u8]| bytes.try_into().map(Digest).map_err(|_| damaged("digest"));
    let present = digest(c.bytes()?)?;
    let previous = c.opt_bytes()?.map(digest).transpose()?;
    let previous_until = c.opt_time()?;
    let created_at = c.time()?;
    Ok(TokenRow {
        no,
        id,
        owner: Owner { kind, name, tenant },
        scopes,
        methods: methods.map(Arc::from),
        agents: agents.map(Arc::from),
        note,
        digest: present,
        previous: previous.zip(previous_until),
        created_at,
        rotated_at: c.opt_time()?,
        expires_at: c.opt_time()?,
        revoked_at: c.opt_time()?,
        // The minute in which it was made had begun before.
        last_used_at: c.opt_time()?.map(|at| at.max(created_at)),
    })
}

/// Columns that [`token`] reads, in its order.
const TOKEN: &str = "no, id, kind, name, tenant, scopes, methods, agents, note, digest, \
    previous, previous_until, created_at, rotated_at, expires_at, revoked_at, last_used_at";
const INSERT: &str = "INSERT INTO tokens
    (id, kind, name, tenant, scopes, methods, agents, note, digest, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const ROTATE: &str = "UPDATE tokens
    SET digest = $1, previous = $2, previous_until = $3, rotated_at = $4, expires_at = $5
    WHERE no = $6";
const REVOKE: &str = "UPDATE tokens SET revoked_at = $1 WHERE no = $2";
const USED: &str = "UPDATE tokens SET last_used_at = $1 WHERE id = $2";
const COUNT: &str = "SELECT count(*) FROM tokens";
const STATES: &str = "SELECT count(*),
    count(CASE WHEN revoked_at IS NULL AND expires_at <= $1 THEN 1 END),
    count(revoked_at)
    FROM tokens";
const NEXT_EXPIRY: &str =
    "SELECT min(expires_at) FROM tokens WHERE revoked_at IS NULL AND expires_at > $1";
const ANY: &str = "SELECT no FROM tokens ORDER BY no LIMIT 1";
const SWEEP: &str = "DELETE FROM tokens WHERE no IN
    (SELECT no FROM tokens
    WHERE coalesce(revoked_at, expires_at) < $1
    ORDER BY no LIMIT $2)";
