//! Reads inputs and collects all faults in them, so that they are reported when a task is created. Values of headers
//! and credentials are never repeated.

use super::request::{
    EXPECTED_MAX, Expected, FORBIDDEN_HEADERS, FORBIDDEN_PREFIX, HEADER_BYTES_MAX, HEADERS_MAX,
    METHODS, PARAMETERS_MAX, RESPONSE_BYTES_MAX, TIMEOUT_DEFAULT, TIMEOUT_SECONDS_MAX,
};
use crate::egress::{AddressError, Policy, Target, without_secrets};
use crate::engine::executor::whole;
use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::time::Duration;
use taskledger_domain::Violation;
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::violation::PathSegment;
use url::form_urlencoded;

/// Stands for what may be a secret.
const HIDDEN: &str = "***";
const SCALARS: &str = "a text, a number, a boolean, or a list of them";

pub(in crate::engine::executor) struct Reader<'a> {
    inputs: &'a Map<String, Value>,
    faults: Vec<Violation>,
}

impl<'a> Reader<'a> {
    pub(in crate::engine::executor) const fn new(inputs: &'a Map<String, Value>) -> Self {
        Self {
            inputs,
            faults: Vec::new(),
        }
    }

    /// The value, if nothing was wrong.
    pub(in crate::engine::executor) fn finish<T>(
        self,
        value: Option<T>,
    ) -> Result<T, Vec<Violation>> {
        match value {
            Some(value) if self.faults.is_empty() => Ok(value),
            Some(_) | None => Err(self.faults),
        }
    }

    fn fault(
        &mut self,
        path: &[PathSegment],
        reason: impl Into<String>,
        expected: impl Into<String>,
        actual: &Value,
    ) {
        if self.faults.len() < VIOLATIONS_MAX {
            self.faults
                .push(Violation::new(path, reason, expected, actual));
        }
    }

    fn wrong(&mut self, field: &str, expected: impl Into<String>) {
        let actual = self.inputs.get(field).cloned().unwrap_or(Value::Null);
        let reason = if actual.is_null() {
            "missing"
        } else {
            "not as expected"
        };
        self.fault(&[field.into()], reason, expected, &actual);
    }

    pub(super) fn method(&mut self) -> Method {
        let Some(value) = self.inputs.get("method") else {
            return Method::GET;
        };
        let known = METHODS
            .into_iter()
            .find(|name| value.as_str() == Some(name));
        let method = known.and_then(|name| Method::from_bytes(name.as_bytes()).ok());
        method.unwrap_or_else(|| {
            self.wrong("method", format!("one of {}", METHODS.join(", ")));
            Method::GET
        })
    }

    pub(in crate::engine::executor) fn headers(&mut self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in self.members("headers", HEADERS_MAX) {
            let path = ["headers".into(), name.as_str().into()];
            let header = self.header_name(&path, name, &HIDDEN.into());
            let value = self.header_value(&path, value);
            if let (Some(header), Some(value)) = (header, value) {
                headers.append(header, value);
            }
        }
        headers
    }

    fn header_name(
        &mut self,
        path: &[PathSegment],
        name: &str,
        actual: &Value,
    ) -> Option<HeaderName> {
        let Ok(parsed) = HeaderName::try_from(name) else {
            let expected = "letters, digits, and !#$%&'*+-.^_`|~";
            self.fault(path, "not the name of a header", expected, actual);
            return None;
        };
        let text = parsed.as_str();
        if FORBIDDEN_HEADERS.contains(&text) || text.starts_with(FORBIDDEN_PREFIX) {
            let reason = format!("header `{text}` is set by the client");
            let own = FORBIDDEN_HEADERS.join(", ");
            let expected = format!("another header; the client sets {own} and {FORBIDDEN_PREFIX}*");
            self.fault(path, reason, expected, actual);
            return None;
        }
        Some(parsed)
    }

    fn header_value(&mut self, path: &[PathSegment], value: &Value) -> Option<HeaderValue> {
        let text = value.as_str().filter(|text| text.len() <= HEADER_BYTES_MAX);
        let parsed = text.and_then(|text| HeaderValue::try_from(text).ok());
        if parsed.is_none() {
            let expected = format!("a text of one line and at most {HEADER_BYTES_MAX} bytes");
            self.fault(path, "not the value of a header", expected, &HIDDEN.into());
        }
        parsed
    }

