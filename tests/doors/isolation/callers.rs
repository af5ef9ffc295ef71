//! Requests of some callers.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Requests of some callers to one or several nodes.
pub(crate) struct Callers {
    urls: Vec<String>,
    /// The node that is asked next.
    next: AtomicUsize,
    pub(crate) client: reqwest::Client,
    /// The tokens of callers whose tokens are not their names.
    tokens: HashMap<String, String>,
}

impl Callers {
    pub(super) fn of(urls: Vec<String>) -> Self {
        Self {
            urls,
            next: AtomicUsize::new(0),
            client: taskledger::tls::client().build().unwrap(),
            tokens: HashMap::new(),
        }
    }

    /// Whether each node has about half of the flows, as the next one sees it.
    pub(super) async fn share_the_flows(&self) -> bool {
        let health = self.call("chief", "system.health", json!({})).await;
        let alive = health["node"]["alive"].as_array().unwrap();
        let held = |node: &Value| node["partitions"].as_u64().unwrap();
        alive.len() == self.urls.len() && alive.iter().all(|node| held(node) > 100)
    }

    /// How many nodes are asked in turn.
    pub(super) fn nodes(&self) -> usize {
        self.urls.len()
    }

    /// Where the node is that is asked now.
    pub(crate) fn url(&self) -> &str {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.urls[turn % self.urls.len()]
    }

    /// The same callers at one node, whichever was asked before. The first has number 0.
    pub(crate) fn at(&self, node: usize) -> Self {
        Self {
            urls: vec![self.urls[node].clone()],
            next: AtomicUsize::new(0),
            client: self.client.clone(),
            tokens: self.tokens.clone(),
        }
    }

    /// From now on a caller of this name shows this token.
    pub(crate) fn know(&mut self, name: &str, token: &str) {
        self.tokens.insert(name.to_owned(), token.to_owned());
    }

    /// The token of this caller.
    pub(crate) fn token<'c>(&'c self, name: &'c str) -> &'c str {
        self.tokens.get(name).map_or(name, String::as_str)
    }

    /// Status and body of an answer; of a stream its first message.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> (u16, String) {
        let mut response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let streams = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !streams {
            return (status, response.text().await.unwrap());
        }
        let mut begun = Vec::new();
        while !begun.windows(2).any(|pair| pair == b"\n\n") {
            let piece = tokio::time::timeout(Duration::from_secs(10), response.chunk());
            begun.extend_from_slice(&piece.await.unwrap().unwrap().unwrap());
        }
        (status, String::from_utf8(begun).unwrap())
    }

    /// A request with the credentials of this caller.
    pub(crate) fn as_caller(
        &self,
        request: reqwest::RequestBuilder,
        token: Option<&str>,
    ) -> reqwest::RequestBuilder {
        match token {
            None => request,
            Some(name) => request.bearer_auth(self.token(name)),
        }
    }

    /// Status and body of a call's answer.
    pub(crate) async fn ask(
        &self,
        token: Option<&str>,
        method: &str,
        params: &Value,
    ) -> (u16, String) {
        let body = json!({"jsonrpc": "2.0", "id": "call", "method": method, "params": params});
        let request = self.client.post(self.url()).json(&body);
        self.send(self.as_caller(request, token)).await
    }

    /// The result of a call that must succeed.
    pub(crate) async fn call(&self, token: &str, method: &str, params: Value) -> Value {
        let (status, text) = self.ask(Some(token), method, &params).await;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(
            status == 200 && answer["error"].is_null(),
            "{method}: {text}"
        );
        answer["result"].take()
    }

    /// The error of a call that must be refused.
    pub(crate) async fn refusal(&self, token: &str, method: &str, params: Value) -> Value {
        let (_, text) = self.ask(Some(token), method, &params).await;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer["error"].is_object(), "{method}: {text}");
        answer["error"].take()
    }

    /// The position of the last event.
    pub(crate) async fn head(&self) -> u64 {
        let health = self.call("chief", "system.health", json!({})).await;
        health["log"]["head"].as_u64().unwrap()
    }
}
