//! A worker whose attempt has no time left.

use super::*;

#[tokio::test]
async fn a_program_is_stopped_as_soon_as_its_attempt_has_timed_out() {
    let up = json!({"expires_at": "..", "cancel_requested": true, "reason": "timed_out"});
    let mut claimed = claim("t", 3600.0);
    // Without the time-out the first renewal came after ten minutes.
    claimed["task"]["params"] = json!({"cancel_grace_seconds": 1800});
    claimed["context"]["timeout_seconds"] = json!(0.2);
    let script = move |_: &str, _: &Value| Reply::Result(up.clone());
    let server = Server::with(vec![claims(&[claimed])], script).await;
    let worker = Running::start(&server, &["--", "sleep", "1000"]);
    server.called("tasks.renew", 1).await;
    server.called("tasks.claim", 2).await;
    let line = worker.stopped().await;
    assert_eq!(
        (&line["outcome"], &line["detail"]),
        (&json!("cancelled"), &json!("timed_out"))
    );
}
