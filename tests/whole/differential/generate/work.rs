//! What workers say: mostly of attempts that they hold, sometimes again, sometimes too late.

use super::Generator;
use crate::differential::oracle::{Oracle, State};
use crate::differential::script::Call;
use serde_json::json;

/// Microseconds that a lease holds at least after the start of a server.
const ARRIVAL_MICROS: i64 = 11_000_000;

/// Whether a restart would make leases longer.
pub(super) fn has_short_leases(world: &Oracle) -> bool {
    let held = world.leases.values().filter(|l| l.state == State::Held);
    held.into_iter()
        .any(|l| l.until - world.now < ARRIVAL_MICROS)
}

fn claimable(world: &Oracle) -> Vec<&String> {
    let ready = world.order.iter();
    ready.filter(|s| world.is_claimable(s)).collect()
}

impl Generator {
    pub(super) fn has_work(&self, world: &Oracle) -> bool {
        !world.leases.is_empty() || !claimable(world).is_empty()
    }

    /// A call of a worker.
    pub(super) fn work(&mut self, world: &Oracle) -> Call {
        let ready = claimable(world);
        if world.leases.is_empty() || (!ready.is_empty() && self.random.chance(45)) {
            return self.claim(world, &ready);
        }
        let held = world.leases.iter().filter(|(_, l)| l.state == State::Held);
        let held: Vec<_> = held.collect();
        let all: Vec<_> = world.leases.iter().collect();
        let some = if held.is_empty() || self.random.chance(25) {
            all
        } else {
            held
        };
        let (token, lease) = *self.random.pick(&some);
        let mut params =
            json!({"task_id": format!("@{}", lease.task), "lease": format!("@{token}")});
        if self.random.chance(4) {
            params["task_id"] = self.task(world);
        }
        let r = &mut self.random;
        let method = match r.below(10) {
            0..=3 => {
                params["output"] = json!({"n": r.below(2)});
                "tasks.complete"
            }
            4..=6 => {
                params["error"] = json!(format!("broke {}", r.below(2)));
                if r.chance(40) {
                    params["retryable"] = json!(r.chance(50));
                }
                "tasks.fail"
            }
            7 => "tasks.release",
            _ => {
                if r.chance(30) {
                    params["lease_seconds"] = json!(*r.pick(&[5, 60, 120]));
                }
                "tasks.renew"
            }
        };
        Call::new(method, params)
    }

    fn claim(&mut self, world: &Oracle, ready: &[&String]) -> Call {
        let alone = ready
            .iter()
            .all(|s| world.task(s).flow == world.task(ready[0]).flow);
        let mut params = if alone && self.random.chance(60) {
            json!({"methods": ["far"], "max": 1 + self.random.below(3)})
        } else if ready.is_empty() || self.random.chance(10) {
            json!({"task_id": self.task(world)})
        } else {
            json!({"task_id": format!("@{}", self.random.pick(ready))})
        };
        if self.random.chance(40) {
            params["lease_seconds"] = json!(*self.random.pick(&[5, 20, 60]));
        }
        Call::new("tasks.claim", params)
    }
}
