//! Agents that mean ill, or are broken: what they send is held within limits, what they name is not called unless it
//! is allowed, and the task fails with what was wrong.

use super::{caller, delegated, ended};
use serde_json::{Value, json};
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver};
use taskledger_testkit::server::{Folder, Server};

const CARD: &str = "/.well-known/agent-card.json";
const STREAM: &str = "/rest/message:stream";
const SEND: &str = "/rest/message:send";
/// What the network holds on top of what a client has read.
const NETWORK_BYTES: u64 = 16 * 1024 * 1024;

fn card(url: &str, streaming: bool) -> Value {
    json!({
        "name": "stranger", "description": "d", "version": "1", "skills": [],
        "supportedInterfaces": [{"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": streaming}, "defaultInputModes": [], "defaultOutputModes": []
    })
}

fn answers(body: &Value) -> Answer {
    let answer = Answer::status(200).header("content-type", "application/json");
    answer.body(body.to_string())
}

fn events(items: &[Value]) -> Answer {
    let answer = Answer::status(200).header("content-type", "text/event-stream");
    let body: String = items
        .iter()
        .map(|item| format!("data: {item}\n\n"))
        .collect();
    answer.body(body)
}

fn endless_events(begin: &str, piece: &str) -> Behaviour {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Behaviour::Endless {
        head: format!("{head}{}", chunk(begin)).into_bytes(),
        piece: chunk(piece).into_bytes(),
        pause: std::time::Duration::ZERO,
    }
}

fn task(state: &str) -> Value {
    json!({"id": "t-1", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}})
}

/// A stranger, and a server that calls it.
struct World {
    receiver: Receiver,
    server: Server,
    _folder: Folder,
}

impl World {
    async fn start() -> Self {
        let (folder, receiver) = (Folder::new(), Receiver::start().await);
        let world = Self {
            server: caller(&folder).await,
            receiver,
            _folder: folder,
        };
        world.has_card(true);
        world
    }

    fn has_card(&self, streaming: bool) {
        let card = card(&self.receiver.url("/rest"), streaming);
        self.receiver.answer_at(CARD, answers(&card));
    }

    async fn asked(&self, more: Value) -> Value {
        let mut inputs = json!({"url": self.receiver.url(""), "text": "please"});
        for (name, value) in more.as_object().unwrap() {
            inputs[name] = value.clone();
        }
        let id = delegated(&self.server.api, inputs, json!({})).await;
        ended(&self.server.api, &id).await
    }

