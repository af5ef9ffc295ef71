//! Decides what a message runs: tasks in its data, a stored task, the configured method, or nothing.

pub(crate) mod conformance;
mod source;
mod tasks;
mod workflows;

pub(crate) use source::Source;
pub(crate) use workflows::unfit;

use super::super::names::{INPUT_MODES, TASKS, WORKFLOW_SKILL};
use super::super::options::TextSkill;
use super::modes;
use crate::application::api::Target;
use crate::application::api::workflows::RunWorkflow;
use serde_json::{Map, Value, json};
use taskledger_a2a::{Content, Error, ErrorKind, Fault, Faults, Message, Part, Wire};
use taskledger_domain::Violation;
use taskledger_domain::task::call;

/// Members of metadata that name a skill.
const SKILL: [&str; 3] = ["skillId", "skill_id", "skill"];

/// What a message is to run.
pub(crate) enum Plan {
    /// Tasks.
    Run {
        /// Which.
        target: Target,
        /// Where in the message they stand.
        source: Source,
    },
    /// A run of a workflow that is kept.
    Workflow {
        /// Which.
        run: RunWorkflow,
        /// Where in the message it stands.
        source: Source,
    },
    /// Nothing: it is answered with this text.
    Direct(&'static str),
    /// Nothing: it says nothing that could be run.
    Nothing,
}

/// How sure it must be that data names something to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The message can mean nothing else: data that is almost tasks is refused with its faults.
    Generous,
    /// The configured method takes any data: what is not tasks beyond doubt is for it.
    Strict,
}

/// What a message is to run. `text`: the skill for messages without tasks, if the operator has configured one.
///
/// # Errors
/// `ContentTypeNotSupported` for a part that the skill does not take, `InvalidParams` for an unknown skill and for
/// tasks that are none.
pub(crate) fn plan(
    message: &Message,
    metadata: Option<&Map<String, Value>>,
    text: Option<&TextSkill>,
) -> Result<Plan, Error> {
    let parts = &message.parts;
    let skill = skill(message, metadata)?;
    match (skill.as_deref(), text) {
        (Some(name), Some(text)) if name == &*text.method => whole(parts, text),
        (None, Some(text)) if text.alone => whole(parts, text),
        (Some(TASKS), text) if !is_alone(text) => {
            unless_taken(parts, &INPUT_MODES)?;
            let named = workflows::named(parts, Reading::Generous)?;
            let plan = match named {
                Some(plan) => Some(plan),
                None => tasks::named(parts, Reading::Generous)?,
            };
            plan.ok_or_else(|| {
                let reason = "no part has data with `tasks`, a task, `taskId` or `workflow`, which the skill \
                              `tasks.execute` takes";
                Error::invalid_member("message.parts", reason)
            })
        }
        (Some(other), text) => match other.strip_prefix(WORKFLOW_SKILL) {
            Some(name) if !is_alone(text) => {
                unless_taken(parts, &INPUT_MODES)?;
                workflows::of_skill(parts, name)
            }
            Some(_) | None => Err(unknown_skill(other, text)),
        },
        (None, text) => {
            let reading = match text {
                Some(_) => Reading::Strict,
                None => {
                    unless_taken(parts, &INPUT_MODES)?;
                    Reading::Generous
                }
            };
            let named = workflows::named(parts, reading)?;
            let named = match named {
                Some(plan) => Some(plan),
                None => tasks::named(parts, reading)?,
            };
            match (named, text) {
                (Some(plan), _) => {
                    unless_taken(parts, &INPUT_MODES)?;
                    Ok(plan)
                }
                (None, Some(text)) => whole(parts, text),
                (None, None) => Ok(Plan::Nothing),
            }
        }
    }
}

/// Whether the skill for messages without tasks is the only one.
fn is_alone(text: Option<&TextSkill>) -> bool {
    text.is_some_and(|it| it.alone)
}

