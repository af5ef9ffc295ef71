//! What endpoints want, and what has changed about that since the last look.

use super::intake::{Recipient, State, state};
use super::row::{filter, ordering, reports};
use super::{Error, Store};
use crate::endpoint::Filter;
use taskledger_domain::{FlowId, Position, RunId};
use taskledger_sql::{Columns, Row};

/// An endpoint, and what it wants.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The endpoint and its recipient settings.
    pub to: Recipient,
    /// What of it.
    pub filter: Filter,
    /// Events above this position.
    pub since: Position,
    /// The run of a callback, and its flow; `None`: a lasting endpoint.
    pub run: Option<(RunId, FlowId)>,
}

/// What endpoints want, or what has changed of it.
#[derive(Debug, Clone)]
pub struct WantedNow {
    /// Where the outbox is.
    pub state: State,
    /// What lasting endpoints want; nothing of those that have not changed since, if `is_change`.
    pub lasting: Vec<Wanted>,
    /// Only what has changed.
    pub is_change: bool,
    /// Callbacks whose runs go on.
    pub runs: Vec<Wanted>,
}

impl Store {
    /// Where the outbox is, and what is wanted: everything, or what has changed since the generation
    /// that is `known`, unless a lasting endpoint was removed since. Cost: O(callbacks of runs), and
    /// O(endpoints) or O(those that have changed).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wanted(&self, known: Option<i64>) -> Result<WantedNow, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let state = state(&mut tx).await?;
            let args = tx.args();
            let removal = Columns::of(&tx.fetch_one(REMOVAL, args).await?).int()?;
            let known = known.filter(|known| removal <= *known);
            let mut args = tx.args();
            args.int(known.unwrap_or(EVER));
            let lasting = tx.fetch_all(CHANGED, args).await?;
            let args = tx.args();
            let runs = tx.fetch_all(RUNS, args).await?;
            tx.commit().await?;
            let all = |rows: &[Row]| -> Result<Vec<Wanted>, Error> {
                rows.iter()
                    .map(|row| wanted(&mut Columns::of(row)))
                    .collect()
            };
            Ok(WantedNow {
                state,
                lasting: all(&lasting)?,
                is_change: known.is_some(),
                runs: all(&runs)?,
            })
        };
        self.order(work).await
    }
}

pub(super) fn wanted(c: &mut Columns<'_>) -> Result<Wanted, Error> {
    let endpoint = c.int()?;
    let filter = filter(c)?;
    let ordering = ordering(c.word()?)?;
    let since = c.number()?;
    let run = c.opt_id()?.map(RunId);
    let flow = c.opt_id()?.map(FlowId);
    let reports = reports(c)?;
    Ok(Wanted {
        to: Recipient {
            endpoint,
            ordering,
            reports,
        },
        filter,
        since,
        run: run.zip(flow),
    })
}

const REMOVAL: &str = "SELECT removal FROM state";
/// Before the first generation.
const EVER: i64 = -1;
// By `endpoints_generation` and `endpoints_callbacks`.
const CHANGED: &str =
    "SELECT no, events, flow_id, user_id, labels, ordering, since, run_id, run_flow, report_name, content_type
    FROM endpoints WHERE is_callback = 0 AND generation > $1";
const RUNS: &str =
    "SELECT no, events, flow_id, user_id, labels, ordering, since, run_id, run_flow, report_name, content_type
    FROM endpoints WHERE is_callback = 1 AND run_ended = 0 AND run_id IS NOT NULL ORDER BY no";