    /// The error of the task.
    async fn fails(&self, more: Value) -> String {
        let task = self.asked(more).await;
        assert_eq!(task["status"], "failed", "{task}");
        task["error"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_that_are_none_or_lead_elsewhere_are_refused() {
    let world = World::start().await;
    let (receiver, elsewhere) = (&world.receiver, Receiver::start().await);
    receiver.answer_at(CARD, Behaviour::endless_body());
    let error = world.fails(json!({})).await;
    assert_eq!(error, "the card of the agent has more than 262144 bytes");
    assert!(receiver.written() < NETWORK_BYTES, "{}", receiver.written());

    let moved = Answer::status(302).header("location", &elsewhere.url(CARD));
    for (answer, told) in [
        (moved, "not followed"),
        (Answer::status(404), "there is no card at http://127.0.0.1"),
        (Answer::status(200).body("<html>"), "no JSON object"),
        (
            answers(&json!({"name": "x"})),
            "the card of the agent is not valid: `description`",
        ),
        (
            answers(&card("https://10.0.0.1/rest", true)),
            "(blocked_address)",
        ),
        (
            answers(&card("https://169.254.169.254/latest", true)),
            "(blocked_address)",
        ),
        (answers(&card("file:///etc/passwd", true)), "scheme `file`"),
    ] {
        receiver.answer_at(CARD, answer);
        let error = world.fails(json!({})).await;
        assert!(error.contains(told), "{told}: {error}");
    }
    let mut only_grpc = card("127.0.0.1:1", true);
    only_grpc["supportedInterfaces"][0]["protocolBinding"] = json!("GRPC");
    receiver.answer_at(CARD, answers(&only_grpc));
    let error = world.fails(json!({})).await;
    let told = "the card names GRPC 1.0, expected JSONRPC or HTTP+JSON of version 1";
    assert_eq!(error, told);

    receiver.answer_at(CARD, answers(&card(&elsewhere.url("/rest"), true)));
    let secret = json!({"auth": {"type": "bearer", "token": "t0k3n"}});
    let error = world.fails(secret).await;
    assert!(
        error.contains("credentials for one are not sent to the other"),
        "{error}"
    );
    assert_eq!(elsewhere.connections(), 0, "nobody was called there");
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_answers_and_streams_end_at_a_limit() {
    let world = World::start().await;
    let receiver = &world.receiver;
    let begun = format!("data: {}\n\n", json!({"task": task("WORKING")}));
    let text = "x".repeat(1024 * 1024);
    let chunk = json!({"artifactUpdate": {"taskId": "t-1", "contextId": "c", "append": true,
        "artifact": {"artifactId": "a", "parts": [{"text": text}]}}});
    let artifact = format!("data: {chunk}\n\n");
    for (behaviour, told) in [
        (
            endless_events("data: ", &text),
            "an event of the agent has more than 4194304 bytes",
        ),
        (
            endless_events(&begun, &artifact),
            "the task of the agent has more than 8388608 bytes",
        ),
    ] {
        receiver.answer_at(STREAM, behaviour);
        let before = receiver.written();
        let error = world.fails(json!({})).await;
        assert_eq!(error, told);
        let written = receiver.written() - before;
        assert!(written < 4 * NETWORK_BYTES, "{written}");
    }
    world.has_card(false);
    receiver.answer_at(SEND, Behaviour::endless_body());
    let error = world.fails(json!({})).await;
    assert_eq!(error, "the answer of the agent has more than 4194304 bytes");
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_none_of_the_protocol_are_told() {
    let world = World::start().await;
    let receiver = &world.receiver;
    let status = |id: &str| {
        json!({"statusUpdate": {"taskId": id, "contextId": "c",
            "status": {"state": "TASK_STATE_COMPLETED"}}})
    };
    let refused = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no", "details": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "CONTENT_TYPE_NOT_SUPPORTED",
         "domain": "a2a-protocol.org"},
        {"@type": "type.googleapis.com/google.rpc.BadRequest",
         "fieldViolations": [{"field": "message.parts[0]", "description": "an image is wanted"}]}]}});
    let elsewhere = Answer::status(307).header("location", "http://127.0.0.2/");
    for (answer, told) in [
        (
            events(&[json!({"task": task("WORKING")}), status("t-2")]),
            "another task",
        ),
        (events(&[]), "ended before it said anything"),
        (
            events(&[json!({"task": 1})]),
            "the event of the agent is not valid",
        ),
        (
            answers(&json!({"task": task("COMPLETED")})),
            "not a stream of events",
        ),
        (
            Answer::status(400).body(refused.to_string()),
            "CONTENT_TYPE_NOT_SUPPORTED (400): no; message.parts[0]: an image is wanted",
        ),
        (elsewhere, "not followed"),
        (
            Answer::status(500).body("oops"),
            "the agent answers 500: oops",
        ),
    ] {
        receiver.answer_at(STREAM, answer);
        let error = world.fails(json!({})).await;
        assert!(error.contains(told), "{told}: {error}");
    }
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_off_is_followed_by_reading_the_task() {
    let world = World::start().await;
    let receiver = &world.receiver;
    receiver.answer_at(STREAM, events(&[json!({"task": task("WORKING")})]));
    let gone = json!({"error": {"code": 400, "message": "no stream", "details": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "UNSUPPORTED_OPERATION",
         "domain": "a2a-protocol.org"}]}});
    let subscribe = "/rest/tasks/t-1:subscribe";
    receiver.answer_at(subscribe, Answer::status(400).body(gone.to_string()));
    let mut done = task("COMPLETED");
    // References of tasks to each other, in a circle, are words and nothing that is followed.
    done["metadata"] = json!({"referenceTaskIds": ["t-1"]});
    done["history"] = json!([{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}],
        "taskId": "t-1", "referenceTaskIds": ["t-1", "t-1"]}]);
    done["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": "made"}]}]);
    receiver.answer_at("/rest/tasks/t-1", answers(&done));
    let task = world.asked(json!({})).await;
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(task["result"]["text"], "made");
    let paths: Vec<_> = receiver.requests().into_iter().map(|it| it.path).collect();
    assert_eq!(paths, [CARD, STREAM, subscribe, "/rest/tasks/t-1"]);
    let sent = &receiver.requests()[1];
    assert_eq!(sent.header("a2a-version"), Some("1.0"));
    assert!(sent.header("idempotency-key").is_some());
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_streams_is_polled_and_secrets_are_not_repeated() {
    let world = World::start().await;
    let receiver = &world.receiver;
    world.has_card(false);
    receiver.answer_at(SEND, answers(&json!({"task": task("WORKING")})));
    let mut failed = task("FAILED");
    failed["status"]["message"] = json!({"messageId": "m", "role": "ROLE_AGENT",
        "parts": [{"text": "your key s3cr3t-t0k3n is wrong"}]});
    receiver.answer_at("/rest/tasks/t-1", answers(&failed));
    let secret = json!({"name": "agent", "value": "s3cr3t-t0k3n"});
    world.server.api.call("secrets.set", secret).await;
    let auth = json!({"auth": {"type": "bearer", "token": {"$secret": "agent"}}});
    let error = world.fails(auth).await;
    assert!(
        error.starts_with("agent `stranger` failed task `t-1`: your key "),
        "{error}"
    );
    assert!(!error.contains("s3cr3t"), "{error}");
    for request in receiver.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer s3cr3t-t0k3n"));
    }
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_holds_a_secret_is_recorded_nowhere() {
    let world = World::start().await;
    let api = &world.server.api;
    world.has_card(false);
    let secret = json!({"name": "agent", "value": "s3cr3t-t0k3n"});
    api.call("secrets.set", secret).await;
    let auth = json!({"type": "bearer", "token": {"$secret": "agent"}});
    let inputs = json!({"url": world.receiver.url(""), "text": "please", "auth": auth});
    let of_state = |state: &str| {
        let mut task = task(state);
        task["id"] = json!("t-s3cr3t-t0k3n");
        task
    };
    for (state, then, status) in [
        ("WORKING", "COMPLETED", "completed"),
        ("WORKING", "FAILED", "failed"),
        ("WORKING", "INPUT_REQUIRED", "failed"),
        ("COMPLETED", "COMPLETED", "completed"),
    ] {
        let begun = answers(&json!({"task": of_state(state)}));
        world.receiver.answer_at(SEND, begun);
        let seen = answers(&of_state(then));
        world.receiver.answer_at("/rest/tasks/t-s3cr3t-t0k3n", seen);
        let id = delegated(api, inputs.clone(), json!({})).await;
        let task = ended(api, &id).await;
        assert_eq!(task["status"], status, "{task}");
        let history = api.call("tasks.history", json!({"task_id": id})).await;
        for told in [task, history] {
            assert!(!told.to_string().contains("s3cr3t"), "{told}");
        }
    }
    world.server.stop().await;
}