fn unknown_skill(given: &str, text: Option<&TextSkill>) -> Error {
    let method = text.map(|it| format!("`{}`", it.method));
    let known = match (is_alone(text), method) {
        (true, Some(method)) => method,
        (false, Some(method)) => format!("one of `{TASKS}` and {method}"),
        (_, None) => format!("`{TASKS}`"),
    };
    let given: String = given.chars().take(64).collect();
    let reason = format!("`{given}` is not a skill of this agent, expected {known}");
    Error::invalid_member("message.metadata.skillId", reason)
}

fn unless_taken<M: AsRef<str>>(parts: &[Part], modes: &[M]) -> Result<(), Error> {
    for (i, part) in parts.iter().enumerate() {
        let given = part.media_type().unwrap_or("application/octet-stream");
        let essence = modes::essence(given);
        if !modes
            .iter()
            .any(|mode| modes::matches(mode.as_ref(), &essence))
        {
            let modes: Vec<_> = modes.iter().map(AsRef::as_ref).collect();
            let given: String = given.chars().take(64).collect();
            let reason = format!("`{given}` is not taken, expected {}", modes.join(" or "));
            let field = format!("message.parts[{i}].mediaType");
            let message = format!("{field}: {reason}");
            let error = Error {
                faults: Fault::new(field, reason).into(),
                ..Error::new(ErrorKind::ContentTypeNotSupported, message)
            };
            return Err(error.with("part", i.to_string()));
        }
    }
    Ok(())
}

fn skill(
    message: &Message,
    metadata: Option<&Map<String, Value>>,
) -> Result<Option<String>, Error> {
    let of_message = message.metadata.as_ref().map(|it| ("message.metadata", it));
    let of_request = metadata.map(|it| ("metadata", it));
    for (path, map) in [of_message, of_request].into_iter().flatten() {
        for name in SKILL {
            match map.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(skill)) => return Ok(Some(skill.clone())),
                Some(_) => {
                    let field = format!("{path}.{name}");
                    return Err(Error::invalid_member(
                        field,
                        "the name of a skill is required",
                    ));
                }
            }
        }
    }
    Ok(None)
}

fn read(list: Value, source: Source) -> Result<Plan, Error> {
    match call::read_tasks(&list) {
        Ok(tasks) => Ok(Plan::Run {
            target: Target::New(tasks),
            source,
        }),
        Err(violations) => Err(Error::invalid(faults(&violations, &source))),
    }
}

fn faults(violations: &[Violation], source: &Source) -> Faults {
    let mut faults = Faults::default();
    for violation in violations {
        let description = format!("{}, expected {}", violation.reason, violation.expected);
        faults.note(source.fault(&violation.path, description));
    }
    faults
}

/// One task of a method, which the whole message has asked for.
fn of_method(method: &str, inputs: Value) -> Result<Plan, Error> {
    let task = json!({"name": method, "schemas": {"method": method}, "inputs": inputs});
    read(Value::Array(vec![task]), Source::whole())
}

/// One task of the configured method, whose inputs are the message.
fn whole(parts: &[Part], skill: &TextSkill) -> Result<Plan, Error> {
    unless_taken(parts, &skill.input_modes)?;
    let mut inputs = json!({"text": Part::texts_of(parts).unwrap_or_default()});
    let is_text = |part: &Part| matches!(part.content, Content::Text(_));
    if !parts.iter().all(is_text) {
        inputs["parts"] = parts.iter().map(Wire::to_json).collect();
    }
    of_method(&skill.method, inputs)
}

