//! Callbacks of executions, and receivers of the reports of a run. The caller has checked whose run it is. Whose run it
//! is was checked.

use super::{Error, Page, Webhooks};
use crate::callback::Callback;
use crate::reports::{OfRun, REPORTS_PER_RUN_MAX, Receiver};
use crate::store::Put;
use std::sync::Arc;
use taskledger_domain::{CallbackId, RunId, Violation};

impl Webhooks {
    /// Keeps the callback of an execution that is about to be ordered.
    ///
    /// # Errors
    /// [`Error`]; the paths begin at the call.
    pub async fn keep_callback(
        &self,
        mut callback: Callback,
        owner: Option<Arc<str>>,
    ) -> Result<CallbackId, Error> {
        let member = match callback.reported {
            Some(_) => "taskPushNotificationConfig",
            None => "push_notification_config",
        };
        let path = ["configuration", member, "url"].map(Into::into);
        callback.url = self.allowed(&path, &callback.url)?;
        let id = CallbackId(self.store.clock().uuid());
        if let Some(reported) = &mut callback.reported {
            let fresh = || Arc::from(self.store.clock().uuid().to_string());
            reported.name.get_or_insert_with(fresh);
        }
        self.made(&callback.endpoint(id, owner), "push_notification_config")
            .await?;
        Ok(id)
    }

    /// The execution was refused. What cannot be removed now is removed later.
    pub async fn drop_callback(&self, id: CallbackId) {
        if let Err(error) = self.store.forget_callback(id.into()).await {
            tracing::warn!(callback.id = %id, %error, "an unused callback is removed later");
        }
    }

    /// Has a run reported; one of the same name is replaced.
    ///
    /// # Errors
    /// [`Error`]; the paths are those of the callback.
    pub async fn report(
        &self,
        of: OfRun,
        mut callback: Callback,
        owner: Option<Arc<str>>,
    ) -> Result<Receiver, Error> {
        callback.url = self.allowed(&["url".into()], &callback.url)?;
        let clock = self.store.clock();
        let fresh = || Arc::from(clock.uuid().to_string());
        let named = callback.reported.as_mut();
        let name = named.map(|it| it.name.get_or_insert_with(fresh).clone());
        let receiver = Receiver {
            name: name.unwrap_or_else(fresh),
            url: callback.url.clone(),
            scheme: callback.reported.as_ref().and_then(|it| it.scheme.clone()),
        };
        let new = callback.endpoint(CallbackId(clock.uuid()), owner);
        let head = self.log.head().await?;
        match self.store.put_receiver(&new, of, head, self.now()).await? {
            Put::Yes => Ok(receiver),
            Put::Full(max) => {
                let expected = match max {
                    REPORTS_PER_RUN_MAX => format!("at most {max} of a task; delete one first"),
                    _ => format!("at most {max} in all; delete one first"),
                };
                let fault = Violation::of("id", "too many receivers", expected, &max.into());
                Err(Error::Invalid(vec![fault]))
            }
        }
    }

    /// A callback that was given with an order belongs to the run that the order has begun.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn attach(&self, callback: CallbackId, of: OfRun) -> Result<(), Error> {
        Ok(self.store.attach_receiver(callback, of).await?)
    }

    /// The receiver of this name; `None`: there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn receiver(&self, run: RunId, name: &Arc<str>) -> Result<Option<Receiver>, Error> {
        Ok(self.store.receiver(run, name).await?)
    }

    /// Receivers, oldest first; `after` is the cursor of the page before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn receivers(
        &self,
        run: RunId,
        after: i64,
        limit: usize,
    ) -> Result<Page<Vec<Receiver>>, Error> {
        let mut rows = self.store.receivers(run, after, limit + 1).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().map(|(no, _)| no.to_string());
        Ok(Page {
            rows: rows.into_iter().map(|(_, it)| it).collect(),
            next_cursor: last.filter(|_| more),
        })
    }

    /// Has a run not reported there any more; says whether it was.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn unreport(&self, run: RunId, name: &Arc<str>) -> Result<bool, Error> {
        Ok(self.store.delete_receiver(run, name, self.now()).await?)
    }
}
