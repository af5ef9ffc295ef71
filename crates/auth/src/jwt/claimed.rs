//! The claims of a token before its signature is checked: enough to find the key that checks it.

use super::{Algorithm, Denied};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

/// Bytes of a token. Those of large companies, with lists of groups, have 2 to 4 KiB.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Characters of a `kid`; no issuer that publishes keys has longer ones.
const KID_BYTES_MAX: usize = 256;
/// What `typ` of an access token may be, without `application/`, whatever the case (RFC 9068; most issuers
/// say `JWT`).
const TYPES: [&str; 2] = ["at+jwt", "JWT"];

/// The header. `jku`, `jwk`, `x5u` and `x5c` name keys of whoever made the token: they are not read.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    #[serde(default, deserialize_with = "present")]
    crit: bool,
}

/// Whether a member is there, `null` included.
fn present<'de, D: Deserializer<'de>>(member: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(member).map(|_| true)
}

#[derive(Deserialize)]
struct Payload {
    iss: String,
}

/// The unverified claims of a token.
#[derive(Debug)]
pub(super) struct Claimed {
    /// How it says that it is signed. Trusted keys decide whether that can be.
    pub(super) algorithm: Algorithm,
    /// The key id (`kid`) that the token names.
    pub(super) key_id: Option<String>,
    /// The issuer whose key must check the token.
    pub(super) issuer: String,
}

impl Claimed {
    /// Reads a token. Cost: O(length), and no more than [`TOKEN_BYTES_MAX`].
    pub(super) fn read(token: &str) -> Result<Self, Denied> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Denied::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Denied::Malformed);
        };
        let header: Header = read_part(header)?;
        let algorithm = header.alg.parse().map_err(|_| Denied::WrongAlgorithm)?;
        if header.crit {
            return Err(Denied::CriticalHeader);
        }
        if !header.typ.is_some_and(|typ| is_access_token(&typ)) {
            return Err(Denied::WrongType);
        }
        let too_long = |id: &String| id.len() > KID_BYTES_MAX;
        if header.kid.as_ref().is_some_and(too_long) {
            return Err(Denied::UnknownKey);
        }
        let payload: Payload = read_part(payload)?;
        Ok(Self {
            algorithm,
            key_id: header.kid,
            issuer: payload.iss,
        })
    }
}

fn is_access_token(typ: &str) -> bool {
    const MEDIA: &str = "application/";
    let media = typ.get(..MEDIA.len());
    let has_media = media.is_some_and(|front| front.eq_ignore_ascii_case(MEDIA));
    let short = if has_media { &typ[MEDIA.len()..] } else { typ };
    TYPES.iter().any(|known| known.eq_ignore_ascii_case(short))
}

fn read_part<T: DeserializeOwned>(part: &str) -> Result<T, Denied> {
    let bytes = URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| Denied::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| Denied::Malformed)
}
