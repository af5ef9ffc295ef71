//! Shows what agents say, as lines for people.

use crate::output::{Column, Output, Style, Text, aligned, printable};
use taskledger_a2a::card::AgentCard;
use taskledger_a2a::request::ListTasksResponse;
use taskledger_a2a::write::{name_of, time};
use taskledger_a2a::{
    Artifact, Content, Message, Part, StreamResponse, Task, TaskState, TaskStatus,
};
use taskledger_a2a_client::Binding;

/// A state as people write it.
pub(super) fn state(state: TaskState) -> String {
    let name = name_of(state);
    let name = name.strip_prefix("TASK_STATE_").unwrap_or(name);
    name.to_lowercase().replace('_', " ")
}

/// A card, and how the agent is called.
pub(super) fn card(card: &AgentCard, binding: Binding, url: &str, out: &Output) -> Vec<Text> {
    let width = out.look().columns;
    let mut shown: Vec<Text> = about(card, binding, url)
        .into_iter()
        .map(Text::from)
        .collect();
    if let Some(name) = shown.first_mut() {
        *name = Text::of(Style::Bold, name.letters());
    }
    let interfaces = card.supported_interfaces.iter().map(|it| {
        let cells = [&it.protocol_binding, &it.protocol_version, &it.url];
        cells.map(|cell| Text::from(printable(cell))).to_vec()
    });
    let columns = [
        Column::whole("BINDING"),
        Column::whole("VERSION"),
        Column::whole("URL"),
    ];
    shown.push(Text::default());
    shown.extend(aligned(&columns, &interfaces.collect::<Vec<_>>(), width));
    let skills = card.skills.iter().map(|it| {
        let cells = [&it.id, &it.name, &it.description];
        cells.map(|cell| Text::from(printable(cell))).to_vec()
    });
    let columns = [
        Column::whole("SKILL"),
        Column::short("NAME"),
        Column::wraps("DESCRIPTION"),
    ];
    shown.push(Text::default());
    shown.extend(aligned(&columns, &skills.collect::<Vec<_>>(), width));
    shown
}

fn about(card: &AgentCard, binding: Binding, url: &str) -> Vec<String> {
    let mut lines = vec![
        printable(&format!("{} {}", card.name, card.version)),
        printable(&card.description),
    ];
    if let Some(provider) = &card.provider {
        let text = format!("by {} ({})", provider.organization, provider.url);
        lines.push(printable(&text));
    }
    lines.push(printable(&format!("called over {binding} at {url}")));
    let has = |what: &str, has: bool| (has).then(|| what.to_owned());
    let capabilities = &card.capabilities;
    let can: Vec<String> = [
        has("streaming", capabilities.streaming),
        has("push notifications", capabilities.push_notifications),
        has("extended card", capabilities.extended_agent_card),
    ]
    .into_iter()
    .flatten()
    .collect();
    lines.push(format!(
        "can: {}",
        if can.is_empty() {
            "calls only".to_owned()
        } else {
            can.join(", ")
        }
    ));
    if !card.security_schemes.is_empty() {
        let names = card.security_schemes.iter().map(|(name, _)| name.as_str());
        let names: Vec<_> = names.collect();
        lines.push(printable(&format!("asks for: {}", names.join(", "))));
    }
    lines
}

/// A task, without what was said before.
pub(super) fn task(task: &Task) -> Vec<String> {
    let mut lines = head(task);
    lines.extend(rest(task));
    lines
}

/// A task with what was said before.
pub(super) fn conversation(task: &Task) -> Vec<String> {
    let mut lines = head(task);
    for said in &task.history {
        let who = name_of(said.role).trim_start_matches("ROLE_");
        lines.push(format!("{}:", who.to_lowercase()));
        lines.extend(parts(&said.parts));
    }
    lines.extend(rest(task));
    lines
}

fn head(task: &Task) -> Vec<String> {
    let state = state(task.status.state);
    let mut lines = vec![printable(&format!("task {}  {state}", task.id))];
    if let Some(context) = &task.context_id {
        lines.push(printable(&format!("context {context}")));
    }
    lines
}

/// What the agent says, and what it has made.
fn rest(task: &Task) -> impl Iterator<Item = String> {
    let words = words(&task.status).into_iter();
    words.chain(task.artifacts.iter().flat_map(artifact))
}

/// What the agent says of a status.
fn words(status: &TaskStatus) -> Vec<String> {
    let Some(said) = &status.message else {
        return Vec::new();
    };
    let head = match status.state {
        TaskState::InputRequired => "asks:",
        TaskState::AuthRequired => "asks for credentials:",
        TaskState::Submitted
        | TaskState::Working
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::Rejected => "says:",
    };
    let mut lines = vec![head.to_owned()];
    lines.extend(parts(&said.parts));
    lines
}

