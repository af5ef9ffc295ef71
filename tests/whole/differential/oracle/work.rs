//! Section "Remote work": claims, renewals, outcomes, and ends of leases.
//!
//! A token is a symbol like an id: `@l2-4a` is the lease of the second attempt of `@4a`.

use super::runs::INTERRUPTIONS_MAX;
use super::{
    ANY_TEXT, Answer, Cancelled, Completed, Failed, InProgress, Oracle, Pending, Refusal, Symbol,
    contract, ids, refuse, time,
};
use serde_json::{Map, Value, json};

/// Seconds that a lease holds unless the claim says otherwise.
const LEASE_SECONDS: f64 = 60.0;
/// Seconds that a worker has to stop unless the task says otherwise.
const GRACE_SECONDS: f64 = 30.0;
/// Microseconds for which a task rests that was lost once.
const LOST_REST: i64 = 1_000_000;
const MICROS: f64 = 1_000_000.0;
/// Inputs of a task that is claimed are not there; wait for a person.
const UNRESOLVABLE: i64 = -31022;
const UPSTREAM_SUSPENDED: i64 = -31023;
/// The lease is not held.
pub(super) const NOT_HELD: i64 = -31010;

/// What a worker was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lease {
    pub(crate) task: Symbol,
    pub(crate) attempt: u32,
    pub(crate) until: i64,
    seconds: f64,
    pub(crate) state: State,
}

/// How a lease stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    Held,
    /// Its attempt has ended: by this word, with this answer; or without one.
    Ended(Option<(String, Value, Value)>),
    /// Its worker is told to stop, for this reason, until then.
    Stopped(&'static str, i64),
}

fn micros(seconds: f64) -> i64 {
    (seconds * MICROS) as i64
}

impl Oracle {
    /// Whether a worker can claim the task now.
    pub(crate) fn is_claimable(&self, symbol: &str) -> bool {
        let task = self.task(symbol);
        task.is_remote() && task.ready.is_some() && self.running_run_of(symbol).is_some()
    }

    /// The code of a claim of a task that cannot be claimed now.
    fn why_not_claimable(&self, symbol: &str) -> i64 {
        let task = self.task(symbol);
        let waits = task.status == Pending
            && !task.is_group()
            && self.running_run_of(symbol).is_some()
            && !self.is_satisfied(symbol);
        if waits && self.waits_for_person_above(symbol) {
            UPSTREAM_SUSPENDED
        } else if waits && (task.is_remote() || task.is_unknown()) {
            UNRESOLVABLE
        } else {
            -32006
        }
    }

    pub(super) fn claim(&mut self, map: &Map<String, Value>) -> Answer {
        let number = |name: &str| map.get(name).and_then(Value::as_f64);
        let seconds = number("lease_seconds").unwrap_or(LEASE_SECONDS);
        let claimed = match map.get("task_id").filter(|id| !id.is_null()) {
            Some(id) => {
                let id = self.stored(id)?;
                if !self.is_claimable(&id) {
                    return refuse(self.why_not_claimable(&id));
                }
                if self.is_lacking(&id) {
                    return refuse(UNRESOLVABLE);
                }
                vec![id]
            }
            None => self.best(&map["methods"], number("max").unwrap_or(1.0) as usize),
        };
        let claims: Vec<Value> = claimed
            .iter()
            .filter_map(|s| self.start(s, seconds))
            .collect();
        Ok(json!({"claims": claims}))
    }

    /// Claimable tasks by priority, then by the time since when they are ready, then as they were created.
    fn best(&self, methods: &Value, max: usize) -> Vec<Symbol> {
        let wanted = |name: &str| methods.as_array().is_some_and(|m| m.contains(&json!(name)));
        let fits = |s: &&Symbol| {
            self.is_claimable(s) && !self.is_lacking(s) && wanted(self.task(s).method())
        };
        let mut found: Vec<Symbol> = self.order.iter().filter(fits).cloned().collect();
        found.sort_by_key(|s| (self.task(s).priority, self.task(s).ready));
        found.truncate(max);
        found
    }

