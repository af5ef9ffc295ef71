//! Which callers may make, rotate, revoke and list which tokens.

use crate::on_both_engines;
use crate::world::{World, name, reader, root, service, user};
use std::sync::Arc;
use taskledger_auth::store::Owner;
use taskledger_auth::tokens::{
    AGENTS_MAX, Created, GRACE_MAX_S, LIFETIME_MAX_S, METHODS_MAX, New, Refusal,
};
use taskledger_auth::{Caller, Denial, Kind, MAIN_TENANT, Origin, Scope, Scopes, TokenId};

on_both_engines!(
    only_admins_make_tokens_and_nobody_gives_what_he_lacks,
    what_no_token_can_be_is_refused,
    nobody_gets_a_name_of_the_servers_own,
    one_has_ones_own_tokens,
    tokens_of_others_are_as_absent,
    nobody_gains_scopes_by_rotating,
    a_token_that_has_ended_gets_no_new_secret,
    revoking_twice_changes_nothing,
    lists_go_on_where_they_stopped,
    without_its_audit_row_nothing_changes,
);

fn caller(text: &str, scopes: &[Scope]) -> Caller {
    Caller::user(&name(text), Scopes::of(scopes.iter().copied()))
}

async fn rotate(world: &World, caller: &Caller, id: &TokenId) -> Result<Created, Refusal> {
    let tokens = &world.tokens;
    let rotated = tokens.rotate(caller, &Origin::default(), id, None).await;
    rotated.unwrap()
}

async fn revoke(world: &World, caller: &Caller, id: &TokenId) -> Result<(), Refusal> {
    let revoked = world.tokens.revoke(caller, &Origin::default(), id).await;
    revoked.unwrap().map(drop)
}

async fn only_admins_make_tokens_and_nobody_gives_what_he_lacks(world: World) {
    use Scope::{Admin, Metrics, TasksRead, TasksRun, UsersAny, Worker};
    let new = |scopes: &[Scope]| user("ann", Scopes::of(scopes.iter().copied()));
    for (own, given, lacking) in [
        (&[TasksRead, UsersAny][..], &[TasksRead][..], Some(Admin)),
        (&[Admin, UsersAny], &[TasksRun], Some(TasksRun)),
        (&[Admin, TasksRead], &[Admin, UsersAny], Some(UsersAny)),
        // She would reach flows of ann.
        (&[Admin, TasksRead], &[TasksRead], Some(UsersAny)),
        (&[Admin, TasksRead, UsersAny], &[TasksRead], None),
        (&[Admin, Metrics], &[Metrics, Admin], None),
    ] {
        let created = world.create(&caller("bea", own), new(given)).await;
        let refused = created.err();
        assert_eq!(refused, lacking.map(Refusal::Scope), "{own:?} {given:?}");
    }
    let own = world
        .create(&caller("ann", &[Admin, TasksRead]), new(&[TasksRead]))
        .await;
    assert!(own.is_ok());

    let narrowed = caller("bea", Scope::ALL).narrowed(Some([Arc::from("pdf")].into()));
    let worker = |methods: Option<&str>| New {
        methods: methods.map(|method| [Arc::from(method)].into()),
        ..new(&[Worker])
    };
    for (methods, allowed) in [(None, false), (Some("mail"), false), (Some("pdf"), true)] {
        let created = world.create(&narrowed, worker(methods)).await;
        assert_eq!(created.is_ok(), allowed, "{methods:?}");
    }

    let own = caller("ann", &[Admin, Worker]).with_agents(Some([Arc::from("robot")].into()));
    let speaking = |agent: &str| New {
        agents: Some([Arc::from(agent)].into()),
        ..new(&[Worker])
    };
    for (agent, allowed) in [("robot", true), ("ann", true), ("other", false)] {
        let created = world.create(&own, speaking(agent)).await;
        let refused = (!allowed).then_some(Refusal::Agents);
        assert_eq!(created.err(), refused, "{agent}");
    }
    let created = world.create(&root(), speaking("other")).await;
    let row = created
        .expect("who reaches all users may name any agent")
        .row;
    assert_eq!(row.agents.as_deref(), Some(&[Arc::from("other")][..]));
}

