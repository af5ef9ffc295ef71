//! Workflow documents that are kept by name. They lie beside the log, so any node answers.

use super::Service;
use super::audited::Audited;
use super::auth::{ALL, Access, user_for};
use super::workflows::{Read, Start, read};
use crate::application::api::workflows::{
    Compared, CreatedWorkflow, Document, Event, Form, Kept, KeptDocument, Newer, PhaseSchemas,
    RunWorkflow, SaveWorkflow, SavedWorkflow, UnfitWorkflow, Version, Which,
};
use crate::application::api::{Error, Failure};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::Action;
use taskledger_beside::Owner;
use taskledger_documents::{NewVersion, Pinned};
use taskledger_domain::Payload;
use taskledger_domain::task::call::TaskList;

/// What a caller is told to wait when the store of documents does not answer, in milliseconds.
const AWAY_RETRY_MS: u64 = 1000;

impl Service {
    /// Keeps a document as the newest version of its name, unless the newest is equal to it.
    ///
    /// # Errors
    /// [`Error`]; inside, why it is not kept.
    pub async fn save_workflow(
        &self,
        context: &Context,
        save: SaveWorkflow,
    ) -> Result<Result<SavedWorkflow, UnfitWorkflow>, Error> {
        self.admit(context, UseCase::SaveWorkflow)?;
        let SaveWorkflow {
            owner,
            document,
            strict,
            expected_version,
        } = save;
        let owner = self.owner_of_change(context, Action::WorkflowSave, (owner, None))?;
        let (form, text) = match &document {
            Document::Text(text) => (Form::Text, Arc::<str>::from(text.as_str())),
            Document::Json(object) => (Form::Json, Arc::from(object.as_str())),
        };
        let Read { workflow, warnings } = match read(document, strict).await? {
            Ok(read) => read,
            Err(faults) => return Ok(Err(UnfitWorkflow::Document(faults))),
        };
        let new = NewVersion {
            name: Arc::from(workflow.name.as_str()),
            info_version: Arc::from(workflow.version.as_str()),
            hash: Arc::from(workflow.hash.as_str()),
            form,
            text,
            by: context.caller.actor().clone(),
            at: self.app.clock.now(),
        };
        let audited = self
            .audited_document(context, Action::WorkflowSave, (&owner, &new.name))
            .await?;
        let saved = self.documents.save(&owner, &new, expected_version).await;
        let saved = match audited.ended(saved.map_err(Error::from)).await? {
            Ok(saved) => saved,
            Err(refusal) => return Ok(audited.refusal(UnfitWorkflow::NotKept(refusal)).await),
        };
        let before = match saved.is_new {
            true => saved.previous,
            false => {
                let newest = saved.version.version;
                self.before(&owner, &new.name, newest).await?
            }
        };
        let not_acted_on = workflow.not_acted_on.clone();
        let diff = match before {
            None => None,
            Some(before) => {
                let version = (Some(before), "name");
                let before = self.kept_workflow(&owner, &new.name, version).await?;
                match before {
                    Ok((_, before)) => {
                        self.document_read(context, &owner, &new.name, &Ok(()));
                        Some(blocking(move || before.workflow.diff(&workflow)).await?)
                    }
                    // It was deleted meanwhile, or is read as faulty by this release.
                    Err(_) => None,
                }
            }
        };
        Ok(Ok(SavedWorkflow {
            version: saved.version,
            is_new: saved.is_new,
            diff,
            warnings,
            not_acted_on,
        }))
    }

    /// A version of a document that is kept, the newest unless one is asked for.
    ///
    /// # Errors
    /// [`Error`]; inside, that it is not kept.
    pub async fn kept_document(
        &self,
        context: &Context,
        kept: Kept,
        version: Option<u32>,
    ) -> Result<Result<KeptDocument, UnfitWorkflow>, Error> {
        self.admit(context, UseCase::GetWorkflow)?;
        let owner = owner_for(context, kept.owner)?;
        let version = (version, "version");
        let found = self.found_document(&owner, &kept.name, version).await?;
        self.document_read(context, &owner, &kept.name, &found);
        Ok(found)
    }

    /// Notes that something of a document was read, if there was any.
    fn document_read<T>(
        &self,
        context: &Context,
        owner: &Owner,
        name: &str,
        found: &Result<T, UnfitWorkflow>,
    ) {
        if found.is_ok() {
            let read = (Action::WorkflowRead, name);
            self.access.read_beside(context, read, owner.user.as_ref());
        }
    }

