//! Workers outside the server: declared methods, connected workers, and drains.

mod elsewhere;
mod undeclaring;

use super::Service;
use super::audited::Audited;
use super::auth::{ALL, Access};
use super::work::{allowed, invalid};
use crate::application::api::work::{
    Connection, Declare, Drained, HeldBy, HeldTask, Method, MethodFigures, MethodView, WorkerView,
};
use crate::application::api::{Error, Explained, Failure, Reply, Request};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::leases::{Holding, SHOWN_MAX, WorkerKey};
use crate::application::ports::{ASK_AGAIN_MS, DeclareRefusal, KnownMethod};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Action, Caller, Reach, Scope};
use taskledger_domain::Timestamp;
use taskledger_workers::{MethodKey, Refusal, Rights, Worker};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

impl Service {
    /// Declares a method.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn declare(&self, context: &Context, declare: Declare) -> Result<MethodView, Error> {
        self.admit(context, UseCase::DeclareMethod)?;
        let declared = std::slice::from_ref(&declare.method);
        let change = (Action::MethodDeclare, Some(declare.method.clone()));
        let is_allowed = allowed(&context.caller, declared, "method");
        self.access.noted(context, change, is_allowed)?;
        let reach = context.caller.reach();
        let method = Method {
            name: declare.method,
            owner: reach.owner().cloned(),
            description: declare.description,
            input_schema: declare.input_schema,
            output_schema: declare.output_schema,
            defaults: declare.defaults,
            limit: declare.limit,
            declared_by: context.caller.actor().clone(),
            declared_at: self.app.clock.now(),
        };
        let key = method.key();
        let (of, object) = ((&self.access, context), Some(key.name.clone()));
        let detail = json!({"owner": key.owner});
        let mut audited = Audited::new(of, Action::MethodDeclare, object, detail);
        if Access::notes_reads(context) {
            // It is for the flows of all users.
            audited.begin().await?;
        }
        // Its answer waits until the other nodes have read it, those that answer: see `figures` below.
        let kept = self.workers.declare(method, rights(&context.caller)).await;
        let kept = match kept {
            Ok(kept) => kept.map_err(undeclared),
            Err(error) => Err(Failure::from(error).into()),
        };
        audited.ended(kept).await?;
        let mut known = self.workers.methods(&reach).into_iter();
        let known = known.find(|known| known.key == key);
        let known = known.ok_or_else(|| {
            Error::from(Failure::Broken("a declared method is not known".to_owned()))
        })?;
        Ok(method_view(known, &self.figures(context).await))
    }

    /// Says of workers that hold tasks, until cancelled, that they are there: one that is busy asks for nothing,
    /// and the tasks that wait for it still have somebody who will come.
    pub async fn note_holders(&self, cancel: CancellationToken) {
        let note = async {
            loop {
                sleep(Duration::from_millis(ASK_AGAIN_MS)).await;
                for ((worker, holder), methods) in self.app.flows.leases.methods() {
                    if let Some(holder) = holder {
                        let methods: Vec<Arc<str>> = methods.into_iter().collect();
                        self.workers.holds(&worker, &holder, &methods);
                    }
                }
            }
        };
        cancel.run_until_cancelled(note).await;
    }

    /// The methods of workers, by name, as they are for the flows that the caller sees: shared ones, and those that
    /// their owner has declared or asks for. Tasks and workers are counted as far as they belong to such flows.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn methods(&self, context: &Context) -> Result<Vec<MethodView>, Error> {
        self.admit(context, UseCase::ListMethods)?;
        let figures = self.figures(context).await;
        self.workers.catch_up().await;
        let known = self.workers.methods(&context.caller.reach());
        let own = context.caller.owner();
        if known
            .iter()
            .any(|it| it.key.owner.as_ref().is_some_and(|owner| owner != own))
        {
            let read = (Action::MethodRead, ALL);
            self.access.read_beside(context, read, None);
        }
        let known = known.into_iter();
        Ok(known.map(|known| method_view(known, &figures)).collect())
    }

    /// Workers that ask for work, or hold some: one's own, or with `users:any` all.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn workers(&self, context: &Context) -> Result<Vec<WorkerView>, Error> {
        self.admit(context, UseCase::ListWorkers)?;
        let (views, are_of_others) = self.worker_views(context).await;
        if are_of_others {
            let read = (Action::WorkerRead, ALL);
            self.access.read_beside(context, read, None);
        }
        Ok(sorted(views))
    }

    /// Workers that the caller sees, and whether some of them are of other principals.
    async fn worker_views(&self, context: &Context) -> (Vec<WorkerView>, bool) {
        let own = context.caller.actor();
        let all = context.caller.reach() == Reach::All;
        let mut are_of_others = false;
        let mut held = self.held(context).await;
        self.workers.catch_up().await;
        let mut views = Vec::new();
        for worker in self.workers.workers() {
            let key = (worker.worker.clone(), Some(worker.principal.clone()));
            let held = held.remove(&key).unwrap_or_default();
            if all || worker.principal == *own {
                are_of_others |= worker.principal != *own;
                let is_draining = self.workers.is_draining(&worker.worker, &worker.principal);
                views.push(worker_view(worker, is_draining, held));
            }
        }
        // Those that work and ask for nothing more, or are gone.
        if held.is_empty() {
            return (views, are_of_others);
        }
        let (now, here) = (self.app.clock.now(), self.app.flows.leases.by_worker());
        for (key, held) in held {
            let holds = here.get(&key).map_or(&[][..], |(_, holds)| holds);
            let (worker, principal) = key;
            let principal = principal.unwrap_or_else(|| Arc::from("anonymous"));
            if !all && principal != *own {
                continue;
            }
            are_of_others |= principal != *own;
            let is_draining = self.workers.is_draining(&worker, &principal);
            let (methods, heard_at) = told_by(holds, now);
            let silent = Worker {
                worker,
                principal,
                owner: None,
                node: None,
                methods,
                connection: Connection::Poll,
                since: heard_at,
                last_seen_at: heard_at,
            };
            views.push(worker_view(silent, is_draining, held));
        }
        (views, are_of_others)
    }

    /// What workers hold of the flows of this node, as far as the caller may know of it. Cost: O(leases).
    pub(super) fn held_here(&self, caller: &Caller) -> Vec<HeldBy> {
        let all = caller.reach() == Reach::All || caller.may(Scope::Admin);
        let held = self.app.flows.leases.by_worker().into_iter();
        let held = held.filter(|((_, of), _)| all || of.as_ref() == Some(caller.actor()));
        held.map(|((worker, principal), (held, tasks))| HeldBy {
            worker,
            principal,
            held,
            tasks: tasks.iter().map(task_view).collect(),
        })
        .collect()
    }

    /// What workers hold of the flows of all nodes that answer.
    async fn held(&self, context: &Context) -> AllHeld {
        let mut all = AllHeld::new();
        let others = self.ask_others(context, &Request::HeldHere).await;
        let others = others.into_iter().flat_map(|reply| {
            if let Reply::HeldHere(held) = reply {
                held
            } else {
                Vec::new()
            }
        });
        for by in self.held_here(&context.caller).into_iter().chain(others) {
            let (held, tasks) = all.entry((by.worker, by.principal)).or_default();
            *held += by.held;
            tasks.extend(by.tasks);
            tasks.truncate(SHOWN_MAX);
        }
        all
    }

    /// Gives a worker no more work, or work again: one's own, or with `admin` that of any principal. Work again also
    /// gets one that is not there.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn drain(
        &self,
        context: &Context,
        worker: &str,
        is_drained: bool,
    ) -> Result<Drained, Error> {
        self.admit(context, UseCase::DrainWorker)?;
        let mut principals = vec![context.caller.actor().clone()];
        if context.caller.may(Scope::Admin) {
            let known = self.workers.workers().into_iter();
            let known = known.filter(|known| &*known.worker == worker);
            principals.extend(known.map(|known| known.principal));
            if !is_drained {
                // One that is not there, too: it would end at once when it comes.
                principals.extend(self.workers.drained(worker));
            }
            principals.sort_unstable();
            principals.dedup();
        }
        let (of, object) = ((&self.access, context), Some(Arc::from(worker)));
        let detail = json!({"principals": principals, "drain": is_drained});
        let mut audited = Audited::new(of, Action::WorkerDrain, object, detail);
        if principals.iter().any(|it| it != context.caller.actor()) {
            audited.begin().await?;
        }
        let drained = self.drain_of(worker, &principals, is_drained).await;
        audited.ended(drained).await?;
        if is_drained {
            // It may be among those that wait.
            self.app.flows.offers.look_of(worker, &principals);
        }
        let held = self.held(context).await;
        // The other nodes have written meanwhile who is connected to them.
        self.workers.catch_up().await;
        let of_worker = held.iter().filter(|((name, of), _)| {
            let own = of.as_ref().is_some_and(|of| principals.contains(of));
            &**name == worker && own
        });
        let held = of_worker.map(|(_, (count, _))| count).sum();
        let mut known = self.workers.workers().into_iter();
        let is_known =
            known.any(|known| &*known.worker == worker && principals.contains(&known.principal));
        Ok(Drained {
            worker: Arc::from(worker),
            draining: is_drained,
            held,
            present: is_known || held > 0,
        })
    }

    /// The same of the workers of this name of these principals.
    async fn drain_of(
        &self,
        worker: &str,
        principals: &[Arc<str>],
        is_drained: bool,
    ) -> Result<(), Error> {
        for principal in principals {
            let drained = self.workers.drain(worker, principal, is_drained).await;
            drained.map_err(Failure::from)?.map_err(|error| {
                let expected = "fewer drained workers; `drain: false` lets one work again";
                invalid("worker", &error.to_string(), expected, worker)
            })?;
        }
        Ok(())
    }

    /// Adds what is known of the workers that a task waits for.
    pub(super) fn knows_workers(&self, explained: &mut Explained) {
        let method = explained.explanation.method.as_deref();
        if let (Some(workers), Some(method)) = (&mut explained.workers, method) {
            let owner = workers.owner.as_deref();
            let asking = self.workers.asking(method, owner);
            let last = self.workers.last_asked_at(method, owner);
            workers.asking = asking.now;
            workers.drained = asking.drained;
            workers.last_asked_at = last;
            if !asking.takes_all {
                workers.of_own_workers();
            }
            workers.silent_ms = last.map(|at| self.app.clock.now().ms_since(at));
        }
    }

    /// Figures of tasks of the flows of this node that the caller may know: with `users:any` of all, else tasks of
    /// its own flows that wait, and attempts of its own workers.
    pub(super) fn figures_here(&self, caller: &Caller) -> Vec<MethodFigures> {
        let flows = &self.app.flows;
        let mut figures = Figures::new();
        match caller.reach() {
            Reach::All => {
                for (method, of) in flows.offers.figures() {
                    figures.insert(method, (of.leased, of.ready));
                }
            }
            reach @ Reach::Of(_) => {
                for (method, running) in flows.leases.running_of(caller.actor()) {
                    figures.entry(method).or_default().0 = running;
                }
                for (method, waiting) in flows.offers.ready_of(&reach) {
                    figures.entry(method).or_default().1 = waiting;
                }
            }
        }
        let figures = figures.into_iter();
        let figures = figures.map(|(method, (running, waiting))| MethodFigures {
            method: method.name,
            owner: method.owner,
            running,
            waiting,
        });
        figures.collect()
    }

    /// The same of all nodes that answer.
    pub(super) async fn figures(&self, context: &Context) -> Figures {
        let mut all = Figures::new();
        let others = self.ask_others(context, &Request::MethodFigures).await;
        let others = others.into_iter().flat_map(|reply| {
            if let Reply::MethodFigures(figures) = reply {
                figures
            } else {
                Vec::new()
            }
        });
        for of in self.figures_here(&context.caller).into_iter().chain(others) {
            let (name, owner) = (of.method, of.owner);
            let (running, waiting) = all.entry(MethodKey { name, owner }).or_default();
            *running += of.running;
            *waiting += of.waiting;
        }
        all
    }
}