/// Tasks of a page, and the command for the one that follows. Their ids stay whole: agents take no part of them.
pub(super) fn tasks(page: &ListTasksResponse, next: Option<String>, out: &Output) -> Vec<Text> {
    let rows = page.tasks.iter().map(|task| {
        let since = task.status.timestamp.map(time).unwrap_or_default();
        let context = task.context_id.as_deref().unwrap_or_default();
        vec![
            Text::from(printable(&task.id)),
            Text::of(style(task.status.state), state(task.status.state)),
            Text::of(Style::Dim, out.time(&since)),
            Text::from(printable(context)),
        ]
    });
    let columns = [
        Column::whole("TASK"),
        Column::whole("STATE"),
        Column::whole("SINCE").extra(),
        Column::whole("CONTEXT").extra(),
    ];
    let mut lines = aligned(&columns, &rows.collect::<Vec<_>>(), out.look().columns);
    let next = next.map(|next| format!("next page: {}", printable(&next)));
    lines.extend(next.map(|next| Text::of(Style::Dim, next).whole()));
    lines
}

const fn style(state: TaskState) -> Style {
    match state {
        TaskState::Submitted => Style::Dim,
        TaskState::Working => Style::Busy,
        TaskState::Completed => Style::Good,
        TaskState::Failed | TaskState::Rejected => Style::Bad,
        TaskState::Canceled | TaskState::InputRequired | TaskState::AuthRequired => Style::Warn,
    }
}

/// An answer without a task.
pub(super) fn message(message: &Message) -> Vec<String> {
    parts(&message.parts).collect()
}

/// What a stream tells.
pub(super) fn item(item: &StreamResponse) -> Vec<String> {
    match item {
        StreamResponse::Task(it) => task(it),
        StreamResponse::Message(it) => message(it),
        StreamResponse::StatusUpdate(update) => {
            let mut lines = vec![state(update.status.state)];
            lines.extend(words(&update.status));
            lines
        }
        StreamResponse::ArtifactUpdate(update) => artifact(&update.artifact),
    }
}

fn artifact(it: &Artifact) -> Vec<String> {
    let name = it.name.as_deref().filter(|name| *name != it.artifact_id);
    let name = name.map_or_else(String::new, |name| format!(" ({name})"));
    let mut lines = vec![printable(&format!("artifact {}{name}:", it.artifact_id))];
    lines.extend(parts(&Part::joined(&it.parts)));
    lines
}

fn parts(parts: &[Part]) -> impl Iterator<Item = String> {
    parts.iter().flat_map(part)
}

fn part(part: &Part) -> Vec<String> {
    let about = [&part.filename, &part.media_type].into_iter().flatten();
    let about: Vec<&str> = about.map(String::as_str).collect();
    let about = match about.is_empty() {
        true => String::new(),
        false => format!(" ({})", about.join(", ")),
    };
    let lines = match &part.content {
        Content::Text(text) => text.lines().map(str::to_owned).collect(),
        Content::Data(data) => vec![data.to_string()],
        Content::Url(url) => vec![format!("{url}{about}")],
        Content::Raw(raw) => vec![format!("{} bytes{about}", raw.len())],
    };
    lines
        .iter()
        .map(|line| format!("  {}", printable(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taskledger_a2a::Wire;

    #[test]
    fn a_task_is_shown_with_what_it_says_and_makes() {
        let shown = conversation(
            &Task::from_json(json!({
                "id": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED",
                    "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Which\u{1b}[2J?\nNow."}]}},
                "history": [{"messageId": "h", "role": "ROLE_USER", "parts": [{"text": "go"}]}],
                "artifacts": [
                    {"artifactId": "a", "name": "boat", "parts": [{"data": {"x": 1}}, {"raw": "AAAA", "filename": "b.png"}]},
                    {"artifactId": "b", "name": "b", "parts": [{"url": "https://x/y", "mediaType": "image/png"}]}
                ]
            }))
            .expect("a task"),
        );
        assert_eq!(
            shown,
            [
                "task t-1  input required",
                "context c",
                "user:",
                "  go",
                "asks:",
                "  Which\u{fffd}[2J?",
                "  Now.",
                "artifact a (boat):",
                "  {\"x\":1}",
                "  3 bytes (b.png)",
                "artifact b:",
                "  https://x/y (image/png)",
            ]
        );
    }

    #[test]
    fn updates_are_shown_as_they_come() {
        let update = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING",
            "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "half"}]}}}});
        let update = StreamResponse::from_json(update).expect("an update");
        assert_eq!(item(&update), ["working", "says:", "  half"]);
    }

    #[test]
    fn tasks_of_a_page_are_a_table_above_the_command_for_the_next_one() {
        let page = ListTasksResponse::from_json(json!({
            "tasks": [{"id": "t", "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-31T12:00:00Z"}}],
            "nextPageToken": "p", "pageSize": 1, "totalSize": 2
        }))
        .expect("a page");
        let out = Output::to(Box::new(Vec::new()), false, false);
        let shown = tasks(&page, Some("taskledger a2a list u".to_owned()), &out);
        assert_eq!(
            shown.iter().map(Text::letters).collect::<Vec<_>>(),
            [
                "TASK  STATE    SINCE                     CONTEXT",
                "t     working  2026-01-31T12:00:00.000Z",
                "next page: taskledger a2a list u",
            ]
        );
    }
}
