//! Tasks for checks: making them, starting them, waiting for them.

use super::answer::{Reply, shown};
use super::clause::{Finding, ensure};
use super::probe::Probe;
use super::task_schema;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// `tasks.execute` and `tasks.create` may refuse an executor that they do not have.
const NO_EXECUTOR: i64 = -32003;
/// The members of a task.
pub(super) const MEMBERS: [&str; 17] = [
    "id",
    "parent_id",
    "user_id",
    "name",
    "status",
    "priority",
    "inputs",
    "schemas",
    "params",
    "result",
    "error",
    "dependencies",
    "progress",
    "created_at",
    "started_at",
    "updated_at",
    "completed_at",
];
/// The statuses in which a task rests.
const TERMINAL: [&str; 3] = ["completed", "failed", "cancelled"];

/// A task to be sent. Its name is unique; inside one [`Probe::run`] it is known by its alias.
#[derive(Debug, Clone)]
pub struct NewTask {
    alias: String,
    fields: Map<String, Value>,
    /// Whether a server without this executor is excused.
    excused: bool,
}

impl NewTask {
    /// Sets any field, over what was there.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(field.to_owned(), value.into());
        self
    }

    /// Takes a field away.
    #[must_use]
    pub fn without(mut self, field: &str) -> Self {
        self.fields.remove(field);
        self
    }

    /// Below this task: a stored id for [`Probe::create`], an alias for [`Probe::run`].
    #[must_use]
    pub fn below(self, parent: &str) -> Self {
        self.with("parent_id", parent)
    }

    /// After this task has completed.
    #[must_use]
    pub fn after(self, dependency: &str) -> Self {
        self.depend(json!({"id": dependency, "required": true}))
    }

    /// After this task has ended, however.
    #[must_use]
    pub fn after_end_of(self, dependency: &str) -> Self {
        self.depend(json!({"id": dependency, "required": false}))
    }

    /// After this task has ended, or can no longer run.
    #[must_use]
    pub fn after_always(self, dependency: &str) -> Self {
        self.depend(json!({"id": dependency, "when": "always"}))
    }

    fn depend(mut self, dependency: Value) -> Self {
        let list = self.fields.entry("dependencies").or_insert(json!([]));
        if let Value::Array(list) = list {
            list.push(dependency);
        }
        self
    }

    /// The task object, as `tasks.create` takes it.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Object(self.fields.clone())
    }

    /// The task object with its alias as id, as an element of `tasks.execute`.
    #[must_use]
    pub fn element(&self) -> Value {
        self.clone().with("id", self.alias.as_str()).value()
    }
}

/// A run that was started.
#[derive(Debug, Clone)]
pub struct Started {
    /// The id of the root.
    pub root: String,
    /// The result as it came.
    pub result: Value,
    ids: BTreeMap<String, String>,
}

impl Started {
    /// The stored id of the task with this alias.
    ///
    /// # Errors
    /// [`Finding::Failed`]: the server does not tell which it is.
    pub fn id(&self, alias: &str) -> Result<&str, Finding> {
        let unknown = || {
            let result = shown(&self.result);
            Finding::failed(format!(
                "task `{alias}` is in neither {result} nor the tree"
            ))
        };
        self.ids.get(alias).map(String::as_str).ok_or_else(unknown)
    }
}

impl Probe {
    /// A task that ends at once.
    #[must_use]
    pub fn task(&self, alias: &str) -> NewTask {
        let method = self.options().executor.as_str();
        self.group(alias)
            .with("schemas", json!({"method": method}))
            .with("inputs", json!({}))
    }

    /// A task that takes about `duration_ms`, or longer where the server was given other inputs.
    #[must_use]
    pub fn slow(&self, alias: &str, duration_ms: u64) -> NewTask {
        let options = self.options();
        let own = json!({"duration_ms": duration_ms});
        let inputs = options.slow_inputs.clone().unwrap_or(own);
        let mut task = self
            .group(alias)
            .with("schemas", json!({"method": options.slow_executor}))
            .with("inputs", inputs);
        task.excused = true;
        task
    }

    /// A task that fails soon after its start.
    #[must_use]
    pub fn failing(&self, alias: &str) -> NewTask {
        let mut task = self.group(alias);
        if let Value::Object(fields) = &self.options().failing_task {
            task.fields.extend(fields.clone());
        }
        task.excused = true;
        task
    }

    /// A task without `schemas`, which runs nothing.
    #[must_use]
    pub fn group(&self, alias: &str) -> NewTask {
        let fields = json!({"name": self.name(alias), "user_id": self.user()});
        let Value::Object(fields) = fields else {
            unreachable!("written as an object on the line above")
        };
        NewTask {
            alias: alias.to_owned(),
            fields,
            excused: false,
        }
    }

