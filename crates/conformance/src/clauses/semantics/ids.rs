//! What this project decided. Section: Ids

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/ids/1-lower-case",
            "a stored id is a UUID v4, written in lower case, and found in either case",
            ids_are_lower_case,
        ),
        decided(
            "semantics/ids/2-chosen",
            "a caller may choose a task's id, which must be a UUID v4",
            ids_can_be_chosen,
        ),
        decided(
            "semantics/ids/3-never-again",
            "an id that a task has, or ever had, is -32602, and nothing is stored",
            ids_are_never_taken_again,
        ),
        decided(
            "semantics/ids/4-alias",
            "in one call, an id that is no UUID is a local alias for parents and dependencies",
            aliases_lead_to_stored_ids,
        ),
        decided(
            "semantics/ids/5-name",
            "in one call, a name that is unique serves as an alias too",
            names_serve_as_aliases,
        ),
        decided(
            "semantics/ids/6-ids-beat-names",
            "where one task's id is another one's name, the id counts",
            ids_beat_names,
        ),
        decided(
            "semantics/ids/7-ambiguous",
            "a name that several tasks have is -32602 where it is referred to, and only there",
            ambiguous_names_are_told_where_they_matter,
        ),
        decided(
            "semantics/ids/8-duplicates",
            "two tasks with one id, alias or UUID, are -32602",
            duplicate_ids_are_refused,
        ),
        decided(
            "semantics/ids/9-other-versions",
            "a UUID that is not version 4 is -32602, and no alias",
            other_versions_are_refused,
        ),
        decided(
            "semantics/ids/10-task-ids",
            "the result carries `task_ids`, from each alias to the stored id",
            task_ids_map_aliases,
        ),
        decided(
            "semantics/ids/11-invalid-format",
            "where a stored id is expected, anything but a UUID v4 is -32602 `Invalid UUID format`",
            invalid_ids_are_told,
        ),
        decided(
            "semantics/ids/12-unknown",
            "where a stored id is expected, one that no task has is -32001",
            unknown_ids_are_told,
        ),
    ]
}

async fn ids_are_lower_case(probe: &Probe) -> Outcome {
    let chosen = fresh_id(probe, 0xabcd);
    let upper = chosen.to_uppercase();
    let task = probe.task("upper").with("id", upper.as_str());
    let id = probe.create(&task).await?;
    ensure!(id == chosen, "sent {upper}, got {id}: expected {chosen}");
    let found = probe.get(&upper).await?;
    expect(&found, &[("id", json!(chosen))])?;
    let minted = probe.create(&probe.task("minted")).await?;
    ensure!(
        minted == minted.to_lowercase() && minted.len() == 36 && minted.as_bytes()[14] == b'4',
        "{minted} is no UUID v4 in lower case"
    );
    seen(format!("{upper} is {id}"))
}

async fn ids_can_be_chosen(probe: &Probe) -> Outcome {
    let (created, run) = (fresh_id(probe, 1), fresh_id(probe, 2));
    let task = probe.task("created").with("id", created.as_str());
    let id = probe.create(&task).await?;
    ensure!(id == created, "{id}: expected {created}");
    let element = probe.task("run").with("id", run.as_str()).value();
    let params = json!({"tasks": [element]});
    let result = probe.result("tasks.execute", params).await?;
    ensure!(
        result["root_task_id"] == run.as_str(),
        "{}: expected {run}",
        shown(&result)
    );
    let task = probe.task("bad").with("id", 4);
    let error = probe
        .refused("tasks.create", task.value(), INVALID_PARAMS)
        .await?;
    fault_in(&error, "id")?;
    seen(format!("{created}, {run}"))
}

