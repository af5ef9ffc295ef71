//! Classifies the client's chain of errors as one class and one sentence.

use super::error::Class;
use super::guard::Refused;
use super::lookup::LookupError;
use std::error::Error as StdError;
use std::io;

/// Characters of a detail: enough for what libraries say.
const DETAIL_CHARS_MAX: usize = 300;
/// Causes that are looked at; chains are short, and a loop must not hang us.
const CAUSES_MAX: usize = 16;

/// The class of a request that got no answer, and what is told of it.
pub(super) fn classify(error: &reqwest::Error) -> (Class, String) {
    let causes = causes(error);
    if let Some(refused) = find::<Refused>(&causes) {
        return match refused {
            Refused::Blocked => blocked(),
            Refused::Lookup(LookupError::Timeout) => (Class::Dns, LookupError::Timeout.to_string()),
            Refused::Lookup(error @ (LookupError::NotFound | LookupError::Failed)) => {
                (Class::Dns, error.to_string())
            }
        };
    }
    if let Some(error) = causes.iter().find_map(|cause| tls(*cause)) {
        return (Class::Tls, shortened(&error.to_string()));
    }
    let last = causes.last().map_or_else(String::new, |c| c.to_string());
    let detail = shortened(&last);
    if error.is_timeout() {
        return (Class::Timeout, "no connection in time".to_owned());
    }
    if error.is_connect() {
        // The connector tells its phase by text only.
        let in_tcp = causes.iter().any(|c| c.to_string() == "tcp connect error");
        // What is neither TCP nor any I/O is a proxy that refuses.
        let in_tls = is_https(error) && !in_tcp && causes.iter().any(|c| c.is::<io::Error>());
        let class = if in_tls { Class::Tls } else { Class::Connect };
        return (class, detail);
    }
    if let Some(http) = find::<hyper::Error>(&causes) {
        if http.is_parse() || http.is_parse_too_large() {
            return (Class::Protocol, detail);
        }
        if http.is_incomplete_message() || http.is_canceled() || http.is_closed() {
            return (Class::Reset, detail);
        }
    }
    if causes.iter().any(|cause| cause.is::<io::Error>()) {
        return (Class::Reset, detail);
    }
    (Class::Protocol, detail)
}

/// All that is told of a forbidden address, whichever it is: what an operator can set is no secret.
const BLOCKED: &str = "the address is not allowed; the operator allows it with --egress-allow-net NET or --egress-allow-host NAME";

/// An attempt to reach a forbidden address.
pub(super) fn blocked() -> (Class, String) {
    (Class::BlockedAddress, BLOCKED.to_owned())
}

fn is_https(error: &reqwest::Error) -> bool {
    error.url().is_some_and(|url| url.scheme() == "https")
}

/// The error and what caused it, outermost first; what I/O errors wrap is looked at too.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
        .take(CAUSES_MAX)
        .collect()
}

fn find<'a, E: StdError + 'static>(causes: &[&'a (dyn StdError + 'static)]) -> Option<&'a E> {
    causes.iter().find_map(|cause| cause.downcast_ref())
}

fn tls<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let wrapped = cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
        .and_then(|inner| inner.downcast_ref());
    cause.downcast_ref().or(wrapped)
}

fn shortened(text: &str) -> String {
    text.chars().take(DETAIL_CHARS_MAX).collect()
}
