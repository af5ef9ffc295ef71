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

/// The tank is empty, or the stack too deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

#[derive(Clone, Copy)]
struct Tank {
    units: u64,
    stack_start: usize,
}

thread_local! {
    static TANK: Cell<Option<Tank>> = const { Cell::new(None) };
}

/// Runs `check` with `units` of fuel.
///
/// # Errors
/// [`Exhausted`]: the fuel did not last, or the validator itself panicked; both mean that this
/// schema cannot be used for this value.
pub(super) fn metered<T>(units: u64, check: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let outer = TANK.replace(Some(Tank {
        units,
        stack_start: stack_address(),
    }));
    let outcome = catch_unwind(AssertUnwindSafe(check));
    TANK.set(outer);
    outcome.map_err(|_| Exhausted)
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

fn spend(units: u64) {
    let Some(mut tank) = TANK.get() else {
        return;
    };
    let deep = tank.stack_start.abs_diff(stack_address()) > CHECK_STACK_BYTES_MAX;
    if units > tank.units || deep {
        resume_unwind(Box::new(Exhausted));
    }
    tank.units -= units;
    TANK.set(Some(tank));
}

/// What one visit of a subschema costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Price {
    /// For its own members, whatever the value.
    pub(super) units: u64,
    /// Regular expressions and formats that read a string to its end.
    pub(super) readers: u64,
    /// Regular expressions that read each member's name.
    pub(super) name_readers: u64,
    /// `uniqueItems`: looks at the whole value.
    pub(super) deep: bool,
}

impl Price {
    /// Bytes of a string that cost one unit when nothing but its length is looked at.
    const STRING_BYTES_PER_UNIT: u64 = 64;

    pub(super) fn to_value(self) -> Value {
        Value::from(vec![
            self.units,
            self.readers,
            self.name_readers,
            u64::from(self.deep),
        ])
    }

    fn from_value(value: &Value) -> Option<Self> {
        let number = |i: usize| value.get(i).and_then(Value::as_u64);
        Some(Self {
            units: number(0)?,
            readers: number(1)?,
            name_readers: number(2)?,
            deep: number(3)? != 0,
        })
    }

    fn for_instance(self, instance: &Value) -> u64 {
        let size = match instance {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => {
                let bytes = text.len() as u64;
                bytes / Self::STRING_BYTES_PER_UNIT + bytes * self.readers
            }
            Value::Array(items) if self.deep => {
                items.len() as u64 + items.iter().map(nodes).sum::<u64>()
            }
            Value::Array(items) => items.len() as u64,
            Value::Object(members) if self.name_readers > 0 => members
                .keys()
                .map(|name| 1 + name.len() as u64 * self.name_readers)
                .sum(),
            Value::Object(members) => members.len() as u64,
        };
        self.units + size
    }
}

/// How many values `value` consists of, long texts counting more. Recurses; inputs have at most
/// the depth that the parser lets through.
fn nodes(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() as u64 / Price::STRING_BYTES_PER_UNIT,
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
