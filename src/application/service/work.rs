//! Work for programs outside the server: claims, which wait for tasks of any flow on any node, and the list of workers.

use super::Service;
use super::inputs::{Unfit, specification_of};
use super::presence::Connected;
use crate::application::api::work::{
    Begun, Claim, ClaimHere, Claimed, Claims, Connection, Fail, OriginMessage, Wanted,
};
use crate::application::api::{Consistency, Error, Failure, Reply, Request};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::offers::{Waiting, Wakeup};
use crate::application::ports::{ASK_AGAIN_MS, AskRefusal, Asks};
use crate::application::routing;
use crate::application::undelivered::UndeliveredClaims;
use futures_util::future::{Either, join_all};
use std::borrow::Cow;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Action, Caller, Scope};
use taskledger_domain::{Payload, Violation};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long before the end of a request a claim stops waiting, so that the answer arrives in time.
const MARGIN: Duration = Duration::from_millis(100);

/// How long a socket says nothing before it is asked whether its worker is there, when another node had nothing for it
/// after all: the shortest lease.
const SILENCE: Duration = Duration::from_secs(5);

/// Bytes of the answer to one claim; further tasks are released, without using a retry.
const CLAIMED_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Service {
    /// Gives a worker tasks, as soon as there are any. Cost: O(claims * log offers), and a claim in the turn of
    /// each flow.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn claim(&self, context: &Context, claim: Claim) -> Result<Claims, Error> {
        self.admit(context, UseCase::ClaimTasks)?;
        self.claim_admitted(context, &claim, None).await
    }

    /// The same, waiting no longer than until there is `news` that makes the worker ask for something else.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn claim_until(
        &self,
        context: &Context,
        claim: Claim,
        news: Option<&Notify>,
    ) -> Result<Claims, Error> {
        self.admit(context, UseCase::ClaimTasks)?;
        self.claim_admitted(context, &claim, news).await
    }

    async fn claim_admitted(
        &self,
        context: &Context,
        claim: &Claim,
        news: Option<&Notify>,
    ) -> Result<Claims, Error> {
        let worker = claim.worker.clone();
        let worker = worker.unwrap_or_else(|| name(&context.caller));
        let principal = context.caller.actor();
        let reach = context.caller.reach();
        let methods: &[Arc<str>] = match &claim.wanted {
            Wanted::Methods(methods) => methods,
            Wanted::Task(_) | Wanted::Left(_) => &[],
        };
        let refused_as = (Action::TaskClaim, None);
        let is_allowed = allowed(&context.caller, methods, "methods");
        self.access.noted(context, refused_as.clone(), is_allowed)?;
        let asks = Asks {
            worker: &worker,
            principal,
            owner: reach.owner(),
            methods,
            connection: claim.connection,
        };
        let connected = self.connected(context, Some(worker.clone()));
        self.workers.asked(&asks).map_err(|error| unasked(&error))?;
        let claims = self.claim_as(context, claim, &asks, news).await;
        connected.answered();
        self.access.noted(context, refused_as, claims)
    }

    async fn claim_as(
        &self,
        context: &Context,
        claim: &Claim,
        asks: &Asks<'_>,
        news: Option<&Notify>,
    ) -> Result<Claims, Error> {
        if self.workers.is_draining(asks.worker, asks.principal) {
            return Ok(draining());
        }
        let until = Instant::now() + claim.wait;
        let latest = context
            .deadline
            .map(|deadline| deadline.checked_sub(MARGIN).unwrap_or(deadline));
        let until = latest.map_or(until, |latest| latest.min(until));
        let here = ClaimHere {
            worker: Arc::from(asks.worker),
            wanted: claim.wanted.clone(),
            max: claim.max,
            lease_ms: claim.lease_ms,
            silent_ms: 0,
        };
        let heard_at = claim.heard_at;
        let undelivered = match &here.wanted {
            Wanted::Task(_) => Box::pin(self.claim_anywhere(context, here)).await?,
            Wanted::Left(_) => {
                let own = Box::pin(self.app.claim_here(context, &here)).await?;
                let others = self.others();
                let asked = others
                    .iter()
                    .map(|node| self.claim_at(context, &here, node));
                let mut all = self.undelivered(context);
                all.extend(own.delivered());
                for more in Box::pin(join_all(asked)).await {
                    all.extend(more.delivered());
                }
                all
            }
            Wanted::Methods(methods) => {
                match self
                    .wait(context, (&here, heard_at), methods, asks, (until, news))
                    .await?
                {
                    Waited::Begun(undelivered) => *undelivered,
                    Waited::Draining => return Ok(draining()),
                    Waited::Silent => return Ok(silent()),
                }
            }
        };
        Box::pin(self.tell(context, undelivered)).await
    }

    /// The claims for the answer; those that do not fit are released.
    async fn tell(
        &self,
        context: &Context,
        mut undelivered: UndeliveredClaims,
    ) -> Result<Claims, Error> {
        let mut claims = Vec::with_capacity(undelivered.begun().len());
        let (mut looked, mut bytes) = (0, 0);
        while let Some(begun) = undelivered.begun().get(looked).cloned() {
            looked += 1;
            match self.claimed(context, begun).await {
                Ok(claimed) => {
                    if let Some(claimed) = &claimed {
                        bytes += bytes_of(claimed);
                        self.access.given(context, claimed.task.owner.as_ref());
                    }
                    claims.extend(claimed);
                    if bytes > CLAIMED_BYTES_MAX {
                        undelivered.split_off(looked).give_back().await;
                        break;
                    }
                }
                Err(error) => {
                    undelivered.give_back().await;
                    return Err(error);
                }
            }
        }
        let _ = undelivered.delivered();
        Ok(Claims {
            claims,
            ..Claims::default()
        })
    }

    async fn anywhere(&self, context: &Context, request: Request) -> Result<Reply, Error> {
        let Some(forward) = &self.forward else {
            return self.perform(context, request).await;
        };
        let here = |request| self.perform(context, request);
        Box::pin(routing::anywhere(&**forward, context, request, here)).await
    }

    /// Attempts of flows of any node, when there are some.
    pub(super) fn undelivered(&self, context: &Context) -> UndeliveredClaims {
        let none = self.app.undelivered(context, Vec::new());
        match &self.forward {
            Some(forward) => none.anywhere(forward, context),
            None => none,
        }
    }

    /// Claims a task, on whichever node its flow is. Goes on when whoever asks goes away meanwhile: what has begun is
    /// given back then.
    async fn claim_anywhere(
        &self,
        context: &Context,
        here: ClaimHere,
    ) -> Result<UndeliveredClaims, Error> {
        let Some(forward) = self.forward.clone() else {
            return self.app.claim_here(context, &here).await;
        };
        let mut undelivered = self.undelivered(context);
        let (app, context) = (self.app.clone(), context.clone());
        self.to_the_end(async move {
            let own = |_| async {
                let begun = Box::pin(app.claim_here(&context, &here)).await?;
                Ok(Reply::Claimed(begun.delivered()))
            };
            let claim = Request::Claim(here.clone());
            let claimed = routing::anywhere(&*forward, &context, claim, own).await?;
            undelivered.extend(begun(claimed)?);
            Ok(undelivered)
        })
        .await
    }

    /// Carries something out to its end, also when whoever waits for it goes away.
    pub(super) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let ended = self.app.flows.tasks.spawn(work).await;
        ended.unwrap_or(Err(Error::OutcomeUnknown))
    }

    /// Waits for attempts, of flows of any node. Boxed is what thousands need not wait with.
    async fn wait(
        &self,
        context: &Context,
        (here, heard_at): (&ClaimHere, Instant),
        methods: &Arc<[Arc<str>]>,
        asks: &Asks<'_>,
        (until, news): (Instant, Option<&Notify>),
    ) -> Result<Waited, Error> {
        let app = &*self.app;
        let now = || ClaimHere {
            silent_ms: u64::try_from(heard_at.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..here.clone()
        };
        // An offer would come back again and again from one that waits on.
        if app.is_silent(context, &now()) {
            return Ok(Waited::Silent);
        }
        let mut begun = Box::pin(app.claim_here(context, &now())).await?;
        if begun.is_empty() {
            begun = Box::pin(self.claim_of_others(context, &now())).await;
        }
        let mut waiting: Option<Waiting> = None;
        let again = Duration::from_millis(ASK_AGAIN_MS);
        let mut ask_at = Instant::now() + again;
        let will_wait = begun.is_empty() && Instant::now() < until;
        let _place = match will_wait {
            true => self.limits.waiting_claim(context)?,
            false => None,
        };
        while begun.is_empty() && Instant::now() < until {
            let place = match &mut waiting {
                Some(place) => place,
                None => waiting.insert(app.wait_for(context, methods, (&here.worker, here.max))?),
            };
            let told = tokio::select! {
                told = timeout_at(until, place.told()) => told,
                // Dropping the place offers to others what it was told of meanwhile.
                () = news.map_or_else(|| Either::Right(pending()), |it| Either::Left(it.notified())) => break,
                () = sleep_until(ask_at) => {
                    ask_at = Instant::now() + again;
                    self.workers.asked(asks).map_err(|error| unasked(&error))?;
                    if self.workers.is_draining(asks.worker, asks.principal) {
                        return Ok(Waited::Draining);
                    }
                    continue;
                }
            };
            waiting = None;
            match told {
                // Dropping the reservation offers it to others.
                Ok(Some(Wakeup::Here(_)))
                    if self.workers.is_draining(asks.worker, asks.principal) =>
                {
                    return Ok(Waited::Draining);
                }
                // It asks again when it goes on.
                Ok(Some(Wakeup::Here(_))) if app.is_silent(context, &now()) => {
                    return Ok(Waited::Silent);
                }
                Ok(Some(Wakeup::Here(reservation))) => {
                    let first = vec![reservation];
                    let offered = app.claim_offered(context, here, methods, first);
                    begun = Box::pin(offered).await?;
                }
                Ok(Some(Wakeup::There(node))) => {
                    begun = Box::pin(self.claim_there(context, &now(), node)).await;
                    // The other node knows which leases it has lost there, and does not say it.
                    let may_stand_still =
                        asks.connection == Connection::Socket && heard_at.elapsed() >= SILENCE;
                    if begun.is_empty() && may_stand_still {
                        return Ok(Waited::Silent);
                    }
                }
                Ok(Some(Wakeup::Look)) if self.workers.is_draining(asks.worker, asks.principal) => {
                    return Ok(Waited::Draining);
                }
                Ok(Some(Wakeup::Look)) => {}
                // The server stops, or it is time.
                Ok(None) | Err(_) => break,
            }
        }
        Ok(Waited::Begun(Box::new(begun)))
    }

    /// What a worker is told of an attempt that it has begun; nothing of one that has failed already.
    async fn claimed(&self, context: &Context, begun: Begun) -> Result<Option<Claimed>, Error> {
        let app = &*self.app;
        let rows = app.rows.rows(begun.flow, [begun.task]);
        let row = match rows.and_then(|mut rows| rows.pop()) {
            Some(row) if row.attempt >= begun.attempt => row,
            Some(_) | None => {
                // When it cannot be read, all of the claim is given back.
                let seen = app.get(context, begun.task, Consistency::Strong).await;
                seen?.row
            }
        };
        let input = match app.inputs_of(context, &row).await? {
            Ok(input) => input,
            Err(unfit) => {
                self.fail_unfit(context, &begun, unfit).await;
                return Ok(None);
            }
        };
        let answers = app.answers(begun.flow, &begun.turns).await?;
        let specification = specification_of(&row);
        let lineage = app.lineage_of_claim(&begun, &specification).await;
        let lineage = lineage.unwrap_or_else(|error| {
            tracing::debug!(task.id = %begun.task, %error, "a claim is told without lineage");
            None
        });
        let trigger = app.trigger_of(context, &row).await?;
        let message = match begun.origin_at {
            Some(version) => app.origin_message(begun.flow, version).await?,
            None => None,
        };
        let params = row.params.as_ref().map(Payload::to_map);
        let timeout_ms = params.and_then(|p| taskledger_domain::task::spec::timeout_ms(&p));
        Ok(Some(Claimed {
            input,
            lineage,
            task: row,
            deadline: begun.deadline,
            timeout_ms,
            trigger,
            message,
            trace: begun.trace,
            answers,
            lease: begun.lease,
            attempt: begun.attempt,
            expires_at: begun.expires_at,
            lease_ms: begun.lease_ms,
        }))
    }

    /// Inputs that do not conform to what the method wants by now: no worker could do anything about it.
    async fn fail_unfit(&self, context: &Context, begun: &Begun, unfit: Unfit) {
        let (error, breach) = match unfit {
            Unfit::Said(error) => (error, None),
            Unfit::Breach(breach) => (breach.failure(), Some(breach)),
        };
        let fail = Fail {
            task: begun.task,
            lease: begun.lease,
            error,
            retryable: false,
            rejected: false,
            remarks: None,
            breach,
        };
        if let Err(error) = self.anywhere(context, Request::Fail(fail)).await {
            tracing::warn!(task.id = %begun.task, %error, "an attempt with unfit inputs was not ended");
        }
    }
}

