//! Environment variables that stand in for options.

use reqwest::header::AUTHORIZATION;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

/// The variable with a file that holds a token.
pub(super) const TOKEN_FILE_VARIABLE: &str = "TASKLEDGER_TOKEN_FILE";
/// The variable with headers, one a line.
pub(super) const HEADER_VARIABLE: &str = "TASKLEDGER_HEADER";
/// The variables with the address of the server, for the two names of the option; the first that is set is used.
pub(super) const SERVER_VARIABLES: [&str; 2] = ["TASKLEDGER_URL", "TASKLEDGER_SERVER"];
/// The variable for `--ca-file`.
pub(super) const CA_FILE_VARIABLE: &str = "TASKLEDGER_CA_FILE";
/// The variable of `--proxy`.
pub(super) const PROXY_VARIABLE: &str = "TASKLEDGER_PROXY";

/// The value of a variable that is not empty.
pub(super) fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A header as it was given, which may be a secret: it is read where it is used, and never shown.
#[derive(Clone)]
pub(super) struct HeaderText {
    pub(super) text: String,
    /// The option or the variable that holds it.
    pub(super) of: &'static str,
}

impl FromStr for HeaderText {
    type Err = Infallible;

    // What is wrong with it is said later: clap would repeat the value.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self {
            text: text.to_owned(),
            of: "--header",
        })
    }
}

impl HeaderText {
    pub(super) fn is_authorization(&self) -> bool {
        let name = self.text.split(':').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case(AUTHORIZATION.as_str())
    }
}

/// The headers of this variable, one a line.
pub(super) fn headers_of(name: &'static str) -> Vec<HeaderText> {
    headers_in(name, set(name).unwrap_or_default())
}

pub(super) fn headers_in(of: &'static str, text: OsString) -> Vec<HeaderText> {
    let text = text.to_string_lossy();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let headers = lines.map(|line| HeaderText {
        text: line.to_owned(),
        of,
    });
    headers.collect()
}

impl fmt::Debug for HeaderText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderText(..)")
    }
}
