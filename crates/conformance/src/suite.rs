//! Runs the checks of all clauses, side by side, and keeps their order.

use super::clause::{Check, Clause, Evidence, Finding};
use super::options::Options;
use super::probe::Probe;
use super::report::{Line, Report, Verdict};
use futures_util::{FutureExt, StreamExt, stream};
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use taskledger_clock::Clock;

/// Checks under way at once: enough that those which wait do not hold up the others, few enough
/// for a small server.
const CONCURRENT_MAX: usize = 8;
/// How long one check may take. A check waits a few times for the patience of a probe at most.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(90);
/// Characters of a fresh id that make the names of one check unique.
const TOKEN_CHARS: usize = 12;

/// Runs clauses against one server.
#[derive(Debug)]
pub struct Suite<'a> {
    options: Options,
    client: reqwest::Client,
    clock: &'a dyn Clock,
}

impl<'a> Suite<'a> {
    /// A suite for the server in `options`; nothing is sent yet.
    ///
    /// # Errors
    /// The client cannot be made, or the address makes no sense.
    pub fn new(options: Options, clock: &'a dyn Clock) -> Result<Self, String> {
        let address = options.endpoint();
        let url = reqwest::Url::parse(&address)
            .map_err(|error| format!("`{address}` is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "cannot talk to `{url}`: only `http://` and `https://` are supported"
            ));
        }
        let client = options.client()?;
        Ok(Self {
            options,
            client,
            clock,
        })
    }

    /// Looks at all clauses. `done` is told after each how many are done.
    pub async fn run(&self, clauses: &[Clause], mut done: impl FnMut(usize)) -> Report {
        let checks = clauses
            .iter()
            .enumerate()
            .map(async |(at, clause)| (at, self.line(clause).await));
        // A slow check holds up no other.
        let mut running = std::pin::pin!(stream::iter(checks).buffer_unordered(CONCURRENT_MAX));
        let mut lines = Vec::with_capacity(clauses.len());
        while let Some(line) = running.next().await {
            lines.push(line);
            done(lines.len());
        }
        lines.sort_unstable_by_key(|(at, _)| *at);
        Report {
            lines: lines.into_iter().map(|(_, line)| line).collect(),
        }
    }

    async fn line(&self, clause: &Clause) -> Line {
        Line {
            id: clause.id,
            level: clause.level,
            text: clause.text,
            verdict: self.verdict(clause).await,
        }
    }

    /// Looks at one clause. A check that panics or never ends has failed.
    pub async fn verdict(&self, clause: &Clause) -> Verdict {
        let run = match &clause.check {
            Check::Test { run, .. } => run,
            Check::NotTestable(reason) => return Verdict::NotTestable(reason),
        };
        let mut token = self.clock.uuid().simple().to_string();
        token.truncate(TOKEN_CHARS);
        let probe = Probe::new(self.options.clone(), self.client.clone(), token);
        let check = AssertUnwindSafe(run(&probe)).catch_unwind();
        match tokio::time::timeout(CHECK_TIMEOUT, check).await {
            Ok(Ok(Ok(Evidence(text)))) => Verdict::Passed(text),
            Ok(Ok(Err(Finding::Failed(text)))) => Verdict::Failed(text),
            Ok(Ok(Err(Finding::Skipped(text)))) => Verdict::Skipped(text),
            Ok(Err(_)) => Verdict::Failed("the check panicked, which is a fault of it".to_owned()),
            Err(_) => {
                let seconds = CHECK_TIMEOUT.as_secs();
                Verdict::Failed(format!("the check did not end in {seconds} s"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clause::Level;
    use crate::clause::{Outcome, must, not_testable, seen};
    use taskledger_clock::SystemClock;

    async fn passes(probe: &Probe) -> Outcome {
        seen(probe.name("x"))
    }
    async fn hangs(_: &Probe) -> Outcome {
        std::future::pending().await
    }
    async fn panics(_: &Probe) -> Outcome {
        panic!("on purpose")
    }
    async fn skips(_: &Probe) -> Outcome {
        Err(Finding::skipped("why"))
    }

    #[tokio::test(start_paused = true)]
    async fn every_check_gets_a_verdict_in_the_order_of_the_clauses() {
        let clock = SystemClock::default();
        let suite = Suite::new(Options::new("http://127.0.0.1:1"), &clock).unwrap();
        let clauses = [
            must("a/b/1-hangs", "t", hangs),
            must("a/b/2-panics", "t", panics),
            must("a/b/3-passes", "t", passes),
            must("a/b/4-skips", "t", skips),
            not_testable(Level::Must, "a/b/5-not", "t", "why"),
        ];
        let report = suite.run(&clauses, |_| {}).await;
        let names: Vec<_> = report.lines.iter().map(|l| l.verdict.name()).collect();
        assert_eq!(
            names,
            ["failed", "failed", "passed", "skipped", "not testable"]
        );
        let ids: Vec<_> = report.lines.iter().map(|l| l.id).collect();
        assert_eq!(ids, clauses.each_ref().map(|c| c.id));
    }

    #[test]
    fn an_address_that_makes_no_sense_is_refused() {
        let clock = SystemClock::default();
        for url in ["127.0.0.1:8000", "ftp://h", "x", ""] {
            assert!(Suite::new(Options::new(url), &clock).is_err(), "{url}");
        }
    }
}
