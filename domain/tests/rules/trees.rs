//! The three forms of a call, and what makes a tree. spec: semantics / Trees and flows;
//! validation / Task Tree Validation

use crate::support::{create, faults, fields, minted, path, refusal, resolved, resolved_tasks};
use serde_json::{Value, json};
use taskledger_domain::flow::{CallTask, Kind, ParentFault, Refusal, TreeFault};
use taskledger_domain::task::Status::Pending;
use taskledger_domain::task::call::{NewTask, Place, parse_tasks};
use taskledger_domain::testing::{given, group, id, task};

const STORED: &str = "660e8400-e29b-41d4-a716-446655440001";

fn shape(tasks: &[NewTask]) -> Vec<(&str, Option<&str>)> {
    let name = |wanted| {
        tasks
            .iter()
            .find(|t| t.id == wanted)
            .map(|t| t.name.as_str())
    };
    tasks
        .iter()
        .map(|t| (t.name.as_str(), t.parent.and_then(name)))
        .collect()
}

#[test]
fn create_takes_one_task() {
    let r = resolved(json!({"name": "a"})).unwrap();
    assert_eq!(shape(&r.tasks), [("a", None)]);
}

#[test]
fn create_takes_a_tree_of_tasks_with_children() {
    let r = resolved(json!({"name": "a", "children": [
        {"name": "b", "children": [{"name": "c"}]}, {"name": "d", "children": []},
    ]}));
    let expected = [
        ("a", None),
        ("b", Some("a")),
        ("c", Some("b")),
        ("d", Some("a")),
    ];
    assert_eq!(shape(&r.unwrap().tasks), expected);
}

#[test]
fn create_takes_tree_nodes_of_the_data_model() {
    let r = resolved(json!({"task": {"name": "a"}, "children": [
        {"task": {"name": "b", "dependencies": [{"id": "c"}]}, "children": []},
        {"task": {"name": "c"}},
    ]}))
    .unwrap();
    assert_eq!(
        shape(&r.tasks),
        [("a", None), ("b", Some("a")), ("c", Some("a"))]
    );
    assert_eq!(r.tasks[1].dependencies[0].id, minted(2));
}

#[test]
fn create_takes_a_flat_list_in_any_order() {
    let r = resolved(json!({"tasks": [
        {"name": "c", "parent_id": "b"}, {"name": "b", "parent_id": "a"}, {"name": "a"},
    ]}));
    let expected = [("a", None), ("b", Some("a")), ("c", Some("b"))];
    assert_eq!(
        shape(&r.unwrap().tasks),
        expected,
        "parents stand before children"
    );
}

#[test]
fn forms_may_be_mixed_and_siblings_keep_their_order() {
    let r = resolved(json!({"tasks": [
        {"name": "a", "children": [{"task": {"name": "b"}}, {"name": "c"}]},
        {"name": "d", "parent_id": "a"},
    ]}));
    let expected = [
        ("a", None),
        ("b", Some("a")),
        ("c", Some("a")),
        ("d", Some("a")),
    ];
    assert_eq!(shape(&r.unwrap().tasks), expected);
}

#[test]
fn an_empty_list_and_wrong_types_are_invalid() {
    for (params, at) in [
        (json!({"tasks": []}), "tasks"),
        (json!({"tasks": {}}), "tasks"),
        (json!({"tasks": null}), "tasks"),
        (json!({"tasks": [1]}), "tasks/0"),
        (json!({"tasks": [[]]}), "tasks/0"),
        (json!({"name": "a", "children": 1}), "children"),
        (json!({"name": "a", "children": null}), "children"),
        (json!({"name": "a", "children": [3]}), "children/0"),
        (json!({"task": 1}), "task"),
        (json!({"task": {"name": "a"}, "extra": 1}), "extra"),
        (
            json!({"task": {"name": "a", "children": []}}),
            "task/children",
        ),
        (json!({"tasks": [{"name": "a"}], "name": "b"}), "name"),
    ] {
        let found = faults(params.clone());
        assert_eq!(found.iter().map(path).collect::<Vec<_>>(), [at], "{params}");
    }
}

#[test]
fn faults_beside_a_list_and_inside_of_it_are_reported_at_once() {
    let found = faults(json!({"name": "b", "tasks": [1, {"name": ""}]}));
    let paths: Vec<_> = found.iter().map(path).collect();
    assert_eq!(paths, ["name", "tasks/0", "tasks/1/name"]);
    let found = faults(json!({"name": "b", "tasks": []}));
    let paths: Vec<_> = found.iter().map(path).collect();
    assert_eq!(paths, ["name", "tasks"]);
}

