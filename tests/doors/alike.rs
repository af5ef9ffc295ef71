//! Whatever the door, the server does the same and says the same. Answers are compared after ids, times and positions
//! were replaced.
//!
//! The cases of [`cases::all`] are played through each form of JSON-RPC: calls in a POST, in a batch and on a socket.
//! Other protocols have lists of their own: `bus` compares workers of the EventBus with those of JSON-RPC, `a2a` the
//! bindings of Agent2Agent with each other.
//!
//! A new form of JSON-RPC is one implementation of [`door::Door`], played where its route is placed below.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod a2a;
mod bus;
mod cases;
mod door;
pub(crate) mod normal;
mod play;
mod request;

use cases::Case;
use door::{Batch, Door, Post, Socket};
use taskledger::transport::http::Route;
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::{Api, Folder, Server};

/// What each case is answered in a POST.
async fn expected(cases: &[Case]) -> Vec<String> {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let expected = play::all(&mut Post::to(&server.api, "/"), cases).await;
    server.stop().await;
    expected
}

/// Plays every case through a door; the answers must be those that are expected.
async fn assert_alike(mut door: impl Door, cases: &[Case], expected: &[String]) {
    let found = play::all(&mut door, cases).await;
    for ((case, found), expected) in cases.iter().zip(&found).zip(expected) {
        let different = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        let name = door.name();
        assert!(
            found == expected,
            "{name} differs in `{}`: {different:#?}\nall of it:\n{found}",
            case.name
        );
    }
}

/// Every route of one server: the cases through those that take calls of JSON-RPC, a list of its own through the
/// EventBus. A route that is not placed here does not compile.
async fn assert_doors_are_alike(api: &Api, cases: &[Case], expected: &[String]) {
    for route in Route::ALL {
        match route {
            Route::Front => {
                assert_alike(Post::to(api, "/"), cases, expected).await;
                assert_alike(Batch::of(api), cases, expected).await;
            }
            Route::Calls => assert_alike(Post::to(api, "/tasks"), cases, expected).await,
            Route::Socket => assert_alike(Socket::open(api).await, cases, expected).await,
            // What cases stream over HTTP.
            Route::Events => {}
            // Workers only, with a list of its own.
            Route::Bus => bus::assert_alike(api).await,
            // `a2a.rs` has a list of its own for its bindings; what 0.3 makes of it: `doors/a2a/v03.rs`.
            Route::A2aRpc | Route::A2aRest | Route::A2aGrpc | Route::A2aGrpcV03 => {}
            // They take no calls, or those of nodes, which `every_door_of_every_node_on_postgres_answers_alike` makes.
            Route::AgentCard
            | Route::A2aCard
            | Route::A2aKeys
            | Route::OpenRpc
            | Route::Live
            | Route::Ready
            | Route::Peers
            | Route::Metrics
            | Route::Health
            | Route::Reflection
            | Route::ReflectionAlpha => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_door_of_a_server_answers_alike() {
    let cases = cases::all();
    let expected = expected(&cases).await;
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    assert_doors_are_alike(&server.api, &cases, &expected).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_door_of_every_node_on_postgres_answers_alike() {
    let cases = cases::all();
    let expected = expected(&cases).await;
    let cluster = Cluster::of(2).await;
    // About half of the flows belong to the other node, whichever is asked.
    let [one, other] = &cluster.nodes[..] else {
        panic!("two nodes")
    };
    assert_alike(Post::to(&one.api, "/"), &cases, &expected).await;
    assert_doors_are_alike(&other.api, &cases, &expected).await;
    for node in cluster.nodes {
        node.stop().await;
    }
}

#[test]
fn names_of_cases_are_their_own() {
    let mut names: Vec<_> = cases::all().iter().map(|case| case.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
