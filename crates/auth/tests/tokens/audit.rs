//! What the audit log holds, and for how long.

use crate::on_both_engines;
use crate::world::{DAY, SECOND, World, name, reader, root, service, user};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::store::{AuditFilter, AuditRow};
use taskledger_auth::tokens::GRACE_MAX_S;
use taskledger_auth::{Action, By, Caller, Entry, Origin, Outcome, Scope, Scopes, Seen, Token};

on_both_engines!(
    each_change_has_its_row_and_no_secret_is_in_it,
    what_was_refused_is_there_too,
    refusals_about_tokens_are_counted_by_caller_action_and_reason,
    failed_logins_are_counted_by_address_reason_and_minute,
    whoever_reads_finds_all_failed_logins,
    the_log_is_shown_while_nothing_can_be_written,
    reads_of_others_are_counted_by_flow_and_minute,
    what_is_counted_together_has_one_credential_and_one_network,
    reads_that_are_too_many_to_count_apart_keep_their_reader,
    readers_that_are_too_many_keep_their_action,
    changes_without_a_scope_are_counted_by_caller_action_and_minute,
    the_callers_whose_refusals_are_counted_apart_are_bounded,
    what_cannot_be_written_yet_is_written_later,
    rows_are_found_by_filter_and_cursor,
    rows_are_never_changed_and_removed_after_400_days,
);

async fn each_change_has_its_row_and_no_secret_is_in_it(world: World) {
    let origin = Origin {
        address: Some(Arc::from("192.0.2.7")),
        request: Some(Arc::from("call-1\0")),
        client_request: None,
    };
    let admin = Caller::user(&name("bea"), Scopes::all()).by(Arc::from("bea-s-token"), None);
    let new = user("ann", reader());
    let created = world.tokens.create(&admin, &origin, new).await;
    let created = created.unwrap().unwrap();
    let id = created.token.id();
    let rotated = world.tokens.rotate(&admin, &origin, id, None).await;
    let rotated = rotated.unwrap().unwrap();
    world
        .tokens
        .revoke(&admin, &origin, id)
        .await
        .unwrap()
        .unwrap();

    assert_eq!(
        world.audited().await,
        [
            format!("user:bea token.create {id} done"),
            format!("user:bea token.rotate {id} done"),
            format!("user:bea token.revoke {id} done"),
        ]
    );
    let rows = world.audit().await;
    for row in &rows {
        assert_eq!(row.token.as_deref(), Some("bea-s-token"));
        assert_eq!(
            (&row.address, &row.request),
            (&origin.address, &origin.request)
        );
        assert_eq!(row.at, world.now());
    }
    let detail: Value = serde_json::from_str(rows[0].detail.as_ref().unwrap()).unwrap();
    assert_eq!(detail["owner"], "user:ann");
    assert_eq!(detail["scopes"], "tasks:read");
    let shown = format!("{rows:?} {created:?} {rotated:?} {:?}", world.tokens);
    for token in [created.token, rotated.token] {
        let secret = token.reveal().rsplit('_').next().unwrap();
        assert!(!shown.contains(secret));
    }
}

async fn what_was_refused_is_there_too(world: World) {
    let created = world.made(user("ann", reader())).await;
    let bea = Caller::user(&name("bea"), reader());
    let origin = Origin::default();
    let id = created.token.id();

    let revoked = world.tokens.revoke(&bea, &origin, id).await.unwrap();
    assert!(revoked.is_err());
    assert!(world.create(&bea, service("ci", reader())).await.is_err());

    let mut audited = world.audited().await.split_off(1);
    // Rows that are written together have no order.
    audited.sort();
    assert_eq!(
        audited,
        [
            "user:bea token.create service:ci refused".to_owned(),
            format!("user:bea token.revoke {id} refused"),
        ]
    );
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
    let mut told: Vec<_> = rows.iter().map(|row| counted(row)).collect();
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
    let [(done, _), (refused, count)] = world.tokens.store().appended();
    assert_eq!([done, refused], [Outcome::Done, Outcome::Refused]);
    assert_eq!(count, before[1].1 + 4);
}

