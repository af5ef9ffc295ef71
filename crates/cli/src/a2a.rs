//! `taskledger a2a`: calls any agent that speaks Agent2Agent 1.0.
//!
//! Owns: the options, one function for each command, how agents are reached (`direct`) and how answers are shown
//! (`shown`). The protocol is `crates/a2a-client`. Agents are strangers: a token for a taskledger server that is set in
//! the environment is not shown to them, only what an option of this call names.

mod direct;
mod shown;

use super::following::say;
use super::output::Output;
use super::{Access, ApiError, CliError, input, quoted};
use async_trait::async_trait;
use clap::Subcommand;
use direct::Direct;
use serde_json::{Map, Value};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use taskledger_a2a::read::Named as _;
use taskledger_a2a::request::{ListTasksRequest, SendMessageConfiguration, SendMessageRequest};
use taskledger_a2a::{
    ErrorKind, Message, Part, Role, SendMessageResponse, StreamResponse, Task, TaskState, Wire,
};
use taskledger_a2a_client::{
    Agent, AgentOptions, Binding, Error, Retry, Turn, Watcher, question_id,
};
use taskledger_clock::{Clock as _, SystemClock};
use taskledger_domain::json;

/// Call agents over Agent2Agent (A2A) 1.0
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger a2a card http://127.0.0.1:8000
  taskledger a2a send https://agent.example.com 'Draw a boat' --token-file token
  taskledger a2a send http://127.0.0.1:8000 --data @workflow.json --no-wait
  taskledger a2a send http://127.0.0.1:8000 --task ID yes
  taskledger a2a watch http://127.0.0.1:8000 ID --json

AGENT is the URL of an agent, of its card, or a file with its card. TASKLEDGER_TOKEN is not sent to agents: give
--token-file or --header. Exit codes: 0 done or waiting for an answer, 1 failed, 2 usage or refused, 3 cancelled,
4 no connection")]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// Call the agent in this way only: JSONRPC or HTTP+JSON
    #[arg(long, global = true, value_name = "BINDING")]
    binding: Option<Binding>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the card of an agent
    Card {
        /// The agent
        agent: String,
    },
    Send(Box<Send>),
    /// Show a task
    Get {
        /// The agent
        agent: String,
        /// The task
        id: String,
        /// Show this many messages of its history
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
        history: i32,
    },
    List(List),
    /// Follow a task until it ends or asks
    Watch {
        /// The agent
        agent: String,
        /// The task
        id: String,
    },
    /// Cancel a task
    Cancel {
        /// The agent
        agent: String,
        /// The task
        id: String,
    },
}

/// Send a message, and wait for the result
#[derive(Debug, clap::Args)]
struct Send {
    /// The agent
    agent: String,
    /// What to say
    #[arg(required_unless_present = "data")]
    text: Option<String>,
    /// JSON to send: the text itself, `@FILE`, or `@-` for standard input
    #[arg(long, value_name = "JSON|@FILE")]
    data: Option<String>,
    /// The conversation that it belongs to
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// The task that it answers
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The skill to use
    #[arg(long, value_name = "ID")]
    skill: Option<String>,
    /// Sent as `Idempotency-Key`: agents that know it do not act twice
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Return as soon as the task exists
    #[arg(long)]
    no_wait: bool,
}

