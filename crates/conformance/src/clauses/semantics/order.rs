//! Checks of which code is reported when several apply.

use super::looks::*;
use crate::clauses::prelude::*;

pub(super) async fn codes_have_an_order(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[
            probe.group("root"),
            probe.slow("slow", FOREVER_MS).below("root"),
        ],
    )
    .await?;
    let root = text_of(&ids, "root")?;
    let invalid = || probe.task("invalid").with("priority", 9);
    let unknown = |alias| {
        probe
            .task(alias)
            .with("schemas", json!({"method": "conformance_no_such"}))
    };
    let loose = || unknown("loose").after(UNKNOWN_ID);
    let circular = || unknown("circular").after("circular");
    let stray = || probe.task("stray").below(UNKNOWN_ID);
    let top = || probe.group("top");
    let calls = [
        (
            INVALID_PARAMS,
            "tasks.create",
            list(&[invalid(), top(), loose(), stray()]),
        ),
        (
            INVALID_PARAMS,
            "tasks.execute",
            list(&[invalid(), top(), circular()]),
        ),
        (
            TREE,
            "tasks.create",
            list(&[top(), stray(), loose().below("top")]),
        ),
        (
            TREE,
            "tasks.execute",
            list(&[top(), probe.group("second"), circular(), loose()]),
        ),
        (PARENT, "tasks.create", stray().after(UNKNOWN_ID).value()),
        (
            PARENT,
            "tasks.create",
            list(&[stray(), circular().below("stray")]),
        ),
        (
            DEPENDENCY,
            "tasks.execute",
            list(&[top(), loose().below("top"), circular().below("top")]),
        ),
        (
            DEPENDENCY,
            "tasks.create",
            list(&[circular().below(&root), loose().below(&root)]),
        ),
        (
            CIRCULAR,
            "tasks.execute",
            list(&[top(), circular().below("top")]),
        ),
        (
            NO_EXECUTOR,
            "tasks.execute",
            list(&[top(), unknown("unknown").below("top")]),
        ),
    ];
    for (code, method, params) in calls {
        probe.refused(method, params, code).await?;
    }
    execute(probe, &text_of(&ids, "slow")?).await?;
    probe.create(&unknown("late").below(&root)).await?;
    let again = json!({"task_id": root});
    probe
        .refused("tasks.execute", again.clone(), NO_EXECUTOR)
        .await?;
    let allowed = json!({"task_id": root, "allow_unknown_executors": true});
    probe.refused("tasks.execute", allowed, EXECUTING).await?;
    probe.cancel(&text_of(&ids, "slow")?).await?;
    let stored = count(probe).await?;
    ensure!(stored == 3, "{stored} tasks are stored: expected 3");
    seen("twelve calls with several faults")
}

pub(super) async fn codes_have_an_order_in_updates(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[
            probe.group("root"),
            probe.task("a").below("root"),
            probe.task("b").below("a"),
        ],
    )
    .await?;
    let a = text_of(&ids, "a")?;
    let on = |id: &str| json!([{"id": id, "required": true}]);
    for (code, updates) in [
        (
            INVALID_PARAMS,
            json!({"priority": 9, "parent_id": ids["b"], "dependencies": on(UNKNOWN_ID)}),
        ),
        (
            TREE,
            json!({"parent_id": ids["b"], "dependencies": on(UNKNOWN_ID)}),
        ),
        (
            PARENT,
            json!({"parent_id": UNKNOWN_ID, "dependencies": on(&a)}),
        ),
        (
            DEPENDENCY,
            json!({"dependencies": [{"id": UNKNOWN_ID, "required": true}, {"id": a, "required": true}]}),
        ),
        (CIRCULAR, json!({"dependencies": on(&a)})),
    ] {
        update_refused(probe, &a, updates, code).await?;
    }
    let gone = json!({"task_id": UNKNOWN_ID, "updates": {"priority": 9}});
    probe.refused("tasks.update", gone, INVALID_PARAMS).await?;
    seen("five updates with several faults")
}
