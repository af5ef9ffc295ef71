//! OIDC issuers whose access tokens are accepted.

use clap::Args;
use taskledger_auth::jwt::{Algorithm, Grant, InvalidGrant, InvalidIssuer, Issuer, IssuerOptions};

/// Settings of issuers. With several of them, a setting for one begins with its URL and a space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct OidcConfig {
    /// OIDC issuer whose access tokens are accepted: its URL, exactly as tokens have it in `iss`; can be repeated
    #[arg(
        id = "oidc_issuer",
        long = "oidc-issuer",
        value_name = "URL",
        env = "TASKLEDGER_OIDC_ISSUER",
        value_delimiter = ','
    )]
    pub issuers: Vec<String>,

    /// What tokens for this server have in `aud`; can be repeated. With several issuers, `URL AUDIENCE`, as for all
    /// settings of one issuer
    #[arg(
        id = "oidc_audience",
        long = "oidc-audience",
        value_name = "[URL ]AUDIENCE",
        env = "TASKLEDGER_OIDC_AUDIENCE",
        value_delimiter = ','
    )]
    pub audiences: Vec<String>,

    /// Claim that names the user; `sub` unless given. `email` counts only with `email_verified`
    #[arg(
        id = "oidc_user_claim",
        long = "oidc-user-claim",
        value_name = "[URL ]CLAIM",
        env = "TASKLEDGER_OIDC_USER_CLAIM",
        value_delimiter = ','
    )]
    pub user_claims: Vec<String>,

    /// Beginning of the names of an issuer's users, such as `corp:`; at most one issuer goes without
    #[arg(
        id = "oidc_user_prefix",
        long = "oidc-user-prefix",
        value_name = "[URL ]PREFIX",
        env = "TASKLEDGER_OIDC_USER_PREFIX",
        value_delimiter = ','
    )]
    pub user_prefixes: Vec<String>,

    /// Scopes of tokens that have this value in this claim, such as `groups:ledger=tasks:read tasks:write`; can be
    /// repeated, `;` between several. Tokens without a match have no scopes
    #[arg(
        id = "oidc_scopes",
        long = "oidc-scopes",
        value_name = "[URL ]CLAIM:VALUE=SCOPES",
        env = "TASKLEDGER_OIDC_SCOPES",
        value_delimiter = ';'
    )]
    pub scopes: Vec<String>,

    /// Algorithm that an issuer may sign with: RS256, PS256, ES256, EdDSA; can be repeated; all of them unless given
    #[arg(
        id = "oidc_algorithm",
        long = "oidc-algorithm",
        value_name = "[URL ]ALGORITHM",
        env = "TASKLEDGER_OIDC_ALGORITHM",
        value_delimiter = ','
    )]
    pub algorithms: Vec<String>,

    /// Accept an issuer at an http URL of this machine, for tests and development
    #[arg(
        id = "oidc_loopback_http",
        long = "oidc-loopback-http",
        env = "TASKLEDGER_OIDC_LOOPBACK_HTTP"
    )]
    pub loopback_http: bool,

    /// Accept tokens that are bound to a key (`cnf`: DPoP, mutual TLS) like any other: the server checks no proof of
    /// the key
    #[arg(
        id = "oidc_accept_bound_tokens",
        long = "oidc-accept-bound-tokens",
        env = "TASKLEDGER_OIDC_ACCEPT_BOUND_TOKENS"
    )]
    pub accept_bound_tokens: bool,
}

