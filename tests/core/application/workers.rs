//! What a server knows of workers outside of it: which methods there are, who asks for them, who is drained.

use serde_json::json;
use std::sync::Arc;
use taskledger::application::ports::{
    ASKED_FOR_MS, AskRefusal, Asking, Asks, DeclareRefusal, ExecutorSnapshot, Renewal, Renewals,
    Standing, Workers,
};
use taskledger::clock::{Clock, ManualClock, SystemClock};
use taskledger::engine::executor::{BuiltInOptions, Registry, with_built_ins};
use taskledger::engine::workers::StoredRenewals;
use taskledger::engine::{ExecutorDirectory, WorkerRegistry};
use taskledger_auth::Reach;
use taskledger_domain::testing::START;
use taskledger_domain::{FlowId, LeaseId, Payload, TaskId};
use taskledger_workers::{Connection, Method, Refusal, Rights, WorkerStore};
use tempfile::TempDir;
use uuid::Uuid;

const ANN: &str = "user:ann";
const SECOND: u64 = 1_000;

struct World {
    folder: TempDir,
    clock: Arc<ManualClock>,
    store: Arc<WorkerStore>,
}

/// A server with its directory.
struct Node {
    directory: Arc<ExecutorDirectory>,
    registry: Arc<WorkerRegistry>,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = WorkerStore::of_folder(folder.path()).await.unwrap();
        Self {
            folder,
            clock: Arc::new(ManualClock::at(START)),
            store: Arc::new(store),
        }
    }

    /// A server that is alone, or one of several on the same store.
    async fn node(&self, id: Option<Uuid>) -> Node {
        let builder = with_built_ins(Registry::builder(), BuiltInOptions::default());
        let registry = builder.unwrap().build().unwrap();
        let directory = Arc::new(ExecutorDirectory::new(registry));
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let registry = WorkerRegistry::open(store, directory.clone(), clock, id).await;
        Node {
            directory,
            registry: registry.unwrap(),
        }
    }
}

impl Node {
    fn ask(&self, worker: &str, methods: &[&str]) -> Result<(), AskRefusal> {
        let methods: Vec<Arc<str>> = methods.iter().map(|method| Arc::from(*method)).collect();
        self.registry.asked(&Asks {
            worker,
            principal: ANN,
            owner: None,
            methods: &methods,
            connection: Connection::Poll,
        })
    }

    fn standing(&self, method: &str) -> Standing {
        Standing::of(&*self.directory.newest(), method)
    }

    fn number(&self) -> u64 {
        self.directory.newest().number()
    }

    /// `principal worker` of those that ask now.
    fn there(&self) -> Vec<String> {
        let workers = self.registry.workers();
        let shown = workers
            .iter()
            .map(|w| format!("{} {}", w.principal, w.worker));
        shown.collect()
    }
}

fn method(name: &str) -> Method {
    Method {
        owner: None,
        name: Arc::from(name),
        description: None,
        input_schema: None,
        output_schema: None,
        defaults: None,
        limit: None,
        declared_by: Arc::from(ANN),
        declared_at: START,
    }
}

fn object(value: &serde_json::Value) -> Option<Payload> {
    value.as_object().map(Payload::from_map)
}

#[tokio::test]
async fn a_method_is_known_for_a_minute_after_a_worker_last_asked() {
    let w = World::new().await;
    let node = w.node(None).await;
    assert_eq!(node.standing("scrape"), Standing::Unknown);
    node.ask("w1", &["scrape"]).unwrap();
    assert_eq!(node.standing("scrape"), Standing::Remote);
    w.clock.advance_ms(ASKED_FOR_MS - 1);
    node.registry.sweep();
    assert_eq!(node.standing("scrape"), Standing::Remote);
    node.ask("w1", &["scrape"]).unwrap();
    w.clock.advance_ms(ASKED_FOR_MS - 1);
    node.registry.sweep();
    assert_eq!(
        (node.standing("scrape"), node.there().len()),
        (Standing::Remote, 1)
    );
    let last = w.clock.now();
    w.clock.advance_ms(1);
    node.registry.sweep();
    assert_eq!(
        (node.standing("scrape"), node.there().len()),
        (Standing::Unknown, 0)
    );
    assert!(node.registry.methods(&Reach::All).is_empty());
    let asked = node.registry.last_asked_at("scrape", None).unwrap();
    assert_eq!(last.ms_since(asked), ASKED_FOR_MS - 1);
    w.clock.advance_ms(24 * 3_600 * SECOND);
    node.registry.sweep();
    assert_eq!(node.registry.last_asked_at("scrape", None), None);
}

