//! How the command line reaches a server: through proxies, and with certificates.

use super::command_line::with;
use taskledger_testkit::certificates::{Files, Pair};
use taskledger_testkit::program;
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A proxy that leads every tunnel to `target` and says where each was to lead.
async fn proxy(target: String) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let mut client = BufReader::new(client);
            let mut line = String::new();
            let mut first = String::new();
            while client.read_line(&mut line).await.unwrap_or(0) > 2 {
                if first.is_empty() {
                    first.clone_from(&line);
                }
                line.clear();
            }
            let _ = sender.send(first.trim().to_owned());
            let mut server = TcpStream::connect(&target).await.unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (url, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_of_the_environment_are_used_for_other_machines_only() {
    let (folder, files) = (Folder::new(), Files::new());
    files.write(&Pair::of(&["ledger.test", "127.0.0.1"]));
    let arguments = files.arguments();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    arguments.extend(["--allow-host", "ledger.test"]);
    let server = Server::start_with(&folder, &arguments).await;
    let own = server.api.url.clone();
    let address = own
        .trim_start_matches("https://")
        .trim_end_matches('/')
        .to_owned();
    let (proxy, mut asked) = proxy(address).await;
    let authority = files.authority();
    let health = async |url: &str, variables: &[(&str, &str)]| {
        let words = [
            "health",
            "--url",
            url,
            "--ca-file",
            authority.to_str().unwrap(),
        ];
        with(variables, &words).await
    };

    let through = health("https://ledger.test", &[("HTTPS_PROXY", &proxy)]).await;
    assert!(through.done().contains("✓ ok"));
    assert_eq!(
        asked.recv().await.unwrap(),
        "CONNECT ledger.test:443 HTTP/1.1"
    );
    let not = [("HTTPS_PROXY", proxy.as_str()), ("NO_PROXY", "ledger.test")];
    health("https://ledger.test", &not).await.refused(4);
    let here = health(&own, &[("HTTPS_PROXY", &proxy), ("HTTP_PROXY", &proxy)]).await;
    assert!(here.done().contains("✓ ok"));
    assert!(asked.try_recv().is_err(), "neither has asked the proxy");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_asks_for_certificates_takes_nobody_without_one() {
    let (folder, files) = (Folder::new(), Files::new());
    let client = Files::new();
    let stranger = Files::new();
    stranger.write(&Pair::self_signed(&["somebody"]));
    let authority = files.authority();
    let authority = authority.to_str().unwrap();
    // The server of the tests asks by its own client, which shows nothing: so it is started by hand.
    let mut command = program::command();
    command
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-client-ca",
            authority,
        ])
        .args(folder.storage())
        .args(files.arguments())
        .stderr(std::process::Stdio::piped());
    let mut serving = command.spawn().unwrap();
    let mut log = BufReader::new(serving.stderr.take().unwrap()).lines();
    let url = loop {
        let line = log.next_line().await.unwrap().expect("it starts");
        if let Some(at) = line.find("https://127.0.0.1:") {
            let url = line[at..].split(['"', ' ', '\u{1b}']).next().unwrap();
            break url.to_owned();
        }
    };
    let health = async |more: &[&str], variables: &[(&str, &str)]| {
        let words = [&["health", "--url", &url, "--ca-file", authority], more].concat();
        with(variables, &words).await
    };
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let (cert, key) = (path(client.certificate()), path(client.key()));

    let shown = health(&["--client-cert", &cert, "--client-key", &key], &[]).await;
    assert!(shown.done().contains("✓ ok"));
    let variables = [
        ("TASKLEDGER_CLIENT_CERT", cert.as_str()),
        ("TASKLEDGER_CLIENT_KEY", &key),
    ];
    assert!(health(&[], &variables).await.done().contains("✓ ok"));
    let contexts = path(folder.path().join("contexts.json"));
    let add = [
        "context",
        "add",
        "mine",
        "--server",
        &url,
        "--ca-file",
        authority,
    ];
    let add = [&add[..], &["--client-cert", &cert, "--client-key", &key]].concat();
    let kept = [("TASKLEDGER_CONTEXTS", contexts.as_str())];
    with(&kept, &add).await.done();
    assert!(with(&kept, &["health"]).await.done().contains("✓ ok"));
    let none = health(&[], &[]).await.refused(4);
    assert!(
        none.contains("give --client-cert and --client-key"),
        "{none}"
    );
    let (cert, key) = (path(stranger.certificate()), path(stranger.key()));
    health(&["--client-cert", &cert, "--client-key", &key], &[])
        .await
        .refused(4);
    let half = health(&[], &[("TASKLEDGER_CLIENT_CERT", &cert)])
        .await
        .refused(2);
    assert!(
        half.contains("expected --client-key or TASKLEDGER_CLIENT_KEY as well"),
        "{half}"
    );
    serving.kill().await.unwrap();
}
