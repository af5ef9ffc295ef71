//! `--auth auto`, which is what a server does that was told nothing: whether it asks for credentials.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use taskledger::clock::SystemClock;
use taskledger_auth::Token;
use taskledger_testkit::program::{command, run};
use taskledger_testkit::server::{Api, Folder, Server};

/// A server on this machine alone, and one that others reach.
const HERE: &[&str] = &["--listen", "127.0.0.1:0"];
const FOR_OTHERS: &[&str] = &["--listen", "0.0.0.0:0", "--node-url", "http://127.0.0.1:1"];

async fn start(folder: &Folder, options: &[&str]) -> Server {
    let mut serve = command();
    serve.arg("serve").args(options).args(folder.storage());
    let mut server = Server::spawn(serve, folder.path()).await;
    server.api.url = server.api.url.replace("0.0.0.0", "127.0.0.1");
    server
}

/// The status of a call.
async fn asked(api: &Api) -> u16 {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.list"});
    api.post(call.to_string()).await.unwrap().0
}

#[tokio::test]
async fn a_server_on_this_machine_asks_for_credentials_once_there_is_a_token() {
    let folder = Folder::new();
    let server = start(&folder, HERE).await;
    assert_eq!(asked(&server.api).await, 200);
    server.stop().await;

    let words = ["--json", "tokens", "create", "ci", "--service"];
    let words = words.into_iter().chain(["--scopes", "tasks:read"]);
    let words = words.map(str::to_owned).chain(folder.storage());
    let made: Value = serde_json::from_str(&run(words).await.done()).unwrap();
    let token = made["token"].as_str().unwrap();

    let server = start(&folder, HERE).await;
    assert_eq!(asked(&server.api).await, 401);
    assert_eq!(asked(&server.api.with_token(token)).await, 200);
    server.stop().await;

    // Unless it is told otherwise.
    let server = start(&folder, &[HERE, &["--auth", "off"]].concat()).await;
    assert_eq!(asked(&server.api).await, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_others_reach_asks_for_credentials_and_makes_the_first_token() {
    let folder = Folder::new();
    let server = start(&folder, FOR_OTHERS).await;
    assert_eq!(asked(&server.api).await, 401);
    let first = server.api.with_token(&folder.first_token());
    assert_eq!(asked(&first).await, 200);
    server.stop().await;

    let folder = Folder::new();
    let server = start(&folder, &[FOR_OTHERS, &["--auth", "off"]].concat()).await;
    assert_eq!(asked(&server.api).await, 200);
    let logged = server.logged();
    assert!(logged.contains("--auth is off"), "{logged}");
    server.stop().await;
}

/// What a server says that does not start.
async fn does_not_start(folder: &Folder, options: &[&str]) -> String {
    let words = ["serve"].into_iter().chain(options.iter().copied());
    let words = words.map(str::to_owned).chain(folder.storage());
    run(words).await.refused(1)
}

#[tokio::test]
async fn a_server_whose_tokens_are_lost_does_not_let_in_everybody() {
    let folder = Folder::new();
    let on = [HERE, &["--auth", "on"]].concat();
    let server = start(&folder, &on).await;
    assert_eq!(asked(&server.api).await, 401);
    server.stop().await;
    for suffix in ["", "-wal", "-shm"] {
        let file = folder.data().join(format!("auth.db{suffix}"));
        if file.exists() {
            std::fs::remove_file(file).unwrap();
        }
    }

    let told = does_not_start(&folder, HERE).await;
    assert!(told.contains("auth.db"), "{told}");
    assert!(told.contains("`--auth on`"), "{told}");
    // The operator says which of the two is meant.
    let server = start(&folder, &on).await;
    assert_eq!(asked(&server.api).await, 401);
    server.stop().await;
}

#[tokio::test]
async fn servers_of_one_database_ask_for_credentials_all_or_none() {
    let folder = Folder::with_database().await;
    let operator = folder.path().join("operator.token");
    let token = Token::fresh(&SystemClock::default()).reveal().to_string();
    std::fs::write(&operator, &token).unwrap();
    std::fs::set_permissions(&operator, std::fs::Permissions::from_mode(0o600)).unwrap();
    let admin = ["--admin-token-file", operator.to_str().unwrap()];
    let on = [HERE, &["--auth", "on"], &admin].concat();
    let off = [HERE, &["--auth", "off"]].concat();

    let first = start(&folder, &on).await;
    assert_eq!(asked(&first.api).await, 401);
    // One that is told nothing follows.
    let second = start(&folder, HERE).await;
    assert_eq!(asked(&second.api).await, 401);
    let told = does_not_start(&folder, &off).await;
    assert!(told.contains("--auth on"), "{told}");
    second.stop().await;
    first.stop().await;

    // Nobody lives who asks.
    let open = start(&folder, &off).await;
    assert_eq!(asked(&open.api).await, 200);
    let told = does_not_start(&folder, &on).await;
    assert!(told.contains("--auth off"), "{told}");
    open.stop().await;
    let first = start(&folder, &on).await;
    assert_eq!(asked(&first.api).await, 401);
    first.stop().await;
}

#[test]
fn the_files_for_containers_leave_it_at_that() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in [
        "Dockerfile",
        "deploy/compose.yaml",
        "packaging/taskledger.env",
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let settings = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        for line in settings {
            let is_off = line.contains("TASKLEDGER_AUTH=") || line.contains("TASKLEDGER_AUTH:");
            assert!(!is_off || !line.contains("off"), "{file}: {line}");
        }
    }
}
