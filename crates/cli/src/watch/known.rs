//! What a watch knows about tasks by their ids: names, which events do not hold, and whether they are watched.

use crate::output::member;
use crate::{Api, ApiError};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// Tasks that are remembered: about 10 MB. Beyond it everything is forgotten and learned anew.
const TASKS_MAX: usize = 100_000;
/// The code of the refusal for a task that does not exist.
const TASK_NOT_FOUND: i64 = -32001;

/// The extent of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything on the server.
    Server,
    Flow {
        root: String,
    },
    /// A task that is not the root of its flow, and what is below it.
    Below {
        /// The root of its flow.
        root: String,
        /// Where the part that is shown begins; not the root.
        top: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// Empty: the server does not know it, or does not answer.
    pub(super) name: String,
    /// Whether it is watched.
    pub(super) inside: bool,
}

/// Asks for what it does not know.
pub(super) struct Known<'a> {
    api: &'a dyn Api,
    scope: Scope,
    tasks: HashMap<String, Task>,
    /// Flows whose trees were read.
    flows: HashSet<String>,
}

impl<'a> Known<'a> {
    pub(super) fn new(api: &'a dyn Api, scope: Scope) -> Self {
        Self {
            api,
            scope,
            tasks: HashMap::new(),
            flows: HashSet::new(),
        }
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whether every event that comes is watched, whatever its task.
    pub(super) fn takes_all(&self) -> bool {
        match self.scope {
            Scope::Server | Scope::Flow { .. } => true,
            Scope::Below { .. } => false,
        }
    }

    /// Reads the tree of a flow; gives the part of it that is watched.
    pub(super) async fn tree(&mut self, root: &str) -> Result<Value, ApiError> {
        let params = json!({ "task_id": root });
        let mut tree = self.api.call("tasks.tree", params).await?;
        if self.tasks.len() > TASKS_MAX {
            self.tasks.clear();
            self.flows.clear();
        }
        self.flows.insert(root.to_owned());
        let inside = self.takes_all();
        for task in tasks(&tree) {
            let name = member(task, "name");
            self.tasks.insert(member(task, "id"), Task { name, inside });
        }
        if let Scope::Below { top, .. } = &self.scope {
            tree = below(&tree, top).cloned().unwrap_or_default();
            for task in tasks(&tree) {
                if let Some(known) = self.tasks.get_mut(&member(task, "id")) {
                    known.inside = true;
                }
            }
        }
        Ok(tree)
    }

    /// What is asked.
    pub(super) fn api(&self) -> &'a dyn Api {
        self.api
    }

    /// The task that an event is about.
    pub(super) async fn task(&mut self, event: &Value) -> Task {
        let (id, root) = (member(event, "task_id"), member(event, "root_task_id"));
        if !self.flows.contains(&root) {
            // Without an answer there are no names, and the next event asks again.
            let _ = self.tree(&root).await;
        }
        if let Some(task) = self.tasks.get(&id) {
            return task.clone();
        }
        let unknown = |inside| Task {
            name: String::new(),
            inside,
        };
        let task = match self.api.call("tasks.get", json!({ "task_id": id })).await {
            Ok(task) => Task {
                name: member(&task, "name"),
                inside: self.takes_all() || {
                    let parent = self.tasks.get(&member(&task, "parent_id"));
                    parent.is_some_and(|parent| parent.inside)
                },
            },
            // Deleted, probably.
            Err(ApiError::Refused {
                code: TASK_NOT_FOUND,
                ..
            }) => unknown(self.takes_all()),
            // A server that is busy now knows the name when the next event comes.
            Err(
                ApiError::Refused { .. }
                | ApiError::Denied { .. }
                | ApiError::Connection(_)
                | ApiError::Protocol(_),
            ) => return unknown(self.takes_all()),
        };
        self.tasks.insert(id, task.clone());
        task
    }
}

