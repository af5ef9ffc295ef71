//! What the audit log says of the settings of a server.

use super::ServerConfig;
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use serde_json::{Value, json};
use std::sync::Arc;

impl ServerConfig {
    /// The settings that decide who may call and what may be called, for the audit log. Without secrets: of the tokens
    /// of `--admin-token-file` their ids, `admin_tokens`; of the proxy, whose URL may hold a password, only that there
    /// is one. `is_authenticated`: what `--auth` has come to.
    #[must_use]
    pub fn audited(&self, is_authenticated: bool, admin_tokens: &[Arc<str>]) -> Value {
        let (egress, oidc) = (&self.engine.egress, &self.oidc);
        let mode = self.auth.mode.to_possible_value();
        json!({
            "auth": mode.as_ref().map(PossibleValue::get_name),
            "authentication": is_authenticated,
            "admin_tokens": admin_tokens,
            "listen": self.listen,
            "broker_listen": self.broker.listen,
            // They need no credentials.
            "admin_listen": self.admin_listen,
            "broker_metrics_listen": self.broker.metrics_listen,
            "metrics": self.metrics,
            "issuers": oidc.issuers,
            "oidc_audiences": oidc.audiences,
            "oidc_user_claims": oidc.user_claims,
            "oidc_user_prefixes": oidc.user_prefixes,
            "oidc_scopes": oidc.scopes,
            "oidc_algorithms": oidc.algorithms,
            "oidc_loopback_http": oidc.loopback_http,
            "tls": self.tls.certificate.is_some(),
            "tls_client_ca": self.tls.client_authorities.is_some(),
            "allow_origins": self.allowed_origins,
            "allow_hosts": self.allowed_hosts,
            "allow_command": self.engine.allowed_commands,
            "trusted_proxies": texts(&self.trusted_proxies),
            "egress_allow_net": texts(&egress.allow_nets),
            "egress_allow_host": texts(&egress.allow_hosts),
            "egress_deny_host": texts(&egress.deny_hosts),
            "egress_allow_http": egress.allow_http,
            "egress_proxy": egress.proxy.is_some(),
        })
    }
}

fn texts<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}
