//! Which door of the matrix is asked at which route of the server. A route without its column does not compile, and the
//! router serves the list of routes and nothing else.

use super::asked::Way;
use super::matrix::{given_object, rows};
use super::world::World;
use std::collections::HashSet;
use taskledger::application::api::UseCase;
use taskledger::transport::http::{Options, Route};

/// How it is known who may do what at a route.
enum Column {
    /// Rows of the matrix are asked at this door.
    Rows(Way),
    /// It names no object and needs credentials.
    Credentials,
    /// It is there for everybody.
    Free,
    /// It is there for other nodes, and for nobody else.
    Nodes,
}

const fn column(route: Route) -> Column {
    match route {
        Route::Front | Route::Calls => Column::Rows(Way::Call),
        Route::A2aRpc | Route::A2aRest | Route::A2aGrpc => Column::Rows(Way::A2a),
        Route::A2aGrpcV03 => Column::Rows(Way::A2aV03),
        Route::Events => Column::Rows(Way::Events),
        Route::Socket => Column::Rows(Way::Socket),
        Route::Bus => Column::Rows(Way::Bus),
        Route::OpenRpc | Route::Metrics => Column::Credentials,
        Route::AgentCard
        | Route::A2aCard
        | Route::A2aKeys
        | Route::Live
        | Route::Ready
        | Route::Health
        | Route::Reflection
        | Route::ReflectionAlpha => Column::Free,
        Route::Peers => Column::Nodes,
    }
}

/// Whether a route speaks gRPC.
fn is_grpc(path: &str) -> bool {
    path.ends_with("/{call}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_has_rows_or_is_for_everybody_or_for_nodes() {
    let world = World::listening(Options {
        metrics: true,
        ..Options::default()
    })
    .await;
    let own = given_object(&world, "ann").await;
    let of_all = UseCase::ALL.iter().flat_map(|case| rows(*case, &own, &own));
    let asked: HashSet<Way> = of_all.map(|asked| asked.way()).collect();
    for route in Route::ALL {
        let column = column(*route);
        for path in route.paths().iter().filter(|path| !is_grpc(path)) {
            let url = format!("{}{path}", world.url());
            let get = || world.client.get(&url);
            let status = async |request| world.send(request).await.0;
            match &column {
                Column::Rows(way) => assert!(asked.contains(way), "{route:?}: no row"),
                Column::Credentials => {
                    for token in ["revoked", "expired", "nobody"] {
                        let request = get().bearer_auth(token);
                        assert_eq!(status(request).await, 401, "{path}, {token}");
                    }
                    assert_eq!(status(get()).await, 401, "{path}");
                    assert_eq!(status(get().bearer_auth("chief")).await, 200, "{path}");
                }
                Column::Free => {
                    let told = status(get()).await;
                    assert!(told == 200 || told == 404, "{path}: {told}");
                    let stale = status(get().bearer_auth("revoked")).await;
                    assert_eq!(stale, told, "{path}");
                }
                Column::Nodes => {
                    let call = || world.client.post(&url).body("{}");
                    assert_eq!(status(call()).await, 404, "{path}");
                    let chief = call().bearer_auth("chief");
                    assert_eq!(status(chief).await, 404, "{path}");
                }
            }
        }
        if route.paths().iter().all(|path| is_grpc(path))
            && let Column::Rows(way) = &column
        {
            assert!(asked.contains(way), "{route:?}: no row");
        }
    }
    world.close().await;
}
