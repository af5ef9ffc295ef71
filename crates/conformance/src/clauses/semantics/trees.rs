//! What this project decided. Section: Trees and flows

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/trees/1-flow-id",
            "a flow is known by the id of its root, whichever of its tasks is looked at",
            flows_are_known_by_their_roots,
        ),
        decided(
            "semantics/trees/2-starts-a-flow",
            "a task without a parent starts a flow",
            tasks_without_a_parent_start_flows,
        ),
        decided(
            "semantics/trees/3-joins-a-flow",
            "a task with a stored parent joins that flow; an unknown parent is -32010",
            tasks_join_their_parent_s_flow,
        ),
        decided(
            "semantics/trees/4-forms",
            "one task, tasks with `children`, `{task, children}` nodes, and a flat list make the same trees",
            all_forms_make_the_same_tree,
        ),
        decided(
            "semantics/trees/5-one-root",
            "a call that starts a flow has exactly one task without a parent, else -32012",
            new_flows_have_one_root,
        ),
        decided(
            "semantics/trees/6-no-root",
            "a call that joins a flow has no task without a parent, else -32012; nor two flows",
            joining_calls_have_no_root,
        ),
        decided(
            "semantics/trees/7-all-or-nothing",
            "a call of which one task is refused stores none",
            refused_calls_store_nothing,
        ),
        decided(
            "semantics/trees/8-result",
            "one task is answered with `{id, status}`, several with the root's and `task_ids`",
            results_name_the_root,
        ),
        decided(
            "semantics/trees/9-dependencies-in-the-flow",
            "a dependency on a task of another flow, or on none, is -32011",
            dependencies_stay_in_the_flow,
        ),
        decided(
            "semantics/trees/10-not-itself",
            "a task that depends on itself is -32002",
            no_task_depends_on_itself,
        ),
        decided(
            "semantics/trees/11-no-cycle",
            "dependencies that close a cycle are -32002; `data.cycle` lists it, the first id repeated at the end",
            cycles_are_listed,
        ),
        decided(
            "semantics/trees/12-tree-faults",
            "a cycle of parents, and a parent that does not match the nesting, are -32012",
            tree_faults_are_told,
        ),
        decided(
            "semantics/trees/13-parents-order-nothing",
            "a task starts before its parent has ended, or while it is blocked, unless it depends on it",
            parents_order_nothing,
        ),
        decided(
            "semantics/trees/14-user",
            "a task without `user_id` gets its parent's, and keeps its own if it has one",
            users_are_inherited,
        ),
        decided(
            "semantics/trees/15-name-is-free",
            "a name is free text, whatever executors are called",
            names_are_free_text,
        ),
        decided(
            "semantics/trees/16-access",
            "who may see the root of a flow may see all of it, whoever a task's `user_id` names, and nobody else",
            access_follows_the_root,
        ),
        decided(
            "semantics/trees/17-no-group-above",
            "a dependency on a group above the task, directly or through others, is -32002 with `data.cycle`",
            no_task_waits_for_a_group_above_it,
        ),
    ]
}

async fn flows_are_known_by_their_roots(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[
            probe.group("root"),
            probe.group("middle").below("root"),
            probe.task("leaf").below("middle"),
        ],
    )
    .await?;
    for alias in ["root", "middle", "leaf"] {
        let task = probe.get(&text_of(&ids, alias)?).await?;
        expect(&task, &[("root_task_id", ids["root"].clone())])?;
    }
    let started = execute(probe, &text_of(&ids, "leaf")?).await?;
    expect(&started, &[("root_task_id", ids["root"].clone())])?;
    seen(format!("`root_task_id` is {}", ids["root"]))
}

async fn tasks_without_a_parent_start_flows(probe: &Probe) -> Outcome {
    let absent = probe.create(&probe.task("absent")).await?;
    let null = probe.task("null").with("parent_id", Value::Null);
    let null = probe.create(&null).await?;
    for id in [absent, null] {
        let task = probe.get(&id).await?;
        expect(
            &task,
            &[("parent_id", Value::Null), ("root_task_id", json!(id))],
        )?;
    }
    seen("with `parent_id` absent and null")
}

async fn tasks_join_their_parent_s_flow(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    let grandchild = probe
        .create(&probe.task("grandchild").below(&child))
        .await?;
    let task = probe.get(&grandchild).await?;
    expect(
        &task,
        &[("parent_id", json!(child)), ("root_task_id", json!(root))],
    )?;
    let lost = probe.task("lost").below(UNKNOWN_ID);
    let error = probe.refused("tasks.create", lost.value(), PARENT).await?;
    fault_in(&error, "parent_id")?;
    let params = json!({"tasks": [lost.element()]});
    probe.refused("tasks.create", params, PARENT).await?;
    let stored = count(probe).await?;
    ensure!(stored == 3, "{stored} tasks are stored: expected 3");
    seen(format!("{grandchild} is in the flow {root}"))
}