#[tokio::test]
async fn the_directory_changes_when_the_set_of_methods_does_and_not_with_each_claim() {
    let w = World::new().await;
    let node = w.node(None).await;
    let before = node.number();
    for worker in ["w1", "w2", "w1"] {
        node.ask(worker, &["resize", "scrape"]).unwrap();
        w.clock.advance_ms(SECOND);
        node.registry.sweep();
    }
    assert_eq!(node.number(), before + 1);
    node.ask("w3", &["translate"]).unwrap();
    assert_eq!(node.number(), before + 2);
    node.registry.left("w3", ANN);
    assert_eq!(node.there(), ["user:ann w1", "user:ann w2"]);
    assert_eq!(node.standing("translate"), Standing::Remote);
    let shown = node.registry.methods(&Reach::All).into_iter();
    let shown: Vec<_> = shown.map(|m| (m.key.name.to_string(), m.workers)).collect();
    let expected = [("resize", 2), ("scrape", 2), ("translate", 0)];
    assert_eq!(
        shown,
        expected.map(|(name, workers)| (name.to_owned(), workers))
    );
}

#[tokio::test]
async fn a_worker_that_fell_silent_is_told_from_one_that_asks_and_from_a_drained_one() {
    let w = World::new().await;
    let node = w.node(None).await;
    let asking = |now, drained| Asking {
        now,
        drained,
        takes_all: now > 0,
    };
    for worker in ["silent", "there", "drained"] {
        node.ask(worker, &["resize"]).unwrap();
    }
    node.ask("other", &["scrape"]).unwrap();
    assert_eq!(node.registry.asking("resize", None), asking(3, 0));
    let drained = node.registry.drain("drained", ANN, true).await;
    drained.unwrap().unwrap();
    assert_eq!(node.registry.drained("drained"), [Arc::from(ANN)]);
    w.clock.advance_ms(25 * SECOND);
    node.ask("there", &["resize"]).unwrap();
    assert_eq!(node.registry.asking("resize", None), asking(1, 1));
    node.registry.left("there", ANN);
    assert_eq!(node.registry.asking("resize", None), asking(0, 1));
    w.clock.advance_ms(35 * SECOND);
    assert_eq!(node.registry.asking("resize", None), asking(0, 0));
}

#[tokio::test]
async fn what_is_built_in_can_be_neither_asked_for_nor_declared() {
    let w = World::new().await;
    let node = w.node(None).await;
    let before = node.number();
    let name = Arc::from("echo_executor");
    let refused = node.ask("w1", &["scrape", "echo_executor"]);
    let method_of = |method: &Arc<str>| AskRefusal::BuiltIn {
        method: method.clone(),
    };
    assert_eq!(refused, Err(method_of(&name)));
    let declared = node
        .registry
        .declare(method("echo_executor"), Rights::All)
        .await;
    assert_eq!(
        declared.unwrap(),
        Err(DeclareRefusal::BuiltIn { method: name })
    );
    for blank in ["", "  ", &"x".repeat(256)] {
        let refused = node.ask("w1", &[blank]);
        assert!(
            matches!(refused, Err(AskRefusal::InvalidName { .. })),
            "{blank}"
        );
    }
    assert_eq!((node.number(), node.there().len()), (before, 0));
}