    /// What its worker gets; nothing of an attempt whose inputs turn out not to be there.
    fn start(&mut self, symbol: &str, seconds: f64) -> Option<Value> {
        self.begin(symbol);
        let Some(inputs) = self.inputs_of(symbol) else {
            self.fail_for_good(symbol, ANY_TEXT);
            return None;
        };
        let run = self
            .running_run_of(symbol)
            .expect("only runs start attempts");
        let task = self.task(symbol).clone();
        let until = self.now + micros(seconds);
        let token = format!("l{}-{symbol}", task.attempt);
        let lease = Lease {
            task: symbol.to_owned(),
            attempt: task.attempt,
            until,
            seconds,
            state: State::Held,
        };
        self.leases.insert(token.clone(), lease);
        let owner = &self.task(&task.flow).user;
        let mut claim = json!({
            "task": self.shown(symbol),
            "input": inputs,
            "context": {
                "root_task_id": format!("@{}", task.flow),
                "run_id": format!("@{}", self.runs[run].symbol),
                "user_id": owner,
                "deadline": self.deadline(symbol).map_or(Value::Null, time),
                "timeout_seconds": task.params["timeout_seconds"],
            },
            "lease": {
                "token": format!("@{token}"), "attempt": task.attempt,
                "expires_at": time(until), "lease_seconds": seconds,
            },
        });
        if let Some(lineage) = self.lineage(symbol) {
            claim["lineage"] = lineage;
        }
        if let Some(answers) = self.answers_to(symbol) {
            claim["context"]["answers"] = answers;
        }
        Some(claim)
    }

    /// The token, if it is one of the task that is named.
    fn token(&self, map: &Map<String, Value>) -> Option<Symbol> {
        let symbol = |name: &str| ids::symbol(map[name].as_str()?);
        let token = symbol("lease")?;
        let lease = self.leases.get(&token)?;
        let is_its = Some(&lease.task) == symbol("task_id").as_ref();
        (is_its && self.tasks.contains_key(&lease.task)).then_some(token)
    }

    pub(super) fn renew(&mut self, map: &Map<String, Value>) -> Answer {
        let Some(token) = self.token(map) else {
            return refuse(NOT_HELD);
        };
        let now = self.now;
        let lease = self.leases.get_mut(&token).expect("it was just found");
        let asked = map.get("lease_seconds").and_then(Value::as_f64);
        match &lease.state {
            State::Held => {
                lease.until = match asked {
                    Some(seconds) => now + micros(seconds),
                    None => lease.until.max(now + micros(lease.seconds)),
                };
                Ok(json!({"expires_at": time(lease.until), "cancel_requested": false}))
            }
            State::Stopped(reason, until) if now < *until => Ok(json!({
                "expires_at": time(*until), "cancel_requested": true, "reason": reason,
            })),
            State::Stopped(..) | State::Ended(_) => refuse(NOT_HELD),
        }
    }

    /// The lease under which something is said, or the answer to the same said before.
    pub(super) fn heard(
        &self,
        method: &str,
        map: &Map<String, Value>,
        word: &Value,
    ) -> Result<Result<Symbol, Value>, Refusal> {
        let Some(token) = self.token(map) else {
            return refuse(NOT_HELD);
        };
        match &self.leases[&token].state {
            State::Held => Ok(Ok(token)),
            State::Ended(Some((said, first, answer))) if said == method && first == word => {
                Ok(Err(answer.clone()))
            }
            State::Ended(_) | State::Stopped(..) => refuse(NOT_HELD),
        }
    }

