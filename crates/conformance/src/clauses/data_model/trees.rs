//! Trees of tasks: their rules, what parents mean, how they are shown. spec: data-model / Task Tree
//! Structure

use super::waiting::required_waits_for_completion;
use crate::clauses::prelude::*;

/// Levels of a tree that is shown: some, and fewer than any server's limit.
const DEPTH: usize = 8;

pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = vec![
        must(
            "data-model/tree-node/1-task",
            "a node of a tree has a `task`, which conforms to the schema of tasks",
            nodes_have_tasks_and_children,
        ),
        must(
            "data-model/tree-node/2-children",
            "a node of a tree has a list `children` of nodes, empty if there are none",
            nodes_have_tasks_and_children,
        ),
        must(
            "data-model/tree/1-root",
            "the root of a tree has no parent",
            one_root_is_demanded,
        ),
        must(
            "data-model/tree/2-parents",
            "the `parent_id` of a child is the `id` of the node above it",
            nodes_have_tasks_and_children,
        ),
        must(
            "data-model/tree/3-acyclic",
            "no task is below itself",
            parent_cycles_are_refused,
        ),
        must(
            "data-model/tree/4-one-flow",
            "all tasks of a tree belong to one flow",
            trees_are_one_flow,
        ),
        should(
            "data-model/tree/5-validated",
            "trees are checked when they are built and when they are changed",
            faulty_trees_are_refused,
        ),
        should(
            "data-model/tree/6-faults-found",
            "faulty trees are found and refused",
            faulty_trees_are_refused,
        ),
    ];
    clauses.extend(meaning());
    clauses
}

fn meaning() -> Vec<Clause> {
    vec![
        must(
            "data-model/parents/1-no-order",
            "parents order nothing: a child may run before, beside and after its parent",
            parents_do_not_order,
        ),
        must(
            "data-model/parents/2-dependencies-order",
            "dependencies order execution",
            required_waits_for_completion,
        ),
        must(
            "data-model/parents/3-example",
            "a task runs after its dependency, whatever its parent does",
            dependencies_count_and_parents_do_not,
        ),
        must(
            "data-model/serialization/1-complete-tasks",
            "the tasks of a tree are complete: as `tasks.get` shows them",
            trees_have_whole_tasks,
        ),
        must(
            "data-model/serialization/2-parents",
            "a tree shows who is below whom",
            nodes_have_tasks_and_children,
        ),
        must(
            "data-model/serialization/3-dependencies",
            "a tree shows the dependencies of its tasks",
            trees_have_whole_tasks,
        ),
        must(
            "data-model/serialization/4-integrity",
            "each task is in a tree exactly once",
            nodes_have_tasks_and_children,
        ),
        should(
            "data-model/serialization/5-nested",
            "trees are nested nodes",
            nodes_have_tasks_and_children,
        ),
        should(
            "data-model/serialization/6-all-tasks",
            "all tasks are in the tree, not the root alone",
            nodes_have_tasks_and_children,
        ),
    ]
}

/// A tree with a long branch and two short ones; the ids, the root's first.
async fn planted(probe: &Probe) -> Result<Vec<String>, Finding> {
    let root = probe.create(&probe.task("root")).await?;
    let mut ids = vec![root.clone()];
    let mut above = root.clone();
    for level in 1..DEPTH {
        above = probe
            .create(&probe.task(&format!("level {level}")).below(&above))
            .await?;
        ids.push(above.clone());
    }
    let left = probe.create(&probe.task("left").below(&root)).await?;
    let right = probe
        .task("right")
        .below(&root)
        .after(&left)
        .after_end_of(&ids[1]);
    let right = probe
        .create(
            &right
                .with("priority", 0)
                .with("params", json!({"retry_count": 1})),
        )
        .await?;
    ids.extend([left, right]);
    Ok(ids)
}