    /// Creates a task; gives its id.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it was refused, or the result has no id.
    pub async fn create(&self, task: &NewTask) -> Result<String, Finding> {
        let reply = self.call("tasks.create", task.value()).await?;
        excuse(&reply, std::slice::from_ref(task))?;
        text_of(&reply.expect_result()?, "id")
    }

    /// Creates the tasks and runs them, in one `tasks.execute`; the first is the root.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it was refused, or the result has no root.
    pub async fn run(&self, tasks: &[NewTask]) -> Result<Started, Finding> {
        let elements: Vec<Value> = tasks.iter().map(NewTask::element).collect();
        let reply = self
            .call("tasks.execute", json!({"tasks": elements}))
            .await?;
        excuse(&reply, tasks)?;
        let result = reply.expect_result()?;
        let root = text_of(&result, "root_task_id")?;
        let ids = if let Some(ids) = result["task_ids"].as_object() {
            ids.iter()
                .filter_map(|(alias, id)| Some((alias.clone(), id.as_str()?.to_owned())))
                .collect()
        } else {
            // The documents do not say how a client learns the ids; the names are unique.
            self.ids_by_name(&root, tasks).await?
        };
        Ok(Started { root, result, ids })
    }

    /// The stored ids of these tasks by their aliases, found by their names in the tree.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no tree.
    pub async fn ids_by_name(
        &self,
        root: &str,
        tasks: &[NewTask],
    ) -> Result<BTreeMap<String, String>, Finding> {
        let stored = self.tree(root).await?;
        let id = |task: &NewTask| {
            let found = stored.iter().find(|s| s["name"] == task.fields["name"])?;
            Some((task.alias.clone(), found["id"].as_str()?.to_owned()))
        };
        Ok(tasks.iter().filter_map(id).collect())
    }

    /// The tasks of a tree, each before those below it.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no tree, or nodes without `task`.
    pub async fn tree(&self, root: &str) -> Result<Vec<Value>, Finding> {
        let mut nodes = vec![self.result("tasks.tree", json!({"task_id": root})).await?];
        let mut tasks = Vec::new();
        while let Some(mut node) = nodes.pop() {
            ensure!(
                node["task"].is_object(),
                "tasks.tree of {root}: a node without `task`: {}",
                shown(&node)
            );
            expect_task(&node["task"])?;
            tasks.push(node["task"].take());
            if let Value::Array(children) = node["children"].take() {
                nodes.extend(children.into_iter().rev());
            }
        }
        Ok(tasks)
    }

    /// The task as `tasks.get` shows it; it conforms to the data model.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is not shown, or does not conform.
    pub async fn get(&self, id: &str) -> Result<Value, Finding> {
        let task = self.result("tasks.get", json!({"task_id": id})).await?;
        expect_task(&task)?;
        Ok(task)
    }

    /// The task, once it has ended.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it does not end in time.
    pub async fn wait_until_terminal(&self, id: &str) -> Result<Value, Finding> {
        let what = format!("task {id} ends");
        self.eventually(&what, async || {
            let task = self.get(id).await?;
            Ok(is_terminal(&task).then_some(task))
        })
        .await
    }

    /// The task, once it has this status.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it rests in another status, or does not change in time.
    pub async fn wait_for(&self, id: &str, status: &str) -> Result<Value, Finding> {
        let what = format!("task {id} becomes {status}");
        self.eventually(&what, async || {
            let task = self.get(id).await?;
            if task["status"] == status {
                return Ok(Some(task));
            }
            ensure!(!is_terminal(&task), "{what}: it rests in {}", shown(&task));
            Ok(None)
        })
        .await
    }
}

/// Skips a check whose server lacks an executor that no clause demands.
fn excuse(reply: &Reply, tasks: &[NewTask]) -> Result<(), Finding> {
    match &reply.outcome {
        Err(error) if error.code == NO_EXECUTOR && tasks.iter().any(|task| task.excused) => {
            let options = "--slow-executor, --slow-inputs and --failing-task";
            Err(Finding::skipped(format!(
                "{error}; {options} name what the server has"
            )))
        }
        Err(_) | Ok(_) => Ok(()),
    }
}

/// Whether the task has ended.
#[must_use]
pub fn is_terminal(task: &Value) -> bool {
    TERMINAL.iter().any(|status| task["status"] == *status)
}

/// Checks a task against the schema of the data model.
///
/// # Errors
/// [`Finding::Failed`]: all violations.
pub fn expect_task(task: &Value) -> Result<(), Finding> {
    let faults = task_schema::violations(task);
    ensure!(
        faults.is_empty(),
        "not a task of the data model: {}: {}",
        faults.join("; "),
        shown(task)
    );
    Ok(())
}

/// The text in the member `name` of a result.
///
/// # Errors
/// [`Finding::Failed`]: there is none.
pub fn text_of(result: &Value, name: &str) -> Result<String, Finding> {
    let none = || Finding::failed(format!("no text `{name}` in {}", shown(result)));
    Ok(result[name].as_str().ok_or_else(none)?.to_owned())
}
