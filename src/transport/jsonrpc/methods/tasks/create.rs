//! `tasks.create`. spec: interface / tasks.create

use crate::application::Service;
use crate::application::api::Request;
use crate::runtime::maybe_block_in_place;
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::calling::{boxed, called, listed};
use crate::transport::jsonrpc::reader::{Parameters, Question, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::tasks::constant;
use crate::transport::openrpc::about::{About, Example, FETCH, GROUP, MINTED, MINTED_TOO, RUN};
use crate::transport::openrpc::schema_parts::{at, object, with_optional};
use serde_json::json;
use taskledger_domain::Violation;
use taskledger_domain::task::call::TaskList;
use taskledger_domain::task::{call, schema};

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

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.create",
        title: "Create Tasks",
        summary: "Create a task, a task tree, or a list of tasks",
        tags: &["task", "create"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let Call {
                    params, context, ..
                } = call;
                let p = maybe_block_in_place(listed(&params), || Params::read(&params))?;
                drop(params);
                called(&service, &context, Request::Create(p.tasks)).await
            })
        },
    }
}

fn about() -> About {
    let created = object(json!({"id": at("TaskId"), "status": constant("pending")}));
    About {
        description: "Stores tasks, and starts no run; tasks that are created below a task that an active run covers join that run, and start when they are ready. Takes one task; a task with `children`; a node of `task` and `children`; or `tasks`, a list whose members refer to each other by id or name. Without `parent_id` the tasks start a new flow, otherwise they join the parent's flow. All are stored or none.",
        result: "created",
        schema: with_optional(created, json!({"task_ids": at("TaskIds")})),
        errors: &[
            ErrorKind::InvalidTree,
            ErrorKind::InvalidParent,
            ErrorKind::InvalidDependency,
            ErrorKind::CircularDependency,
            ErrorKind::QuotaExceeded,
        ],
        examples: vec![
            Example {
                name: "a task",
                description: "A single task, which starts a flow.",
                params: json!({
                    "name": "Echo", "user_id": "user-123", "priority": 1,
                    "inputs": {"text": "hello"}, "schemas": {"method": "echo_executor"},
                }),
                result: json!({"id": MINTED, "status": "pending"}),
            },
            Example {
                name: "a tree",
                description: "A group with two tasks in it.",
                params: json!({
                    "name": "both",
                    "children": [
                        {"name": "one", "schemas": {"method": "echo_executor"}},
                        {"name": "two", "schemas": {"method": "echo_executor"}, "dependencies": [{"id": "one"}]},
                    ],
                }),
                result: json!({
                    "id": MINTED, "status": "pending",
                    "task_ids": {"both": MINTED, "one": MINTED_TOO, "two": RUN},
                }),
            },
            Example {
                name: "a list",
                description: "A list of tasks that joins a stored flow.",
                params: json!({"tasks": [
                    {"id": "a", "name": "first", "parent_id": GROUP, "schemas": {"method": "echo_executor"}},
                    {"id": "b", "name": "then", "parent_id": GROUP, "schemas": {"method": "echo_executor"}, "dependencies": [{"id": "a"}, {"id": FETCH, "required": false}]},
                ]}),
                result: json!({
                    "id": MINTED, "status": "pending",
                    "task_ids": {"a": MINTED, "b": MINTED_TOO},
                }),
            },
        ],
    }
}