    /// The members of an optional object.
    fn members(
        &mut self,
        field: &str,
        max: usize,
    ) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        let members = match self.inputs.get(field) {
            None => None,
            Some(Value::Object(members)) if members.len() <= max => Some(members),
            Some(_) => {
                let expected = format!("an object of at most {max} members");
                self.fault(&[field.into()], "not as expected", expected, &HIDDEN.into());
                None
            }
        };
        members.into_iter().flatten()
    }

    /// Names and values of `params` or `form`; a name with an array comes once for each value.
    fn pairs(&mut self, field: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for (name, value) in self.members(field, PARAMETERS_MAX) {
            let values = match value {
                Value::Array(values) if values.len() <= PARAMETERS_MAX => values.as_slice(),
                Value::Array(_)
                | Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_) => std::slice::from_ref(value),
            };
            let texts: Option<Vec<String>> = values.iter().map(scalar).collect();
            match texts {
                Some(texts) => pairs.extend(texts.into_iter().map(|text| (name.clone(), text))),
                None => {
                    let path = [field.into(), name.as_str().into()];
                    let expected = format!("{SCALARS}, at most {PARAMETERS_MAX}");
                    self.fault(&path, "not as expected", expected, value);
                }
            }
        }
        pairs
    }

    pub(in crate::engine::executor) fn authorize(&mut self, headers: &mut HeaderMap) {
        let Some(auth) = self.inputs.get("auth") else {
            return;
        };
        let kind = auth.get("type").and_then(Value::as_str).unwrap_or_default();
        let (fields, one): (&[&str], _) = match kind {
            "basic" => (
                &["username", "password"],
                "`type`, `username` and `password`",
            ),
            "bearer" => (&["token"], "`type` and `token`"),
            "header" => (&["name", "value"], "`type`, `name` and `value`"),
            _ => {
                let actual = auth.get("type").unwrap_or(&Value::Null);
                let expected = "`basic`, `bearer` or `header`";
                self.fault(
                    &["auth".into(), "type".into()],
                    "not a kind of `auth`",
                    expected,
                    actual,
                );
                return;
            }
        };
        let mut texts = Vec::new();
        for field in fields {
            match auth.get(field).and_then(Value::as_str) {
                Some(text) => texts.push(text),
                None => {
                    let path = ["auth".into(), (*field).into()];
                    let (reason, actual) = match auth.get(field) {
                        None => ("missing", Value::Null),
                        Some(_) => ("not a text", HIDDEN.into()),
                    };
                    self.fault(
                        &path,
                        reason,
                        format!("a text; `{kind}` has {one}"),
                        &actual,
                    );
                }
            }
        }
        for name in auth.as_object().into_iter().flat_map(Map::keys) {
            if name != "type" && !fields.contains(&name.as_str()) {
                let path = ["auth".into(), name.as_str().into()];
                self.fault(
                    &path,
                    "unknown member",
                    format!("`{kind}` has {one}"),
                    &HIDDEN.into(),
                );
            }
        }
        if texts.len() < fields.len() {
            return;
        }
        let at = |field: &str| -> [PathSegment; 2] { ["auth".into(), field.into()] };
        let (name, value, place) = match (kind, texts.as_slice()) {
            ("basic", [username, password]) => {
                let pair = STANDARD.encode(format!("{username}:{password}"));
                (Some(AUTHORIZATION), format!("Basic {pair}"), "password")
            }
            ("bearer", [token]) => (Some(AUTHORIZATION), format!("Bearer {token}"), "token"),
            (_, [name, value, ..]) => {
                let known = self.header_name(&at("name"), name, &Value::from(*name));
                (known, (*value).to_owned(), "value")
            }
            (_, _) => return,
        };
        let value = self.header_value(&at(place), &Value::String(value));
        let (Some(name), Some(mut value)) = (name, value) else {
            return;
        };
        if headers.contains_key(&name) {
            let reason = format!("`auth` and `headers` both name `{name}`");
            self.fault(&["auth".into()], reason, "one of them", &HIDDEN.into());
        }
        value.set_sensitive(true);
        headers.insert(name, value);
    }

    /// The body, and its type unless `headers` has one.
    pub(super) fn body(&mut self, headers: &mut HeaderMap) -> Bytes {
        let inputs = self.inputs;
        let given: Vec<&str> = ["json", "body", "form"]
            .into_iter()
            .filter(|field| inputs.contains_key(*field))
            .collect();
        let (kind, bytes) = match given.as_slice() {
            [] => return Bytes::new(),
            ["json"] => ("application/json", Bytes::from(inputs["json"].to_string())),
            ["form"] => {
                let text = form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(self.pairs("form"))
                    .finish();
                ("application/x-www-form-urlencoded", Bytes::from(text))
            }
            ["body"] => {
                let Some(text) = inputs["body"].as_str() else {
                    self.wrong("body", "a text; `json` takes other values");
                    return Bytes::new();
                };
                ("text/plain; charset=utf-8", Bytes::from(text.to_owned()))
            }
            several => {
                let reason = format!("`{}` are given", several.join("`, `"));
                let last = several[several.len() - 1];
                let expected = "one of `json`, `body` and `form`";
                self.fault(&[last.into()], reason, expected, &inputs[last]);
                return Bytes::new();
            }
        };
        let kind = HeaderValue::from_static(kind);
        headers.entry(CONTENT_TYPE).or_insert(kind);
        bytes
    }

    /// The address, with `params` in its query.
    pub(super) fn target(&mut self, policy: &Policy) -> Option<Target> {
        let pairs = self.pairs("params");
        let Some(text) = self.inputs.get("url").and_then(Value::as_str) else {
            self.wrong("url", "a URL, for example `https://example.com/path`");
            return None;
        };
        let parsed = Target::parse(text, policy).and_then(|target| {
            if pairs.is_empty() {
                return Ok(target);
            }
            let mut url = target.url().clone();
            url.query_pairs_mut().extend_pairs(pairs);
            Target::parse(url.as_str(), policy)
        });
        parsed.map_err(|error| self.refused(text, &error)).ok()
    }

    fn refused(&mut self, url: &str, error: &AddressError) {
        let told = error.to_string();
        let (reason, expected) = told
            .rsplit_once(", expected ")
            .unwrap_or((&told, "the URL of a receiver that is allowed"));
        let actual = Value::from(without_secrets(url));
        self.fault(&["url".into()], reason, expected, &actual);
    }

    /// `timeout_seconds`, or `timeout` as in the examples of the protocol.
    pub(super) fn timeout(&mut self) -> Duration {
        let expected = format!("more than 0 and at most {TIMEOUT_SECONDS_MAX} seconds");
        let inputs = self.inputs;
        let (field, value) = match (inputs.get("timeout_seconds"), inputs.get("timeout")) {
            (None, None) => return TIMEOUT_DEFAULT,
            (Some(value), None) => ("timeout_seconds", value),
            (None, Some(value)) => ("timeout", value),
            (Some(_), Some(value)) => {
                let reason = "`timeout_seconds` and `timeout` are given";
                let expected = format!("one of them, {expected}");
                self.fault(&["timeout".into()], reason, expected, value);
                return TIMEOUT_DEFAULT;
            }
        };
        let seconds = value
            .as_f64()
            .filter(|seconds| *seconds > 0.0 && *seconds <= f64::from(TIMEOUT_SECONDS_MAX));
        seconds.map_or_else(
            || {
                self.wrong(field, expected);
                TIMEOUT_DEFAULT
            },
            Duration::from_secs_f64,
        )
    }

    pub(super) fn response_bytes_max(&mut self) -> usize {
        let Some(value) = self.inputs.get("response_bytes_max") else {
            return RESPONSE_BYTES_MAX;
        };
        let bytes = whole(value).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.filter(|bytes| *bytes <= RESPONSE_BYTES_MAX);
        bytes.unwrap_or_else(|| {
            let expected = format!("a whole number from 0 to {RESPONSE_BYTES_MAX}");
            self.wrong("response_bytes_max", expected);
            RESPONSE_BYTES_MAX
        })
    }

    pub(super) fn truncate(&mut self) -> bool {
        match self.inputs.get("truncate") {
            None => false,
            Some(Value::Bool(truncate)) => *truncate,
            Some(_) => {
                self.wrong("truncate", "a boolean");
                false
            }
        }
    }

    pub(super) fn expected(&mut self) -> Expected {
        let usual = [Value::from("2xx")];
        let items: &[Value] = match self.inputs.get("expect_status") {
            None => &usual[..],
            Some(Value::Array(items)) if (1..=EXPECTED_MAX).contains(&items.len()) => items,
            Some(_) => {
                let expected = format!(
                    "1 to {EXPECTED_MAX} statuses, for example [200, \"3xx\", \"400-404\"]"
                );
                self.wrong("expect_status", expected);
                &[]
            }
        };
        let (mut ranges, mut texts) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            let text = item.as_str().map_or_else(
                || whole(item).map_or_else(|| item.to_string(), |it| it.to_string()),
                str::to_owned,
            );
            match range(&text) {
                Some(range) => {
                    ranges.push(range);
                    texts.push(text);
                }
                None => {
                    let path = ["expect_status".into(), index.into()];
                    let expected = "a status from 100 to 599, a class such as \"4xx\", or a range \
                                    such as \"400-404\" whose first status is not above its last";
                    self.fault(&path, "not a status", expected, item);
                }
            }
        }
        Expected {
            ranges,
            text: texts.join(", "),
        }
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
    let (first, last) = (status(first)?, status(last)?);
    (first <= last).then_some(first..=last)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