async fn what_no_token_can_be_is_refused(world: World) {
    let ann = || user("ann", reader());
    let methods = |count: usize| Some((0..count).map(|n| Arc::from(n.to_string())).collect());
    for (new, refusal) in [
        (user("ann", Scopes::NONE), Refusal::Nothing),
        (
            New {
                lifetime_s: Some(0),
                ..ann()
            },
            Refusal::Lifetime,
        ),
        (
            New {
                lifetime_s: Some(LIFETIME_MAX_S + 1),
                ..ann()
            },
            Refusal::Lifetime,
        ),
        (
            New {
                note: Arc::from("x".repeat(1_001)),
                ..ann()
            },
            Refusal::Note,
        ),
        (
            New {
                methods: methods(0),
                ..ann()
            },
            Refusal::NarrowedTo,
        ),
        (
            New {
                methods: methods(METHODS_MAX + 1),
                ..ann()
            },
            Refusal::NarrowedTo,
        ),
        (
            New {
                methods: methods(1),
                ..ann()
            },
            Refusal::NoWorker,
        ),
        (
            New {
                agents: methods(0),
                ..ann()
            },
            Refusal::Named,
        ),
        (
            New {
                agents: methods(AGENTS_MAX + 1),
                ..ann()
            },
            Refusal::Named,
        ),
    ] {
        assert_eq!(world.create(&root(), new).await.err(), Some(refusal));
    }
    let made = world.made(ann()).await;
    let again = New {
        id: Some(made.row.id.clone()),
        ..ann()
    };
    assert_eq!(
        world.create(&root(), again).await.err(),
        Some(Refusal::Taken)
    );
    let (id, origin) = (made.token.id(), Origin::default());
    let long = Some(GRACE_MAX_S + 1);
    let rotated = world.tokens.rotate(&root(), &origin, id, long).await;
    assert_eq!(rotated.unwrap().err(), Some(Refusal::Grace));
    assert!(world.shown(&made).await.is_ok());
}

async fn nobody_gets_a_name_of_the_servers_own(world: World) {
    for text in ["anonymous", "engine", "operator", "server", "Engine"] {
        for new in [user(text, Scopes::all()), service(text, Scopes::all())] {
            let refused = world.create(&root(), new).await.err();
            assert_eq!(refused, Some(Refusal::Reserved), "{text}");
        }
    }
    let created = world.create(&root(), user("engineer", Scopes::all())).await;
    assert!(created.is_ok());
}

async fn one_has_ones_own_tokens(world: World) {
    let created = world.made(user("ann", reader())).await;
    // A service of the same name is somebody else.
    world.made(service("ann", reader())).await;
    let ann = world.shown(&created).await.unwrap();

    let listed = world.tokens.list(&ann, None, 0, 10).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&created.row));
    let rotated = rotate(&world, &ann, created.token.id()).await.unwrap();
    assert!(world.shown(&rotated).await.is_ok());
    assert_eq!(revoke(&world, &ann, created.token.id()).await, Ok(()));
    assert_eq!(world.shown(&rotated).await, Err(Denial::Revoked));
}

async fn tokens_of_others_are_as_absent(world: World) {
    let created = world.made(user("ann", reader())).await;
    let bea = caller("bea", &[Scope::TasksRead, Scope::UsersAny]);
    let absent = TokenId::parse("aaaaaaaaaaaaaaaa").unwrap();

    for id in [created.token.id(), &absent] {
        let rotated = rotate(&world, &bea, id).await;
        assert_eq!(rotated.err(), Some(Refusal::Unknown));
        assert_eq!(revoke(&world, &bea, id).await, Err(Refusal::Unknown));
    }
    let anns = Owner {
        kind: Kind::User,
        name: name("ann"),
        tenant: Arc::from(MAIN_TENANT),
    };
    for owner in [None, Some(&anns)] {
        let listed = world.tokens.list(&bea, owner, 0, 10).await.unwrap();
        assert_eq!(listed, []);
    }
    assert!(world.shown(&created).await.is_ok());
}

