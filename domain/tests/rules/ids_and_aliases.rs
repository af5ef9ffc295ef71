//! Ids, aliases and names within a call. spec: semantics / Ids

use crate::support::{faults, fields, minted, resolved, resolved_tasks};
use serde_json::json;
use taskledger_domain::TaskId;
use taskledger_domain::flow::{Argument, CallTask, Fault, ReferenceAt, Refusal};
use taskledger_domain::task::call::{self, ResolvedTasks};
use taskledger_domain::task::spec::TaskRef;
use taskledger_domain::testing::id;

const V4: &str = "550e8400-e29b-41d4-a716-446655440000";
const OTHER_V4: &str = "660e8400-e29b-41d4-a716-446655440001";
const V1: &str = "550e8400-e29b-11d4-a716-446655440000";

/// What is invalid in the references of a call.
fn invalid(result: Result<ResolvedTasks, Refusal>) -> Vec<Fault> {
    match result.expect_err("refused") {
        Refusal::Invalid(faults) => faults,
        other => panic!("{other:?}"),
    }
}

/// A dependency of a task of the call.
fn dependency(task: usize, index: usize) -> ReferenceAt {
    let of = CallTask::Index(task);
    ReferenceAt::Dependency { of, index }
}

#[test]
fn create_mints_an_id() {
    let r = resolved(json!({"name": "a"})).unwrap();
    assert_eq!(r.tasks[0].id, minted(0));
    assert!(r.chosen_ids.is_empty());
}

#[test]
fn a_caller_may_choose_a_uuid_v4() {
    let r = resolved(json!({"id": V4, "name": "a"})).unwrap();
    assert_eq!(r.tasks[0].id, TaskId::parse(V4).unwrap());
    assert_eq!(r.chosen_ids, [TaskId::parse(V4).unwrap()]);
}

#[test]
fn ids_print_in_lower_case() {
    let r = resolved(json!({"id": V4.to_uppercase(), "name": "a"})).unwrap();
    assert_eq!(r.tasks[0].id.to_string(), V4);
    assert_eq!(r.aliases, [(V4.to_owned(), TaskId::parse(V4).unwrap())]);
}

#[test]
fn a_uuid_that_is_not_v4_is_invalid_as_id() {
    for wrong in [
        V1,
        "00000000-0000-0000-0000-000000000000",
        "550e8400-e29b-41d4-c716-446655440000",
    ] {
        let found = faults(json!({"id": wrong, "name": "a"}));
        assert_eq!(fields(&found), ["id"], "{wrong}");
        assert_eq!(found[0].reason, "Invalid UUID format");
    }
}

#[test]
fn only_the_hyphenated_form_is_a_uuid() {
    for alias in [
        "550e8400e29b41d4a716446655440000",
        "{550e8400-e29b-41d4-a716-446655440000}",
        "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
    ] {
        assert!(TaskId::parse(alias).is_err());
        let r = resolved(json!({"id": alias, "name": "a"})).unwrap();
        assert_eq!(r.aliases, [(alias.to_owned(), minted(0))]);
    }
}

#[test]
fn an_id_that_is_no_uuid_is_an_alias_for_parents_and_dependencies() {
    let r = resolved_tasks(json!([
        {"id": "task1", "name": "root"},
        {"id": "task2", "name": "x", "parent_id": "task1"},
        {"id": "task3", "name": "y", "parent_id": "task1", "dependencies": [{"id": "task2"}]},
    ]))
    .unwrap();
    assert_eq!(r.tasks[2].parent, Some(minted(0)));
    assert_eq!(r.tasks[2].dependencies[0].id, minted(1));
    assert_eq!(
        r.aliases,
        [("task1", 0), ("task2", 1), ("task3", 2)].map(|(a, n)| (a.to_owned(), minted(n)))
    );
    assert_eq!(r.joins, None);
}

#[test]
fn a_name_that_is_unique_in_the_call_is_an_alias_too() {
    let r = resolved_tasks(json!([
        {"name": "root"},
        {"name": "x", "parent_id": "root"},
        {"name": "y", "parent_id": "root", "dependencies": [{"id": "x", "required": false}]},
    ]))
    .unwrap();
    assert_eq!(r.tasks[2].dependencies[0].id, minted(1));
    assert!(!r.tasks[2].dependencies[0].when.is_required());
    assert_eq!(r.aliases.len(), 3);
}

