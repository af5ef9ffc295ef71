//! Webhooks, which lie beside the log, so any node answers.

use super::Service;
use super::auth::{ALL, Access};
use crate::application::api::Error;
use crate::application::api::webhooks::{
    Deliveries, DeliveryFilter, EndpointId, Listed, NewWebhook, Page, Recover, Secret, Secrets,
    Tested, View, WebhookChange, WithSecret,
};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::webhooks::api::no_such_flow;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use taskledger_auth::{Action, Entry, Kind, Scope};
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
        if let Some(owner) = context.caller.reach().owner() {
            let used = self.webhooks.count_of(owner).await?;
            self.limits.one_more_webhook(context, used)?;
            new.owner = Some(owner.clone());
            new.filter.user = Some(own_user(new.filter.user, owner)?);
            if let Some(flow) = new.filter.flow {
                self.is_own_flow(context, flow).await?;
            }
        }
        let id = new.id.unwrap_or_else(|| EndpointId(self.app.clock.uuid()));
        new.id = Some(id);
        let user = new.filter.user.clone();
        let change = (Action::WebhookCreate, id);
        self.audited_change(context, change, json!({"user_id": user}), async {
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
                change.user = Some(Some(own_user(user, owner)?));
            }
            if let Some(Some(flow)) = change.flow {
                self.is_own_flow(context, flow).await?;
            }
        }
        let mut detail = json!({});
        if let Some(user) = &change.user {
            detail["user_id"] = json!(user);
        }
        let made = (Action::WebhookUpdate, id);
        self.audited_change(context, made, detail, async {
            Ok(self.webhooks.update(id, change).await?)
        })
        .await
    }

    /// Deletes a webhook; says how many deliveries were cancelled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_webhook(&self, context: &Context, id: EndpointId) -> Result<u64, Error> {
        self.admit(context, UseCase::DeleteWebhook)?;
        self.is_own(context, id).await?;
        Ok(self.webhooks.delete(id).await?)
    }

    /// Sends to a webhook again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable_webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        self.admit(context, UseCase::EnableWebhook)?;
        self.is_own(context, id).await?;
        Ok(self.webhooks.enable(id).await?)
    }

    /// Sends nothing to a webhook, and keeps what it would get.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn disable_webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        self.admit(context, UseCase::DisableWebhook)?;
        self.is_own(context, id).await?;
        Ok(self.webhooks.disable(id).await?)
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
        Ok(self.webhooks.rotate(id, own, grace_seconds).await?)
    }

    /// The secrets of a webhook; who asked is logged.
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
        let object = Arc::from(id.to_string());
        self.access
            .audited(context, Action::SecretShown, Some(object))
            .await?;
        Ok(secrets)
    }

    /// Sends a message that only tests, once, and says what came of it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn test_webhook(&self, context: &Context, id: EndpointId) -> Result<Tested, Error> {
        self.admit(context, UseCase::TestWebhook)?;
        self.is_own(context, id).await?;
        Ok(self.webhooks.test(id).await?)
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

    /// Makes a change of a webhook. By a caller who sees all users it may show what happens to others, so the row is
    /// written first, and a second one if nothing was changed: the two lie in different stores.
    async fn audited_change<T>(
        &self,
        context: &Context,
        (action, id): (Action, EndpointId),
        detail: Value,
        change: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if !Access::notes_reads(context) {
            return change.await;
        }
        let object: Option<Arc<str>> = Some(Arc::from(id.to_string()));
        let done = |by| Entry::done(by, action, object.clone()).with(detail.clone());
        self.access.note(context, done).await?;
        let changed = change.await;
        if changed.is_err() {
            let refused = |by| Entry::refused(by, action, object.clone()).with(detail.clone());
            if let Err(error) = self.access.note(context, refused).await {
                tracing::warn!(endpoint.id = %id, %error, "a refusal is missing in the audit log");
            }
        }
        changed
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
        let done = self.webhooks.redeliver(delivery, request_key, scope);
        Ok(done.await?)
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
        Ok(self.webhooks.recover(id, which).await?)
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

/// Whose flows the webhook of somebody who sees only their own may be about.
fn own_user(asked: Option<Arc<str>>, owner: &Arc<str>) -> Result<Arc<str>, Error> {
    match asked {
        Some(asked) if asked != *owner => Err(Error::Forbidden {
            scope: Scope::UsersAny,
            field: Some(Cow::from("user_id")),
        }),
        Some(_) | None => Ok(owner.clone()),
    }
}