/// What a method may be called.
const EXPECTED_NAME: &str = "1 to 255 characters that are shown: no control characters, none that change the direction of text";

/// Attempts under way and tasks that wait, by method.
type Figures = HashMap<MethodKey, (usize, usize)>;
/// How many attempts each worker holds, and the first of them.
type AllHeld = HashMap<WorkerKey, (usize, Vec<HeldTask>)>;

fn method_view(known: KnownMethod, figures: &Figures) -> MethodView {
    let (running, waiting) = figures.get(&known.key).copied().unwrap_or_default();
    MethodView {
        method: known.key.name,
        owner: known.key.owner,
        declared: known.declared,
        workers: known.workers,
        running,
        waiting,
        last_asked_at: known.last_asked_at,
    }
}

fn rights(caller: &Caller) -> Rights {
    if caller.may(Scope::Admin) {
        Rights::All
    } else {
        Rights::Own
    }
}

fn undeclared(refusal: DeclareRefusal) -> Error {
    let reason = refusal.to_string();
    match refusal {
        DeclareRefusal::BuiltIn { method } => {
            let expected =
                "a name that no executor of the server has; `system.executors` lists them";
            invalid("method", &reason, expected, &method)
        }
        DeclareRefusal::InvalidName { method } => {
            invalid("method", &reason, EXPECTED_NAME, &method)
        }
        DeclareRefusal::Limit { max } => {
            invalid("limit", &reason, &format!("an integer in 1-{max}"), "")
        }
        DeclareRefusal::Schema { member, violations } => {
            let violations = violations.into_iter().map(|mut violation| {
                violation.path.insert(0, member.into());
                violation.field = member.into();
                violation
            });
            Error::invalid(violations)
        }
        DeclareRefusal::Kept(Refusal::AnotherPrincipal { name }) => {
            let expected = "a method of your own, or credentials with the scope `admin`";
            invalid("method", &reason, expected, &name)
        }
        DeclareRefusal::Kept(Refusal::TooLong { member, max, .. }) => {
            invalid(member, &reason, &format!("at most {max}"), "")
        }
        DeclareRefusal::Kept(
            Refusal::TooMany { max }
            | Refusal::TooLarge { max }
            | Refusal::UsersTooMany { max }
            | Refusal::UsersTooLarge { max },
        ) => invalid("method", &reason, &format!("at most {max}"), ""),
    }
}

