//! One claim while its program runs: the lease is renewed, and the program is ended when the attempt is taken away from
//! this worker (cancellation, a lost lease, the end of the worker).

use super::calls::{Answer, Shared};
use super::claim::Claim;
use super::ending::{Ending, Outcome};
use super::pace::Pace;
use super::program::{self, Assignment, Verdict};
use super::progress::Progress;
use super::stop::say;
use super::telling::{Told, released, told};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger_process::{Order, TERMINATE_GRACE};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Between two reports of progress: each is an event of the task's history.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);
/// How long an answer to a renewal is awaited; on a connection that is dead a lease must not end in silence.
const RENEWAL_TIME_MAX: Duration = Duration::from_secs(10);
/// The same for the shortest leases.
const RENEWAL_TIME_MIN: Duration = Duration::from_secs(1);

/// Why an attempt is not this worker's any more.
enum Change {
    /// The program may clean up.
    Cancelled(String),
    /// Whatever it does is in vain.
    Lost(String),
    /// The worker ends.
    Ends,
}

/// Does what is claimed.
pub(super) async fn run(shared: Arc<Shared>, claim: Claim) -> Ending {
    let started = Instant::now();
    let (outcome, detail, fatal) = match ended(&shared, &claim).await {
        Ok((outcome, detail)) => (outcome, detail, None),
        Err(error) => {
            let program = shared.settings.program[0].display();
            let text = format!("cannot run `{program}`: {error}");
            let (outcome, _) = released(&shared, &claim).await;
            (outcome, Some(text.clone()), Some(text))
        }
    };
    let ending = Ending {
        task_id: claim.task_id().to_owned(),
        method: claim.method().to_owned(),
        attempt: claim.lease.attempt,
        outcome,
        detail,
        took: started.elapsed(),
        fatal,
    };
    if let Some(complaint) = ending.complaint() {
        say(&complaint);
    }
    ending
}

async fn ended(shared: &Shared, claim: &Claim) -> std::io::Result<Told> {
    if shared.stop.claiming.is_cancelled() {
        return Ok(released(shared, claim).await);
    }
    let (order, orders) = mpsc::unbounded_channel();
    let (reported, latest) = watch::channel(None);
    let reported = shared.settings.progress.then_some(reported);
    let assignment = Assignment::from(claim);
    let mut running = std::pin::pin!(program::run(
        &shared.settings.program,
        &assignment,
        orders,
        reported
    ));
    let mut keeping = std::pin::pin!(kept(shared, claim, latest));
    let mut change = None;
    let verdict = loop {
        let ends = matches!(change, Some(Change::Ends | Change::Lost(_)));
        let changed = tokio::select! {
            biased;
            verdict = &mut running => break verdict?,
            changed = &mut keeping, if change.is_none() => changed,
            () = shared.stop.running.cancelled(), if !ends => Change::Ends,
        };
        let told = match &changed {
            Change::Cancelled(_) => Order::Terminate(claim.cancel_grace()),
            Change::Lost(_) => Order::Kill,
            Change::Ends => Order::Terminate(TERMINATE_GRACE),
        };
        // A program that has ended hears nothing.
        let _ = order.send(told);
        if let Some(Change::Cancelled(reason)) = change {
            // The worker ends: it stays cancelled, only in less time.
            running.await?;
            return Ok((Outcome::Cancelled, Some(reason)));
        }
        change = Some(changed);
    };
    Ok(match change {
        None => told(shared, claim, verdict).await,
        // What the program says does not count any more.
        Some(Change::Cancelled(reason)) => (Outcome::Cancelled, Some(reason)),
        Some(Change::Lost(reason)) => (Outcome::Lost, Some(reason)),
        // It may have ended in order within its grace.
        Some(Change::Ends) => match verdict {
            Verdict::Completed(_) => told(shared, claim, verdict).await,
            Verdict::Failed { .. } | Verdict::Rejected { .. } => released(shared, claim).await,
        },
    })
}

/// Renews the lease and reports progress until the attempt is not this worker's any more.
async fn kept(
    shared: &Shared,
    claim: &Claim,
    mut latest: watch::Receiver<Option<Progress>>,
) -> Change {
    let patience = claim
        .third_of_lease()
        .clamp(RENEWAL_TIME_MIN, RENEWAL_TIME_MAX);
    let mut pace = Pace::new(shared.clock.clone());
    let begun = Instant::now();
    let asks = claim.asks().into_iter();
    let asks: Vec<Instant> = asks.filter_map(|ask| begun.checked_add(ask)).collect();
    let mut due = next(claim, &asks, begun);
    let mut earliest = begun;
    let mut sent = None;
    loop {
        tokio::select! {
            () = sleep_until(due) => {}
            () = fresh(&mut latest, earliest) => {}
        }
        let progress = latest.borrow_and_update().clone();
        let news = progress.as_ref().filter(|it| sent.as_ref() != Some(*it));
        let mut params = json!({"task_id": claim.task_id(), "lease": claim.lease.token});
        if let Some(Progress { value, message }) = news {
            params["progress"] = json!(value);
            if let Some(message) = message {
                params["message"] = json!(message);
            }
        }
        let has_news = news.is_some();
        let asked_at = Instant::now();
        let answer = shared.call("tasks.renew", params, patience).await;
        earliest = Instant::now() + PROGRESS_PAUSE;
        match answer {
            Answer::Result(result) => {
                pace.arrived();
                sent = progress;
                due = next(claim, &asks, asked_at);
                if result.get("cancel_requested").and_then(Value::as_bool) == Some(true) {
                    let reason = result.get("reason").and_then(Value::as_str);
                    return Change::Cancelled(reason.unwrap_or("cancelled").to_owned());
                }
            }
            Answer::NotHeld(reason) => return Change::Lost(reason),
            // Without the progress it may be taken.
            Answer::Refused(error) if has_news => {
                say(&format!(
                    "[{}] progress is refused: {error}",
                    claim.task_id()
                ));
                sent = progress;
                due = Instant::now();
            }
            Answer::Refused(error) => {
                say(&format!(
                    "[{}] a renewal is refused: {error}",
                    claim.task_id()
                ));
                due = Instant::now() + claim.renewal();
            }
            Answer::Later(_, asked) => {
                due = Instant::now() + pace.pause(asked).min(claim.renewal());
                earliest = due;
            }
        }
    }
}

/// When to renew after a renewal.
fn next(claim: &Claim, asks: &[Instant], renewed_at: Instant) -> Instant {
    let asks = asks.iter().copied().filter(|ask| *ask > renewed_at);
    asks.fold(renewed_at + claim.renewal(), Ord::min)
}

/// Waits for progress, and until it may be told.
async fn fresh(latest: &mut watch::Receiver<Option<Progress>>, earliest: Instant) {
    if latest.changed().await.is_err() {
        // There will be none.
        std::future::pending::<()>().await;
    }
    sleep_until(earliest).await;
}
