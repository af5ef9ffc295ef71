//! Commands that name one webhook: `get`, `delete`, `secret`, `test`, `enable`, `disable`.

use super::{Output, Params, Request, members};
use crate::cli::output::{counted, member};
use serde_json::Value;
use std::io;

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
    members(result, &FIRST, out)
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
    out.lines(old.into_iter().flatten().map(|old| {
        let (secret, until) = (member(old, "secret"), member(old, "expires_at"));
        format!("until {until} also: {secret}")
    }))
}

/// What a deletion says.
pub(super) fn deleted(result: &Value, out: &mut Output) -> io::Result<()> {
    let cancelled = result["cancelled"].as_u64().unwrap_or_default();
    let messages = counted(cancelled, "waiting message was", "waiting messages were");
    out.line(format!("deleted; {messages} cancelled"))
}

/// What an order to send says.
pub(super) fn queued(result: &Value, out: &mut Output) -> io::Result<()> {
    members(result, &["delivery_id"], out)?;
    out.line("`webhooks deliveries` shows what becomes of it")
}
