//! The addresses to which runs are reported. They are stored beside the log, so any node answers.

use super::Service;
use super::audited::{Audited, host_of};
use super::auth::Access;
use crate::application::api::Error;
use crate::application::api::webhooks::{Callback, Page, Receiver};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::webhooks::reports::OfRun;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_auth::Action;
use taskledger_domain::RunId;
use taskledger_projections::RunRow;

impl Service {
    /// Has a run reported, from now on to its end. A receiver of the same name is replaced.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run of somebody else as for one that does not exist.
    pub async fn report_run(
        &self,
        context: &Context,
        run: RunId,
        callback: Callback,
    ) -> Result<Receiver, Error> {
        self.admit(context, UseCase::ReportRun)?;
        let row = self.app.run_row(context, run).await?;
        let owner = context.caller.reach().owner().cloned();
        if let Some(owner) = owner.as_ref().filter(|_| !row.stage.is_end()) {
            self.one_more_callback(context, owner).await?;
        }
        let given = callback.reported.as_ref();
        let name = given.and_then(|it| it.name.as_deref());
        let detail = json!({"change": "set", "name": name, "host": host_of(&callback.url)});
        let audited = self.audited_report(context, &row, detail).await?;
        let reported = self.webhooks.report(of(&row), callback, owner).await;
        let reported = audited.ended(reported.map_err(Error::from)).await?;
        // What is sent there shows its results.
        Box::pin(self.flow_was_read(context, row.flow)).await;
        Ok(reported)
    }

    /// Where a run is reported under this name; `None`: nowhere.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn report_of_run(
        &self,
        context: &Context,
        run: RunId,
        name: &Arc<str>,
    ) -> Result<Option<Receiver>, Error> {
        self.admit(context, UseCase::ReadReports)?;
        let row = self.app.run_row(context, run).await?;
        Box::pin(self.flow_was_read(context, row.flow)).await;
        Ok(self.webhooks.receiver(run, name).await?)
    }

    /// Where a run is reported, oldest first; `after` is the cursor of the page before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn reports_of_run(
        &self,
        context: &Context,
        run: RunId,
        after: i64,
        limit: usize,
    ) -> Result<Page<Vec<Receiver>>, Error> {
        self.admit(context, UseCase::ReadReports)?;
        let row = self.app.run_row(context, run).await?;
        Box::pin(self.flow_was_read(context, row.flow)).await;
        Ok(self.webhooks.receivers(run, after, limit).await?)
    }

    /// Has a run not reported under this name any more; nothing happens if it is not.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn unreport_run(
        &self,
        context: &Context,
        run: RunId,
        name: &Arc<str>,
    ) -> Result<(), Error> {
        self.admit(context, UseCase::ReportRun)?;
        let row = self.app.run_row(context, run).await?;
        let detail = json!({"change": "removed", "name": name});
        let audited = self.audited_report(context, &row, detail).await?;
        let unreported = self.webhooks.unreport(run, name).await;
        let is_gone = audited.ended(unreported.map_err(Error::from)).await?;
        if !is_gone {
            audited.refused().await;
        }
        Ok(())
    }

    /// A change of where a run is reported, whose row is written if the run is somebody else's.
    async fn audited_report<'a>(
        &'a self,
        context: &'a Context,
        row: &RunRow,
        mut detail: Value,
    ) -> Result<Audited<'a>, Error> {
        let (of, object) = ((&self.access, context), Arc::from(row.run.to_string()));
        detail["owner"] = json!(row.owner);
        let mut audited = Audited::new(of, Action::RunReport, Some(object), detail);
        if Access::reads_of_others(context, row.owner.as_deref()) {
            audited.begin().await?;
        }
        Ok(audited)
    }

    /// Shows the receiver that was given with the message which began a run: the outbox would do it a moment later.
    pub(super) async fn attach_reports(&self, context: &Context, run: RunId) {
        let attached = async {
            let row = self.app.run_row(context, run).await?;
            if let Some(callback) = self.app.callback_of(&row).await? {
                self.webhooks.attach(callback, of(&row)).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = attached.await {
            tracing::warn!(run.id = %run, %error, "where a run is reported is shown later");
        }
    }
}

const fn of(row: &RunRow) -> OfRun {
    OfRun {
        run: row.run,
        flow: row.flow,
        is_over: row.stage.is_end(),
    }
}
