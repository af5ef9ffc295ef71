//! The audit log: rows beside changes are written with them (`store::append`); everything else here.

use super::throttle::Throttle;
use super::{Action, By, Entry, Origin};
use crate::caller::{ANONYMOUS, Caller};
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
/// Stands for the addresses and flows beyond these.
const OTHERS: &str = "others";

/// What is told of a failed login.
#[derive(Debug, Clone)]
struct Failure {
    reason: &'static str,
    token: Option<TokenId>,
}

/// An address, and why its credentials did not hold: many failures for one reason do not hide one for another.
type FailureKey = (Arc<str>, &'static str);

/// A caller, and the flow that it read.
type ReadKey = (Arc<str>, Arc<str>);

/// The audit log of a server. Events that change nothing are counted in memory and never hold up a call. The first of
/// an address and reason, or of a caller and flow, is written within a second, later ones together: a row a minute, and
/// failed logins also when somebody reads the log.
pub struct AuditLog {
    store: Arc<AuthStore>,
    clock: SharedClock,
    failures: Mutex<Throttle<FailureKey, Failure>>,
    reads: Mutex<Throttle<ReadKey, By>>,
    /// Held from taking counts until they are written, so that each is in memory or in the table for whoever reads.
    writing: tokio::sync::Mutex<()>,
}

/// Counts that were taken to be written. Unless they are, they go back: also when nobody waits for it any more.
struct Taken<'a> {
    log: &'a AuditLog,
    failures: Vec<(FailureKey, u64, Failure)>,
    reads: Vec<(ReadKey, u64, By)>,
}

impl Taken<'_> {
    fn entries(&self) -> Vec<Entry> {
        let failures = self.failures.iter();
        let failures =
            failures.map(|((address, _), count, failure)| failed(address, *count, failure));
        let reads = self.reads.iter();
        let reads = reads.map(|((_, flow), count, by)| seen(flow, *count, by));
        failures.chain(reads).collect()
    }

    fn written(mut self) {
        self.failures.clear();
        self.reads.clear();
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
        let others: Arc<str> = Arc::from(OTHERS);
        Self {
            store,
            clock,
            failures: Mutex::new(Throttle::new(FAILURES_MAX, (others.clone(), OTHERS))),
            reads: Mutex::new(Throttle::new(READS_MAX, (others.clone(), others))),
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

    /// Notes that a caller with `users:any` read a flow of somebody else. Cost: O(1).
    pub fn flow_read(&self, caller: &Caller, origin: &Origin, flow: Arc<str>) {
        let key = (caller.actor().clone(), flow);
        self.reads().note(key, By::call(caller, origin));
    }

    /// Writes what was noted and is due. Returns how many rows.
    ///
    /// # Errors
    /// [`Error`]: nothing is written, and all of it is still noted.
    pub async fn flush(&self) -> Result<usize, Error> {
        let _writing = self.writing.lock().await;
        let now = self.clock.now();
        let (failures, reads) = (self.failures().take(now), self.reads().take(now));
        self.write_taken(failures, reads, now).await
    }

    /// Writes all failed logins that were counted. Cost: O(keys), and a transaction if there are any.
    async fn write_failures(&self) -> Result<usize, Error> {
        let _writing = self.writing.lock().await;
        let now = self.clock.now();
        let failures = self.failures().take_all(now);
        self.write_taken(failures, Vec::new(), now).await
    }

    async fn write_taken(
        &self,
        failures: Vec<(FailureKey, u64, Failure)>,
        reads: Vec<(ReadKey, u64, By)>,
        now: Timestamp,
    ) -> Result<usize, Error> {
        let taken = Taken {
            log: self,
            failures,
            reads,
        };
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

    /// Rows with a number below `before`, the newest first; see [`AuthStore::audit`]. Failed logins that this server
    /// has counted since their last row are written first if the filter admits them, so that the counts add up to all
    /// of them; if they cannot be written, the rows that there are are shown, and the counts are kept.
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
            && admits_failures(filter, self.clock.now())
            && let Err(error) = self.write_failures().await
        {
            tracing::warn!(error = %error, "counted failed logins cannot be written; the audit log is shown without them");
        }
        self.store.audit(filter, before, limit).await
    }
}

/// Whether rows of failed logins that are written now can match.
fn admits_failures(filter: &AuditFilter, now: Timestamp) -> bool {
    let is = |wanted: &Option<Arc<str>>, text: &str| wanted.as_deref().is_none_or(|it| it == text);
    is(&filter.action, Action::LoginFailed.as_str())
        && is(&filter.principal, ANONYMOUS)
        && filter.object.is_none()
        && filter.until.is_none_or(|until| now < until)
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

fn seen(flow: &Arc<str>, count: u64, by: &By) -> Entry {
    Entry::done(by.clone(), Action::FlowRead, Some(flow.clone())).with(json!({"count": count}))
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
