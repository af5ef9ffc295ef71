//! Envelopes and codes. spec: interface / JSON-RPC 2.0 Compliance
//!
//! The document demands the whole of the JSON-RPC 2.0 specification in one sentence; the section
//! `json-rpc` takes it apart into what that specification demands of a server.

use super::prelude::*;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// Of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = specification();
    clauses.extend(requests());
    clauses.extend(successes());
    clauses.extend(errors());
    clauses.extend(codes());
    clauses
}

fn specification() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc/1-specification",
            "the server complies with JSON-RPC 2.0: its examples are answered as it shows them",
            examples_are_answered,
        ),
        must_not(
            "interface/json-rpc/2-notifications",
            "a request without `id` is a notification and is not answered, not even with an error",
            notifications_are_not_answered,
        ),
        must(
            "interface/json-rpc/3-batch",
            "an array of requests is answered with an array of one answer for each call in it",
            each_call_of_a_batch_is_answered,
        ),
        must(
            "interface/json-rpc/4-empty-batch",
            "an empty array is one invalid request, answered with one object",
            an_empty_batch_is_one_error,
        ),
        must(
            "interface/json-rpc/5-batch-of-no-requests",
            "each element of a batch that is no request is answered as invalid by itself",
            invalid_elements_are_answered_each,
        ),
        must_not(
            "interface/json-rpc/6-batch-of-notifications",
            "a batch of notifications only is answered with nothing, not with an empty array",
            a_batch_of_notifications_is_not_answered,
        ),
        must(
            "interface/json-rpc/7-broken-batch",
            "a batch that is no JSON is one parse error, and nothing of it is executed",
            a_broken_batch_does_nothing,
        ),
        must(
            "interface/json-rpc/8-reserved-names",
            "names that begin with `rpc.` are no methods of the application",
            reserved_names_are_no_methods,
        ),
        must(
            "interface/json-rpc/9-exact-names",
            "names of members and methods are case-sensitive",
            names_are_exact,
        ),
    ]
}

fn requests() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.request/1-version",
            "`jsonrpc` is \"2.0\"; a request with another version or none is invalid",
            other_versions_are_invalid,
        ),
        must(
            "interface/json-rpc.request/2-method",
            "`method` is required and a text",
            a_method_is_a_text,
        ),
        must(
            "interface/json-rpc.request/3-params",
            "`params` is required and an object",
            params_are_structured,
        ),
        must(
            "interface/json-rpc.request/4-id",
            "`id` is a text or a number; other types make the request invalid",
            ids_are_texts_or_numbers,
        ),
    ]
}

fn successes() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.success/1-version",
            "`jsonrpc` of a result is \"2.0\"",
            results_are_sound,
        ),
        must(
            "interface/json-rpc.success/2-result",
            "a success has `result`, and no `error` beside it",
            results_are_sound,
        ),
        must(
            "interface/json-rpc.success/3-id",
            "`id` of a result is that of the request, value and type",
            ids_come_back,
        ),
    ]
}

fn errors() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.error/1-version",
            "`jsonrpc` of an error is \"2.0\"",
            errors_are_sound,
        ),
        must(
            "interface/json-rpc.error/2-error",
            "a failure has an object `error`, and no `result` beside it",
            errors_are_sound,
        ),
        must(
            "interface/json-rpc.error/3-code",
            "`code` is an integer",
            errors_are_sound,
        ),
        must(
            "interface/json-rpc.error/4-message",
            "`message` is a text, and says something",
            errors_are_sound,
        ),
        may(
            "interface/json-rpc.error/5-data",
            "`data` may tell more",
            errors_have_data,
        ),
        must(
            "interface/json-rpc.error/6-id",
            "`id` of an error is that of the request",
            ids_come_back_with_errors,
        ),
        must(
            "interface/json-rpc.error/7-id-of-parse-errors",
            "`id` is null after a parse error",
            parse_errors_have_no_id,
        ),
    ]
}

