//! Gives work to one socket: a subscription that claims tasks as long as its worker has room for them, and tells at
//! once which are taken back.
//!
//! Owns: when more is claimed, and in which order a worker is told of things. At most one call for claims is
//! under way for each subscription. What is held is known from the claims, and what has ended from the log,
//! which one reader follows for all sockets; ends through the same socket count at once. May not touch: what a claim
//! is, and whose it is.

mod window;

pub(super) use window::{Window, Windows};

use super::notification::notification;
use super::outbox::{Closed, Outbox, Unwritten};
use super::params;
use super::sockets::Heard;
use crate::application::Context;
use crate::application::api::work::{
    Claim, ClaimEnd, ClaimWatch, Claimed, Claims, Connected, Connection, HeldClaims, Release,
    Wanted,
};
use crate::subscription::notice::TakenBack;
use crate::transport::figures::{Carrier, Figures};
use crate::transport::jsonrpc::replies::ClaimJson;
use crate::transport::jsonrpc::stream_request::WORK;
use crate::transport::jsonrpc::working::Work;
use crate::transport::jsonrpc::{ErrorKind, RpcError};
use axum::extract::ws::Message;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::limits::CLAIMS_MAX;
use taskledger_domain::{LeaseId, TaskId};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// How long one call waits for work. Nothing is lost between two of them.
const WAIT: Duration = Duration::from_secs(60);
/// Pause after a call for claims has failed, unless the failure says how long.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause of a worker that is drained, before it asks whether it still is.
const DRAINED_PAUSE: Duration = Duration::from_secs(5);
/// Pause after a call that came back with nothing and did not wait.
const EMPTY_PAUSE: Duration = Duration::from_millis(100);
/// How long a worker that has lost a lease may say nothing before it is asked again whether it is there.
const SILENCE: Duration = Duration::from_secs(25);

/// Work that a call has asked for: the first claims, and the way to more.
pub(super) struct Worker {
    pub(super) work: Arc<dyn Work>,
    /// Makes the context of each call for claims.
    pub(super) context: Box<dyn Fn() -> Context + Send + Sync>,
    /// When the worker was last heard of.
    pub(super) heard: Arc<Heard>,
    pub(super) asked: params::Work,
    pub(super) first: UndeliveredClaims,
    pub(super) watch: ClaimWatch,
    /// As long as the subscription is open.
    pub(super) connected: Connected,
}

/// Claims that were not delivered to the worker yet. Dropping this releases them.
pub(super) struct UndeliveredClaims {
    work: Arc<dyn Work>,
    context: Context,
    claims: VecDeque<Claimed>,
    draining: bool,
    silent: bool,
}

impl UndeliveredClaims {
    fn of(work: &Arc<dyn Work>, context: Context, found: Claims) -> Self {
        Self {
            work: work.clone(),
            context,
            claims: found.claims.into(),
            draining: found.draining,
            silent: found.silent,
        }
    }
}

impl Drop for UndeliveredClaims {
    fn drop(&mut self) {
        if self.claims.is_empty() {
            return;
        }
        let claims = std::mem::take(&mut self.claims);
        let claims = claims.iter().map(Claimed::release).collect();
        drop(gives_back(&self.work, &self.context, claims));
    }
}

/// Releases claims if the message that tells of them is not written.
pub(super) fn gives_back(
    work: &Arc<dyn Work>,
    context: &Context,
    claims: Vec<Release>,
) -> Unwritten {
    let (work, context) = (work.clone(), context.clone());
    Unwritten::then(move || {
        tokio::spawn(async move {
            for release in claims {
                work.give_back(&context, release).await;
            }
        });
    })
}

/// The call that opens a subscription: what was asked for is claimed once, so that whatever is wrong with it is
/// told as its error.
pub(super) async fn begun(
    work: Arc<dyn Work>,
    context: Box<dyn Fn() -> Context + Send + Sync>,
    heard: Arc<Heard>,
    asked: params::Work,
) -> Result<Worker, RpcError> {
    let opening = context();
    // Before the first claim, so that no end of one is missed.
    let watch = work.watch(&opening).await?;
    let claim = claim(&asked, heard.at(), asked.window, Duration::ZERO);
    let connected = work.connected(&opening, asked.worker.clone());
    let first = work.claim(&opening, claim).await?;
    let first = UndeliveredClaims::of(&work, opening, first);
    Ok(Worker {
        work,
        context,
        heard,
        asked,
        first,
        watch,
        connected,
    })
}

fn claim(asked: &params::Work, heard_at: Instant, room: usize, wait: Duration) -> Claim {
    Claim {
        worker: asked.worker.clone(),
        wanted: Wanted::Methods(asked.methods.clone()),
        max: room.min(CLAIMS_MAX),
        lease_ms: asked.lease_ms,
        wait,
        connection: Connection::Socket,
        heard_at,
    }
}

impl Worker {
    /// Claims and tells until the subscription is ended, or cannot go on.
    pub(super) async fn run(
        self,
        name: String,
        window: Arc<Window>,
        out: Outbox,
        figures: Arc<Figures>,
    ) -> Result<(), Closed> {
        let Self {
            work,
            context,
            heard,
            asked,
            first,
            watch: ClaimWatch { held, ends },
            connected: _connected,
        } = self;
        let teller = Teller {
            name,
            window,
            held,
            out,
            figures,
        };
        let claiming = teller.claim(&work, (&*context, &heard), &asked, first);
        tokio::select! {
            ended = claiming => ended?,
            ended = teller.watch(ends) => ended?,
            () = teller.follow(&work, &*context, &asked) => {}
        }
        let params = json!({"subscription": teller.name});
        teller.out.tell(notification("end", &params)).await
    }
}

