//! An agent: its card, the binding to call it by, and the calls.

use crate::binding::{self, OperationCall};
use crate::error::AgentError;
use crate::http::{Body, Http, Request, Response, Unanswered};
use crate::stream::Events;
use crate::{ANSWER_BYTES_MAX, CARD_BYTES_MAX, Error};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Map, Value};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use taskledger_a2a::card::{AgentCard, AgentInterface};
use taskledger_a2a::request::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, SendMessageRequest,
    SubscribeToTaskRequest,
};
use taskledger_a2a::{ErrorKind, Operation, SendMessageResponse, Task, Wire};
use tokio::time::timeout;
use url::{Host, Url};

pub use crate::binding::Binding;

/// Where the card of an agent is, below the agent's address.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";
/// The extension of taskledger servers: progress of single tasks in streams. Agents that declare it take an
/// `Idempotency-Key` with messages.
pub const NODES: &str = "urn:taskledger:a2a:nodes:v1";
/// How long a card, or an answer that waits for nothing, may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long a message may take that is answered when its task has ended: whoever asks has a limit of their own.
const BLOCKING_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// How long one piece of an answer may take.
const PIECE_WITHIN: Duration = Duration::from_secs(30);
/// Names of bindings of a card that an error repeats.
const SHOWN_MAX: usize = 8;

/// Options for calling an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentOptions {
    /// Sent along with each request: credentials.
    pub headers: HeaderMap,
    /// Only in this way.
    pub binding: Option<Binding>,
}