async fn nobody_gains_scopes_by_rotating(world: World) {
    let wide = Scopes::of([Scope::TasksRead, Scope::TasksRun]);
    let strong = world.made(user("ann", wide)).await;
    let weak = world.made(user("ann", reader())).await;
    let ann = world.shown(&weak).await.unwrap();

    let rotated = rotate(&world, &ann, strong.token.id()).await;

    assert_eq!(rotated.err(), Some(Refusal::Scope(Scope::TasksRun)));
    let admin = caller("bea", &[Scope::Admin, Scope::TasksRead, Scope::TasksRun]);
    let rotated = rotate(&world, &admin, strong.token.id()).await;
    assert_eq!(rotated.err(), Some(Refusal::Scope(Scope::UsersAny)));
    // Ending it gives nothing.
    assert_eq!(revoke(&world, &admin, strong.token.id()).await, Ok(()));
}

async fn a_token_that_has_ended_gets_no_new_secret(world: World) {
    let brief = New {
        lifetime_s: Some(10),
        ..service("ci", reader())
    };
    let expired = world.made(brief).await;
    let revoked = world.made(service("ci", reader())).await;
    world.clock.advance_ms(10_000);
    revoke(&world, &root(), revoked.token.id()).await.unwrap();

    for created in [expired, revoked] {
        let rotated = rotate(&world, &root(), created.token.id()).await;
        assert_eq!(rotated.err(), Some(Refusal::Ended));
    }
}

async fn revoking_twice_changes_nothing(world: World) {
    let created = world.made(service("ci", reader())).await;
    revoke(&world, &root(), created.token.id()).await.unwrap();
    let (rows, generation) = (
        world.audit().await,
        world.tokens.store().generation().await.unwrap(),
    );
    world.clock.advance_ms(1_000);

    assert_eq!(revoke(&world, &root(), created.token.id()).await, Ok(()));

    assert_eq!(world.audit().await, rows);
    let now = world.tokens.store().generation().await.unwrap();
    assert_eq!(now, generation);
}

async fn lists_go_on_where_they_stopped(world: World) {
    let mut ids = Vec::new();
    for n in 0..5 {
        let new = service(&format!("ci-{}", n % 2), reader());
        ids.push(world.made(new).await.row.id);
    }
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let page = world.tokens.list(&root(), None, after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.no;
        found.extend(page.into_iter().map(|row| row.id));
    }
    assert_eq!(found, ids);
    let owner = Owner {
        kind: Kind::Service,
        name: name("ci-1"),
        tenant: Arc::from(MAIN_TENANT),
    };
    let of_one = world.tokens.list(&root(), Some(&owner), 0, 10).await;
    let of_one: Vec<_> = of_one.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(of_one, [ids[1].clone(), ids[3].clone()]);
}

async fn without_its_audit_row_nothing_changes(world: World) {
    let kept = world.made(service("ci", reader())).await;
    let before = world.tokens.store().tokens(None, 0, 10).await.unwrap();
    world
        .run("ALTER TABLE audit RENAME TO audit_away")
        .await
        .unwrap();

    let (id, origin) = (kept.token.id(), Origin::default());
    let new = service("other", reader());
    let created = world.tokens.create(&root(), &origin, new).await;
    assert!(created.is_err());
    let rotated = world.tokens.rotate(&root(), &origin, id, Some(0)).await;
    assert!(rotated.is_err());
    assert!(world.tokens.revoke(&root(), &origin, id).await.is_err());

    assert!(world.shown(&kept).await.is_ok());
    let after = world.tokens.store().tokens(None, 0, 10).await.unwrap();
    assert_eq!(after, before);
}