#[test]
fn faults_of_all_tasks_are_reported_with_their_places() {
    let found = faults(json!({"name": "", "children": [
        {"name": "b", "priority": 9, "children": [{"nam": "c"}]}, {"task": {"name": 3}},
    ]}));
    let paths: Vec<_> = found.iter().map(path).collect();
    assert_eq!(
        paths,
        [
            "name",
            "children/0/priority",
            "children/0/children/0/nam",
            "children/0/children/0/name",
            "children/1/task/name"
        ]
    );
    assert_eq!(fields(&found), ["name", "priority", "nam", "name", "name"]);
}

#[test]
fn a_parent_that_contradicts_the_nesting_is_an_invalid_tree() {
    let nested = |parent: Value| {
        resolved(json!({"id": "a", "name": "a", "children": [{"name": "b", "parent_id": parent}]}))
    };
    assert_eq!(nested(json!("a")).unwrap().tasks[1].parent, Some(minted(0)));
    assert_eq!(
        nested(json!(null)).unwrap().tasks[1].parent,
        Some(minted(0))
    );
    for other in ["b", STORED] {
        assert_eq!(nested(json!(other)).unwrap_err().kind(), Kind::InvalidTree);
    }
}

#[test]
fn several_roots_are_an_invalid_tree() {
    let refusal = resolved_tasks(json!([{"name": "a"}, {"name": "b"}])).unwrap_err();
    let each = [0, 1].map(|i| TreeFault::SeveralRoots {
        task: CallTask::Index(i),
    });
    assert_eq!(refusal, Refusal::InvalidTree(each.to_vec()));
}

#[test]
fn parents_in_a_circle_are_an_invalid_tree() {
    for tasks in [
        json!([{"name": "a", "parent_id": "a"}]),
        json!([{"name": "a", "parent_id": "b"}, {"name": "b", "parent_id": "a"}]),
        json!([{"name": "r"}, {"name": "a", "parent_id": "b"}, {"name": "b", "parent_id": "a"}]),
    ] {
        assert_eq!(resolved_tasks(tasks).unwrap_err().kind(), Kind::InvalidTree);
    }
}

#[test]
fn a_circle_of_parents_is_listed_with_the_first_repeated() {
    let below = |name: &str, parent: &str| json!({"name": name, "parent_id": parent});
    for (tasks, cycle) in [
        (vec![below("a", "a")], vec![0, 0]),
        (vec![below("a", "b"), below("b", "a")], vec![0, 1, 0]),
        // The first two are below the circle, not in it.
        (
            vec![
                below("x", "y"),
                below("y", "c"),
                below("a", "b"),
                below("b", "c"),
                below("c", "a"),
            ],
            vec![2, 3, 4, 2],
        ),
    ] {
        let refusal = resolved_tasks(json!(tasks)).unwrap_err();
        let fault = TreeFault::ParentCycle {
            task: CallTask::Index(cycle[0]),
            cycle: cycle.into_iter().map(CallTask::Index).collect(),
        };
        assert_eq!(refusal, Refusal::InvalidTree(vec![fault]));
    }
}

#[test]
fn a_call_that_joins_a_flow_has_no_task_without_a_parent() {
    let joining = json!([{"name": "a", "parent_id": STORED}, {"name": "b", "parent_id": "a"}]);
    let r = resolved_tasks(joining).unwrap();
    assert_eq!(r.joins.map(|j| j.to_string()).as_deref(), Some(STORED));
    let mixed = json!([{"name": "a", "parent_id": STORED}, {"name": "b"}]);
    assert_eq!(resolved_tasks(mixed).unwrap_err().kind(), Kind::InvalidTree);
}

#[test]
fn a_task_without_a_parent_starts_a_flow_and_one_with_a_parent_joins_it() {
    let s = given(vec![group("r")])
        .when(create(vec![task("a").under("r")]))
        .accepted()
        .then(&[("r", Pending), ("a", Pending)]);
    assert_eq!(s.flow.task(id("a")).unwrap().parent, Some(id("r")));
    assert_eq!(s.flow.task(id("r")).unwrap().parent, None);
}

#[test]
fn an_unknown_or_deleted_parent_is_an_invalid_parent() {
    let s = given(vec![group("r"), group("gone").under("r")])
        .when(crate::support::delete("gone"))
        .accepted();
    for parent in ["nobody", "gone"] {
        let s = s.clone().when(create(vec![task("a").under(parent)]));
        let (task, parent) = (id("a"), id(parent));
        let fault = ParentFault::NotInFlow { task, parent };
        assert_eq!(*refusal(&s), Refusal::InvalidParent(vec![fault]));
    }
}