/// List tasks, the newest first
#[derive(Debug, Clone, clap::Args)]
struct List {
    /// The agent
    agent: String,
    /// Only those of a conversation
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// Only those in a state, such as `working` or `input-required`
    #[arg(long, value_name = "STATE", value_parser = state)]
    status: Option<TaskState>,
    /// How many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=100))]
    limit: Option<i32>,
    /// The token that the previous page printed
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

/// Does what was asked.
pub async fn a2a(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let Args {
        access,
        binding,
        command,
    } = args;
    let agent = async |place: String| agent(&access, &place, binding).await;
    match command {
        Command::Card { agent: place } => {
            let agent = agent(place).await?;
            match out.is_json() {
                true => out.value(&agent.card().to_json())?,
                false => {
                    let lines = shown::card(agent.card(), agent.binding(), agent.url(), out);
                    out.texts(&lines)?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Send(send) => {
            let agent = agent(send.agent.clone()).await?;
            said(&agent, *send, out).await
        }
        Command::Get {
            agent: place,
            id,
            history,
        } => {
            let agent = agent(place).await?;
            let task = agent.get(&id, Some(history)).await.map_err(failed)?;
            match out.is_json() {
                true => out.value(&task.to_json())?,
                false => out.lines(shown::conversation(&task))?,
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::List(list) => {
            out.calls_with(format!("{}{}", named(binding), access.options(None)));
            let agent = agent(list.agent.clone()).await?;
            listed(&agent, list, out).await
        }
        Command::Watch { agent: place, id } => {
            let agent = agent(place).await?;
            let mut printing = Printing::to(out);
            let turn = agent.follow(&id, None, &mut printing).await;
            printing.done()?;
            Ok(code(&turn.map_err(failed)?))
        }
        Command::Cancel { agent: place, id } => {
            let agent = agent(place).await?;
            let task = agent.cancel(&id).await.map_err(failed)?;
            show_task(&task, out)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The agent at a URL, or of a card in a file.
async fn agent(access: &Access, place: &str, binding: Option<Binding>) -> Result<Agent, CliError> {
    let is_url = place.starts_with("http://") || place.starts_with("https://");
    let card = match is_url {
        true => None,
        false => Some(Value::Object(input::read_object(place)?)),
    };
    let interfaces = card
        .as_ref()
        .and_then(|card| card.get("supportedInterfaces"));
    let interfaces = interfaces.and_then(Value::as_array).into_iter().flatten();
    let urls = interfaces.filter_map(|it| it.get("url")?.as_str());
    let mut targets = Vec::new();
    // Whichever is chosen, it may be shown what options name.
    let is_http = |url: &&str| {
        url.get(..4)
            .is_some_and(|it| it.eq_ignore_ascii_case("http"))
    };
    for url in urls.filter(is_http) {
        targets.push(access.target_of_stranger(url)?);
    }
    let target = match targets.into_iter().next() {
        Some(target) => target,
        None => access.target_of_stranger(place)?,
    };
    let options = AgentOptions {
        headers: target.headers().clone(),
        binding,
    };
    let http = Arc::new(Direct::to(target)?);
    let agent = match card {
        // The file was given by the user, so each of its faults is wrong usage.
        Some(card) => {
            let agent = Agent::of_card(http, card, options);
            return agent.map_err(|error| CliError::Usage(error.to_string()));
        }
        None => Agent::at(http, place, options).await,
    };
    agent.map_err(failed)
}

async fn said(agent: &Agent, send: Send, out: &mut Output) -> Result<ExitCode, CliError> {
    let data = send.data.as_deref().map(data).transpose()?;
    let text = send.text.map(Part::text);
    let skill = send
        .skill
        .map(|skill| Map::from_iter([("skillId".to_owned(), skill.into())]));
    let message = Message {
        message_id: SystemClock::default().uuid().to_string(),
        context_id: send.context_id,
        task_id: send.task,
        role: Role::User,
        parts: text.into_iter().chain(data.map(Part::data)).collect(),
        metadata: skill,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    };
    let request = SendMessageRequest {
        tenant: None,
        message,
        configuration: SendMessageConfiguration {
            return_immediately: send.no_wait,
            ..SendMessageConfiguration::default()
        },
        metadata: None,
    };
    let key = send.idempotency_key.as_deref();
    let turn = match send.no_wait {
        true => agent.send(&request, key).await.map(|answer| match answer {
            SendMessageResponse::Task(task) => Turn::Task(task),
            SendMessageResponse::Message(message) => Turn::Message(message),
        }),
        false => {
            let asked = question(agent, request.message.task_id.as_deref()).await;
            agent
                .converse(&request, key, asked.as_deref(), &mut Quiet)
                .await
        }
    };
    let turn = turn.map_err(failed)?;
    match &turn {
        Turn::Task(task) => show_task(task, out)?,
        Turn::Message(message) => match out.is_json() {
            true => out.value(&message.to_json())?,
            false => out.lines(shown::message(message))?,
        },
    }
    Ok(code(&turn))
}

/// The question that a task asks before it is answered: the agent may still show it for a moment.
/// `None` also if it cannot be read: sending the message tells why.
async fn question(agent: &Agent, task: Option<&str>) -> Option<String> {
    let task = agent.get(task?, Some(0)).await.ok()?;
    let asks = task.status.state.is_interrupted();
    question_id(&task.status).filter(|_| asks)
}

/// The option that names the same binding, behind a blank.
fn named(binding: Option<Binding>) -> String {
    binding.map_or_else(String::new, |binding| format!(" --binding {binding}"))
}

impl List {
    /// The command for the page that this token begins, whole; `None`: there is none.
    fn next(&self, token: &str, out: &Output) -> Option<String> {
        let status = self
            .status
            .map(|status| shown::state(status).replace(' ', "-"));
        let given = [
            ("--context-id", self.context_id.clone()),
            ("--status", status),
            ("--limit", self.limit.map(|limit| limit.to_string())),
            ("--page-token", Some(token.to_owned())),
        ];
        let given = given.into_iter().filter_map(|(name, value)| {
            let value = value?;
            Some(format!(" {name} {}", quoted(&value)))
        });
        let given: String = given.collect();
        let agent = quoted(&self.agent);
        let next = || out.command(&format!("taskledger a2a list {agent}{given}"));
        (!token.is_empty()).then(next)
    }
}

async fn listed(agent: &Agent, list: List, out: &mut Output) -> Result<ExitCode, CliError> {
    let asked = list.clone();
    let request = ListTasksRequest {
        context_id: list.context_id,
        status: list.status,
        page_size: list.limit,
        page_token: list.page_token,
        history_length: Some(0),
        ..ListTasksRequest::default()
    };
    let page = agent.list(&request).await.map_err(failed)?;
    match out.is_json() {
        true => out.value(&page.to_json())?,
        false if page.tasks.is_empty() && page.next_page_token.is_empty() => {
            say("the agent has no task to show; `taskledger a2a send AGENT TEXT` gives it one");
        }
        false => {
            let next = asked.next(&page.next_page_token, out);
            out.texts(&shown::tasks(&page, next, out))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show_task(task: &Task, out: &mut Output) -> io::Result<()> {
    match out.is_json() {
        true => out.value(&task.to_json()),
        false => out.lines(shown::task(task)),
    }
}

/// JSON as an option has it.
fn data(given: &str) -> Result<Value, CliError> {
    let text = match given.strip_prefix('@') {
        Some(file) => input::read_text(file)
            .map_err(|error| CliError::Usage(format!("cannot read `{file}`: {error}")))?,
        None => given.to_owned(),
    };
    json::read(text.as_bytes()).map_err(|error| {
        CliError::Usage(format!(
            "--data: not valid JSON: {error}; expected JSON, @FILE or @-"
        ))
    })
}

/// A state, for clap: as the protocol has it, or as people write it.
fn state(text: &str) -> Result<TaskState, String> {
    let wanted = text.to_uppercase().replace(['-', ' '], "_");
    let wanted = wanted.strip_prefix("TASK_STATE_").unwrap_or(&wanted);
    let mut all = TaskState::ALL.iter();
    let found = all.find(|(_, _, name)| name.strip_prefix("TASK_STATE_") == Some(wanted));
    found.map(|(state, _, _)| *state).ok_or_else(|| {
        let names = TaskState::ALL
            .iter()
            .map(|(state, _, _)| shown::state(*state).replace(' ', "-"));
        format!("expected one of {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// The exit code that tells how a turn ended.
fn code(turn: &Turn) -> ExitCode {
    ExitCode::from(match turn {
        Turn::Message(_) => 0,
        Turn::Task(task) => match task.status.state {
            TaskState::Submitted
            | TaskState::Working
            | TaskState::Completed
            | TaskState::InputRequired
            | TaskState::AuthRequired => 0,
            TaskState::Failed | TaskState::Rejected => 1,
            TaskState::Canceled => 3,
        },
    })
}

/// What a failure means on the command line.
fn failed(error: Error) -> CliError {
    let text = error.to_string();
    match error.into_last() {
        Error::Unanswered { .. } => ApiError::Connection(text).into(),
        // The agent has answered, so this does not count as "no connection".
        Error::TooLarge { .. } | Error::Invalid(_) | Error::GivenUp { .. } => {
            CliError::Failed(text)
        }
        Error::Unusable(_) => CliError::Usage(text),
        Error::Agent(error) if error.kind == Some(ErrorKind::Unauthenticated) => denied(401, &text),
        Error::Agent(error) if error.kind == Some(ErrorKind::Forbidden) => denied(403, &text),
        Error::Agent(error) if error.kind == Some(ErrorKind::Internal) => CliError::Failed(text),
        Error::Agent(_) => CliError::Usage(text),
    }
}

fn denied(status: u16, text: &str) -> CliError {
    let text = format!("{text}; give --token-file FILE, or --header");
    ApiError::Denied { status, text }.into()
}

/// Prints nothing but failures that are tried again.
struct Quiet;

#[async_trait]
impl Watcher for Quiet {
    async fn told(&mut self, _item: &StreamResponse) {}

    async fn retries(&mut self, retry: Retry<'_>) {
        say_retry(retry);
    }
}

/// Every failure of the agent is reported: the first pauses are short, later ones are some seconds.
fn say_retry(retry: Retry<'_>) {
    say(&format!("the agent does not answer: {retry}"));
}

/// Prints what happens to a task.
struct Printing<'o> {
    out: &'o mut Output,
    /// Nothing is printed twice because a stream begins anew.
    last: Option<Task>,
    printed: io::Result<()>,
}

impl<'o> Printing<'o> {
    fn to(out: &'o mut Output) -> Self {
        Self {
            out,
            last: None,
            printed: Ok(()),
        }
    }

    fn done(self) -> io::Result<()> {
        self.printed
    }
}

#[async_trait]
impl Watcher for Printing<'_> {
    async fn told(&mut self, item: &StreamResponse) {
        if let StreamResponse::Task(task) = item {
            if self.last.as_ref() == Some(task) {
                return;
            }
            self.last = Some(task.clone());
        }
        if self.printed.is_ok() {
            self.printed = match self.out.is_json() {
                true => self.out.value(&item.to_json()),
                false => self.out.lines(shown::item(item)),
            };
        }
    }

    async fn retries(&mut self, retry: Retry<'_>) {
        say_retry(retry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;
    use taskledger_a2a_client::http::Unanswered;
    use taskledger_terminal::Ending as _;

    #[test]
    fn the_next_page_is_a_whole_command() {
        let words = "a2a list http://h:1 --context-id c --status input-required --limit 5 --page-token p --binding \
                     HTTP+JSON --token-file t";
        let args: Args = parsed(words.split_whitespace()).unwrap();
        let Command::List(list) = args.command else {
            panic!("another command");
        };
        let mut out = Output::to(Box::new(Vec::new()), false, false);
        out.calls_with(format!(
            "{}{}",
            named(args.binding),
            args.access.options(None)
        ));
        assert_eq!(
            list.next("q r", &out).as_deref(),
            Some(
                "taskledger a2a list http://h:1 --context-id c --status input-required --limit 5 --page-token 'q r' \
                 --binding HTTP+JSON --token-file t"
            )
        );
        assert_eq!(list.next("", &out), None);
    }

    #[test]
    fn an_answer_that_is_of_no_use_is_told_from_none() {
        let of = |error| format!("{:?}", failed(error).exit_code());
        let is = |code| format!("{:?}", ExitCode::from(code));
        let (what, max) = ("the card", 1);
        let last = Box::new(Error::Unanswered {
            url: "http://h:1".to_owned(),
            reason: Unanswered::Broken("no answer within 60 s".to_owned()),
        });
        assert_eq!(of(Error::TooLarge { what, max }), is(1));
        assert_eq!(of(Error::Invalid("not JSON".to_owned())), is(1));
        assert_eq!(of(Error::Unusable("0.3 only".to_owned())), is(2));
        assert_eq!(of(Error::GivenUp { tries: 3, last }), is(4));
    }
}
