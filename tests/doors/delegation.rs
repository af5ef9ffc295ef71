//! `a2a_executor` with the real program: another taskledger as the agent, servers that are killed, agents that mean
//! ill.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod hostile;
mod kill;
mod pieces;
mod tasks;

use serde_json::{Value, json};
use std::net::TcpListener;
use taskledger_testkit::program::command;
use taskledger_testkit::server::{Api, Folder, Server};

/// Agents of these tests are on this machine.
const ALLOWED: [&str; 2] = ["--egress-allow-net", "127.0.0.1/32"];

/// A server that can be started again where it was.
struct Agent {
    folder: Folder,
    listen: String,
}

impl Agent {
    fn new() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            folder: Folder::new(),
            listen: free.local_addr().unwrap().to_string(),
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    async fn start(&self) -> Server {
        let mut serve = command();
        serve
            .args(["serve", "--listen", &self.listen])
            .args(self.folder.storage());
        Server::spawn(serve, self.folder.path()).await
    }
}

/// A server that calls agents.
async fn caller(folder: &Folder) -> Server {
    Server::start_with(folder, &ALLOWED).await
}

/// Begins a task that an agent does; its id.
async fn delegated(api: &Api, inputs: Value, params: Value) -> Value {
    let task = json!({"name": "delegated", "schemas": {"method": "a2a_executor"},
        "inputs": inputs, "params": params});
    let begun = api.call("tasks.execute", json!({"tasks": [task]})).await;
    begun["root_task_id"].clone()
}

async fn task(api: &Api, id: &Value) -> Value {
    api.call("tasks.get", json!({"task_id": id})).await
}

/// The task, once its run has ended.
async fn ended(api: &Api, id: &Value) -> Value {
    api.run_of(id).await;
    task(api, id).await
}

/// Inputs that have the agent at `url` run a task.
fn runs(url: &str, task: Value) -> Value {
    json!({"url": url, "data": {"tasks": [task]}})
}

fn echo(text: &str) -> Value {
    json!({"name": "echo", "schemas": {"method": "echo_executor"}, "inputs": {"text": text}})
}

fn sleeps(ms: u64) -> Value {
    json!({"name": "sleep", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": ms}})
}

fn asks(question: Value) -> Value {
    json!({"name": "ask", "schemas": {"method": "approval_executor"}, "inputs": question})
}

/// The question for which a task waits.
async fn suspension(api: &Api, id: &Value) -> Value {
    api.eventually("it asks", async || {
        let suspension = task(api, id).await["suspension"].take();
        suspension.is_object().then_some(suspension)
    })
    .await
}

async fn respond(api: &Api, id: &Value, suspension: &Value, value: Value) {
    let answer =
        json!({"task_id": id, "suspension_id": suspension["suspension_id"], "value": value});
    api.call("tasks.respond", answer).await;
}

/// The tasks of an agent, once there are so many.
async fn tasks_of(api: &Api, n: u64) -> Vec<Value> {
    api.eventually("the agent has tasks", async || {
        let list = api.call("tasks.list", json!({"limit": 50})).await;
        let total = list["total"].as_u64().unwrap();
        (total >= n).then(|| list["tasks"].as_array().unwrap().clone())
    })
    .await
}
