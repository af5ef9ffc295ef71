//! Parses the bytes of a body into calls. Decides what is JSON, what is a request and what it is answered to; knows no
//! method.
//!
//! One pass over the text: ids are kept as the exact text that was sent, `params` are parsed once into the value that
//! authorisation and execution both use (of members with one name the last counts, integers of more than 64 bits are
//! refused), other members are checked and dropped. Nesting is limited to 127 levels by the parser, everywhere, so no
//! body can exhaust the stack.

use super::error::RpcError;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use taskledger_domain::json::{
    LargeInteger, RESERVED, RESERVED_EXPECTED, RESERVED_NAME, TOO_LARGE, TOO_LARGE_EXPECTED,
    has_reserved_name, large_integers, out_of_range, place_of_reserved_name,
    without_byte_order_mark,
};
use taskledger_domain::limits::{BATCH_CALLS_MAX, VIOLATIONS_MAX};
use taskledger_domain::{PathSegment, Violation};

/// Bytes of a body above which it is parsed on a thread of its own: about a millisecond of work,
/// during which a runtime thread would serve nobody else.
pub const INLINE_PARSE_BYTES_MAX: usize = 256 * 1024;

/// The contents of a body.
#[derive(Debug)]
pub enum Envelope {
    /// One request object.
    Single(Element),
    /// An array of 1 to [`BATCH_CALLS_MAX`] elements, in the order sent.
    Batch(Vec<Element>),
    /// Nothing to execute: one error with id null is the whole answer.
    Refused(RpcError),
}

impl Envelope {
    /// The methods that it names, of what is no request too.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        let elements = match self {
            Self::Single(element) => std::slice::from_ref(element),
            Self::Batch(elements) => elements.as_slice(),
            Self::Refused(_) => &[],
        };
        elements.iter().filter_map(|element| match element {
            Element::Request(request) => Some(&*request.method),
            Element::Invalid { method, .. } => method.as_deref(),
        })
    }

    /// Notes an integer of the body that does not fit into 64 bits, if it is one of `params`.
    fn fault(&mut self, large: &LargeInteger) {
        let (element, path) = match (self, &large.path[..]) {
            (Self::Single(element), path) => (Some(element), path),
            (Self::Batch(elements), [PathSegment::Index(i), path @ ..]) => {
                (elements.get_mut(*i), path)
            }
            (Self::Batch(_) | Self::Refused(_), _) => return,
        };
        let [PathSegment::Key(member), path @ ..] = path else {
            return;
        };
        if let Some(Element::Request(request)) = element
            && member == Name::Params.as_str()
        {
            let digits = Value::from(large.digits.as_str());
            let fault = Violation::new(path, TOO_LARGE, TOO_LARGE_EXPECTED, &digits);
            request.faults.push(fault);
        }
    }

    /// The well-formed requests in it.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        let elements = match self {
            Self::Single(element) => std::slice::from_ref(element),
            Self::Batch(elements) => elements.as_slice(),
            Self::Refused(_) => &[],
        };
        elements.iter().filter_map(|element| match element {
            Element::Request(request) => Some(request.as_ref()),
            Element::Invalid { .. } => None,
        })
    }
}

/// One element of a batch, or the whole of a body that is no batch.
#[derive(Debug)]
pub enum Element {
    /// A well-formed request.
    Request(Box<Request>),
    /// JSON that is no request. Always answered, also without an id.
    Invalid {
        /// The id when it could be determined.
        id: Option<Box<RawValue>>,
        /// -32600 with everything that is wrong.
        error: RpcError,
        /// The method that it names.
        method: Option<String>,
    },
}

/// A well-formed request.
#[derive(Debug)]
pub struct Request {
    /// The exact text of the id; `None` = a notification. (`null` is an id.)
    pub id: Option<Box<RawValue>>,
    /// The method, not yet known to exist.
    pub method: String,
    /// The parsed `params`.
    pub params: Params,
    /// The member `metadata`. spec: interface / A2A Protocol Methods
    pub metadata: Option<Map<String, Value>>,
    /// The member `configuration`. spec: interface / Push Notifications
    pub configuration: Option<Value>,
    /// Integers of `params` that were read as other numbers, because they do not fit into 64 bits. The call is refused.
    pub faults: Vec<Violation>,
}

/// Parameters as they were sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    /// By name; empty when the member is absent.
    Named(Map<String, Value>),
    /// By position.
    Positional(Vec<Value>),
}

