//! Readiness checks: what must work before the server takes calls.

use super::api::{Check, DRAINING};
use super::{App, LAG_EVENTS_MAX};
use crate::subscription::runner::State;
use taskledger_domain::Position;

impl App {
    /// Checks everything now. Takes as long as the log takes to answer.
    pub async fn checks(&self) -> Vec<Check> {
        let log = match self.store.head().await {
            Ok(head) => Check {
                name: "log",
                ok: true,
                detail: format!("{head} events"),
            },
            Err(error) => Check {
                name: "log",
                ok: false,
                detail: error.to_string(),
            },
        };
        let mut checks = vec![log, self.read_models()];
        if self.flows.slots().is_held_back() {
            let running = match self.flows.slots().running_here() {
                1 => "1 attempt is".to_owned(),
                running => format!("{running} attempts are"),
            };
            checks.push(Check {
                name: DRAINING,
                ok: false,
                detail: format!("no new attempts start; {running} in progress"),
            });
        }
        checks
    }

    fn read_models(&self) -> Check {
        let read_models = &self.projections;
        // Before the checkpoint, which may come as far meanwhile.
        let first = read_models.catching_up_to();
        checked(
            read_models.state(),
            read_models.checkpoint(),
            read_models.lag(),
            first,
        )
    }
}

/// Read models at `at`, so many events behind the log; `first`: where the log ended at the start, if they have not come
/// as far yet.
fn checked(state: State, at: Position, lag: u64, first: Option<Position>) -> Check {
    let (ok, detail) = match state {
        State::Running => match first {
            _ if lag > LAG_EVENTS_MAX => (
                false,
                format!("at {at}, {lag} events behind the log: commands wait"),
            ),
            Some(first) => (
                false,
                format!("catching up after the start, at {at} of {first}: reads wait"),
            ),
            None => (true, format!("at {at}")),
        },
        State::Filling { position, of } => (false, format!("being filled, at {position} of {of}")),
        State::Retrying { reason } => (false, format!("at {at}, trying again: {reason}")),
        State::Failed { position, reason } => {
            (false, format!("stopped before {position}: {reason}"))
        }
    };
    Check {
        name: "projections",
        ok,
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_models_that_have_not_caught_up_since_the_start_keep_a_server_from_being_ready() {
        let late = LAG_EVENTS_MAX + 1;
        for (state, at, lag, first, ok, detail) in [
            (State::Running, 7, 0, None, true, "at 7"),
            (State::Running, 7, 3, None, true, "at 7"),
            (
                State::Running,
                7,
                3,
                Some(10),
                false,
                "catching up after the start, at 7 of 10: reads wait",
            ),
            (
                State::Running,
                0,
                late,
                Some(late),
                false,
                &format!("at 0, {late} events behind the log: commands wait"),
            ),
            (
                State::Filling {
                    position: 5,
                    of: 10,
                },
                0,
                10,
                Some(10),
                false,
                "being filled, at 5 of 10",
            ),
        ] {
            let check = checked(state, at, lag, first);
            assert_eq!((check.ok, check.detail.as_str()), (ok, detail));
        }
    }
}
