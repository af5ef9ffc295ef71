//! `taskledger tasks update`

use super::dependency::{Dependency, dependencies, dependency};
use super::{Api, CliError, Object, Output, Params, Request, ids, json_object};
use crate::labels::labels;
use crate::output::member;
use crate::timing::{delayed, finite};
use crate::when::future;
use serde_json::{Value, json};
use std::io;

/// Change a task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks update 0f8fad5b-d9cb-469f-a165-70867728950e --priority 0
  taskledger tasks update @last --delay 0
  taskledger tasks update 0f8fad5b-d9cb-469f-a165-70867728950e --updates '{\"inputs\":{\"n\":2}}'")]
pub(super) struct Args {
    /// The task
    #[arg(value_name = "ID")]
    task_id: String,
    #[command(flatten)]
    changes: Changes,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// New name
    #[arg(long)]
    name: Option<String>,
    /// New executor
    #[arg(long, value_name = "EXECUTOR")]
    method: Option<String>,
    /// New inputs
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    inputs: Option<Object>,
    /// New settings of the execution, in place of all the old ones
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    params: Option<Object>,
    /// Start it this many seconds after it is ready, 0 for at once; its other settings stay
    #[arg(long, value_name = "SECONDS", value_parser = finite)]
    delay: Option<f64>,
    /// New parent in the same flow
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// New user
    #[arg(long)]
    user: Option<String>,
    /// 0 urgent, 1 high, 2 normal, 3 low
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: Option<u8>,
    /// Do not start it before this time, such as `10m` from now on; an empty text removes it
    #[arg(long, value_name = "TIME", value_parser = start)]
    start_at: Option<String>,
    /// New dependencies, in place of the old ones; may be repeated
    #[arg(long, value_name = "ID[:optional|:always]", value_parser = dependency)]
    depends_on: Vec<Dependency>,
    /// Remove all dependencies
    #[arg(long, conflicts_with = "depends_on")]
    no_dependencies: bool,
    /// A new label; the options replace all labels of the task; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Remove all labels
    #[arg(long, conflicts_with = "labels")]
    no_labels: bool,
    /// Any fields, as JSON; the other options take precedence
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    updates: Option<Object>,
}

impl Args {
    /// The delay that is to be set.
    pub(super) const fn delay(&self) -> Option<f64> {
        self.changes.delay
    }

    pub(super) fn request(self) -> Result<Request, CliError> {
        let Changes {
            name,
            method,
            inputs,
            params,
            // Set in settings that may have to be asked for.
            delay: _,
            parent,
            user,
            priority,
            start_at,
            depends_on,
            no_dependencies,
            labels: given,
            no_labels,
            updates,
        } = self.changes;
        let replaces_dependencies = no_dependencies || !depends_on.is_empty();
        let updates = Params(updates.map(|object| object.0).unwrap_or_default())
            .maybe("name", name)
            .maybe("schemas", method.map(|method| json!({"method": method})))
            .maybe("inputs", inputs.map(|object| object.0))
            .maybe("params", params.map(|object| object.0))
            .maybe("parent_id", parent)
            .maybe("user_id", user)
            .maybe("priority", priority)
            .maybe(
                "start_at",
                start_at.map(|at| {
                    if at.is_empty() {
                        Value::Null
                    } else {
                        Value::from(at)
                    }
                }),
            )
            .maybe(
                "dependencies",
                replaces_dependencies.then(|| dependencies(&depends_on)),
            )
            .maybe("labels", labels(&given)?.or(no_labels.then(|| json!({}))));
        Ok(Request {
            method: "tasks.update",
            params: Params::default()
                .with("task_id", self.task_id)
                .with("updates", updates.build())
                .build(),
            show,
        })
    }
}

/// Sets the delay in the settings that an update gives, or else in those that the task has.
pub(super) async fn with_delay(
    mut request: Request,
    delay: f64,
    api: &dyn Api,
) -> Result<Request, CliError> {
    ids::resolve_in(api, &mut request.params).await?;
    let updates = &request.params["updates"];
    let mut params = match updates.get("params").filter(|given| given.is_object()) {
        Some(given) => given.clone(),
        None => {
            let asked = json!({"task_id": request.params["task_id"]});
            api.call("tasks.get", asked).await?["params"].take()
        }
    };
    delayed(&mut params, delay);
    request.params["updates"]["params"] = params;
    Ok(request)
}

fn start(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        text => future(text),
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    out.line(format!(
        "{}  {}",
        member(result, "id"),
        member(result, "status")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiError;
    use crate::testing::parsed;
    use async_trait::async_trait;

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    /// A server with one task.
    struct Delayed;

    #[async_trait]
    impl Api for Delayed {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            assert_eq!((method, params), ("tasks.get", json!({"task_id": ID})));
            Ok(json!({"id": ID, "params": {"retry_count": 2, "delay_seconds": 600}}))
        }
    }

    #[tokio::test]
    async fn a_delay_is_changed_and_the_other_settings_stay() {
        for (more, params) in [
            (&[][..], json!({"retry_count": 2, "delay_seconds": 0})),
            (
                &["--params", r#"{"timeout_seconds": 5}"#],
                json!({"timeout_seconds": 5, "delay_seconds": 0}),
            ),
        ] {
            let words = ["update", ID, "--delay", "0"].iter().chain(more).copied();
            let args: Args = parsed(words).unwrap();
            let delay = args.delay().unwrap();
            let request = args.request().unwrap();
            let request = with_delay(request, delay, &Delayed).await.unwrap();
            let expected = json!({"task_id": ID, "updates": {"params": params}});
            assert_eq!(request.params, expected);
        }
    }
}
