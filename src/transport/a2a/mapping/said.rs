//! Reads the content of a message, and decides what of it is kept.

use serde_json::{Map, Value};
use taskledger_a2a::{Content, Error, Message, Part, Wire};
use taskledger_domain::Payload;
use taskledger_domain::limits::{CONTEXT_CHARS_MAX, MESSAGE_ID_CHARS_MAX, RUN_MESSAGE_BYTES_MAX};

/// Checks the texts by which a message names things.
///
/// # Errors
/// `InvalidParams`: one is too long.
pub(crate) fn checked(message: &Message) -> Result<(), Error> {
    let context = message.context_id.as_deref().unwrap_or_default();
    for (field, text, max) in [
        (
            "message.messageId",
            &*message.message_id,
            MESSAGE_ID_CHARS_MAX,
        ),
        ("message.contextId", context, CONTEXT_CHARS_MAX),
    ] {
        let chars = text.chars().count();
        if chars > max {
            let reason = format!("{chars} characters, at most {max} are taken");
            return Err(Error::invalid_member(field, reason));
        }
    }
    Ok(())
}

/// What is kept of a message: all of it, or, if that is too much, without the data and files that have become inputs.
///
/// # Errors
/// `InvalidParams`: it is too much even then.
pub(crate) fn kept(message: &Message) -> Result<Payload, Error> {
    let fits = |members: &Map<String, Value>| {
        let payload = Payload::from_map(members);
        (payload.as_str().len() <= RUN_MESSAGE_BYTES_MAX).then_some(payload)
    };
    if let Some(payload) = fits(&message.write()) {
        return Ok(payload);
    }
    let mut shorter = message.clone();
    for part in &mut shorter.parts {
        let left_out = match &part.content {
            Content::Data(data) => {
                format!("({} bytes of data are not kept)", data.to_string().len())
            }
            Content::Raw(raw) => format!("({} bytes of a file are not kept)", raw.len()),
            Content::Text(_) | Content::Url(_) => continue,
        };
        *part = Part::text(left_out);
    }
    fits(&shorter.write()).ok_or_else(|| {
        let reason =
            format!("without data and files it has more than {RUN_MESSAGE_BYTES_MAX} bytes");
        Error::invalid_member("message", reason)
    })
}