/// The names of a tree, with what is below each.
fn shape(node: &Value) -> Value {
    let children = node["children"].as_array().into_iter().flatten();
    json!([
        node["task"]["name"],
        children.map(shape).collect::<Vec<_>>()
    ])
}

async fn all_forms_make_the_same_tree(probe: &Probe) -> Outcome {
    let task = |alias| probe.group(alias).value();
    let with = |alias, children: Value| probe.group(alias).with("children", children).value();
    let node = |alias, children: Value| json!({"task": task(alias), "children": children});
    let nested = with("r", json!([with("a", json!([task("b")])), task("c")]));
    let below = node("a", json!([node("b", json!([]))]));
    let nodes = node("r", json!([below, node("c", json!([]))]));
    let flat = list(&[
        probe.group("b").below("a"),
        probe.group("a").below("r"),
        probe.group("r"),
        probe.group("c").below("r"),
    ]);
    let name = |alias| probe.name(alias);
    let b = json!([name("b"), []]);
    let expected = json!([name("r"), [[name("a"), [b]], [name("c"), []]]]);
    for params in [
        nested.clone(),
        nodes.clone(),
        flat,
        json!({"tasks": [nested]}),
        json!({"tasks": [nodes]}),
    ] {
        let result = probe.result("tasks.create", params).await?;
        let tree = json!({"task_id": text_of(&result, "id")?});
        let tree = probe.result("tasks.tree", tree).await?;
        ensure!(
            shape(&tree) == expected,
            "the tree is {}: expected {expected}",
            shape(&tree)
        );
    }
    let single = probe.create(&probe.task("single")).await?;
    let tree = probe.tree(&single).await?;
    ensure!(tree.len() == 1, "one task made a tree of {}", tree.len());
    seen(expected.to_string())
}

async fn new_flows_have_one_root(probe: &Probe) -> Outcome {
    let two = list(&[probe.task("one"), probe.task("two")]);
    let none = list(&[probe.task("a").below("b"), probe.task("b").below("a")]);
    for params in [two, none] {
        for method in ["tasks.create", "tasks.execute"] {
            let error = probe.refused(method, params.clone(), TREE).await?;
            fault_in(&error, "parent_id")?;
        }
    }
    let stored = count(probe).await?;
    ensure!(stored == 0, "{stored} tasks are stored: expected none");
    create_all(probe, &[probe.task("one"), probe.task("two").below("one")]).await?;
    seen("two roots and none are refused")
}