/// Reads a body. Never fails: what cannot be read is an [`Envelope::Refused`] or an
/// [`Element::Invalid`]. Cost: O(bytes).
#[must_use]
pub fn parse(body: &[u8]) -> Envelope {
    // First, because the parser does not look inside strings that it skips.
    let text = match std::str::from_utf8(without_byte_order_mark(body)) {
        Ok(text) => text,
        Err(error) => return Envelope::Refused(RpcError::parse_error(error)),
    };
    if has_reserved_name(text.as_bytes()) {
        let name = Value::from(RESERVED_NAME);
        let fault = match place_of_reserved_name(text.as_bytes()) {
            Some(path) => Violation::new(&path, RESERVED, RESERVED_EXPECTED, &name),
            None => Violation::of("body", RESERVED, RESERVED_EXPECTED, &name),
        };
        return Envelope::Refused(RpcError::invalid_request(vec![fault]));
    }
    let mut envelope = parsed(text);
    // What is no JSON is not looked at again.
    if !matches!(envelope, Envelope::Refused(_)) {
        for large in large_integers(text.as_bytes(), VIOLATIONS_MAX) {
            envelope.fault(&large);
        }
    }
    envelope
}

fn parsed(text: &str) -> Envelope {
    let first = text.bytes().find(|b| !b.is_ascii_whitespace());
    if first == Some(b'[') {
        match serde_json::from_str::<Elements>(text) {
            Ok(elements) => batch(elements),
            Err(error) => Envelope::Refused(unparsed(text, &error)),
        }
    } else {
        // The visitors below accept every shape, so an error is one of syntax, depth or range.
        match serde_json::from_str::<Element>(text) {
            Ok(element) => Envelope::Single(element),
            Err(error) => Envelope::Refused(unparsed(text, &error)),
        }
    }
}

/// Why a text is not read: it is no JSON, or a number in it is beyond all doubles.
fn unparsed(text: &str, error: &serde_json::Error) -> RpcError {
    let is_number = error.to_string().contains("number out of range");
    let number = is_number.then(|| out_of_range(text.as_bytes()));
    match number.flatten() {
        Some(path) => RpcError::number_out_of_range(&path),
        None => RpcError::parse_error(error),
    }
}

fn batch(Elements { kept, count }: Elements) -> Envelope {
    if count == 0 {
        return Envelope::Refused(RpcError::invalid_request(vec![Violation::of(
            "batch",
            "the batch is empty",
            format!("1 to {BATCH_CALLS_MAX} calls"),
            &0.into(),
        )]));
    }
    if count > BATCH_CALLS_MAX {
        return Envelope::Refused(RpcError::invalid_request(vec![Violation::of(
            "batch",
            "too many calls in one batch",
            format!("1 to {BATCH_CALLS_MAX} calls"),
            &count.into(),
        )]));
    }
    Envelope::Batch(kept)
}

