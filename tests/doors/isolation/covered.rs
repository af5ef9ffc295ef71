//! Which test looks at what a use case without rows in the matrix shows of others, or why there is nothing to look at.

use super::matrix::{Object, rows};
use super::named;
use super::world::Nodes;
use serde_json::{Value, json};
use taskledger::application::api::UseCase;

/// Files of this folder by their names, so that a test that is named is there.
const FILES: [(&str, &str); 4] = [
    ("methods.rs", include_str!("methods.rs")),
    ("owners.rs", include_str!("owners.rs")),
    ("schedules.rs", include_str!("schedules.rs")),
    ("scopes.rs", include_str!("scopes.rs")),
];

/// What stands for the rows of a use case.
enum Instead {
    /// A test of this file.
    Test(&'static str, &'static str),
    /// A test of the file at hand.
    Here(&'static str),
    /// It shows nothing of anybody, because of this.
    Nothing(&'static str),
}

use Instead::{Here, Nothing, Test};

const METHODS: Instead = Test(
    "methods.rs",
    "what_one_user_declares_and_asks_for_changes_nothing_for_another",
);
const WORKERS: Instead = Test(
    "methods.rs",
    "workers_of_one_name_are_drained_and_listed_by_their_principals",
);
const WEBHOOKS: Instead = Test(
    "owners.rs",
    "webhooks_are_their_owners_and_are_about_the_owners_flows",
);
const WORKFLOWS: Instead = Test(
    "owners.rs",
    "workflows_of_one_name_belong_to_each_of_their_owners",
);
const SCHEDULES: Instead = Test(
    "schedules.rs",
    "schedules_of_one_name_belong_to_each_of_their_owners",
);
const SECRETS: Instead = Here("secrets_of_one_name_belong_to_each_of_their_owners_on_postgres");
/// For those who run the server.
const SCOPES: Instead = Test(
    "scopes.rs",
    "credentials_without_the_scope_of_a_use_case_are_told_which_is_missing",
);

const COVERED: [(UseCase, Instead); 28] = [
    (
        UseCase::WatchRun,
        Nothing("it begins behind the command that makes the run"),
    ),
    (
        UseCase::AwaitRun,
        Nothing("it begins behind a message that names the run"),
    ),
    (UseCase::ListWebhooks, WEBHOOKS),
    (UseCase::SetSecret, SECRETS),
    (UseCase::ListSecrets, SECRETS),
    (UseCase::DeleteSecret, SECRETS),
    (UseCase::DeclareMethod, METHODS),
    (UseCase::UndeclareMethod, METHODS),
    (UseCase::ListMethods, METHODS),
    (UseCase::ListExecutors, METHODS),
    (UseCase::ReadHealth, METHODS),
    (UseCase::ListWorkers, WORKERS),
    (UseCase::DrainWorker, WORKERS),
    (UseCase::ReadMetrics, SCOPES),
    (UseCase::CreateToken, SCOPES),
    (UseCase::DenyJwt, SCOPES),
    (UseCase::ListTokens, SCOPES),
    (UseCase::ReadAudit, SCOPES),
    (UseCase::RebuildReadModels, SCOPES),
    (UseCase::DrainServer, SCOPES),
    (
        UseCase::WhoAmI,
        Nothing("it is about the caller's credentials"),
    ),
    (UseCase::CheckReadiness, Nothing("it is about the server")),
    (
        UseCase::ValidateWorkflow,
        Nothing("it names nothing that is stored"),
    ),
    (
        UseCase::DryRunWorkflow,
        Nothing("it names nothing that is stored"),
    ),
    (UseCase::SaveWorkflow, WORKFLOWS),
    (UseCase::ListWorkflows, WORKFLOWS),
    (UseCase::CreateSchedule, SCHEDULES),
    (UseCase::ListSchedules, SCHEDULES),
];

/// Tests that ask every method of a group by its example with the name of somebody else's object, so that one more of
/// the group is asked too.
const GROUPS: [(&str, Instead); 2] = [("schedules.", SCHEDULES), ("workflows.", WORKFLOWS)];

/// What stands for the rows of a use case, if anything does.
fn instead(case: UseCase) -> Option<&'static Instead> {
    let by_hand = COVERED.iter().find(|(of, _)| *of == case);
    let by_group = || {
        let named = GROUPS
            .iter()
            .find(|(group, _)| case.as_str().starts_with(group));
        named
            .filter(|_| !named::has_rows(case))
            .map(|(_, test)| test)
    };
    by_hand.map(|(_, instead)| instead).or_else(by_group)
}

#[test]
fn every_use_case_has_rows_or_names_the_test_that_looks_at_what_it_shows() {
    let absent = Object::absent();
    for case in UseCase::ALL {
        let has_rows = !rows(*case, &absent, &absent).is_empty();
        let found = instead(*case);
        assert_eq!(has_rows, found.is_none(), "{case:?}: rows, or a test");
        let by_hand = COVERED.iter().filter(|(of, _)| of == case);
        assert!(by_hand.count() < 2, "{case:?}: one test");
        let (text, test) = match found {
            None => continue,
            Some(Nothing(why)) => {
                assert!(!why.is_empty(), "{case:?}");
                continue;
            }
            Some(Here(test)) => (include_str!("covered.rs"), test),
            Some(Test(file, test)) => {
                let found = FILES.iter().find(|(name, _)| name == file);
                (found.expect("it is among the files").1, test)
            }
        };
        let reached = reached(text, test);
        assert!(!reached.is_empty(), "{case:?}: there is no `{test}`");
        let asks = |it: &str| {
            reached
                .iter()
                .any(|body| body.contains(&format!("\"{it}\"")))
        };
        let (group, _) = case.as_str().split_once('.').unwrap_or_default();
        // By its name, by the examples of its group, or as one of all.
        let asked = asks(case.as_str()) || asks(&format!("{group}."));
        assert!(
            asked || reached.iter().any(|body| body.contains("in UseCase::ALL")),
            "{case:?}: `{test}` does not ask for it"
        );
    }
}

/// The text of a function of a file, and of those of the file that it calls, by itself or through others.
fn reached<'t>(text: &'t str, test: &str) -> Vec<&'t str> {
    let (mut reached, mut next) = (Vec::new(), vec![test.to_owned()]);
    let functions: Vec<_> = functions(text).collect();
    while let Some(name) = next.pop() {
        for (_, body) in functions.iter().filter(|(it, _)| *it == name) {
            if reached.contains(body) {
                continue;
            }
            reached.push(*body);
            let calls = functions.iter().map(|(name, _)| *name);
            let calls = calls.filter(|name| body.contains(&format!("{name}(")));
            next.extend(calls.map(str::to_owned));
        }
    }
    reached
}

