//! The audit log: rows beside changes are written in the same transaction as the change (`store::append`), all others
//! here.

use super::throttle::Throttle;
use super::{Action, By, Entry, OTHERS, Origin};
use crate::caller::{ANONYMOUS, Caller};
use crate::scopes::Scope;
use crate::store::{AuditFilter, AuditRow, AuthStore, Error};
use crate::token::TokenId;
use serde_json::json;
use std::mem;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_clock::SharedClock;
use taskledger_domain::Timestamp;

/// Addresses, with a reason and a token each, whose failed logins are counted apart within a minute; beyond the first,
/// without the token.
const FAILURES_MAX: [usize; 2] = [1_000, 2_000];
/// Flows, and who reads them, whose reads by others are counted apart within a minute; beyond the first, all that
/// somebody reads together, beyond the second, whatever their credentials and addresses.
const READS_MAX: [usize; 3] = [10_000, 11_000, 12_000];
/// Callers, with an action and a reason each, whose refusals are counted apart within a minute; beyond the first,
/// whatever their credentials and addresses.
const DENIED_MAX: [usize; 2] = [1_000, 2_000];

/// Rows of one transaction: a slow database writes them well within the time that the store has for one order, however
/// many are due.
const ROWS_MAX: usize = 500;

/// An address, why its credentials did not hold, and the token, if its secret was shown: many failures for one reason
/// or of one token do not hide others.
type FailureKey = (Arc<str>, &'static str, Option<TokenId>);

/// Whose rows are one. What somebody does with another credential, or from another network, has its own: nobody hides
/// behind somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    /// A caller, with this credential, from this network.
    With {
        actor: Arc<str>,
        token: Option<Arc<str>>,
        network: Option<Arc<str>>,
    },
    /// A caller, whatever the credential and the address: too many are counted to tell them apart.
    Any(Arc<str>),
    /// So many callers are counted that none of them is named.
    Others,
}

impl Who {
    fn of(by: &By) -> Self {
        Self::With {
            actor: by.principal.clone(),
            token: by.token.clone(),
            network: by.address.as_ref().map(network_of),
        }
    }

    /// The caller alone.
    fn alone(&self) -> Self {
        match self {
            Self::With { actor, .. } | Self::Any(actor) => Self::Any(actor.clone()),
            Self::Others => Self::Others,
        }
    }

    /// Who is named, by whose `last` call.
    fn named(&self, last: &By) -> By {
        match self {
            Self::With { .. } => last.clone(),
            Self::Any(actor) => By::named(actor),
            Self::Others => By::others(),
        }
    }
}

/// A caller, and what it read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ReadKey {
    who: Who,
    seen: Seen,
}

/// A caller, and what it may not do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DeniedKey {
    who: Who,
    action: Action,
    why: Why,
}

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Why {
    /// The credentials lack it.
    Scope(Scope),
    /// A rule, in words.
    Rule(Arc<str>),
}

/// The last of several that were refused.
#[derive(Debug, Clone)]
struct Denied {
    by: By,
    object: Option<Arc<str>>,
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
/// second, later ones together: a row a minute, and what was refused also when somebody reads the log. A caller is told
/// apart by credential and network.
pub struct AuditLog {
    store: Arc<AuthStore>,
    clock: SharedClock,
    failures: Mutex<Throttle<FailureKey, ()>>,
    reads: Mutex<Throttle<ReadKey, By>>,
    denied: Mutex<Throttle<DeniedKey, Denied>>,
    /// Held from taking counts until they are written, so that each is in memory or in the table for whoever reads.
    writing: tokio::sync::Mutex<()>,
}

/// Counts that were taken to be written. Unless they are, they go back: also when nobody waits for it any more.
struct Taken<'a> {
    log: &'a AuditLog,
    failures: Vec<(FailureKey, u64, ())>,
    reads: Vec<(ReadKey, u64, By)>,
    denied: Vec<(DeniedKey, u64, Denied)>,
}

impl Taken<'_> {
    fn entries(&self) -> Vec<Entry> {
        let failures = self.failures.iter();
        let failures = failures.map(|((address, reason, token), count, ())| {
            failed(address, *count, (*reason, token.as_ref()))
        });
        let reads = self.reads.iter();
        let reads = reads.map(|(key, count, by)| seen(key, *count, by));
        let denied = self.denied.iter();
        let denied = denied.map(|(key, count, last)| refused(key, *count, last));
        failures.chain(reads).chain(denied).collect()
    }

    /// The first `rows` of [`Self::entries`] are written.
    fn written(&mut self, mut rows: usize) {
        rows -= remove_first(&mut self.failures, rows);
        rows -= remove_first(&mut self.reads, rows);
        remove_first(&mut self.denied, rows);
    }
}

