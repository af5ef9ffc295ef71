//! JWTs of issuers that are refused before they expire.

use crate::on_both_engines;
use crate::world::{DAY, SECOND, World, name, reader, root};
use std::sync::Arc;
use taskledger_auth::jwt::{DenyList, DenyListUnavailable, Revocable};
use taskledger_auth::store::DeniedJwt;
use taskledger_auth::tokens::Refusal;
use taskledger_auth::{AUDIT_KEPT_DAYS, Caller, Origin, Scope, Tokens};

const ISSUER: &str = "https://login.example.com";

on_both_engines!(
    a_jwt_that_is_denied_is_refused_here_elsewhere_and_after_a_restart,
    what_a_subject_gets_later_is_accepted,
    denials_need_the_scope_admin_and_are_audited,
    without_the_store_the_list_is_believed_for_a_minute,
    a_denial_is_kept_as_long_as_the_audit_log,
);

/// Ann's token `t-1`, issued so many milliseconds after the denial.
async fn refused(tokens: &Tokens, id: &str, issued_ms: i64) -> Result<bool, DenyListUnavailable> {
    let token = Revocable {
        issuer: ISSUER,
        id: Some(id),
        subject: "ann",
        issued_ms: Some(issued_ms),
        expires_ms: i64::MAX,
    };
    tokens.denied().denies(&token).await
}

async fn deny(world: &World, by: &Caller, what: DeniedJwt) -> Result<(), Refusal> {
    let (issuer, origin) = (Arc::from(ISSUER), Origin::default());
    let denied = world.tokens.deny(by, &origin, issuer, what).await;
    denied.unwrap().map(drop)
}

fn id(text: &str) -> DeniedJwt {
    DeniedJwt::Id(Arc::from(text))
}

async fn a_jwt_that_is_denied_is_refused_here_elsewhere_and_after_a_restart(world: World) {
    let other = world.another().await;
    other.look().await;
    assert_eq!(refused(&other, "t-1", 0).await, Ok(false));

    deny(&world, &root(), id("t-1")).await.unwrap();

    assert_eq!(refused(&world.tokens, "t-1", 0).await, Ok(true));
    assert_eq!(refused(&world.tokens, "t-2", 0).await, Ok(false));
    other.look().await;
    assert_eq!(refused(&other, "t-1", 0).await, Ok(true));
    let later = world.another().await;
    assert_eq!(refused(&later, "t-1", 0).await, Ok(true));
}

async fn what_a_subject_gets_later_is_accepted(world: World) {
    let now_ms = world.now().0 / 1000;
    let ann = DeniedJwt::Subject(Arc::from("ann"));

    deny(&world, &root(), ann).await.unwrap();

    assert_eq!(refused(&world.tokens, "t-1", now_ms).await, Ok(true));
    // The clock of the issuer may be a minute ahead.
    let minute_ms = 60_000;
    assert_eq!(
        refused(&world.tokens, "t-1", now_ms + minute_ms).await,
        Ok(true)
    );
    let later = now_ms + minute_ms + 1;
    assert_eq!(refused(&world.tokens, "t-1", later).await, Ok(false));
}

async fn denials_need_the_scope_admin_and_are_audited(world: World) {
    let ann = Caller::user(&name("ann"), reader());
    let denied = deny(&world, &ann, id("t-1")).await;
    assert_eq!(denied, Err(Refusal::Scope(Scope::Admin)));

    deny(&world, &root(), id("t-1")).await.unwrap();
    let subject = DeniedJwt::Subject(Arc::from("ann"));
    deny(&world, &root(), subject).await.unwrap();

    let expected = [
        "service:root jwt.deny t-1 done",
        "service:root jwt.deny_subject ann done",
    ];
    assert_eq!(world.audited().await, expected);
}

async fn without_the_store_the_list_is_believed_for_a_minute(world: World) {
    deny(&world, &root(), id("t-1")).await.unwrap();
    world.tokens.store().close().await;

    world.clock.advance_ms(60 * SECOND);
    assert_eq!(refused(&world.tokens, "t-1", 0).await, Ok(true));
    world.clock.advance_ms(SECOND);

    let verdict = refused(&world.tokens, "t-2", 0).await;
    assert_eq!(verdict, Err(DenyListUnavailable));
}

async fn a_denial_is_kept_as_long_as_the_audit_log(world: World) {
    deny(&world, &root(), id("t-1")).await.unwrap();
    let days = u64::try_from(AUDIT_KEPT_DAYS).unwrap();

    world.clock.advance_ms(days * DAY);
    world.tokens.sweep().await.unwrap();
    assert_eq!(refused(&world.tokens, "t-1", 0).await, Ok(true));
    world.clock.advance_ms(DAY);
    world.tokens.sweep().await.unwrap();

    assert_eq!(refused(&world.another().await, "t-1", 0).await, Ok(false));
}
