//! What the inputs of `http_executor` ask for.

use crate::egress::{Outgoing, Policy, Target};
use crate::engine::executor::{ExecutorError, Job};
use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::time::Duration;
use taskledger_domain::limits::PAYLOAD_BYTES_MAX;
use url::form_urlencoded;

/// Methods that are sent.
pub(super) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Headers of one request beside the client's: servers take about a hundred.
pub(super) const HEADERS_MAX: usize = 64;
/// Bytes of one header: servers take 8 KiB for a line.
pub(super) const HEADER_BYTES_MAX: usize = 8 * 1024;
/// Headers that only the client sets: they say where a request ends and who gets it.
pub(super) const FORBIDDEN_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
];
/// And those for proxies.
pub(super) const FORBIDDEN_PREFIX: &str = "proxy-";
/// Members of `params` and of `form`, and values of each.
pub(super) const PARAMETERS_MAX: usize = 256;
/// Seconds that one request may ask for.
pub(super) const TIMEOUT_SECONDS_MAX: u32 = 600;
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// Bytes of a result beside the body: status, headers, names.
const RESULT_OVERHEAD_BYTES: usize = 128 * 1024;
/// Bytes of an answer's body, also when a task says nothing: what fits into a result.
pub(super) const RESPONSE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - RESULT_OVERHEAD_BYTES;
/// Entries of `expect_status`.
pub(super) const EXPECTED_MAX: usize = 64;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

#[derive(Debug)]
pub(super) struct Request {
    pub(super) target: Target,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) timeout: Duration,
    pub(super) response_bytes_max: usize,
    pub(super) truncate: bool,
    pub(super) expected: Expected,
}

