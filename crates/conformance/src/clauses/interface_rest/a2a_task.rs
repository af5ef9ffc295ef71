//! Tasks as A2A shows them. spec: interface / A2A Protocol Task Mapping, A2A Protocol Methods

use crate::clauses::prelude::*;

/// Names of a task's states: those of the documents, and those of the A2A protocol.
const STATES: [(&str, &[&str]); 2] = [
    ("completed", &["completed", "TASK_STATE_COMPLETED"]),
    ("failed", &["failed", "TASK_STATE_FAILED"]),
];
/// Names of the A2A method that shows a task again, in the versions of that protocol.
const GET: [&str; 2] = ["tasks/get", "GetTask"];

pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = vec![
        must(
            "interface/a2a-mapping/1-id",
            "`context_id` is the id of the task's definition",
            contexts_are_definitions,
        ),
        must(
            "interface/a2a-mapping/2-status",
            "`status.state` is the status",
            states_are_statuses,
        ),
        must(
            "interface/a2a-mapping/3-result",
            "`artifacts` hold the results",
            artifacts_are_results,
        ),
        must(
            "interface/a2a-mapping/4-error",
            "`status.message` tells the error",
            messages_tell_errors,
        ),
        must(
            "interface/a2a-mapping/5-user-id",
            "`metadata.user_id` is the user",
            users_are_in_metadata,
        ),
        must(
            "interface/a2a-mapping/6-instance",
            "`id` is that of one execution, made by the server",
            instances_have_ids,
        ),
        may(
            "interface/a2a-mapping/7-history",
            "`history` may hold what was said during the execution",
            histories_are_lists,
        ),
        must(
            "interface/a2a-mapping/8-mapped",
            "A2A calls are answered with A2A tasks",
            answers_are_a2a_tasks,
        ),
    ];
    clauses.extend(methods());
    clauses
}

fn methods() -> Vec<Clause> {
    vec![
        must(
            "interface/a2a-methods/1-request",
            "a request may have `metadata` and `configuration` beside `params`",
            requests_may_have_more,
        ),
        must(
            "interface/a2a-methods/2-response",
            "the result has `id`, `context_id`, `kind`, `status`, `artifacts` and `metadata`",
            answers_are_a2a_tasks,
        ),
        must(
            "interface/a2a-methods/3-status-message",
            "`status.message` has a part with status, progress and `root_task_id`",
            status_messages_have_data,
        ),
        must(
            "interface/a2a-methods/4-protocol",
            "`protocol: \"a2a\"` is in the metadata and in the data of a status",
            the_protocol_is_named,
        ),
    ]
}

/// Executes a task by an A2A call and gives the A2A task at its end, and the id of its definition.
async fn executed(probe: &Probe, task: &NewTask) -> Result<(Value, String), Finding> {
    let params = json!({"tasks": [task.element()]});
    // The document's form of a call, and that of the A2A protocol itself.
    let call = json!({
        "jsonrpc": "2.0",
        "method": "tasks.execute",
        "params": params,
        "id": "a2a",
        "metadata": {"stream": false, "protocol": "a2a"},
        "configuration": {},
    });
    let part =
        json!({"kind": "data", "data": {"method": "tasks.execute", "tasks": params["tasks"]}});
    let message = json!({"kind": "message", "role": "user", "messageId": probe.name("message"), "parts": [part]});
    let send = json!({
        "jsonrpc": "2.0",
        "method": "message/send",
        "params": {"message": message, "configuration": {"blocking": true}},
        "id": "a2a",
    });
    for call in [call, send] {
        let Ok(answered) = probe.request(&call).await?.outcome else {
            continue;
        };
        if answered["kind"] == "task" {
            let ended = ended(probe, answered).await?;
            let list = probe.own().await?;
            let stored = list
                .iter()
                .find(|stored| stored["name"] == task.value()["name"]);
            let none = || Finding::failed(format!("nothing is stored for {}", shown(&ended)));
            let id = text_of(stored.ok_or_else(none)?, "id")?;
            return Ok((ended, id));
        }
    }
    let text = "neither `tasks.execute` with `metadata` and `configuration` nor `message/send` is \
                answered with an A2A task";
    Err(Finding::skipped(text))
}

fn is_state(task: &Value, status: &str) -> bool {
    let names = STATES.iter().find(|(known, _)| *known == status);
    let state = task["status"]["state"].as_str().unwrap_or_default();
    names.is_some_and(|(_, names)| names.contains(&state))
}

/// The A2A task, asked for again until it has ended.
async fn ended(probe: &Probe, task: Value) -> Result<Value, Finding> {
    let over = |task: &Value| STATES.iter().any(|(status, _)| is_state(task, status));
    if over(&task) {
        return Ok(task);
    }
    let params = json!({"id": task["id"]});
    probe
        .eventually("an A2A task ends", async || {
            for method in GET {
                let reply = probe.call(method, params.clone()).await?;
                if let Ok(task) = reply.outcome {
                    return Ok(over(&task).then_some(task));
                }
            }
            Err(Finding::failed(format!(
                "{} has not ended, and {GET:?} do not show it",
                shown(&task)
            )))
        })
        .await
}

/// The data of the parts of the status message.
fn status_data(task: &Value) -> Vec<&Value> {
    let parts = task["status"]["message"]["parts"].as_array();
    let parts = parts.into_iter().flatten();
    parts
        .filter(|part| part["data"].is_object())
        .map(|part| &part["data"])
        .collect()
}

async fn contexts_are_definitions(probe: &Probe) -> Outcome {
    let (task, id) = executed(probe, &probe.task("mapped")).await?;
    expect_field(&task, "context_id", id)?;
    seen(task["context_id"].to_string())
}

