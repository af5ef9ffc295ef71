//! `tokens.deny`.

use super::super::super::reader::{Choice, Parameters, Reader, choice, text};
use std::sync::Arc;
use taskledger_auth::DeniedJwt;
use taskledger_domain::Violation;

/// Characters of an issuer or a claim: more than those of tokens that are accepted have.
const CHARS_MAX: usize = 1024;

/// Which JWTs.
#[derive(Debug, Clone)]
pub struct Params {
    /// Who issued them.
    pub issuer: Arc<str>,
    /// One of them, or all of a subject.
    pub what: DeniedJwt,
}

/// By what tokens are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Claim {
    Id,
    Subject,
}

const CLAIM: Choice<Claim> = choice(
    "neither `jti` nor `sub`",
    &[("jti", Claim::Id), ("sub", Claim::Subject)],
);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let words = text(CHARS_MAX);
        let issuer = reader.required(
            "issuer",
            words,
            "`iss` of the tokens, exactly as they have it.",
        );
        let claim = reader.required(
            "claim",
            CLAIM,
            "`jti`: one token. `sub`: all tokens of a subject that were issued up to now.",
        );
        let value = reader.required("value", words, "The value of the claim.");
        reader.finish(|| {
            let value = Arc::from(value?);
            Some(Self {
                issuer: Arc::from(issuer?),
                what: match claim? {
                    Claim::Id => DeniedJwt::Id(value),
                    Claim::Subject => DeniedJwt::Subject(value),
                },
            })
        })
    }
}