impl Service {
    /// Notes that a worker is connected, until the value is dropped; `worker`: its name, unless it is that of its
    /// principal.
    #[must_use]
    pub fn connected(&self, context: &Context, worker: Option<Arc<str>>) -> Connected {
        let worker = worker.unwrap_or_else(|| name(&context.caller));
        let key = (worker, context.caller.actor().clone());
        Connected::new(&self.connections, &self.workers, key)
    }
}

/// What a worker is called that does not say it: its principal's name.
pub(super) fn name(caller: &Caller) -> Arc<str> {
    let actor = caller.actor();
    actor
        .split_once(':')
        .map_or_else(|| actor.clone(), |(_, name)| Arc::from(name))
}

/// Bytes of a claim that may be many.
fn bytes_of(claimed: &Claimed) -> usize {
    let task = &claimed.task;
    let answers = claimed.answers.iter();
    let of_answers = answers.map(|it| it.question.as_str().len() + it.answer.as_str().len());
    let origins = claimed.lineage.iter().flatten();
    let of_origins = origins.map(|it| size_of_val(it) + it.input.len() + it.reference.len());
    let of_message = claimed.message.as_ref().map_or(0, OriginMessage::bytes);
    let more = of_answers.sum::<usize>() + of_origins.sum::<usize>() + of_message;
    let payloads = [
        claimed.trigger.as_ref(),
        Some(&task.inputs),
        task.schemas.as_ref(),
        task.params.as_ref(),
    ];
    let of_task: usize = payloads
        .into_iter()
        .flatten()
        .map(|it| it.as_str().len())
        .sum();
    claimed.input.as_str().len() + of_task + more
}

