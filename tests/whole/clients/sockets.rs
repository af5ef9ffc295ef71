//! Three independent clients of WebSockets show tokens as the guide says, are refused without one that holds, and are
//! told nothing of others.

use crate::clients::browser::PageServer;
use crate::clients::reader::{Reader, Told};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Within which a socket whose token is revoked is closed: 5 s, and time for the client to say so.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);
/// The end of a request's headers.
const HEADERS_END: &[u8] = b"\r\n\r\n";

/// A server that wants credentials and may be used by pages of `origin`.
async fn serve(folder: &Folder, origin: &str) -> Server {
    let mut command = taskledger_testkit::program::command();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--auth", "on"])
        .args(["--allow-origin", origin])
        .args(folder.storage());
    let mut server = Server::spawn(command, folder.path()).await;
    server.api = server.api.with_token(&folder.first_token());
    server
}

/// A user's token, with its id, and the API as it is to that user.
async fn user(api: &Api, name: &str) -> (String, Value, Api) {
    let new = json!({"kind": "user", "name": name,
        "scopes": ["tasks:read", "tasks:write", "tasks:run"]});
    let made = api.call("tokens.create", new).await;
    let token = made["token"].as_str().unwrap().to_owned();
    let as_user = api.clone().with_token(&token);
    (token, made["id"].clone(), as_user)
}

fn call(id: &str, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A proxy in front of `server` that adds a token to each request, as one does that signs users in.
struct SigningProxy {
    url: String,
    serving: JoinHandle<()>,
}

impl SigningProxy {
    async fn start(server: &Server, token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/ws", listener.local_addr().unwrap());
        let address = server.api.url.trim_start_matches("http://");
        let address = address.trim_end_matches('/').to_owned();
        let shown = format!("\r\nauthorization: Bearer {token}\r\n\r\n");
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (address, shown) = (address.clone(), shown.clone());
                tokio::spawn(async move { pass_on(client, &address, &shown).await });
            }
        });
        Self { url, serving }
    }
}

