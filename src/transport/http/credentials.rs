//! Reads credentials from the headers of a request, and authenticates its caller.

use super::a2a::{names_version, reshaped, reshaped_under};
use super::call_context::address;
use super::door::Door;
use super::json::parse;
use super::{body, refusal};
use crate::application::api::{Caller, Denied, Session};
use crate::transport::a2a::jsonrpc as a2a_rpc;
use crate::transport::budget::Holder;
use crate::transport::jsonrpc::envelope::Envelope;
use crate::transport::jsonrpc::{RpcError, failure_body, working};
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::value::RawValue;
use std::sync::Arc;
use taskledger_a2a::Edition;
use taskledger_auth::Scope;
use tokio::time::Instant;

/// The name of the scheme, before the token.
const BEARER: &str = "bearer";
/// Where other protocols put a token that must not be in a URL, which is logged and kept in histories.
const IN_QUERY: [&str; 2] = ["access_token", "token"];

impl<C: Send + Sync + 'static> Door<C> {
    /// Finds the caller of a request. Refusals are counted, and delayed when there are many; so are requests of a
    /// caller who was refused many.
    ///
    /// # Errors
    /// [`Denied`].
    pub(super) async fn caller(&self, head: &Parts) -> Result<Arc<Caller>, Denied> {
        let caller = self.who(head).await;
        match &caller {
            Ok(caller) => {
                let service = self.service.as_ref();
                if let Some(pause) = service.and_then(|service| service.pause(caller)) {
                    tokio::time::sleep(pause).await;
                }
            }
            Err(denied) => {
                self.dispatcher.figures().denied(*denied);
                self.pace.refuse().await;
            }
        }
        caller
    }

    async fn who(&self, head: &Parts) -> Result<Arc<Caller>, Denied> {
        let Some(authenticate) = &self.authenticate else {
            return Ok(Caller::anonymous());
        };
        if head.uri.query().is_some_and(holds_token) {
            return Err(Denied::Malformed);
        }
        let bearer = bearer(&head.headers)?;
        let from = address(head);
        let known = bearer.and_then(|bearer| authenticate.remembered(bearer, from));
        match known {
            Some(caller) => Ok(caller),
            None => authenticate.caller(bearer, from).await,
        }
    }

    /// The session of the stream or socket that this request opens, whose caller is known; none while authentication is
    /// off.
    pub(super) fn session(&self, head: &Parts) -> Option<Session> {
        let authenticate = self.authenticate.as_ref()?;
        let bearer = bearer(&head.headers).ok().flatten()?;
        Some(Session::of(authenticate.clone(), bearer))
    }

    /// What ends a call that waits for work before its answer does: whoever waits with credentials that do not
    /// hold any more is given none. None for calls that do not wait, and while authentication is off.
    pub(super) fn waiting(&self, head: &Parts, envelope: &Envelope) -> Option<Waiting> {
        if working::wait(envelope).is_zero() {
            return None;
        }
        let id = envelope.requests().find_map(|request| request.id.clone());
        let session = self.session(head)?;
        Some(Waiting { session, id })
    }

    /// Whether the sender may read more than whether the server is ready.
    pub(super) async fn tells_details(&self, head: &Parts) -> bool {
        // Probes need no credentials, so nothing is refused.
        let caller = self.who(head).await;
        caller.is_ok_and(|caller| caller.may(Scope::Metrics))
    }

    /// The same for requests that are no calls.
    ///
    /// # Errors
    /// The refusal: 401, 429, 503.
    pub(super) async fn admitted(&self, head: &Parts) -> Result<Arc<Caller>, Box<Response>> {
        let caller = self.caller(head).await;
        caller.map_err(|denied| Box::new(refusal::denied(denied)))
    }
}

/// A call that waits for work, and the credentials that it came with.
pub(super) struct Waiting {
    session: Session,
    id: Option<Box<RawValue>>,
}

impl Waiting {
    /// The refusal of the call, as soon as its credentials do not hold any more.
    pub(super) async fn refused(self) -> Response {
        let denied = self.session.ended().await;
        let error = RpcError::unauthorized(&denied.to_string());
        match &self.id {
            Some(id) => refusal::denied_with(denied, failure_body(id, &error)),
            None => refusal::denied(denied),
        }
    }
}

/// Bytes of the body of a request whose credentials do not hold, up to which each of its calls is answered.
const STRANGER_BODY_BYTES_MAX: usize = 64 * 1024;

