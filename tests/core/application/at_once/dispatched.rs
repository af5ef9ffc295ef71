//! The same with the real dispatcher, over the embedded log.

use super::results;
use crate::application::script::SWIFT;
use crate::application::world::{caller, soon};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use taskledger::application::{App, ExecuteOptions, Target};
use taskledger::clock::SystemClock;
use taskledger::engine::executor::{
    AggregateResultsExecutor, Concurrency, Description, Executor, ExecutorError, Job, Registry,
};
use taskledger::server::Server;
use taskledger_domain::flow::{Event, FailureReason};
use taskledger_domain::task::call::parse_tasks;
use taskledger_domain::testing::id;
use taskledger_domain::{FlowId, Recorded};

/// Pure as it says; what it does with its inputs is not always.
struct Swift(AtomicUsize);

#[async_trait]
impl Executor for Swift {
    fn describe(&self) -> Description {
        Description {
            name: SWIFT.to_owned(),
            aliases: Vec::new(),
            summary: "Ends at once.".to_owned(),
            idempotent: true,
            pure: true,
            input_schema: Some(json!({"properties": {"x": {"type": "number"}}})),
            concurrency: Concurrency::Fixed(4),
        }
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        if job.inputs.contains_key("waits") {
            tokio::task::yield_now().await;
        }
        assert!(!job.inputs.contains_key("panics"), "as the task asks");
        if job.inputs.contains_key("fails") {
            job.progress.report(0.5);
            return Err(ExecutorError::new("as the task asks"));
        }
        Ok(json!({"name": job.name, "params": job.params, "from": job.dependencies.len()}))
    }
}

struct Running {
    server: Server,
    swift: Arc<Swift>,
}

impl Running {
    async fn at(folder: &Path) -> Self {
        let swift = Arc::new(Swift(AtomicUsize::new(0)));
        let registry = Registry::builder()
            .register(swift.clone())
            .and_then(|r| r.register(Arc::new(AggregateResultsExecutor)))
            .and_then(|r| r.build())
            .unwrap();
        let server = Server::open(folder, registry, Arc::new(SystemClock::default()))
            .await
            .unwrap();
        Self { server, swift }
    }

    fn app(&self) -> &App {
        self.server.app()
    }

    /// Runs a tree to its end, in so many appends.
    async fn run_in(&self, appends: u64, tasks: Value) -> Vec<Arc<Recorded>> {
        let before = self.appends();
        let history = self.run(tasks).await;
        assert_eq!(self.appends() - before, appends);
        history
    }

    fn appends(&self) -> u64 {
        self.app().store.commits()
    }

    /// Runs a tree to its end.
    async fn run(&self, tasks: Value) -> Vec<Arc<Recorded>> {
        let root = tasks[0]["id"].as_str().unwrap().to_owned();
        let list = parse_tasks(&tasks).expect("valid tasks");
        let caller = caller();
        let started = self
            .app()
            .execute(&caller, Target::New(list), ExecuteOptions::default());
        soon(started).await.unwrap();
        self.ended(FlowId::parse(&root).unwrap()).await
    }

    async fn ended(&self, flow: FlowId) -> Vec<Arc<Recorded>> {
        let mut head = self.app().store.watch();
        loop {
            head.mark_unchanged();
            let read = self.app().store.read_stream(flow, 0, 10_000, usize::MAX);
            let history = read.await.unwrap();
            let ends = |r: &Arc<Recorded>| matches!(*r.event, Event::RunEnded(_));
            if history.last().is_some_and(ends) {
                return history;
            }
            soon(head.changed()).await.expect("the log is open");
        }
    }

    fn calls(&self) -> usize {
        self.swift.0.load(Ordering::Relaxed)
    }
}

fn one(inputs: Value) -> Value {
    json!([{"id": id(&inputs.to_string()), "name": "one", "schemas": {"method": SWIFT}, "inputs": inputs}])
}

fn failure(history: &[Arc<Recorded>]) -> Option<(FailureReason, String)> {
    history.iter().find_map(|r| match r.event.as_ref() {
        Event::TaskFailed(e) => Some((e.reason, e.error.clone())),
        _ => None,
    })
}

