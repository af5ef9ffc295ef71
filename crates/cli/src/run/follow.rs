//! Starts a workflow and follows it until it has ended: by its events if each is shown, else by asking for its state.

use super::changes::{self, Changes};
use super::end::End;
use super::screen::Screen;
use crate::api::run_events::{Begun, News, RunEvents};
use crate::input::Params;
use crate::output::{Output, Style, Text, member};
use crate::tree::{self, Line};
use crate::watch::waits::{QUIET, Waits};
use crate::{Api, ApiError, CliError};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_clock::SharedClock;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How often to ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Before the second question.
    pub(super) first: Duration,
    /// At most, unless answers take long: then a fifth of the time is spent asking.
    pub(super) longest: Duration,
    /// How long it tries again when the connection is lost; a server may be restarting.
    pub(super) lost_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(50),
            longest: Duration::from_secs(1),
            lost_max: Duration::from_secs(15),
        }
    }
}

/// A workflow being followed.
pub(crate) struct Follow<'a> {
    pub(super) api: &'a dyn Api,
    pub(super) pace: Pace,
    /// One message for each Ctrl-C.
    pub(super) interrupts: mpsc::Receiver<()>,
    pub(super) screen: Screen,
    pub(super) clock: SharedClock,
}

/// A run that has begun, and what was made of it.
struct Begins {
    /// The task on which it hangs.
    root: String,
    /// The root of its flow.
    flow: String,
    waits: Waits,
    changed_at: Instant,
    /// What its tasks are waiting for since then.
    is_told: bool,
    cancelling: bool,
}

impl Begins {
    fn has_changed(&mut self, at: Instant) {
        (self.changed_at, self.is_told) = (at, false);
    }
}

