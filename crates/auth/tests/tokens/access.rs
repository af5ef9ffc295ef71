//! Which callers are let in, and for how long.

use crate::on_both_engines;
use crate::world::{DAY, SECOND, World, reader, root, service, user};
use std::sync::Arc;
use taskledger_auth::tokens::{GRACE_MAX_S, New};
use taskledger_auth::{Denial, Kind, Malformed, Origin, Scope, Scopes, Token};
use taskledger_clock::SystemClock;

on_both_engines!(
    a_token_tells_who_shows_it,
    strangers_are_told_apart,
    a_users_token_ends_after_90_days_and_a_services_does_not,
    after_a_rotation_the_old_secret_lasts_for_its_grace,
    a_secret_that_was_replaced_at_once_has_expired,
    a_revoked_token_takes_both_secrets_with_it,
    a_revocation_counts_at_once_here_and_after_a_look_elsewhere,
    without_the_store_those_who_were_let_in_stay_for_a_minute,
    the_last_use_is_noted_to_the_minute,
    the_last_use_is_never_before_the_creation,
);

async fn a_token_tells_who_shows_it(world: World) {
    let narrowed = New {
        methods: Some([Arc::from("pdf")].into()),
        agents: Some([Arc::from("robot")].into()),
        ..service("ci", Scopes::of([Scope::Worker]))
    };
    let created = world.made(narrowed).await;

    let caller = world.shown(&created).await.unwrap();

    assert_eq!(caller.kind(), Kind::Service);
    assert_eq!(&**caller.actor(), "service:ci");
    assert_eq!(caller.scopes(), Scopes::of([Scope::Worker]));
    assert_eq!(caller.methods().unwrap()[..], [Arc::from("pdf")]);
    assert_eq!(caller.agents().unwrap()[..], [Arc::from("robot")]);
    assert_eq!(caller.credential(), Some(created.token.id().as_str()));
    assert_eq!(caller.expires_ms(), None);
}

async fn strangers_are_told_apart(world: World) {
    let created = world.made(user("ann", reader())).await;
    let clock = SystemClock::default();
    let ask = async |text: &str| world.tokens.authenticate(text, world.now()).await;

    let other = Token::fresh(&clock);
    assert_eq!(ask(other.reveal()).await, Err(Denial::Unknown));
    let same_id = Token::again(created.token.id(), &clock);
    assert_eq!(ask(same_id.reveal()).await, Err(Denial::Unknown));
    let short = &created.token.reveal()[..20];
    let malformed = Denial::Malformed(Malformed::Length(20));
    assert_eq!(ask(short).await, Err(malformed));
    assert!(world.shown(&created).await.is_ok());
}

async fn a_users_token_ends_after_90_days_and_a_services_does_not(world: World) {
    let of_user = world.made(user("ann", reader())).await;
    let of_service = world.made(service("ci", reader())).await;

    world.clock.advance_ms(90 * DAY - SECOND);
    assert!(world.shown(&of_user).await.is_ok());
    world.clock.advance_ms(SECOND);
    assert_eq!(world.shown(&of_user).await, Err(Denial::Expired));
    world.clock.advance_ms(1_000 * DAY);
    assert!(world.shown(&of_service).await.is_ok());
}

async fn after_a_rotation_the_old_secret_lasts_for_its_grace(world: World) {
    let old = world.made(user("ann", reader())).await;
    assert!(world.shown(&old).await.is_ok());
    world.clock.advance_ms(80 * DAY);

    let (id, origin) = (old.token.id(), Origin::default());
    let rotated = world.tokens.rotate(&root(), &origin, id, None).await;
    let new = rotated.unwrap().unwrap();

    assert_eq!(new.token.id(), old.token.id());
    let caller = world.shown(&old).await.unwrap();
    let ends = world.now().plus_ms(DAY);
    assert_eq!(caller.expires_ms(), Some(ends.0 / 1_000));
    assert!(world.shown(&new).await.is_ok());
    world.clock.advance_ms(DAY);
    assert_eq!(world.shown(&old).await, Err(Denial::Expired));
    // It lasts as long again as it was made to.
    world.clock.advance_ms(88 * DAY);
    assert!(world.shown(&new).await.is_ok());
    world.clock.advance_ms(DAY);
    assert_eq!(world.shown(&new).await, Err(Denial::Expired));
}

