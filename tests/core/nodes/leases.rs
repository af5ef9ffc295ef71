//! Who holds what, by the database's clock.

use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{AssertSqlSafe, Row};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use taskledger::application::ownership::Node;
use taskledger::clock::SystemClock;
use taskledger::nodes::{Error, Held, LEASES, Leases, PostgresLeases, READ_MODELS, Said, Sight};
use taskledger::store::postgres::{Options, migrate};
use taskledger_testkit::postgres::Database;
use uuid::Uuid;

/// A database with the log's tables that leases rely on.
struct World {
    database: Database,
    sql: PgPool,
}

/// One node and what it relies on.
struct Member {
    node: Node,
    leases: PostgresLeases,
    held: Vec<Held>,
}

fn connect(database: &Database) -> PgConnectOptions {
    PgConnectOptions::from_str(database.url()).unwrap()
}

fn options(database: &Database) -> Options {
    Options::new(connect(database), Arc::new(SystemClock::default()))
}

impl World {
    async fn new() -> Self {
        let database = Database::create().await;
        let sql = PgPool::connect_with(connect(&database)).await.unwrap();
        migrate(&options(&database)).await.unwrap();
        Self { database, sql }
    }

    async fn run(&self, sql: &str) {
        sqlx::query(AssertSqlSafe(sql.to_owned()))
            .execute(&self.sql)
            .await
            .unwrap();
    }

    async fn node(&self, n: u128) -> Member {
        Member {
            node: Node {
                id: Uuid::from_u128(n),
                url: Arc::from(format!("http://node-{n}:8000")),
            },
            leases: PostgresLeases::open(&options(&self.database))
                .await
                .unwrap(),
            held: Vec::new(),
        }
    }

    /// As if so much time had passed for a node since its last beat.
    async fn let_pass(&self, member: &Member, seconds: u32) {
        let id = member.node.id.simple();
        self.run(&format!(
            "UPDATE taskledger.nodes SET expires_at = expires_at - INTERVAL '{seconds} s'
             WHERE id = decode('{id}', 'hex')"
        ))
        .await;
    }

    async fn fences(&self) -> HashMap<String, u64> {
        let rows = sqlx::query("SELECT convert_from(name, 'UTF8'), token FROM taskledger.fences")
            .fetch_all(&self.sql)
            .await
            .unwrap();
        let fence = |row: &sqlx::postgres::PgRow| {
            let token: i64 = row.get(1);
            (row.get(0), u64::try_from(token).unwrap())
        };
        rows.iter().map(fence).collect()
    }
}

impl Member {
    /// One beat; relies on what it shows, and gives up at most `give` above the share.
    async fn beat_giving(&mut self, give: usize) -> Sight {
        let sight = self.leases.beat(&self.node, &self.held).await.unwrap();
        let mine = sight.nodes.iter().find(|s| s.node.id == self.node.id);
        let mut mine = mine.expect("who beats lives").holds.clone();
        let above = mine.len().saturating_sub(sight.fair_share());
        mine.truncate(mine.len() - above.min(give));
        self.held = mine;
        sight
    }

    async fn beat(&mut self) -> Sight {
        self.beat_giving(usize::MAX).await
    }
}

fn counts(sight: &Sight) -> Vec<usize> {
    sight.nodes.iter().map(|s| s.holds.len()).collect()
}

/// Every lease has at most one holder, and whoever relies on one is that holder.
fn assert_exclusive(members: &[&Member]) {
    let mut holders = HashMap::new();
    for member in members {
        for held in &member.held {
            let before = holders.insert(held.lease, member.node.id);
            assert_eq!(before, None, "two nodes rely on lease {}", held.lease);
        }
    }
}

#[tokio::test]
async fn a_node_that_is_alone_holds_everything() {
    let w = World::new().await;
    let mut a = w.node(1).await;
    let sight = a.beat().await;
    assert_eq!(counts(&sight), [LEASES]);
    assert_eq!(*sight.nodes[0].node, a.node);
    assert!(a.held.iter().any(|h| h.lease == READ_MODELS));
    let fences = w.fences().await;
    for held in &a.held {
        assert_eq!(fences[&format!("partition/{}", held.lease)], held.token);
    }
    let before = a.held.clone();
    a.beat().await;
    assert_eq!(a.held, before, "a renewal changes no token");
}