#[test]
fn a_flow_never_gets_a_second_root() {
    let _ = given(vec![group("r")])
        .when(create(vec![task("a")]))
        .rejects(Kind::InvalidTree);
}

#[test]
fn a_call_is_all_or_nothing() {
    let s = given(vec![group("r")])
        .when(create(vec![
            task("a").under("r"),
            task("b").under("nobody"),
        ]))
        .rejects(Kind::InvalidParent);
    assert_eq!((s.flow.size(), s.status("a")), (1, None));
}

#[test]
fn a_child_without_a_user_inherits_its_parents() {
    let user = |s: &taskledger_domain::testing::Scenario, n| s.flow.task(id(n)).unwrap().user_id;
    let s = given(vec![
        group("r").user("ann"),
        group("a").under("r"),
        task("b").under("a"),
        task("c").under("a").user("bob"),
    ])
    .when(create(vec![task("d").under("c")]))
    .accepted();
    let users = ["r", "a", "b", "c", "d"].map(|n| user(&s, n));
    let expected = ["ann", "ann", "ann", "bob", "bob"].map(|u| Some(u.to_owned()));
    assert_eq!(users, expected);
}

fn chain(levels: usize) -> Vec<NewTask> {
    let mut tasks = vec![group("0")];
    for n in 1..levels {
        tasks.push(group(&n.to_string()).under(&(n - 1).to_string()));
    }
    tasks
}

#[test]
fn a_tree_has_at_most_60_levels() {
    let s = given(chain(60));
    assert_eq!(s.flow.size(), 60);
    let s = s.when(create(vec![task("deep").under("59")]));
    let fault = TreeFault::TooDeep {
        task: id("deep"),
        levels: 61,
        levels_max: 60,
    };
    assert_eq!(*refusal(&s), Refusal::InvalidTree(vec![fault]));
    let _ = given(vec![])
        .when(create(chain(61)))
        .rejects(Kind::InvalidTree);
}

#[test]
fn parents_do_not_order_execution() {
    use taskledger_domain::task::Status::InProgress;
    let _ = given(vec![task("a"), task("b").under("a"), task("c").under("b")])
        .when(taskledger_domain::testing::execute("a"))
        .accepted()
        .then(&[("a", InProgress), ("b", InProgress), ("c", InProgress)]);
}

#[test]
fn the_place_of_a_list_is_where_it_is_resolved_to_in_any_order() {
    const CHOSEN: &str = "660e8400-e29b-41d4-a716-446655440002";
    let root = |id: Value| json!({"id": id, "name": "r", "user_id": "ann"});
    let child =
        |name: &str, parent: &str| json!({"name": name, "parent_id": parent, "user_id": "b"});
    let nested = json!({"name": "n", "parent_id": "r", "children": [{"name": "m"}]});
    let upper = CHOSEN.to_uppercase();
    let lists = [
        vec![root(json!("r")), child("a", "r"), child("b", "a")],
        vec![root(json!("k")), child("a", "k"), nested],
        vec![root(json!(CHOSEN)), child("a", &upper), child("b", "r")],
        vec![child("a", STORED), child("b", "a"), child("c", STORED)],
        vec![child("a", &STORED.to_uppercase()), child("b", "a")],
    ];
    for list in lists {
        for order in orders(list.len()) {
            let tasks: Vec<_> = order.iter().map(|i| list[*i].clone()).collect();
            let parsed = parse_tasks(&json!(tasks)).unwrap();
            let resolved = resolved_tasks(json!(tasks)).unwrap();
            let root = resolved.tasks.iter().find(|task| task.parent.is_none());
            match parsed.place() {
                Some(Place::Root(found)) => {
                    assert_eq!(resolved.joins, None);
                    let root = root.map(|task| (&task.name, &task.user_id));
                    assert_eq!(root, Some((&found.name, &found.user_id)), "{tasks:?}");
                }
                Some(Place::Below(parent)) => assert_eq!(resolved.joins, Some(parent), "{tasks:?}"),
                None => panic!("no place: {tasks:?}"),
            }
        }
    }
}

fn orders(len: usize) -> Vec<Vec<usize>> {
    if len == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(len - 1).into_iter();
    let longer = shorter.flat_map(|order| {
        (0..len).map(move |at| {
            let mut order = order.clone();
            order.insert(at, len - 1);
            order
        })
    });
    longer.collect()
}
