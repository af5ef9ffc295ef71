//! What an attempt gets beside its inputs: secrets, and the notes of earlier attempts.

use super::{Dispatcher, PREPARE_AGAIN_AFTER};
use crate::application::Flows;
use crate::application::ports::{SecretsError, Started};
use crate::engine::executor::{AttemptOutcome, Past};
use crate::engine::past;
use crate::engine::secrets::{SecretTexts, TooLarge};
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_domain::flow::FailureReason;
use tokio_util::sync::CancellationToken;

impl Dispatcher {
    /// What earlier attempts have left; `None`: the attempt was stopped before the log could be read.
    pub(super) async fn past(
        &self,
        flows: &Arc<Flows>,
        started: &Started,
        cancel: &CancellationToken,
    ) -> Option<Past> {
        loop {
            match past::past(self.source.store(), flows, started).await {
                Ok(past) => return Some(past),
                Err(error) => {
                    tracing::warn!(task.id = %started.launch.task, error = %error, "an attempt waits for what came before it");
                }
            }
            tokio::select! {
                () = cancel.cancelled() => return None,
                () = tokio::time::sleep(PREPARE_AGAIN_AFTER) => {}
            }
        }
    }

    /// The secrets that inputs name, of the owner of the flow.
    ///
    /// # Errors
    /// How the attempt ends without them.
    pub(super) async fn secrets(
        &self,
        started: &Started,
        names: &[SecretName],
        cancel: &CancellationToken,
    ) -> Result<SecretTexts, AttemptOutcome> {
        if names.is_empty() {
            return Ok(SecretTexts::default());
        }
        let failed = |reason, error: String| {
            Err(AttemptOutcome::Failed {
                reason,
                error,
                retry_after: None,
            })
        };
        let owner = started.launch.owner.as_deref();
        let whose = owner.map_or_else(
            || "for flows without a user, of which this is one".to_owned(),
            |owner| format!("of user `{owner}`, to whom this flow belongs"),
        );
        loop {
            match self.secrets.open(owner, names).await {
                Ok(texts) => {
                    let secrets = SecretTexts::new(names.iter().cloned().zip(texts));
                    return secrets.or_else(|error: TooLarge| {
                        failed(FailureReason::InvalidInputs, error.to_string())
                    });
                }
                // Another attempt would find nothing else.
                Err(SecretsError::Missing(name)) => {
                    let error =
                        format!("there is no secret `{name}` {whose}; `secrets.set` makes one");
                    return failed(FailureReason::InvalidInputs, error);
                }
                Err(SecretsError::Closed { name, reason }) => {
                    tracing::error!(task.id = %started.launch.task, secret.name = %name, reason, "a secret does not open");
                    let error = format!("the secret `{name}` {whose}, does not open");
                    return failed(FailureReason::Executor, error);
                }
                Err(SecretsError::Unavailable(reason)) => {
                    tracing::warn!(task.id = %started.launch.task, reason, "an attempt waits for its secrets");
                    tokio::select! {
                        () = cancel.cancelled() => return Err(AttemptOutcome::Stopped),
                        () = tokio::time::sleep(PREPARE_AGAIN_AFTER) => {}
                    }
                }
            }
        }
    }
}