struct Teller {
    name: String,
    window: Arc<Window>,
    held: HeldClaims,
    out: Outbox,
    figures: Arc<Figures>,
}

impl Teller {
    /// Claims as much as there is room for, again and again.
    async fn claim(
        &self,
        work: &Arc<dyn Work>,
        (context, heard): (&(dyn Fn() -> Context + Send + Sync), &Heard),
        asked: &params::Work,
        first: UndeliveredClaims,
    ) -> Result<(), Closed> {
        let mut was_draining = false;
        let mut found = first;
        let mut begun = Instant::now();
        loop {
            let (draining, found_none) = (found.draining, found.claims.is_empty());
            while let Some(claimed) = found.claims.pop_front() {
                let undelivered = gives_back(work, &found.context, vec![claimed.release()]);
                self.claimed(&claimed, undelivered).await?;
            }
            if draining && !was_draining {
                let params = json!({"subscription": self.name, "draining": true});
                self.out.tell(notification(WORK, &params)).await?;
            }
            was_draining = draining;
            if draining {
                sleep(DRAINED_PAUSE).await;
            } else if found.silent {
                // It gets work as soon as it says anything.
                let _ = timeout(SILENCE, heard.behind(begun)).await;
            } else if found_none && begun.elapsed() < EMPTY_PAUSE {
                sleep(EMPTY_PAUSE).await;
            }
            found = loop {
                let room = self.window.room().await;
                begun = Instant::now();
                let (context, claim) = (context(), claim(asked, heard.at(), room, WAIT));
                match work.claim(&context, claim).await {
                    Ok(found) => break UndeliveredClaims::of(work, context, found),
                    Err(error) => match pause(&error) {
                        Some(pause) => sleep(pause).await,
                        None => {
                            tracing::info!(error.code = error.code, "a subscription for work ends");
                            return Ok(());
                        }
                    },
                }
            };
        }
    }

    /// Tells of a claim; and that it was taken back meanwhile, if so.
    async fn claimed(&self, claimed: &Claimed, undelivered: Unwritten) -> Result<(), Closed> {
        #[derive(Serialize)]
        struct Params<'a> {
            subscription: &'a str,
            claim: ClaimJson<'a>,
        }
        let (task, lease) = (claimed.task.id, claimed.lease);
        self.window.hold(task, claimed.attempt, lease);
        self.held.hold(task, claimed.attempt);
        let params = Params {
            subscription: &self.name,
            claim: ClaimJson(claimed),
        };
        self.out.tell_or(told(&params), undelivered).await?;
        self.figures.noticed(Carrier::Socket, 1);
        match self.window.told(task, lease) {
            Some(reason) => self.taken_back(task, lease, reason).await,
            None => Ok(()),
        }
    }

    /// Notes which claims have ended, and tells of those that were taken back.
    async fn watch(&self, mut ends: mpsc::UnboundedReceiver<ClaimEnd>) -> Result<(), Closed> {
        while let Some(end) = ends.recv().await {
            let ended = self.window.ended(end.task, end.attempt, end.taken_back);
            if let Some((lease, reason)) = ended {
                self.taken_back(end.task, lease, reason).await?;
            }
        }
        Ok(())
    }

    /// Watches what the worker has claimed through another socket and renews through this one.
    async fn follow(
        &self,
        work: &Arc<dyn Work>,
        context: &(dyn Fn() -> Context + Send + Sync),
        asked: &params::Work,
    ) {
        loop {
            let (task, lease) = self.window.renewed_elsewhere().await;
            let context = context();
            let found = work.held(&context, task, asked.worker.clone()).await;
            let attempt = found.filter(|held| held.lease == lease);
            let attempt = attempt.map(|held| held.attempt);
            self.window.follow(task, lease, attempt);
            if let Some(attempt) = attempt {
                self.held.follow(task, attempt);
            }
        }
    }

    async fn taken_back(
        &self,
        task: TaskId,
        lease: LeaseId,
        reason: TakenBack,
    ) -> Result<(), Closed> {
        let cancel = json!({"task_id": task, "lease": lease, "reason": reason.as_str()});
        let params = json!({"subscription": self.name, "cancel": cancel});
        self.out.tell(notification(WORK, &params)).await
    }
}

fn told(params: &impl Serialize) -> Message {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'static str,
        params: &'a P,
    }
    let told = Notification {
        jsonrpc: "2.0",
        method: WORK,
        params,
    };
    let text = serde_json::to_string(&told).expect("claims can always be written as JSON");
    Message::text(text)
}

/// How long to wait after an error that passes; `None`: it does not.
fn pause(error: &RpcError) -> Option<Duration> {
    let passes = [
        ErrorKind::Busy,
        ErrorKind::Internal,
        ErrorKind::QuotaExceeded,
    ]
    .map(|kind| kind.row().0);
    let said = error.data.get("retry_after_ms").and_then(Value::as_u64);
    passes
        .contains(&error.code)
        .then(|| said.map_or(PAUSE, Duration::from_millis))
}
