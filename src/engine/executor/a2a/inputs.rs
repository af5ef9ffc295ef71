//! Parses the inputs of `a2a_executor`.

use super::super::http::inputs::Reader;
use crate::egress::{Policy, Target, without_secrets};
use axum::http::HeaderMap;
use serde_json::{Map, Value};
use taskledger_a2a::card::AgentCard;
use taskledger_a2a::{Message, Part, Role, Wire};
use taskledger_a2a_client::{AgentOptions, Binding};
use taskledger_domain::Violation;
use taskledger_domain::limits::{CONTEXT_CHARS_MAX, REFERENCES_MAX, VIOLATIONS_MAX};

/// Parts of a message.
pub(super) const PARTS_MAX: usize = 256;
/// Media types that a task takes back.
pub(super) const MODES_MAX: usize = 64;
/// Characters of a skill's id.
pub(super) const SKILL_CHARS_MAX: usize = 255;

/// Who is called.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// Whoever has a card at this URL.
    Url(String),
    /// The agent of this card.
    Card(Box<Value>),
}

/// The inputs, read.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) place: Place,
    pub(super) headers: HeaderMap,
    pub(super) binding: Option<Binding>,
    parts: Vec<Part>,
    skill: Option<String>,
    pub(super) context_id: Option<String>,
    references: Vec<String>,
    metadata: Option<Map<String, Value>>,
    pub(super) output_modes: Vec<String>,
}

impl Asked {
    /// Reads the inputs, whether or not they were checked against the schema before.
    ///
    /// # Errors
    /// Everything that is wrong with them, at paths from their root.
    pub(super) fn read(
        inputs: &Map<String, Value>,
        policy: &Policy,
    ) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(inputs);
        let mut headers = reader.headers();
        reader.authorize(&mut headers);
        let mut faults = reader.finish(Some(())).err().unwrap_or_default();
        let place = place(inputs, policy, &mut faults);
        let parts = parts(inputs, &mut faults);
        let binding = inputs.get("binding").and_then(Value::as_str);
        let binding = binding.and_then(|text| match text.parse() {
            Ok(binding) => Some(binding),
            Err(_) => {
                let actual = Value::from(text);
                note(
                    &mut faults,
                    "binding",
                    "not known",
                    "JSONRPC or HTTP+JSON",
                    &actual,
                );
                None
            }
        });
        let text = |name: &str| inputs.get(name).and_then(Value::as_str).map(str::to_owned);
        let texts = |name: &str| -> Vec<String> {
            let list = inputs
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        faults.truncate(VIOLATIONS_MAX);
        match place {
            Some(place) if faults.is_empty() => Ok(Self {
                place,
                headers,
                binding,
                parts,
                skill: text("skill"),
                context_id: text("context_id"),
                references: texts("reference_task_ids"),
                metadata: inputs.get("metadata").and_then(Value::as_object).cloned(),
                output_modes: texts("output_modes"),
            }),
            Some(_) | None => Err(faults),
        }
    }

    /// How the agent is called.
    pub(super) fn options(&self) -> AgentOptions {
        let mut headers = self.headers.clone();
        headers
            .values_mut()
            .for_each(|value| value.set_sensitive(true));
        AgentOptions {
            headers,
            binding: self.binding,
        }
    }

    /// The first message.
    pub(super) fn message(&self, message_id: String) -> Message {
        let mut metadata = self.metadata.clone();
        if let Some(skill) = &self.skill {
            let members = metadata.get_or_insert_default();
            members.insert("skillId".to_owned(), skill.as_str().into());
        }
        Message {
            message_id,
            context_id: self.context_id.clone(),
            task_id: None,
            role: Role::User,
            parts: self.parts.clone(),
            metadata,
            extensions: Vec::new(),
            reference_task_ids: self.references.clone(),
        }
    }
}

fn note(faults: &mut Vec<Violation>, field: &str, reason: &str, expected: &str, actual: &Value) {
    faults.push(Violation::new(&[field.into()], reason, expected, actual));
}

