//! What the directory holds after a change, for everybody and for the flows of one user.

use super::{Contents, DirectoryError, ExecutorDirectory, Own, Reach, Remote, UNBOUNDED};
use crate::application::ports::{ExecutorList, ExecutorSnapshot, Executors, Standing};
use crate::application::slots::Slots;
use crate::engine::executor::{BuiltInOptions, Registry, with_built_ins};
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Payload;
use taskledger_domain::task::inputs::compile;
use taskledger_domain::testing::id;

fn directory() -> ExecutorDirectory {
    let builder = with_built_ins(Registry::builder(), BuiltInOptions::default());
    let registry = builder.expect("unique names").build();
    ExecutorDirectory::new(registry.expect("no limits"))
}

fn remote(name: &str, limit: usize) -> impl FnOnce(&mut Contents) {
    let name = Arc::from(name);
    let limit = Some(limit);
    move |contents| {
        let remote = Remote {
            limit,
            ..Remote::default()
        };
        contents.remote.insert(name, remote);
    }
}

#[test]
fn a_declared_method_has_its_schema_and_defaults_and_is_listed_by_name() {
    let directory = directory();
    let schema = json!({"type": "object", "required": ["page"]});
    let text = |value: &serde_json::Value| Payload::from_map(value.as_object().expect("an object"));
    let declared = Remote {
        input_schema: Some(Arc::new(compile(&schema).expect("a schema"))),
        declared_input_schema: Some(text(&schema)),
        defaults: Some(text(&json!({"retry_count": 2}))),
        ..Remote::default()
    };
    let change = |contents: &mut Contents| {
        contents.remote.insert(Arc::from("scrape"), declared);
        contents.remote.insert(Arc::from("aaa"), Remote::default());
    };
    assert_eq!(directory.change(change), Ok(2));
    let snapshot = directory.snapshot();
    assert_eq!(snapshot.slot_limit("scrape"), UNBOUNDED);
    assert!(snapshot.input_schema("scrape").is_some());
    assert!(snapshot.input_schema("aaa").is_none());
    let defaults = snapshot.defaults("scrape").expect("it was declared");
    assert_eq!(defaults.as_str(), r#"{"retry_count":2}"#);
    let listed = directory.list(&Reach::All);
    assert_eq!((listed[0].name.as_str(), listed[0].remote), ("aaa", true));
    assert!(listed.is_sorted_by(|a, b| a.name < b.name));
    let declared = listed.iter().find(|view| view.name == "scrape");
    let declared = declared.expect("it is listed");
    assert_eq!(declared.limit, None);
    assert!(declared.input_schema.is_some());
}

#[test]
fn a_snapshot_stays_as_it_is_when_the_directory_changes() {
    let directory = directory();
    let (before, changes) = (directory.newest(), directory.changes());
    assert_eq!(directory.change(remote("resize", 3)), Ok(2));
    assert_eq!((before.number(), before.knows("resize")), (1, false));
    let after = directory.snapshot();
    assert_eq!((after.number(), *changes.borrow()), (2, 2));
    assert_eq!(Standing::of(&*after, "resize"), Standing::Remote);
    assert_eq!(Standing::of(&*after, "echo_executor"), Standing::BuiltIn);
    assert_eq!(Standing::of(&*after, "nobody"), Standing::Unknown);
    assert_eq!(
        (after.slot_limit("resize"), after.slot_limit("nobody")),
        (3, 0)
    );
}

#[test]
fn what_a_user_declares_is_for_their_own_flows_and_takes_the_place_of_what_is_shared() {
    let directory = directory();
    let one = Remote {
        limit: Some(1),
        defaults: Some(Payload::from_map(&serde_json::Map::new())),
        ..Remote::default()
    };
    let own = [("shared", Some(one)), ("asked", None)];
    let own = own.map(|(name, remote)| (Arc::from(name), remote));
    let change = |contents: &mut Contents| {
        let own = Arc::new(own.into_iter().collect());
        contents.own.insert(Arc::from("bob"), own);
        remote("shared", 5)(contents);
    };
    assert_eq!(directory.change(change), Ok(2));
    let views = [Some("bob"), Some("ann"), None].map(|owner| directory.newest_for(owner));
    let [bobs, anns, nobodys] = &views;
    for (view, is_bobs) in [(bobs, true), (anns, false), (nobodys, false)] {
        assert_eq!((view.number(), view.has_owners()), (2, true));
        assert_eq!(view.defaults("shared").is_some(), is_bobs);
        assert_eq!(view.is_remote("asked"), is_bobs);
        assert_eq!(view.declared_for("shared").is_some(), is_bobs);
        assert_eq!(view.declared_for("asked"), None);
        let found = view.remote().map(|(name, _)| name);
        assert_eq!(found.count(), if is_bobs { 2 } else { 1 });
    }
    assert_eq!(anns.owners_of("shared"), [Arc::from("bob")]);
    assert!(anns.owners_of("asked").is_empty());
    for view in &views {
        assert!(view.is_remote_for_any("asked") && !view.is_remote_for_any("nobody"));
        let limits = ["asked", "shared", "nobody"].map(|name| view.slot_limit(name));
        assert_eq!(limits, [UNBOUNDED, 5, 0]);
    }
    let limits = anns.claim_limits();
    let of = |owner: Option<&str>| {
        let (name, owner) = (Arc::from("shared"), owner.map(Arc::from));
        limits[&taskledger_workers::MethodKey { name, owner }]
    };
    assert_eq!((of(None), of(Some("bob")), limits.len()), (5, 1, 2));
    let listed = directory.list(&Reach::Of(Arc::from("ann")));
    assert!(listed.iter().all(|view| view.name != "asked"));
}

#[test]
fn attempts_of_a_users_workers_are_not_attempts_of_this_process() {
    let directory = Arc::new(directory());
    let asked: Arc<Own> = Arc::new([(Arc::from("asked"), None)].into_iter().collect());
    let change = |contents: &mut Contents| {
        contents.own.insert(Arc::from("bob"), asked);
    };
    directory.change(change).expect("it can be");
    let (slots, _woken) = Slots::new(directory);
    let slots = Arc::new(slots);
    let _claimed = slots.occupy("asked", id("claimed"), 1);
    assert_eq!(slots.running_here(), 0);
    let _runs = slots.occupy("echo_executor", id("runs"), 1);
    assert_eq!(slots.running_here(), 1);
}

#[test]
fn a_limit_of_an_executor_of_this_process_can_be_changed() {
    let directory = directory();
    let change = |c: &mut Contents| c.built_in.set_limit("echo_executor", 7).expect("it exists");
    assert_eq!(directory.change(change), Ok(2));
    assert_eq!(directory.snapshot().slot_limit("echo_executor"), 7);
    assert!(directory.newest().built_in().any(|r| r.limit() == 7));
}

#[test]
fn contents_that_cannot_be_are_refused_and_nothing_is_published() {
    let directory = directory();
    let name = || "echo_executor".to_owned();
    assert_eq!(
        directory.change(remote("echo_executor", 1)),
        Err(DirectoryError::BuiltIn { name: name() })
    );
    let name = String::from("resize");
    assert_eq!(
        directory.change(remote("resize", 0)),
        Err(DirectoryError::NoLimit { name })
    );
    assert!(matches!(
        directory.change(remote(" ", 1)),
        Err(DirectoryError::InvalidName { .. })
    ));
    assert_eq!(directory.newest().number(), 1);
    assert_eq!(directory.newest().remote().count(), 0);
}

#[test]
fn programs_are_started_by_an_executor_that_another_server_may_have() {
    let snapshot = directory().snapshot();
    assert!(!snapshot.knows("command_executor") && snapshot.starts_programs("command_executor"));
    let others = ["echo_executor", "resize"];
    assert!(!others.iter().any(|name| snapshot.starts_programs(name)));
}
