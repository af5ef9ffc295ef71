//! What is returned and is no output.

use super::*;

#[tokio::test]
async fn an_output_that_is_no_object_is_refused_and_the_attempt_goes_on() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let task = json!({"name": "free", "schemas": {"type": "remote", "method": "free"}});
    let started = api.call("tasks.execute", json!({"tasks": [task]})).await;
    let claim = &claims(api, "free", 1).await[0];
    for output in [json!(null), json!(1), json!("x"), json!([]), json!(true)] {
        let refusal = api
            .refusal("tasks.complete", held(claim, json!({"output": output})))
            .await;
        assert_eq!(refusal.code, -32602, "{refusal:?}");
        assert_eq!(refusal.data["field"], "output");
    }
    let id = started["root_task_id"].as_str().unwrap();
    assert_eq!(super::super::task(api, id).await["status"], "in_progress");
    // Nothing is declared, so nothing is asked of it, and everything is recorded.
    let output = json!({"any": [{"thing": null}]});
    completes(api, claim, output.clone()).await;
    assert_eq!(super::super::task(api, id).await["result"], output);
    server.stop().await;
}
