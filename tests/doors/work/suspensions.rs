//! Tasks that wait for people, through JSON-RPC with the real program. spec: RFC-0024 / suspension, RFC-0025

use super::{METHOD, claim, held, remote, task};
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder, Server};

const CHOICE: &str = r#"{"question": "Which?", "response_type": "choice",
    "choices": [{"value": "a", "label": "The first"}, {"value": "b"}]}"#;

fn choice() -> Value {
    serde_json::from_str(CHOICE).unwrap()
}

async fn asks(api: &Api, claim: &Value, request: Value) -> Value {
    let params = held(claim, json!({"request": request}));
    api.call("tasks.suspend", params).await
}

fn answer(task: &Value, waits: &Value, value: Value) -> Value {
    json!({"task_id": task, "suspension_id": waits["suspension_id"], "value": value})
}

async fn until(api: &Api, id: &str, status: &str) -> Value {
    let look = async || Some(task(api, id).await).filter(|task| task["status"] == status);
    api.eventually(status, look).await
}

#[tokio::test]
async fn a_question_is_asked_shown_answered_and_given_to_the_next_attempt() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, json!({})).await;
    let first = claim(api).await;
    let waits = asks(api, &first, choice()).await;
    assert_eq!(
        waits,
        asks(api, &first, choice()).await,
        "the same again is answered as before"
    );

    let shown = task(api, &id).await;
    assert_eq!(shown["status"], "in_progress");
    assert_eq!(shown["suspension"]["suspension_id"], waits["suspension_id"]);
    assert_eq!(shown["suspension"]["question"], choice());
    let listed = api.call("tasks.list", json!({"suspended": true})).await;
    assert_eq!(
        (&listed["total"], &listed["tasks"][0]["id"]),
        (&json!(1), &json!(id))
    );
    let why = api.call("tasks.explain", json!({"task_id": id})).await;
    assert_eq!(why["reasons"][0]["code"], "suspended");
    let workers = api.call("workers.list", json!({})).await;
    assert_eq!(workers["workers"][0]["held"], 0, "it holds no lease");

    let wrong = api
        .refusal("tasks.respond", answer(&json!(id), &waits, json!("c")))
        .await;
    assert_eq!(
        (wrong.code, &wrong.data["expected"]),
        (-32602, &json!("one of: \"a\", \"b\""))
    );
    let said = api
        .call("tasks.respond", answer(&json!(id), &waits, json!("a")))
        .await;
    assert_eq!(
        (&said["status"], &said["choice_label"]),
        (&json!("pending"), &json!("The first"))
    );
    let other = api
        .refusal("tasks.respond", answer(&json!(id), &waits, json!("b")))
        .await;
    assert_eq!(other.code, -31011, "the first answer counts");
    assert_eq!(
        said,
        api.call("tasks.respond", answer(&json!(id), &waits, json!("a")))
            .await
    );

    let second = claim(api).await;
    assert_eq!(second["lease"]["attempt"], 2);
    let known = &second["context"]["answers"][0];
    assert_eq!(
        (&known["value"], &known["resolution"]),
        (&json!("a"), &json!("responded"))
    );
    let done = held(&second, json!({"output": {"done": true}}));
    api.call("tasks.complete", done).await;
    assert!(task(api, &id).await.get("suspension").is_none());
    let listed = api.call("tasks.list", json!({"suspended": true})).await;
    assert_eq!(listed["total"], 0);
    server.stop().await;
}

#[tokio::test]
async fn an_answer_with_an_idempotency_key_is_taken_once() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, json!({})).await;
    let waits = asks(api, &claim(api).await, choice()).await;
    let keyed = async |value: &str| {
        let params = answer(&json!(id), &waits, json!(value));
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.respond", "params": params,
            "metadata": {"idempotency_key": "k"}});
        let answered = api.http.post(&*api.url).json(&call).send().await;
        answered.unwrap().json::<Value>().await.unwrap()
    };

    let first = keyed("a").await;

    assert_eq!(first["result"]["status"], "pending", "{first}");
    assert_eq!(first, keyed("a").await);
    assert_eq!(keyed("b").await["error"]["code"], -31011);
    server.stop().await;
}

