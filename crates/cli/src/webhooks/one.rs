//! Commands that name one webhook: `get`, `delete`, `secret`, `test`, `enable`, `disable`.

use super::{Output, Params, Request, members};
use crate::output::{counted, member};
use serde_json::Value;
use std::io;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The webhook
    #[arg(value_name = "ID")]
    id: String,
}

impl Args {
    pub(super) fn request(
        self,
        method: &'static str,
        show: fn(&Value, &mut Output) -> io::Result<()>,
    ) -> Request {
        Request {
            method,
            params: Params::default().with("id", self.id).build(),
            show,
        }
    }
}

/// A webhook.
pub(super) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    const FIRST: [&str; 6] = ["id", "url", "description", "enabled", "disabled", "events"];
    let mut shown = result.clone();
    for (name, text) in [
        ("breaker", result.get("breaker").map(|it| breaker(it, out))),
        ("secrets", result.get("secrets").map(|it| secrets(it, out))),
    ] {
        if let (Some(map), Some(text)) = (shown.as_object_mut(), text) {
            map.insert(name.to_owned(), text.into());
        }
    }
    members(&shown, &FIRST, out)
}

/// What keeps messages from being sent, and until when.
fn breaker(breaker: &Value, out: &Output) -> String {
    let failures = match breaker.get("failures").and_then(Value::as_u64) {
        None | Some(0) => String::new(),
        Some(1) => ", 1 failure".to_owned(),
        Some(count) => format!(", {count} failures in a row"),
    };
    let since = out.sentence(&member(breaker, "since"));
    let next = out.sentence(&member(breaker, "next_try_at"));
    let pause = match (&*next, &*since) {
        ("", "") => String::new(),
        ("", since) => format!(" since {since}, tried with the next message"),
        (until, since) => format!(" since {since}, tried again at {until}"),
    };
    format!("{}{pause}{failures}", member(breaker, "state"))
}

/// How many sign, and how long.
fn secrets(secrets: &Value, out: &Output) -> String {
    let all = secrets.as_array().map(Vec::as_slice).unwrap_or_default();
    let ends: Vec<String> = all
        .iter()
        .map(|one| out.sentence(&member(one, "expires_at")))
        .collect();
    let ends: Vec<String> = ends.into_iter().filter(|end| !end.is_empty()).collect();
    match (all.len(), ends.is_empty()) {
        (0, _) => "none: messages are not signed".to_owned(),
        (count, true) => format!("{count}"),
        (count, false) => format!("{count}, old ones until {}", ends.join(", ")),
    }
}

/// A webhook whose secret is shown now and never again.
pub(super) fn show_with_secret(result: &Value, out: &mut Output) -> io::Result<()> {
    let mut rest = result.clone();
    let secret = rest.as_object_mut().and_then(|map| map.remove("secret"));
    show(&rest, out)?;
    if let Some(Value::String(secret)) = secret {
        out.line("")?;
        out.line(format!("secret           {secret}"))?;
        out.line(
            "Keep it: other commands do not show it, only `webhooks secret`, which is logged.",
        )?;
    }
    Ok(())
}

/// What signs.
pub(super) fn secret(result: &Value, out: &mut Output) -> io::Result<()> {
    out.line(member(result, "secret"))?;
    let public = member(result, "public_key");
    if !public.is_empty() {
        out.line(format!("public key: {public}"))?;
    }
    let old = result.get("old").and_then(Value::as_array);
    let old = old.into_iter().flatten().map(|old| {
        let (secret, until) = (member(old, "secret"), member(old, "expires_at"));
        format!("until {} also: {secret}", out.sentence(&until))
    });
    let old: Vec<String> = old.collect();
    out.lines(old)
}

/// What a deletion says.
pub(super) fn deleted(result: &Value, out: &mut Output) -> io::Result<()> {
    let cancelled = result["cancelled"].as_u64().unwrap_or_default();
    let messages = counted(cancelled, "waiting message was", "waiting messages were");
    out.line(format!("deleted; {messages} cancelled"))
}

/// What came of a test.
pub(super) fn tested(result: &Value, out: &mut Output) -> io::Result<()> {
    let attempt = result.get("attempt").filter(|attempt| attempt.is_object());
    let waits_for = member(result, "waits_for");
    let said = match (attempt, &*member(result, "state")) {
        (Some(attempt), "delivered") => {
            let (status, ms) = (member(attempt, "status"), member(attempt, "duration_ms"));
            format!("it has arrived: {status} after {ms} ms")
        }
        (Some(attempt), _) => {
            let what = match &*member(attempt, "status") {
                "" => member(attempt, "error"),
                status => status.to_owned(),
            };
            format!("it has failed: {what}, {}", member(attempt, "detail"))
        }
        (None, _) if waits_for == "breaker" => {
            let at = out.sentence(&member(result, "next_at"));
            let get = out.command("taskledger webhooks list");
            format!("it waits: nothing is sent before {at}; see `{get}`")
        }
        (None, state) => {
            let deliveries = out.command("taskledger webhooks deliveries");
            format!("it is {state}; `{deliveries}` shows what becomes of it")
        }
    };
    out.line(format!("delivery {}", member(result, "delivery_id")))?;
    out.line(said)
}

/// How the command of a test ends: well only if the message has arrived.
pub(super) fn exit_of_test(result: &Value) -> ExitCode {
    match &*member(result, "state") {
        "delivered" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What an order to send says.
pub(super) fn queued(result: &Value, out: &mut Output) -> io::Result<()> {
    members(result, &["delivery_id"], out)?;
    let deliveries = out.command("taskledger webhooks deliveries");
    out.line(format!("`{deliveries}` shows what becomes of it"))
}
