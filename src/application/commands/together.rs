//! Everything that is wrong with a call, in one answer. What is wrong with values, references and the tree is found
//! without a look at what is stored; the rest here, for calls that are refused anyway.

use super::*;
use taskledger_domain::flow::{Flow, Refusals, TreeFault};
use taskledger_domain::task::call::Unresolved;

/// What a caller is told to wait whose call met a change, in milliseconds.
const CHANGED_RETRY_MS: u64 = 100;

impl App {
    /// Why new tasks are refused: `found` before, and what else is wrong with the tasks, as far as they are understood.
    pub(super) async fn refused_tasks(
        &self,
        context: &Context,
        names: CallNames,
        found: Vec<Refusal>,
        understood: Option<ResolvedTasks>,
        joining: Joining,
    ) -> Error {
        let mut all = found;
        if let Some(understood) = understood {
            match self.wrong_where_they_go(context, understood, joining).await {
                Ok(more) => all.extend(more),
                Err(error) => return error,
            }
        }
        match Refusals::of(all) {
            Some(refusals) => Error::from(refusals).with_names(&names),
            // What was wrong when it was looked at first is there by now.
            None => Error::Busy {
                reason: "the flow was changed meanwhile".to_owned(),
                retry_after_ms: CHANGED_RETRY_MS,
            },
        }
    }

    /// The same for tasks that were not resolved, with `faults` that were found beside.
    pub(super) async fn refused_unresolved(
        &self,
        context: &Context,
        names: CallNames,
        (unresolved, faults, own): (Unresolved, Vec<Fault>, usize),
        joining: Joining,
    ) -> Error {
        let Unresolved {
            mut refusals,
            understood,
        } = unresolved;
        // Those of the tasks by themselves come first, those of references last.
        let references = match refusals.first_mut() {
            Some(Refusal::Invalid(all)) => {
                let references = all.split_off(own.min(all.len()));
                all.extend(faults);
                all.truncate(limits::VIOLATIONS_MAX);
                references
            }
            _ => faults,
        };
        if !references.is_empty() {
            refusals.push(Refusal::Invalid(references));
        }
        let (mut names, mut understood) = (names, understood.map(|understood| *understood));
        if let Some(understood) = &mut understood {
            names = names.resolved(understood);
        }
        self.refused_tasks(context, names, refusals, understood, joining)
            .await
    }

    /// What is wrong with tasks that could only be told where they would be added.
    async fn wrong_where_they_go(
        &self,
        context: &Context,
        understood: ResolvedTasks,
        joining: Joining,
    ) -> Result<Vec<Refusal>, Error> {
        let ResolvedTasks { tasks, joins, .. } = understood;
        let tasks = Arc::new(tasks);
        let alone = || Flow::default().refusals_of_new(&tasks);
        let found = match (joins, joining) {
            // All of them may be meant for a flow that cannot be told, and what they name would be there.
            (None, Joining::StoredParent) if tasks.iter().all(|task| task.parent.is_some()) => {
                let mut found = alone();
                found.retain(|refusal| refusal.kind() == Kind::Circular);
                found
            }
            (None, _) => alone(),
            (Some(parent), Joining::Nothing) => {
                let mut found = alone();
                found.retain(|refusal| !matches!(refusal, Refusal::InvalidParent(_)));
                let mut faults = tasks.iter().filter(|task| task.parent == Some(parent));
                let fault = faults.next().map(|task| {
                    let task = task.id;
                    ParentFault::NotInCall { task, parent }
                });
                found.extend(fault.map(|fault| Refusal::InvalidParent(vec![fault])));
                found
            }
            (Some(parent), Joining::StoredParent) => {
                match self.wrong_below(context, parent, tasks.clone()).await? {
                    Some(found) => found,
                    // Whatever they name that is stored would be there.
                    None => {
                        let mut found = alone();
                        found.retain(|refusal| refusal.kind() == Kind::Circular);
                        found.push(Refusal::InvalidParent(vec![ParentFault::NotStored {
                            parent,
                        }]));
                        found
                    }
                }
            }
        };
        Ok(found.into_iter().filter_map(untold).collect())
    }

    /// What is wrong with tasks below a stored one; `None`: there is no such task, or not for this caller.
    async fn wrong_below(
        &self,
        context: &Context,
        parent: TaskId,
        tasks: Arc<Vec<NewTask>>,
    ) -> Result<Option<Vec<Refusal>>, Error> {
        let Some(flow) = self.directory.flow_of(parent).await? else {
            return Ok(None);
        };
        let reach = context.caller.reach();
        let look = move |state: &Flow| {
            let is_seen = state.version() > 0 && sees(&reach, state);
            is_seen.then(|| state.refusals_of_new(&tasks))
        };
        self.flows.look(flow, engine_metadata(), look).await
    }

    /// Why an update is refused: `faults` found before, and what else is wrong with it.
    pub(super) async fn refused_update(
        &self,
        context: &Context,
        flow: FlowId,
        update: Update,
        faults: Vec<Fault>,
    ) -> Error {
        let reach = context.caller.reach();
        let look = move |state: &Flow| {
            let is_seen = sees(&reach, state) && state.task(update.task).is_some();
            is_seen.then(|| state.refusals_of_update(&update))
        };
        let more = match self.flows.look(flow, engine_metadata(), look).await {
            Ok(more) => more.unwrap_or_default(),
            Err(error) => return error,
        };
        let all = std::iter::once(Refusal::Invalid(faults)).chain(more);
        match Refusals::of(all) {
            Some(refusals) => refusals.into(),
            None => Failure::Broken("an update is refused for nothing".to_owned()).into(),
        }
    }
}

/// Without what was told before: ids that are taken, and several roots.
fn untold(mut refusal: Refusal) -> Option<Refusal> {
    let is_empty = if let Refusal::Invalid(faults) = &mut refusal {
        faults.retain(|fault| matches!(fault, Fault::FlowTooLarge { .. }));
        faults.is_empty()
    } else if let Refusal::InvalidTree(faults) = &mut refusal {
        faults.retain(|fault| !matches!(fault, TreeFault::SecondRoot { .. }));
        faults.is_empty()
    } else {
        false
    };
    (!is_empty).then_some(refusal)
}
