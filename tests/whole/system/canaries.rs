//! Secrets of every kind, planted in one server: they are in nothing that can be read, whatever succeeds or fails.

mod readable;
mod world;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger_testkit::program::run;
use taskledger_testkit::receiver::Answer;
use taskledger_testkit::server::Folder;
use tokio::task::JoinHandle;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use world::{World, secret_of};

taskledger_testkit::on_both_backends!(no_secret_is_in_anything_that_can_be_read);

/// What Ann keeps under a name and her tasks use: the name, where, and the value.
const SECRETS: [(&str, &str); 6] = [
    ("header", "k4n4ry/of=a header;1"),
    ("bearer", "k4n4ry-of-a-bearer-token-2"),
    ("password", "k4n4ry:of+a%password-3"),
    ("idempotency", "k4n4ry-of-an-idempotency-key-4"),
    ("env", "k4n4ry \"of\" the environment 5"),
    ("unused", "k4n4ry-that-no-task-uses-6"),
];
/// The signing secret of Ann's webhook, before it is written in base64.
const SIGNS: &str = "k4n4ry-of-a-webhook-that-signs-7";
/// The secret of a callback.
const SIGNS_ONCE: &str = "k4n4ry-of-a-callback-that-signs-8";
/// Headers of the webhook and of the callback.
const HOOK_HEADER: &str = "k4n4ry-of-a-webhook-header-9";
const CALLBACK_HEADER: &str = "k4n4ry-of-a-callback-header-10";
/// What somebody shows who is not let in, and values that are refused.
const WRONG_TOKEN: &str = "k4n4ry-of-a-wrong-token-11";
const IN_URL: &str = "k4n4ry-of-a-token-in-a-url-12";
const BASIC: &str = "k4n4ry-of-basic-credentials-13";
const REFUSED: &str = "k4n4ry-of-a-value-that-is-refused-14";

/// The longest wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(50);

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

type Told = (Arc<Mutex<Vec<u8>>>, JoinHandle<()>);

/// Everything that comes on `GET /events`.
async fn events(world: &World) -> Told {
    let api = &world.server.api;
    let request = api.http.get(format!("{}events", api.url));
    let mut response = request.bearer_auth(&world.chief).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = told.clone();
    let reading = tokio::spawn(async move {
        while let Ok(Some(piece)) = response.chunk().await {
            kept.lock().unwrap().extend_from_slice(&piece);
        }
    });
    (told, reading)
}

/// Everything that comes on `/ws` to somebody who subscribes to all.
async fn socket(world: &World) -> Told {
    let url = format!("{}ws", world.server.api.url.replace("http", "ws"));
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {}", world.chief).parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = connect_async(request).await.unwrap();
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": {}});
    let subscribe = Message::text(subscribe.to_string());
    socket.send(subscribe).await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = told.clone();
    let reading = tokio::spawn(async move {
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(text) = message {
                kept.lock().unwrap().extend_from_slice(text.as_bytes());
            }
        }
    });
    (told, reading)
}

/// Ann's webhook and the secrets that her tasks name.
async fn plant(world: &mut World) {
    for (name, value) in SECRETS {
        let set = json!({"name": name, "value": value});
        world.call("ann", "secrets.set", set).await;
    }
    let hook = json!({"url": world.receiver.url("/hook"), "secret": format!("whsec_{}", base64(SIGNS)),
        "headers": {"Authorization": format!("Bearer {HOOK_HEADER}"), "x-key": HOOK_HEADER}});
    let made = world.secret("ann", "webhooks.create", hook).await;
    let id = json!({"id": made["id"]});
    world.secret("ann", "webhooks.secret", id.clone()).await;
    let rotated = world
        .secret("ann", "webhooks.rotate_secret", id.clone())
        .await;
    let fresh = rotated["secret"].as_str().unwrap();
    world.canaries.plant(
        "the fresh secret of the webhook",
        fresh.trim_start_matches("whsec_"),
    );
    world.call("ann", "webhooks.test", id).await;
}

