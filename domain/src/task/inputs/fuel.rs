//! The gauge that stops a schema from costing more than its size promises.
//!
//! `anyOf: [b, b]`, where `b` is again `anyOf: [c, c]`, doubles the work with each line of text.
//! So each subschema gets a keyword of ours ([`KEYWORD`]) that runs before the others and takes
//! fuel from the thread's tank; an empty tank unwinds out of the validator. Unwinding is the only
//! way out, since a validator cannot be interrupted; `resume_unwind` does not call the panic hook,
//! so nothing is printed. The same keyword watches how deep the stack has grown, because a cycle
//! of references may recurse without end.

use super::limits::CHECK_STACK_BYTES_MAX;
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The member that `rewrite` puts into each subschema. Its value is [`Price::to_value`].
pub(super) const KEYWORD: &str = "x-fuel";

/// Bytes of stack after which an error counts as one more: its paths grow with the depth at which it
/// was found. Measured, an error takes a few hundred bytes and about a twentieth of the stack below.
const STACK_BYTES_PER_ERROR: usize = 4096;

/// The tank is empty, or the stack too deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// What a check may use up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Steps of work, about 10 ns each.
    pub(super) steps: u64,
    /// Places at which an error may be left behind.
    pub(super) places: u64,
}

#[derive(Clone, Copy)]
struct Tank {
    left: Budget,
    stack_start: usize,
}

thread_local! {
    static TANK: Cell<Option<Tank>> = const { Cell::new(None) };
}

/// Runs `check` within `budget`, and tells the steps that it took.
///
/// [`Exhausted`]: the fuel did not last, or the validator itself panicked; both mean that this
/// schema cannot be used for this value.
pub(super) fn metered<T>(budget: Budget, check: impl FnOnce() -> T) -> (Result<T, Exhausted>, u64) {
    let outer = TANK.replace(Some(Tank {
        left: budget,
        stack_start: stack_address(),
    }));
    let outcome = catch_unwind(AssertUnwindSafe(check));
    let left = TANK.replace(outer).map_or(0, |tank| tank.left.steps);
    (outcome.map_err(|_| Exhausted), budget.steps - left)
}

/// Runs `build`, which spends no fuel.
///
/// # Errors
/// [`Exhausted`]: the compiler panicked.
pub(super) fn unmetered<T>(build: impl FnOnce() -> T) -> Result<T, Exhausted> {
    catch_unwind(AssertUnwindSafe(build)).map_err(|_| Exhausted)
}

/// Where the stack is now, for measuring distances. The address is never followed.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

fn spend(cost: Budget) {
    let Some(mut tank) = TANK.get() else {
        return;
    };
    let depth = tank.stack_start.abs_diff(stack_address());
    let error_size = 1 + (depth / STACK_BYTES_PER_ERROR) as u64;
    let steps = tank.left.steps.checked_sub(cost.steps);
    let places = tank
        .left
        .places
        .checked_sub(cost.places.saturating_mul(error_size));
    let (Some(steps), Some(places), true) = (steps, places, depth <= CHECK_STACK_BYTES_MAX) else {
        resume_unwind(Box::new(Exhausted));
    };
    tank.left = Budget { steps, places };
    TANK.set(Some(tank));
}

/// What one visit of a subschema costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Price {
    /// For its own members, whatever the value.
    pub(super) units: u64,
    /// Steps for each byte of a string: regular expressions and formats.
    pub(super) text: u64,
    /// Steps for each byte of a member's name: `patternProperties`.
    pub(super) names: u64,
    /// `uniqueItems`: looks at the whole value.
    pub(super) deep: bool,
}

impl Price {
    /// Steps for each value that `uniqueItems` looks at: values are hashed and compared.
    const STEPS_PER_UNIQUE_VALUE: u64 = 3;
    /// Bytes of a string that cost one step when nothing but its length is looked at.
    const STRING_BYTES_PER_STEP: u64 = 64;

    pub(super) fn to_value(self) -> Value {
        Value::from(vec![
            self.units,
            self.text,
            self.names,
            u64::from(self.deep),
        ])
    }

    fn from_value(value: &Value) -> Option<Self> {
        let number = |i: usize| value.get(i).and_then(Value::as_u64);
        Some(Self {
            units: number(0)?,
            text: number(1)?,
            names: number(2)?,
            deep: number(3)? != 0,
        })
    }

    fn for_instance(self, instance: &Value) -> Budget {
        let (steps, places) = match instance {
            Value::Null | Value::Bool(_) | Value::Number(_) => (0, 0),
            Value::String(text) => {
                let bytes = text.len() as u64;
                (bytes / Self::STRING_BYTES_PER_STEP + bytes * self.text, 0)
            }
            Value::Array(items) => {
                let values = || items.iter().map(nodes).sum::<u64>();
                let deep = self.deep.then(|| values() * Self::STEPS_PER_UNIQUE_VALUE);
                (deep.unwrap_or(0), items.len() as u64)
            }
            Value::Object(members) if self.names > 0 => {
                let bytes: usize = members.keys().map(String::len).sum();
                (bytes as u64 * self.names, members.len() as u64)
            }
            Value::Object(members) => (0, members.len() as u64),
        };
        let places = self.units + places;
        Budget {
            steps: steps + places,
            places,
        }
    }
}

/// How many values `value` consists of, long texts counting more. Recurses; inputs have at most
/// the depth that the parser lets through.
fn nodes(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() as u64 / Price::STRING_BYTES_PER_STEP,
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<u64>(),
    }
}

struct Gauge(Price);

impl<'i> Keyword<'i> for Gauge {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        spend(self.0.for_instance(instance));
        Ok(())
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        spend(self.0.for_instance(instance));
        true
    }
}

/// The factory of the keyword, for the compiler.
pub(super) fn gauge<'a>(
    _parent: &'a Map<String, Value>,
    value: &'a Value,
    _path: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Price::from_value(value)
        .map(|price| Box::new(Gauge(price)) as Box<dyn for<'i> Keyword<'i>>)
        .ok_or_else(|| ValidationError::schema("not a price"))
}