#[tokio::test]
async fn results_of_the_same_turn_are_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path()).await;
    let leaf = |name: &str| json!({"id": id(name), "name": name, "schemas": {"method": SWIFT}, "params": {"of": name}});
    let all = json!({"id": id("all"), "name": "all", "schemas": {"method": "aggregate_results_executor"},
        "dependencies": [{"id": id("a")}, {"id": id("b")}]});
    let last = json!({"id": id("last"), "name": "last", "schemas": {"method": SWIFT}, "dependencies": [{"id": id("all")}]});
    let tree =
        json!([{"id": id("root"), "name": "root", "children": [leaf("a"), leaf("b"), all, last]}]);
    let history = w.run_in(1, tree).await;
    let results = results(&history);
    let of = |name: &str| {
        &results
            .iter()
            .find(|(task, _)| *task == id(name))
            .unwrap()
            .1
    };
    assert_eq!(
        of("a"),
        &json!({"name": "a", "params": {"of": "a"}, "from": 0})
    );
    assert_eq!(
        of("all")["by_name"]["b"]["result"]["params"],
        json!({"of": "b"})
    );
    assert_eq!(of("last")["from"], 1);
    w.server.close().await;
}

#[tokio::test]
async fn what_was_stored_before_is_taken_from_rows() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path()).await;
    let root = id("root");
    let children = json!([
        {"id": id("a"), "name": "a", "schemas": {"method": SWIFT}, "params": {"of": "a"}},
        {"id": id("b"), "name": "b", "schemas": {"method": SWIFT}, "dependencies": [{"id": id("a")}]}
    ]);
    let tree = json!([{"id": root, "name": "root", "children": children}]);
    let list = parse_tasks(&tree).unwrap();
    soon(w.app().create(&caller(), list)).await.unwrap();
    let before = w.appends();
    let caller = caller();
    let run = w
        .app()
        .execute(&caller, Target::Stored(root), ExecuteOptions::default());
    soon(run).await.unwrap();
    let history = w.ended(root.as_flow()).await;
    assert_eq!(
        results(&history)[0].1,
        json!({"name": "a", "params": {"of": "a"}, "from": 0})
    );
    assert_eq!(results(&history)[1].1["from"], 1);
    assert_eq!((w.calls(), w.appends() - before), (2, 1));
    w.server.close().await;
}

#[tokio::test]
async fn one_that_waits_after_all_is_launched_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path()).await;
    let history = w.run_in(2, one(json!({"waits": true}))).await;
    assert_eq!(results(&history).len(), 1);
    assert_eq!(
        w.calls(),
        2,
        "once in the turn, where it waited, and once by itself"
    );
    w.run_in(2, one(json!({}))).await;
    assert_eq!(w.calls(), 3, "it is not taken for pure again");
    w.server.close().await;
}

#[tokio::test]
async fn a_panic_and_a_failure_fail_the_task_only() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path()).await;
    let (reason, error) = failure(&w.run_in(1, one(json!({"panics": 1}))).await).unwrap();
    assert_eq!(reason, FailureReason::Executor);
    assert!(error.contains("panicked: as the task asks"), "{error}");
    let failed = failure(&w.run_in(1, one(json!({"fails": 1}))).await);
    assert_eq!(
        failed,
        Some((FailureReason::Executor, "as the task asks".to_owned()))
    );
    assert_eq!(w.run_in(1, one(json!({}))).await.len(), 5);
    w.server.close().await;
}

#[tokio::test]
async fn one_with_large_inputs_is_launched() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path()).await;
    let history = w.run_in(2, one(json!({"text": "x".repeat(100_000)}))).await;
    assert_eq!((results(&history).len(), w.calls()), (1, 1));
    w.server.close().await;
}

#[tokio::test]
async fn more_than_an_append_holds_all_end() {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path()).await;
    let child = |n: usize| json!({"id": id(&n.to_string()), "name": n.to_string(), "schemas": {"method": SWIFT}, "inputs": {"x": n}});
    let children: Vec<_> = (0..1500).map(child).collect();
    let history = w
        .run(json!([{"id": id("root"), "name": "root", "children": children}]))
        .await;
    assert_eq!((results(&history).len(), w.calls()), (1500 + 1, 1500));
    assert!(
        w.app()
            .flows
            .slots()
            .usage()
            .iter()
            .all(|(_, taken, _)| *taken == 0)
    );
    w.server.close().await;
}