#[tokio::test]
async fn a_declared_method_is_there_without_workers_and_after_a_restart() {
    let w = World::new().await;
    let node = w.node(None).await;
    let full = Method {
        input_schema: object(&json!({"type": "object", "required": ["url"]})),
        output_schema: object(&json!({"type": "object"})),
        defaults: object(&json!({"timeout_seconds": 30})),
        limit: Some(3),
        ..method("scrape")
    };
    let declared = node.registry.declare(full.clone(), Rights::Own).await;
    assert_eq!(*declared.unwrap().unwrap(), full);
    let again = w.node(None).await;
    for node in [&node, &again] {
        node.registry.sweep();
        let snapshot = node.directory.newest();
        assert_eq!(node.standing("scrape"), Standing::Remote);
        assert_eq!(snapshot.slot_limit("scrape"), 3);
        assert!(snapshot.input_schema("scrape").is_some());
        assert!(snapshot.output_schema("scrape").is_some());
        assert_eq!(snapshot.defaults("scrape"), full.defaults);
        let known = node.registry.methods(&Reach::All).into_iter();
        let mut known = known.filter(|known| known.key == method("scrape").key());
        let known = known.next().unwrap();
        assert_eq!(known.declared.as_deref(), Some(&full));
        assert_eq!((known.workers, known.last_asked_at), (0, None));
    }
    let scrape = method("scrape").key();
    let other = node.registry.undeclare(&scrape, "user:bob", Rights::Own);
    let name = full.name.clone();
    assert_eq!(
        other.await.unwrap(),
        Err(Refusal::AnotherPrincipal { name })
    );
    let own = node.registry.undeclare(&scrape, ANN, Rights::Own).await;
    assert_eq!(own.unwrap(), Ok(true));
    assert_eq!(node.standing("scrape"), Standing::Unknown);
}

#[tokio::test]
async fn what_cannot_be_used_is_not_declared() {
    let w = World::new().await;
    let node = w.node(None).await;
    let bad = Method {
        output_schema: object(&json!({"type": "nothing"})),
        ..method("scrape")
    };
    let refused = node.registry.declare(bad, Rights::Own).await.unwrap();
    assert!(
        matches!(&refused, Err(DeclareRefusal::Schema { member: "output_schema", violations }) if !violations.is_empty()),
        "{refused:?}"
    );
    for limit in [0, 100_001] {
        let limit = Some(limit);
        let bad = Method {
            limit,
            ..method("scrape")
        };
        let refused = node.registry.declare(bad, Rights::Own).await.unwrap();
        assert_eq!(refused, Err(DeclareRefusal::Limit { max: 100_000 }));
    }
    assert_eq!(node.registry.methods(&Reach::All), []);
    assert_eq!(w.store.methods().await.unwrap(), []);
}

#[tokio::test]
async fn a_server_that_is_alone_knows_after_a_restart_who_asked() {
    let w = World::new().await;
    let node = w.node(None).await;
    node.ask("w1", &["scrape"]).unwrap();
    node.registry.share().await.unwrap();
    w.clock.advance_ms(30 * SECOND);
    let again = w.node(None).await;
    assert_eq!(again.standing("scrape"), Standing::Remote);
    assert_eq!(again.there(), ["user:ann w1"]);
    // While there was no server, it could not ask: it has a minute from the start on.
    w.clock.advance_ms(30 * SECOND);
    again.registry.sweep();
    assert_eq!(again.standing("scrape"), Standing::Remote);
    assert!(again.there().is_empty());
    w.clock.advance_ms(30 * SECOND);
    again.registry.sweep();
    assert_eq!(again.standing("scrape"), Standing::Unknown);
}

#[tokio::test]
async fn a_worker_that_is_too_busy_to_ask_keeps_its_methods() {
    let w = World::new().await;
    let node = w.node(None).await;
    node.ask("w1", &["scrape"]).unwrap();
    for _ in 0..6 {
        w.clock.advance_ms(20 * SECOND);
        let (worker, principal) = (Arc::from("w1"), Arc::from(ANN));
        let methods = [Arc::from("scrape")];
        node.registry.holds(&worker, &principal, &methods);
        node.registry.sweep();
    }
    assert_eq!(node.standing("scrape"), Standing::Remote);
    assert_eq!(node.there(), ["user:ann w1"]);
    w.clock.advance_ms(60 * SECOND);
    node.registry.sweep();
    assert_eq!(node.standing("scrape"), Standing::Unknown);
}

