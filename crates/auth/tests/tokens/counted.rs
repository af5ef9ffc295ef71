//! What is counted before it is written into the audit log: reads of what is of others, and refusals.

use crate::on_both_engines;
use crate::world::{World, name, reader, root, service, user};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::store::{AuditFilter, AuditRow};
use taskledger_auth::tokens::GRACE_MAX_S;
use taskledger_auth::{Action, Caller, Origin, Outcome, Scope, Scopes, Seen, Token};

on_both_engines!(
    refusals_about_tokens_are_counted_by_caller_action_and_reason,
    reads_of_others_are_counted_by_flow_and_minute,
    what_is_counted_together_has_one_credential_and_one_network,
    reads_that_are_too_many_to_count_apart_keep_their_reader,
    readers_that_are_too_many_keep_their_action,
    changes_without_a_scope_are_counted_by_caller_action_and_minute,
    the_callers_whose_refusals_are_counted_apart_are_bounded,
);

/// Principal, action and count.
fn counted(row: &AuditRow) -> String {
    let detail: Value = serde_json::from_str(row.detail.as_ref().unwrap()).unwrap();
    format!("{} {} {}", row.principal, row.action, detail["count"])
}

/// `principal token address action object count outcome` of each row.
fn all_of(rows: &[AuditRow]) -> Vec<String> {
    let told = rows.iter().map(|row| {
        let (token, address) = (row.token.as_deref(), row.address.as_deref());
        format!(
            "{} {} {} {}",
            token.unwrap_or("-"),
            address.unwrap_or("-"),
            row.object.as_deref().unwrap_or("-"),
            counted(row)
        )
    });
    let mut told: Vec<_> = told.collect();
    told.sort();
    told
}

/// A flow of somebody else that was read.
pub(crate) fn flow(id: &str) -> Seen {
    Seen {
        action: Action::FlowRead,
        object: Some(Arc::from(id)),
        owner: None,
    }
}

async fn refusals_about_tokens_are_counted_by_caller_action_and_reason(world: World) {
    let created = world.made(user("ann", reader())).await;
    let bea = Caller::user(&name("bea"), Scopes::of([Scope::Metrics]));
    let origin = Origin::default();
    let before = world.tokens.store().appended();
    for _ in 0..50 {
        let id = Token::fresh(&*world.clock).id().clone();
        let revoked = world.tokens.revoke(&bea, &origin, &id).await.unwrap();
        assert!(revoked.is_err());
        let rotated = world.tokens.rotate(&bea, &origin, &id, None).await.unwrap();
        assert!(rotated.is_err());
        assert!(world.create(&bea, service("ci", reader())).await.is_err());
        let long = Some(GRACE_MAX_S + 1);
        let id = created.token.id();
        let rotated = world.tokens.rotate(&root(), &origin, id, long).await;
        assert!(rotated.unwrap().is_err());
    }
    let rows = world.audit().await.split_off(1);
    let mut told: Vec<_> = rows.iter().map(counted).collect();
    told.sort();
    assert_eq!(
        told,
        [
            "service:root token.rotate 50",
            "user:bea token.create 50",
            "user:bea token.revoke 50",
            "user:bea token.rotate 50",
        ]
    );
    let reasons = rows.iter().map(|row| row.detail.as_deref().unwrap());
    assert_eq!(reasons.filter(|it| it.contains("no token with")).count(), 2);
    let [(done, _), (refused, count), _] = world.tokens.store().appended();
    assert_eq!([done, refused], [Outcome::Done, Outcome::Refused]);
    assert_eq!(count, before[1].1 + 4);
}

async fn reads_of_others_are_counted_by_flow_and_minute(world: World) {
    let log = world.tokens.audit();
    let origin = Origin::default();
    for _ in 0..3 {
        log.read(&root(), &origin, flow("flow-1"));
    }
    log.read(&root(), &origin, flow("flow-2"));
    assert_eq!(log.flush().await.unwrap(), 2);
    assert_eq!(log.flush().await.unwrap(), 0);

    let mut audited = world.audited().await;
    audited.sort();
    assert_eq!(
        audited,
        [
            "service:root flow.read flow-1 done",
            "service:root flow.read flow-2 done"
        ]
    );
}

