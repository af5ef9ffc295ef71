//! `system.drain`.

use super::super::reader::{BOOLEAN, Parameters, Reader};
use taskledger_domain::Violation;

/// Whether to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Whether nothing begins any more; `false`: it does again.
    pub drain: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let about = "`true`: drain the server; `false`: let it start new attempts again.";
        let drain = reader.with_default("drain", BOOLEAN, true, about);
        reader.finish(|| Some(Self { drain }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_is_drained_unless_it_is_said_otherwise() {
        assert!(Params::read(&map(json!({}))).unwrap().drain);
        assert!(!Params::read(&map(json!({"drain": false}))).unwrap().drain);
        assert_eq!(
            faults(Params::read(&map(json!({"drain": "no"})))),
            [("drain".into(), "not a boolean".into())]
        );
    }
}
