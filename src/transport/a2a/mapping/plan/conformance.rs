//! Messages of the official conformance kit, whose first words say what is to happen.

use super::super::super::names::INPUT_MODES;
use super::{Plan, unless_taken};
use serde_json::{Map, Value, json};
use taskledger_a2a::{Error, Message, Part};

/// What messages of the kit have as the beginning of their id.
const PREFIXES: [&str; 2] = ["tck-", "test-resubscribe-"];
/// Messages that are answered directly.
const DIRECT: &str = "tck-message-response";
const DIRECT_TEXT: &str = "Direct message response";

/// What is said to the executor: the id and the text of a message of the kit, of others the text.
pub(crate) fn said(message: &Message) -> String {
    let text = Part::texts_of(&message.parts).unwrap_or_default();
    let id = &message.message_id;
    match PREFIXES.iter().any(|prefix| id.starts_with(prefix)) {
        true => format!("{id}\n{text}"),
        false => text,
    }
}

/// What a message is to run: what it names, as without the kit, else the executor of the kit. `takes_all`: media types
/// are not looked at.
///
/// # Errors
/// As [`super::plan`].
pub(crate) fn plan(
    message: &Message,
    metadata: Option<&Map<String, Value>>,
    method: &str,
    takes_all: bool,
) -> Result<Plan, Error> {
    if let Err(error) = unless_taken(&message.parts, &INPUT_MODES) {
        if !takes_all {
            return Err(error);
        }
    } else {
        match super::plan(message, metadata, None)? {
            Plan::Nothing => {}
            named @ (Plan::Run { .. } | Plan::Workflow { .. } | Plan::Direct(_)) => {
                return Ok(named);
            }
        }
    }
    let said = said(message);
    if said.starts_with(DIRECT) {
        return Ok(Plan::Direct(DIRECT_TEXT));
    }
    super::of_method(method, json!({"said": said}))
}

#[cfg(test)]
mod tests {
    use super::super::tests::message;
    use super::{Plan, plan, said};
    use serde_json::json;
    use taskledger_a2a::{ErrorKind, Part};

    #[test]
    fn ids_of_the_kit_come_before_texts_and_tasks_before_both() {
        let mut text = message(vec![Part::text("tck-task-failure")]);
        assert_eq!(said(&text), "tck-task-failure");
        text.message_id = "tck-complete-task-1".to_owned();
        assert_eq!(said(&text), "tck-complete-task-1\ntck-task-failure");
        let planned = |message| plan(&message, None, "kit", false);
        assert!(matches!(planned(text.clone()), Ok(Plan::Run { .. })));
        text.message_id = "tck-message-response-1".to_owned();
        assert!(matches!(planned(text.clone()), Ok(Plan::Direct(_))));
        text.parts
            .push(Part::data(json!({"tasks": [{"name": "a"}]})));
        assert!(matches!(planned(text), Ok(Plan::Run { .. })));
    }

    #[test]
    fn media_types_are_looked_at_unless_all_are_taken() {
        let odd = Part {
            media_type: Some("application/x-odd".to_owned()),
            ..Part::text("hello")
        };
        let odd = message(vec![odd]);
        let refused = plan(&odd, None, "kit", false).err().expect("refused");
        assert_eq!(refused.kind, ErrorKind::ContentTypeNotSupported);
        assert!(plan(&odd, None, "kit", true).is_ok());
    }
}