/// Settings of issuers that cannot be; the operator can mend them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// A setting is for no issuer.
    #[error("{option} is given without --oidc-issuer; expected the URL of the issuer too")]
    NoIssuer {
        /// Which setting.
        option: &'static str,
    },
    /// A setting could be for any of several issuers.
    #[error(
        "{option}: `{value}` does not say for which issuer; expected the URL of one of them, a space \
         and the value"
    )]
    WhichIssuer {
        /// Which setting.
        option: &'static str,
        /// As it was given, without an issuer.
        value: String,
    },
    /// A setting that exists once is given twice.
    #[error("{option} is given twice for `{issuer}`, expected it once")]
    Twice {
        /// Which setting.
        option: &'static str,
        /// For whom.
        issuer: String,
    },
    /// An entry of the table of scopes cannot be read.
    #[error("--oidc-scopes: `{value}`: {reason}")]
    Scopes {
        /// What was given.
        value: String,
        /// What is wrong with it.
        reason: InvalidGrant,
    },
    /// An algorithm does not exist, or is not spoken.
    #[error("--oidc-algorithm: `{value}` is not supported, expected RS256, PS256, ES256 or EdDSA")]
    Algorithm {
        /// What was given.
        value: String,
    },
    /// An issuer has no audience.
    #[error("--oidc-audience is missing: {0}")]
    NoAudience(InvalidIssuer),
    /// Issuers cannot be so, or not beside each other.
    #[error("--oidc-issuer: {0}")]
    Issuer(InvalidIssuer),
}

const AUDIENCE: &str = "--oidc-audience";
const USER_CLAIM: &str = "--oidc-user-claim";
const USER_PREFIX: &str = "--oidc-user-prefix";
const SCOPES: &str = "--oidc-scopes";
const ALGORITHM: &str = "--oidc-algorithm";

impl OidcConfig {
    /// The issuers that are trusted; none without settings.
    ///
    /// # Errors
    /// [`OidcError`].
    pub fn issuers(&self) -> Result<Vec<Issuer>, OidcError> {
        let issuer = |url: &String| IssuerOptions {
            audiences: Vec::new(),
            algorithms: Vec::new(),
            loopback_http: self.loopback_http,
            accepts_bound: self.accept_bound_tokens,
            ..IssuerOptions::new(url, "")
        };
        let mut issuers: Vec<_> = self.issuers.iter().map(issuer).collect();
        for text in &self.audiences {
            let (n, audience) = self.split(AUDIENCE, text)?;
            issuers[n].audiences.push(audience.to_owned());
        }
        for text in &self.scopes {
            let (n, value) = self.split(SCOPES, text)?;
            let grant: Grant = value.parse().map_err(|reason| OidcError::Scopes {
                value: value.to_owned(),
                reason,
            })?;
            issuers[n].grants.push(grant);
        }
        for text in &self.algorithms {
            let (n, name) = self.split(ALGORITHM, text)?;
            let algorithm = name.parse().map_err(|_| OidcError::Algorithm {
                value: name.to_owned(),
            })?;
            issuers[n].algorithms.push(algorithm);
        }
        for (n, claim) in self.once(USER_CLAIM, &self.user_claims)? {
            claim.clone_into(&mut issuers[n].user_claim);
        }
        for (n, prefix) in self.once(USER_PREFIX, &self.user_prefixes)? {
            prefix.clone_into(&mut issuers[n].user_prefix);
        }
        for issuer in &mut issuers {
            if issuer.algorithms.is_empty() {
                issuer.algorithms = Algorithm::ALL.to_vec();
            }
        }
        Issuer::all(issuers).map_err(|error| match error {
            InvalidIssuer::NoAudience { .. } => OidcError::NoAudience(error),
            InvalidIssuer::TooMany { .. }
            | InvalidIssuer::Url { .. }
            | InvalidIssuer::Twice { .. }
            | InvalidIssuer::NoUserClaim { .. }
            | InvalidIssuer::NoAlgorithm { .. }
            | InvalidIssuer::Prefix { .. }
            | InvalidIssuer::NamesMeet { .. } => OidcError::Issuer(error),
        })
    }

