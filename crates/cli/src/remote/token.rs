//! Reads access tokens from files and variables.

use crate::CliError;
use reqwest::header::HeaderValue;
use std::path::Path;

/// Bytes of a file with a token: several times the largest that issuers make.
const TOKEN_BYTES_MAX: u64 = 16 * 1024;

/// The value of `Authorization` with the token in a file, which `of` names: an option, a variable or a context.
pub(super) fn token_in(path: &Path, of: &str) -> Result<HeaderValue, CliError> {
    let bytes = taskledger_net::secret_file::read(path, TOKEN_BYTES_MAX)
        .map_err(|error| CliError::Usage(format!("{of}: {error}")))?;
    let value = str::from_utf8(&bytes).ok().and_then(bearer);
    value.ok_or_else(|| no_token(&format!("{of}: `{}`", path.display())))
}

/// The value of `Authorization` with this token; `None`: it is none.
pub(super) fn bearer(text: &str) -> Option<HeaderValue> {
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

pub(super) fn no_token(place: &str) -> CliError {
    CliError::Usage(format!(
        "{place}: expected a token: ASCII characters without spaces, and nothing else"
    ))
}
