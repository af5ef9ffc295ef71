//! `tasks.update`. spec: semantics / Methods, tasks.update; interface / tasks.update

use crate::support::{
    cancel, change, create, cycle, facts, path, refusal, refused_kind, update_faults, updating,
};
use serde_json::json;
use taskledger_domain::flow::{
    Changeable, Command, Done, Event, Kind, Outdated, Refusal, RunConflict, TreeFault,
    UnknownDependency,
};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::task::spec;
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};

fn family() -> Scenario {
    given(vec![
        group("r").user("ann"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("r"),
    ])
}

/// The same flow with `b` in each status.
fn statuses() -> [(&'static str, Scenario); 5] {
    let running = family().when(execute("b")).accepted();
    [
        ("pending", family()),
        ("in_progress", running.clone()),
        ("completed", running.clone().completes("b")),
        ("failed", running.clone().fails("b")),
        ("cancelled", running.when(cancel("b")).accepted()),
    ]
}

#[test]
fn name_and_priority_can_always_change() {
    for (_, s) in statuses() {
        let s = updating(s, change("b").name("new").priority(0)).accepted();
        let kinds: Vec<_> = facts(&s, &["b"]).into_iter().map(|(k, _)| k).collect();
        assert_eq!(kinds, ["TaskRenamed", "PriorityChanged"]);
        assert_eq!(s.flow.task(id("b")).unwrap().priority.get(), 0);
        assert_eq!(s.flow.task(id("b")).unwrap().name_at, s.flow.version() - 1);
    }
}

#[test]
fn labels_can_always_change_as_a_whole() {
    for (_, s) in statuses() {
        let s = updating(s, change("b").labels(r#"{"team":"data","stage":"test"}"#)).accepted();
        assert_eq!(facts(&s, &["b"]), [("LabelsChanged", "b")]);
        assert_eq!(s.flow.task(id("b")).unwrap().labels_at, s.flow.version());
        let s = updating(s, change("b").labels(r#"{"team":"ops"}"#)).accepted();
        assert_eq!(s.flow.task(id("b")).unwrap().labels_at, s.flow.version());
        let s = updating(s, change("b").labels("{}")).accepted();
        assert_eq!(facts(&s, &["b"]), [("LabelsChanged", "b")]);
        assert_eq!(s.flow.task(id("b")).unwrap().labels_at, 0);
        // There are none to take away.
        let s = updating(s, change("b").labels("{}")).accepted();
        assert!(facts(&s, &["b"]).is_empty());
    }
}

#[test]
fn no_update_makes_a_task_pending_again() {
    for (status, s) in statuses() {
        let after = updating(s.clone(), change("b").status(Pending).name("new"));
        if status == "pending" {
            assert_eq!(facts(&after.accepted(), &["b"]), [("TaskRenamed", "b")]);
            continue;
        }
        assert_eq!(
            refused_kind(&after),
            Some(Kind::InvalidTransition),
            "{status}"
        );
        assert_eq!(after.flow.version(), s.flow.version(), "{status}");
    }
}

#[test]
fn inputs_schemas_params_and_dependencies_change_while_pending_or_failed() {
    for (status, s) in statuses() {
        let kind = match status {
            "pending" | "failed" => None,
            "in_progress" => Some(Kind::AlreadyExecuting),
            _ => Some(Kind::InvalidTransition),
        };
        for wanted in [
            change("b").inputs(r#"{"x":1}"#),
            change("b").method(Some("once")),
            change("b").deadline(None),
            change("b").dependencies(&["a"]),
        ] {
            let after = updating(s.clone(), wanted);
            assert_eq!(refused_kind(&after), kind, "{status}");
            if kind.is_some() {
                assert_eq!(after.flow, s.flow, "a refusal changes nothing");
            }
        }
    }
}

#[test]
fn user_and_parent_change_while_pending() {
    for (status, s) in statuses() {
        let kind = match status {
            "pending" => None,
            "in_progress" => Some(Kind::AlreadyExecuting),
            _ => Some(Kind::InvalidTransition),
        };
        for wanted in [
            change("b").user(Some("bob")),
            change("b").user(None),
            change("b").parent(Some("g")),
        ] {
            let after = updating(s.clone(), wanted);
            assert_eq!(refused_kind(&after), kind, "{status}");
        }
    }
}

#[test]
fn a_flow_is_given_away_in_any_state_while_no_attempt_is_under_way() {
    let give = || change("r").user(Some("bob")).while_idle();
    let running = given(vec![group("r").user("ann"), task("b").under("r")])
        .when(execute("r"))
        .accepted();
    let busy = RunConflict::InProgress {
        task: id("r"),
        changeable: Changeable::Idle,
    };
    let refused = updating(running.clone(), give());
    assert_eq!(*refusal(&refused), Refusal::AlreadyExecuting(vec![busy]));
    let of_a_child = family().when(execute("b")).accepted();
    let status = of_a_child.flow.task(id("r")).unwrap().status;
    assert_eq!(status, Pending, "only the child is covered");
    let after = updating(of_a_child, give());
    assert_eq!(refused_kind(&after), Some(Kind::AlreadyExecuting));

    let ended = [
        family(),
        running.clone().completes("b"),
        running.clone().fails("b"),
        running.when(cancel("r")).accepted(),
    ];
    let mut seen = Vec::new();
    for s in ended {
        let status = s.flow.task(id("r")).unwrap().status;
        seen.push(status);
        if status != Pending {
            let by_its_owner = updating(s.clone(), change("r").user(Some("bob")));
            let kind = Some(Kind::InvalidTransition);
            assert_eq!(refused_kind(&by_its_owner), kind, "{status:?}");
        }
        let s = updating(s, give()).accepted();
        assert_eq!(s.flow.owner(), Some("bob"), "{status:?}");
        assert_eq!(facts(&s, &["r"]), [("UserChanged", "r")], "{status:?}");
        assert_eq!(s.flow.task(id("r")).unwrap().status, status);
        let nobodys = updating(s, change("r").user(None).while_idle()).accepted();
        assert_eq!(nobodys.flow.owner(), None, "{status:?}");
    }
    assert_eq!(seen, [Pending, Completed, Failed, Cancelled]);
}

#[test]
fn whoever_gives_flows_away_changes_nothing_else_of_what_has_ended() {
    let done = given(vec![task("r").user("ann"), task("b").under("r")])
        .when(execute("r"))
        .accepted()
        .completes("r")
        .completes("b");
    for wanted in [
        // Of a task below the root it is a label.
        change("b").user(Some("bob")),
        change("r").user(Some("bob")).inputs(r#"{"x":1}"#),
    ] {
        let after = updating(done.clone(), wanted.while_idle());
        assert_eq!(refused_kind(&after), Some(Kind::InvalidTransition));
        assert_eq!(after.flow, done.flow, "a refusal changes nothing");
    }
}

#[test]
fn a_user_can_be_changed_and_removed() {
    let user = |s: &Scenario| s.flow.task(id("b")).unwrap().user_id;
    let s = updating(family(), change("b").user(Some("bob"))).accepted();
    assert_eq!(user(&s).as_deref(), Some("bob"));
    assert_eq!(user(&updating(s, change("b").user(None)).accepted()), None);
}

#[test]
fn a_changed_specification_is_carried_whole_by_its_event() {
    let s = updating(family(), change("b").inputs(r#"{"x":1}"#)).accepted();
    let Some((_, Event::TaskRespecified(e))) = s.history.last() else {
        panic!("{:?}", s.history.last());
    };
    assert_eq!(e.specification.inputs.as_str(), r#"{"x":1}"#);
    assert_eq!(
        e.specification.method.as_deref(),
        Some("echo"),
        "the rest is kept"
    );
    assert_eq!(s.flow.task(id("b")).unwrap().spec_at, s.flow.version());
}

#[test]
fn values_that_are_what_they_were_change_nothing() {
    let s = family();
    let wanted = change("b")
        .inputs("{}")
        .priority(2)
        .user(Some("ann"))
        .parent(Some("r"))
        .dependencies(&[]);
    let s = updating(s, wanted).accepted();
    assert!(s.last.as_ref().unwrap().0.is_empty(), "{:?}", s.last);
    assert_eq!(s.last.unwrap().1, Done::Status(Pending));
}

#[test]
fn an_update_on_an_older_specification_must_be_built_again() {
    let old = change("b").inputs(r#"{"x":1}"#).seen(&family());
    let s = updating(family(), change("b").inputs(r#"{"y":1}"#)).accepted();
    let s = s.when(old).is_outdated(Outdated::Specification);
    let _ = s
        .when(change("b").inputs("{}").unseen())
        .is_outdated(Outdated::Specification);
}

#[test]
fn a_move_stays_in_the_flow_and_makes_no_parent_cycle() {
    let s = updating(family(), change("b").parent(Some("g"))).accepted();
    assert_eq!(s.flow.task(id("b")).unwrap().parent, Some(id("g")));
    assert_eq!(s.flow, s.replayed());
    for (moved, to, kind) in [
        ("g", "g", Kind::InvalidTree),
        ("g", "a", Kind::InvalidTree),
        ("r", "a", Kind::InvalidTree),
        ("b", "nobody", Kind::InvalidParent),
    ] {
        let _ = updating(family(), change(moved).parent(Some(to))).rejects(kind);
    }
    let _ = updating(family(), change("b").parent(None)).rejects(Kind::InvalidTree);
    let _ = updating(family(), change("r").parent(None)).accepted();
}

#[test]
fn a_move_keeps_the_tree_within_60_levels() {
    let mut tasks = vec![group("0")];
    tasks.extend((1..59).map(|n| group(&n.to_string()).under(&(n - 1).to_string())));
    tasks.extend([group("x").under("0"), task("y").under("x")]);
    let s = given(tasks);
    let _ = updating(s.clone(), change("y").parent(Some("58"))).accepted();
    let _ = updating(s.clone(), change("x").parent(Some("57"))).accepted();
    let s = updating(s, change("x").parent(Some("58")));
    let fault = TreeFault::TooDeep {
        task: id("x"),
        levels: 61,
        levels_max: 60,
    };
    assert_eq!(*refusal(&s), Refusal::InvalidTree(vec![fault]));
}

#[test]
fn siblings_stay_in_order_of_creation_after_a_move() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("r"),
    ]);
    let s = updating(s, change("a").parent(Some("r"))).accepted();
    let s = s.when(crate::support::delete("g")).accepted();
    assert_eq!(
        s.flow.copy_set(id("r"), true).unwrap(),
        ["r", "a", "b"].map(id)
    );
}

#[test]
fn while_a_run_covers_a_task_its_parent_cannot_change() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("x").under("r"),
        task("a").under("r").after(&["x"]),
    ]);
    let s = s.when(execute("r")).accepted();
    let _ = updating(s.clone(), change("a").parent(Some("g"))).rejects(Kind::AlreadyExecuting);
    let _ = updating(s, change("a").parent(Some("r"))).accepted();
}

#[test]
fn while_a_run_covers_a_task_it_cannot_change_between_group_and_method() {
    let s = given(vec![
        group("r"),
        task("x").under("r"),
        task("a").under("r").after(&["x"]),
        group("g").under("r").after(&["x"]),
    ]);
    let idle = s.clone();
    let s = s.when(execute("r")).accepted();
    for (name, method) in [("a", None), ("g", Some("echo"))] {
        let s = updating(s.clone(), change(name).method(method));
        let conflict = RunConflict::MethodChanged {
            task: id(name),
            method: method.map(str::to_owned),
        };
        assert_eq!(*refusal(&s), Refusal::AlreadyExecuting(vec![conflict]));
    }
    let _ = updating(s, change("a").method(Some("once"))).accepted();
    let idle = updating(idle, change("a").method(None)).accepted();
    let s = updating(idle, change("g").method(Some("echo"))).accepted();
    assert_eq!(s.flow.task(id("a")).unwrap().method, None);
    assert_eq!(s.flow, s.replayed());
    let s = s
        .when(execute("r"))
        .accepted()
        .completes("x")
        .then(&[("a", Completed), ("g", InProgress)]);
    let _ = s.completes("g").then(&[("r", Completed)]);
}

#[test]
fn while_a_run_covers_a_task_new_dependencies_are_covered_or_completed() {
    let s = given(vec![
        group("top"),
        group("r").under("top"),
        task("x").under("r"),
        task("y").under("r"),
        task("a").under("r").after(&["x"]),
        task("out").under("top"),
        task("done").under("top"),
    ]);
    let s = s
        .when(execute("done"))
        .accepted()
        .completes("done")
        .when(execute("r"))
        .accepted();
    let refused = updating(s.clone(), change("a").dependencies(&["x", "out"]));
    let conflict = RunConflict::DependencyNotCovered {
        task: id("a"),
        index: 1,
        dependency: id("out"),
    };
    assert_eq!(
        *refusal(&refused),
        Refusal::AlreadyExecuting(vec![conflict])
    );
    let s = updating(s, change("a").dependencies(&["done", "y"])).accepted();
    let s = s
        .then(&[("a", Pending)])
        .completes("y")
        .then(&[("a", InProgress)]);
    let _ = s.completes("a").completes("x").then(&[("r", Completed)]);
}

#[test]
fn dropping_the_last_unsatisfied_dependency_starts_the_task() {
    let s = given(vec![
        group("r"),
        task("x").under("r"),
        task("a").under("r").after(&["x"]),
    ]);
    let s = s.when(execute("r")).accepted();
    let s = updating(s, change("a").dependencies(&[]))
        .accepted()
        .then(&[("a", InProgress)]);
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn a_new_dependency_makes_a_waiting_task_wait_longer() {
    let mut s = given(vec![
        group("r"),
        task("x").under("r").priority(0),
        task("a").under("r"),
    ]);
    s.server.slots = 1;
    let s = s
        .when(execute("r"))
        .accepted()
        .then(&[("x", InProgress), ("a", Pending)]);
    let s = updating(s, change("a").dependencies(&["x"])).accepted();
    let _ = s.fails("x").then(&[("a", Pending)]).runs(false);
}

#[test]
fn updated_dependencies_must_exist_in_the_flow() {
    let s = updating(family(), change("b").dependencies(&["a", "n1", "n2"]));
    let unknown = [(1, "n1"), (2, "n2")].map(|(index, name)| UnknownDependency {
        task: id("b"),
        index,
        dependency: id(name),
    });
    assert_eq!(
        *refusal(&s),
        Refusal::DependenciesNotFound(unknown.to_vec())
    );
}

#[test]
fn updates_refuse_id_server_written_and_unknown_fields_all_at_once() {
    let found = update_faults(json!({
        "id": "550e8400-e29b-41d4-a716-446655440000", "status": "completed", "result": {},
        "name": "", "priority": 7, "inputs": 1, "schemas": {}, "params": [], "parent_id": 4,
        "dependencies": 1, "user_id": 2, "more": 1, "children": []
    }));
    let mut paths: Vec<_> = found.iter().map(path).collect();
    paths.sort_unstable();
    let fields = [
        "children",
        "dependencies",
        "id",
        "inputs",
        "more",
        "name",
        "params",
        "parent_id",
        "priority",
        "result",
        "schemas/method",
        "status",
        "user_id",
    ];
    assert_eq!(paths, fields.map(|f| format!("updates/{f}")));
}

#[test]
fn an_empty_update_and_null_members_are_accepted() {
    assert!(update_faults(json!({})).is_empty());
    let nulls = json!({"user_id": null, "parent_id": null, "schemas": null, "params": null, "priority": null});
    let updates = spec::updates(nulls.as_object().unwrap()).unwrap();
    assert_eq!(
        (updates.user_id, updates.schemas, updates.params),
        (Some(None), Some(None), Some(None))
    );
    assert_eq!(updates.parent, Some(None));
    assert_eq!(updates.priority.map(|p| p.get()), Some(2));
    assert_eq!((updates.name, updates.inputs), (None, None));
}

#[test]
fn a_priority_that_changes_while_a_task_waits_changes_its_place() {
    let mut s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r"),
        task("c").under("r"),
    ]);
    s.server.slots = 1;
    let s = s.when(execute("r")).accepted().then(&[("a", InProgress)]);
    let s = updating(s, change("c").priority(0))
        .accepted()
        .completes("a");
    let _ = s.then(&[("b", Pending), ("c", InProgress)]);
}

#[test]
fn an_update_of_several_fields_is_all_or_nothing() {
    let s = family();
    let before = s.flow.clone();
    let s = updating(
        s,
        change("b").name("n").priority(0).dependencies(&["nobody"]),
    );
    assert_eq!(s.rejects(Kind::InvalidDependency).flow, before);
}

#[test]
fn a_cycle_by_update_is_refused_with_its_tasks() {
    let s = given(vec![
        group("r"),
        task("a").under("r").after(&["b"]),
        task("b").under("r"),
    ]);
    let s = updating(s, change("b").dependencies(&["a"])).rejects(Kind::Circular);
    assert_eq!(cycle(refusal(&s)), ["b", "a", "b"].map(id));
}

#[test]
fn a_task_that_was_moved_out_can_be_deleted_with_its_old_parent_gone() {
    let s = updating(family(), change("a").parent(Some("r"))).accepted();
    let s = s.when(crate::support::delete("g")).accepted();
    let s = s.when(create(vec![task("z").under("a")])).accepted();
    assert_eq!(s.flow, s.replayed());
    let _ = s.when(Command::Wake).accepted();
}
