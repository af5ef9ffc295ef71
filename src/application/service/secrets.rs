//! Secrets that tasks name in their inputs: set, listed, deleted, and never shown. They lie beside the log, so
//! any node answers.

use super::Service;
use super::auth::{ALL, origin, user_for};
use crate::application::api::{Error, SecretView};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::error::Failure;
use crate::sealing::{KeysError, Secret};
use serde_json::Value;
use std::sync::Arc;
use taskledger_auth::store::SecretOwner;
use taskledger_auth::{Action, By, SecretName, VaultError};
use taskledger_domain::Violation;

impl Service {
    /// Sets a secret, in the place of the one before if there is one. `owner`: whose; absent: the caller's
    /// own, and without authentication that of flows without a user; empty: of those flows too.
    ///
    /// # Errors
    /// [`Error`]; `Forbidden` for a secret of somebody else without `users:any`.
    pub async fn set_secret(
        &self,
        context: &Context,
        owner: Option<Arc<str>>,
        name: &SecretName,
        value: &Secret,
    ) -> Result<SecretView, Error> {
        self.admit(context, UseCase::SetSecret)?;
        let change = (Action::SecretSet, Some(Arc::from(name.as_str())));
        let owner = owner_for(context, owner);
        let owner = self.access.noted(context, change, owner)?;
        let by = By::call(&context.caller, &origin(context));
        let set = self.secrets.set(by, &owner, name, value).await;
        set.map_err(failed)
    }

    /// The secrets of an owner, by name, without their values; `owner` as in [`Self::set_secret`].
    ///
    /// # Errors
    /// [`Error`].
    pub async fn secrets(
        &self,
        context: &Context,
        owner: Option<Arc<str>>,
    ) -> Result<Vec<SecretView>, Error> {
        self.admit(context, UseCase::ListSecrets)?;
        let owner = owner_for(context, owner)?;
        let listed = self.secrets.list(&owner).await.map_err(failed)?;
        let read = (Action::SecretRead, ALL);
        self.access.read_beside(context, read, owner.user.as_ref());
        Ok(listed)
    }

    /// Deletes a secret; says whether there was one. `owner` as in [`Self::set_secret`].
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_secret(
        &self,
        context: &Context,
        owner: Option<Arc<str>>,
        name: &SecretName,
    ) -> Result<bool, Error> {
        self.admit(context, UseCase::DeleteSecret)?;
        let change = (Action::SecretDelete, Some(Arc::from(name.as_str())));
        let owner = owner_for(context, owner);
        let owner = self.access.noted(context, change, owner)?;
        let by = By::call(&context.caller, &origin(context));
        self.secrets.delete(by, &owner, name).await.map_err(failed)
    }
}

/// The owner of the secrets that a call is about.
fn owner_for(context: &Context, asked: Option<Arc<str>>) -> Result<SecretOwner, Error> {
    Ok(SecretOwner {
        tenant: context.caller.tenant().clone(),
        user: user_for(context, asked)?,
    })
}

pub(super) fn failed(error: VaultError) -> Error {
    let refused = |reason: &'static str, expected: String| {
        Error::invalid([Violation::of("value", reason, expected, &Value::Null)])
    };
    match error {
        VaultError::Store(error) => error.into(),
        VaultError::Value => refused("too short or too long", error.to_string()),
        VaultError::Keys(none @ KeysError::None) => {
            refused("this server cannot keep secrets", none.to_string())
        }
        VaultError::Full => Error::invalid([Violation::of(
            "name",
            "too many secrets",
            error.to_string(),
            &Value::Null,
        )]),
        VaultError::Keys(_) | VaultError::Closed { .. } | VaultError::Missing(_) => {
            Failure::Secrets(error.to_string()).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_auth::{Caller, Name, Scope, Scopes};

    fn asked(caller: Caller, owner: Option<&str>) -> Option<Option<String>> {
        let context = Context::of(Arc::new(caller), Arc::from("c"));
        let found = owner_for(&context, owner.map(Arc::from)).ok()?;
        Some(found.user.map(|user| user.to_string()))
    }

    #[test]
    fn a_user_reaches_his_own_secrets_and_users_any_those_of_all() {
        let ann = || {
            let name = Name::new("ann").expect("a name");
            Caller::user(&name, Scopes::of([Scope::TasksWrite]))
        };
        let any = || {
            let name = Name::new("ops").expect("a name");
            Caller::service(&name, Scopes::of([Scope::TasksWrite, Scope::UsersAny]))
        };
        let own = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(asked(ann(), None), own("ann"));
        assert_eq!(asked(ann(), Some("ann")), own("ann"));
        assert_eq!(asked(ann(), Some("bob")), None);
        assert_eq!(asked(ann(), Some("")), None);
        assert_eq!(asked(any(), None), own("service:ops"));
        assert_eq!(asked(any(), Some("bob")), own("bob"));
        assert_eq!(asked(any(), Some("")), Some(None));
        let anonymous = || (*Caller::anonymous()).clone();
        assert_eq!(asked(anonymous(), None), Some(None));
        assert_eq!(asked(anonymous(), Some("bob")), own("bob"));
    }
}
