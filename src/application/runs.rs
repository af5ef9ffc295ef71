//! Runs that begin with a message: starting, answering and cancelling them. Reading them is `view`'s, following them
//! `updates`'.
//!
//! A run is named by its own id. The read models know its flow; the commands go to that flow like all others.

mod answers;
mod awaiting;
mod updates;
mod view;

use super::App;
use super::api::runs::{CancelRun, FollowUp, FollowedUp, RunOrigin, StartRun};
use super::api::{Consistency, IdCheck, Reply};
use super::commands::ExecuteOptions;
use super::context::Context;
use super::error::{Error, Failure};
use super::guard::Guard;
use super::mailbox::Answer;
use super::readings::failed;
use super::sending::{engine_metadata, metadata, weight};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use taskledger_domain::flow::{Command, Event, Flow, Include, Receive, Refusal};
use taskledger_domain::limits::{
    CONTEXT_CHARS_MAX, MESSAGE_ID_CHARS_MAX, REFERENCES_MAX, RUN_MESSAGE_BYTES_MAX,
};
use taskledger_domain::question::{Asks, Expected};
use taskledger_domain::{CallbackId, Payload, Position, RunId, Violation, flow};
use taskledger_projections::{Parts, RunRow};

/// What the keys of these calls are kept under, apart from those of `tasks.execute`.
pub(super) const STARTS: &str = "runs.start";
/// Stands for what a message says to a task that waits for credentials.
const LEFT_OUT: &str = "(left out: credentials are never recorded)";

impl App {
    /// Begins a run by a message. What it creates and its start are one commit.
    ///
    /// # Errors
    /// [`Error`]; `Refused`: nothing is stored then.
    pub(super) async fn start_run(
        &self,
        context: &Context,
        start: StartRun,
        callback: Option<CallbackId>,
    ) -> Result<Reply, Error> {
        let StartRun {
            target,
            allow_unknown_executors,
            executor_wait_ms,
            mut origin,
            reported: _,
        } = start;
        let faults = faults_of(&origin);
        if !faults.is_empty() {
            return Err(Error::invalid(faults));
        }
        let mut references = Vec::with_capacity(origin.references.len());
        for run in origin.references {
            if self.seen_run(context, run).await?.is_some() {
                references.push(run);
            }
        }
        origin.references = references;
        let options = ExecuteOptions {
            allow_unknown_executors,
            executor_wait_ms,
            include: Include::Needed,
            callback,
            origin: Some(Box::new(origin)),
            id_check: IdCheck::First,
        };
        self.execute(&context.keyed_as(STARTS), target, options)
            .await
    }

    /// Cancels everything of a run that has not ended, and with it the run.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run that has ended.
    pub(super) async fn cancel_run(
        &self,
        context: &Context,
        cancel: CancelRun,
    ) -> Result<Reply, Error> {
        let CancelRun { run, reason } = cancel;
        let row = self.run_row(context, run).await?;
        let command = Command::CancelRun(flow::CancelRun { run, reason });
        let position = self.order_run(context, &row, command).await?;
        Ok(Reply::OfRun(FollowedUp { run, position }))
    }