async fn a_secret_that_was_replaced_at_once_has_expired(world: World) {
    let old = world.made(service("ci", reader())).await;
    let (id, origin) = (old.token.id(), Origin::default());
    let rotated = world.tokens.rotate(&root(), &origin, id, Some(0)).await;
    let new = rotated.unwrap().unwrap();

    assert!(world.shown(&new).await.is_ok());
    assert_eq!(world.shown(&old).await, Err(Denial::Expired));
    world.clock.advance_ms(DAY);
    assert_eq!(world.shown(&old).await, Err(Denial::Expired));
}

async fn a_revoked_token_takes_both_secrets_with_it(world: World) {
    let old = world.made(service("ci", reader())).await;
    let (id, origin) = (old.token.id(), Origin::default());
    let grace = Some(GRACE_MAX_S);
    let rotated = world.tokens.rotate(&root(), &origin, id, grace).await;
    let new = rotated.unwrap().unwrap();
    assert!(world.shown(&old).await.is_ok());

    let revoked = world.tokens.revoke(&root(), &origin, id).await;

    assert_eq!(revoked.unwrap().unwrap().revoked_at, Some(world.now()));
    assert_eq!(world.shown(&old).await, Err(Denial::Revoked));
    assert_eq!(world.shown(&new).await, Err(Denial::Revoked));
}

async fn a_revocation_counts_at_once_here_and_after_a_look_elsewhere(world: World) {
    let created = world.made(user("ann", reader())).await;
    let elsewhere = world.another().await;
    elsewhere.look().await;
    let text = created.token.reveal();
    assert!(elsewhere.authenticate(text, world.now()).await.is_ok());
    assert!(world.shown(&created).await.is_ok());

    let (id, origin) = (created.token.id(), Origin::default());
    let revoked = world.tokens.revoke(&root(), &origin, id).await;
    revoked.unwrap().unwrap();

    assert_eq!(world.shown(&created).await, Err(Denial::Revoked));
    assert!(elsewhere.authenticate(text, world.now()).await.is_ok());
    elsewhere.look().await;
    let seen = elsewhere.authenticate(text, world.now()).await;
    assert_eq!(seen, Err(Denial::Revoked));
}

async fn without_the_store_those_who_were_let_in_stay_for_a_minute(world: World) {
    let known = world.made(user("ann", reader())).await;
    let other = world.made(user("bea", reader())).await;
    assert!(world.shown(&known).await.is_ok());

    world.tokens.store().close().await;
    world.tokens.look().await;

    world.clock.advance_ms(59 * SECOND);
    assert!(world.shown(&known).await.is_ok());
    assert_eq!(world.shown(&other).await, Err(Denial::Unavailable));
    world.clock.advance_ms(SECOND);
    assert_eq!(world.shown(&known).await, Err(Denial::Unavailable));
}

async fn the_last_use_is_noted_to_the_minute(world: World) {
    let created = world.made(user("ann", reader())).await;
    world.clock.advance_ms(90 * SECOND);
    for _ in 0..3 {
        world.shown(&created).await.unwrap();
    }

    world.tokens.note_used().await.unwrap();

    let row = world.tokens.store().token(created.token.id()).await;
    let used = row.unwrap().unwrap().last_used_at;
    assert_eq!(used, Some(crate::world::START.plus_ms(60 * SECOND)));
}

async fn the_last_use_is_never_before_the_creation(world: World) {
    world.clock.advance_ms(90 * SECOND);
    let created = world.made(user("ann", reader())).await;
    world.shown(&created).await.unwrap();

    world.tokens.note_used().await.unwrap();

    let row = world.tokens.store().token(created.token.id()).await;
    let row = row.unwrap().unwrap();
    assert_eq!(row.last_used_at, Some(row.created_at));
}
