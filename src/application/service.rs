//! The application as doors see it: one method for each use case, or [`Service::call`] for those that concern a flow.
//!
//! Each authorises its caller first. What belongs to another node is routed there, so that every door works
//! on every node. Doors parse before and encode behind; nothing here knows how.

mod audited;
mod auth;
mod broker;
mod callbacks;
mod changes;
mod documents;
mod hints;
mod inputs;
mod peers;
mod presence;
mod reads;
mod reports;
mod runs;
mod schedules;
mod secrets;
mod streams;
mod system;
mod warnings;
mod webhooks;
mod work;
mod workers;
mod workflows;

pub use auth::{Access, HasAccess};
pub use presence::Connected;

use super::App;
use super::api::{Copy, Delete, Error, Execute, Failure, Reply, Request, Retry, Target};
use super::authorize::{UseCase, authorize};
use super::claim_ends::ClaimEnds;
use super::commands::ExecuteOptions;
use super::context::Context;
use super::idempotency::fingerprint;
use super::limits::{Limits, Turn};
use super::ports::{ExecutorList, Exposition, Workers};
use super::routing::{self, Arrived, Forward};
use super::runs::STARTS;
use crate::clock::SharedClock;
use crate::runtime::maybe_block_in_place;
use crate::webhooks::api::Webhooks;
use crate::webhooks::worker;
use changes::Refusable;
use futures_util::FutureExt;
use presence::Connections;
use schedules::{Clocks, RunEnds};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::store::OwnKey;
use taskledger_auth::{Action, Caller, Tokens, Vault};
use taskledger_broker::BrokerStore;
use taskledger_documents::DocumentStore;
use taskledger_schedules::ScheduleStore;
use taskledger_workers::MethodKey;
use taskledger_zones::Zones;
use tokio::sync::{Notify, OnceCell};
use tokio::time::{Instant, timeout_at};

/// What a caller is told to wait after a request ran out of time before it began, in milliseconds.
const RETRY_AFTER_TIMEOUT_MS: u64 = 1000;

/// The parts that a [`Service`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// What use cases work on.
    pub app: Arc<App>,
    /// The executors as callers see them.
    pub executors: Arc<dyn ExecutorList>,
    /// Endpoints, callbacks and deliveries.
    pub webhooks: Arc<Webhooks>,
    /// How sending fares.
    pub deliveries: worker::Handle,
    /// Tokens, and the audit log.
    pub tokens: Arc<Tokens>,
    /// The OIDC issuers that are trusted, as their tokens name them.
    pub issuers: Arc<[Arc<str>]>,
    /// The secrets that tasks name.
    pub secrets: Arc<Vault>,
    /// Workflow documents that are kept.
    pub documents: Arc<DocumentStore>,
    /// The schedules that start runs.
    pub schedules: Arc<ScheduleStore>,
    /// The time zones of schedules.
    pub zones: Arc<Zones>,
    /// Tasks that agents have published, and how they ended.
    pub broker: Arc<BrokerStore>,
    /// The workers outside the server.
    pub workers: Arc<dyn Workers>,
    /// The way to other nodes, when there are others.
    pub forward: Option<Arc<dyn Forward>>,
    /// How much each caller may ask.
    pub limits: Arc<Limits>,
    /// The figures for monitoring, if they are kept.
    pub metrics: Option<Arc<dyn Exposition>>,
}

/// The application as doors see it. One per server.
#[derive(Debug)]
pub struct Service {
    app: Arc<App>,
    executors: Arc<dyn ExecutorList>,
    webhooks: Arc<Webhooks>,
    deliveries: worker::Handle,
    access: Access,
    secrets: Arc<Vault>,
    documents: Arc<DocumentStore>,
    schedules: Arc<ScheduleStore>,
    zones: Arc<Zones>,
    /// A schedule was made, changed or run here: the next look may be sooner.
    schedules_changed: Notify,
    /// Runs for whose end a time of a schedule waits.
    schedule_ends: RunEnds,
    /// The clocks of the machine and of zones, as schedules saw them last.
    clocks: Clocks,
    broker: Arc<BrokerStore>,
    /// The key from which ids of published tasks are made; absent until one is published.
    ids_key: OnceCell<OwnKey>,
    workers: Arc<dyn Workers>,
    connections: Arc<Connections>,
    claim_ends: Arc<ClaimEnds>,
    forward: Option<Arc<dyn Forward>>,
    limits: Arc<Limits>,
    metrics: Option<Arc<dyn Exposition>>,
}

