//! The real dispatcher, end to end over the embedded log.

use crate::application::shown::Shown;
use crate::application::world::{caller, metadata, soon, updates};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use taskledger::application::{App, Consistency, Error, ExecuteOptions, Target};
use taskledger::clock::SystemClock;
use taskledger::engine::executor::{
    BuiltInOptions, Concurrency, Description, Executor, ExecutorError, Job, Registry,
    with_built_ins,
};
use taskledger::server::Server;
use taskledger_auth::SecretName;
use taskledger_domain::codec::kind;
use taskledger_domain::flow::{Event, FailureReason};
use taskledger_domain::task::call::parse_tasks;
use taskledger_domain::testing::id;
use taskledger_domain::{FlowId, Recorded};
use tokio::sync::{Semaphore, mpsc};

mod wiring;

/// Says that it was called, then waits until it is let go or stopped.
struct Gate {
    called: mpsc::UnboundedSender<u32>,
    open: Arc<Semaphore>,
    idempotent: bool,
}

#[async_trait]
impl Executor for Gate {
    fn describe(&self) -> Description {
        Description {
            name: "gate".to_owned(),
            aliases: vec!["door".to_owned()],
            summary: "Waits until the test opens it.".to_owned(),
            idempotent: self.idempotent,
            pure: false,
            input_schema: Some(json!({"properties": {"x": {"type": "number"}}})),
            concurrency: Concurrency::Fixed(1),
        }
    }

    fn secrets(&self, inputs: &Map<String, Value>) -> Vec<SecretName> {
        let named = inputs.get("key").and_then(|key| key["$secret"].as_str());
        named
            .and_then(|name| SecretName::new(name).ok())
            .into_iter()
            .collect()
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        job.progress.report(0.5);
        let _ = self.called.send(job.attempt);
        tokio::select! {
            permit = self.open.acquire() => permit.expect("the gate is never closed for good").forget(),
            () = job.cancel.cancelled() => return Err(ExecutorError::new("stopped")),
        }
        assert!(job.name != "panics", "as the task asks");
        Ok(json!({"attempt": job.attempt, "inputs": job.inputs}))
    }
}

struct Running {
    server: Server,
    called: mpsc::UnboundedReceiver<u32>,
    open: Arc<Semaphore>,
}

impl Running {
    async fn at(folder: &Path, idempotent: bool) -> Self {
        let (sender, called) = mpsc::unbounded_channel();
        let open = Arc::new(Semaphore::new(0));
        let gate = Gate {
            called: sender,
            open: open.clone(),
            idempotent,
        };
        let built_ins = with_built_ins(
            Registry::builder(),
            BuiltInOptions {
                disk_path: None,
                command: None,
                egress: None,
            },
        )
        .unwrap();
        let registry = built_ins.register(Arc::new(gate)).unwrap().build().unwrap();
        let server = Server::open(folder, registry, Arc::new(SystemClock::default()))
            .await
            .unwrap();
        Self {
            server,
            called,
            open,
        }
    }

    fn app(&self) -> &App {
        self.server.app()
    }

    async fn execute(&self, tasks: Value) -> Result<(), Error> {
        let list = parse_tasks(&tasks).expect("valid tasks");
        let caller = caller();
        let started = self
            .app()
            .execute(&caller, Target::New(list), ExecuteOptions::default());
        soon(started).await.map(drop)
    }

    async fn history(&self, flow: FlowId) -> Vec<Arc<Recorded>> {
        self.app()
            .store
            .read_stream(flow, 0, 10_000, usize::MAX)
            .await
            .unwrap()
    }

    /// Waits until the log holds an event of this kind for the flow.
    async fn until(&self, name: &str, event: &str) -> Vec<Arc<Recorded>> {
        let (flow, mut head) = (id(name).as_flow(), self.app().store.watch());
        loop {
            head.mark_unchanged();
            let history = self.history(flow).await;
            if history.iter().any(|r| kind(&r.event) == event) {
                return history;
            }
            soon(head.changed()).await.expect("the log is open");
        }
    }

    /// What a reader sees once the mailbox of the flow has told readers what is in the log.
    async fn get(&self, name: &str) -> Value {
        let flow = self
            .app()
            .directory
            .flow_of(id(name))
            .await
            .unwrap()
            .expect("the task exists");
        soon(
            self.app()
                .flows
                .look(flow, metadata("look"), |f| f.version()),
        )
        .await
        .unwrap();
        let task = soon(self.app().get(&caller(), id(name), Consistency::Strong)).await;
        task.expect("the task exists").shown().await
    }
}

fn gate(name: &str) -> Value {
    json!({"id": id(name), "name": name, "schemas": {"method": "gate"}})
}

fn failure(history: &[Arc<Recorded>]) -> Option<(FailureReason, String)> {
    history.iter().find_map(|r| match r.event.as_ref() {
        Event::TaskFailed(e) => Some((e.reason, e.error.clone())),
        _ => None,
    })
}

