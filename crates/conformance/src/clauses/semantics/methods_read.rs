//! What this project decided. Section: Methods, those that read the present

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/methods.read/1-tree-of-any",
            "the root of `tasks.tree` is the task that was asked for, with what is below it",
            trees_begin_where_they_are_asked,
        ),
        decided(
            "semantics/methods.read/2-children",
            "`tasks.children` gives the direct children in the order of their creation",
            children_come_in_order,
        ),
        decided(
            "semantics/methods.read/3-list-filters",
            "`tasks.list` filters by `status`, `user_id`, `root_only`, `parent_id`, `name`, `priority`, all at once",
            filters_narrow_a_list,
        ),
        decided(
            "semantics/methods.read/4-list-times",
            "`created_after` and `created_before` narrow a list by time",
            times_narrow_a_list,
        ),
        decided(
            "semantics/methods.read/5-list-order",
            "a list is newest first, with `order: \"asc\"` oldest first",
            lists_have_an_order,
        ),
        decided(
            "semantics/methods.read/6-list-limit",
            "`limit` is 1 to 1000 and 100 by default; outside it is -32602",
            limits_are_1_to_1000,
        ),
        decided(
            "semantics/methods.read/7-list-pages",
            "`offset` and `cursor` page through a list, each task once, with an exact `total`",
            pages_hold_each_task_once,
        ),
        decided(
            "semantics/methods.read/8-list-unknown-parent",
            "a list of the children of a task that does not exist is empty",
            lists_of_nothing_are_empty,
        ),
        decided(
            "semantics/methods.read/9-contradictions",
            "`cursor` with `offset`, `root_only` with `parent_id`, and an unknown parameter are -32602",
            contradictions_are_refused,
        ),
        decided(
            "semantics/methods.read/10-read-after-write",
            "`tasks.get`, `tree`, `children` and `list` see every write that was answered before, to another client too",
            reads_see_writes,
        ),
        decided(
            "semantics/methods.read/11-eventual",
            "with `consistency: \"eventual\"` the same reads see the write in the end, to another client too; other values are -32602",
            eventual_reads_see_writes_in_the_end,
        ),
        not_testable(
            Level::Decided,
            "semantics/methods.read/12-wait",
            "a read that waits for more than 2 s is -32013 with `data.retry_after_ms`",
            "needs read models that stand still; tests/core/application/reads.rs: \
             a_read_waits_two_seconds_and_then_says_that_it_is_busy",
        ),
        not_testable(
            Level::Decided,
            "semantics/methods.read/13-deep-pages",
            "a cursor stays fast at any depth of a list",
            "is about cost, which no single answer shows; projections/tests/queries.rs looks at the \
             query's plan",
        ),
    ]
}

async fn trees_begin_where_they_are_asked(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.group("middle").below("root"),
        probe.task("leaf").below("middle"),
        probe.task("beside").below("root"),
    ];
    let ids = create_all(probe, &tasks).await?;
    for (alias, below) in [("root", 4), ("middle", 2), ("leaf", 1)] {
        let tree = probe.tree(&text_of(&ids, alias)?).await?;
        ensure!(
            tree.len() == below && tree[0]["id"] == ids[alias],
            "the tree of `{alias}` has {} tasks: expected {below}",
            tree.len()
        );
        for task in &tree {
            expect_task(task)?;
            ensure!(
                *task == probe.get(&text_of(task, "id")?).await?,
                "the tree shows {}: expected what tasks.get shows",
                shown(task)
            );
        }
    }
    seen("trees of 4, 2 and 1 tasks, as tasks.get shows them")
}

async fn children_come_in_order(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("b").below("root").with("priority", 3),
        probe.task("below").below("b"),
        probe.task("a").below("root").with("priority", 0),
    ];
    let ids = create_all(probe, &tasks).await?;
    let late = probe
        .create(&probe.task("late").below(&text_of(&ids, "root")?))
        .await?;
    let result = probe
        .result("tasks.children", json!({"parent_id": ids["root"]}))
        .await?;
    let children = result["children"].as_array().into_iter().flatten();
    let children: Vec<_> = children.map(|child| child["id"].clone()).collect();
    ensure!(
        children == [ids["b"].clone(), ids["a"].clone(), json!(late)],
        "children {children:?}: expected the order of creation"
    );
    let none = probe
        .result("tasks.children", json!({"parent_id": late}))
        .await?;
    expect(&none, &[("children", json!([]))])?;
    seen("three children in the order of their creation, none of a leaf")
}