async fn ids_are_never_taken_again(probe: &Probe) -> Outcome {
    let (kept, deleted) = (fresh_id(probe, 1), fresh_id(probe, 2));
    for id in [&kept, &deleted] {
        probe
            .create(&probe.task(id).with("id", id.as_str()))
            .await?;
    }
    let params = json!({"task_id": deleted});
    probe.result("tasks.delete", params).await?;
    for id in [&kept, &deleted] {
        let again = probe.task("again").with("id", id.as_str()).value();
        let error = probe
            .refused("tasks.create", again.clone(), INVALID_PARAMS)
            .await?;
        fault_in(&error, "id")?;
        let list = json!({"tasks": [again]});
        let error = probe.refused("tasks.execute", list, INVALID_PARAMS).await?;
        fault_in(&error, "id")?;
    }
    let root = probe.create(&probe.task("root")).await?;
    let below = probe.task("below").below(&root).with("id", kept.as_str());
    probe
        .refused("tasks.create", below.value(), INVALID_PARAMS)
        .await?;
    let stored = count(probe).await?;
    ensure!(stored == 2, "{stored} tasks are stored: expected 2");
    seen("refused for a stored and for a deleted task")
}

/// A root, a task below it, and one that waits for that.
fn three(probe: &Probe) -> [NewTask; 3] {
    [
        probe.group("root"),
        probe.task("first").below("root"),
        probe.task("second").below("root").after("first"),
    ]
}

async fn aliases_lead_to_stored_ids(probe: &Probe) -> Outcome {
    let created = create_all(probe, &three(probe)).await?;
    let started = probe.run(&three(probe)).await?;
    for ids in [created, started.result["task_ids"].clone()] {
        let second = probe.get(&text_of(&ids, "second")?).await?;
        let dependency = json!([{"id": ids["first"], "required": true}]);
        expect(
            &second,
            &[
                ("parent_id", ids["root"].clone()),
                ("dependencies", dependency),
            ],
        )?;
    }
    let stray = probe.task("stray").after("nobody");
    let error = probe
        .refused("tasks.create", list(&[stray]), INVALID_PARAMS)
        .await?;
    fault_in(&error, "id")?;
    seen("in tasks.create and tasks.execute")
}

async fn names_serve_as_aliases(probe: &Probe) -> Outcome {
    let (root, first) = (probe.name("root"), probe.name("first"));
    let second = probe.task("second").below(&root).after(&first);
    let tasks = json!({"tasks": [
        probe.group("root").value(),
        probe.task("first").below(&root).value(),
        second.value(),
    ]});
    for method in ["tasks.create", "tasks.execute"] {
        let result = probe.result(method, tasks.clone()).await?;
        let ids = &result["task_ids"];
        let second = probe.get(&text_of(ids, &probe.name("second"))?).await?;
        let dependency = json!([{"id": ids[&first], "required": true}]);
        expect(
            &second,
            &[
                ("parent_id", ids[&root].clone()),
                ("dependencies", dependency),
            ],
        )?;
    }
    seen(format!("`{first}` is a dependency"))
}