    /// A document that is kept; the version, if one is asked for, is that of a member of this name.
    async fn found_document(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        (version, member): (Option<u32>, &'static str),
    ) -> Result<Result<KeptDocument, UnfitWorkflow>, Error> {
        match self.documents.document(owner, name, version).await? {
            Some(found) => shown(found).map(Ok),
            None => {
                let member = version.map_or("name", |_| member);
                Ok(Err(UnfitWorkflow::Absent(member)))
            }
        }
    }

    /// The newest versions of the documents of an owner, by name, at most `limit` of those behind `after`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn kept_workflows(
        &self,
        context: &Context,
        owner: Option<Arc<str>>,
        after: Option<Arc<str>>,
        limit: u32,
    ) -> Result<Vec<Version>, Error> {
        self.admit(context, UseCase::ListWorkflows)?;
        let owner = owner_for(context, owner)?;
        let names = self.documents.names(&owner, after, limit).await?;
        let read = (Action::WorkflowRead, ALL);
        self.access.read_beside(context, read, owner.user.as_ref());
        Ok(names)
    }

    /// What happened to a name, newest first, at most `limit` of the events before version `before`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn workflow_versions(
        &self,
        context: &Context,
        kept: Kept,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<Event>, Error> {
        self.admit(context, UseCase::ListWorkflowVersions)?;
        let owner = owner_for(context, kept.owner)?;
        let events = self.documents.events(&owner, &kept.name, before, limit);
        let events = events.await?;
        self.document_read(context, &owner, &kept.name, &Ok(()));
        Ok(events)
    }

    /// What is different between two versions of a name; `from` absent: the version before `newer`, or the newest when
    /// that is a document of the call.
    ///
    /// # Errors
    /// [`Error`]; inside, why nothing can be compared.
    pub async fn compare_workflows(
        &self,
        context: &Context,
        kept: Kept,
        from: Option<u32>,
        newer: Newer,
    ) -> Result<Result<Compared, UnfitWorkflow>, Error> {
        self.admit(context, UseCase::DiffWorkflow)?;
        let owner = owner_for(context, kept.owner)?;
        let (to, after) = match newer {
            Newer::Version(version) => {
                let version = (version, "to");
                match self.kept_workflow(&owner, &kept.name, version).await? {
                    Ok((number, after)) => (Some(number), after),
                    Err(unfit) => return Ok(Err(unfit)),
                }
            }
            Newer::Document(document) => match read(document, false).await? {
                Ok(after) => (None, after),
                Err(faults) => return Ok(Err(UnfitWorkflow::Document(faults))),
            },
        };
        let from = match (from, to) {
            (Some(from), _) => Some(from),
            (None, None) => None,
            (None, Some(to)) => match self.before(&owner, &kept.name, to).await? {
                Some(before) => Some(before),
                None => return Ok(Err(UnfitWorkflow::Absent("from"))),
            },
        };
        let version = (from, "from");
        let (from, before) = match self.kept_workflow(&owner, &kept.name, version).await? {
            Ok(found) => found,
            Err(unfit) => return Ok(Err(unfit)),
        };
        self.document_read(context, &owner, &kept.name, &Ok(()));
        let diff = blocking(move || before.workflow.diff(&after.workflow)).await?;
        Ok(Ok(Compared { from, to, diff }))
    }

    /// Deletes all versions of a name, if the newest is the one that is expected; says whether there were any.
    ///
    /// # Errors
    /// [`Error`]; inside, that the newest is another one.
    pub async fn delete_workflow(
        &self,
        context: &Context,
        kept: Kept,
        expected_version: Option<u32>,
    ) -> Result<Result<bool, UnfitWorkflow>, Error> {
        self.admit(context, UseCase::DeleteWorkflow)?;
        let (action, name) = (Action::WorkflowDelete, kept.name);
        let owner = self.owner_of_change(context, action, (kept.owner, Some(&name)))?;
        let audited = self
            .audited_document(context, action, (&owner, &name))
            .await?;
        let by = (context.caller.actor().clone(), self.app.clock.now());
        let deleted = self.documents.delete(&owner, &name, expected_version, by);
        let deleted = deleted.await.map_err(Error::from);
        let deleted = audited.ended(deleted).await?;
        if !matches!(deleted, Ok(true)) {
            audited.refused().await;
        }
        Ok(deleted.map_err(UnfitWorkflow::NotKept))
    }

