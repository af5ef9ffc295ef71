//! Turns a message into the answer to a question: its text or its data, in the form that the question expects. Whether
//! that is an answer is checked like any other.

use serde_json::{Map, Value};
use taskledger_domain::question::Expected;

/// The value that a message gives. Data comes before text; a text is read as what is expected, if it can be.
pub(super) fn value(expected: &Expected, text: Option<&str>, data: Option<&Value>) -> Value {
    let said = || text.map(str::trim).unwrap_or_default();
    match expected {
        Expected::Text => match (text, data) {
            (Some(text), _) => text.into(),
            (None, data) => data.cloned().unwrap_or_default(),
        },
        Expected::Confirm => match data {
            Some(data) => unwrapped(data).clone(),
            None => match said().to_lowercase().as_str() {
                "yes" | "y" | "true" | "ok" => true.into(),
                "no" | "n" | "false" => false.into(),
                _ => said().into(),
            },
        },
        Expected::Choice(choices) => {
            if let Some(data) = data {
                let is_one = choices.iter().any(|choice| choice.value == *data);
                return if is_one {
                    data.clone()
                } else {
                    unwrapped(data).clone()
                };
            }
            let means = |value: &Value, label: Option<&str>| {
                let is = |name: &str| name.eq_ignore_ascii_case(said());
                label.is_some_and(is)
                    || match value {
                        Value::String(text) => is(text),
                        Value::Bool(_) | Value::Number(_) => is(&value.to_string()),
                        Value::Null | Value::Array(_) | Value::Object(_) => false,
                    }
            };
            // As it is written comes before what reads alike.
            let exact = choices.iter().find(|choice| choice.value == *said());
            let alike = || {
                let mut all = choices.iter();
                all.find(|choice| means(&choice.value, choice.label.as_deref()))
            };
            let chosen = exact.or_else(alike);
            chosen.map_or_else(|| said().into(), |choice| choice.value.clone())
        }
        Expected::Form(_) => match data {
            Some(data) => data.clone(),
            None => serde_json::from_str(said()).unwrap_or_else(|_| said().into()),
        },
    }
}

/// The value of a message to a task that waits for credentials: that they are there. Of what the message says nothing
/// is left that was not said by the question, because answers are recorded: a no, or which of its choices.
pub(super) fn of_credentials(expected: &Expected, said: Value) -> Value {
    match expected {
        Expected::Text => "true".into(),
        Expected::Confirm => (said != Value::Bool(false)).into(),
        Expected::Choice(choices) => {
            let is_one = choices.iter().any(|choice| choice.value == said);
            if is_one { said } else { true.into() }
        }
        Expected::Form(_) => Value::Object(Map::new()),
    }
}

/// What an object says that holds nothing but `value`.
fn unwrapped(data: &Value) -> &Value {
    match data.as_object() {
        Some(members) if members.len() == 1 => members.get("value").unwrap_or(data),
        Some(_) | None => data,
    }
}

#[cfg(test)]
mod tests {
    use super::{of_credentials, value};
    use serde_json::{Value, json};
    use taskledger_domain::Payload;
    use taskledger_domain::question::Expected;

    fn expected(question: Value) -> Expected {
        let stored = Payload::parse(&question.to_string()).expect("an object");
        Expected::of(&stored).expect("a question")
    }

    #[test]
    fn a_text_is_read_as_what_is_expected() {
        let text = expected(json!({"question": "?"}));
        assert_eq!(value(&text, Some("yes "), None), json!("yes "));
        let confirm = expected(json!({"question": "?", "response_type": "confirm"}));
        for (said, meant) in [
            (" Yes", json!(true)),
            ("NO", json!(false)),
            ("true", json!(true)),
            ("perhaps", json!("perhaps")),
        ] {
            assert_eq!(value(&confirm, Some(said), None), meant, "{said}");
        }
        let choice = expected(
            json!({"question": "?", "response_type": "choice", "choices":
            [{"value": "a"}, {"value": "A"}, {"value": 7, "label": "Seven"}, {"value": {"x": 1}}]}),
        );
        for (said, meant) in [
            ("A", json!("A")),
            ("a", json!("a")),
            ("seven", json!(7)),
            ("7", json!(7)),
            ("b", json!("b")),
        ] {
            assert_eq!(value(&choice, Some(said), None), meant, "{said}");
        }
        let form =
            expected(json!({"question": "?", "response_type": "form", "fields": {"n": "integer"}}));
        assert_eq!(value(&form, Some(r#" {"n": 1}"#), None), json!({"n": 1}));
        assert_eq!(value(&form, Some("n is 1"), None), json!("n is 1"));
    }

    #[test]
    fn nothing_that_may_be_a_secret_is_the_answer_to_a_question_for_credentials() {
        let form = expected(
            json!({"question": "?", "response_type": "form", "fields": {"key": "string"}}),
        );
        let confirm = expected(json!({"question": "?", "response_type": "confirm"}));
        let text = expected(json!({"question": "?"}));
        assert_eq!(of_credentials(&text, json!("s3cret")), json!("true"));
        assert_eq!(of_credentials(&confirm, json!("s3cret")), json!(true));
        assert_eq!(of_credentials(&confirm, json!(false)), json!(false));
        assert_eq!(of_credentials(&form, json!({"key": "s3cret"})), json!({}));
    }

    #[test]
    fn data_is_taken_as_it_is_or_as_its_value() {
        let confirm = expected(json!({"question": "?", "response_type": "confirm"}));
        assert_eq!(value(&confirm, Some("no"), Some(&json!(true))), json!(true));
        assert_eq!(
            value(&confirm, None, Some(&json!({"value": false}))),
            json!(false)
        );
        let choice = expected(json!({"question": "?", "response_type": "choice",
            "choices": [{"value": {"value": 1}}, {"value": 1}]}));
        assert_eq!(
            value(&choice, None, Some(&json!({"value": 1}))),
            json!({"value": 1})
        );
        assert_eq!(value(&choice, None, Some(&json!({"value": 2}))), json!(2));
        let form = expected(
            json!({"question": "?", "response_type": "form", "fields": {"value": "integer"}}),
        );
        assert_eq!(
            value(&form, None, Some(&json!({"value": 1}))),
            json!({"value": 1})
        );
        assert_eq!(value(&confirm, None, None), json!(""));
    }
}