#[test]
fn ids_beat_names() {
    let r = resolved_tasks(json!([
        {"id": "a", "name": "root"},
        {"name": "a", "parent_id": "root"},
        {"name": "c", "parent_id": "root", "dependencies": [{"id": "a"}]},
    ]))
    .unwrap();
    assert_eq!(r.tasks[2].dependencies[0].id, minted(0));
    let names: Vec<_> = r.aliases.iter().map(|(a, _)| a.as_str()).collect();
    assert_eq!(names, ["a", "c"], "a name that an id hides is no alias");
}

#[test]
fn an_ambiguous_name_is_an_error_only_when_it_is_referenced() {
    let twins = json!([
        {"id": "r", "name": "root"},
        {"name": "twin", "parent_id": "r"},
        {"name": "twin", "parent_id": "r"},
    ]);
    let r = resolved_tasks(twins.clone()).unwrap();
    assert_eq!(r.aliases, [("r".to_owned(), minted(0))]);
    let mut referenced = twins;
    let user = json!({"name": "z", "parent_id": "r", "dependencies": [{"id": "twin"}]});
    referenced.as_array_mut().unwrap().push(user);
    let (at, text) = (dependency(3, 0), "twin".to_owned());
    let expected = Fault::AmbiguousName { at, text };
    assert_eq!(invalid(resolved_tasks(referenced)), [expected]);
}

#[test]
fn duplicate_ids_are_invalid_also_in_another_case() {
    for (first, second) in [("a", "a"), (V4, V4), (V4, &*V4.to_uppercase())] {
        let tasks =
            json!([{"id": first, "name": "x"}, {"id": second, "name": "y", "parent_id": first}]);
        let (task, text) = (CallTask::Index(1), first.to_owned());
        let expected = Fault::DuplicateId { task, text };
        assert_eq!(invalid(resolved_tasks(tasks)), [expected]);
    }
}

#[test]
fn aliases_differ_by_case() {
    let r = resolved_tasks(json!([
        {"id": "a", "name": "x"},
        {"id": "A", "name": "y", "parent_id": "a"},
    ]));
    assert_eq!(r.unwrap().tasks[1].parent, Some(minted(0)));
}

#[test]
fn a_reference_that_is_a_uuid_means_a_task_of_the_call_before_a_stored_one() {
    let upper = V4.to_uppercase();
    let r = resolved_tasks(json!([
        {"id": V4, "name": "root"},
        {"name": "x", "parent_id": upper, "dependencies": [{"id": OTHER_V4}]},
    ]))
    .unwrap();
    assert_eq!(r.tasks[1].parent, Some(TaskId::parse(V4).unwrap()));
    let stored = TaskId::parse(OTHER_V4).unwrap();
    assert_eq!(r.tasks[1].dependencies[0].id, stored);
}

#[test]
fn a_reference_that_means_nothing_is_invalid_and_all_are_reported() {
    let faults = invalid(resolved_tasks(json!([
        {"id": "r", "name": "root"},
        {"name": "x", "parent_id": "nobody", "dependencies": [{"id": "none"}]},
    ])));
    let of = CallTask::Index(1);
    let unknown = [
        (ReferenceAt::Parent { of }, "nobody"),
        (dependency(1, 0), "none"),
    ];
    let unknown = unknown.map(|(at, text)| Fault::UnknownReference {
        at,
        text: text.to_owned(),
    });
    assert_eq!(faults, unknown);
}

#[test]
fn a_uuid_of_another_version_is_told_with_the_other_faults_of_the_call() {
    let faults = call::parse_tasks(&json!([
        {"name": "r", "priority": 9, "parent_id": V1, "dependencies": [{"id": V1}]},
    ]));
    let paths: Vec<_> = faults
        .unwrap_err()
        .iter()
        .map(crate::support::path)
        .collect();
    assert_eq!(
        paths,
        [
            "tasks/0/parent_id",
            "tasks/0/priority",
            "tasks/0/dependencies/0/id"
        ]
    );
}

