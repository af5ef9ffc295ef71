//! Who may call. spec: interface / Authentication

use crate::clauses::prelude::*;

/// The caller may not do this.
const UNAUTHORIZED: i64 = -32004;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        may(
            "interface/authentication/1-supported",
            "callers may have to authenticate themselves",
            authentication_is_supported,
        ),
        should(
            "interface/authentication/2-validates",
            "tokens are checked: those that nobody issued are refused",
            unknown_tokens_are_refused,
        ),
        should(
            "interface/authentication/3-access",
            "who may see a task follows from its `user_id`",
            tasks_are_hidden_from_others,
        ),
        should(
            "interface/authentication/4-errors",
            "who is refused gets -32004 or an HTTP status that says so",
            refusals_say_so,
        ),
        should(
            "interface/authentication/5-header",
            "tokens come in the header `Authorization`, as `Bearer`",
            other_schemes_are_refused,
        ),
    ]
}

/// How a call with this header is refused; none if it is not.
async fn refusal(probe: &Probe, authorization: &str) -> Result<Option<String>, Finding> {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.list", "params": {"limit": 1}});
    let headers = [
        ("content-type", "application/json"),
        ("authorization", authorization),
    ];
    let answer = probe.raw(call.to_string(), &headers).await?;
    let code = answer
        .json()
        .ok()
        .and_then(|answer| answer["error"]["code"].as_i64());
    let refused = [401, 403].contains(&answer.status) || code == Some(UNAUTHORIZED);
    Ok(refused.then(|| answer.story()))
}

async fn authentication_is_supported(probe: &Probe) -> Outcome {
    let refused = refusal(probe, "Bearer nobody.issued.this").await?;
    let text = "a call with a token that nobody issued is answered as any other";
    seen(refused.ok_or_else(|| Finding::skipped(text))?)
}

async fn tasks_are_hidden_from_others(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("own")).await?;
    probe.get(&id).await?;
    let params = json!({"task_id": id});
    let reply = probe.call_of_another_user("tasks.get", params).await?;
    let error = reply.expect_error_of(&[NOT_FOUND, UNAUTHORIZED])?;
    seen(format!("another user gets {error}"))
}

/// A server may count tokens that nobody issued as guesses and soon stop listening to whoever guesses, so
/// each clause sends as few of them as it can.
async fn expect_refusals(probe: &Probe, odd: &[&str]) -> Result<(), Finding> {
    authentication_is_supported(probe).await?;
    for odd in odd {
        ensure!(
            refusal(probe, odd).await?.is_some(),
            "`Authorization: {odd}` is taken"
        );
    }
    Ok(())
}

async fn unknown_tokens_are_refused(probe: &Probe) -> Outcome {
    expect_refusals(probe, &["Bearer x"]).await?;
    seen("a long and a short token that nobody issued are refused")
}

async fn refusals_say_so(probe: &Probe) -> Outcome {
    expect_refusals(probe, &["Bearer ", "nobody"]).await?;
    seen("a token that nobody issued, an empty one and what is none are refused in these ways")
}

async fn other_schemes_are_refused(probe: &Probe) -> Outcome {
    expect_refusals(probe, &["Basic bm9ib2R5Om5vYm9keQ=="]).await?;
    seen("another scheme is refused")
}