#[tokio::test]
async fn an_approval_needs_no_worker_and_hands_its_answer_on() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let tasks = |on_reject: &str| {
        json!({"tasks": [
            {"name": "r"},
            {"name": "gate", "parent_id": "r", "schemas": {"method": "approval_executor"},
             "inputs": {"question": "Send it?", "on_reject": on_reject}},
            {"name": "send", "parent_id": "r", "dependencies": [{"id": "gate"}],
             "schemas": {"method": "echo_executor", "wiring": {"by": "gate.responded_by", "ok": "gate.approved"}}},
        ]})
    };
    for (on_reject, said, ended, sends) in [
        (
            "fail",
            true,
            "completed",
            Some(json!({"by": "anonymous", "ok": true})),
        ),
        ("fail", false, "failed", None),
        (
            "complete",
            false,
            "completed",
            Some(json!({"by": "anonymous", "ok": false})),
        ),
    ] {
        let ids = api.call("tasks.execute", tasks(on_reject)).await["task_ids"].clone();
        let gate = ids["gate"].as_str().unwrap();
        let look =
            async || Some(task(api, gate).await["suspension"].clone()).filter(Value::is_object);
        let waits = api.eventually("a question", look).await;
        let answered = api
            .call("tasks.respond", answer(&ids["gate"], &waits, json!(said)))
            .await;
        assert_eq!(answered["status"], ended);
        let send = ids["send"].as_str().unwrap();
        match sends {
            Some(result) => assert_eq!(until(api, send, "completed").await["result"], result),
            None => {
                let failed = task(api, gate).await;
                assert_eq!(failed["error"], "declined by `anonymous`");
                assert_eq!(task(api, send).await["status"], "pending");
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_default_answer_has_the_effect_of_an_answer() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    for (value, on_reject, ended) in [
        (true, "fail", "completed"),
        (false, "fail", "failed"),
        (false, "complete", "completed"),
    ] {
        let inputs = json!({"question": "Send it?", "on_reject": on_reject, "timeout_seconds": 1,
            "fallback_policy": "use_default_and_continue", "fallback_value": value});
        let tasks = json!({"tasks": [
            {"name": "gate", "schemas": {"method": "approval_executor"}, "inputs": inputs},
        ]});
        let ids = api.call("tasks.execute", tasks).await["task_ids"].clone();
        let gate = until(api, ids["gate"].as_str().unwrap(), ended).await;
        if ended == "completed" {
            assert_eq!(gate["result"]["approved"], value);
        } else {
            let error = gate["error"].as_str().unwrap();
            assert!(
                error.starts_with("declined by the default answer"),
                "{error}"
            );
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_wait_outlives_kills_and_its_end_comes_in_time() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let id = remote(&server.api, json!({})).await;
    let first = claim(&server.api).await;
    let mut request = choice();
    request["timeout_seconds"] = json!(3600);
    let waits = asks(&server.api, &first, request).await;
    let quick = remote(&server.api, json!({})).await;
    let claimed = claim(&server.api).await;
    let asked = json!({"question": "?", "timeout_seconds": 1, "fallback_policy": "use_default_and_continue",
        "fallback_value": "later"});
    asks(&server.api, &claimed, asked).await;
    server.kill().await;
    let server = Server::start(&folder).await;
    let api = &server.api;
    assert_eq!(
        task(api, &id).await["suspension"]["suspension_id"],
        waits["suspension_id"]
    );
    let again = claim(api).await;
    assert_eq!(
        again["task"]["id"],
        json!(quick),
        "what stands for an answer lets it go on"
    );
    let known = &again["context"]["answers"][0];
    assert_eq!(
        (&known["value"], &known["resolution"]),
        (&json!("later"), &json!("expired"))
    );
    assert_eq!(known["responded_by"], Value::Null);
    let said = api
        .call("tasks.respond", answer(&json!(id), &waits, json!("b")))
        .await;
    assert_eq!(said["status"], "pending");
    server.stop().await;
}

#[tokio::test]
async fn a_cancel_ends_a_wait_and_no_worker_is_needed_for_it() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, json!({})).await;
    let waits = asks(api, &claim(api).await, choice()).await;
    api.call("tasks.cancel", json!({"task_id": id})).await;
    let late = api
        .refusal("tasks.respond", answer(&json!(id), &waits, json!("a")))
        .await;
    assert_eq!(late.code, -31011);
    server.stop().await;
}

#[tokio::test]
async fn a_fallback_keeps_what_the_task_declares() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let declared = json!({"tasks": [{"name": "t", "schemas": {"type": "remote", "method": METHOD,
        "outputs": {"url": "string"}}}]});
    api.call("tasks.execute", declared).await;
    let claimed = claim(api).await;
    let asked = |fallback: Value| {
        json!({"request": {"question": "?", "timeout_seconds": 60,
            "fallback_policy": "complete_with_fallback", "fallback_value": fallback}})
    };
    let refused = api
        .refusal("tasks.suspend", held(&claimed, asked(json!({"url": 1}))))
        .await;
    assert_eq!(refused.code, -32602);
    assert_eq!(refused.data["path"], json!(["request", "fallback_value"]));
    api.call(
        "tasks.suspend",
        held(&claimed, asked(json!({"url": "/none"}))),
    )
    .await;
    server.stop().await;
}

#[tokio::test]
async fn who_needs_a_result_that_waits_for_a_person_is_told_so() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let tasks = json!({"tasks": [
        {"name": "r"},
        {"name": "gate", "parent_id": "r", "schemas": {"method": "approval_executor"},
         "inputs": {"question": "?", "timeout_seconds": 600}},
        {"name": "after", "parent_id": "r", "dependencies": [{"id": "gate"}],
         "schemas": {"type": "remote", "method": METHOD, "wiring": {"ok": "gate.approved"}}},
    ]});
    let ids = api.call("tasks.execute", tasks).await["task_ids"].clone();
    let look = async || {
        let gate = ids["gate"].as_str().unwrap();
        Some(task(api, gate).await["suspension"].clone()).filter(Value::is_object)
    };
    let waits = api.eventually("a question", look).await;
    let refused = api
        .refusal("tasks.claim", json!({"task_id": ids["after"]}))
        .await;
    assert_eq!(refused.code, -31023);
    assert_eq!(refused.data["error"], "UpstreamIntentSuspendedError");
    assert_eq!(refused.data["phase_name"], "after");
    assert_eq!(refused.data["task_id"], ids["after"]);
    assert_eq!(refused.data["suspended_intent_id"], ids["gate"]);
    assert_eq!(refused.data["expected_resume_at"], waits["expires_at"]);
    let run = json!({"root_task_id": ids["r"]});
    let progress = api.call("workflows.progress", run).await;
    assert_eq!(
        progress["suspended_phases"],
        json!([{
            "phase_name": "gate", "task_id": ids["gate"], "suspension_id": waits["suspension_id"],
            "suspended_since": waits["since"], "expires_at": waits["expires_at"],
        }])
    );
    server.stop().await;
}
