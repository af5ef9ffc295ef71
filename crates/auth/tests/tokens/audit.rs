//! The contents of the audit log, and how long they are kept.

use crate::counted::flow;
use crate::on_both_engines;
use crate::world::{DAY, SECOND, World, name, reader, root, service, user};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::store::{AuditFilter, AuditRow};
use taskledger_auth::{Action, By, Caller, Entry, Origin, Scope, Scopes};

on_both_engines!(
    each_change_has_its_row_and_no_secret_is_in_it,
    what_was_refused_is_there_too,
    failed_logins_are_counted_by_address_reason_and_minute,
    whoever_reads_finds_all_failed_logins,
    the_log_is_shown_while_nothing_can_be_written,
    what_cannot_be_written_yet_is_written_later,
    rows_are_found_by_filter_and_cursor,
    rows_are_never_changed_and_removed_after_400_days,
    a_row_that_was_removed_or_changed_is_noticed,
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

async fn a_row_that_was_removed_or_changed_is_noticed(world: World) {
    let proof = async || world.tokens.store().prove_audit().await.unwrap();
    assert_eq!((proof().await.rows, proof().await.fault), (0, None));
    for n in 0..4 {
        world.made(service(&format!("ci-{n}"), reader())).await;
    }
    assert_eq!((proof().await.rows, proof().await.fault), (4, None));
    // What is removed for its age is no fault, also when nothing is left.
    world.clock.advance_ms(401 * DAY);
    world.tokens.sweep().await.unwrap();
    assert_eq!((proof().await.rows, proof().await.fault), (0, None));
    for n in 0..5 {
        world.made(service(&format!("later-{n}"), reader())).await;
    }
    assert_eq!((proof().await.rows, proof().await.fault), (5, None));

    let seqs: Vec<i64> = world.audit().await.iter().map(|row| row.seq).collect();
    let last = seqs[4];
    world
        .run(&format!("DELETE FROM audit WHERE seq = {last}"))
        .await
        .unwrap();
    let fault = proof().await.fault.unwrap();
    assert!(fault.contains("expected 5"), "{fault}");
    world
        .run(&format!("DELETE FROM audit WHERE seq = {}", seqs[1]))
        .await
        .unwrap();
    let fault = proof().await.fault.unwrap();
    assert!(fault.contains(&format!("row {}", seqs[2])), "{fault}");
}