async fn states_are_statuses(probe: &Probe) -> Outcome {
    let (good, _) = executed(probe, &probe.task("good")).await?;
    let (bad, _) = executed(probe, &probe.failing("bad")).await?;
    for (task, status) in [(&good, "completed"), (&bad, "failed")] {
        ensure!(
            is_state(task, status),
            "expected {status}: {}",
            shown(&task["status"])
        );
    }
    seen(format!(
        "{} and {}",
        good["status"]["state"], bad["status"]["state"]
    ))
}

async fn artifacts_are_results(probe: &Probe) -> Outcome {
    let mark = probe.name("mark");
    let inputs = json!({"mark": mark});
    let (task, id) = executed(probe, &probe.task("made").with("inputs", inputs)).await?;
    let artifacts = task["artifacts"].as_array().map_or(&[][..], Vec::as_slice);
    ensure!(!artifacts.is_empty(), "no `artifacts`: {}", shown(&task));
    let parts = artifacts
        .iter()
        .filter_map(|artifact| artifact["parts"].as_array())
        .flatten();
    let result = probe.get(&id).await?["result"].take();
    let text = result.to_string();
    let holds = |part: &Value| part["data"] == result || part["text"] == text.as_str();
    let mut parts = parts;
    // An executor other than one that returns its inputs may leave the mark out.
    let found =
        parts.any(holds) || text.contains(&mark) && task["artifacts"].to_string().contains(&mark);
    ensure!(
        found,
        "`artifacts` are {}, the result is {text}",
        shown(&task["artifacts"])
    );
    seen(shown(&task["artifacts"]))
}

async fn messages_tell_errors(probe: &Probe) -> Outcome {
    let (task, id) = executed(probe, &probe.failing("bad")).await?;
    let error = text_of(&probe.get(&id).await?, "error")?;
    let message = task["status"]["message"].to_string();
    let quoted = Value::from(error.as_str()).to_string();
    ensure!(
        message.contains(quoted.trim_matches('"')),
        "`status.message` is {}: expected the error `{error}`",
        shown(message)
    );
    seen(error)
}

async fn users_are_in_metadata(probe: &Probe) -> Outcome {
    let (task, _) = executed(probe, &probe.task("owned")).await?;
    expect_field(&task["metadata"], "user_id", probe.user())?;
    seen(task["metadata"].to_string())
}

async fn instances_have_ids(probe: &Probe) -> Outcome {
    let (first, id) = executed(probe, &probe.task("one")).await?;
    let (second, _) = executed(probe, &probe.task("two")).await?;
    let (one, two) = (text_of(&first, "id")?, text_of(&second, "id")?);
    ensure!(one != two, "two executions are both {one}");
    ensure!(
        !one.is_empty() && one != id,
        "`id` is {one}, that of the definition is {id}"
    );
    seen(format!("{one} executes {id}"))
}

async fn histories_are_lists(probe: &Probe) -> Outcome {
    let (task, _) = executed(probe, &probe.task("told")).await?;
    let history = &task["history"];
    if history.is_null() {
        return Err(Finding::skipped("no `history`"));
    }
    ensure!(
        history.is_array(),
        "`history` is {}: expected a list",
        shown(history)
    );
    seen(shown(history))
}

async fn answers_are_a2a_tasks(probe: &Probe) -> Outcome {
    let (task, _) = executed(probe, &probe.task("shown")).await?;
    for field in ["id", "context_id"] {
        ensure!(!text_of(&task, field)?.is_empty(), "an empty `{field}`");
    }
    expect_field(&task, "kind", "task")?;
    text_of(&task["status"], "state")?;
    ensure!(
        task["artifacts"].is_array(),
        "`artifacts` is no list: {}",
        shown(&task)
    );
    ensure!(
        task["metadata"].is_object(),
        "`metadata` is no object: {}",
        shown(&task)
    );
    seen(shown(task))
}

/// Whoever does not speak A2A ignores them.
async fn requests_may_have_more(probe: &Probe) -> Outcome {
    let task = probe.task("more");
    let request = json!({
        "jsonrpc": "2.0",
        "method": "tasks.execute",
        "params": {"tasks": [task.element()]},
        "id": "req-001",
        "metadata": {"stream": false},
        "configuration": {},
    });
    probe.request(&request).await?.expect_result()?;
    let stored = probe.own().await?;
    ensure!(stored.len() == 1, "{} tasks are stored", stored.len());
    probe
        .wait_for(&text_of(&stored[0], "id")?, "completed")
        .await?;
    seen("the task is executed")
}

async fn status_messages_have_data(probe: &Probe) -> Outcome {
    let (task, id) = executed(probe, &probe.task("told")).await?;
    expect_field(&task["status"]["message"], "kind", "message")?;
    let data = status_data(&task);
    let whole = |data: &&&Value| {
        data["status"] == "completed"
            && same(&data["progress"], &json!(1))
            && data["root_task_id"] == id
    };
    let found = data.iter().find(whole);
    ensure!(
        found.is_some(),
        "`status` is {}: expected a part with status completed, progress 1 and root_task_id {id}",
        shown(&task["status"])
    );
    seen(shown(&task["status"]["message"]))
}

async fn the_protocol_is_named(probe: &Probe) -> Outcome {
    let (task, id) = executed(probe, &probe.task("named")).await?;
    expect_field(&task["metadata"], "protocol", "a2a")?;
    expect_field(&task["metadata"], "root_task_id", id)?;
    let data = status_data(&task);
    let named = !data.is_empty() && data.iter().all(|data| data["protocol"] == "a2a");
    ensure!(
        named,
        "`status` is {}: expected `protocol` in its data",
        shown(&task["status"])
    );
    seen("in `metadata` and in the data of `status`")
}