fn sorted(mut views: Vec<WorkerView>) -> Vec<WorkerView> {
    views.sort_by(|a, b| (&a.worker, a.node).cmp(&(&b.worker, b.node)));
    views
}

/// What leases tell of a worker that is not connected: the methods of its tasks, and when it was last heard of, which
/// is when one of them began or was renewed; `now` without any.
fn told_by(holds: &[Holding], now: Timestamp) -> (Arc<[Arc<str>]>, Timestamp) {
    let methods: BTreeSet<_> = holds.iter().map(|held| held.method.name.clone()).collect();
    let renewed = holds.iter().map(|held| {
        let before_end = i64::try_from(held.lease_ms.saturating_mul(1000)).unwrap_or(i64::MAX);
        Timestamp(held.expires_at.0.saturating_sub(before_end))
    });
    let heard_at = renewed.max().map_or(now, |at| at.min(now));
    (methods.into_iter().collect(), heard_at)
}

fn task_view(held: &Holding) -> HeldTask {
    HeldTask {
        task: held.task,
        attempt: held.attempt,
        expires_at: held.expires_at,
    }
}

fn worker_view(
    worker: Worker,
    is_draining: bool,
    (held, tasks): (usize, Vec<HeldTask>),
) -> WorkerView {
    WorkerView {
        worker: worker.worker,
        methods: worker.methods.to_vec(),
        connection: worker.connection,
        since: worker.since,
        last_seen_at: worker.last_seen_at,
        draining: is_draining,
        held,
        tasks,
        node: worker.node,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::LeaseId;
    use taskledger_domain::task::Progress;
    use taskledger_domain::testing::id;

    fn held(method: &str, expires_at: i64, lease_ms: u64) -> Holding {
        Holding {
            flow: id("flow").as_flow(),
            task: id("task"),
            attempt: 1,
            lease: LeaseId(id("lease").0),
            method: MethodKey::shared(Arc::from(method)),
            worker: Arc::from("w"),
            holder: None,
            expires_at: Timestamp(expires_at),
            deadline: None,
            progress: Progress::ZERO,
            lease_ms,
            cancel_grace_ms: 0,
            turns: Vec::new(),
            results: Vec::new(),
            origin_at: None,
        }
    }

    #[test]
    fn a_worker_that_is_gone_was_heard_of_when_it_last_renewed() {
        let now = Timestamp(90_000_000);
        let holds = [
            held("b", 100_000_000, 20_000),
            held("a", 95_000_000, 10_000),
            held("b", 70_000_000, 5_000),
        ];
        let (methods, heard_at) = told_by(&holds, now);
        assert_eq!(*methods, [Arc::from("a"), Arc::from("b")]);
        assert_eq!(heard_at, Timestamp(85_000_000));
        // After a restart leases last longer than was asked for.
        assert_eq!(told_by(&[held("a", 200_000_000, 5_000)], now).1, now);
        assert_eq!(told_by(&[], now).1, now);
    }
}
