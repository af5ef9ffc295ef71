//! A whole server on a free port, and the document that it serves.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::{SharedClock, SystemClock};
use taskledger::engine::executor::{BuiltInOptions, Registry, with_built_ins};
use taskledger::server::{self, Server};
use taskledger::transport::http::{Options, Service};
use taskledger_domain::ids::parse_uuid_v4;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Between two questions whether something has happened.
const PACE: Duration = Duration::from_millis(5);

/// A running server. Ends with the test.
pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
    server: Server,
    stop: CancellationToken,
    running: JoinHandle<()>,
    _folder: TempDir,
}

/// The OIDC issuer of the examples.
const ISSUER: &str = "https://login.example.com";

impl World {
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let clock: SharedClock = Arc::new(SystemClock::default());
        let options = BuiltInOptions {
            disk_path: None,
            command: None,
            egress: None,
        };
        let registry = with_built_ins(Registry::builder(), options)
            .unwrap()
            .build()
            .unwrap();
        let trusting = server::Options {
            issuers: [Arc::from(ISSUER)].into(),
            ..server::Options::default()
        };
        let server = Server::open_with(folder.path(), registry, clock.clone(), trusting)
            .await
            .unwrap();
        let options = Options {
            listen: "127.0.0.1:0".to_owned(),
            ..Options::default()
        };
        let inside = server.service().clone();
        let (service, handle) = Service::bind(options, server.dispatcher().clone(), inside, clock)
            .await
            .unwrap();
        let stop = CancellationToken::new();
        Self {
            url: format!("http://{}", handle.local_addr),
            client: taskledger::tls::client().build().unwrap(),
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

    /// The whole answer to a call.
    pub(crate) async fn answer(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let sent = self.client.post(&self.url).json(&body).send();
        let mut response = sent.await.unwrap();
        if response.headers()["content-type"] == "application/json" {
            return response.json().await.unwrap();
        }
        // A stream: its first message is the answer.
        let mut begun = Vec::new();
        while !begun.ends_with(b"\n\n") {
            begun.extend(response.chunk().await.unwrap().expect("an answer"));
        }
        let text = String::from_utf8(begun).unwrap();
        let message = text.split("\n\n").next().unwrap();
        serde_json::from_str(message.strip_prefix("data: ").unwrap()).unwrap()
    }

    /// The result of a call that must succeed.
    #[track_caller]
    pub(crate) fn call(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Value> + use<'_> {
        let method = method.to_owned();
        async move {
            let mut answer = self.answer(&method, params.clone()).await;
            assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
            answer["result"].take()
        }
    }

    /// The document as `rpc.discover` gives it.
    pub(crate) async fn document(&self) -> Document {
        Document(self.call("rpc.discover", json!({})).await)
    }

    /// Makes the calls that the document says its examples need, and waits for what they start.
    pub(crate) async fn set_up(&self, document: &Document) {
        for step in document.0["x-examples-set-up"].as_array().unwrap() {
            let method = step["method"].as_str().unwrap();
            let result = self.call(method, step["params"].clone()).await;
            let tasks = step["params"]["tasks"].as_array();
            let is_remote = |task: &Value| task["schemas"]["type"] == "remote";
            let waits = tasks.is_some_and(|tasks| tasks.iter().any(is_remote));
            if result["status"] == "started" && !waits {
                self.ended(&result["root_task_id"]).await;
            }
        }
    }

    /// Waits until the run of this root has ended; the root as it is then.
    pub(crate) async fn ended(&self, root: &Value) -> Value {
        self.until(root, |task| task["run"]["state"] != "running")
            .await
    }

    /// Asks until the task is as it should be. Rows in memory may be shown a moment after the log
    /// has grown, so there is no position to wait for.
    pub(crate) async fn until(&self, task: &Value, is: impl Fn(&Value) -> bool) -> Value {
        let mut pace = tokio::time::interval(PACE);
        loop {
            pace.tick().await;
            let seen = self.call("tasks.get", json!({"task_id": task})).await;
            if is(&seen) {
                return seen;
            }
        }
    }
}

/// The OpenRPC document.
pub(crate) struct Document(pub(crate) Value);

impl Document {
    pub(crate) fn methods(&self) -> &Vec<Value> {
        self.0["methods"].as_array().unwrap()
    }

    pub(crate) fn method(&self, name: &str) -> &Value {
        let found = self.methods().iter().find(|m| m["name"] == name);
        found.unwrap_or_else(|| panic!("`{name}` is described"))
    }

    /// A validator of a schema that stands in the document.
    pub(crate) fn validator(&self, schema: &Value) -> Validator {
        let mut root = json!({"allOf": [schema]});
        root["components"] = self.0["components"].clone();
        jsonschema::draft7::options()
            .offline()
            .should_validate_formats(true)
            .with_format("uuid", |text: &str| parse_uuid_v4(text).is_ok())
            .build(&root)
            .unwrap()
    }

    /// What is wrong with a result of `method`.
    #[track_caller]
    pub(crate) fn check_result(&self, method: &str, result: &Value) {
        let schema = &self.method(method)["result"]["schema"];
        check(&self.validator(schema), method, result);
    }

    /// The row of the method's errors with this code.
    #[track_caller]
    pub(crate) fn error(&self, method: &str, code: &Value) -> &Value {
        let rows = self.method(method)["errors"].as_array().unwrap();
        let found = rows
            .iter()
            .map(|row| self.at(row))
            .find(|row| row["code"] == *code);
        found.unwrap_or_else(|| panic!("`{method}` documents {code}"))
    }

    /// Where a reference leads.
    #[track_caller]
    pub(crate) fn at(&self, reference: &Value) -> &Value {
        let text = reference["$ref"].as_str().unwrap();
        let found = text.strip_prefix('#').and_then(|path| self.0.pointer(path));
        found.unwrap_or_else(|| panic!("{text} leads somewhere"))
    }
}

/// The parameters of an example.
pub(crate) fn by_name(example: &Value) -> Value {
    let given = example["params"].as_array().unwrap().iter();
    let members = given.map(|p| (p["name"].as_str().unwrap().to_owned(), p["value"].clone()));
    Value::Object(members.collect())
}

#[track_caller]
pub(crate) fn check(validator: &Validator, what: &str, value: &Value) {
    let faults: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{} at `{}`", error, error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{what}: {faults:#?} in {value}");
}
