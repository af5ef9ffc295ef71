//! Chooses the media types in which a client takes results. None ever makes a task fail.

use taskledger_a2a::{Artifact, Content, Part, StreamResponse};

/// Whether a client takes results as text, and not as JSON. One that takes neither gets JSON.
pub(crate) fn are_text(accepted: &[String]) -> bool {
    let takes = |mode: &str| accepted.iter().any(|given| matches(given, mode));
    !takes("application/json") && takes("text/plain")
}

/// Whether a media type, which may end with `*`, is one.
pub(crate) fn matches(given: &str, mode: &str) -> bool {
    let lower = essence(given);
    match lower.strip_suffix('*') {
        Some(begin) => begin == "*/" || mode.starts_with(begin),
        None => lower == mode,
    }
}

/// A media type without its parameters, in lower case.
pub(crate) fn essence(given: &str) -> String {
    let essence = given.split(';').next().unwrap_or_default().trim();
    essence.to_ascii_lowercase()
}

/// The same with its data as texts.
pub(crate) fn as_text(artifact: &mut Artifact) {
    for part in &mut artifact.parts {
        if let Content::Data(data) = &part.content {
            let text = data.to_string();
            *part = Part {
                media_type: Some("text/plain".to_owned()),
                ..Part::text(text)
            };
        }
    }
}

/// An item of a stream with its results as texts.
pub(crate) fn item_as_text(item: &mut StreamResponse) {
    match item {
        StreamResponse::Task(task) => task.artifacts.iter_mut().for_each(as_text),
        StreamResponse::ArtifactUpdate(update) => as_text(&mut update.artifact),
        StreamResponse::Message(_) | StreamResponse::StatusUpdate(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_are_texts_for_those_who_take_nothing_else_that_there_is() {
        for (accepted, expected) in [
            (vec![], false),
            (vec!["application/json"], false),
            (vec!["text/plain"], true),
            (vec!["Text/*"], true),
            (vec!["text/plain; charset=utf-8", "image/png"], true),
            (vec!["text/plain", "application/*"], false),
            (vec!["*/*"], false),
            (vec!["image/png"], false),
        ] {
            let accepted: Vec<String> = accepted.into_iter().map(str::to_owned).collect();
            assert_eq!(are_text(&accepted), expected, "{accepted:?}");
        }
        let mut artifact = Artifact {
            artifact_id: "a".to_owned(),
            name: None,
            description: None,
            parts: vec![Part::data(json!({"n": 1}))],
            metadata: None,
            extensions: Vec::new(),
        };
        as_text(&mut artifact);
        let part = &artifact.parts[0];
        assert_eq!(part.content, Content::Text(r#"{"n":1}"#.to_owned()));
        assert_eq!(part.media_type.as_deref(), Some("text/plain"));
    }
}