/// An agent that can be called.
#[derive(Clone)]
pub struct Agent {
    http: Arc<dyn Http>,
    card: Arc<AgentCard>,
    binding: Binding,
    url: String,
    tenant: Option<String>,
    headers: HeaderMap,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.card.name)
            .field("binding", &self.binding)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// The agent at a URL, whose card is read: the URL itself if it ends in `.json`, else [`CARD_PATH`] below it. With
    /// headers, the card must name an interface at the same origin: credentials for one server are not for another that
    /// its card names.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn at(http: Arc<dyn Http>, url: &str, options: AgentOptions) -> Result<Self, Error> {
        let parsed = Url::parse(url)
            .map_err(|error| Error::Unusable(format!("`{}` is not a URL: {error}", shown(url))))?;
        let card_url = match parsed.path().ends_with(".json") {
            true => parsed.to_string(),
            false => {
                let mut at = parsed.clone();
                at.set_query(None);
                at.set_fragment(None);
                let path = format!("{}{CARD_PATH}", parsed.path().trim_end_matches('/'));
                at.set_path(&path);
                at.to_string()
            }
        };
        let mut headers = options.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let request = Request {
            url: card_url.clone(),
            method: Method::GET,
            headers,
            body: Bytes::new(),
            within: ANSWER_WITHIN,
        };
        let response = sent(&*http, request).await?;
        let (status, headers) = (response.status, response.headers);
        let body = whole(response.body, "the card", CARD_BYTES_MAX, &card_url).await?;
        if status == StatusCode::NOT_FOUND {
            let text = format!("there is no card at {}: {status}", shown(&card_url));
            return Err(Error::Unusable(text));
        }
        let value = binding::result(Binding::Rest, status, &body);
        let value = value.map_err(|error| error.with_headers(&headers))?;
        let origin = (!options.headers.is_empty()).then_some(&parsed);
        Self::made(http, read_card(value)?, options, origin)
    }

    /// The agent of a card that whoever calls vouches for.
    ///
    /// # Errors
    /// [`Error`]: it is no card, or names no way to call the agent.
    pub fn of_card(http: Arc<dyn Http>, card: Value, options: AgentOptions) -> Result<Self, Error> {
        Self::made(http, read_card(card)?, options, None)
    }

    fn made(
        http: Arc<dyn Http>,
        card: AgentCard,
        options: AgentOptions,
        origin: Option<&Url>,
    ) -> Result<Self, Error> {
        let required = card.capabilities.extensions.iter();
        if let Some(unknown) = required
            .into_iter()
            .find(|it| it.required && it.uri != NODES)
        {
            let uri = shown(&unknown.uri);
            let text = format!("the agent requires the extension `{uri}`, which is not known here");
            return Err(Error::Unusable(text));
        }
        let (binding, interface) = chosen(&card, options.binding)?;
        let url = interface.url.clone();
        if let Some(origin) = origin
            && !is_same_origin(origin, &url)
        {
            return Err(Error::Unusable(format!(
                "the card names `{}`, which is not at {}: credentials for one are not sent to the other; give \
                 the card itself if they belong together",
                shown(&url),
                origin.origin().ascii_serialization()
            )));
        }
        let tenant = interface.tenant.clone();
        Ok(Self {
            http,
            binding,
            url,
            tenant,
            headers: options.headers,
            card: Arc::new(card),
        })
    }

    /// The card that the calls of this client are based on.
    #[must_use]
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// How it is called.
    #[must_use]
    pub const fn binding(&self) -> Binding {
        self.binding
    }

    /// Where it is called.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    pub(crate) const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The extension of taskledger, if the agent has it.
    pub(crate) fn own_extension(&self) -> Option<&'static str> {
        let mut declared = self.card.capabilities.extensions.iter();
        declared.any(|it| it.uri == NODES).then_some(NODES)
    }

    /// Whether a message with the same key can be sent again without harm.
    #[must_use]
    pub fn takes_keys(&self) -> bool {
        self.own_extension().is_some()
    }

    /// Says something, and waits for the end of what comes of it unless the request says otherwise.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn send(
        &self,
        request: &SendMessageRequest,
        key: Option<&str>,
    ) -> Result<SendMessageResponse, Error> {
        let within = match request.configuration.return_immediately {
            true => ANSWER_WITHIN,
            false => BLOCKING_WITHIN,
        };
        self.send_within(request, key, within).await
    }

    /// The same for agents that may not know `returnImmediately`.
    pub(crate) async fn send_patiently(
        &self,
        request: &SendMessageRequest,
        key: Option<&str>,
    ) -> Result<SendMessageResponse, Error> {
        self.send_within(request, key, BLOCKING_WITHIN).await
    }

    async fn send_within(
        &self,
        request: &SendMessageRequest,
        key: Option<&str>,
        within: Duration,
    ) -> Result<SendMessageResponse, Error> {
        let asked = OperationCall {
            operation: Operation::SendMessage,
            members: request.write(),
            key,
            last_event: None,
            within,
        };
        read(self.call(asked).await?)
    }

    /// Says something and follows what comes of it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn stream(
        &self,
        request: &SendMessageRequest,
        key: Option<&str>,
    ) -> Result<Events, Error> {
        let operation = Operation::SendStreamingMessage;
        self.open(operation, request.write(), key, None).await
    }

    /// Follows a task; from behind an event, if the agent knows that.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn subscribe(&self, id: &str, last_event: Option<&str>) -> Result<Events, Error> {
        let request = SubscribeToTaskRequest {
            tenant: None,
            id: id.to_owned(),
        };
        let operation = Operation::SubscribeToTask;
        self.open(operation, request.write(), None, last_event)
            .await
    }

    /// Reads a task.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, id: &str, history_length: Option<i32>) -> Result<Task, Error> {
        let request = GetTaskRequest {
            tenant: None,
            id: id.to_owned(),
            history_length,
        };
        read(self.ask(Operation::GetTask, request.write()).await?)
    }

    /// Lists tasks.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(&self, request: &ListTasksRequest) -> Result<ListTasksResponse, Error> {
        read(self.ask(Operation::ListTasks, request.write()).await?)
    }

    /// Cancels a task.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel(&self, id: &str) -> Result<Task, Error> {
        let request = CancelTaskRequest {
            tenant: None,
            id: id.to_owned(),
            metadata: None,
        };
        read(self.ask(Operation::CancelTask, request.write()).await?)
    }

    /// The card for callers with credentials.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn extended_card(&self) -> Result<AgentCard, Error> {
        read_card(
            self.ask(Operation::GetExtendedAgentCard, Map::new())
                .await?,
        )
    }

    async fn ask(&self, operation: Operation, members: Map<String, Value>) -> Result<Value, Error> {
        let asked = OperationCall {
            operation,
            members,
            key: None,
            last_event: None,
            within: ANSWER_WITHIN,
        };
        self.call(asked).await
    }

    async fn call(&self, asked: OperationCall<'_>) -> Result<Value, Error> {
        let request = binding::request(self, asked)?;
        let url = request.url.clone();
        let response = sent(&*self.http, request).await?;
        let (status, headers) = (response.status, response.headers);
        let body = whole(response.body, "the answer", ANSWER_BYTES_MAX, &url).await?;
        let result = binding::result(self.binding, status, &body);
        result.map_err(|error| error.with_headers(&headers))
    }

    async fn open(
        &self,
        operation: Operation,
        members: Map<String, Value>,
        key: Option<&str>,
        last_event: Option<&str>,
    ) -> Result<Events, Error> {
        if !self.card.capabilities.streaming {
            return Err(Error::Agent(Box::new(AgentError {
                kind: Some(ErrorKind::UnsupportedOperation),
                reason: None,
                code: i64::from(ErrorKind::UnsupportedOperation.rpc_code()),
                message: "its card has no streaming".to_owned(),
                faults: Default::default(),
                task_id: None,
                retry_after: None,
            })));
        }
        let asked = OperationCall {
            operation,
            members,
            key,
            last_event,
            within: ANSWER_WITHIN,
        };
        let request = binding::request(self, asked)?;
        let url = request.url.clone();
        let response = sent(&*self.http, request).await?;
        let headers = response.headers;
        let kind = headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if response.status.is_success() && essence.eq_ignore_ascii_case("text/event-stream") {
            return Ok(Events::new(self.binding, response.body, shown(&url)));
        }
        let status = response.status;
        let body = whole(response.body, "the answer", ANSWER_BYTES_MAX, &url).await?;
        // A failure before the first event is an ordinary answer.
        let result = binding::result(self.binding, status, &body);
        result.map_err(|error| error.with_headers(&headers))?;
        let text = format!(
            "the agent answers `{}`, not a stream of events",
            shown(kind)
        );
        Err(Error::Invalid(text))
    }
}

