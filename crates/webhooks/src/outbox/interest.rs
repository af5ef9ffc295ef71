//! Which endpoints want which notice. Held in memory, made anew from the store whenever endpoints change.

use super::reported::{Made, ReportedRun};
use super::runs::{self, Run};
use crate::endpoint::{EventName, Filter};
use crate::store::{Recipient, Started, Wanted, WantedNow};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use taskledger_domain::flow::{Event, RunStarted};
use taskledger_domain::{FlowId, Position, Recorded, RunId};
use taskledger_log::{Error, EventStore};
use taskledger_subscription::descriptions::Descriptions;
use taskledger_subscription::notice::Notice;
use taskledger_subscription::users::Users;

/// What endpoints want, by where a notice can come from.
pub(super) struct Interest {
    log: Arc<dyn EventStore>,
    users: Users,
    /// How tasks are described.
    descriptions: Arc<Descriptions>,
    /// Endpoints that want notices of any flow.
    any: Vec<Wanted>,
    by_flow: HashMap<FlowId, Vec<Wanted>>,
    by_user: HashMap<Arc<str>, Vec<Wanted>>,
    runs: HashMap<FlowId, Vec<Run>>,
    reported: HashMap<FlowId, Vec<ReportedRun>>,
    /// Receivers of reports of runs that had ended before they were looked at.
    over: Vec<i64>,
    /// Counts changes of what lasting endpoints want.
    generation: i64,
    /// The highest number of a lasting endpoint.
    newest: i64,
    /// The place that was stored last.
    place: Position,
}

impl Interest {
    /// What these endpoints want; if only what has changed is `found`, the others want what they
    /// wanted `before`. Cost: O(what is found), and the histories of the flows of callbacks whose runs
    /// go on, unless they were known `before`.
    pub(super) async fn new(
        log: Arc<dyn EventStore>,
        found: WantedNow,
        before: Option<Self>,
    ) -> Result<Self, Error> {
        // What is known of tasks holds whatever is wanted.
        let descriptions = before.as_ref().map(|before| before.descriptions.clone());
        let mut interest = Self {
            users: Users::new(log.clone()),
            descriptions: descriptions.unwrap_or_else(|| Arc::new(Descriptions::new(log.clone()))),
            log,
            any: Vec::new(),
            by_flow: HashMap::new(),
            by_user: HashMap::new(),
            runs: HashMap::new(),
            reported: HashMap::new(),
            over: Vec::new(),
            generation: found.state.generation,
            newest: 0,
            place: found.state.position.unwrap_or(0),
        };
        let mut known: HashMap<RunId, Run> = HashMap::new();
        let mut reported: HashMap<RunId, ReportedRun> = HashMap::new();
        if let Some(before) = before {
            let runs = before.runs.into_values().flatten();
            known.extend(runs.map(|run| (run.id, run)));
            // What they have seen of behind the place was not written; what was written meanwhile they have not seen.
            let is_here = before.place == interest.place;
            let runs = before.reported.into_values().flatten();
            for mut run in runs.filter(|run| run.position() <= interest.place) {
                if !is_here {
                    run.goes_on(&*interest.log, interest.place).await?;
                }
                reported.insert(run.id, run);
            }
            if found.is_change {
                interest.any = before.any;
                interest.by_flow = before.by_flow;
                interest.by_user = before.by_user;
                interest.newest = before.newest;
            }
        }
        let reports = found
            .runs
            .iter()
            .filter(|wanted| wanted.to.reports.is_some());
        let receivers: HashSet<i64> = reports.map(|wanted| wanted.to.endpoint).collect();
        let place = found.state.position.unwrap_or(0);
        for wanted in found.runs {
            let Some((run, flow)) = wanted.run else {
                continue;
            };
            if wanted.to.reports.is_some() {
                interest
                    .report(&mut reported, (run, flow), wanted, place)
                    .await?;
                continue;
            }
            let run = match known.remove(&run) {
                Some(run) => Some(run),
                None => runs::found(&interest.log, wanted.to, run, flow).await?,
            };
            interest.runs.entry(flow).or_default().extend(run);
        }
        for runs in interest.reported.values_mut() {
            runs.retain_mut(|run| run.keep(&receivers));
        }
        interest.forget(&found.lasting);
        for wanted in found.lasting {
            interest.add(wanted);
        }
        Ok(interest)
    }

    /// One more receiver of the reports of a run that has started, or is about to.
    async fn report(
        &mut self,
        known: &mut HashMap<RunId, ReportedRun>,
        (run, flow): (RunId, FlowId),
        wanted: Wanted,
        place: Position,
    ) -> Result<(), Error> {
        let runs = self.reported.entry(flow).or_default();
        let at = match runs.iter().position(|it| it.id == run) {
            Some(at) => at,
            None => {
                let begun = match known.remove(&run) {
                    Some(run) => run,
                    None => ReportedRun::at(&*self.log, run, flow, place).await?,
                };
                runs.push(begun);
                runs.len() - 1
            }
        };
        match runs[at].is_over() {
            true => self.over.push(wanted.to.endpoint),
            false => runs[at].tells(wanted.to, wanted.since),
        }
        Ok(())
    }

