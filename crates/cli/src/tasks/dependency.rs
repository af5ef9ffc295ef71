//! Dependencies as they are typed.

use serde_json::{Value, json};
use taskledger_domain::flow::When as Needs;

/// `ID`, `ID:optional` or `ID:always`, as a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dependency {
    id: String,
    when: Needs,
}

pub(super) fn dependency(text: &str) -> Result<Dependency, String> {
    const EXPECTED: &str = "expected ID, ID:optional, ID:always or ID:required";
    let (id, when) = match text.rsplit_once(':') {
        Some((id, "optional")) => (id, Needs::Ended),
        Some((id, "always")) => (id, Needs::Always),
        Some((id, "required")) => (id, Needs::Completed),
        Some(_) => return Err(EXPECTED.to_owned()),
        None => (text, Needs::Completed),
    };
    if id.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    Ok(Dependency {
        id: id.to_owned(),
        when,
    })
}

pub(super) fn dependencies(list: &[Dependency]) -> Value {
    list.iter()
        .map(|dependency| match dependency.when {
            Needs::Completed | Needs::Ended => {
                json!({"id": dependency.id, "required": dependency.when.is_required()})
            }
            Needs::Always => json!({"id": dependency.id, "when": "always"}),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_required_unless_it_says_otherwise() {
        for (text, when) in [
            ("x", Needs::Completed),
            ("x:required", Needs::Completed),
            ("x:optional", Needs::Ended),
            ("x:always", Needs::Always),
        ] {
            assert_eq!(dependency(text).unwrap().when, when, "{text}");
        }
        for bad in ["", ":optional", "x:maybe"] {
            assert!(dependency(bad).is_err(), "{bad}");
        }
    }
}