/// The elements of an array, as many as may be executed, and how many there were.
struct Elements {
    kept: Vec<Element>,
    count: usize,
}

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Batch;
        impl<'de> Visitor<'de> for Batch {
            type Value = Elements;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Elements, A::Error> {
                let mut elements = Elements {
                    kept: Vec::new(),
                    count: 0,
                };
                loop {
                    if elements.count < BATCH_CALLS_MAX {
                        match seq.next_element()? {
                            Some(element) => elements.kept.push(element),
                            None => return Ok(elements),
                        }
                    } else if seq.next_element::<Skipped>()?.is_none() {
                        return Ok(elements);
                    }
                    elements.count += 1;
                }
            }
        }
        deserializer.deserialize_seq(Batch)
    }
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl ElementVisitor {
    fn no_object(kind: &str) -> Element {
        Element::Invalid {
            id: None,
            error: RpcError::invalid_request(vec![Violation::of(
                "request",
                "not an object",
                "a request object",
                &kind.into(),
            )]),
            method: None,
        }
    }
}

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request object")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Element, E> {
        Ok(Self::no_object("null"))
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Element, E> {
        Ok(Self::no_object("a boolean"))
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Element, E> {
        Ok(Self::no_object("a number"))
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Element, E> {
        Ok(Self::no_object("a number"))
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Element, E> {
        Ok(Self::no_object("a number"))
    }
    fn visit_str<E: de::Error>(self, _: &str) -> Result<Element, E> {
        Ok(Self::no_object("a string"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Element, A::Error> {
        while seq.next_element::<Skipped>()?.is_some() {}
        Ok(Self::no_object("an array"))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Element, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<Name>()? {
            members.read(name, &mut map)?;
        }
        Ok(members.judge())
    }
}

/// The members of a request object as they were found.
#[derive(Default)]
struct Members<'de> {
    version: Option<Text>,
    method: Option<Text>,
    id: Option<&'de RawValue>,
    params: Option<Value>,
    metadata: Option<Value>,
    configuration: Option<Value>,
    duplicates: Vec<Name>,
}

impl<'de> Members<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: Name, map: &mut A) -> Result<(), A::Error> {
        let again = match name {
            Name::Version => self.version.replace(map.next_value()?).is_some(),
            Name::Method => self.method.replace(map.next_value()?).is_some(),
            Name::Id => {
                let raw: &'de RawValue = map.next_value()?;
                // A raw value is not depth-limited, and what escapes in it mean is not looked at: an
                // id with half of a surrogate pair could be sent back, but not be read. Numbers are
                // fine at any size.
                if raw.get().starts_with(['[', '{', '"']) {
                    serde_json::from_str::<Skipped>(raw.get()).map_err(de::Error::custom)?;
                }
                self.id.replace(raw).is_some()
            }
            Name::Params => self.params.replace(map.next_value()?).is_some(),
            Name::Metadata => self.metadata.replace(map.next_value()?).is_some(),
            Name::Configuration => self.configuration.replace(map.next_value()?).is_some(),
            Name::Other => {
                map.next_value::<Skipped>()?;
                false
            }
        };
        if again && !self.duplicates.contains(&name) {
            self.duplicates.push(name);
        }
        Ok(())
    }

    fn judge(self) -> Element {
        let mut faults: Vec<Violation> = self
            .duplicates
            .iter()
            .map(|name| {
                Violation::of(
                    name.as_str(),
                    "the member occurs more than once",
                    "each member at most once",
                    &Value::Null,
                )
            })
            .collect();
        let mut fault = |field: &str, reason: &str, expected: &str, actual: Value| {
            faults.push(Violation::of(field, reason, expected, &actual));
        };
        match self.version {
            Some(Text::Is(version)) if version == "2.0" => {}
            Some(Text::Is(version)) => fault("jsonrpc", "wrong version", "\"2.0\"", version.into()),
            Some(Text::Not) => fault("jsonrpc", "not a string", "\"2.0\"", Value::Null),
            None => fault("jsonrpc", "missing", "\"2.0\"", Value::Null),
        }
        let method = match self.method {
            Some(Text::Is(method)) => method,
            Some(Text::Not) => {
                fault(
                    "method",
                    "not a string",
                    "the name of a method",
                    Value::Null,
                );
                String::new()
            }
            None => {
                fault("method", "missing", "the name of a method", Value::Null);
                String::new()
            }
        };
        let params = match self.params {
            None => Params::Named(Map::new()),
            Some(Value::Object(map)) => Params::Named(map),
            Some(Value::Array(values)) => Params::Positional(values),
            Some(other) => {
                let expected = "an object or an array; leave the member out for no parameters";
                fault("params", "not structured", expected, other);
                Params::Named(Map::new())
            }
        };
        let metadata = match self.metadata {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(other) => {
                fault("metadata", "not an object", "an object", other);
                None
            }
        };
        let mut id = self.id.map(RawValue::to_owned);
        if id.as_ref().is_some_and(|raw| !is_id(raw)) {
            let actual = id.as_ref().map(|raw| serde_json::from_str(raw.get()));
            let actual = actual.and_then(Result::ok).unwrap_or_default();
            fault("id", "wrong type", "a string, a number or null", actual);
            id = None;
        }
        if self.duplicates.contains(&Name::Id) {
            id = None;
        }
        if faults.is_empty() {
            Element::Request(Box::new(Request {
                id,
                method,
                params,
                metadata,
                configuration: self.configuration.filter(|value| !value.is_null()),
                faults: Vec::new(),
            }))
        } else {
            Element::Invalid {
                id,
                error: RpcError::invalid_request(faults),
                method: Some(method).filter(|method| !method.is_empty()),
            }
        }
    }
}

fn is_id(raw: &RawValue) -> bool {
    raw.get()
        .starts_with(|c: char| matches!(c, '"' | '-' | 'n') || c.is_ascii_digit())
}

/// A member's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Version,
    Method,
    Id,
    Params,
    Metadata,
    Configuration,
    Other,
}

impl Name {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "jsonrpc",
            Self::Method => "method",
            Self::Id => "id",
            Self::Params => "params",
            Self::Metadata => "metadata",
            Self::Configuration => "configuration",
            Self::Other => "",
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "jsonrpc" => Name::Version,
                    "method" => Name::Method,
                    "id" => Name::Id,
                    "params" => Name::Params,
                    "metadata" => Name::Metadata,
                    "configuration" => Name::Configuration,
                    _ => Name::Other,
                })
            }
        }
        deserializer.deserialize_identifier(NameVisitor)
    }
}

/// A value that should be a string.
enum Text {
    Is(String),
    Not,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(Scan { keep: true })
            .map(|text| text.map_or(Self::Not, Self::Is))
    }
}

/// A value that nobody reads: checked, not stored.
struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(Scan { keep: false })
            .map(|_| Self)
    }
}

/// Goes through any value; keeps it if it is a string and wanted.
struct Scan {
    keep: bool,
}

impl<'de> Visitor<'de> for Scan {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.keep.then(|| text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<Skipped>()?.is_some() {}
        Ok(None)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<Skipped, Skipped>()?.is_some() {}
        Ok(None)
    }
}