async fn what_is_counted_together_has_one_credential_and_one_network(world: World) {
    let log = world.tokens.audit();
    let from = |address: &str| Origin {
        address: Some(Arc::from(address)),
        request: None,
        ..Origin::default()
    };
    let with = |token: &str| {
        let ops = Caller::user(&name("ops"), Scopes::all());
        Arc::new(ops.by(Arc::from(token), None))
    };
    for (token, address) in [
        ("ops-1", "192.0.2.7"),
        ("ops-2", "192.0.2.7"),
        ("ops-2", "192.0.2.7"),
        ("ops-1", "192.0.2.8"),
        ("ops-1", "2001:db8::1"),
        ("ops-1", "2001:db8::2"),
        ("ops-1", "192.0.2.7"),
    ] {
        let (caller, origin) = (with(token), from(address));
        log.read(&caller, &origin, flow("f"));
        let denied = (Action::TokenCreate, None);
        log.denied_for(&caller, &origin, denied, Scope::Admin);
    }
    assert_eq!(log.flush().await.unwrap(), 8);
    let rows = world.audit().await;
    let (read, refused): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|row| &*row.action == "flow.read");
    assert_eq!(
        all_of(&read),
        [
            "ops-1 192.0.2.7 f user:ops flow.read 2",
            "ops-1 192.0.2.8 f user:ops flow.read 1",
            "ops-1 2001:db8::2 f user:ops flow.read 2",
            "ops-2 192.0.2.7 f user:ops flow.read 2",
        ]
    );
    assert_eq!(
        all_of(&refused),
        [
            "ops-1 192.0.2.7 - user:ops token.create 2",
            "ops-1 192.0.2.8 - user:ops token.create 1",
            "ops-1 2001:db8::2 - user:ops token.create 2",
            "ops-2 192.0.2.7 - user:ops token.create 2",
        ]
    );
    // Failed logins of one address are told apart by their tokens too.
    let address: IpAddr = "192.0.2.7".parse().unwrap();
    for token in ["a", "b", "a"] {
        let id = world.made(user(token, reader())).await.token.id().clone();
        log.login_failed(address, "expired", Some(id.clone()));
        log.login_failed(address, "expired", Some(id));
    }
    assert_eq!(log.flush().await.unwrap(), 3);
}

async fn reads_that_are_too_many_to_count_apart_keep_their_reader(world: World) {
    let log = world.tokens.audit();
    for n in 0..10_010 {
        let action = match n % 2 {
            0 => Action::FlowRead,
            _ => Action::WorkflowRead,
        };
        let object = Some(Arc::from(n.to_string()));
        let seen = Seen {
            action,
            object,
            owner: None,
        };
        log.read(&root(), &Origin::default(), seen);
    }
    assert_eq!(log.flush().await.unwrap(), 10_002);
    let others = AuditFilter {
        object: Some(Arc::from("others")),
        ..AuditFilter::default()
    };
    let rows = log.list(&others, None, 10).await.unwrap();
    let mut told: Vec<_> = rows.iter().map(counted).collect();
    told.sort();
    // One that exports everything does not make others nameless.
    assert_eq!(
        told,
        ["service:root flow.read 5", "service:root workflow.read 5"]
    );
    let ann = Caller::user(&name("ann"), Scopes::all());
    log.read(&ann, &Origin::default(), flow("f"));
    assert_eq!(log.flush().await.unwrap(), 1);
    let last = log.list(&AuditFilter::default(), None, 1).await.unwrap();
    assert_eq!(all_of(&last), ["- - others user:ann flow.read 1"]);
}

async fn readers_that_are_too_many_keep_their_action(world: World) {
    let log = world.tokens.audit();
    for n in 0..12_010 {
        let caller = Caller::user(&name(&format!("u{n}")), Scopes::all());
        log.read(&caller, &Origin::default(), flow("f"));
    }
    assert_eq!(log.flush().await.unwrap(), 12_001);
    let others = AuditFilter {
        principal: Some(Arc::from("others")),
        ..AuditFilter::default()
    };
    let rows = log.list(&others, None, 10).await.unwrap();
    assert_eq!(all_of(&rows), ["- - others others flow.read 10"]);
}

async fn changes_without_a_scope_are_counted_by_caller_action_and_minute(world: World) {
    let log = world.tokens.audit();
    let bea = Caller::user(&name("bea"), reader());
    let origin = Origin::default();
    let secret = |name: &str| (Action::SecretSet, Some(Arc::from(name)));
    for name in ["a", "b", "c"] {
        log.denied_for(&bea, &origin, secret(name), Scope::UsersAny);
    }
    log.denied_for(&bea, &origin, (Action::TokenCreate, None), Scope::Admin);
    assert_eq!(log.flush().await.unwrap(), 2);
    let mut audited = world.audited().await;
    audited.sort();
    assert_eq!(
        audited,
        [
            "user:bea secret.set c refused",
            "user:bea token.create - refused"
        ]
    );
    log.denied_for(&bea, &origin, (Action::TokenCreate, None), Scope::Admin);
    assert_eq!(log.flush().await.unwrap(), 0);
    // Whoever reads the log sees all that was refused up to now.
    let rows = log.list(&AuditFilter::default(), None, 10).await.unwrap();
    let detail: Value = serde_json::from_str(rows[0].detail.as_ref().unwrap()).unwrap();
    assert_eq!((rows.len(), &detail["count"]), (3, &1.into()));
    assert_eq!(detail["scope"], "admin");
}

async fn the_callers_whose_refusals_are_counted_apart_are_bounded(world: World) {
    let log = world.tokens.audit();
    for n in 0..2_500 {
        let caller = Caller::user(&name(&format!("u{n}")), reader());
        let action = match n % 5 {
            0 => Action::SecretSet,
            _ => Action::TokenCreate,
        };
        log.denied_for(&caller, &Origin::default(), (action, None), Scope::Admin);
    }
    assert_eq!(log.flush().await.unwrap(), 2_002);
    let others = AuditFilter {
        object: Some(Arc::from("others")),
        ..AuditFilter::default()
    };
    let rows = log.list(&others, None, 10).await.unwrap();
    let mut told: Vec<_> = rows.iter().map(counted).collect();
    told.sort();
    // No row tells of one action or caller what several did.
    assert_eq!(told, ["others secret.set 100", "others token.create 400"]);
}
