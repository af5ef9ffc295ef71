//! A whole server that knows some callers, and their requests.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger::application::authentication::{Authenticate, Denied};
use taskledger::application::limits::{self, QuotaOptions};
use taskledger::clock::{SharedClock, SystemClock};
use taskledger::engine::executor::{BuiltInOptions, Registry, command, with_built_ins};
use taskledger::server::{self, Server};
use taskledger::transport::http::{Inside, Options, Service};
use taskledger_auth::{Caller, Name, Scope, Scopes};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Who knows the callers of a test: by their tokens, which are their names.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<String, Arc<Caller>>>);

impl Known {
    /// From now on this token is that caller's.
    pub(crate) fn put(&self, token: &str, caller: Caller) {
        let caller = Arc::new(caller);
        self.0.lock().unwrap().insert(token.to_owned(), caller);
    }

    /// From now on nobody has this token.
    pub(crate) fn revoke(&self, token: &str) {
        self.0.lock().unwrap().remove(token);
    }
}

impl Authenticate for Known {
    fn caller<'a>(
        &'a self,
        bearer: Option<&'a str>,
        _from: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, Denied>> {
        let found = bearer.ok_or(Denied::Missing).and_then(|bearer| {
            let caller = self.0.lock().unwrap().get(bearer).cloned();
            caller.ok_or(Denied::Unknown)
        });
        ready(found).boxed()
    }
}

/// The user of this name with these scopes.
pub(crate) fn user(name: &str, scopes: Scopes) -> Caller {
    Caller::user(&Name::new(name).unwrap(), scopes)
}

/// What users usually have: everything about their own tasks and webhooks.
pub(crate) fn usual() -> Scopes {
    Scopes::of([
        Scope::TasksRead,
        Scope::TasksWrite,
        Scope::TasksRun,
        Scope::Webhooks,
    ])
}

/// A running server on which authentication is on. It knows `ann` and `bob` with the usual scopes, `reader`,
/// who is Ann with nothing but `tasks:read`, and `chief`, who may do everything.
pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
    pub(crate) known: Arc<Known>,
    server: Server,
    stop: CancellationToken,
    running: JoinHandle<()>,
    _folder: TempDir,
}

impl World {
    /// Webhooks are not limited: the matrix makes many.
    pub(crate) async fn start() -> Self {
        Self::with(QuotaOptions {
            webhooks: None,
            ..QuotaOptions::default()
        })
        .await
    }

    /// With these quotas for each user.
    pub(crate) async fn with(quotas: QuotaOptions) -> Self {
        let folder = TempDir::new().unwrap();
        let clock: SharedClock = Arc::new(SystemClock::default());
        let options = BuiltInOptions {
            disk_path: None,
            command: Some(command::Options::allowing(&["true".to_owned()])),
            egress: None,
        };
        let registry = with_built_ins(Registry::builder(), options).unwrap();
        let registry = registry.build().unwrap();
        let options = server::Options {
            limits: limits::Options {
                quotas,
                ..limits::Options::default()
            },
            ..server::Options::default()
        };
        let server = Server::open_with(folder.path(), registry, clock.clone(), options);
        let server = server.await.unwrap();
        let known = Arc::new(Known::default());
        known.put("ann", user("ann", usual()));
        known.put("bob", user("bob", usual()));
        known.put("reader", user("ann", Scopes::of([Scope::TasksRead])));
        known.put("chief", user("chief", Scopes::all()));
        let inside = Inside {
            authenticate: Some(known.clone()),
            ..Inside::from(server.service().clone())
        };
        let options = Options {
            listen: "127.0.0.1:0".to_owned(),
            ..Options::default()
        };
        let dispatcher = server.dispatcher().clone();
        let bound = Service::bind(options, dispatcher, inside, clock).await;
        let (service, handle) = bound.unwrap();
        let stop = CancellationToken::new();
        Self {
            url: format!("http://{}", handle.local_addr),
            client: taskledger::tls::client().build().unwrap(),
            known,
            server,
            running: tokio::spawn(service.run(stop.clone())),
            stop,
            _folder: folder,
        }
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.running.await.unwrap();
        self.server.close().await;
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
            Some(token) => request.bearer_auth(token),
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
        let request = self.client.post(&self.url).json(&body);
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
