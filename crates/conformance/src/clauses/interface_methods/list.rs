//! spec: interface / tasks.list

use crate::clauses::prelude::*;
use std::collections::BTreeSet;

/// Tasks in a page when nothing is said.
const LIMIT_DEFAULT: usize = 100;
/// Tasks in a page at most.
const LIMIT_MAX: u64 = 1000;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.list/1-answer",
            "the result has the list `tasks`, and `limit` and `offset` of the page",
            pages_tell_their_place,
        ),
        must(
            "interface/tasks.list/2-limit",
            "`limit` may be given, 1000 at most, and is 100 if it is not",
            limits_have_bounds,
        ),
        must(
            "interface/tasks.list/3-offset",
            "`offset` may be given, and is 0 if it is not",
            pages_tell_their_place,
        ),
        must(
            "interface/tasks.list/4-status",
            "`status` leaves only tasks in that status",
            statuses_are_filtered,
        ),
        must(
            "interface/tasks.list/5-user-id",
            "`user_id` leaves only tasks of that user",
            users_are_filtered,
        ),
        must(
            "interface/tasks.list/6-pagination",
            "pages of any size, one after the other, have each task once",
            pages_cover_the_list,
        ),
        should(
            "interface/tasks.list/7-total",
            "`total` counts the tasks that the filters leave",
            totals_are_counted,
        ),
    ]
}

async fn list(probe: &Probe, params: Value) -> Result<(Value, Vec<String>), Finding> {
    let mut params = params;
    if params.get("user_id").is_none() {
        params["user_id"] = probe.user().into();
    }
    let list = probe.result("tasks.list", params).await?;
    let Some(tasks) = list["tasks"].as_array() else {
        return Err(Finding::failed(format!("no `tasks` in {}", shown(&list))));
    };
    let mut ids = Vec::new();
    for task in tasks {
        expect_task(task)?;
        ids.push(text_of(task, "id")?);
    }
    Ok((list, ids))
}

/// One root and tasks below it, all of which have completed.
async fn crowd(probe: &Probe, count: usize) -> Result<BTreeSet<String>, Finding> {
    let children = (1..count).map(|n| probe.task(&n.to_string()).below("root"));
    let tasks: Vec<_> = [probe.task("root")].into_iter().chain(children).collect();
    let started = probe.run(&tasks).await?;
    let tree = probe
        .eventually("all tasks end", async || {
            let tree = probe.tree(&started.root).await?;
            Ok(tree.iter().all(is_terminal).then_some(tree))
        })
        .await?;
    tree.iter().map(|task| text_of(task, "id")).collect()
}

async fn pages_tell_their_place(probe: &Probe) -> Outcome {
    let ids = crowd(probe, 5).await?;
    let (page, found) = list(probe, json!({"limit": 3, "offset": 2})).await?;
    expect_field(&page, "limit", 3)?;
    expect_field(&page, "offset", 2)?;
    ensure!(
        found.len() == 3,
        "{} of 3 tasks: {}",
        found.len(),
        shown(&page)
    );
    let (page, all) = list(probe, json!({"limit": 10})).await?;
    expect_field(&page, "offset", 0)?;
    ensure!(
        all.iter().cloned().collect::<BTreeSet<_>>() == ids,
        "{all:?}, stored are {ids:?}"
    );
    ensure!(all[2..] == found, "after two of {all:?} come {found:?}");
    let (_, beyond) = list(probe, json!({"offset": 5})).await?;
    ensure!(beyond.is_empty(), "beyond the end: {beyond:?}");
    for odd in [json!(-1), json!(1.5), json!("1"), json!([])] {
        let params = json!({"offset": odd});
        probe.refused("tasks.list", params, INVALID_PARAMS).await?;
    }
    seen("the third to fifth of five tasks; offsets -1, 1.5 and \"1\" are -32602")
}

