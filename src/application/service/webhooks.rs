//! Webhooks. They are stored beside the log, so any node answers.

use super::Service;
use super::audited::{Audited, changed, host_of};
use super::auth::{ALL, Access};
use crate::application::api::webhooks::{
    Deliveries, DeliveryFilter, EndpointId, Listed, NewWebhook, Page, Recover, Secret, Secrets,
    Tested, View, WebhookChange, WithSecret,
};
use crate::application::api::{Error, Recorded};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::webhooks::api::no_such_flow;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use taskledger_auth::{Action, Kind, Scope};
use taskledger_domain::FlowId;
use taskledger_domain::flow::Refusal;

impl Service {
    /// A new webhook, with its secret.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create_webhook(
        &self,
        context: &Context,
        mut new: NewWebhook,
    ) -> Result<WithSecret, Error> {
        self.admit(context, UseCase::CreateWebhook)?;
        let change = UseCase::CreateWebhook;
        if let Some(owner) = context.caller.reach().owner() {
            let chosen = no_chosen_id(new.id);
            self.noted(context, change, None, chosen)?;
            let used = self.webhooks.count_of(owner).await?;
            self.limits.one_more_webhook(context, used)?;
            new.owner = Some(owner.clone());
            let user = own_user(new.filter.user, owner);
            new.filter.user = Some(self.noted(context, change, None, user)?);
            if let Some(flow) = new.filter.flow {
                self.is_own_flow(context, flow).await?;
            }
        }
        let id = new.id.unwrap_or_else(|| EndpointId(self.app.clock.uuid()));
        new.id = Some(id);
        let user = new.filter.user.clone();
        let detail = json!({"user_id": user, "host": host_of(&new.url)});
        self.audited_change(context, (change, id), detail, async {
            Ok(self.webhooks.create(new).await?)
        })
        .await
    }

    /// A webhook.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        self.admit(context, UseCase::GetWebhook)?;
        self.is_own(context, id).await?;
        let webhook = self.webhooks.get(id).await?;
        self.webhook_read(context, Some(id));
        Ok(webhook)
    }

    /// Webhooks, oldest first; `after` is the cursor of the page before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn webhooks(
        &self,
        context: &Context,
        after: i64,
        limit: usize,
    ) -> Result<Page<Listed>, Error> {
        self.admit(context, UseCase::ListWebhooks)?;
        let reach = context.caller.reach();
        let webhooks = self.webhooks.list(reach.owner(), after, limit).await?;
        self.webhook_read(context, None);
        Ok(webhooks)
    }

    /// Changes what is given of a webhook.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update_webhook(
        &self,
        context: &Context,
        id: EndpointId,
        mut change: WebhookChange,
    ) -> Result<View, Error> {
        self.admit(context, UseCase::UpdateWebhook)?;
        self.is_own(context, id).await?;
        if let Some(owner) = context.caller.reach().owner() {
            if let Some(user) = change.user {
                let user = own_user(user, owner);
                let user = self.noted(context, UseCase::UpdateWebhook, Some(id), user)?;
                change.user = Some(Some(user));
            }
            if let Some(Some(flow)) = change.flow {
                self.is_own_flow(context, flow).await?;
            }
        }
        let mut detail = json!({"changed": changed_fields(&change)});
        if let Some(user) = &change.user {
            detail["user_id"] = json!(user);
        }
        if let Some(url) = &change.url {
            detail["host"] = json!(host_of(url));
        }
        let made = (UseCase::UpdateWebhook, id);
        let view = self.audited_change(context, made, detail, async {
            Ok(self.webhooks.update(id, change).await?)
        });
        self.shown(context, id, view.await)
    }

    /// Deletes a webhook; says how many deliveries were cancelled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_webhook(&self, context: &Context, id: EndpointId) -> Result<u64, Error> {
        self.admit(context, UseCase::DeleteWebhook)?;
        self.is_own(context, id).await?;
        self.audited_change(context, (UseCase::DeleteWebhook, id), json!({}), async {
            Ok(self.webhooks.delete(id).await?)
        })
        .await
    }

    /// Sends to a webhook again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable_webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        self.admit(context, UseCase::EnableWebhook)?;
        self.is_own(context, id).await?;
        let view = self.audited_change(context, (UseCase::EnableWebhook, id), json!({}), async {
            Ok(self.webhooks.enable(id).await?)
        });
        self.shown(context, id, view.await)
    }

    /// Sends nothing to a webhook, and keeps what it would get.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn disable_webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        self.admit(context, UseCase::DisableWebhook)?;
        self.is_own(context, id).await?;
        let view = self.audited_change(context, (UseCase::DisableWebhook, id), json!({}), async {
            Ok(self.webhooks.disable(id).await?)
        });
        self.shown(context, id, view.await)
    }

    /// Lets a new secret sign, beside the old one for a while.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn rotate_webhook_secret(
        &self,
        context: &Context,
        id: EndpointId,
        own: Option<Secret>,
        grace_seconds: u32,
    ) -> Result<WithSecret, Error> {
        self.admit(context, UseCase::RotateWebhookSecret)?;
        self.is_own(context, id).await?;
        self.audited_change(
            context,
            (UseCase::RotateWebhookSecret, id),
            json!({}),
            async { Ok(self.webhooks.rotate(id, own, grace_seconds).await?) },
        )
        .await
    }

    /// The secrets of a webhook; without a row in the audit log they are not shown.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn webhook_secrets(
        &self,
        context: &Context,
        id: EndpointId,
    ) -> Result<Secrets, Error> {
        self.admit(context, UseCase::ReadWebhookSecret)?;
        self.is_own(context, id).await?;
        let secrets = self
            .webhooks
            .secret(id, context.caller.actor(), &context.correlation)
            .await?;
        let shows = (UseCase::ReadWebhookSecret, id);
        self.audited_change(context, shows, json!({}), async { Ok(secrets) })
            .await
    }

    /// Sends a message that only tests, once, and says what came of it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn test_webhook(&self, context: &Context, id: EndpointId) -> Result<Tested, Error> {
        self.admit(context, UseCase::TestWebhook)?;
        self.is_own(context, id).await?;
        self.audited_change(context, (UseCase::TestWebhook, id), json!({}), async {
            Ok(self.webhooks.test(id).await?)
        })
        .await
    }

    /// What was sent, every attempt, and what waits.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn deliveries(
        &self,
        context: &Context,
        mut filter: DeliveryFilter,
        limit: usize,
    ) -> Result<Page<Deliveries>, Error> {
        self.admit(context, UseCase::ListDeliveries)?;
        if let Some(id) = filter.endpoint {
            self.is_own(context, id).await?;
        }
        filter.owner = context.caller.reach().owner().cloned();
        let deliveries = self.webhooks.deliveries(&filter, limit).await?;
        self.webhook_read(context, filter.endpoint);
        Ok(deliveries)
    }

    /// Notes that a caller who manages all webhooks read one of them, or of all.
    fn webhook_read(&self, context: &Context, id: Option<EndpointId>) {
        let id = id.map_or_else(|| ALL.to_owned(), |id| id.to_string());
        let read = (Action::WebhookRead, id.as_str());
        self.access.read_beside(context, read, None);
    }

    /// The same of a webhook that a change has shown.
    fn shown(
        &self,
        context: &Context,
        id: EndpointId,
        changed: Result<View, Error>,
    ) -> Result<View, Error> {
        if changed.is_ok() {
            self.webhook_read(context, Some(id));
        }
        changed
    }

    /// Makes a change of a webhook, or of deliveries, behind its row in the audit log if it has one.
    async fn audited_change<T>(
        &self,
        context: &Context,
        (use_case, object): (UseCase, impl Display),
        detail: Value,
        change: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let action = match use_case.recorded() {
            Recorded::Always(action) => Some(action),
            // By a caller who sees all users it may be of others, and show what happens to them.
            Recorded::OfOthers(action) => Access::notes_reads(context).then_some(action),
            Recorded::Refusals(_) | Recorded::Reads(_) | Recorded::Nothing => None,
        };
        let Some(action) = action else {
            return change.await;
        };
        let object = Some(Arc::from(object.to_string()));
        let mut audited = Audited::new((&self.access, context), action, object, detail);
        audited.begin().await?;
        audited.ended(change.await).await
    }

    /// What was decided about a change; see [`Access::noted`].
    fn noted<T>(
        &self,
        context: &Context,
        use_case: UseCase,
        id: Option<EndpointId>,
        decided: Result<T, Error>,
    ) -> Result<T, Error> {
        match use_case.recorded().change() {
            Some(action) => {
                let object = id.map(|id| Arc::from(id.to_string()));
                self.access.noted(context, (action, object), decided)
            }
            None => decided,
        }
    }

    /// Sends a message once more, now; says as which delivery.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn redeliver(
        &self,
        context: &Context,
        delivery: i64,
        request_key: Option<Arc<str>>,
    ) -> Result<i64, Error> {
        self.admit(context, UseCase::Redeliver)?;
        let reach = context.caller.reach();
        let is_own = self.webhooks.is_delivered_for(reach.owner(), delivery);
        is_own.await?;
        let caller = &context.caller;
        let scope = match caller.kind() {
            Kind::Anonymous => None,
            Kind::User | Kind::Service => Some(&**caller.actor()),
        };
        let change = (UseCase::Redeliver, delivery);
        self.audited_change(context, change, json!({}), async {
            let done = self.webhooks.redeliver(delivery, request_key, scope);
            Ok(done.await?)
        })
        .await
    }

    /// Lets deliveries that were given up begin anew; says how many.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn recover_deliveries(
        &self,
        context: &Context,
        id: EndpointId,
        which: Recover,
    ) -> Result<u64, Error> {
        self.admit(context, UseCase::RecoverDeliveries)?;
        self.is_own(context, id).await?;
        self.audited_change(
            context,
            (UseCase::RecoverDeliveries, id),
            json!({}),
            async { Ok(self.webhooks.recover(id, which).await?) },
        )
        .await
    }

    /// Refuses the webhook of somebody else as if it did not exist.
    async fn is_own(&self, context: &Context, id: EndpointId) -> Result<(), Error> {
        let reach = context.caller.reach();
        Ok(self.webhooks.is_owned(reach.owner(), id).await?)
    }

    /// Refuses the flow of somebody else as one that does not exist.
    async fn is_own_flow(&self, context: &Context, flow: FlowId) -> Result<(), Error> {
        let foreign = || Refusal::FlowNotFound { flow };
        match self.app.is_owned(context, flow, foreign).await {
            Err(Error::Refused(_)) => Err(no_such_flow(flow).into()),
            other => other,
        }
    }
}

