//! A notice as a server-sent event, and as one line of JSON.
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use crate::subscription::live::{Format, Published};
use crate::subscription::stream::Batch;
use axum::body::Bytes;

/// The format of `text/event-stream`: `id`, `event` and `data`.
pub(crate) struct ServerSentEvent;

impl Format for ServerSentEvent {
    fn write(published: &Published, out: &mut Vec<u8>) {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(published.cursor.to_string().as_bytes());
        out.extend_from_slice(b"\nevent: ");
        out.extend_from_slice(published.notice.kind.as_str().as_bytes());
        out.extend_from_slice(b"\ndata: ");
        JsonLine::write(published, out);
        out.extend_from_slice(b"\n\n");
    }
}

/// The notice alone, on one line.
pub(crate) struct JsonLine;

impl Format for JsonLine {
    fn write(published: &Published, out: &mut Vec<u8>) {
        let begin = out.len();
        published.notice.write_json(out);
        one_line(&mut out[begin..]);
    }
}

/// What a stream gave at a time, as server-sent events. Cost: O(bytes) for a part of a chunk, O(1) for a
/// whole one that was encoded for another client.
pub(crate) fn encoded(batch: &Batch) -> Bytes {
    match batch {
        Batch::Whole(chunk) => chunk.encoded::<ServerSentEvent>(),
        Batch::Notices(notices) => {
            if let [only] = notices.as_slice() {
                return only.encoded::<ServerSentEvent>().clone();
            }
            let texts = notices.iter().map(|p| p.encoded::<ServerSentEvent>());
            let mut all = Vec::with_capacity(texts.clone().map(Bytes::len).sum());
            for text in texts {
                all.extend_from_slice(text);
            }
            all.into()
        }
        Batch::Passed | Batch::Reset(_) => Bytes::new(),
    }
}

/// Line breaks of JSON stand between its tokens only, and would end the field of a server-sent event.
pub(super) fn one_line(json: &mut [u8]) {
    for byte in json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