async fn joining_calls_have_no_root(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.group("root")).await?;
    let other = probe.create(&probe.group("other")).await?;
    let mixed = list(&[probe.task("a").below(&root), probe.task("b")]);
    probe.refused("tasks.create", mixed, TREE).await?;
    let astride = list(&[probe.task("a").below(&root), probe.task("b").below(&other)]);
    probe.refused("tasks.create", astride, PARENT).await?;
    let stored = count(probe).await?;
    ensure!(stored == 2, "{stored} tasks are stored: expected 2");
    let tasks = [
        probe.task("a").below(&root),
        probe.task("b").below(&root).after("a"),
        probe.task("c").below("b"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let c = probe.get(&text_of(&ids, "c")?).await?;
    expect(
        &c,
        &[
            ("root_task_id", json!(root)),
            ("parent_id", ids["b"].clone()),
        ],
    )?;
    seen("several tasks joined at once")
}

async fn refused_calls_store_nothing(probe: &Probe) -> Outcome {
    let good = || [probe.group("root"), probe.task("good").below("root")];
    let bad = || probe.task("bad");
    let bad = [
        (bad().below("root").with("priority", 4), INVALID_PARAMS),
        (bad().below("root").after(UNKNOWN_ID), DEPENDENCY),
        (bad().below("root").after("bad"), CIRCULAR),
        (bad().below(UNKNOWN_ID), TREE),
        (bad(), TREE),
    ];
    for (bad, code) in bad {
        let [root, good] = good();
        let params = list(&[root, good, bad]);
        for method in ["tasks.create", "tasks.execute"] {
            probe.refused(method, params.clone(), code).await?;
        }
    }
    let stored = count(probe).await?;
    ensure!(stored == 0, "{stored} tasks are stored: expected none");
    seen("nothing of ten calls is stored")
}

async fn results_name_the_root(probe: &Probe) -> Outcome {
    let one = probe
        .result("tasks.create", probe.task("one").value())
        .await?;
    let members: Vec<_> = one.as_object().into_iter().flat_map(|o| o.keys()).collect();
    ensure!(
        members == ["id", "status"],
        "{one}: expected `id` and `status`"
    );
    expect(&one, &[("status", json!("pending"))])?;
    let flat = list(&[probe.task("below").below("root"), probe.task("root")]);
    let several = probe.result("tasks.create", flat).await?;
    expect(
        &several,
        &[
            ("status", json!("pending")),
            ("id", several["task_ids"]["root"].clone()),
        ],
    )?;
    let root = text_of(&several, "id")?;
    let joining = list(&[probe.task("x").below(&root), probe.task("y").below(&root)]);
    let several = probe.result("tasks.create", joining).await?;
    expect(&several, &[("id", several["task_ids"]["x"].clone())])?;
    text_of(&several["task_ids"], "y")?;
    seen(shown(several))
}

async fn dependencies_stay_in_the_flow(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.group("root")).await?;
    let inside = probe.create(&probe.task("inside").below(&root)).await?;
    let other = probe.create(&probe.task("other")).await?;
    for id in [&other, UNKNOWN_ID] {
        let task = probe.task("task").below(&root).after(id);
        let error = probe
            .refused("tasks.create", task.value(), DEPENDENCY)
            .await?;
        fault_in(&error, "id")?;
        let alone = probe.task("task").after(id);
        probe
            .refused("tasks.create", alone.value(), DEPENDENCY)
            .await?;
        probe
            .refused("tasks.execute", list(&[alone]), DEPENDENCY)
            .await?;
        let updates = json!({"dependencies": [{"id": id, "required": false}]});
        update_refused(probe, &inside, updates, DEPENDENCY).await?;
    }
    probe
        .create(&probe.task("task").below(&root).after(&inside))
        .await?;
    seen("refused in tasks.create, tasks.execute and tasks.update")
}

async fn no_task_depends_on_itself(probe: &Probe) -> Outcome {
    let itself = list(&[probe.task("a").after("a")]);
    for method in ["tasks.create", "tasks.execute"] {
        let error = probe.refused(method, itself.clone(), CIRCULAR).await?;
        let length = error.data["cycle"].as_array().map(Vec::len);
        ensure!(length == Some(2), "{error}: expected a `cycle` of two ids");
    }
    let id = probe.create(&probe.task("a")).await?;
    let updates = json!({"dependencies": [{"id": id, "required": true}]});
    let error = update_refused(probe, &id, updates, CIRCULAR).await?;
    ensure!(
        error.data["cycle"] == json!([id, id]),
        "{error}: expected the id twice in `cycle`"
    );
    seen(error.to_string())
}

async fn cycles_are_listed(probe: &Probe) -> Outcome {
    let ring = [
        probe.group("root"),
        probe.task("a").below("root").after_end_of("c"),
        probe.task("b").below("root").after("a"),
        probe.task("c").below("root").after("b"),
    ];
    for method in ["tasks.create", "tasks.execute"] {
        let error = probe.refused(method, list(&ring), CIRCULAR).await?;
        let cycle = error.data["cycle"].as_array().cloned().unwrap_or_default();
        ensure!(
            cycle.len() == 4 && cycle.first() == cycle.last(),
            "{error}: expected `cycle` with three ids and the first again"
        );
    }
    let [root, a, b, c] = ring;
    let ids = create_all(probe, &[root, a.without("dependencies"), b, c]).await?;
    let updates = json!({"dependencies": [{"id": ids["c"], "required": true}]});
    let error = update_refused(probe, &text_of(&ids, "a")?, updates, CIRCULAR).await?;
    let cycle = error.data["cycle"].as_array().cloned().unwrap_or_default();
    for alias in ["a", "b", "c"] {
        ensure!(
            cycle.contains(&ids[alias]),
            "{error}: `{alias}` is not in `cycle`"
        );
    }
    ensure!(
        cycle.len() == 4 && cycle.first() == cycle.last(),
        "{error}: expected `cycle` with three ids and the first again"
    );
    seen(shown(&error.data["cycle"]))
}

async fn no_task_waits_for_a_group_above_it(probe: &Probe) -> Outcome {
    let direct = [
        probe.group("root"),
        probe.group("inner").below("root"),
        probe.task("a").below("inner").after("root"),
    ];
    let through_another = [
        probe.group("root"),
        probe.group("inner").below("root"),
        probe.task("a").below("inner").after("b"),
        probe.task("b").below("root").after_end_of("inner"),
    ];
    for method in ["tasks.create", "tasks.execute"] {
        for tasks in [&direct[..], &through_another[..]] {
            let error = probe.refused(method, list(tasks), CIRCULAR).await?;
            let cycle = error.data["cycle"].as_array().cloned().unwrap_or_default();
            ensure!(
                cycle.len() >= 3 && cycle.first() == cycle.last(),
                "{error}: expected a `cycle` that ends with its first id"
            );
        }
    }
    seen("each is refused with its cycle")
}

