//! Changes a stored task.

use super::*;
use taskledger_domain::Violation;

impl App {
    /// Changes a task. spec: interface / tasks.update
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update(
        &self,
        context: &Context,
        task: TaskId,
        updates: Updates,
    ) -> Result<Reply, Error> {
        let of = CallTask::Id(task);
        let stored = |reference: &TaskRef, at| {
            let text = || reference.text.clone();
            reference
                .id()
                .ok_or_else(|| Fault::MalformedId { at, text: text() })
        };
        let mut faults: Vec<Fault> = updates.faults.iter().cloned().map(Fault::from).collect();
        let parent = match &updates.parent {
            None => None,
            Some(None) => Some(None),
            // What is wrong with it was told when it was read.
            Some(Some(reference)) if reference.is_unread() => None,
            Some(Some(reference)) => stored(reference, ReferenceAt::Parent { of })
                .map_err(|fault| faults.push(fault))
                .ok()
                .map(Some),
        };
        let dependencies = updates.dependencies.as_ref().map(|given| {
            let (dependencies, mut wrong) = resolve_dependencies(of, given, stored);
            faults.append(&mut wrong);
            dependencies
        });
        let names = CallNames::of_update(task);
        let update = Update {
            task,
            updates,
            dependencies,
            parent,
            current: None,
            looked: None,
            handover: Self::handover_by(context),
        };
        let updated = if faults.is_empty() {
            let key = Key::of(context, UseCase::UpdateTask);
            let key = key.as_ref();
            self.once(key, self.update_task(context, key, update)).await
        } else {
            // Refused for certain: no key is looked at, as for other parameters that are wrong.
            Err(self.all_wrong_with(context, update, faults).await)
        };
        updated.map_err(|error| error.with_names(&names))
    }

    /// Why an update with these faults is refused: with those of its specification, if that could be read.
    async fn all_wrong_with(
        &self,
        context: &Context,
        update: Update,
        mut faults: Vec<Fault>,
    ) -> Error {
        let flow = match self.flow_of(Argument::Task, update.task).await {
            Ok(flow) => flow,
            Err(Error::Refused(_)) => return Error::invalid(faults),
            Err(error) => return error,
        };
        let mut update = update;
        // Without its dependencies nothing can be said of what is wired to them.
        let depends = update.updates.are_dependencies_read();
        if update.updates.is_specified() && respecifies(&update.updates) {
            match self.specification(context, flow, update.task).await {
                Ok((version, current, owner)) => {
                    let merged = current.clone().updated(&update.updates);
                    let found = self.wrong_specification(owner.as_deref(), merged).await;
                    faults.extend(found.into_iter().map(Fault::from));
                    update.current = depends.then_some((version, current));
                }
                Err(Error::Refused(_)) => return Error::invalid(faults),
                Err(error) => return error,
            }
        }
        self.refused_update(context, flow, update, faults).await
    }

    async fn wrong_specification(
        &self,
        owner: Option<&str>,
        merged: Specification,
    ) -> Vec<Violation> {
        let merged = vec![(vec!["updates".into()], merged)];
        self.validation.check_call(owner, merged).await
    }

    async fn update_task(
        &self,
        context: &Context,
        key: Option<&Key>,
        update: Update,
    ) -> Result<Reply, Error> {
        let Update { task, updates, .. } = &update;
        let task = *task;
        let flow = self.flow_of(Argument::Task, task).await?;
        if flow.root() == task && updates.user_id.is_some() {
            let foreign = || Refusal::not_found(Argument::Task, task);
            self.is_owned_here(context, flow, foreign).await?;
            Self::keep_owner(context, updates)?;
        }
        let respecifies = respecifies(updates);
        let reply: ReplyOf = Arc::new(move |done| {
            let status = match done {
                Done::Status(status) => Some(status),
                Done::Ok | Done::Begun(_) | Done::ClaimRefused => None,
            };
            Reply::Updated { task, status }
        });
        for _ in 0..UPDATE_ROUNDS_MAX {
            // With other dependencies too: what is wired must stay one.
            let (current, owner) = if respecifies || updates.dependencies.is_some() {
                let (version, current, owner) = self.specification(context, flow, task).await?;
                (Some((version, current)), owner)
            } else {
                (None, None)
            };
            if let Some((_, specification)) = current.as_ref().filter(|_| respecifies) {
                if let Some(fault) = specification.forged_mark(updates) {
                    return Err(Error::invalid(vec![fault]));
                }
                let merged = specification.clone().updated(updates);
                self.admit_method(context, merged.method.as_deref(), "updates")?;
                let faults = self.wrong_specification(owner.as_deref(), merged).await;
                if !faults.is_empty() {
                    let faults = faults.into_iter().map(Fault::from).collect();
                    let update = Update {
                        current,
                        ..update.clone()
                    };
                    return Err(self.refused_update(context, flow, update, faults).await);
                }
            }
            let current = current.as_ref();
            let looked = self
                .look_into_results(context, flow, current, &update)
                .await?;
            let command = Command::Update(Update {
                current: current.cloned(),
                looked,
                ..update.clone()
            });
            let sending = Sending {
                flow,
                command,
                begins: Begins::No,
                reply: reply.clone(),
                foreign: Refusal::not_found(Argument::Task, task),
            };
            match self.command(context, key, sending).await {
                Err(Error::Outdated(Outdated::Specification)) => {}
                other => return other,
            }
        }
        Err(Error::Busy {
            reason: "the task is being changed by others".to_owned(),
            retry_after_ms: 100,
        })
    }
}

/// Whether what the task executes is changed.
const fn respecifies(updates: &Updates) -> bool {
    updates.inputs.is_some()
        || updates.schemas.is_some()
        || updates.params.is_some()
        || updates.start_at.is_some()
}
