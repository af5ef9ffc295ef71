//! https: a server with a certificate, its renewal by signal, nodes that call each other, and the command
//! line as a client that shows a token.

use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use taskledger_testkit::certificates::{Files, LOCAL, Pair};
use taskledger_testkit::cluster::{Cluster, health};
use taskledger_testkit::program::{self, Ended};
use taskledger_testkit::receiver::{Answer, Receiver, Tls};
use taskledger_testkit::server::{Folder, Server};

/// A token that no text may show.
const TOKEN: &str = "tl_canary_hunter2";
/// Calls that are under way while the certificate is renewed.
const CLIENTS: usize = 8;

async fn start(folder: &Folder, files: &Files) -> Server {
    let arguments = files.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Server::start_with(folder, &arguments).await
}

/// Runs the program with a token in its environment.
async fn with_token(arguments: &[&str]) -> Ended {
    let mut command = program::command();
    command.args(arguments).env("TASKLEDGER_TOKEN", TOKEN);
    let ended = program::end(command, "").await;
    assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
    ended
}

/// Waits until the server has logged this.
async fn logged(server: &Server, text: &str) {
    let api = &server.api;
    api.eventually(text, async || server.logged().contains(text).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_by_signal_without_losing_a_call() {
    let (folder, files) = (Folder::new(), Files::new());
    let server = start(&folder, &files).await;
    assert!(server.api.url.starts_with("https://"), "{}", server.api.url);
    let load = (0..CLIENTS).map(|client| {
        let api = server.api.clone();
        tokio::spawn(async move {
            for n in 0..40 {
                let name = format!("client {client} call {n}");
                let made = api.try_call("tasks.create", json!({"name": name}), None);
                made.await.expect("every call is answered");
            }
        })
    });
    let load: Vec<_> = load.collect();

    files.write(&Pair::of(&LOCAL));
    server.hang_up();
    logged(&server, "the certificate was replaced").await;
    server.hang_up();
    logged(&server, "the files hold the certificate that is in use").await;
    files.replace(files.key(), &Pair::of(&LOCAL).key);
    server.hang_up();
    logged(&server, "the certificate before stays in use").await;
    assert!(
        server
            .logged()
            .contains("does not belong to the first certificate")
    );

    for client in load {
        client.await.unwrap();
    }
    let health = server.api.call("system.health", json!({})).await;
    assert_eq!(health["log"]["head"], CLIENTS * 40);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_start_with_files_that_it_cannot_use() {
    let (folder, files) = (Folder::new(), Files::new());
    let serve = async || {
        let mut arguments = vec!["serve".to_owned(), "--listen".to_owned()];
        arguments.push("127.0.0.1:0".to_owned());
        arguments.extend(folder.storage());
        arguments.extend(files.arguments());
        program::run(arguments).await.refused(2)
    };
    std::fs::set_permissions(files.key(), Permissions::from_mode(0o644)).unwrap();
    let said = serve().await;
    let command = format!("chmod 600 '{}'", files.key().display());
    assert!(said.contains(&command), "{said}");
    files.write(&Pair::expired(&LOCAL));
    let said = serve().await;
    assert!(said.contains("until 2021-01-01T00:00:00Z only"), "{said}");
    files.replace(files.certificate(), "nothing");
    let said = serve().await;
    let file = files.certificate();
    assert!(said.contains(file.to_str().unwrap()), "{said}");
    assert!(said.contains("-----BEGIN CERTIFICATE-----"), "{said}");
    let alone = ["serve", "--tls-cert", file.to_str().unwrap()];
    let said = program::run(alone).await.refused(2);
    assert!(said.contains("--tls-key"), "{said}");
    assert!(!folder.data().exists(), "nothing was made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_calls_and_watches_over_https() {
    let (folder, files) = (Folder::new(), Files::new());
    let server = start(&folder, &files).await;
    let authority = files.authority();
    let access = [
        "--url",
        &server.api.url,
        "--ca-file",
        authority.to_str().unwrap(),
    ];
    let workflow = folder.path().join("workflow.json");
    let tasks = json!([{"name": "hello", "schemas": {"method": "echo_executor"}}]);
    std::fs::write(&workflow, tasks.to_string()).unwrap();
    let with = |words: &[&str]| {
        [words, &access]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };

    let ran = program::run(with(&["run", workflow.to_str().unwrap(), "--json"])).await;
    let ran = ran.done();
    let list = program::run(with(&["tasks", "list", "--json"]))
        .await
        .done();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let id = list["tasks"][0]["id"].as_str().unwrap();
    assert!(ran.contains(id), "{ran}");
    let watched = program::run(with(&["watch", id, "--from", "beginning", "--json"])).await;
    assert!(watched.done().contains("task_completed"));

    let stranger = ["tasks", "list", "--url", &server.api.url];
    let said = program::run(stranger).await.refused(4);
    assert!(
        said.contains("UnknownIssuer") && said.contains("--ca-file"),
        "{said}"
    );
    let plain = server.api.url.replace("https:", "http:");
    program::run(["tasks", "list", "--url", &plain])
        .await
        .refused(4);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_an_authority_is_refused_in_plain_words_and_another_one_taken() {
    let (folder, files) = (Folder::new(), Files::new());
    let list = async |server: &Server| {
        let file = files.certificate();
        let trusting = ["--ca-file", file.to_str().unwrap()];
        let words = ["tasks", "list", "--url", &server.api.url];
        program::run([&words[..], &trusting].concat()).await
    };

    files.write(&Pair::of_an_authority(&LOCAL));
    let server = start(&folder, &files).await;
    let said = list(&server).await.refused(4);
    for word in [
        "CA:TRUE",
        "basicConstraints=critical,CA:FALSE",
        "subjectAltName",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("EndEntity"), "{said}");
    server.stop().await;

    files.write(&Pair::self_signed(&LOCAL));
    let server = start(&folder, &files).await;
    list(&server).await.done();
    server.stop().await;
}

fn authority(folder: &Path) -> String {
    let file = folder.join("authority.pem");
    std::fs::write(&file, Receiver::ca_pem()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_shown_to_the_server_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let ca = authority(folder.path());
    let receiver = Receiver::start_tls(Tls::Good).await;
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"Unauthorized","data":{"scope":"admin"}}}"#;
    let (url, answer) = (receiver.url("/"), |status| {
        Answer::status(status).body(refusal)
    });
    let access = ["--url", &url, "--ca-file", &ca, "--header", "x-tenant: a"];
    let commands: [&[&str]; 3] = [&["tasks", "list"], &["events", "tail"], &["watch"]];

    receiver.answer(answer(401));
    for command in commands {
        let said = with_token(&[command, &access].concat()).await.refused(2);
        assert!(
            said.contains("credentials of TASKLEDGER_TOKEN (401"),
            "{said}"
        );
        let said = program::run([command, &access].concat()).await.refused(2);
        assert!(said.contains("set TASKLEDGER_TOKEN"), "{said}");
    }
    for (n, request) in receiver.requests().iter().enumerate() {
        let expected = (n % 2 == 0).then(|| format!("Bearer {TOKEN}"));
        assert_eq!(request.header("authorization"), expected.as_deref());
        assert_eq!(request.header("x-tenant"), Some("a"));
    }
    assert_eq!(receiver.requests().len(), 2 * commands.len());

    receiver.answer(answer(403));
    for command in commands {
        let said = with_token(&[command, &access].concat()).await.refused(2);
        assert!(said.contains("lack the scope `admin`"), "{said}");
    }
    // What is sent along is for this server, not for the one that it names.
    let other = Receiver::start_tls(Tls::Good).await;
    receiver.answer(Answer::status(308).header("location", &other.url("/")));
    for command in commands {
        let said = with_token(&[command, &access].concat()).await.refused(4);
        assert!(said.contains("is not followed"), "{said}");
    }
    assert!(other.requests().is_empty());
    let said = with_token(&["tasks", "list", "--url", "http://192.0.2.1"]).await;
    assert!(said.refused(2).contains("--insecure-token"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_call_each_other_over_https() {
    let files = Files::new();
    let arguments = files.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cluster = Cluster::start(Folder::with_database().await, 2, &arguments).await;
    for node in &cluster.nodes {
        let seen = health(&node.api).await;
        for other in seen["alive"].as_array().unwrap() {
            assert!(
                other["url"].as_str().unwrap().starts_with("https://"),
                "{seen}"
            );
        }
    }
    // Half of the flows belong to the other node.
    let apis = cluster.apis();
    for n in 0..12 {
        let made = apis[n % 2].call("tasks.create", json!({"name": "a"})).await;
        let renamed = json!({"task_id": made["id"], "updates": {"name": format!("b {n}")}});
        apis[(n + 1) % 2].call("tasks.update", renamed).await;
    }
    for node in &cluster.nodes {
        assert!(!node.logged().contains("no agreement"), "{}", node.logged());
    }
    cluster.check(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_authority_is_unknown_is_not_called() {
    let files = Files::new();
    let (arguments, folder) = (files.arguments(), Folder::with_database().await);
    // Without `--node-ca`, which comes last.
    let arguments: Vec<&str> = arguments[..4].iter().map(String::as_str).collect();
    let first = Server::start_with(&folder, &arguments).await;
    let second = Server::start_with(&folder, &arguments).await;
    for server in [&first, &second] {
        taskledger_testkit::cluster::settled(&server.api, 2).await;
    }
    first
        .api
        .eventually("a call is for the other node", async || {
            let made = first
                .api
                .try_call("tasks.create", json!({"name": "a"}), None);
            let made = made.await.ok()?;
            let renamed = json!({"task_id": made["id"], "updates": {"name": "b"}});
            let _ = second.api.try_call("tasks.update", renamed, None).await;
            let logs = [first.logged(), second.logged()].concat();
            (logs.contains("no agreement with a node") && logs.contains("--node-ca")).then_some(())
        })
        .await;
    first.stop().await;
    second.stop().await;
}
