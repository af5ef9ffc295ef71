//! `tasks.sibling_output`: reads the output of a task beside the one that the worker holds.

use super::App;
use super::api::work::{Sibling, SiblingOutput};
use super::context::Context;
use super::error::Error;
use super::queries::Consistency;
use super::sending::engine_metadata;
use std::sync::Arc;
use taskledger_domain::flow::Flow;
use taskledger_domain::{TaskId, Violation, limits};
use taskledger_projections::{ListFilter, Order, Start, TaskRow};

/// Siblings that a refusal names.
const TOLD_MAX: u32 = 20;
/// Bytes of their names.
const TOLD_BYTES_MAX: usize = 1024;

impl App {
    /// The result of a task below the same parent as one that the caller holds, by name or id. Cost: a turn of the
    /// flow, and a list of the siblings with the name.
    ///
    /// # Errors
    /// [`Error`]; `LeaseNotHeld`; `Invalid` when there is not exactly one such task.
    pub(super) async fn sibling_output(
        &self,
        context: &Context,
        wanted: SiblingOutput,
    ) -> Result<Sibling, Error> {
        let SiblingOutput { task, lease, name } = wanted;
        let held = self.holding(context, task, lease).await?;
        let look = move |flow: &Flow| flow.task(task).and_then(|it| it.parent);
        let parent = self.flows.look(held.flow, engine_metadata(), look).await?;
        let Some(parent) = parent else {
            let task = task.to_string();
            let expected = "a task below another one";
            return Err(invalid(
                "task_id",
                "The task has no siblings",
                expected,
                &task,
            ));
        };
        let list = async |name: Option<&str>, limit| {
            let filter = ListFilter {
                parent_id: Some(parent),
                name: name.map(Arc::from),
                ..ListFilter::default()
            };
            let (order, start) = (Order::Ascending, Start::Offset(0));
            let page = self.list(context, filter, order, start, limit, Consistency::Strong);
            let rows = page.await?.tasks.into_iter().map(|view| view.row);
            let others = rows.filter(|row| row.id != task);
            Ok::<_, Error>(others.collect::<Vec<_>>())
        };
        // One more, because the task itself may have the name.
        let mut named = list(Some(&name), 3).await?;
        if named.is_empty()
            && let Ok(id) = TaskId::parse(&name)
        {
            named.extend(self.sibling(context, id, parent, task).await?);
        }
        if let [row] = named.as_slice() {
            return Ok(Sibling {
                task: row.id,
                name: row.name.clone(),
                status: row.status,
                output: row.result.clone(),
            });
        }
        let is_ambiguous = !named.is_empty();
        let there = match is_ambiguous {
            true => list(Some(&name), TOLD_MAX).await?,
            false => list(None, TOLD_MAX).await?,
        };
        let there = there.iter().map(|row| match is_ambiguous {
            true => format!("`{}`", row.id),
            false => format!("`{}`", row.name),
        });
        let there = there.collect::<Vec<_>>().join(", ");
        let there = limits::cut(&there, TOLD_BYTES_MAX);
        Err(match (is_ambiguous, there) {
            (true, ids) => {
                let expected = format!("the id of one of them: {ids}");
                invalid("name", "Several siblings have this name", &expected, &name)
            }
            (false, "") => invalid("name", "The task has no siblings", "another task", &name),
            (false, names) => {
                let expected = format!("the name or id of a sibling, such as {names}");
                invalid("name", "No sibling has this name", &expected, &name)
            }
        })
    }

    /// The task with this id, if it is another one below the parent.
    async fn sibling(
        &self,
        context: &Context,
        id: TaskId,
        parent: TaskId,
        task: TaskId,
    ) -> Result<Option<Arc<TaskRow>>, Error> {
        match self.get(context, id, Consistency::Strong).await {
            Ok(view) => {
                let is_sibling = view.row.parent_id == Some(parent) && id != task;
                Ok(is_sibling.then_some(view.row))
            }
            Err(Error::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn invalid(field: &str, reason: &str, expected: &str, actual: &str) -> Error {
    let actual = serde_json::Value::from(actual);
    Error::invalid([Violation::of(field, reason, expected, &actual)])
}
