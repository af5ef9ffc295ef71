//! Completion of values that only a server knows: ids of tasks and webhooks, methods; and names of contexts.
//!
//! A shell calls this program with what is typed so far. It gets an answer within `LIMIT` or none, and never an error:
//! whatever is wrong says the command itself when it is run.

use super::Api as _;
use super::context::Contexts;
use super::events::TYPES;
use super::output::{list, member};
use super::remote::{Remote, quoted};
use super::tree::{SKIPPED, shown_status};
use clap::{Arg, Command, Parser};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, ValueCompleter};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::time::Duration;
use taskledger_domain::task::Status;

/// How long a person waits for completions at most.
const LIMIT: Duration = Duration::from_millis(300);
/// How long a server may take to answer, of that time.
const ANSWER: Duration = Duration::from_millis(250);
/// Candidates that are asked for: as many as people look through.
const CANDIDATES_MAX: usize = 50;
/// Digits of a beginning of an id that a server looks up.
const DIGITS_MIN: usize = 4;
/// Characters of the name of a task beside its id.
const NAME_CHARS_MAX: usize = 40;
/// The variable with which a shell asks.
pub(super) const VARIABLE: &str = "TASKLEDGER_COMPLETE";
/// Options that lead to a server, as [`Remote`] reads them. All take a value.
const LEADING: [&str; 8] = [
    "--url",
    "--server",
    "--context",
    "--token-file",
    "--ca-file",
    "--client-cert",
    "--client-key",
    "--proxy",
];

/// Answers a shell for the commands of `definition`, if it is one that has called; then nothing else is to be done. To
/// be called before anything else.
#[must_use]
pub fn answer_shell(definition: fn() -> Command) -> bool {
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return false;
    }
    // Between somebody and their prompt nothing is said, whatever happens.
    std::panic::set_hook(Box::new(|_| ()));
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(definition).var(VARIABLE);
    drop(asked.try_complete(std::env::args_os(), folder.as_deref()));
    true
}

/// What an argument takes that is not known before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    Tasks,
    Webhooks,
    Methods,
    Contexts,
    Schedules,
    Statuses,
    EventTypes,
}

impl Values {
    /// What an argument takes; `path` names its command, from the program on.
    fn of(arg: &Arg, path: &[String]) -> Option<Self> {
        let command = path.get(1).map_or("", String::as_str);
        let inner = path.get(2).map_or("", String::as_str);
        match (command, inner, arg.get_id().as_str()) {
            (_, _, "access_context") | ("context", "use" | "remove", "name") => {
                Some(Self::Contexts)
            }
            ("tasks", _, "task_id" | "parent" | "parent_id")
            | ("watch", _, "id")
            | ("respond", _, "task_id")
            | ("events", "query" | "tail", "flow" | "task")
            | ("workflows", "progress", "root")
            | ("webhooks", _, "flow" | "task") => Some(Self::Tasks),
            ("webhooks", _, "id") => Some(Self::Webhooks),
            ("schedules", "create" | "list", _) => None,
            ("schedules", _, "name") => Some(Self::Schedules),
            ("tasks", _, "status") => Some(Self::Statuses),
            ("events", "query", "types") | ("tasks", "history", "types") => Some(Self::EventTypes),
            ("tasks", _, "method")
            | ("worker", _, "methods" | "method")
            | ("workers", "declare" | "undeclare", "method") => Some(Self::Methods),
            _ => None,
        }
    }
}

/// The same argument, which completes what it takes.
pub fn completed(arg: Arg, path: &[String]) -> Arg {
    match Values::of(&arg, path) {
        Some(values) => arg.add(ArgValueCompleter::new(values)),
        None => arg,
    }
}

impl ValueCompleter for Values {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(current) = current.to_str().map(str::to_owned) else {
            return Vec::new();
        };
        let values = *self;
        let (sender, found) = mpsc::sync_channel(1);
        // A thread of its own: names are looked up and files read, which may take any time. It ends with the program.
        std::thread::spawn(move || {
            let words: Vec<OsString> = std::env::args_os().collect();
            let _ = sender.send(values.candidates(&current, &words));
        });
        found.recv_timeout(LIMIT).ok().flatten().unwrap_or_default()
    }
}

