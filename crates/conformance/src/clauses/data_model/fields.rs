//! The members that a caller writes. spec: data-model / Task Schema

use super::identity::{NO_UUIDS_V4, data_conforms, urgent_tasks_start_first};
use super::outcomes::progress_values_are_checked;
use crate::clauses::prelude::*;

/// Unicode scalar values of a name.
const NAME_CHARS_MAX: usize = 255;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "data-model/task/7-name",
            "`name` is required, a text of 1 to 255 characters",
            names_are_bounded,
        ),
        not_testable(
            Level::Must,
            "data-model/task/8-name-is-an-executor",
            "`name` is the name of an executor when `schemas.method` is present",
            "the document itself lowers it to SHOULD (Field Relationships), and the name in its complete \
             example is not the method; a server that refused such names would refuse the example",
        ),
        must(
            "data-model/task/9-status",
            "`status` is one of the five, and `pending` at first",
            statuses_are_known,
        ),
        must(
            "data-model/task/10-priority",
            "`priority` is an integer from 0 to 3",
            priorities_are_integers,
        ),
        must(
            "data-model/task/11-priority-default",
            "`priority` is 2 when it is left out",
            defaults_are_filled_in,
        ),
        must(
            "data-model/task/12-priority-orders",
            "of tasks that are ready, those with the lower `priority` start first",
            urgent_tasks_start_first,
        ),
        must(
            "data-model/task/13-inputs",
            "`inputs` is an object, empty when it is left out",
            inputs_are_objects,
        ),
        must(
            "data-model/task/14-schemas",
            "`schemas` is an object or null, null when it is left out",
            schemas_are_objects,
        ),
        must(
            "data-model/task/15-params",
            "`params` is an object or null, null when it is left out",
            params_are_objects,
        ),
        must(
            "data-model/task/16-dependencies",
            "`dependencies` is a list, empty when it is left out",
            dependencies_are_lists,
        ),
        must(
            "data-model/task/17-progress",
            "`progress` is a number from 0 to 1, and 0 at first",
            progress_is_a_fraction,
        ),
    ]
}

/// The section with the schema, which comes later in the document.
pub(super) fn schema() -> Vec<Clause> {
    vec![
        must(
            "data-model/json-schema/1-required",
            "a task has `id`, `name` and `status`",
            data_conforms,
        ),
        must(
            "data-model/json-schema/2-properties",
            "the members of a task have the types and ranges of the schema",
            broken_tasks_are_refused,
        ),
        must(
            "data-model/json-schema/3-null",
            "null stands where the schema allows it, and nowhere else",
            nulls_are_checked,
        ),
        must(
            "data-model/json-schema/4-defaults",
            "members that are left out get the defaults of the schema",
            defaults_are_filled_in,
        ),
    ]
}

/// One fault of each kind, member by member.
pub(in super::super) async fn broken_tasks_are_refused(probe: &Probe) -> Outcome {
    let mut count = 0;
    for (field, values) in [
        ("name", vec![json!(""), json!(1), Value::Null]),
        ("user_id", vec![json!(""), json!(1)]),
        ("status", vec![json!("done"), json!(1)]),
        ("priority", vec![json!(4), json!("2")]),
        ("inputs", vec![json!([]), json!("x")]),
        ("schemas", vec![json!([]), json!("x")]),
        ("params", vec![json!([]), json!("x")]),
        ("dependencies", vec![json!({}), json!([1])]),
        ("progress", vec![json!(1.5), json!("x")]),
    ] {
        count += values.len();
        probe.refuses_values(field, values).await?;
    }
    let nameless = probe.task("never").without("name");
    probe.refuses_tasks(&[nameless], &[INVALID_PARAMS]).await?;
    seen(format!(
        "{count} faults in nine members, each refused by create, execute and update"
    ))
}

pub(in super::super) async fn names_are_bounded(probe: &Probe) -> Outcome {
    let long = |text: &str| Value::from(text.repeat(NAME_CHARS_MAX));
    let taken = ["n", "Crawl Website", "é🦀 \u{200b}"].map(Value::from);
    let taken = taken.into_iter().chain(["n", "é", "🦀"].map(long));
    probe.takes_values("name", taken).await?;
    let longer = |text: &str| Value::from(text.repeat(NAME_CHARS_MAX + 1));
    let odd = [
        json!(""),
        Value::Null,
        json!(5),
        json!(true),
        json!([]),
        json!({}),
    ];
    let odd = odd.into_iter().chain(["n", "é", "🦀"].map(longer));
    probe.refuses_values("name", odd).await?;
    let nameless = probe.task("never").without("name");
    probe.refuses_tasks(&[nameless], &[INVALID_PARAMS]).await?;
    seen("1 and 255 characters, emoji too, are kept; 0 and 256, none and other types are -32602")
}

