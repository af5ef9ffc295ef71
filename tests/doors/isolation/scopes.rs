//! Who may ask at all: every use case, at every door where it can be asked for, without credentials that hold and
//! without its scope.

use super::asked::{Asked, answer, shown, twins};
use super::bus;
use super::inboxes;
use super::matrix::{Object, given_object, rows};
use super::world::{Callers, Nodes, World, user};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;
use taskledger::application::api::UseCase;
use taskledger::transport::http::Options;
use taskledger_auth::{Scope, Scopes};

/// Use cases that no request asks for by themselves: a probe, which is free, and two that begin behind a command, whose
/// scope is asked before.
const BEHIND_OTHERS: [UseCase; 3] = [
    UseCase::CheckReadiness,
    UseCase::WatchRun,
    UseCase::AwaitRun,
];

/// Methods that every caller with credentials may ask for, and that are no use case.
const OF_NO_USE_CASE: [&str; 1] = ["rpc.discover"];

/// Methods that are called otherwise than their use case, and whether they execute what they create, where that
/// decides.
const OF_OTHER_NAMES: [(&str, UseCase, Option<bool>); 5] = [
    ("workflows.create", UseCase::CreateTasks, Some(false)),
    ("workflows.create", UseCase::ExecuteTasks, Some(true)),
    ("workflows.run", UseCase::CreateTasks, Some(false)),
    ("workflows.run", UseCase::ExecuteTasks, Some(true)),
    ("workflows.schemas", UseCase::GetWorkflow, None),
];

/// The methods of a server by their names, each with parameters that it takes.
pub(super) async fn methods(world: &Callers) -> BTreeMap<&'static str, Value> {
    let document = world.call("chief", "rpc.discover", json!({})).await;
    let method = |method: &Value| {
        let params = method["examples"][0]["params"].as_array().unwrap();
        let params = params.iter().map(|param| {
            let name = param["name"].as_str().unwrap().to_owned();
            (name, param["value"].clone())
        });
        let name: &'static str = method["name"].as_str().unwrap().to_owned().leak();
        (name, Value::Object(params.collect()))
    };
    let methods = document["methods"].as_array().unwrap();
    methods.iter().map(method).collect()
}

/// Everything that asks for a use case: by an object, and without one.
pub(super) fn asking(
    case: UseCase,
    own: &Object,
    methods: &BTreeMap<&'static str, Value>,
) -> Vec<Asked> {
    let mut asking = rows(case, own, own);
    let others = OF_OTHER_NAMES.iter().filter(|(_, of, _)| *of == case);
    let others = others.map(|(name, _, executes)| (*name, *executes));
    let calls = iter::once((case.as_str(), None)).chain(others);
    let calls = calls.filter_map(|(name, executes)| {
        let (method, params) = methods.get_key_value(name)?;
        let mut params = params.clone();
        if let Some(executes) = executes {
            params["execute"] = json!(executes);
        }
        Some(Asked::Call(method, params))
    });
    let calls: Vec<_> = calls.collect();
    asking.extend(twins(&calls));
    asking.extend(calls);
    asking.extend(bus::plain(case, own).map(Asked::Bus));
    if case == UseCase::ReadMetrics {
        asking.push(Asked::Get("/metrics".to_owned()));
    }
    if case == UseCase::ClaimTasks {
        let work = json!({"methods": ["m"], "worker": "w"});
        asking.push(Asked::OnSocket("work", work));
    }
    asking
}

