//! Checks of what counts as a call, alone or in a batch, and of its answer's form.

use super::errors::unknown_methods_are_told;
use super::{INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::clauses::prelude::*;

pub(super) fn request(method: &str, id: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {"limit": 1}, "id": id})
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// How many tasks this check has stored.
async fn stored(probe: &Probe) -> Result<u64, Finding> {
    let params = json!({"user_id": probe.user(), "limit": 10});
    let list = probe.result("tasks.list", params).await?;
    list["tasks"]
        .as_array()
        .map(|tasks| tasks.len() as u64)
        .ok_or_else(|| Finding::failed(format!("no `tasks` in {}", shown(&list))))
}

pub(super) async fn examples_are_answered(probe: &Probe) -> Outcome {
    unknown_methods_are_told(probe).await?;
    let broken = br#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#;
    let answer = probe.post(*broken).await?;
    answer.expect_error_without_id(PARSE_ERROR)?;
    let odd = probe
        .post(r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#)
        .await?;
    odd.expect_error_without_id(INVALID_REQUEST)?;
    an_empty_batch_is_one_error(probe).await?;
    invalid_elements_are_answered_each(probe).await?;
    let mixed = json!([
        request("tasks.list", json!("1")),
        notification("no.such", json!({})),
        {"foo": "boo"},
        request("no.such", json!("5")),
    ]);
    let answer = probe.post(mixed.to_string()).await?;
    let found = answer.json()?;
    let outcomes: Vec<_> = found.as_array().into_iter().flatten().collect();
    let has = |id: Value, code: Option<i64>| {
        let wanted = |reply: &&&Value| {
            reply.get("id") == Some(&id) && reply["error"]["code"].as_i64() == code
        };
        outcomes.iter().any(|reply| wanted(&reply))
    };
    ensure!(
        outcomes.len() == 3
            && has(json!("1"), None)
            && has(Value::Null, Some(INVALID_REQUEST))
            && has(json!("5"), Some(METHOD_NOT_FOUND)),
        "{}: expected a result for \"1\", -32600 for null and -32601 for \"5\"",
        answer.story()
    );
    seen("single calls, broken ones and mixed batches are answered as in the specification")
}

pub(super) async fn notifications_are_not_answered(probe: &Probe) -> Outcome {
    let good = notification("tasks.list", json!({"limit": 1}));
    let bad = notification("tasks.get", json!({"task_id": UNKNOWN_ID}));
    let unknown = notification("no.such", json!({}));
    for call in [good, bad, unknown] {
        let answer = probe.post(call.to_string()).await?;
        ensure!(
            answer.body.is_empty(),
            "{}: expected no body",
            answer.story()
        );
    }
    let create = notification("tasks.create", probe.task("noted").value());
    probe.post(create.to_string()).await?;
    probe
        .eventually("a notification is executed", async || {
            Ok((stored(probe).await? == 1).then_some(()))
        })
        .await?;
    seen("no body, and a task that a notification creates is there")
}

pub(super) async fn each_call_of_a_batch_is_answered(probe: &Probe) -> Outcome {
    let calls = [
        request("tasks.list", json!(1)),
        notification("tasks.list", json!({"limit": 1})),
        request("no.such", json!("two")),
        request("tasks.list", json!(3)),
    ];
    let replies = probe.batch(&calls).await?;
    let [first, second, third] = <[Reply; 3]>::try_from(replies)
        .map_err(|replies| Finding::failed(format!("{} answers of 3", replies.len())))?;
    first.expect_result()?;
    second.expect_error(METHOD_NOT_FOUND)?;
    third.expect_result()?;
    seen("three calls and a notification have three answers")
}

pub(super) async fn an_empty_batch_is_one_error(probe: &Probe) -> Outcome {
    let error = probe
        .post("[]")
        .await?
        .expect_error_without_id(INVALID_REQUEST)?;
    seen(format!("`[]` is {error}"))
}

pub(super) async fn invalid_elements_are_answered_each(probe: &Probe) -> Outcome {
    for (body, count) in [("[1]", 1), ("[1,2,3]", 3), ("[[],{},null]", 3)] {
        let answer = probe.post(body).await?;
        let found = answer.json()?;
        let replies = found.as_array().map_or(&[][..], Vec::as_slice);
        let text = format!("{}: expected an array of {count}", answer.story());
        ensure!(replies.len() == count, "{text}");
        for reply in replies {
            Reply::of(reply, &Value::Null, &answer.sent)?.expect_error(INVALID_REQUEST)?;
        }
    }
    seen("`[1,2,3]` is three times -32600")
}

pub(super) async fn a_batch_of_notifications_is_not_answered(probe: &Probe) -> Outcome {
    let call = notification("tasks.list", json!({"limit": 1}));
    let answer = probe.post(json!([call, call]).to_string()).await?;
    ensure!(
        answer.body.is_empty(),
        "{}: expected no body",
        answer.story()
    );
    seen(format!("{} without a body", answer.status))
}

pub(super) async fn a_broken_batch_does_nothing(probe: &Probe) -> Outcome {
    let params = probe.task("never").value();
    let create = json!({"jsonrpc": "2.0", "method": "tasks.create", "params": params, "id": 1});
    let answer = probe.post(format!("[{create}, {{\"jsonrpc\":")).await?;
    answer.expect_error_without_id(PARSE_ERROR)?;
    let count = stored(probe).await?;
    ensure!(
        count == 0,
        "{}: and {count} tasks are stored",
        answer.story()
    );
    seen("one -32700, and the task before the break is not stored")
}

pub(super) async fn reserved_names_are_no_methods(probe: &Probe) -> Outcome {
    for method in ["rpc.tasks.list", "rpc.no.such", "rpc."] {
        probe.refused(method, json!({}), METHOD_NOT_FOUND).await?;
    }
    seen("`rpc.tasks.list` is -32601")
}

pub(super) async fn names_are_exact(probe: &Probe) -> Outcome {
    for method in ["Tasks.list", "TASKS.LIST", "tasks.list ", " tasks.list"] {
        probe.refused(method, json!({}), METHOD_NOT_FOUND).await?;
    }
    let odd = json!({"jsonrpc": "2.0", "Method": "tasks.list", "params": {}, "id": 1});
    probe
        .post(odd.to_string())
        .await?
        .json()
        .and_then(|answer| {
            let code = answer["error"]["code"].as_i64();
            ensure!(
                code == Some(INVALID_REQUEST),
                "sent {odd}, got {}",
                shown(&answer)
            );
            Ok(())
        })?;
    seen("`Tasks.list` is -32601, `Method` is -32600")
}

/// Posts a request that is invalid, whose id may be echoed or null.
async fn expect_invalid(probe: &Probe, request: &Value) -> Result<(), Finding> {
    let answer = probe.post(request.to_string()).await?;
    let id = answer.json()?["id"].take();
    let echoed = request.get("id").is_some_and(|sent| *sent == id);
    ensure!(
        id.is_null() || echoed,
        "{}: expected the id or null",
        answer.story()
    );
    answer.reply(&id)?.expect_error(INVALID_REQUEST).map(|_| ())
}

/// A sound request with one member replaced; taken away for none.
fn altered(member: &str, value: Option<Value>) -> Value {
    let mut request = request("tasks.list", json!(1));
    match (value, &mut request) {
        (Some(value), _) => request[member] = value,
        (None, Value::Object(members)) => _ = members.remove(member),
        (None, _) => {}
    }
    request
}

pub(super) async fn other_versions_are_invalid(probe: &Probe) -> Outcome {
    let versions = [json!("1.0"), json!("2"), json!(2.0), json!(2), Value::Null];
    for version in versions.map(Some).into_iter().chain([None]) {
        expect_invalid(probe, &altered("jsonrpc", version)).await?;
    }
    probe
        .request(&altered("id", Some(json!(2))))
        .await?
        .expect_result()?;
    seen("\"2.0\" has a result; \"1.0\", 2.0 and none are -32600")
}

pub(super) async fn a_method_is_a_text(probe: &Probe) -> Outcome {
    let methods = [json!(1), json!(null), json!({}), json!(["tasks.list"])];
    for method in methods.map(Some).into_iter().chain([None]) {
        expect_invalid(probe, &altered("method", method)).await?;
    }
    seen("no method, and one that is no text, are -32600")
}

pub(super) async fn params_are_structured(probe: &Probe) -> Outcome {
    let codes = [INVALID_REQUEST, INVALID_PARAMS];
    for params in [json!(1), json!("x"), json!(true)] {
        let call = altered("params", Some(params));
        let answer = probe.post(call.to_string()).await?;
        let id = answer.json()?["id"].take();
        ensure!(
            id.is_null() || id == 1,
            "{}: expected the id",
            answer.story()
        );
        answer.reply(&id)?.expect_error_of(&codes)?;
    }
    let without = json!({"jsonrpc": "2.0", "method": "tasks.get", "id": 1});
    probe.request(&without).await?.expect_error_of(&codes)?;
    seen("numbers, texts and booleans, and tasks.get without any, are refused")
}

pub(super) async fn ids_are_texts_or_numbers(probe: &Probe) -> Outcome {
    for id in [json!(true), json!([1]), json!({"a": 1})] {
        let answer = probe.post(altered("id", Some(id)).to_string()).await?;
        answer.expect_error_without_id(INVALID_REQUEST)?;
    }
    ids_come_back(probe).await
}

pub(super) fn ids() -> [Value; 6] {
    [
        json!("text"),
        json!(""),
        json!("7"),
        json!(7),
        json!(0),
        json!(-9_007_199_254_740_991_i64),
    ]
}

pub(super) async fn results_are_sound(probe: &Probe) -> Outcome {
    let created = probe.create(&probe.task("sound")).await?;
    probe.get(&created).await?;
    probe.result("tasks.list", json!({"limit": 1})).await?;
    seen("the results of tasks.create, tasks.get and tasks.list")
}

pub(super) async fn ids_come_back(probe: &Probe) -> Outcome {
    for id in ids() {
        probe
            .request(&request("tasks.list", id))
            .await?
            .expect_result()?;
    }
    seen("texts and numbers come back as they were")
}
