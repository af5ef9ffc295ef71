//! The audit log: rows beside changes are written in the same transaction as the change (`store::append`), all others
//! here.

use super::throttle::Throttle;
use super::{Action, By, Entry, OTHERS, Origin};
use crate::caller::{ANONYMOUS, Caller};
use crate::scopes::Scope;
use crate::store::{AuditFilter, AuditRow, AuthStore, Error, append};
use crate::token::TokenId;
use serde_json::json;
use std::mem;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_clock::SharedClock;
use taskledger_domain::Timestamp;

/// Addresses, with a reason each, whose failed logins are counted apart within a minute.
const FAILURES_MAX: usize = 1_000;
/// Flows whose reads by others are counted apart within a minute.
const READS_MAX: usize = 10_000;
/// Callers, with an action each, whose refusals are counted apart within a minute.
const DENIED_MAX: usize = 1_000;

/// What is told of a failed login.
#[derive(Debug, Clone)]
struct Failure {
    reason: &'static str,
    token: Option<TokenId>,
}

/// An address, and why its credentials did not hold: many failures for one reason do not hide one for another.
type FailureKey = (Arc<str>, &'static str);

/// A caller, and what it read; no caller: of reads beyond [`READS_MAX`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ReadKey {
    actor: Option<Arc<str>>,
    seen: Seen,
}

/// A caller, and what it may not do; no caller: of those beyond [`DENIED_MAX`].
type DeniedKey = (Option<Arc<str>>, Action);

/// What is told of a refusal.
#[derive(Debug, Clone)]
struct Denied {
    by: By,
    action: Action,
    object: Option<Arc<str>>,
    scope: Scope,
}

/// Something of somebody else that a caller with `users:any` has read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seen {
    /// How it was read.
    pub action: Action,
    /// What: a flow, a name, `*` for a list.
    pub object: Option<Arc<str>>,
    /// The owner of the object, where the object's name does not say it.
    pub owner: Option<Arc<str>>,
}

/// The audit log of a server. Events that change nothing are counted in memory and never hold up a call. The first of
/// an address and reason, of a caller and what it read, or of a caller and what it may not do, is written within a
/// second, later ones together: a row a minute, and what was refused also when somebody reads the log.
pub struct AuditLog {
    store: Arc<AuthStore>,
    clock: SharedClock,
    failures: Mutex<Throttle<FailureKey, Failure>>,
    reads: Mutex<Throttle<ReadKey, By>>,
    denied: Mutex<Throttle<DeniedKey, Denied>>,
    /// Held from taking counts until they are written, so that each is in memory or in the table for whoever reads.
    writing: tokio::sync::Mutex<()>,
}

/// Counts that were taken to be written. Unless they are, they go back: also when nobody waits for it any more.
struct Taken<'a> {
    log: &'a AuditLog,
    failures: Vec<(FailureKey, u64, Failure)>,
    reads: Vec<(ReadKey, u64, By)>,
    denied: Vec<(DeniedKey, u64, Denied)>,
}

impl Taken<'_> {
    fn entries(&self) -> Vec<Entry> {
        let failures = self.failures.iter();
        let failures =
            failures.map(|((address, _), count, failure)| failed(address, *count, failure));
        let reads = self.reads.iter();
        let reads = reads.map(|(key, count, by)| seen(key, *count, by));
        let denied = self.denied.iter();
        let denied = denied.map(|((actor, _), count, last)| refused(actor.is_some(), *count, last));
        failures.chain(reads).chain(denied).collect()
    }

    fn written(mut self) {
        self.failures.clear();
        self.reads.clear();
        self.denied.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (key, count, failure) in mem::take(&mut self.failures) {
            self.log.failures().again(key, count, failure);
        }
        for (key, count, by) in mem::take(&mut self.reads) {
            self.log.reads().again(key, count, by);
        }
        for (key, count, denied) in mem::take(&mut self.denied) {
            self.log.denied().again(key, count, denied);
        }
    }
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

impl AuditLog {
    /// The audit log of a store.
    #[must_use]
    pub fn new(store: Arc<AuthStore>, clock: SharedClock) -> Self {
        let of_address = |(_, reason): &FailureKey| (Arc::from(OTHERS), *reason);
        let of_caller = |(_, action): &DeniedKey| (None, *action);
        Self {
            store,
            clock,
            failures: Mutex::new(Throttle::new(FAILURES_MAX, of_address)),
            reads: Mutex::new(Throttle::new(READS_MAX, of_others)),
            denied: Mutex::new(Throttle::new(DENIED_MAX, of_caller)),
            writing: tokio::sync::Mutex::new(()),
        }
    }

    /// Writes one row now.
    ///
    /// # Errors
    /// [`Error`]: it is not written. Whoever is about to change something must not.
    pub async fn record(&self, entry: &Entry) -> Result<(), Error> {
        let now = self.clock.now();
        let work = async {
            let mut tx = self.store.write().await?;
            append(&mut tx, entry, now).await?;
            Ok(tx.commit().await?)
        };
        self.store.order(work).await
    }

    /// Notes that credentials were refused; `reason` is a word such as `unknown`, and `token` the id of the token, if
    /// its secret was shown. IPv6 addresses are counted by their network (/64). Cost: O(1).
    pub fn login_failed(&self, from: IpAddr, reason: &'static str, token: Option<TokenId>) {
        let failure = Failure { reason, token };
        self.failures().note((network(from), reason), failure);
    }

