//! Reading a question, with everything that is wrong with it.

use super::{Choice, Escalation, Expected, Fallback, Question, is_answer};
use crate::contract::{FormFault, Types};
use crate::suggestion::suggestion;
use crate::violation::PathSegment;
use crate::{Violation, limits};
use serde_json::{Map, Value, json};

const MEMBERS: [&str; 11] = [
    "question",
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

struct Reader<'a> {
    members: &'a Map<String, Value>,
    faults: Vec<Violation>,
}

/// When people are reminded, and when the wait is over.
#[derive(Default)]
struct Times {
    expires_after_ms: Option<u64>,
    remind_every_ms: Option<u64>,
    reminders: u32,
    ladder: Vec<Escalation>,
}

pub(super) fn read(members: &Map<String, Value>) -> Result<Question, Vec<Violation>> {
    let mut reader = Reader {
        members,
        faults: Vec::new(),
    };
    reader.refuse_unknown();
    let text = reader.text("question", limits::QUESTION_CHARS_MAX);
    if text.is_none() && !members.contains_key("question") {
        reader.fault("question", "is required", "a text", &Value::Null);
    }
    reader.text("channel_hint", limits::HINT_CHARS_MAX);
    let context = members.get("context").filter(|it| !it.is_object());
    if let Some(context) = context {
        reader.fault("context", "has the wrong type", "an object", context);
    }
    let expects = reader.expects();
    let times = reader.times();
    let fallback = reader.fallback();
    if let (Some(expects), Some(Fallback::Continue(value))) = (&expects, &fallback) {
        let asks = Question::asking(expects.clone());
        if let Err(fault) = asks.check(value) {
            let expected = fault.expected();
            reader.fault("fallback_value", "is no answer", &expected, value);
        }
    }
    match (text, expects, times, fallback) {
        (Some(text), Some(expects), Some(times), Some(fallback)) if reader.faults.is_empty() => {
            Ok(Question {
                text,
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

impl Question {
    /// A question without a text, for checking answers.
    fn asking(expects: Expected) -> Self {
        Self {
            text: String::new(),
            expects,
            expires_after_ms: None,
            remind_every_ms: None,
            reminders: 0,
            ladder: Vec::new(),
            fallback: Fallback::Fail,
        }
    }
}

impl Reader<'_> {
    fn fault(&mut self, member: &str, reason: &str, expected: &str, actual: &Value) {
        self.fault_at(&[member.into()], reason, expected, actual);
    }

    fn fault_at(&mut self, path: &[PathSegment], reason: &str, expected: &str, actual: &Value) {
        Violation::report(&mut self.faults, || {
            Violation::new(path, reason, expected, actual)
        });
    }

    fn refuse_unknown(&mut self) {
        for (name, value) in self.members {
            if MEMBERS.contains(&name.as_str()) {
                continue;
            }
            let expected = match suggestion(name, MEMBERS.into_iter()) {
                Some(meant) => format!("perhaps `{meant}`"),
                None => format!("one of: {}", MEMBERS.join(", ")),
            };
            self.fault(name, "is not known", &expected, value);
        }
    }

    /// A text that is not empty; `None` when it is absent or wrong.
    fn text(&mut self, member: &str, chars_max: usize) -> Option<String> {
        let value = self.members.get(member)?;
        match value.as_str() {
            Some(text) if !text.trim().is_empty() && text.chars().count() <= chars_max => {
                Some(text.to_owned())
            }
            Some(_) | None => {
                let expected = format!("a text of 1 to {chars_max} characters");
                self.fault(member, "is not valid", &expected, value);
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
            let label = item.get("label").and_then(Value::as_str);
            match item.get("value") {
                Some(value) if choices.iter().any(|choice| choice.value == *value) => {
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
                    label: label.map(str::to_owned),
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
        let (member, declared) = match (self.members.get("schema"), self.members.get("fields")) {
            (Some(schema), None) => ("schema", json!({"schema": schema})),
            (None, Some(fields @ Value::Object(_))) => ("fields", fields.clone()),
            (None, Some(other)) => {
                self.fault("fields", "is not valid", "an object of types", other);
                return None;
            }
            (both, _) => {
                let found = both.unwrap_or(&Value::Null);
                let expected = "`schema` or `fields`, and not both";
                self.fault("schema", "is not valid", expected, found);
                return None;
            }
        };
        let types = Types::parse(None).ok()?;
        match types.type_of(&declared) {
            Ok(form) => Some(Expected::Form(form)),
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

    /// Milliseconds of a member that says seconds.
    fn seconds(&mut self, path: &[PathSegment], value: Option<&Value>) -> Option<u64> {
        let value = value?;
        let max = limits::DELAY_MS_MAX;
        let ms = value.as_f64().map(|seconds| seconds * 1000.0);
        match ms.filter(|ms| (1000.0..=max as f64).contains(ms)) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in range"
            )]
            Some(ms) => Some(ms as u64),
            None => {
                let expected = format!("a number from 1 to {}", max / 1000);
                self.fault_at(path, "is not valid", &expected, value);
                None
            }
        }
    }

    /// `None` when something is wrong.
    fn times(&mut self) -> Option<Times> {
        let timeout = self.members.get("timeout_seconds");
        let timeout_ms = self.seconds(&["timeout_seconds".into()], timeout);
        let policy = match self.members.get(RETRY) {
            None => {
                return Some(Times {
                    expires_after_ms: timeout_ms,
                    ..Times::default()
                });
            }
            Some(Value::Object(policy)) => policy,
            Some(other) => {
                self.fault(RETRY, "has the wrong type", "an object", other);
                return None;
            }
        };
        const KNOWN: [&str; 5] = [
            "max_attempts",
            "interval_seconds",
            "strategy",
            "escalation_ladder",
            "final_fallback_policy",
        ];
        for (name, value) in policy {
            if !KNOWN.contains(&name.as_str()) {
                let path = [RETRY.into(), name.as_str().into()];
                let expected = format!("one of: {}", KNOWN.join(", "));
                self.fault_at(&path, "is not known", &expected, value);
            }
        }
        if let Some(strategy) = policy.get("strategy").filter(|s| *s != "fixed") {
            self.fault_at(
                &[RETRY.into(), "strategy".into()],
                "is not valid",
                "fixed",
                strategy,
            );
        }
        let attempts = policy.get("max_attempts").map_or(Some(1), Value::as_u64);
        let attempts = attempts.and_then(|n| u32::try_from(n).ok());
        let attempts = attempts.filter(|n| (1..=limits::REMINDERS_MAX).contains(n));
        if attempts.is_none() {
            let expected = format!("an integer from 1 to {}", limits::REMINDERS_MAX);
            let path = [RETRY.into(), "max_attempts".into()];
            self.fault_at(&path, "is not valid", &expected, &policy["max_attempts"]);
        }
        let path = [RETRY.into(), "interval_seconds".into()];
        let every = policy.get("interval_seconds");
        let every_ms = self.seconds(&path, every).or(timeout_ms);
        if every.is_none() && timeout_ms.is_none() {
            let expected = "a number of seconds, here or in `timeout_seconds`";
            self.fault_at(&path, "is required", expected, &Value::Null);
        }
        let ladder = self.ladder(policy.get("escalation_ladder"));
        let (attempts, every_ms, ladder) = (attempts?, every_ms?, ladder?);
        Some(Times {
            expires_after_ms: Some(every_ms.saturating_mul(u64::from(attempts))),
            remind_every_ms: (attempts > 1).then_some(every_ms),
            reminders: attempts - 1,
            ladder,
        })
    }

    fn ladder(&mut self, value: Option<&Value>) -> Option<Vec<Escalation>> {
        let Some(value) = value else {
            return Some(Vec::new());
        };
        let steps: Option<Vec<Escalation>> = serde_json::from_value(value.clone()).ok();
        let is_short = |hint: &Option<String>| {
            let chars = hint.as_deref().map_or(0, |hint| hint.chars().count());
            chars <= limits::HINT_CHARS_MAX
        };
        let fits = |step: &Escalation| {
            step.attempt > 0 && is_short(&step.channel_hint) && is_short(&step.notify_to)
        };
        let max = limits::REMINDERS_MAX as usize;
        let steps = steps.filter(|steps| steps.len() <= max && steps.iter().all(fits));
        if steps.is_none() {
            let path = [RETRY.into(), "escalation_ladder".into()];
            let expected =
                format!("at most {max} of {{attempt from 1, channel_hint?, notify_to?}}");
            self.fault_at(&path, "is not valid", &expected, value);
        }
        steps
    }

    fn fallback(&mut self) -> Option<Fallback> {
        let last = self
            .members
            .get(RETRY)
            .and_then(|p| p.get("final_fallback_policy"));
        let (path, policy): (&[PathSegment], _) = match last {
            Some(policy) => (
                &[RETRY.into(), "final_fallback_policy".into()],
                Some(policy),
            ),
            None => (
                &["fallback_policy".into()],
                self.members.get("fallback_policy"),
            ),
        };
        let value = self.members.get("fallback_value");
        match (policy.map_or(Some("fail"), Value::as_str), value) {
            (Some("fail"), None) => Some(Fallback::Fail),
            (Some("fail"), Some(value)) => {
                let expected = "a `fallback_policy` that uses it";
                self.fault("fallback_value", "is not used", expected, value);
                None
            }
            (Some("complete_with_fallback"), Some(Value::Object(result))) => {
                Some(Fallback::Complete(result.clone()))
            }
            (Some("complete_with_fallback"), other) => {
                let found = other.unwrap_or(&Value::Null);
                let expected = "an object: the result of the task";
                self.fault("fallback_value", "is not valid", expected, found);
                None
            }
            (Some("use_default_and_continue"), Some(value)) => {
                Some(Fallback::Continue(value.clone()))
            }
            (Some("use_default_and_continue"), None) => {
                self.fault("fallback_value", "is required", "an answer", &Value::Null);
                None
            }
            (Some(_) | None, _) => {
                let expected = "one of: fail, complete_with_fallback, use_default_and_continue";
                let found = policy.unwrap_or(&Value::Null);
                self.fault_at(path, "is not valid", expected, found);
                None
            }
        }
    }
}