    /// Takes a message to a run as the answer to a question of one of its tasks. The same message again changes
    /// nothing.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run that has ended, one in which nobody waits, and a message that is no answer.
    pub(super) async fn follow_up(
        &self,
        context: &Context,
        follow_up: FollowUp,
    ) -> Result<Reply, Error> {
        let FollowUp {
            run,
            context: named,
            message_id,
            message,
            text,
            data,
            task,
        } = follow_up;
        let row = self.run_row(context, run).await?;
        let mut faults = message_faults(&message);
        let id_chars = message_id.chars().count();
        if id_chars == 0 || id_chars > MESSAGE_ID_CHARS_MAX {
            let expected = format!("1 to {MESSAGE_ID_CHARS_MAX} characters");
            let fault = Violation::of("message_id", "is not valid", expected, &id_chars.into());
            faults.push(fault);
        }
        if let Some(named) = named.filter(|named| *named != row.context) {
            let expected = format!("the context of the run, `{}`, or none", row.context);
            let fault = Violation::of("context_id", "is another run's", expected, &(*named).into());
            faults.push(fault);
        }
        if !faults.is_empty() {
            return Err(Error::invalid(faults));
        }
        // It may have answered a question for credentials, and is known by what was kept of it then.
        let bare = without_content(&message_id, &message);
        let hashes = [hash(&message_id, &message), hash(&message_id, &bare)];
        let heard = hashes.clone();
        let look = move |state: &Flow| {
            let [first, second] = &heard;
            let listens = state.listens(run, first)?;
            if listens.has_heard {
                return Some(listens);
            }
            state.listens(run, second)
        };
        let listens = self.flows.look(row.flow, engine_metadata(), look).await?;
        let Some(listens) = listens else {
            return match self.recorded_at(&row, &hashes).await? {
                Some(position) => Ok(Reply::OfRun(FollowedUp { run, position })),
                None => Err(Refusal::RunOver { run }.into()),
            };
        };
        if listens.has_heard {
            let end = self.store.stream_head(row.flow).await?;
            let position = end.map_or(0, |(_, position)| position);
            return Ok(Reply::OfRun(FollowedUp { run, position }));
        }
        let mut waits = listens.waits.into_iter();
        let found = match task {
            Some(task) => waits.find(|(of, _)| *of == task),
            None => waits.min_by_key(|(_, waits)| waits.asked_at),
        };
        let Some((task, waits)) = found else {
            return Err(Refusal::RunNotWaiting { run, task }.into());
        };
        let asked = self.asked(row.flow, waits.asked_at).await?;
        let expected = Expected::of(&asked.question);
        let expected = expected.ok_or_else(|| {
            let text = format!("the question of task {task} cannot be read");
            Error::from(Failure::Broken(text))
        })?;
        let data = data.map(|data| data.to_value()).transpose();
        let data = data.map_err(|error| Failure::Broken(format!("data of a message: {error}")))?;
        let value = answers::value(&expected, text.as_deref(), data.as_ref());
        let [whole_hash, bare_hash] = hashes;
        let (value, message, body_hash) = match asks(&asked.question) {
            Asks::Input => (value, message, whole_hash),
            Asks::Auth => (answers::of_credentials(&expected, value), bare, bare_hash),
        };
        let of = self.get(context, task, Consistency::Strong).await?.row;
        let answered = self.answer(context, &of, (&asked, &expected), value, None)?;
        let command = Command::Receive(Receive {
            run,
            message_id: message_id.to_string(),
            body_hash,
            message,
            answers: answered,
        });
        let position = self.order_run(context, &row, command).await?;
        Ok(Reply::OfRun(FollowedUp { run, position }))
    }

