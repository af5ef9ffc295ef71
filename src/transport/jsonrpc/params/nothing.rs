//! Methods that take no parameters.

use super::super::reader::{Parameters, Reader};
use taskledger_domain::Violation;

/// There is nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params;

impl Parameters for Params {
    fn ask(reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        reader.finish(|| Some(Self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults, map};
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn parameters_are_refused() {
        assert_eq!(Params::read(&Map::new()), Ok(Params));
        assert_eq!(
            faults(Params::read(&map(json!({"x": 1})))),
            [("x".into(), "unknown parameter".into())]
        );
    }
}
