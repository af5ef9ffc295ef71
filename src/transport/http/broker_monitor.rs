//! Serves what monitoring of the public agent broker asks for: `/health`, `/ready` and `/metrics`, in its format.
//!
//! On a listener of its own, because `/metrics` elsewhere has other names. Reads probes and figures; owns nothing.

use super::admin::{Shared, only_reads, operator};
use super::json::json as answer;
use super::{refusal, scrape};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const SERVICE: &str = crate::transport::eventbus::SERVICE;
/// What the broker calls the check of its listener.
const LISTENER: &str = "grpc_server";

pub(super) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(scrape::PATH, only_reads(get(metrics)))
        .route("/health", only_reads(get(health)))
        .route("/ready", only_reads(get(ready)))
        .fallback(|uri: Uri| async move {
            refusal::nothing_at(uri.path(), "GET /health, /ready, /metrics")
        })
        .with_state(shared)
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    match &shared.metrics {
        Some(scraped) => scrape::answer_broker(&**scraped, &operator()).await,
        None => refusal::nothing_at(scrape::PATH, "GET /health, /ready"),
    }
}

/// A part of the server, as a check has found it.
struct Part {
    name: &'static str,
    is_well: bool,
    message: String,
}

/// All parts, and how long it took to look at them.
async fn parts(shared: &Shared) -> (Vec<Part>, Duration) {
    let began = Instant::now();
    let checks = shared.probe.checks().await;
    let is_draining = shared.draining.is_cancelled();
    let own = [
        Part {
            name: "self",
            is_well: true,
            message: "Service is running normally".to_owned(),
        },
        Part {
            name: LISTENER,
            is_well: !is_draining,
            message: match is_draining {
                true => "the server stops".to_owned(),
                false => format!("gRPC server listening on {}", shared.of_agents),
            },
        },
    ];
    let checks = checks.into_iter().map(|check| Part {
        name: check.name,
        is_well: check.ok,
        message: check.detail,
    });
    (own.into_iter().chain(checks).collect(), began.elapsed())
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let (parts, took) = parts(&shared).await;
    let word = |is_well| if is_well { "healthy" } else { "unhealthy" };
    let now = shared.clock.now();
    let check = |part: &Part| {
        json!({
            "name": part.name, "status": word(part.is_well), "message": part.message, "last_checked": now,
            "duration": format!("{:.1}ms", took.as_secs_f64() * 1000.0),
        })
    };
    let is_well = parts.iter().all(|part| part.is_well);
    let body = json!({
        "status": word(is_well), "timestamp": now, "service": SERVICE, "version": env!("CARGO_PKG_VERSION"),
        "uptime": uptime(Duration::from_millis(now.ms_since(shared.started))),
        "checks": parts.iter().map(check).collect::<Value>(),
    });
    told(is_well, &body)
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let (parts, _) = parts(&shared).await;
    let is_ready = parts.iter().all(|part| part.is_well);
    let dependency =
        |part: &Part| json!({"name": part.name, "ready": part.is_well, "message": part.message});
    let body = json!({
        "ready": is_ready, "timestamp": shared.clock.now(), "service": SERVICE,
        "dependencies": parts.iter().map(dependency).collect::<Value>(),
    });
    told(is_ready, &body)
}

fn told(is_well: bool, body: &Value) -> Response {
    let status = match is_well {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    answer(status, body.to_string())
}

/// As Go writes it: `2h34m12s`.
fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let mut text = String::new();
    if hours > 0 {
        let _ = write!(text, "{hours}h");
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(text, "{minutes}m");
    }
    let _ = write!(text, "{}s", seconds % 60);
    text
}

#[cfg(test)]
mod tests {
    use super::uptime;
    use std::time::Duration;

    #[test]
    fn an_uptime_is_written_as_go_writes_it() {
        for (seconds, text) in [
            (0, "0s"),
            (72, "1m12s"),
            (9252, "2h34m12s"),
            (7200, "2h0m0s"),
        ] {
            assert_eq!(uptime(Duration::from_secs(seconds)), text);
        }
    }
}
