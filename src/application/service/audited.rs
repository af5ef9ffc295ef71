//! Writes changes to the audit log.
//!
//! What is changed and the audit log lie in different stores, so the row is written first: without it nothing changes.
//! If nothing is changed after all, a second row says so. Which changes have rows: `api/use_case.rs`.

use super::auth::Access;
use crate::application::api::Error;
use crate::application::context::Context;
use serde_json::Value;
use std::sync::Arc;
use taskledger_auth::{Action, By, Entry, Scope};
use url::Url;

/// The names of the members that a change has, of all that it could have.
pub(super) fn changed(
    members: impl IntoIterator<Item = (bool, &'static str)>,
) -> Vec<&'static str> {
    let changed = members.into_iter().filter(|(is_there, _)| *is_there);
    changed.map(|(_, name)| name).collect()
}

/// Where something is sent to, as an entry may say it: paths, queries and user names of addresses hold secrets. `None`
/// for what is no address with a host.
pub(super) fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

/// A change that is about to be made.
#[derive(Debug)]
pub(super) struct Audited<'a> {
    access: &'a Access,
    context: &'a Context,
    action: Action,
    object: Option<Arc<str>>,
    /// More about it. Never a secret.
    detail: Value,
    is_written: bool,
}

impl<'a> Audited<'a> {
    /// The change of this object.
    pub(super) const fn new(
        (access, context): (&'a Access, &'a Context),
        action: Action,
        object: Option<Arc<str>>,
        detail: Value,
    ) -> Self {
        Self {
            access,
            context,
            action,
            object,
            detail,
            is_written: false,
        }
    }

    /// Writes the row, once.
    ///
    /// # Errors
    /// [`Error`]: it is not written, so nothing may be changed.
    pub(super) async fn begin(&mut self) -> Result<(), Error> {
        if self.is_written {
            return Ok(());
        }
        self.note(Entry::done, self.detail.clone()).await?;
        self.is_written = true;
        Ok(())
    }

    /// Records that nothing was changed, and why; returns the reason as the answer.
    pub(super) async fn refusal<T, E>(&self, unfit: E) -> Result<T, E> {
        self.refused().await;
        Err(unfit)
    }

    /// Notes that nothing was changed, if a row says otherwise.
    pub(super) async fn refused(&self) {
        self.refused_for(None).await;
    }

    /// The same, and which scope was missing.
    async fn refused_for(&self, scope: Option<Scope>) {
        if !self.is_written {
            return;
        }
        let mut detail = self.detail.clone();
        if let Some(scope) = scope {
            detail["scope"] = scope.as_str().into();
        }
        if let Err(error) = self.note(Entry::refused, detail).await {
            let (action, object) = (self.action.as_str(), self.object.as_deref());
            tracing::warn!(audit.action = action, audit.object = object, %error, "a refusal is missing in the audit log");
        }
    }

    /// What came of the change; that it was certainly not made is noted.
    ///
    /// # Errors
    /// The same.
    pub(super) async fn ended<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &outcome
            && error.changed_nothing()
        {
            self.refused_for(error.scope()).await;
        }
        outcome
    }

    async fn note(
        &self,
        entry: fn(By, Action, Option<Arc<str>>) -> Entry,
        detail: Value,
    ) -> Result<(), Error> {
        let object = self.object.clone();
        let entry = |by| entry(by, self.action, object).with(detail);
        self.access.note(self.context, entry).await
    }
}
