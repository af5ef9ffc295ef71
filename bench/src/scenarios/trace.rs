//! Workflows of others: recorded executions in WfFormat (`--trace FILE`, as wfcommons.org has them),
//! or, without any, the graph of the example in this repository. Once as tasks that do nothing, which
//! shows what the server adds to each; and, for recorded ones, as tasks that sleep as long as they ran,
//! scaled, which shows how near the run comes to its critical path.

use super::workflow::run;
use crate::args::Args;
use crate::nodes::Nodes;
use crate::report::{Figures, Report};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// The graph that is taken when no trace is named.
const EXAMPLE: &str = include_str!("../../../examples/real_workflow.json");
/// Milliseconds to which the critical path is scaled.
const CRITICAL_PATH_MS: f64 = 250.0;
/// Characters of a name that are kept.
const NAME_CHARS: usize = 255;

/// A graph of tasks.
struct Graph {
    name: String,
    tasks: Vec<Node>,
}

struct Node {
    id: String,
    name: String,
    parent: Option<String>,
    waits: Vec<Value>,
    /// As recorded.
    seconds: f64,
    /// Runs nothing.
    is_group: bool,
}

/// Each trace.
pub(crate) async fn traces(args: &Args, report: &mut Report) -> Result<(), String> {
    let mut graphs = Vec::new();
    for path in &args.trace {
        graphs.push(recorded(path)?);
    }
    if graphs.is_empty() {
        graphs.push(example()?);
    }
    for graph in graphs {
        let nodes = Nodes::start(args, "trace").await?;
        let tasks = graph.tasks.iter().filter(|task| !task.is_group).count();
        let figures = run(args, &nodes, &graph.params(None), tasks).await?;
        let name = format!("wfinstances, {}, {tasks} tasks", graph.name);
        report.figures(&format!("{name} that do nothing"), figures);
        let path = graph.critical_path()?;
        if path > 0.0 {
            let scale = CRITICAL_PATH_MS / 1e3 / path;
            let asleep = run(args, &nodes, &graph.params(Some(scale)), tasks).await?;
            let mut figures = Figures::default();
            for took in asleep.values("submission to end") {
                figures.add("submission to end", "ms", took);
                let ratio = took / CRITICAL_PATH_MS;
                figures.add("against the critical path of 250 ms", "times", ratio);
            }
            report.figures(&format!("{name} that sleep"), figures);
        }
        nodes.stop().await?;
    }
    Ok(())
}

/// The example's graph; its times are not known.
fn example() -> Result<Graph, String> {
    let example: Value = serde_json::from_str(EXAMPLE).map_err(|e| e.to_string())?;
    let tasks = example["tasks"].as_array().ok_or("the example is empty")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let node = |task: &Value| {
        Some(Node {
            id: text(&task["id"])?,
            name: text(&task["name"])?,
            parent: text(&task["parent_id"]),
            waits: task["dependencies"].as_array().cloned().unwrap_or_default(),
            seconds: 0.0,
            is_group: task["schemas"].is_null(),
        })
    };
    Ok(Graph {
        name: "the example of the repository".to_owned(),
        tasks: tasks.iter().filter_map(node).collect(),
    })
}

/// A recorded execution, below one group.
fn recorded(path: &Path) -> Result<Graph, String> {
    const ROOT: &str = "__root__";
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e.to_string()))?;
    let trace: Value = serde_json::from_str(&text).map_err(|e| wrong(&e.to_string()))?;
    let workflow = &trace["workflow"];
    let of = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let seconds: HashMap<String, f64> = of(&workflow["execution"]["tasks"])
        .iter()
        .filter_map(|task| {
            let ran = task["runtimeInSeconds"].as_f64()?;
            Some((task["id"].as_str()?.to_owned(), ran))
        })
        .collect();
    let mut tasks = vec![Node {
        id: ROOT.to_owned(),
        name: ROOT.to_owned(),
        parent: None,
        waits: Vec::new(),
        seconds: 0.0,
        is_group: true,
    }];
    for task in of(&workflow["specification"]["tasks"]) {
        let id = task["id"]
            .as_str()
            .ok_or_else(|| wrong("a task has no id"))?;
        let name = task["name"].as_str().unwrap_or(id);
        let waits = of(&task["parents"]);
        tasks.push(Node {
            id: id.to_owned(),
            name: name.chars().take(NAME_CHARS).collect(),
            parent: Some(ROOT.to_owned()),
            waits: waits.iter().map(|id| json!({ "id": id })).collect(),
            seconds: seconds.get(id).copied().unwrap_or(0.0),
            is_group: false,
        });
    }
    if tasks.len() == 1 {
        return Err(wrong("no trace in WfFormat: it has no tasks"));
    }
    let name = path.file_stem().map(|name| name.to_string_lossy());
    Ok(Graph {
        name: name.unwrap_or_default().into_owned(),
        tasks,
    })
}

impl Graph {
    /// The call that executes it: tasks that do nothing, or that sleep so many times as long as they ran.
    fn params(&self, scale: Option<f64>) -> Value {
        let task = |node: &Node| {
            let mut task = json!({"id": node.id, "name": node.name, "dependencies": node.waits});
            if let Some(parent) = &node.parent {
                task["parent_id"] = json!(parent);
            }
            if !node.is_group {
                let (method, inputs) = match scale {
                    None => ("echo_executor", json!({"of": node.name})),
                    Some(scale) => {
                        let inputs = json!({"duration_ms": node.seconds * scale * 1e3});
                        ("sleep_executor", inputs)
                    }
                };
                task["schemas"] = json!({ "method": method });
                task["inputs"] = inputs;
            }
            task
        };
        let tasks: Vec<Value> = self.tasks.iter().map(task).collect();
        json!({ "tasks": tasks, "use_streaming": true })
    }

    /// Seconds of the longest way through it.
    fn critical_path(&self) -> Result<f64, String> {
        let mut ends: HashMap<&str, f64> = HashMap::new();
        let mut left: Vec<&Node> = self.tasks.iter().collect();
        while !left.is_empty() {
            let before = left.len();
            left.retain(|node| {
                let ids = node.waits.iter().map(|wait| wait["id"].as_str());
                let mut begins = ids.map(|id| ends.get(id.unwrap_or_default()).copied());
                let begin = begins.try_fold(0.0_f64, |most, end| Some(most.max(end?)));
                if let Some(begin) = begin {
                    ends.insert(&node.id, begin + node.seconds);
                }
                begin.is_none()
            });
            if left.len() == before {
                return Err(format!("{}: its tasks wait for each other", self.name));
            }
        }
        Ok(ends.into_values().fold(0.0, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::{Graph, Node, example};
    use serde_json::json;

    #[test]
    fn the_critical_path_is_the_longest_way() {
        let node = |id: &str, waits: &[&str], seconds| Node {
            id: id.to_owned(),
            name: id.to_owned(),
            parent: None,
            waits: waits.iter().map(|id| json!({ "id": id })).collect(),
            seconds,
            is_group: false,
        };
        let tasks = vec![
            node("d", &["b", "c"], 1.0),
            node("b", &["a"], 5.0),
            node("c", &["a"], 2.0),
            node("a", &[], 1.0),
        ];
        let name = "a diamond".to_owned();
        assert_eq!(Graph { name, tasks }.critical_path(), Ok(7.0));
    }

    #[test]
    fn the_example_is_a_graph() {
        let example = example().expect("the example of the repository");
        assert!(example.tasks.len() > 30);
        assert_eq!(example.critical_path(), Ok(0.0));
    }
}
