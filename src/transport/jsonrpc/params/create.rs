//! `tasks.create`. spec: interface / tasks.create

use super::super::reader::{Parameters, Question, Reader};
use taskledger_domain::Violation;
use taskledger_domain::task::call::{self, TaskList};
use taskledger_domain::task::schema;

/// What to create.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// One task, a task with `children`, `{task, children}` nodes, or `{tasks: [...]}`; perhaps with
    /// faults, to which the application adds what else is wrong.
    pub tasks: TaskList,
}

impl Parameters for Params {
    fn ask(reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        reader.hand_over(questions, |map| {
            let tasks = call::read_create(map)?.without_statics();
            Ok(Self { tasks })
        })
    }
}

/// `name` is required in a task, not in the call: `tasks` or `task` may stand in its place.
fn questions() -> Vec<Question> {
    schema::create_members()
        .into_iter()
        .map(|member| Question {
            name: member.name,
            required: false,
            description: member.description,
            schema: member.schema(),
            default: None,
        })
        .collect()
}