    /// An outcome.
    pub(super) fn say(&mut self, method: &str, map: &Map<String, Value>) -> Answer {
        let word = match method {
            "tasks.complete" => map["output"].clone(),
            "tasks.fail" => json!([map["error"], map.get("retryable") != Some(&json!(false))]),
            _ => Value::Null,
        };
        let token = match self.heard(method, map, &word)? {
            Ok(token) => token,
            Err(answer) => return Ok(answer),
        };
        let lease = self.leases[&token].clone();
        let task = lease.task.as_str();
        match method {
            "tasks.complete" => {
                contract::check(&self.task(task).schemas, &word)?;
                self.complete(task, &word);
            }
            "tasks.fail" => {
                let error = map["error"].as_str().unwrap_or_default();
                if word[1] == true {
                    self.fail(task, error);
                } else {
                    self.fail_for_good(task, error);
                }
            }
            _ => self.requeue(task, None),
        }
        let after = self.task(task);
        let mut answer = json!({"task_id": format!("@{task}"), "status": after.status.name()});
        if let Some(next) = after.next_attempt {
            answer["next_attempt_at"] = time(next);
        }
        let said = (method.to_owned(), word, answer.clone());
        self.end_lease(&token, State::Ended(Some(said)));
        Ok(answer)
    }

    /// Of each task the last end of a lease is remembered.
    pub(super) fn end_lease(&mut self, token: &str, state: State) {
        let task = self.leases[token].task.clone();
        for lease in self.leases.values_mut().filter(|lease| lease.task == task) {
            if matches!(lease.state, State::Ended(_)) {
                lease.state = State::Ended(None);
            }
        }
        self.leases.get_mut(token).expect("it is known").state = state;
    }

    fn held(&self) -> impl Iterator<Item = (&Symbol, &Lease)> {
        let held = |(_, lease): &(&Symbol, &Lease)| lease.state == State::Held;
        self.leases.iter().filter(held)
    }

    /// When leases end, and in which flow.
    pub(super) fn lease_ends(&self) -> impl Iterator<Item = (i64, Symbol)> {
        self.held()
            .map(|(_, lease)| (lease.until, self.task(&lease.task).flow.clone()))
    }

    /// Attempts whose workers did not renew in time are lost.
    pub(super) fn end_leases(&mut self) {
        let now = self.now;
        let over = self.held().filter(|(_, lease)| lease.until <= now);
        let over: Vec<Symbol> = over.map(|(token, _)| token.clone()).collect();
        for token in over {
            let task = self.leases[&token].task.clone();
            if self.asleep.contains(&self.task(&task).flow) {
                continue;
            }
            self.end_lease(&token, State::Ended(None));
            let run = self
                .running_run_of(&task)
                .expect("only runs start attempts");
            let interruptions = &mut self.runs[run].interruptions;
            let interruptions = interruptions.entry(task.clone()).or_default();
            *interruptions += 1;
            if *interruptions > INTERRUPTIONS_MAX {
                self.fail_for_good(&task, ANY_TEXT);
            } else {
                let rest = LOST_REST << (*interruptions - 1);
                self.requeue(&task, Some(now + rest));
            }
        }
    }

    /// Attempts that somebody else has ended are taken back from their workers.
    pub(super) fn take_back(&mut self) {
        let ended = |(_, lease): &(&Symbol, &Lease)| {
            let task = self.task(&lease.task);
            task.status != InProgress || task.attempt != lease.attempt
        };
        let ended: Vec<Symbol> = self.held().filter(ended).map(|(t, _)| t.clone()).collect();
        for token in ended {
            let task = self.task(&self.leases[&token].task);
            let grace = task.params["cancel_grace_seconds"].as_f64();
            let until = self.now + micros(grace.unwrap_or(GRACE_SECONDS));
            let reason = match task.status {
                Cancelled => "cancelled",
                Pending | InProgress | Completed | Failed => "deadline",
            };
            self.end_lease(&token, State::Stopped(reason, until));
        }
    }

    /// A server that starts does not know which workers were told to stop.
    pub(super) fn forget_stops(&mut self) {
        for lease in self.leases.values_mut() {
            if matches!(lease.state, State::Stopped(..)) {
                lease.state = State::Ended(None);
            }
        }
    }
}