#[tokio::test]
async fn leases_are_shared_out_when_nodes_come() {
    let w = World::new().await;
    let (mut a, mut b, mut c) = (w.node(1).await, w.node(2).await, w.node(3).await);
    for _ in 0..5 {
        a.beat().await;
        b.beat().await;
        c.beat().await;
        assert_exclusive(&[&a, &b, &c]);
    }
    let sight = a.beat().await;
    let counts = counts(&sight);
    assert_eq!(counts.iter().sum::<usize>(), LEASES, "{counts:?}");
    let share = LEASES.div_ceil(3);
    assert!(
        counts.iter().all(|n| (share - 2..=share).contains(n)),
        "{counts:?}"
    );
}

#[tokio::test]
async fn what_a_node_has_not_given_up_is_not_taken_from_it() {
    let w = World::new().await;
    let (mut a, mut b) = (w.node(1).await, w.node(2).await);
    a.beat().await;
    b.beat().await;
    // It learns of the other, and gives up ten.
    a.beat_giving(10).await;
    b.beat().await;
    assert_eq!(b.held, [], "the database has not heard of it");
    a.beat_giving(0).await;
    b.beat().await;
    assert_eq!((a.held.len(), b.held.len()), (LEASES - 10, 10));
    assert_exclusive(&[&a, &b]);
}

#[tokio::test]
async fn the_leases_of_a_dead_node_go_to_the_others_under_higher_tokens() {
    let w = World::new().await;
    let (mut a, mut b) = (w.node(1).await, w.node(2).await);
    for _ in 0..3 {
        a.beat().await;
        b.beat().await;
    }
    let dead: HashMap<_, _> = a.held.iter().map(|h| (h.lease, h.token)).collect();
    b.beat().await;
    assert!(b.held.len() < LEASES, "it lives for some seconds");
    w.let_pass(&a, 6).await;
    let sight = b.beat().await;
    assert_eq!(counts(&sight), [LEASES]);
    for held in &b.held {
        if let Some(token) = dead.get(&held.lease) {
            assert!(held.token > *token);
        }
    }
}

#[tokio::test]
async fn a_node_that_comes_back_late_has_lost_everything() {
    let w = World::new().await;
    let mut a = w.node(1).await;
    a.beat().await;
    let relied_on = a.held.clone();
    w.let_pass(&a, 6).await;
    // Nobody has taken anything meanwhile, and still it is not what it was.
    let sight = a.beat().await;
    assert_eq!(counts(&sight), [LEASES]);
    assert!(a.held.iter().all(|h| !relied_on.contains(h)));
}

#[tokio::test]
async fn what_is_stored_as_ours_and_not_relied_on_gets_a_new_token() {
    let w = World::new().await;
    let mut a = w.node(1).await;
    // The answer to the first beat is lost.
    a.leases.beat(&a.node, &[]).await.unwrap();
    a.beat().await;
    assert_eq!(a.held.len(), LEASES);
    assert!(a.held.iter().all(|h| h.token == 2));
    // Relied on under another token than is stored: as good as nothing.
    a.held.iter_mut().for_each(|h| h.token = 1);
    a.beat().await;
    assert!(a.held.iter().all(|h| h.token == 3));
}

#[tokio::test]
async fn a_node_that_leaves_frees_everything_at_once() {
    let w = World::new().await;
    let (mut a, mut b) = (w.node(1).await, w.node(2).await);
    a.beat().await;
    a.leases.leave(&a.node).await.unwrap();
    let sight = b.beat().await;
    assert_eq!(counts(&sight), [LEASES]);
    assert_eq!(sight.nodes[0].node.id, b.node.id);
}

#[tokio::test]
async fn beats_of_many_nodes_at_once_take_turns() {
    let w = World::new().await;
    let mut members = Vec::new();
    for n in 0..6 {
        members.push(w.node(n).await);
    }
    for _ in 0..6 {
        let mut beats = tokio::task::JoinSet::new();
        for mut member in members.drain(..) {
            beats.spawn(async move {
                member.beat_giving(20).await;
                member
            });
        }
        members = beats.join_all().await;
        assert_exclusive(&members.iter().collect::<Vec<_>>());
    }
    let tokens: HashMap<_, _> = w.fences().await;
    for held in members.iter().flat_map(|m| &m.held) {
        assert_eq!(tokens[&format!("partition/{}", held.lease)], held.token);
    }
}

