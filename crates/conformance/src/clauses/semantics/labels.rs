//! What this project decided. Section: Labels

use super::looks::*;
use crate::clauses::prelude::*;

/// Labels of a task.
const LABELS_MAX: usize = 32;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/labels/1-kept",
            "a task keeps `labels`, keys with texts, and reads show them; a task without has none to show",
            labels_are_kept,
        ),
        decided(
            "semantics/labels/2-replaced",
            "an update replaces all labels of a task, in any status; an empty object removes them",
            updates_replace_labels,
        ),
        decided(
            "semantics/labels/3-selected",
            "`labels` of `tasks.list` chooses the tasks that have all of them; null stands for any value",
            lists_choose_by_labels,
        ),
        decided(
            "semantics/labels/4-carried",
            "copies carry labels; children do not inherit them",
            copies_carry_labels,
        ),
        decided(
            "semantics/labels/5-form",
            "more than 32 labels, keys and values of another form, and values that are no texts are -32602",
            other_forms_are_refused,
        ),
        decided(
            "semantics/labels/6-selector-form",
            "a selector of another form is -32602",
            other_selectors_are_refused,
        ),
    ]
}

async fn labels_are_kept(probe: &Probe) -> Outcome {
    let longest = "k".repeat(63);
    let labels = json!({
        "team": "data", "example.org/batch-1": "2026-01-15", "empty": "", "A.b_c-9": "a=b, c/d é🦀",
        longest.as_str(): "v".repeat(255),
    });
    let id = probe
        .create(&probe.task("labelled").with("labels", labels.clone()))
        .await?;
    expect(&probe.get(&id).await?, &[("labels", labels.clone())])?;
    let tree = probe.result("tasks.tree", json!({"task_id": id})).await?;
    expect(&tree["task"], &[("labels", labels)])?;
    for none in [Value::Null, json!({})] {
        let plain = probe.task("plain").with("labels", none);
        let plain = probe.create(&plain).await?;
        expect(&probe.get(&plain).await?, &[("labels", Value::Null)])?;
    }
    let many: serde_json::Map<String, Value> = (0..LABELS_MAX)
        .map(|n| (format!("k{n}"), json!("v")))
        .collect();
    let many = probe.task("many").with("labels", many);
    probe.create(&many).await?;
    seen("five forms of keys and values, in `tasks.get` and `tasks.tree`, and 32 of them")
}

async fn updates_replace_labels(probe: &Probe) -> Outcome {
    let task = probe
        .task("task")
        .with("labels", json!({"a": "1", "b": "2"}));
    let id = probe.create(&task).await?;
    let replace = async |labels: Value, expected: Value| {
        update(probe, &id, json!({"labels": labels})).await?;
        expect(&probe.get(&id).await?, &[("labels", expected)])
    };
    replace(json!({"b": "3", "c": "4"}), json!({"b": "3", "c": "4"})).await?;
    execute(probe, &id).await?;
    probe.wait_for(&id, "completed").await?;
    replace(json!({"c": "5"}), json!({"c": "5"})).await?;
    update(probe, &id, json!({"priority": 0})).await?;
    expect(&probe.get(&id).await?, &[("labels", json!({"c": "5"}))])?;
    replace(json!({}), Value::Null).await?;
    seen("of a pending task and of a completed one")
}

/// Names of the tasks that a list with this selector shows, sorted.
async fn chosen(probe: &Probe, selector: Value) -> Result<Vec<String>, Finding> {
    let params = json!({"user_id": probe.user(), "labels": selector});
    let list = probe.result("tasks.list", params).await?;
    let tasks = list["tasks"].as_array().into_iter().flatten();
    let mut names = tasks
        .map(|task| text_of(task, "name"))
        .collect::<Result<Vec<_>, _>>()?;
    expect(&list, &[("total", json!(names.len()))])?;
    names.sort_unstable();
    Ok(names)
}

