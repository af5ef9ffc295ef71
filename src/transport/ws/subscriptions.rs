//! The subscriptions of one socket: what happens, as notifications.

use super::calls::Opened;
use crate::subscription::live::Frame;
use crate::subscription::stream::{Batch, Reset, Stream};
use crate::transport::jsonrpc::{RpcError, answer_body};
use axum::extract::ws::Message;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::time::Duration;
use taskledger_domain::Violation;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// Subscriptions of one socket at once.
const SUBSCRIPTIONS_MAX: usize = 32;
/// Pause after the log could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// See the module. Dropping it ends all of them.
pub(super) struct Subscriptions {
    out: mpsc::Sender<Message>,
    tellers: JoinSet<u64>,
    open: HashMap<u64, AbortHandle>,
    /// Numbers are not used again.
    last: u64,
}

impl Subscriptions {
    pub(super) fn new(out: mpsc::Sender<Message>) -> Self {
        Self {
            out,
            tellers: JoinSet::new(),
            open: HashMap::new(),
            last: 0,
        }
    }

    /// # Errors
    /// There are as many as there may be.
    pub(super) fn refuse_when_full(&self) -> Result<(), RpcError> {
        if self.open.len() < SUBSCRIPTIONS_MAX {
            return Ok(());
        }
        let reason = "this socket has too many subscriptions";
        let expected = format!("at most {SUBSCRIPTIONS_MAX}; end one with `unsubscribe`");
        let fault = Violation::of("subscription", reason, expected, &self.open.len().into());
        Err(vec![fault].into())
    }

    /// Answers the call that opened a stream, then tells its events.
    pub(super) async fn open(&mut self, opened: Opened) {
        self.last += 1;
        let (number, name) = (self.last, self.last.to_string());
        let begins = opened.stream.place().to_string();
        let result = match opened.result {
            None => to_raw_value(&json!({"subscription": name, "cursor": begins}))
                .expect("texts can be written as JSON"),
            Some(result) => with_subscription(&result, &name),
        };
        let answer = String::from_utf8(answer_body(&opened.id, &result));
        let answer = answer.expect("answers are JSON texts");
        if self.out.send(Message::text(answer)).await.is_err() {
            return;
        }
        let telling = tell(
            name,
            opened.stream,
            opened.reset.map(|reset| (reset, begins)),
            self.out.clone(),
        );
        let teller = self.tellers.spawn(async move {
            telling.await;
            number
        });
        self.open.insert(number, teller);
    }

    /// Waits until one has ended by itself; for ever when there is none.
    pub(super) async fn ended(&mut self) {
        match self.tellers.join_next().await {
            Some(Ok(number)) => _ = self.open.remove(&number),
            // Was ended by `unsubscribe`.
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }

    /// Ends one; false if there is no such.
    pub(super) fn close(&mut self, name: &str) -> bool {
        let number = name.parse::<u64>().ok();
        let teller = number.and_then(|number| self.open.remove(&number));
        let found = teller.is_some();
        if let Some(teller) = teller {
            teller.abort();
        }
        found
    }
}

/// The result of a call with the name of its subscription.
fn with_subscription(result: &RawValue, name: &str) -> Box<RawValue> {
    let text = result.get();
    let rest = text.strip_prefix('{').unwrap_or("}").trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    RawValue::from_string(format!(r#"{{"subscription":"{name}"{comma}{rest}"#))
        .expect("an object with one more member is JSON")
}

/// Tells what happens until the stream ends or nobody listens any more.
async fn tell(
    name: String,
    mut stream: Stream,
    reset: Option<(Reset, String)>,
    out: mpsc::Sender<Message>,
) {
    if let Some((reset, place)) = reset {
        let data = json!({"reason": reset.as_str(), "cursor": place});
        let params = json!({"subscription": name, "event": "reset", "id": place, "data": data});
        let told = json!({"jsonrpc": "2.0", "method": "event", "params": params});
        if out.send(Message::text(told.to_string())).await.is_err() {
            return;
        }
    }
    loop {
        let batch = match stream.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "a subscription waits for the log");
                sleep(PAUSE).await;
                continue;
            }
        };
        if let Batch::Passed = batch {
            continue;
        }
        for frame in batch.frames() {
            if out.send(event(&name, frame)).await.is_err() {
                return;
            }
        }
    }
    let told = json!({"jsonrpc": "2.0", "method": "end", "params": {"subscription": name}});
    // A socket that is gone needs no end.
    let _ = out.send(Message::text(told.to_string())).await;
}

fn event(name: &str, frame: &Frame) -> Message {
    let data = frame.data();
    let data = std::str::from_utf8(&data).expect("a notice is a JSON text");
    let (kind, id) = (frame.kind.as_str(), frame.cursor);
    Message::text(format!(
        r#"{{"jsonrpc":"2.0","method":"event","params":{{"subscription":"{name}","event":"{kind}","id":"{id}","data":{data}}}}}"#
    ))
}
