//! The subscriptions of one socket, whose events are sent as notifications.

use super::begun::{Asked, Opened, Place};
use super::names::RESET;
use super::notification::notification;
use super::outbox::{Closed, Outbox};
use super::work::Windows;
use crate::meters::{Population, Presence};
use crate::subscription::live::Published;
use crate::subscription::stream::{Batch, Item, Notices, Reset};
use crate::transport::figures::{Carrier, Figures};
use crate::transport::jsonrpc::{RpcError, answer_body};
use crate::transport::sse::JsonLine;
use axum::extract::ws::Message;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Violation;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tokio_stream::StreamExt;

/// Subscriptions of one socket at once.
const SUBSCRIPTIONS_MAX: usize = 32;
/// Pause after the log could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// The subscriptions of one socket, by number. Dropping it ends all of them.
pub(super) struct Subscriptions<'a> {
    figures: Arc<Figures>,
    /// Those of the socket.
    own: &'a Population,
    out: Outbox,
    /// Of those that give work.
    windows: Windows,
    tellers: JoinSet<u64>,
    open: HashMap<u64, Open>,
    /// Numbers are not used again.
    last: u64,
    places: Arc<Semaphore>,
}

struct Open {
    teller: AbortHandle,
    _place: Place,
    _counted: [Presence; 2],
}

impl<'a> Subscriptions<'a> {
    pub(super) fn new(
        figures: Arc<Figures>,
        own: &'a Population,
        out: Outbox,
        windows: Windows,
    ) -> Self {
        Self {
            figures,
            own,
            out,
            windows,
            tellers: JoinSet::new(),
            open: HashMap::new(),
            last: 0,
            places: Arc::new(Semaphore::new(SUBSCRIPTIONS_MAX)),
        }
    }

    /// A place for one more.
    ///
    /// # Errors
    /// There are as many as there may be, those that are being opened included.
    pub(super) fn place(&self) -> Result<Place, RpcError> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(Place(place));
        }
        let reason = "this socket has too many subscriptions";
        let expected = format!("at most {SUBSCRIPTIONS_MAX}; end one with `unsubscribe`");
        let fault = Violation::of("subscription", reason, expected, &SUBSCRIPTIONS_MAX.into());
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
        self.out.answer(answer_body(&opened.id, &result)).await;
        let telling = tell(
            name,
            opened.stream,
            opened.reset.map(|reset| (reset, begins)),
            self.out.clone(),
            self.figures.clone(),
        );
        let teller = self.tellers.spawn(async move {
            // Nobody is left who could be told.
            let _ = telling.await;
            number
        });
        self.opened(number, teller, opened.place);
    }

    /// Answers the call that asked for work, then gives it.
    pub(super) async fn work(&mut self, asked: Asked) {
        let Asked { id, worker, place } = asked;
        self.last += 1;
        let (number, name) = (self.last, self.last.to_string());
        let result = to_raw_value(&json!({"subscription": name}));
        let result = result.expect("texts can be written as JSON");
        self.out.answer(answer_body(&id, &result)).await;
        let window = self.windows.open(worker.asked.window);
        let working = worker.run(name, window, self.out.clone(), self.figures.clone());
        let teller = self.tellers.spawn(async move {
            // Nobody is left who could be told.
            let _ = working.await;
            number
        });
        self.opened(number, teller, place);
    }

    fn opened(&mut self, number: u64, teller: AbortHandle, place: Place) {
        let open = Open {
            teller,
            _place: place,
            _counted: [self.figures.stream(Carrier::Socket), self.own.enter()],
        };
        self.open.insert(number, open);
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
        let open = number.and_then(|number| self.open.remove(&number));
        if let Some(open) = &open {
            open.teller.abort();
        }
        open.is_some()
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

/// Tells what happens until the stream ends or nobody listens any more. Who is told nothing for a while
/// is told its place when that has moved, so that it need not pass the events of others again.
async fn tell(
    name: String,
    mut stream: Notices,
    reset: Option<(Reset, String)>,
    out: Outbox,
    figures: Arc<Figures>,
) -> Result<(), Closed> {
    let mut told = stream.place();
    let reset_told = |reset: Reset, place: String| {
        let data = json!({"reason": reset.as_str(), "cursor": place});
        let params = json!({"subscription": name, "event": RESET, "id": place, "data": data});
        notification("event", &params)
    };
    if let Some((reset, place)) = reset {
        out.tell(reset_told(reset, place)).await?;
    }
    while let Some(item) = stream.next().await {
        match item {
            Ok(Item::Batch(Batch::Passed)) => {}
            Ok(Item::Batch(Batch::Reset(reset))) => {
                told = stream.place();
                out.tell(reset_told(reset, told.to_string())).await?;
            }
            Ok(Item::Batch(batch @ (Batch::Whole(_) | Batch::Notices(_)))) => {
                for published in batch.notices() {
                    out.tell(event(&name, published)).await?;
                }
                figures.noticed(Carrier::Socket, batch.notices().len());
                told = stream.place();
            }
            Ok(Item::Silence) if stream.place() == told => {}
            Ok(Item::Silence) => {
                told = stream.place();
                let params = json!({"subscription": name, "id": told.to_string()});
                out.tell(notification("place", &params)).await?;
            }
            Err(error) => {
                tracing::warn!(%error, "a subscription waits for the log");
                sleep(PAUSE).await;
            }
        }
    }
    let params = json!({"subscription": name});
    out.tell(notification("end", &params)).await
}

fn event(name: &str, published: &Published) -> Message {
    let data = published.encoded::<JsonLine>();
    let data = std::str::from_utf8(data).expect("a notice is a JSON text");
    let (kind, id) = (published.notice.kind.as_str(), published.cursor);
    Message::text(format!(
        r#"{{"jsonrpc":"2.0","method":"event","params":{{"subscription":"{name}","event":"{kind}","id":"{id}","data":{data}}}}}"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::store::memory::MemoryStore;
    use crate::subscription::cursor::Cursor;
    use crate::subscription::stream::HEARTBEAT;
    use crate::subscription::testing::{append, of_failures};
    use serde_json::Value;
    use taskledger_domain::testing::START;
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    #[tokio::test(start_paused = true)]
    async fn who_is_told_nothing_is_told_how_far_the_events_of_others_have_come() {
        // given
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))));
        let ending = CancellationToken::new();
        let stream = of_failures(&store, &ending).await;
        let (out, mut outgoing) = Outbox::new();
        let figures = Arc::new(Figures::new([]));
        tokio::spawn(tell("1".to_owned(), stream, None, out, figures));
        let begun = Instant::now();
        // when
        append(&store, 0).await;
        append(&store, 1).await;
        // then: once, and not again while nothing moves
        let Message::Text(told) = outgoing.recv().await.unwrap().message else {
            panic!("a text");
        };
        assert_eq!(begun.elapsed(), HEARTBEAT);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            (&told["method"], &told["params"]["subscription"]),
            (&json!("place"), &json!("1"))
        );
        let place = told["params"]["id"].as_str().unwrap();
        assert_eq!(Cursor::parse(place).unwrap().position, 2);
        let more = tokio::time::timeout(10 * HEARTBEAT, outgoing.recv()).await;
        assert!(more.is_err());
    }
}
