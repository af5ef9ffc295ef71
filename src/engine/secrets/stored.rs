//! Reads secrets from the store beside the log.

use crate::application::ports::{Secrets, SecretsError};
use crate::sealing::Secret;
use async_trait::async_trait;
use std::sync::Arc;
use taskledger_auth::store::SecretOwner;
use taskledger_auth::{MAIN_TENANT, SecretName, Vault, VaultError};

/// The secrets that callers have set.
#[derive(Debug)]
pub struct StoredSecrets {
    vault: Arc<Vault>,
    tenant: Arc<str>,
}

impl StoredSecrets {
    /// Those of this store.
    #[must_use]
    pub fn new(vault: Arc<Vault>) -> Self {
        Self {
            vault,
            tenant: Arc::from(MAIN_TENANT),
        }
    }
}

#[async_trait]
impl Secrets for StoredSecrets {
    async fn open(
        &self,
        owner: Option<&str>,
        names: &[SecretName],
    ) -> Result<Vec<Secret>, SecretsError> {
        let owner = SecretOwner {
            tenant: self.tenant.clone(),
            user: owner.map(Arc::from),
        };
        let opened = self.vault.open(&owner, names).await;
        opened.map_err(|error| match error {
            VaultError::Missing(name) => SecretsError::Missing(name),
            VaultError::Closed { name, source } => SecretsError::Closed {
                name,
                reason: source.to_string(),
            },
            error @ (VaultError::Store(_)
            | VaultError::Keys(_)
            | VaultError::Value
            | VaultError::Full) => SecretsError::Unavailable(error.to_string()),
        })
    }
}