/// Requests with secrets, to receivers that repeat them.
async fn send_requests(world: &mut World) {
    let all: Vec<_> = SECRETS.iter().map(|(_, value)| *value).collect();
    let repeated = format!(
        "{} {} {}",
        all.join("\n"),
        base64(&format!("u:{}", SECRETS[2].1)),
        json!(all)
    );
    let location = format!("https://elsewhere.example/?token={}", SECRETS[1].1);
    let with = |status| {
        Answer::status(status)
            .header("x-echo", SECRETS[0].1)
            .header("location", &location)
            .body(repeated.clone())
    };
    for status in [200, 302, 401, 500] {
        world.receiver.answer_at("/a", with(status));
        for auth in [
            json!({"type": "bearer", "token": {"$secret": "bearer"}}),
            json!({"type": "basic", "username": "u", "password": {"$secret": "password"}}),
        ] {
            // Only what this attempt was given can be removed from what it says.
            let inputs = json!({"url": world.receiver.url("/a"), "method": "POST", "auth": auth, "headers": {
                "x-key": {"$secret": "header"}, "Idempotency-Key": {"$secret": "idempotency"},
                "x-more": {"$secret": "bearer"}, "x-env": {"$secret": "env"}, "x-unused": {"$secret": "unused"},
                "x-password": {"$secret": "password"}}});
            world.ran("http_executor", inputs).await;
        }
    }
    let received = world.receiver.requests();
    let came = received
        .iter()
        .find(|request| request.path == "/a")
        .unwrap();
    assert_eq!(came.header("x-key"), Some(SECRETS[0].1), "they are used");
    // One that cannot be sent at all, and one of a secret that is not there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = closed.local_addr().unwrap();
    drop(closed);
    let nowhere =
        json!({"url": format!("http://{nobody}/"), "headers": {"x-key": {"$secret": "header"}}});
    world.ran("http_executor", nowhere).await;
    let missing =
        json!({"url": world.receiver.url("/a"), "headers": {"x-key": {"$secret": "no-such"}}});
    world.ran("http_executor", missing).await;
}

/// Programs that print their environment.
async fn run_programs(world: &mut World) {
    let env = json!({"PW": {"$secret": "env"}, "TOKEN": {"$secret": "bearer"}});
    for script in [
        "env",
        "env >&2; exit 1",
        "printf '%s' \"$PW\" | base64; printf '%s' \"$TOKEN\" | od -An -tx1 | tr -d ' \\n'",
        "printf '{\"out\": \"%s\"}' \"$TOKEN\" >&2; kill -9 $$",
    ] {
        let inputs = json!({"program": "sh", "args": ["-c", script], "env": env});
        let task = world.ran("command_executor", inputs).await;
        assert!(task.to_string().contains("[secret "), "{script}: {task}");
    }
}

/// A run that is told to an address of its own, which repeats what it was sent.
async fn call_back(world: &mut World) {
    let said = format!("you sent Bearer {CALLBACK_HEADER}");
    world
        .receiver
        .answer_at("/callback", Answer::status(500).body(said));
    let hooked = format!("{{\"x-key\": \"{HOOK_HEADER}\"}}");
    world
        .receiver
        .answer_at("/hook", Answer::status(200).body(hooked));
    let task = json!({"name": "told", "schemas": {"method": "echo_executor"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": {"tasks": [task]},
        "metadata": {"idempotency_key": "told once"},
        "configuration": {"push_notification_config": {
            "url": world.receiver.url("/callback"), "secret": format!("whsec_{}", base64(SIGNS_ONCE)),
            "headers": {"Authorization": format!("Bearer {CALLBACK_HEADER}")}}}});
    for _ in 0..2 {
        let (_, text) = world.post("ann", body.to_string()).await;
        world
            .seen
            .add("the answer to a call with a callback", text.as_bytes());
        let run: Value = serde_json::from_str(&text).unwrap();
        world.ended(&run["result"]["root_task_id"]).await;
    }
    let came = |requests: &[taskledger_testkit::receiver::Request], path: &str| {
        requests.iter().any(|request| request.path == path)
    };
    let receiver = &world.receiver;
    let api = &world.server.api;
    api.eventually("both addresses are told", async || {
        let requests = receiver.requests();
        (came(&requests, "/hook") && came(&requests, "/callback")).then_some(())
    })
    .await;
}

/// Calls that are not carried out, with secrets in them.
async fn be_refused(world: &mut World) {
    let url = world.receiver.url("/hook");
    for (method, params) in [
        ("secrets.set", json!({"name": "a b", "value": REFUSED})),
        (
            "secrets.set",
            json!({"name": "a", "value": REFUSED, "valeu": REFUSED}),
        ),
        (
            "secrets.set",
            json!({"name": "a", "value": format!("{REFUSED}\0")}),
        ),
        ("secrets.set", json!({"name": "a", "value": [REFUSED]})),
        ("webhooks.create", json!({"url": url, "secret": REFUSED})),
        (
            "webhooks.create",
            json!({"url": url, "headers": {"host": REFUSED}}),
        ),
        ("webhooks.create", json!({"url": url, "headers": REFUSED})),
        (
            "webhooks.create",
            json!({"url": url, "header": {"authorization": REFUSED}}),
        ),
        ("webhooks.create", json!({"url": url, "secert": REFUSED})),
        ("tokens.revoke", json!({"id": world.ann.clone()})),
    ] {
        world.refused("ann", method, params).await;
    }
    for body in [
        format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "method": "secrets.set", "params": {{"value": "{REFUSED}"#
        ),
        format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "method": 7, "params": {{"value": "{REFUSED}"}}}}"#
        ),
        format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "method": "secrets.put", "params": {{"value": "{REFUSED}"}}}}"#
        ),
        format!(r#"[{{"value": "{REFUSED}"}}]"#),
    ] {
        let (_, text) = world.post("ann", body).await;
        assert!(text.contains("error"), "{text}");
        world
            .seen
            .add("the answer to what is no call", text.as_bytes());
    }
    let api = world.server.api.clone();
    let health = json!({"jsonrpc": "2.0", "id": 1, "method": "system.health"});
    let unlike = world.ann.replace(secret_of(&world.ann), WRONG_TOKEN);
    for (query, credentials) in [
        ("", format!("Bearer {unlike}")),
        ("", format!("Bearer {WRONG_TOKEN}")),
        ("", format!("Basic {}", base64(&format!("ann:{BASIC}")))),
        (
            &*format!("?access_token={IN_URL}"),
            format!("Bearer {}", world.ann),
        ),
    ] {
        for path in ["", "events", "ws", "metrics"] {
            let url = format!("{}{path}{query}", api.url);
            let request = if path.is_empty() {
                api.http.post(url).json(&health)
            } else {
                api.http.get(url)
            };
            let response = request
                .header("authorization", &credentials)
                .send()
                .await
                .unwrap();
            assert!(response.status().is_client_error(), "{path} {query}");
            let text = response.text().await.unwrap();
            world
                .seen
                .add(&format!("a refusal of /{path}"), text.as_bytes());
        }
    }
}