    /// Values of a setting that each issuer has once.
    fn once<'a>(
        &self,
        option: &'static str,
        texts: &'a [String],
    ) -> Result<Vec<(usize, &'a str)>, OidcError> {
        let mut values: Vec<(usize, &str)> = Vec::new();
        for text in texts {
            let (n, value) = self.split(option, text)?;
            if values.iter().any(|(other, _)| *other == n) {
                let issuer = self.issuers[n].clone();
                return Err(OidcError::Twice { option, issuer });
            }
            values.push((n, value));
        }
        Ok(values)
    }

    /// For which issuer a value is, and the value.
    fn split<'a>(
        &self,
        option: &'static str,
        text: &'a str,
    ) -> Result<(usize, &'a str), OidcError> {
        for (n, url) in self.issuers.iter().enumerate() {
            let value = text.strip_prefix(url.as_str());
            if let Some(value) = value.and_then(|rest| rest.strip_prefix(' ')) {
                return Ok((n, value.trim_start()));
            }
        }
        match self.issuers.len() {
            0 => Err(OidcError::NoIssuer { option }),
            1 => Ok((0, text)),
            _ => Err(OidcError::WhichIssuer {
                option,
                value: text.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OidcConfig, OidcError};
    use clap::Parser;
    use taskledger_auth::jwt::{Algorithm, Issuer};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        oidc: OidcConfig,
    }

    fn issuers(words: &[&str]) -> Result<Vec<Issuer>, OidcError> {
        let words = [&["x"], words].concat();
        let program = Program::try_parse_from(words).expect("the words are flags");
        program.oidc.issuers()
    }

    const ONE: [&str; 2] = ["--oidc-issuer", "https://a.example"];
    const BOTH: [&str; 2] = ["--oidc-issuer", "https://a.example,https://b.example"];

    #[test]
    fn without_settings_no_issuer_is_trusted() {
        assert_eq!(issuers(&[]), Ok(Vec::new()));
    }

    #[test]
    fn settings_of_the_only_issuer_do_not_name_it() {
        let more = [
            "--oidc-audience=ledger",
            "--oidc-audience=https://a.example",
            "--oidc-scopes=groups:CN=a,OU=b=tasks:read tasks:run;https://a.example/roles:ops=admin",
            "--oidc-user-claim=email",
            "--oidc-algorithm=ES256",
        ];
        let issuers = issuers(&[&ONE[..], &more].concat()).expect("the settings fit");
        let options = issuers[0].options();
        assert_eq!(options.audiences, ["ledger", "https://a.example"]);
        let grants: Vec<_> = options.grants.iter().map(ToString::to_string).collect();
        let expected = [
            "groups:CN=a,OU=b=tasks:read tasks:run",
            "https://a.example/roles:ops=admin",
        ];
        assert_eq!(grants, expected);
        assert_eq!(options.user_claim, "email");
        assert_eq!(options.algorithms, [Algorithm::Es256]);
    }

    #[test]
    fn settings_of_several_issuers_name_theirs() {
        let more = [
            "--oidc-audience=https://a.example ledger,https://b.example ledger",
            "--oidc-user-prefix=https://b.example b:",
            "--oidc-scopes=https://b.example groups:x=tasks:read",
        ];
        let issuers = issuers(&[&BOTH[..], &more].concat()).expect("the settings fit");
        assert_eq!(issuers[0].options().user_prefix, "");
        assert_eq!(issuers[1].options().user_prefix, "b:");
        assert!(issuers[0].options().grants.is_empty());
        assert_eq!(issuers[1].options().grants.len(), 1);
    }

    #[test]
    fn what_is_missing_or_doubtful_is_told_with_its_option() {
        let audience = "--oidc-audience=ledger";
        for (words, told) in [
            (
                ONE.to_vec(),
                "--oidc-audience is missing: issuer `https://a.example`",
            ),
            (
                vec![audience],
                "--oidc-audience is given without --oidc-issuer",
            ),
            (
                vec!["--oidc-scopes=a:b=admin"],
                "--oidc-scopes is given without",
            ),
            (
                [&BOTH[..], &[audience]].concat(),
                "--oidc-audience: `ledger` does not say",
            ),
            (
                [&ONE[..], &[audience, "--oidc-scopes=a:b=tasks:reed"]].concat(),
                "--oidc-scopes: `a:b=tasks:reed`: `tasks:reed` is not a scope",
            ),
            (
                [&ONE[..], &[audience, "--oidc-user-claim=a,b"]].concat(),
                "--oidc-user-claim is given twice for `https://a.example`",
            ),
            (
                [&ONE[..], &[audience, "--oidc-algorithm=HS256"]].concat(),
                "--oidc-algorithm: `HS256` is not supported",
            ),
            (
                vec!["--oidc-issuer=http://127.0.0.1:1", audience],
                "--oidc-issuer: `http://127.0.0.1:1` cannot be an issuer",
            ),
        ] {
            let error = issuers(&words)
                .expect_err("the settings do not fit")
                .to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
