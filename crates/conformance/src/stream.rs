//! Reads a streamed answer: server-sent events, and what they report about tasks.
//!
//! The documents show the members of an event and not how it is framed, so an event is found in
//! either form: as `{event, data}` in the data of a message, alone or as a JSON-RPC result, or as a
//! message whose field `event` has the type.

use super::answer::shown;
use super::clause::{Finding, ensure};
use super::probe::{PATIENCE, Probe};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// Types of events that the documents name.
pub(super) const TYPES: [&str; 5] = [
    "task_status_update",
    "task_progress_update",
    "task_completed",
    "task_failed",
    "task_cancelled",
];
/// Bytes of one stream that are read: far more than a handful of small tasks can tell.
const STREAM_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One event about a task.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    /// One of [`TYPES`], or another type of the server.
    pub(super) kind: String,
    /// Its members.
    pub(super) data: Value,
}

/// One message of an event stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    /// Its field `event`; empty if it has none.
    pub(super) event: String,
    /// Its data, all lines.
    pub(super) data: String,
}

/// The messages of a stream that has ended. What follows the last empty line is none.
pub(super) fn messages(body: &[u8]) -> Vec<Message> {
    Messages::default().take(body)
}

/// Parts of a stream that make messages.
#[derive(Debug, Default)]
struct Messages {
    /// What follows the last line break.
    rest: Vec<u8>,
    event: String,
    data: Option<String>,
}

impl Messages {
    /// Takes what came and gives the messages that it completes.
    fn take(&mut self, bytes: &[u8]) -> Vec<Message> {
        self.rest.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            messages.extend(self.line(text.trim_end_matches(['\r', '\n'])));
        }
        messages
    }

    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let (event, data) = (std::mem::take(&mut self.event), self.data.take()?);
            return Some(Message { event, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            _ => {}
        }
        None
    }
}

/// What a message tells, if it is an event.
fn event(message: Message) -> Option<Event> {
    let mut value: Value = serde_json::from_str(&message.data).ok()?;
    if value["jsonrpc"] == "2.0" {
        value = value["result"].take();
    }
    if let Some(kind) = value["event"].as_str().map(str::to_owned) {
        let data = value["data"].take();
        return Some(Event { kind, data });
    }
    let kind = message.event;
    let typed = TYPES.contains(&kind.as_str());
    typed.then_some(Event { kind, data: value })
}

impl Probe {
    /// Sends a request and reads events until `enough`, the end of the stream, or the end of
    /// patience.
    ///
    /// # Errors
    /// [`Finding::Skipped`]: the answer is no `text/event-stream`. [`Finding::Failed`]: there is none,
    /// or it breaks.
    pub(super) async fn stream(
        &self,
        request: &Value,
        enough: impl Fn(&[Event]) -> bool,
    ) -> Result<Vec<Event>, Finding> {
        let sent = shown(request);
        let broken = |why: String| Finding::failed(format!("sent {sent}: {why}"));
        let deadline = Instant::now() + PATIENCE;
        let sending = self
            .client()
            .post(self.options().endpoint())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream, application/json")
            .body(request.to_string())
            .send();
        let late = || broken(format!("no answer in {} s", PATIENCE.as_secs()));
        let mut response = timeout_at(deadline, sending)
            .await
            .map_err(|_| late())?
            .map_err(|error| broken(error.to_string()))?;
        let media_type = response.headers().get("content-type");
        let media_type = media_type.and_then(|value| value.to_str().ok());
        if !media_type.is_some_and(|text| text.starts_with("text/event-stream")) {
            let media_type = media_type.unwrap_or("nothing").to_owned();
            let body = timeout_at(deadline, response.text()).await;
            let body = body.map_err(|_| late())?.unwrap_or_default();
            let text = format!("got {media_type} {}: expected an event stream", shown(body));
            return Err(Finding::skipped(format!("sent {sent}: {text}")));
        }
        let (mut messages, mut events, mut bytes) = (Messages::default(), Vec::new(), 0);
        while !enough(&events) {
            match timeout_at(deadline, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    bytes += chunk.len();
                    ensure!(bytes <= STREAM_BYTES_MAX, "sent {sent}: an endless stream");
                    events.extend(messages.take(&chunk).into_iter().filter_map(event));
                }
                Ok(Ok(None)) | Err(_) => break,
                Ok(Err(error)) => return Err(broken(format!("the stream broke: {error}"))),
            }
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_found_in_each_frame_and_across_pieces() {
        let data = json!({"task_id": "t", "status": "completed"});
        let own = json!({"event": "task_completed", "data": data});
        let wrapped = json!({"jsonrpc": "2.0", "id": 1, "result": own});
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"status": "started"}});
        let text = format!(
            ": hello\r\ndata: {own}\r\n\r\ndata: {wrapped}\n\nid: 7\nevent: task_completed\ndata:{data}\n\n\
             data: {answer}\n\nevent: other\ndata: {{}}\n\ndata: no json\n\ndata: {own}\n"
        );
        let expected = Event {
            kind: "task_completed".to_owned(),
            data,
        };
        for size in [1, 7, text.len()] {
            let mut messages = Messages::default();
            let pieces = text.as_bytes().chunks(size);
            let taken = pieces.flat_map(|piece| messages.take(piece));
            let events: Vec<_> = taken.filter_map(event).collect();
            assert_eq!(events, vec![expected.clone(); 3], "pieces of {size}");
        }
    }

    #[test]
    fn data_on_several_lines_is_one_event() {
        let text = b"event: task_failed\ndata: {\ndata: \"a\": 1}\n\n";
        let events: Vec<_> = messages(text).into_iter().filter_map(event).collect();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].data, json!({"a": 1}));
    }
}
