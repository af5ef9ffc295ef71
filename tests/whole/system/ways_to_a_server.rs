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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_win_over_a_named_context_that_over_variables_and_those_over_the_context_in_use() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let (live, dead) = (server.api.url.as_str(), "http://127.0.0.1:1");
    let file = folder.path().join("contexts.json");
    let contexts = ("TASKLEDGER_CONTEXTS", file.to_str().unwrap());
    for (name, url) in [("live", live), ("dead", dead)] {
        with(&[contexts], &["context", "add", name, "--server", url])
            .await
            .done();
    }
    let (to_live, to_dead) = (("TASKLEDGER_URL", live), ("TASKLEDGER_URL", dead));
    let name = |name| ("TASKLEDGER_CONTEXT", name);
    for (words, variables, is_live) in [
        // The context in use is `live`.
        (&["health"][..], &[][..], true),
        (&["health"], &[to_dead], false),
        (&["health", "--context", "live"], &[to_dead], true),
        (&["health", "--context", "dead"], &[to_live], false),
        (&["health"], &[name("live"), to_dead], true),
        (&["health", "--context", "live"], &[name("dead")], true),
        (&["health", "--url", live, "--context", "dead"], &[], true),
        (&["health", "--url", live], &[name("dead"), to_dead], true),
    ] {
        let variables = [&[contexts], variables].concat();
        let ended = with(&variables, words).await;
        match is_live {
            true => assert!(ended.done().contains("✓ ok"), "{words:?} {variables:?}"),
            false => _ = ended.refused(4),
        }
    }

    // `run` follows the context in use, unless a folder is named.
    let workflow = folder.path().join("one.json");
    let task = r#"[{"name": "kept on the server", "schemas": {"method": "echo_executor"}}]"#;
    std::fs::write(&workflow, task).unwrap();
    let workflow = workflow.to_str().unwrap();
    let data = folder.path().join("apart");
    let apart = ["run", workflow, "--data-dir", data.to_str().unwrap()];
    with(&[contexts], &apart).await.done();
    let list = ["tasks", "list"];
    let listed = with(&[contexts], &list).await.done();
    assert!(!listed.contains("kept on the server"), "{listed}");
    with(&[contexts], &["run", workflow]).await.done();
    let listed = with(&[contexts], &list).await.done();
    assert!(listed.contains("kept on the server"), "{listed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_named_context_shows_to_its_server_wins_over_variables() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let contexts = path("contexts.json");
    let contexts = ("TASKLEDGER_CONTEXTS", contexts.as_str());
    let token = path("token");
    taskledger_private::create_new(token.as_ref()).unwrap();
    std::fs::write(&token, "tl_abcdefgh12345678_of-the-context").unwrap();
    let server = "http://ledger.example";
    let add = ["context", "add", "far", "--server", server];
    let add = [
        &add[..],
        &["--token-file", &token, "--proxy", "http://192.0.2.1:1"],
    ]
    .concat();
    with(&[contexts], &add).await.done();
    let variables = [
        contexts,
        ("TASKLEDGER_TOKEN", "tl_abcdefgh12345678_of-the-variable"),
        ("TASKLEDGER_HEADER", "Authorization: Bearer other"),
        ("TASKLEDGER_PROXY", "http://192.0.2.2:1"),
    ];
    // Tokens are not sent in the clear, which shows which one would be.
    let named = with(&variables, &["health", "--context", "far"])
        .await
        .refused(2);
    assert!(named.contains(&token), "{named}");
    assert!(!named.contains("TASKLEDGER_"), "{named}");
    assert!(named.contains("the proxy of the context"), "{named}");
    let in_use = with(&variables, &["health"]).await.refused(2);
    assert!(in_use.contains("TASKLEDGER_HEADER is not sent"), "{in_use}");
    assert!(in_use.contains("the proxy of TASKLEDGER_PROXY"), "{in_use}");
}
