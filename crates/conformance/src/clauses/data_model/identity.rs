//! The whole of a task, and the members that say which one it is. spec: data-model / Task Schema

use super::fields::broken_tasks_are_refused;
use super::trees::parents_do_not_order;
use crate::clauses::prelude::*;

/// Tasks of one run: more than the slots that a server commonly has, so that some wait.
const CROWD: usize = 300;
/// How long each of them holds its slot.
const CROWD_MS: u64 = 50;
/// Tasks that are made to see that their ids differ.
const MANY: usize = 20;
/// UUIDs in forms and versions that are not the one that is asked for.
pub(super) const NO_UUIDS_V4: [&str; 8] = [
    "",
    "task-uuid",
    "0f8fad5b-d9cb-169f-a165-70867728950e",
    "0190163d-8694-739b-aea5-966c26f8ad91",
    "00000000-0000-0000-0000-000000000000",
    "{00000000-0000-4000-8000-000000000000}",
    "00000000000040008000000000000000",
    "00000000-0000-4000-c000-000000000000",
];

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "data-model/compliance/1-validates",
            "what comes in is checked against the schemas of the document",
            broken_tasks_are_refused,
        )
        .same_as(&["validation/principles/1-validates"]),
        must(
            "data-model/compliance/2-conforms",
            "what goes out conforms to the schemas of the document",
            data_conforms,
        ),
        not_testable(
            Level::Should,
            "data-model/compliance/3-json-schema",
            "checks are made with JSON Schema where that fits",
            "how a server checks is inside it; what it takes and refuses is what other clauses look at",
        ),
        must(
            "data-model/task/1-id",
            "a task has an `id`, which is a UUID v4",
            ids_are_unique_uuids,
        ),
        must(
            "data-model/task/2-id-unique",
            "no two tasks have the same `id`",
            ids_are_unique_uuids,
        ),
        must(
            "data-model/task/3-parent-id",
            "`parent_id` is a UUID v4, or null or absent; null is the default",
            parent_ids_are_checked,
        ),
        must(
            "data-model/task/4-parent-id-orders-nothing",
            "`parent_id` does not affect the order of execution",
            parents_do_not_order,
        )
        .same_as(&["data-model/parents/1-no-order"]),
        must(
            "data-model/task/5-user-id",
            "`user_id` is a text that is not empty, or null or absent; null is the default, or the caller where callers authenticate themselves",
            user_ids_are_checked,
        ),
        must(
            "data-model/task/6-user-id-filters",
            "tasks can be filtered by `user_id`",
            users_are_told_apart,
        ),
    ]
}

pub(in super::super) async fn data_conforms(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in lives.all() {
        expect_task(task)?;
    }
    let root = text_of(&lives.completed, "id")?;
    let tree = probe.tree(&root).await?;
    let params = json!({"parent_id": root});
    let mut children = probe.result("tasks.children", params).await?;
    let Value::Array(children) = children["children"].take() else {
        return Err(Finding::failed("tasks.children: no `children`"));
    };
    for task in &children {
        expect_task(task)?;
    }
    let own = probe.own().await?;
    ensure!(
        (own.len(), tree.len(), children.len()) == (5, 5, 4),
        "{} tasks in the list, {} in the tree and {} children: expected 5, 5 and 4",
        own.len(),
        tree.len(),
        children.len()
    );
    seen("tasks in each status conform, from get, list, tree and children")
}

pub(in super::super) async fn ids_are_unique_uuids(probe: &Probe) -> Outcome {
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..MANY {
        ids.insert(probe.create(&probe.task("one")).await?);
    }
    let started = probe
        .run(&[probe.task("root"), probe.task("leaf").below("root")])
        .await?;
    ids.insert(started.id("root")?.to_owned());
    ids.insert(started.id("leaf")?.to_owned());
    ensure!(
        ids.len() == MANY + 2,
        "{} ids for {} tasks",
        ids.len(),
        MANY + 2
    );
    for id in &ids {
        // `get` finds an id that is no UUID v4.
        expect_field(&probe.get(id).await?, "id", id.as_str())?;
    }
    for alias in ["root", "leaf"] {
        probe.wait_until_terminal(started.id(alias)?).await?;
    }
    let taken = ids.first().cloned().unwrap_or_default();
    let again = probe.task("again").with("id", taken.as_str());
    if let Some(task) = probe.store_or_refuse(&again).await? {
        ensure!(task["id"] != taken, "a second task has the id {taken}");
    }
    expect_field(&probe.get(&taken).await?, "id", taken)?;
    seen(format!(
        "{} tasks, {} UUIDs v4; a taken one is not taken again",
        ids.len(),
        ids.len()
    ))
}

pub(in super::super) async fn parent_ids_are_checked(probe: &Probe) -> Outcome {
    let parent = probe.store(&probe.task("parent")).await?;
    expect_field(&parent, "parent_id", Value::Null)?;
    let none = probe.task("none").with("parent_id", Value::Null);
    expect_field(&probe.store(&none).await?, "parent_id", Value::Null)?;
    let id = text_of(&parent, "id")?;
    let child = probe.store(&probe.task("child").below(&id)).await?;
    expect_field(&child, "parent_id", id)?;
    let odd = NO_UUIDS_V4.map(Value::from).into_iter();
    let odd: Vec<Value> = odd
        .chain([json!(5), json!(true), json!([]), json!({})])
        .collect();
    let tasks = odd
        .iter()
        .map(|odd| probe.task("never").with("parent_id", odd.clone()).value());
    probe
        .refuses("tasks.create", tasks, &[INVALID_PARAMS])
        .await?;
    let updates = odd.into_iter().map(|odd| json!({"parent_id": odd}));
    probe
        .refuses_updates(&text_of(&child, "id")?, updates, &[INVALID_PARAMS])
        .await?;
    seen("absent and null are null; other versions, braces, bare digits and other types are -32602")
}