#[tokio::test]
async fn nodes_that_start_together_make_the_tables_once_and_agree_on_the_secret() {
    let w = World::new().await;
    let options = options(&w.database);
    let opened = (0..4).map(|_| PostgresLeases::open(&options));
    let opened = futures_util::future::join_all(opened).await;
    let mut secrets = Vec::new();
    for leases in opened {
        secrets.push(leases.unwrap().secret().await.unwrap());
    }
    assert_eq!(secrets[0].len(), 32);
    assert!(secrets.iter().all(|s| *s == secrets[0]));
}

#[tokio::test]
async fn a_beat_waits_for_an_append_that_has_judged_its_fence() {
    let w = World::new().await;
    let mut a = w.node(1).await;
    let mut append = w.sql.begin().await.unwrap();
    sqlx::query("SELECT FROM taskledger.head FOR UPDATE")
        .execute(&mut *append)
        .await
        .unwrap();
    let beat = tokio::spawn(async move {
        a.beat().await;
        a
    });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND application_name = 'taskledger nodes'
          AND datname = current_database()";
    while sqlx::query(waits)
        .fetch_one(&w.sql)
        .await
        .unwrap()
        .get::<i64, _>(0)
        == 0
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(w.fences().await.len(), 0);
    append.commit().await.unwrap();
    assert_eq!(beat.await.unwrap().held.len(), LEASES);
}

#[tokio::test]
async fn a_beat_gives_up_rather_than_wait_for_ever() {
    let w = World::new().await;
    let a = w.node(1).await;
    let mut stuck = w.sql.begin().await.unwrap();
    sqlx::query("SELECT FROM taskledger.head FOR UPDATE")
        .execute(&mut *stuck)
        .await
        .unwrap();
    let error = a.leases.beat(&a.node, &[]).await.unwrap_err().to_string();
    assert!(error.contains("lock timeout"), "{error}");
    stuck.rollback().await.unwrap();
    assert!(a.leases.beat(&a.node, &[]).await.is_ok());
}

#[tokio::test]
async fn a_node_that_was_taken_for_gone_says_again_whether_it_asks_for_credentials() {
    let w = World::new().await;
    let (mut open, mut other) = (w.node(1).await, w.node(2).await);
    let say = async |member: &Member, is_on: bool| {
        let decide = |others: &[Said]| match others.iter().any(|it| it.is_on != is_on) {
            true => Err(()),
            false => Ok(is_on),
        };
        let said = member.leases.agree(member.node.id, decide);
        said.await.unwrap().is_ok()
    };
    let forget = async |member: &Member| {
        w.let_pass(member, 60).await;
        let id = member.node.id.simple();
        w.run(&format!(
            "UPDATE taskledger.node_authentication SET said_at = said_at - INTERVAL '60 s'
             WHERE id = decode('{id}', 'hex')"
        ))
        .await;
    };
    assert!(say(&open, false).await);
    open.beat().await;
    assert!(!say(&other, true).await, "the other one lives");
    forget(&open).await;
    assert!(say(&other, true).await, "nobody lives");
    other.beat().await;
    let back = open.leases.beat(&open.node, &[]).await;
    let Err(Error::Differs { is_on, other: url }) = back else {
        panic!("it must not come back: {back:?}");
    };
    assert_eq!((is_on, url.as_deref()), (false, Some("http://node-2:8000")));
    open.leases.leave(&open.node).await.unwrap();
    // One that does the same takes part again, and is known to those who start.
    let mut same = w.node(3).await;
    assert!(say(&same, true).await);
    same.beat().await;
    forget(&same).await;
    let late = w.node(4).await;
    assert!(say(&late, true).await);
    same.beat().await;
    let opening = w.node(5).await;
    forget(&other).await;
    forget(&late).await;
    assert!(!say(&opening, false).await);
}