#[tokio::test]
async fn a_chain_of_echoes_hands_results_on_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path(), true).await;
    let echo = |name: &str, on: &[&str]| {
        let on: Vec<_> = on.iter().map(|n| json!({"id": id(n)})).collect();
        json!({"id": id(name), "name": name, "schemas": {"method": "echo_executor"}, "inputs": {"from": name}, "dependencies": on})
    };
    let all = json!({"id": id("all"), "name": "all", "schemas": {"method": "aggregate_results_executor"}, "dependencies": [{"id": id("a")}, {"id": id("c")}]});
    let children = [echo("a", &[]), echo("b", &["a"]), echo("c", &["b"]), all];
    w.execute(json!([{"id": id("root"), "name": "root", "children": children}]))
        .await
        .unwrap();
    w.until("root", "RunEnded").await;
    let all = w.get("all").await;
    assert_eq!(all["status"], "completed");
    assert!(all["result"].to_string().contains(r#""from":"c""#), "{all}");
    assert_eq!(w.get("root").await["run"]["state"], "completed");
    w.server.close().await;
}

#[tokio::test]
async fn a_slot_is_handed_on_when_an_executor_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = Running::at(folder.path(), true).await;
    w.execute(json!([gate("a")])).await.unwrap();
    w.execute(json!([{"id": id("b"), "name": "b", "schemas": {"method": "door"}}]))
        .await
        .unwrap();
    assert_eq!(soon(w.called.recv()).await, Some(1));
    assert!(w.called.try_recv().is_err(), "one slot, under either name");
    w.open.add_permits(2);
    assert_eq!(soon(w.called.recv()).await, Some(1));
    w.until("b", "RunEnded").await;
    w.server.close().await;
}

#[tokio::test]
async fn a_cancelled_task_stops_its_executor_and_frees_the_slot() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = Running::at(folder.path(), true).await;
    w.execute(json!([gate("a")])).await.unwrap();
    soon(w.called.recv()).await;
    soon(w.app().cancel(&caller(), id("a"), false, None))
        .await
        .unwrap();
    w.execute(json!([gate("b")])).await.unwrap();
    soon(w.called.recv()).await;
    w.open.add_permits(1);
    w.until("b", "RunEnded").await;
    assert_eq!(w.get("a").await["status"], "cancelled");
    w.server.close().await;
}

#[tokio::test]
async fn an_executor_that_panics_fails_its_task_only() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path(), true).await;
    w.open.add_permits(2);
    w.execute(json!([{"id": id("a"), "name": "panics", "schemas": {"method": "gate"}}]))
        .await
        .unwrap();
    let history = w.until("a", "RunEnded").await;
    assert_eq!(
        failure(&history).map(|f| f.0),
        Some(FailureReason::Executor)
    );
    w.execute(json!([gate("b")])).await.unwrap();
    w.until("b", "TaskCompleted").await;
    w.server.close().await;
}

#[tokio::test]
async fn inputs_are_checked_against_the_executor_s_schema_again_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = Running::at(folder.path(), true).await;
    let bad = json!([{"id": id("a"), "name": "a", "schemas": {"method": "gate"}, "inputs": {"x": "text"}}]);
    assert!(matches!(w.execute(bad).await, Err(Error::Refused(_))));
    // The task changes while it waits for the slot; what runs is what it says now.
    w.execute(json!([gate("first")])).await.unwrap();
    soon(w.called.recv()).await;
    w.execute(json!([gate("a")])).await.unwrap();
    soon(
        w.app()
            .update(&caller(), id("a"), updates(json!({"inputs": {"x": 7}}))),
    )
    .await
    .unwrap();
    w.open.add_permits(2);
    w.until("a", "RunEnded").await;
    assert_eq!(w.get("a").await["result"]["inputs"], json!({"x": 7}));
    w.server.close().await;
}

#[tokio::test]
async fn a_restart_runs_an_idempotent_attempt_again_without_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = Running::at(folder.path(), true).await;
    w.execute(json!([gate("a")])).await.unwrap();
    assert_eq!(soon(w.called.recv()).await, Some(1));
    w.server.close().await;
    let mut w = Running::at(folder.path(), true).await;
    assert_eq!(
        soon(w.called.recv()).await,
        Some(2),
        "the reconciler found the open run"
    );
    w.open.add_permits(1);
    let history = w.until("a", "RunEnded").await;
    assert_eq!(
        failure(&history).map(|f| f.0),
        Some(FailureReason::Interrupted)
    );
    assert_eq!(w.get("a").await["result"]["attempt"], 2);
    w.server.close().await;
}

#[tokio::test]
async fn a_restart_ends_an_attempt_that_must_not_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = Running::at(folder.path(), false).await;
    w.execute(json!([gate("a")])).await.unwrap();
    soon(w.called.recv()).await;
    w.server.close().await;
    let mut w = Running::at(folder.path(), false).await;
    let history = w.until("a", "RunEnded").await;
    let interrupted = "interrupted by a restart of the server".to_owned();
    assert_eq!(
        failure(&history),
        Some((FailureReason::Interrupted, interrupted))
    );
    assert!(w.called.try_recv().is_err());
    w.server.close().await;
}

#[tokio::test]
async fn progress_is_recorded_and_seen() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path(), true).await;
    w.execute(json!([gate("a")])).await.unwrap();
    w.until("a", "TaskProgressed").await;
    assert_eq!(w.get("a").await["progress"], 0.5);
    w.open.add_permits(1);
    w.until("a", "RunEnded").await;
    assert_eq!(w.get("a").await["progress"], 1.0);
    w.server.close().await;
}
