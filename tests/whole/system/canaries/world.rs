//! The server in which secrets are planted, its callers, and what was seen of it.

use super::readable::{Canaries, Collected};
use super::{
    BASIC, CALLBACK_HEADER, HOOK_HEADER, IN_URL, REFUSED, SECRETS, SIGNS, SIGNS_ONCE, WRONG_TOKEN,
};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use taskledger_testkit::program::run;
use taskledger_testkit::receiver::Receiver;
use taskledger_testkit::server::{Folder, Server};

/// 32 bytes in base64: the key of secrets.
const SEALING_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

/// A server with the callers of these tests, and what was seen of it.
pub(super) struct World {
    pub(super) server: Server,
    pub(super) receiver: Receiver,
    /// The operator's token, and Ann's.
    pub(super) chief: String,
    pub(super) ann: String,
    pub(super) canaries: Canaries,
    pub(super) seen: Collected,
}

impl World {
    pub(super) async fn start(folder: &Folder) -> Self {
        let chief = run(["tokens", "generate"]).await.done().trim().to_owned();
        // Beside the data: what is in these files is meant to be there.
        let operator = private_file(folder.path(), "operator.token", &chief);
        let sealing = private_file(folder.path(), "sealing.key", &format!("{SEALING_KEY}\n"));
        let arguments = [
            &["--auth", "on", "--admin-token-file", &operator][..],
            &["--secrets-key-file", &sealing, "--metrics"],
            &[
                "--egress-allow-net",
                "127.0.0.1/32",
                "--allow-command",
                "sh",
            ],
            &["--log-level", "trace"],
        ];
        let mut canaries = Canaries::default();
        canaries.plant("the operator's token", secret_of(&chief));
        for (name, text) in SECRETS {
            canaries.plant(name, text);
        }
        for text in [
            SIGNS,
            SIGNS_ONCE,
            HOOK_HEADER,
            CALLBACK_HEADER,
            WRONG_TOKEN,
            IN_URL,
            BASIC,
            REFUSED,
        ] {
            canaries.plant("", text);
        }
        let mut world = Self {
            server: Server::start_with(folder, &arguments.concat()).await,
            receiver: Receiver::start().await,
            ann: String::new(),
            chief,
            canaries,
            seen: Collected::default(),
        };
        let new = json!({"name": "ann", "kind": "user",
            "scopes": ["tasks:read", "tasks:write", "tasks:run", "webhooks", "exec:local"]});
        let made = world.secret("chief", "tokens.create", new).await;
        let first = made["token"].as_str().unwrap().to_owned();
        world.canaries.plant("Ann's first token", secret_of(&first));
        let rotated = world
            .secret("chief", "tokens.rotate", json!({"id": made["id"]}))
            .await;
        world.ann = rotated["token"].as_str().unwrap().to_owned();
        let ann = world.ann.clone();
        world.canaries.plant("Ann's token", secret_of(&ann));
        world
    }

    /// An answer, whatever it is, and its status.
    pub(super) async fn post(&self, who: &str, body: String) -> (u16, String) {
        let token = if who == "ann" { &self.ann } else { &self.chief };
        let api = &self.server.api;
        let request = api
            .http
            .post(&api.url)
            .header("content-type", "application/json");
        let response = request.bearer_auth(token).body(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// A call whose answer is meant to hold a secret, once.
    pub(super) async fn secret(&self, who: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (_, text) = self.post(who, body.to_string()).await;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer["error"].is_null(), "{method}: {text}");
        answer["result"].take()
    }

    /// Any other call; what it answers must be clean.
    pub(super) async fn answer(&mut self, who: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (_, text) = self.post(who, body.to_string()).await;
        self.seen
            .add(&format!("the answer to {method} {params}"), text.as_bytes());
        serde_json::from_str(&text).unwrap()
    }

    pub(super) async fn call(&mut self, who: &str, method: &str, params: Value) -> Value {
        let mut answer = self.answer(who, method, params).await;
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(super) async fn refused(&mut self, who: &str, method: &str, params: Value) {
        let answer = self.answer(who, method, params).await;
        assert!(answer["error"].is_object(), "{method}: {answer}");
    }

    /// Runs one task of Ann to its end.
    pub(super) async fn ran(&mut self, method: &str, inputs: Value) -> Value {
        // A retry is due a second later.
        let retries = u32::from(method == "command_executor");
        let task = json!({"name": method, "schemas": {"method": method}, "inputs": inputs,
            "params": {"retry_count": retries}});
        let run = self
            .call("ann", "tasks.execute", json!({"tasks": [task]}))
            .await;
        self.ended(&run["root_task_id"]).await
    }

    pub(super) async fn ended(&mut self, task: &Value) -> Value {
        let id = json!({"task_id": task});
        loop {
            let seen = self.call("ann", "tasks.get", id.clone()).await;
            if seen["run"]["state"] != "running" {
                return seen;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

/// The part of a token that proves it.
pub(super) fn secret_of(token: &str) -> &str {
    token.rsplit('_').next().unwrap()
}

fn private_file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}
