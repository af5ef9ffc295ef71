//! `system.health`: how the server is.

use super::super::reader::Reader;
use serde_json::{Map, Value};
use taskledger_domain::Violation;

/// There is nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params;

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &[];

    /// Reads the parameters.
    ///
    /// # Errors
    /// A violation for every member.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        Reader::new(map).finish(|| Some(Self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_refused() {
        assert_eq!(Params::read(&Map::new()), Ok(Params));
        assert_eq!(
            faults(Params::read(&map(json!({"x": 1})))),
            [("x".into(), "unknown parameter".into())]
        );
    }
}
