//! Asking for a stream. spec: interface / Streaming

use super::a2a::card;
use crate::clauses::prelude::*;
use crate::stream::Event;
use std::collections::BTreeSet;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/streaming/1-use-streaming",
            "`params.use_streaming: true` asks for a stream",
            use_streaming_asks,
        ),
        must(
            "interface/streaming/2-metadata",
            "`metadata.stream: true` asks for a stream",
            metadata_asks,
        ),
        must(
            "interface/streaming/3-example",
            "both together ask for one stream",
            both_ask,
        ),
        must(
            "interface/streaming/4-one-mode",
            "there is at least one of SSE, WebSocket and push notifications",
            one_mode_is_supported,
        ),
        should(
            "interface/streaming/5-sse",
            "there is SSE",
            sse_is_supported,
        )
        .same_as(&["interface/transport.a2a/2-sse"]),
        may(
            "interface/streaming/6-without-asking",
            "who does not ask for a stream gets one answer",
            others_get_one_answer,
        ),
    ]
}

/// How a stream is asked for.
#[derive(Clone, Copy)]
pub(super) enum Asking {
    Parameter,
    Metadata,
    Both,
}

pub(super) fn request(tasks: &[NewTask], asking: Asking) -> Value {
    let elements: Vec<_> = tasks.iter().map(NewTask::element).collect();
    let mut request = json!({
        "jsonrpc": "2.0",
        "method": "tasks.execute",
        "params": {"tasks": elements},
        "id": "req-001",
    });
    if matches!(asking, Asking::Parameter | Asking::Both) {
        request["params"]["use_streaming"] = true.into();
    }
    if matches!(asking, Asking::Metadata | Asking::Both) {
        request["metadata"] = json!({"stream": true});
    }
    request
}

/// Whether the event tells that its task has ended.
pub(super) fn tells_an_end(event: &Event) -> bool {
    let ends = ["task_completed", "task_failed", "task_cancelled"];
    ends.contains(&event.kind.as_str()) || is_terminal(&event.data)
}

/// Whether the ends of this many tasks have been told.
pub(super) fn ends(count: usize) -> impl Fn(&[Event]) -> bool {
    move |events| {
        let ended = events.iter().filter(|event| tells_an_end(event));
        let tasks: BTreeSet<_> = ended
            .filter_map(|event| event.data["task_id"].as_str())
            .collect();
        tasks.len() >= count
    }
}

/// The events of a run until all its tasks have ended.
///
/// # Errors
/// [`Finding::Skipped`]: no stream is offered. Other modes are not read, and one is enough.
pub(super) async fn streamed(
    probe: &Probe,
    tasks: &[NewTask],
    asking: Asking,
) -> Result<Vec<Event>, Finding> {
    let request = request(tasks, asking);
    let events = probe.stream(&request, ends(tasks.len())).await?;
    ensure!(
        ends(tasks.len())(&events),
        "sent {}: the stream ended without telling the end of {} tasks: {} events",
        shown(&request),
        tasks.len(),
        events.len()
    );
    Ok(events)
}

async fn expect_stream(probe: &Probe, asking: Asking) -> Outcome {
    let tasks = [probe.task("root"), probe.task("leaf").below("root")];
    let events = streamed(probe, &tasks, asking).await?;
    let stored = probe.own().await?;
    ensure!(
        stored.len() == 2,
        "{} tasks are stored, 2 were streamed",
        stored.len()
    );
    let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
    seen(format!("{kinds:?}"))
}

async fn use_streaming_asks(probe: &Probe) -> Outcome {
    expect_stream(probe, Asking::Parameter).await
}

async fn metadata_asks(probe: &Probe) -> Outcome {
    expect_stream(probe, Asking::Metadata).await
}

async fn both_ask(probe: &Probe) -> Outcome {
    expect_stream(probe, Asking::Both).await
}

pub(in super::super) async fn sse_is_supported(probe: &Probe) -> Outcome {
    match expect_stream(probe, Asking::Both).await {
        Err(Finding::Skipped(text)) => Err(Finding::failed(text)),
        other => other,
    }
}

async fn one_mode_is_supported(probe: &Probe) -> Outcome {
    let sse = sse_is_supported(probe).await;
    if sse.is_ok() {
        return sse;
    }
    let card = card(probe).await?.unwrap_or_default();
    if card["capabilities"]["push_notifications"] == true {
        return super::push::callbacks_arrive(probe).await;
    }
    if crate::clauses::interface_transport::websocket_is_offered(probe)
        .await
        .is_ok()
    {
        return seen("a WebSocket");
    }
    sse
}

async fn others_get_one_answer(probe: &Probe) -> Outcome {
    for value in [None, Some(false)] {
        let mut params = json!({"tasks": [probe.task("alone").element()]});
        if let Some(value) = value {
            params["use_streaming"] = value.into();
        }
        let result = probe.result("tasks.execute", params).await?;
        expect_field(&result, "status", "started")?;
    }
    seen("one JSON-RPC answer, also with `use_streaming: false`")
}