async fn ids_beat_names(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("x").below("root"),
        probe.task("y").below("root").with("name", "x"),
        probe.task("z").below("root").after("x"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let z = probe.get(&text_of(&ids, "z")?).await?;
    ensure!(
        z["dependencies"][0]["id"] == ids["x"],
        "`x` is {} in {}: expected the task with that id",
        z["dependencies"][0]["id"],
        ids
    );
    seen("`x` is the id")
}

async fn ambiguous_names_are_told_where_they_matter(probe: &Probe) -> Outcome {
    let twin = |alias| probe.task(alias).with("name", "twin").below("root");
    let unread = [probe.group("root"), twin("a"), twin("b")];
    create_all(probe, &unread).await?;
    let [root, a, b] = unread;
    let reader = probe.task("c").below("root").after("twin");
    let tasks = list(&[root, a, b, reader]);
    for method in ["tasks.create", "tasks.execute"] {
        let error = probe.refused(method, tasks.clone(), INVALID_PARAMS).await?;
        let fault = fault_in(&error, "id")?;
        ensure!(
            fault["path"] == json!(["tasks", 3, "dependencies", 0, "id"]),
            "{error}: expected the path of the reference"
        );
    }
    seen("two tasks may share a name that nobody uses")
}

async fn duplicate_ids_are_refused(probe: &Probe) -> Outcome {
    let id = fresh_id(probe, 0xabcd);
    let upper = id.to_uppercase();
    for (one, other) in [("same", "same"), (id.as_str(), id.as_str()), (&id, &upper)] {
        let root = probe.group("root");
        let twin = |id: &str| probe.task("twin").below("root").with("id", id).value();
        let tasks = json!({"tasks": [root.element(), twin(one), twin(other)]});
        for method in ["tasks.create", "tasks.execute"] {
            let error = probe.refused(method, tasks.clone(), INVALID_PARAMS).await?;
            fault_in(&error, "id")?;
        }
    }
    let stored = count(probe).await?;
    ensure!(stored == 0, "{stored} tasks are stored: expected none");
    seen("aliases, UUIDs, and UUIDs in different cases")
}

/// UUIDs of version 1 and of none.
const OTHER_VERSIONS: [&str; 2] = [
    "0f8fad5b-d9cb-169f-a165-70867728950e",
    "00000000-0000-0000-0000-000000000000",
];

async fn other_versions_are_refused(probe: &Probe) -> Outcome {
    for id in OTHER_VERSIONS {
        let own = probe.task("own").with("id", id).value();
        for (method, params) in [
            ("tasks.create", own.clone()),
            ("tasks.create", json!({"tasks": [own]})),
            ("tasks.execute", json!({"tasks": [own]})),
        ] {
            let error = probe.refused(method, params, INVALID_PARAMS).await?;
            fault_in(&error, "id")?;
        }
        let dependent = list(&[probe.task("dependent").after(id)]);
        let error = probe
            .refused("tasks.create", dependent, INVALID_PARAMS)
            .await?;
        fault_in(&error, "id")?;
        let below = list(&[probe.task("below").below(id)]);
        let error = probe.refused("tasks.create", below, INVALID_PARAMS).await?;
        fault_in(&error, "parent_id")?;
    }
    seen(format!("{OTHER_VERSIONS:?}"))
}

async fn task_ids_map_aliases(probe: &Probe) -> Outcome {
    let started = probe.run(&three(probe)).await?;
    let ids = started.result["task_ids"].clone();
    let aliases: Vec<_> = ids
        .as_object()
        .into_iter()
        .flat_map(|ids| ids.keys())
        .collect();
    ensure!(
        aliases == ["first", "root", "second"],
        "`task_ids` is {ids}: expected the three aliases"
    );
    expect(&started.result, &[("root_task_id", ids["root"].clone())])?;
    for alias in aliases {
        let task = probe.get(&text_of(&ids, alias)?).await?;
        expect(&task, &[("name", json!(probe.name(alias)))])?;
    }
    seen(shown(ids))
}

/// Every method that takes a stored id, with its parameters for one.
fn takers(id: &str) -> Vec<(&'static str, &'static str, Value)> {
    let task = || json!({"task_id": id});
    vec![
        ("tasks.get", "task_id", task()),
        ("tasks.tree", "task_id", task()),
        ("tasks.children", "parent_id", json!({"parent_id": id})),
        (
            "tasks.update",
            "task_id",
            json!({"task_id": id, "updates": {"name": "n"}}),
        ),
        ("tasks.delete", "task_id", task()),
        ("tasks.execute", "task_id", task()),
        ("tasks.cancel", "task_id", task()),
        ("tasks.copy", "task_id", task()),
        ("tasks.retry", "task_id", task()),
    ]
}

async fn invalid_ids_are_told(probe: &Probe) -> Outcome {
    for id in ["task-uuid", "", OTHER_VERSIONS[0], OTHER_VERSIONS[1]] {
        for (method, field, params) in takers(id) {
            let error = probe.refused(method, params, INVALID_PARAMS).await?;
            let fault = fault_in(&error, field)?;
            ensure!(
                fault["reason"] == "Invalid UUID format",
                "{method}: {error}: expected `Invalid UUID format`"
            );
        }
    }
    let filter = json!({"parent_id": "p"});
    let error = probe.refused("tasks.list", filter, INVALID_PARAMS).await?;
    fault_in(&error, "parent_id")?;
    seen("nine methods, and the filter of tasks.list")
}

async fn unknown_ids_are_told(probe: &Probe) -> Outcome {
    let deleted = probe.create(&probe.task("deleted")).await?;
    let params = json!({"task_id": deleted});
    probe.result("tasks.delete", params).await?;
    for id in [UNKNOWN_ID, &deleted] {
        for (method, field, params) in takers(id) {
            let error = probe.refused(method, params, NOT_FOUND).await?;
            fault_in(&error, field)?;
        }
    }
    seen("nine methods, for an id without task and for a deleted task")
}
