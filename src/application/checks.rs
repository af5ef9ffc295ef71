//! Readiness checks: what must work before the server takes calls.

use super::api::{Check, DRAINING};
use super::{App, LAG_EVENTS_MAX};
use crate::subscription::runner::State;
use std::collections::BTreeMap;
use taskledger_domain::{FlowId, Position};

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

    /// Fails while events of the log are damaged; `None` when none is known to be. The server serves everything else,
    /// so this does not keep it from being ready. Flows are named if `names_flows`.
    pub(super) fn damage(&self, names_flows: bool) -> Option<Check> {
        let register = self.store.damage();
        let mut known: BTreeMap<Position, Option<FlowId>> = BTreeMap::new();
        known.extend(register.list().iter().map(|it| (it.position, it.flow)));
        let folded = self.queries.damaged_flows();
        known.extend(folded.values().map(|it| (it.position, Some(it.flow))));
        let detail = damage(&known, register.is_full(), names_flows)?;
        Some(Check {
            name: "damage",
            ok: false,
            detail,
        })
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

/// Damaged flows that a check names.
const NAMED_FLOWS_MAX: usize = 20;

/// What an operator should know of damaged events; `None`: there are none.
fn damage(
    known: &BTreeMap<Position, Option<FlowId>>,
    are_more: bool,
    names_flows: bool,
) -> Option<String> {
    let count = match (known.len(), are_more) {
        (0, _) => return None,
        (1, false) => "1 event of the log is".to_owned(),
        (count, false) => format!("{count} events of the log are"),
        (count, true) => format!("more than {count} events of the log are"),
    };
    let mut detail = format!("{count} damaged, the rest is served; see `taskledger events verify`");
    if !names_flows {
        return Some(detail);
    }
    let mut flows: BTreeMap<FlowId, Position> = BTreeMap::new();
    for (position, flow) in known {
        if let Some(flow) = flow {
            flows.entry(*flow).or_insert(*position);
        }
    }
    let unknown = known.iter().filter(|(_, flow)| flow.is_none());
    let named = flows
        .iter()
        .map(|(flow, position)| format!("flow `{flow}` at position {position}"))
        .chain(unknown.map(|(position, _)| format!("position {position}")));
    let mut named: Vec<String> = named.take(NAMED_FLOWS_MAX + 1).collect();
    if named.len() > NAMED_FLOWS_MAX {
        named.truncate(NAMED_FLOWS_MAX);
        named.push("others".to_owned());
    }
    detail.push_str(": ");
    detail.push_str(&named.join(", "));
    Some(detail)
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
    fn damaged_flows_are_named_once_and_not_without_end() {
        let flow = |n: u128| FlowId(uuid::Uuid::from_u128(n));
        assert_eq!(damage(&BTreeMap::new(), false, true), None);
        let few = BTreeMap::from([(3, Some(flow(7))), (5, Some(flow(7))), (9, None)]);
        assert_eq!(
            damage(&few, false, true).as_deref(),
            Some(
                "3 events of the log are damaged, the rest is served; see `taskledger events verify`: flow \
                 `00000000-0000-0000-0000-000000000007` at position 3, position 9"
            )
        );
        let hidden = damage(&few, false, false).expect("there are some");
        assert!(!hidden.contains("0007"), "{hidden}");
        let many = (1..=100).map(|n| (n, Some(flow(n.into())))).collect();
        let named = damage(&many, true, true).expect("there are some");
        assert!(named.starts_with("more than 100 events"), "{named}");
        assert_eq!(named.matches("flow `").count(), NAMED_FLOWS_MAX);
        assert!(named.ends_with(", others"), "{named}");
    }

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