async fn lists_choose_by_labels(probe: &Probe) -> Outcome {
    for (alias, labels) in [
        ("a", json!({"team": "data", "stage": "1"})),
        ("b", json!({"team": "data", "stage": ""})),
        ("c", json!({"team": "web", "stage": "1"})),
        ("d", json!({"team": "data"})),
        ("e", Value::Null),
    ] {
        let task = probe.task(alias).with("labels", labels);
        probe.create(&task).await?;
    }
    for (selector, aliases) in [
        (json!({"team": "data"}), &["a", "b", "d"][..]),
        (json!({"team": "data", "stage": null}), &["a", "b"]),
        (json!({"team": "data", "stage": "1"}), &["a"]),
        (json!({"stage": ""}), &["b"]),
        (json!({"stage": null}), &["a", "b", "c"]),
        (json!({"team": "Data"}), &[]),
        (json!({"none": null}), &[]),
        (json!({}), &["a", "b", "c", "d", "e"]),
    ] {
        let expected: Vec<String> = aliases.iter().map(|alias| probe.name(alias)).collect();
        let found = chosen(probe, selector.clone()).await?;
        ensure!(
            found == expected,
            "{selector} chooses {found:?}: expected {expected:?}"
        );
    }
    seen("eight selectors over five tasks")
}

async fn copies_carry_labels(probe: &Probe) -> Outcome {
    let labels = json!({"team": "data"});
    let root = probe.group("root").with("labels", labels.clone());
    let tasks = [root, probe.task("child").below("root")];
    let ids = create_all(probe, &tasks).await?;
    let child = text_of(&ids, "child")?;
    expect(&probe.get(&child).await?, &[("labels", Value::Null)])?;
    let copy = json!({"task_id": ids["root"], "copy_children": true});
    let copied = probe.result("tasks.copy", copy).await?;
    let root = text_of(&copied, "copied_task_id")?;
    expect(&probe.get(&root).await?, &[("labels", labels)])?;
    let child = text_of(&copied["task_ids"], &child)?;
    expect(&probe.get(&child).await?, &[("labels", Value::Null)])?;
    let found = chosen(probe, json!({"team": "data"})).await?;
    ensure!(
        found.len() == 2,
        "the copy is found by its label: {found:?}"
    );
    seen("the copied root has them, the children have none")
}

async fn other_forms_are_refused(probe: &Probe) -> Outcome {
    let kept = json!({"a": "1"});
    let task = probe.task("kept").with("labels", kept.clone());
    let id = probe.create(&task).await?;
    let many: serde_json::Map<String, Value> = (0..=LABELS_MAX)
        .map(|n| (format!("k{n}"), json!("v")))
        .collect();
    let long = "k".repeat(64);
    for labels in [
        Value::from(many),
        json!(["team"]),
        json!("team=data"),
        json!({"": "v"}),
        json!({"-a": "v"}),
        json!({"a-": "v"}),
        json!({"a b": "v"}),
        json!({"a=b": "v"}),
        json!({"a/b/c": "v"}),
        json!({"/a": "v"}),
        json!({long.as_str(): "v"}),
        json!({"a": "v".repeat(256)}),
        json!({"a": "line\nline"}),
        json!({"a": 1}),
        json!({"a": null}),
        json!({"a": {"b": "c"}}),
    ] {
        let before = count(probe).await?;
        let task = probe.task("task").with("labels", labels.clone());
        probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        ensure!(count(probe).await? == before, "{labels} is stored");
        update_refused(probe, &id, json!({"labels": labels}), INVALID_PARAMS).await?;
    }
    expect(&probe.get(&id).await?, &[("labels", kept)])?;
    seen("sixteen forms, in a creation and an update")
}

async fn other_selectors_are_refused(probe: &Probe) -> Outcome {
    for selector in [
        json!("team=data"),
        json!(["team"]),
        json!({"-a": "v"}),
        json!({"a": 1}),
        json!({"a": ["v"]}),
        json!({"a": "v".repeat(256)}),
    ] {
        let params = json!({"user_id": probe.user(), "labels": selector});
        probe.refused("tasks.list", params, INVALID_PARAMS).await?;
    }
    seen("six forms")
}