pub(in super::super) async fn statuses_are_known(probe: &Probe) -> Outcome {
    expect_field(&probe.store(&probe.task("new")).await?, "status", "pending")?;
    let pending = probe.task("said").with("status", "pending");
    expect_field(&probe.store(&pending).await?, "status", "pending")?;
    let odd = ["done", "PENDING", "", "canceled"]
        .map(Value::from)
        .into_iter();
    let odd = odd.chain([json!(1), Value::Null, json!([])]);
    probe.refuses_values("status", odd).await?;
    for status in ["in_progress", "completed", "failed", "cancelled"] {
        let task = probe.task("claimed").with("status", status);
        if let Some(task) = probe.store_or_refuse(&task).await? {
            expect_field(&task, "status", "pending")?;
        }
    }
    probe.one_of_each_status().await?;
    seen("pending at first, each status is reached, and other texts are -32602")
}

pub(in super::super) async fn priorities_are_integers(probe: &Probe) -> Outcome {
    probe
        .takes_values("priority", [0, 1, 2, 3].map(Value::from))
        .await?;
    let odd = [-1, 4, 255, 256, i64::MAX, i64::MIN]
        .map(Value::from)
        .into_iter();
    let odd = odd.chain([
        json!(2.5),
        json!(-0.5),
        json!(1e30),
        json!("2"),
        json!(true),
        json!([]),
    ]);
    probe.refuses_values("priority", odd).await?;
    // The schema calls 2.0 an integer and forbids null; the algorithm has it the other way round.
    for open in [json!(2.0), Value::Null] {
        let task = probe.task("open").with("priority", open);
        if let Some(task) = probe.store_or_refuse(&task).await? {
            expect_field(&task, "priority", 2)?;
        }
    }
    seen("0 to 3 are kept; -1, 4, 2.5, \"2\" and true are -32602")
}

async fn defaults_are_filled_in(probe: &Probe) -> Outcome {
    let bare = probe.group("bare").without("user_id");
    let task = probe.store(&bare).await?;
    for (field, default) in [
        ("parent_id", Value::Null),
        ("status", json!("pending")),
        ("priority", json!(2)),
        ("inputs", json!({})),
        ("schemas", Value::Null),
        ("params", Value::Null),
        ("result", Value::Null),
        ("error", Value::Null),
        ("dependencies", json!([])),
        ("progress", json!(0)),
        ("started_at", Value::Null),
        ("completed_at", Value::Null),
    ] {
        expect_field(&task, field, default)?;
    }
    probe.expect_no_other_user(&task)?;
    instant(&task, "created_at")?;
    instant(&task, "updated_at")?;
    seen("a task with a name alone has all defaults")
}

/// Objects with all that JSON has in them.
fn objects() -> [Value; 3] {
    let deep = json!({"text": "é🦀\u{0}", "list": [1, 2.5, null, true, {"a": {"b": []}}], "": {}});
    [json!({}), json!({"key": "value"}), deep]
}

fn no_objects() -> [Value; 5] {
    [json!([]), json!("{}"), json!(1), json!(true), json!([{}])]
}

async fn inputs_are_objects(probe: &Probe) -> Outcome {
    let absent = probe.store(&probe.task("none").without("inputs")).await?;
    expect_field(&absent, "inputs", json!({}))?;
    probe.takes_values("inputs", objects()).await?;
    probe
        .refuses_values("inputs", no_objects().into_iter().chain([Value::Null]))
        .await?;
    seen("objects are kept as they are; lists, texts, numbers and null are -32602")
}

pub(in super::super) async fn schemas_are_objects(probe: &Probe) -> Outcome {
    let absent = probe.store(&probe.task("none").without("schemas")).await?;
    expect_field(&absent, "schemas", Value::Null)?;
    let method = probe.options().executor.as_str();
    let given = json!({"method": method, "input_schema": {"type": "object"}});
    probe
        .takes_values("schemas", [given, json!({"method": method}), Value::Null])
        .await?;
    probe.refuses_values("schemas", no_objects()).await?;
    seen("objects and null are kept; lists, texts and numbers are -32602")
}

