//! Following a message to its answer, with a scripted agent: which calls are made, and which are not made twice.

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use taskledger_a2a::request::{SendMessageConfiguration, SendMessageRequest};
use taskledger_a2a::{Message, StreamResponse, Task, TaskState, Wire};
use taskledger_a2a_client::http::{Body, Request, Response, Unanswered};
use taskledger_a2a_client::{
    Agent, AgentOptions, Error, Http, NODES, Retry, Turn, Watcher, question_id,
};

/// What the agent does next.
enum Next {
    Json(u16, Value),
    /// Events with ids, and whether the stream breaks off behind them.
    Stream(Vec<(&'static str, Value)>, bool),
    Fails(Unanswered),
    /// A status with `Retry-After`.
    Busy(u16, &'static str),
}

#[derive(Default)]
struct Script {
    next: Mutex<VecDeque<Next>>,
    seen: Mutex<Vec<Request>>,
}

struct Pieces(VecDeque<Result<Bytes, Unanswered>>);

#[async_trait]
impl Body for Pieces {
    async fn chunk(&mut self) -> Result<Option<Bytes>, Unanswered> {
        self.0.pop_front().transpose()
    }
}

#[async_trait]
impl Http for Script {
    async fn send(&self, request: Request) -> Result<Response, Unanswered> {
        self.seen.lock().expect("no panic").push(request);
        let next = self.next.lock().expect("no panic").pop_front();
        let mut headers = HeaderMap::new();
        let (status, kind, pieces) = match next.expect("a call that the script knows") {
            Next::Busy(status, pause) => {
                headers.insert("retry-after", HeaderValue::from_static(pause));
                (status, "text/plain", Vec::new())
            }
            Next::Fails(reason) => return Err(reason),
            Next::Json(status, value) => {
                let pieces = vec![Ok(value.to_string().into())];
                (status, "application/json", pieces)
            }
            Next::Stream(events, breaks) => {
                let events = events.into_iter();
                let texts = events.map(|(id, item)| format!("id: {id}\ndata: {item}\n\n"));
                let mut pieces: Vec<_> = texts.map(|text| Ok(text.into())).collect();
                if breaks {
                    pieces.push(Err(broken()));
                }
                (200, "text/event-stream", pieces)
            }
        };
        headers.insert("content-type", HeaderValue::from_static(kind));
        Ok(Response {
            status: StatusCode::from_u16(status).expect("a status"),
            headers,
            body: Box::new(Pieces(pieces.into())),
        })
    }
}

fn broken() -> Unanswered {
    Unanswered::Broken("reset".to_owned())
}

fn agent(script: &Arc<Script>, streaming: bool, extension: Option<&str>) -> Agent {
    let extensions: Vec<_> = extension.iter().map(|uri| json!({"uri": uri})).collect();
    let card = json!({
        "name": "a", "description": "d", "version": "1", "skills": [],
        "supportedInterfaces": [
            {"url": "a:1", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://a/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "https://a/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "x y"}
        ],
        "capabilities": {"streaming": streaming, "extensions": extensions},
        "defaultInputModes": [], "defaultOutputModes": []
    });
    Agent::of_card(script.clone(), card, AgentOptions::default()).expect("a card")
}

fn script(next: impl IntoIterator<Item = Next>) -> Arc<Script> {
    Arc::new(Script {
        next: Mutex::new(next.into_iter().collect()),
        seen: Mutex::default(),
    })
}

impl Script {
    /// Methods and paths of the calls.
    fn calls(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("no panic");
        let call = |request: &Request| format!("{} {}", request.method, request.url);
        seen.iter().map(call).collect()
    }

    fn header(&self, call: usize, name: &str) -> Option<String> {
        let seen = self.seen.lock().expect("no panic");
        let value = seen[call].headers.get(name)?;
        value.to_str().ok().map(str::to_owned)
    }
}

fn task(state: &str) -> Value {
    json!({"id": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}})
}

fn asks(message: &str) -> Value {
    let mut task = task("INPUT_REQUIRED");
    task["status"]["message"] =
        json!({"messageId": message, "role": "ROLE_AGENT", "parts": [{"text": "?"}]});
    task
}

fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t", "contextId": "c",
        "status": {"state": format!("TASK_STATE_{state}")}}})
}

