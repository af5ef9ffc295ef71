//! What must work for the server to take calls.

use super::api::{Check, DRAINING};
use super::{App, LAG_EVENTS_MAX};
use crate::subscription::runner::State;

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
        let at = self.projections.checkpoint();
        let (ok, detail) = match self.projections.state() {
            State::Running => match self.projections.lag() {
                lag if lag > LAG_EVENTS_MAX => (
                    false,
                    format!("at {at}, {lag} events behind the log: commands wait"),
                ),
                _ => (true, format!("at {at}")),
            },
            State::Filling { position, of } => {
                (false, format!("being filled, at {position} of {of}"))
            }
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
}
