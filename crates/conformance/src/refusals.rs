//! Checks that a server takes or refuses values, and that a refusal changes nothing.

use super::answer::{Reply, RpcError, shown};
use super::clause::{Finding, ensure};
use super::probe::Probe;
use super::tasks::{MEMBERS, NewTask, expect_task, text_of};
use chrono::{DateTime, FixedOffset};
use serde_json::{Value, json};

/// Stands for the codes of refusals whose code the documents leave open.
pub(super) const ANY: &[i64] = &[];
/// They say that a call was not understood or that the server broke, which refuses nothing.
const NO_REFUSALS: [i64; 4] = [-32700, -32600, -32601, -32603];
/// The parameters, or the task in them, are not valid.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// Tasks that a check looks at one by one: the largest page of a list.
const OWN_MAX: u64 = 1000;
/// Members of a task that may change while no call changes it: they move by themselves while it runs.
const MOVING: [&str; 2] = ["progress", "updated_at"];

/// Whether two values are the same, numbers by what they are worth.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

/// The member `field` of `task` must have this value.
///
/// # Errors
/// [`Finding::Failed`]: it has another.
pub(super) fn expect_field(
    task: &Value,
    field: &str,
    expected: impl Into<Value>,
) -> Result<(), Finding> {
    let expected = expected.into();
    ensure!(
        same(&task[field], &expected),
        "`{field}` is {}: expected {} in {}",
        shown(&task[field]),
        shown(&expected),
        shown(task)
    );
    Ok(())
}

/// The time in the member `field`.
///
/// # Errors
/// [`Finding::Failed`]: there is none.
pub(super) fn instant(task: &Value, field: &str) -> Result<DateTime<FixedOffset>, Finding> {
    let text = text_of(task, field)?;
    DateTime::parse_from_rfc3339(&text)
        .map_err(|error| Finding::failed(format!("`{field}` is `{text}`: {error}")))
}

impl Reply {
    /// The error, which must refuse what was asked: with one of these codes, or, for [`ANY`], with
    /// any that does not speak of an unknown method or a broken server.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it does not.
    pub(super) fn expect_refusal(self, codes: &[i64]) -> Result<RpcError, Finding> {
        if codes != ANY {
            return self.expect_error_of(codes);
        }
        let sent = self.sent.clone();
        let error = self.expect_any_error()?;
        ensure!(
            !NO_REFUSALS.contains(&error.code),
            "sent {sent}, got {error}: expected that the values are refused"
        );
        Ok(error)
    }
}

impl Probe {
    /// The `user_id` of a root that was created without one: null, or the caller where callers authenticate
    /// themselves, as nobody else could see the task then.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is something else.
    pub(super) fn expect_no_other_user(&self, task: &Value) -> Result<(), Finding> {
        let user = task["user_id"].as_str().unwrap_or_default();
        if !self.options().headers.is_empty() && !user.is_empty() {
            return Ok(());
        }
        expect_field(task, "user_id", Value::Null)
    }

    /// The tasks of this probe's user, by id, as `tasks.get` shows them.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no list.
    pub async fn own(&self) -> Result<Vec<Value>, Finding> {
        let params = json!({"user_id": self.user(), "limit": OWN_MAX});
        let mut list = self.result("tasks.list", params).await?;
        let Value::Array(listed) = list["tasks"].take() else {
            return Err(Finding::failed(format!(
                "tasks.list: no `tasks` in {}",
                shown(&list)
            )));
        };
        let mut tasks = Vec::with_capacity(listed.len());
        for task in listed {
            expect_task(&task)?;
            tasks.push(self.get(&text_of(&task, "id")?).await?);
        }
        tasks.sort_by_key(|task| task["id"].to_string());
        Ok(tasks)
    }

    /// The tasks of this probe's user must be as they were.
    ///
    /// # Errors
    /// [`Finding::Failed`]: a task has come, gone or changed.
    pub async fn expect_unchanged(&self, before: &[Value], what: &str) -> Result<(), Finding> {
        let after = self.own().await?;
        let ids = |tasks: &[Value]| tasks.iter().map(|t| t["id"].clone()).collect::<Vec<_>>();
        let (stood, stand) = (ids(before), ids(&after));
        ensure!(
            stood == stand,
            "{what}: tasks were {} and are {}",
            shown(json!(stood)),
            shown(json!(stand))
        );
        for (old, new) in before.iter().zip(&after) {
            for field in MEMBERS.into_iter().filter(|m| !MOVING.contains(m)) {
                ensure!(
                    same(&old[field], &new[field]),
                    "{what}: `{field}` of task {} was {} and is {}",
                    old["id"],
                    shown(&old[field]),
                    shown(&new[field])
                );
            }
        }
        Ok(())
    }