/// The names of the tasks of this check that a list with these filters has, in alphabetical order.
async fn listed(probe: &Probe, filters: Value) -> Result<Vec<String>, Finding> {
    let mut params = filters;
    if params["user_id"].is_null() {
        params["user_id"] = json!(probe.user());
    }
    let list = probe.result("tasks.list", params).await?;
    let tasks = list["tasks"].as_array().into_iter().flatten();
    let mut names: Vec<String> = tasks
        .filter_map(|task| task["name"].as_str()?.rsplit(' ').next().map(str::to_owned))
        .collect();
    ensure!(
        list["total"] == names.len(),
        "`total` is {} of {names:?}",
        list["total"]
    );
    names.sort_unstable();
    Ok(names)
}

async fn filters_narrow_a_list(probe: &Probe) -> Outcome {
    let other = format!("{}-other", probe.user());
    let tasks = [
        probe.group("root"),
        probe.task("a").below("root").with("priority", 0),
        probe
            .task("b")
            .below("root")
            .with("user_id", other.as_str()),
        probe.task("c").below("a").with("priority", 0),
    ];
    let ids = create_all(probe, &tasks).await?;
    probe.create(&probe.task("alone")).await?;
    probe.cancel(&text_of(&ids, "c")?).await?;
    for (filters, expected) in [
        (json!({}), vec!["a", "alone", "c", "root"]),
        (json!({"user_id": other}), vec!["b"]),
        (json!({"status": "cancelled"}), vec!["c"]),
        (json!({"status": "pending"}), vec!["a", "alone", "root"]),
        (json!({"status": "failed"}), vec![]),
        (json!({"root_only": true}), vec!["alone", "root"]),
        (json!({"root_only": false}), vec!["a", "alone", "c", "root"]),
        (json!({"parent_id": ids["root"]}), vec!["a"]),
        (
            json!({"parent_id": ids["root"], "user_id": other}),
            vec!["b"],
        ),
        (json!({"name": probe.name("a")}), vec!["a"]),
        (json!({"name": probe.name("")}), vec![]),
        (json!({"priority": 0}), vec!["a", "c"]),
        (json!({"priority": 0, "status": "cancelled"}), vec!["c"]),
        (
            json!({"priority": 0, "status": "cancelled", "root_only": true}),
            vec![],
        ),
    ] {
        let found = listed(probe, filters.clone()).await?;
        ensure!(
            found == expected,
            "{filters} lists {found:?}: expected {expected:?}"
        );
    }
    for odd in [
        json!({"status": "done"}),
        json!({"priority": 4}),
        json!({"root_only": 1}),
    ] {
        probe.refused("tasks.list", odd, INVALID_PARAMS).await?;
    }
    seen("fourteen filters and combinations")
}

async fn times_narrow_a_list(probe: &Probe) -> Outcome {
    probe.create(&probe.task("first")).await?;
    let middle = from_now(probe, 0).await?;
    probe.create(&probe.task("second")).await?;
    for (filters, expected) in [
        (json!({"created_after": middle}), vec!["second"]),
        (json!({"created_before": middle}), vec!["first"]),
        (
            json!({"created_after": middle, "created_before": middle}),
            vec![],
        ),
        (
            json!({"created_after": "2001-01-01T00:00:00+01:00"}),
            vec!["first", "second"],
        ),
        (json!({"created_before": "2001-01-01T00:00:00Z"}), vec![]),
    ] {
        let found = listed(probe, filters.clone()).await?;
        ensure!(
            found == expected,
            "{filters} lists {found:?}: expected {expected:?}"
        );
    }
    for field in ["created_after", "created_before"] {
        let error = probe
            .refused("tasks.list", json!({field: "yesterday"}), INVALID_PARAMS)
            .await?;
        fault_in(&error, field)?;
    }
    seen(format!("one task before {middle} and one after"))
}