async fn params_are_objects(probe: &Probe) -> Outcome {
    expect_field(
        &probe.store(&probe.task("none")).await?,
        "params",
        Value::Null,
    )?;
    let agent = json!({"retry_count": 3, "user_agent": "MyCrawler/1.0"});
    let taken = objects().into_iter().chain([agent, Value::Null]);
    probe.takes_values("params", taken).await?;
    probe.refuses_values("params", no_objects()).await?;
    seen("objects and null are kept; lists, texts and numbers are -32602")
}

async fn dependencies_are_lists(probe: &Probe) -> Outcome {
    expect_field(
        &probe.store(&probe.task("none")).await?,
        "dependencies",
        json!([]),
    )?;
    probe.takes_values("dependencies", [json!([])]).await?;
    let odd = [
        json!({}),
        json!("x"),
        json!(1),
        json!([1]),
        json!([null]),
        json!([[]]),
        Value::Null,
    ];
    probe.refuses_values("dependencies", odd).await?;
    let first = probe.create(&probe.task("first")).await?;
    let next = probe.task("next").below(&first).after(&first);
    let list = json!([{"id": first, "required": true}]);
    expect_field(&probe.store(&next).await?, "dependencies", list)?;
    seen("lists of dependencies are kept; other types, and lists of others, are -32602")
}

pub(in super::super) async fn progress_is_a_fraction(probe: &Probe) -> Outcome {
    expect_field(&probe.store(&probe.task("new")).await?, "progress", 0)?;
    for first in [json!(0), json!(0.0)] {
        let task = probe.task("said").with("progress", first);
        if let Some(task) = probe.store_or_refuse(&task).await? {
            expect_field(&task, "progress", 0)?;
        }
    }
    progress_values_are_checked(probe).await?;
    seen("0 at first; -0.1, 1.1, texts and lists are -32602")
}

/// Where schema and algorithm disagree (priority, progress, times), either is right.
async fn nulls_are_checked(probe: &Probe) -> Outcome {
    let of_nobody = probe.task("null").with("user_id", Value::Null);
    probe.expect_no_other_user(&probe.store(&of_nobody).await?)?;
    let allowed = ["parent_id", "schemas", "params", "result", "error"];
    for field in allowed.into_iter().chain(["started_at", "completed_at"]) {
        let task = probe.task("null").with(field, Value::Null);
        expect_field(&probe.store(&task).await?, field, Value::Null)?;
    }
    for field in ["name", "status", "inputs", "dependencies"] {
        probe.refuses_values(field, [Value::Null]).await?;
    }
    for field in ["priority", "progress", "created_at", "updated_at"] {
        let task = probe.task("open").with(field, Value::Null);
        probe.store_or_refuse(&task).await?;
    }
    let required = json!([{"id": UNKNOWN_ID, "required": null}]);
    probe.refuses_values("dependencies", [required]).await?;
    seen("null is kept in eight members and -32602 in the others")
}

pub(in super::super) async fn task_ids_are_checked(probe: &Probe) -> Outcome {
    let odd = || {
        let texts = NO_UUIDS_V4.map(Value::from).into_iter();
        texts.chain([json!(5), Value::Null, json!([]), json!({})])
    };
    for method in [
        "tasks.get",
        "tasks.delete",
        "tasks.cancel",
        "tasks.tree",
        "tasks.copy",
    ] {
        let calls = odd().map(|id| json!({"task_id": id}));
        probe.refuses(method, calls, &[INVALID_PARAMS]).await?;
        probe
            .refuses(method, [json!({})], &[INVALID_PARAMS])
            .await?;
    }
    let updates = odd().map(|id| json!({"task_id": id, "updates": {"name": "x"}}));
    probe
        .refuses("tasks.update", updates, &[INVALID_PARAMS])
        .await?;
    let children = odd().map(|id| json!({"parent_id": id}));
    probe
        .refuses("tasks.children", children, &[INVALID_PARAMS])
        .await?;
    seen("ids that are no UUID v4, and none, are -32602 in seven methods")
}