    /// Notes that a caller with `users:any` read something of somebody else. Cost: O(1).
    pub fn read(&self, caller: &Caller, origin: &Origin, seen: Seen) {
        let actor = Some(caller.actor().clone());
        let by = By::call(caller, origin);
        self.reads().note(ReadKey { actor, seen }, by);
    }

    /// Notes that a caller was refused something because its credentials lack a scope. Cost: O(1).
    pub fn denied_for(
        &self,
        caller: &Caller,
        origin: &Origin,
        (action, object): (Action, Option<Arc<str>>),
        scope: Scope,
    ) {
        let denied = Denied {
            by: By::call(caller, origin),
            action,
            object,
            scope,
        };
        let key = (Some(caller.actor().clone()), action);
        self.denied().note(key, denied);
    }

    /// Writes what was noted and is due. Returns how many rows.
    ///
    /// # Errors
    /// [`Error`]: nothing is written, and all of it is still noted.
    pub async fn flush(&self) -> Result<usize, Error> {
        let _writing = self.writing.lock().await;
        let now = self.clock.now();
        let taken = Taken {
            log: self,
            failures: self.failures().take(now),
            reads: self.reads().take(now),
            denied: self.denied().take(now),
        };
        self.write_taken(taken, now).await
    }

    /// Writes all that was refused and counted; `with_failures`: failed logins too. Cost: O(keys), and a transaction if
    /// there are any.
    async fn write_refusals(&self, with_failures: bool) -> Result<usize, Error> {
        let _writing = self.writing.lock().await;
        let now = self.clock.now();
        let failures = match with_failures {
            true => self.failures().take_all(now),
            false => Vec::new(),
        };
        let taken = Taken {
            log: self,
            failures,
            reads: Vec::new(),
            denied: self.denied().take_all(now),
        };
        self.write_taken(taken, now).await
    }

    async fn write_taken(&self, taken: Taken<'_>, now: Timestamp) -> Result<usize, Error> {
        let entries = taken.entries();
        if entries.is_empty() {
            return Ok(0);
        }
        self.store.order(self.write_all(&entries, now)).await?;
        taken.written();
        Ok(entries.len())
    }

    async fn write_all(&self, entries: &[Entry], now: Timestamp) -> Result<(), Error> {
        let mut tx = self.store.write().await?;
        for entry in entries {
            append(&mut tx, entry, now).await?;
        }
        Ok(tx.commit().await?)
    }

    fn failures(&self) -> MutexGuard<'_, Throttle<FailureKey, Failure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reads(&self) -> MutexGuard<'_, Throttle<ReadKey, By>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn denied(&self) -> MutexGuard<'_, Throttle<DeniedKey, Denied>> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows with a number below `before`, the newest first; see [`AuthStore::audit`]. What this server has refused and
    /// counted since the last rows about it is written first if the filter admits rows of now, so that the counts add
    /// up to all of it; if they cannot be written, the rows that there are are shown, and the counts are kept.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRow>, Error> {
        // Later pages hold what is older.
        if before.is_none()
            && filter.until.is_none_or(|until| self.clock.now() < until)
            && let Err(error) = self.write_refusals(admits_failures(filter)).await
        {
            tracing::warn!(error = %error, "counted refusals cannot be written; the audit log is shown without them");
        }
        self.store.audit(filter, before, limit).await
    }
}

/// Whether rows of failed logins can match, but for their time.
fn admits_failures(filter: &AuditFilter) -> bool {
    let is = |wanted: &Option<Arc<str>>, text: &str| wanted.as_deref().is_none_or(|it| it == text);
    is(&filter.action, Action::LoginFailed.as_str())
        && is(&filter.principal, ANONYMOUS)
        && filter.object.is_none()
}

/// As what a read is counted beyond [`READS_MAX`]: reads of each kind stay apart.
fn of_others(key: &ReadKey) -> ReadKey {
    ReadKey {
        actor: None,
        seen: Seen {
            action: key.seen.action,
            object: Some(Arc::from(OTHERS)),
            owner: None,
        },
    }
}

fn failed(address: &Arc<str>, count: u64, failure: &Failure) -> Entry {
    let by = By {
        principal: Arc::from(ANONYMOUS),
        token: failure.token.as_ref().map(|id| id.as_str().clone()),
        address: Some(address.clone()),
        request: None,
    };
    Entry::refused(by, Action::LoginFailed, None)
        .with(json!({"count": count, "reason": failure.reason}))
}

fn seen(ReadKey { actor, seen }: &ReadKey, count: u64, last: &By) -> Entry {
    let mut detail = json!({"count": count});
    if let Some(owner) = &seen.owner {
        detail["owner"] = json!(owner);
    }
    let by = match actor {
        Some(_) => last.clone(),
        None => By::others(),
    };
    Entry::done(by, seen.action, seen.object.clone()).with(detail)
}

fn refused(is_of_one: bool, count: u64, last: &Denied) -> Entry {
    let (by, object) = match is_of_one {
        true => (last.by.clone(), last.object.clone()),
        false => (By::others(), Some(Arc::from(OTHERS))),
    };
    Entry::refused(by, last.action, object)
        .with(json!({"count": count, "scope": last.scope.as_str()}))
}

/// What an address is counted as.
fn network(address: IpAddr) -> Arc<str> {
    Arc::from(match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn addresses_of_one_network_are_counted_together() {
        for (address, counted) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ] {
            assert_eq!(&*network(address.parse().expect("an address")), counted);
        }
    }
}