async fn sent(http: &dyn Http, request: Request) -> Result<Response, Error> {
    let url = shown(&request.url);
    let sent = http.send(request).await;
    sent.map_err(|reason| Error::Unanswered { url, reason })
}

/// A body within a limit.
async fn whole(
    mut body: Box<dyn Body>,
    what: &'static str,
    max: usize,
    url: &str,
) -> Result<Vec<u8>, Error> {
    let broken = |reason: Unanswered| Error::Unanswered {
        url: shown(url),
        reason,
    };
    let mut bytes = Vec::new();
    loop {
        let piece = timeout(PIECE_WITHIN, body.chunk()).await.map_err(|_| {
            let text = format!(
                "no more of the answer came within {} s",
                PIECE_WITHIN.as_secs()
            );
            broken(Unanswered::Broken(text))
        })?;
        let Some(piece) = piece.map_err(broken)? else {
            return Ok(bytes);
        };
        if bytes.len() + piece.len() > max {
            return Err(Error::TooLarge { what, max });
        }
        bytes.extend_from_slice(&piece);
    }
}

fn read<T: Wire>(value: Value) -> Result<T, Error> {
    T::from_json(value).map_err(|faults| invalid("answer", &faults))
}

fn read_card(value: Value) -> Result<AgentCard, Error> {
    if let Some(version) = older_version(&value) {
        return Err(only_older(version));
    }
    AgentCard::from_json(value).map_err(|faults| invalid("card", &faults))
}

fn only_older(version: &str) -> Error {
    let version = shown(version);
    Error::Unusable(format!(
        "the agent speaks A2A {version} only, which this client does not; expected a card with `supportedInterfaces` of \
         `protocolVersion` 1.0"
    ))
}

/// The version of a card that has the members of 0.3 and none of 1.0; cards of still older versions name none.
fn older_version(card: &Value) -> Option<&str> {
    let has = |name: &str| card.get(name).is_some_and(|it| !it.is_null());
    let is_newer = has("supportedInterfaces") || has("supported_interfaces");
    let is_older =
        has("url") && (has("protocolVersion") || has("preferredTransport") || has("skills"));
    let version = || card.get("protocolVersion").and_then(Value::as_str);
    (is_older && !is_newer).then(|| version().unwrap_or("0.3 or older"))
}

/// What an agent has sent is not valid.
pub(crate) fn invalid(what: &str, faults: &taskledger_a2a::Faults) -> Error {
    let first = faults.listed.first();
    let told = first.map_or_else(String::new, |fault| match fault.field.is_empty() {
        true => shown(&fault.description),
        false => shown(&format!("`{}`: {}", fault.field, fault.description)),
    });
    Error::Invalid(format!("the {what} of the agent is not valid: {told}"))
}

/// The first interface of the card that this client speaks.
fn chosen(card: &AgentCard, only: Option<Binding>) -> Result<(Binding, &AgentInterface), Error> {
    let spoken = |interface: &AgentInterface| {
        let version = &*interface.protocol_version;
        let is_1 = version == "1" || version.starts_with("1.");
        let binding = interface.protocol_binding.parse::<Binding>().ok();
        binding.filter(|it| is_1 && only.is_none_or(|only| only == *it))
    };
    let mut interfaces = card.supported_interfaces.iter();
    let found = interfaces.find_map(|it| Some((spoken(it)?, it)));
    let mut interfaces = card.supported_interfaces.iter();
    let is_older = |it: &AgentInterface| it.protocol_version.starts_with("0.");
    if interfaces.clone().all(is_older)
        && let Some(first) = interfaces.next()
    {
        return Err(only_older(&first.protocol_version));
    }
    found.ok_or_else(|| {
        let named = card.supported_interfaces.iter().take(SHOWN_MAX);
        let named = named.map(|it| format!("{} {}", it.protocol_binding, it.protocol_version));
        let named: Vec<_> = named.map(|it| shown(&it)).collect();
        let wanted = only.map_or("JSONRPC or HTTP+JSON", Binding::name);
        let text = format!(
            "the card names {}, expected {wanted} of version 1",
            named.join(", ")
        );
        Error::Unusable(text)
    })
}

/// Whether credentials for one may be sent to the other. On this machine names and addresses are the same.
fn is_same_origin(one: &Url, other: &str) -> bool {
    let Ok(other) = Url::parse(other) else {
        return false;
    };
    let is_here = |url: &Url| match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    };
    let rest = |url: &Url| (url.scheme().to_owned(), url.port_or_known_default());
    one.origin() == other.origin() || (is_here(one) && is_here(&other) && rest(one) == rest(&other))
}

/// Enough of a text of somebody else to recognise it, without what comes behind a `?`.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 200;
    let text = text.split('?').next().unwrap_or_default();
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
