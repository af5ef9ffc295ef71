//! How much work a stranger causes: the calls of the log that follow from naming a flow of somebody else, counted,
//! because times on a busy machine say nothing.
//!
//! They are not those of an id that nothing has: the flow is found before its owner is known, and loaded if it is not
//! in memory. But they do not depend on what the flow holds, and nothing is written.

use crate::application::world::{Make, World, soon, updates};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::mem;
use std::sync::{Arc, Mutex};
use taskledger::application::{Consistency, Context, ExecuteOptions, Target};
use taskledger::store::damage::DamageRegister;
use taskledger::store::{Append, ClaimKey, Error, EventStore, Outcome, Page, Resolution, Snapshot};
use taskledger::transport::jsonrpc::tree_json::{ChildrenJson, TreeJson};
use taskledger_auth::{Caller, Name, Scope, Scopes};
use taskledger_domain::testing::id;
use taskledger_domain::{EventId, FlowId, Position, Recorded, TaskId, Timestamp, Version};
use tokio::sync::watch;

/// Calls beyond those that an id which nothing has causes: the flow is loaded, by a snapshot and its events, and looked
/// at again.
const BEYOND_ABSENT_MAX: usize = 4;
/// Tasks of the large flow: with their events less than one piece of a stream.
const TASKS: usize = 60;

/// The calls of a log that concern a flow or a key, by name, in their order. What follows the log as a whole goes on
/// beside every call and is not among them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<&'static str>>>);

impl Calls {
    fn note(&self, name: &'static str) {
        self.0.lock().unwrap().push(name);
    }

    fn take(&self) -> Vec<&'static str> {
        mem::take(&mut self.0.lock().unwrap())
    }
}

/// A log whose calls are counted.
#[derive(Debug)]
pub(crate) struct Counted {
    log: Arc<dyn EventStore>,
    calls: Calls,
}

impl Counted {
    pub(crate) fn new(log: Arc<dyn EventStore>, calls: Calls) -> Self {
        Self { log, calls }
    }
}

#[async_trait]
impl EventStore for Counted {
    async fn append(&self, append: Append) -> Result<Outcome, Error> {
        self.calls.note("append");
        self.log.append(append).await
    }
    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        self.calls.note("resolve");
        self.log.resolve(stream, ids).await
    }
    async fn read_stream(
        &self,
        stream: FlowId,
        after: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.calls.note("read_stream");
        self.log.read_stream(stream, after, limit, bytes_max).await
    }
    async fn read_stream_back(
        &self,
        stream: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.calls.note("read_stream_back");
        let read = self.log.read_stream_back(stream, before, limit, bytes_max);
        read.await
    }
    async fn read_versions_within(
        &self,
        stream: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.calls.note("read_versions_within");
        let read = self.log.read_versions_within(stream, versions, bytes_max);
        read.await
    }
    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        self.log.read_all(after, limit).await
    }
    async fn head(&self) -> Result<Position, Error> {
        self.log.head().await
    }
    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error> {
        self.calls.note("stream_head");
        self.log.stream_head(stream).await
    }
    fn damage(&self) -> &DamageRegister {
        self.log.damage()
    }
    fn watch(&self) -> watch::Receiver<Position> {
        self.log.watch()
    }
    async fn claims(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        self.calls.note("claims");
        self.log.claims(keys, now).await
    }
    async fn raise_fence(&self, name: &str) -> Result<u64, Error> {
        self.log.raise_fence(name).await
    }
    async fn load_snapshot(&self, stream: FlowId, format: u32) -> Result<Option<Snapshot>, Error> {
        self.calls.note("load_snapshot");
        self.log.load_snapshot(stream, format).await
    }
    async fn save_snapshot(&self, stream: FlowId, snapshot: Snapshot) -> Result<(), Error> {
        self.calls.note("save_snapshot");
        self.log.save_snapshot(stream, snapshot).await
    }
}

/// Somebody who may do everything with flows of his own.
fn user(name: &str) -> Context {
    let name = Name::new(name).unwrap();
    let scopes = Scopes::all().without(Scope::UsersAny);
    Context::of(Arc::new(Caller::user(&name, scopes)), Arc::from("request"))
}

/// Whatever a caller can do to a task by its id.
#[derive(Debug, Clone, Copy)]
enum Ask {
    Get,
    Tree,
    Children,
    Explain,
    Update,
    Delete,
    Cancel,
    Copy,
    Execute,
    Retry,
    CreateBelow,
}

