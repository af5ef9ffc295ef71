//! Where in a message that stands which is run: turns paths of a call into paths of the message.

use taskledger_a2a::{Content, Fault, Part};
use taskledger_domain::PathSegment;

/// The header, or metadata of gRPC, that makes a repetition harmless.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The member of a request beside the message.
const CONFIGURATION: &str = "configuration";
/// The parts of a message.
const WHOLE: &str = "message.parts";
/// The inputs of a task, and the input that has the parts of a message.
const INPUTS: &str = "inputs";
const PARTS: &str = "parts";

/// Where in a message that stands which is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source(pub(super) Vec<Piece>);

/// Tasks of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) part: usize,
    pub(super) form: Form,
    /// Tasks of the call before those of this part.
    pub(super) first: usize,
    pub(super) tasks: usize,
}

/// How the data of a part names tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `{tasks: [..]}`.
    List,
    /// One task object.
    One,
    /// `{taskId}`.
    Stored,
    /// `{workflow, version, inputs}`.
    Workflow,
    /// The whole message, for the configured method.
    Whole,
    /// The answer to a question, whose value this part has.
    Answer,
}

impl Source {
    /// The whole message, which becomes one task of the configured method.
    pub(super) fn whole() -> Self {
        Self(vec![Piece {
            part: 0,
            form: Form::Whole,
            first: 0,
            tasks: 1,
        }])
    }

    /// The parts of a message that answers a question: the value is the first data, else the texts.
    pub(crate) fn of_answer(parts: &[Part]) -> Self {
        let is_data = |part: &Part| matches!(part.content, Content::Data(_));
        let data = parts.iter().position(is_data);
        let piece = data.map(|part| Piece {
            part,
            form: Form::Answer,
            first: 0,
            tasks: 0,
        });
        Self(piece.into_iter().collect())
    }

    /// Whether what is run may wait for a worker that has not come yet.
    pub(crate) fn waits_for_workers(&self) -> bool {
        let waits = |piece: &Piece| matches!(piece.form, Form::Workflow | Form::Whole);
        self.0.iter().any(waits)
    }

    /// A fault of the message for one of the call that it became. A member that the message does not have, an input of
    /// the configured method, is named in the words.
    pub(crate) fn fault(&self, path: &[PathSegment], description: String) -> Fault {
        let is_whole = self.0.iter().any(|piece| piece.form == Form::Whole);
        let (field, inputs) = (self.field(path), inputs_of(path));
        match inputs {
            Some(inputs) if is_whole && !inputs.is_empty() && field == WHOLE => Fault::new(
                field,
                format!("input `{}`: {description}", joined("", inputs)),
            ),
            Some(_) | None => Fault::new(field, description),
        }
    }

    /// The path of the message for a path of the call that it became.
    pub(crate) fn field(&self, path: &[PathSegment]) -> String {
        if let [PathSegment::Key(first), PathSegment::Key(second)] = path
            && (&**first, &**second) == ("metadata", "idempotency_key")
        {
            return IDEMPOTENCY_KEY.to_owned();
        }
        if let [PathSegment::Key(first), ..] = path
            && first == CONFIGURATION
        {
            return joined("", path);
        }
        if let [PathSegment::Key(only)] = path
            && only == "secret"
        {
            return format!("{CONFIGURATION}.taskPushNotificationConfig.authentication");
        }
        let (piece, rest) = match path {
            [PathSegment::Key(key), PathSegment::Index(i), rest @ ..] if key == "tasks" => {
                let of = |it: &&Piece| (it.first..it.first.saturating_add(it.tasks)).contains(i);
                match self.0.iter().find(of) {
                    Some(piece) => (piece, (Some(i - piece.first), rest)),
                    None => return of_answer(path),
                }
            }
            _ => match self.0.first() {
                Some(piece) => (piece, (None, path)),
                None => return of_answer(path),
            },
        };
        let data = format!("message.parts[{}].data", piece.part);
        match (piece.form, rest) {
            (Form::List, (Some(i), rest)) => joined(&format!("{data}.tasks[{i}]"), rest),
            (Form::One, (Some(_), rest)) => joined(&data, rest),
            (Form::Stored, _) => format!("{data}.taskId"),
            // Its tasks are not the caller's: what is wrong with them is wrong with the workflow.
            (Form::Workflow, (Some(_), _)) => format!("{data}.workflow"),
            (Form::Whole, (_, rest)) => of_inputs(rest),
            (Form::Answer, (_, [PathSegment::Key(key), rest @ ..])) if key == "value" => {
                joined(&data, rest)
            }
            (Form::Answer, _) => of_answer(path),
            (Form::List | Form::One | Form::Workflow, (None, rest)) => joined(&data, rest),
        }
    }
}

