//! Callbacks. spec: interface / Push Notifications

use super::a2a::card;
use crate::clauses::prelude::*;
use crate::receiver::{Callback, Receiver};

/// What a callback must bring along.
const AUTHORIZATION: &str = "Bearer conformance-token";

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/push/1-url",
            "callbacks go to `push_notification_config.url`",
            callbacks_arrive,
        ),
        must(
            "interface/push/2-method",
            "`push_notification_config.method` may be `POST`, and is that if it is left out",
            post_may_be_named,
        ),
        must(
            "interface/push/3-body",
            "a callback has `task_id`, `status`, `progress` and `result`",
            callbacks_have_members,
        ),
        must(
            "interface/push/4-post",
            "a callback is a POST",
            callbacks_are_posts,
        ),
        should(
            "interface/push/5-headers",
            "a callback has the headers of `push_notification_config.headers`",
            callbacks_have_headers,
        ),
        may(
            "interface/push/6-retry",
            "a callback that was refused may be sent again",
            refused_callbacks_come_again,
        ),
    ]
}

/// Executes a task whose news go to the receiver.
///
/// # Errors
/// [`Finding::Skipped`]: the server does not say that it sends them. One mode of streaming is enough.
async fn notify(
    probe: &Probe,
    receiver: &Receiver,
    alias: &str,
    extra: Value,
) -> Result<String, Finding> {
    let card = card(probe).await?.unwrap_or_default();
    if card["capabilities"]["push_notifications"] != true {
        let text = "no agent card says that there are push notifications";
        return Err(Finding::skipped(text));
    }
    let mut config = json!({"url": receiver.url, "headers": {"Authorization": AUTHORIZATION}});
    if let (Value::Object(config), Value::Object(extra)) = (&mut config, extra) {
        config.extend(extra);
    }
    let task = probe.task(alias).with("inputs", json!({"text": "hello"}));
    let request = json!({
        "jsonrpc": "2.0",
        "method": "tasks.execute",
        "params": {"tasks": [task.element()]},
        "id": "req-001",
        "configuration": {"push_notification_config": config},
    });
    probe.request(&request).await?.expect_result()?;
    let stored = probe.own().await?;
    let found = stored
        .iter()
        .find(|stored| stored["name"] == probe.name(alias));
    let none = || Finding::failed("the task is not stored");
    text_of(found.ok_or_else(none)?, "id")
}

fn completed(id: &str) -> impl Fn(&Callback) -> bool {
    let id = id.to_owned();
    move |callback| callback.body["task_id"] == id && callback.body["status"] == "completed"
}

/// The callbacks about a task until it has completed.
async fn callbacks(probe: &Probe) -> Result<(Vec<Callback>, String), Finding> {
    let mut receiver = probe.receiver(0).await?;
    let id = notify(probe, &receiver, "told", json!({})).await?;
    let what = format!("a callback that task {id} has completed");
    let callbacks = receiver.until(&what, completed(&id)).await?;
    Ok((callbacks, id))
}

pub(super) async fn callbacks_arrive(probe: &Probe) -> Outcome {
    let (callbacks, id) = callbacks(probe).await?;
    seen(format!("{} callbacks about task {id}", callbacks.len()))
}

async fn post_may_be_named(probe: &Probe) -> Outcome {
    let mut receiver = probe.receiver(0).await?;
    let id = notify(probe, &receiver, "named", json!({"method": "POST"})).await?;
    let what = format!("a callback that task {id} has completed");
    let named = receiver.until(&what, completed(&id)).await?;
    callbacks_are_posts(probe).await?;
    seen(format!("{} callbacks when it is named", named.len()))
}

async fn callbacks_have_members(probe: &Probe) -> Outcome {
    let (callbacks, id) = callbacks(probe).await?;
    let task = probe.get(&id).await?;
    for callback in &callbacks {
        let body = &callback.body;
        text_of(body, "task_id")?;
        text_of(body, "status")?;
        let progress = body["progress"].as_f64();
        ensure!(
            progress.is_some(),
            "no number `progress` in {}",
            shown(body)
        );
    }
    let last = &callbacks[callbacks.len() - 1].body;
    expect_field(last, "progress", 1)?;
    expect_field(last, "result", task["result"].clone())?;
    seen(shown(last))
}

async fn callbacks_are_posts(probe: &Probe) -> Outcome {
    let (callbacks, _) = callbacks(probe).await?;
    for callback in &callbacks {
        ensure!(
            callback.method == "POST",
            "a callback is a {}",
            callback.method
        );
        let media_type = callback.headers.get("content-type");
        let json =
            media_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        ensure!(json, "a callback has the content type {media_type:?}");
    }
    seen(format!("{} callbacks, all POST", callbacks.len()))
}

async fn callbacks_have_headers(probe: &Probe) -> Outcome {
    let (callbacks, _) = callbacks(probe).await?;
    for callback in &callbacks {
        let found = callback.headers.get("authorization");
        let right = found.is_some_and(|value| value.as_bytes() == AUTHORIZATION.as_bytes());
        ensure!(
            right,
            "`Authorization` of a callback is {found:?}, expected `{AUTHORIZATION}`"
        );
    }
    seen(format!(
        "`Authorization` in all {} callbacks",
        callbacks.len()
    ))
}

/// The same callback comes a second time, after the first was answered with 503.
async fn refused_callbacks_come_again(probe: &Probe) -> Outcome {
    let mut receiver = probe.receiver(1).await?;
    let id = notify(probe, &receiver, "told", json!({})).await?;
    let first = receiver.until("a callback", |_| true).await?[0]
        .body
        .clone();
    let what = format!("{} of task {id} again", shown(&first));
    match receiver
        .until(&what, |callback| callback.body == first)
        .await
    {
        Ok(_) => seen("sent again after 503"),
        Err(Finding::Failed(text) | Finding::Skipped(text)) => Err(Finding::skipped(text)),
    }
}