async fn tree_faults_are_told(probe: &Probe) -> Outcome {
    let ring = list(&[
        probe.task("root"),
        probe.task("a").below("b"),
        probe.task("b").below("a"),
    ]);
    let itself = list(&[probe.task("root"), probe.task("a").below("a")]);
    for method in ["tasks.create", "tasks.execute"] {
        probe.refused(method, ring.clone(), TREE).await?;
        probe.refused(method, itself.clone(), TREE).await?;
    }
    let inner = probe.task("inner").below(UNKNOWN_ID).value();
    let odd = probe.task("root").with("children", json!([inner]));
    probe.refused("tasks.create", odd.value(), TREE).await?;
    let ids = create_all(
        probe,
        &[
            probe.task("root"),
            probe.task("a").below("root"),
            probe.task("b").below("a"),
        ],
    )
    .await?;
    let (root, a) = (text_of(&ids, "root")?, text_of(&ids, "a")?);
    for parent in [&ids["a"], &ids["b"], &Value::Null] {
        update_refused(probe, &a, json!({"parent_id": parent}), TREE).await?;
    }
    update_refused(probe, &root, json!({"parent_id": a}), TREE).await?;
    let stored = count(probe).await?;
    ensure!(stored == 3, "{stored} tasks are stored: expected 3");
    seen("in tasks.create, tasks.execute and tasks.update")
}

async fn parents_order_nothing(probe: &Probe) -> Outcome {
    let tasks = [
        probe.slow("root", FOREVER_MS),
        probe.task("child").below("root"),
        probe.task("blocked").below("root").after("root"),
        probe.task("under-blocked").below("blocked"),
    ];
    let started = probe.run(&tasks).await?;
    probe.wait_for(started.id("child")?, "completed").await?;
    probe
        .wait_for(started.id("under-blocked")?, "completed")
        .await?;
    expect_status(probe, &started.root, "in_progress").await?;
    expect_status(probe, started.id("blocked")?, "pending").await?;
    probe.cancel(&started.root).await?;
    seen("a child ended while its parent ran, another while its parent waited")
}

async fn users_are_inherited(probe: &Probe) -> Outcome {
    let (own, other) = (probe.user(), format!("{}-other", probe.user()));
    let anonymous = |alias| probe.task(alias).without("user_id");
    let tasks = [
        probe.group("root"),
        anonymous("child").below("root"),
        anonymous("grandchild").below("child"),
        probe
            .task("other")
            .below("root")
            .with("user_id", other.as_str()),
        anonymous("below-other").below("other"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let joined = anonymous("joined").below(&text_of(&ids, "other")?);
    let joined = json!(probe.create(&joined).await?);
    for (id, user) in [
        (&ids["child"], &own),
        (&ids["grandchild"], &own),
        (&ids["other"], &other),
        (&ids["below-other"], &other),
        (&joined, &other),
    ] {
        let task = probe.get(id.as_str().unwrap_or_default()).await?;
        expect(&task, &[("user_id", json!(user))])?;
    }
    let nobody = probe.create(&anonymous("nobody")).await?;
    probe.expect_no_other_user(&probe.get(&nobody).await?)?;
    seen(format!("{own} and {other}"))
}

async fn access_follows_the_root(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.task("child").below(&root);
    let child = child.with("user_id", format!("{}-other", probe.user()));
    let child = probe.create(&child).await?;
    for id in [&root, &child] {
        probe.get(id).await?;
        let params = json!({"task_id": id});
        let reply = probe.call_of_another_user("tasks.get", params).await?;
        reply.expect_error(NOT_FOUND)?;
    }
    seen("its owner sees a root and a child of another user's name; another caller sees neither")
}

async fn names_are_free_text(probe: &Probe) -> Outcome {
    for name in [
        "no such executor",
        "tasks.create",
        " ",
        "\u{1d11e} \"quoted\"\n\u{0}",
        "-32602",
    ] {
        let task = probe.task("task").with("name", name);
        let started = probe.run(std::slice::from_ref(&task)).await?;
        let task = probe.wait_for(&started.root, "completed").await?;
        expect(&task, &[("name", json!(name))])?;
    }
    seen("five odd names ran")
}