fn place(
    inputs: &Map<String, Value>,
    policy: &Policy,
    faults: &mut Vec<Violation>,
) -> Option<Place> {
    match (inputs.get("url"), inputs.get("card")) {
        (Some(Value::String(url)), None) => match Target::parse(url, policy) {
            Ok(_) => Some(Place::Url(url.clone())),
            Err(error) => {
                let told = error.to_string();
                let usual = "the URL of an agent that is allowed";
                let (reason, expected) = told.rsplit_once(", expected ").unwrap_or((&told, usual));
                note(
                    faults,
                    "url",
                    reason,
                    expected,
                    &without_secrets(url).into(),
                );
                None
            }
        },
        (None, Some(card)) => match AgentCard::from_json(card.clone()) {
            Ok(_) => Some(Place::Card(Box::new(card.clone()))),
            Err(found) => {
                for fault in &found.listed {
                    let path = ["card".into(), fault.field.as_str().into()];
                    let expected = "an agent card of A2A 1.0";
                    faults.push(Violation::new(
                        &path,
                        &*fault.description,
                        expected,
                        &Value::Null,
                    ));
                }
                None
            }
        },
        (Some(_), Some(_)) => {
            note(
                faults,
                "card",
                "`url` and `card` are given",
                "one of them",
                &Value::Null,
            );
            None
        }
        (given, None) => {
            let reason = if given.is_some() {
                "not a text"
            } else {
                "missing"
            };
            let expected =
                "the URL of an agent, for example `https://agent.example.com`, or its `card`";
            note(faults, "url", reason, expected, &Value::Null);
            None
        }
    }
}

/// `parts` as they are, then `text`, then `data`.
fn parts(inputs: &Map<String, Value>, faults: &mut Vec<Violation>) -> Vec<Part> {
    let mut parts = Vec::new();
    let given = inputs.get("parts").and_then(Value::as_array);
    for (at, given) in given.into_iter().flatten().enumerate() {
        match Part::from_json(given.clone()) {
            Ok(part) => parts.push(part),
            Err(found) => {
                let first = found.listed.into_iter().next();
                let reason = first.map_or_else(String::new, |fault| match fault.field.is_empty() {
                    true => fault.description,
                    false => format!("`{}`: {}", fault.field, fault.description),
                });
                let path = ["parts".into(), at.into()];
                let expected = "a part with one of `text`, `data`, `raw` and `url`";
                faults.push(Violation::new(&path, reason, expected, given));
            }
        }
    }
    if let Some(text) = inputs.get("text").and_then(Value::as_str) {
        parts.push(Part::text(text));
    }
    if let Some(data) = inputs.get("data") {
        parts.push(Part::data(data.clone()));
    }
    if parts.is_empty() && faults.is_empty() {
        let expected = "`text`, `data` or `parts`: what is said to the agent";
        note(faults, "text", "missing", expected, &Value::Null);
    }
    parts
}

/// The schema of the inputs, so that mistakes are told when a task is created.
pub(super) fn schema() -> Value {
    use super::super::http::schema::Credentials;
    use crate::egress::URL_CHARS_MAX;
    use serde_json::json;
    let Credentials { headers, auth } = Credentials::schema();
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": URL_CHARS_MAX},
            "card": {"type": "object"},
            "text": {"type": "string"},
            "data": true,
            "parts": {"type": "array", "maxItems": PARTS_MAX, "items": {"type": "object"}},
            "skill": {"type": "string", "minLength": 1, "maxLength": SKILL_CHARS_MAX},
            "context_id": {"type": "string", "minLength": 1, "maxLength": CONTEXT_CHARS_MAX},
            "reference_task_ids": {
                "type": "array", "maxItems": REFERENCES_MAX,
                "items": {"type": "string", "minLength": 1}
            },
            "metadata": {"type": "object"},
            "output_modes": {
                "type": "array", "maxItems": MODES_MAX, "items": {"type": "string", "minLength": 1}
            },
            "binding": {"enum": Binding::ALL.map(Binding::name)},
            "headers": headers,
            "auth": auth
        },
        "anyOf": [{"required": ["text"]}, {"required": ["data"]}, {"required": ["parts"]}],
        "oneOf": [{"required": ["url"]}, {"required": ["card"]}]
    })
}
