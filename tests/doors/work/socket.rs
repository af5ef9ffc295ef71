//! A worker's end of a socket: answers and notifications apart.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Real time after which something that is awaited has not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Real time in which something would have come.
const SILENCE: Duration = Duration::from_millis(300);

pub(super) struct Socket {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    calls: u64,
    /// Notifications that came while an answer was awaited.
    told: VecDeque<Value>,
    /// Answers that came while something else was awaited.
    answers: Vec<Value>,
}

impl Socket {
    /// To the server at this URL, with this token.
    pub(super) async fn open(url: &str, token: Option<&str>) -> Self {
        let url = url.trim_end_matches('/').replace("http://", "ws://");
        let mut request = format!("{url}/ws").into_client_request().unwrap();
        if let Some(token) = token {
            let header = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert("authorization", header);
        }
        let (socket, _) = connect_async(request).await.unwrap();
        Self {
            socket,
            calls: 0,
            told: VecDeque::new(),
            answers: Vec::new(),
        }
    }

    /// Sends a call; its id.
    pub(super) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.calls += 1;
        let id = self.calls;
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let message = Message::text(call.to_string());
        self.socket.send(message).await.unwrap();
        id
    }

    async fn message(&mut self) -> Value {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The answer to the call with this id.
    pub(super) async fn answer(&mut self, id: u64) -> Value {
        if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
            return self.answers.swap_remove(at);
        }
        loop {
            let message = timeout(PATIENCE, self.message()).await.expect("an answer");
            if message["id"] == id {
                return message;
            }
            self.sort(message);
        }
    }

    fn sort(&mut self, message: Value) {
        if message["id"].is_null() {
            self.told.push_back(message);
        } else {
            self.answers.push(message);
        }
    }

    /// The whole answer to a call.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// The result of a call that must succeed.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params.clone()).await;
        assert!(answer["error"].is_null(), "{method} {params}: {answer}");
        answer["result"].take()
    }

    /// Opens a subscription for work; its name.
    pub(super) async fn work(&mut self, params: Value) -> Value {
        self.call("work", params).await["subscription"].take()
    }

    /// What the next notification says of a subscription for work.
    pub(super) async fn told(&mut self) -> Value {
        while self.told.is_empty() {
            let message = timeout(PATIENCE, self.message()).await;
            self.sort(message.expect("a notification"));
        }
        let mut told = self.told.pop_front().unwrap();
        assert_eq!(told["method"], "work", "{told}");
        told["params"].take()
    }

    /// The claim that is told next.
    pub(super) async fn claim(&mut self) -> Value {
        let mut told = self.told().await;
        assert!(told["claim"].is_object(), "{told}");
        told["claim"].take()
    }

    /// Nothing is told for a while.
    pub(super) async fn assert_silent(&mut self) {
        assert_eq!(self.told, VecDeque::<Value>::new());
        let told = timeout(SILENCE, self.message()).await;
        assert!(told.is_err(), "{told:?}");
    }

    /// Closes the socket.
    pub(super) async fn close(mut self) {
        self.socket.close(None).await.unwrap();
        while let Some(Ok(_)) = self.socket.next().await {}
    }
}