fn request() -> SendMessageRequest {
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]});
    SendMessageRequest {
        tenant: None,
        message: Message::from_json(message).expect("a message"),
        configuration: SendMessageConfiguration::default(),
        metadata: None,
    }
}

/// Counts the items that it is given, and keeps the retries.
#[derive(Default)]
struct Counting(usize, Vec<String>);

#[async_trait]
impl Watcher for Counting {
    async fn told(&mut self, _item: &StreamResponse) {
        self.0 += 1;
    }

    async fn retries(&mut self, retry: Retry<'_>) {
        self.1.push(retry.to_string());
    }
}

fn state(turn: &Turn) -> TaskState {
    match turn {
        Turn::Task(task) => task.status.state,
        Turn::Message(_) => panic!("there is a task"),
    }
}

const STREAM: &str = "POST https://a/x%20y/message:stream";
const SEND: &str = "POST https://a/x%20y/message:send";
const SUBSCRIBE: &str = "POST https://a/x%20y/tasks/t:subscribe";
const GET: &str = "GET https://a/x%20y/tasks/t";

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_goes_on_behind_the_last_event() {
    let begun = vec![
        ("1", json!({"task": task("WORKING")})),
        ("2", status("WORKING")),
    ];
    let script = script([
        Next::Stream(begun, true),
        Next::Fails(Unanswered::NotSent("refused".to_owned())),
        Next::Json(503, json!({})),
        Next::Stream(vec![("3", status("COMPLETED"))], false),
    ]);
    let agent = agent(&script, true, None);
    let mut counting = Counting::default();
    let turn = agent.converse(&request(), None, None, &mut counting).await;
    assert_eq!(state(&turn.expect("it ends")), TaskState::Completed);
    assert_eq!(script.calls(), [STREAM, SUBSCRIBE, SUBSCRIBE, SUBSCRIBE]);
    for call in 1..4 {
        assert_eq!(script.header(call, "last-event-id").as_deref(), Some("2"));
    }
    assert_eq!(counting.0, 3);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_streams_is_asked_again_until_it_is_done() {
    let script = script([
        Next::Json(200, json!({"task": task("SUBMITTED")})),
        Next::Json(200, task("WORKING")),
        Next::Json(502, json!({})),
        Next::Json(200, task("COMPLETED")),
    ]);
    let agent = agent(&script, false, None);
    let turn = agent
        .converse(&request(), None, None, &mut Counting::default())
        .await;
    assert_eq!(state(&turn.expect("it ends")), TaskState::Completed);
    assert_eq!(script.calls(), [SEND, GET, GET, GET]);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_sent_again_only_where_that_is_harmless() {
    let done = || Next::Stream(vec![("1", json!({"task": task("COMPLETED")}))], false);
    // The failure, whether the agent takes keys, whether there is a key, how many calls.
    for (failure, extension, key, calls) in [
        (broken(), None, Some("k"), 1),
        (broken(), Some(NODES), None, 1),
        (broken(), Some(NODES), Some("k"), 2),
        (Unanswered::NotSent("no".to_owned()), None, None, 2),
        (
            Unanswered::Refused("no".to_owned()),
            Some(NODES),
            Some("k"),
            1,
        ),
    ] {
        let script = script([Next::Fails(failure.clone()), done()]);
        let agent = agent(&script, true, extension);
        let turn = agent
            .converse(&request(), key, None, &mut Counting::default())
            .await;
        assert_eq!(
            turn.is_ok(),
            calls == 2,
            "{failure:?} {extension:?} {key:?}: {turn:?}"
        );
        assert_eq!(
            script.calls().len(),
            calls,
            "{failure:?} {extension:?} {key:?}"
        );
        assert_eq!(script.header(0, "idempotency-key").as_deref(), key);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_answered_is_not_taken_for_a_new_one() {
    let script = script([
        Next::Stream(vec![("1", json!({"task": asks("q-1")}))], false),
        Next::Stream(vec![("2", json!({"task": asks("q-2")}))], false),
    ]);
    let agent = agent(&script, true, None);
    let turn = agent
        .converse(&request(), None, Some("q-1"), &mut Counting::default())
        .await;
    let Ok(Turn::Task(task)) = turn else {
        panic!("there is a task: {turn:?}")
    };
    let said = task.status.message.expect("a question");
    assert_eq!(said.message_id, "q-2");
    assert_eq!(script.calls(), [STREAM, SUBSCRIBE]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stays_away_is_given_up() {
    let gone = || Next::Fails(Unanswered::NotSent("refused".to_owned()));
    let script = script(std::iter::repeat_with(gone).take(100));
    let agent = agent(&script, true, None);
    let mut counting = Counting::default();
    let failed = agent.follow("t", None, &mut counting).await;
    let failed = failed.expect_err("it is gone");
    let text = "https://a/x%20y/tasks/t: refused; given up after 21 tries";
    assert_eq!(failed.to_string(), text);
    assert!(matches!(failed.into_last(), Error::Unanswered { .. }));
    assert_eq!(script.calls().len(), 21);
    let retries = counting.1;
    assert_eq!(retries.len(), 20);
    let first = "https://a/x%20y/tasks/t: refused; try 2 of 21 follows in 0.25 s";
    assert_eq!(retries[0], first);
    assert!(
        retries[19].ends_with("try 21 of 21 follows in 15 s"),
        "{}",
        retries[19]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_the_agent_asks_for_is_kept() {
    let next = [
        Next::Busy(429, "90"),
        Next::Busy(503, "7200"),
        Next::Busy(503, "soon"),
        Next::Json(200, task("COMPLETED")),
    ];
    let script = script(next);
    let agent = agent(&script, true, None);
    let mut counting = Counting::default();
    let turn = agent.follow("t", None, &mut counting).await;
    assert!(matches!(turn, Ok(Turn::Task(_))), "{turn:?}");
    let pauses = ["in 90 s", "in 3600 s", "in 1 s"];
    for (retry, pause) in counting.1.iter().zip(pauses) {
        assert!(retry.ends_with(pause), "{retry}");
    }
    assert_eq!(counting.1.len(), pauses.len());
}

fn artifact(id: &str, text: &str) -> Value {
    json!({"artifactUpdate": {"taskId": "t", "contextId": "c",
        "artifact": {"artifactId": id, "parts": [{"text": text}]}}})
}

fn follow_up() -> SendMessageRequest {
    let mut request = request();
    request.message.task_id = Some("t".to_owned());
    request
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_begins_with_an_update_ends_with_the_whole_task() {
    let mut whole = task("COMPLETED");
    whole["artifacts"] = json!([
        {"artifactId": "draft", "parts": [{"text": "of an earlier message"}]},
        {"artifactId": "answer", "parts": [{"text": "blue"}]}
    ]);
    let updates = || {
        vec![
            ("1", status("WORKING")),
            ("2", artifact("answer", "blue")),
            ("3", status("COMPLETED")),
        ]
    };
    // Of a later message, of the first one, and where the stream breaks off meanwhile.
    for (request, rest) in [
        (follow_up(), None),
        (request(), None),
        (follow_up(), Some(vec![("3", status("COMPLETED"))])),
    ] {
        let mut first = updates();
        let is_cut = rest.is_some();
        if is_cut {
            first.pop();
        }
        let mut next = vec![Next::Stream(first, is_cut)];
        next.extend(rest.map(|rest| Next::Stream(rest, false)));
        next.push(Next::Json(200, whole.clone()));
        let script = script(next);
        let agent = agent(&script, true, None);
        let mut counting = Counting::default();
        let turn = agent.converse(&request, None, None, &mut counting).await;
        assert_eq!(
            turn,
            Ok(Turn::Task(Task::from_json(whole.clone()).expect("a task")))
        );
        // The task that the first update names, then the updates.
        assert_eq!(counting.0, 4);
        let mut calls = vec![STREAM, GET];
        if is_cut {
            calls.insert(1, SUBSCRIBE);
        }
        assert_eq!(script.calls(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn what_updates_have_told_is_not_lost_when_the_task_cannot_be_read() {
    let updates = || {
        vec![
            ("1", artifact("answer", "blue")),
            ("2", status("COMPLETED")),
        ]
    };
    let mut behind = task("WORKING");
    behind["artifacts"] = json!([{"artifactId": "draft", "parts": [{"text": "before"}]}]);
    let gone = json!({"error": {"code": 404, "message": "no such task", "details": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
         "domain": "a2a-protocol.org"}]}});
    for (read, made) in [
        (Next::Json(404, gone), &["answer"][..]),
        (Next::Json(200, behind), &["draft", "answer"]),
    ] {
        let script = script([Next::Stream(updates(), false), read]);
        let agent = agent(&script, true, None);
        let mut counting = Counting::default();
        let turn = agent
            .converse(&follow_up(), None, None, &mut counting)
            .await;
        let Ok(Turn::Task(task)) = turn else {
            panic!("there is a task: {turn:?}")
        };
        assert_eq!(task.status.state, TaskState::Completed);
        let ids: Vec<_> = task.artifacts.iter().map(|it| &*it.artifact_id).collect();
        assert_eq!(ids, made);
    }
}

#[tokio::test(start_paused = true)]
async fn updates_of_another_task_than_the_one_that_a_message_continues_are_refused() {
    let mut other = status("COMPLETED");
    other["statusUpdate"]["taskId"] = json!("u");
    let script = script([Next::Stream(vec![("1", other)], false)]);
    let agent = agent(&script, true, None);
    let mut counting = Counting::default();
    let failed = agent
        .converse(&follow_up(), None, None, &mut counting)
        .await;
    assert!(matches!(failed, Err(Error::Invalid(_))), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_message_is_known_by_its_time() {
    let asks_at = |time: &str| {
        let mut task = task("INPUT_REQUIRED");
        task["status"]["timestamp"] = json!(time);
        task
    };
    let (old, new) = (
        asks_at("2026-01-01T00:00:00Z"),
        asks_at("2026-01-01T00:00:01Z"),
    );
    let answered = question_id(&Task::from_json(old.clone()).expect("a task").status);
    let answered = answered.expect("a time");
    for next in [new, task("COMPLETED")] {
        let script = script([
            Next::Stream(vec![("1", json!({"task": old}))], false),
            Next::Stream(vec![("2", json!({"task": next}))], false),
        ]);
        let agent = agent(&script, true, None);
        let mut counting = Counting::default();
        let turn = agent
            .converse(&follow_up(), None, Some(&answered), &mut counting)
            .await;
        assert_eq!(turn, Ok(Turn::Task(Task::from_json(next).expect("a task"))));
    }
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_is_read_whatever_the_agent_names_the_refusal_of_its_stream() {
    for reason in [
        "UNSUPPORTED_OPERATION",
        "TASK_NOT_FOUND",
        "INVALID_PARAMS",
        "INTERNAL_ERROR",
    ] {
        let refused = json!({"error": {"code": 400, "message": "no stream", "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
             "domain": "a2a-protocol.org"}]}});
        let begun = vec![("1", json!({"task": task("WORKING")}))];
        let script = script([
            Next::Stream(begun, false),
            Next::Json(400, refused),
            Next::Json(200, task("COMPLETED")),
        ]);
        let agent = agent(&script, true, None);
        let mut counting = Counting::default();
        let turn = agent.converse(&request(), None, None, &mut counting).await;
        assert_eq!(
            state(&turn.expect("it ends")),
            TaskState::Completed,
            "{reason}"
        );
    }
}

#[tokio::test]
async fn an_agent_that_speaks_0_3_alone_is_named_as_one() {
    let older = json!({"name": "a", "description": "d", "version": "1", "url": "https://a/",
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC", "capabilities": {}, "skills": [],
        "defaultInputModes": [], "defaultOutputModes": []});
    let mut oldest = older.clone();
    for member in ["protocolVersion", "preferredTransport"] {
        oldest.as_object_mut().expect("an object").remove(member);
    }
    let mut newer = older.clone();
    newer["supportedInterfaces"] =
        json!([{"url": "https://a/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]);
    for (card, version) in [(older, "0.3.0"), (oldest, "0.3 or older"), (newer, "0.3")] {
        let read = Agent::of_card(script([]), card, AgentOptions::default());
        let refused = read.expect_err("not spoken here");
        let told = format!("the agent speaks A2A {version} only, which this client does not");
        assert!(refused.to_string().starts_with(&told), "{refused}");
    }
}
