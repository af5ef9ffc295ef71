//! Changes of schedules in the audit log.
//!
//! Schedules and the audit log lie in different stores, so the row is written first: without it nothing changes. A
//! change that is refused after all gets a second row that says so.

use super::super::Service;
use super::defining::Fit;
use crate::application::api::Error;
use crate::application::api::schedules::UnfitSchedule;
use crate::application::context::Context;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_auth::{Action, By, Entry};
use taskledger_beside::Owner;

/// A change that is about to be made.
pub(super) struct Audited<'a> {
    service: &'a Service,
    context: &'a Context,
    action: Action,
    /// The name of the schedule.
    object: Arc<str>,
    /// Whose it is.
    detail: Value,
    is_written: bool,
}

impl<'a> Audited<'a> {
    /// The change of the schedule of this name.
    pub(super) fn new(
        (service, context): (&'a Service, &'a Context),
        action: Action,
        (owner, name): (&Owner, &Arc<str>),
    ) -> Self {
        Self {
            service,
            context,
            action,
            object: name.clone(),
            detail: json!({"owner": owner.user}),
            is_written: false,
        }
    }

    /// What is changed: how, and of which name.
    pub(super) fn change(&self) -> (Action, Option<Arc<str>>) {
        (self.action, Some(self.object.clone()))
    }

    /// Writes the row, once.
    ///
    /// # Errors
    /// [`Error`]: it is not written, so nothing may be changed.
    pub(super) async fn begin(&mut self) -> Result<(), Error> {
        if self.is_written {
            return Ok(());
        }
        self.note(Entry::done).await?;
        self.is_written = true;
        Ok(())
    }

    /// That nothing was changed, and why, as the answer.
    pub(super) async fn refusal<T>(&self, unfit: UnfitSchedule) -> Fit<T> {
        self.refused().await;
        Err(unfit)
    }

    /// Notes that nothing was changed, if a row says otherwise.
    pub(super) async fn refused(&self) {
        if !self.is_written {
            return;
        }
        if let Err(error) = self.note(Entry::refused).await {
            tracing::warn!(schedule.name = %self.object, %error, "a refusal is missing in the audit log");
        }
    }

    async fn note(&self, entry: fn(By, Action, Option<Arc<str>>) -> Entry) -> Result<(), Error> {
        let object = Some(self.object.clone());
        let detail = self.detail.clone();
        let entry = |by| entry(by, self.action, object).with(detail);
        self.service.access.note(self.context, entry).await
    }
}