async fn lists_have_an_order(probe: &Probe) -> Outcome {
    let mut ids = Vec::new();
    for alias in ["a", "b", "c"] {
        ids.push(json!(probe.create(&probe.task(alias)).await?));
    }
    let order = async |params: Value| {
        let list = probe.result("tasks.list", params).await?;
        let tasks = list["tasks"].as_array().into_iter().flatten();
        Ok::<Vec<Value>, Finding>(tasks.map(|task| task["id"].clone()).collect())
    };
    let user = probe.user();
    let oldest = order(json!({"user_id": user, "order": "asc"})).await?;
    ensure!(oldest == ids, "oldest first: {oldest:?}: expected {ids:?}");
    ids.reverse();
    for params in [
        json!({"user_id": user}),
        json!({"user_id": user, "order": "desc"}),
    ] {
        let newest = order(params).await?;
        ensure!(newest == ids, "newest first: {newest:?}: expected {ids:?}");
    }
    let error = probe
        .refused("tasks.list", json!({"order": "up"}), INVALID_PARAMS)
        .await?;
    fault_in(&error, "order")?;
    seen("newest first, oldest first on demand")
}

async fn limits_are_1_to_1000(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.group("root")).await?;
    let children = vec![json!({"name": "child", "parent_id": root}); 1_001];
    probe
        .result("tasks.create", json!({"tasks": children}))
        .await?;
    for (limit, expected) in [(None, 100), (Some(1), 1), (Some(1_000), 1_000)] {
        let mut params = json!({"parent_id": root});
        if let Some(limit) = limit {
            params["limit"] = json!(limit);
        }
        let list = probe.result("tasks.list", params).await?;
        let found = list["tasks"].as_array().map_or(0, Vec::len);
        ensure!(
            found == expected,
            "`limit` {limit:?} gives {found} tasks: expected {expected}"
        );
        expect(
            &list,
            &[("total", json!(1_001)), ("limit", json!(expected))],
        )?;
    }
    for limit in [json!(0), json!(1_001), json!(-1), json!(1.5), json!("1")] {
        let error = probe
            .refused("tasks.list", json!({"limit": limit}), INVALID_PARAMS)
            .await?;
        fault_in(&error, "limit")?;
    }
    for offset in [json!(-1), json!("0"), json!(0.5)] {
        let error = probe
            .refused("tasks.list", json!({"offset": offset}), INVALID_PARAMS)
            .await?;
        fault_in(&error, "offset")?;
    }
    seen("1, 100 and 1000 of 1001 tasks")
}

async fn pages_hold_each_task_once(probe: &Probe) -> Outcome {
    const TASKS: usize = 7;
    let mut ids = Vec::new();
    for number in 0..TASKS {
        ids.push(json!(probe.create(&probe.task(&number.to_string())).await?));
    }
    let page = async |more: Value| {
        let mut params = json!({"user_id": probe.user(), "limit": 3, "order": "asc"});
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name.as_str()] = value.clone();
        }
        let list = probe.result("tasks.list", params).await?;
        expect(&list, &[("total", json!(TASKS))])?;
        Ok::<Value, Finding>(list)
    };
    let ids_of = |list: &Value| {
        let tasks = list["tasks"].as_array().into_iter().flatten();
        tasks.map(|task| task["id"].clone()).collect::<Vec<_>>()
    };
    for offset in [0, 2, 3, 6, 7, 100] {
        let list = page(json!({"offset": offset})).await?;
        expect(&list, &[("offset", json!(offset))])?;
        let rest: Vec<_> = ids.iter().skip(offset).take(3).cloned().collect();
        ensure!(
            ids_of(&list) == rest,
            "`offset` {offset} gives {:?}",
            ids_of(&list)
        );
    }
    let (mut found, mut more) = (Vec::new(), json!({}));
    for _ in 0..TASKS {
        let list = page(more).await?;
        found.extend(ids_of(&list));
        if list["next_cursor"].is_null() {
            break;
        }
        more = json!({"cursor": list["next_cursor"]});
    }
    ensure!(found == ids, "the pages hold {found:?}: expected {ids:?}");
    let error = probe
        .refused("tasks.list", json!({"cursor": "no such"}), INVALID_PARAMS)
        .await?;
    fault_in(&error, "cursor")?;
    seen("seven tasks in three pages, by offset and by cursor")
}