    /// The owner of the document that is to be changed or run. A refusal is noted.
    fn owner_of_change(
        &self,
        context: &Context,
        action: Action,
        (owner, name): (Option<Arc<str>>, Option<&Arc<str>>),
    ) -> Result<Owner, Error> {
        let change = (action, name.cloned());
        self.access
            .noted(context, change, owner_for(context, owner))
    }

    /// The change of a document, whose row is written if it is somebody else's: what a caller does to his own is kept
    /// with his name beside it.
    async fn audited_document<'a>(
        &'a self,
        context: &'a Context,
        action: Action,
        (owner, name): (&Owner, &Arc<str>),
    ) -> Result<Audited<'a>, Error> {
        let (of, object) = ((&self.access, context), Some(name.clone()));
        let mut audited = Audited::new(of, action, object, json!({"owner": owner.user}));
        if Access::reads_of_others(context, owner.user.as_deref()) {
            audited.begin().await?;
        }
        Ok(audited)
    }

    /// Creates the tasks of one run of a document that is kept, and begins it if that is asked for. As
    /// [`Service::create_workflow`] with that document. A call under an idempotency key runs the version that the first
    /// call with that key ran.
    ///
    /// # Errors
    /// [`Error`]; inside, why the document gives no tasks.
    pub async fn run_workflow(
        &self,
        context: &Context,
        run: RunWorkflow,
    ) -> Result<Result<(u32, CreatedWorkflow), UnfitWorkflow>, Error> {
        let use_case = super::workflows::use_case(run.execute);
        self.access.authorize(context, use_case, None)?;
        self.limits.rate(context, UseCase::GetWorkflow, 1)?;
        let action = match run.execute {
            true => Action::TaskExecute,
            false => Action::TaskCreate,
        };
        let (asked, name) = (run.kept.owner, run.kept.name);
        let owner = self.owner_of_change(context, action, (asked, Some(&name)))?;
        let caller = context.caller.actor();
        let key = context.idempotency.as_ref().map(|it| &*it.key);
        let Some(pinned) = self.pinned(context, &owner, &name, run.version).await? else {
            return Ok(Err(UnfitWorkflow::Absent("name")));
        };
        let version = (run.version.or(pinned.map(|it| it.version)), "version");
        let (number, read) = match self.kept_workflow(&owner, &name, version).await? {
            Ok(found) => found,
            Err(unfit) => return Ok(Err(unfit)),
        };
        self.document_read(context, &owner, &name, &Ok(()));
        let start = Start {
            method: "workflows.run",
            saved_version: Some(number),
            trigger: run.trigger.to_map(),
            user_id: run.user_id,
            execute: run.execute,
            labels: run.labels,
        };
        let created = self.create_run(context, read, start).await;
        let began_nothing = match &created {
            Ok(created) => created.is_err(),
            Err(error) => error.changed_nothing(),
        };
        // The next call under the key may run a version that was mended meanwhile.
        if let (true, Some(key), true) = (began_nothing, key, pinned.is_some_and(|it| it.is_first))
        {
            self.documents.unpin(&owner, &name, (caller, key)).await?;
        }
        Ok(created?.map(|created| (number, created)))
    }

    /// The version that the first call under the key of this one ran, if it has a key and names no version; `None`:
    /// nothing is kept by the name.
    async fn pinned(
        &self,
        context: &Context,
        owner: &Owner,
        name: &Arc<str>,
        version: Option<u32>,
    ) -> Result<Option<Option<Pinned>>, Error> {
        let (None, Some(idempotency)) = (version, &context.idempotency) else {
            return Ok(Some(None));
        };
        let caller = &**context.caller.actor();
        let by = (caller, &*idempotency.key, self.app.clock.now());
        let pinned = self.documents.pin(owner, name, by).await?;
        Ok(pinned.map(Some))
    }

    /// The tasks of one run of a document that is kept, for a run that is begun by a message. Under an idempotency key
    /// they are those of the version that the first call with that key ran.
    ///
    /// # Errors
    /// [`Error`]; inside, why the document gives no tasks.
    pub async fn tasks_of_workflow(
        &self,
        context: &Context,
        run: RunWorkflow,
    ) -> Result<Result<TaskList, UnfitWorkflow>, Error> {
        self.access.authorize(context, UseCase::StartRun, None)?;
        self.limits.rate(context, UseCase::GetWorkflow, 1)?;
        let (asked, name) = (run.kept.owner, run.kept.name);
        let change = (asked, Some(&name));
        let owner = self.owner_of_change(context, Action::TaskExecute, change)?;
        let Some(pinned) = self.pinned(context, &owner, &name, run.version).await? else {
            return Ok(Err(UnfitWorkflow::Absent("name")));
        };
        let version = (run.version.or(pinned.map(|it| it.version)), "version");
        let (number, read) = match self.kept_workflow(&owner, &name, version).await? {
            Ok(found) => found,
            Err(unfit) => return Ok(Err(unfit)),
        };
        self.document_read(context, &owner, &name, &Ok(()));
        let start = Start {
            method: "workflows.run",
            saved_version: Some(number),
            trigger: run.trigger.to_map(),
            user_id: run.user_id,
            execute: true,
            labels: run.labels,
        };
        let made = self.tasks_of(read.workflow, start).await?;
        Ok(made.map(|(_, tasks)| tasks))
    }

    /// What the phases of a document take and give, or one of them, as JSON Schemas.
    ///
    /// # Errors
    /// [`Error`]; inside, why there are none.
    pub async fn workflow_schemas(
        &self,
        context: &Context,
        which: Which,
        phase: Option<String>,
    ) -> Result<Result<Vec<PhaseSchemas>, UnfitWorkflow>, Error> {
        self.admit(context, UseCase::GetWorkflow)?;
        let workflow = match which {
            Which::Given(document) => match read(document, false).await? {
                Ok(read) => read.workflow,
                Err(faults) => return Ok(Err(UnfitWorkflow::Document(faults))),
            },
            Which::Kept(kept, version) => {
                let owner = owner_for(context, kept.owner)?;
                let version = (version, "version");
                let found = self.kept_workflow(&owner, &kept.name, version).await?;
                self.document_read(context, &owner, &kept.name, &found);
                match found {
                    Ok((_, read)) => read.workflow,
                    Err(unfit) => return Ok(Err(unfit)),
                }
            }
        };
        let schemas = blocking(move || workflow.schemas(phase.as_deref())).await?;
        Ok(schemas.map_err(UnfitWorkflow::NoSchemas))
    }

    /// The number of the version that was kept before another one.
    async fn before(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        version: u32,
    ) -> Result<Option<u32>, Error> {
        let before = self.documents.events(owner, name, Some(version), 1).await?;
        let kept = before.first().filter(|event| event.is_kept);
        Ok(kept.map(|event| event.version.version))
    }

    /// A version that is kept, read; the newest unless one is asked for, by a member of this name.
    pub(super) async fn kept_workflow(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        version: (Option<u32>, &'static str),
    ) -> Result<Result<(u32, Read), UnfitWorkflow>, Error> {
        let KeptDocument { version, document } =
            match self.found_document(owner, name, version).await? {
                Ok(found) => found,
                Err(unfit) => return Ok(Err(unfit)),
            };
        // What was saved had no faults, as far as the release of that time knew.
        let read = read(document, false).await?;
        Ok(match read {
            Ok(read) => Ok((version.version, read)),
            Err(faults) => Err(UnfitWorkflow::Document(faults)),
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::ShuttingDown.into())
}

fn shown(found: taskledger_documents::Document) -> Result<KeptDocument, Error> {
    let document = match found.form {
        Form::Text => Document::Text(found.text.to_string()),
        Form::Json => Document::Json(Payload::parse(&found.text).map_err(|error| {
            Failure::Workflows(format!("a saved document is not valid JSON: {error}"))
        })?),
    };
    Ok(KeptDocument {
        version: found.version,
        document,
    })
}

/// The owner of the documents or schedules that a call is about.
pub(super) fn owner_for(context: &Context, asked: Option<Arc<str>>) -> Result<Owner, Error> {
    Ok(Owner {
        tenant: context.caller.tenant().clone(),
        user: user_for(context, asked)?,
    })
}

impl From<taskledger_documents::Error> for Error {
    fn from(error: taskledger_documents::Error) -> Self {
        use taskledger_documents::Error as Stored;
        match error {
            Stored::Database(_) | Stored::Late => {
                tracing::warn!(%error, "a call did not reach the store of workflows");
                Self::Busy {
                    reason: "the store of workflows does not answer".to_owned(),
                    retry_after_ms: AWAY_RETRY_MS,
                }
            }
            Stored::Damaged(_) => Failure::Workflows(error.to_string()).into(),
        }
    }
}