impl Values {
    /// `None`: they cannot be found out.
    fn candidates(self, current: &str, words: &[OsString]) -> Option<Vec<CompletionCandidate>> {
        if self == Self::Contexts {
            let contexts = Contexts::read(Contexts::place().as_deref()).ok()?;
            return Some(
                contexts
                    .named()
                    .map(|(name, server)| with_help(name, server))
                    .filter(|it| fits(it, current))
                    .collect(),
            );
        }
        if self == Self::Statuses {
            let all = Status::ALL.iter().map(|status| status.as_str());
            let all = all.chain([SKIPPED]).map(CompletionCandidate::new);
            return Some(all.filter(|it| fits(it, current)).collect());
        }
        if self == Self::EventTypes {
            let all = TYPES.iter().map(CompletionCandidate::new);
            return Some(all.filter(|it| fits(it, current)).collect());
        }
        let known = match self {
            // They need no server.
            Self::Tasks => ["@last", "@root"].map(CompletionCandidate::new).into(),
            Self::Webhooks
            | Self::Methods
            | Self::Contexts
            | Self::Schedules
            | Self::Statuses
            | Self::EventTypes => Vec::new(),
        };
        let found = self.asked(current, words).unwrap_or_default();
        let all = known.into_iter().chain(found);
        Some(all.filter(|it| fits(it, current)).collect())
    }

    /// What a server answers; `None`: it does not.
    fn asked(self, current: &str, words: &[OsString]) -> Option<Vec<CompletionCandidate>> {
        let api = remote(words)?.api().ok()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .ok()?;
        let (method, params) = self.question(current);
        // Before nobody waits any more, so that what needs no server is there if it does not answer.
        let answer = async { tokio::time::timeout(ANSWER, api.call(method, params)).await };
        let answer = runtime.block_on(answer).ok()?.ok()?;
        runtime.shutdown_background();
        Some(self.of_answer(&answer))
    }

    fn question(self, current: &str) -> (&'static str, Value) {
        let digits = current.bytes().filter(u8::is_ascii_hexdigit).count();
        match self {
            Self::Tasks if digits >= DIGITS_MIN => (
                "tasks.list",
                json!({"id_prefix": current, "limit": CANDIDATES_MAX}),
            ),
            Self::Tasks => (
                "tasks.list",
                json!({"root_only": true, "limit": CANDIDATES_MAX}),
            ),
            Self::Webhooks => ("webhooks.list", json!({"limit": CANDIDATES_MAX})),
            Self::Schedules => ("schedules.list", json!({"limit": CANDIDATES_MAX})),
            Self::Methods | Self::Contexts | Self::Statuses | Self::EventTypes => {
                ("system.executors", json!({}))
            }
        }
    }

    fn of_answer(self, answer: &Value) -> Vec<CompletionCandidate> {
        let all = |name| list(answer, name).iter();
        match self {
            Self::Tasks => {
                let tasks = all("tasks").map(|task| {
                    let name: String = member(task, "name").chars().take(NAME_CHARS_MAX).collect();
                    with_help(
                        &member(task, "id"),
                        &format!("{} {name}", shown_status(task)),
                    )
                });
                tasks.collect()
            }
            Self::Webhooks => {
                let webhooks = all("webhooks");
                webhooks
                    .map(|it| with_help(&member(it, "id"), &about_webhook(it)))
                    .collect()
            }
            Self::Schedules => {
                let schedules = all("schedules");
                schedules
                    .map(|it| {
                        let paused = it.get("paused") == Some(&Value::Bool(true));
                        with_help(&member(it, "name"), if paused { "paused" } else { "" })
                    })
                    .collect()
            }
            Self::Methods | Self::Contexts | Self::Statuses | Self::EventTypes => {
                let methods = all("executors");
                methods
                    .map(|it| with_help(&member(it, "name"), &member(it, "summary")))
                    .collect()
            }
        }
    }
}

fn with_help(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.to_owned().into()))
}

/// The description of a webhook, else the host it goes to: the rest of its URL may be a secret.
fn about_webhook(webhook: &Value) -> String {
    let description = member(webhook, "description");
    if !description.is_empty() {
        return description.chars().take(NAME_CHARS_MAX).collect();
    }
    let url = reqwest::Url::parse(&member(webhook, "url")).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    host.unwrap_or_default().to_owned()
}

/// Whether a candidate completes what is typed. Other callers choose names, and shells put a candidate on the line as
/// it is: one that a shell would not read as one plain word is never offered, nor one that would be an option.
fn fits(candidate: &CompletionCandidate, current: &str) -> bool {
    let value = candidate.get_value().to_string_lossy();
    let is_plain = quoted(&value) == value && !value.starts_with(['-', '=', '%']);
    is_plain && value.starts_with(current)
}