    /// Receivers of reports of which nothing is to be said any more. Their numbers, once.
    pub(super) fn take_over(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.over)
    }

    /// The place was stored.
    pub(super) const fn stands_at(&mut self, place: Position) {
        self.place = place;
    }

    /// The generation of what it knows of lasting endpoints.
    pub(super) const fn generation(&self) -> i64 {
        self.generation
    }

    fn add(&mut self, wanted: Wanted) {
        self.newest = self.newest.max(wanted.to.endpoint);
        if let Some(flow) = wanted.filter.flow {
            self.by_flow.entry(flow).or_default().push(wanted);
        } else if let Some(user) = wanted.filter.user.clone() {
            self.by_user.entry(user).or_default().push(wanted);
        } else {
            self.any.push(wanted);
        }
    }

    /// Drops what these endpoints wanted until now. Cost: O(1) for new ones, O(endpoints) otherwise.
    fn forget(&mut self, changed: &[Wanted]) {
        let newest = self.newest;
        let known = changed.iter().map(|wanted| wanted.to.endpoint);
        let known: HashSet<i64> = known.filter(|endpoint| *endpoint <= newest).collect();
        if known.is_empty() {
            return;
        }
        let stays = |wanted: &Wanted| !known.contains(&wanted.to.endpoint);
        self.any.retain(stays);
        self.by_flow.retain(|_, list| {
            list.retain(stays);
            !list.is_empty()
        });
        self.by_user.retain(|_, list| {
            list.retain(stays);
            !list.is_empty()
        });
    }

    /// To be told of every event, in order.
    pub(super) fn learn(&mut self, recorded: &Recorded) {
        self.users.learn(recorded);
        self.descriptions.learn(recorded, !self.is_idle(recorded));
        if let Event::TaskCreated(created) = recorded.event.as_ref()
            && let Some(runs) = self.runs.get_mut(&recorded.flow)
        {
            for run in runs.iter_mut().filter(|run| created.run_id == Some(run.id)) {
                run.join(created.task_id);
            }
        }
    }

    /// Whether certainly nobody wants anything of an event. Cost: O(1).
    pub(super) fn is_idle(&self, recorded: &Recorded) -> bool {
        self.any.is_empty()
            && self.by_user.is_empty()
            && !self.by_flow.contains_key(&recorded.flow)
            && !self.runs.contains_key(&recorded.flow)
            && !self.reported.contains_key(&recorded.flow)
    }

    /// A callback's run has started.
    pub(super) async fn start(
        &mut self,
        to: Recipient,
        recorded: &Recorded,
        started: &RunStarted,
    ) -> Result<Started, Error> {
        if to.reports.is_some() {
            let mut none = HashMap::new();
            let wanted = Wanted {
                to,
                filter: Filter::default(),
                since: recorded.position,
                run: None,
            };
            let run = (started.run_id, recorded.flow);
            // As it stands before the event, which it is shown like all others.
            let place = recorded.position.saturating_sub(1);
            self.report(&mut none, run, wanted, place).await?;
        } else {
            let run = runs::started(&self.log, to, recorded, started).await?;
            self.runs.entry(recorded.flow).or_default().push(run);
        }
        Ok(Started {
            endpoint: to.endpoint,
            run: started.run_id,
            flow: recorded.flow,
        })
    }

    /// A run has ended, and whoever was told of it has got the last notice. Their numbers.
    pub(super) fn end(&mut self, ended: RunId) -> Vec<i64> {
        let mut told = Vec::new();
        self.runs.retain(|_, runs| {
            runs.retain(|run| {
                if run.id == ended {
                    told.push(run.to.endpoint);
                }
                run.id != ended
            });
            !runs.is_empty()
        });
        self.reported.retain(|_, runs| {
            runs.retain(|run| {
                if run.id == ended {
                    told.extend(run.receivers());
                }
                run.id != ended
            });
            !runs.is_empty()
        });
        told
    }

    /// What is reported of an event. Cost: O(runs of its flow that are reported).
    pub(super) async fn reports(&mut self, recorded: &Recorded) -> Result<Vec<Made>, Error> {
        let mut made = Vec::new();
        for run in self.reported.get_mut(&recorded.flow).into_iter().flatten() {
            made.extend(run.reports(&*self.log, recorded).await?);
        }
        Ok(made)
    }

    /// Who gets a notice, which says how its task is described if somebody does. Cost: O(those that could want
    /// something of its flow); when its flow is not known, O(its events).
    pub(super) async fn recipients(
        &self,
        recorded: &Recorded,
        notice: &mut Notice,
    ) -> Result<Vec<Recipient>, Error> {
        let wants = |wanted: &&Wanted| {
            let events = wanted.filter.events.as_deref();
            recorded.position > wanted.since
                && events.is_none_or(|events| events.contains(&EventName::Task(notice.kind)))
        };
        let mut found: Vec<&Wanted> = self.any.iter().filter(wants).collect();
        let needs_user = |wanted: &Wanted| wanted.filter.user.is_some();
        let of_flow = self.by_flow.get(&recorded.flow);
        let user = if self.by_user.is_empty() && !of_flow.is_some_and(|l| l.iter().any(needs_user))
        {
            None
        } else {
            self.users.of(recorded.flow).await?
        };
        let is_users = |wanted: &&Wanted| {
            let filter = wanted.filter.user.as_ref();
            filter.is_none() || filter == user.as_ref()
        };
        let of_user = user.as_ref().and_then(|user| self.by_user.get(user));
        for list in [of_flow, of_user].into_iter().flatten() {
            found.extend(list.iter().filter(wants).filter(is_users));
        }
        let runs = self.runs.get(&recorded.flow).into_iter().flatten();
        let runs: Vec<_> = runs.filter(|run| run.wants(notice)).collect();
        if found.is_empty() && runs.is_empty() {
            return Ok(Vec::new());
        }
        self.descriptions.describe(notice, recorded).await?;
        let labelled = |wanted: &&Wanted| wanted.filter.labels.matches(&notice.labels);
        let found = found.into_iter().filter(labelled).map(|wanted| wanted.to);
        Ok(found.chain(runs.into_iter().map(|run| run.to)).collect())
    }
}
