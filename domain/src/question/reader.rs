//! Reads a question that is to be asked, and collects everything that is wrong with it.

mod times;

use super::{Asks, Choice, Expected, Fallback, Question, is_answer};
use crate::contract::{FormFault, Types, equal};
use crate::suggestion::{near_miss, suggestion};
use crate::violation::PathSegment;
use crate::{Violation, limits};
use serde_json::{Map, Value, json};

const MEMBERS: [&str; 12] = [
    "question",
    "asks",
    "response_type",
    "choices",
    "schema",
    "fields",
    "context",
    "channel_hint",
    "timeout_seconds",
    "fallback_policy",
    "fallback_value",
    "retry_policy",
];
const RETRY: &str = "retry_policy";
const POLICIES: [&str; 3] = ["fail", "complete_with_fallback", "use_default_and_continue"];

struct Reader<'a> {
    members: &'a Map<String, Value>,
    faults: Vec<Violation>,
}

/// `others`: members that belong beside those of the question.
pub(super) fn read(
    members: &Map<String, Value>,
    others: &[&'static str],
) -> Result<Question, Vec<Violation>> {
    let mut reader = Reader {
        members,
        faults: Vec::new(),
    };
    reader.refuse_unknown(&[], members, &[&MEMBERS, others].concat());
    let text = reader.text("question", limits::QUESTION_CHARS_MAX);
    if text.is_none() && !members.contains_key("question") {
        reader.fault("question", "is required", "a text", &Value::Null);
    }
    reader.text("channel_hint", limits::HINT_CHARS_MAX);
    let context = members.get("context").filter(|it| !it.is_object());
    if let Some(context) = context {
        reader.fault("context", "has the wrong type", "an object", context);
    }
    let asks = reader.asks();
    let expects = reader.expects();
    let times = reader.times();
    let fallback = reader.fallback();
    if let (Some(expects), Some(Fallback::Continue(value))) = (&expects, &fallback)
        && let Err(fault) = expects.check(value)
    {
        let expected = fault.expected();
        reader.fault("fallback_value", "is no answer", &expected, value);
    }
    match (text, asks, expects, times, fallback) {
        (Some(text), Some(asks), Some(expects), Some(times), Some(fallback))
            if reader.faults.is_empty() =>
        {
            Ok(Question {
                text,
                asks,
                expects,
                expires_after_ms: times.expires_after_ms,
                remind_every_ms: times.remind_every_ms,
                reminders: times.reminders,
                ladder: times.ladder,
                fallback,
            })
        }
        _ => Err(reader.faults),
    }
}

impl<'a> Reader<'a> {
    fn fault(&mut self, member: &str, reason: &str, expected: &str, actual: &Value) {
        self.fault_at(&[member.into()], reason, expected, actual);
    }

    fn fault_at(&mut self, path: &[PathSegment], reason: &str, expected: &str, actual: &Value) {
        Violation::report(&mut self.faults, || {
            Violation::new(path, reason, expected, actual)
        });
    }

    /// Members of the object at `path` that are none of these.
    fn refuse_unknown(
        &mut self,
        path: &[PathSegment],
        members: &Map<String, Value>,
        known: &[&'static str],
    ) {
        for (name, value) in members {
            if known.contains(&name.as_str()) {
                continue;
            }
            let expected = match suggestion(name, known.iter().copied()) {
                Some(meant) => format!("perhaps `{meant}`"),
                None => format!("one of: {}", known.join(", ")),
            };
            let path = [path, &[name.as_str().into()]].concat();
            self.fault_at(&path, "is not known", &expected, value);
        }
    }

    /// A text that is not empty; `None` when it is absent or wrong.
    fn text(&mut self, member: &str, chars_max: usize) -> Option<String> {
        self.text_at(&[member.into()], self.members.get(member), chars_max)
    }

    fn text_at(
        &mut self,
        path: &[PathSegment],
        value: Option<&Value>,
        chars_max: usize,
    ) -> Option<String> {
        let value = value?;
        match value.as_str() {
            Some(text) if !text.trim().is_empty() && text.chars().count() <= chars_max => {
                Some(text.to_owned())
            }
            Some(_) | None => {
                let expected = format!("a text of 1 to {chars_max} characters");
                self.fault_at(path, "is not valid", &expected, value);
                None
            }
        }
    }

    fn asks(&mut self) -> Option<Asks> {
        let Some(value) = self.members.get("asks") else {
            return Some(Asks::Input);
        };
        match value.as_str() {
            Some("input") => Some(Asks::Input),
            Some("auth") => Some(Asks::Auth),
            Some(_) | None => {
                self.fault("asks", "is not valid", "one of: input, auth", value);
                None
            }
        }
    }

    fn expects(&mut self) -> Option<Expected> {
        let kind = match self.members.get("response_type") {
            None => "text",
            Some(value) => match value.as_str() {
                Some(kind @ ("text" | "confirm" | "choice" | "form")) => kind,
                Some(_) | None => {
                    let expected = "one of: text, confirm, choice, form";
                    self.fault("response_type", "is not valid", expected, value);
                    return None;
                }
            },
        };
        for (member, belongs_to) in [
            ("choices", "choice"),
            ("schema", "form"),
            ("fields", "form"),
        ] {
            if let Some(value) = self.members.get(member).filter(|_| belongs_to != kind) {
                let expected = format!("only with the response_type `{belongs_to}`");
                self.fault(member, "is not used", &expected, value);
            }
        }
        match kind {
            "text" => Some(Expected::Text),
            "confirm" => Some(Expected::Confirm),
            "choice" => self.choices(),
            _ => self.form(),
        }
    }

    fn choices(&mut self) -> Option<Expected> {
        let value = self.members.get("choices").unwrap_or(&Value::Null);
        let items = value.as_array().map_or(&[] as &[Value], Vec::as_slice);
        if items.is_empty() || items.len() > limits::CHOICES_MAX {
            let expected = format!("1 to {} choices", limits::CHOICES_MAX);
            self.fault("choices", "is not valid", &expected, value);
            return None;
        }
        let mut choices: Vec<Choice> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let label = item.get("label");
            if let Some(other) = label.filter(|label| !label.is_string()) {
                let path = ["choices".into(), at.into(), "label".into()];
                self.fault_at(&path, "has the wrong type", "a text", other);
            }
            for (name, member) in item.as_object().into_iter().flatten() {
                let is_known = ["value", "label"].contains(&name.as_str());
                if let (false, Some(meant)) =
                    (is_known, near_miss(name, ["value", "label"].into_iter()))
                {
                    let path = ["choices".into(), at.into(), name.as_str().into()];
                    self.fault_at(&path, "is not known", &format!("perhaps `{meant}`"), member);
                }
            }
            match item.get("value") {
                Some(value) if choices.iter().any(|choice| equal(&choice.value, value)) => {
                    let path = ["choices".into(), at.into(), "value".into()];
                    self.fault_at(&path, "is there twice", "different values", value);
                }
                Some(value) if !is_answer(value) => {
                    let path = ["choices".into(), at.into(), "value".into()];
                    let expected = "a boolean, a number, a text that is not empty, or an object";
                    self.fault_at(&path, "is no answer", expected, value);
                }
                Some(value) => choices.push(Choice {
                    value: value.clone(),
                    label: label.and_then(Value::as_str).map(str::to_owned),
                }),
                None => {
                    let path = ["choices".into(), at.into()];
                    self.fault_at(&path, "is not valid", "an object with `value`", item);
                }
            }
        }
        Some(Expected::Choice(choices))
    }

    fn form(&mut self) -> Option<Expected> {
        let types = Types::parse(None).ok()?;
        let given = (self.members.get("schema"), self.members.get("fields"));
        let (member, value, form) = match given {
            (Some(schema @ (Value::Object(_) | Value::Bool(true))), None) => {
                ("schema", schema, types.type_of(&json!({"schema": schema})))
            }
            (Some(other), None) => {
                let expected = "a JSON Schema: an object, or true";
                self.fault("schema", "is not valid", expected, other);
                return None;
            }
            (None, Some(value @ Value::Object(fields))) => {
                ("fields", value, types.shape_of(fields))
            }
            (None, Some(other)) => {
                self.fault("fields", "is not valid", "an object of types", other);
                return None;
            }
            (Some(schema), Some(_)) => {
                let expected = "`schema` or `fields`, and not both";
                self.fault("schema", "is not valid", expected, schema);
                return None;
            }
            (None, None) => {
                let expected = "`schema`, or `fields` in its place";
                self.fault("schema", "is required", expected, &Value::Null);
                return None;
            }
        };
        match form {
            Ok(form) if form.may_be_object() => Some(Expected::Form(form)),
            Ok(_) => {
                let expected = "a form that accepts an object, as its answer is one";
                self.fault(member, "accepts no answer", expected, value);
                None
            }
            Err(faults) => {
                for fault in faults {
                    self.form_fault(member, &fault);
                }
                None
            }
        }
    }

    fn form_fault(&mut self, member: &str, fault: &FormFault) {
        let inner = fault.path.iter().skip(usize::from(member == "schema"));
        let inner = inner.map(|name| PathSegment::Key(name.clone()));
        let path: Vec<PathSegment> = std::iter::once(member.into()).chain(inner).collect();
        self.fault_at(&path, fault.reason, &fault.expected, &fault.found);
    }

    /// One of [`POLICIES`]; inside, `None` when it is absent. `None`: it is something else.
    fn policy(
        &mut self,
        path: &[PathSegment],
        value: Option<&'a Value>,
    ) -> Option<Option<&'a str>> {
        let Some(value) = value else {
            return Some(None);
        };
        let policy = value.as_str().filter(|policy| POLICIES.contains(policy));
        if policy.is_none() {
            let expected = format!("one of: {}", POLICIES.join(", "));
            self.fault_at(path, "is not valid", &expected, value);
        }
        policy.map(Some)
    }

    /// What follows without an answer: the last of both policies counts.
    fn fallback(&mut self) -> Option<Fallback> {
        const LAST: &str = "final_fallback_policy";
        let members = self.members;
        let last = members.get(RETRY).and_then(|policy| policy.get(LAST));
        let last = self.policy(&[RETRY.into(), LAST.into()], last);
        let own = self.policy(&["fallback_policy".into()], members.get("fallback_policy"));
        let policy = last?.or(own?).unwrap_or("fail");
        match (policy, members.get("fallback_value")) {
            ("complete_with_fallback", Some(Value::Object(result))) => {
                Some(Fallback::Complete(result.clone()))
            }
            ("complete_with_fallback", other) => {
                let found = other.unwrap_or(&Value::Null);
                let expected = "an object: the result of the task";
                self.fault("fallback_value", "is not valid", expected, found);
                None
            }
            ("use_default_and_continue", Some(value)) => Some(Fallback::Continue(value.clone())),
            ("use_default_and_continue", None) => {
                self.fault("fallback_value", "is required", "an answer", &Value::Null);
                None
            }
            (_, None) => Some(Fallback::Fail),
            (_, Some(value)) => {
                let expected = "a `fallback_policy` that uses it";
                self.fault("fallback_value", "is not used", expected, value);
                None
            }
        }
    }
}