async fn failed_logins_are_counted_by_address_reason_and_minute(world: World) {
    let log = world.tokens.audit();
    let [one, other]: [IpAddr; 2] = ["192.0.2.7", "192.0.2.8"].map(|text| text.parse().unwrap());
    log.login_failed(one, "unknown", None);
    assert_eq!(log.flush().await.unwrap(), 1);
    for _ in 0..5 {
        log.login_failed(one, "unknown", None);
        log.login_failed(other, "malformed", None);
    }
    // One that is told at once, however many fail for another reason.
    let id = world.made(user("ann", reader())).await.token.id().clone();
    log.login_failed(one, "revoked", Some(id.clone()));
    assert_eq!(log.flush().await.unwrap(), 2);
    world.clock.advance_ms(60 * SECOND);
    assert_eq!(log.flush().await.unwrap(), 1);

    let mut rows = failures(&world.audit().await);
    // Rows that are written together have no order.
    rows[1..3].sort();
    assert_eq!(
        rows,
        [
            "192.0.2.7 1 unknown -".to_owned(),
            format!("192.0.2.7 1 revoked {id}"),
            "192.0.2.8 5 malformed -".to_owned(),
            "192.0.2.7 5 unknown -".to_owned(),
        ]
    );
}

/// `address count reason token` of each failed login among these rows.
fn failures(rows: &[AuditRow]) -> Vec<String> {
    let rows = rows.iter().filter(|row| &*row.action == "login.failed");
    rows.map(|row| {
        let detail: Value = serde_json::from_str(row.detail.as_ref().unwrap()).unwrap();
        let (count, reason) = (&detail["count"], detail["reason"].as_str().unwrap());
        let token = row.token.as_deref().unwrap_or("-");
        format!(
            "{} {count} {reason} {token}",
            row.address.as_deref().unwrap()
        )
    })
    .collect()
}

async fn whoever_reads_finds_all_failed_logins(world: World) {
    let log = world.tokens.audit();
    let from: IpAddr = "192.0.2.7".parse().unwrap();
    let fail = || log.login_failed(from, "unknown", None);
    let all = AuditFilter::default();
    let of = |action: Action| AuditFilter {
        action: Some(Arc::from(action.as_str())),
        ..AuditFilter::default()
    };
    fail();
    assert_eq!(world.audit().await.len(), 1);
    let first = world.audit().await[0].seq;
    fail();
    fail();
    // Nothing is written for a later page, or for somebody who looks for something else.
    assert_eq!(log.list(&all, Some(first + 1), 10).await.unwrap().len(), 1);
    let others = [
        of(Action::FlowRead),
        AuditFilter {
            principal: Some(Arc::from("user:ann")),
            ..all.clone()
        },
        AuditFilter {
            object: Some(Arc::from("x")),
            ..all.clone()
        },
        AuditFilter {
            until: Some(world.now()),
            ..all.clone()
        },
    ];
    for other in others {
        assert_eq!(log.list(&other, None, 10).await.unwrap(), [], "{other:?}");
    }
    let after = log.list(&all, Some(i64::MAX), 10).await.unwrap();
    assert_eq!(after.len(), 1);
    let found = log.list(&of(Action::LoginFailed), None, 10).await.unwrap();
    assert_eq!(
        failures(&found),
        ["192.0.2.7 2 unknown -", "192.0.2.7 1 unknown -"]
    );
    assert_eq!(world.audit().await.len(), 2, "there was nothing more");
}