/// Clients that build data from `double`s send 2.0 for 2: they mean the integer.
fn with_whole_numbers(value: Value) -> Value {
    /// Beyond it a `double` does not tell whole numbers apart.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() <= WHOLE_MAX {
                // Exact: it is whole and small enough.
                #[allow(clippy::cast_possible_truncation)]
                return Value::from(float as i64);
            }
            Value::Number(number)
        }
        Value::Array(list) => list.into_iter().map(with_whole_numbers).collect(),
        Value::Object(map) => {
            let members = map.into_iter();
            let members = members.map(|(name, value)| (name, with_whole_numbers(value)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_a2a::Role;
    use taskledger_domain::PathSegment;

    pub(super) fn message(parts: Vec<Part>) -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts,
            metadata: None,
            extensions: vec![],
            reference_task_ids: vec![],
        }
    }

    fn planned(parts: Vec<Part>, text: Option<&TextSkill>) -> Result<Plan, Error> {
        plan(&message(parts), None, text)
    }

    fn text_skill() -> TextSkill {
        TextSkill::new("talk")
    }

    /// The inputs of the only task of a run of the configured method; `None`: it is another run.
    fn inputs(plan: Plan) -> Option<Value> {
        let Plan::Run { target, source } = plan else {
            return None;
        };
        let Target::New(tasks) = target else {
            return None;
        };
        let (_, specification) = tasks.specifications().next()?;
        let inputs = Value::Object(specification.inputs.to_map());
        (source == Source::whole()).then_some(inputs)
    }

    fn task(name: &str) -> Value {
        json!({"name": name})
    }

    #[test]
    fn tasks_of_several_parts_are_one_call_and_faults_name_their_part() {
        let parts = vec![
            Part::text("please"),
            Part::data(json!({"tasks": [task("a")]})),
            Part::data(json!({"name": "b", "priority": 9.0})),
            Part::data(json!({"tasks": [task("c"), {"name": 7}]})),
        ];
        // Faults of single tasks go along, and are told together with those that only the rules find.
        let Ok(Plan::Run { source, .. }) = planned(parts, None) else {
            panic!("the parts name tasks");
        };
        let field = |task, member: &str| {
            let key = |name: &str| PathSegment::from(name);
            source.field(&[key("tasks"), PathSegment::Index(task), key(member)])
        };
        let fields = [field(1, "priority"), field(3, "name")];
        assert_eq!(
            fields,
            [
                "message.parts[2].data.priority",
                "message.parts[3].data.tasks[1].name"
            ]
        );
    }

    #[test]
    fn doubles_that_are_whole_are_integers() {
        let parts = vec![Part::data(json!({"name": "b", "priority": 1.0}))];
        assert!(matches!(planned(parts, None), Ok(Plan::Run { .. })));
    }

    #[test]
    fn what_is_no_task_goes_to_the_configured_method_or_nowhere() {
        let parts = || vec![Part::text("hello"), Part::data(json!({"a": 1}))];
        assert!(matches!(planned(parts(), None), Ok(Plan::Nothing)));
        let plan = planned(parts(), Some(&text_skill()));
        let inputs = plan.ok().and_then(inputs).expect("the method runs");
        let expected = json!({"text": "hello", "parts": [{"text": "hello"}, {"data": {"a": 1}}]});
        assert_eq!(inputs, expected);
    }

    #[test]
    fn data_that_is_no_task_beyond_doubt_is_for_the_configured_method() {
        let stored = "00000000-0000-4000-8000-000000000000";
        for (data, is_task) in [
            (json!({"name": "bob"}), false),
            (json!({"name": "bob", "priority": 1}), false),
            (json!({"tasks": ["buy milk"]}), false),
            (json!({"tasks": [{"name": "wash"}]}), false),
            (json!({"tasks": 1}), false),
            (json!({"tasks": []}), false),
            (json!({"taskId": "T-17"}), false),
            (json!({"taskId": stored, "comment": "late"}), false),
            (json!({"template": "formal", "to": "bob"}), false),
            (json!({"workflow": 7}), false),
            (json!(["name"]), false),
            (json!({"name": "a", "schemas": {"method": "m"}}), true),
            (json!({"name": "a", "children": []}), true),
            (
                json!({"tasks": [{"name": "g"}, {"name": "a", "schemas": {"method": "m"}}]}),
                true,
            ),
            (
                json!({"tasks": [{"task": {"name": "a", "schemas": {}}, "children": []}]}),
                true,
            ),
            (json!({"taskId": stored}), true),
            (json!({"template": "report", "inputs": {"to": "bob"}}), true),
        ] {
            let parts = vec![Part::text("hello"), Part::data(data.clone())];
            let plan = planned(parts.clone(), Some(&text_skill()));
            // A task may still have faults, which its paths name.
            let of_method = plan.ok().and_then(inputs);
            assert_eq!(of_method.is_none(), is_task, "{data}");
            if let Some(inputs) = of_method {
                assert_eq!(inputs["text"], "hello", "{data}");
                assert_eq!(inputs["parts"][1]["data"], data);
            }
            // The skill says what is meant.
            let mut named = message(parts);
            named.metadata = json!({"skillId": "talk"}).as_object().cloned();
            let plan = plan_of(&named, &text_skill());
            assert!(plan.ok().and_then(inputs).is_some(), "{data}");
            named.metadata = None;
            let alone = TextSkill {
                alone: true,
                ..text_skill()
            };
            assert!(
                plan_of(&named, &alone).ok().and_then(inputs).is_some(),
                "{data}"
            );
            named.metadata = json!({"skillId": TASKS}).as_object().cloned();
            let refused = plan_of(&named, &alone).err().expect("no such skill");
            assert_eq!(refused.faults.listed[0].field, "message.metadata.skillId");
        }
    }

    fn plan_of(message: &Message, text: &TextSkill) -> Result<Plan, Error> {
        plan(message, None, Some(text))
    }

    #[test]
    fn the_configured_method_takes_the_media_types_that_it_is_given() {
        let image = Part {
            media_type: Some("Image/PNG; x=1".to_owned()),
            ..Part::of(Content::Raw(vec![1, 2]))
        };
        let parts = || vec![Part::text("what is it?"), image.clone()];
        let refused = planned(parts(), Some(&text_skill()))
            .err()
            .expect("not taken");
        assert_eq!(refused.kind, ErrorKind::ContentTypeNotSupported);
        assert_eq!(refused.faults.listed[0].field, "message.parts[1].mediaType");
        assert!(
            refused.message.starts_with("message.parts[1].mediaType: "),
            "{refused}"
        );
        for modes in [
            &["text/plain", "image/*"][..],
            &["*/*"],
            &["image/png", "text/plain"],
        ] {
            let input_modes = modes.iter().map(|it| (*it).into()).collect();
            let skill = TextSkill {
                input_modes,
                ..text_skill()
            };
            let inputs = planned(parts(), Some(&skill)).ok().and_then(inputs);
            let raw = json!({"raw": "AQI=", "mediaType": "Image/PNG; x=1"});
            assert_eq!(inputs.expect("taken")["parts"][1], raw);
            // Tasks are text or JSON all the same.
            let task = Part::data(json!({"name": "a", "schemas": {"method": "m"}}));
            let refused = planned(vec![task, image.clone()], Some(&skill)).err();
            assert_eq!(
                refused.expect("not taken").kind,
                ErrorKind::ContentTypeNotSupported
            );
        }
    }

    #[test]
    fn faults_of_the_form_are_told_with_their_field() {
        for (parts, field) in [
            (
                vec![Part::data(json!({"tasks": 1}))],
                "message.parts[0].data.tasks",
            ),
            (
                vec![Part::data(json!({"tasks": []}))],
                "message.parts[0].data.tasks",
            ),
            (
                vec![Part::data(json!({"taskId": "x"}))],
                "message.parts[0].data.taskId",
            ),
            (
                vec![Part::data(json!({"taskId": "x"})), Part::data(task("a"))],
                "message.parts[0].data.taskId",
            ),
        ] {
            let refused = planned(parts, None).err().expect("a fault");
            assert_eq!(refused.faults.listed[0].field, field);
        }
        let mut named = message(vec![Part::text("x")]);
        named.metadata = json!({"skillId": "other"}).as_object().cloned();
        let refused = plan(&named, None, None).err().expect("no such skill");
        assert_eq!(refused.faults.listed[0].field, "message.metadata.skillId");
        let mut picture = Part::text("x");
        picture.media_type = Some("image/png".to_owned());
        let refused = planned(vec![picture], None).err().expect("not taken");
        assert_eq!(refused.kind, ErrorKind::ContentTypeNotSupported);
    }
}