/// Removes up to `count` of the first elements. Returns how many.
fn remove_first<T>(all: &mut Vec<T>, count: usize) -> usize {
    all.drain(..count.min(all.len())).count()
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (key, count, ()) in mem::take(&mut self.failures) {
            self.log.failures().again(key, count, ());
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
        Self {
            store,
            clock,
            failures: Mutex::new(Throttle::new(&FAILURES_MAX, broader_failure)),
            reads: Mutex::new(Throttle::new(&READS_MAX, broader_read)),
            denied: Mutex::new(Throttle::new(&DENIED_MAX, broader_denied)),
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
            self.store.append(&mut tx, entry, now).await?;
            Ok(tx.commit().await?)
        };
        self.store.order(work).await
    }

    /// Notes that credentials were refused; `reason` is a word such as `unknown`, and `token` the id of the token, if
    /// its secret was shown. IPv6 addresses are counted by their network (/64). Cost: O(1).
    pub fn login_failed(&self, from: IpAddr, reason: &'static str, token: Option<TokenId>) {
        self.failures().note((network(from), reason, token), ());
    }

    /// Notes that a caller with `users:any` read something of somebody else. Cost: O(1).
    pub fn read(&self, caller: &Caller, origin: &Origin, seen: Seen) {
        let by = By::call(caller, origin);
        let who = Who::of(&by);
        self.reads().note(ReadKey { who, seen }, by);
    }

    /// Notes that a caller was refused something because its credentials lack a scope. Cost: O(1).
    pub fn denied_for(
        &self,
        caller: &Caller,
        origin: &Origin,
        change: (Action, Option<Arc<str>>),
        scope: Scope,
    ) {
        self.deny(By::call(caller, origin), change, Why::Scope(scope));
    }

    /// Notes that a caller was refused something by a rule, whose words are few. Cost: O(1).
    pub(crate) fn denied_by(
        &self,
        caller: &Caller,
        origin: &Origin,
        change: (Action, Option<Arc<str>>),
        rule: &str,
    ) {
        self.deny(By::call(caller, origin), change, Why::Rule(Arc::from(rule)));
    }

    fn deny(&self, by: By, (action, object): (Action, Option<Arc<str>>), why: Why) {
        let who = Who::of(&by);
        let key = DeniedKey { who, action, why };
        self.denied().note(key, Denied { by, object });
    }

    /// Writes what was noted and is due. Returns how many rows.
    ///
    /// # Errors
    /// [`Error`]: what is not written is still noted.
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

    async fn write_taken(&self, mut taken: Taken<'_>, now: Timestamp) -> Result<usize, Error> {
        let entries = taken.entries();
        for rows in entries.chunks(ROWS_MAX) {
            self.store.order(self.write_all(rows, now)).await?;
            taken.written(rows.len());
        }
        Ok(entries.len())
    }

    async fn write_all(&self, entries: &[Entry], now: Timestamp) -> Result<(), Error> {
        let mut tx = self.store.write().await?;
        for entry in entries {
            self.store.append(&mut tx, entry, now).await?;
        }
        Ok(tx.commit().await?)
    }

    fn failures(&self) -> MutexGuard<'_, Throttle<FailureKey, ()>> {
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

fn broader_failure((address, reason, _): &FailureKey, place: usize) -> FailureKey {
    match place {
        0 => (address.clone(), *reason, None),
        _ => (Arc::from(OTHERS), *reason, None),
    }
}

/// Reads of each kind stay apart.
fn broader_read(key: &ReadKey, place: usize) -> ReadKey {
    ReadKey {
        who: match place {
            0 => key.who.clone(),
            1 => key.who.alone(),
            _ => Who::Others,
        },
        seen: Seen {
            action: key.seen.action,
            object: Some(Arc::from(OTHERS)),
            owner: None,
        },
    }
}

/// Refusals of each kind stay apart.
fn broader_denied(key: &DeniedKey, place: usize) -> DeniedKey {
    let who = match place {
        0 => key.who.alone(),
        _ => Who::Others,
    };
    DeniedKey { who, ..key.clone() }
}

fn failed(
    address: &Arc<str>,
    count: u64,
    (reason, token): (&'static str, Option<&TokenId>),
) -> Entry {
    let by = By {
        token: token.map(|id| id.as_str().clone()),
        address: Some(address.clone()),
        ..By::named(ANONYMOUS)
    };
    let detail = json!({"count": count, "reason": reason});
    Entry::refused(by, Action::LoginFailed, None).with(detail)
}

fn seen(ReadKey { who, seen }: &ReadKey, count: u64, last: &By) -> Entry {
    let mut detail = json!({"count": count});
    if let Some(owner) = &seen.owner {
        detail["owner"] = json!(owner);
    }
    Entry::done(who.named(last), seen.action, seen.object.clone()).with(detail)
}

fn refused(DeniedKey { who, action, why }: &DeniedKey, count: u64, last: &Denied) -> Entry {
    let object = match who {
        Who::With { .. } | Who::Any(_) => last.object.clone(),
        Who::Others => Some(Arc::from(OTHERS)),
    };
    let detail = match why {
        Why::Scope(scope) => json!({"count": count, "scope": scope.as_str()}),
        Why::Rule(rule) => json!({"count": count, "reason": rule}),
    };
    Entry::refused(who.named(&last.by), *action, object).with(detail)
}

/// What the address of a call is counted as.
fn network_of(address: &Arc<str>) -> Arc<str> {
    match address.parse() {
        Ok(parsed @ IpAddr::V6(_)) => network(parsed),
        Ok(IpAddr::V4(_)) | Err(_) => address.clone(),
    }
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