/// A server that shows its figures beside the calls.
async fn with_metrics() -> World {
    World::listening(Options {
        metrics: true,
        ..Options::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_use_case_and_every_method_is_asked_for() {
    let world = World::start().await;
    let own = given_object(&world, "ann").await;
    let mut methods = methods(&world).await;
    let known = methods.clone();
    for case in UseCase::ALL {
        let asking = asking(*case, &own, &known);
        assert_eq!(
            asking.is_empty(),
            BEHIND_OTHERS.contains(case),
            "{case:?}: nothing asks for it, or something does after all"
        );
        for asked in asking {
            if let Asked::Call(method, _) = asked {
                methods.remove(method);
            }
        }
    }
    let left: Vec<_> = methods.into_keys().collect();
    assert_eq!(left, OF_NO_USE_CASE);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_without_the_scope_of_a_use_case_are_told_which_is_missing() {
    let world = with_metrics().await;
    let own = given_object(&world, "ann").await;
    inboxes::fill(&world, "ann", &own.published).await;
    let methods = methods(&world).await;
    let before = world.head().await;
    for case in UseCase::ALL {
        // Ann, with everything but that.
        let all = Scopes::all();
        let others = all.iter().filter(|scope| case.scope() != Some(*scope));
        world.known.put("lacking", user("ann", Scopes::of(others)));
        for asked in asking(*case, &own, &methods) {
            let Some(scope) = case.scope() else { continue };
            let (status, text) = answer(&world, Some("lacking"), &asked).await;
            let is_refused = match asked {
                Asked::A2a(..) | Asked::A2aV03(..) | Asked::Inbox(_) | Asked::Bus(_) => {
                    status == 403
                }
                Asked::Call(..) | Asked::OnSocket(..) => {
                    text.contains("-32004") && text.contains(scope.as_str())
                }
                Asked::Get(_) => status == 403 && text.contains(scope.as_str()),
            };
            assert!(is_refused, "{case:?}: {}: {status} {text}", shown(&asked));
        }
    }
    assert_eq!(world.head().await, before);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_no_scope_and_what_needs_one_is_not_refused_to_those_who_have_it() {
    let world = with_metrics().await;
    let own = given_object(&world, "ann").await;
    let methods = methods(&world).await;
    for case in UseCase::ALL {
        world
            .known
            .put("having", user("ann", Scopes::of(case.scope())));
        let is_read = matches!(case.scope(), None | Some(Scope::TasksRead | Scope::Metrics));
        for asked in asking(*case, &own, &methods) {
            // Others change what is asked for next, or give scopes away.
            if !is_read || *case == UseCase::RotateToken || matches!(asked, Asked::Inbox(_)) {
                continue;
            }
            let (status, text) = answer(&world, Some("having"), &asked).await;
            let is_refused = status == 403 || text.contains("-32004");
            assert!(!is_refused, "{case:?}: {}: {status} {text}", shown(&asked));
        }
    }
    world.close().await;
}

/// Asks for everything with credentials that do not hold.
async fn assert_refused(world: &Callers, strangers: &[Option<&str>]) {
    let own = given_object(world, "ann").await;
    let methods = methods(world).await;
    let before = world.head().await;
    for case in UseCase::ALL {
        for asked in asking(*case, &own, &methods) {
            // What a server without them shows nobody.
            let is_there = shown(&asked) != "GET /metrics";
            for token in strangers.iter().filter(|_| is_there) {
                let (status, text) = answer(world, *token, &asked).await;
                assert_eq!(
                    status,
                    401,
                    "{case:?}, {token:?}: {}: {text}",
                    shown(&asked)
                );
                let told = ["-32004", "UNAUTHENTICATED", "Unauthenticated"];
                assert!(told.iter().any(|it| text.contains(it)), "{text}");
            }
        }
    }
    assert_eq!(world.head().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_credentials_that_hold_every_use_case_is_refused_with_401() {
    let world = World::start().await;
    let strangers = [None, Some("nobody"), Some("revoked"), Some("expired")];
    assert_refused(&world, &strangers).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_token_that_was_revoked_or_is_over_every_use_case_is_refused_by_every_node_on_postgres()
 {
    let mut nodes = Nodes::start().await;
    let scopes: Vec<_> = Scopes::all().iter().map(Scope::as_str).collect();
    for (name, lifetime_s) in [("revoked", 3600), ("expired", 1)] {
        let new = json!({"kind": "user", "name": "ann", "scopes": scopes,
            "expires_in_seconds": lifetime_s});
        let made = nodes.call("chief", "tokens.create", new).await;
        nodes.know(name, made["token"].as_str().unwrap());
        if name == "revoked" {
            let id = json!({"id": made["id"]});
            nodes.call("chief", "tokens.revoke", id).await;
        }
        // Each of the nodes, one after the other.
        for _ in 0..2 {
            while nodes.ask(Some(name), "system.whoami", &json!({})).await.0 != 401 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    assert_refused(&nodes, &[None, Some("revoked"), Some("expired")]).await;
    nodes.close().await;
}
