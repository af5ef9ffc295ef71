//! `taskledger respond`: the questions of suspended tasks, and answers to them.

use super::following::say;
use super::output::{Column, Output, Text, id, list, member, printable, show_table, time};
use super::{Api, CliError, Remote};
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use taskledger_domain::json::{self, Unread};

/// Answer the question of a suspended task, or list questions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger respond
  taskledger respond 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger respond 0f8fad5b-d9cb-469f-a165-70867728950e true
  taskledger respond 0f8fad5b-d9cb-469f-a165-70867728950e '{\"amount\": 5}'

Without an answer, the command shows the question; without a task, all questions. An answer that is not JSON
is sent as text.")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    /// The suspended task
    #[arg(value_name = "ID")]
    task_id: Option<String>,
    /// The answer: true or false, one of the choices, a text, or an object
    #[arg(value_name = "ANSWER", value_parser = NonEmptyStringValueParser::new())]
    answer: Option<String>,
    /// Send the answer as text, even if it looks like JSON
    #[arg(long, requires = "answer")]
    text: bool,
    /// The question to answer; default: the current one of the task
    #[arg(long, value_name = "ID")]
    suspension: Option<String>,
    /// A note: the person for whom you answer
    #[arg(long, value_name = "NAME")]
    responded_by: Option<String>,
}

/// Does what was asked and shows the result.
pub async fn respond(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let api = args.remote.api()?;
    let Some(task_id) = &args.task_id else {
        let page = json!({"suspended": true, "order": "asc"});
        let result = api.call("tasks.list", page).await?;
        if out.is_json() {
            out.value(&result)?;
        } else {
            waiting(&result, out)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let task_id = &super::ids::resolved(&api, task_id).await?;
    let Some(answer) = &args.answer else {
        let task = api.call("tasks.get", json!({"task_id": task_id})).await?;
        let suspension = asked(&task, task_id)?;
        if out.is_json() {
            out.value(suspension)?;
        } else {
            question(suspension, out)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let value = match json::read(answer.as_bytes()) {
        Ok(value) if !args.text => value,
        Err(error @ (Unread::Large(_) | Unread::Reserved)) if !args.text => {
            let reason = format!("the answer: {error}; --text sends it as a text");
            return Err(CliError::Usage(reason));
        }
        Ok(_) | Err(_) => Value::from(answer.as_str()),
    };
    let suspension_id = match &args.suspension {
        Some(id) => Value::from(id.as_str()),
        None => current(&api, task_id).await?,
    };
    let mut params = json!({"task_id": task_id, "suspension_id": suspension_id, "value": value});
    if let Some(name) = &args.responded_by {
        params["responded_by"] = json!(name);
    }
    let result = api.call("tasks.respond", params).await?;
    if out.is_json() {
        out.value(&result)?;
    } else {
        let (task, status) = (member(&result, "task_id"), member(&result, "status"));
        out.line(format!("{task}  {status}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn current(api: &impl Api, task_id: &str) -> Result<Value, CliError> {
    let task = api.call("tasks.get", json!({"task_id": task_id})).await?;
    Ok(asked(&task, task_id)?["suspension_id"].clone())
}

fn asked<'t>(task: &'t Value, task_id: &str) -> Result<&'t Value, CliError> {
    let suspension = task.get("suspension").filter(|it| it.is_object());
    suspension.ok_or_else(|| {
        let status = member(task, "status");
        CliError::Usage(format!("task {task_id} asks no question: it is {status}"))
    })
}

fn waiting(result: &Value, out: &mut Output) -> io::Result<()> {
    let columns = [
        Column::whole("ID"),
        Column::short("NAME"),
        Column::whole("SINCE").extra(),
        Column::wraps("QUESTION"),
    ];
    let rows = list(result, "tasks").iter().map(|task| {
        let asked = &task["suspension"];
        vec![
            id(out, &member(task, "id")),
            Text::from(member(task, "name")),
            time(out, asked, "since"),
            Text::from(member(&asked["question"], "question")),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        say("no task waits for an answer");
        return Ok(());
    }
    show_table(&columns, &rows, out)?;
    out.line(format!("{} of {}", rows.len(), member(result, "total")))
}

fn question(suspension: &Value, out: &mut Output) -> io::Result<()> {
    let asked = &suspension["question"];
    out.line(member(asked, "question"))?;
    let choices = asked["choices"].as_array();
    for choice in choices.into_iter().flatten() {
        let label = choice.get("label").map(|_| member(choice, "label"));
        let label = label.map_or_else(String::new, |label| format!("  {label}"));
        out.line(format!(
            "  {}{label}",
            printable(&choice["value"].to_string())
        ))?;
    }
    for (word, value) in [
        ("answer", asked.get("response_type")),
        ("context", asked.get("context")),
        (
            "fields",
            asked.get("fields").or_else(|| asked.get("schema")),
        ),
        ("until", suspension.get("expires_at")),
    ] {
        if let Some(value) = value {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            out.line(format!("{word}: {}", out.sentence(&printable(&text))))?;
        }
    }
    Ok(())
}