/// The functions of a file that stand alone, by their names.
fn functions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = text.match_indices("\n}\n").map(|(at, _)| at + 1);
    let begins = std::iter::once(0).chain(ends.clone().map(|end| end + 1));
    let pieces = begins.zip(ends).map(|(begin, end)| &text[begin..end]);
    pieces.filter_map(|piece| {
        let (_, from) = piece.split_once("fn ")?;
        let (name, _) = from.split_once(['(', '<'])?;
        Some((name, from))
    })
}

#[test]
fn what_a_function_calls_is_reached_and_nothing_else() {
    let text = "async fn a() {\n    b(1);\n}\n\nfn b(n: u8) {\n    c::<u8>(n)\n}\n\nfn c<T>(_: T) {\n}\n\nfn d() {\n}\n";
    let names = |of| {
        let reached = reached(text, of).into_iter();
        reached.map(|it| it[..1].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("a"), ["a", "b"]);
    assert_eq!(names("d"), ["d"]);
    assert_eq!(names("e"), [] as [String; 0]);
}

/// The names of the secrets of a caller.
async fn names(nodes: &Nodes, who: &str) -> Vec<String> {
    let listed = nodes.call(who, "secrets.list", json!({})).await;
    let names = listed["secrets"].as_array().unwrap().iter();
    names
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_one_name_belong_to_each_of_their_owners_on_postgres() {
    let nodes = Nodes::start().await;
    let set = |name: &str| json!({"name": name, "value": "hidden from others"});
    let alone = nodes
        .call("bob", "secrets.delete", json!({"name": "key"}))
        .await;
    nodes.call("ann", "secrets.set", set("key")).await;
    assert_eq!(names(&nodes, "bob").await, [] as [String; 0]);
    let beside = nodes
        .call("bob", "secrets.delete", json!({"name": "key"}))
        .await;
    assert_eq!(beside, alone, "whether Ann has one or not");
    nodes.call("bob", "secrets.set", set("key")).await;
    nodes.call("bob", "secrets.set", set("other")).await;
    assert_eq!(names(&nodes, "ann").await, ["key"]);
    let deleted: Value = nodes
        .call("bob", "secrets.delete", json!({"name": "key"}))
        .await;
    assert_ne!(deleted, alone);
    assert_eq!(names(&nodes, "ann").await, ["key"]);
    assert_eq!(names(&nodes, "bob").await, ["other"]);
    nodes.close().await;
}