/// The path of a message that is the inputs of one task.
fn of_inputs(rest: &[PathSegment]) -> String {
    match rest {
        [
            PathSegment::Key(inputs),
            PathSegment::Key(parts),
            PathSegment::Index(part),
            rest @ ..,
        ] if inputs == INPUTS && parts == PARTS => joined(&format!("{WHOLE}[{part}]"), rest),
        _ => WHOLE.to_owned(),
    }
}

/// The path within the inputs of the first task of a call.
fn inputs_of(path: &[PathSegment]) -> Option<&[PathSegment]> {
    match path {
        [
            PathSegment::Key(tasks),
            PathSegment::Index(_),
            PathSegment::Key(inputs),
            rest @ ..,
        ] if tasks == "tasks" && inputs == INPUTS => Some(rest),
        _ => None,
    }
}

/// The path of a message that says something to a run.
fn of_answer(path: &[PathSegment]) -> String {
    match path.first() {
        Some(PathSegment::Key(key)) if key == "context_id" => "message.contextId".to_owned(),
        Some(PathSegment::Key(key)) if key == "message_id" => "message.messageId".to_owned(),
        Some(PathSegment::Key(key)) if key == "task_id" => "message.metadata.nodeId".to_owned(),
        Some(PathSegment::Key(key)) if key == "value" => "message.parts".to_owned(),
        Some(_) | None => joined("", path),
    }
}

fn joined(begin: &str, path: &[PathSegment]) -> String {
    let mut text = begin.to_owned();
    for segment in path {
        match segment {
            PathSegment::Key(key) if text.is_empty() => text.push_str(key),
            PathSegment::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            PathSegment::Index(i) => text.push_str(&format!("[{i}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(list: &[&str]) -> Vec<PathSegment> {
        let segments = list.iter().map(|it| match it.parse::<usize>() {
            Ok(index) => PathSegment::Index(index),
            Err(_) => PathSegment::from(*it),
        });
        segments.collect()
    }

    #[test]
    fn faults_of_the_inputs_of_the_configured_method_name_the_part_or_the_input() {
        let source = Source::whole();
        for (call, field, description) in [
            (
                &["tasks", "0", "inputs", "parts", "1", "data", "n"][..],
                "message.parts[1].data.n",
                "missing",
            ),
            (
                &["tasks", "0", "inputs", "amount"],
                "message.parts",
                "input `amount`: missing",
            ),
            (&["tasks", "0", "schemas"], "message.parts", "missing"),
        ] {
            let fault = source.fault(&path(call), "missing".to_owned());
            assert_eq!(fault, Fault::new(field, description), "{call:?}");
        }
    }

    #[test]
    fn faults_of_an_answer_name_the_member_of_its_data() {
        let parts = [Part::text("here"), Part::data(json!({"n": "x"}))];
        let source = Source::of_answer(&parts);
        for (call, field) in [
            (&["value", "n"][..], "message.parts[1].data.n"),
            (&["value"], "message.parts[1].data"),
            (&["context_id"], "message.contextId"),
            (&["task_id"], "message.metadata.nodeId"),
        ] {
            assert_eq!(source.field(&path(call)), field);
        }
        let in_words = Source::of_answer(&parts[..1]);
        assert_eq!(in_words.field(&path(&["value"])), "message.parts");
    }
}