/// Everything that can be asked.
async fn read_everything(world: &mut World) {
    let list = world
        .call("chief", "tasks.list", json!({"limit": 100}))
        .await;
    for task in list["tasks"].as_array().unwrap() {
        let id = json!({"task_id": task["id"]});
        for method in ["tasks.get", "tasks.tree", "tasks.history", "tasks.explain"] {
            world.call("chief", method, id.clone()).await;
        }
    }
    for method in [
        "audit.list",
        "tokens.list",
        "system.health",
        "system.whoami",
        "workers.list",
    ] {
        world.call("chief", method, json!({})).await;
    }
    for method in [
        "secrets.list",
        "webhooks.list",
        "tokens.list",
        "system.whoami",
    ] {
        world.call("ann", method, json!({})).await;
    }
    let hooks = world.call("ann", "webhooks.list", json!({})).await;
    for hook in hooks["webhooks"].as_array().unwrap() {
        world
            .call("ann", "webhooks.get", json!({"id": hook["id"]}))
            .await;
    }
    let repeated = async {
        loop {
            let newest = json!({"limit": 100});
            let shown = world.call("ann", "webhooks.deliveries", newest).await;
            let shown = shown.to_string();
            let marks = ["you sent [secret authorization]", "[secret x-key]"];
            if marks.iter().all(|mark| shown.contains(mark)) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let repeated = tokio::time::timeout(PATIENCE, repeated).await;
    repeated.expect("what receivers repeat is shown without the headers");
    for path in [
        "metrics",
        "openrpc.json",
        "readyz?verbose",
        ".well-known/agent-card.json",
    ] {
        let api = &world.server.api;
        let request = api.http.get(format!("{}{path}", api.url));
        let response = request.bearer_auth(&world.chief).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let text = response.text().await.unwrap();
        world.seen.add(path, text.as_bytes());
    }
}

async fn no_secret_is_in_anything_that_can_be_read(folder: Folder) {
    let mut world = World::start(&folder).await;
    let (events, socket) = (events(&world).await, socket(&world).await);

    plant(&mut world).await;
    send_requests(&mut world).await;
    run_programs(&mut world).await;
    call_back(&mut world).await;
    be_refused(&mut world).await;
    read_everything(&mut world).await;

    let World {
        server,
        receiver,
        canaries,
        mut seen,
        ..
    } = world;
    for request in receiver.requests() {
        seen.add(&format!("a request to {}", request.path), &request.body);
    }
    seen.add_files("the data folder while the server runs", &folder.data());
    seen.add("the log of the server", server.stop().await.as_bytes());
    for (what, (told, reading)) in [("/events", events), ("/ws", socket)] {
        reading.await.unwrap();
        let told = told.lock().unwrap();
        assert!(
            String::from_utf8_lossy(&told).contains("task_completed"),
            "{what}"
        );
        seen.add(what, &told);
    }
    seen.add_files("the data folder", &folder.data());
    seen.add_database(&folder).await;
    for more in [
        &["events", "export"][..],
        &["events", "export", "--with-keys"],
    ] {
        let more = more.iter().map(|word| (*word).to_owned());
        let exported = run(more.chain(folder.storage())).await.done();
        seen.add("an export", exported.as_bytes());
    }
    let audit = run(["audit".to_owned()].into_iter().chain(folder.storage()))
        .await
        .done();
    seen.add("the audit log", audit.as_bytes());
    seen.assert_without(&canaries);
}
