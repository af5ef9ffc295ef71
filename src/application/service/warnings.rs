//! Warnings about runs that have begun: secrets that their tasks name and that the owner of the flow does not have. An
//! attempt that needs one fails, perhaps hours later. Best effort: what cannot be read gives no warning.

use super::Service;
use crate::application::api::{Error, Reply, Request, Target, Warning};
use crate::application::context::Context;
use crate::application::facts;
use crate::application::sending::engine_metadata;
use std::collections::BTreeSet;
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_auth::store::SecretOwner;
use taskledger_domain::flow::{Flow, Include, RunKind, Specification};
use taskledger_domain::task::Status;
use taskledger_domain::task::call::TaskList;
use taskledger_domain::{TaskId, Version};

/// Tasks of a run whose inputs are searched for names of secrets.
const SEARCHED_MAX: usize = 200;
/// The member by which inputs name a secret.
const MEMBER: &str = "$secret";

impl Service {
    /// As [`Service::call`], with warnings about the run that has begun, if one has. Cost: also that of
    /// the warnings themselves, unless the request has new tasks that name no secret.
    ///
    /// # Errors
    /// As for [`Service::call`].
    pub async fn call_with_warnings(
        &self,
        context: &Context,
        request: Request,
    ) -> Result<(Reply, Vec<Warning>), Error> {
        let kind = if let Request::Execute(execute) = &request {
            match &execute.target {
                Target::New(list) => names_secrets(list).then_some(RunKind::Execute),
                Target::Stored(_) => Some(RunKind::Execute),
            }
        } else if let Request::Retry(_) = &request {
            Some(RunKind::Retry)
        } else {
            None
        };
        let reply = self.call(context, request).await?;
        let mut warnings = Vec::new();
        if let (Reply::Started(started), Some(kind)) = (&reply, kind) {
            let task = started.task.unwrap_or(started.root);
            // Boxed: few runs name secrets.
            warnings = Box::pin(self.warnings_of_run(context, task, kind)).await;
        }
        Ok((reply, warnings))
    }

    /// A warning for each secret that tasks of a run name and that the owner of their flow does not have. `task`: the
    /// root of the run. Cost: the specifications of at most [`SEARCHED_MAX`] tasks, and the names of the owner's
    /// secrets if one is named.
    pub(super) async fn warnings_of_run(
        &self,
        context: &Context,
        task: TaskId,
        kind: RunKind,
    ) -> Vec<Warning> {
        match self.absent_secrets(context, task, kind).await {
            Ok(warnings) => warnings,
            Err(error) => {
                tracing::debug!(task.id = %task, %error, "secrets of a run were not checked");
                Vec::new()
            }
        }
    }

    async fn absent_secrets(
        &self,
        context: &Context,
        task: TaskId,
        kind: RunKind,
    ) -> Result<Vec<Warning>, Error> {
        let app = &self.app;
        let Some(flow) = app.directory.flow_of(task).await? else {
            return Ok(Vec::new());
        };
        let look = move |flow: &Flow| {
            let owner = flow.owner().map(Arc::<str>::from);
            (owner, open_specifications(flow, task, kind))
        };
        let looked = app.flows.look_anywhere(flow, engine_metadata(), look);
        let (owner, versions) = looked.await?;
        let events = app.store.read_versions(flow, &versions).await?;
        let specifications = events
            .iter()
            .filter_map(|it| facts::specification(&it.event));
        self.absent_of(context, owner, specifications).await
    }

    /// The same of tasks with these specifications, in flows of this owner.
    ///
    /// # Errors
    /// The secrets of the owner cannot be listed.
    pub(super) async fn absent_of<'s>(
        &self,
        context: &Context,
        owner: Option<Arc<str>>,
        specifications: impl Iterator<Item = &'s Specification>,
    ) -> Result<Vec<Warning>, Error> {
        let executors = self.app.validation.executors_for(owner.as_deref());
        let mut named: BTreeSet<SecretName> = BTreeSet::new();
        for specification in specifications.filter(|it| names_some(it)) {
            if let Some(method) = &specification.method {
                named.extend(executors.secrets(method, &specification.inputs.to_map()));
            }
        }
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let of = SecretOwner {
            tenant: context.caller.tenant().clone(),
            user: owner.clone(),
        };
        let known = self.secrets.list(&of).await;
        let known = known.map_err(super::secrets::failed)?;
        named.retain(|name| !known.iter().any(|row| row.name == *name));
        let own = super::auth::user_for(context, None)?;
        let is_own = own == owner;
        let absent = named
            .iter()
            .map(|name| absent(name, owner.as_deref(), is_own));
        Ok(absent.collect())
    }
}

/// Versions of the events with the specifications of tasks that the run covers and that have not completed.
fn open_specifications(flow: &Flow, task: TaskId, kind: RunKind) -> Vec<Version> {
    let covered = flow
        .run_set(task, kind, Include::default())
        .covered
        .into_iter();
    let tasks = covered.filter_map(|id| flow.task(id));
    let open = tasks.filter(|it| it.method.is_some() && it.status != Status::Completed);
    open.map(|it| it.spec_at).take(SEARCHED_MAX).collect()
}

/// Whether inputs of new tasks name secrets. Cost: O(bytes of inputs).
fn names_secrets(list: &TaskList) -> bool {
    list.specifications().any(|(_, it)| names_some(it))
}

fn names_some(specification: &Specification) -> bool {
    specification.inputs.as_str().contains(MEMBER)
}

/// `is_own`: the caller need not say whose it is.
fn absent(name: &SecretName, owner: Option<&str>, is_own: bool) -> Warning {
    let whose = match owner {
        Some(owner) => format!("`{owner}` has no secret `{name}`"),
        None => format!("there is no secret `{name}` for flows without a user"),
    };
    let option = match is_own {
        true => String::new(),
        false => format!(" --owner {}", quoted(owner.unwrap_or_default())),
    };
    Warning {
        field: name.as_str().to_owned(),
        reason: format!("{whose}: attempts that need it fail"),
        suggestion: Some(
            "set it before the task starts; the value is read from standard input".to_owned(),
        ),
        command: Some(format!("taskledger secrets set {name}{option}")),
    }
}

/// The text as one word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.@:".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_owner_where_it_must() {
        let name = SecretName::new("api-key").expect("a name");
        let command = |owner, is_own| absent(&name, owner, is_own).command;
        let set = |rest: &str| Some(format!("taskledger secrets set api-key{rest}"));
        assert_eq!(command(Some("ann"), true), set(""));
        assert_eq!(command(Some("ann"), false), set(" --owner ann"));
        assert_eq!(command(Some("o'x y"), false), set(r" --owner 'o'\''x y'"));
        assert_eq!(command(None, false), set(" --owner ''"));
    }
}