async fn limits_have_bounds(probe: &Probe) -> Outcome {
    crowd(probe, LIMIT_DEFAULT + 2).await?;
    let (page, found) = list(probe, json!({})).await?;
    expect_field(&page, "limit", LIMIT_DEFAULT)?;
    ensure!(
        found.len() == LIMIT_DEFAULT,
        "{} tasks without a limit",
        found.len()
    );
    for limit in [1, 101, 102, 1000] {
        let (page, found) = list(probe, json!({"limit": limit})).await?;
        expect_field(&page, "limit", limit)?;
        ensure!(
            found.len() == limit.min(LIMIT_DEFAULT + 2),
            "{} tasks of {limit}",
            found.len()
        );
    }
    let above = json!({"limit": LIMIT_MAX + 1, "user_id": probe.user()});
    let reply = probe.call("tasks.list", above).await?;
    let told = match reply.outcome.clone() {
        // A server may refuse more, or give no more than it may.
        Ok(page) => {
            expect_field(&page, "limit", LIMIT_MAX)?;
            "cut to 1000".to_owned()
        }
        Err(_) => reply.expect_error(INVALID_PARAMS)?.to_string(),
    };
    for odd in [json!(-1), json!(1.5), json!("10"), json!([])] {
        let params = json!({"limit": odd});
        probe.refused("tasks.list", params, INVALID_PARAMS).await?;
    }
    seen(format!("100 of 102 without a limit; 1001: {told}"))
}

async fn statuses_are_filtered(probe: &Probe) -> Outcome {
    let lives = probe.living().await?;
    for task in lives.all() {
        let status = text_of(task, "status")?;
        let (_, found) = list(probe, json!({"status": status})).await?;
        ensure!(
            found == [text_of(task, "id")?],
            "{status}: {found:?}, expected {}",
            task["id"]
        );
    }
    probe.cancel(&text_of(&lives.in_progress, "id")?).await?;
    for odd in [json!("done"), json!(""), json!(1), json!(["pending"])] {
        let params = json!({"status": odd});
        probe.refused("tasks.list", params, INVALID_PARAMS).await?;
    }
    seen("one task in each status; `done` is -32602")
}

async fn users_are_filtered(probe: &Probe) -> Outcome {
    let own = probe.create(&probe.task("own")).await?;
    let other = format!("{} other", probe.user());
    let task = probe.task("other").with("user_id", other.as_str());
    let others = probe.create(&task).await?;
    let (_, found) = list(probe, json!({})).await?;
    ensure!(found == [own.as_str()], "{found:?}, expected {own}");
    let (_, found) = list(probe, json!({"user_id": other})).await?;
    ensure!(found == [others.as_str()], "{found:?}, expected {others}");
    let (_, found) = list(probe, json!({"user_id": probe.name("nobody")})).await?;
    ensure!(found.is_empty(), "{found:?} of a user without tasks");
    let both = json!({"user_id": other, "status": "completed"});
    let (_, found) = list(probe, both).await?;
    ensure!(found.is_empty(), "{found:?}: both filters count");
    seen("each user's tasks, and none of a stranger's")
}

async fn pages_cover_the_list(probe: &Probe) -> Outcome {
    let ids = crowd(probe, 20).await?;
    for limit in [1, 7, 20] {
        let mut found = Vec::new();
        for offset in (0..ids.len()).step_by(limit) {
            let (_, page) = list(probe, json!({"limit": limit, "offset": offset})).await?;
            found.extend(page);
        }
        let distinct: BTreeSet<_> = found.iter().cloned().collect();
        ensure!(
            found.len() == ids.len() && distinct == ids,
            "pages of {limit} have {} tasks, {} of them different: expected {}",
            found.len(),
            distinct.len(),
            ids.len()
        );
    }
    seen("20 tasks in pages of 1, 7 and 20")
}

async fn totals_are_counted(probe: &Probe) -> Outcome {
    crowd(probe, 12).await?;
    probe.create(&probe.task("pending")).await?;
    for (params, total) in [
        (json!({}), 13),
        (json!({"limit": 5}), 13),
        (json!({"limit": 5, "offset": 10}), 13),
        (json!({"offset": 100}), 13),
        (json!({"status": "completed", "limit": 1}), 12),
        (json!({"status": "pending"}), 1),
        (json!({"status": "failed"}), 0),
    ] {
        let (page, _) = list(probe, params).await?;
        expect_field(&page, "total", total)?;
    }
    seen("13 tasks, 12 completed, whatever the page")
}
