//! The routes.

use super::a2a::REST;
use super::cards::Cards;
use super::door::Door;
use super::grpc::Of;
use super::health::Probe;
use super::json::json;
use super::route::Route;
use super::{origins, refusal, welcome};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{HeaderValue, VARY};
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, post};
use std::sync::Arc;
use taskledger_a2a::{headers, v03};
use taskledger_domain::suggestion::suggestion;

/// All routes. `/` and `/tasks` are the same door.
pub(super) fn router<C: Send + Sync + 'static>(
    door: Arc<Door<C>>,
    allowed_origins: &[String],
) -> Router {
    let cors = origins::cors(allowed_origins);
    let has_metrics = door.metrics.is_some();
    let is_served = move |route: Route| route != Route::Metrics || has_metrics;
    let routes = mounted(is_served)
        .fallback(move |uri: Uri| async move { nowhere(uri.path(), is_served) })
        .with_state(door);
    match cors {
        None => routes,
        Some(cors) => routes.layer(cors),
    }
}

/// 404, with the path that was probably meant, or why there is nothing at this one.
fn nowhere(path: &str, is_served: impl Fn(Route) -> bool) -> Response {
    /// Calls of agents, who may have left out the path of their binding.
    const OF_AGENTS: [&str; 3] = ["/message:send", "/message:stream", "/extendedAgentCard"];
    if Route::Metrics.paths().contains(&path) {
        return refusal::nothing_at(
            path,
            "a path that is served; metrics are not served at this address: `--metrics` serves them here, `--admin-listen` at an \
             address of their own",
        );
    }
    let routes = Route::ALL.iter();
    let routes = routes.filter(|route| **route != Route::Peers && is_served(**route));
    let paths = routes.flat_map(|route| route.paths()).copied();
    let paths = paths.filter(|path| path.len() > 1 && !path.contains('{'));
    let near = suggestion(path, paths).map(str::to_owned);
    let of_agents = || suggestion(path, OF_AGENTS.into_iter()).map(|path| format!("{REST}{path}"));
    match near.or_else(of_agents) {
        Some(near) => refusal::nothing_at(
            path,
            &format!("a path of this server; did you mean `{near}`?"),
        ),
        None => refusal::not_found(path),
    }
}

/// What is mounted: routes of the list, and nothing else.
fn mounted<C: Send + Sync + 'static>(is_served: impl Fn(Route) -> bool) -> Router<Arc<Door<C>>> {
    let served = Route::ALL.iter().filter(|route| is_served(**route));
    let at_paths = served.flat_map(|route| route.paths().iter().map(|path| (*path, *route)));
    at_paths.fold(Router::new(), |router, (path, route)| {
        router.route(path, served_at(route))
    })
}

fn served_at<C: Send + Sync + 'static>(route: Route) -> MethodRouter<Arc<Door<C>>> {
    match route {
        Route::Front => front(),
        Route::Calls => calls(),
        Route::AgentCard => reads(get(card::<C>)),
        Route::A2aCard => reads(get(a2a_card::<C>)),
        Route::A2aKeys => reads(get(a2a_keys::<C>)),
        Route::A2aRpc => a2a_calls(),
        Route::A2aRest => any(a2a_rest::<C>),
        Route::A2aGrpc => grpc(Of::A2a),
        Route::A2aGrpcV03 => grpc(Of::A2aV03),
        Route::OpenRpc => reads(get(openrpc::<C>)),
        Route::Events => reads(get(events::<C>)),
        Route::Socket => sockets(),
        Route::Live => reads(get(alive)),
        Route::Ready => reads(get(ready::<C>)),
        Route::Peers => peers(),
        Route::Metrics => reads(get(metrics::<C>)),
        Route::Bus => grpc(Of::Bus),
        Route::Health => grpc(Of::Health),
        Route::Reflection => grpc(Of::Reflection),
        Route::ReflectionAlpha => grpc(Of::ReflectionAlpha),
    }
}

/// What agents of the broker call, and nothing else. `url`: where everything else is, for everybody to know.
pub(super) fn agents<C: Send + Sync + 'static>(door: Arc<Door<C>>, url: Option<String>) -> Router {
    let url: Option<Arc<str>> = url.map(Arc::from);
    let other = move |headers: HeaderMap, uri: Uri| async move {
        refusal::of_agents(&headers, uri.path(), AGENTS_CALL, url.as_deref())
    };
    mounted(Route::is_for_agents)
        .fallback(other)
        .with_state(door)
}

/// What is at an address for agents.
const AGENTS_CALL: &str =
    "POST /eventbus.EventBus/{call} over HTTP/2 with content-type application/grpc";

fn calls<C: Send + Sync + 'static>() -> MethodRouter<Arc<Door<C>>> {
    post(|State(door): State<Arc<Door<C>>>, request: Request<Body>| door.call(request)).fallback(
        |method: Method| async move { refusal::method_not_allowed(method.as_str(), "POST") },
    )
}

/// The same door, with a page for people who look at it.
fn front<C: Send + Sync + 'static>() -> MethodRouter<Arc<Door<C>>> {
    post(|State(door): State<Arc<Door<C>>>, request: Request<Body>| door.call(request)).fallback(
        |method: Method, headers: HeaderMap| async move {
            match welcome::is_looking(&method, &headers) {
                true => welcome::page(),
                false => refusal::method_not_allowed(method.as_str(), "POST"),
            }
        },
    )
}

fn grpc<C: Send + Sync + 'static>(of: Of) -> MethodRouter<Arc<Door<C>>> {
    post(move |State(door): State<Arc<Door<C>>>, request: Request<Body>| door.grpc(of, request))
        .fallback(
            |method: Method| async move { refusal::method_not_allowed(method.as_str(), "POST") },
        )
}