    /// The callback that the event names which began a run.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn callback_of(&self, row: &RunRow) -> Result<Option<CallbackId>, Error> {
        let mut events = self.events_at(row.flow, vec![row.version]).await?;
        let started = events.remove(&row.version);
        if let Some(Event::RunStarted(started)) = started.as_ref().map(|it| &*it.event) {
            return Ok(started.callback);
        }
        Ok(None)
    }

    /// How a run of the caller's stands, as it is known here.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run of somebody else as for one that does not exist.
    pub(super) async fn run_row(&self, context: &Context, run: RunId) -> Result<RunRow, Error> {
        let found = self.seen_run(context, run).await?;
        found.ok_or_else(|| Refusal::RunNotFound { run }.into())
    }

    /// The same; `None` for a run that the caller does not see. One that is not known is looked for once more when the
    /// read models show everything that was answered before.
    async fn seen_run(&self, context: &Context, run: RunId) -> Result<Option<RunRow>, Error> {
        let mut found = self.queries.run_row(run).await.map_err(failed)?;
        if found.is_none() {
            self.await_seen(context).await?;
            found = self.queries.run_row(run).await.map_err(failed)?;
        }
        let reach = context.caller.reach();
        Ok(found.filter(|row| reach.covers(row.owner.as_deref())))
    }

    /// Has the flow of a run decide a command; the position behind which its effect is seen.
    async fn order_run(
        &self,
        context: &Context,
        row: &RunRow,
        command: Command,
    ) -> Result<Position, Error> {
        self.refuse_when_behind()?;
        let mut order = self
            .flows
            .order(Some(command), None, metadata(context), false);
        let run = row.run;
        let foreign = || Refusal::RunNotFound { run };
        order.guard = Guard::of(context, || self.validation.executors(), foreign);
        order.bytes = weight(&order);
        match self.flows.ask(row.flow, order).await? {
            Answer::Done { position, .. } => Ok(position),
            Answer::Repeated(_) => Err(Failure::Broken("a call without a key".to_owned()).into()),
        }
    }

    /// Where a message to a run that has ended was recorded, if it was. Cost: O(messages of the run).
    async fn recorded_at(
        &self,
        row: &RunRow,
        hashes: &[String; 2],
    ) -> Result<Option<Position>, Error> {
        self.await_flow(row.flow).await?;
        let parts = Parts {
            artifacts_max: 0,
            artifact_bytes_max: 0,
            said_max: view::SAID_MAX,
        };
        let found = self.queries.run_snapshot(row.run, parts);
        let Some(snapshot) = found.await.map_err(failed)? else {
            return Ok(None);
        };
        for versions in snapshot.said.chunks(view::CHUNK) {
            let events = self.events_at(row.flow, versions.to_vec()).await?;
            let same = events.values().find(|recorded| {
                matches!(&*recorded.event, Event::MessageReceived(e) if hashes.contains(&e.body_hash))
            });
            if same.is_some() {
                // What followed from it stands behind it: everything up to the end of the run does.
                return Ok(Some(snapshot.run.status_position));
            }
        }
        Ok(None)
    }
}

/// What is wrong with what a run comes from.
fn faults_of(origin: &RunOrigin) -> Vec<Violation> {
    let mut faults = origin
        .message
        .as_ref()
        .map(message_faults)
        .unwrap_or_default();
    if let Some(context) = &origin.context {
        let chars = context.chars().count();
        if chars == 0 || chars > CONTEXT_CHARS_MAX {
            let expected = format!("1 to {CONTEXT_CHARS_MAX} characters");
            faults.push(Violation::of(
                "context_id",
                "is not valid",
                expected,
                &chars.into(),
            ));
        }
    }
    let references = origin.references.len();
    if references > REFERENCES_MAX {
        let expected = format!("at most {REFERENCES_MAX}");
        faults.push(Violation::of(
            "references",
            "too many",
            expected,
            &references.into(),
        ));
    }
    faults
}

fn message_faults(message: &Payload) -> Vec<Violation> {
    let bytes = message.as_str().len();
    if bytes <= RUN_MESSAGE_BYTES_MAX {
        return Vec::new();
    }
    let expected = format!("at most {RUN_MESSAGE_BYTES_MAX} bytes of JSON");
    vec![Violation::of(
        "message",
        "too large",
        expected,
        &bytes.into(),
    )]
}

/// What a stored question waits for.
fn asks(question: &Payload) -> Asks {
    let given = question.to_map().remove("asks");
    let read = given.and_then(|it| serde_json::from_value(it).ok());
    read.unwrap_or_default()
}

/// What is recorded of a message to a task that waits for credentials: who says it, under which name, and nothing of
/// what it says.
fn without_content(message_id: &str, message: &Payload) -> Payload {
    let role = message.to_map().remove("role").filter(Value::is_string);
    let mut kept = Map::new();
    kept.insert("messageId".to_owned(), message_id.into());
    kept.insert(
        "role".to_owned(),
        role.unwrap_or_else(|| "ROLE_USER".into()),
    );
    kept.insert("parts".to_owned(), json!([{"text": LEFT_OUT}]));
    Payload::from_map(&kept)
}

/// SHA-256 of a message and its name, in lower-case hexadecimal.
fn hash(message_id: &str, message: &Payload) -> String {
    let mut hash = Sha256::new();
    hash.update((message_id.len() as u64).to_le_bytes());
    hash.update(message_id.as_bytes());
    hash.update(message.as_str().as_bytes());
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        write!(hex, "{byte:02x}").expect("a string can always be written to");
    }
    hex
}