fn codes() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.codes/1-parse-error",
            "-32700: what came is no JSON",
            parse_errors_have_no_id,
        ),
        must(
            "interface/json-rpc.codes/2-invalid-request",
            "-32600: what came is JSON and no request",
            invalid_requests_are_told,
        ),
        must(
            "interface/json-rpc.codes/3-method-not-found",
            "-32601: there is no such method",
            unknown_methods_are_told,
        ),
        must(
            "interface/json-rpc.codes/4-invalid-params",
            "-32602: the parameters do not fit the method",
            invalid_params_are_told,
        ),
        not_testable(
            Level::Must,
            "interface/json-rpc.codes/5-internal-error",
            "-32603: the server could not do its work",
            "no request makes a sound server fail inside",
        ),
        must(
            "interface/json-rpc.codes/6-server-errors",
            "codes from -32768 to -32000 are the standard's; of these a server defines only -32099 to -32000",
            own_codes_are_in_the_servers_range,
        ),
        must(
            "interface/json-rpc.codes/7-standard-codes",
            "errors of the protocol have the standard codes",
            standard_codes_are_used,
        ),
        not_testable(
            Level::Should,
            "interface/json-rpc.codes/8-application-codes",
            "errors of the application have codes outside -32099 to -32000",
            "the same document gives the application's errors codes inside that range (-32001 to -32004, \
             Common Error Scenarios); a server cannot keep both",
        ),
    ]
}

