//! `taskledger whoami`

use super::{Output, Params, Request};
use serde_json::Value;
use std::io;
use taskledger_cli::output::only;

pub(super) fn request() -> Request {
    Request {
        method: "system.whoami",
        params: Params::default().build(),
        show,
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    const MEMBERS: [&str; 8] = [
        "principal",
        "user_id",
        "tenant",
        "scopes",
        "methods",
        "agents",
        "credential",
        "expires_at",
    ];
    only(result, &MEMBERS, out)
}
