//! The loop of a worker: claims while there is room, and shows what ends.

use super::attempt;
use super::calls::{Answer, Shared};
use super::claim::Claims;
use super::ending::Ending;
use super::pace::Pace;
use super::settings::Settings;
use super::stop::{Stop, say};
use crate::output::Output;
use crate::{Api, ApiError, CliError};
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use taskledger_clock::SharedClock;
use taskledger_domain::limits::CLAIMS_MAX;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout};

/// How long a claim waits for work. Shorter than the time after which proxies cut a silent request off.
const WAIT_SECONDS: u64 = 30;
/// How long its answer is awaited.
const CLAIM_TIME_MAX: Duration = Duration::from_secs(WAIT_SECONDS + 30);
/// A server that has work answers within this time. A worker that stops waits for such an answer, and gives what it
/// claims back: dropped with the call, it would be nobody's until its lease ends.
const ANSWER_AT_ONCE: Duration = Duration::from_millis(500);

/// Works until it is told to stop, and what runs has ended.
pub(super) async fn work(
    api: Arc<dyn Api>,
    settings: Settings,
    clock: SharedClock,
    stop: Stop,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let shared = Arc::new(Shared::new(api, settings, clock, stop));
    Worker {
        pace: Pace::new(shared.clock.clone()),
        shared,
        running: JoinSet::new(),
        failure: None,
    }
    .run(out)
    .await
}

struct Worker {
    shared: Arc<Shared>,
    pace: Pace,
    running: JoinSet<Ending>,
    /// Why nothing more is claimed, unless it was told to stop.
    failure: Option<CliError>,
}

impl Worker {
    async fn run(mut self, out: &mut Output) -> Result<ExitCode, CliError> {
        let claiming = self.shared.stop.claiming.clone();
        while !claiming.is_cancelled() && self.failure.is_none() {
            let Some(claims) = self.claimed(out).await else {
                continue;
            };
            for claim in claims.claims {
                self.running.spawn(attempt::run(self.shared.clone(), claim));
            }
            if claims.draining {
                say("the worker is drained; what runs is finished");
                break;
            }
        }
        if !self.running.is_empty() {
            say(&format!("waiting for {} to end", self.running.len()));
        }
        while let Some(ended) = self.running.join_next().await {
            self.show(ended, out);
        }
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// Claims as much as there is room for. `None`: there is no room, nothing more is wanted, or the call went
    /// wrong. Attempts that end meanwhile are shown.
    async fn claimed(&mut self, out: &mut Output) -> Option<Claims> {
        let claiming = self.shared.stop.claiming.clone();
        let settings = &self.shared.settings;
        let free = (settings.concurrency as usize).saturating_sub(self.running.len());
        if free == 0 {
            tokio::select! {
                Some(ended) = self.running.join_next() => self.show(ended, out),
                () = claiming.cancelled() => {}
            }
            return None;
        }
        let mut params = json!({
            "methods": settings.methods,
            "max": free.min(CLAIMS_MAX),
            "lease_seconds": settings.lease_seconds,
            "wait_seconds": WAIT_SECONDS,
        });
        if let Some(worker) = &settings.worker {
            params["worker"] = json!(worker);
        }
        let shared = self.shared.clone();
        let sent = Instant::now();
        let mut call = std::pin::pin!(shared.call_beside("tasks.claim", params, CLAIM_TIME_MAX));
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut call => break answer,
                () = claiming.cancelled() => {
                    let rest = ANSWER_AT_ONCE.saturating_sub(sent.elapsed());
                    break timeout(rest, &mut call).await.ok()?;
                }
                Some(ended) = self.running.join_next() => {
                    self.show(ended, out);
                    if self.failure.is_some() {
                        return None;
                    }
                }
            }
        };
        let pause = match answer {
            Answer::Result(result) => match claims(&result) {
                Ok(claims) => {
                    self.pace.arrived();
                    return Some(claims);
                }
                Err(error) => {
                    say(&format!("{error}; trying again"));
                    None
                }
            },
            Answer::Refused(error) => {
                self.failure = Some(error.into());
                return None;
            }
            Answer::NotHeld(reason) => {
                self.failure = Some(ApiError::Protocol(reason).into());
                return None;
            }
            Answer::Later(_, asked) => asked,
        };
        self.wait(pause, out).await;
        None
    }

    /// Waits before the next claim.
    async fn wait(&mut self, asked: Option<Duration>, out: &mut Output) {
        let claiming = self.shared.stop.claiming.clone();
        let mut pause = std::pin::pin!(tokio::time::sleep(self.pace.pause(asked)));
        loop {
            tokio::select! {
                () = &mut pause => return,
                () = claiming.cancelled() => return,
                Some(ended) = self.running.join_next() => self.show(ended, out),
            }
        }
    }

    /// Shows how an attempt ended. When nobody reads the output, the worker stops in order.
    fn show(&mut self, ended: Result<Ending, JoinError>, out: &mut Output) {
        let shown = match ended {
            Ok(ending) => {
                if let Some(text) = &ending.fatal {
                    self.fail(CliError::Failed(text.clone()));
                }
                ending.show(out)
            }
            Err(error) => {
                self.fail(CliError::failed(&error));
                Ok(())
            }
        };
        if let Err(error) = shown {
            self.fail(error.into());
        }
    }

    /// The first failure counts.
    fn fail(&mut self, failure: CliError) {
        self.failure.get_or_insert(failure);
    }
}

/// The claims in an answer.
fn claims(result: &Value) -> Result<Claims, ApiError> {
    Claims::deserialize(result)
        .map_err(|error| ApiError::Protocol(format!("`tasks.claim` is not understood: {error}")))
}
