//! A node that does not reach the database for a while, and nothing else is wrong with it.

use crate::faults::{COMMANDS, clients};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use std::str::FromStr;
use taskledger_testkit::cluster::{Cluster, Load, settled};
use taskledger_testkit::model::Client;
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const NODES: usize = 3;
/// Bytes that are carried at a time.
const PIECE: usize = 65_536;

/// What a way to the database does with what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Keeps it until it is open again, as a network does that has lost its way.
    Held,
    /// Breaks connections, and takes no new ones.
    Broken,
}

/// Between a node and the database.
struct Proxy {
    url: String,
    way: watch::Sender<Way>,
}

impl Proxy {
    async fn to(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).unwrap();
        let server = format!("{}:{}", options.get_host(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (way, seen) = watch::channel(Way::Open);
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                tokio::spawn(carry(node, server.clone(), seen.clone()));
            }
        });
        let url = options.port(port).to_url_lossy().to_string();
        Self { url, way }
    }
}

async fn carry(node: TcpStream, server: String, mut way: watch::Receiver<Way>) {
    let broken = way.clone();
    let carried = async {
        way.wait_for(|way| *way != Way::Held).await.ok()?;
        let server = TcpStream::connect(&server).await.ok()?;
        let ((from_node, to_node), (from_server, to_server)) =
            (node.into_split(), server.into_split());
        tokio::select! {
            () = pump(from_node, to_server, way.clone()) => {}
            () = pump(from_server, to_node, way.clone()) => {}
        }
        Some(())
    };
    let mut broken = broken;
    tokio::select! {
        _ = carried => {}
        _ = broken.wait_for(|way| *way == Way::Broken) => {}
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut way: watch::Receiver<Way>,
) {
    let mut piece = vec![0; PIECE];
    while let Ok(n @ 1..) = from.read(&mut piece).await {
        let open = way.wait_for(|way| *way == Way::Open).await.is_ok();
        if !open || to.write_all(&piece[..n]).await.is_err() {
            return;
        }
    }
}

async fn cut_off(cut: Way) {
    let mut cluster = Cluster::of(NODES - 1).await;
    let proxy = Proxy::to(cluster.folder.url().unwrap()).await;
    let behind = Folder::at(proxy.url.clone());
    cluster.nodes.push(Server::start(&behind).await);
    cluster.settled(NODES).await;
    let apis = cluster.apis();
    let api = &apis[0];
    let mut clients = clients();
    let others: Vec<Client> = clients.split_off(clients.len() / 2);
    // Half of them meet the node that is cut off, where they may have to wait for long.
    let load = Load::start(clients, &apis);
    let elsewhere = Load::start(others, &apis[..NODES - 1]);
    load.more(api, COMMANDS).await;
    proxy.way.send_replace(cut);
    settled(api, NODES - 1).await;
    elsewhere.more(api, COMMANDS).await;
    proxy.way.send_replace(Way::Open);
    cluster.settled(NODES).await;
    load.more(api, COMMANDS).await;
    let mut clients = load.stop().await;
    clients.extend(elsewhere.stop().await);
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_words_reach_the_database_late_writes_nothing_stale() {
    cut_off(Way::Held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_connections_break_comes_back() {
    cut_off(Way::Broken).await;
}
