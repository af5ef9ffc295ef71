//! The agents of `examples/agents` in Python and Go, with stubs that `grpcio` and `protoc` have generated: they do
//! tasks, say how far they are, tell a requester, and go on after the server was killed. (The one in Rust has its test
//! beside it.)

use super::others::{file, interpreter};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;
use taskledger_testkit::program::{command, command_of};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The example in one language.
struct Example {
    agent: &'static str,
    /// The program that executes tasks.
    executes: fn() -> Command,
    /// The program that publishes a task with the text that is its next argument, and awaits the result.
    requests: fn() -> Command,
    /// A result with this number of words, as the requester prints it.
    words: fn(usize) -> String,
}

const PYTHON: Example = Example {
    agent: "python-agent",
    executes: || python("agent"),
    requests: || python("requester"),
    words: |words| format!("{{'words': {words}.0}}"),
};

const GO: Example = Example {
    agent: "go-agent",
    executes: go,
    requests: || {
        let mut requester = go();
        requester.arg("request");
        requester
    },
    words: |words| format!("map[words:{words}]"),
};

fn python(name: &str) -> Command {
    let mut program = command_of(interpreter());
    program
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(file(&format!("examples/agents/python/{name}.py")));
    program
}

/// `need_go_agent` of `.ci/tools.sh` has built it.
fn go() -> Command {
    command_of(file("target/clients/go/agent"))
}

struct Agent {
    // Ended when it is dropped.
    _process: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    fn start(mut program: Command, url: &str) -> Self {
        let mut process = program
            .env("TASKLEDGER_URL", url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            _process: process,
            printed,
        }
    }

    async fn says(&mut self) -> String {
        let line = timeout(PATIENCE, self.printed.next_line()).await;
        line.unwrap().unwrap().expect("the agent goes on")
    }
}

/// Publishes a task and waits for its result; the id, and what is said of the result.
async fn requested(mut requester: Command, url: &str, arguments: &[&str]) -> (String, String) {
    requester.env("TASKLEDGER_URL", url).args(arguments);
    let done = timeout(PATIENCE, requester.output()).await.unwrap();
    let done = done.unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    let printed = String::from_utf8(done.stdout).unwrap();
    let (published, answer) = printed.trim().split_once('\n').unwrap();
    let id = published.strip_prefix("published ").unwrap();
    (id.to_owned(), answer.to_owned())
}

async fn started(folder: &Folder, listen: &str) -> Server {
    let mut serve = command();
    serve
        .args(["serve", "--listen", listen])
        .args(folder.storage());
    Server::spawn(serve, folder.path()).await
}

/// What was said of how far the task is that was published last.
async fn progress(server: &Server) -> Vec<Value> {
    let newest = json!({"limit": 1, "order": "desc"});
    let list = server.api.call("tasks.list", newest).await;
    let task = json!({"task_id": list["tasks"][0]["id"]});
    let history = server.api.call("tasks.history", task).await;
    let events = history["events"].as_array().unwrap().iter();
    let said = events.filter_map(|it| it["data"].get("progress").cloned());
    said.collect()
}

/// Tasks are done, before and after a kill of the server. `addressed`: the arguments of a task for this agent alone.
async fn does_tasks(example: Example, addressed: Option<&[&str]>) {
    // One that is free, and stays the server's.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let (folder, url) = (Folder::new(), format!("http://{listen}"));
    let server = started(&folder, &listen).await;
    let mut agent = Agent::start((example.executes)(), &url);
    let mut does = async |arguments: &[&str]| {
        let words = arguments[0].split(' ').count();
        let (id, answer) = requested((example.requests)(), &url, arguments).await;
        let expected = format!("{} answers {}", example.agent, (example.words)(words));
        assert_eq!(answer, expected);
        assert_eq!(agent.says().await, format!("executed {id}"));
    };
    does(&["to be or not to be"]).await;
    assert_eq!(progress(&server).await[0], 0.5);
    if let Some(addressed) = addressed {
        does(addressed).await;
    }
    server.kill().await;
    let server = started(&folder, &listen).await;
    does(&["after the kill"]).await;
    server.stop().await;
}

#[tokio::test]
async fn agents_in_python_do_tasks_and_go_on_after_the_server_was_killed() {
    let addressed = ["one two", "--agent", "python-agent"];
    does_tasks(PYTHON, Some(&addressed)).await;
}

#[tokio::test]
async fn agents_in_go_do_tasks_and_go_on_after_the_server_was_killed() {
    does_tasks(GO, None).await;
}