impl HasAccess for Service {
    fn access(&self) -> &Access {
        &self.access
    }
}

impl Service {
    /// The application made of these parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts {
            app,
            executors,
            webhooks,
            deliveries,
            tokens,
            issuers,
            secrets,
            documents,
            schedules,
            zones,
            broker,
            workers,
            forward,
            limits,
            metrics,
        } = parts;
        let live = app.live.clone();
        Self {
            access: Access::new(tokens, app.clock.clone())
                .trusting(issuers)
                .limited(limits.clone()),
            app,
            executors,
            webhooks,
            deliveries,
            secrets,
            documents,
            schedules,
            zones,
            schedules_changed: Notify::new(),
            schedule_ends: RunEnds::default(),
            clocks: Clocks::default(),
            broker,
            ids_key: OnceCell::new(),
            workers,
            connections: Arc::default(),
            claim_ends: ClaimEnds::of(live),
            forward,
            limits,
            metrics,
        }
    }

    /// Lets a call for this use case in, and counts it.
    fn admit(&self, context: &Context, use_case: UseCase) -> Result<(), Error> {
        self.admit_as(context, use_case, None)
    }

    /// The same for a use case that may be several things in the audit log, and is this.
    fn admit_as(
        &self,
        context: &Context,
        use_case: UseCase,
        action: Option<Action>,
    ) -> Result<(), Error> {
        self.access.authorize(context, use_case, action)?;
        self.limits.rate(context, use_case, 1)
    }

    /// How long the next call of a caller waits before it is read: not at all, unless many were refused a moment ago
    /// because there were too many.
    #[must_use]
    pub fn pause(&self, caller: &Caller) -> Option<Duration> {
        self.limits.pause(caller)
    }

    /// Waits until a call of so many bytes may be read beside others of its caller; `None` for one that needs no turn.
    ///
    /// # Errors
    /// `Busy`: the time of the call ended before its turn came; nothing was done.
    pub async fn turn_to_read(
        &self,
        caller: &Caller,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Option<Turn>, Error> {
        self.limits.turn_to_read(caller, bytes, deadline).await
    }

    /// Time and the ids of failures.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.app.clock
    }

    /// Carries out a request that concerns a flow, on the node that the flow belongs to.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn call(&self, context: &Context, request: Request) -> Result<Reply, Error> {
        let use_case = request.use_case();
        self.access.authorize(context, use_case, None)?;
        self.limits.rate(context, use_case, request.tasks())?;
        let refusable = Refusable::of(&request);
        // Boxed: only callers who act for all users need the room, and those who are refused.
        if Access::notes_reads(context) {
            return Box::pin(self.change(context, request, refusable)).await;
        }
        match self.carried_out(context, request).await {
            refused @ Err(Error::Forbidden { .. }) => {
                Box::pin(self.refusal_noted(context, refusable, refused)).await
            }
            done => done,
        }
    }

    /// The same for a caller whose change needs no row in the audit log, because what makes it acts by itself.
    async fn act(&self, context: &Context, request: Request) -> Result<Reply, Error> {
        authorize(context, request.use_case())?;
        self.limits
            .rate(context, request.use_case(), request.tasks())?;
        self.carried_out(context, request).await
    }

    /// The same for one that was let in and counted.
    async fn carried_out(&self, context: &Context, request: Request) -> Result<Reply, Error> {
        let _turn = self.limits.turn(context, request.tasks()).await?;
        let Some(forward) = &self.forward else {
            return self.perform(context, request).await;
        };
        let here = |request| self.perform(context, request);
        // Boxed: a server that is alone must not make room for it in each call.
        Box::pin(routing::anywhere(&**forward, context, request, here)).await
    }

    /// Carries out a request that another node has sent, if its flow belongs here; else, and for what no
    /// node of this release sends, `None`, and nothing was done. Ends when the sender waits no more, at the
    /// latest at `latest`. `log` puts a failure into the log and gives the id under which it is there.
    pub async fn taken(
        &self,
        body: impl AsRef<[u8]> + Send + 'static,
        latest: Instant,
        log: impl FnOnce(&Failure) -> String,
    ) -> Option<Vec<u8>> {
        let Arrived {
            context,
            request,
            wait,
        } = routing::arrived(body).await?;
        let asked = Instant::now().checked_add(wait);
        let deadline = asked.map_or(latest, |asked| asked.min(latest));
        let context = context.until(Some(deadline));
        let outcome = match authorize(&context, request.use_case()) {
            Ok(()) => self.perform_until(deadline, &context, request).await,
            Err(error) => Err(error),
        };
        routing::written_outcome(outcome, log)
    }

    /// Whether this is the `Authorization` of a node of the same cluster; `None` when there are no other
    /// nodes.
    #[must_use]
    pub fn admits_node(&self, authorization: &[u8]) -> Option<bool> {
        let forward = self.forward.as_ref()?;
        Some(forward.admits(authorization))
    }

    /// The same as [`Self::perform`], no longer than until then.
    async fn perform_until(
        &self,
        deadline: Instant,
        context: &Context,
        request: Request,
    ) -> Result<Reply, Error> {
        let changes = request.changes();
        if deadline <= Instant::now() {
            let reason = "the request ran out of time before this call; it was not executed";
            return Err(Error::Busy {
                reason: reason.to_owned(),
                retry_after_ms: RETRY_AFTER_TIMEOUT_MS,
            });
        }
        let name = request.use_case().as_str();
        let work = AssertUnwindSafe(self.perform(context, request)).catch_unwind();
        match timeout_at(deadline, work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Failure::Broken(format!("`{name}` panicked")).into()),
            Err(_) => Err(Error::OutOfTime { changes }),
        }
    }

    /// Carries out a request here. Those that are rare or large are boxed, so that the others stay small.
    async fn perform(&self, context: &Context, request: Request) -> Result<Reply, Error> {
        let fingerprinted;
        let context = if context.idempotency.is_some() && request.changes() {
            let size = request.tasks();
            let fingerprint = maybe_block_in_place(size, || fingerprint(&request));
            fingerprinted = context.fingerprinted(fingerprint);
            &fingerprinted
        } else {
            context
        };
        let app = &*self.app;
        match request {
            Request::Create(list) => app.create(context, list).await,
            Request::Execute(Execute {
                target,
                allow_unknown_executors,
                executor_wait_ms,
                include,
                id_check,
                callback,
            }) => {
                if !allow_unknown_executors && self.forward.is_some() {
                    Box::pin(self.knows_methods(&target)).await;
                }
                self.starting(context, UseCase::ExecuteTasks, callback, async |callback| {
                    let options = ExecuteOptions {
                        allow_unknown_executors,
                        executor_wait_ms,
                        include,
                        callback,
                        origin: None,
                        id_check,
                    };
                    match target {
                        Target::New(_) => app.execute(context, target, options).await,
                        Target::Stored(task) => {
                            let stored = || Target::Stored(task);
                            let done = app.execute(context, stored(), options.clone()).await;
                            if self.forward.is_some() && Box::pin(self.knows_more(&done)).await {
                                return app.execute(context, stored(), options).await;
                            }
                            done
                        }
                    }
                })
                .await
            }
            Request::Retry(Retry {
                task,
                include,
                callback,
            }) => {
                Box::pin(
                    self.starting(context, UseCase::RetryTask, callback, async |callback| {
                        let done = app.retry(context, task, include, callback).await;
                        if self.forward.is_some() && self.knows_more(&done).await {
                            return app.retry(context, task, include, callback).await;
                        }
                        done
                    }),
                )
                .await
            }
            Request::StartRun(mut start) => {
                if !start.allow_unknown_executors && self.forward.is_some() {
                    Box::pin(self.knows_methods(&start.target)).await;
                }
                let callback = start.reported.take();
                let keyed = context.keyed_as(STARTS);
                Box::pin(
                    self.starting(&keyed, UseCase::ExecuteTasks, callback, async |callback| {
                        Box::pin(app.start_run(context, *start, callback)).await
                    }),
                )
                .await
            }
            Request::CancelRun(cancel) => Box::pin(app.cancel_run(context, cancel)).await,
            Request::FollowUp(message) => Box::pin(app.follow_up(context, *message)).await,
            Request::Update(update) => {
                Box::pin(app.update(context, update.task, update.updates)).await
            }
            Request::Delete(Delete { task, cascade }) => {
                Box::pin(app.delete(context, task, cascade)).await
            }
            Request::Cancel(cancel) => Box::pin(app.cancel_remarked(context, cancel)).await,
            Request::Copy(Copy {
                task,
                copy_children,
                parent,
            }) => {
                let copied = Box::pin(app.copy(context, task, copy_children, parent)).await?;
                // The history of the original does not name who copied it.
                Box::pin(self.was_read(context, task)).await;
                Ok(copied)
            }
            Request::Explain(task) => {
                let mut explained = Box::pin(app.explain(context, task)).await?;
                self.knows_workers(&mut explained);
                Box::pin(self.was_read(context, task)).await;
                Ok(Reply::Explained(Box::new(explained)))
            }
            Request::Overview(task) => {
                let progress = Box::pin(app.overview(context, task)).await?;
                Box::pin(self.was_read(context, task)).await;
                Ok(Reply::Progress(Box::new(progress)))
            }
            Request::History(history) => {
                let task = history.task;
                let page = Box::pin(app.history(context, history)).await?;
                Box::pin(self.was_read(context, task)).await;
                Ok(Reply::History(Box::new(page)))
            }
            Request::Claim(claim) => {
                let begun = Box::pin(app.claim_here(context, &claim)).await?;
                if !begun.is_empty() {
                    let (caller, reach) = (&context.caller, context.caller.reach());
                    self.workers
                        .claimed(&claim.worker, caller.actor(), reach.owner());
                }
                Ok(Reply::Claimed(begun.delivered()))
            }
            Request::Hint(hint) => {
                let methods = hint.methods.into_iter();
                let methods = methods
                    .map(|(name, many, owner)| (MethodKey { name, owner }, many))
                    .collect::<Vec<_>>();
                app.flows.offers.hint(hint.node, &methods);
                Ok(Reply::Hinted)
            }
            Request::TasksHeld(worker) => {
                let tasks = self.tasks_held_here(context, &worker);
                Ok(Reply::TasksHeld(tasks))
            }
            // Whoever asks has changed something perhaps, or wants to know of everything that happened before.
            Request::HeldHere => {
                self.workers.catch_up().await;
                Ok(Reply::HeldHere(self.held_here(&context.caller)))
            }
            Request::MethodFigures => {
                self.workers.catch_up().await;
                let figures = self.figures_here(&context.caller);
                Ok(Reply::MethodFigures(figures))
            }
            Request::Renew(renew) => app.renew(context, renew).await.map(Reply::Renewed),
            Request::Complete(complete) => app.complete(context, complete).await.map(Reply::Ended),
            Request::Fail(fail) => app.fail(context, fail).await.map(Reply::Ended),
            Request::Release(release) => app.release(context, release).await.map(Reply::Ended),
            Request::Suspend(suspend) => app.suspend(context, suspend).await.map(Reply::Suspended),
            Request::Respond(respond) => Box::pin(app.respond(context, respond)).await,
            Request::Lease(of) => app.lease_of(context, of).await.map(Reply::Lease),
            Request::SiblingOutput(wanted) => {
                let task = wanted.task;
                let sibling = Box::pin(app.sibling_output(context, wanted)).await?;
                Box::pin(self.was_read(context, task)).await;
                Ok(Reply::Sibling(sibling))
            }
        }
    }
}