fn sockets<C: Send + Sync + 'static>() -> MethodRouter<Arc<Door<C>>> {
    get(|State(door): State<Arc<Door<C>>>, request: Request<Body>| door.socket(request)).fallback(
        |method: Method| async move { refusal::method_not_allowed(method.as_str(), "GET") },
    )
}

/// Calls of other nodes; anybody else learns nothing.
fn peers<C: Send + Sync + 'static>() -> MethodRouter<Arc<Door<C>>> {
    post(|State(door): State<Arc<Door<C>>>, request: Request<Body>| door.forwarded(request))
        .fallback(|uri: Uri| async move { refusal::not_found(uri.path()) })
}

fn reads<C: Send + Sync + 'static>(
    route: MethodRouter<Arc<Door<C>>>,
) -> MethodRouter<Arc<Door<C>>> {
    route.fallback(|method: Method| async move {
        refusal::method_not_allowed(method.as_str(), "GET, HEAD")
    })
}

async fn card<C: Send + Sync + 'static>(State(door): State<Arc<Door<C>>>) -> Response {
    json(StatusCode::OK, door.agent_card.clone())
}

/// The card of Agent2Agent. Where version 0.3 is served too, requests that ask for no later one get a card that both
/// understand.
async fn a2a_card<C: Send + Sync + 'static>(
    State(door): State<Arc<Door<C>>>,
    request: Request<Body>,
) -> Response {
    let headers = request.headers();
    let Some(pages) = door.cards.as_ref().map(Cards::pages) else {
        return refusal::not_found(request.uri().path());
    };
    let Some(older) = &pages.older else {
        return pages.card.answer(headers);
    };
    let version = headers.get(headers::VERSION);
    let version = version.map_or(Ok(""), HeaderValue::to_str);
    let is_older = version.is_ok_and(|it| v03::served(Some(it)).is_ok());
    let mut response = if is_older { older } else { &pages.card }.answer(headers);
    let varies = HeaderValue::from_static(headers::VERSION);
    response.headers_mut().append(VARY, varies);
    response
}

/// The keys that sign the card of Agent2Agent.
async fn a2a_keys<C: Send + Sync + 'static>(
    State(door): State<Arc<Door<C>>>,
    request: Request<Body>,
) -> Response {
    match &door.cards {
        Some(cards) => cards.pages().keys.answer(request.headers()),
        None => refusal::not_found(request.uri().path()),
    }
}

fn a2a_calls<C: Send + Sync + 'static>() -> MethodRouter<Arc<Door<C>>> {
    post(|State(door): State<Arc<Door<C>>>, request: Request<Body>| door.a2a_rpc(request)).fallback(
        |method: Method| async move { refusal::method_not_allowed(method.as_str(), "POST") },
    )
}

async fn a2a_rest<C: Send + Sync + 'static>(
    State(door): State<Arc<Door<C>>>,
    request: Request<Body>,
) -> Response {
    door.a2a_rest(request).await
}

async fn openrpc<C: Send + Sync + 'static>(
    State(door): State<Arc<Door<C>>>,
    request: Request<Body>,
) -> Response {
    let (head, _) = request.into_parts();
    match door.admitted(&head).await {
        Ok(_) => door.openrpc.answer(&head.headers),
        Err(refusal) => *refusal,
    }
}

async fn events<C: Send + Sync + 'static>(
    State(door): State<Arc<Door<C>>>,
    request: Request<Body>,
) -> Response {
    door.events(request).await
}

async fn metrics<C: Send + Sync + 'static>(
    State(door): State<Arc<Door<C>>>,
    request: Request<Body>,
) -> Response {
    door.metrics(request).await
}

pub(super) async fn alive() -> Response {
    json(StatusCode::OK, r#"{"status":"ok"}"#)
}

async fn ready<C: Send + Sync + 'static>(
    State(door): State<Arc<Door<C>>>,
    request: Request<Body>,
) -> Response {
    let (head, _) = request.into_parts();
    // What the checks have found is not for strangers.
    let is_told = head.uri.query().is_some() && door.tells_details(&head).await;
    let query = head.uri.query().filter(|_| is_told).map(str::to_owned);
    readiness(&door.probe, door.draining.is_cancelled(), query).await
}

/// The answer to a probe.
pub(super) async fn readiness(probe: &Probe, draining: bool, query: Option<String>) -> Response {
    let verbose =
        query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
    let (ready, body) = probe.report(draining, verbose).await;
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json(status, body)
}

#[cfg(test)]
mod tests {
    use super::{Route, nowhere};

    #[tokio::test]
    async fn a_mistyped_path_is_answered_with_the_one_that_was_meant() {
        for (path, meant) in [
            ("/event", "did you mean `/events`?"),
            ("/helthz", "did you mean `/healthz`?"),
            ("/message:sen", "did you mean `/a2a/rest/message:send`?"),
            ("/metric", "POST /a2a and /a2a/rest/ for Agent2Agent"),
            ("/metrics", "`--metrics` serves them here"),
            ("/elsewhere", "POST /a2a and /a2a/rest/ for Agent2Agent"),
        ] {
            let response = nowhere(path, |route| route != Route::Metrics);
            assert_eq!(response.status(), 404);
            let body = axum::body::to_bytes(response.into_body(), 10_000).await;
            let text = String::from_utf8(body.expect("it is short").to_vec()).expect("JSON");
            assert!(text.contains(meant), "{path}: {text}");
        }
    }
}