async fn lists_of_nothing_are_empty(probe: &Probe) -> Outcome {
    let list = probe
        .result("tasks.list", json!({"parent_id": UNKNOWN_ID}))
        .await?;
    expect(&list, &[("tasks", json!([])), ("total", json!(0))])?;
    seen("no task, `total` 0")
}

async fn contradictions_are_refused(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("task")).await?;
    probe.create(&probe.task("other")).await?;
    let page = probe
        .result("tasks.list", json!({"user_id": probe.user(), "limit": 1}))
        .await?;
    for (params, field) in [
        (
            json!({"cursor": page["next_cursor"], "offset": 1}),
            "offset",
        ),
        (json!({"root_only": true, "parent_id": id}), "root_only"),
        (json!({"stauts": "pending"}), "stauts"),
    ] {
        let error = probe.refused("tasks.list", params, INVALID_PARAMS).await?;
        fault_in(&error, field)?;
    }
    for method in [
        "tasks.get",
        "tasks.tree",
        "tasks.delete",
        "tasks.cancel",
        "tasks.retry",
    ] {
        let params = json!({"task_id": id, "id": id});
        let error = probe.refused(method, params, INVALID_PARAMS).await?;
        fault_in(&error, "id")?;
    }
    expect_status(probe, &id, "pending").await?;
    seen("three contradictory lists, and unknown parameters of five methods")
}

async fn reads_see_writes(probe: &Probe) -> Outcome {
    // Writes go through one client and are read through the other.
    let (writer, probe) = (probe, &probe.another_client()?);
    let root = writer.create(&probe.group("root")).await?;
    for round in 0..5_usize {
        let child = writer.create(&probe.task("child").below(&root)).await?;
        expect_status(probe, &child, "pending").await?;
        let tree = probe.tree(&root).await?;
        let found = count(probe).await?;
        let children = probe
            .result("tasks.children", json!({"parent_id": root}))
            .await?;
        let children = children["children"].as_array().map_or(0, Vec::len);
        ensure!(
            tree.len() == round + 2 && found == round as u64 + 2 && children == round + 1,
            "after child {round}: tree {}, list {found}, children {children}",
            tree.len()
        );
        update(writer, &child, json!({"priority": 0})).await?;
        expect(&probe.get(&child).await?, &[("priority", json!(0))])?;
        writer.cancel(&child).await?;
        let params = json!({"parent_id": root, "status": "pending"});
        let open = probe.result("tasks.list", params).await?;
        expect(&open, &[("total", json!(0))])?;
    }
    seen("get, tree, children and list, right after five creations, updates and cancellations")
}

async fn eventual_reads_see_writes_in_the_end(probe: &Probe) -> Outcome {
    let (writer, probe) = (probe, &probe.another_client()?);
    let id = writer.create(&probe.task("task")).await?;
    let calls = [
        (
            "tasks.get",
            json!({"task_id": id, "consistency": "eventual"}),
        ),
        (
            "tasks.tree",
            json!({"task_id": id, "consistency": "eventual"}),
        ),
        (
            "tasks.children",
            json!({"parent_id": id, "consistency": "eventual"}),
        ),
    ];
    for (method, params) in calls {
        probe
            .eventually(method, async || {
                let reply = probe.call(method, params.clone()).await?;
                Ok(reply.outcome.ok())
            })
            .await?;
    }
    let params = json!({"user_id": probe.user(), "consistency": "eventual"});
    probe
        .eventually("tasks.list shows the task", async || {
            let list = probe.result("tasks.list", params.clone()).await?;
            Ok((list["total"] == 1).then_some(()))
        })
        .await?;
    let odd = json!({"task_id": id, "consistency": "weak"});
    let error = probe.refused("tasks.get", odd, INVALID_PARAMS).await?;
    fault_in(&error, "consistency")?;
    probe
        .result("tasks.get", json!({"task_id": id, "consistency": "strong"}))
        .await?;
    seen("get, tree, children and list")
}
