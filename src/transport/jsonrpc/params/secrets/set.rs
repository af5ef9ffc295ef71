//! `secrets.set`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{NameOfSecret, ValueOfSecret, owner};
use crate::application::api::Secret;
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_domain::Violation;

/// The secret to be set. `Debug` does not show its value.
#[derive(Debug, Clone)]
pub struct Params {
    /// Its name.
    pub name: SecretName,
    /// Its value.
    pub value: Secret,
    /// Whose, if that was said.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        reader.hide_unknown();
        let name = reader.required(
            "name",
            NameOfSecret,
            "What tasks call it: `{\"$secret\": \"name\"}`.",
        );
        let value = reader.required(
            "value",
            ValueOfSecret,
            "At most 8192 bytes. Never shown again, and removed from what attempts say.",
        );
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                name: name?,
                value: value?,
                owner,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_is_read_and_the_value_not_shown() {
        let given = json!({"name": "a", "value": "hunter2-hunter2", "owner": "ann"});
        let read = Params::read(&map(given)).unwrap();
        assert_eq!(&*read.value.0, "hunter2-hunter2");
        assert_eq!(read.owner.as_deref(), Some("ann"));
        assert!(!format!("{read:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_wrong_shows_no_value() {
        for given in [
            json!({"name": "a", "value": "hunter2"}),
            json!({"name": "a", "value": "hunter2\0hunter2"}),
            json!({"name": "a", "value": ["hunter2"]}),
            json!({"name": "a", "value": "hunter2-hunter2", "valeu": "hunter2-hunter2"}),
            json!({"name": "a b", "value": "hunter2-hunter2"}),
            json!({"name": "a", "value": "hunter2".repeat(2_000)}),
        ] {
            let refused = Params::read(&map(given)).unwrap_err();
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
        }
        let fields = faults(Params::read(&map(json!({}))));
        assert_eq!(fields.len(), 2);
    }
}
