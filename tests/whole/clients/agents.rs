//! The agents of `examples/agents` in Python, with stubs that `grpcio` has generated: they do tasks, tell a requester, and go
//! on after the server was killed. (The one in Rust has its test beside it.)

use super::others::{file, interpreter};
use std::net::TcpListener;
use std::process::Stdio;
use taskledger_testkit::program::{command, command_of};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A program of the example, for a server.
fn program(name: &str, url: &str) -> Command {
    let mut program = command_of(interpreter());
    program
        .env("TASKLEDGER_URL", url)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(file(&format!("examples/agents/python/{name}.py")));
    program
}

struct Agent {
    // Ended when it is dropped.
    _process: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    fn start(url: &str) -> Self {
        let mut process = program("agent", url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            _process: process,
            printed,
        }
    }
}

/// Publishes a task and waits for its result; the id, and what is said of the result.
async fn requested(url: &str, arguments: &[&str]) -> (String, String) {
    let mut requester = program("requester", url);
    let done = requester.args(arguments).output().await.unwrap();
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

#[tokio::test]
async fn agents_in_python_do_tasks_and_go_on_after_the_server_was_killed() {
    // One that is free, and stays the server's.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let (folder, url) = (Folder::new(), format!("http://{listen}"));
    let server = started(&folder, &listen).await;
    let mut agent = Agent::start(&url);
    let mut does = async |arguments: &[&str], words: usize| {
        let (id, answer) = requested(&url, arguments).await;
        let expected = format!("python-agent answers {{'words': {words}.0}}");
        assert_eq!(answer, expected);
        let line = agent.printed.next_line().await.unwrap().unwrap();
        assert_eq!(line, format!("executed {id}"));
    };
    does(&["to be or not to be"], 6).await;
    does(&["one two", "--agent", "python-agent"], 2).await;
    server.kill().await;
    let server = started(&folder, &listen).await;
    does(&["after the kill"], 3).await;
    server.stop().await;
}
