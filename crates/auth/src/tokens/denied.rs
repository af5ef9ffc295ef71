//! The deny list of JWTs: kept beside the tokens, held in memory, read again when something has changed.

use super::{LOOK_UP_WAIT, Refusal, Tokens};
use crate::audit::{Action, By, Entry, Origin};
use crate::caller::Caller;
use crate::jwt::{DeniedTokens, DenyList, DenyListUnavailable, LEEWAY_SECONDS, Revocable};
use crate::scopes::Scope;
use crate::store::{self, AuthStore, DENIED_MAX, DeniedJwt, DeniedRow, Error};
use async_trait::async_trait;
use serde_json::json;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use taskledger_clock::SharedClock;
use taskledger_domain::Timestamp;
use tokio::time::timeout;

/// Age of the list at which whoever asks looks at the store first: only if nobody follows its changes.
const LOOK_AFTER_MS: u64 = 5_000;
/// Age of the list up to which it is believed while the store does not answer: as long as that of tokens.
const BELIEVED_MS: u64 = 60_000;

/// The deny list of a store. One per server.
#[derive(Debug)]
pub struct StoredDenyList {
    store: Arc<AuthStore>,
    clock: SharedClock,
    known: RwLock<Arc<DeniedTokens>>,
    /// The generation of the store that it is from; -1: none yet.
    generation: AtomicI64,
    /// When it was certainly all that the store had, in microseconds; 0: never.
    complete_at: AtomicI64,
    reading: tokio::sync::Mutex<()>,
}

impl StoredDenyList {
    pub(super) fn new(store: Arc<AuthStore>, clock: SharedClock) -> Self {
        Self {
            store,
            clock,
            known: RwLock::default(),
            generation: AtomicI64::new(-1),
            complete_at: AtomicI64::new(0),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Reads the list if the store has another generation than it. A store that does not answer changes nothing.
    pub(super) async fn follow(&self, generation: i64) {
        let asked = self.clock.now();
        if self.generation.load(Ordering::Acquire) == generation {
            self.complete_at.fetch_max(asked.0, Ordering::AcqRel);
        } else {
            self.read().await;
        }
    }

    /// Reads the list.
    async fn read(&self) {
        let _turn = self.reading.lock().await;
        let asked = self.clock.now();
        match timeout(LOOK_UP_WAIT, self.store.denied()).await {
            Ok(Ok((generation, rows))) => {
                let list = Arc::new(DeniedTokens::default());
                rows.iter().for_each(|row| add(&list, row));
                *self.known.write().unwrap_or_else(PoisonError::into_inner) = list;
                self.generation.store(generation, Ordering::Release);
                self.complete_at.fetch_max(asked.0, Ordering::AcqRel);
            }
            Ok(Err(error)) => tracing::warn!(%error, "the deny list of JWTs cannot be read"),
            Err(_) => tracing::warn!("the deny list of JWTs was not read in time"),
        }
    }

    fn known(&self) -> Arc<DeniedTokens> {
        let known = self.known.read();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_older_than(&self, ms: u64) -> bool {
        match self.complete_at.load(Ordering::Acquire) {
            0 => true,
            at => self.clock.now().ms_since(Timestamp(at)) > ms,
        }
    }
}

fn add(list: &DeniedTokens, row: &DeniedRow) {
    match &row.what {
        DeniedJwt::Id(id) => list.deny_id(&row.issuer, id),
        DeniedJwt::Subject(subject) => {
            // The clock of the issuer may be ahead.
            let until_ms = row.denied_at.0 / 1000 + LEEWAY_SECONDS * 1000;
            list.deny_subject(&row.issuer, subject, until_ms);
        }
    }
}

#[async_trait]
impl DenyList for StoredDenyList {
    async fn denies(&self, token: &Revocable<'_>) -> Result<bool, DenyListUnavailable> {
        if self.is_older_than(LOOK_AFTER_MS) {
            self.read().await;
        }
        if self.is_older_than(BELIEVED_MS) {
            return Err(DenyListUnavailable);
        }
        self.known().denies(token).await
    }
}

impl Tokens {
    /// The JWTs that are refused before they expire.
    #[must_use]
    pub const fn denied(&self) -> &Arc<StoredDenyList> {
        &self.denied
    }

    /// Refuses a JWT, or those that its subject has got up to now, on this server at once and on others within two
    /// seconds. Needs [`Scope::Admin`]. Doing it again changes nothing but the time.
    ///
    /// # Errors
    /// [`Error`]: ask again; it may be refused.
    pub async fn deny(
        &self,
        caller: &Caller,
        origin: &Origin,
        issuer: Arc<str>,
        what: DeniedJwt,
    ) -> Result<Result<DeniedRow, Refusal>, Error> {
        if !caller.may(Scope::Admin) {
            return Ok(Err(Refusal::Scope(Scope::Admin)));
        }
        let row = DeniedRow {
            issuer,
            what,
            denied_at: self.clock.wall(),
        };
        let work = async {
            let mut tx = self.store.change().await?;
            if store::count_denied(&mut tx).await? >= DENIED_MAX {
                tx.rollback().await?;
                return Ok(Err(Refusal::DeniedFull(DENIED_MAX)));
            }
            store::deny(&mut tx, &row).await?;
            let (action, object) = match &row.what {
                DeniedJwt::Id(id) => (Action::JwtDeny, id),
                DeniedJwt::Subject(subject) => (Action::SubjectDeny, subject),
            };
            let entry = Entry::done(By::call(caller, origin), action, Some(object.clone()));
            let detail = json!({"issuer": row.issuer});
            self.store
                .append(&mut tx, &entry.with(detail), row.denied_at)
                .await?;
            tx.commit().await?;
            Ok(Ok(row))
        };
        let denied = self.store.order(work).await?;
        if denied.is_ok() {
            self.denied.read().await;
        }
        Ok(denied)
    }
}