impl Follow<'_> {
    /// Calls `method`, which begins a run, and follows it to its end. Writes the id first and how it ended last.
    pub(super) async fn begin(
        mut self,
        method: &str,
        params: Params,
        out: &mut Output,
    ) -> Result<End, CliError> {
        // The run of a stored task hangs on that task; of new tasks, on the root of their flow.
        let stored = params
            .get("task_id")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let params = Value::Object(params);
        let begun = match self.screen {
            Screen::Plain { .. } => self.api.begin(method, params).await?,
            // They show how it stands, and not what has happened.
            Screen::Silent | Screen::Live(_) => Begun {
                answer: self.api.call(method, params).await?,
                events: None,
            },
        };
        let flow = member(&begun.answer, "root_task_id");
        let root = stored.unwrap_or_else(|| flow.clone());
        if !out.is_json() {
            out.text(&Text::of(Style::Bold, "flow ").with(Style::Plain, flow.as_str()))?;
            crate::warnings::report(&begun.answer);
        }
        let mut run = Begins {
            root,
            flow,
            waits: Waits::default(),
            changed_at: Instant::now(),
            is_told: false,
            cancelling: false,
        };
        let ended = match begun.events {
            Some(events) => self.listen(events, &mut run, out).await,
            None => Ok(None),
        };
        let ended = match ended {
            // Nobody tells of it, or not any more.
            Ok(None) => self.ask(&mut run, out).await,
            Ok(Some(end)) => Ok(end),
            Err(error) => Err(error),
        };
        ended.map_err(|error| match self.api.is_in_process() {
            true => stopped_here(error),
            false => left_alone(error, &run.flow, out),
        })
    }

    /// Shows what happens until the run has ended; `None`: the events have ended before.
    async fn listen(
        &mut self,
        mut events: Box<dyn RunEvents>,
        run: &mut Begins,
        out: &mut Output,
    ) -> Result<Option<End>, CliError> {
        let mut changes = Changes::default();
        let mut lost: Option<(Instant, String)> = None;
        loop {
            let since = lost.as_ref().map_or_else(Instant::now, |(since, _)| *since);
            let is_quiet = !run.is_told && lost.is_none();
            tokio::select! {
                news = events.next() => match news? {
                    None => return Ok(None),
                    Some(News::Lost(reason)) => match &mut lost {
                        Some((_, latest)) => *latest = reason,
                        None => {
                            self.screen.remark(&format!("taskledger: {reason}; trying again"));
                            lost = Some((Instant::now(), reason));
                        }
                    },
                    Some(News::Found) => if lost.take().is_some() {
                        self.screen.remark("taskledger: reconnected, continuing after the last event");
                    },
                    Some(News::Event(event)) => {
                        run.has_changed(Instant::now());
                        if let Some(line) = changes.next(&event) {
                            self.screen.tell(&line, out)?;
                        }
                        if let Some(end) = changes::end(&event, &run.root) {
                            if let Some(lines) = self.ended(run, end, None, out).await? {
                                self.screen.has_told(&lines);
                                self.screen.finish(&lines, out)?;
                            }
                            return Ok(Some(end));
                        }
                    }
                },
                () = sleep_until(since + self.pace.lost_max), if lost.is_some() => {
                    let reason = lost.map(|(_, reason)| reason).unwrap_or_default();
                    return Err(ApiError::Connection(reason).into());
                }
                () = sleep_until(run.changed_at + QUIET), if is_quiet => {
                    if self.tell_waits(run, out).await? {
                        return Ok(Some(End::Cancelled));
                    }
                }
                Some(()) = self.interrupts.recv() => {
                    if self.is_left(run).await? {
                        return Ok(Some(End::Cancelled));
                    }
                }
            }
        }
    }

    /// Asks how it goes until the run has ended.
    async fn ask(&mut self, run: &mut Begins, out: &mut Output) -> Result<End, CliError> {
        let mut failing_since: Option<Instant> = None;
        let mut pause = self.pace.first;
        let mut latest = Value::Null;
        loop {
            let asked_at = Instant::now();
            let before = latest.clone();
            match self.look(&run.root, &mut latest, out).await {
                Ok(Some((end, task))) => {
                    if let Some(lines) = self.ended(run, end, Some(task), out).await? {
                        self.screen.finish(&lines, out)?;
                    }
                    return Ok(end);
                }
                Ok(None) => failing_since = None,
                Err(CliError::Api(error)) if error.is_passing() => {
                    let since = *failing_since.get_or_insert(asked_at);
                    if since.elapsed() >= self.pace.lost_max {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error),
            }
            if before != latest {
                run.has_changed(asked_at);
            } else if !run.is_told
                && run.changed_at.elapsed() >= QUIET
                && self.tell_waits(run, out).await?
            {
                return Ok(End::Cancelled);
            }
            pause = (pause * 3 / 2).min(self.pace.longest);
            let pause = pause.max(asked_at.elapsed() * 4);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Some(()) = self.interrupts.recv() => {
                    if self.is_left(run).await? {
                        return Ok(End::Cancelled);
                    }
                }
            }
        }
    }

    /// Says what the tasks are waiting for. Returns whether somebody has left meanwhile.
    async fn tell_waits(&mut self, run: &mut Begins, out: &Output) -> Result<bool, CliError> {
        let (api, asked_at) = (self.api, Instant::now());
        let tree = api.call("tasks.tree", json!({ "task_id": run.root }));
        let news = tokio::select! {
            news = run.waits.look(api, tree, out) => news,
            Some(()) = self.interrupts.recv() => return self.is_left(run).await,
        };
        // What was not answered is asked after the next pause.
        (run.changed_at, run.is_told) = (asked_at, news.is_complete);
        let sentences = news.sentences.iter();
        sentences.for_each(|text| self.screen.remark(text));
        Ok(false)
    }

    /// Somebody has pressed Ctrl-C: the first cancels the run, the second leaves it.
    async fn is_left(&mut self, run: &mut Begins) -> Result<bool, CliError> {
        if !std::mem::replace(&mut run.cancelling, true) {
            self.cancel(&run.root).await?;
            return Ok(false);
        }
        Ok(true)
    }

    /// How its tasks have ended, which programs are given whole. The run has ended so in any case: `None`, with a
    /// remark, if its tree could not be read for as long as a server may be restarting, or until Ctrl-C. Programs are
    /// then given `task`, on which the run hangs, without its children.
    async fn ended(
        &mut self,
        run: &Begins,
        end: End,
        task: Option<Value>,
        out: &mut Output,
    ) -> Result<Option<Vec<Line>>, CliError> {
        let asked_at = Instant::now();
        let (mut pause, mut is_told) = (self.pace.first, false);
        let reason = loop {
            let error = match self.tree(&run.root).await {
                Ok(tree) => {
                    if out.is_json() {
                        out.value(&tree)?;
                    }
                    return Ok(Some(tree::lines_at(&tree, self.clock.now())));
                }
                Err(error) => error,
            };
            // Nothing comes back inside this process.
            let is_final = !error.is_passing() || self.api.is_in_process();
            if is_final || asked_at.elapsed() >= self.pace.lost_max {
                break error.to_string();
            }
            if !std::mem::replace(&mut is_told, true) {
                let text = format!("taskledger: {error}; reading the tree again");
                self.screen.remark(&text);
            }
            pause = (pause * 3 / 2).min(self.pace.longest);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Some(()) = self.interrupts.recv() => break error.to_string(),
            }
        };
        let mut text = format!(
            "the run has {}, but its tree could not be read: {reason}",
            end.as_str()
        );
        if !self.api.is_in_process() {
            let tree = out.command(&format!("taskledger tasks tree {}", run.root));
            text.push_str(&format!("\n  when the server answers again: {tree}"));
        }
        self.screen.remark(&text);
        if let Some(task) = task.filter(|_| out.is_json()) {
            out.value(&json!({ "task": task }))?;
        }
        Ok(None)
    }

    /// Asks for the root, and for the tree when something has changed; says whether it has ended, and
    /// gives the root as it is then.
    async fn look(
        &mut self,
        root: &str,
        latest: &mut Value,
        out: &mut Output,
    ) -> Result<Option<(End, Value)>, CliError> {
        let task = self
            .api
            .call("tasks.get", json!({ "task_id": root }))
            .await?;
        let state = match task.get("run") {
            Some(run) if run.is_object() => member(run, "state"),
            Some(_) | None => member(&task, "status"),
        };
        if let Some(end) = End::parse(&state) {
            return Ok(Some((end, task)));
        }
        let seen = json!([task.get("run"), task.get("progress"), task.get("status")]);
        if *latest != seen {
            *latest = seen;
            if !matches!(self.screen, Screen::Silent) {
                let tree = self.tree(root).await?;
                let lines = tree::lines_at(&tree, self.clock.now());
                self.screen.show(&lines, out)?;
            }
        }
        Ok(None)
    }

    async fn tree(&self, root: &str) -> Result<Value, ApiError> {
        self.api
            .call("tasks.tree", json!({ "task_id": root }))
            .await
    }

    async fn cancel(&mut self, root: &str) -> Result<(), CliError> {
        self.screen
            .remark("cancelling; press Ctrl-C again to leave");
        let params =
            json!({"task_id": root, "cascade": true, "reason": "cancelled from the command line"});
        match self.api.call("tasks.cancel", params).await {
            Ok(_) => Ok(()),
            // Perhaps it ended in this moment; the next look will show.
            Err(error @ ApiError::Refused { .. }) => {
                self.screen.remark(&error.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A run goes on whose server cannot be reached any more.
fn left_alone(error: CliError, flow: &str, out: &Output) -> CliError {
    let CliError::Api(ApiError::Connection(text)) = error else {
        return error;
    };
    let watch = out.command(&format!("taskledger watch {flow}"));
    let text = format!(
        "{text}\n  the flow {flow} continues on the server, also after a restart; to follow it: {watch}"
    );
    ApiError::Connection(text).into()
}

/// An engine inside this process could not be read, and ends with it.
fn stopped_here(error: CliError) -> CliError {
    match error {
        CliError::Api(ApiError::Connection(text)) => CliError::Failed(text),
        error @ (CliError::Usage(_)
        | CliError::Api(_)
        | CliError::Failed(_)
        | CliError::Output(_)) => error,
    }
}

#[cfg(test)]
mod tests;
