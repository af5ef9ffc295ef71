//! The real program with a receiver beside it.

use crate::webhooks::world::KEY;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use taskledger_testkit::receiver::{Receiver, Request};
use taskledger_testkit::server::{Folder, Server};

/// The only address that the server may call.
pub(crate) const ALLOWED: [&str; 2] = ["--egress-allow-net", "127.0.0.1/32"];

/// A server that sends to a receiver.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    pub(crate) receiver: Receiver,
    pub(crate) server: Server,
    pub(crate) secret: String,
    pub(crate) webhook: Value,
}

/// What a server of this folder is started with beside its storage.
pub(crate) fn arguments(folder: &Folder) -> Vec<String> {
    let mut all: Vec<String> = ALLOWED.map(str::to_owned).to_vec();
    if folder.url().is_some() {
        let file = folder.path().join("keys");
        if !file.exists() {
            std::fs::write(&file, KEY).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&file, mode).unwrap();
        }
        all.push("--secrets-key-file".to_owned());
        all.push(file.to_str().unwrap().to_owned());
    }
    all
}

async fn started(folder: &Folder) -> Server {
    let all = arguments(folder);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    Server::start_with(folder, &all).await
}

impl Site {
    /// As [`Self::new`], with the data in this place.
    pub(crate) async fn of(folder: Folder, more: Value) -> Self {
        let receiver = Receiver::start().await;
        let server = started(&folder).await;
        Self::with(folder, receiver, server, more).await
    }

    /// With one endpoint that is told of tasks that complete.
    pub(crate) async fn new(more: Value) -> Self {
        Self::of(Folder::new(), more).await
    }

    pub(crate) async fn with(
        folder: Folder,
        receiver: Receiver,
        server: Server,
        more: Value,
    ) -> Self {
        let mut wanted = json!({"url": receiver.url("/hook"), "events": ["task_completed"]});
        for (name, value) in more.as_object().unwrap() {
            wanted[name] = value.clone();
        }
        let created = server.api.call("webhooks.create", wanted).await;
        Self {
            secret: created["secret"].as_str().unwrap().to_owned(),
            webhook: created["id"].clone(),
            folder,
            receiver,
            server,
        }
    }

    /// Ends the server at once, and starts it anew.
    pub(crate) async fn killed(self) -> Self {
        self.server.kill().await;
        if self.folder.url().is_some() {
            // As if the minute were over for which other servers leave alone what this one held.
            let table = "taskledger_webhooks.endpoints";
            let sql = format!("UPDATE {table} SET lease_until = 0 WHERE lease_until IS NOT NULL");
            self.folder.execute(&sql).await;
        }
        let server = started(&self.folder).await;
        Self { server, ..self }
    }

    /// Executes a task that says something; its id.
    pub(crate) async fn execute(&self, text: &str) -> String {
        let inputs = json!({"text": text});
        let task = json!({"name": "say", "schemas": {"method": "echo_executor"}, "inputs": inputs});
        let run = self
            .server
            .api
            .call("tasks.execute", json!({"tasks": [task]}))
            .await;
        run["root_task_id"].as_str().unwrap().to_owned()
    }

    /// All deliveries, the newest first.
    pub(crate) async fn deliveries(&self) -> Vec<Value> {
        let mut all = self
            .server
            .api
            .call("webhooks.deliveries", json!({"id": self.webhook}))
            .await;
        let Value::Array(all) = all["deliveries"].take() else {
            panic!("no list: {all}");
        };
        all
    }

    /// Waits until the one delivery that there is looks so.
    pub(crate) async fn delivery(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.server
            .api
            .eventually(what, async || {
                let found = self.deliveries().await.pop();
                found.filter(|delivery| holds(delivery))
            })
            .await
    }

    /// Waits until the receiver has been told that each of these tasks is completed.
    pub(crate) async fn told_of(&self, tasks: &[String]) {
        self.server
            .api
            .eventually("all are told", async || {
                let told: Vec<_> = self.receiver.requests().iter().map(about).collect();
                tasks.iter().all(|task| told.contains(task)).then_some(())
            })
            .await;
    }
}

/// The task that a request is about.
pub(crate) fn about(request: &Request) -> String {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["type"], "task_completed", "{body}");
    body["task_id"].as_str().unwrap().to_owned()
}

/// Whether a library that is not ours takes a request for one signed with this secret.
pub(crate) fn verifies(request: &Request, secret: &str) -> bool {
    let named = |(name, value): &(String, String)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    let headers: HeaderMap = request.headers.iter().map(named).collect();
    let webhook = Webhook::new(secret).unwrap();
    webhook.verify(&request.body, &headers).is_ok()
}
