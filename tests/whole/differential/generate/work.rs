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
    /// Whether a worker or a person has something sensible to say, or says something nevertheless.
    pub(super) fn has_work(&mut self, world: &Oracle) -> bool {
        let is_held = world.leases.values().any(|l| l.state == State::Held);
        let is_open = world.order.iter().any(|s| world.task(s).question.is_some());
        let may = is_held || is_open || !claimable(world).is_empty();
        may || (!world.leases.is_empty() && self.random.chance(25))
    }

    /// A call of a worker.
    pub(super) fn work(&mut self, world: &Oracle) -> Call {
        if self.random.chance(30)
            && let Some(answer) = self.answer(world)
        {
            return answer;
        }
        let ready = claimable(world);
        let held = world.leases.iter().filter(|(_, l)| l.state == State::Held);
        let held: Vec<_> = held.collect();
        let claims = if held.is_empty() { 85 } else { 40 };
        if world.leases.is_empty() || (!ready.is_empty() && self.random.chance(claims)) {
            return self.claim(world, &ready);
        }
        let all: Vec<_> = world.leases.iter().collect();
        let some = if held.is_empty() || self.random.chance(15) {
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
        let output = self.result();
        let request = self.question();
        let r = &mut self.random;
        let method = match r.below(17) {
            0..=3 | 13..=16 => {
                params["output"] = output;
                "tasks.complete"
            }
            10..=12 => {
                params["request"] = request;
                "tasks.suspend"
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
        let asked = world
            .order
            .iter()
            .filter(|s| world.task(s).question.is_some());
        let behind: Vec<_> = asked.flat_map(|s| world.dependents(s)).collect();
        let behind: Vec<_> = behind.into_iter().map(|(s, _)| s).collect();
        let mut params = if alone && self.random.chance(60) {
            json!({"methods": ["far"], "max": 1 + self.random.below(3)})
        } else if !behind.is_empty() && self.random.chance(40) {
            json!({"task_id": format!("@{}", self.random.pick(&behind))})
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
