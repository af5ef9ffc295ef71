//! Agents that are made with the official SDKs of Agent2Agent, called by `a2a_executor` and by `taskledger a2a`: what
//! they stream, a question and its answer, an answer without a task, a failure, a refusal, a cancel; with streams and
//! without. An agent of the SDK of 0.3 is told apart.

use super::others::{file, node, python};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longer than an agent takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const BINDINGS: [&str; 2] = ["JSONRPC", "HTTP+JSON"];

/// An agent, and where it is.
struct Peer {
    url: String,
    // Ended when it is dropped.
    _process: Child,
}

impl Peer {
    async fn start(mut program: Command) -> Self {
        let mut process = program.stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = timeout(PATIENCE, printed.next_line()).await.unwrap();
        Self {
            url: url.unwrap().expect("the agent prints its URL"),
            _process: process,
        }
    }
}

/// A server that calls a peer.
struct World {
    peer: Peer,
    server: Server,
    binding: &'static str,
    _folder: Folder,
}

impl World {
    async fn start(program: Command, binding: &'static str) -> Self {
        let folder = Folder::new();
        let allowed = ["--egress-allow-net", "127.0.0.1/32"];
        Self {
            peer: Peer::start(program).await,
            server: Server::start_with(&folder, &allowed).await,
            binding,
            _folder: folder,
        }
    }

    /// Begins a task that the peer does; its id.
    async fn begun(&self, words: &str) -> Value {
        let inputs = json!({"url": self.peer.url, "text": words, "binding": self.binding});
        let task = json!({"name": words, "schemas": {"method": "a2a_executor"}, "inputs": inputs});
        let begun = json!({"tasks": [task]});
        let begun = self.server.api.call("tasks.execute", begun).await;
        begun["root_task_id"].clone()
    }

    async fn task(&self, id: &Value) -> Value {
        self.server
            .api
            .call("tasks.get", json!({"task_id": id}))
            .await
    }

    /// What has become of a task that the peer does.
    async fn done(&self, words: &str) -> Value {
        let id = self.begun(words).await;
        self.server.api.run_of(&id).await;
        self.task(&id).await
    }

    /// The result of a task in which the peer asks once.
    async fn answered(&self, words: &str, answer: &str) -> Value {
        let id = self.begun(words).await;
        let asks = async || {
            let suspension = self.task(&id).await["suspension"].take();
            suspension.is_object().then_some(suspension)
        };
        let asks = self.server.api.eventually("the peer asks", asks).await;
        assert_eq!(asks["question"]["question"], "Which colour?", "{asks}");
        let answer =
            json!({"task_id": id, "suspension_id": asks["suspension_id"], "value": answer});
        self.server.api.call("tasks.respond", answer).await;
        self.server.api.run_of(&id).await;
        let done = self.task(&id).await;
        assert_eq!(done["status"], "completed", "{words}: {done}");
        done["result"].clone()
    }

    /// What `taskledger a2a` prints, as JSON.
    async fn prints(&self, command: &str, arguments: &[&str]) -> Value {
        let all = [
            &["a2a", command, &self.peer.url],
            arguments,
            &["--json", "--binding", self.binding],
        ];
        let printed = run(all.concat()).await.done();
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }
}

/// The names of the artifacts of a task of the protocol.
fn made(task: &Value) -> Vec<&str> {
    let artifacts = task["artifacts"].as_array().unwrap().iter();
    artifacts
        .map(|it| it["artifactId"].as_str().unwrap())
        .collect()
}

/// Everything that a peer does, for tasks and on the command line.
async fn is_called(program: impl Fn() -> Command, name: &str) {
    for binding in BINDINGS {
        let world = World::start(program(), binding).await;
        let said = world.done("say hello").await;
        assert_eq!(said["result"]["text"], "Hello World", "{said}");
        let streamed = world.done("stream").await;
        assert_eq!(streamed["status"], "completed", "{streamed}");
        assert_eq!(streamed["result"]["text"], "to be or not to be");

        // A later message of a task: its stream begins with an update, or with the task as it was.
        let answered = world.answered("ask", "blue").await;
        assert_eq!(answered["text"], "answered blue", "{answered}");
        let answered = world.answered("again", "red").await;
        assert_eq!(made(&answered), ["draft", "answer"], "{answered}");
        assert_eq!(answered["text"], "answered red");

        for (words, error) in [
            ("fail", format!("agent `{name}` failed task `")),
            ("reject", format!("agent `{name}` rejected task `")),
        ] {
            let done = world.done(words).await;
            assert_eq!(done["status"], "failed", "{done}");
            let told = done["error"].as_str().unwrap();
            assert!(told.starts_with(&error), "{told}");
        }
        let id = world.begun("wait").await;
        let api = &world.server.api;
        let remote = async || {
            let history = api.call("tasks.history", json!({"task_id": id})).await;
            let events = history["events"].as_array().unwrap().iter();
            let notes =
                events.filter_map(|it| it["data"]["message"].as_str()?.strip_prefix("agent task "));
            notes.map(str::to_owned).next()
        };
        let remote = api.eventually("the peer has a task", remote).await;
        api.call("tasks.cancel", json!({"task_id": id})).await;
        let is_cancelled = async || {
            let task = world.prints("get", &[&remote]).await;
            (task["status"]["state"] == "TASK_STATE_CANCELED").then_some(())
        };
        api.eventually("the peer's task is cancelled", is_cancelled)
            .await;

        let asks = world.prints("send", &["again"]).await;
        assert_eq!(
            asks["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
            "{asks}"
        );
        let id = asks["id"].as_str().unwrap();
        let done = world.prints("send", &["green", "--task", id]).await;
        assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
        assert_eq!(made(&done), ["draft", "answer"], "{done}");
        let said = world.prints("send", &["say hello"]).await;
        assert_eq!(said["parts"][0]["text"], "Hello World", "{said}");
        world.server.stop().await;
    }
}

fn polled(mut program: Command) -> Command {
    program.arg("--polled");
    program
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_the_official_python_sdk_are_called() {
    is_called(|| python("agent.py"), "python-peer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_the_official_python_sdk_are_called_without_streams() {
    is_called(|| polled(python("agent.py")), "python-peer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_the_official_javascript_sdk_are_called() {
    is_called(|| node("agent.mjs"), "javascript-peer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_the_official_javascript_sdk_are_called_without_streams() {
    is_called(|| polled(node("agent.mjs")), "javascript-peer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_the_official_python_sdk_of_0_3_is_named_as_one() {
    let mut program = python("agent_v03.py");
    program.env("PYTHONPATH", file("target/clients/a2a-0.3"));
    let world = World::start(program, "JSONRPC").await;
    let told = "the agent speaks A2A 0.3";
    let failed = world.done("say hello").await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.starts_with(told), "{error}");
    let refused = run(["a2a", "send", &world.peer.url, "say hello"]).await;
    let refused = refused.refused(2);
    assert!(refused.contains(told), "{refused}");
    world.server.stop().await;
}
