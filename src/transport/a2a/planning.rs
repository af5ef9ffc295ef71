//! Decides, by the settings of the door, what a message runs, and what is answered when it runs nothing.

use super::mapping::plan::{self, Plan};
use super::{A2a, INPUT_MODES, TASKS};
use serde_json::{Map, Value};
use taskledger_a2a::{Edition, Error, Message, Part, Role};

impl A2a {
    /// What a message is to run.
    ///
    /// # Errors
    /// As [`plan::plan`].
    pub(super) fn plan(
        &self,
        message: &Message,
        metadata: Option<&Map<String, Value>>,
    ) -> Result<Plan, Error> {
        match self.options.conformance.as_deref() {
            Some(method) => {
                let takes_all = self.edition() == Edition::V1_0_0;
                plan::conformance::plan(message, metadata, method, takes_all)
            }
            None => plan::plan(message, metadata, self.options.text.as_ref()),
        }
    }

    /// What is said to a message that says nothing that could be run.
    pub(super) fn nothing(&self, message: Message) -> Message {
        let text = format!(
            "This agent runs tasks. Send a part with `data`: {{\"tasks\": [..]}}, one task, or \
             {{\"taskId\": ..}} of a stored one (skill `{TASKS}`), or {{\"workflow\": .., \"inputs\": ..}} of a \
             saved workflow. Parts are {}.",
            INPUT_MODES.join(" or ")
        );
        self.direct(message, text)
    }

    /// A message in place of a task.
    pub(super) fn direct(&self, message: Message, text: String) -> Message {
        let fresh = || self.clock.uuid().to_string();
        Message {
            message_id: fresh(),
            context_id: Some(message.context_id.unwrap_or_else(fresh)),
            task_id: None,
            role: Role::Agent,
            parts: vec![Part::text(text)],
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// What a message says in answer to a question, beside its data.
    pub(super) fn text_of(&self, message: &Message) -> Option<String> {
        match self.options.conformance {
            Some(_) => Some(plan::conformance::said(message)),
            None => Part::texts_of(&message.parts),
        }
    }
}