async fn the_log_is_shown_while_nothing_can_be_written(world: World) {
    let log = world.tokens.audit();
    let from: IpAddr = "192.0.2.7".parse().unwrap();
    log.login_failed(from, "unknown", None);
    assert_eq!(log.flush().await.unwrap(), 1);
    log.login_failed(from, "unknown", None);
    log.login_failed(from, "unknown", None);

    // Another row of that action is refused.
    let only_one = "CREATE UNIQUE INDEX only_one ON audit (action)";
    world.run(only_one).await.unwrap();
    assert_eq!(failures(&world.audit().await), ["192.0.2.7 1 unknown -"]);
    world.run("DROP INDEX only_one").await.unwrap();

    assert_eq!(
        failures(&world.audit().await),
        ["192.0.2.7 1 unknown -", "192.0.2.7 2 unknown -"]
    );
}

/// A flow of somebody else that was read.
fn flow(id: &str) -> Seen {
    Seen {
        action: Action::FlowRead,
        object: Some(Arc::from(id)),
        owner: None,
    }
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

async fn what_cannot_be_written_yet_is_written_later(world: World) {
    let log = world.tokens.audit();
    log.read(&root(), &Origin::default(), flow("flow-1"));
    let rename = async |from: &str, to: &str| {
        let sql = format!("ALTER TABLE {from} RENAME TO {to}");
        world.run(&sql).await.unwrap();
    };

    rename("audit", "away").await;
    assert!(log.flush().await.is_err());
    let start = Entry::done(By::server(), Action::Start, None);
    assert!(log.record(&start).await.is_err());
    rename("away", "audit").await;
    world.clock.advance_ms(60 * SECOND);
    assert_eq!(log.flush().await.unwrap(), 1);

    assert_eq!(
        world.audited().await,
        ["service:root flow.read flow-1 done"]
    );
}

async fn rows_are_found_by_filter_and_cursor(world: World) {
    for n in 0..5 {
        let new = service(&format!("ci-{n}"), reader());
        world.made(new).await;
        world.clock.advance_ms(SECOND);
    }
    let start = Entry::done(By::server(), Action::Start, Some(Arc::from("node-1")));
    world.tokens.audit().record(&start).await.unwrap();
    let rows = world.audit().await;
    let find = async |filter: AuditFilter| {
        let mut found = Vec::new();
        let mut before = None;
        loop {
            let page = world.tokens.audit().list(&filter, before, 2).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.seq);
            found.extend(page);
        }
        found.reverse();
        found
    };
    let all = AuditFilter::default();

    assert_eq!(find(all.clone()).await, rows);
    let starts = AuditFilter {
        action: Some(Arc::from(Action::Start.as_str())),
        ..all.clone()
    };
    assert_eq!(find(starts).await, rows[5..]);
    let by_root = AuditFilter {
        principal: Some(Arc::from("service:root")),
        object: rows[3].object.clone(),
        ..all.clone()
    };
    assert_eq!(find(by_root).await, rows[3..4]);
    let between = AuditFilter {
        since: Some(rows[1].at),
        until: Some(rows[4].at),
        ..all
    };
    assert_eq!(find(between).await, rows[1..4]);
}

async fn rows_are_never_changed_and_removed_after_400_days(world: World) {
    let old = world.made(service("ci", reader())).await;
    let kept = world
        .made(service("ci", Scopes::of([Scope::Metrics])))
        .await;
    let origin = Origin::default();
    let revoked = world.tokens.revoke(&root(), &origin, old.token.id()).await;
    revoked.unwrap().unwrap();
    let changed = world.run("UPDATE audit SET principal = 'nobody'").await;
    let told = changed.unwrap_err().to_string();
    assert!(told.contains("never changed"), "{told}");

    world.clock.advance_ms(400 * DAY);
    world.tokens.sweep().await.unwrap();
    assert_eq!(world.audit().await.len(), 3);
    world.clock.advance_ms(SECOND);
    world.tokens.sweep().await.unwrap();

    assert_eq!(world.audit().await, []);
    let rows = world.tokens.store().tokens(None, 0, 10).await.unwrap();
    let ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [kept.row.id]);
}