impl<C: Send + Sync + 'static> Door<C> {
    /// Answers a request whose credentials do not hold: each call of a small body under its own id, else
    /// without reading on.
    pub(super) async fn stranger(
        &self,
        denied: Denied,
        head: &Parts,
        body: Body,
        deadline: Instant,
    ) -> Response {
        let Some(envelope) = self.said_by_stranger(denied, head, body, deadline).await else {
            return refusal::denied_unread(denied);
        };
        if let Some(a2a) = &self.a2a
            && a2a_rpc::is_meant(&envelope, names_version(&head.headers), a2a.serves_v03())
        {
            let id = a2a_rpc::id_of(&envelope);
            return reshaped_under(refusal::denied(denied), id, a2a.edition(), true);
        }
        let error = RpcError::unauthorized(&denied.to_string());
        match unauthorized(&envelope, &error) {
            Some(answer) => refusal::denied_with(denied, answer),
            None => refusal::denied(denied),
        }
    }
}

impl<C: Send + Sync + 'static> Door<C> {
    /// The same where everything is Agent2Agent.
    pub(super) async fn stranger_of_a2a(
        &self,
        denied: Denied,
        head: &Parts,
        body: Body,
        deadline: Instant,
        edition: Edition,
    ) -> Response {
        match self.said_by_stranger(denied, head, body, deadline).await {
            Some(envelope) => {
                let id = a2a_rpc::id_of(&envelope);
                reshaped_under(refusal::denied(denied), id, edition, true)
            }
            None => reshaped(refusal::denied_unread(denied), edition, true),
        }
    }

    /// What a request says whose credentials do not hold; `None`: it is not read.
    async fn said_by_stranger(
        &self,
        denied: Denied,
        head: &Parts,
        body: Body,
        deadline: Instant,
    ) -> Option<Envelope> {
        match denied {
            Denied::Limited { .. } | Denied::Unavailable => return None,
            Denied::Missing
            | Denied::Malformed
            | Denied::Unknown
            | Denied::Expired
            | Denied::Revoked => {}
        }
        let share = self.in_hand_of_strangers.share(Holder::at(address(head)));
        let bytes_max = STRANGER_BODY_BYTES_MAX;
        let received = body::receive(share, &head.headers, body, bytes_max, deadline).await;
        let (bytes, _share) = received.ok()?;
        Some(parse(bytes).await)
    }
}

/// The error under the id of each call; `None` when no call has one.
fn unauthorized(envelope: &Envelope, error: &RpcError) -> Option<Vec<u8>> {
    let ids = envelope
        .requests()
        .filter_map(|request| request.id.as_ref());
    let mut answers = ids.map(|id| failure_body(id, error)).peekable();
    answers.peek()?;
    if !matches!(envelope, Envelope::Batch(_)) {
        return answers.next();
    }
    let mut body = vec![b'['];
    for (n, answer) in answers.enumerate() {
        if n > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&answer);
    }
    body.push(b']');
    Some(body)
}

/// The bearer token; `None` if there are no credentials.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Denied> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    if all.next().is_some() {
        return Err(Denied::Malformed);
    }
    let text = HeaderValue::to_str(value).map_err(|_| Denied::Malformed)?;
    let (scheme, token) = text.split_once(' ').ok_or(Denied::Malformed)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case(BEARER) || token.is_empty() {
        return Err(Denied::Malformed);
    }
    Ok(Some(token))
}

fn holds_token(query: &str) -> bool {
    query.split('&').any(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        IN_QUERY.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(values: &[&str]) -> Result<Option<String>, Denied> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().expect("a header"));
        }
        bearer(&headers).map(|token| token.map(str::to_owned))
    }

    #[test]
    fn one_bearer_token_is_taken_and_everything_else_refused() {
        assert_eq!(shown(&[]), Ok(None));
        assert_eq!(shown(&["Bearer a"]), Ok(Some("a".to_owned())));
        assert_eq!(shown(&["bearer  a "]), Ok(Some("a".to_owned())));
        for bad in [
            &["Basic a"][..],
            &["Bearer"],
            &["Bearer "],
            &["Bearer a", "Bearer a"],
        ] {
            assert_eq!(shown(bad), Err(Denied::Malformed), "{bad:?}");
        }
    }

    #[test]
    fn a_token_in_a_url_is_seen() {
        assert!(holds_token("a=1&access_token=x"));
        assert!(!holds_token("a=1&tokens=x"));
    }
}