const ASKS: [Ask; 11] = [
    Ask::Get,
    Ask::Tree,
    Ask::Children,
    Ask::Explain,
    Ask::Update,
    Ask::Delete,
    Ask::Cancel,
    Ask::Copy,
    Ask::Execute,
    Ask::Retry,
    Ask::CreateBelow,
];

impl Ask {
    /// Bob asks; he is refused.
    async fn refused(self, w: &World, task: TaskId) {
        let strong = Consistency::Strong;
        let bob = user("bob");
        let asked = match self {
            Self::Get => w.call(move |app| async move { app.get(&bob, task, strong).await }),
            Self::Tree => w.call(move |app| async move {
                app.tree(&bob, task, strong, TreeJson::default()).await
            }),
            Self::Children => w.call(move |app| async move {
                app.children(&bob, task, strong, ChildrenJson::default())
                    .await
            }),
            Self::Explain => w.call(move |app| async move { app.explain(&bob, task).await }),
            Self::Update => w.call(move |app| async move {
                app.update(&bob, task, updates(json!({"name": "x"}))).await
            }),
            Self::Delete => w.call(move |app| async move { app.delete(&bob, task, true).await }),
            Self::Cancel => {
                w.call(move |app| async move { app.cancel(&bob, task, true, None).await })
            }
            Self::Copy => w.call(move |app| async move { app.copy(&bob, task, true, None).await }),
            Self::Execute => w.call(move |app| async move {
                let options = ExecuteOptions::default();
                app.execute(&bob, Target::Stored(task), options).await
            }),
            Self::Retry => {
                w.call(
                    move |app| async move { app.retry(&bob, task, Default::default(), None).await },
                )
            }
            Self::CreateBelow => w.create(bob, json!({"name": "x", "parent_id": task.to_string()})),
        };
        let asked: Result<Value, _> = soon(asked).await.unwrap();
        assert!(asked.is_err(), "{self:?}: {asked:?}");
    }
}

/// The calls of the log that a question of Bob leads to: when nothing is in memory, and when it is asked again.
async fn caused(w: &World, ask: Ask, task: TaskId) -> [Vec<&'static str>; 2] {
    let calls = Calls::default();
    let make = Make {
        calls: Some(calls.clone()),
        ..Make::default()
    };
    let mut cold = w.beside(make).await;
    cold.run_read_models();
    // His own read waits until the read models show what there is.
    let bob = user("bob");
    let seen =
        cold.call(move |app| async move { app.get(&bob, id("own"), Consistency::Strong).await });
    assert!(soon(seen).await.unwrap().is_ok());
    calls.take();
    ask.refused(&cold, task).await;
    let first = calls.take();
    ask.refused(&cold, task).await;
    [first, calls.take()]
}

async fn given_flow(w: &World, owner: &str, root: &str, tasks: usize) {
    let children: Vec<_> = (1..tasks)
        .map(|n| json!({"name": format!("{root} {n}"), "inputs": {"text": "x".repeat(1_000)}}))
        .collect();
    let params = json!({"id": id(root), "name": root, "children": children});
    let created = w.create(user(owner), params);
    assert!(soon(created).await.unwrap().is_ok());
}

#[tokio::test]
async fn what_a_stranger_causes_does_not_depend_on_the_flow() {
    let w = World::new().await;
    given_flow(&w, "ann", "small", 1).await;
    given_flow(&w, "ann", "large", TASKS).await;
    given_flow(&w, "bob", "own", 1).await;
    for ask in ASKS {
        let small = caused(&w, ask, id("small")).await;
        let large = caused(&w, ask, id("large")).await;
        assert_eq!(small, large, "{ask:?}");
        if matches!(ask, Ask::Update) {
            assert!(
                !large[0].is_empty(),
                "calls are counted: the flow is loaded"
            );
        }
        let absent = caused(&w, ask, id("absent")).await;
        for (foreign, absent) in large.iter().zip(&absent) {
            let told = format!("{ask:?}: {foreign:?}, of what is absent {absent:?}");
            assert!(foreign.len() <= absent.len() + BEYOND_ABSENT_MAX, "{told}");
            assert!(
                !foreign.contains(&"append") && !absent.contains(&"append"),
                "{told}"
            );
        }
    }
}