impl Request {
    /// Reads the inputs, whether or not they were checked against the schema before.
    pub(super) fn read(
        inputs: &Map<String, Value>,
        policy: &Policy,
    ) -> Result<Self, ExecutorError> {
        let method = match inputs.get("method") {
            None => Method::GET,
            Some(value) => METHODS
                .into_iter()
                .find(|name| value.as_str() == Some(name))
                .and_then(|name| Method::from_bytes(name.as_bytes()).ok())
                .ok_or_else(|| wrong("method", &format!("one of {}", METHODS.join(", "))))?,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in members(inputs, "headers", HEADERS_MAX)? {
            let field = format!("headers.{name}");
            headers.append(header_name(&field, name)?, header_value(&field, value)?);
        }
        authorize(&mut headers, inputs)?;
        let body = body(&mut headers, inputs)?;
        Ok(Self {
            target: target(inputs, policy)?,
            method,
            headers,
            body,
            timeout: timeout(inputs)?,
            response_bytes_max: match inputs.get("response_bytes_max") {
                None => RESPONSE_BYTES_MAX,
                Some(value) => value
                    .as_u64()
                    .and_then(|bytes| usize::try_from(bytes).ok())
                    .filter(|bytes| *bytes <= RESPONSE_BYTES_MAX)
                    .ok_or_else(|| {
                        let expected = format!("a whole number from 0 to {RESPONSE_BYTES_MAX}");
                        wrong("response_bytes_max", &expected)
                    })?,
            },
            truncate: match inputs.get("truncate") {
                None => false,
                Some(value) => value
                    .as_bool()
                    .ok_or_else(|| wrong("truncate", "a boolean"))?,
            },
            expected: Expected::read(inputs)?,
        })
    }

    /// What is sent for an attempt.
    pub(super) fn outgoing(&self, job: &Job) -> Outgoing {
        let mut headers = self.headers.clone();
        let key = format!("{}-{}", job.task_id, job.attempt);
        if let Ok(key) = HeaderValue::try_from(key) {
            headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
        if let Some(traceparent) = &job.traceparent
            && let Ok(traceparent) = HeaderValue::from_str(traceparent)
        {
            headers.entry(TRACEPARENT).or_insert(traceparent);
        }
        Outgoing {
            target: self.target.clone(),
            method: self.method.clone(),
            headers,
            body: self.body.clone(),
            timeout: self.timeout,
            response_bytes_max: self.response_bytes_max,
        }
    }

    /// Method and address, without the query.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// Which statuses are a success.
#[derive(Debug, PartialEq)]
pub(super) struct Expected {
    ranges: Vec<RangeInclusive<u16>>,
    text: String,
}

impl Expected {
    fn read(inputs: &Map<String, Value>) -> Result<Self, ExecutorError> {
        let fault = || {
            let example = "1 to 64 statuses, for example [200, \"3xx\", \"400-404\"]";
            wrong("expect_status", example)
        };
        let entries = match inputs.get("expect_status") {
            None => vec!["2xx".to_owned()],
            Some(Value::Array(items)) if (1..=EXPECTED_MAX).contains(&items.len()) => items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text.clone()),
                    Value::Number(number) => Ok(number.to_string()),
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                        Err(fault())
                    }
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(fault()),
        };
        let ranges = entries.iter().map(|entry| range(entry).ok_or_else(fault));
        Ok(Self {
            ranges: ranges.collect::<Result<_, _>>()?,
            text: entries.join(", "),
        })
    }

    pub(super) fn holds(&self, status: StatusCode) -> bool {
        self.ranges
            .iter()
            .any(|range| range.contains(&status.as_u16()))
    }

    /// As the inputs say it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// `404`, `4xx`, or `400-404`.
fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let status = |text: &str| {
        let number: u16 = text.parse().ok()?;
        (100..=599).contains(&number).then_some(number)
    };
    if let Some(class) = text.strip_suffix("xx") {
        let first = status(&format!("{class}00"))?;
        return Some(first..=first + 99);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(status(first)?..=status(last)?)
}

fn wrong(field: &str, expected: &str) -> ExecutorError {
    ExecutorError::new(format!("`{field}` is not as expected: {expected}"))
}

/// The address, with `params` in its query.
fn target(inputs: &Map<String, Value>, policy: &Policy) -> Result<Target, ExecutorError> {
    let url = inputs
        .get("url")
        .and_then(Value::as_str)
        .ok_or_else(|| wrong("url", "a text"))?;
    let refused = |error| ExecutorError::new(format!("`url`: {error}"));
    let target = Target::parse(url, policy).map_err(refused)?;
    let pairs = pairs(inputs, "params")?;
    if pairs.is_empty() {
        return Ok(target);
    }
    let mut url = target.url().clone();
    url.query_pairs_mut().extend_pairs(pairs);
    Target::parse(url.as_str(), policy).map_err(refused)
}

/// The members of an optional object.
fn members<'a>(
    inputs: &'a Map<String, Value>,
    field: &str,
    max: usize,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, ExecutorError> {
    let members = match inputs.get(field) {
        None => None,
        Some(Value::Object(members)) if members.len() <= max => Some(members),
        Some(_) => {
            let expected = format!("an object of at most {max} members");
            return Err(wrong(field, &expected));
        }
    };
    Ok(members.into_iter().flatten())
}

/// Names and values of `params` or `form`; a name with an array comes once for each value.
fn pairs(inputs: &Map<String, Value>, field: &str) -> Result<Vec<(String, String)>, ExecutorError> {
    let mut pairs = Vec::new();
    for (name, value) in members(inputs, field, PARAMETERS_MAX)? {
        let values = match value {
            Value::Array(values) if values.len() <= PARAMETERS_MAX => values.as_slice(),
            Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => std::slice::from_ref(value),
        };
        for value in values {
            let text = scalar(value)
                .ok_or_else(|| wrong(&format!("{field}.{name}"), "a scalar or an array of them"))?;
            pairs.push((name.clone(), text));
        }
    }
    Ok(pairs)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn header_name(field: &str, name: &str) -> Result<HeaderName, ExecutorError> {
    let parsed = HeaderName::try_from(name)
        .map_err(|_| wrong(&field.escape_debug().to_string(), "a name of a header"))?;
    let text = parsed.as_str();
    if FORBIDDEN_HEADERS.contains(&text) || text.starts_with(FORBIDDEN_PREFIX) {
        let told = format!("header `{text}` is set by the client, expected another one");
        return Err(ExecutorError::new(told));
    }
    Ok(parsed)
}

/// The value is never repeated: it may be a secret.
fn header_value(field: &str, value: &Value) -> Result<HeaderValue, ExecutorError> {
    value
        .as_str()
        .filter(|text| text.len() <= HEADER_BYTES_MAX)
        .and_then(|text| HeaderValue::try_from(text).ok())
        .ok_or_else(|| {
            let expected = format!("a text of one line and at most {HEADER_BYTES_MAX} bytes");
            wrong(field, &expected)
        })
}

fn authorize(headers: &mut HeaderMap, inputs: &Map<String, Value>) -> Result<(), ExecutorError> {
    let Some(auth) = inputs.get("auth") else {
        return Ok(());
    };
    let text = |field: &str| {
        auth.get(field)
            .and_then(Value::as_str)
            .ok_or_else(|| wrong(&format!("auth.{field}"), "a text"))
    };
    let (name, value) = match text("type")? {
        "basic" => {
            let pair = format!("{}:{}", text("username")?, text("password")?);
            (AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)))
        }
        "bearer" => (AUTHORIZATION, format!("Bearer {}", text("token")?)),
        "header" => {
            let name = header_name("auth.name", text("name")?)?;
            (name, text("value")?.to_owned())
        }
        _ => return Err(wrong("auth.type", "`basic`, `bearer` or `header`")),
    };
    if headers.contains_key(&name) {
        let told = format!("`auth` and `headers` both name `{name}`, expected one of them");
        return Err(ExecutorError::new(told));
    }
    let mut value = header_value("auth", &Value::String(value))?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// The body, and its type unless `headers` has one.
fn body(headers: &mut HeaderMap, inputs: &Map<String, Value>) -> Result<Bytes, ExecutorError> {
    let given: Vec<&str> = ["json", "body", "form"]
        .into_iter()
        .filter(|field| inputs.contains_key(*field))
        .collect();
    let (kind, bytes) = match given.as_slice() {
        [] => return Ok(Bytes::new()),
        ["json"] => ("application/json", Bytes::from(inputs["json"].to_string())),
        ["form"] => {
            let pairs = pairs(inputs, "form")?;
            let text = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(pairs)
                .finish();
            ("application/x-www-form-urlencoded", Bytes::from(text))
        }
        ["body"] => {
            let text = inputs["body"]
                .as_str()
                .ok_or_else(|| wrong("body", "a text; `json` takes other values"))?;
            ("text/plain; charset=utf-8", Bytes::from(text.to_owned()))
        }
        several => {
            let told = format!("`{}` are given, expected one of them", several.join("`, `"));
            return Err(ExecutorError::new(told));
        }
    };
    let kind = HeaderValue::from_static(kind);
    headers.entry(CONTENT_TYPE).or_insert(kind);
    Ok(bytes)
}

/// `timeout_seconds`, or `timeout` as in the examples of the protocol.
fn timeout(inputs: &Map<String, Value>) -> Result<Duration, ExecutorError> {
    let (field, value) = match (inputs.get("timeout_seconds"), inputs.get("timeout")) {
        (None, None) => return Ok(TIMEOUT_DEFAULT),
        (Some(value), None) => ("timeout_seconds", value),
        (None, Some(value)) => ("timeout", value),
        (Some(_), Some(_)) => {
            let told = "`timeout_seconds` and `timeout` are given, expected one of them";
            return Err(ExecutorError::new(told));
        }
    };
    value
        .as_f64()
        .filter(|seconds| *seconds > 0.0 && *seconds <= f64::from(TIMEOUT_SECONDS_MAX))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            let expected = format!("more than 0 and at most {TIMEOUT_SECONDS_MAX} seconds");
            wrong(field, &expected)
        })
}
