//! Starts a workflow and asks how it goes until it has ended.

use super::screen::Screen;
use crate::input::Params;
use crate::output::{Output, Style, Text, member};
use crate::watch::waits::{QUIET, Waits};
use crate::{Api, ApiError, CliError, tree};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_clock::SharedClock;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How often to ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Before the second question.
    pub(super) first: Duration,
    /// At most, unless answers take long: then a fifth of the time is spent asking.
    pub(super) longest: Duration,
    /// Failed questions in a row before it gives up; a server may be restarting.
    pub(super) failures_max: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(50),
            longest: Duration::from_secs(1),
            failures_max: 10,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Failed,
    Cancelled,
}

impl End {
    /// Reads a state; `None` while it runs.
    pub(crate) fn parse(state: &str) -> Option<Self> {
        match state {
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// The exit code of `run`.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Cancelled => 3,
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
        let started = self.api.call(method, Value::Object(params)).await?;
        let root = stored.unwrap_or_else(|| member(&started, "root_task_id"));
        if !out.is_json() {
            out.text(&Text::of(Style::Bold, "flow ").with(Style::Plain, root.as_str()))?;
        }
        let mut failures = 0;
        let mut pause = self.pace.first;
        let mut latest = Value::Null;
        let mut cancelling = false;
        let mut waits = Waits::default();
        let (mut changed_at, mut is_told) = (Instant::now(), false);
        loop {
            let asked_at = Instant::now();
            let before = latest.clone();
            match self.look(&root, &mut latest, out).await {
                Ok(Some(end)) => {
                    let tree = self.tree(&root).await?;
                    let lines = tree::lines_at(&tree, self.clock.now());
                    self.screen.finish(&lines, out)?;
                    if out.is_json() {
                        out.value(&tree)?;
                    }
                    return Ok(end);
                }
                Ok(None) => failures = 0,
                Err(CliError::Api(error))
                    if is_passing(&error) && failures < self.pace.failures_max =>
                {
                    failures += 1;
                }
                Err(error) => return Err(error),
            }
            if before != latest {
                (changed_at, is_told) = (asked_at, false);
            } else if !is_told && changed_at.elapsed() >= QUIET {
                let api = self.api;
                let tree = api.call("tasks.tree", json!({ "task_id": root }));
                let news = tokio::select! {
                    news = waits.look(api, tree, out) => Some(news),
                    Some(()) = self.interrupts.recv() => None,
                };
                match news {
                    Some(news) => {
                        // What was not answered is asked after the next pause.
                        (changed_at, is_told) = (Instant::now(), news.is_complete);
                        news.sentences
                            .iter()
                            .for_each(|text| self.screen.remark(text));
                    }
                    None if cancelling => return Ok(End::Cancelled),
                    None => {
                        cancelling = true;
                        self.cancel(&root).await?;
                    }
                }
            }
            pause = (pause * 3 / 2).min(self.pace.longest);
            let pause = pause.max(asked_at.elapsed() * 4);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Some(()) = self.interrupts.recv() => {
                    if cancelling {
                        return Ok(End::Cancelled);
                    }
                    cancelling = true;
                    self.cancel(&root).await?;
                }
            }
        }
    }

