//! Whether callers must authenticate, and how their credentials are checked.

use super::{Server, StartError};
use crate::application::authentication::{Authenticate, Denied};
use crate::auth::{Audited, Authenticator, Failures, IssuerTokens, TokenVerifier, Verifier};
use crate::clock::SharedClock;
use crate::config::AuthMode;
use crate::nodes::Said;
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::jwt::Issuers;
use taskledger_auth::{Action, AuditLog, By, Entry};

/// The file in a data folder whose server has asked for credentials: if `auth.db` is lost, the next one does not let in
/// everybody.
const CREDENTIALS_FILE: &str = "credentials-required";
const CREDENTIALS_TEXT: &str =
    "The server of this folder asks for credentials, which are in auth.db.\n";

impl Server {
    /// Who tells whose credentials they are; `None`: everybody is let in. `is_reachable`: from other machines.
    /// A server that lets in nobody without credentials and has none makes the first token.
    ///
    /// # Errors
    /// [`StartError`]: whether there are tokens cannot be read, or the first one cannot be made.
    pub async fn authentication(
        &self,
        mode: AuthMode,
        is_reachable: bool,
        issuers: Option<Issuers>,
    ) -> Result<Option<Arc<dyn Authenticate>>, StartError> {
        let is_reason = is_reachable || issuers.is_some() || self.has_tokens().await?;
        let is_on = match &self.storage.cluster {
            None => wanted(mode, is_reason, &[])?,
            Some(cluster) => {
                cluster
                    .agree(|others| wanted(mode, is_reason, others))
                    .await??
            }
        };
        if let Some(folder) = &self.storage.beside {
            let mark = folder.join(CREDENTIALS_FILE);
            if is_on && !mark.exists() {
                std::fs::write(&mark, CREDENTIALS_TEXT).map_err(StartError::Mark)?;
            } else if mode == AuthMode::Auto && !is_on && mark.exists() {
                return Err(StartError::TokensLost(folder.clone()));
            }
        }
        if !is_on {
            if is_reachable {
                tracing::warn!("anybody who reaches this server may do everything: --auth is off");
            }
            return Ok(None);
        }
        if let Some(path) = self.make_first_token().await? {
            let path = path.display().to_string();
            tracing::info!(
                path,
                "the first token is in this file; it may do everything"
            );
        }
        let clock = self.app().clock.clone();
        let of_tokens = TokenVerifier::new(self.tokens().clone(), clock.clone());
        let mut verifiers: Vec<Arc<dyn Verifier>> = vec![Arc::new(of_tokens)];
        if let Some(issuers) = issuers {
            let clock = clock.clone();
            verifiers.push(Arc::new(IssuerTokens::new(issuers, clock)));
        }
        let failures = taskledger_auth::Failures::new();
        let limits = Arc::new(ByAddress { failures, clock });
        let audited = Audited::new(self.tokens().audit().clone(), Some(limits));
        let authenticator = Authenticator::new(verifiers, Some(Arc::new(audited)));
        Ok(Some(Arc::new(authenticator)))
    }

    /// Has the audit log say that the server has started, and with which settings: an object without secrets.
    pub async fn note_start(&self, settings: Value) {
        started(self.tokens().audit(), settings).await;
    }
}

/// Writes that a server has started, of this version and with these settings.
pub(super) async fn started(audit: &AuditLog, mut settings: Value) {
    settings["version"] = Value::from(env!("CARGO_PKG_VERSION"));
    let start = Entry::done(By::server(), Action::Start, None);
    if let Err(error) = audit.record(&start.with(settings)).await {
        tracing::warn!(%error, "the start is missing in the audit log");
    }
}

/// Whether a server asks for credentials. `is_reason`: what it is told and keeps speaks for it. With `auto` it asks if
/// one of the others does; otherwise it must be told what they do, because one server that does not ask opens all
/// flows.
///
/// # Errors
/// [`StartError::Authentication`]: another server does otherwise.
fn wanted(mode: AuthMode, is_reason: bool, others: &[Said]) -> Result<bool, StartError> {
    let is_on = match mode {
        AuthMode::On => true,
        AuthMode::Off => false,
        AuthMode::Auto => is_reason || others.iter().any(|other| other.is_on),
    };
    match others.iter().find(|other| other.is_on != is_on) {
        None => Ok(is_on),
        Some(other) => Err(StartError::Authentication {
            is_on,
            other: other.url.clone(),
        }),
    }
}

/// Failures by address.
#[derive(Debug)]
struct ByAddress {
    failures: taskledger_auth::Failures,
    clock: SharedClock,
}

impl Failures for ByAddress {
    fn check(&self, from: IpAddr) -> Result<(), u64> {
        let checked = self.failures.check(from, self.clock.now().0 / 1000);
        checked.map_err(|too_many| too_many.retry_after_ms)
    }

    fn failed(&self, from: IpAddr, _why: Denied) {
        self.failures.failed(from, self.clock.now().0 / 1000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_one_database_agree_whether_they_ask_for_credentials() {
        let others = |is_on: &[bool]| -> Vec<Said> {
            let said = |is_on: &bool| Said {
                is_on: *is_on,
                url: Some("http://a".to_owned()),
            };
            is_on.iter().map(said).collect()
        };
        for (mode, is_reason, said, expected) in [
            (AuthMode::Auto, false, &[][..], Some(false)),
            (AuthMode::Auto, true, &[], Some(true)),
            (AuthMode::Auto, false, &[false], Some(false)),
            (AuthMode::Auto, false, &[true], Some(true)),
            (AuthMode::Auto, true, &[true, true], Some(true)),
            (AuthMode::Auto, true, &[false], None),
            (AuthMode::On, false, &[], Some(true)),
            (AuthMode::On, false, &[true], Some(true)),
            (AuthMode::On, false, &[false], None),
            (AuthMode::Off, true, &[], Some(false)),
            (AuthMode::Off, true, &[false], Some(false)),
            (AuthMode::Off, false, &[true], None),
        ] {
            let found = wanted(mode, is_reason, &others(said));
            assert_eq!(found.ok(), expected, "{mode:?} {is_reason} {said:?}");
        }
    }

    #[test]
    fn whoever_differs_is_told_which_flag_to_give() {
        let off = StartError::Authentication {
            is_on: false,
            other: Some("http://a".to_owned()),
        };
        assert!(off.to_string().contains("`--auth on`"), "{off}");
        let on = StartError::Authentication {
            is_on: true,
            other: None,
        };
        assert!(on.to_string().contains("`--auth off`"), "{on}");
    }
}
