//! The claims of a token with a valid signature: whether it is meant for this server and now, who its subject is, and
//! which scopes it gives.

use super::Denied;
use super::issuer::{Grant, Issuer};
use crate::{Caller, Name, Scopes};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Seconds by which clocks of issuer and server may differ.
pub const LEEWAY_SECONDS: i64 = 60;
/// The last second of the year 9999: later ones are no times.
const LAST_SECOND: f64 = 253_402_300_799.0;
/// The same in milliseconds, up to its end.
const LAST_MS: i64 = 253_402_300_799_999;
/// The claim that names the key whose holder alone may use the token (RFC 7800).
const BOUND_TO: &str = "cnf";
/// Claims that only ID tokens have (OpenID Connect Core 2 and 3.3.2.11).
const OF_ID_TOKENS: [&str; 3] = ["nonce", "at_hash", "c_hash"];
/// Claims whose text is a list of words (RFC 8693 4.2; `scp` of some issuers).
const LISTS_OF_WORDS: [&str; 2] = ["scope", "scp"];
/// Characters of a `jti` that is shown as the credential; of longer ones the token's digest is.
const SHOWN_ID_CHARS_MAX: usize = 128;
/// Bytes of the digest that stand for a token without `jti`.
const DIGEST_BYTES: usize = 8;

type Claims = Map<String, Value>;

/// A token that is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The user's name here.
    pub name: Name,
    /// What the token allows.
    pub scopes: Scopes,
    /// `jti`.
    pub id: Option<String>,
    /// `sub`.
    pub subject: String,
    /// `iat`, in milliseconds since 1970.
    pub issued_ms: Option<i64>,
    /// `exp` and the leeway, in milliseconds since 1970.
    pub expires_ms: i64,
    /// What logs call the token: `jwt:` and its `jti`, or the beginning of its SHA-256.
    pub credential: String,
}

impl Verified {
    /// Who calls.
    #[must_use]
    pub fn into_caller(self) -> Caller {
        let credential = Arc::from(self.credential);
        Caller::user(&self.name, self.scopes).by(credential, Some(self.expires_ms))
    }
}

/// Reads the claims of a token whose signature is valid.
pub(super) fn believe(
    issuer: &Issuer,
    token: &str,
    claims: Claims,
    now_ms: i64,
) -> Result<Verified, Denied> {
    // It chose the key; that both readings agree is not left to two parsers.
    if text(&claims, "iss") != Some(issuer.url()) {
        return Err(Denied::UnknownIssuer);
    }
    if OF_ID_TOKENS.iter().any(|claim| claims.contains_key(*claim)) {
        return Err(Denied::WrongType);
    }
    let options = issuer.options();
    // No proof of the key is checked (RFC 8705, RFC 9449), so a stolen token would be as good as its owner's.
    if claims.contains_key(BOUND_TO) && !options.accepts_bound {
        return Err(Denied::Bound);
    }
    let expires_ms = check_times(&claims, now_ms)?;
    let fits = |audience: &str| options.audiences.iter().any(|own| own == audience);
    if !texts(claims.get("aud")).any(fits) {
        return Err(Denied::WrongAudience);
    }
    let subject = text(&claims, "sub").filter(|sub| Name::new(sub).is_ok());
    let subject = subject.ok_or(Denied::NoUser)?.to_owned();
    let user = user(&claims, &options.user_claim).ok_or(Denied::NoUser)?;
    let name = issuer.name(user).ok_or(Denied::NoUser)?;
    let id = match claims.get("jti") {
        None => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(_) => return Err(Denied::Malformed),
    };
    Ok(Verified {
        name,
        scopes: scopes(&claims, &options.grants),
        credential: credential(id.as_deref(), token),
        id,
        subject,
        issued_ms: seconds(&claims, "iat")?.map(|s| s * 1000),
        expires_ms,
    })
}

/// When the token ends, in milliseconds since 1970, if it is valid now.
fn check_times(claims: &Claims, now_ms: i64) -> Result<i64, Denied> {
    let leeway_ms = LEEWAY_SECONDS * 1000;
    let expires = seconds(claims, "exp")?.ok_or(Denied::Malformed)?;
    let expires_ms = (expires * 1000 + leeway_ms).min(LAST_MS);
    if now_ms >= expires_ms {
        return Err(Denied::Expired);
    }
    for begin in ["nbf", "iat"] {
        let begin = seconds(claims, begin)?;
        if begin.is_some_and(|begin| begin * 1000 > now_ms + leeway_ms) {
            return Err(Denied::NotYetValid);
        }
    }
    Ok(expires_ms)
}

/// Whole seconds since 1970, of a claim that may have fractions.
fn seconds(claims: &Claims, claim: &str) -> Result<Option<i64>, Denied> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    let number = value.as_f64().ok_or(Denied::Malformed)?;
    if !(0.0..=LAST_SECOND).contains(&number) {
        return Err(Denied::Malformed);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within the range that was checked"
    )]
    Ok(Some(number as i64))
}

/// Who the user is. An address of mail names nobody until the issuer has verified it: with many issuers
/// users choose it themselves.
fn user<'a>(claims: &'a Claims, claim: &str) -> Option<&'a str> {
    if claim == "email" && claims.get("email_verified") != Some(&Value::Bool(true)) {
        return None;
    }
    found(claims, claim)?.as_str()
}

/// What a token allows: the scopes of all grants that fit.
fn scopes(claims: &Claims, grants: &[Grant]) -> Scopes {
    let fits = |grant: &&Grant| {
        let value = found(claims, &grant.claim);
        let is_list = LISTS_OF_WORDS.contains(&grant.claim.as_str());
        texts(value).any(|text| {
            text == grant.value || (is_list && text.split(' ').any(|word| word == grant.value))
        })
    };
    let granted = grants.iter().filter(fits);
    Scopes::of(granted.flat_map(|grant| grant.scopes.iter()))
}

/// A claim by its name, or within others by names with dots between (`realm_access.roles`).
fn found<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let mut names = path.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |within, name| within.as_object()?.get(name))
}

fn text<'a>(claims: &'a Claims, claim: &str) -> Option<&'a str> {
    claims.get(claim)?.as_str()
}

/// The text, or those of a list; what is no text is left out.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let many = value.and_then(Value::as_array).map(Vec::as_slice);
    let one = value.filter(|value| value.is_string());
    let all = many.unwrap_or_default().iter().chain(one);
    all.filter_map(Value::as_str)
}

fn credential(id: Option<&str>, token: &str) -> String {
    let shown = |id: &&str| {
        let chars = id.chars().count();
        (1..=SHOWN_ID_CHARS_MAX).contains(&chars) && id.chars().all(|c| c.is_ascii_graphic())
    };
    if let Some(id) = id.filter(shown) {
        return format!("jwt:{id}");
    }
    let digest = Sha256::digest(token.as_bytes());
    let hex = digest[..DIGEST_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"));
    format!("jwt:{}", hex.collect::<String>())
}