/// The server that the options in a line name, behind the `--` of the shell's call; `None`: they are not whole yet.
fn remote(words: &[OsString]) -> Option<Remote> {
    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Leading {
        #[command(flatten)]
        remote: Remote,
    }
    let typed = words.iter().skip_while(|word| *word != "--").skip(1);
    let typed: Vec<&str> = typed.filter_map(|word| word.to_str()).collect();
    let mut given = vec!["taskledger"];
    for (at, word) in typed.iter().enumerate() {
        let name = word.split_once('=').map_or(*word, |(name, _)| name);
        if !LEADING.contains(&name) {
            continue;
        }
        given.push(word);
        if name == *word {
            given.push(typed.get(at + 1)?);
        }
    }
    Leading::try_parse_from(given)
        .ok()
        .map(|leading| leading.remote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_server_is_the_one_of_the_line_that_is_typed() {
        let line =
            "taskledger -- taskledger tasks --url http://h:1 get --status x --token-file=f 0f8f";
        let remote = remote(&words(line)).unwrap();
        assert_eq!(remote.url().unwrap(), "http://h:1");
        assert!(super::remote(&words("taskledger -- taskledger tasks get --url")).is_none());
        assert!(super::remote(&words("taskledger -- taskledger tasks get --url h")).is_none());
    }

    #[test]
    fn what_takes_ids_and_methods_says_so() {
        let takes = |path: &[&str], id: &'static str| {
            let path: Vec<String> = path.iter().map(|it| (*it).to_owned()).collect();
            Values::of(&Arg::new(id), &path)
        };
        assert_eq!(
            takes(&["taskledger", "tasks", "get"], "task_id"),
            Some(Values::Tasks)
        );
        assert_eq!(takes(&["taskledger", "watch"], "id"), Some(Values::Tasks));
        assert_eq!(
            takes(&["taskledger", "webhooks", "get"], "id"),
            Some(Values::Webhooks)
        );
        assert_eq!(
            takes(&["taskledger", "context", "use"], "name"),
            Some(Values::Contexts)
        );
        assert_eq!(
            takes(&["taskledger", "schedules", "get"], "name"),
            Some(Values::Schedules)
        );
        assert_eq!(takes(&["taskledger", "schedules", "create"], "name"), None);
        assert_eq!(
            takes(&["taskledger", "tasks", "list"], "status"),
            Some(Values::Statuses)
        );
        for path in [["events", "query"], ["tasks", "history"]] {
            let path = [&["taskledger"][..], &path[..]].concat();
            assert_eq!(takes(&path, "types"), Some(Values::EventTypes));
        }
        let found = Values::EventTypes.candidates("task_c", &[]).unwrap();
        assert_eq!(found.len(), 5);
        let found = Values::Statuses.candidates("c", &[]).unwrap();
        let found: Vec<_> = found.iter().map(|it| it.get_value().to_owned()).collect();
        assert_eq!(found, ["completed", "cancelled"]);
        assert_eq!(Values::Statuses.candidates("sk", &[]).unwrap().len(), 1);
        // A port at which nobody listens.
        let away = words("taskledger -- taskledger tasks get --url http://127.0.0.1:1");
        let found = Values::Tasks.candidates("@", &away).unwrap();
        let found: Vec<_> = found.iter().map(|it| it.get_value().to_owned()).collect();
        assert_eq!(found, ["@last", "@root"]);
        assert_eq!(takes(&["taskledger", "a2a", "get"], "id"), None);
    }

    #[test]
    fn only_plain_words_are_offered() {
        let offered = |value: &str| fits(&CompletionCandidate::new(value), "");
        for plain in ["echo_executor", "team/fetch:v2", "0f8f", "@last"] {
            assert!(offered(plain), "{plain}");
        }
        for other in [
            "a;rm -rf ~",
            "$(reboot)",
            "`reboot`",
            "a b",
            "a'b",
            "a\nb",
            "a\u{1b}[2J",
            "~root",
            "*",
            "=ls",
            "--insecure-token",
            "",
        ] {
            assert!(!offered(other), "{other}");
        }
    }

    #[test]
    fn webhooks_are_told_apart_without_their_urls() {
        let answer = json!({"webhooks": [
            {"id": "a", "url": "https://hooks.example/T0/hunter2?k=hunter2", "description": null},
            {"id": "b", "url": "https://u:hunter2@h.example", "description": "billing"},
        ]});
        let found = Values::Webhooks.of_answer(&answer);
        let help = |n: usize| found[n].get_help().unwrap().to_string();
        assert_eq!([help(0), help(1)], ["hooks.example", "billing"]);
    }

    #[test]
    fn answers_become_candidates_with_what_tells_them_apart() {
        let answer = json!({"tasks": [{"id": "0f8f", "name": "report", "status": "failed"}]});
        let found = Values::Tasks.of_answer(&answer);
        assert_eq!(found[0].get_value(), "0f8f");
        assert_eq!(found[0].get_help().unwrap().to_string(), "failed report");
        let prefix = Values::Tasks.question("0f8fad").1;
        assert_eq!(prefix["id_prefix"], "0f8fad");
        assert_eq!(Values::Tasks.question("0f8").1["root_only"], true);
    }
}