/// A server may take ids from callers or not; none becomes the id of a task unless it is a UUID v4.
pub(in super::super) async fn given_ids_are_checked(probe: &Probe) -> Outcome {
    for odd in [
        json!("0f8fad5b-d9cb-169f-a165-70867728950e"),
        json!("0190163d-8694-739b-aea5-966c26f8ad91"),
        json!("{0f8fad5b-d9cb-469f-a165-70867728950e}"),
        json!("x"),
        json!(5),
        json!([]),
    ] {
        let task = probe.task("given").with("id", odd.clone());
        if let Some(task) = probe.store_or_refuse(&task).await? {
            ensure!(task["id"] != odd, "a task has the id {odd}");
        }
    }
    ids_are_unique_uuids(probe).await
}

async fn user_ids_are_checked(probe: &Probe) -> Outcome {
    let user = |user: Value| probe.task("of a user").with("user_id", user);
    let null = probe.store(&user(Value::Null)).await?;
    probe.expect_no_other_user(&null)?;
    let without = probe.task("of nobody").without("user_id");
    let without = probe.store(&without).await?;
    expect_field(&without, "user_id", null["user_id"].clone())?;
    let own = probe.user();
    for name in ["u", "user 123 é🦀", own.as_str()] {
        expect_field(&probe.store(&user(json!(name))).await?, "user_id", name)?;
    }
    probe
        .refuses_values(
            "user_id",
            [json!(""), json!(1), json!(false), json!([]), json!({})],
        )
        .await?;
    seen("null and texts are kept; the empty text and other types are -32602")
}

async fn users_are_told_apart(probe: &Probe) -> Outcome {
    let [own, other] = ["own", "other"].map(|who| format!("{} {who}", probe.user()));
    let mut stored = Vec::new();
    for user in [&own, &own, &other] {
        let task = probe.task("filtered").with("user_id", user.as_str());
        stored.push(probe.create(&task).await?);
    }
    for (user, expected) in [(own, &stored[..2]), (other, &stored[2..])] {
        let params = json!({"user_id": user, "limit": 10});
        let list = probe.result("tasks.list", params).await?;
        let tasks = list["tasks"].as_array().map_or(&[][..], Vec::as_slice);
        let mut found: Vec<_> = tasks
            .iter()
            .filter_map(|task| task["id"].as_str())
            .collect();
        let mut expected: Vec<_> = expected.iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        ensure!(
            found == expected,
            "tasks of `{user}`: {found:?}, expected {expected:?}"
        );
    }
    seen("each user's list has exactly that user's tasks")
}

/// Many tasks become ready at once, the least urgent listed first. None may be passed over for a
/// less urgent one that begins and ends meanwhile.
pub(in super::super) async fn urgent_tasks_start_first(probe: &Probe) -> Outcome {
    let mut tasks = vec![probe.task("gate")];
    for n in 0..CROWD {
        let priority = 3 - n * 4 / CROWD;
        let alias = format!("{n}");
        // Where a slow task always takes long, the crowd must be quick.
        let task = match probe.options().slow_inputs {
            None => probe.slow(&alias, CROWD_MS),
            Some(_) => probe.task(&alias),
        };
        tasks.push(task.with("priority", priority).below("gate").after("gate"));
    }
    let started = probe.run(&tasks).await?;
    let urgent = format!("{}", CROWD - 1);
    let crowd = probe
        .eventually("all tasks of the crowd end", async || {
            let crowd = probe.tree(&started.root).await?;
            Ok(crowd.iter().all(is_terminal).then_some(crowd))
        })
        .await?;
    let mut lives = Vec::new();
    for task in crowd.iter().filter(|task| task["parent_id"].is_string()) {
        expect_field(task, "status", "completed")?;
        let (start, end) = (instant(task, "started_at")?, instant(task, "completed_at")?);
        lives.push((task["priority"].as_u64(), start, end));
    }
    ensure!(
        lives.len() == CROWD,
        "{} of {CROWD} tasks are in the tree",
        lives.len()
    );
    let first_end = lives.iter().map(|(_, _, end)| *end).min();
    let waited = lives
        .iter()
        .filter(|(_, start, _)| Some(*start) >= first_end)
        .count();
    for (priority, start, _) in &lives {
        let passed = lives
            .iter()
            .find(|(other, _, end)| other > priority && end < start);
        if let Some((other, ..)) = passed {
            return Err(Finding::failed(format!(
                "a task of priority {priority:?} waited while one of priority {other:?} ran, \
                 though both were ready: see task {}",
                started.id(&urgent)?
            )));
        }
    }
    seen(format!(
        "{CROWD} tasks ready at once, {waited} had to wait, none for a less urgent one"
    ))
}