/// The members that a change names, as callers write them.
fn changed_fields(change: &WebhookChange) -> Vec<&'static str> {
    let WebhookChange {
        url,
        description,
        events,
        flow,
        user,
        labels,
        ordering,
        schedule,
        headers,
    } = change;
    changed([
        (url.is_some(), "url"),
        (description.is_some(), "description"),
        (events.is_some(), "events"),
        (flow.is_some(), "flow_id"),
        (user.is_some(), "user_id"),
        (labels.is_some(), "labels"),
        (ordering.is_some(), "ordering"),
        (schedule.is_some(), "schedule"),
        (headers.is_some(), "headers"),
    ])
}

/// Ids of webhooks are unique over all owners, so only a caller who sees all webhooks may choose one: others would
/// learn from the refusal which ids exist.
fn no_chosen_id(chosen: Option<EndpointId>) -> Result<(), Error> {
    match chosen {
        None => Ok(()),
        Some(_) => Err(Error::Forbidden {
            scope: Scope::UsersAny,
            field: Some(Cow::from("id")),
        }),
    }
}

/// The user whose flows a webhook may be about, if its caller sees only their own.
fn own_user(asked: Option<Arc<str>>, owner: &Arc<str>) -> Result<Arc<str>, Error> {
    match asked {
        Some(asked) if asked != *owner => Err(Error::Forbidden {
            scope: Scope::UsersAny,
            field: Some(Cow::from("user_id")),
        }),
        Some(_) | None => Ok(owner.clone()),
    }
}