/// All tasks of `{task, children}`, in no particular order. No recursion.
pub(super) fn tasks(tree: &Value) -> impl Iterator<Item = &Value> {
    nodes(tree).filter_map(|node| node.get("task"))
}

/// The node of a task.
fn below<'t>(tree: &'t Value, top: &str) -> Option<&'t Value> {
    nodes(tree).find(|node| node["task"]["id"] == top)
}

fn nodes(tree: &Value) -> impl Iterator<Item = &Value> {
    let mut waiting = vec![tree];
    std::iter::from_fn(move || {
        let node = waiting.pop()?;
        let children = node.get("children").and_then(Value::as_array);
        waiting.extend(children.into_iter().flatten());
        Some(node)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use std::sync::Mutex;

    /// A flow `r` with `a`, below it `b`, and beside it `c`; later `d` below `b`.
    #[derive(Default)]
    struct Flow {
        calls: Mutex<Vec<String>>,
        /// So many calls are refused because the server is busy.
        busy: Mutex<usize>,
    }

    #[async_trait]
    impl Api for Flow {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            let id = params["task_id"].as_str().unwrap();
            self.calls.lock().unwrap().push(format!("{method} {id}"));
            let mut busy = self.busy.lock().unwrap();
            if *busy > 0 {
                *busy -= 1;
                return Err(ApiError::Refused {
                    code: -32013,
                    message: "Too busy".to_owned(),
                    data: Value::Null,
                });
            }
            let node = |id: &str, children: Value| json!({"task": {"id": id, "name": format!("the {id}")}, "children": children});
            match (method, id) {
                ("tasks.tree", "r") => Ok(node(
                    "r",
                    json!([
                        node("a", json!([node("b", json!([]))])),
                        node("c", json!([]))
                    ]),
                )),
                ("tasks.get", "d") => Ok(json!({"id": "d", "name": "new", "parent_id": "b"})),
                _ => Err(ApiError::Refused {
                    code: -32001,
                    message: "Task not found".to_owned(),
                    data: Value::Null,
                }),
            }
        }
    }

    fn about(id: &str) -> Value {
        json!({"task_id": id, "root_task_id": "r"})
    }

    fn is(name: &str, inside: bool) -> Task {
        Task {
            name: name.to_owned(),
            inside,
        }
    }

    #[tokio::test]
    async fn names_are_asked_for_once() {
        let flow = Flow::default();
        let mut known = Known::new(&flow, Scope::Server);
        for _ in 0..2 {
            assert_eq!(known.task(&about("b")).await, is("the b", true));
            assert_eq!(known.task(&about("d")).await, is("new", true));
            assert_eq!(known.task(&about("gone")).await, is("", true));
        }
        assert_eq!(
            *flow.calls.lock().unwrap(),
            ["tasks.tree r", "tasks.get d", "tasks.get gone"]
        );
    }

    #[tokio::test]
    async fn a_name_that_a_busy_server_did_not_tell_is_asked_for_again() {
        let flow = Flow::default();
        *flow.busy.lock().unwrap() = 2;
        let mut known = Known::new(&flow, Scope::Server);
        assert_eq!(known.task(&about("b")).await, is("", true));
        assert_eq!(known.task(&about("b")).await, is("the b", true));
    }

    #[tokio::test]
    async fn of_a_task_in_a_flow_what_is_below_it_is_watched_also_when_it_is_new() {
        let flow = Flow::default();
        let (root, top) = ("r".to_owned(), "a".to_owned());
        let mut known = Known::new(&flow, Scope::Below { root, top });
        let tree = known.tree("r").await.unwrap();
        assert_eq!(tree["task"]["id"], "a");
        for (id, inside) in [
            ("r", false),
            ("a", true),
            ("b", true),
            ("c", false),
            ("d", true),
        ] {
            assert_eq!(known.task(&about(id)).await.inside, inside, "{id}");
        }
    }
}