    /// Each of these calls must be refused with one of the codes, and change nothing.
    ///
    /// # Errors
    /// [`Finding::Failed`]: one was not, or changed something.
    pub async fn refuses(
        &self,
        method: &str,
        calls: impl IntoIterator<Item = Value>,
        codes: &[i64],
    ) -> Result<Vec<RpcError>, Finding> {
        let before = self.own().await?;
        let mut errors = Vec::new();
        for params in calls {
            let reply = self.call(method, params).await?;
            errors.push(reply.expect_refusal(codes)?);
        }
        let what = format!("after {} refused {method}", errors.len());
        self.expect_unchanged(&before, &what).await?;
        Ok(errors)
    }

    /// Tasks that `tasks.create` and `tasks.execute` must refuse, storing nothing.
    ///
    /// # Errors
    /// [`Finding::Failed`]: one was taken, or something was stored.
    pub async fn refuses_tasks(&self, tasks: &[NewTask], codes: &[i64]) -> Result<(), Finding> {
        let single = tasks.iter().map(NewTask::value);
        self.refuses("tasks.create", single, codes).await?;
        let listed = tasks.iter().map(|task| json!({"tasks": [task.element()]}));
        self.refuses("tasks.execute", listed, codes).await?;
        Ok(())
    }

    /// Changes that `tasks.update` must refuse, changing nothing.
    ///
    /// # Errors
    /// [`Finding::Failed`]: one was taken, or something changed.
    pub async fn refuses_updates(
        &self,
        id: &str,
        updates: impl IntoIterator<Item = Value>,
        codes: &[i64],
    ) -> Result<Vec<RpcError>, Finding> {
        let calls = updates.into_iter();
        let calls = calls.map(|updates| json!({"task_id": id, "updates": updates}));
        self.refuses("tasks.update", calls, codes).await
    }

    /// Values of a member that are no valid task: refused by create, execute and update alike.
    ///
    /// # Errors
    /// [`Finding::Failed`]: one was taken, or something changed.
    pub async fn refuses_values(
        &self,
        field: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<(), Finding> {
        let id = self.create(&self.task("kept")).await?;
        let values: Vec<Value> = values.into_iter().collect();
        let tasks: Vec<_> = values
            .iter()
            .map(|value| self.task("never").with(field, value.clone()))
            .collect();
        self.refuses_tasks(&tasks, &[INVALID_PARAMS]).await?;
        let updates = values.into_iter().map(|value| json!({field: value}));
        self.refuses_updates(&id, updates, &[INVALID_PARAMS])
            .await?;
        Ok(())
    }

    /// Values of a member that create and update must take, and show again.
    ///
    /// # Errors
    /// [`Finding::Failed`]: one was refused, or is shown otherwise.
    pub async fn takes_values(
        &self,
        field: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<(), Finding> {
        // Which `params` an executor takes is its own affair; a task without one takes any.
        let base = |alias: &str| match field {
            "params" => self.group(alias),
            _ => self.task(alias),
        };
        let changed = self.create(&base("changed")).await?;
        for value in values {
            let task = base("taken").with(field, value.clone());
            expect_field(&self.store(&task).await?, field, value.clone())?;
            let updates = json!({"task_id": changed, "updates": {field: value}});
            self.result("tasks.update", updates).await?;
            expect_field(&self.get(&changed).await?, field, value)?;
        }
        Ok(())
    }

    /// Creates a task and reads it back.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it was refused, or does not conform to the data model.
    pub async fn store(&self, task: &NewTask) -> Result<Value, Finding> {
        let id = self.create(task).await?;
        self.get(&id).await
    }

    /// Creates a task whose values the documents let a server refuse or overwrite. Gives what is
    /// stored; none if it was refused, with nothing stored.
    ///
    /// # Errors
    /// [`Finding::Failed`]: neither.
    pub async fn store_or_refuse(&self, task: &NewTask) -> Result<Option<Value>, Finding> {
        let before = self.own().await?;
        let reply = self.call("tasks.create", task.value()).await?;
        if reply.outcome.is_err() {
            let error = reply.expect_refusal(ANY)?;
            self.expect_unchanged(&before, &error.to_string()).await?;
            return Ok(None);
        }
        let id = text_of(&reply.expect_result()?, "id")?;
        self.get(&id).await.map(Some)
    }
}
