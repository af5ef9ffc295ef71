//! Health, executors and other information about the server.

use super::Service;
use super::audited::Audited;
use crate::application::api::{
    Check, Deliveries, Draining, Error, ExecutorView, Failure, Health, NodeHealth, NodeShare,
    Rebuild, SlotUsage, ZoneHealth,
};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::ports::Standing;
use crate::subscription::rebuild::Status;
use crate::subscription::runner::State;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_auth::{Action, Entry};
use taskledger_domain::{Position, Violation};

impl Service {
    /// How the server is: checks and figures.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn health(&self, context: &Context) -> Result<Health, Error> {
        self.admit(context, UseCase::ReadHealth)?;
        let app = &self.app;
        let mut checks = app.checks().await;
        let sees_all = context.caller.reach().owner().is_none();
        if let Some(reason) = app.flows.log_refusal()
            && let Some(log) = checks.iter_mut().find(|it| it.name == "log" && it.ok)
        {
            // What is stored can be read, so this does not keep the server from being ready.
            log.ok = false;
            log.detail = format!(
                "{}, but the latest append was refused: {reason}",
                log.detail
            );
        }
        checks.extend(app.damage(sees_all));
        let (resident_flows, idle_bytes) = app.flows.resident();
        let head = *app.store.watch().borrow();
        let counts = self.deliveries.counts();
        Ok(Health {
            version: env!("CARGO_PKG_VERSION"),
            time: app.clock.now(),
            checks,
            head,
            commits: app.store.commits(),
            checkpoint: app.projections.checkpoint(),
            rebuild: self.last_rebuild(),
            resident_flows,
            idle_bytes,
            slots: self.slots_of(context),
            watchers: app.live.watchers(),
            deliveries: Deliveries {
                attempts: counts.attempts,
                delivered: counts.delivered,
                failed: counts.failed,
                dead: counts.dead,
                open_breakers: counts.open_breakers,
            },
            zones: ZoneHealth {
                edition: self.zones.edition(),
                source: self.zones.source().to_string(),
                other_editions: self.clocks.other_editions(),
            },
            node: self.node(),
        })
    }

    /// Attempts under way and limits, by executor. Of what workers do, whoever does not see the flows of all users is
    /// shown what their own workers hold.
    fn slots_of(&self, context: &Context) -> Vec<SlotUsage> {
        let flows = &self.app.flows;
        let slots = flows.slots();
        let usage = slots.usage().into_iter();
        let shown = |(executor, running, limit)| SlotUsage {
            executor,
            running,
            limit,
        };
        let caller = &context.caller;
        let reach = caller.reach();
        let Some(owner) = reach.owner() else {
            return usage.map(shown).collect();
        };
        let view = slots.view(Some(owner));
        let here = usage.filter(|(name, _, _)| view.standing(name) == Standing::BuiltIn);
        let limits = slots.claim_limits();
        // What is shared and what is declared for their own flows may have one name.
        let mut held: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for (method, running) in flows.leases.running_of(caller.actor()) {
            *held.entry(method.name).or_default() += running;
        }
        let held = held.into_iter().map(|(name, running)| {
            let limit = limits.get(&view.key(&name)).copied();
            (name.to_string(), running, limit.unwrap_or(usize::MAX))
        });
        let mut all: Vec<SlotUsage> = here.chain(held).map(shown).collect();
        all.sort_by(|a, b| a.executor.cmp(&b.executor));
        all
    }

    /// Whether the server can take calls: the checks of [`Self::health`].
    ///
    /// # Errors
    /// [`Error`].
    pub async fn readiness(&self, context: &Context) -> Result<Vec<Check>, Error> {
        self.admit(context, UseCase::CheckReadiness)?;
        Ok(self.app.checks().await)
    }

    /// All figures as OpenMetrics text.
    ///
    /// # Errors
    /// [`Error`]; `Failed` when this server keeps none.
    pub async fn metrics(&self, context: &Context) -> Result<String, Error> {
        self.admit(context, UseCase::ReadMetrics)?;
        let Some(metrics) = &self.metrics else {
            return Err(Failure::Broken("no metrics are kept".to_owned()).into());
        };
        Ok(metrics.text().await)
    }

    /// The figures of the agent broker, for monitoring that knows the public one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn broker_metrics(&self, context: &Context) -> Result<String, Error> {
        self.admit(context, UseCase::ReadMetrics)?;
        let Some(metrics) = &self.metrics else {
            return Err(Failure::Broken("no metrics are kept".to_owned()).into());
        };
        Ok(metrics.broker_text().await)
    }

    /// The executors, by name.
    ///
    /// # Errors
    /// [`Error`].
    pub fn executors(&self, context: &Context) -> Result<Vec<ExecutorView>, Error> {
        self.admit(context, UseCase::ListExecutors)?;
        Ok(self.executors.list(&context.caller.reach()))
    }

    /// What workers have declared of a method for everybody, in words for people: what the server says of itself,
    /// to anybody. Cost: O(1).
    #[must_use]
    pub fn declared_description(&self, method: &str) -> Option<Arc<str>> {
        self.executors.description(method)
    }

    /// Makes the read models anew, while they serve. Answers with the position of the last event so far,
    /// which they will contain at least.
    ///
    /// # Errors
    /// [`Error`]; `Busy` while one is under way.
    pub async fn rebuild_read_models(&self, context: &Context) -> Result<Position, Error> {
        self.admit(context, UseCase::RebuildReadModels)?;
        let (of, action) = ((&self.access, context), Action::Rebuild);
        let mut audited = Audited::new(of, action, None, Value::Null);
        audited.begin().await?;
        let begun = self.app.rebuild_read_models().await;
        // One that has an error has not begun.
        if begun.is_err() {
            audited.refused().await;
        }
        begun
    }

    /// Has this server begin nothing any more, or again; what is under way goes on. Until it is said otherwise, or
    /// the server stops.
    ///
    /// # Errors
    /// [`Error`]; of `drain` when it would undo the drain of a server that is stopping.
    pub async fn drain_server(&self, context: &Context, drains: bool) -> Result<Draining, Error> {
        self.admit(context, UseCase::DrainServer)?;
        let flows = &self.app.flows;
        if !drains && flows.slots().is_stopping() {
            return Err(Error::invalid([Violation::of(
                "drain",
                "the server is stopping, which is not cancelled",
                "to wait until it has started again",
                &drains.into(),
            )]));
        }
        let entry = |by| Entry::done(by, Action::Drain, None).with(json!({"drain": drains}));
        self.access.note(context, entry).await?;
        let is_stopping = flows.slots().is_stopping();
        let was_draining = flows.hold_back(drains) || is_stopping;
        let running = flows.slots().running_here();
        let what = if drains {
            "draining: no new attempts start"
        } else {
            "no longer draining"
        };
        if was_draining != drains {
            tracing::info!(running, by = %context.caller.actor(), "{what}");
        }
        Ok(Draining {
            is_draining: drains,
            was_draining,
            is_stopping,
            running,
        })
    }

    fn last_rebuild(&self) -> Option<Rebuild> {
        // Filling empty rows is one too, which nobody asked for.
        if let State::Filling { position, of } = self.app.projections.state() {
            return Some(Rebuild::Running { position, of });
        }
        Some(match self.app.rebuilds.status()? {
            Status::Running { position, of } => Rebuild::Running { position, of },
            Status::Done { position } => Rebuild::Done { position },
            Status::Failed { reason } => Rebuild::Failed { reason },
        })
    }

    fn node(&self) -> Option<NodeHealth> {
        let census = self.app.flows.ownership().census()?;
        let shares = census.nodes.iter().map(|(node, partitions)| NodeShare {
            id: node.id,
            url: node.url.clone(),
            partitions: *partitions,
        });
        Some(NodeHealth {
            id: census.me,
            partitions: census.partitions,
            folds_read_models: census.folds,
            alive: shares.collect(),
        })
    }
}
