//! Webhooks, which lie beside the log, so any node answers.

use super::Service;
use crate::application::api::Error;
use crate::application::api::webhooks::{
    Deliveries, DeliveryFilter, EndpointId, Listed, NewWebhook, Page, Recover, Secret, Secrets,
    Tested, View, WebhookChange, WithSecret,
};
use crate::application::authorize::{UseCase, authorize};
use crate::application::context::Context;
use std::sync::Arc;
use taskledger_auth::Action;

impl Service {
    /// A new webhook, with its secret.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create_webhook(
        &self,
        context: &Context,
        new: NewWebhook,
    ) -> Result<WithSecret, Error> {
        authorize(context, UseCase::CreateWebhook)?;
        Ok(self.webhooks.create(new).await?)
    }

    /// A webhook.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        authorize(context, UseCase::GetWebhook)?;
        Ok(self.webhooks.get(id).await?)
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
        authorize(context, UseCase::ListWebhooks)?;
        Ok(self.webhooks.list(after, limit).await?)
    }

    /// Changes what is given of a webhook.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update_webhook(
        &self,
        context: &Context,
        id: EndpointId,
        change: WebhookChange,
    ) -> Result<View, Error> {
        authorize(context, UseCase::UpdateWebhook)?;
        Ok(self.webhooks.update(id, change).await?)
    }

    /// Deletes a webhook; says how many deliveries were cancelled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_webhook(&self, context: &Context, id: EndpointId) -> Result<u64, Error> {
        authorize(context, UseCase::DeleteWebhook)?;
        Ok(self.webhooks.delete(id).await?)
    }

    /// Sends to a webhook again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable_webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        authorize(context, UseCase::EnableWebhook)?;
        Ok(self.webhooks.enable(id).await?)
    }

    /// Sends nothing to a webhook, and keeps what it would get.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn disable_webhook(&self, context: &Context, id: EndpointId) -> Result<View, Error> {
        authorize(context, UseCase::DisableWebhook)?;
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
        authorize(context, UseCase::RotateWebhookSecret)?;
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
        authorize(context, UseCase::ReadWebhookSecret)?;
        let secrets = self
            .webhooks
            .secret(id, context.caller.actor(), &context.correlation)
            .await?;
        let object = Arc::from(id.to_string());
        self.audited(context, Action::SecretShown, Some(object))
            .await?;
        Ok(secrets)
    }

    /// Sends a message that only tests, once, and says what came of it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn test_webhook(&self, context: &Context, id: EndpointId) -> Result<Tested, Error> {
        authorize(context, UseCase::TestWebhook)?;
        Ok(self.webhooks.test(id).await?)
    }

    /// What was sent, every attempt, and what waits.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn deliveries(
        &self,
        context: &Context,
        filter: &DeliveryFilter,
        limit: usize,
    ) -> Result<Page<Deliveries>, Error> {
        authorize(context, UseCase::ListDeliveries)?;
        Ok(self.webhooks.deliveries(filter, limit).await?)
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
        authorize(context, UseCase::Redeliver)?;
        Ok(self.webhooks.redeliver(delivery, request_key).await?)
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
        authorize(context, UseCase::RecoverDeliveries)?;
        Ok(self.webhooks.recover(id, which).await?)
    }
}
