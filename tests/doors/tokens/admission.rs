//! A server that lets in whoever shows one of its tokens.

use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::auth::{Audited, Authenticator, TokenVerifier};
use taskledger::clock::{SharedClock, SystemClock};
use taskledger::engine::executor::{BuiltInOptions, Registry, with_built_ins};
use taskledger::server::Server;
use taskledger::transport::http::{Inside, Options, Service};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct World {
    url: String,
    client: reqwest::Client,
    server: Server,
    stop: CancellationToken,
    running: JoinHandle<()>,
    /// The token of the first start.
    first: String,
    _folder: TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let clock: SharedClock = Arc::new(SystemClock::default());
        let options = BuiltInOptions {
            disk_path: None,
            command: None,
            egress: None,
        };
        let registry = with_built_ins(Registry::builder(), options).unwrap();
        let registry = registry.build().unwrap();
        let server = Server::open(folder.path(), registry, clock.clone());
        let server = server.await.unwrap();
        let path = server.make_first_token().await.unwrap().unwrap();
        assert_eq!(server.make_first_token().await.unwrap(), None);
        let tokens = server.tokens().clone();
        let audited = Audited::new(tokens.audit().clone(), None);
        let verifier = TokenVerifier::new(tokens, clock.clone());
        let authenticator = Authenticator::new(vec![Arc::new(verifier)], Some(Arc::new(audited)));
        let inside = Inside {
            authenticate: Some(Arc::new(authenticator)),
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
            server,
            running: tokio::spawn(service.run(stop.clone())),
            stop,
            first: std::fs::read_to_string(path).unwrap().trim().to_owned(),
            _folder: folder,
        }
    }

    async fn close(self) {
        self.stop.cancel();
        self.running.await.unwrap();
        self.server.close().await;
    }

    async fn ask(&self, token: &str, method: &str, params: Value) -> (u16, Value) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self.client.post(&self.url).json(&body).bearer_auth(token);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn call(&self, token: &str, method: &str, params: Value) -> Value {
        let (status, mut answer) = self.ask(token, method, params).await;
        assert!(
            status == 200 && answer["error"].is_null(),
            "{method}: {answer}"
        );
        answer["result"].take()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_the_first_start_to_a_user_whose_token_is_revoked() {
    let world = World::start().await;
    let new = json!({"name": "ann", "scopes": ["tasks:read", "tasks:write"]});
    let made = world.call(&world.first, "tokens.create", new).await;
    let ann = made["token"].as_str().unwrap();

    let who = world.call(ann, "system.whoami", json!({})).await;
    assert_eq!(
        (&who["principal"], &who["user_id"]),
        (&json!("user:ann"), &json!("ann"))
    );
    assert_eq!(who["credential"], made["id"]);
    assert!(who["expires_at"].is_string());
    let own = world.call(ann, "tokens.list", json!({})).await;
    assert_eq!(own["tokens"].as_array().unwrap().len(), 1);

    let more = json!({"name": "ann", "scopes": ["admin"]});
    let (status, refused) = world.ask(ann, "tokens.create", more).await;
    assert_eq!(
        (status, &refused["error"]["data"]["scope"]),
        (200, &json!("admin"))
    );
    let (status, refused) = world.ask(ann, "audit.list", json!({})).await;
    assert_eq!((status, &refused["error"]["code"]), (200, &json!(-32004)));

    let rotated = world
        .call(
            ann,
            "tokens.rotate",
            json!({"id": made["id"], "grace_seconds": 0}),
        )
        .await;
    // However often the replaced secret is shown, it is none that somebody guesses.
    for _ in 0..20 {
        let (status, _) = world.ask(ann, "system.whoami", json!({})).await;
        assert_eq!(status, 401);
    }
    let fresh = rotated["token"].as_str().unwrap();
    world
        .call(fresh, "tokens.revoke", json!({"id": made["id"]}))
        .await;
    let (status, refused) = world.ask(fresh, "system.whoami", json!({})).await;
    assert_eq!((status, &refused["error"]["code"]), (401, &json!(-32004)));

    let failed = json!({"action": "login.failed"});
    let failed = world.call(&world.first, "audit.list", failed).await;
    let failed = failed["entries"].as_array().unwrap();
    let revoked: Vec<_> = failed
        .iter()
        .filter(|entry| entry["detail"]["reason"] == "revoked")
        .collect();
    assert_eq!(revoked.len(), 1, "{failed:?}");
    assert_eq!(revoked[0]["token"], made["id"]);
    assert_eq!(revoked[0]["address"], "127.0.0.1");

    let done = json!({"object": made["id"]});
    let audit = world.call(&world.first, "audit.list", done).await;
    let told: Vec<_> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            (
                e["principal"].as_str().unwrap(),
                e["action"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("user:ann", "token.revoke"),
            ("user:ann", "token.rotate"),
            ("service:admin", "token.create")
        ]
    );
    let mut entries = audit["entries"].as_array().unwrap().iter();
    assert!(
        entries.all(|entry| entry["address"] == "127.0.0.1"),
        "{audit}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_guesses_is_refused_and_counted() {
    let world = World::start().await;
    let (all_but_one, last) = world.first.split_at(world.first.len() - 1);
    let other = format!("{all_but_one}{}", if last == "a" { "b" } else { "a" });
    let long = "x".repeat(9_000);
    for token in ["tl_", "x", &other, &long, "eyJhbGciOiJub25lIn0.e30."] {
        let (status, _) = world.ask(token, "system.whoami", json!({})).await;
        assert_eq!(status, 401, "{token}");
    }
    world.server.tokens().audit().flush().await.unwrap();
    let filter = taskledger_auth::store::AuditFilter {
        action: Some(Arc::from("login.failed")),
        ..Default::default()
    };
    let rows = world
        .server
        .tokens()
        .audit()
        .list(&filter, None, 10)
        .await
        .unwrap();
    assert!(!rows.is_empty());
    assert!(
        rows.iter()
            .all(|row| row.address.as_deref() == Some("127.0.0.1"))
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_was_made_a_moment_ago_is_known_as_the_callers() {
    let world = World::start().await;
    for method in [
        "tasks.history",
        "tasks.explain",
        "tasks.get",
        "events.query",
    ] {
        for _ in 0..5 {
            let own = json!({"name": "own"});
            let made = world.call(&world.first, "tasks.create", own).await;
            let own = &made["id"];
            let params = match method {
                "events.query" => json!({"flow": own}),
                "tasks.get" => json!({"task_id": own, "as_of": made["created_at"]}),
                _ => json!({"task_id": own}),
            };
            world.call(&world.first, method, params).await;
        }
    }
    world.server.tokens().audit().flush().await.unwrap();
    let filter = json!({"action": "flow.read"});
    let audit = world.call(&world.first, "audit.list", filter).await;
    assert_eq!(audit["entries"], json!([]));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_flows_of_others_are_in_the_audit_log() {
    let world = World::start().await;
    let new = json!({"name": "ann", "scopes": ["tasks:read", "tasks:write"]});
    let made = world.call(&world.first, "tokens.create", new).await;
    let ann = made["token"].as_str().unwrap();
    let hers = world
        .call(ann, "tasks.create", json!({"name": "hers"}))
        .await["id"]
        .clone();
    let own = json!({"name": "own"});
    let own = world.call(&world.first, "tasks.create", own).await["id"].clone();

    for method in ["tasks.get", "tasks.tree", "tasks.history", "tasks.explain"] {
        for task in [&hers, &own] {
            world
                .call(&world.first, method, json!({"task_id": task}))
                .await;
        }
        world.call(ann, method, json!({"task_id": hers})).await;
    }

    world.server.tokens().audit().flush().await.unwrap();
    let filter = json!({"action": "flow.read"});
    let audit = world.call(&world.first, "audit.list", filter).await;
    let entries = audit["entries"].as_array().unwrap();
    let counted: u64 = entries
        .iter()
        .map(|e| e["detail"]["count"].as_u64().unwrap())
        .sum();
    assert!((1..=4).contains(&counted), "{audit}");
    for entry in entries {
        assert_eq!(
            (&entry["object"], &entry["principal"]),
            (&hers, &json!("service:admin"))
        );
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_names_the_credential_that_was_used_and_the_call_as_the_server_does() {
    let world = World::start().await;
    let new = json!({"name": "ops", "scopes": ["tasks:read", "users:any"]});
    let mut tokens = Vec::new();
    for _ in 0..2 {
        tokens.push(world.call(&world.first, "tokens.create", new.clone()).await);
    }
    let hers = json!({"name": "a", "user_id": "ann"});
    let hers = world.call(&world.first, "tasks.create", hers).await;
    let of_it = json!({"task_id": hers["id"]});
    let chosen = "11111111-1111-4111-8111-111111111111";
    let mut expected = Vec::new();
    for (n, made) in [0, 1, 1, 0, 1].map(|n| (n, &tokens[n])) {
        let token = made["token"].as_str().unwrap();
        for (method, params) in [("tasks.get", &of_it), ("tasks.delete", &of_it)] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let request = world.client.post(&world.url).json(&body);
            let request = request.bearer_auth(token).header("x-request-id", chosen);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.headers()["x-request-id"], chosen);
        }
        expected.push((made["id"].clone(), [2, 3][n]));
    }
    expected.truncate(2);
    expected.sort_by_key(|(id, _)| id.to_string());
    world.server.tokens().audit().flush().await.unwrap();
    for action in ["flow.read", "task.delete"] {
        let filter = json!({"principal": "user:ops", "action": action});
        let audit = world.call(&world.first, "audit.list", filter).await;
        let mut counts = std::collections::BTreeMap::new();
        for row in audit["entries"].as_array().unwrap() {
            *counts.entry(row["token"].to_string()).or_insert(0) +=
                row["detail"]["count"].as_u64().unwrap();
            assert_eq!(row["detail"]["client_request_id"], chosen, "{row}");
            let own = row["request"].as_str().unwrap();
            assert!(own.len() == 36 && own != chosen, "{row}");
        }
        let counts: Vec<_> = counts.into_iter().collect();
        // Reads that came behind the first row of a minute are still counted in memory.
        let is_all = |(id, count): &(Value, u64)| {
            let id = id.to_string();
            match action {
                "flow.read" => counts.iter().any(|(of, n)| *of == id && n <= count),
                _ => counts.contains(&(id, *count)),
            }
        };
        assert!(counts.len() == 2 && expected.iter().all(is_all), "{audit}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_is_a_failed_login_and_keeps_nobody_out() {
    let world = World::start().await;
    let new = json!({"name": "ann", "scopes": ["tasks:read"]});
    let made = world.call(&world.first, "tokens.create", new).await;
    let replaced = json!({"id": made["id"], "grace_seconds": 0});
    world.call(&world.first, "tokens.rotate", replaced).await;
    for _ in 0..20 {
        let token = made["token"].as_str().unwrap();
        assert_eq!(world.ask(token, "system.whoami", json!({})).await.0, 401);
    }
    let filter = json!({"action": "login.failed"});
    let audit = world.call(&world.first, "audit.list", filter).await;
    let rows = audit["entries"].as_array().unwrap();
    let count = |row: &Value| row["detail"]["count"].as_u64().unwrap();
    assert_eq!(rows.iter().map(count).sum::<u64>(), 20, "{audit}");
    assert!(rows.len() <= 2, "{audit}");
    for row in rows {
        assert_eq!(row["detail"]["reason"], "expired", "{audit}");
        assert_eq!(row["token"], made["id"], "{audit}");
        assert_eq!(row["address"], "127.0.0.1", "{audit}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_of_tokens_is_counted_and_a_credential_is_no_claim() {
    let world = World::start().await;
    let new = json!({"name": "mon", "scopes": ["metrics"]});
    let made = world.call(&world.first, "tokens.create", new).await;
    let token = made["token"].as_str().unwrap();
    for n in 0..40 {
        let id = format!("aaaaaaaaaaaaaa{}a", char::from(b'a' + n % 26));
        let revoke = world.ask(token, "tokens.revoke", json!({"id": id})).await;
        assert_eq!(revoke.1["error"]["code"], -32602, "{revoke:?}");
    }
    let filter = json!({"action": "token.revoke"});
    let audit = world.call(&world.first, "audit.list", filter).await;
    let rows = audit["entries"].as_array().unwrap();
    // The first is written at once; the clock may begin another minute meanwhile.
    assert!(rows.len() <= 3, "{audit}");
    let jwt = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl";
    let (unsigned, own) = ("eyJhbGciOiJub25lIn0.e30.", made["token"].as_str().unwrap());
    for (member, credential) in [
        ("value", jwt),
        ("value", unsigned),
        ("value", own),
        ("issuer", jwt),
    ] {
        for claim in ["jti", "sub"] {
            let mut deny =
                json!({"issuer": "https://login.example.com", "claim": claim, "value": "v"});
            deny[member] = json!(credential);
            let (_, answer) = world.ask(&world.first, "tokens.deny", deny).await;
            let faults = answer["error"]["data"].to_string();
            assert!(faults.contains(&format!("\"{member}\"")), "{answer}");
            let meant = if member == "issuer" { "iss" } else { claim };
            assert!(faults.contains(&format!("`{meant}`")), "{answer}");
            assert!(!answer.to_string().contains(credential), "{answer}");
        }
    }
    world.close().await;
}
