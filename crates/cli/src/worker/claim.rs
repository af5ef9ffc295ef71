//! Parses claims as the server sends them.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;
use taskledger_domain::Timestamp;

/// The grace of a task whose `params` name none.
const CANCEL_GRACE_DEFAULT: Duration = Duration::from_secs(30);
/// Between two renewals at least, however short the grace is: each is a call.
const RENEWAL_MIN: Duration = Duration::from_secs(1);
/// After a time-out or a deadline, when the server is asked: its answer says that the time is up, the second time
/// also of a server that was busy.
const TIME_UP_PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// A lease whose length makes no sense.
const LEASE_DEFAULT: Duration = Duration::from_secs(30);

/// The answer to `tasks.claim`.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub(super) claims: Vec<Claim>,
    /// An operator wants the worker to finish what it has and end.
    #[serde(default)]
    pub(super) draining: bool,
}

/// A task that is this worker's for the time of a lease.
#[derive(Debug, Deserialize)]
pub(super) struct Claim {
    task: Task,
    pub(super) input: Map<String, Value>,
    #[serde(default)]
    pub(super) context: Context,
    pub(super) lease: Lease,
}

#[derive(Debug, Deserialize)]
struct Task {
    id: String,
    #[serde(default)]
    schemas: Option<Map<String, Value>>,
    #[serde(default)]
    params: Option<Map<String, Value>>,
}

/// What belongs to the attempt beside its input.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Context {
    #[serde(default)]
    pub(super) run_id: Option<String>,
    #[serde(default)]
    pub(super) traceparent: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<f64>,
    #[serde(default)]
    deadline: Option<String>,
}

/// The lease of this attempt: its token, the attempt's number, and its times.
#[derive(Debug, Deserialize)]
pub(super) struct Lease {
    pub(super) token: String,
    pub(super) attempt: u64,
    #[serde(default)]
    expires_at: String,
    lease_seconds: f64,
}

impl Claim {
    pub(super) fn task_id(&self) -> &str {
        &self.task.id
    }

    /// Empty when the task names none.
    pub(super) fn method(&self) -> &str {
        let method = self.task.schemas.as_ref().and_then(|it| it.get("method"));
        method.and_then(Value::as_str).unwrap_or_default()
    }

    /// Between two renewals: a third of the lease, or of the grace if that is shorter, because a cancellation is heard
    /// of by the next renewal, and after the grace the server says nothing of it any more.
    pub(super) fn renewal(&self) -> Duration {
        let of_grace = (self.cancel_grace() / 3).max(RENEWAL_MIN);
        self.third_of_lease().min(of_grace)
    }

    /// Times after the claim at which the lease is renewed in any case: when the time of the attempt is up, no event
    /// reaches this worker.
    pub(super) fn asks(&self) -> Vec<Duration> {
        let timeout = self.context.timeout_seconds.and_then(duration);
        let up = timeout.into_iter().chain(self.until_deadline());
        up.flat_map(|up| TIME_UP_PAUSES.map(|pause| up.saturating_add(pause)))
            .collect()
    }

    /// From the claim to the deadline of the task, by the clock of the server alone: this machine's may differ.
    fn until_deadline(&self) -> Option<Duration> {
        let deadline = Timestamp::parse(self.context.deadline.as_deref()?).ok()?;
        let expires_at = Timestamp::parse(&self.lease.expires_at).ok()?;
        let lease_ms = duration(self.lease.lease_seconds)?.as_millis();
        let left = deadline.plus_ms(u64::try_from(lease_ms).ok()?);
        Some(Duration::from_millis(left.ms_since(expires_at)))
    }

    /// How long the lease may go without a renewal before it is in danger.
    pub(super) fn third_of_lease(&self) -> Duration {
        duration(self.lease.lease_seconds).unwrap_or(LEASE_DEFAULT) / 3
    }

    /// Between SIGTERM and SIGKILL when the task is cancelled.
    pub(super) fn cancel_grace(&self) -> Duration {
        let params = self.task.params.as_ref();
        let seconds = params.and_then(|it| it.get("cancel_grace_seconds"));
        let grace = seconds.and_then(Value::as_f64).and_then(duration);
        grace.unwrap_or(CANCEL_GRACE_DEFAULT)
    }
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_server_is_asked_when_the_time_is_up() {
        let mut claim = claim(Value::Null);
        assert!(claim.asks().is_empty());
        claim.context.timeout_seconds = Some(2.0);
        claim.context.deadline = Some("2026-01-15T10:30:04.500000Z".to_owned());
        claim.lease.expires_at = "2026-01-15T10:30:06.000000Z".to_owned();
        let asks: Vec<u128> = claim.asks().iter().map(Duration::as_millis).collect();
        assert_eq!(asks, [2050, 3000, 4550, 5500]);
        claim.context.deadline = Some("2020-01-15T10:30:04Z".to_owned());
        assert_eq!(claim.asks()[2..], TIME_UP_PAUSES, "it has passed");
    }

    fn claim(params: Value) -> Claim {
        serde_json::from_value(json!({
            "task": {"id": "t", "schemas": {"method": "m"}, "params": params, "status": "in_progress"},
            "input": {}, "context": {"run_id": "r", "user_id": null},
            "lease": {"token": "x", "attempt": 2, "expires_at": "..", "lease_seconds": 6},
        }))
        .unwrap()
    }

    #[test]
    fn a_lease_is_renewed_at_a_third_of_it_or_of_the_grace() {
        let plain = claim(Value::Null);
        assert_eq!((plain.task_id(), plain.method()), ("t", "m"));
        assert_eq!(plain.renewal(), Duration::from_secs(2));
        assert_eq!(plain.cancel_grace(), Duration::from_secs(30));
        let own = claim(json!({"cancel_grace_seconds": 0.5}));
        assert_eq!(own.cancel_grace(), Duration::from_millis(500));
        let long = |params| {
            let mut claim = claim(params);
            claim.lease.lease_seconds = 3600.0;
            claim.renewal()
        };
        assert_eq!(long(Value::Null), Duration::from_secs(10));
        let grace = |seconds: f64| long(json!({"cancel_grace_seconds": seconds}));
        assert_eq!(grace(6.0), Duration::from_secs(2));
        assert_eq!(grace(3600.0), Duration::from_secs(1200));
        assert_eq!(grace(0.0), RENEWAL_MIN);
    }
}
