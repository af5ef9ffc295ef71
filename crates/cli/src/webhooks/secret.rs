//! A secret out of a file.

use crate::CliError;
use crate::input::read_text;

/// The secret in `file`, without the white space around it; `-` is standard input.
pub(super) fn read(file: &str) -> Result<String, CliError> {
    let wrong = |reason: &str| CliError::Usage(format!("--secret-file: `{file}`: {reason}"));
    let text = read_text(file).map_err(|error| wrong(&error.to_string()))?;
    let secret = text.trim();
    if secret.is_empty() || secret.contains(char::is_whitespace) {
        return Err(wrong("expected one secret, such as `whsec_...`"));
    }
    Ok(secret.to_owned())
}
