//! The first token, and those of the operator.

use crate::on_both_engines;
use crate::world::{World, reader, service};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use taskledger_auth::tokens::{ADMIN_TOKEN_FILE, FirstError};
use taskledger_auth::{AdminTokens, Denial, Scopes, Token};
use taskledger_clock::SystemClock;

on_both_engines!(
    the_first_start_leaves_a_token_that_may_do_everything,
    where_there_was_a_token_none_is_made,
    tokens_of_the_operator_are_good_without_the_store,
);

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

async fn the_first_start_leaves_a_token_that_may_do_everything(world: World) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(ADMIN_TOKEN_FILE);
    // A start before was killed between the file and the store.
    let half = Token::fresh(&SystemClock::default());
    write(&path, half.reveal(), 0o600);
    write(&path.with_extension("token.new"), "tl_", 0o600);

    let made = world.tokens.make_first(folder.path()).await.unwrap();

    assert_eq!(made.as_deref(), Some(&*path));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    let caller = world.tokens.authenticate(text.trim(), world.now()).await;
    let caller = caller.unwrap();
    assert_eq!(&**caller.actor(), "service:admin");
    assert_eq!(caller.scopes(), Scopes::all());
    let refused = world.tokens.authenticate(half.reveal(), world.now()).await;
    assert_eq!(refused, Err(Denial::Unknown));
    let id = caller.credential().unwrap();
    assert_eq!(
        world.audited().await,
        [format!("server token.create {id} done")]
    );
    // The next start has it.
    assert_eq!(world.tokens.make_first(folder.path()).await.unwrap(), None);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

async fn where_there_was_a_token_none_is_made(world: World) {
    let folder = tempfile::tempdir().unwrap();
    assert!(!world.tokens.any().await.unwrap());
    world.made(service("ci", reader())).await;

    assert!(world.tokens.any().await.unwrap());
    assert_eq!(world.tokens.make_first(folder.path()).await.unwrap(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

async fn tokens_of_the_operator_are_good_without_the_store(world: World) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator");
    let clock = SystemClock::default();
    let [present, before] = [(); 2].map(|()| Token::fresh(&clock));
    let text = format!("{}\n\n{}\n", present.reveal(), before.reveal());
    write(&path, &text, 0o600);
    let admins = AdminTokens::of_file(&path).unwrap();
    let tokens = World::tokens(world.tokens.store().clone(), world.clock.clone(), admins);
    tokens.store().close().await;

    for token in [&present, &before] {
        let caller = tokens.authenticate(token.reveal(), world.now()).await;
        let caller = caller.unwrap();
        assert_eq!(&**caller.actor(), "service:admin");
    }
    assert!(tokens.any().await.unwrap());
    let forged = Token::again(present.id(), &clock);
    let refused = tokens.authenticate(forged.reveal(), world.now()).await;
    assert_eq!(refused, Err(Denial::Unavailable));
}

#[test]
fn a_file_of_the_operator_that_cannot_be_meant_so_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator");
    let clock = SystemClock::default();
    let token = Token::fresh(&clock).reveal().to_string();
    let secret = token.rsplit('_').next().unwrap();
    let cut = format!("\n{}", &token[..70]);
    for (text, mode, told) in [
        ("", 0o600, "has 0 tokens"),
        (&format!("{token}\n").repeat(3), 0o600, "has 3 tokens"),
        (&cut, 0o600, "line 2 of the token file"),
        (&token, 0o644, "has mode 0644"),
    ] {
        write(&path, text, mode);
        let error = AdminTokens::of_file(&path).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(told), "{shown}");
        assert!(!shown.contains(&secret[..10]), "{shown}");
    }
    let missing = AdminTokens::of_file(&folder.path().join("missing"));
    assert!(matches!(missing, Err(FirstError::File { .. })));
}