pub(in super::super) async fn nodes_have_tasks_and_children(probe: &Probe) -> Outcome {
    let ids = planted(probe).await?;
    let tree = probe
        .result("tasks.tree", json!({"task_id": ids[0]}))
        .await?;
    let mut nodes = vec![(&tree, Value::Null)];
    let mut found = Vec::new();
    while let Some((node, parent)) = nodes.pop() {
        expect_task(&node["task"])?;
        expect_field(&node["task"], "parent_id", parent)?;
        let children = node["children"].as_array();
        let none = || Finding::failed(format!("a node without a list `children`: {}", shown(node)));
        let id = &node["task"]["id"];
        nodes.extend(
            children
                .ok_or_else(none)?
                .iter()
                .map(|child| (child, id.clone())),
        );
        found.push(text_of(&node["task"], "id")?);
    }
    let mut expected = ids;
    found.sort();
    expected.sort();
    ensure!(
        found == expected,
        "the tree has {found:?}, stored are {expected:?}"
    );
    seen(format!(
        "{} tasks on {DEPTH} levels, each once, each below its parent",
        found.len()
    ))
}

pub(in super::super) async fn one_root_is_demanded(probe: &Probe) -> Outcome {
    let root = probe.store(&probe.task("root")).await?;
    expect_field(&root, "parent_id", Value::Null)?;
    let [one, two] = ["one", "two"].map(|alias| probe.task(alias).element());
    let three = probe.task("three").below("one").element();
    let several = [json!([one, two]), json!([one, three, two])];
    let ringed = [
        probe.task("a").below("b").element(),
        probe.task("b").below("a").element(),
    ];
    let lists = several.into_iter().chain([json!(ringed)]);
    let calls = lists.map(|tasks| json!({"tasks": tasks}));
    let errors = probe.refuses("tasks.execute", calls, ANY).await?;
    let started = probe
        .run(&[probe.task("one"), probe.task("three").below("one")])
        .await?;
    // Other checks compare what is stored before and after; nothing may move meanwhile.
    probe.wait_until_terminal(started.id("three")?).await?;
    let root = probe.wait_until_terminal(&started.root).await?;
    expect_field(&root, "parent_id", Value::Null)?;
    seen(format!("two roots: {}; none: {}", errors[0], errors[2]))
}

pub(in super::super) async fn missing_parents_are_refused(probe: &Probe) -> Outcome {
    let orphan = probe.task("never").below(UNKNOWN_ID);
    let errors = probe.refuses("tasks.create", [orphan.value()], ANY).await?;
    let list = [
        probe.task("root").element(),
        probe.task("never").below(UNKNOWN_ID).element(),
    ];
    probe
        .refuses("tasks.execute", [json!({"tasks": list})], ANY)
        .await?;
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    probe
        .refuses_updates(&child, [json!({"parent_id": UNKNOWN_ID})], ANY)
        .await?;
    expect_field(&probe.get(&child).await?, "parent_id", root)?;
    seen(format!("a parent that does not exist: {}", errors[0]))
}

pub(in super::super) async fn parent_cycles_are_refused(probe: &Probe) -> Outcome {
    let ids = planted(probe).await?;
    let onto = |id: &String| json!({"parent_id": id});
    // The root below its child and below the last of its branch; a task below itself.
    let errors = probe
        .refuses_updates(&ids[0], [onto(&ids[1]), onto(&ids[DEPTH - 1])], ANY)
        .await?;
    let below = [onto(&ids[1]), onto(&ids[2]), onto(&ids[DEPTH - 1])];
    probe.refuses_updates(&ids[1], below, ANY).await?;
    let ring = |length: usize| {
        let alias = |n: usize| format!("t{n}");
        let task = |n: usize| {
            probe
                .task(&alias(n))
                .below(&alias((n + 1) % length))
                .element()
        };
        let ring = (0..length).map(task);
        let tasks: Vec<_> = [probe.task("root").element()]
            .into_iter()
            .chain(ring)
            .collect();
        json!({"tasks": tasks})
    };
    probe
        .refuses("tasks.execute", [1, 2, 3].map(ring), ANY)
        .await?;
    seen(format!("a task below itself, near and far: {}", errors[0]))
}