    /// Asks for the root, and for the tree when something has changed; says whether it has ended.
    async fn look(
        &mut self,
        root: &str,
        latest: &mut Value,
        out: &mut Output,
    ) -> Result<Option<End>, CliError> {
        let task = self
            .api
            .call("tasks.get", json!({ "task_id": root }))
            .await?;
        let state = match task.get("run") {
            Some(run) if run.is_object() => member(run, "state"),
            Some(_) | None => member(&task, "status"),
        };
        if let Some(end) = End::parse(&state) {
            return Ok(Some(end));
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

    async fn tree(&self, root: &str) -> Result<Value, CliError> {
        Ok(self
            .api
            .call("tasks.tree", json!({ "task_id": root }))
            .await?)
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

/// Whether the same question may be answered a moment later.
pub(crate) fn is_passing(error: &ApiError) -> bool {
    match error {
        ApiError::Connection(_) => true,
        ApiError::Refused { code, .. } => *code == -32013,
        ApiError::Denied { .. } | ApiError::Protocol(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use std::sync::Mutex;
    use taskledger_terminal::testing::Buffer;

    /// Plays a run: each `tasks.get` moves it on by one state.
    #[derive(Default)]
    struct Script {
        states: Mutex<Vec<Result<&'static str, ApiError>>>,
        calls: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl Api for Script {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            let id = params
                .get("task_id")
                .map(Value::to_string)
                .unwrap_or_default();
            self.calls.lock().unwrap().push(format!("{method} {id}"));
            let state = |s: &Vec<Result<&'static str, ApiError>>| s.first().cloned();
            let mut states = self.states.lock().unwrap();
            match method {
                "tasks.execute" => Ok(json!({"root_task_id": "r", "status": "started"})),
                "tasks.get" => {
                    let now = if states.len() > 1 {
                        states.remove(0)
                    } else {
                        state(&states).unwrap()
                    };
                    now.map(|state| json!({"id": "r", "status": "pending", "run": {"state": state, "counts": states.len()}}))
                }
                "tasks.tree" => {
                    let status = match state(&states) {
                        Some(Ok("running")) => "in_progress",
                        Some(Ok(state)) => state,
                        Some(Err(_)) | None => "pending",
                    };
                    Ok(
                        json!({"task": {"id": "r", "name": "root", "status": status}, "children": []}),
                    )
                }
                _ => Ok(Value::Null),
            }
        }
    }

    struct Played {
        end: Result<End, CliError>,
        shown: String,
        calls: Vec<String>,
    }

    async fn play(
        states: Vec<Result<&'static str, ApiError>>,
        interrupts: usize,
        params: Value,
        json: bool,
    ) -> Played {
        let script = Script {
            states: Mutex::new(states),
            ..Script::default()
        };
        let (sender, receiver) = mpsc::channel(2);
        for _ in 0..interrupts {
            sender.send(()).await.unwrap();
        }
        let buffer = Buffer::default();
        let mut out = Output::to(Box::new(buffer.clone()), json, false);
        let follow = Follow {
            api: &script,
            pace: Pace {
                first: Duration::ZERO,
                longest: Duration::ZERO,
                failures_max: 2,
            },
            interrupts: receiver,
            screen: Screen::for_output(&out),
            clock: crate::clock(),
        };
        let params = params.as_object().unwrap().clone();
        let end = follow.begin("tasks.execute", params, &mut out).await;
        let shown = buffer.text();
        let calls = script.calls.lock().unwrap().clone();
        Played { end, shown, calls }
    }

    #[tokio::test]
    async fn a_pipe_gets_a_line_for_each_change_and_the_final_tree() {
        let states = vec![Ok("running"), Ok("running"), Ok("completed")];
        let played = play(states, 0, json!({"tasks": []}), false).await;
        assert_eq!(played.end.unwrap(), End::Completed);
        assert_eq!(
            played.shown,
            "flow r\n▸ root  in_progress  (r)\n✓ root  completed  (r)\n✓ root  completed\n"
        );
    }

    #[tokio::test]
    async fn a_program_gets_only_the_final_tree() {
        let played = play(
            vec![Ok("running"), Ok("failed")],
            0,
            json!({"tasks": []}),
            true,
        )
        .await;
        assert_eq!(played.end.unwrap(), End::Failed);
        assert_eq!(
            serde_json::from_str::<Value>(&played.shown).unwrap()["task"]["status"],
            "failed"
        );
    }

    #[tokio::test]
    async fn a_stored_task_is_followed_itself_and_not_the_root_of_its_flow() {
        let played = play(vec![Ok("completed")], 0, json!({"task_id": "t"}), false).await;
        assert_eq!(
            played.calls,
            ["tasks.execute \"t\"", "tasks.get \"t\"", "tasks.tree \"t\""]
        );
    }

    #[tokio::test]
    async fn a_failure_that_passes_is_survived_and_one_that_stays_is_not() {
        let lost = || Err(ApiError::Connection("lost".to_owned()));
        let states = vec![lost(), lost(), Ok("running"), lost(), Ok("cancelled")];
        let played = play(states, 0, json!({"tasks": []}), false).await;
        assert_eq!(played.end.unwrap(), End::Cancelled);
        let played = play(vec![lost()], 0, json!({"tasks": []}), false).await;
        assert!(matches!(
            played.end,
            Err(CliError::Api(ApiError::Connection(_)))
        ));
    }

    /// A server whose run goes on and whose trees do not come.
    struct Stuck;

    #[async_trait]
    impl Api for Stuck {
        async fn call(&self, method: &str, _params: Value) -> Result<Value, ApiError> {
            match method {
                "tasks.execute" => Ok(json!({"root_task_id": "r"})),
                "tasks.get" => Ok(json!({"id": "r", "run": {"state": "running"}})),
                "tasks.tree" => std::future::pending().await,
                _ => Ok(Value::Null),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_interrupt_does_not_wait_for_a_server_that_is_asked_why_nothing_runs() {
        let (sender, interrupts) = mpsc::channel(2);
        let mut out = Output::to(Box::new(Buffer::default()), true, false);
        let follow = Follow {
            api: &Stuck,
            pace: Pace::default(),
            interrupts,
            screen: Screen::for_output(&out),
            clock: crate::clock(),
        };
        let begun = Instant::now();
        let pressed = async {
            // In the middle of the look.
            tokio::time::sleep(QUIET + Duration::from_secs(1)).await;
            sender.send(()).await.unwrap();
            sender.send(()).await.unwrap();
        };
        let params = json!({"tasks": []}).as_object().unwrap().clone();
        let (end, ()) = tokio::join!(follow.begin("tasks.execute", params, &mut out), pressed);
        assert_eq!(end.unwrap(), End::Cancelled);
        assert!(begun.elapsed() < QUIET + Duration::from_millis(1_100));
    }

    #[tokio::test]
    async fn an_interrupt_cancels_once_and_a_second_one_leaves() {
        let played = play(vec![Ok("running")], 2, json!({"tasks": []}), false).await;
        assert_eq!(played.end.unwrap(), End::Cancelled);
        let cancels = played
            .calls
            .iter()
            .filter(|call| call.starts_with("tasks.cancel"));
        assert_eq!(cancels.count(), 1);
    }
}
