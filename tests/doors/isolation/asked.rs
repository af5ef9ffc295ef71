//! How the matrix asks for a use case, and at which doors.

use super::bus::{self, OnBus};
use super::inboxes::{self, Inbox};
use super::world::Callers;
use super::{a2a, a2a_v03};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_a2a::Operation;
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Longer than an answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a use case is asked for.
pub(super) enum Asked {
    /// A call over HTTP.
    Call(&'static str, Value),
    /// The same on a socket.
    OnSocket(&'static str, Value),
    /// `GET` of a path.
    Get(String),
    /// An operation of Agent2Agent, over every binding.
    A2a(Operation, Value),
    /// The same in version 0.3 over gRPC.
    A2aV03(Operation, Value),
    /// What a requester of the EventBus is told.
    Inbox(Inbox),
    /// What agents of the EventBus publish, take and say.
    Bus(OnBus),
}

/// The doors at which the matrix asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    Call,
    Socket,
    Events,
    Metrics,
    A2a,
    A2aV03,
    Bus,
}

impl Asked {
    pub(super) fn way(&self) -> Way {
        match self {
            Self::Call(..) => Way::Call,
            Self::OnSocket(..) => Way::Socket,
            Self::Get(path) if path.starts_with("/events") => Way::Events,
            Self::Get(_) => Way::Metrics,
            Self::A2a(..) => Way::A2a,
            Self::A2aV03(..) => Way::A2aV03,
            Self::Inbox(_) | Self::Bus(_) => Way::Bus,
        }
    }

    pub(super) fn is_on_a_socket(&self) -> bool {
        self.way() == Way::Socket
    }
}

/// The same on a socket, where it can be asked there too.
pub(super) fn twins(rows: &[Asked]) -> Vec<Asked> {
    let twin = |asked: &Asked| match asked {
        Asked::Call(method, params) => Some(Asked::OnSocket(method, params.clone())),
        Asked::Get(path) => {
            let (name, id) = path.strip_prefix("/events?")?.split_once('=')?;
            Some(Asked::OnSocket("subscribe", json!({name: id})))
        }
        Asked::OnSocket(..)
        | Asked::A2a(..)
        | Asked::A2aV03(..)
        | Asked::Inbox(_)
        | Asked::Bus(_) => None,
    };
    rows.iter().filter_map(twin).collect()
}

/// Status and text of the answer; of a stream of its beginning.
pub(super) async fn answer(world: &Callers, token: Option<&str>, asked: &Asked) -> (u16, String) {
    match asked {
        Asked::Call(method, params) => world.ask(token, method, params).await,
        Asked::OnSocket(method, params) => on_socket(world, token, method, params).await,
        Asked::Get(path) => {
            let request = world.client.get(format!("{}{path}", world.url()));
            world.send(world.as_caller(request, token)).await
        }
        Asked::A2a(operation, request) => a2a::answers(world, token, *operation, request).await,
        Asked::A2aV03(operation, request) => {
            a2a_v03::answer(world, token, *operation, request).await
        }
        Asked::Inbox(inbox) => inboxes::answer(world, token, inbox).await,
        Asked::Bus(asked) => bus::answer(world, token, asked).await,
    }
}

/// The answer to a call on a socket of its own, or why there is no socket.
async fn on_socket(
    world: &Callers,
    token: Option<&str>,
    method: &str,
    params: &Value,
) -> (u16, String) {
    let url = format!("{}/ws", world.url().replace("http://", "ws://"));
    let mut request = url.into_client_request().unwrap();
    if let Some(name) = token {
        let bearer = format!("Bearer {}", world.token(name)).parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
    }
    let mut socket = match connect_async(request).await {
        Ok((socket, _)) => socket,
        Err(Error::Http(refused)) => {
            let body = refused.body().clone().unwrap_or_default();
            let text = String::from_utf8(body).unwrap();
            return (refused.status().as_u16(), text);
        }
        Err(other) => panic!("{other}"),
    };
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": method, "params": params});
    let call = Message::text(call.to_string());
    socket.send(call).await.unwrap();
    loop {
        let message = timeout(PATIENCE, socket.next()).await.unwrap();
        let Some(Ok(Message::Text(text))) = message else {
            continue;
        };
        let told: Value = serde_json::from_str(&text).unwrap();
        if told["id"] == "call" {
            return (200, text.to_string());
        }
    }
}

pub(super) fn shown(asked: &Asked) -> String {
    match asked {
        Asked::Call(method, params) => format!("{method} {params}"),
        Asked::OnSocket(method, params) => format!("on a socket: {method} {params}"),
        Asked::Get(path) => format!("GET {path}"),
        Asked::A2a(operation, request) => format!("{operation:?} {request}"),
        Asked::A2aV03(operation, request) => format!("{operation:?} {request} in 0.3"),
        Asked::Inbox(inbox) => format!("{inbox:?}"),
        Asked::Bus(asked) => format!("{asked:?}"),
    }
}