async fn trees_are_one_flow(probe: &Probe) -> Outcome {
    let ids = planted(probe).await?;
    let other = probe.create(&probe.task("other root")).await?;
    let strange = probe.create(&probe.task("strange").below(&other)).await?;
    let tree = probe.tree(&ids[0]).await?;
    let mixed = tree
        .iter()
        .any(|task| task["id"] == strange || task["id"] == other);
    ensure!(
        !mixed,
        "a task of another flow is in the tree: {}",
        shown(json!(tree))
    );
    let [one, two] = ["one", "two"].map(|alias| probe.task(alias).element());
    probe
        .refuses("tasks.execute", [json!({"tasks": [one, two]})], ANY)
        .await?;
    seen("two flows do not mix, and one call does not start two")
}

async fn faulty_trees_are_refused(probe: &Probe) -> Outcome {
    one_root_is_demanded(probe).await?;
    missing_parents_are_refused(probe).await?;
    parent_cycles_are_refused(probe).await?;
    seen("several roots, none, missing parents and cycles, at execute, create and update")
}

pub(in super::super) async fn trees_have_whole_tasks(probe: &Probe) -> Outcome {
    let ids = planted(probe).await?;
    let tree = probe.tree(&ids[0]).await?;
    let mut dependencies = 0;
    for shown_task in &tree {
        let task = probe.get(&text_of(shown_task, "id")?).await?;
        for field in MEMBERS {
            expect_field(shown_task, field, task[field].clone())?;
        }
        dependencies += task["dependencies"].as_array().map_or(0, Vec::len);
    }
    ensure!(
        dependencies == 2,
        "{dependencies} dependencies are shown, 2 are stored"
    );
    seen(format!(
        "{} tasks with all 17 members, as in tasks.get",
        tree.len()
    ))
}

pub(in super::super) async fn parents_do_not_order(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.slow("parent", FOREVER_MS),
            probe.task("quick child").below("parent"),
            probe.slow("slow child", FOREVER_MS).below("parent"),
        ])
        .await?;
    probe
        .wait_for(started.id("quick child")?, "completed")
        .await?;
    probe
        .wait_for(started.id("slow child")?, "in_progress")
        .await?;
    expect_field(&probe.get(&started.root).await?, "status", "in_progress")?;
    probe.cancel(started.id("slow child")?).await?;
    let started_too = probe
        .run(&[
            probe.task("quick parent"),
            probe.slow("late child", FOREVER_MS).below("quick parent"),
        ])
        .await?;
    let late = started_too.id("late child")?;
    probe.wait_for(late, "in_progress").await?;
    probe.wait_for(&started_too.root, "completed").await?;
    expect_field(&probe.get(late).await?, "status", "in_progress")?;
    probe.cancel(late).await?;
    probe.cancel(&started.root).await?;
    seen("children run and end beside a running parent; a parent ends before its child")
}

/// B is below A and depends on C, as in the document's example. A runs all the time.
async fn dependencies_count_and_parents_do_not(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.task("root"),
            probe.slow("a", FOREVER_MS).below("root"),
            probe.task("b").below("a").after("c"),
            probe.slow("c", 200).below("root"),
        ])
        .await?;
    let b = probe.wait_for(started.id("b")?, "completed").await?;
    let c = probe.get(started.id("c")?).await?;
    let a = probe.get(started.id("a")?).await?;
    expect_field(&a, "status", "in_progress")?;
    probe.cancel(started.id("a")?).await?;
    ensure!(
        instant(&c, "completed_at")? <= instant(&b, "started_at")?,
        "{} started before {} had ended",
        shown(&b),
        shown(&c)
    );
    seen("B ran after C, while its parent A was running")
}
