//! `workers.declare`.

use super::super::super::reader::{Parameters, Reader, integer, text};
use super::super::work::kinds::{NewName, Object};
use super::kinds::Defaults;
use crate::application::api::work::Declare;
use std::sync::Arc;
use taskledger_domain::Violation;
use taskledger_workers::{DESCRIPTION_CHARS_MAX, LIMIT_MAX};

/// The method to be declared.
#[derive(Debug, Clone)]
pub struct Params(pub Declare);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let method = reader.required(
            "method",
            NewName,
            "The method; tasks name it in `schemas.method`. No built-in one.",
        );
        let description =
            reader.optional("description", text(DESCRIPTION_CHARS_MAX), "For people.");
        let input_schema = reader.optional(
            "input_schema",
            Object,
            "A JSON Schema (draft-07) for the inputs of its tasks.",
        );
        let output_schema = reader.optional(
            "output_schema",
            Object,
            "A JSON Schema (draft-07) for what its workers return.",
        );
        let defaults = reader.optional(
            "defaults",
            Defaults,
            "Members of `params` for new tasks of the method that do not have them.",
        );
        let limit = reader.optional(
            "limit",
            integer(1..=u64::from(LIMIT_MAX)),
            "Attempts at once, over all workers and nodes; without it as many as workers claim.",
        );
        reader.finish(|| {
            Some(Self(Declare {
                method: method?,
                description: description.map(Arc::from),
                input_schema,
                output_schema,
                defaults,
                limit: limit.and_then(|limit| u32::try_from(limit).ok()),
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_is_read() {
        let given = json!({"method": "pdf", "description": "Prints.", "input_schema": {"type": "object"},
            "output_schema": {}, "defaults": {"timeout_seconds": 5, "retry_count": 2}, "limit": 3});
        let Params(read) = Params::read(&map(given)).unwrap();
        assert_eq!(&*read.method, "pdf");
        assert_eq!(read.limit, Some(3));
        let defaults = read.defaults.unwrap();
        assert_eq!(
            defaults.as_str(),
            r#"{"retry_count":2,"timeout_seconds":5}"#
        );
    }

    #[test]
    fn every_fault_is_named() {
        let given = json!({"method": "", "description": "", "input_schema": true, "output_schema": 1,
            "defaults": {"deadline": "2030-01-01T00:00:00Z", "timeout_seconds": -1}, "limit": 0});
        let fields: Vec<_> = faults(Params::read(&map(given)))
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        let expected = [
            "method",
            "description",
            "input_schema",
            "output_schema",
            "deadline",
            "timeout_seconds",
            "limit",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn faults_of_defaults_stand_where_the_call_has_them() {
        let given = json!({"method": "pdf", "defaults": {"retry": {"max_attempts": 0}}});
        let found = Params::read(&map(given)).unwrap_err();
        let path = serde_json::to_value(&found[0].path).unwrap();
        assert_eq!(path, json!(["defaults", "retry", "max_attempts"]));
    }
}
