//! What a task has made: texts, files and data.

use super::{agent, said, sent};
use crate::a2a::binding::all;
use serde_json::{Value, json};
use taskledger_a2a::Operation::SendStreamingMessage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_have_exactly_the_content_that_was_made() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        for (prefix, part) in [
            (
                "tck-artifact-text",
                json!({"text": "Generated text content"}),
            ),
            (
                "tck-artifact-file",
                json!({"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}),
            ),
            (
                "tck-artifact-file-url",
                json!({"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}),
            ),
            (
                "tck-artifact-data",
                json!({"data": {"key": "value", "count": 42}}),
            ),
        ] {
            let done = sent(binding, said(prefix, "Hello"), "COMPLETED").await;
            let artifact = &done["artifacts"][0];
            assert!(
                artifact["artifactId"]
                    .as_str()
                    .is_some_and(|it| !it.is_empty())
            );
            assert_eq!(
                artifact["parts"],
                json!([part]),
                "{} {prefix}",
                binding.name()
            );
        }
        for (prefix, member) in [
            ("tck-stream-artifact-text", "text"),
            ("tck-stream-artifact-file", "raw"),
            ("tck-stream-artifact-chunked", "text"),
        ] {
            let items = binding
                .stream(SendStreamingMessage, said(prefix, "Hello"))
                .await
                .unwrap();
            // The task as it is at first may have it already.
            let made = items.iter().find_map(|item| {
                let update = item.pointer("/artifactUpdate/artifact");
                update.or(item.pointer("/task/artifacts/0"))
            });
            let made = made.unwrap_or_else(|| panic!("{prefix}: {items:?}"));
            assert!(
                made["parts"][0].get(member).is_some(),
                "{prefix}: {items:?}"
            );
            let updates = items.iter().filter_map(|it| it.get("artifactUpdate"));
            let is = |flag: &Value| flag.as_bool().unwrap_or(false);
            let flags = updates.map(|it| (is(&it["append"]), is(&it["lastChunk"])));
            let flags: Vec<_> = flags.collect();
            match prefix.ends_with("chunked") {
                true => assert_eq!(flags, [(false, false), (true, true)], "{items:?}"),
                false => assert_eq!(flags, [(false, true)], "{items:?}"),
            }
        }
    }
    agent.server.stop().await;
}