#[tokio::test]
async fn servers_hear_from_each_other_what_is_declared_asked_for_and_drained() {
    let w = World::new().await;
    let ids = [w.clock.uuid(), w.clock.uuid()];
    let (one, other) = (w.node(Some(ids[0])).await, w.node(Some(ids[1])).await);
    one.ask("w1", &["scrape"]).unwrap();
    let declared = one.registry.declare(method("resize"), Rights::Own).await;
    declared.unwrap().unwrap();
    let drained = one.registry.drain("w1", ANN, true).await;
    drained.unwrap().unwrap();
    one.registry.share().await.unwrap();
    assert!(!other.registry.is_draining("w1", ANN));
    other.registry.follow().await.unwrap();
    assert_eq!(other.standing("scrape"), Standing::Remote);
    assert_eq!(other.standing("resize"), Standing::Remote);
    assert!(other.registry.is_draining("w1", ANN));
    assert!(!other.registry.is_draining("w1", "user:bob"));
    let seen = other.registry.workers();
    assert_eq!((seen.len(), seen[0].node), (1, Some(ids[0])));
    let number = other.number();
    other.registry.follow().await.unwrap();
    assert_eq!(other.number(), number, "nothing is new");

    one.registry.left("w1", ANN);
    one.registry.share().await.unwrap();
    let undrained = one.registry.drain("w1", ANN, false).await;
    undrained.unwrap().unwrap();
    other.registry.share().await.unwrap();
    other.registry.follow().await.unwrap();
    assert_eq!(other.there().len(), 0);
    assert!(!other.registry.is_draining("w1", ANN));
}

#[tokio::test]
async fn a_worker_that_claims_through_another_server_reaches_here_as_far_as_there() {
    let w = World::new().await;
    let other = w.node(Some(w.clock.uuid())).await;
    let (worker, principal) = (Arc::from("w1"), Arc::from(ANN));
    let methods = [Arc::from("scrape")];
    // Of a worker that has claimed nothing, nobody knows more than its principal.
    other.registry.holds(&worker, &principal, &methods);
    assert_eq!(other.standing("scrape"), Standing::Unknown);
    // One that may claim of all users, whose server has not written that it is there.
    let of_all: Arc<str> = Arc::from("w2");
    other.registry.claimed(&of_all, &principal, None);
    for _ in 0..6 {
        w.clock.advance_ms(20 * SECOND);
        other.registry.sweep();
        other.registry.holds(&worker, &principal, &methods);
        other.registry.holds(&of_all, &principal, &methods);
        assert_eq!(other.standing("scrape"), Standing::Remote);
    }
    // What was taken for granted of the first one gives way to what its claim says.
    assert_eq!(other.registry.asking("scrape", Some("bob")).now, 1);
    other.registry.claimed(&worker, &principal, None);
    other.registry.holds(&worker, &principal, &methods);
    assert_eq!(other.registry.asking("scrape", Some("bob")).now, 2);
    // It counts for as long as it holds something.
    w.clock.advance_ms(ASKED_FOR_MS);
    other.registry.sweep();
    assert_eq!(other.standing("scrape"), Standing::Unknown);
    other.registry.holds(&of_all, &principal, &methods);
    assert_eq!(
        other.standing("scrape"),
        Standing::Unknown,
        "it is forgotten"
    );
}

#[tokio::test]
async fn more_workers_than_there_may_be_are_refused() {
    let w = World::new().await;
    let node = w.node(None).await;
    for n in 0..10_000 {
        node.ask(&format!("w{n}"), &["scrape"]).unwrap();
    }
    let refused = node.ask("one more", &["scrape"]);
    assert!(matches!(
        refused,
        Err(AskRefusal::TooMany {
            what: "workers of one principal",
            ..
        })
    ));
    node.ask("w0", &["scrape"]).unwrap();
    w.clock.advance_ms(ASKED_FOR_MS);
    node.registry.sweep();
    node.ask("one more", &["scrape"]).unwrap();
}

#[tokio::test]
async fn renewals_outlive_the_store_that_was_open() {
    let w = World::new().await;
    let clock = SystemClock::default();
    let renewal = Renewal {
        flow: FlowId(clock.uuid()),
        task: TaskId(clock.uuid()),
        attempt: 1,
        lease: LeaseId(clock.uuid()),
        expires_at: START.plus_ms(60 * SECOND),
        graces: 2,
    };
    let renewals = StoredRenewals(w.store.clone());
    renewals.renew(&[renewal]).await.unwrap();
    w.store.close().await;
    assert!(renewals.renew(&[renewal]).await.is_err(), "it is closed");
    let again = WorkerStore::of_folder(w.folder.path()).await.unwrap();
    let renewals = StoredRenewals(Arc::new(again));
    let kept = renewals.of(renewal.flow).await.unwrap();
    let kept = kept[&renewal.lease];
    assert_eq!((kept.expires_at, kept.graces), (renewal.expires_at, 2));
    renewals.forget(&[renewal.lease]).await.unwrap();
    assert!(renewals.of(renewal.flow).await.unwrap().is_empty());
}
