//! `start_at` and `delay_seconds` of a phase, which begins later than it could.

use serde_json::{Map, Value};
use taskledger_domain::limits::START_DELAY_MS_MAX;
use taskledger_domain::{InvalidTime, Timestamp};

use crate::members::Members;
use crate::node::short;
use crate::source::{found, known};
use crate::workflow::{Source, StartAt};

const TIME: &str = "an RFC 3339 date and time with offset, such as 2026-01-31T14:00:00Z";
const FORMS: &str =
    "an RFC 3339 date and time with offset, `$trigger.<key>` or `$initial_state.<key>`";

/// Reads `start_at`: a time, or a reference to one. What `initial_state` has for it is checked here; what a trigger
/// has, when there is one.
pub(crate) fn start_at(phase: &Members<'_>, initial_state: &Map<String, Value>) -> Option<StartAt> {
    let node = &phase.get("start_at")?.value;
    let wrong = |expected| phase.wrong("start_at", node, expected, None);
    let Some(text) = node.text() else {
        wrong(FORMS);
        return None;
    };
    let invalid = match Timestamp::parse(text) {
        Ok(at) => return Some(StartAt::At(at)),
        Err(invalid) => invalid,
    };
    let Some(source) = known(text) else {
        wrong(expected(invalid, FORMS));
        return None;
    };
    let start_at = StartAt::Value {
        reference: text.to_owned(),
        source,
    };
    if let Err(NoTime { expected, found }) = start_at.resolved(&Map::new(), initial_state) {
        let reason = format!(
            "`start_at` must be {expected}, `{}` is {found}",
            short(text)
        );
        phase.error(&phase.path.key("start_at"), node.at, reason);
        return None;
    }
    Some(start_at)
}

/// Reads `delay_seconds`.
pub(crate) fn delay_seconds(phase: &Members<'_>) -> Option<f64> {
    let node = &phase.get("delay_seconds")?.value;
    let max = START_DELAY_MS_MAX / 1000;
    let number = node.scalar().and_then(Value::as_f64);
    let number = number.filter(|n| (0.0..=max as f64).contains(n));
    if number.is_none() {
        let expected = format!("a number of seconds from 0 to {max}");
        phase.wrong("delay_seconds", node, &expected, None);
    }
    number
}

/// What is accepted instead of a text that is no time; `forms` if it has another form.
fn expected(invalid: InvalidTime, forms: &'static str) -> &'static str {
    match invalid {
        InvalidTime::Form => forms,
        InvalidTime::Range | InvalidTime::LeapSecond => invalid.expected(),
    }
}

/// The value is not a time.
pub(crate) struct NoTime {
    /// What is accepted.
    pub(crate) expected: &'static str,
    /// What it is, shortened.
    pub(crate) found: String,
}

impl StartAt {
    /// The reference, as written; `None` for a time.
    pub(crate) fn reference(&self) -> Option<&str> {
        match self {
            Self::At(_) => None,
            Self::Value { reference, .. } => Some(reference),
        }
    }

    /// Whether it depends on what a run is started with.
    pub(crate) const fn is_of_trigger(&self) -> bool {
        match self {
            Self::At(_) => false,
            Self::Value { source, .. } => matches!(source, Source::Trigger { .. }),
        }
    }

    /// The time of a run; `None` when a reference has no value, or null.
    pub(crate) fn resolved(
        &self,
        trigger: &Map<String, Value>,
        initial_state: &Map<String, Value>,
    ) -> Result<Option<Timestamp>, NoTime> {
        let source = match self {
            Self::At(at) => return Ok(Some(*at)),
            Self::Value { source, .. } => source,
        };
        let value = match source {
            Source::Trigger { key, pointer } => found(trigger, key, pointer.as_deref()),
            Source::InitialState { key, pointer } => found(initial_state, key, pointer.as_deref()),
            Source::Phase { .. } => None,
        };
        let Some(value) = value else { return Ok(None) };
        let time = value.as_str().map(Timestamp::parse);
        let time = time.unwrap_or(Err(InvalidTime::Form));
        time.map(Some).map_err(|invalid| NoTime {
            expected: expected(invalid, TIME),
            found: short(&value.to_string()),
        })
    }
}

/// A number of seconds in JSON, as a whole number where it is one.
pub(crate) fn seconds(seconds: f64) -> Value {
    match seconds.fract() == 0.0 {
        true => Value::from(seconds as u64),
        false => Value::from(seconds),
    }
}
