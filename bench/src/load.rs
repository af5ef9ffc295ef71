//! Load in a closed loop: each connection sends its next call when the last one was answered, so a
//! server that is slow is asked less. Delays are those of callers who wait for their answer, not of
//! callers who come at a pace of their own.

use crate::client::{Answer, Client, Request};
use crate::report::percentile;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Kinds of calls that are told apart.
pub(crate) const KINDS: usize = 2;
/// Before a busy server is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// What a connection sends, again and again.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) request: Request,
    /// Below [`KINDS`].
    pub(crate) kind: usize,
    /// The answer is a stream of events, which is read to its end.
    pub(crate) follow: bool,
}

impl Call {
    /// One call, of the first kind.
    pub(crate) fn plain(request: Request) -> Self {
        Self {
            request,
            kind: 0,
            follow: false,
        }
    }

    /// The same call again and again.
    pub(crate) fn again(request: Request) -> Arc<[Self]> {
        Arc::new([Self::plain(request)])
    }
}

/// When it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// After so much time.
    Seconds(f64),
    /// After so many calls of all connections together.
    Calls(usize),
}

/// What one round gave.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) seconds: f64,
    /// Milliseconds of each call, by kind.
    times_ms: [Vec<f64>; KINDS],
    /// Answers that asked to come back.
    pub(crate) busy: u64,
    /// Bytes of all results.
    pub(crate) bytes: u64,
}

impl Round {
    /// Calls that were answered with a result.
    pub(crate) fn calls(&self) -> usize {
        self.times_ms.iter().map(Vec::len).sum()
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.calls() as f64 / self.seconds
    }

    /// Of all calls of a kind.
    pub(crate) fn percentile_ms(&self, kind: usize, percent: f64) -> f64 {
        percentile(&mut self.times_ms[kind].clone(), percent)
    }

    pub(crate) fn p50_ms(&self) -> f64 {
        self.percentile_ms(0, 50.0)
    }

    pub(crate) fn p99_ms(&self) -> f64 {
        self.percentile_ms(0, 99.0)
    }

    fn add(&mut self, mut other: Self) {
        for (all, more) in self.times_ms.iter_mut().zip(&mut other.times_ms) {
            all.append(more);
        }
        self.busy += other.busy;
        self.bytes += other.bytes;
    }
}

/// Sends from so many connections, spread over the addresses. `calls` gives what the `n`-th
/// connection sends.
pub(crate) async fn load(
    addresses: &[String],
    connections: usize,
    until: Until,
    calls: impl Fn(usize) -> Arc<[Call]>,
) -> Result<Round, String> {
    let mut clients = Vec::with_capacity(connections);
    for k in 0..connections {
        clients.push((
            Client::connect(&addresses[k % addresses.len()]).await?,
            calls(k),
        ));
    }
    let (left, deadline) = match until {
        Until::Seconds(seconds) => (usize::MAX, Some(Duration::from_secs_f64(seconds))),
        Until::Calls(calls) => (calls, None),
    };
    let left = Arc::new(AtomicUsize::new(left));
    let began = Instant::now();
    let deadline = deadline.map(|after| began + after);
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|(client, calls)| tokio::spawn(one(client, calls, left.clone(), deadline)))
        .collect();
    let mut round = Round::default();
    for task in tasks {
        round.add(task.await.map_err(|e| e.to_string())??);
    }
    round.seconds = began.elapsed().as_secs_f64();
    Ok(round)
}

/// One connection.
async fn one(
    mut client: Client,
    calls: Arc<[Call]>,
    left: Arc<AtomicUsize>,
    deadline: Option<Instant>,
) -> Result<Round, String> {
    let mut round = Round::default();
    let take = |n: usize| n.checked_sub(1);
    for call in calls.iter().cycle() {
        let relaxed = Ordering::Relaxed;
        if deadline.is_some_and(|at| Instant::now() >= at)
            || left.fetch_update(relaxed, relaxed, take).is_err()
        {
            break;
        }
        loop {
            let sent = Instant::now();
            let answer = match call.follow {
                true => client.follow(&call.request).await?,
                false => client.send(&call.request).await?,
            };
            match answer {
                Answer::Result(bytes) => {
                    round.times_ms[call.kind].push(sent.elapsed().as_secs_f64() * 1e3);
                    round.bytes += bytes as u64;
                    break;
                }
                Answer::Busy => {
                    round.busy += 1;
                    if deadline.is_some_and(|at| Instant::now() >= at) {
                        break;
                    }
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
            }
        }
    }
    Ok(round)
}
