//! The audit log: rows beside changes are written with them (`store::append`); everything else here.

use super::throttle::Throttle;
use super::{Action, By, Entry, Origin};
use crate::caller::{ANONYMOUS, Caller};
use crate::store::{AuditFilter, AuditRow, AuthStore, Error, append};
use crate::token::TokenId;
use serde_json::json;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_clock::SharedClock;
use taskledger_domain::Timestamp;

/// Addresses whose failed logins are counted apart within a minute.
const ADDRESSES_MAX: usize = 1_000;
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

/// A caller, and the flow that it read.
type ReadKey = (Arc<str>, Arc<str>);

/// The audit log of a server. Events that change nothing are counted in memory and written within a second,
/// at most one row a minute for each address or flow; they never hold up a call.
pub struct AuditLog {
    store: Arc<AuthStore>,
    clock: SharedClock,
    failures: Mutex<Throttle<Arc<str>, Failure>>,
    reads: Mutex<Throttle<ReadKey, By>>,
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
            failures: Mutex::new(Throttle::new(ADDRESSES_MAX, others.clone())),
            reads: Mutex::new(Throttle::new(READS_MAX, (others.clone(), others))),
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

    /// Notes that credentials were refused; `reason` is a word such as `expired`. IPv6 addresses are counted
    /// by their network (/64). Cost: O(1).
    pub fn login_failed(&self, from: IpAddr, reason: &'static str, token: Option<TokenId>) {
        let failure = Failure { reason, token };
        self.failures().note(network(from), failure);
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
        let now = self.clock.now();
        let failures = self.failures().take(now);
        let reads = self.reads().take(now);
        self.write_noted(failures, reads, now).await
    }

    async fn write_noted(
        &self,
        failures: Vec<(Arc<str>, u64, Failure)>,
        reads: Vec<(ReadKey, u64, By)>,
        now: Timestamp,
    ) -> Result<usize, Error> {
        let entries = failures
            .iter()
            .map(|(address, count, failure)| failed(address, *count, failure));
        let read = reads
            .iter()
            .map(|((_, flow), count, by)| seen(flow, *count, by));
        let entries: Vec<Entry> = entries.chain(read).collect();
        if entries.is_empty() {
            return Ok(0);
        }
        let written = self.store.order(self.write_all(&entries, now)).await;
        if written.is_err() {
            for (address, count, failure) in failures {
                self.failures().again(address, count, failure);
            }
            for (key, count, by) in reads {
                self.reads().again(key, count, by);
            }
        }
        written.map(|()| entries.len())
    }

    async fn write_all(&self, entries: &[Entry], now: Timestamp) -> Result<(), Error> {
        let mut tx = self.store.write().await?;
        for entry in entries {
            append(&mut tx, entry, now).await?;
        }
        Ok(tx.commit().await?)
    }

    fn failures(&self) -> MutexGuard<'_, Throttle<Arc<str>, Failure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reads(&self) -> MutexGuard<'_, Throttle<ReadKey, By>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows with a number below `before`, the newest first; see [`AuthStore::audit`]. Failed logins that this server has
    /// counted since their last row are written first, so that the counts add up to all of them.
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
        if before.is_none() {
            let now = self.clock.now();
            let failures = self.failures().take_all(now);
            self.write_noted(failures, Vec::new(), now).await?;
        }
        self.store.audit(filter, before, limit).await
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