impl Drop for SigningProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes one connection on, whose first request is an upgrade.
async fn pass_on(mut client: TcpStream, address: &str, shown: &str) {
    let mut head = Vec::new();
    while !head.ends_with(HEADERS_END) {
        let Ok(byte) = client.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    head.truncate(head.len() - HEADERS_END.len());
    head.extend_from_slice(shown.as_bytes());
    let mut server = TcpStream::connect(address).await.unwrap();
    server.write_all(&head).await.unwrap();
    // Either side may go first.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

async fn told<T>(api: &Api, reader: &Reader, what: &str, look: impl Fn(&Told) -> Option<T>) -> T {
    let what = format!("{}: {what}", reader.name);
    api.eventually(&what, async || reader.notes.look(&look))
        .await
}

/// The answer to the call with this id.
fn answer(told: &Told, id: &str) -> Option<Value> {
    let messages = told.events.iter();
    let mut messages = messages.map(|it| serde_json::from_str::<Value>(&it.data).unwrap());
    messages.find(|it| it["id"] == id)
}

/// Notices in which this text stands.
fn notices(told: &Told, text: &str) -> usize {
    let of_it = told.events.iter().map(|it| &it.data);
    of_it
        .filter(|it| it.contains(r#""method":"event""#) && it.contains(text))
        .count()
}

/// Two users on sockets of one maker: each calls and is told of its own tasks, what is the other's does not exist, and
/// the socket of a token that is revoked is closed.
async fn two_users(api: &Api, open: impl Fn(&str, &[String]) -> Reader) {
    let (ann_token, ann_id, ann_api) = user(api, "ann").await;
    let (bob_token, _, bob_api) = user(api, "bob").await;
    // Calls of a socket run beside each other, so the task may be there before the subscription.
    let subscribe = call("subscribe", "subscribe", &json!({"from": "beginning"}));
    let create = call("create", "tasks.create", &json!({"name": "hers"}));

    // Ann's socket answers her call and tells of what it did.
    let ann = open(&ann_token, &[subscribe.clone(), create]);
    let created = told(api, &ann, "the answer", |it| answer(it, "create")).await;
    let hers = created["result"]["id"].as_str().unwrap().to_owned();
    let is_told = |it: &Told| (notices(it, &hers) > 0).then_some(());
    told(api, &ann, "the notice", is_told).await;

    // To Bob her task does not exist, and of what she does he is told nothing.
    let get = call("get", "tasks.get", &json!({"task_id": hers}));
    let bob = open(&bob_token, &[subscribe, get]);
    let refused = told(api, &bob, "the refusal", |it| answer(it, "get")).await;
    assert_eq!(refused["error"]["code"], -32001, "{refused}");
    let more = ann_api.call("tasks.create", json!({"name": "more"})).await;
    let more = more["id"].as_str().unwrap().to_owned();
    let own = bob_api.call("tasks.create", json!({"name": "own"})).await;
    let own = own["id"].as_str().unwrap().to_owned();
    let is_told = |it: &Told| (notices(it, &own) > 0).then_some(());
    told(api, &bob, "the notice of its own", is_told).await;
    let of_hers = bob.notes.look(|it| notices(it, &more));
    assert_eq!(of_hers, 0, "{}", bob.name);
    let is_told = |it: &Told| (notices(it, &more) > 0).then_some(());
    told(api, &ann, "the second notice", is_told).await;

    // When her token is revoked her socket is closed, and his is not.
    let begun = Instant::now();
    api.call("tokens.revoke", json!({"id": ann_id})).await;
    let how = told(api, &ann, "the end", |it| it.breaks.first().cloned()).await;
    assert_eq!(how, "closed: 4401", "{}", ann.name);
    assert!(begun.elapsed() <= CLOSED_WITHIN, "{}", ann.name);
    bob.notes.look(|it| {
        assert_eq!(it.breaks, Vec::<String>::new(), "{}", bob.name);
    });
}

#[tokio::test]
async fn clients_of_others_show_a_token_on_sockets_and_see_what_is_its_users() {
    let folder = Folder::new();
    let server = serve(&folder, "http://elsewhere.example").await;
    let url = format!("{}ws", server.api.url.replace("http://", "ws://"));
    for open in [Reader::ws, Reader::websockets] {
        two_users(&server.api, |token, calls| open(&url, calls, Some(token))).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_call_on_sockets_through_a_proxy_that_adds_the_token_and_not_without_it() {
    // Given a server that pages of these origins may use.
    let (folder, page) = (Folder::new(), PageServer::start().await);
    let server = serve(&folder, &page.origin).await;

    // A page that asks the server itself shows no token.
    let url = format!("{}ws", server.api.url.replace("http://", "ws://"));
    let direct = page.call(&url, &[]);
    let how = told(&server.api, &direct.reader, "the end", |it| {
        it.breaks.first().cloned()
    })
    .await;
    assert_eq!(how, "closed: 1006", "a browser does not say why");
    drop(direct);

    // One that asks the proxy shows that of its user.
    let (token, id, _) = user(&server.api, "ann").await;
    let proxy = SigningProxy::start(&server, &token).await;
    let create = call("create", "tasks.create", &json!({"name": "hers"}));
    let subscribe = call("subscribe", "subscribe", &json!({"from": "beginning"}));
    let through = page.call(&proxy.url, &[subscribe, create]);
    let reader = &through.reader;
    let created = told(&server.api, reader, "the answer", |it| answer(it, "create")).await;
    let hers = created["result"]["id"].as_str().unwrap().to_owned();
    let is_told = |it: &Told| (notices(it, &hers) > 0).then_some(());
    told(&server.api, reader, "the notice", is_told).await;
    let stored = server.api.call("tasks.get", json!({"task_id": hers})).await;
    assert_eq!(stored["user_id"], "ann");
    server.api.call("tokens.revoke", json!({"id": id})).await;
    let closed = |it: &Told| {
        it.breaks
            .iter()
            .any(|how| how == "closed: 4401")
            .then_some(())
    };
    told(&server.api, reader, "the end", closed).await;
    server.stop().await;
}

#[tokio::test]
async fn clients_of_others_without_a_token_that_holds_get_no_socket() {
    let folder = Folder::new();
    let server = serve(&folder, "http://elsewhere.example").await;
    let url = format!("{}ws", server.api.url.replace("http://", "ws://"));
    let (good, _, _) = user(&server.api, "ann").await;
    let (revoked, id, _) = user(&server.api, "ann").await;
    server.api.call("tokens.revoke", json!({"id": id})).await;
    let other = Folder::new();
    let foreign = serve(&other, "http://elsewhere.example").await;
    let (of_other_server, _, _) = user(&foreign.api, "ann").await;
    foreign.stop().await;
    let mistyped = good.replacen("tl_", "tl_a", 1);
    for open in [Reader::ws, Reader::websockets] {
        for (what, url, token) in [
            ("none", url.clone(), None),
            ("no token", url.clone(), Some("bad")),
            ("mistyped", url.clone(), Some(&*mistyped)),
            ("revoked", url.clone(), Some(&*revoked)),
            ("of another server", url.clone(), Some(&*of_other_server)),
            ("in the URL", format!("{url}?access_token={good}"), None),
            ("in both", format!("{url}?token={good}"), Some(&*good)),
        ] {
            let reader = open(&url, &[], token);
            let how = told(&server.api, &reader, what, |it| it.breaks.first().cloned()).await;
            assert_eq!(how, "refused: 401", "{}: {what}", reader.name);
            reader.notes.look(|it| assert_eq!(it.openings, 0));
        }
    }
    server.stop().await;
}
