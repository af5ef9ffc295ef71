//! Texts for values, references and trees that are not acceptable.

use super::{STORED_TASK, Wording, shown};
use serde_json::Value;
use taskledger_domain::flow::{CallTask, Fault, OutputExtent, ParentFault, ReferenceAt, TreeFault};
use taskledger_domain::task::wiring::{Unwired, WireFault};
use taskledger_domain::{PathSegment, Violation};

/// What would be accepted as the deadline of a task that is to run.
const FUTURE: &str = "a time in the future";
/// What would be accepted as the id of a new task.
const FREE_ID: &str = "an id that no task has or ever had";

impl Wording<'_> {
    pub(super) fn value(&self, fault: &Fault) -> Violation {
        match fault {
            Fault::Value(violation) => Violation::clone(violation),
            Fault::FlowTooLarge { tasks, tasks_max } => {
                let expected =
                    format!("at most {tasks_max} tasks in a flow, deleted ones included");
                Violation::of("tasks", "Flow is too large", expected, &Value::from(*tasks))
            }
            Fault::DuplicateId { task, text } => {
                let path = self.path(*task, ["id".into()]);
                let expected = "an id that no other task of the call has";
                Violation::new(&path, "Duplicate id", expected, &Value::from(&**text))
            }
            Fault::IdTaken { task, id } => {
                let path = self.path(*task, ["id".into()]);
                self.at(&path, "Id is taken", FREE_ID, *id)
            }
            Fault::IdTakenMeanwhile { id } => self.of_task("id", "Id is taken", FREE_ID, *id),
            Fault::TaskStored { task, id } => {
                let path = self.path(*task, ["id".into()]);
                let expected = "a new id; use task_id to run a stored task";
                self.at(&path, "Task is stored already", expected, *id)
            }
            Fault::MalformedId { at, text } => {
                self.reference(*at, "Invalid UUID format", "a UUID v4", text)
            }
            Fault::UnknownReference { at, text } => {
                let expected = "a UUID v4, or the id or name of a task in this call";
                self.reference(*at, "Invalid UUID format", expected, text)
            }
            Fault::AmbiguousName { at, text } => {
                let expected = "an id, because several tasks of the call have this name";
                self.reference(*at, "Ambiguous name", expected, text)
            }
            Fault::DuplicateDependency { at, text } => {
                self.reference(*at, "Duplicate dependency", "each task once", text)
            }
            Fault::Wiring { task, unwired } => self.wiring(*task, unwired),
            Fault::Template { task, violation } => violation.clone().below(&self.path(*task, [])),
            Fault::NewDeadlinePassed { task, deadline } => {
                let path = self.path(*task, ["params".into(), "deadline".into()]);
                Violation::new(&path, "Deadline has passed", FUTURE, &shown(*deadline))
            }
            Fault::OutputPartOutOfOrder { number, next, .. } => {
                let expected = format!("{next}, or the number of a part that is there already");
                let actual = Value::from(*number);
                Violation::of("output_number", "not the next part", expected, &actual)
            }
            Fault::TooManyOutputParts {
                parts, parts_max, ..
            } => {
                let expected = format!("at most {parts_max} parts of an attempt");
                let actual = Value::from(*parts);
                Violation::of("output_part", "too many parts", expected, &actual)
            }
            Fault::OutputTooLarge {
                extent,
                bytes,
                bytes_max,
                ..
            } => {
                let what = match extent {
                    OutputExtent::Part => "in a part",
                    OutputExtent::Attempt => "in all parts of an attempt",
                };
                let expected = format!("at most {bytes_max} bytes {what}");
                let reason = format!("Too large: {bytes} bytes {what}");
                Violation::of("output_part", reason, expected, &Value::from(*bytes))
            }
            Fault::TooManyMessages {
                messages,
                messages_max,
                ..
            } => {
                let expected = format!("at most {messages_max} in a run");
                let actual = Value::from(*messages);
                Violation::of("message", "too many messages", expected, &actual)
            }
            Fault::TooManyQuestions {
                questions,
                questions_max,
                ..
            } => {
                let expected = format!("at most {questions_max} in a run");
                let actual = Value::from(*questions);
                Violation::of("request", "Too many questions", expected, &actual)
            }
            Fault::DeadlinePassed { task, deadline } => {
                let reason = format!("Deadline of task `{}` has passed", self.names.word(*task));
                Violation::of("deadline", reason, FUTURE, &shown(*deadline))
            }
        }
    }

    fn wiring(&self, task: CallTask, unwired: &Unwired) -> Violation {
        let key = unwired.key.as_str();
        let (reason, expected) = match unwired.fault {
            WireFault::NoDependency => (
                "Not a dependency of the task",
                "a reference to a task of `dependencies`, as it is named there",
            ),
            WireFault::InInputs => (
                "Key is in `inputs` too",
                "each key in one of `inputs` and `schemas.wiring`",
            ),
            WireFault::MayBeAbsent => (
                "The dependency is optional and may have no result",
                "an object {from, default}, or `required: false`",
            ),
        };
        let path = self.path(task, ["schemas".into(), "wiring".into(), key.into()]);
        Violation::new(&path, reason, expected, &Value::from(&*unwired.text))
    }

    fn reference(&self, at: ReferenceAt, reason: &str, expected: &str, text: &str) -> Violation {
        let path = match at {
            ReferenceAt::Parent { of } => self.parent_path(of),
            ReferenceAt::Dependency { of, index } => self.dependency_path(of, index),
        };
        Violation::new(&path, reason, expected, &Value::from(text))
    }

    fn parent_path(&self, task: CallTask) -> Vec<PathSegment> {
        self.path(task, ["parent_id".into()])
    }

    pub(super) fn tree(&self, fault: &TreeFault) -> Violation {
        match fault {
            TreeFault::AgainstNesting { task, parent } => {
                let expected = "the id of the task that it is written under, or absent";
                let path = self.parent_path(*task);
                let actual = Value::from(&**parent);
                Violation::new(&path, "Does not match the tree", expected, &actual)
            }
            TreeFault::WithoutParent { task } => {
                let expected = "a parent for each task, because the call joins an existing flow";
                self.without(*task, "Task has no parent", expected)
            }
            TreeFault::SeveralRoots { task } => {
                let expected = "exactly one task without a parent";
                self.without(*task, "Multiple root tasks found", expected)
            }
            TreeFault::ParentCycle { task, cycle } => {
                let expected = "parents that lead to one root";
                let reason = "Circular parent-child relationship";
                let mut fault = self.without(*task, reason, expected);
                let parent = cycle.get(1).and_then(|parent| self.names.word_of(*parent));
                fault.actual = parent.map_or(Value::Null, Value::from);
                fault
            }
            TreeFault::SecondRoot { task } => {
                let path = self.parent_path(CallTask::Id(*task));
                let expected = "a parent in the flow";
                self.at(&path, "Flow has a root already", expected, *task)
            }
            TreeFault::MovedToRoot { task } => {
                let expected = "a parent in the same flow";
                self.without(CallTask::Id(*task), "Flow has a root already", expected)
            }
            TreeFault::MovedBelowItself { task, parent } => {
                let path = self.parent_path(CallTask::Id(*task));
                let expected = "a task that is not below this one";
                self.at(
                    &path,
                    "Circular parent-child relationship",
                    expected,
                    *parent,
                )
            }
            TreeFault::TooDeep {
                task,
                levels,
                levels_max,
            } => {
                let path = self.parent_path(CallTask::Id(*task));
                let expected = format!("a tree of at most {levels_max} levels");
                Violation::new(&path, "Tree is too deep", expected, &Value::from(*levels))
            }
        }
    }

    /// The tasks of a cycle of parents; `None` of other faults, and of tasks without ids.
    pub(super) fn parent_cycle(&self, fault: &TreeFault) -> Option<Value> {
        let TreeFault::ParentCycle { cycle, .. } = fault else {
            return None;
        };
        let words = cycle.iter().map(|task| self.names.word_of(*task));
        let words = words.collect::<Option<Vec<_>>>()?;
        (!words.is_empty()).then(|| Value::from(words))
    }

    /// A fault of a parent that is missing, or that is told without its value.
    fn without(&self, task: CallTask, reason: &str, expected: &str) -> Violation {
        Violation::new(&self.parent_path(task), reason, expected, &Value::Null)
    }

    pub(super) fn parent(&self, fault: ParentFault) -> Violation {
        let reason = "Parent task not found";
        match fault {
            ParentFault::NotStored { parent } => {
                self.of_task("parent_id", reason, STORED_TASK, parent)
            }
            ParentFault::NotInCall { task, parent } => {
                let path = self.parent_path(CallTask::Id(task));
                let expected = "a parent in this call; create tasks in a stored flow with tasks.create, then use task_id";
                self.at(&path, "Parent is not in this call", expected, parent)
            }
            ParentFault::NotInFlow { task, parent } => {
                let path = self.parent_path(CallTask::Id(task));
                self.at(&path, reason, "a task of this flow", parent)
            }
            ParentFault::MovedOutOfFlow { task, parent } => {
                let path = self.parent_path(CallTask::Id(task));
                self.at(&path, reason, "a task of the same flow", parent)
            }
        }
    }
}
