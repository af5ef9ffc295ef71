//! Labels on the command line: `KEY=VALUE`.

use super::CliError;
use serde_json::{Map, Value};
use taskledger_domain::task::{Labels, Selector};

/// What tasks must be labelled with; `KEY` alone stands for any value. `None`: nothing was given.
///
/// # Errors
/// One of them is no label.
pub(super) fn selector(terms: &[String]) -> Result<Option<Value>, CliError> {
    if terms.is_empty() {
        return Ok(None);
    }
    let mut selector = Selector::default();
    for term in terms {
        selector.add(term).map_err(|fault| {
            let (reason, expected) = (fault.reason, fault.expected);
            CliError::Usage(format!("--label {term}: {reason}; expected {expected}"))
        })?;
    }
    let value = serde_json::to_value(&selector);
    Ok(Some(value.expect("texts can always be written as JSON")))
}

/// The labels of a task.
///
/// # Errors
/// One of them is no label, or a key is given twice.
pub(super) fn labels(given: &[String]) -> Result<Option<Value>, CliError> {
    if given.is_empty() {
        return Ok(None);
    }
    let mut map = Map::new();
    for label in given {
        let usage = |why: &str| Err(CliError::Usage(format!("--label {label}: {why}")));
        let Some((key, value)) = label.split_once('=') else {
            return usage("expected KEY=VALUE");
        };
        if map.insert(key.to_owned(), value.into()).is_some() {
            return usage("the key is given twice");
        }
    }
    let value = Value::Object(map);
    match Labels::parse(&value) {
        Ok(_) => Ok(Some(value)),
        Err(faults) => {
            let told = faults.into_iter().map(|fault| {
                let key = fault.key.unwrap_or_default();
                format!(
                    "--label {key}: {}; expected {}",
                    fault.reason, fault.expected
                )
            });
            Err(CliError::Usage(told.collect::<Vec<_>>().join("\n")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn labels_are_keys_with_values() {
        let read = |texts: &[&str]| labels(&given(texts)).ok();
        assert_eq!(read(&[]), Some(None));
        let both = json!({"team": "data", "note": "a=b, c"});
        assert_eq!(read(&["team=data", "note=a=b, c"]), Some(Some(both)));
        for bad in [&["team"][..], &["-=x"], &["a=1", "a=2"]] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_key_alone_stands_for_any_value() {
        let read = |texts: &[&str]| selector(&given(texts)).ok();
        assert_eq!(read(&[]), Some(None));
        let both = json!({"team": "data", "stage": null});
        assert_eq!(read(&["team=data", "stage"]), Some(Some(both)));
        assert_eq!(read(&["=x"]), None);
    }
}