/// How a wait for attempts has ended.
enum Waited {
    /// With those that have begun, if any.
    Begun(Box<UndeliveredClaims>),
    /// The worker is drained.
    Draining,
    /// The worker may stand still.
    Silent,
}

fn draining() -> Claims {
    Claims {
        draining: true,
        ..Claims::default()
    }
}

fn silent() -> Claims {
    Claims {
        silent: true,
        ..Claims::default()
    }
}

fn begun(reply: Reply) -> Result<Vec<Begun>, Error> {
    if let Reply::Claimed(begun) = reply {
        Ok(begun)
    } else {
        Err(Failure::Broken(format!("a claim was answered {reply:?}")).into())
    }
}

/// Whether the credentials allow these methods, which this member names.
pub(super) fn allowed(
    caller: &Caller,
    methods: &[Arc<str>],
    field: &'static str,
) -> Result<(), Error> {
    let Some(narrowed) = caller.methods() else {
        return Ok(());
    };
    if methods.iter().all(|method| narrowed.contains(method)) {
        return Ok(());
    }
    Err(Error::Forbidden {
        scope: Scope::Worker,
        field: Some(Cow::from(field)),
    })
}

pub(super) fn invalid(field: &str, reason: &str, expected: &str, actual: &str) -> Error {
    let actual = serde_json::Value::from(actual);
    Error::invalid([Violation::of(field, reason, expected, &actual)])
}

fn unasked(refusal: &AskRefusal) -> Error {
    let reason = refusal.to_string();
    match refusal {
        AskRefusal::BuiltIn { method } => {
            let expected =
                "methods that do not run in the server; `system.executors` lists those that do";
            invalid("methods", &reason, expected, method)
        }
        AskRefusal::InvalidName { method } => {
            invalid("methods", &reason, "names of 1 to 255 characters", method)
        }
        AskRefusal::TooMany { .. } => Error::Busy {
            reason,
            retry_after_ms: ASK_AGAIN_MS,
        },
    }
}