fn request(method: &str, id: Value) -> Value {
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

async fn examples_are_answered(probe: &Probe) -> Outcome {
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

async fn notifications_are_not_answered(probe: &Probe) -> Outcome {
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

async fn each_call_of_a_batch_is_answered(probe: &Probe) -> Outcome {
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

async fn an_empty_batch_is_one_error(probe: &Probe) -> Outcome {
    let error = probe
        .post("[]")
        .await?
        .expect_error_without_id(INVALID_REQUEST)?;
    seen(format!("`[]` is {error}"))
}

async fn invalid_elements_are_answered_each(probe: &Probe) -> Outcome {
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

async fn a_batch_of_notifications_is_not_answered(probe: &Probe) -> Outcome {
    let call = notification("tasks.list", json!({"limit": 1}));
    let answer = probe.post(json!([call, call]).to_string()).await?;
    ensure!(
        answer.body.is_empty(),
        "{}: expected no body",
        answer.story()
    );
    seen(format!("{} without a body", answer.status))
}

async fn a_broken_batch_does_nothing(probe: &Probe) -> Outcome {
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

async fn reserved_names_are_no_methods(probe: &Probe) -> Outcome {
    for method in ["rpc.tasks.list", "rpc.no.such", "rpc."] {
        probe.refused(method, json!({}), METHOD_NOT_FOUND).await?;
    }
    seen("`rpc.tasks.list` is -32601")
}

async fn names_are_exact(probe: &Probe) -> Outcome {
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

async fn other_versions_are_invalid(probe: &Probe) -> Outcome {
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

async fn a_method_is_a_text(probe: &Probe) -> Outcome {
    let methods = [json!(1), json!(null), json!({}), json!(["tasks.list"])];
    for method in methods.map(Some).into_iter().chain([None]) {
        expect_invalid(probe, &altered("method", method)).await?;
    }
    seen("no method, and one that is no text, are -32600")
}

async fn params_are_structured(probe: &Probe) -> Outcome {
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
    seen("params that are no object, and tasks.get without any, are refused")
}

async fn ids_are_texts_or_numbers(probe: &Probe) -> Outcome {
    for id in [json!(true), json!([1]), json!({"a": 1})] {
        let answer = probe.post(altered("id", Some(id)).to_string()).await?;
        answer.expect_error_without_id(INVALID_REQUEST)?;
    }
    ids_come_back(probe).await
}

fn ids() -> [Value; 6] {
    [
        json!("text"),
        json!(""),
        json!("7"),
        json!(7),
        json!(0),
        json!(-9_007_199_254_740_991_i64),
    ]
}

async fn results_are_sound(probe: &Probe) -> Outcome {
    let created = probe.create(&probe.task("sound")).await?;
    probe.get(&created).await?;
    probe.result("tasks.list", json!({"limit": 1})).await?;
    seen("the results of tasks.create, tasks.get and tasks.list")
}

async fn ids_come_back(probe: &Probe) -> Outcome {
    for id in ids() {
        probe
            .request(&request("tasks.list", id))
            .await?
            .expect_result()?;
    }
    seen("texts and numbers come back as they were")
}

async fn ids_come_back_with_errors(probe: &Probe) -> Outcome {
    for id in ids() {
        let reply = probe.request(&request("no.such", id)).await?;
        reply.expect_error(METHOD_NOT_FOUND)?;
    }
    seen("texts and numbers come back as they were")
}

/// Errors of several kinds, their envelopes sound.
async fn some_errors(probe: &Probe) -> Result<Vec<RpcError>, Finding> {
    let calls = [
        ("no.such", json!({})),
        ("tasks.get", json!({"task_id": UNKNOWN_ID})),
        ("tasks.get", json!({"task_id": "x"})),
        ("tasks.create", json!({})),
    ];
    let mut errors = vec![
        probe
            .post("{")
            .await?
            .expect_error_without_id(PARSE_ERROR)?,
        probe
            .post("1")
            .await?
            .expect_error_without_id(INVALID_REQUEST)?,
    ];
    for (method, params) in calls {
        errors.push(probe.call(method, params).await?.expect_any_error()?);
    }
    Ok(errors)
}

async fn errors_are_sound(probe: &Probe) -> Outcome {
    let errors = some_errors(probe).await?;
    for error in &errors {
        ensure!(
            !error.message.trim().is_empty(),
            "{error}: expected a message"
        );
    }
    let codes: Vec<_> = errors.iter().map(|error| error.code).collect();
    seen(format!("sound errors with the codes {codes:?}"))
}

async fn errors_have_data(probe: &Probe) -> Outcome {
    let errors = some_errors(probe).await?;
    let with_data = errors.into_iter().find(|error| !error.data.is_null());
    let error = with_data.ok_or_else(|| Finding::skipped("no error has `data`"))?;
    seen(error.to_string())
}

async fn parse_errors_have_no_id(probe: &Probe) -> Outcome {
    let broken: [&[u8]; 6] = [
        b"",
        b"{",
        b"{'a': 1}",
        br#"{"jsonrpc": "2.0", "method": "tasks.list", "params": {}, "id": 1"#,
        br#"{"jsonrpc": "2.0", "method": "tasks.list", "params": {}, "id": 1}x"#,
        b"{\"jsonrpc\": \"2.0\", \"method\": \"\xff\", \"params\": {}, \"id\": 1}",
    ];
    for body in broken {
        probe
            .post(body)
            .await?
            .expect_error_without_id(PARSE_ERROR)?;
    }
    seen("six bodies that are no JSON are -32700 with id null")
}

async fn invalid_requests_are_told(probe: &Probe) -> Outcome {
    for body in ["1", "null", "\"x\"", "{}", "[]"] {
        probe
            .post(body)
            .await?
            .expect_error_without_id(INVALID_REQUEST)?;
    }
    seen("JSON that is no request is -32600")
}

async fn unknown_methods_are_told(probe: &Probe) -> Outcome {
    for method in ["foobar", "tasks", "tasks.", "tasks.no-such", ""] {
        probe.refused(method, json!({}), METHOD_NOT_FOUND).await?;
    }
    seen("`foobar` and `tasks.no-such` are -32601")
}

async fn invalid_params_are_told(probe: &Probe) -> Outcome {
    for (method, params) in [
        ("tasks.get", json!({})),
        ("tasks.get", json!({"task_id": 1})),
        ("tasks.get", json!({"task_id": "x"})),
        ("tasks.list", json!({"limit": "many"})),
        ("tasks.create", json!({"name": 1})),
        ("tasks.execute", json!({"tasks": {}})),
    ] {
        probe.refused(method, params, INVALID_PARAMS).await?;
    }
    seen("missing and mistyped parameters are -32602")
}

async fn own_codes_are_in_the_servers_range(probe: &Probe) -> Outcome {
    let standard = [
        PARSE_ERROR,
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        INVALID_PARAMS,
        -32603,
    ];
    let errors = some_errors(probe).await?;
    for error in &errors {
        let reserved = (-32_768..=-32_100).contains(&error.code);
        ensure!(
            !reserved || standard.contains(&error.code),
            "{error}: a reserved code"
        );
    }
    let codes: Vec<_> = errors.iter().map(|error| error.code).collect();
    seen(format!("seen: {codes:?}"))
}

async fn standard_codes_are_used(probe: &Probe) -> Outcome {
    parse_errors_have_no_id(probe).await?;
    invalid_requests_are_told(probe).await?;
    unknown_methods_are_told(probe).await?;
    invalid_params_are_told(probe).await?;
    seen("-32700, -32600, -32601 and -32602 where they belong")
}
