//! The worst texts that a caller may send, to a server with one thread for all of its work: `/livez` is answered while
//! they are read, and each of them is answered. The table "What a caller's text may cost" in `docs/guides/security.md`
//! has the limits.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use taskledger_domain::limits::{
    BATCH_CALLS_MAX, DEPENDENCIES_PER_TASK_MAX, REQUEST_BODY_BYTES_MAX, TASKS_PER_CALL_MAX,
};
use taskledger_domain::testing::hostile::attacks;
use taskledger_testkit::program;
use taskledger_testkit::server::{Folder, Server};

/// Connections on which each text is sent at once.
const CONNECTIONS: usize = 3;
/// How often the server is asked for its health meanwhile.
const PROBES: usize = 10;
/// What remains of the largest body beside a text in it.
const ENVELOPE_BYTES: usize = 4096;

/// A request with the worst text of some kind.
struct Worst {
    name: &'static str,
    path: &'static str,
    body: String,
    /// Part of the answer.
    answer: &'static str,
}

fn call(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn rpc(name: &'static str, method: &str, params: &Value, answer: &'static str) -> Worst {
    Worst {
        name,
        path: "",
        body: call(method, params),
        answer,
    }
}

/// A text of the largest body that repeats `piece` between `begin` and `end`.
fn filled(begin: &str, piece: &str, end: &str) -> String {
    let room = REQUEST_BODY_BYTES_MAX - ENVELOPE_BYTES - begin.len() - end.len();
    [begin, &piece.repeat(room / piece.len()), end].concat()
}

fn long() -> String {
    "x".repeat(REQUEST_BODY_BYTES_MAX - ENVELOPE_BYTES)
}

/// A task below `r` that waits for the one before it.
fn chained(n: usize) -> Value {
    let before = n.checked_sub(1);
    let dependencies: Vec<Value> = before
        .map(|n| json!({"id": n.to_string()}))
        .into_iter()
        .collect();
    json!({"id": n.to_string(), "name": "t", "parent_id": "r", "dependencies": dependencies})
}

fn members(count: usize, value: &Value) -> Value {
    let members: Map<String, Value> = (0..count)
        .map(|n| (format!("m{n}"), value.clone()))
        .collect();
    Value::Object(members)
}

fn bodies() -> Vec<Worst> {
    let begin = r#"{"jsonrpc":"2.0","id":1,"method":"system.whoami","params":["#;
    vec![
        Worst {
            name: "values that take eighty times their text",
            path: "",
            body: filled(begin, r#"{"":0},"#, "0]}"),
            answer: "too many values",
        },
        Worst {
            name: "numbers",
            path: "",
            body: filled(begin, "0,", "0]}"),
            answer: "too many values",
        },
        Worst {
            name: "levels",
            path: "",
            body: [begin, &"[".repeat(300_000), "]}"].concat(),
            answer: "-32700",
        },
        Worst {
            name: "calls of a batch",
            path: "",
            body: ["[", &"0,".repeat(200_000), "0]"].concat(),
            answer: "too many calls in one batch",
        },
        Worst {
            name: "a body of Agent2Agent",
            path: "a2a/rest/message:send",
            body: filled(r#"{"message":{"parts":["#, r#"{"text":""},"#, "0]}}"),
            answer: "",
        },
        Worst {
            name: "unknown members of a message",
            path: "a2a",
            body: json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
                "params": members(200_000, &json!(0))})
            .to_string(),
            answer: "error",
        },
    ]
}

fn parameters() -> Vec<Worst> {
    let unknown = members(300_000, &json!(0));
    let mut worst = vec![
        rpc(
            "unknown parameters",
            "system.whoami",
            &unknown,
            "unknown parameter",
        ),
        rpc(
            "unknown members of a task",
            "tasks.create",
            &unknown,
            "Unknown field",
        ),
        rpc(
            "unknown members of a dependency",
            "tasks.create",
            &json!({"name": "t", "dependencies": [unknown]}),
            "Unknown field",
        ),
        rpc(
            "labels",
            "tasks.create",
            &json!({"name": "t", "labels": unknown}),
            "Too many",
        ),
        rpc("a name", "tasks.create", &json!({"name": long()}), "-32602"),
        rpc(
            "a cursor",
            "tasks.list",
            &json!({"cursor": long()}),
            "-32602",
        ),
        rpc("an id", "tasks.get", &json!({"task_id": long()}), "-32602"),
        rpc(
            "a URL",
            "webhooks.create",
            &json!({"url": format!("https://{}", long())}),
            "-32602",
        ),
        rpc(
            "a time rule",
            "schedules.create",
            &json!({"name": "s", "cron": long(), "tasks": [{"name": "t"}]}),
            "-32602",
        ),
        rpc(
            "a document",
            "workflows.validate",
            &json!({"document": format!("a: &a {}", "[*a, ".repeat(10_000))}),
            "errors",
        ),
        rpc(
            "dependencies of one task on tasks that do not exist",
            "tasks.create",
            &json!({"name": "t", "dependencies":
                vec![json!({"id": "aa0e8400-e29b-41d4-a716-446655440000"}); DEPENDENCIES_PER_TASK_MAX]}),
            "-32",
        ),
        rpc(
            "templates",
            "tasks.create",
            &json!({"name": "t", "schemas": {"template": true}, "inputs": {"t": "{{a.b}}".repeat(100_000)}}),
            "-32602",
        ),
        Worst {
            name: "a method",
            path: "",
            body: call(&long(), &json!({})),
            answer: "-32601",
        },
        Worst {
            name: "texts that are no calls",
            path: "",
            body: Value::Array(vec![json!({"jsonrpc": long()}); 1]).to_string(),
            answer: "-32600",
        },
    ];
    let root = json!({"id": "r", "name": "root"});
    let last = TASKS_PER_CALL_MAX - 2;
    let chain: Vec<Value> = [root].into_iter().chain((0..=last).map(chained)).collect();
    let mut circle = chain.clone();
    circle[1]["dependencies"] = json!([{"id": last.to_string()}]);
    worst.push(rpc(
        "a chain of tasks",
        "tasks.create",
        &json!({"tasks": chain}),
        "result",
    ));
    worst.push(rpc(
        "a circle of tasks",
        "tasks.create",
        &json!({"tasks": circle}),
        "-32",
    ));
    let batch: Vec<Value> = (0..BATCH_CALLS_MAX)
        .map(|id| {
            json!({"jsonrpc": "2.0", "id": id, "method": "system.whoami",
                "params": members(1_000, &json!(0))})
        })
        .collect();
    worst.push(Worst {
        name: "calls with unknown parameters",
        path: "",
        body: json!(batch).to_string(),
        answer: "unknown parameter",
    });
    worst
}

fn schemas() -> Vec<Worst> {
    let task = |schema: &Value, inputs: &Value| {
        json!({"name": "a", "inputs": inputs,
            "schemas": {"method": "echo_executor", "input_schema": schema}})
    };
    let attacks = attacks().into_iter();
    attacks
        .map(|attack| Worst {
            name: "a schema",
            path: "",
            body: call("tasks.create", &task(&attack.schema, &attack.inputs)),
            answer: "",
        })
        .collect()
}

/// Sends each text on several connections at once, and asks for the health of the server meanwhile.
async fn all_are_served(worst: Vec<Worst>) {
    let folder = Folder::new();
    let mut command = program::command();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(folder.storage())
        .env("TASKLEDGER_STATE_DIR", folder.path().join("state"))
        // The runtime's own variable.
        .env("TOKIO_WORKER_THREADS", "1");
    let server = Server::spawn(command, folder.path()).await;
    let url = &server.api.url;
    let livez = async || {
        // A connection of its own each time, which the one thread has to accept.
        let http = taskledger::tls::client().build().unwrap();
        let answer = http.get(format!("{url}livez")).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    };
    for Worst {
        name,
        path,
        body,
        answer,
    } in worst
    {
        let send = async || {
            let http = taskledger::tls::client().build().unwrap();
            let mut request = http
                .post(format!("{url}{path}"))
                .header("content-type", "application/json")
                .body(body.clone());
            if path.starts_with("a2a") {
                request = request.header("a2a-version", "1.0");
            }
            request.send().await.unwrap().text().await.unwrap()
        };
        let probes = async {
            for _ in 0..PROBES {
                livez().await;
            }
        };
        let (answers, ()) = tokio::join!(join_all((0..CONNECTIONS).map(|_| send())), probes);
        for given in answers {
            let begin: String = given.chars().take(500).collect();
            assert!(given.contains(answer), "{name}: {begin}");
        }
    }
    livez().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_the_worst_bodies_are_read() {
    all_are_served(bodies()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_the_worst_parameters_are_read() {
    all_are_served(parameters()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_the_worst_schemas_are_compiled() {
    all_are_served(schemas()).await;
}