#[test]
fn the_same_dependency_twice_is_invalid_however_it_is_written() {
    let faults = invalid(resolved_tasks(json!([
        {"id": "r", "name": "root"},
        {"name": "x", "parent_id": "r", "dependencies": [{"id": "r"}, {"id": "root"}]},
    ])));
    let (at, text) = (dependency(1, 1), "root".to_owned());
    assert_eq!(faults, [Fault::DuplicateDependency { at, text }]);
}

#[test]
fn only_a_uuid_v4_refers_to_a_stored_task() {
    let reference = |text: &str| TaskRef {
        text: text.to_owned(),
    };
    assert_eq!(reference(V4).id().unwrap().to_string(), V4);
    for text in ["task1", V1, "", " 550e8400-e29b-41d4-a716-446655440000"] {
        assert_eq!(reference(text).id(), None);
    }
}

#[test]
fn an_id_that_a_task_has_or_ever_had_is_refused() {
    use taskledger_domain::testing::{given, group, task};
    let s = given(vec![group("r"), task("a").under("r"), task("b").under("r")])
        .when(crate::support::delete("a"))
        .accepted();
    for taken in ["a", "b", "r"] {
        let s = s
            .clone()
            .when(crate::support::create(vec![task(taken).under("r")]));
        let id = id(taken);
        let task = CallTask::Id(id);
        let expected = Refusal::invalid([Fault::IdTaken { task, id }]);
        assert_eq!(*crate::support::refusal(&s), expected);
    }
    assert_eq!(s.flow.size(), 3);
}

#[test]
fn unknown_tasks_are_not_found_by_any_command() {
    use crate::support::*;
    use taskledger_domain::testing::{execute, given, group, retry};
    let s = given(vec![group("r")]);
    for command in [
        execute("x"),
        retry("x"),
        cancel("x"),
        delete("x"),
        change("x").name("y").unseen(),
        complete("x", 1),
        report("x", 1, 0.5),
    ] {
        let s = s.clone().when(command);
        let expected = Refusal::not_found(Argument::Task, id("x"));
        assert_eq!(*refusal(&s), expected);
    }
}

#[test]
fn a_list_with_faults_is_looked_at_for_more_and_never_resolved() {
    let list = call::read_tasks(&json!([
        {"id": "r", "name": "root"},
        {"id": "odd", "name": "odd", "parent_id": "r", "priority": 9, "schemas": {"method": ""}},
        {"id": "below", "name": "below", "parent_id": "odd", "dependencies": [{"id": "nobody"}]},
        {"id": "below", "name": "again", "parent_id": "r", "schemas": {"method": "none"}},
        {"task": 5, "children": [{"name": "child"}]}
    ]))
    .unwrap();
    assert!(list.is_faulty());
    let methods: Vec<_> = list.unknown_executors(|_| false);
    assert_eq!(
        methods.len(),
        1,
        "nothing is said of schemas that are wrong"
    );
    let mut number = 0;
    let rejection = list
        .resolve(|_| {
            number += 1;
            taskledger_domain::testing::id(&format!("fresh {number}"))
        })
        .unwrap_err()
        .first();
    let Refusal::Invalid(told) = rejection else {
        panic!("{rejection:?}");
    };
    let (values, references): (Vec<_>, Vec<_>) = told
        .iter()
        .partition(|fault| matches!(fault, Fault::Value(_)));
    let values = values.into_iter().map(|fault| match fault {
        Fault::Value(v) => (v.field.as_str(), v.path[1].clone()),
        other => panic!("{other:?}"),
    });
    let expected = [("priority", 1), ("method", 1), ("task", 4)];
    let expected = expected.map(|(field, i)| (field, i.into()));
    assert_eq!(values.collect::<Vec<_>>(), expected);
    let tasks = references.into_iter().map(|fault| match fault {
        Fault::DuplicateId { task, .. } => *task,
        Fault::UnknownReference { at, .. } => match at {
            ReferenceAt::Parent { of } | ReferenceAt::Dependency { of, .. } => *of,
        },
        other => panic!("{other:?}"),
    });
    assert_eq!(
        tasks.collect::<Vec<_>>(),
        [CallTask::Index(3), CallTask::Index(2)]
    );
}
